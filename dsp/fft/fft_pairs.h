// The same passes on points that lie as pairs from one end to the other, for eight lanes: a part of fft_passes.h.
//
// A vector holds HALF points. A split one of LANES points takes two registers, of which there are sixteen: 8 points of
// a butterfly fill them, 16 spill twice over, where pairs have room for both. Pairs pay with a shuffle for each product
// by i, and save those that part and join them at both ends, and one of three stages of turning. The sign of the
// exponent is known to the compiler, so nothing is exchanged on the way back.

typedef float half_vec __attribute__((vector_size(2 * LANES)));
typedef float half_uvec __attribute__((vector_size(2 * LANES), aligned(4), may_alias));
enum { HALF = LANES / 2, PAIRS_MOST = 400 };

// a + i b, and a - i b where `sign` is -1.
WT_INLINE vec plus_i(vec a, vec b, const float sign)
{
    const vec signs = {-sign, sign, -sign, sign, -sign, sign, -sign, sign};
    return a + __builtin_shuffle(b, (ivec){1, 0, 3, 2, 5, 4, 7, 6}) * signs;
}

// a w or, back, a conj(w). Real parts come twice, so do imaginary ones, the first negated.
WT_INLINE vec times_pairs(vec a, vec re, vec im, const float sign)
{
    return a * re - sign * (__builtin_shuffle(a, (ivec){1, 0, 3, 2, 5, 4, 7, 6}) * im);
}

// Two numbers for all points.
WT_INLINE vec both_of(const float *pair)
{
    const double both = *(const one_pair *)pair;
    return (vec)(pairs_vec){both, both, both, both};
}

// `sign` of the exponent: -1, or back 1.
WT_INLINE void pairs_dft4(vec *a0, vec *a1, vec *a2, vec *a3, const float sign)
{
    const vec even = *a0 + *a2, even_less = *a0 - *a2, odd = *a1 + *a3, odd_less = *a1 - *a3;
    *a0 = even + odd;
    *a1 = plus_i(even_less, odd_less, sign);
    *a2 = even - odd;
    *a3 = plus_i(even_less, odd_less, -sign);
}

WT_INLINE void pairs_dft5(vec *a, const float sign)
{
    const float c1 = 0.309016994374947424f, s1 = 0.951056516295153572f; // cos, sin 2 pi / 5 and 4 pi / 5
    const float c2 = -0.809016994374947424f, s2 = 0.587785252292473129f;
    const vec sum1 = a[1] + a[4], less1 = a[1] - a[4], sum2 = a[2] + a[3], less2 = a[2] - a[3], first = a[0];
    const vec even1 = first + sum1 * c1 + sum2 * c2, even2 = first + sum1 * c2 + sum2 * c1;
    const vec odd1 = less1 * s1 + less2 * s2, odd2 = less1 * s2 - less2 * s1;
    a[0] = first + sum1 + sum2;
    a[1] = plus_i(even1, odd1, sign), a[4] = plus_i(even1, odd1, -sign);
    a[2] = plus_i(even2, odd2, sign), a[3] = plus_i(even2, odd2, -sign);
}

WT_INLINE void pairs_dft8(vec *a, const float sign)
{
    const float c = 0.707106781186547524f;
    pairs_dft4(&a[0], &a[2], &a[4], &a[6], sign);
    pairs_dft4(&a[1], &a[3], &a[5], &a[7], sign);
    const vec e0 = a[0], e1 = a[2], e2 = a[4], e3 = a[6], o0 = a[1], o2 = a[5];
    const vec o1 = plus_i(a[3], a[3], sign), o3 = plus_i(-a[7], a[7], sign);
    a[0] = e0 + o0, a[4] = e0 - o0;
    a[1] = e1 + o1 * c, a[5] = e1 - o1 * c;
    a[2] = plus_i(e2, o2, sign), a[6] = plus_i(e2, o2, -sign);
    a[3] = e3 + o3 * c, a[7] = e3 - o3 * c;
}

WT_INLINE void pairs_dft16(vec *a, const float sign)
{
    const float c1 = 0.923879532511286756f, s1 = 0.382683432365089772f, c2 = 0.707106781186547524f; // cos, sin pi/8
    UNROLL for (int k = 0; k < 4; k++) pairs_dft4(&a[k], &a[k + 4], &a[k + 8], &a[k + 12], sign);
    a[5] = plus_i(a[5] * c1, a[5] * s1, sign);
    a[9] = plus_i(a[9], a[9], sign) * c2;
    a[13] = plus_i(a[13] * s1, a[13] * c1, sign);
    a[6] = plus_i(a[6], a[6], sign) * c2;
    a[10] = plus_i((vec){0}, a[10], sign);
    a[14] = plus_i(-a[14], a[14], sign) * c2;
    a[7] = plus_i(a[7] * s1, a[7] * c1, sign);
    a[11] = plus_i(-a[11], a[11], sign) * c2;
    a[15] = plus_i(-(a[15] * c1), -(a[15] * s1), sign);
    UNROLL for (int j = 0; j < 4; j++) pairs_dft4(&a[4 * j], &a[4 * j + 1], &a[4 * j + 2], &a[4 * j + 3], sign);
    UNROLL for (int i = 0; i < 4; i++) // a[4 j1 + j2] to a[j1 + 4 j2]
    {
        UNROLL for (int j = 0; j < i; j++)
        {
            const vec t = a[4 * i + j];
            a[4 * i + j] = a[4 * j + i];
            a[4 * j + i] = t;
        }
    }
}

WT_INLINE void pairs_dft3(vec *a, const float sign)
{
    const vec sum = a[1] + a[2], less = (a[1] - a[2]) * 0.866025403784438647f, even = a[0] - 0.5f * sum; // sin 2 pi / 3
    a[0] += sum;
    a[1] = plus_i(even, less, sign), a[2] = plus_i(even, less, -sign);
}

WT_INLINE void pairs_dft(vec *a, const int r, const float sign)
{
    if (r == 3) pairs_dft3(a, sign);
    else if (r == 4) pairs_dft4(&a[0], &a[1], &a[2], &a[3], sign);
    else if (r == 5) pairs_dft5(a, sign);
    else if (r == 8) pairs_dft8(a, sign);
    else pairs_dft16(a, sign);
}

WT_INLINE vec low_halves(vec a, vec b) { return __builtin_shuffle(a, b, (ivec){0, 1, 2, 3, 8, 9, 10, 11}); }
WT_INLINE vec high_halves(vec a, vec b) { return __builtin_shuffle(a, b, (ivec){4, 5, 6, 7, 12, 13, 14, 15}); }

// HALF vectors [j][p] of points become [p][j].
WT_INLINE void turn_points(vec *v)
{
    UNROLL for (int i = 0; i < 2; i++)
    {
        const vec a = v[i], b = v[i + 2];
        v[i] = low_halves(a, b);
        v[i + 2] = high_halves(a, b);
    }
    UNROLL for (int i = 0; i < 4; i += 2)
    {
        const vec a = v[i], b = v[i + 1];
        v[i] = __builtin_shuffle(a, b, (ivec){0, 1, 8, 9, 4, 5, 12, 13});
        v[i + 1] = __builtin_shuffle(a, b, (ivec){2, 3, 10, 11, 6, 7, 14, 15});
    }
}

// Columns p, HALF at once, with one of `weights` for each number where there are any.
WT_INLINE void pairs_first(const wt__fft_pass *pass, const float *x, const float *weights, float *y, const int r,
                           const float sign)
{
    const ptrdiff_t m = pass->m;
    const int bits = pass->turned_bits;
    const float *w = pass->twiddles;
    for (ptrdiff_t block = 0; block < m; block += HALF) {
        const ptrdiff_t p = block + HALF <= m ? block : m - HALF, row = (p >> bits) + ((p & ((1 << bits) - 1)) << bits);
        vec a[16];
        UNROLL for (int k = 0; k < r; k++)
        {
            a[k] = load(x + 2 * (p + m * k));
            if (weights) a[k] *= load(weights + 2 * (p + m * k));
        }
        pairs_dft(a, r, sign);
        UNROLL for (int j = 1; j < r; j++, w += 2 * LANES) a[j] = times_pairs(a[j], load(w), load(w + LANES), sign);
        UNROLL for (int j = 0; j < r; j += HALF)
        {
            turn_points(a + j);
            UNROLL for (int i = 0; i < HALF; i++) store(y + 2 * ((row + (i << bits)) * r + j), a[j + i]);
        }
    }
}

// In place where the first pass turned its rows.
WT_INLINE void pairs_mid(const wt__fft_pass *pass, const float *x, float *y, const int r, const float sign)
{
    const ptrdiff_t m = pass->m, s = pass->s, from_p = x == y ? s * r : s, from_k = x == y ? s : s * m;
    const float *w = pass->twiddles;
    for (ptrdiff_t p = 0; p < m; p++, w += 4 * (r - 1))
        for (ptrdiff_t q = 0; q < s; q += HALF) {
            vec a[16];
            UNROLL for (int k = 0; k < r; k++) a[k] = load(x + 2 * (q + from_p * p + from_k * k));
            pairs_dft(a, r, sign);
            store(y + 2 * (q + s * r * p), a[0]);
            UNROLL for (int j = 1; j < r; j++)
                store(y + 2 * (q + s * (r * p + j)),
                      times_pairs(a[j], both_of(w + 4 * j - 4), both_of(w + 4 * j - 2), sign));
        }
}

// Forward, `scale` is 1.
WT_INLINE void pairs_last(const wt__fft_pass *pass, const float *x, float *y, float scale, const int r,
                          const float sign)
{
    const ptrdiff_t s = pass->s;
    for (ptrdiff_t q = 0; q < s; q += HALF) {
        vec a[16];
        UNROLL for (int k = 0; k < r; k++) a[k] = load(x + 2 * (q + s * k));
        pairs_dft(a, r, sign);
        UNROLL for (int j = 0; j < r; j++) store(y + 2 * (q + s * j), sign > 0 ? a[j] * scale : a[j]);
    }
}

#define PAIRS_SIGNATURE const wt__fft_pass *pass, const float *x, const float *weights, float *y, float scale
#define PAIRS_FIRST(r)                                                                                                 \
    static void pairs_first_##r(PAIRS_SIGNATURE) { (void)weights, (void)scale, pairs_first(pass, x, NULL, y, r, -1); } \
    static void pairs_first_back_##r(PAIRS_SIGNATURE)                                                                  \
    {                                                                                                                  \
        (void)weights, (void)scale, pairs_first(pass, x, NULL, y, r, 1);                                               \
    }                                                                                                                  \
    static void pairs_weighted_##r(PAIRS_SIGNATURE) { (void)scale, pairs_first(pass, x, weights, y, r, -1); }
#define PAIRS_REST(r)                                                                                                  \
    static void pairs_mid_##r(PAIRS_SIGNATURE) { (void)weights, (void)scale, pairs_mid(pass, x, y, r, -1); }           \
    static void pairs_mid_back_##r(PAIRS_SIGNATURE) { (void)weights, (void)scale, pairs_mid(pass, x, y, r, 1); }       \
    static void pairs_last_##r(PAIRS_SIGNATURE) { (void)weights, pairs_last(pass, x, y, scale, r, -1); }               \
    static void pairs_last_back_##r(PAIRS_SIGNATURE) { (void)weights, pairs_last(pass, x, y, scale, r, 1); }
PAIRS_FIRST(4)
PAIRS_FIRST(8)
PAIRS_FIRST(16)
PAIRS_REST(3)
PAIRS_REST(4)
PAIRS_REST(5)
PAIRS_REST(8)
PAIRS_REST(16)

// ---- bins of a real signal of 2 h samples, and back, as pair_bins() has it

WT_INLINE vec conjugates(vec a)
{
    const int sign = INT32_MIN;
    return (vec)((ivec)a ^ (ivec){0, sign, 0, sign, 0, sign, 0, sign});
}

WT_INLINE vec reversed(vec a) { return __builtin_shuffle(a, (ivec){6, 7, 4, 5, 2, 3, 0, 1}); }

WT_INLINE vec pairs_load(const float *re, const float *im, const wt__fft_form form, ptrdiff_t at)
{
    if (form == WT__FFT_PAIRS) return load(re + 2 * at);
    const half_vec a = *(const half_uvec *)(re + at), b = *(const half_uvec *)(im + at);
    return (vec){a[0], b[0], a[1], b[1], a[2], b[2], a[3], b[3]};
}

// Powers need no other half.
WT_INLINE void pairs_store(float *re, float *im, const wt__fft_form form, ptrdiff_t at, vec v)
{
    if (form == WT__FFT_PAIRS) {
        store(re + 2 * at, v);
        return;
    }
    if (form == WT__FFT_POWERS) v *= v, v += __builtin_shuffle(v, (ivec){1, 0, 3, 2, 5, 4, 7, 6});
    const vec parts = __builtin_shuffle(v, (ivec){0, 2, 4, 6, 1, 3, 5, 7});
    *(half_uvec *)(re + at) = (half_vec){parts[0], parts[1], parts[2], parts[3]};
    if (form != WT__FFT_POWERS) *(half_uvec *)(im + at) = (half_vec){parts[4], parts[5], parts[6], parts[7]};
}

// HALF points from k, and HALF to h - k, which begin at `mirror`.
WT_INLINE void bins_block(vec low, vec high, const float *w, float scale, float *re, float *im, const wt__fft_form form,
                          ptrdiff_t k, ptrdiff_t mirror)
{
    const vec conjugate = {scale, -scale, scale, -scale, scale, -scale, scale, -scale}, b = reversed(high) * conjugate;
    const vec even = low * scale + b, odd = times_pairs(low * scale - b, load(w), load(w + LANES), -1);
    pairs_store(re, im, form, k, even + odd);
    pairs_store(re, im, form, mirror, reversed(conjugates(even - odd)));
}

// Pairs may lie where z does: the last block, which overlaps the one before, is read first. z[h] is written.
WT_INLINE void pairs_bins(float *z, const float *w, ptrdiff_t h, float scale, float *re, float *im,
                          const wt__fft_form form)
{
    const ptrdiff_t last = h / 2 - HALF + 1;
    const vec low = load(z + 2 * last), high = load(z + h);
    z[2 * h] = z[0], z[2 * h + 1] = z[1];
    for (ptrdiff_t k = 0; k < last; k += HALF, w += 2 * LANES) {
        const ptrdiff_t mirror = h - k - HALF + 1;
        bins_block(load(z + 2 * k), load(z + 2 * mirror), w, scale, re, im, form, k, mirror);
    }
    bins_block(low, high, w, scale, re, im, form, last, h / 2);
}

WT_INLINE void fold_block(const float *re, const float *im, const float *w, ptrdiff_t h, ptrdiff_t k, float *z,
                          const wt__fft_form form)
{
    const ptrdiff_t mirror = h - k - HALF + 1;
    const vec a = pairs_load(re, im, form, k), b = conjugates(reversed(pairs_load(re, im, form, mirror)));
    const vec even = a + b, odd = times_pairs(a - b, load(w), load(w + LANES), 1);
    store(z + 2 * k, even + odd);
    store(z + 2 * mirror, reversed(conjugates(even - odd)));
}

// The parts that bins 0 and h should not have come to z[0] alone.
WT_INLINE void pairs_fold(const float *re, const float *im, const float *w, ptrdiff_t h, float *z,
                          const wt__fft_form form)
{
    const ptrdiff_t last = form == WT__FFT_PAIRS ? 2 * h : h;
    for (ptrdiff_t k = 0; k <= h / 2 - HALF; k += HALF, w += 2 * LANES) fold_block(re, im, w, h, k, z, form);
    fold_block(re, im, w, h, h / 2 - HALF + 1, z, form);
    z[0] = re[0] + re[last], z[1] = re[0] - re[last];
}

#define PAIRS_BINS(name, form)                                                                                         \
    static void pairs_bins_##name(float *z, const float *w, int h, float scale, float *re, float *im)                  \
    {                                                                                                                  \
        pairs_bins(z, w, h, scale, re, im, form);                                                                      \
    }
#define PAIRS_FOLD(name, form)                                                                                         \
    static void pairs_fold_##name(const float *re, const float *im, const float *w, int h, float *z)                   \
    {                                                                                                                  \
        pairs_fold(re, im, w, h, z, form);                                                                             \
    }
PAIRS_BINS(split, WT__FFT_SPLIT)
PAIRS_BINS(pairs, WT__FFT_PAIRS)
PAIRS_BINS(powers, WT__FFT_POWERS)
PAIRS_FOLD(split, WT__FFT_SPLIT)
PAIRS_FOLD(pairs, WT__FFT_PAIRS)

// ---- rows of short ones, their sizes known to the compiler

WT_INLINE void pairs_row(const wt__fft_pass *passes, const float *x, float *y, float scale, const int r1, const int r2,
                         const int r3, const float sign)
{
    const int n = r1 * r2 * r3, last = r3 > 1 ? r3 : r2;
    _Alignas(64) float a[2 * PAIRS_MOST], b[2 * PAIRS_MOST];
    pairs_first(&(wt__fft_pass){.m = n / r1, .twiddles = passes[0].twiddles}, x, NULL, a, r1, sign);
    if (r3 > 1) pairs_mid(&(wt__fft_pass){.m = r3, .s = r1, .twiddles = passes[1].twiddles}, a, b, r2, sign);
    pairs_last(&(wt__fft_pass){.s = n / last}, r3 > 1 ? b : a, y, scale, last, sign);
}

// Two transforms of 8 points: both parts of both, then each row of the square is one part's.
WT_INLINE void two_of_8(const float *w, const float *x0, const float *x1, float *y0, float *y1, float scale,
                        const float sign)
{
    const vec a = load(x0), b = load(x0 + LANES), c = load(x1), d = load(x1 + LANES), re = load(w),
              im = load(w + LANES);
    vec v[HALF] = {a + b, times_pairs(a - b, re, im, sign), c + d, times_pairs(c - d, re, im, sign)};
    turn_points(v);
    pairs_dft4(&v[0], &v[1], &v[2], &v[3], sign);
    UNROLL for (int i = 0; i < HALF; i++) v[i] = sign > 0 ? v[i] * scale : v[i];
    store(y0, low_halves(v[0], v[1]));
    store(y0 + LANES, low_halves(v[2], v[3]));
    store(y1, high_halves(v[0], v[1]));
    store(y1 + LANES, high_halves(v[2], v[3]));
}

WT_INLINE void rows_of_8(const wt__fft_pass *passes, const float *x, ptrdiff_t x_distance, float *y,
                         ptrdiff_t y_distance, int count, float scale, const float sign)
{
    for (; count > 0; count -= 2, x += 2 * x_distance, y += 2 * y_distance) {
        const bool two = count > 1;
        two_of_8(passes->twiddles, x, two ? x + x_distance : x, y, two ? y + y_distance : y, scale, sign);
    }
}

#define ROWS_SIGNATURE                                                                                                 \
    const wt__fft_pass *passes, const float *x, ptrdiff_t x_distance, float *y, ptrdiff_t y_distance, int count,       \
        float scale
#define PAIRS_ROWS(n, r1, r2, r3)                                                                                      \
    static void pairs_rows_##n(ROWS_SIGNATURE)                                                                         \
    {                                                                                                                  \
        for (; count > 0; count--, x += x_distance, y += y_distance)                                                   \
            pairs_row(passes, x, y, scale, r1, r2, r3, -1);                                                            \
    }                                                                                                                  \
    static void pairs_rows_back_##n(ROWS_SIGNATURE)                                                                    \
    {                                                                                                                  \
        for (; count > 0; count--, x += x_distance, y += y_distance)                                                   \
            pairs_row(passes, x, y, scale, r1, r2, r3, 1);                                                             \
    }
static void pairs_rows_8(ROWS_SIGNATURE) { rows_of_8(passes, x, x_distance, y, y_distance, count, scale, -1); }
static void pairs_rows_back_8(ROWS_SIGNATURE) { rows_of_8(passes, x, x_distance, y, y_distance, count, scale, 1); }
PAIRS_ROWS(16, 4, 4, 1)
PAIRS_ROWS(20, 4, 5, 1)
PAIRS_ROWS(32, 8, 4, 1)
PAIRS_ROWS(60, 4, 5, 3)
PAIRS_ROWS(64, 8, 8, 1)
PAIRS_ROWS(128, 16, 8, 1)
PAIRS_ROWS(256, 16, 16, 1)
PAIRS_ROWS(400, 16, 5, 5)

#define ROWS_ENTRY(n) {n, {pairs_rows_##n, pairs_rows_back_##n}}
static const wt__fft_rows rows[] = {ROWS_ENTRY(8),  ROWS_ENTRY(16), ROWS_ENTRY(20), ROWS_ENTRY(32), ROWS_ENTRY(60),
                                    ROWS_ENTRY(64), ROWS_ENTRY(128), ROWS_ENTRY(256), ROWS_ENTRY(400), {0}};

static const wt__fft_pairs pairs = {
    .first = {{[4] = pairs_first_4, [8] = pairs_first_8, [16] = pairs_first_16},
              {[4] = pairs_first_back_4, [8] = pairs_first_back_8, [16] = pairs_first_back_16}},
    .weighted = {[4] = pairs_weighted_4, [8] = pairs_weighted_8, [16] = pairs_weighted_16},
    .mid = {{[3] = pairs_mid_3, pairs_mid_4, pairs_mid_5, [8] = pairs_mid_8, [16] = pairs_mid_16},
            {[3] = pairs_mid_back_3, pairs_mid_back_4, pairs_mid_back_5, [8] = pairs_mid_back_8,
             [16] = pairs_mid_back_16}},
    .last = {{[3] = pairs_last_3, pairs_last_4, pairs_last_5, [8] = pairs_last_8, [16] = pairs_last_16},
             {[3] = pairs_last_back_3, pairs_last_back_4, pairs_last_back_5, [8] = pairs_last_back_8,
              [16] = pairs_last_back_16}},
    .bins = {pairs_bins_split, pairs_bins_pairs, [WT__FFT_POWERS] = pairs_bins_powers},
    .fold = {pairs_fold_split, pairs_fold_pairs},
    .rows = rows,
};
