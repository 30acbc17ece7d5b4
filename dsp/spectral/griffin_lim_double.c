// Per iteration as in griffin_lim_float.c. Sixteen frames are transformed at once (fft_double.c), and spectra, R_before
// among them, lie in tiles [bins][16]. Overlapped sums go to one padded signal, whose sums of squared windows are a
// table.

#include "griffin_lim_internal.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include <warptone/simd.h>

enum { F = WT__FFT64_FRAMES };

static double next_angle(const wt_griffin_lim *g, uint64_t *seed)
{
    *seed = *seed * WT__GRIFFIN_LIM_FACTOR + WT__GRIFFIN_LIM_TERM;
    if (g->config.zero_phase) return 0;
    return 3.14159265358979323846 * ((double)(float)(int32_t)(*seed >> 32) * 0x1p-31 + 1);
}

// Give spectra in double their first phases.
static void begin64(const wt_griffin_lim *g, wt__griffin_lim_slot *s, const float *magnitude)
{
    wt__griffin_lim_seed(g, s->seeds);
    memset(s->a64, 0, (size_t)g->n_tiles * 2 * (size_t)g->bins * F * sizeof(double));
    for (int64_t t = 0; t < g->config.n_frames; t++)
        for (int64_t k = 0; k < g->bins; k++) {
            const double angle = next_angle(g, &s->seeds[k]), m = magnitude[t * g->bins + k];
            double *tile = s->a64 + t / F * 2 * g->bins * F;
            tile[k * F + t % F] = m * cos(angle), tile[(g->bins + k) * F + t % F] = m * sin(angle);
        }
}

// Phases of R - c R_before to A, of a tile: a holds R, and then A.
WT_CLONES static void update64(double *a, double *before, const float *magnitude, int64_t stride, int count, double c,
                               int bins)
{
    for (int k = 0; k < bins; k++) {
        double *a_re = a + k * F, *a_im = a_re + bins * F, *b_re = before + k * F, *b_im = b_re + bins * F;
        double m[F];
        for (int f = 0; f < F; f++) m[f] = f < count ? magnitude[f * stride + k] : 0;
        for (int f = 0; f < F; f++) {
            const double re = a_re[f], im = a_im[f], x = re - c * b_re[f], y = im - c * b_im[f];
            const double by = m[f] / (sqrt(x * x + y * y) + DBL_MIN);
            b_re[f] = re, b_im[f] = im;
            a_re[f] = x * by, a_im[f] = y * by;
        }
    }
}

// A to the padded signal, the windows' squares divided out, ends set as the padding says.
WT_RT static void synthesise64(const wt_griffin_lim *g, wt__griffin_lim_slot *s)
{
    const double by = 1.0 / g->n_fft;
    memset(s->padded, 0, (size_t)g->n_padded * sizeof(double));
    for (int64_t tile = 0; tile < g->n_tiles; tile++) {
        const double *a = s->a64 + tile * 2 * g->bins * F;
        wt__fft64_fold(a, a + g->bins * F, g->n_fft, s->x);
        const double *z = wt__fft64_run(g->fft, s->x, s->work);
        for (int f = 0; f < F && tile * F + f < g->used; f++) {
            double *to = s->padded + (tile * F + f) * g->hop;
            const double *from = z + (f < F / 2 ? f + F / 2 : f - F / 2); // parts exchanged: the inverse
            for (int i = 0; i < g->n_fft; i++) to[i] += from[i * F] * g->window[i] * by;
        }
    }
    for (int64_t i = 0; i < g->n_padded; i++) s->padded[i] *= g->squares[i];
}

// Outside the signal the padding rules; zeros are librosa's for Griffin-Lim.
static void pad64(const wt_griffin_lim *g, double *padded)
{
    const wt_stft_pad rule = g->config.stft.pad;
    const int64_t n = g->length, end = n + g->margin;
    double *signal = padded + g->margin;
    for (int64_t i = 1; i <= g->margin; i++) signal[-i] = wt__stft_padded64(signal, n, -i, g->margin, rule);
    for (int64_t i = n; i < end; i++) signal[i] = wt__stft_padded64(signal, n, i, g->margin, rule);
    memset(signal + end, 0, (size_t)(g->n_padded - g->margin - end) * sizeof(double));
}

WT_RT static void analyse64(const wt_griffin_lim *g, wt__griffin_lim_slot *s, const float *magnitude, int64_t tile,
                            double c)
{
    const int64_t n_frames = g->config.n_frames, t = tile * F, offset = tile * 2 * g->bins * F;
    const int count = n_frames - t < F ? (int)(n_frames - t) : F;
    for (int i = 0; i < g->n_fft; i++)
        for (int f = 0; f < F; f++) s->x[i * F + f] = f < count ? s->padded[(t + f) * g->hop + i] * g->window[i] : 0;
    double *re = s->a64 + offset, *im = re + g->bins * F; // A was used: R takes its place
    wt__fft64_bins(wt__fft64_run(g->fft, s->x, s->work), g->n_fft, re, im);
    update64(re, s->before64 + offset, magnitude + t * g->bins, g->bins, count, c, g->bins);
}

WT_RT void wt__griffin_lim_run_double(const wt_griffin_lim *g, wt__griffin_lim_slot *s, const float *magnitude,
                                      float *out)
{
    const double c = g->config.momentum / (1 + g->config.momentum);
    begin64(g, s, magnitude);
    memset(s->before64, 0, (size_t)g->n_tiles * 2 * (size_t)g->bins * F * sizeof(double));
    for (int i = 0; i < g->config.n_iter; i++) {
        synthesise64(g, s);
        pad64(g, s->padded);
        for (int64_t tile = 0; tile < g->n_tiles; tile++) analyse64(g, s, magnitude, tile, c);
    }
    synthesise64(g, s);
    for (int64_t n = 0; n < g->length; n++) out[n] = (float)s->padded[g->margin + n];
}
