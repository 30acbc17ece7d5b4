/// Private to dsp/spectral/griffin_lim.c: the iteration on a GPU.
#ifndef WT_GRIFFIN_LIM_CUDA_H
#define WT_GRIFFIN_LIM_CUDA_H

#include "op.h"
#include "stft_internal.h"

/// What the plan has resolved, borrowed for the call.
typedef struct wt__griffin_lim_shape {
    const wt_stft *stft;
    int64_t n_lines, n_frames, n_used, length, n_padded; ///< used: frames that count for the length
    /// Reciprocals of the windows' squares at samples 0 .. head - 1 of the padded signal, and from `tail` on; between
    /// them those of the last hop before `head` repeat.
    int64_t head, tail;
    const double *squares;
    const uint64_t *seeds, *jumps;                       ///< [bins], [n_used][2]
    int n_iter;
    double momentum; ///< m / (1 + m)
    bool zero_phase;
} wt__griffin_lim_shape;

/// All n_padded of them, in double or in float, some at a time.
WT_CHECKED wt_status wt__griffin_lim_upload_squares(wt_device *device, const wt__griffin_lim_shape *shape,
                                                    bool in_double, wt_buffer **squares);

typedef struct wt__griffin_lim_cuda wt__griffin_lim_cuda;

WT_CHECKED wt_status wt__griffin_lim_cuda_create(wt_device *device, const wt__griffin_lim_shape *shape,
                                                 wt__griffin_lim_cuda **cuda);
void wt__griffin_lim_cuda_destroy(wt__griffin_lim_cuda *cuda); ///< NULL is allowed.
WT_CHECKED wt_status wt__griffin_lim_cuda_enqueue(const wt__griffin_lim_cuda *cuda, wt_stream *stream,
                                                  const float *magnitude, float *out);

#endif
