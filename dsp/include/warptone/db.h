/// Decibels of power and amplitude spectra, with librosa 0.11's rules, and back.
#ifndef WARPTONE_DB_H
#define WARPTONE_DB_H

#include <stdbool.h>
#include <stdint.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum wt_db_reference {
    WT_DB_REF_VALUE,  ///< `ref`
    WT_DB_REF_MAX,    ///< the largest value of the whole array
    WT_DB_REF_MEDIAN, ///< its median
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
/// Errors: WT_ERR_BAD_ARG (amin, ref or top_db below 0), WT_ERR_NO_MEMORY (median only).
/// Source: librosa 0.11.0 core/spectrum.py, power_to_db().  Judge: librosa in float64, 2e-7 of the peak.  [worker]
WT_CHECKED wt_status wt_db_from_power(const wt_db_config *config, const float *in, int64_t count, float *out);
/// 20 log10(amplitude / ref), likewise.  [worker]
WT_CHECKED wt_status wt_db_from_amplitude(const wt_db_config *config, const float *in, int64_t count, float *out);

/// ref 10^(dB / 10), and ref 10^(dB / 20); in and out [count] may be the same.  [any]
void wt_db_to_power(double ref, const float *in, int64_t count, float *out);
void wt_db_to_amplitude(double ref, const float *in, int64_t count, float *out);

#ifdef __cplusplus
}
#endif
#endif
