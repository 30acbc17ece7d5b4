/// Arguments of the salience kernel; the CPU works with the same taps.
#ifndef WT_SALIENCE_KERNEL_H
#define WT_SALIENCE_KERNEL_H

#define WT_SALIENCE_TILE 16 ///< frames of a block

/// A harmonic of a bin: between `lower` and the bin after it.
typedef struct wt_salience_tap {
    int lower;
    float at_lower, at_upper;
} wt_salience_tap;

typedef struct wt_salience_args {
    const float *in;             ///< [n_frames][n_bins]
    float *out;                  ///< as in
    const wt_salience_tap *taps; ///< [n_harmonics][n_bins]
    long long n_frames;
    int n_bins, n_harmonics, all_bins;
    float fill;
} wt_salience_args;

#endif
