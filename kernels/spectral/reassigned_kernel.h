/// Reassigned spectrograms: the arguments of the kernel, and what becomes of a bin, as both compilers have it.
#ifndef WT_REASSIGNED_KERNEL_H
#define WT_REASSIGNED_KERNEL_H
#include "spectrum_kernel.h"

typedef struct wt_reassigned_args {
    wt_spectrum_frames frames; ///< but window and twiddles
    float *out;                ///< [n_lines][3][n_frames][bins] Hz, s, magnitude
    const double *windows;     ///< [3][n_fft] h, its derivative, t h
    const double *twiddles;
    double rate_hz, least; ///< of the magnitudes that are moved
    long long begin, n_all; ///< sample of the whole signal at pcm, and how many it has
    int n_fft, centre;     ///< samples from a frame's time to its middle
    int keep_all, fill_nan, no_clip;
} wt_reassigned_args;

/// Bin k of frame t, whose three spectra are there (re, im): its frequency, time and magnitude to `to`, `apart` floats
/// from one another.
WT_SHARED_FN void wt__reassign(const wt_reassigned_args *a, long long t, int k, const double *h, const double *dh,
                               const double *th, float *to, long long apart)
{
    const double power = h[0] * h[0] + h[1] * h[1], size = sqrt(power);
    const double own_hz = k * a->rate_hz / a->n_fft;
    const double own_s = (double)(a->begin + t * a->frames.hop + a->centre) / a->rate_hz;
    double hz = own_hz - (dh[1] * h[0] - dh[0] * h[1]) / power * a->rate_hz / (2 * 3.14159265358979323846);
    double at = own_s + (th[0] * h[0] + th[1] * h[1]) / power / a->rate_hz;
    if (!a->keep_all && size < a->least) hz = at = nan("");
    if (a->fill_nan && hz != hz) hz = own_hz;
    if (a->fill_nan && at != at) at = own_s;
    if (!a->no_clip) {
        const double end = (double)a->n_all / a->rate_hz;
        hz = hz < 0 ? 0 : hz > a->rate_hz / 2 ? a->rate_hz / 2 : hz;
        at = at < 0 ? 0 : at > end ? end : at;
    }
    to[0] = (float)hz, to[apart] = (float)at, to[2 * apart] = (float)size;
}
#endif
