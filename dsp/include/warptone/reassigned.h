/// Reassigned spectrograms: for each bin of each frame the frequency and time where its energy really lies.
#ifndef WARPTONE_REASSIGNED_H
#define WARPTONE_REASSIGNED_H

#include <warptone/stft.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_reassigned_config {
    wt_stft_config stft; ///< one channel; always precise
    int rate_hz;         ///< 0 = 22050
    double ref_power;    ///< bins of less power become NaN; 0 = 1e-6
    bool keep_all;       ///< no such limit
    bool fill_nan;       ///< a bin's own frequency and time instead of NaN
    bool no_clip;        ///< false: frequencies within 0 .. rate / 2, times within the signal
    int64_t n_samples;   ///< of one signal
    int n_signals;       ///< 0 = 1
} wt_reassigned_config;

/// Windows and scratch; one call at a time uses it.
typedef struct wt_reassigned wt_reassigned;

/// `device` NULL = immediate calls only; else it is borrowed until the plan is destroyed.
/// Errors: those of wt_stft_create; WT_ERR_BAD_ARG (rate, ref_power, n_signals), WT_ERR_LENGTH (no frame),
/// WT_ERR_NO_MEMORY; on a GPU those of wt_module_create.  [worker]
WT_CHECKED wt_status wt_reassigned_create(wt_device *device, const wt_reassigned_config *config, wt_reassigned **plan);
void wt_reassigned_destroy(wt_reassigned *plan); ///< NULL is allowed.  [worker]

int64_t wt_reassigned_frames(const wt_reassigned *plan); ///< of a signal: wt_stft_frames.  [any]
int wt_reassigned_bins(const wt_reassigned *plan);       ///< n_fft / 2 + 1.  [any]

/// From now on pcm is a tile of signals of n_all samples, from sample `begin` of them on, a multiple of 16 hops: times
/// are theirs, with the bits of the whole where frames reach over no end of the tile. 0, n_samples = whole signals.
void wt_reassigned_place(wt_reassigned *plan, int64_t begin, int64_t n_all); ///< [worker]

/// Analyse the signals, on the calling thread.
///
///   pcm   [n_signals][n_samples]
///   out   [n_signals][3][n_frames][bins]   Hz; s; magnitudes
///
/// Source: librosa 0.11.0 core/spectrum.py, reassigned_spectrogram(); Auger, Flandrin, 1995.
/// Judge:  librosa in float64, 1e-6 of the peak.  [rt, running]
WT_RT void wt_reassigned_run(wt_reassigned *plan, const float *pcm, float *out);
/// Queue it on a stream of the plan's device; offsets in bytes. A GPU computes in double too.
/// Errors: WT_ERR_BAD_ARG, WT_ERR_CUDA.  Judge: wt_reassigned_run; on a GPU 2e-6 of each part's peak.  [worker]
WT_CHECKED wt_status wt_reassigned_enqueue(wt_reassigned *plan, wt_stream *stream, const wt_buffer *pcm,
                                           size_t pcm_offset, wt_buffer *out, size_t out_offset);

#ifdef __cplusplus
}
#endif
#endif
