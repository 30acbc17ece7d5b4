// Text of each level (simd_levels.inc): the passes of a transform in double. A point's eight real parts, then its eight
// imaginary ones, are as many vectors as they need: a vector's `lane` is the first of its lanes.
#ifndef WT_LEVEL
#    define WT_LEVEL_TEXT "fft_double_level.h"
#    include <warptone/simd_levels.inc>
#else

#    define F64S       (WT_LEVEL_BYTES / 8)
#    define vec        WT_LEVEL(vec)
#    define point      WT_LEVEL(point)
#    define get        WT_LEVEL(get)
#    define set        WT_LEVEL(set)
#    define put        WT_LEVEL(put)
#    define add        WT_LEVEL(add)
#    define sub        WT_LEVEL(sub)
#    define add_i      WT_LEVEL(add_i)
#    define sub_i      WT_LEVEL(sub_i)
#    define dft4       WT_LEVEL(dft4)
#    define pass_small WT_LEVEL(pass_small)
#    define bins_of    WT_LEVEL(bins_of)
#    define half_of    WT_LEVEL(half_of)
#    define put_wide   WT_LEVEL(put_wide)
#    define put_power  WT_LEVEL(put_power)
#    define frames_by  WT_LEVEL(frames_by)

typedef double vec __attribute__((vector_size(WT_LEVEL_BYTES), may_alias));

typedef struct point {
    vec re, im;
} point;

// Point k from the one at x, of the lanes there.
WT_INLINE point get(const double *x, ptrdiff_t k)
{
    return (point){*(const vec *)(x + 2 * LANES * k), *(const vec *)(x + 2 * LANES * k + LANES)};
}

WT_INLINE void set(double *y, ptrdiff_t k, point a)
{
    *(vec *)(y + 2 * LANES * k) = a.re, *(vec *)(y + 2 * LANES * k + LANES) = a.im;
}

// a w
WT_INLINE void put(double *y, ptrdiff_t k, point a, const double *w)
{
    *(vec *)(y + 2 * LANES * k) = a.re * w[0] - a.im * w[1];
    *(vec *)(y + 2 * LANES * k + LANES) = a.re * w[1] + a.im * w[0];
}

WT_INLINE point add(point a, point b) { return (point){a.re + b.re, a.im + b.im}; }
WT_INLINE point sub(point a, point b) { return (point){a.re - b.re, a.im - b.im}; }
WT_INLINE point sub_i(point a, point b) { return (point){a.re + b.im, a.im - b.re}; } // a - i b
WT_INLINE point add_i(point a, point b) { return (point){a.re - b.im, a.im + b.re}; } // a + i b

WT_INLINE void dft4(point *a)
{
    const point even = add(a[0], a[2]), less = sub(a[0], a[2]), odd = add(a[1], a[3]), turn = sub(a[1], a[3]);
    a[0] = add(even, odd), a[1] = sub_i(less, turn), a[2] = sub(even, odd), a[3] = add_i(less, turn);
}

static void WT_LEVEL(pass2)(const double *x, double *y, int m, int s, const double *w)
{
    for (int p = 0; p < m; p++, w += 2)
        for (int q = 0; q < s; q++)
            for (int lane = 0; lane < LANES; lane += F64S) {
                const double *from = x + lane + 2 * LANES * (q + (ptrdiff_t)s * p);
                double *to = y + lane + 2 * LANES * (q + (ptrdiff_t)s * 2 * p);
                const point a = get(from, 0), b = get(from, (ptrdiff_t)s * m);
                set(to, 0, add(a, b));
                put(to, s, sub(a, b), w);
            }
}

static void WT_LEVEL(pass4)(const double *x, double *y, int m, int s, const double *w)
{
    const ptrdiff_t quarter = (ptrdiff_t)s * m;
    for (int p = 0; p < m; p++, w += 6)
        for (int q = 0; q < s; q++)
            for (int lane = 0; lane < LANES; lane += F64S) {
                const double *from = x + lane + 2 * LANES * (q + (ptrdiff_t)s * p);
                double *to = y + lane + 2 * LANES * (q + (ptrdiff_t)s * 4 * p);
                point a[4];
                for (int k = 0; k < 4; k++) a[k] = get(from, quarter * k);
                dft4(a);
                set(to, 0, a[0]);
                for (int j = 1; j < 4; j++) put(to, (ptrdiff_t)s * j, a[j], w + 2 * (j - 1));
            }
}

static void WT_LEVEL(pass8)(const double *x, double *y, int m, int s, const double *w)
{
    const double c = 0.70710678118654752; // w_8 = c - i c
    const ptrdiff_t eighth = (ptrdiff_t)s * m;
    for (int p = 0; p < m; p++, w += 14)
        for (int q = 0; q < s; q++)
            for (int lane = 0; lane < LANES; lane += F64S) {
                const double *from = x + lane + 2 * LANES * (q + (ptrdiff_t)s * p);
                double *to = y + lane + 2 * LANES * (q + (ptrdiff_t)s * 8 * p);
                point even[4], odd[4];
                for (int k = 0; k < 4; k++)
                    even[k] = get(from, eighth * 2 * k), odd[k] = get(from, eighth * (2 * k + 1));
                dft4(even);
                dft4(odd);
                const point one = odd[1], three = odd[3];
                odd[1] = (point){c * (one.re + one.im), c * (one.im - one.re)};
                odd[2] = (point){odd[2].im, -odd[2].re};
                odd[3] = (point){c * (three.im - three.re), -c * (three.re + three.im)};
                set(to, 0, add(even[0], odd[0]));
                for (int j = 1; j < 8; j++)
                    put(to, (ptrdiff_t)s * j, j < 4 ? add(even[j], odd[j]) : sub(even[j - 4], odd[j - 4]),
                        w + 2 * (j - 1));
            }
}

// 3 or 5 points: sums and differences of the k-th and the k-th last halve the work.
WT_INLINE void pass_small(const double *x, double *y, const int r, int m, int s, const double *w)
{
    const double *roots = w + (size_t)m * (size_t)(r - 1) * 2;
    const ptrdiff_t step = (ptrdiff_t)s * m;
    for (int p = 0; p < m; p++, w += 2 * (r - 1))
        for (int q = 0; q < s; q++)
            for (int lane = 0; lane < LANES; lane += F64S) {
                const double *from = x + lane + 2 * LANES * (q + (ptrdiff_t)s * p);
                double *to = y + lane + 2 * LANES * (q + (ptrdiff_t)s * r * p);
                const point first = get(from, 0);
                point sum[2], less[2], total = first;
                for (int k = 0; k < r / 2; k++) {
                    const point a = get(from, step * (k + 1)), b = get(from, step * (r - 1 - k));
                    sum[k] = add(a, b), less[k] = sub(a, b);
                    total = add(total, sum[k]);
                }
                set(to, 0, total);
                for (int j = 1; j <= r / 2; j++) {
                    point even = first, odd = {{0}, {0}};
                    for (int k = 0; k < r / 2; k++) {
                        const double *turn = roots + 2 * (j * (k + 1) % r);
                        even.re += sum[k].re * turn[0], even.im += sum[k].im * turn[0];
                        odd.re += less[k].re * turn[1], odd.im += less[k].im * turn[1];
                    }
                    put(to, (ptrdiff_t)s * j, add_i(even, odd), w + 2 * (j - 1));
                    put(to, (ptrdiff_t)s * (r - j), sub_i(even, odd), w + 2 * (r - j - 1));
                }
            }
}

static void WT_LEVEL(pass3)(const double *x, double *y, int m, int s, const double *w) { pass_small(x, y, 3, m, s, w); }
static void WT_LEVEL(pass5)(const double *x, double *y, int m, int s, const double *w) { pass_small(x, y, 5, m, s, w); }

static void WT_LEVEL(pass_odd)(const double *x, double *y, int r, int m, int s, const double *w)
{
    const double *roots = w + (size_t)m * (size_t)(r - 1) * 2;
    for (int p = 0; p < m; p++, w += 2 * (r - 1))
        for (int q = 0; q < s; q++)
            for (int lane = 0; lane < LANES; lane += F64S) {
                const double *from = x + lane + 2 * LANES * (q + (ptrdiff_t)s * p);
                double *to = y + lane + 2 * LANES * (q + (ptrdiff_t)s * r * p);
                for (int j = 0; j < r; j++) {
                    point sum = {{0}, {0}};
                    for (int k = 0; k < r; k++) {
                        const point a = get(from, (ptrdiff_t)s * m * k);
                        const double *turn = roots + 2 * ((int64_t)j * k % r);
                        sum.re += a.re * turn[0] - a.im * turn[1];
                        sum.im += a.re * turn[1] + a.im * turn[0];
                    }
                    if (j)
                        put(to, (ptrdiff_t)s * j, sum, w + 2 * (j - 1));
                    else
                        set(to, 0, sum);
                }
            }
}

static void WT_LEVEL(bins)(const double *z, int n, double *re, double *im)
{
    for (int k = 0; k <= n / 2; k++)
        for (int lane = 0; lane < LANES; lane += F64S) {
            const point a = get(z + lane, k), b = get(z + lane, k ? n - k : 0);
            set(re + lane, k, (point){0.5 * (a.re + b.re), 0.5 * (a.im + b.im)});
            set(im + lane, k, (point){0.5 * (a.im - b.im), 0.5 * (b.re - a.re)});
        }
}

// Powers of a number of each lane, times `scales`, rounded once.
WT_INLINE void put_power(vec re, vec im, const double *scales, float *out)
{
    const vec power = (re * re + im * im) * *(const vec *)scales;
    for (int i = 0; i < F64S; i++) out[i] = (float)power[i];
}

static void WT_LEVEL(powers)(const double *z, int n, const double *scales, float *out)
{
    for (int k = 0; k <= n / 2; k++, out += 2 * LANES)
        for (int lane = 0; lane < LANES; lane += F64S) {
            const point a = get(z + lane, k), b = get(z + lane, k ? n - k : 0);
            put_power(a.re + b.re, a.im - b.im, scales + lane, out + lane);
            put_power(a.im + b.im, b.re - a.re, scales + LANES + lane, out + LANES + lane);
        }
}

static void WT_LEVEL(fold)(const double *re, const double *im, int n, double *z)
{
    for (int k = 0; k <= n / 2; k++)
        for (int lane = 0; lane < LANES; lane += F64S) {
            const point x = get(re + lane, k), none = {{0}, {0}};
            const point y = k == 0 || 2 * k == n ? none : get(im + lane, k);
            set(z + lane, k ? n - k : 0, (point){x.im - y.re, x.re + y.im});
            set(z + lane, k, (point){x.im + y.re, x.re - y.im});
        }
}

typedef wt_f32x8 WT_LEVEL(unaligned) __attribute__((aligned(4), may_alias));

// w v, times the lanes' scales where there are such.
WT_INLINE void put_wide(double *to, wt_f32x8 v, double w, const double *scales)
{
#    if WT_LEVEL_BYTES == 64
    vec wide = __builtin_convertvector(v, vec) * w;
    if (scales) wide *= *(const vec *)scales;
    *(vec *)to = wide;
#    else
    const wt_f32x4 low = __builtin_shufflevector(v, v, 0, 1, 2, 3), high = __builtin_shufflevector(v, v, 4, 5, 6, 7);
    wt_f64x4 a = __builtin_convertvector(low, wt_f64x4) * w, b = __builtin_convertvector(high, wt_f64x4) * w;
    if (scales) a *= *(const wt_f64x4 *)scales, b *= *(const wt_f64x4 *)(scales + 4);
    *(wt_f64x4 *)to = a;
    *(wt_f64x4 *)(to + 4) = b;
#    endif
}

WT_INLINE void frames_by(const float *const *frames, const double *window, int n, const double *scales, double *x)
{
    for (int half = 0; half < 2; half++, frames += LANES) {
        const double *own = scales ? scales + half * LANES : NULL;
        double *to = x + half * LANES;
        int i = 0;
        for (; i + 8 <= n; i += 8) {
            wt_f32x8 v[8];
            for (int f = 0; f < 8; f++) v[f] = *(const WT_LEVEL(unaligned) *)(frames[f] + i);
            wt_transpose_8x8(v);
            for (int k = 0; k < 8; k++) put_wide(to + 2 * LANES * (i + k), v[k], window[i + k], own);
        }
        for (; i < n; i++)
            for (int f = 0; f < 8; f++) to[2 * LANES * i + f] = window[i] * frames[f][i] * (own ? own[f] : 1);
    }
}

static void WT_LEVEL(frames)(const float *const *frames, const double *window, int n, const double *scales, double *x)
{
    if (scales)
        frames_by(frames, window, n, scales, x);
    else
        frames_by(frames, window, n, NULL, x);
}

// Half of a + b or a - b, of eight lanes, rounded once.
WT_INLINE wt_f32x8 half_of(const double *a, const double *b, const bool less)
{
#    if WT_LEVEL_BYTES == 64
    const vec x = *(const vec *)a, y = *(const vec *)b;
    return __builtin_convertvector(0.5 * (less ? x - y : x + y), wt_f32x8);
#    else
    wt_f32x4 part[2];
    for (int i = 0; i < 2; i++) {
        const wt_f64x4 x = *(const wt_f64x4 *)(a + 4 * i), y = *(const wt_f64x4 *)(b + 4 * i);
        part[i] = __builtin_convertvector(0.5 * (less ? x - y : x + y), wt_f32x4);
    }
    return __builtin_shufflevector(part[0], part[1], 0, 1, 2, 3, 4, 5, 6, 7);
#    endif
}

// Bins k of eight signals of `half`: Z = A + i B, A(k) = (Z(k) + Z*(n - k)) / 2, B(k) = (Z(k) - Z*(n - k)) / 2i.
WT_INLINE void bins_of(const double *z, int n, int k, int half, wt_f32x8 *re, wt_f32x8 *im)
{
    const double *a = z + 2 * LANES * k, *b = z + 2 * LANES * (k ? n - k : 0);
    *re = half_of(a + LANES * half, b + LANES * half, false);
    *im = half ? half_of(b, a, true) : half_of(a + LANES, b + LANES, true);
}

static void WT_LEVEL(pairs)(const double *z, int n, float *const *out, int n_out)
{
    for (int half = 0; half < 2; half++) {
        const int first = half * LANES, count = n_out - first < LANES ? n_out - first : LANES;
        int k = 0;
        for (; k + 4 <= n / 2 + 1; k += 4) {
            wt_f32x8 v[8];
            for (int i = 0; i < 4; i++) bins_of(z, n, k + i, half, &v[2 * i], &v[2 * i + 1]);
            wt_transpose_8x8(v);
            for (int f = 0; f < count; f++) *(WT_LEVEL(unaligned) *)(out[first + f] + 2 * k) = v[f];
        }
        for (; k <= n / 2; k++) {
            wt_f32x8 re, im;
            bins_of(z, n, k, half, &re, &im);
            for (int f = 0; f < count; f++) out[first + f][2 * k] = re[f], out[first + f][2 * k + 1] = im[f];
        }
    }
}

#    undef F64S
#    undef vec
#    undef point
#    undef get
#    undef set
#    undef put
#    undef add
#    undef sub
#    undef add_i
#    undef sub_i
#    undef dft4
#    undef pass_small
#    undef bins_of
#    undef half_of
#    undef put_wide
#    undef put_power
#    undef frames_by
#endif
