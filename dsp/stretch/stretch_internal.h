/// Private to dsp/stretch/pitch_shift.c: a stretch of one signal on the calling thread, some samples after the others.
#ifndef WT_STRETCH_INTERNAL_H
#define WT_STRETCH_INTERNAL_H

#include <warptone/stretch.h>

WT_RT void wt__stretch_begin(wt_stretch *plan, const float *pcm); ///< [rt]
/// The next samples of the result, of which there are wt_stretch_n_out; returns how many, perhaps none.  [rt]
WT_RT int64_t wt__stretch_next(wt_stretch *plan, const float *pcm, float *out);
int64_t wt__stretch_room(const wt_stretch *plan); ///< samples that a call gives at most

#endif
