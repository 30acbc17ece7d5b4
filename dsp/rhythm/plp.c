// Predominant local pulse: in each frame of the Fourier tempogram the strongest tempo alone is kept, and the inverse
// transform adds these waves up.
//
// librosa divides a frame by the largest of its complex numbers, in numpy's order: by real part. When the kept bin's is
// negative that is one of the zeros, so the frame is divided by sqrt(tiny), 1e-154, and outweighs every frame of the
// other kind. Kept here by keeping only those frames when there are any.

#include "plp_cuda.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/stft.h>
#include <warptone/tempo.h>

struct wt_plp {
    int bins, first, last; // bins within the range of tempi
    int64_t max_frames;
    wt_stft *stft;
    float *spectra; // [max_frames + 1][bins][2]
    wt_device *device;
    wt_plp **workers; // [n_slots], the first is the plan itself
    int n_signals, n_slots;
    wt__plp_cuda *cuda; // NULL on a CPU
};

static wt_status take_device(wt_plp *p, wt_device *device, const wt_plp_config *config, int length)
{
    p->device = device;
    if (wt__op_on_gpu(device))
        return wt__plp_cuda_create(device, length, p->first, p->last, p->max_frames, p->n_signals, &p->cuda);
    p->n_slots = wt__op_slots(device, p->n_signals);
    p->workers = calloc((size_t)p->n_slots, sizeof *p->workers);
    if (!p->workers) return wt_fail(WT_ERR_NO_MEMORY, "plp: %d threads", p->n_slots);
    p->workers[0] = p;
    wt_status status = WT_OK;
    for (int slot = 1; slot < p->n_slots && !status; slot++) status = wt_plp_create(NULL, config, &p->workers[slot]);
    return status;
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
    p->bins = length / 2 + 1;
    const double bpm = rate * 60 / hop / length; // of bin 1
    p->first = (int)ceil(low / bpm);
    p->last = (int)floor(high / bpm);
    if (p->last > p->bins - 1) p->last = p->bins - 1;
    wt_status status = wt_stft_create(&(wt_stft_config){.n_fft = length, .hop = 1}, &p->stft);
    p->spectra = malloc((size_t)(p->max_frames + 1) * (size_t)p->bins * 2 * sizeof(float));
    if (!status && !p->spectra)
        status = wt_fail(WT_ERR_NO_MEMORY, "plp: tempogram of %lld frames", (long long)p->max_frames);
    if (!status && device) status = take_device(p, device, config, length);
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
    free(plan->spectra);
    free(plan);
}

static int strongest(const wt_plp *p, const float *x)
{
    int best = -1;
    float power = 0;
    for (int k = p->first; k <= p->last; k++) {
        const float here = x[2 * k] * x[2 * k] + x[2 * k + 1] * x[2 * k + 1];
        if (here > power) power = here, best = k;
    }
    return best;
}

static bool is_below_zero(const float *value) // in numpy's order of complex numbers
{
    return value[0] < 0 || (value[0] == 0 && value[1] < 0);
}

// Keep the strongest bin of each frame; returns whether any is below zero.
static bool keep_strongest(const wt_plp *p, int64_t n_frames)
{
    bool any = false;
    for (int64_t t = 0; t < n_frames; t++) {
        float *x = p->spectra + t * 2 * p->bins;
        const int k = strongest(p, x);
        const float kept[2] = {k < 0 ? 0 : x[2 * k], k < 0 ? 0 : x[2 * k + 1]};
        memset(x, 0, 2 * (size_t)p->bins * sizeof *x);
        if (k >= 0) memcpy(x + 2 * k, kept, sizeof kept);
        any |= is_below_zero(kept);
    }
    return any;
}

static void weigh(const wt_plp *p, int64_t n_frames, bool any_below)
{
    for (int64_t t = 0; t < n_frames; t++) {
        float *x = p->spectra + t * 2 * p->bins;
        const int k = strongest(p, x);
        if (k < 0) continue;
        if (any_below && !is_below_zero(x + 2 * k)) x[2 * k] = x[2 * k + 1] = 0;
        if (any_below) continue;
        const float size = hypotf(x[2 * k], x[2 * k + 1]);
        x[2 * k] /= size;
        x[2 * k + 1] /= size;
    }
}

WT_RT void wt_plp_run(wt_plp *plan, const float *envelope, int64_t n, float *pulse)
{
    if (n < 1) return;
    if (n > plan->max_frames) n = plan->max_frames;
    const int64_t n_frames = wt_stft_frames(plan->stft, n);
    memset(pulse, 0, (size_t)n * sizeof *pulse);
    if (wt_stft_forward(plan->stft, envelope, n, plan->spectra)) return;
    weigh(plan, n_frames, keep_strongest(plan, n_frames));
    if (wt_stft_inverse(plan->stft, plan->spectra, n_frames, n, pulse)) return;
    float peak = 0;
    for (int64_t i = 0; i < n; i++) {
        pulse[i] = pulse[i] > 0 ? pulse[i] : 0;
        peak = pulse[i] > peak ? pulse[i] : peak;
    }
    for (int64_t i = 0; i < n && peak > FLT_MIN; i++) pulse[i] /= peak;
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
