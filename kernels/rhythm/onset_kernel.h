/// Arguments of the onset kernels.
#ifndef WT_ONSET_KERNEL_H
#define WT_ONSET_KERNEL_H
#include "places_kernel.h"

#ifdef __CUDACC__
#    define WT_ONSET_FN static __device__ inline
#else
#    define WT_ONSET_FN static inline
#endif

#define WT_ONSET_TILE 32   ///< frames of a block of onset_strength
#define WT_ONSET_PEAK 8192 ///< powers of a block of onset_peak

typedef struct wt_onset_args {
    const float *mel; ///< [n_signals][n_bands][n_frames] decibels; precise: powers
    float *out;       ///< [n_signals][n_frames]
    long long n_frames;
    int n_signals, n_bands, lag, max_size;
    int shift;        ///< frames by which the envelope is late, lag or more
    int median;       ///< over the bands, else the mean
    double floor;     ///< what is below counts as this
    int *peaks;       ///< precise: [n_signals] bits of each signal's largest power, 80 dB below which is its floor
    int precise, has_floor;
    wt_places places; ///< of tiles of all signals
} wt_onset_args;

/// Decibels of a power, 1e-10 at least, within 1e-12: 10 log10 of the exponent and, by atanh's series, of the rest.
WT_ONSET_FN double wt__onset_db(float power)
{
    const float x = power < 1e-10f ? 1e-10f : power;
    union {
        float number;
        int bits;
    } rest = {x};
    const int exponent = (rest.bits - 0x3f3504f3) >> 23;
    rest.bits -= (int)((unsigned)exponent << 23); // 0.707 .. 1.414
    const double s = ((double)rest.number - 1) / ((double)rest.number + 1), z = s * s;
    const double sum =
        1 + z * (1.0 / 3 +
                 z * (1.0 / 5 +
                      z * (1.0 / 7 + z * (1.0 / 9 + z * (1.0 / 11 + z * (1.0 / 13 + z * (1.0 / 15 + z / 17)))))));
    return 3.0102999566398120 * exponent + 8.6858896380650366 * s * sum + (double)(x - x); // NaN stays
}

typedef struct wt_onsets_args {
    const float *envelope; ///< [n_signals][n_frames]
    int *frames;           ///< [n_signals][n_frames]
    int *counts;           ///< [n_signals]
    long long n_frames;
    int pre_max, post_max, pre_avg, post_avg, wait, backtrack;
    int plain; ///< values as they are, else shifted and scaled to 0 .. 1
    double delta;
} wt_onsets_args;

#endif
