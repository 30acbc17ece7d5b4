/// Half the rate by soxr's HQ filter, for constant-Q transforms: the same taps as WT_RESAMPLE_SOXR_HQ, by
/// overlap-save, in half the time. Outputs come in runs of WT_CQT_HALVE_OUT, whose
/// last bits depend on where a run begins.
#ifndef WT_DSP_HALVE_H
#define WT_DSP_HALVE_H

#include <stdbool.h>
#include <warptone/status.h>

typedef struct wt__halver wt__halver;

/// Halving `index` of `n_halvings` that soxr does in one go; of one alone: 1, 0.
/// `precise`: by sums in double, 4 times slower.
WT_CHECKED wt_status wt__halver_create(int n_halvings, int index, bool precise, wt__halver **halver);
void wt__halver_destroy(wt__halver *halver); ///< NULL is allowed.
/// A signal begins, or a tile of it: `phase` of the first run's outputs, below WT_CQT_HALVE_OUT, lie before that, so
/// that the other runs are the whole signal's, with its bits.  [rt]
WT_RT void wt__halver_reset(wt__halver *halver, int phase);

/// Take n samples; returns the outputs given, (n + WT_CQT_HALVE_N) / 2 at most.
/// Judge: resample_ref.c with the same taps, 1e-6 of the peak.  [rt, running]
WT_RT int wt__halver_process(wt__halver *halver, const float *x, int n, float *out);
/// What is still to come, as if zeros followed: in all half of the samples taken, rounded up.  [rt, running]
WT_RT int wt__halver_drain(wt__halver *halver, float *out);

/// The filter's spectrum times `scale`, real since it is symmetric: [WT_CQT_HALVE_N / 2 + 1].
WT_CHECKED wt_status wt__halve_spectrum(int n_halvings, int index, double scale, float *spectrum);

#endif
