#include <warptone/delta.h>

#include <warptone/fir_design.h>

enum { MAX_WIDTH = 1023 };

static wt_status check(const wt_delta_config *c, int64_t n_frames)
{
    if (c->width < 3 || c->width > MAX_WIDTH || c->width % 2 == 0)
        return wt_fail(WT_ERR_BAD_ARG, "delta: width %d, want an odd one of 3..%d", c->width, MAX_WIDTH);
    if (c->order < 1 || c->order >= c->width || c->order > 20)
        return wt_fail(WT_ERR_BAD_ARG, "delta: order %d, want 1..%d", c->order, c->width > 20 ? 20 : c->width - 1);
    if ((unsigned)c->mode > WT_DELTA_WRAP)
        return wt_fail(WT_ERR_BAD_ARG, "delta: mode %d, want 0..%d", (int)c->mode, WT_DELTA_WRAP);
    if (n_frames < 1 || (c->mode == WT_DELTA_INTERP && n_frames < c->width))
        return wt_fail(WT_ERR_BAD_ARG, "delta: %lld frames, want %d or more (the width, in mode interp)",
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
    wt_delta_config c = config ? *config : (wt_delta_config){.width = 0};
    if (!c.width) c.width = 9;
    if (!c.order) c.order = 1;
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
