/// Private to dsp/: octaves of a constant-Q transform on a GPU whose frames no block transforms.
#ifndef WT_CQT_WIDE_H
#define WT_CQT_WIDE_H

#include "cqt_kernel.h"
#include "cqt_plan.h"

typedef struct wt__cqt_wide wt__cqt_wide;

/// For octaves with the frames' length and the kind of `part`, `max_frames` at most.
WT_CHECKED wt_status wt__cqt_wide_create(wt_device *device, const wt__cqt_plan *plan, const wt__cqt_part *part,
                                         int64_t max_frames, wt__cqt_wide **wide);
void wt__cqt_wide_destroy(wt__cqt_wide *wide); ///< NULL is allowed
WT_CHECKED wt_status wt__cqt_wide_enqueue(const wt__cqt_wide *wide, wt_stream *stream,
                                          const wt_cqt_octave_args *octave);

#endif
