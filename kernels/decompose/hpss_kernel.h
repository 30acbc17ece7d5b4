/// Arguments of the separation kernel.
#ifndef WT_HPSS_KERNEL_H
#define WT_HPSS_KERNEL_H
#include "places_kernel.h"

#define WT_HPSS_RUN    16  ///< neighbouring medians a thread makes together
#define WT_HPSS_FRAMES 32  ///< of a block's tile, and
#define WT_HPSS_BINS   128 ///< bins

typedef struct wt_hpss_args {
    const float *in;             ///< [lines][n_frames][bins], complex: [..][2]
    float *harmonic, *percussive;
    long long n_frames;
    int bins, lines;
    float power; ///< infinite: 0 or 1
    float margin_harmonic, margin_percussive, silent;
    wt_places places; ///< of tiles by lines
} wt_hpss_args;

#endif
