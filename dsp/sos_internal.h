/// Private to dsp/: what filters by second-order sections share.
#ifndef WT_SOS_INTERNAL_H
#define WT_SOS_INTERNAL_H

#include "sos_kernel.h"

#include <stdint.h>
#include <warptone/filter.h>
#include <warptone/kernel.h>

/// A forward and backward filter, resolved: sections scaled to a0 = 1, their steady states, the padding.
typedef struct wt__sos_filtfilt {
    double sos[6 * WT_SOS_MAX_SECTIONS], zi[2 * WT_SOS_MAX_SECTIONS];
    int n_sections, pad;
    int64_t n_frames;
} wt__sos_filtfilt;

/// Errors: those of wt_sos_filtfilt.
WT_CHECKED wt_status wt__sos_filtfilt_init(const double *sos, int n_sections, int64_t n_frames, int pad_frames,
                                           wt__sos_filtfilt *f);
/// `x` has n_frames + 2 pad numbers of scratch; `in` and `out` may be the same.
void wt__sos_filtfilt_run(const wt__sos_filtfilt *f, const float *in, float *out, double *x);

/// Sections for kernels/sos.cu on a GPU, its module, and one of its kernels.
WT_CHECKED wt_status wt__sos_load(wt_device *device, const char *name, const double *sos, int n_sections,
                                  wt_buffer **uploaded, wt_module **module, wt_kernel **kernel);

static inline size_t wt__sos_shared_bytes(int n_sections)
{
    return ((size_t)n_sections + WT_SOS_THREADS / 32) * 2 * sizeof(double);
}
#endif
