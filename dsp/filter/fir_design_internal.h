// What designs share.
#ifndef WT_FIR_DESIGN_INTERNAL_H
#define WT_FIR_DESIGN_INTERNAL_H

#include <warptone/fir_design.h>

// Modified Bessel function of order 0, for Kaiser's window.
double wt__bessel_i0(double x);

wt_status wt__fir_check_bands(const wt_fir_bands_config *config, int min_taps);

#endif
