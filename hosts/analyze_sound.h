/// The features that make signals of signals, as the table names them; analyze_effect.h says what they are told and
/// where they are.
#ifndef WT_ANALYZE_SOUND_H
#define WT_ANALYZE_SOUND_H

#include "analyze.h"

#ifdef __cplusplus
extern "C" {
#endif

wt_status analyze_resample(const analyze_signal *s, analyze_result *r);
wt_status analyze_filtfilt(const analyze_signal *s, analyze_result *r);
wt_status analyze_filtfilt_of(const analyze_signal *s, const float *pcm, int64_t n, analyze_result *r);
wt_status analyze_savgol(const analyze_signal *s, analyze_result *r);
wt_status analyze_istft(const analyze_signal *s, analyze_result *r);
wt_status analyze_icqt(const analyze_signal *s, analyze_result *r);
wt_status analyze_insgt(const analyze_signal *s, analyze_result *r);
wt_status analyze_insgt_of(const analyze_signal *s, const float *pcm, int64_t n, analyze_result *r);
wt_status analyze_gpu_resample(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_filtfilt(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_savgol(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_istft(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_icqt(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_insgt(const analyze_batch *b, analyze_result *parts);
int64_t analyze_savgol_reach(const analyze_signal *s);
int64_t analyze_istft_reach(const analyze_signal *s);
int64_t analyze_icqt_reach(const analyze_signal *s);

// On a thread and on a GPU.
wt_status analyze_normalize(const analyze_batch *b, analyze_result *parts);
wt_status analyze_filter(const analyze_batch *b, analyze_result *parts);
wt_status analyze_fir(const analyze_batch *b, analyze_result *parts);
wt_status analyze_convolve(const analyze_batch *b, analyze_result *parts);
wt_status analyze_preemphasis(const analyze_batch *b, analyze_result *parts);
wt_status analyze_deemphasis(const analyze_batch *b, analyze_result *parts);
wt_status analyze_agc(const analyze_batch *b, analyze_result *parts);
wt_status analyze_denoise(const analyze_batch *b, analyze_result *parts);
wt_status analyze_echo_cancel(const analyze_batch *b, analyze_result *parts);
wt_status analyze_flow_through(const analyze_batch *b, analyze_flow_id id, analyze_result *parts);
int64_t analyze_fir_reach(const analyze_signal *s);
int64_t analyze_convolve_reach(const analyze_signal *s);
int64_t analyze_denoise_reach(const analyze_signal *s);
int64_t analyze_echo_reach(const analyze_signal *s);
/// How late the op is; 0 where it cannot be made.
int64_t analyze_flow_reach(const analyze_signal *s, analyze_flow_id id);

/// The level of a signal that comes in blocks, and the gain that normalize has for it. Free with analyze_level_destroy,
/// also after an error.
typedef struct analyze_level analyze_level;
WT_CHECKED wt_status analyze_level_create(const analyze_signal *s, int channels, analyze_level **level);
void analyze_level_destroy(analyze_level *level); ///< NULL is allowed.
void analyze_level_add(analyze_level *level, const float *const *rows, int channels, int n);
float analyze_level_gain(const analyze_level *level);

#ifdef __cplusplus
}
#endif
#endif
