/// Samples as files and devices hold them, and as we do: interleaved integers or floats, planar float.
#ifndef WARPTONE_PCM_H
#define WARPTONE_PCM_H

#include <stdbool.h>
#include <stdint.h>
#include <warptone/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/// All little-endian; full scale 1.0 is 2^15, 2^23 or 2^31.
typedef enum wt_pcm_format {
    WT_PCM_S16,
    WT_PCM_S24, ///< three bytes a sample
    WT_PCM_S32,
    WT_PCM_F32,
    WT_PCM_F64,
} wt_pcm_format;

int wt_pcm_bytes(wt_pcm_format format); ///< bytes of a sample: 2, 3, 4, 4, 8.  [any]

/// Interleaved to planar.
///
///   in    [n_frames][channels]   of `format`, any alignment; borrowed for the call
///   out   [channels][n_frames]
///
/// Exact but for S32 and F64, which round to float.  [rt, running]
WT_RT void wt_pcm_read(wt_pcm_format format, const void *in, int channels, int n_frames, float *const *out);

/// The same of many signals on a stream, so that they travel to a GPU as files hold them.
typedef struct wt_pcm_plan wt_pcm_plan;

typedef struct wt_pcm_plan_config {
    wt_pcm_format format;
    int channels;     ///< of a signal, 1 or more
    int64_t n_frames; ///< of a signal, 1 or more
    int n_signals;    ///< 1 or more
    bool fold;        ///< give the mean of the channels, as wt_pcm_to_mono
} wt_pcm_plan_config;

/// Plan. `device` is borrowed until the plan is destroyed.
/// Errors: WT_ERR_BAD_ARG naming what, WT_ERR_NO_MEMORY, and those of wt_module_create.  [worker, not armed]
WT_CHECKED wt_status wt_pcm_plan_create(wt_device *device, const wt_pcm_plan_config *config, wt_pcm_plan **plan);
void wt_pcm_plan_destroy(wt_pcm_plan *plan); ///< NULL is allowed.  [worker, not armed]

/// Queue; offsets in bytes.
///
///   in    [n_signals][n_frames][channels]   of the format, aligned as it
///   out   [n_signals][channels][n_frames]   float; folded [n_signals][n_frames]
///
/// Errors: WT_ERR_BAD_ARG (a stream of another device, a range that does not fit), WT_ERR_CUDA.
/// Judge:  on a GPU, wt_pcm_read and wt_pcm_to_mono, identical.  [worker]
WT_CHECKED wt_status wt_pcm_plan_enqueue(wt_pcm_plan *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                         wt_buffer *out, size_t out_offset);

/// What a writer carries from block to block; zero it to begin.
typedef struct wt_pcm_writer {
    bool no_dither;     ///< false: S16 and S24 get triangular dither of +-1 step (TPDF)
    uint64_t n_samples; ///< written so far; the dither's counter, so blocks may be cut anywhere
    uint64_t n_clipped; ///< samples beyond full scale, set to it
    uint64_t n_bad;     ///< samples that were NaN, written as 0
} wt_pcm_writer;

/// Planar to interleaved, rounded half to even, clipped.
///
///   in    [channels][n_frames]   borrowed for the call
///   out   [n_frames][channels]   of `format`, any alignment
///
/// Source: S. Lipshitz, R. Wannamaker, J. Vanderkooy, "Quantization and Dither", JAES 40, 1992.  [rt, running]
WT_RT void wt_pcm_write(wt_pcm_writer *writer, wt_pcm_format format, const float *const *in, int channels,
                        int n_frames, void *out);

/// The same of many signals on a stream, by a plan that does not fold; offsets in bytes.
///
///   in        [n_signals][channels][n_frames]   float
///   out       [n_signals][n_frames][channels]   of the format, aligned as it
///   writers   wt_pcm_writer [n_signals]         as above: zero them to begin (wt_stream_fill), read the counts last
///
/// Errors: WT_ERR_BAD_ARG (a stream of another device, a range that does not fit, a plan that folds), WT_ERR_CUDA.
/// Judge:  on a GPU, wt_pcm_write, identical.  [worker]
WT_CHECKED wt_status wt_pcm_plan_enqueue_write(wt_pcm_plan *plan, wt_stream *stream, const wt_buffer *in,
                                               size_t in_offset, wt_buffer *out, size_t out_offset,
                                               wt_buffer *writers, size_t writers_offset);

/// Mean of the channels (librosa.to_mono). `out` may be one of them.  [rt, running]
WT_RT void wt_pcm_to_mono(const float *const *in, int channels, int n_frames, float *out);

#ifdef __cplusplus
}
#endif
#endif
