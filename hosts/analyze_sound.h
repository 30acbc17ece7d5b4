/// The features that make signals of signals, as the table names them; analyze_effect.h says what they are told and
/// where they are.
#ifndef WT_ANALYZE_SOUND_H
#define WT_ANALYZE_SOUND_H

#include "analyze_gpu.h"

#include <warptone/normalize.h>

#ifdef __cplusplus
extern "C" {
#endif

analyze_here analyze_resample, analyze_filtfilt, analyze_savgol, analyze_istft, analyze_icqt, analyze_insgt;
analyze_of_row analyze_filtfilt_of, analyze_insgt_of;
analyze_there analyze_gpu_resample, analyze_gpu_filtfilt, analyze_gpu_savgol, analyze_gpu_istft, analyze_gpu_icqt,
    analyze_gpu_insgt;
analyze_reach analyze_savgol_reach, analyze_istft_reach, analyze_icqt_reach;

// On a thread and on a GPU.
analyze_there analyze_normalize;
/// A feature that is a flow, likewise.
WT_CHECKED wt_status analyze_flow_through(const analyze_batch *b, analyze_flow_id id, analyze_result *parts);
/// How late the op is; 0 where it cannot be made, or never is.
int64_t analyze_flow_reach(const analyze_signal *s, analyze_flow_id id);

/// The level of a signal that comes in blocks, and the gain that normalize has for it. Free with analyze_level_destroy,
/// also after an error.
typedef struct analyze_level analyze_level;
WT_CHECKED wt_status analyze_level_create(const analyze_signal *s, int channels, analyze_level **level);
void analyze_level_destroy(analyze_level *level); ///< NULL is allowed.
void analyze_level_add(analyze_level *level, const float *const *rows, int channels, int n);
wt_normalize_result analyze_level_find(const analyze_level *level);
float analyze_level_gain(const wt_normalize_result *found); ///< as a factor

#ifdef __cplusplus
}
#endif
#endif
