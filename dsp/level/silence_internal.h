/// Private to dsp/silence*.c: what immediate calls and plans share.
#ifndef WT_SILENCE_INTERNAL_H
#define WT_SILENCE_INTERNAL_H

#include <warptone/silence.h>

wt_level_config wt__level_defaults(const wt_level_config *config); ///< NULL = all of them
WT_CHECKED wt_status wt__level_check(const wt_level_config *config, int64_t n);
WT_CHECKED wt_status wt__silence_check(const wt_level_config *config, double top_db, int channels, int64_t n);
/// Spans that are not silent, the first `room` of them written; how many there are is returned. loud [n_frames]:
/// scratch.
WT_RT int64_t wt__silence_find(const wt_level_config *config, double top_db, const float *pcm, int channels, int64_t n,
                               double *loud, wt_span *spans, int64_t room);

#endif
