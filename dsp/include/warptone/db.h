/// Decibels of power and amplitude spectra, with librosa 0.11's rules, and back.
#ifndef WARPTONE_DB_H
#define WARPTONE_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <warptone/device.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum wt_db_reference {
    WT_DB_REF_VALUE,  ///< `ref`
    WT_DB_REF_MAX,    ///< the largest value of the whole array
    WT_DB_REF_MEDIAN, ///< its median; a NaN counts as the largest
} wt_db_reference;

typedef struct wt_db_config {
    wt_db_reference reference; ///< 0 = value
    double ref;                ///< 0 = 1
    double amin;               ///< smaller values count as this one; 0 = 1e-10 (amplitudes: 1e-5)
    double top_db;             ///< nothing lies further below the largest value; 0 = 80
    bool no_top;               ///< no such limit
} wt_db_config;

/// 10 log10(power / ref). `config` NULL = defaults.
///
///   in    [count]   power, 0 or more; out may be the same
///   out   [count]   dB; a NaN stays one and counts for no maximum
///
/// Errors: WT_ERR_BAD_ARG (amin, ref or top_db below 0).
/// Source: librosa 0.11.0 core/spectrum.py, power_to_db().  Judge: librosa in float64, 2e-7 of the peak.  [worker]
WT_CHECKED wt_status wt_db_from_power(const wt_db_config *config, const float *in, int64_t count, float *out);
/// 20 log10(amplitude / ref), likewise.  [worker]
WT_CHECKED wt_status wt_db_from_amplitude(const wt_db_config *config, const float *in, int64_t count, float *out);

/// ref 10^(dB / 10), and ref 10^(dB / 20); in and out [count] may be the same.  [any]
void wt_db_to_power(double ref, const float *in, int64_t count, float *out);
void wt_db_to_amplitude(double ref, const float *in, int64_t count, float *out);

// ---- many signals on a stream

typedef struct wt_db wt_db;

/// Signals [n_signals][count] of powers or amplitudes, each with its own maximum; `config` NULL = defaults; `device` is
/// borrowed until the plan is destroyed.
/// Errors: those of wt_db_from_power, on a GPU WT_ERR_UNSUPPORTED (the median of more than 2^32 - 1 values) and the
/// compiler's.  [worker]
WT_CHECKED wt_status wt_db_create(wt_device *device, const wt_db_config *config, bool amplitudes, int n_signals,
                                  int64_t count, wt_db **plan);
void wt_db_destroy(wt_db *plan); ///< NULL is allowed.  [worker]
/// Queue it; out may be in; offsets in bytes. Errors: WT_ERR_BAD_ARG.  Judge: CUDA: the CPU, 2e-6 of the peak.
/// [worker]
WT_CHECKED wt_status wt_db_enqueue(wt_db *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                   wt_buffer *out, size_t out_offset);

#ifdef __cplusplus
}
#endif
#endif
