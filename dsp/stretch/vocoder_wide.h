/// Private to dsp/: frames for the phase vocoders, and the phase-locked one, where no block's shared memory holds them
/// (kernels/stretch/vocoder_wide.cu).
#ifndef WT_VOCODER_WIDE_H
#define WT_VOCODER_WIDE_H

#include "vocoder_wide_kernel.h"
#include "wide_cuda.h"

typedef struct wt__vocoder_wide {
    wt__wide wide;
    wt_module *module;
    wt_kernel *fill, *give, *attacks, *rules;
} wt__vocoder_wide;

/// Of n_lines signals of n_frames. Errors: those of wt__wide_create.
WT_CHECKED wt_status wt__vocoder_wide_create(const char *op, wt_device *device, int n_fft, const double *window,
                                             int64_t n_lines, int64_t n_frames, wt__vocoder_wide *v);
void wt__vocoder_wide_release(wt__vocoder_wide *v); ///< a zeroed one is allowed
/// What vocoder_frames does, of no more lines and frames.
WT_CHECKED wt_status wt__vocoder_wide_frames(const wt__vocoder_wide *v, wt_stream *stream, int64_t n_lines,
                                             const wt_vocoder_frames_args *frames);
/// What vocoder_attacks does.
WT_CHECKED wt_status wt__vocoder_wide_attacks(const wt__vocoder_wide *v, wt_stream *stream, int64_t n_lines,
                                              const wt_vocoder_attacks_args *attacks);

/// vocoder_lock of any n_fft, whose work lies in memory.
typedef struct wt__lock_wide {
    wt_module *module;
    wt_kernel *kernel;
    wt_buffer *work;
    wt_vocoder_wide_lock_args args;
} wt__lock_wide;

WT_CHECKED wt_status wt__lock_wide_create(wt_device *device, int n_fft, int n_lines, wt__lock_wide *l);
void wt__lock_wide_release(wt__lock_wide *l); ///< a zeroed one is allowed
WT_CHECKED wt_status wt__lock_wide_enqueue(const wt__lock_wide *l, wt_stream *stream, int n_lines,
                                           const wt_vocoder_lock_args *lock);

#endif
