/// Harmonic salience: how much energy lies at the multiples of each frequency.
#ifndef WARPTONE_SALIENCE_H
#define WARPTONE_SALIENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <warptone/device.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_salience_config {
    int n_bins;
    const double *frequencies; ///< [n_bins] of the bins, ascending; copied
    int n_harmonics;
    const double *harmonics;   ///< [n_harmonics] multiples, above 0; copied
    const double *weights;     ///< [n_harmonics] whose sum is not 0; copied; NULL = all 1
    bool all_bins;             ///< false: bins that are no strict local maximum of their frame get `fill`
    float fill;                ///< librosa's default is NaN
} wt_salience_config;

typedef struct wt_salience wt_salience;

/// `device`: NULL = immediate calls only, else borrowed until the plan is destroyed.
/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY, on a GPU the compiler's.  [worker]
WT_CHECKED wt_status wt_salience_create(wt_device *device, const wt_salience_config *config, wt_salience **plan);
void wt_salience_destroy(wt_salience *plan); ///< NULL is allowed.  [worker]

/// Weighted mean over the harmonics of each bin, between bins by a line, 0 beyond them.
///
///   in    [n_frames][n_bins]   magnitudes
///   out   [n_frames][n_bins]
///
/// Source: librosa 0.11.0 core/harmonic.py, salience().  Judge: librosa in float64, 1e-6 of the peak.  [rt, running]
WT_RT void wt_salience_run(const wt_salience *plan, const float *in, int64_t n_frames, float *out);
/// Queue it for n_frames, 1 or more, of however many signals; offsets in bytes. Errors: WT_ERR_BAD_ARG.
/// Judge:  CUDA: the CPU, identical.  [worker]
WT_CHECKED wt_status wt_salience_enqueue(const wt_salience *plan, wt_stream *stream, const wt_buffer *in,
                                         size_t in_offset, int64_t n_frames, wt_buffer *out, size_t out_offset);

#ifdef __cplusplus
}
#endif
#endif
