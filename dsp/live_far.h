/// The far end of a live chain: a device that runs it, behind rings.
#ifndef WT_LIVE_FAR_H
#define WT_LIVE_FAR_H

#include "live_internal.h"

/// One block through the device; returns the miss, -1 = none.  [rt]
int wt__live_far_run(live_far *far, const float *const *in, float *const *wet, int out_channels, int n_frames);
wt_live_path wt__live_far_path(const live_far *far);

#endif
