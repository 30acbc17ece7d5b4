/// Windows, as scipy.signal.get_window defines them, and what they sum to when frames overlap.
#ifndef WARPTONE_WINDOW_H
#define WARPTONE_WINDOW_H

#include <stdbool.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WT_WINDOW_MAX_N (1 << 24)

typedef enum wt_window_kind {
    WT_WINDOW_HANN,
    WT_WINDOW_HAMMING,
    WT_WINDOW_BLACKMAN,
    WT_WINDOW_BLACKMAN_HARRIS, ///< four terms, 92 dB
    WT_WINDOW_KAISER,          ///< parameter: beta, 0 .. 700
    WT_WINDOW_GAUSSIAN,        ///< parameter: standard deviation in samples, above 0
    WT_WINDOW_FLAT_TOP,        ///< five terms (scipy's, D'Antona and Ferrero)
    WT_WINDOW_RECTANGULAR,
    WT_WINDOW_CUSTOM, ///< `samples`
} wt_window_kind;

typedef struct wt_window_config {
    wt_window_kind kind;  ///< 0 = Hann
    int n;                ///< samples, 1 .. WT_WINDOW_MAX_N
    bool symmetric;       ///< false = periodic, for spectra; true = for filter design
    double parameter;     ///< Kaiser and Gaussian only
    const float *samples; ///< [n] custom only; borrowed for the call
} wt_window_config;

/// Write the window.
///
///   out   [n]
///
/// Errors: WT_ERR_BAD_ARG naming the field.
/// Source: scipy 1.15 signal/windows/_windows.py.  Judge: scipy's values, 1e-7.  [any but rt]
WT_CHECKED wt_status wt_window_fill(const wt_window_config *config, float *out);
/// The same in double; likewise.  [any but rt]
WT_CHECKED wt_status wt_window_fill_double(const wt_window_config *config, double *out);

/// Do windows `hop` samples apart add up to a constant, within `tolerance` (0 = 1e-10)? Source: scipy check_COLA.
/// Errors: WT_ERR_BAD_ARG (hop outside 1 .. n), WT_ERR_NO_MEMORY.  [any but rt]
WT_CHECKED wt_status wt_window_check_cola(const wt_window_config *config, int hop, double tolerance, bool *holds);
/// Do their squares leave no sample at or under `tolerance` (0 = 1e-10), so that a short-time transform can be undone?
/// Source: scipy check_NOLA. Errors as above.  [any but rt]
WT_CHECKED wt_status wt_window_check_nola(const wt_window_config *config, int hop, double tolerance, bool *holds);

#ifdef __cplusplus
}
#endif
#endif
