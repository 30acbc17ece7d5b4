/// Private to dsp/stretch/: the phase vocoder frame by frame.
#ifndef WT_PHASE_VOCODER_H
#define WT_PHASE_VOCODER_H

#include <warptone/stretch.h>

/// Input frame k, [bins][2], read before the next one is asked for; NULL = silence. Frames are asked for in rising
/// order.
typedef const float *(*wt__vocoder_input)(const void *user, int64_t k);

void wt__phase_vocoder_begin(wt_phase_vocoder *vocoder);
/// The next output frame [bins][2], as wt_phase_vocoder_run has it.  [rt]
WT_RT void wt__phase_vocoder_next(wt_phase_vocoder *vocoder, wt__vocoder_input input, const void *user, float *out);

#endif
