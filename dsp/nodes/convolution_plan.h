/// Private to dsp/convolution*.c: what the CPU process needs beside the plan.
#ifndef WT_CONVOLUTION_PLAN_H
#define WT_CONVOLUTION_PLAN_H

#include "convolution_kernel.h"
#include "real_core.h"

#include <warptone/node.h>

typedef wt__real_core convolution_fft; ///< of 2 size points

typedef struct convolution_host {
    convolution_fft fft[CONV_MAX_STAGES];
} convolution_host;

/// Room for one transform of up to CONV_MAX_SIZE; on the stack, where it stays in the cache from channel to channel.
typedef struct convolution_work {
    _Alignas(64) float z[2 * CONV_MAX_SIZE + 32];
    _Alignas(64) float core[4 * (CONV_MAX_SIZE + 32)]; ///< the core's scratch; the bins, when it is not at work
} convolution_work;

/// 2 size real points, in work->z, to a packed spectrum in blocks, `stride` floats apart.  [rt]
WT_RT void wt__convolution_forward(const convolution_fft *fft, int size, convolution_work *work, float *blocks,
                                   size_t stride);
/// A packed spectrum in blocks, `stride` floats apart, to 2 size real points in work->z.  [rt]
WT_RT void wt__convolution_inverse(const convolution_fft *fft, int size, convolution_work *work, const float *blocks,
                                   size_t stride);

/// Which of CONV_AHEAD sums a channel's chunk is: neighbouring phases differ.
static inline int wt__convolution_turn(const convolution_plan *p, int c, long long chunk)
{
    return (int)((chunk + p->phase + (p->coupled ? 0 : c / 4)) & (CONV_AHEAD - 1));
}

/// The adopt(), plan() and release() of the node.
void wt__convolution_adopt(const void *plan, void *state, int64_t position, int from_gpu);
wt_status wt__convolution_plan(const wt_node_setup *setup, wt_node_plan *out);
void wt__convolution_release(void *host);

#endif
