/// Per-channel energy normalisation: a spectrogram over its own slow mean, compressed.
#ifndef WARPTONE_PCEN_H
#define WARPTONE_PCEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <warptone/device.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// librosa's defaults; change what you like.
typedef struct wt_pcen_config {
    int rate_hz;            ///< 0 = 22050
    int hop;                ///< 0 = 512
    double gain;            ///< of wt_pcen_defaults: 0.98
    double bias;            ///< 2; 0 = none
    double power;           ///< 0.5; 0 = logarithm
    double time_constant_s; ///< 0 = 0.4
    double eps;             ///< 0 = 1e-6
    double b;               ///< coefficient of the smoother; 0 = from the time constant
    int max_size;           ///< bands over which the smoother takes the largest; 0 = 1
} wt_pcen_config;

wt_pcen_config wt_pcen_defaults(void); ///< [any]

/// Normalise.
///
///   in      [n_rows][n_frames]   powers, 0 or more (librosa wants audio scaled by 2^31)
///   state   [n_rows]             smoother: read when `continued`, and written; NULL = every call begins anew
///   out     [n_rows][n_frames]   may be `in` when max_size is 1
///
/// Errors: WT_ERR_BAD_ARG naming the field.
/// Source: librosa 0.11.0 core/spectrum.py, pcen(); Wang et al., 2017.  Judge: librosa in float64, 1.4e-6 of the
/// peak.  [worker]
WT_CHECKED wt_status wt_pcen_run(const wt_pcen_config *config, const float *in, int64_t n_rows, int64_t n_frames,
                                 double *state, bool continued, float *out);

// ---- on a stream

typedef struct wt_pcen wt_pcen;

/// Signals [n_signals][n_rows][n_frames], each begun anew; `device` is borrowed until the plan is destroyed.
/// Errors: those of wt_pcen_run and of sizes below 1, WT_ERR_NO_MEMORY, on a GPU the compiler's.  [worker]
WT_CHECKED wt_status wt_pcen_create(wt_device *device, const wt_pcen_config *config, int n_signals, int n_rows,
                                    int64_t n_frames, wt_pcen **plan);
void wt_pcen_destroy(wt_pcen *plan); ///< NULL is allowed.  [worker]
/// Queue it; out may be in when max_size is 1; offsets in bytes. Errors: WT_ERR_BAD_ARG.  Judge: CUDA: the CPU, 2e-6
/// of the peak.  [worker]
WT_CHECKED wt_status wt_pcen_enqueue(wt_pcen *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                     wt_buffer *out, size_t out_offset);

/// A part of longer signals: of the plan's frames those that go on where the part before ended.
typedef struct wt_pcen_part {
    int64_t from, n_frames; ///< within the plan's; the frames beside them are neither looked at nor written
    bool continued;         ///< false: begun anew
} wt_pcen_part;

/// Queue a part. `state`: [n_signals][n_rows] doubles, at a multiple of 8 bytes, as those of wt_pcen_run. Errors and
/// judge as above.  [worker]
WT_CHECKED wt_status wt_pcen_enqueue_part(wt_pcen *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                          const wt_pcen_part *part, wt_buffer *state, size_t state_offset,
                                          wt_buffer *out, size_t out_offset);

#ifdef __cplusplus
}
#endif
#endif
