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

#ifdef __cplusplus
}
#endif
#endif
