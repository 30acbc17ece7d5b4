/// Spectra from mel bands, and the non-negative least squares behind it.
#ifndef WARPTONE_MEL_INVERSE_H
#define WARPTONE_MEL_INVERSE_H

#include <warptone/mel.h>

#ifdef __cplusplus
extern "C" {
#endif

/// x >= 0 with the least |A x - b|, column by column of b, by coordinate descent.
///
///   a     [n_rows][n_columns]   columns of zeros give x = 0 (or what x began with)
///   b     [n_rows][n]
///   x     [n_columns][n]        begins as 0, or, `from_x`, as it is
///
/// Ends when a sweep moves no residual by 1e-12 of the largest |b|, at most after n_sweeps (0 = 10000) of them.
/// Errors: WT_ERR_BAD_ARG (sizes below 1), WT_ERR_NO_MEMORY.
/// Source: Franc, Hlavac, Navara, Sequential coordinate-wise algorithm for NNLS, 2005.
/// Judge:  scipy.optimize.nnls, 1e-6 of the peak.  [worker]
WT_CHECKED wt_status wt_nnls_run(const double *a, int n_rows, int n_columns, const float *b, int64_t n, bool from_x,
                                 int n_sweeps, float *x);

/// Magnitudes whose mel bands are nearest to those given. There are many; this one begins with each band spread over
/// its triangle.
///
///   mel   [n_mels][n_frames]               sums of magnitudes to the power `power` (0 = 2)
///   out   [n_fft / 2 + 1][n_frames]
///
/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY.
/// Source: librosa 0.11.0 feature/inverse.py, mel_to_stft().  Judge: librosa's residual |A x - mel|.  [worker]
WT_CHECKED wt_status wt_mel_to_stft(const wt_mel_bank_config *config, double power, const float *mel, int64_t n_frames,
                                    float *out);

// ---- the same as a plan, for batches

typedef struct wt_mel_inverse_config {
    wt_mel_bank_config bank;
    double power;     ///< of the magnitudes that the bands add up, 0 = 2
    int64_t n_frames; ///< of each signal, 1 or more
    int n_signals;    ///< 0 = 1
} wt_mel_inverse_config;

typedef struct wt_mel_inverse wt_mel_inverse; ///< Tables and all memory; one call at a time.

/// `device` NULL = immediate calls only; else it is borrowed until the plan is destroyed. A GPU takes up to 4 GB of
/// work space for as many signals as fit.
/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_UNSUPPORTED (on a GPU: more bands than shared memory holds for 32
/// frames), WT_ERR_NO_MEMORY, those of wt_module_create.  [worker]
WT_CHECKED wt_status wt_mel_inverse_create(wt_device *device, const wt_mel_inverse_config *config,
                                           wt_mel_inverse **plan);
void wt_mel_inverse_destroy(wt_mel_inverse *plan); ///< NULL is allowed.  [worker]

/// What wt_mel_to_stft gives.
///
///   mel   [n_signals][n_mels][n_frames]
///   out   [n_signals][n_fft / 2 + 1][n_frames]  [rt, running]
WT_RT void wt_mel_inverse_run(wt_mel_inverse *plan, const float *mel, float *out);
/// Queue it on a stream of the plan's device.  Errors: as wt_mel_enqueue.  Judge: wt_mel_inverse_run; on a GPU 2e-6 of
/// the peak.  [worker]
WT_CHECKED wt_status wt_mel_inverse_enqueue(wt_mel_inverse *plan, wt_stream *stream, const wt_buffer *mel,
                                            size_t mel_offset, wt_buffer *out, size_t out_offset);

#ifdef __cplusplus
}
#endif
#endif
