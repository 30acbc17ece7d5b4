/// Private to dsp/spectral: sums over a frame's bins in double.
#ifndef WT_SPECTRAL_SUMS_H
#define WT_SPECTRAL_SUMS_H

/// Terms of bins first .. first + n - 1; `by` is the rule's own.
typedef void (*wt__spectral_terms)(const float *bins, int first, int n, const void *by, double *terms);

/// Their sum over all bins.  [rt]
double wt__spectral_sum(wt__spectral_terms terms, const float *bins, int n_bins, const void *by);
/// The mean and the geometric mean of terms that are normal and above 0.  [rt]
void wt__spectral_means(wt__spectral_terms terms, const float *bins, int n_bins, const void *by, double *mean,
                        double *geometric);

#endif
