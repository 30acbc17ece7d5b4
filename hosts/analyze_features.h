/// The features of analyze_fourier.c, analyze_median.c and analyze_separate.c, as the table names them.
#ifndef WT_ANALYZE_FEATURES_H
#define WT_ANALYZE_FEATURES_H

#include "analyze.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- analyze_fourier.c

wt_status analyze_power(const analyze_signal *s, analyze_result *r);
wt_status analyze_phase(const analyze_signal *s, analyze_result *r);
wt_status analyze_spectrogram_db(const analyze_signal *s, analyze_result *r);
wt_status analyze_bins_db(const analyze_signal *s, analyze_result *r); ///< However deep.
wt_status analyze_fft(const analyze_signal *s, analyze_result *r);
wt_status analyze_autocorrelation(const analyze_signal *s, analyze_result *r);
wt_status analyze_gpu_power(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_phase(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_spectrogram_db(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_bins_db(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_fft(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_autocorrelation(const analyze_batch *b, analyze_result *parts);

// ---- analyze_median.c

wt_status analyze_median(const analyze_signal *s, analyze_result *r);
wt_status analyze_median_spectrogram(const analyze_signal *s, analyze_result *r);
wt_status analyze_nn_filter(const analyze_signal *s, analyze_result *r);
wt_status analyze_gpu_median(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_median_spectrogram(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_nn_filter(const analyze_batch *b, analyze_result *parts);
int64_t analyze_median_reach(const analyze_signal *s);
int64_t analyze_median_spectrogram_reach(const analyze_signal *s);

// ---- analyze_separate.c

wt_status analyze_hpss(const analyze_signal *s, analyze_result *r);
wt_status analyze_residual(const analyze_signal *s, analyze_result *r);
wt_status analyze_hpss_masks(const analyze_signal *s, analyze_result *r);
wt_status analyze_gpu_hpss(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_residual(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_hpss_masks(const analyze_batch *b, analyze_result *parts);
int64_t analyze_hpss_reach(const analyze_signal *s);

#ifdef __cplusplus
}
#endif
#endif
