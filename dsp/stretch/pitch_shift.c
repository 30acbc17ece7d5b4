// Pitch shift: a stretch, then the resampler reads it at another speed. On the CPU one signal at a time on each thread,
// the stretch some samples after the others, on a GPU all at once.

#include "formants.h"
#include "resample_table.h"
#include "stretch_cuda.h"
#include "stretch_internal.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct worker {
    wt_stretch *stretch; // of one signal
    wt_resample *resampler;
    float *stretched;       // what the stretch gives at once
    wt__formants *formants; // NULL = they move with the pitch
    float *warped, *own; // [n_samples] the signal whose formants the shift will move to their place; NULL or the same
} worker;

typedef struct on_gpu {
    wt_stretch *stretch; // of all signals
    wt_resample_plan *resampler;
    wt__vocoder_cuda vocoder;
    wt__formants_cuda *formants; // NULL = they move with the pitch
    wt_buffer *warped, *stretched, *resampled;
} on_gpu;

struct wt_pitch_shift {
    wt_device *device;
    int64_t n_samples, n_stretched;
    int n_signals, n_slots;
    float gain;
    wt__resample_table rates; // of all workers
    worker *workers;
    on_gpu gpu;
};

// Rates in whole numbers whose ratio is nearest to librosa's, which may be any: by the convergents of its continued
// fraction, as far as the resampler's range of rates goes.
static void nearest_rates(double ratio, int *in_hz, int *out_hz)
{
    int64_t p0 = 0, q0 = 1, p1 = 1, q1 = 0;
    double x = ratio;
    for (int i = 0; i < 40; i++) {
        const double whole = floor(x);
        if (whole * (double)p1 + (double)p0 > 1e8 || whole * (double)q1 + (double)q0 > 1e8) break;
        const int64_t p = (int64_t)whole * p1 + p0, q = (int64_t)whole * q1 + q0;
        p0 = p1, q0 = q1, p1 = p, q1 = q;
        if (x - whole < 1e-12) break;
        x = 1 / (x - whole);
    }
    *in_hz = (int)p1;
    *out_hz = (int)q1;
}

static wt_status check(const wt_device *device, const wt_pitch_shift_config *c)
{
    if (!(c->rate_hz > 0)) return wt_fail(WT_ERR_BAD_ARG, "pitch_shift: rate %g Hz, want above 0", c->rate_hz);
    if (c->bins_per_octave < 1)
        return wt_fail(WT_ERR_BAD_ARG, "pitch_shift: %d steps an octave, want 1 or more", c->bins_per_octave);
    if (!(fabs(c->n_steps) <= 8.0 * c->bins_per_octave))
        return wt_fail(WT_ERR_BAD_ARG, "pitch_shift: %g steps, want at most 8 octaves", c->n_steps);
    if (c->n_signals < 1)
        return wt_fail(WT_ERR_BAD_ARG, "pitch_shift: %d signals, want 1 or more", c->n_signals);
    if (c->work && device)
        return wt_fail(WT_ERR_BAD_ARG, "pitch_shift: work of a plan with a device, want a plan of immediate calls");
    if (c->formant_order < 0)
        return wt_fail(WT_ERR_BAD_ARG, "pitch_shift: formant_order %d, want 0 or more", c->formant_order);
    return WT_OK;
}

static wt_status prepare_worker(wt_pitch_shift *p, const wt_stretch_config *stretch, worker *w)
{
    wt_status status = wt_stretch_create(NULL, stretch, &w->stretch);
    if (!status) status = wt__resample_create_sharing(&p->rates, 1, &w->resampler);
    if (status) return status;
    p->n_stretched = wt_stretch_n_out(w->stretch);
    const int64_t room = wt__stretch_room(w->stretch);
    w->stretched = calloc((size_t)room + 1, sizeof *w->stretched);
    return w->stretched ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "pitch_shift: %lld samples", (long long)room);
}

static wt__formants_config formants_config(const wt_pitch_shift_config *c)
{
    return (wt__formants_config){.n_fft = c->n_fft,
                                 .rate_hz = c->rate_hz,
                                 .order = c->formant_order,
                                 .ratio = exp2(c->n_steps / c->bins_per_octave),
                                 .n_samples = c->n_samples,
                                 .n_signals = c->n_signals,
                                 .frames_at_once = c->frames_at_once};
}

static wt_status prepare_formants(const wt_pitch_shift_config *c, worker *w)
{
    const wt__formants_config formants = formants_config(c);
    if (!c->work) w->own = malloc((size_t)c->n_samples * sizeof *w->own);
    w->warped = c->work ? c->work : w->own;
    if (!w->warped) return wt_fail(WT_ERR_NO_MEMORY, "pitch_shift: %lld samples", (long long)c->n_samples);
    return wt__formants_create(&formants, &w->formants);
}

static wt_status prepare_gpu_formants(wt_pitch_shift *p, const wt_pitch_shift_config *c)
{
    const wt__formants_config formants = formants_config(c);
    const size_t bytes = (size_t)c->n_signals * (size_t)c->n_samples * sizeof(float);
    wt_status status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, bytes, &p->gpu.warped);
    return status ? status : wt__formants_cuda_create(p->device, &formants, &p->gpu.formants);
}

static wt_status prepare_gpu(wt_pitch_shift *p, const wt_stretch_config *stretch, const wt_resample_config *rates)
{
    on_gpu *g = &p->gpu;
    if (p->n_stretched < 1 || p->n_stretched > INT32_MAX)
        return wt_fail(WT_ERR_BAD_ARG, "pitch_shift: stretched to %lld samples, want 1..%d on a GPU",
                       (long long)p->n_stretched, INT32_MAX);
    wt_stretch_config all = *stretch;
    all.n_signals = p->n_signals;
    wt_status status = wt_stretch_create(p->device, &all, &g->stretch);
    if (status) return status;
    const wt_resample_plan_config lines = {rates->in_hz, rates->out_hz, rates->quality, p->n_signals,
                                           (int)p->n_stretched};
    status = wt_resample_plan_create(p->device, &lines, &g->resampler);
    if (status) return status;
    const size_t floats = (size_t)p->n_signals * sizeof(float);
    status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, floats * (size_t)p->n_stretched, &g->stretched);
    if (!status)
        status = wt_buffer_create(p->device, WT_MEMORY_DEVICE,
                                  floats * (size_t)wt_resample_plan_out_frames(g->resampler), &g->resampled);
    return status ? status : wt__vocoder_cuda_load(p->device, &g->vocoder);
}

static wt_status prepare(const wt_pitch_shift_config *c, wt_pitch_shift *p)
{
    const double rate = exp2(-c->n_steps / c->bins_per_octave);
    const wt_stretch_config stretch = {.mode = c->mode,
                                       .rate = rate,
                                       .n_fft = c->n_fft,
                                       .hop = c->hop,
                                       .n_samples = c->n_samples,
                                       .n_signals = 1,
                                       .frames_at_once = c->frames_at_once};
    wt_resample_config rates = {
        .channels = 1, .quality = c->mode == WT_STRETCH_LIBROSA ? WT_RESAMPLE_SOXR_HQ : WT_RESAMPLE_BEST};
    nearest_rates(1 / rate, &rates.in_hz, &rates.out_hz);
    p->n_samples = c->n_samples;
    p->n_signals = c->n_signals;
    p->gain = c->scale ? (float)(1 / sqrt(rate)) : 1;
    p->n_slots = wt__op_slots(p->device, c->n_signals);
    p->workers = calloc((size_t)p->n_slots, sizeof *p->workers);
    wt_status status = p->workers ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "pitch_shift: %d threads", p->n_slots);
    if (!status) status = wt__resample_table_create(&rates, &p->rates);
    for (int i = 0; i < p->n_slots && !status; i++) {
        status = prepare_worker(p, &stretch, &p->workers[i]);
        if (!status && c->keep_formants) status = prepare_formants(c, &p->workers[i]);
    }
    if (!status && wt__op_on_gpu(p->device)) {
        status = prepare_gpu(p, &stretch, &rates);
        if (!status && c->keep_formants) status = prepare_gpu_formants(p, c);
    }
    return status;
}

wt_status wt_pitch_shift_create(wt_device *device, const wt_pitch_shift_config *config, wt_pitch_shift **plan)
{
    *plan = NULL;
    wt_pitch_shift_config c = *config;
    if (c.rate_hz == 0) c.rate_hz = 22050;
    if (!c.bins_per_octave) c.bins_per_octave = 12;
    if (!c.n_signals) c.n_signals = 1;
    wt_status status = check(device, &c);
    if (status) return status;
    wt_pitch_shift *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "pitch_shift: plan");
    p->device = device;
    status = prepare(&c, p);
    if (status)
        wt_pitch_shift_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_pitch_shift_destroy(wt_pitch_shift *plan)
{
    if (!plan) return;
    for (int i = 0; plan->workers && i < plan->n_slots; i++) {
        wt_stretch_destroy(plan->workers[i].stretch);
        wt_resample_destroy(plan->workers[i].resampler);
        free(plan->workers[i].stretched);
        wt__formants_destroy(plan->workers[i].formants);
        free(plan->workers[i].own);
    }
    free(plan->workers);
    wt__resample_table_destroy(&plan->rates);
    wt_stretch_destroy(plan->gpu.stretch);
    wt_resample_plan_destroy(plan->gpu.resampler);
    wt_module_destroy(plan->gpu.vocoder.module);
    wt__formants_cuda_destroy(plan->gpu.formants);
    wt_buffer_destroy(plan->gpu.warped);
    wt_buffer_destroy(plan->gpu.stretched);
    wt_buffer_destroy(plan->gpu.resampled);
    free(plan);
}

// ---- running

static int at_most(int64_t n) { return n < INT_MAX ? (int)n : INT_MAX; }

// What the resampler makes of n more samples of the stretch, as far as there is room; returns how many.
static int64_t resample(const worker *w, const float *in, int64_t n, float *out, int64_t room)
{
    int64_t made = 0;
    for (int used = 1, got = 1; (used || got) && n > 0; n -= used, in += used, made += got) {
        float *to = out + made;
        wt_resample_process(w->resampler, &in, at_most(n), &used, &to, at_most(room - made), &got);
    }
    return made;
}

static int64_t drain(const worker *w, float *out, int64_t room)
{
    int64_t made = 0;
    for (int got = 1; got && made < room; made += got) {
        float *to = out + made;
        wt_resample_drain(w->resampler, &to, at_most(room - made), &got);
    }
    return made;
}

static void shift(const wt_pitch_shift *p, const worker *w, const float *pcm, float *out)
{
    int64_t made = 0;
    wt_resample_reset(w->resampler);
    if (p->n_stretched) wt__stretch_begin(w->stretch, pcm);
    for (int64_t left = p->n_stretched; left && made < p->n_samples;) {
        const int64_t n = wt__stretch_next(w->stretch, pcm, w->stretched);
        left -= n;
        made += resample(w, w->stretched, n, out + made, p->n_samples - made);
    }
    made += drain(w, out + made, p->n_samples - made);
    memset(out + made, 0, (size_t)(p->n_samples - made) * sizeof *out);
    for (int64_t i = 0; i < p->n_samples && p->gain != 1; i++) out[i] *= p->gain;
}

typedef struct call {
    const wt_pitch_shift *plan;
    const float *pcm;
    float *out;
    int n_slots;
} call;

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_pitch_shift *p = c->plan;
    const worker *w = &p->workers[slot];
    for (int signal = slot; signal < p->n_signals; signal += c->n_slots) {
        float *out = c->out + signal * p->n_samples;
        const float *pcm = c->pcm + signal * p->n_samples;
        if (w->formants) wt__formants_run(w->formants, pcm, w->warped);
        shift(p, w, w->formants ? w->warped : pcm, out);
    }
}

WT_RT void wt_pitch_shift_run(wt_pitch_shift *plan, const float *pcm, float *out)
{
    const call c = {plan, pcm, out, 1};
    run_slot(&c, 0);
}

static wt_status enqueue_gpu(const wt_pitch_shift *p, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset,
                             float *out)
{
    const on_gpu *g = &p->gpu;
    wt_status status = WT_OK;
    if (g->formants) {
        status = wt__formants_cuda_enqueue(g->formants, stream, (const float *)(wt_buffer_address(pcm) + pcm_offset),
                                           g->warped);
        pcm = g->warped, pcm_offset = 0;
    }
    if (!status) status = wt_stretch_enqueue(g->stretch, stream, pcm, pcm_offset, g->stretched, 0);
    if (!status) status = wt_resample_plan_enqueue(g->resampler, stream, g->stretched, 0, g->resampled, 0);
    if (status) return status;
    return wt__vocoder_cuda_cut(&g->vocoder, stream, p->n_signals, p->gain, wt_resample_plan_out_frames(g->resampler),
                                (const float *)wt_buffer_address(g->resampled), p->n_samples, out);
}

wt_status wt_pitch_shift_enqueue(wt_pitch_shift *plan, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset,
                                 wt_buffer *out, size_t out_offset)
{
    const size_t floats = (size_t)plan->n_signals * (size_t)plan->n_samples;
    wt_status status = wt__op_stream("pitch_shift", plan->device, stream);
    if (!status) status = wt__op_range("pitch_shift", "pcm", pcm, pcm_offset, floats);
    if (!status) status = wt__op_range("pitch_shift", "out", out, out_offset, floats);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(pcm) + pcm_offset),
                    (float *)(wt_buffer_address(out) + out_offset), plan->n_slots};
    if (plan->gpu.stretch) return enqueue_gpu(plan, stream, pcm, pcm_offset, c.out);
    return wt_stream_run(stream, run_slot, &c, sizeof c, plan->n_slots);
}
