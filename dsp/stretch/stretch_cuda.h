/// Private to dsp/stretch/stretch.c and phase_vocoder.c: stretches on a GPU.
#ifndef WT_STRETCH_CUDA_H
#define WT_STRETCH_CUDA_H

#include "op.h"
#include "vocoder_kernel.h"
#include "vocoder_wide.h"

#include <warptone/stretch.h>

/// A stretch as its plan has resolved it; the window is borrowed for the call.
typedef struct wt__stretch_shape {
    wt_stretch_mode mode;
    double rate;
    int64_t n_samples, n_out, n_frames, n_made; ///< frames of the input (librosa's mode), of the output
    int n_signals, n_fft, hop;
    int frames_at_once;   ///< 0 = as many as fit
    const double *window; ///< [n_fft]
} wt__stretch_shape;

typedef struct wt__stretch_cuda wt__stretch_cuda;
WT_CHECKED wt_status wt__stretch_cuda_create(wt_device *device, const wt__stretch_shape *shape,
                                             wt__stretch_cuda **cuda);
void wt__stretch_cuda_destroy(wt__stretch_cuda *cuda); ///< NULL is allowed.
WT_CHECKED wt_status wt__stretch_cuda_enqueue(const wt__stretch_cuda *cuda, wt_stream *stream, const float *pcm,
                                              wt_buffer *out, size_t out_offset);

/// All signals by overlapped pieces. Errors: WT_ERR_BAD_ARG (more than a grid has), those of wt_module_create.
typedef struct wt__wsola_cuda wt__wsola_cuda;
WT_CHECKED wt_status wt__wsola_cuda_create(wt_device *device, const wt__stretch_shape *shape, wt__wsola_cuda **cuda);
void wt__wsola_cuda_destroy(wt__wsola_cuda *cuda); ///< NULL is allowed.
WT_CHECKED wt_status wt__wsola_cuda_enqueue(const wt__wsola_cuda *cuda, wt_stream *stream, const float *pcm,
                                            float *out);

/// Frames of signals in double, rounded once: kernels/stretch/vocoder_frames.cu, one pair of frames for each of
/// SEQUENCES teams, or, of lengths that no block transforms, kernels/stretch/vocoder_wide.cu.
typedef struct wt__frames_cuda {
    wt_module *module;
    wt_kernel *kernel;
    wt_buffer *tables;
    wt_vocoder_frames_args args; ///< window, twiddles, and what the op fills in
    wt_launch launch;            ///< without a grid
    wt__vocoder_wide wide;       ///< instead, where there is no kernel
} wt__frames_cuda;

/// Of n_lines signals of n_frames at most. Errors: those of wt_module_create and wt_buffer_create.
WT_CHECKED wt_status wt__frames_cuda_create(const char *op, wt_device *device, int n_fft, const double *window,
                                            int n_lines, int64_t n_frames, wt__frames_cuda *f);
void wt__frames_cuda_release(wt__frames_cuda *f); ///< a zeroed one is allowed
/// Spectra of args->n_frames frames of n_lines signals.
WT_CHECKED wt_status wt__frames_cuda_enqueue(const char *op, const wt__frames_cuda *f, wt_stream *stream, int n_lines,
                                             int n_fft, const wt_vocoder_frames_args *args);
/// Bytes that the spectra of a plan may take.
int64_t wt__frames_cuda_room(wt_device *device);
/// How many of n_signals to work on at once when each takes `bytes`: equal groups, as few as there can be.
int wt__frames_cuda_group(wt_device *device, int n_signals, int64_t bytes);

/// kernels/stretch/vocoder.cu, and its kernel that makes output frames.
typedef struct wt__vocoder_cuda {
    wt_module *module;
    wt_kernel *follow, *cut;
} wt__vocoder_cuda;

WT_CHECKED wt_status wt__vocoder_cuda_load(wt_device *device, wt__vocoder_cuda *v);
WT_CHECKED wt_status wt__vocoder_cuda_follow(const wt__vocoder_cuda *v, wt_stream *stream, int64_t n_lines,
                                             const wt_vocoder_follow_args *args);
/// The first n_out samples of each line of n_in, times `gain`.
WT_CHECKED wt_status wt__vocoder_cuda_cut(const wt__vocoder_cuda *v, wt_stream *stream, int n_lines, float gain,
                                          int64_t n_in, const float *in, int64_t n_out, float *out);

#endif
