/// Arguments of the kernels that describe each frame of a magnitude spectrogram.
#ifndef WT_SPECTRAL_KERNEL_H
#define WT_SPECTRAL_KERNEL_H
#include "spectrum_kernel.h"

#define WT_SPECTRAL_MAX_ORDER 10 ///< of a polynomial

typedef struct wt_spectral_band {
    int first, used, share; ///< bins of a contrast band; how many make its peak, and its valley
} wt_spectral_band;

typedef struct wt_spectral_args {
    const float *in;               ///< [n_signals][n_frames][bins]
    float *out;                    ///< [n_signals][rows][n_frames]; contrast's parts: [n_signals][2][rows][n_frames]
    float *valleys;                ///< contrast: as out
    int *peaks;                    ///< contrast: [n_signals][2] largest peak and valley, ordered bits
    const wt_spectral_band *bands; ///< contrast: [rows]
    const double *basis;           ///< polynomial: [rows][bins] orthonormal, then [rows][rows] of coefficients
    long long n_frames;
    int n_signals, bins, rows, kind; ///< wt_spectral_kind
    int rate_hz, n_fft, no_norm, linear;
    double p, percent, power, amin;
    int parts, unused; ///< contrast: peaks and valleys apart
} wt_spectral_args;

#endif
