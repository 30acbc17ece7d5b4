/// Private to dsp/: what features of spectrograms share.
#ifndef WT_SPECTRAL_INTERNAL_H
#define WT_SPECTRAL_INTERNAL_H

#include "spectral_kernel.h"

#include <warptone/spectral.h>

enum { WT__CONTRAST_BANDS = 32 };

/// Fill in the defaults and check.
WT_CHECKED wt_status wt__spectral_resolve(const wt_spectral_shape *shape, wt_spectral_shape *resolved);
WT_CHECKED wt_status wt__contrast_resolve(wt_spectral_contrast_config *config);
/// Bands [n_bands + 1] of a contrast; both resolved. Errors: WT_ERR_BAD_ARG when one has no bin.
WT_CHECKED wt_status wt__contrast_bands(const wt_spectral_shape *shape, const wt_spectral_contrast_config *config,
                                        wt_spectral_band *bands);

static inline double wt__spectral_hz(const wt_spectral_shape *shape, int bin)
{
    return (double)bin * shape->rate_hz / shape->n_fft;
}

#endif
