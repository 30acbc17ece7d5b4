/// The filters of constant-Q transforms, made in double.
#ifndef WT_DSP_CQT_BASIS_H
#define WT_DSP_CQT_BASIS_H

#include <warptone/cqt.h>

/// Frequencies of a transform and what follows from them; all [n_bins].
typedef struct wt__cqt_scale {
    int n_bins;
    double *hz, *alpha; ///< centre; relative bandwidth
    double *gamma;
    double cutoff_hz; ///< where the highest filter ends
} wt__cqt_scale;

/// Filters of one octave as sparse spectra: row r has bins bin[begin[r]] .. bin[begin[r + 1] - 1].
typedef struct wt__cqt_basis {
    int n_fft, first, n_rows; ///< first: bin of row 0 in the whole transform
    int *begin, *bin;
    double *value;   ///< pairs
    double *lengths; ///< [n_rows] at this octave's rate
} wt__cqt_basis;

/// Resolve zeros, check all fields. The window's n is not set.
WT_CHECKED wt_status wt__cqt_resolve(wt_cqt_config *config);
/// Of bins first .. first + n_bins - 1 of a resolved config.
WT_CHECKED wt_status wt__cqt_scale_create(const wt_cqt_config *config, int first, int n_bins, wt__cqt_scale *scale);
void wt__cqt_scale_destroy(wt__cqt_scale *scale);
double wt__cqt_length(const wt_cqt_config *config, const wt__cqt_scale *scale, int k, double rate_hz);

/// Rows first .. first + n_rows - 1 of `scale` at `rate_hz`, spectra of at least `min_n_fft` points.
/// librosa 0.11.0 core/constantq.py, __vqt_filter_fft().
WT_CHECKED wt_status wt__cqt_basis_create(const wt_cqt_config *config, const wt__cqt_scale *scale, int first,
                                          int n_rows, double rate_hz, int min_n_fft, wt__cqt_basis *basis);
void wt__cqt_basis_destroy(wt__cqt_basis *basis);

#endif
