/// Arguments of the kernels of streams that change their rate, and the walk of time along them.
#ifndef WT_RESAMPLE_STREAM_KERNEL_H
#define WT_RESAMPLE_STREAM_KERNEL_H
#include "resample_kernel.h"

#define WT_RESAMPLE_STREAM_WARPS 4 ///< of a thread block, an output each
#define WT_RESAMPLE_STREAM_LINES 8 ///< of a warp

/// Time of the next output: input frame `frame` and phase / denominator. It goes on by step, step + change, ... for
/// `bend` outputs, then by target.
typedef struct wt_resample_time {
    long long frame, phase, denominator;
    long long step, target, change, bend;
} wt_resample_time;

/// Time of the output behind m more; m up to WT_RESAMPLE_STRIDE keeps the products below 2^63.
WT_SHARED_FN wt_resample_time wt__resample_later(const wt_resample_time *t, long long m)
{
    wt_resample_time later = *t;
    const long long bent = m < t->bend ? m : t->bend;
    const long long way = t->phase + bent * t->step + t->change * (bent * (bent - 1) / 2) + (m - bent) * t->target;
    later.frame += way / t->denominator, later.phase = way % t->denominator;
    later.step = m < t->bend ? t->step + m * t->change : t->target;
    later.bend -= bent;
    return later;
}

#define WT_RESAMPLE_STRIDE (1 << 13)

typedef struct wt_resample_stream_args {
    const float *in;       ///< [n_lines][n_in] frames from `begin` on
    const float *old;      ///< [n_lines][n_taps - 1] those before them
    float *state;          ///< [n_lines][n_taps - 1] for the next block
    float *out;            ///< [n_lines][pitch]
    const void *taps;      ///< rows of n_taps, as wt__resample_table has them
    const float *start;    ///< [n_start][n_taps] rows of the first outputs
    wt_resample_time time; ///< of the first of n_out outputs
    long long begin, pitch;
    int n_in, n_out, n_heard, n_start; ///< n_heard: outputs behind are silent; n_start: of these outputs
    int n_lines, n_taps, before, n_phases, order, interpolated;
} wt_resample_stream_args;

#endif
