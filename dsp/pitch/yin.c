// YIN on the CPU: frames in chunks, each with scratch of its thread.

#include "op.h"
#include "yin_cuda.h"
#include "yin_internal.h"

#include <math.h>
#include <stdlib.h>

struct wt_yin {
    wt_yin_args args;
    wt_device *device;
    wt__yin_cuda *cuda;
    int n_slots;
    wt__yin_scratch *scratch; // [n_slots]
};

static int64_t count_chunks(const wt_yin_args *a)
{
    return (a->n_frames + WT__YIN_CHUNK - 1) / WT__YIN_CHUNK;
}

wt_status wt_yin_create(wt_device *device, const wt_yin_config *config, wt_yin **plan)
{
    *plan = NULL;
    wt_yin *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "yin: plan");
    wt_pitch_frames frames = config->frames;
    wt_status status = wt__yin_layout("yin", &frames, &p->args);
    if (status) goto fail;
    p->args.threshold = config->trough_threshold != 0 ? config->trough_threshold : 0.1;
    if (!(p->args.threshold > 0)) {
        status = wt_fail(WT_ERR_BAD_ARG, "yin: trough_threshold %g, want above 0", config->trough_threshold);
        goto fail;
    }
    p->device = device;
    p->n_slots = wt__op_slots(device, count_chunks(&p->args) * p->args.n_signals);
    p->scratch = calloc((size_t)p->n_slots, sizeof *p->scratch);
    status = p->scratch ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "yin: %d threads", p->n_slots);
    for (int slot = 0; slot < p->n_slots && !status; slot++)
        status = wt__yin_scratch_create("yin", &p->args, &p->scratch[slot]);
    if (!status && wt__op_on_gpu(device))
        status = wt__yin_cuda_create("yin", device, &p->args, &p->cuda);
    if (status) goto fail;
    *plan = p;
    return WT_OK;

fail:
    wt_yin_destroy(p);
    return status;
}

void wt_yin_destroy(wt_yin *plan)
{
    if (!plan) return;
    for (int slot = 0; plan->scratch && slot < plan->n_slots; slot++) wt__yin_scratch_destroy(&plan->scratch[slot]);
    free(plan->scratch);
    wt__yin_cuda_destroy(plan->cuda);
    free(plan);
}

int64_t wt_yin_n_frames(const wt_yin *plan)
{
    return plan->args.n_frames;
}

// ---- choice of the period

// The first trough below the threshold, else the first of the lowest values.
static int pick(const double *d, int n, double threshold)
{
    int lowest = 0;
    for (int i = 0; i < n; i++) {
        const bool trough = (i == 0 || d[i] < d[i - 1]) && (i + 1 == n || (i ? d[i] <= d[i + 1] : d[i] < d[i + 1]));
        if (trough && d[i] < threshold && n > 1) return i;
        if (d[i] < d[lowest]) lowest = i;
    }
    return lowest;
}

typedef struct sink {
    const wt_yin_args *args;
    float *f0; // of the signal
} sink;

static void take_frame(void *user, int64_t t, const double *d)
{
    const sink *s = user;
    const wt_yin_args *a = s->args;
    const int n = a->max_period - a->min_period + 1;
    if (!d) {
        s->f0[t] = NAN;
        return;
    }
    const int i = pick(d, n, a->threshold);
    const double shift = i > 0 && i + 1 < n ? wt__yin_shift(d[i - 1], d[i], d[i + 1]) : 0;
    s->f0[t] = (float)(a->rate_hz / (a->min_period + i + shift));
}

// ---- running

typedef struct call {
    const wt_yin *plan;
    const float *pcm;
    float *f0;
} call;

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_yin_args *a = &c->plan->args;
    const int64_t chunks = count_chunks(a), items = chunks * a->n_signals;
    for (int64_t item = items * slot / c->plan->n_slots; item < items * (slot + 1) / c->plan->n_slots; item++) {
        const int64_t signal = item / chunks, begin = item % chunks * WT__YIN_CHUNK, rest = a->n_frames - begin;
        sink s = {a, c->f0 + signal * a->n_frames};
        wt__yin_functions(a, &c->plan->scratch[slot], c->pcm + signal * a->n_samples, begin,
                          rest < WT__YIN_CHUNK ? (int)rest : WT__YIN_CHUNK, take_frame, &s);
    }
}

WT_RT void wt_yin_run(wt_yin *plan, const float *pcm, float *f0)
{
    const call c = {plan, pcm, f0};
    for (int slot = 0; slot < plan->n_slots; slot++) run_slot(&c, slot);
}

wt_status wt_yin_enqueue(wt_yin *plan, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset, wt_buffer *f0,
                         size_t f0_offset)
{
    const wt_yin_args *a = &plan->args;
    wt_status status = wt__op_stream("yin", plan->device, stream);
    if (!status)
        status = wt__op_range("yin", "pcm", pcm, pcm_offset, (size_t)a->n_signals * (size_t)a->n_samples);
    if (!status) status = wt__op_range("yin", "f0", f0, f0_offset, (size_t)a->n_signals * (size_t)a->n_frames);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(pcm) + pcm_offset),
                    (float *)(wt_buffer_address(f0) + f0_offset)};
    if (plan->cuda) return wt__yin_cuda_enqueue(plan->cuda, stream, c.pcm, c.f0);
    return wt_stream_run(stream, run_slot, &c, sizeof c, plan->n_slots);
}
