/// Peaks of spectra and the tuning they tell: arguments of the kernels, and the arithmetic of one peak for both
/// compilers.
#ifndef WT_TUNING_KERNEL_H
#define WT_TUNING_KERNEL_H

#ifdef __CUDACC__
#    define WT_TUNING_FN static __device__ inline
#else
#    include <math.h>
#    define WT_TUNING_FN static inline
#endif

/// A peak that counts: how high it is, and the step of the tuning it speaks for.
typedef struct wt_tuning_peak {
    float height;
    int step;
} wt_tuning_peak;

typedef struct wt_tuning_args {
    const float *spectrum; ///< [n_signals][n_frames][bins]
    float *hz, *height;    ///< as spectrum; NULL = peaks go to `peaks`
    wt_tuning_peak *peaks; ///< [n_signals][most]
    int *n_peaks;          ///< [n_signals]
    int *counts;           ///< [n_signals][n_steps]
    double *tuning;        ///< [n_signals]
    long long n_frames, most;
    int n_signals, bins, n_fft, bins_per_octave, n_steps;
    int first, end; ///< bins whose centre is within the range searched
    double rate_hz, threshold;
} wt_tuning_args;

/// What of s[k] is above the floor, as the peaks are searched in.
WT_TUNING_FN double wt__peak_above(const float *s, int k, double floor) { return s[k] > floor ? s[k] : 0; }

WT_TUNING_FN int wt__peak_is(const float *s, int k, int bins, double floor)
{
    if (k == 0 || !(wt__peak_above(s, k, floor) > wt__peak_above(s, k - 1, floor))) return 0;
    return k == bins - 1 || wt__peak_above(s, k, floor) >= wt__peak_above(s, k + 1, floor);
}

/// The peak's place and height by a parabola; no shift where it would be a bin or more, and at the ends.
WT_TUNING_FN void wt__peak_refine(const float *s, int k, int bins, double *shift, double *height)
{
    *shift = 0, *height = s[k];
    if (k == 0 || k == bins - 1) return;
    const double curve = (double)s[k + 1] + s[k - 1] - 2.0 * s[k], slope = ((double)s[k + 1] - s[k - 1]) / 2;
    if (fabs(slope) >= fabs(curve)) return;
    *shift = -slope / curve;
    *height += 0.5 * slope * *shift;
}

/// The step of numpy.linspace(-0.5, 0.5, n_steps + 1) that holds the deviation of `hz` from the nearest bin.
WT_TUNING_FN int wt__tuning_step(double hz, int bins_per_octave, int n_steps)
{
    int octave;
    const double within = frexp(hz / 27.5, &octave); // so that whole octaves are exact with any logarithm
    double residual = bins_per_octave * (log2(2 * within) + (octave - 1));
    residual -= floor(residual);
    if (residual >= 0.5) residual -= 1;
    int step = (int)floor((residual + 0.5) * n_steps);
    while (step > 0 && residual < -0.5 + step * (1.0 / n_steps)) step--;
    while (step < n_steps - 1 && residual >= -0.5 + (step + 1) * (1.0 / n_steps)) step++;
    return step < n_steps ? step : n_steps - 1;
}

#endif
