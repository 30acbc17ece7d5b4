// Analogue low-pass prototypes with their edge at 1 rad/s, as zeros, poles and a gain.
#ifndef WT_PROTOTYPE_H
#define WT_PROTOTYPE_H

#include <complex.h>
#include <warptone/filter.h>

enum { WT__MAX_ROOTS = 2 * WT_SOS_MAX_ORDER };

typedef struct wt__zpk {
    int n_zeros, n_poles;
    double complex zeros[WT__MAX_ROOTS], poles[WT__MAX_ROOTS];
    double gain;
} wt__zpk;

void wt__prototype(wt_filter_family family, int order, double ripple_db, double attenuation_db, wt__zpk *zpk);

#endif
