// Predominant local pulse: in each frame of the Fourier tempogram the strongest tempo alone is kept, and the inverse
// transform adds these waves up.
//
// librosa keeps every bin that is as strong as the strongest. Those are several where one beat stands alone in a window
// (all are) or where beats are a whole number of frames apart (the multiples of their tempo are), and which of them
// rounding leaves in librosa is chance: of a beat every 32 frames its pulse in float64 and in float32 are 0.5 of the
// peak apart, and 1.0 and 0.5 from that of exact numbers. So transforms are in double, and bins within WT_PLP_TIE are
// equal.
//
// librosa divides a frame by the largest of its complex numbers, in numpy's order: by real part. When the kept bins'
// are negative that is one of the zeros, so the frame is divided by sqrt(tiny), 1e-154, and outweighs every frame of
// the other kind. Kept here by keeping only those frames when there are any. A real part of rounding alone counts as 0.

#include "plp_cuda.h"

#include "stft_internal.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/stft.h>
#include <warptone/tempo.h>

enum { ABOVE, BELOW, KINDS }; // numpy's 0

struct wt_plp {
    int length, bins, first, last; // bins within the range of tempi
    int64_t max_frames;
    wt_stft *stft;
    double *turn;    // [length][2] cosine and sine of one turn
    double *squares; // [length + 1] of the window, summed up to there
    double *sums;    // [KINDS][max_frames] waves, windowed
    wt_device *device;
    wt_plp **workers; // [n_slots], the first is the plan itself
    int n_signals, n_slots;
    wt__plp_cuda *cuda; // NULL on a CPU
};

static wt_status take_device(wt_plp *p, wt_device *device, const wt_plp_config *config)
{
    const wt__plp_tables tables = {p->length, p->first, p->last, wt__stft_window64(p->stft), p->turn, p->squares};
    p->device = device;
    if (wt__op_on_gpu(device))
        return wt__plp_cuda_create(device, &tables, p->max_frames, p->n_signals, &p->cuda);
    p->n_slots = wt__op_slots(device, p->n_signals);
    p->workers = calloc((size_t)p->n_slots, sizeof *p->workers);
    if (!p->workers) return wt_fail(WT_ERR_NO_MEMORY, "plp: %d threads", p->n_slots);
    p->workers[0] = p;
    wt_status status = WT_OK;
    for (int slot = 1; slot < p->n_slots && !status; slot++) status = wt_plp_create(NULL, config, &p->workers[slot]);
    return status;
}

static wt_status make_tables(wt_plp *p)
{
    const size_t n = (size_t)p->length;
    p->turn = malloc(2 * n * sizeof *p->turn);
    p->squares = malloc((n + 1) * sizeof *p->squares);
    p->sums = malloc(KINDS * (size_t)p->max_frames * sizeof *p->sums);
    if (!p->turn || !p->squares || !p->sums)
        return wt_fail(WT_ERR_NO_MEMORY, "plp: waves of %lld frames", (long long)p->max_frames);
    const wt_stft_config config = {.n_fft = p->length, .hop = 1, .precise = true};
    wt_status status = wt_stft_create(&config, &p->stft);
    if (status) return status;
    const double *window = wt__stft_window64(p->stft);
    p->squares[0] = 0;
    for (size_t i = 0; i < n; i++) {
        const double angle = 2 * 3.14159265358979323846 * (double)i / (double)n;
        p->turn[2 * i] = cos(angle), p->turn[2 * i + 1] = sin(angle);
        p->squares[i + 1] = p->squares[i] + window[i] * window[i];
    }
    return WT_OK;
}

wt_status wt_plp_create(wt_device *device, const wt_plp_config *config, wt_plp **plan)
{
    *plan = NULL;
    const double rate = config->rate_hz != 0 ? config->rate_hz : 22050, hop = config->hop ? config->hop : 512;
    const double low = config->min_bpm != 0 ? config->min_bpm : 30, high = config->max_bpm != 0 ? config->max_bpm : 300;
    const int length = config->win_length ? config->win_length : 384;
    if (!(rate > 0) || hop < 1) return wt_fail(WT_ERR_BAD_ARG, "plp: rate %g Hz, hop %g, want above 0", rate, hop);
    if (length < 2) return wt_fail(WT_ERR_BAD_ARG, "plp: win_length %d, want 2 or more", length);
    if (!(low > 0) || !(high > low)) return wt_fail(WT_ERR_BAD_ARG, "plp: %g to %g BPM, want 0 < min < max", low, high);
    if (config->max_frames < 1)
        return wt_fail(WT_ERR_BAD_ARG, "plp: max_frames %lld, want 1 or more", (long long)config->max_frames);
    if (config->n_signals < 0) return wt_fail(WT_ERR_BAD_ARG, "plp: %d signals, want 1 or more", config->n_signals);
    wt_plp *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "plp: plan");
    p->max_frames = config->max_frames;
    p->n_signals = config->n_signals ? config->n_signals : 1;
    p->length = length, p->bins = length / 2 + 1;
    const double bpm = rate * 60 / hop / length; // of bin 1
    p->first = (int)ceil(low / bpm);
    p->last = (int)floor(high / bpm);
    if (p->last > p->bins - 1) p->last = p->bins - 1;
    wt_status status = make_tables(p);
    if (!status && device) status = take_device(p, device, config);
    if (status)
        wt_plp_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_plp_destroy(wt_plp *plan)
{
    if (!plan) return;
    for (int slot = 1; plan->workers && slot < plan->n_slots; slot++) wt_plp_destroy(plan->workers[slot]);
    free(plan->workers);
    wt__plp_cuda_destroy(plan->cuda);
    wt_stft_destroy(plan->stft);
    free(plan->turn);
    free(plan->squares);
    free(plan->sums);
    free(plan);
}

// Of a frame's bins k of [n_bins][WT__FFT64_FRAMES]: the power that the kept ones have.
static double strongest(const wt_plp *p, const double *re, const double *im)
{
    double power = 0;
    for (int k = p->first; k <= p->last; k++) {
        const double x = re[k * WT__FFT64_FRAMES], y = im[k * WT__FFT64_FRAMES], here = x * x + y * y;
        power = here > power ? here : power;
    }
    return power;
}

static bool is_kept(double re, double im, double power) { return re * re + im * im >= power * (1 - WT_PLP_TIE); }

// Sums of the signal's frames from the one under the row's first, plus a wave of bin k under the window.
static void add_wave(const wt_plp *p, int64_t first, int64_t n, int k, double re, double im, double *sums)
{
    const double *window = wt__stft_window64(p->stft);
    const bool end = k == 0 || 2 * k == p->length; // has no mirror, and no imaginary part
    const int begin = first < 0 ? (int)-first : 0, stop = n - first < p->length ? (int)(n - first) : p->length;
    int at = (int)((int64_t)k * begin % p->length);
    re *= end ? 1 : 2, im *= end ? 0 : 2;
    for (int i = begin; i < stop; i++) {
        sums[first + i] += window[i] * (re * p->turn[2 * at] - im * p->turn[2 * at + 1]);
        at += k;
        if (at >= p->length) at -= p->length;
    }
}

// Of a row whose strongest bins have `power`; returns whether none of them is above zero.
static bool add_row(const wt_plp *p, int64_t t, int64_t n, const double *re, const double *im, double power)
{
    bool above = false;
    for (int k = p->first; k <= p->last; k++) {
        const double x = re[k * WT__FFT64_FRAMES], y = im[k * WT__FFT64_FRAMES];
        above |= is_kept(x, y, power) && wt__plp_is_above(x, y, power);
    }
    const double scale = above ? 1 / sqrt(power) : 1;
    double *sums = p->sums + (above ? ABOVE : BELOW) * n;
    for (int k = p->first; k <= p->last; k++) {
        const double x = re[k * WT__FFT64_FRAMES], y = im[k * WT__FFT64_FRAMES];
        if (is_kept(x, y, power)) add_wave(p, t - p->length / 2, n, k, x * scale, y * scale, sums);
    }
    return !above;
}

// Frame t's sum of the windows' squares.
static double squares_at(const wt_plp *p, int64_t t, int64_t n_rows)
{
    const int64_t last = t + p->length / 2, first = last - (n_rows - 1); // of the windows: places over t
    return p->squares[last < p->length ? last + 1 : p->length] - p->squares[first < 0 ? 0 : first];
}

WT_RT void wt_plp_run(wt_plp *plan, const float *envelope, int64_t n, float *pulse)
{
    if (n < 1) return;
    if (n > plan->max_frames) n = plan->max_frames;
    const int64_t n_rows = wt_stft_frames(plan->stft, n);
    bool any_below = false;
    memset(plan->sums, 0, KINDS * (size_t)n * sizeof *plan->sums);
    for (int64_t t = 0; t < n_rows; t += WT__FFT64_FRAMES) {
        const int count = n_rows - t < WT__FFT64_FRAMES ? (int)(n_rows - t) : WT__FFT64_FRAMES;
        const double *re, *im;
        wt__stft_precise(plan->stft, envelope, n, t, count, &re, &im);
        for (int f = 0; f < count; f++) {
            const double power = strongest(plan, re + f, im + f);
            if (power > 0) any_below |= add_row(plan, t + f, n, re + f, im + f, power);
        }
    }
    const double *sums = plan->sums + (any_below ? BELOW : ABOVE) * n;
    double peak = 0;
    for (int64_t t = 0; t < n; t++) {
        const double squares = squares_at(plan, t, n_rows), value = squares > FLT_MIN ? sums[t] / squares : 0;
        plan->sums[t] = value > 0 ? value : 0;
        peak = plan->sums[t] > peak ? plan->sums[t] : peak;
    }
    for (int64_t t = 0; t < n; t++) pulse[t] = (float)(peak > DBL_MIN ? plan->sums[t] / peak : plan->sums[t]);
}

// ---- on a stream

typedef struct call {
    const wt_plp *plan;
    const float *envelope;
    float *pulse;
} call;

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const int64_t n = c->plan->max_frames;
    for (int s = slot; s < c->plan->n_signals; s += c->plan->n_slots)
        wt_plp_run(c->plan->workers[slot], c->envelope + s * n, n, c->pulse + s * n);
}

wt_status wt_plp_enqueue(wt_plp *plan, wt_stream *stream, const wt_buffer *envelope, size_t envelope_offset,
                         wt_buffer *pulse, size_t pulse_offset)
{
    const size_t floats = (size_t)plan->n_signals * (size_t)plan->max_frames;
    wt_status status = wt__op_stream("plp", plan->device, stream);
    if (!status) status = wt__op_range("plp", "envelope", envelope, envelope_offset, floats);
    if (!status) status = wt__op_range("plp", "pulse", pulse, pulse_offset, floats);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(envelope) + envelope_offset),
                    (float *)(wt_buffer_address(pulse) + pulse_offset)};
    if (plan->cuda) return wt__plp_cuda_enqueue(plan->cuda, stream, c.envelope, c.pulse);
    return wt_stream_run(stream, run_slot, &c, sizeof c, plan->n_slots);
}
