// 4096 samples are transformed and weighed by the filter's spectrum; every other sample of the result has the spectrum
// folded at its middle, which goes back as 2048 samples. 400 of them lie too near the ends, the rest is given. Its
// rounding is that of the block's loudest samples: a precise halver sums the taps' products in double instead.

#include "halve.h"

#include "cqt_kernel.h"
#include "soxr_hq.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/fft.h>
#include <warptone/simd.h>

enum { N = WT_CQT_HALVE_N, EDGE = WT_CQT_HALVE_EDGE, OUT = WT_CQT_HALVE_OUT, SUMS = 24 };

struct wt__halver {
    wt_fft *forward, *inverse;
    int fill;             // samples in `in`, of which the first 2 * EDGE were there before
    int phase;            // outputs of the run at hand that are nobody's
    int64_t taken, given; // samples
    double *taps; // [HALF + 1], or NULL
    double even[N / 2], odd[N / 2]; // samples of `in`
    float filter[N / 2 + 1], in[N], spectrum[N + 2], folded[N / 2 + 2], out[N / 2];
};

wt_status wt__halve_spectrum(int n_halvings, int index, double scale, float *spectrum)
{
    const double pi = 3.14159265358979323846;
    double taps[WT_SOXR_HALF + 1];
    wt_status status = wt__soxr_half(n_halvings, index, taps);
    for (int k = 0; k <= N / 2; k++) {
        double sum = taps[0];
        for (int j = 1; j <= WT_SOXR_HALF; j++) sum += 2 * taps[j] * cos(2 * pi * (double)((int64_t)k * j % N) / N);
        spectrum[k] = (float)(sum * scale);
    }
    return status;
}

static wt_status take_taps(int n_halvings, int index, wt__halver *h)
{
    h->taps = malloc((WT_SOXR_HALF + 1) * sizeof *h->taps);
    return h->taps ? wt__soxr_half(n_halvings, index, h->taps) : wt_fail(WT_ERR_NO_MEMORY, "halver: taps");
}

wt_status wt__halver_create(int n_halvings, int index, bool precise, wt__halver **halver)
{
    *halver = NULL;
    wt__halver *h = calloc(1, sizeof *h);
    if (!h) return wt_fail(WT_ERR_NO_MEMORY, "halver: handle");
    wt_status status = wt_fft_create(NULL, &(wt_fft_config){.n = N, .kind = WT_FFT_REAL_TO_COMPLEX}, &h->forward);
    if (!status)
        status = wt_fft_create(NULL, &(wt_fft_config){.n = N / 2, .kind = WT_FFT_COMPLEX_TO_REAL}, &h->inverse);
    if (!status) status = wt__halve_spectrum(n_halvings, index, 0.5, h->filter); // of the fold
    if (!status && precise) status = take_taps(n_halvings, index, h);
    wt__halver_reset(h, 0);
    if (status)
        wt__halver_destroy(h);
    else
        *halver = h;
    return status;
}

void wt__halver_destroy(wt__halver *halver)
{
    if (!halver) return;
    wt_fft_destroy(halver->forward), wt_fft_destroy(halver->inverse);
    free(halver->taps);
    free(halver);
}

WT_RT void wt__halver_reset(wt__halver *halver, int phase)
{
    halver->phase = phase, halver->fill = EDGE + 2 * phase, halver->taken = halver->given = 0;
    memset(halver->in, 0, (size_t)halver->fill * sizeof(float));
}

// Four pairs at x[0], in the other order.
WT_INLINE wt_f32x8 backwards(const float *x)
{
    wt_f32x8 v;
    memcpy(&v, x, sizeof v);
    return __builtin_shuffle(v, (wt_i32x8){6, 7, 4, 5, 2, 3, 0, 1});
}

// Four numbers in that order, each twice, or as they stand.
WT_INLINE wt_f32x8 twice(const float *x, bool in_order)
{
    const wt_f32x8 v = {x[0], x[1], x[2], x[3]};
    return in_order ? __builtin_shuffle(v, (wt_i32x8){0, 0, 1, 1, 2, 2, 3, 3})
                    : __builtin_shuffle(v, (wt_i32x8){3, 3, 2, 2, 1, 1, 0, 0});
}

// z[k] = filter[k] x[k] and the conjugate of the same at N / 2 - k.
WT_CLONES static void fold(const float *filter, const float *x, float *z)
{
    const wt_f32x8 conjugate = {1, -1, 1, -1, 1, -1, 1, -1};
    for (int k = 0; k < N / 4; k += 4) {
        const int m = N / 2 - k - 3;
        wt_f32x8 v;
        memcpy(&v, x + 2 * k, sizeof v);
        v = twice(filter + k, true) * v + twice(filter + m, false) * conjugate * backwards(x + 2 * m);
        memcpy(z + 2 * k, &v, sizeof v);
    }
    z[N / 2] = 2 * filter[N / 4] * x[N / 2], z[N / 2 + 1] = 0;
}

// SUMS outputs, whose middle tap meets even[0] and those behind it.
WT_CLONES static void sum_taps(const double *taps, const double *even, const double *odd, float *out)
{
    double sums[SUMS];
    for (int i = 0; i < SUMS; i++) sums[i] = taps[0] * even[i];
    for (int k = 1; k <= WT_SOXR_HALF; k += 2) { // odd[i] lies behind even[i]
        const double *before = odd - (k + 1) / 2, *after = odd + (k - 1) / 2;
        for (int i = 0; i < SUMS; i++) sums[i] += taps[k] * (before[i] + after[i]);
    }
    for (int k = 2; k <= WT_SOXR_HALF; k += 2) {
        const double *before = even - k / 2, *after = even + k / 2;
        for (int i = 0; i < SUMS; i++) sums[i] += taps[k] * (before[i] + after[i]);
    }
    for (int i = 0; i < SUMS; i++) out[i] = (float)sums[i];
}

WT_RT static void halve_precisely(wt__halver *h)
{
    for (int i = 0; i < N / 2; i++) h->even[i] = h->in[2 * i], h->odd[i] = h->in[2 * i + 1];
    for (int i = EDGE / 2; i < EDGE / 2 + OUT; i += SUMS) sum_taps(h->taps, h->even + i, h->odd + i, h->out + i);
}

_Static_assert(OUT % SUMS == 0, "whole sums");

// A full block's outputs, `most` at most.
WT_RT static int give(wt__halver *h, int64_t most, float *out)
{
    const int n = most < OUT - h->phase ? (int)most : OUT - h->phase;
    if (h->taps) {
        halve_precisely(h);
    } else {
        wt_fft_run(h->forward, h->in, h->spectrum);
        fold(h->filter, h->spectrum, h->folded);
        wt_fft_run(h->inverse, h->folded, h->out);
    }
    memcpy(out, h->out + EDGE / 2 + h->phase, (size_t)n * sizeof *out);
    memcpy(h->in, h->in + N - 2 * EDGE, 2 * EDGE * sizeof *h->in);
    h->fill = 2 * EDGE, h->phase = 0, h->given += n;
    return n;
}

WT_RT int wt__halver_process(wt__halver *h, const float *x, int n, float *out)
{
    int made = 0;
    h->taken += n;
    while (n > 0) {
        const int part = n < N - h->fill ? n : N - h->fill;
        memcpy(h->in + h->fill, x, (size_t)part * sizeof *x);
        h->fill += part, x += part, n -= part;
        if (h->fill == N) made += give(h, OUT, out + made);
    }
    return made;
}

WT_RT int wt__halver_drain(wt__halver *h, float *out)
{
    int made = 0;
    for (int64_t left; (left = (h->taken + 1) / 2 - h->given) > 0;) {
        memset(h->in + h->fill, 0, (size_t)(N - h->fill) * sizeof *h->in);
        made += give(h, left, out + made);
    }
    return made;
}
