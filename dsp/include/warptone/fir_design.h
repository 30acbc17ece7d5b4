/// Design of linear-phase FIR filters: window, least squares, equiripple, Savitzky-Golay.
///
/// Frequencies are fractions of the Nyquist frequency, 0 .. 1, as scipy.signal takes them without `fs`. All designs are
/// made in double; the caller rounds the taps where they are used.
#ifndef WARPTONE_FIR_DESIGN_H
#define WARPTONE_FIR_DESIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <warptone/device.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WT_FIR_DESIGN_MAX_TAPS  65535
#define WT_FIR_DESIGN_MAX_BANDS 32
#define WT_SAVGOL_MAX_TAPS      1023

typedef enum wt_fir_window_kind {
    WT_FIR_HAMMING,
    WT_FIR_HANN,
    WT_FIR_BLACKMAN,
    WT_FIR_KAISER,
    WT_FIR_RECTANGULAR,
} wt_fir_window_kind;

typedef struct wt_fir_window_config {
    int n_taps;                ///< 1 .. WT_FIR_DESIGN_MAX_TAPS
    const double *cutoffs;     ///< [n_cutoffs] ascending, above 0 and below 1 (-6 dB points); borrowed for the call
    int n_cutoffs;             ///< 1 .. WT_FIR_DESIGN_MAX_BANDS
    bool stop_zero;            ///< false: the band from 0 to the first cutoff passes
    wt_fir_window_kind window; ///< symmetric; 0 = Hamming
    double kaiser_beta;        ///< of WT_FIR_KAISER
    bool no_scale;             ///< false: the response is exactly 1 in the middle of the first pass band (or at 0 or 1)
} wt_fir_window_config;

/// Windowed ideal response (scipy.signal.firwin).
///
///   taps   [n_taps]   caller's
///
/// Errors: WT_ERR_BAD_ARG (sizes, cutoffs, an even number of taps with a pass band at the Nyquist frequency).
/// Judge:  scipy 1.15.3, 1e-12.  [any but rt]
WT_CHECKED wt_status wt_fir_design_window(const wt_fir_window_config *config, double *taps);

typedef struct wt_fir_bands_config {
    int n_taps;            ///< least squares: odd, 1 .. 2047; equiripple: 3 .. 2047
    int n_bands;           ///< 1 .. WT_FIR_DESIGN_MAX_BANDS
    const double *edges;   ///< [n_bands][2] ascending, 0 .. 1; between bands anything may happen; borrowed for the call
    const double *desired; ///< [n_bands][2] response at the edges, linear between; equiripple: the first of each pair
    const double *weights; ///< [n_bands]; NULL = 1 for each
} wt_fir_bands_config;

/// Least squares over the bands (scipy.signal.firls).
/// Errors: WT_ERR_BAD_ARG (also when the free bands leave the taps undetermined), WT_ERR_NO_MEMORY.
/// Source: I. Selesnick, "Linear-Phase FIR Filter Design By Least Squares".  Judge: scipy 1.15.3, 1e-9.  [worker]
WT_CHECKED wt_status wt_fir_design_least_squares(const wt_fir_bands_config *config, double *taps);

/// Smallest largest weighted error over the bands (scipy.signal.remez, type 'bandpass').
/// Errors: WT_ERR_BAD_ARG, WT_ERR_NO_MEMORY, WT_ERR_STATE when the exchange does not converge.
/// Source: J. McClellan, T. Parks, 1973; exchange on a grid of 40 points a cosine, barycentric interpolation.
/// Judge:  scipy 1.15.3: largest weighted error within 0.1 %.  [worker]
WT_CHECKED wt_status wt_fir_design_equiripple(const wt_fir_bands_config *config, double *taps);

typedef struct wt_savgol_config {
    int n_taps;     ///< odd, 1 .. WT_SAVGOL_MAX_TAPS: the window
    int order;      ///< 0 .. min(n_taps - 1, 20): degree of the polynomial
    int derivative; ///< 0 = smooth
    double delta;   ///< spacing of the frames; 0 = 1
} wt_savgol_config;

/// Taps that fit a polynomial to a window and read it (or its derivative) at `position` 0 .. n_taps - 1:
/// y = sum over k of taps[k] x[k]. With the middle position it is scipy.signal.savgol_coeffs(use='dot').
///
///   taps   [n_taps]   caller's
///
/// Errors: WT_ERR_BAD_ARG naming the field.
/// Source: A. Savitzky, M. Golay, 1964; discrete orthogonal polynomials by their three-term recurrence.  [any but rt]
WT_CHECKED wt_status wt_savgol_taps(const wt_savgol_config *config, int position, double *taps);

/// Smooth or differentiate a signal; at its ends the first and last windows' polynomials are read
/// (scipy.signal.savgol_filter, mode 'interp').
///
///   in, out   [n_frames]   different arrays; n_frames >= n_taps
///
/// Errors: those of wt_savgol_taps, WT_ERR_LENGTH (fewer frames than taps).  Judge: scipy 1.15.3.  [worker]
WT_CHECKED wt_status wt_savgol_filter(const wt_savgol_config *config, const float *in, float *out, int n_frames);

// ---- many rows on a stream

typedef struct wt_savgol_rows wt_savgol_rows;

/// wt_savgol_filter of rows [n_rows][n_frames]; `device` is borrowed until the plan is destroyed.
/// Errors: those of wt_savgol_filter, WT_ERR_BAD_ARG (n_rows), on a GPU the compiler's.  [worker]
WT_CHECKED wt_status wt_savgol_rows_create(wt_device *device, const wt_savgol_config *config, int n_rows, int n_frames,
                                           wt_savgol_rows **plan);
void wt_savgol_rows_destroy(wt_savgol_rows *plan); ///< NULL is allowed.  [worker]
/// Queue it; out is another part of memory than in; offsets in bytes. Errors: WT_ERR_BAD_ARG.
/// Judge:  wt_savgol_filter, on a GPU 2e-6 of the peak.  [worker]
WT_CHECKED wt_status wt_savgol_rows_enqueue(wt_savgol_rows *plan, wt_stream *stream, const wt_buffer *in,
                                            size_t in_offset, wt_buffer *out, size_t out_offset);

#ifdef __cplusplus
}
#endif
#endif
