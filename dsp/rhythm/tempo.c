// Tempo: the best lag of the mean tempogram under a log-normal prior. Rows are normalised by their lag 0, which is
// their energy, so the mean of the rows is one inverse transform of the mean of their normalised power spectra.
//
// Transforms are in float. Where nothing repeats after a lag, as behind the length of a short signal or of a single
// click, librosa has a 0 of 1e-17 there and the prior decides; a float's 1e-8 of lag 0 is worth more than what the
// prior differs by from lag to lag (log(1 + 1e6 lag)). So lags that are the best but for WT_TEMPO_SLACK are summed
// anew, in double.

#include "fft_double.h"
#include "tempo_cuda.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/simd.h>

struct wt_tempo {
    wt_tempo_config config;
    int length;
    wt_tempogram *tempogram;
    double *prior;              // [length] logarithm, -inf where the tempo is too high
    float *power, *mean, *lags; // [bins], [bins], [length]
    double *sum;                // [bins]
    double *row;                // [length] of a tempogram's, windowed
    double *again;              // [length] sums of the lags in `open`
    int *open;
    // Where many lags are open: sixteen rows at once.
    wt__fft64 *fft;
    double *x, *work, *re, *im; // two of [n_fft][2][8], two of [bins][16]
    double *window;             // [length] the window's autocorrelation
    wt_tempo_choice choice;     // of these
    wt_device *device;
    wt_tempo **workers; // [n_slots], the first is the plan itself
    int n_slots;
    wt__tempo_cuda *cuda;        // NULL on a CPU
    wt__tempo_rows_cuda *frames; // NULL without `frames`
};

static wt_status resolve(wt_tempo_config *c)
{
    if (c->rate_hz == 0) c->rate_hz = 22050;
    if (!c->hop) c->hop = 512;
    if (c->start_bpm == 0) c->start_bpm = 120;
    if (c->std_bpm == 0) c->std_bpm = 1;
    if (c->ac_size_s == 0) c->ac_size_s = 8;
    if (c->max_bpm == 0) c->max_bpm = 320;
    if (!c->n_signals) c->n_signals = 1;
    if (c->n_signals < 1) return wt_fail(WT_ERR_BAD_ARG, "tempo: %d signals, want 1 or more", c->n_signals);
    if (!(c->rate_hz > 0)) return wt_fail(WT_ERR_BAD_ARG, "tempo: rate %g Hz, want above 0", c->rate_hz);
    if (c->hop < 1) return wt_fail(WT_ERR_BAD_ARG, "tempo: hop %d, want 1 or more", c->hop);
    if (!(c->start_bpm > 0) || !(c->std_bpm > 0) || !(c->max_bpm > 0))
        return wt_fail(WT_ERR_BAD_ARG, "tempo: start_bpm %g, std_bpm %g, max_bpm %g, want above 0", c->start_bpm,
                       c->std_bpm, c->max_bpm);
    const double length = floor(floor(c->ac_size_s * c->rate_hz) / c->hop);
    if (!(length >= 2) || length > 1 << 20)
        return wt_fail(WT_ERR_BAD_ARG, "tempo: a window of %g s is %.0f frames, want 2 or more", c->ac_size_s, length);
    return WT_OK;
}

// Of the Hann window that a tempogram has by default, in closed form.
static void fill_window(wt_tempo *p)
{
    for (int k = 0; k < p->length; k++) {
        const double x = (double)k / p->length, turn = 2 * 3.14159265358979323846 * x;
        p->window[k] = (1 - x) * (2 + cos(turn)) / 3 + sin(turn) / (2 * 3.14159265358979323846) + DBL_MIN;
    }
}

static void fill_prior(wt_tempo *p)
{
    const wt_tempo_config *c = &p->config;
    const double slowest = wt__tempo_bpm(&p->choice, p->length - 1);
    p->prior[0] = -INFINITY;
    for (int k = 1; k < p->length; k++) {
        const double bpm = wt__tempo_bpm(&p->choice, k), octaves = (log2(bpm) - log2(c->start_bpm)) / c->std_bpm;
        p->prior[k] = bpm < c->max_bpm || slowest >= c->max_bpm ? -0.5 * octaves * octaves : -INFINITY;
    }
}

enum { TILE = WT__FFT64_FRAMES };

static wt_status take_double(wt_tempo *p)
{
    const int n_fft = 2 * (wt__tempogram_bins(p->tempogram) - 1);
    const size_t points = wt__fft64_doubles(n_fft) * sizeof(double),
                 bins = (size_t)wt__tempogram_bins(p->tempogram) * TILE * sizeof(double);
    p->x = aligned_alloc(64, points), p->work = aligned_alloc(64, points);
    p->re = aligned_alloc(64, bins), p->im = aligned_alloc(64, bins);
    if (!p->x || !p->work || !p->re || !p->im) return wt_fail(WT_ERR_NO_MEMORY, "tempo: spectra of %d frames", n_fft);
    return wt__fft64_create(n_fft, &p->fft);
}

static wt_status take_device(wt_tempo *p, wt_device *device)
{
    p->device = device;
    p->n_slots = wt__op_slots(device, p->config.n_signals);
    p->workers = calloc((size_t)p->n_slots, sizeof *p->workers);
    if (!p->workers) return wt_fail(WT_ERR_NO_MEMORY, "tempo: %d threads", p->n_slots);
    p->workers[0] = p;
    wt_status status =
        wt__op_on_gpu(device) ? wt__tempo_cuda_create(device, p->tempogram, &p->choice, &p->cuda) : WT_OK;
    if (!status && p->cuda && p->config.frames)
        status = wt__tempo_rows_cuda_create(device, p->tempogram, p->cuda, &p->frames);
    for (int slot = 1; slot < p->n_slots && !status; slot++)
        status = wt_tempo_create(NULL, &p->config, &p->workers[slot]);
    return status;
}

wt_status wt_tempo_create(wt_device *device, const wt_tempo_config *config, wt_tempo **plan)
{
    *plan = NULL;
    wt_tempo *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "tempo: plan");
    p->config = *config;
    wt_status status = resolve(&p->config);
    if (status) goto fail;
    p->length = (int)floor(floor(p->config.ac_size_s * p->config.rate_hz) / p->config.hop);
    status = wt_tempogram_create(NULL,
                                 &(wt_tempogram_config){.win_length = p->length,
                                                        .n_frames = p->config.n_frames,
                                                        .n_signals = p->config.n_signals},
                                 &p->tempogram);
    if (status) goto fail;
    const size_t bins = (size_t)wt__tempogram_bins(p->tempogram);
    p->prior = malloc((size_t)p->length * sizeof(double));
    p->power = malloc(bins * sizeof(float));
    p->mean = malloc(bins * sizeof(float));
    p->sum = malloc(bins * sizeof(double));
    p->lags = malloc((size_t)p->length * sizeof(float));
    p->window = malloc((size_t)p->length * sizeof(double));
    p->row = malloc((size_t)p->length * sizeof(double));
    p->again = malloc((size_t)p->length * sizeof(double));
    p->open = malloc((size_t)p->length * sizeof(int));
    if (!p->row || !p->again || !p->open || !p->window || !p->prior || !p->power || !p->mean || !p->sum || !p->lags) {
        status = wt_fail(WT_ERR_NO_MEMORY, "tempo: window of %d frames", p->length);
        goto fail;
    }
    p->choice = (wt_tempo_choice){.prior = p->prior,
                                  .window = p->window,
                                  .rate_hz = p->config.rate_hz,
                                  .hop = p->config.hop,
                                  .length = p->length,
                                  .fine = p->config.fine};
    status = take_double(p);
    if (status) goto fail;
    fill_window(p);
    fill_prior(p);
    if (device) status = take_device(p, device);
    if (status) goto fail;
    *plan = p;
    return WT_OK;

fail:
    wt_tempo_destroy(p);
    return status;
}

void wt_tempo_destroy(wt_tempo *plan)
{
    if (!plan) return;
    for (int slot = 1; plan->workers && slot < plan->n_slots; slot++) wt_tempo_destroy(plan->workers[slot]);
    free(plan->workers);
    wt__tempo_rows_cuda_destroy(plan->frames);
    wt__tempo_cuda_destroy(plan->cuda);
    wt_tempogram_destroy(plan->tempogram);
    free(plan->prior);
    free(plan->power);
    free(plan->mean);
    free(plan->sum);
    free(plan->window);
    free(plan->row);
    free(plan->again);
    free(plan->open);
    wt__fft64_destroy(plan->fft);
    free(plan->x), free(plan->work), free(plan->re), free(plan->im);
    free(plan->lags);
    free(plan);
}

// Rows of an envelope.
typedef struct row_range {
    const float *envelope;
    int64_t n, begin, end;
} row_range;

WT_CLONES static double dot(const double *a, const double *b, int n)
{
    double sums[8] = {0}, sum = 0;
    int i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++) sums[k] += a[i + k] * b[i + k];
    for (; i < n; i++) sum += a[i] * b[i];
    for (int k = 0; k < 8; k++) sum += sums[k];
    return sum;
}

// The first n_open lags of `open`, means over the rows, to `again`.
WT_RT static void sum_again(const wt_tempo *p, const row_range *rows, int n_open)
{
    for (int i = 0; i < n_open; i++) p->again[i] = 0;
    for (int64_t t = rows->begin; t < rows->end; t++) {
        wt__tempogram_row(p->tempogram, rows->envelope, rows->n, t, p->row);
        const double energy = dot(p->row, p->row, p->length), scale = energy > DBL_MIN ? 1 / energy : 1;
        if (energy == 0) continue; // silence, of which there may be hours
        for (int i = 0; i < n_open; i++)
            p->again[i] += scale * dot(p->row, p->row + p->open[i], p->length - p->open[i]);
    }
    for (int i = 0; i < n_open; i++) p->again[i] /= (double)(rows->end - rows->begin);
}

// Rows t .. t + count - 1 as the transform wants them, and 1 / energy of each.
WT_RT static void load_rows(const wt_tempo *p, const row_range *rows, int64_t t, int count, double *scales)
{
    memset(p->x, 0, (size_t)(2 * (wt__tempogram_bins(p->tempogram) - 1)) * TILE * sizeof(double));
    for (int f = 0; f < TILE; f++) {
        scales[f] = 0;
        if (f >= count) continue;
        wt__tempogram_row(p->tempogram, rows->envelope, rows->n, t + f, p->row);
        const double energy = dot(p->row, p->row, p->length);
        scales[f] = energy > DBL_MIN ? 1 / energy : 1;
        for (int i = 0; i < p->length; i++) p->x[i * TILE + f] = p->row[i];
    }
}

WT_CLONES static void add_powers(const double *re, const double *im, const double *scales, int bins, double *sum)
{
    for (int k = 0; k < bins; k++)
        for (int f = 0; f < TILE; f++) {
            const double x = re[k * TILE + f], y = im[k * TILE + f];
            sum[k] += scales[f] * (x * x + y * y);
        }
}

// The same of many lags, by transforms.
WT_RT static void transform_again(const wt_tempo *p, const row_range *rows, int n_open)
{
    const int bins = wt__tempogram_bins(p->tempogram), n_fft = 2 * (bins - 1);
    double scales[TILE];
    memset(p->sum, 0, (size_t)bins * sizeof *p->sum);
    for (int64_t t = rows->begin; t < rows->end; t += TILE) {
        load_rows(p, rows, t, rows->end - t < TILE ? (int)(rows->end - t) : TILE, scales);
        wt__fft64_bins(wt__fft64_run(p->fft, p->x, p->work), n_fft, p->re, p->im);
        add_powers(p->re, p->im, scales, bins, p->sum);
    }
    memset(p->im, 0, (size_t)bins * TILE * sizeof(double));
    for (int k = 0; k < bins; k++)
        for (int f = 0; f < TILE; f++) p->re[k * TILE + f] = p->sum[k];
    wt__fft64_fold(p->re, p->im, n_fft, p->x);
    const double *z = wt__fft64_run(p->fft, p->x, p->work), by = 1.0 / n_fft / (double)(rows->end - rows->begin);
    for (int i = 0; i < n_open; i++) p->again[i] = z[p->open[i] * TILE] * by;
}

WT_RT static double choose(const wt_tempo *p, const float *lags, const row_range *rows)
{
    int best = 0, n_open = 0;
    double value = -INFINITY, *worth = p->row;
    for (int k = 1; k < p->length; k++) {
        worth[k] = wt__tempo_worth(&p->choice, lags[k], k);
        if (worth[k] > value) value = worth[k], best = k;
    }
    const double sure = best ? wt__tempo_sure(&p->choice, lags[best], best) : INFINITY;
    for (int k = 1; k < p->length; k++)
        if (wt__tempo_most(&p->choice, worth[k], lags[k], k) >= sure) p->open[n_open++] = k;
    const int64_t n_rows = rows->end - rows->begin;
    if (lags[0] == 0) n_open = 0; // silence: it is the prior alone
    if (n_open > 1 && n_open * (n_rows < TILE ? n_rows : TILE) <= 512)
        sum_again(p, rows, n_open);
    else if (n_open > 1)
        transform_again(p, rows, n_open);
    value = -INFINITY;
    for (int i = 0; i < n_open && n_open > 1; i++) {
        const double here = wt__tempo_worth(&p->choice, p->again[i], p->open[i]);
        if (here > value) value = here, best = p->open[i];
    }
    if (!best) best = p->length - 1; // nothing but not-a-number
    return wt__tempo_bpm(&p->choice, p->config.fine ? wt__tempo_refine(&p->choice, lags, best) : best);
}

WT_CLONES static void add_scaled(const float *power, double scale, double *sum, int n)
{
    for (int k = 0; k < n; k++) sum[k] += scale * power[k];
}

WT_RT double wt_tempo_run(wt_tempo *p, const float *envelope, int64_t n)
{
    const int bins = wt__tempogram_bins(p->tempogram);
    const int64_t rows = wt_tempogram_rows(p->tempogram, n);
    memset(p->sum, 0, (size_t)bins * sizeof *p->sum);
    for (int64_t t = 0; t < rows; t++) {
        const double energy = wt__tempogram_power(p->tempogram, envelope, n, t, p->power);
        add_scaled(p->power, energy > DBL_MIN ? 1 / energy : 1, p->sum, bins);
    }
    for (int k = 0; k < bins; k++) p->mean[k] = (float)(p->sum[k] / (double)(rows > 0 ? rows : 1));
    wt__tempogram_lags(p->tempogram, p->mean, p->lags);
    return choose(p, p->lags, &(row_range){envelope, n, 0, rows});
}

WT_RT void wt_tempo_run_frames(wt_tempo *p, const float *envelope, int64_t n, double *bpm)
{
    for (int64_t t = 0; t < n; t++) {
        const double energy = wt__tempogram_power(p->tempogram, envelope, n, t, p->power);
        const float scale = energy > FLT_MIN ? (float)(1 / energy) : 1;
        for (int k = 0; k < wt__tempogram_bins(p->tempogram); k++) p->power[k] *= scale;
        wt__tempogram_lags(p->tempogram, p->power, p->lags);
        bpm[t] = choose(p, p->lags, &(row_range){envelope, n, t, t + 1});
    }
}

// ---- on a stream

typedef struct call {
    const wt_tempo *plan;
    const float *envelope;
    double *bpm;
} call;

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_tempo_config *f = &c->plan->config;
    for (int s = slot; s < f->n_signals; s += c->plan->n_slots)
        c->bpm[s] = wt_tempo_run(c->plan->workers[slot], c->envelope + s * f->n_frames, f->n_frames);
}

const wt__tempo_cuda *wt__tempo_on_gpu(const wt_tempo *plan) { return plan ? plan->cuda : NULL; }

// `n_bpm` tempi go to `bpm`.
static wt_status check(const wt_tempo *p, wt_stream *stream, const wt_buffer *envelope, size_t envelope_offset,
                       const wt_buffer *bpm, size_t bpm_offset, size_t n_bpm)
{
    const size_t n = (size_t)p->config.n_signals * (size_t)p->config.n_frames;
    wt_status status = wt__op_stream("tempo", p->device, stream);
    if (!status) status = wt__op_range("tempo", "envelope", envelope, envelope_offset, n);
    if (!status) status = wt__op_range("tempo", "bpm", bpm, bpm_offset, 2 * n_bpm);
    if (!status && bpm_offset % sizeof(double))
        status = wt_fail(WT_ERR_BAD_ARG, "tempo: bpm offset %zu, want a multiple of 8", bpm_offset);
    return status;
}

static call call_of(const wt_tempo *p, const wt_buffer *envelope, size_t envelope_offset, wt_buffer *bpm,
                    size_t bpm_offset)
{
    return (call){p, (const float *)(wt_buffer_address(envelope) + envelope_offset),
                  (double *)(wt_buffer_address(bpm) + bpm_offset)};
}

wt_status wt_tempo_enqueue(wt_tempo *plan, wt_stream *stream, const wt_buffer *envelope, size_t envelope_offset,
                           wt_buffer *bpm, size_t bpm_offset)
{
    wt_status status = check(plan, stream, envelope, envelope_offset, bpm, bpm_offset, (size_t)plan->config.n_signals);
    if (status) return status;
    const call c = call_of(plan, envelope, envelope_offset, bpm, bpm_offset);
    if (plan->cuda) return wt__tempo_cuda_enqueue(plan->cuda, stream, c.envelope, c.bpm);
    return wt_stream_run(stream, run_slot, &c, sizeof c, plan->n_slots);
}

static void run_slot_frames(const void *args, int slot)
{
    const call *c = args;
    const wt_tempo_config *f = &c->plan->config;
    for (int s = slot; s < f->n_signals; s += c->plan->n_slots)
        wt_tempo_run_frames(c->plan->workers[slot], c->envelope + s * f->n_frames, f->n_frames,
                            c->bpm + s * f->n_frames);
}

wt_status wt_tempo_enqueue_frames(wt_tempo *plan, wt_stream *stream, const wt_buffer *envelope, size_t envelope_offset,
                                  wt_buffer *bpm, size_t bpm_offset)
{
    const size_t n = (size_t)plan->config.n_signals * (size_t)plan->config.n_frames;
    if (!plan->config.frames) return wt_fail(WT_ERR_BAD_ARG, "tempo: the plan is of one tempo a signal, want `frames`");
    wt_status status = check(plan, stream, envelope, envelope_offset, bpm, bpm_offset, n);
    if (status) return status;
    const call c = call_of(plan, envelope, envelope_offset, bpm, bpm_offset);
    if (plan->frames) return wt__tempo_rows_cuda_enqueue(plan->frames, stream, c.envelope, c.bpm);
    return wt_stream_run(stream, run_slot_frames, &c, sizeof c, plan->n_slots);
}
