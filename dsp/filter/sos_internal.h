/// Private to dsp/: what filters by second-order sections share.
#ifndef WT_SOS_INTERNAL_H
#define WT_SOS_INTERNAL_H

#include "sos_kernel.h"

#include <stdint.h>
#include <warptone/filter.h>
#include <warptone/kernel.h>

enum { WT__SOS_MAX_CHANNELS = 1024 };

/// Check, and fill in the default.
WT_CHECKED wt_status wt__sos_resolve(const wt_sos_config *config, int *channels);

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

/// What filtering of rows needs of a GPU: sections for kernels/filter/sos.cu, its module, and one of its kernels.
typedef struct wt__sos_cuda {
    wt_buffer *sections;
    wt_module *module;
    wt_kernel *kernel; // NULL on a CPU
} wt__sos_cuda;
WT_CHECKED wt_status wt__sos_load(wt_device *device, const char *name, const double *sos, int n_sections,
                                  wt__sos_cuda *cuda);
void wt__sos_release(wt__sos_cuda *cuda);

/// Both ends of a call of a plan, checked, and the plan.
typedef struct wt__sos_call {
    const void *plan;
    const float *in;
    float *out;
} wt__sos_call;
WT_CHECKED wt_status wt__sos_call_of(const void *plan, const wt_device *device, const wt_stream *stream, size_t count,
                                     const wt_buffer *in, size_t in_offset, const wt_buffer *out, size_t out_offset,
                                     wt__sos_call *call);

static inline size_t wt__sos_shared_bytes(int n_sections)
{
    return ((size_t)n_sections + WT_SOS_THREADS / 32) * 2 * sizeof(double);
}
#endif
