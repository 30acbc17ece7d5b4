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

typedef struct wt_nnls_config {
    const double *a; ///< [n_rows][n_columns]; copied
    int n_rows, n_columns;
    int64_t n;       ///< right sides of a signal, 1 or more
    int n_signals;   ///< 0 = 1
    bool from_x;     ///< x begins as it is, not as 0
    int n_sweeps;    ///< at most; 0 = 10000
} wt_nnls_config;

typedef struct wt_nnls wt_nnls; ///< wt_nnls_run of many signals with one matrix, on a stream.

/// `device` is borrowed until the plan is destroyed. A GPU takes up to 4 GB of work space for as many signals as fit.
/// Errors: WT_ERR_BAD_ARG (no device, sizes below 1), WT_ERR_UNSUPPORTED (on a GPU: a matrix of 2^31 numbers),
/// WT_ERR_NO_MEMORY, those of wt_module_create.  [worker]
WT_CHECKED wt_status wt_nnls_create(wt_device *device, const wt_nnls_config *config, wt_nnls **plan);
void wt_nnls_destroy(wt_nnls *plan); ///< NULL is allowed.  [worker]
/// Queue it; offsets in bytes. On a GPU each right side ends by itself, on the CPU eight neighbours end together.
///
///   b   [n_signals][n_rows][n]
///   x   [n_signals][n_columns][n]
///
/// Errors: WT_ERR_BAD_ARG naming the range that does not fit.  Judge: wt_nnls_run; on a GPU 2e-6 of the peak where one
/// x is the best.  [worker]
WT_CHECKED wt_status wt_nnls_enqueue(wt_nnls *plan, wt_stream *stream, const wt_buffer *b, size_t b_offset,
                                     wt_buffer *x, size_t x_offset);

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
/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY, those of wt_module_create.  [worker]
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
