// Frames transformed in double, several at a time.
#include "stft_core.h"

#include <math.h>
#include <string.h>
#include <warptone/simd.h>

WT_CLONES static void scale_frames(double *x, int n, const wt__fft64_scales *scale)
{
    const wt__fft64_scales here = *scale; // which no store to x changes
    for (int i = 0; i < n; i++)
        for (int f = 0; f < WT__FFT64_FRAMES; f++) x[i * WT__FFT64_FRAMES + f] *= here.by[f];
}

// The transform of frames t .. t + count - 1, each brought near 1; `back`: by what it is to be taken.
WT_RT static const double *transform_precisely(wt_stft *s, const float *pcm, int64_t n, int64_t t, int count,
                                               wt__fft64_scales *back)
{
    const int n_fft = s->config.n_fft;
    const float *frames[WT__FFT64_FRAMES];
    float *silence = s->edge + (size_t)WT__FFT64_FRAMES * (size_t)n_fft;
    for (int f = 0; f < WT__FFT64_FRAMES; f++) {
        const int64_t begin = (t + f) * s->config.hop - wt__stft_margin(s);
        float *edge = s->edge + (size_t)f * (size_t)n_fft;
        frames[f] = f < count ? edge : silence;
        if (f >= count) continue;
        if (begin >= 0 && begin + n_fft <= n)
            frames[f] = pcm + begin;
        else
            wt__stft_pad_samples(s, pcm, n, begin, s->config.n_fft, edge);
    }
    wt__fft64_scales to;
    wt__fft64_level(frames, n_fft, silence, &to, back);
    wt__fft64_frames(frames, s->window64, n_fft, to.by, s->x64);
    return wt__fft64_run(s->precise, s->x64, s->work64);
}

WT_RT void wt__stft_precise_powers(wt_stft *s, const float *pcm, int64_t n, int64_t t, int count, float *powers)
{
    wt__fft64_scales back;
    const double *z = transform_precisely(s, pcm, n, t, count, &back);
    for (int f = 0; f < WT__FFT64_FRAMES; f++) back.by[f] *= back.by[f];
    wt__fft64_powers(z, s->config.n_fft, back.by, powers);
}

WT_RT void wt__stft_precise(wt_stft *s, const float *pcm, int64_t n, int64_t t, int count, const double **re,
                            const double **im)
{
    wt__fft64_scales back;
    wt__fft64_bins(transform_precisely(s, pcm, n, t, count, &back), s->config.n_fft, s->re64, s->im64);
    *re = s->re64, *im = s->im64;
    scale_frames(s->re64, s->bins, &back);
    scale_frames(s->im64, s->bins, &back);
}

WT_RT float *wt__stft_write_precise(wt_stft *s, const float *pcm, int64_t n, int64_t t, int64_t left, float *out)
{
    const int count = left < WT__FFT64_FRAMES ? (int)left : WT__FFT64_FRAMES;
    const double *re, *im;
    wt__stft_precise(s, pcm, n, t, count, &re, &im);
    for (int f = 0; f < count; f++)
        for (int k = 0; k < s->bins; k++, out += 2) {
            out[0] = (float)re[k * WT__FFT64_FRAMES + f];
            out[1] = (float)im[k * WT__FFT64_FRAMES + f];
        }
    return out;
}

// Powers, or their roots, in place of the real parts.
WT_CLONES static void take_sizes(double *re, const double *im, int count, bool powers)
{
    for (int i = 0; i < count; i++) re[i] = re[i] * re[i] + im[i] * im[i];
    for (int i = 0; i < count && !powers; i++) re[i] = sqrt(re[i]);
}

WT_RT void wt__stft_write_precise_sizes(wt_stft *s, const float *pcm, int64_t n, int64_t t, int count, bool powers,
                                        float *out)
{
    const double *re, *im;
    wt__stft_precise(s, pcm, n, t, count, &re, &im);
    take_sizes(s->re64, im, s->bins * WT__FFT64_FRAMES, powers);
    for (int f = 0; f < count; f++)
        for (int k = 0; k < s->bins; k++) *out++ = (float)re[k * WT__FFT64_FRAMES + f];
}

const double *wt__stft_window64(const wt_stft *stft)
{
    return stft->window64;
}

void wt__stft_set_window64(wt_stft *stft, const double *window)
{
    memcpy(stft->window64, window, (size_t)stft->config.n_fft * sizeof *window);
}
