/// Private to dsp/stretch/stretch.c: one frame of the phase-locked vocoder.
#ifndef WT_STRETCH_LOCKED_H
#define WT_STRETCH_LOCKED_H

#include <warptone/status.h>

typedef struct wt__locked {
    float *power;   ///< [bins]
    int *peaks;     ///< [bins]
    double *before; ///< [bins][2] the output's frame before, and this one's when it is made
} wt__locked;

/// Spectra are [bins][2]: the input's here and a hop earlier (NULL for the first frame).  [rt]
WT_RT void wt__stretch_lock(const wt__locked *state, int bins, const float *here, const float *earlier, float *out);

/// The bins that an attack rules, at least four times their power before it, begin anew: they are the input's.  [rt]
WT_RT void wt__stretch_attack(const wt__locked *state, int bins, const float *attack, const float *quiet,
                              const float *here, float *out);

#endif
