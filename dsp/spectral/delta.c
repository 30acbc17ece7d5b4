#include "savgol_internal.h"

#include <stdlib.h>
#include <warptone/delta.h>

enum { MAX_WIDTH = WT_SAVGOL_MAX_TAPS };

static wt_delta_config resolved(const wt_delta_config *config)
{
    wt_delta_config c = config ? *config : (wt_delta_config){.width = 0};
    if (!c.width) c.width = 9;
    if (!c.order) c.order = 1;
    return c;
}

static wt_status check(const wt_delta_config *c, int64_t n_frames)
{
    if (c->width < 3 || c->width > MAX_WIDTH || c->width % 2 == 0)
        return wt_fail(WT_ERR_BAD_ARG, "delta: width %d, want an odd one of 3..%d", c->width, MAX_WIDTH);
    if (c->order < 1 || c->order >= c->width || c->order > 20)
        return wt_fail(WT_ERR_BAD_ARG, "delta: order %d, want 1..%d", c->order, c->width > 20 ? 20 : c->width - 1);
    if ((unsigned)c->mode > WT_DELTA_WRAP)
        return wt_fail(WT_ERR_BAD_ARG, "delta: mode %d, want 0..%d", (int)c->mode, WT_DELTA_WRAP);
    if (n_frames < 1 || (c->mode == WT_DELTA_INTERP && n_frames < c->width))
        return wt_fail(WT_ERR_LENGTH, "delta: %lld frames, want %d or more (the width, in mode interp)",
                       (long long)n_frames, c->mode == WT_DELTA_INTERP ? c->width : 1);
    return WT_OK;
}

static double outside(const wt_delta_config *c, const float *x, int64_t n, int64_t at)
{
    if (at >= 0 && at < n) return x[at];
    if (c->mode == WT_DELTA_CONSTANT) return c->constant;
    if (c->mode == WT_DELTA_NEAREST || n == 1) return x[at < 0 ? 0 : n - 1];
    const int64_t period = c->mode == WT_DELTA_WRAP ? n : 2 * (n - 1);
    at %= period;
    if (at < 0) at += period;
    return x[at < n ? at : period - at];
}

wt_status wt_delta_run(const wt_delta_config *config, const float *in, int64_t n_rows, int64_t n_frames, float *out)
{
    wt_delta_config c = resolved(config);
    wt_status status = check(&c, n_frames);
    const int half = c.width / 2;
    double taps[MAX_WIDTH];
    // Position by position; in mode interp the outer ones read the end windows off their middle.
    for (int64_t t = 0, known = -1; t < n_frames && !status; t++) {
        const int64_t end = n_frames - c.width;
        int64_t begin = t - half;
        if (c.mode == WT_DELTA_INTERP) begin = begin < 0 ? 0 : begin > end ? end : begin;
        const int64_t position = t - begin;
        if (position != known)
            status = wt_savgol_taps(&(wt_savgol_config){c.width, c.order, c.order, 1}, (int)position, taps);
        known = position;
        for (int64_t row = 0; row < n_rows && !status; row++) {
            double sum = 0;
            for (int k = 0; k < c.width; k++) sum += taps[k] * outside(&c, in + row * n_frames, n_frames, begin + k);
            out[row * n_frames + t] = (float)sum;
        }
    }
    return status;
}

// ---- on a stream

struct wt_delta {
    wt_delta_config config; // defaults resolved
    wt_device *device;
    int64_t n_rows, n_frames;
    wt__savgol_cuda cuda;
};

wt_status wt_delta_create(wt_device *device, const wt_delta_config *config, int64_t n_rows, int64_t n_frames,
                          wt_delta **plan)
{
    *plan = NULL;
    const wt_delta_config c = resolved(config);
    wt_status status = check(&c, n_frames);
    if (!status && n_rows < 1) status = wt_fail(WT_ERR_BAD_ARG, "delta: %lld rows, want 1 or more", (long long)n_rows);
    if (status) return status;
    wt_delta *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "delta: plan");
    p->config = c, p->device = device, p->n_rows = n_rows, p->n_frames = n_frames;
    if (wt__op_on_gpu(device))
        status = wt__savgol_cuda_open(device, &(wt_savgol_config){c.width, c.order, c.order, 1},
                                      c.mode == WT_DELTA_INTERP, n_rows, n_frames, &p->cuda);
    if (status)
        wt_delta_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_delta_destroy(wt_delta *plan)
{
    if (!plan) return;
    wt__savgol_cuda_release(&plan->cuda);
    free(plan);
}

typedef struct call {
    const wt_delta *plan;
    const float *in;
    float *out;
    int n_slots;
} call;

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_delta *p = c->plan;
    const int64_t begin = wt__op_begin(p->n_rows, slot, c->n_slots),
                  end = wt__op_begin(p->n_rows, slot + 1, c->n_slots);
    (void)!wt_delta_run(&p->config, c->in + begin * p->n_frames, end - begin, p->n_frames,
                        c->out + begin * p->n_frames); // checked by create
}

wt_status wt_delta_enqueue(wt_delta *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                           size_t out_offset)
{
    const size_t count = (size_t)plan->n_rows * (size_t)plan->n_frames;
    wt_status status = wt__op_stream("delta", plan->device, stream);
    if (!status) status = wt__op_range("delta", "input", in, in_offset, count);
    if (!status) status = wt__op_range("delta", "out", out, out_offset, count);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(in) + in_offset),
                    (float *)(wt_buffer_address(out) + out_offset), wt__op_slots(plan->device, plan->n_rows)};
    if (!plan->cuda.kernel) return wt_stream_run(stream, run_slot, &c, sizeof c, c.n_slots);
    wt_savgol_args args = plan->cuda.args;
    args.in = c.in, args.out = c.out, args.constant = plan->config.constant, args.mode = (int)plan->config.mode;
    return wt__savgol_cuda_launch(&plan->cuda, stream, &args);
}
