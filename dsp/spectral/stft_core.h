/// Private to stft.c, stft_precise.c and stft_inverse.c: what a transform holds, and what they share.
#ifndef WT_STFT_CORE_H
#define WT_STFT_CORE_H

#include "stft_internal.h"

#include <float.h>
#include <stdint.h>
#include <warptone/simd.h>

/// Sums of the inverse move to the front of their buffer once in as many hops.
enum { WT__STFT_HOPS = 8 };

struct wt_stft {
    wt_stft_config config;
    int bins, overlap; // overlap: frames over one sample at most
    wt_fft *forward, *inverse;
    bool weighs;   // the forward transform applies the window
    float *window; // [n_fft]
    float *halves; // [n_fft] of the window
    float *steady; // [hop] 1 / sum of squares, away from the ends
    float *frame;  // [n_fft]
    float *edge;   // [n_fft] samples of a frame that reaches over an end; precise: [FRAMES][n_fft], and silence
    float *row;    // bins of a frame: two of [bins], padded; or pairs, while `past` has them
    wt__fft_past past;
    wt__fft_whole_tables *whole; // NULL where the passes of fft_whole.h do not serve
    float *points, *backs;       // their work, [n_fft] of the window by half of n_fft
    float *sum; // [n_fft + WT__STFT_HOPS * hop] what the frames so far add up to
    wt__fft64 *precise;
    double *window64, *x64, *work64, *re64, *im64; // [n_fft], two of [n_fft][2][8], two of [bins][16]
    double *steady64, *sum64;                      // as steady and sum
};

/// Samples before the first that frame 0 reads.
static inline int64_t wt__stft_margin(const wt_stft *s) { return s->config.no_center ? 0 : s->config.n_fft / 2; }

/// By what a sum of squared windows divides; where there is none, nothing is.
static inline double wt__stft_reciprocal(double sum) { return sum > FLT_MIN ? 1 / sum : 1; }

/// What the next frame will read anew comes to the second-level cache while this one is transformed.
WT_INLINE void wt__stft_prefetch(const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += 16) __builtin_prefetch(x + i, 0, 2);
}

void wt__stft_multiply(const float *a, const float *b, float *product, int n);
/// Frames t .. of a precise transform, `left` at most: rows of pairs to `out`; returns where the next go.  [rt]
WT_RT float *wt__stft_write_precise(wt_stft *stft, const float *pcm, int64_t n, int64_t t, int64_t left, float *out);
/// Powers of `count` frames, or their roots.  [rt]
WT_RT void wt__stft_write_precise_sizes(wt_stft *stft, const float *pcm, int64_t n, int64_t t, int count, bool powers,
                                        float *out);

#endif
