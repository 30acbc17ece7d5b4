// Peaks of onset envelopes.

#include "onset_kernel.h"
#include "op.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <warptone/onset.h>

// (x - offset) / scale, as librosa normalises before it picks; the comparison of two values needs neither.
typedef struct series {
    const float *x;
    int64_t n;
    double offset, scale;
} series;

static bool is_largest(const series *s, int64_t at, int64_t begin, int64_t end)
{
    for (int64_t i = begin < 0 ? 0 : begin; i < end && i < s->n; i++)
        if (s->x[i] > s->x[at]) return false;
    return true;
}

static bool stands_out(const series *s, int64_t at, int64_t begin, int64_t end, double delta)
{
    double sum = 0;
    if (begin < 0) begin = 0;
    if (end > s->n) end = s->n;
    for (int64_t i = begin; i < end; i++) sum += (s->x[i] - s->offset) / s->scale;
    return (s->x[at] - s->offset) / s->scale >= sum / (double)(end - begin) + delta;
}

static bool is_sound(const wt_peak_config *c)
{
    return c->pre_max >= 0 && c->pre_avg >= 0 && c->wait >= 0 && c->delta >= 0 && c->post_max >= 1 && c->post_avg >= 1;
}

static int64_t pick(const wt_peak_config *c, const series *s, int *peaks)
{
    int64_t count = 0;
    if (!is_sound(c)) return 0;
    for (int64_t at = 0; at < s->n; at++) {
        // the first frame's windows begin at itself: there is nothing before it
        if (!is_largest(s, at, at - c->pre_max, at + c->post_max)) continue;
        if (!stands_out(s, at, at - c->pre_avg, at + c->post_avg, c->delta)) continue;
        peaks[count++] = (int)at;
        at += c->wait;
    }
    return count;
}

WT_RT int64_t wt_peak_pick(const wt_peak_config *config, const float *x, int64_t n, int *peaks)
{
    return pick(config, &(series){x, n, 0, 1}, peaks);
}

wt_peak_config wt_onset_peaks(double rate_hz, int hop)
{
    const int around = (int)floor(0.03 * rate_hz / hop), mean = (int)floor(0.1 * rate_hz / hop);
    return (wt_peak_config){
        .pre_max = around, .post_max = 1, .pre_avg = mean, .post_avg = mean + 1, .wait = around, .delta = 0.07};
}

WT_RT int64_t wt_onset_detect(const wt_peak_config *config, const float *envelope, int64_t n, int *frames)
{
    float least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(envelope[i])) return 0;
        if (envelope[i] < least) least = envelope[i];
        if (envelope[i] > most) most = envelope[i];
    }
    if (!(most > least)) return 0;
    return pick(config, &(series){envelope, n, least, (double)most - least + DBL_MIN}, frames);
}

WT_RT void wt_onset_backtrack(const float *energy, int64_t n, const int *events, int64_t n_events, int *moved)
{
    for (int64_t k = 0; k < n_events; k++) {
        int64_t at = events[k] < n - 2 ? events[k] : n - 2; // the ends are no minima
        while (at > 0 && !(energy[at] <= energy[at - 1] && energy[at] < energy[at + 1])) at--;
        moved[k] = at > 0 ? (int)at : 0;
    }
}

// ---- on a stream

struct wt_onsets {
    wt_onsets_config config;
    wt_device *device;
    wt_module *module;
    wt_kernel *kernel; // NULL on a CPU
};

wt_status wt_onsets_create(wt_device *device, const wt_onsets_config *config, wt_onsets **plan)
{
    *plan = NULL;
    wt_onsets_config c = *config;
    if (!c.n_signals) c.n_signals = 1;
    if (!is_sound(&c.peaks))
        return wt_fail(WT_ERR_BAD_ARG,
                       "onsets: pre_max %d, post_max %d, pre_avg %d, post_avg %d, wait %d, delta %g, "
                       "want 0, 1, 0, 1, 0 and 0 or more",
                       c.peaks.pre_max, c.peaks.post_max, c.peaks.pre_avg, c.peaks.post_avg, c.peaks.wait,
                       c.peaks.delta);
    if (c.n_frames < 1 || c.n_frames > INT32_MAX || c.n_signals < 1)
        return wt_fail(WT_ERR_BAD_ARG, "onsets: %d signals of %lld frames, want 1 or more of 1..%d", c.n_signals,
                       (long long)c.n_frames, INT32_MAX);
    wt_onsets *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "onsets: plan");
    p->config = c;
    p->device = device;
    wt_status status = WT_OK;
    if (wt__op_on_gpu(device)) status = wt__op_exact_module(device, "kernels/rhythm/onset.cu", &p->module);
    if (p->module) status = wt_module_get_kernel(p->module, "onset_detect", &p->kernel);
    if (status)
        wt_onsets_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_onsets_destroy(wt_onsets *plan)
{
    if (!plan) return;
    wt_module_destroy(plan->module);
    free(plan);
}

typedef struct call {
    const wt_onsets *plan;
    const float *envelope;
    int *frames, *counts;
} call;

static void detect_signal(const void *args, int signal)
{
    const call *c = args;
    const int64_t n = c->plan->config.n_frames;
    const float *envelope = c->envelope + signal * n;
    int *frames = c->frames + signal * n;
    const int64_t count = c->plan->config.plain ? wt_peak_pick(&c->plan->config.peaks, envelope, n, frames)
                                                : wt_onset_detect(&c->plan->config.peaks, envelope, n, frames);
    if (c->plan->config.backtrack) wt_onset_backtrack(envelope, n, frames, count, frames);
    c->counts[signal] = (int)count;
}

wt_status wt_onsets_enqueue(wt_onsets *plan, wt_stream *stream, const wt_buffer *envelope, size_t envelope_offset,
                            wt_buffer *frames, size_t frames_offset, wt_buffer *counts, size_t counts_offset)
{
    const wt_peak_config *k = &plan->config.peaks;
    const size_t n_signals = (size_t)plan->config.n_signals, area = n_signals * (size_t)plan->config.n_frames;
    wt_status status = wt__op_stream("onsets", plan->device, stream);
    if (!status) status = wt__op_range("onsets", "envelope", envelope, envelope_offset, area);
    if (!status) status = wt__op_range("onsets", "frames", frames, frames_offset, area);
    if (!status) status = wt__op_range("onsets", "counts", counts, counts_offset, n_signals);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(envelope) + envelope_offset),
                    (int *)(wt_buffer_address(frames) + frames_offset),
                    (int *)(wt_buffer_address(counts) + counts_offset)};
    if (!plan->kernel) return wt_stream_run(stream, detect_signal, &c, sizeof c, plan->config.n_signals);
    const wt_onsets_args args = {.envelope = c.envelope,
                                 .frames = c.frames,
                                 .counts = c.counts,
                                 .n_frames = plan->config.n_frames,
                                 .pre_max = k->pre_max,
                                 .post_max = k->post_max,
                                 .pre_avg = k->pre_avg,
                                 .post_avg = k->post_avg,
                                 .wait = k->wait,
                                 .backtrack = plan->config.backtrack,
                                 .plain = plan->config.plain,
                                 .delta = k->delta};
    const wt_launch launch = {.grid = {plan->config.n_signals}, .block = {256}};
    return wt_kernel_launch(plan->kernel, stream, &launch, &WT_ARG(args), 1);
}
