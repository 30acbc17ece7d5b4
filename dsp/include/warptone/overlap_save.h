/// FIR filtering in blocks by the Fourier transform (overlap-save): cheapest where a block's delay does no harm.
/// For low latency see the partitioned convolution of the chain.
#ifndef WARPTONE_OVERLAP_SAVE_H
#define WARPTONE_OVERLAP_SAVE_H

#include <stdint.h>
#include <warptone/device.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_overlap_save wt_overlap_save;

typedef struct wt_overlap_save_config {
    const float *taps; ///< [n_taps]; copied
    int n_taps;        ///< 1 .. 1048576
    int channels;      ///< 1 .. 1024; 0 = 2; all get the same taps
} wt_overlap_save_config;

/// Errors: WT_ERR_BAD_ARG, WT_ERR_NO_MEMORY.  [any but rt]
WT_CHECKED wt_status wt_overlap_save_create(const wt_overlap_save_config *config, wt_overlap_save **filter);
void wt_overlap_save_destroy(wt_overlap_save *filter); ///< NULL is allowed.  [any but rt]

/// Frames that the output lags: the new part of one transform, three to seven times n_taps, 513 at least.  [any]
int wt_overlap_save_latency_frames(const wt_overlap_save *filter);

WT_RT void wt_overlap_save_reset(wt_overlap_save *filter); ///< Start again from silence.  [rt, running]

/// Filter one block, wt_overlap_save_latency_frames late. All work falls on the frame that fills a transform, so this
/// suits a worker better than the audio thread. Every cut into blocks gives the same bits.
///
///   in, out   [channels][n_frames]   may be the same; borrowed for the call
///
/// Source: T. Stockham, 1966.  Judge: the sum in double, 120 dB.  [rt, running]
WT_RT void wt_overlap_save_process(wt_overlap_save *filter, const float *const *in, float *const *out, int n_frames);

/// Whole convolution of one channel (scipy.signal.fftconvolve, mode 'full').
///
///   in    [n_in]                 n_in 1 or more
///   out   [n_in + n_taps - 1]    another array
///
/// Errors: as wt_overlap_save_create.  [worker]
WT_CHECKED wt_status wt_fft_convolve(const float *in, int n_in, const float *taps, int n_taps, float *out);

typedef struct wt_convolve wt_convolve;

/// wt_fft_convolve of rows [n_rows][n_in] with the same taps; `channels` of the config does not count. `device` is
/// borrowed until the plan is destroyed. Errors: WT_ERR_BAD_ARG (sizes), WT_ERR_NO_MEMORY, on a GPU the compiler's.
/// [worker]
WT_CHECKED wt_status wt_convolve_create(wt_device *device, const wt_overlap_save_config *config, int n_rows,
                                        int64_t n_in, wt_convolve **plan);
void wt_convolve_destroy(wt_convolve *plan); ///< NULL is allowed.  [worker]
/// Queue it: rows to [n_rows][n_in + n_taps - 1], another place; offsets in bytes. On a GPU a NaN spreads over two runs
/// of outputs, of some thousand frames each. Errors: WT_ERR_BAD_ARG. Judge:  wt_fft_convolve, on a GPU 2e-6 of the
/// peak.  [worker]
WT_CHECKED wt_status wt_convolve_enqueue(wt_convolve *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                         wt_buffer *out, size_t out_offset);

// ---- many signals on a stream, from block to block

typedef struct wt_overlap_save_plan wt_overlap_save_plan;

typedef struct wt_overlap_save_plan_config {
    wt_overlap_save_config filter; ///< `channels`: those of one signal
    int n_signals;                 ///< 0 = 1
    int max_frames;                ///< that one call takes, 1 or more: whole signals, or blocks of them
} wt_overlap_save_plan_config;

/// All channels of all signals, in step; what they reach back to stays on the device. `device` is borrowed until the
/// plan is destroyed. A GPU keeps up to 14 n_taps floats a channel, 2048 at least, and twice max_frames, for which
/// 32 MiB are enough.
/// Errors: those of wt_overlap_save_create, WT_ERR_BAD_ARG (no device, n_signals, max_frames), on a GPU the compiler's.
/// [worker]
WT_CHECKED wt_status wt_overlap_save_plan_create(wt_device *device, const wt_overlap_save_plan_config *config,
                                                 wt_overlap_save_plan **plan);
void wt_overlap_save_plan_destroy(wt_overlap_save_plan *plan); ///< NULL is allowed.  [worker]

int wt_overlap_save_plan_latency_frames(const wt_overlap_save_plan *plan); ///< as of wt_overlap_save  [any]

/// Queue wt_overlap_save_reset. Errors: WT_ERR_BAD_ARG (a stream of another device), WT_ERR_CUDA.  [worker]
WT_CHECKED wt_status wt_overlap_save_plan_reset(wt_overlap_save_plan *plan, wt_stream *stream);
/// Queue the next block, wt_overlap_save_plan_latency_frames late; offsets in bytes. All calls of a plan go to one
/// stream of its device. Every cut into blocks gives the same bits, as every number of signals does.
///
///   in, out   [n_signals][channels][n_frames]   may be the same
///
/// Errors: WT_ERR_BAD_ARG (n_frames outside 1 .. max_frames, a range that does not fit).
/// Judge:  wt_overlap_save_process, on a GPU 2e-6 of the peak.  [worker]
WT_CHECKED wt_status wt_overlap_save_plan_enqueue(wt_overlap_save_plan *plan, wt_stream *stream, const wt_buffer *in,
                                                  size_t in_offset, int n_frames, wt_buffer *out, size_t out_offset);

#ifdef __cplusplus
}
#endif
#endif
