/// Private to dsp/: octaves of an inverse constant-Q transform on a GPU whose frames no block transforms.
#ifndef WT_ICQT_WIDE_H
#define WT_ICQT_WIDE_H

#include "icqt_kernel.h"
#include "op.h"

typedef struct wt__icqt_wide wt__icqt_wide;

/// For octaves of spectra of n_fft points, `max_frames` and `max_samples` of a line at most.
WT_CHECKED wt_status wt__icqt_wide_create(wt_device *device, int n_fft, int64_t n_lines, int64_t max_frames,
                                          int64_t max_samples, wt__icqt_wide **wide);
void wt__icqt_wide_destroy(wt__icqt_wide *wide); ///< NULL is allowed
/// Of octave->walk: length, hop.
WT_CHECKED wt_status wt__icqt_wide_enqueue(const wt__icqt_wide *wide, wt_stream *stream,
                                           const wt_icqt_octave_args *octave);

#endif
