// The passes of the CPU's transform, a template: the including file sets the instruction set and LANES.
//
// Stockham's autosort in split format. A transform of length n = r * m, among s interleaved ones, takes one pass:
//
//     y[q + s (r p + j)] = w_n^(p j)  sum over k of w_r^(j k) x[q + s (p + m k)]      p < m, q < s, j < r
//
// and goes on with length m among s r. From the second pass on s is at least LANES, so vectors run along q, loads and
// stores are contiguous and a twiddle factor is one broadcast number. The first pass has s = 1: its vectors run along
// p, and its stores are transposed, LANES by LANES numbers at a time. Remainders are done by a last vector that
// overlaps the one before: a pass never works in place. Transforms too short for that run LANES at a
// time, interleaved: s begins at LANES and all passes are alike.
//
// Three passes of 16, 8 and 8 are the exception: the first one's rows p of 16 numbers, 8 by 8 of them, are stored
// turned, row p1 + 8 p0 at p0 + 8 p1. Then either pass that follows finds the rows it takes where it leaves what it
// makes of them, and the order at the end is the right one. That halves what a transform touches.
//
// The inverse is the forward transform with real and imaginary parts exchanged on both sides, which costs nothing.

#include "fft_internal.h"

#include <warptone/simd.h>

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int ivec __attribute__((vector_size(4 * LANES)));
typedef float uvec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef struct cvec {
    vec re, im;
} cvec;

#if LANES == 16
#    define LOW_HALF  {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23}
#    define HIGH_HALF {8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31}
#    define EVEN      {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30}
#    define ODD       {1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31}
#    define REVERSE   {15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}
#    define TURN      {16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}
#elif LANES == 8
#    define LOW_HALF  {0, 8, 1, 9, 2, 10, 3, 11}
#    define HIGH_HALF {4, 12, 5, 13, 6, 14, 7, 15}
#    define EVEN      {0, 2, 4, 6, 8, 10, 12, 14}
#    define ODD       {1, 3, 5, 7, 9, 11, 13, 15}
#    define REVERSE   {7, 6, 5, 4, 3, 2, 1, 0}
#    define TURN      {8, 7, 6, 5, 4, 3, 2, 1}
#else
#    define LOW_HALF  {0, 4, 1, 5}
#    define HIGH_HALF {2, 6, 3, 7}
#    define EVEN      {0, 2, 4, 6}
#    define ODD       {1, 3, 5, 7}
#    define REVERSE   {3, 2, 1, 0}
#    define TURN      {4, 3, 2, 1}
#endif
#define UNROLL _Pragma("GCC unroll 16")

enum { LINE = 16 }; // floats of a cache line

WT_INLINE vec load(const float *x) { return *(const uvec *)x; }
WT_INLINE void store(float *y, vec v) { *(uvec *)y = v; }
// A store at a whole vector that leaves the caches as they are.
WT_INLINE void store_past(float *y, vec v)
{
#if LANES == 16
    __builtin_ia32_movntps512(y, v);
#elif LANES == 8
    __builtin_ia32_movntps256(y, v);
#elif defined(__SSE__)
    __builtin_ia32_movntps(y, v);
#else
    store(y, v);
#endif
}
WT_INLINE vec zip_low(vec a, vec b) { return __builtin_shuffle(a, b, (ivec)LOW_HALF); }
WT_INLINE vec zip_high(vec a, vec b) { return __builtin_shuffle(a, b, (ivec)HIGH_HALF); }
WT_INLINE cvec reverse(cvec a)
{
    return (cvec){__builtin_shuffle(a.re, (ivec)REVERSE), __builtin_shuffle(a.im, (ivec)REVERSE)};
}
// The first of b, then a from its last to its second.
WT_INLINE cvec turn(cvec a, cvec b)
{
    return (cvec){__builtin_shuffle(a.re, b.re, (ivec)TURN), __builtin_shuffle(a.im, b.im, (ivec)TURN)};
}

WT_INLINE cvec load_apart(const float *re, const float *im, wt__fft_form form, ptrdiff_t at, ivec evens, ivec odds)
{
    if (form == WT__FFT_SPLIT) return (cvec){load(re + at), load(im + at)};
    vec a = load(re + 2 * at), b = load(re + 2 * at + LANES);
    if (form == WT__FFT_WEIGHTED) a *= load(im + 2 * at), b *= load(im + 2 * at + LANES);
    vec even = __builtin_shuffle(a, b, evens), odd = __builtin_shuffle(a, b, odds);
    return form == WT__FFT_SWAPPED ? (cvec){odd, even} : (cvec){even, odd};
}

WT_INLINE cvec load_side(const float *re, const float *im, wt__fft_form form, ptrdiff_t at)
{
    return load_apart(re, im, form, at, (ivec)EVEN, (ivec)ODD);
}

// In the order of wt__fft_lane_place().
WT_INLINE cvec load_points(const float *re, const float *im, wt__fft_form form, ptrdiff_t at)
{
#if LANES == 8
    return load_apart(re, im, form, at, (ivec){0, 2, 8, 10, 4, 6, 12, 14}, (ivec){1, 3, 9, 11, 5, 7, 13, 15});
#else
    return load_side(re, im, form, at);
#endif
}

WT_INLINE void store_side(float *re, float *im, wt__fft_form form, ptrdiff_t at, cvec v)
{
    if (form == WT__FFT_SPLIT) {
        store(re + at, v.re);
        store(im + at, v.im);
        return;
    }
    vec even = form == WT__FFT_PAIRS ? v.re : v.im, odd = form == WT__FFT_PAIRS ? v.im : v.re;
    store(re + 2 * at, zip_low(even, odd));
    store(re + 2 * at + LANES, zip_high(even, odd));
}

// Of numbers in the order of wt__fft_lane_place(), which come together as cheaply.
WT_INLINE void store_points(float *re, float *im, wt__fft_form form, ptrdiff_t at, cvec v)
{
#if LANES == 8
    const vec even = form == WT__FFT_PAIRS ? v.re : v.im, odd = form == WT__FFT_PAIRS ? v.im : v.re;
    store(re + 2 * at, __builtin_shuffle(even, odd, (ivec){0, 8, 1, 9, 4, 12, 5, 13}));
    store(re + 2 * at + LANES, __builtin_shuffle(even, odd, (ivec){2, 10, 3, 11, 6, 14, 7, 15}));
    (void)im;
#else
    store_side(re, im, form, at, v);
#endif
}

#include "fft_butterflies.h"

// ---- passes

// LANES vectors [j][p] become [p][j]. Each stage exchanges one bit of j, the number of the vector, for one of p, within
// quarters of 128 bits where it can: unpacking and shuffling quarters is cheaper than shuffling across.
WT_INLINE void exchange(vec *v, const int bit, ivec low, ivec high)
{
    UNROLL for (int i = 0; i < LANES; i++)
    {
        if (i & bit) continue;
        vec a = v[i], b = v[i | bit];
        v[i] = __builtin_shuffle(a, b, low);
        v[i | bit] = __builtin_shuffle(a, b, high);
    }
}

// The two lowest bits: each four vectors' quarters are turned.
WT_INLINE void turn_quarters(vec *v)
{
#if LANES == 16
    const ivec low = {0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29};
    const ivec high = {2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31};
#elif LANES == 8
    const ivec low = {0, 8, 1, 9, 4, 12, 5, 13}, high = {2, 10, 3, 11, 6, 14, 7, 15};
#else
    const ivec low = LOW_HALF, high = HIGH_HALF;
#endif
    exchange(v, 2, low, high);
    exchange(v, 1, low, high);
}

WT_INLINE void transpose_square(vec *v)
{
    turn_quarters(v);
#if LANES == 16
    exchange(v, 4, (ivec){0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23},
             (ivec){8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31});
    exchange(v, 8, (ivec){0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27},
             (ivec){4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31});
    UNROLL for (int i = 4; i < 8; i++) // the last two stages left their bits in the wrong order
    {
        vec t = v[i];
        v[i] = v[i + 4];
        v[i + 4] = t;
    }
#elif LANES == 8
    exchange(v, 4, (ivec){0, 1, 2, 3, 8, 9, 10, 11}, (ivec){4, 5, 6, 7, 12, 13, 14, 15});
#endif
}

// Where row p of a first pass lies.
WT_INLINE ptrdiff_t row_place(ptrdiff_t p, const bool square)
{
    return square ? p / WT__FFT_SQUARE + p % WT__FFT_SQUARE * WT__FFT_SQUARE : p;
}

// One part (real or imaginary) of a[r] along p, stored as [p][j] at y, in groups of LANES radices, an incomplete group
// first: the rubbish behind its rows is overwritten by the next row, the next group or the next block, and at the very
// end lies in the padding of the buffer. The numbers of a row are in the order of `to`; unless that is split, r is a
// multiple of LANES.
WT_INLINE void store_transposed(float *y, const cvec *a, const bool imaginary, const int r, const wt__fft_form form,
                                const wt__fft_form to, const bool square)
{
    for (int begin = (r - 1) / LANES * LANES; begin >= 0; begin -= LANES) {
        vec v[LANES];
        UNROLL for (int j = 0; j < LANES; j++)
        {
            const cvec *from = &a[begin + j < r ? begin + wt__fft_lane_place(LANES, to, j) : 0];
            v[j] = imaginary ? from->im : from->re;
        }
        transpose_square(v);
        UNROLL for (int p = 0; p < LANES; p++)
            store(y + row_place(wt__fft_lane_place(LANES, form, p), square) * r + begin, v[p]);
    }
}

// The whole lines in the next `most` floats of a row that goes past the caches. A first pass takes half as many along
// as it reads, the others a quarter: three passes take a row.
WT_INLINE void pour(wt__fft_past *past, const int most)
{
    const int n = most / LINE * LINE;
    if (!past || !n || past->n < n) return;
    UNROLL for (int i = 0; i < n; i += LANES) store_past(past->to + i, load(past->from + i));
    past->from += n, past->to += n, past->n -= n;
}

// Numbers `step` apart, column by column, each of which is done before the next is taken.
WT_INLINE void take(cvec *x, const float *re, const float *im, const wt__fft_form form, ptrdiff_t at, ptrdiff_t step,
                    const int fixed, int r, const float *trig)
{
    const int a = column_of(fixed), b = r / a;
    UNROLL for (int k = 0; k < b; k++)
    {
        UNROLL for (int i = 0; i < a; i++) x[k + b * i] = load_points(re, im, form, at + step * (k + b * i));
        if (a > 1) column(x, fixed, k, trig);
    }
}

WT_INLINE void first_pass(const wt__fft_pass *pass, const float *x_re, const float *x_im, float *y_re, float *y_im,
                          const int fixed, const wt__fft_form form, const wt__fft_form to, const bool square,
                          wt__fft_past *past)
{
    const int r = fixed ? fixed : pass->radix, a = column_of(fixed), b = r / a;
    const ptrdiff_t m = pass->m;
    const float *twiddles = form == WT__FFT_SPLIT ? pass->twiddles : pass->pair_twiddles;
    for (ptrdiff_t block = 0; block < m; block += LANES, twiddles += (r - 1) * 2 * LANES) {
        const ptrdiff_t p = block + LANES <= m ? block : m - LANES, at = row_place(p, square) * r;
        cvec x[WT__FFT_MAX_PRIME], y[WT__FFT_MAX_PRIME];
        take(x, x_re, x_im, form, p, m, fixed, r, pass->trig);
        UNROLL for (int j = 0; j < a; j++)
        {
            row(x, fixed, r, j, pass->trig);
            UNROLL for (int k = 0; k < b; k++)
            {
                const float *w = twiddles + (j + a * k - 1) * 2 * LANES;
                y[j + a * k] = j + k ? times(x[b * j + k], load(w), load(w + LANES)) : x[0];
            }
        }
        pour(past, fixed * LANES / 2);
        store_transposed(y_re + at, y, false, r, form, to, square);
        pour(past, fixed * LANES / 2);
        store_transposed(y_im + at, y, true, r, form, to, square);
    }
}

// In place where a first pass made squares.
WT_INLINE void mid_pass(const wt__fft_pass *pass, const float *x_re, const float *x_im, float *y_re, float *y_im,
                        const int fixed, wt__fft_past *past)
{
    const int r = fixed ? fixed : pass->radix, a = column_of(fixed), b = r / a;
    const ptrdiff_t m = pass->m, s = pass->s, from_p = x_re == y_re ? s * r : s, from_k = x_re == y_re ? s : s * m;
    const float *twiddles = pass->twiddles;
    for (ptrdiff_t p = 0; p < m; p++, twiddles += 2 * (r - 1)) {
        for (ptrdiff_t block = 0; block < s; block += LANES) {
            const ptrdiff_t q = block + LANES <= s ? block : s - LANES;
            cvec x[WT__FFT_MAX_PRIME];
            pour(past, fixed * LANES / 2);
            take(x, x_re, x_im, WT__FFT_SPLIT, q + from_p * p, from_k, fixed, r, pass->trig);
            UNROLL for (int j = 0; j < a; j++)
            {
                row(x, fixed, r, j, pass->trig);
                UNROLL for (int k = 0; k < b; k++)
                {
                    const int i = j + a * k;
                    const cvec v = i ? times_w(x[b * j + k], twiddles[2 * i - 2], twiddles[2 * i - 1]) : x[0];
                    store_side(y_re, y_im, WT__FFT_SPLIT, q + s * (r * p + i), v);
                }
            }
        }
    }
}

WT_INLINE void last_pass(const wt__fft_pass *pass, const float *x_re, const float *x_im, float *y_re, float *y_im,
                         float scale, const int fixed, const wt__fft_form form, const bool ordered, wt__fft_past *past)
{
    const int r = fixed ? fixed : pass->radix, a = column_of(fixed), b = r / a;
    const ptrdiff_t s = pass->s;
    for (ptrdiff_t block = 0; block < s; block += LANES) {
        const ptrdiff_t q = block + LANES <= s ? block : s - LANES;
        cvec x[WT__FFT_MAX_PRIME];
        pour(past, fixed * LANES / 2);
        take(x, x_re, x_im, WT__FFT_SPLIT, q, s, fixed, r, pass->trig);
        UNROLL for (int j = 0; j < a; j++)
        {
            row(x, fixed, r, j, pass->trig);
            UNROLL for (int k = 0; k < b; k++)
                (ordered ? store_side : store_points)(y_re, y_im, form, q + s * (j + a * k),
                                                      scaled(x[b * j + k], scale));
        }
    }
}

// In place, and the last one of those: sizes known to the compiler, which saves a third of the time.
WT_INLINE void mid_square(const wt__fft_pass *pass, float *re, float *im, wt__fft_past *past)
{
    const wt__fft_pass fixed = {.m = WT__FFT_SQUARE, .s = WT__FFT_BEFORE_SQUARE, .twiddles = pass->twiddles};
    mid_pass(&fixed, re, im, re, im, WT__FFT_SQUARE, past);
}

WT_INLINE void last_sized(const wt__fft_pass *pass, const float *x_re, const float *x_im, float *y_re, float *y_im,
                          float scale, const int r, const wt__fft_form form, wt__fft_past *past)
{
    enum { SIZE = WT__FFT_BEFORE_SQUARE * WT__FFT_SQUARE };
    const wt__fft_pass fixed = {.s = SIZE};
    if (r == WT__FFT_SQUARE && pass->s == SIZE) last_pass(&fixed, x_re, x_im, y_re, y_im, scale, r, form, true, past);
    else last_pass(pass, x_re, x_im, y_re, y_im, scale, r, form, true, past);
}

#define SIGNATURE                                                                                                     \
    const wt__fft_pass *pass, const float *x_re, const float *x_im, float *y_re, float *y_im, float scale
#define FIRST(name, r, form)                                                                                          \
    static void first_##name(SIGNATURE)                                                                               \
    {                                                                                                                 \
        (void)scale;                                                                                                  \
        if (r == 16 && pass->square) first_pass(pass, x_re, x_im, y_re, y_im, r, form, WT__FFT_SPLIT, true, NULL);    \
        else first_pass(pass, x_re, x_im, y_re, y_im, r, form, WT__FFT_SPLIT, false, NULL);                           \
    }
#define MID(name, r)                                                                                                  \
    static void mid_##name(SIGNATURE)                                                                                 \
    {                                                                                                                 \
        (void)scale;                                                                                                  \
        if (r == WT__FFT_SQUARE && x_re == y_re) mid_square(pass, y_re, y_im, NULL);                                  \
        else mid_pass(pass, x_re, x_im, y_re, y_im, r, NULL);                                                         \
    }
#define LAST(name, r, form)                                                                                           \
    static void last_##name(SIGNATURE)                                                                                \
    {                                                                                                                 \
        if (scale == 1) last_sized(pass, x_re, x_im, y_re, y_im, 1, r, form, NULL);                                   \
        else last_sized(pass, x_re, x_im, y_re, y_im, scale, r, form, NULL);                                          \
    }
#define ROW_SIGNATURE                                                                                                 \
    const wt__fft_pass *pass, const float *x_re, const float *x_im, float *y_re, float *y_im, wt__fft_past *past
#define ROW_FIRST(r)                                                                                                  \
    static void row_first_##r(ROW_SIGNATURE)                                                                          \
    {                                                                                                                 \
        if (r == 16 && pass->square)                                                                                  \
            first_pass(pass, x_re, x_im, y_re, y_im, r, WT__FFT_WEIGHTED, WT__FFT_SPLIT, true, past);                 \
        else                                                                                                          \
            first_pass(pass, x_re, x_im, y_re, y_im, r, WT__FFT_WEIGHTED, WT__FFT_SPLIT, false, past);                \
    }
#define ROW_MID(name, r)                                                                                              \
    static void row_mid_##name(ROW_SIGNATURE)                                                                         \
    {                                                                                                                 \
        if (r == WT__FFT_SQUARE && x_re == y_re) mid_square(pass, y_re, y_im, past);                                  \
        else mid_pass(pass, x_re, x_im, y_re, y_im, r, past);                                                         \
    }
#define ROW_LAST(name, r)                                                                                             \
    static void row_last_##name(ROW_SIGNATURE)                                                                        \
    {                                                                                                                 \
        last_sized(pass, x_re, x_im, y_re, y_im, 1, r, WT__FFT_SPLIT, past);                                          \
    }
#define ANY_RADIX(CASE)                                                                                               \
    CASE(2, 2) CASE(3, 3) CASE(4, 4) CASE(5, 5) CASE(7, 7) CASE(8, 8) CASE(11, 11) CASE(13, 13) CASE(16, 16)          \
    CASE(generic, 0)
#define FORMS(CASE, r)                                                                                                \
    CASE(r, r, WT__FFT_SPLIT) CASE(pairs_##r, r, WT__FFT_PAIRS) CASE(swapped_##r, r, WT__FFT_SWAPPED)

FORMS(FIRST, 4)
FORMS(FIRST, 8) FORMS(FIRST, 16) FIRST(weighted_4, 4, WT__FFT_WEIGHTED) FIRST(weighted_8, 8, WT__FFT_WEIGHTED)
    FIRST(weighted_16, 16, WT__FFT_WEIGHTED) FIRST(9, 9, WT__FFT_SPLIT) FIRST(15, 15, WT__FFT_SPLIT)
        FIRST(25, 25, WT__FFT_SPLIT) FIRST(5, 5, WT__FFT_SPLIT) FIRST(7, 7, WT__FFT_SPLIT) FIRST(11, 11, WT__FFT_SPLIT)
            FIRST(13, 13, WT__FFT_SPLIT) FIRST(generic, 0, WT__FFT_SPLIT) ANY_RADIX(MID) FORMS(LAST, 2) FORMS(LAST, 3)
                FORMS(LAST, 4) FORMS(LAST, 5) FORMS(LAST, 8) FORMS(LAST, 16) LAST(7, 7, WT__FFT_SPLIT)
                    LAST(11, 11, WT__FFT_SPLIT) LAST(13, 13, WT__FFT_SPLIT) LAST(generic, 0, WT__FFT_SPLIT)
                        ROW_FIRST(4) ROW_FIRST(8) ROW_FIRST(16) ANY_RADIX(ROW_MID) ANY_RADIX(ROW_LAST)

#include "fft_bins.h"

// What is left at the end does not go past: a line written both ways is slow.
static void stream(wt__fft_past *past)
{
    while (past->n >= LINE) pour(past, LINE);
    for (; past->n > 0; past->n--) *past->to++ = *past->from++;
}

#include "fft_rows.h"
#include "fft_short.h"
#include "fft_frames.h"
#if LANES == 8
#    include "fft_pairs.h"
#    include "fft_whole.h"
#    define PAIRS  &pairs
#    define WHOLE  &whole
#    define POWERS frames_or_whole
#else
#    define PAIRS  NULL
#    define WHOLE  NULL
#    define POWERS frames_powers
#endif

// Order of the radices: wt__fft_radices.
#define KERNELS                                                                                                       \
    {                                                                                                                 \
        .lanes = LANES,                                                                                               \
        .first = {{0, 0, first_4, first_5, first_7, first_8, first_11, first_13, first_16, first_9, first_15,         \
                   first_25, first_generic},                                                                          \
                  {[2] = first_pairs_4, [5] = first_pairs_8, [8] = first_pairs_16},                                   \
                  {[2] = first_swapped_4, [5] = first_swapped_8, [8] = first_swapped_16},                             \
                  {[2] = first_weighted_4, [5] = first_weighted_8, [8] = first_weighted_16}},                         \
        .mid = {mid_2, mid_3, mid_4, mid_5, mid_7, mid_8, mid_11, mid_13, mid_16, 0, 0, 0, mid_generic},              \
        .last = {{last_2, last_3, last_4, last_5, last_7, last_8, last_11, last_13, last_16, 0, 0, 0, last_generic},  \
                 {last_pairs_2, last_pairs_3, last_pairs_4, last_pairs_5, 0, last_pairs_8, [8] = last_pairs_16},      \
                 {last_swapped_2, last_swapped_3, last_swapped_4, last_swapped_5, 0,                                  \
                  last_swapped_8, [8] = last_swapped_16}},                                                            \
        .row = {.first = {[2] = row_first_4, [5] = row_first_8, [8] = row_first_16},                                  \
                .mid = {row_mid_2, row_mid_3, row_mid_4, row_mid_5, row_mid_7, row_mid_8, row_mid_11, row_mid_13,     \
                        row_mid_16, 0, 0, 0, row_mid_generic},                                                        \
                .last = {row_last_2, row_last_3, row_last_4, row_last_5, row_last_7, row_last_8, row_last_11,         \
                         row_last_13, row_last_16, 0, 0, 0, row_last_generic}},                                       \
        .split = split, .join = join, .multiply = multiply, .stream = stream,                                         \
        .real_bins = {[WT__FFT_SPLIT] = real_bins_split, [WT__FFT_PAIRS] = real_bins_pairs,                           \
                      [WT__FFT_POWERS] = real_bins_powers},                                                           \
        .real_fold = {real_fold_split, real_fold_pairs}, .rows_in = rows_in, .rows_out = rows_out,                    \
        .tile_bins = tile_bins, .tile_fold = tile_fold, .tile_of_8 = {bins_of_8, fold_of_8}, .shorts = shorts,        \
        .pairs = PAIRS, .whole = WHOLE, .frames_powers = POWERS,                                                      \
    }
