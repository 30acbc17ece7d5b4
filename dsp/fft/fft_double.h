/// Private to dsp/: complex transforms in double, eight side by side, and the spectra of sixteen real frames by them.
#ifndef WT_FFT_DOUBLE_H
#define WT_FFT_DOUBLE_H

#include <stddef.h>
#include <stdint.h>
#include <warptone/status.h>

enum { WT__FFT64_LANES = 8, WT__FFT64_FRAMES = 16 };

/// Tables of one length; never changed after creation, so threads may share them.
typedef struct wt__fft64 wt__fft64;

/// Any n of 1 or more.
WT_CHECKED wt_status wt__fft64_create(int n, wt__fft64 **fft);
void wt__fft64_destroy(wt__fft64 *fft);
/// Doubles of one array: [n][2][LANES], and room behind them where n has a prime factor above 31.
size_t wt__fft64_doubles(int n);
/// Forward, unscaled: x and work [n][2][LANES], 64-byte aligned; returns the one that holds the result. Exchange re and
/// im of both ends for the inverse times n.  [rt]
double *wt__fft64_run(const wt__fft64 *fft, double *x, double *work);
/// A number for each of sixteen signals.
typedef struct wt__fft64_scales {
    _Alignas(64) double by[WT__FFT64_FRAMES];
} wt__fft64_scales;

/// Two frames share a transform: each is brought near 1 by a power of two, which rounds nothing, so that a quiet one
/// keeps its digits beside a loud one. Gives the factors there and back: 0 for silence, NaN for a frame that is not
/// finite, in whose place goes silence [n].  [rt]
void wt__fft64_level(const float **frames, int n, const float *silence, wt__fft64_scales *to, wt__fft64_scales *back);
/// Sixteen real signals of n samples each, windowed, as a transform takes them: x [n][FRAMES]. `scales` [FRAMES]: what
/// each is taken times, 64-byte aligned, NULL = 1.  [rt]
void wt__fft64_frames(const float *const *frames, const double *window, int n, const double *scales, double *x);
/// Bins of the first n_out of sixteen real signals from their transform z, rounded once: out[f] [n / 2 + 1][2].  [rt]
void wt__fft64_pairs(const double *z, int n, float *const *out, int n_out);
/// Bins of sixteen real signals from their transform z (frame f of lane f in re, frame f + 8 in im):
/// re, im [n / 2 + 1][FRAMES].  [rt]
void wt__fft64_bins(const double *z, int n, double *re, double *im);
/// Their powers, each signal's times its number of scales [FRAMES], rounded once: out [n / 2 + 1][FRAMES].  [rt]
void wt__fft64_powers(const double *z, int n, const double *scales, float *out);
/// And back: z such that its inverse (exchanged: ready to run forward) holds the signals.  [rt]
void wt__fft64_fold(const double *re, const double *im, int n, double *z);

#endif
