// Stockham's autosort in passes of 8, 4, 2 and odd primes. A point is two vectors, re and im, of eight transforms: no
// shuffles, and the same code for any length. A transform of 2048 points fills a quarter of a megabyte, so the passes
// are few and wide.
//
// Lengths with a prime factor above MOST_ODD go by Bluestein's algorithm: with w_k = exp(-pi i k^2 / n) it is
// w_k times the convolution of x_j w_j with the conjugate of w, which transforms of at least 2 n - 1 points do.

#include "fft_double.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/simd.h>

typedef wt_f64x8 vec;

enum { MAX_PASSES = 24, LANES = WT__FFT64_LANES, MOST_ODD = 31 };

struct wt__fft64 {
    int n, n_passes, radices[MAX_PASSES];
    int points;                   // of the passes: n, or of Bluestein's algorithm more
    double *chirp;                // [n][2], NULL without it
    double *filter;               // [points][2] the convolution's, over its points
    double *tables;               // the passes' twiddles [m][radix - 1][2], then for odd ones the roots [radix][2]
    double *twiddles[MAX_PASSES];
};

static void root(int64_t turn, int64_t of, double *pair)
{
    const double angle = -2 * 3.14159265358979323846 * (double)(turn % of) / (double)of;
    pair[0] = cos(angle), pair[1] = sin(angle);
}

// Eights, and fours for the last two or four factors of two.
static int even_radix(int n)
{
    int twos = 0;
    for (; n % 2 == 0; n /= 2) twos++;
    return twos == 2 || twos == 4 ? 4 : twos >= 3 ? 8 : twos ? 2 : 0;
}

#include "fft_double_level.h"

static double *run_passes(const wt__fft64 *fft, double *x, double *work)
{
    int s = 1, rest = fft->points;
    for (int i = 0; i < fft->n_passes; i++) {
        const int radix = fft->radices[i], m = rest / radix;
        if (radix == 8)
            WT_LEVEL_CALL(pass8, x, work, m, s, fft->twiddles[i]);
        else if (radix == 4)
            WT_LEVEL_CALL(pass4, x, work, m, s, fft->twiddles[i]);
        else if (radix == 2) WT_LEVEL_CALL(pass2, x, work, m, s, fft->twiddles[i]);
        else if (radix == 3)
            WT_LEVEL_CALL(pass3, x, work, m, s, fft->twiddles[i]);
        else if (radix == 5)
            WT_LEVEL_CALL(pass5, x, work, m, s, fft->twiddles[i]);
        else WT_LEVEL_CALL(pass_odd, x, work, radix, m, s, fft->twiddles[i]);
        double *other = x;
        x = work, work = other;
        s *= radix, rest = m;
    }
    return x;
}

// n without factors up to `most`.
static int without(int n, int most)
{
    for (int p = 2; p <= most; p++)
        while (n % p == 0) n /= p;
    return n;
}

static int points_of(int n)
{
    int points = n;
    if (without(n, MOST_ODD) > 1)
        for (points = 2 * n - 1; without(points, 5) > 1;) points++;
    return points;
}

size_t wt__fft64_doubles(int n)
{
    return (size_t)points_of(n) * 2 * WT__FFT64_LANES;
}

static wt_status make_filter(wt__fft64 *f)
{
    const size_t points = (size_t)f->points, bytes = points * 2 * LANES * sizeof(double);
    f->chirp = malloc((size_t)f->n * 2 * sizeof(double));
    f->filter = malloc(points * 2 * sizeof(double));
    double *x = aligned_alloc(64, bytes), *work = aligned_alloc(64, bytes);
    const bool taken = f->chirp && f->filter && x && work;
    if (taken) {
        memset(x, 0, bytes);
        for (int64_t k = 0; k < f->n; k++) {
            double *w = f->chirp + 2 * k;
            root(k * k % (2 * (int64_t)f->n), 2 * (int64_t)f->n, w);
            const int64_t places[2] = {k, k ? f->points - k : 0};
            for (int i = 0; i < 2; i++)
                x[places[i] * 2 * LANES] = w[0], x[places[i] * 2 * LANES + LANES] = -w[1];
        }
        const double *z = run_passes(f, x, work);
        for (size_t k = 0; k < points; k++)
            for (int part = 0; part < 2; part++)
                f->filter[2 * k + (size_t)part] = z[k * 2 * LANES + (size_t)part * LANES] / (double)points;
    }
    free(x), free(work);
    return taken ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "fft: %d points in double", f->points);
}

wt_status wt__fft64_create(int n, wt__fft64 **fft)
{
    *fft = NULL;
    wt__fft64 *f = calloc(1, sizeof *f);
    if (!f) return wt_fail(WT_ERR_NO_MEMORY, "fft: handle");
    f->n = n, f->points = points_of(n);
    n = f->points;
    size_t doubles = 2;
    for (int rest = n, prime = 3; rest > 1; rest /= f->radices[f->n_passes - 1]) {
        int radix = even_radix(rest);
        for (; !radix; prime += 2)
            if (rest % prime == 0) radix = prime, prime -= 2;
        f->radices[f->n_passes++] = radix;
        doubles += (size_t)(rest / radix) * (size_t)(radix - 1) * 2 + (size_t)radix * 2;
    }
    f->tables = malloc(doubles * sizeof *f->tables);
    if (!f->tables) {
        free(f);
        return wt_fail(WT_ERR_NO_MEMORY, "fft: %zu doubles of tables", doubles);
    }
    double *at = f->tables;
    for (int i = 0, rest = n; i < f->n_passes; rest /= f->radices[i++]) {
        const int radix = f->radices[i], m = rest / radix;
        f->twiddles[i] = at;
        for (int p = 0; p < m; p++)
            for (int j = 1; j < radix; j++, at += 2) root((int64_t)p * j, rest, at);
        for (int k = 0; k < radix; k++, at += 2) root(k, radix, at);
    }
    wt_status status = f->points == f->n ? WT_OK : make_filter(f);
    if (status)
        wt__fft64_destroy(f);
    else
        *fft = f;
    return status;
}

void wt__fft64_destroy(wt__fft64 *fft)
{
    if (!fft) return;
    free(fft->tables);
    free(fft->chirp);
    free(fft->filter);
    free(fft);
}

// y = x times w [n][2], zeros behind them up to `points`; `swap`: parts exchanged.
WT_CLONES static void multiply(const double *x, const double *w, int n, int points, bool swap, double *y)
{
    for (int k = 0; k < n; k++, w += 2)
        for (int lane = 0; lane < LANES; lane++) {
            const double re = x[2 * LANES * k + lane], im = x[2 * LANES * k + LANES + lane];
            const double product[2] = {re * w[0] - im * w[1], re * w[1] + im * w[0]};
            y[2 * LANES * k + lane] = product[swap], y[2 * LANES * k + LANES + lane] = product[!swap];
        }
    memset(y + 2 * LANES * (ptrdiff_t)n, 0, (size_t)(points - n) * 2 * LANES * sizeof *y);
}

// x times w, x with its parts exchanged.
WT_CLONES static void multiply_back(double *x, const double *w, int n)
{
    for (int k = 0; k < n; k++, w += 2, x += 2 * LANES)
        for (int lane = 0; lane < LANES; lane++) {
            const double re = x[LANES + lane], im = x[lane];
            x[lane] = re * w[0] - im * w[1], x[LANES + lane] = re * w[1] + im * w[0];
        }
}

double *wt__fft64_run(const wt__fft64 *fft, double *x, double *work)
{
    if (!fft->chirp) return run_passes(fft, x, work);
    multiply(x, fft->chirp, fft->n, fft->points, false, x);
    double *z = run_passes(fft, x, work);
    multiply(z, fft->filter, fft->points, fft->points, true, z);
    z = run_passes(fft, z, z == x ? work : x);
    multiply_back(z, fft->chirp, fft->n);
    return z;
}

void wt__fft64_bins(const double *z, int n, double *re, double *im)
{
    WT_LEVEL_CALL(bins, z, n, re, im);
}

void wt__fft64_powers(const double *z, int n, const double *scales, float *out)
{
    _Alignas(64) double quarters[WT__FFT64_FRAMES]; // of halved sums' squares
    for (int f = 0; f < WT__FFT64_FRAMES; f++) quarters[f] = 0.25 * scales[f];
    WT_LEVEL_CALL(powers, z, n, quarters, out);
}

// z = X + i Y over the whole circle; stored exchanged. The parts that a real signal does not have are not read.
void wt__fft64_fold(const double *re, const double *im, int n, double *z)
{
    WT_LEVEL_CALL(fold, re, im, n, z);
}

// ---- sixteen signals in, spectra out

// The largest size; not finite where a sample is not. Bits of sizes lie in their order, those behind infinity's too.
WT_CLONES static float peak_of(const float *x, int n)
{
    int32_t most = 0;
    for (int i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= INT32_MAX;
        most = bits > most ? bits : most;
    }
    float peak;
    memcpy(&peak, &most, sizeof peak);
    return peak;
}

void wt__fft64_level(const float **frames, int n, const float *silence, wt__fft64_scales *to, wt__fft64_scales *back)
{
    for (int f = 0; f < WT__FFT64_FRAMES; f++) {
        const double peak = frames[f] == silence ? 0 : peak_of(frames[f], n);
        int exponent;
        to->by[f] = 1, back->by[f] = 0;
        if (!isfinite(peak)) {
            frames[f] = silence, back->by[f] = NAN;
        } else if (peak > 0) {
            frexp(peak, &exponent);
            to->by[f] = ldexp(1, -exponent), back->by[f] = 1 / to->by[f];
        }
    }
}

void wt__fft64_frames(const float *const *frames, const double *window, int n, const double *scales, double *x)
{
    WT_LEVEL_CALL(frames, frames, window, n, scales, x);
}

void wt__fft64_pairs(const double *z, int n, float *const *out, int n_out)
{
    WT_LEVEL_CALL(pairs, z, n, out, n_out);
}
