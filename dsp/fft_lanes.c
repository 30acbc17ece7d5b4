// Stockham's passes as in fft_passes.h, but each number is a vector of eight transforms, so nothing is shuffled. A
// complex transform carries two real signals, parted at the end by symmetry. The radices are 4 and primes.

#include "fft_lanes.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/simd.h>

enum { MAX_PASSES = 32 };

typedef struct pass {
    int radix, m, s;      // m twiddle groups of s neighbours
    size_t twiddles;      // [m][radix][2] from the start of the tables
    size_t roots;         // [radix][2]
} pass;

struct wt__fft_lanes {
    int n, n_passes;
    pass passes[MAX_PASSES];
    double *tables;
    wt_f64x8 *work[2]; // [2][n] real parts, imaginary parts
};

static int next_radix(int n)
{
    if (n % 4 == 0) return 4;
    for (int p = 2; p * p <= n; p++)
        if (n % p == 0) return p;
    return n;
}

static void root(int64_t k, int n, double *pair)
{
    const double angle = -2 * 3.14159265358979323846 * (double)(k % n) / n;
    pair[0] = cos(angle);
    pair[1] = sin(angle);
}

static size_t lay_passes(wt__fft_lanes *f)
{
    size_t count = 0;
    int s = 1;
    for (int rest = f->n; rest > 1;) {
        const int radix = next_radix(rest), m = rest / radix;
        f->passes[f->n_passes++] = (pass){radix, m, s, count, count + 2 * (size_t)rest};
        count += 2 * (size_t)rest + 2 * (size_t)radix;
        rest = m;
        s *= radix;
    }
    return count;
}

wt_status wt__fft_lanes_create(int n, wt__fft_lanes **plan)
{
    *plan = NULL;
    wt__fft_lanes *f = calloc(1, sizeof *f);
    if (!f) return wt_fail(WT_ERR_NO_MEMORY, "fft: handle");
    f->n = n;
    const size_t count = lay_passes(f), bytes = 2 * (size_t)n * sizeof(wt_f64x8);
    f->tables = malloc((count + 1) * sizeof(double));
    for (int k = 0; k < 2; k++) f->work[k] = aligned_alloc(64, bytes);
    if (!f->tables || !f->work[0] || !f->work[1]) {
        wt__fft_lanes_destroy(f);
        return wt_fail(WT_ERR_NO_MEMORY, "fft: %d points in double", n);
    }
    memset(f->work[0], 0, bytes);
    for (int k = 0; k < f->n_passes; k++) {
        const pass *p = &f->passes[k];
        for (int i = 0; i < p->m; i++)
            for (int j = 0; j < p->radix; j++)
                root((int64_t)i * j, p->m * p->radix, f->tables + p->twiddles + 2 * (size_t)(i * p->radix + j));
        for (int j = 0; j < p->radix; j++) root(j, p->radix, f->tables + p->roots + 2 * (size_t)j);
    }
    *plan = f;
    return WT_OK;
}

void wt__fft_lanes_destroy(wt__fft_lanes *plan)
{
    if (!plan) return;
    free(plan->tables);
    free(plan->work[0]);
    free(plan->work[1]);
    free(plan);
}

double *wt__fft_lanes_input(wt__fft_lanes *plan)
{
    return (double *)plan->work[0];
}

// ---- passes

typedef struct planes {
    wt_f64x8 *re, *im;
} planes;

WT_INLINE void put(planes y, int at, wt_f64x8 re, wt_f64x8 im, const double *w)
{
    y.re[at] = re * w[0] - im * w[1];
    y.im[at] = re * w[1] + im * w[0];
}

WT_CLONES static void pass4(const pass *pass, const double *twiddles, planes x, planes y)
{
    const int m = pass->m, s = pass->s, quarter = m * s;
    for (int p = 0; p < m; p++, twiddles += 8)
        for (int q = 0; q < s; q++) {
            const int i = q + s * p, at = q + 4 * s * p;
            const wt_f64x8 a_re = x.re[i], a_im = x.im[i], b_re = x.re[i + quarter], b_im = x.im[i + quarter];
            const wt_f64x8 c_re = x.re[i + 2 * quarter], c_im = x.im[i + 2 * quarter];
            const wt_f64x8 d_re = x.re[i + 3 * quarter], d_im = x.im[i + 3 * quarter];
            const wt_f64x8 even_re = a_re + c_re, even_im = a_im + c_im, odd_re = b_re + d_re, odd_im = b_im + d_im;
            const wt_f64x8 less_re = a_re - c_re, less_im = a_im - c_im, turn_re = b_im - d_im, turn_im = d_re - b_re;
            y.re[at] = even_re + odd_re;
            y.im[at] = even_im + odd_im;
            put(y, at + s, less_re + turn_re, less_im + turn_im, twiddles + 2);
            put(y, at + 2 * s, even_re - odd_re, even_im - odd_im, twiddles + 4);
            put(y, at + 3 * s, less_re - turn_re, less_im - turn_im, twiddles + 6);
        }
}

WT_CLONES static void pass_prime(const pass *pass, const double *twiddles, const double *roots, planes x, planes y)
{
    const int r = pass->radix, m = pass->m, s = pass->s;
    for (int p = 0; p < m; p++, twiddles += 2 * r)
        for (int j = 0; j < r; j++)
            for (int q = 0; q < s; q++) {
                wt_f64x8 re = x.re[q + s * p], im = x.im[q + s * p];
                for (int k = 1, turn = j; k < r; k++, turn = turn + j < r ? turn + j : turn + j - r) {
                    const double c = roots[2 * turn], d = roots[2 * turn + 1];
                    const wt_f64x8 a = x.re[q + s * p + k * m * s], b = x.im[q + s * p + k * m * s];
                    re += a * c - b * d;
                    im += a * d + b * c;
                }
                put(y, q + s * (r * p + j), re, im, twiddles + 2 * j);
            }
}

// Z = A + i B of two real signals: A(k) = (Z(k) + Z*(n - k)) / 2, B(k) = (Z(k) - Z*(n - k)) / 2i.
WT_CLONES static void part(planes z, int n, float *const *out, int n_out)
{
    for (int k = 0; k <= n / 2; k++) {
        const int mirror = k ? n - k : 0;
        const wt_f64x8 a_re = (z.re[k] + z.re[mirror]) / 2, a_im = (z.im[k] - z.im[mirror]) / 2;
        const wt_f64x8 b_re = (z.im[k] + z.im[mirror]) / 2, b_im = (z.re[mirror] - z.re[k]) / 2;
        for (int s = 0; s < n_out; s++) {
            const int lane = s % WT__FFT_LANES;
            out[s][2 * k] = (float)(s < WT__FFT_LANES ? a_re[lane] : b_re[lane]);
            out[s][2 * k + 1] = (float)(s < WT__FFT_LANES ? a_im[lane] : b_im[lane]);
        }
    }
}

WT_RT void wt__fft_lanes_run(wt__fft_lanes *f, float *const *out, int n_out)
{
    planes x = {f->work[0], f->work[0] + f->n}, y = {f->work[1], f->work[1] + f->n};
    for (int k = 0; k < f->n_passes; k++) {
        const pass *p = &f->passes[k];
        if (p->radix == 4)
            pass4(p, f->tables + p->twiddles, x, y);
        else
            pass_prime(p, f->tables + p->twiddles, f->tables + p->roots, x, y);
        const planes t = x;
        x = y, y = t;
    }
    part(x, f->n, out, n_out);
}
