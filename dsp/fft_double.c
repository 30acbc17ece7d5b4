// Stockham's autosort in passes of 4, 2 and odd primes. A point is two vectors, re and im, of eight transforms: no
// shuffles, and the same code for any length.

#include "fft_double.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/simd.h>

typedef wt_f64x8 vec;

enum { MAX_PASSES = 24 };

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
        int radix = rest % 4 == 0 ? 4 : rest % 2 == 0 ? 2 : 0;
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

WT_INLINE void put(vec *y, vec re, vec im, const double *w)
{
    y[0] = re * w[0] - im * w[1];
    y[1] = re * w[1] + im * w[0];
}

WT_CLONES static void pass2(const vec *x, vec *y, int m, int s, const double *w)
{
    for (int p = 0; p < m; p++, w += 2)
        for (int q = 0; q < s; q++) {
            const vec *a = x + 2 * (q + s * p), *b = a + 2 * s * m;
            vec *to = y + 2 * (q + s * 2 * p);
            to[0] = a[0] + b[0], to[1] = a[1] + b[1];
            put(to + 2 * s, a[0] - b[0], a[1] - b[1], w);
        }
}

WT_CLONES static void pass4(const vec *x, vec *y, int m, int s, const double *w)
{
    const int quarter = 2 * s * m;
    for (int p = 0; p < m; p++, w += 6)
        for (int q = 0; q < s; q++) {
            const vec *a = x + 2 * (q + s * p), *b = a + quarter, *c = b + quarter, *d = c + quarter;
            vec *to = y + 2 * (q + s * 4 * p);
            vec ac_re = a[0] + c[0], ac_im = a[1] + c[1], ca_re = a[0] - c[0], ca_im = a[1] - c[1];
            vec bd_re = b[0] + d[0], bd_im = b[1] + d[1], db_re = b[0] - d[0], db_im = b[1] - d[1];
            to[0] = ac_re + bd_re, to[1] = ac_im + bd_im;
            put(to + 2 * s, ca_re + db_im, ca_im - db_re, w);
            put(to + 4 * s, ac_re - bd_re, ac_im - bd_im, w + 2);
            put(to + 6 * s, ca_re - db_im, ca_im + db_re, w + 4);
        }
}

WT_CLONES static void pass_odd(const vec *x, vec *y, int r, int m, int s, const double *w)
{
    const double *roots = w + (size_t)m * (size_t)(r - 1) * 2;
    for (int p = 0; p < m; p++, w += 2 * (r - 1))
        for (int q = 0; q < s; q++)
            for (int j = 0; j < r; j++) {
                vec re = {0}, im = {0};
                for (int k = 0; k < r; k++) {
                    const vec *a = x + 2 * (q + s * (p + (size_t)m * k));
                    const double *turn = roots + 2 * ((int64_t)j * k % r);
                    re += a[0] * turn[0] - a[1] * turn[1];
                    im += a[0] * turn[1] + a[1] * turn[0];
                }
                vec *to = y + 2 * (q + (size_t)s * (r * p + j));
                if (j) put(to, re, im, w + 2 * (j - 1));
                else to[0] = re, to[1] = im;
            }
}

double *wt__fft64_run(const wt__fft64 *fft, double *x, double *work)
{
    int s = 1, rest = fft->n;
    for (int i = 0; i < fft->n_passes; i++) {
        const int radix = fft->radices[i], m = rest / radix;
        const vec *from = (const vec *)x;
        vec *to = (vec *)work;
        if (radix == 4) pass4(from, to, m, s, fft->twiddles[i]);
        else if (radix == 2) pass2(from, to, m, s, fft->twiddles[i]);
        else pass_odd(from, to, radix, m, s, fft->twiddles[i]);
        double *other = x;
        x = work, work = other;
        s *= radix, rest = m;
    }
    return x;
}

WT_CLONES void wt__fft64_bins(const double *z, int n, double *re, double *im)
{
    for (int k = 0; k <= n / 2; k++) {
        const vec *a = (const vec *)z + 2 * k, *b = (const vec *)z + 2 * (k ? n - k : 0);
        vec *to_re = (vec *)re + 2 * k, *to_im = (vec *)im + 2 * k;
        to_re[0] = 0.5 * (a[0] + b[0]), to_im[0] = 0.5 * (a[1] - b[1]);
        to_re[1] = 0.5 * (a[1] + b[1]), to_im[1] = 0.5 * (b[0] - a[0]);
    }
}

// z = X + i Y over the whole circle; stored exchanged. The parts that a real signal does not have are not read.
WT_CLONES void wt__fft64_fold(const double *re, const double *im, int n, double *z)
{
    for (int k = 0; k <= n / 2; k++) {
        const vec *from_re = (const vec *)re + 2 * k, *from_im = (const vec *)im + 2 * k;
        const bool real = k == 0 || 2 * k == n;
        const vec none = {0}, x_im = real ? none : from_im[0], y_im = real ? none : from_im[1];
        vec *a = (vec *)z + 2 * k, *b = (vec *)z + 2 * (k ? n - k : 0);
        b[1] = from_re[0] + y_im, b[0] = from_re[1] - x_im;
        a[1] = from_re[0] - y_im, a[0] = from_re[1] + x_im;
    }
}
