/// Arguments of the YIN kernels, and what both compilers must agree on.
#ifndef WT_YIN_KERNEL_H
#define WT_YIN_KERNEL_H
#include "places_kernel.h"

/// Frame t of a signal begins at sample t hop - margin. Lags run from 0 to max_period.
typedef struct wt_yin_args {
    const float *pcm;    ///< [n_signals][n_samples]
    float *f0;           ///< [n_signals][n_frames]
    long long n_samples, n_frames;
    double rate_hz, threshold;
    int n_signals, frame, hop, margin, pad; ///< pad: wt_stft_pad
    int min_period, max_period;
    int n_shared;        ///< whole hops at the head of a frame whose products all frames over them share
    int tile;            ///< GPU: frames of a thread block
    wt_places places;    ///< GPU: of tiles by signals, where they are too long for shared memory
} wt_yin_args;

/// Shift of a parabola's vertex through three neighbours; 0 when it is more than one away (librosa's rule).
#ifdef __CUDACC__
#    define WT_YIN_FN static __device__ __forceinline__
#else
#    define WT_YIN_FN static inline
#endif
WT_YIN_FN double wt__yin_shift(double before, double here, double after)
{
    const double a = after + before - 2 * here, b = (after - before) / 2;
    const double a_size = a < 0 ? -a : a, b_size = b < 0 ? -b : b;
    return b_size >= a_size ? 0 : -b / a;
}

#endif
