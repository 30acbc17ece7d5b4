// What the two designs over bands share.
#ifndef WT_FIR_DESIGN_INTERNAL_H
#define WT_FIR_DESIGN_INTERNAL_H

#include <warptone/fir_design.h>

wt_status wt__fir_check_bands(const wt_fir_bands_config *config, int min_taps);

#endif
