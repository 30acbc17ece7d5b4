/// Private to dsp/icqt*.c: what both backends have of an inverse constant-Q transform.
#ifndef WT_ICQT_PLAN_H
#define WT_ICQT_PLAN_H

#include "cqt_basis.h"
#include "icqt_ends.h"
#include "op.h"

#include "soxr_hq.h"
#include <warptone/icqt.h>

typedef struct wt__icqt_octave {
    wt__cqt_basis basis; ///< values conjugated, with all factors
    int hop, doublings;  ///< from its rate to the full one; never more than of the octave below
} wt__icqt_octave;

typedef struct wt__icqt_plan {
    wt_cqt_config config;
    int n_octaves;
    wt__icqt_octave *octaves; ///< the lowest first
    int64_t max_frames;
    double longest;               ///< filter, at the full rate
    float taps[WT_SOXR_HALF + 1]; ///< of a doubling
    wt__icqt_ends ends;
} wt__icqt_plan;

typedef struct wt__icqt_cuda wt__icqt_cuda;
WT_CHECKED wt_status wt__icqt_cuda_create(wt_device *device, const wt__icqt_plan *plan, wt__icqt_cuda **cuda);
void wt__icqt_cuda_destroy(wt__icqt_cuda *cuda); ///< NULL is allowed.
/// `used` frames of n_frames, to `length` samples.
WT_CHECKED wt_status wt__icqt_cuda_enqueue(const wt__icqt_cuda *cuda, wt_stream *stream, const float *in,
                                           int64_t n_frames, int64_t used, int64_t length, float *out);

#endif
