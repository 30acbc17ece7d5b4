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

typedef struct point {
    vec re, im;
} point;

WT_INLINE point add(point a, point b) { return (point){a.re + b.re, a.im + b.im}; }
WT_INLINE point sub(point a, point b) { return (point){a.re - b.re, a.im - b.im}; }
WT_INLINE point sub_i(point a, point b) { return (point){a.re + b.im, a.im - b.re}; } // a - i b
WT_INLINE point add_i(point a, point b) { return (point){a.re - b.im, a.im + b.re}; } // a + i b

WT_INLINE void dft4(point *a)
{
    const point even = add(a[0], a[2]), less = sub(a[0], a[2]), odd = add(a[1], a[3]), turn = sub(a[1], a[3]);
    a[0] = add(even, odd), a[1] = sub_i(less, turn), a[2] = sub(even, odd), a[3] = add_i(less, turn);
}

WT_CLONES static void pass8(const vec *x, vec *y, int m, int s, const double *w)
{
    const double c = 0.70710678118654752; // w_8 = c - i c
    for (int p = 0; p < m; p++, w += 14)
        for (int q = 0; q < s; q++) {
            point even[4], odd[4];
            for (int k = 0; k < 4; k++) {
                const vec *a = x + 2 * (q + s * (p + (ptrdiff_t)m * 2 * k)), *b = a + 2 * (ptrdiff_t)s * m;
                even[k] = (point){a[0], a[1]}, odd[k] = (point){b[0], b[1]};
            }
            dft4(even);
            dft4(odd);
            const point one = odd[1], three = odd[3];
            odd[1] = (point){c * (one.re + one.im), c * (one.im - one.re)};
            odd[2] = (point){odd[2].im, -odd[2].re};
            odd[3] = (point){c * (three.im - three.re), -c * (three.re + three.im)};
            vec *to = y + 2 * (q + (ptrdiff_t)s * 8 * p);
            to[0] = even[0].re + odd[0].re, to[1] = even[0].im + odd[0].im;
            for (int j = 1; j < 8; j++) {
                const point out = j < 4 ? add(even[j], odd[j]) : sub(even[j - 4], odd[j - 4]);
                put(to + 2 * (ptrdiff_t)s * j, out.re, out.im, w + 2 * (j - 1));
            }
        }
}

// 3 or 5 points: sums and differences of the k-th and the k-th last halve the work.
WT_INLINE void pass_small(const vec *x, vec *y, const int r, int m, int s, const double *w)
{
    const double *roots = w + (size_t)m * (size_t)(r - 1) * 2;
    for (int p = 0; p < m; p++, w += 2 * (r - 1))
        for (int q = 0; q < s; q++) {
            const vec *from = x + 2 * (q + (ptrdiff_t)s * p);
            vec *to = y + 2 * (q + (ptrdiff_t)s * r * p);
            const ptrdiff_t step = 2 * (ptrdiff_t)s * m;
            point sum[2], less[2], total = {from[0], from[1]};
            for (int k = 0; k < r / 2; k++) {
                const vec *a = from + step * (k + 1), *b = from + step * (r - 1 - k);
                sum[k] = (point){a[0] + b[0], a[1] + b[1]}, less[k] = (point){a[0] - b[0], a[1] - b[1]};
                total = add(total, sum[k]);
            }
            to[0] = total.re, to[1] = total.im;
            for (int j = 1; j <= r / 2; j++) {
                point even = {from[0], from[1]}, odd = {{0}, {0}};
                for (int k = 0; k < r / 2; k++) {
                    const double *turn = roots + 2 * (j * (k + 1) % r);
                    even.re += sum[k].re * turn[0], even.im += sum[k].im * turn[0];
                    odd.re += less[k].re * turn[1], odd.im += less[k].im * turn[1];
                }
                const point up = add_i(even, odd), down = sub_i(even, odd);
                put(to + 2 * (ptrdiff_t)s * j, up.re, up.im, w + 2 * (j - 1));
                put(to + 2 * (ptrdiff_t)s * (r - j), down.re, down.im, w + 2 * (r - j - 1));
            }
        }
}

WT_CLONES static void pass3(const vec *x, vec *y, int m, int s, const double *w) { pass_small(x, y, 3, m, s, w); }
WT_CLONES static void pass5(const vec *x, vec *y, int m, int s, const double *w) { pass_small(x, y, 5, m, s, w); }

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
        if (radix == 8)
            pass8(from, to, m, s, fft->twiddles[i]);
        else if (radix == 4)
            pass4(from, to, m, s, fft->twiddles[i]);
        else if (radix == 2) pass2(from, to, m, s, fft->twiddles[i]);
        else if (radix == 3)
            pass3(from, to, m, s, fft->twiddles[i]);
        else if (radix == 5)
            pass5(from, to, m, s, fft->twiddles[i]);
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

// ---- sixteen signals in, spectra out

typedef wt_f32x8 unaligned __attribute__((aligned(4), may_alias));

WT_CLONES void wt__fft64_frames(const float *const *frames, const double *window, int n, double *x)
{
    for (int half = 0; half < 2; half++, frames += WT__FFT64_LANES) {
        vec *to = (vec *)x + half;
        int i = 0;
        for (; i + 8 <= n; i += 8) {
            wt_f32x8 v[8];
            for (int f = 0; f < 8; f++) v[f] = *(const unaligned *)(frames[f] + i);
            wt_transpose_8x8(v);
            for (int k = 0; k < 8; k++) to[2 * (i + k)] = __builtin_convertvector(v[k], vec) * window[i + k];
        }
        for (; i < n; i++)
            for (int f = 0; f < 8; f++) x[i * WT__FFT64_FRAMES + half * WT__FFT64_LANES + f] = window[i] * frames[f][i];
    }
}

// Bins k of eight signals of `half`: Z = A + i B, A(k) = (Z(k) + Z*(n - k)) / 2, B(k) = (Z(k) - Z*(n - k)) / 2i.
WT_INLINE void bins_of(const vec *z, int n, int k, int half, wt_f32x8 *re, wt_f32x8 *im)
{
    const vec *a = z + 2 * k, *b = z + 2 * (k ? n - k : 0);
    *re = __builtin_convertvector(half ? 0.5 * (a[1] + b[1]) : 0.5 * (a[0] + b[0]), wt_f32x8);
    *im = __builtin_convertvector(half ? 0.5 * (b[0] - a[0]) : 0.5 * (a[1] - b[1]), wt_f32x8);
}

WT_CLONES void wt__fft64_pairs(const double *z, int n, float *const *out, int n_out)
{
    for (int half = 0; half < 2; half++) {
        const int first = half * WT__FFT64_LANES,
                  count = n_out - first < WT__FFT64_LANES ? n_out - first : WT__FFT64_LANES;
        int k = 0;
        for (; k + 4 <= n / 2 + 1; k += 4) {
            wt_f32x8 v[8];
            for (int i = 0; i < 4; i++) bins_of((const vec *)z, n, k + i, half, &v[2 * i], &v[2 * i + 1]);
            wt_transpose_8x8(v);
            for (int f = 0; f < count; f++) *(unaligned *)(out[first + f] + 2 * k) = v[f];
        }
        for (; k <= n / 2; k++) {
            wt_f32x8 re, im;
            bins_of((const vec *)z, n, k, half, &re, &im);
            for (int f = 0; f < count; f++) out[first + f][2 * k] = re[f], out[first + f][2 * k + 1] = im[f];
        }
    }
}
