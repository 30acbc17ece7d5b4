// Stockham's autosort in passes of 8, 4, 2 and odd primes. A point is two vectors, re and im, of eight transforms: no
// shuffles, and the same code for any length. A transform of 2048 points fills a quarter of a megabyte, so the passes
// are few and wide.

#include "fft_double.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/simd.h>

typedef wt_f64x8 vec;

enum { MAX_PASSES = 24, LANES = WT__FFT64_LANES };

struct wt__fft64 {
    int n, n_passes, radices[MAX_PASSES];
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

size_t wt__fft64_doubles(int n)
{
    return (size_t)n * 2 * WT__FFT64_LANES;
}

wt_status wt__fft64_create(int n, wt__fft64 **fft)
{
    *fft = NULL;
    wt__fft64 *f = calloc(1, sizeof *f);
    if (!f) return wt_fail(WT_ERR_NO_MEMORY, "fft: handle");
    f->n = n;
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
    *fft = f;
    return WT_OK;
}

void wt__fft64_destroy(wt__fft64 *fft)
{
    if (!fft) return;
    free(fft->tables);
    free(fft);
}

#include "fft_double_level.h"

double *wt__fft64_run(const wt__fft64 *fft, double *x, double *work)
{
    int s = 1, rest = fft->n;
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

void wt__fft64_bins(const double *z, int n, double *re, double *im)
{
    WT_LEVEL_CALL(bins, z, n, re, im);
}

// z = X + i Y over the whole circle; stored exchanged. The parts that a real signal does not have are not read.
void wt__fft64_fold(const double *re, const double *im, int n, double *z)
{
    WT_LEVEL_CALL(fold, re, im, n, z);
}

// ---- sixteen signals in, spectra out

void wt__fft64_frames(const float *const *frames, const double *window, int n, const double *scales, double *x)
{
    WT_LEVEL_CALL(frames, frames, window, n, scales, x);
}

void wt__fft64_pairs(const double *z, int n, float *const *out, int n_out)
{
    WT_LEVEL_CALL(pairs, z, n, out, n_out);
}
