// Local autocorrelation of onset envelopes, by transforms of twice the window.

#include "fft_internal.h"
#include "tempo_cuda.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/simd.h>

struct wt_tempogram {
    wt_tempogram_config config;
    int n_fft, bins;
    float *window; // [win_length]
    wt_fft *forward, *inverse;
    float *frame, *im, *power; // [n_fft], [bins], [bins]
    wt_device *device;
    wt_tempogram **workers; // [n_slots], the first is the plan itself
    int n_slots;
    wt__tempogram_cuda *cuda; // NULL on a CPU
};

static wt_status take_device(wt_tempogram *p, wt_device *device)
{
    p->device = device;
    p->n_slots = wt__op_slots(device, p->config.n_signals);
    p->workers = calloc((size_t)p->n_slots, sizeof *p->workers);
    if (!p->workers) return wt_fail(WT_ERR_NO_MEMORY, "tempogram: %d threads", p->n_slots);
    p->workers[0] = p;
    wt_status status = wt__op_on_gpu(device) ? wt__tempogram_cuda_create(device, p, &p->cuda) : WT_OK;
    for (int slot = 1; slot < p->n_slots && !status; slot++)
        status = wt_tempogram_create(NULL, &p->config, &p->workers[slot]);
    return status;
}

wt_status wt_tempogram_create(wt_device *device, const wt_tempogram_config *config, wt_tempogram **plan)
{
    *plan = NULL;
    wt_tempogram *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "tempogram: plan");
    wt_tempogram_config *c = &p->config;
    *c = *config;
    wt_status status = WT_OK;
    if (!c->win_length) c->win_length = 384;
    if (c->win_length < 1 || c->win_length > 1 << 20) {
        status = wt_fail(WT_ERR_BAD_ARG, "tempogram: win_length %d, want 1..%d", c->win_length, 1 << 20);
        goto fail;
    }
    if (!c->n_signals) c->n_signals = 1;
    if (c->n_signals < 1) {
        status = wt_fail(WT_ERR_BAD_ARG, "tempogram: %d signals, want 1 or more", c->n_signals);
        goto fail;
    }
    const int n = c->win_length;
    c->window.n = n;
    const int unit = n < 128 ? 2 : 256; // even, at least twice the window, and better of 16 * 16 points than shorter
    p->n_fft = unit * wt_fft_good_size((2 * n + unit - 1) / unit);
    p->bins = p->n_fft / 2 + 1;
    p->window = malloc((size_t)n * sizeof(float));
    p->frame = calloc((size_t)p->n_fft, sizeof(float));
    p->im = calloc((size_t)p->bins, sizeof(float));
    p->power = calloc((size_t)p->bins, sizeof(float));
    status = p->window && p->frame && p->im && p->power
                 ? wt_window_fill(&c->window, p->window)
                 : wt_fail(WT_ERR_NO_MEMORY, "tempogram: window of %d frames", n);
    const wt_fft_config forward = {.n = p->n_fft, .kind = WT_FFT_REAL_TO_COMPLEX};
    const wt_fft_config inverse = {.n = p->n_fft, .kind = WT_FFT_COMPLEX_TO_REAL};
    if (!status) status = wt_fft_create(NULL, &forward, &p->forward);
    if (!status) status = wt_fft_create(NULL, &inverse, &p->inverse);
    if (!status && device) status = take_device(p, device);
    if (status) goto fail;
    c->window.samples = NULL; // copied
    *plan = p;
    return WT_OK;

fail:
    wt_tempogram_destroy(p);
    return status;
}

void wt_tempogram_destroy(wt_tempogram *plan)
{
    if (!plan) return;
    for (int slot = 1; plan->workers && slot < plan->n_slots; slot++) wt_tempogram_destroy(plan->workers[slot]);
    free(plan->workers);
    wt__tempogram_cuda_destroy(plan->cuda);
    wt_fft_destroy(plan->forward);
    wt_fft_destroy(plan->inverse);
    free(plan->window);
    free(plan->frame);
    free(plan->im);
    free(plan->power);
    free(plan);
}

int64_t wt_tempogram_rows(const wt_tempogram *plan, int64_t n)
{
    if (n < 1) return 0;
    if (plan->config.no_center) return n < plan->config.win_length ? 0 : n - plan->config.win_length + 1;
    const int64_t most = n + plan->config.win_length / 2 * 2 - plan->config.win_length + 1;
    return most < n ? most : n;
}

// The envelope with numpy's linear_ramp of half a window to 0 at both ends; a row begins at most that far outside.
WT_CLONES static void ramp_frame(const float *x, int64_t n, int64_t begin, int length, int half, float *frame)
{
    const int left = begin < 0 ? (int)-begin : 0, right = begin + length > n ? (int)(n - begin) : length;
    for (int i = 0; i < left; i++) frame[i] = (float)((double)x[0] * (double)(half - left + i) / half);
    memcpy(frame + left, x + begin + left, (size_t)(right - left) * sizeof *frame);
    for (int i = right; i < length; i++) frame[i] = (float)((double)x[n - 1] * (double)(half - 1 - i + right) / half);
}

const wt_tempogram_config *wt__tempogram_config(const wt_tempogram *plan) { return &plan->config; }

const float *wt__tempogram_window(const wt_tempogram *plan) { return plan->window; }

int wt__tempogram_bins(const wt_tempogram *plan) { return plan->bins; }

// The frame, and its energy in eight partial sums.
WT_CLONES static double window_frame(const float *x, const float *window, int n, float *frame)
{
    double sums[8] = {0}, energy = 0;
    int i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++) {
            frame[i + k] = window[i + k] * x[i + k];
            sums[k] += (double)frame[i + k] * frame[i + k];
        }
    for (; i < n; i++) {
        frame[i] = window[i] * x[i];
        energy += (double)frame[i] * frame[i];
    }
    for (int k = 0; k < 8; k++) energy += sums[k];
    return energy;
}

WT_CLONES static void take_power(float *re, const float *im, int bins)
{
    for (int k = 0; k < bins; k++) re[k] = re[k] * re[k] + im[k] * im[k];
}

// The envelope under row t, in place or in the plan's frame.
WT_RT static const float *row_samples(wt_tempogram *p, const float *envelope, int64_t n, int64_t t)
{
    const int length = p->config.win_length, half = length / 2;
    const int64_t begin = t - (p->config.no_center ? 0 : half);
    if (begin >= 0 && begin + length <= n) return envelope + begin;
    ramp_frame(envelope, n, begin, length, half, p->frame);
    return p->frame;
}

WT_RT void wt__tempogram_row(wt_tempogram *p, const float *envelope, int64_t n, int64_t t, double *row)
{
    const float *x = row_samples(p, envelope, n, t);
    const int length = p->config.win_length;
    for (int i = 0; i < length; i++) row[i] = (double)p->window[i] * x[i];
    memset(p->frame, 0, (size_t)length * sizeof(float));
}

WT_RT double wt__tempogram_power(wt_tempogram *p, const float *envelope, int64_t n, int64_t t, float *power)
{
    const float *x = row_samples(p, envelope, n, t);
    const double energy = window_frame(x, p->window, p->config.win_length, p->frame);
    if (wt__fft_weighs(p->forward)) {
        wt__fft_real_weighted(p->forward, p->frame, NULL, WT__FFT_POWERS, power, NULL);
    } else {
        wt__fft_real_forward(p->forward, p->frame, power, p->im);
        take_power(power, p->im, p->bins);
    }
    return energy;
}

WT_RT void wt__tempogram_lags(wt_tempogram *p, float *power, float *lags)
{
    memset(p->im, 0, (size_t)p->bins * sizeof(float));
    wt__fft_real_inverse(p->inverse, power, p->im, p->frame);
    memcpy(lags, p->frame, (size_t)p->config.win_length * sizeof(float));
    memset(p->frame, 0, (size_t)p->n_fft * sizeof(float));
}

WT_RT void wt_tempogram_run(wt_tempogram *plan, const float *envelope, int64_t n, float *out)
{
    const int length = plan->config.win_length;
    const int64_t rows = wt_tempogram_rows(plan, n);
    for (int64_t t = 0; t < rows; t++, out += length) {
        wt__tempogram_power(plan, envelope, n, t, plan->power);
        wt__tempogram_lags(plan, plan->power, out);
        float peak = 0;
        for (int k = 0; k < length; k++) peak = fabsf(out[k]) > peak ? fabsf(out[k]) : peak;
        for (int k = 0; k < length && !plan->config.no_norm && peak > FLT_MIN; k++) out[k] /= peak;
    }
}

typedef struct call {
    const wt_tempogram *plan;
    const float *envelope;
    float *out;
} call;

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_tempogram_config *f = &c->plan->config;
    const int64_t area = wt_tempogram_rows(c->plan, f->n_frames) * f->win_length;
    for (int s = slot; s < f->n_signals; s += c->plan->n_slots)
        wt_tempogram_run(c->plan->workers[slot], c->envelope + s * f->n_frames, f->n_frames, c->out + s * area);
}

wt_status wt_tempogram_enqueue(wt_tempogram *plan, wt_stream *stream, const wt_buffer *envelope, size_t envelope_offset,
                               wt_buffer *out, size_t out_offset)
{
    const wt_tempogram_config *c = &plan->config;
    const size_t n = (size_t)c->n_signals, row = (size_t)c->win_length;
    wt_status status = wt__op_stream("tempogram", plan->device, stream);
    if (!status) status = wt__op_range("tempogram", "envelope", envelope, envelope_offset, n * (size_t)c->n_frames);
    if (!status)
        status =
            wt__op_range("tempogram", "out", out, out_offset, n * (size_t)wt_tempogram_rows(plan, c->n_frames) * row);
    if (status) return status;
    const call k = {plan, (const float *)(wt_buffer_address(envelope) + envelope_offset),
                    (float *)(wt_buffer_address(out) + out_offset)};
    if (plan->cuda) return wt__tempogram_cuda_enqueue(plan->cuda, stream, k.envelope, k.out);
    return wt_stream_run(stream, run_slot, &k, sizeof k, plan->n_slots);
}

_Static_assert((int)WT_TEMPO_RATIOS == WT_TEMPO_MULTIPLES, "one table");

WT_RT void wt_tempogram_ratio(double rate_hz, int hop, const float *row, int win_length, double bpm, float *ratios)
{
    for (int i = 0; i < WT_TEMPO_RATIOS; i++) ratios[i] = wt__tempo_ratio(row, win_length, 60 * rate_hz / hop, bpm, i);
}
