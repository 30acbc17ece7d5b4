/// Arguments of the conversion of samples, and how one is written: one text for both compilers.
#ifndef WT_PCM_KERNEL_H
#define WT_PCM_KERNEL_H

#include "chain_kernel.h"

typedef struct wt_pcm_args {
    const unsigned char *in; ///< [n_signals][n_frames][channels] of `format`
    float *out;              ///< [n_signals][channels][n_frames], folded [n_signals][n_frames]
    long long n_frames;
    int channels, n_signals;
    int format; ///< wt_pcm_format
    int fold;   ///< the mean of the channels
} wt_pcm_args;

typedef struct wt_pcm_state { ///< a wt_pcm_writer
    unsigned char no_dither;
    unsigned long long n_samples, n_clipped, n_bad;
} wt_pcm_state;

typedef struct wt_pcm_write_args {
    const float *in;      ///< [n_signals][channels][n_frames]
    unsigned char *out;   ///< [n_signals][n_frames][channels] of `format`
    wt_pcm_state *states; ///< [n_signals]
    long long n_frames;
    int channels, n_signals, format;
} wt_pcm_write_args;

/// Triangular noise of -1 .. 1 from a counter: its bits mixed (D. Stafford's mix 13 of the murmur finaliser), the two
/// halves one uniform number each.
WT_SHARED_FN double pcm_dither(unsigned long long counter)
{
    unsigned long long x = counter + 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return ((double)(unsigned)x - (double)(unsigned)(x >> 32)) * 0x1p-32;
}

/// To a whole number within -scale .. scale - 1; counts what is clipped and what is no number.
WT_SHARED_FN int pcm_quantise(float x, double scale, double dither, unsigned long long *n_clipped,
                              unsigned long long *n_bad)
{
    const double limit = scale - 1;
    double value = rint(x * scale + dither);
    const int bad = x != x, high = value > limit, low = value < -scale;
    *n_bad += (unsigned)bad;
    *n_clipped += (unsigned)(high | low);
    value = bad ? 0 : high ? limit : low ? -scale : value;
    return (int)value;
}

#endif
