// Transforms of 2 r1 r2 points, odd radices, in one call: a part of fft_short.h, on four lanes. A vector holds two
// points, pair by pair: those that the last pass, of 2, sums. So none crosses to another vector in between, and no lane
// is idle. Every number is made by the sums of a plan's passes, so that the bits are theirs.

enum { TWOS_MOST = 15 };

#define SIGNS(re, im) ((vec){re, im, re, im})
WT_INLINE vec swap_parts(vec v) { return __builtin_shuffle(v, (ivec){1, 0, 3, 2}); }
WT_INLINE vec swap_points(vec v) { return __builtin_shuffle(v, (ivec){2, 3, 0, 1}); }
WT_INLINE vec low_points(vec a, vec b) { return __builtin_shuffle(a, b, (ivec){0, 1, 4, 5}); }
WT_INLINE vec high_points(vec a, vec b) { return __builtin_shuffle(a, b, (ivec){2, 3, 6, 7}); }
WT_INLINE vec join_pairs(const float *low, const float *high) { return (vec){low[0], low[1], high[0], high[1]}; }

WT_INLINE vec times_points(vec v, vec w)
{
    const vec re = __builtin_shuffle(v, (ivec){0, 0, 2, 2}), im = __builtin_shuffle(v, (ivec){1, 1, 3, 3});
    return re * w + im * (swap_parts(w) * SIGNS(-1, 1));
}

// dft_odd() of r = 3 or 5 vectors, whose products are rounded or summed at once as there.
WT_INLINE void odd_points(vec *x, const int r, const float *t)
{
    const vec x0 = x[0], sum = x[1] + x[r - 1], less = x[1] - x[r - 1];
    if (r == 3) {
        const vec even = x0 + sum * t[0], turned = swap_parts(less);
        x[0] = x0 + sum;
        x[1] = even + turned * (t[1] * SIGNS(1, -1));
        x[2] = even + turned * (t[1] * SIGNS(-1, 1));
        return;
    }
    const vec sum_2 = x[2] + x[3], less_2 = x[2] - x[3];
    x[0] = x0 + sum + sum_2;
    UNROLL for (int j = 0; j < 2; j++)
    {
        const vec even = x0 + sum * t[4 * j] + sum_2 * t[4 * j + 2];
        const vec odd = swap_parts(less * t[4 * j + 1] + less_2 * t[4 * j + 3]);
        x[j + 1] = even + odd * SIGNS(1, -1);
        x[4 - j] = even + odd * SIGNS(-1, 1);
    }
}

// Factors j of points p and p + 1 of a pass of radix r with m such groups; a first one's table, but a tile's, is of
// vectors, the last of which overlaps.
WT_INLINE vec twiddles_of(const float *table, const bool vectors, const int r, const int m, const int j, const int p)
{
    if (!vectors) return join_pairs(table + 2 * ((r - 1) * p + j - 1), table + 2 * ((r - 1) * (p + 1) + j - 1));
    const int block = p / LANES, begin = block * LANES + LANES <= m ? block * LANES : m - LANES;
    const vec re = load(table + 2 * LANES * ((r - 1) * block + j - 1));
    const vec im = load(table + 2 * LANES * ((r - 1) * block + j - 1) + LANES);
    return p == begin ? zip_low(re, im) : zip_high(re, im);
}

// r vectors, `step` apart, of points p and p + 1 of a pass.
WT_INLINE void pass_of_twos(const wt__fft_pass *pass, vec *x, const int r, const int step, const int m, const int p,
                            const bool vectors)
{
    vec a[5];
    UNROLL for (int k = 0; k < r; k++) a[k] = x[step * k];
    odd_points(a, r, pass->trig);
    x[0] = a[0];
    UNROLL for (int j = 1; j < r; j++)
        x[step * j] = times_points(a[j], twiddles_of(pass->twiddles, vectors, r, m, j, p));
}

// x[k], of points 2 k and 2 k + 1, becomes y[k] of k and k + r1 r2.
WT_INLINE void twos(const wt__fft_pass *passes, vec *x, vec *y, float scale, const int r1, const int r2)
{
    UNROLL for (int p = 0; p < r2; p++) pass_of_twos(&passes[0], x + p, r1, r2, 2 * r2, 2 * p, r2 > 1);
    UNROLL for (int q = 0; q < r1 && r2 > 1; q++) pass_of_twos(&passes[1], x + r2 * q, r2, 1, 2, 0, false);
    UNROLL for (int q = 0; q < r1; q++)
        UNROLL for (int j = 0; j < r2; j++)
        {
            const vec v = x[r2 * q + j];
            y[q + r1 * j] = (swap_points(v) + v * (vec){1, 1, -1, -1}) * scale;
        }
}

WT_INLINE void store_twos(float *out, vec *x, const int half, const bool back)
{
    UNROLL for (int k = 0; k < half; k++) x[k] = back ? swap_parts(x[k]) : x[k];
    UNROLL for (int k = 0; k + 1 < half; k += 2) store(out + 2 * k, low_points(x[k], x[k + 1]));
    store(out + 2 * half - 2, __builtin_shuffle(x[half - 1], x[0], (ivec){0, 1, 6, 7}));
    UNROLL for (int k = 1; k < half; k += 2) store(out + 2 * (half + k), high_points(x[k], x[k + 1]));
}

WT_INLINE void twos_of_pairs(const wt__fft_pass *passes, const float *in, float *out, float scale, const int r1,
                             const int r2, const bool back)
{
    vec x[TWOS_MOST], y[TWOS_MOST];
    UNROLL for (int k = 0; k < r1 * r2; k++) x[k] = back ? swap_parts(load(in + 4 * k)) : load(in + 4 * k);
    twos(passes, x, y, scale, r1, r2);
    store_twos(out, y, r1 * r2, back);
}

// Two of pair_bins(): `low` of two k, `high` of both h - k. Back, the parts of both change places.
typedef struct two_bins {
    vec low, high;
} two_bins;

WT_INLINE two_bins pair_points(vec a, vec b, vec w, const bool back)
{
    const vec even = a + b * SIGNS(1, -1);
    if (back) {
        const vec odd = times_points(a + b * SIGNS(-1, 1), w * SIGNS(1, -1)), turned = swap_parts(even);
        return (two_bins){turned + odd * SIGNS(1, -1), odd + turned * SIGNS(-1, 1)};
    }
    const vec odd = times_points(swap_parts(b) + swap_parts(a) * SIGNS(1, -1), w);
    return (two_bins){even + odd, even * SIGNS(1, -1) + odd * SIGNS(-1, 1)};
}

// The factors of bins k and k + 1, of the last alone.
WT_INLINE vec bin_twiddles(const float *w, const int half, const int k)
{
    const float *w_im = w + wt__fft_padded((size_t)half + 1);
    return k < half ? zip_low(load(w + k), load(w_im + k)) : (vec){w[k], w_im[k]};
}

WT_INLINE void twos_bins(const wt__fft_pass *passes, const float *w, const float *in, float *out, float scale,
                         const int r1, const int r2)
{
    const int half = r1 * r2, h = 2 * half;
    vec x[TWOS_MOST], y[TWOS_MOST];
    UNROLL for (int k = 0; k < half; k++) x[k] = load(in + 4 * k);
    twos(passes, x, y, scale, r1, r2);
    UNROLL for (int k = 1; k < half; k += 2)
    {
        const two_bins b = pair_points(low_points(y[k], y[k + 1]), high_points(y[half - k], y[half - k - 1]),
                                       bin_twiddles(w, half, k), false);
        store(out + 2 * k, b.low);
        store(out + 2 * (h - k - 1), swap_points(b.high));
    }
    const vec middle = high_points(y[0], y[0]);
    const two_bins b = pair_points(middle, middle, bin_twiddles(w, half, half), false);
    out[2 * half] = b.high[0], out[2 * half + 1] = b.high[1];
    out[0] = 2 * (y[0][0] + y[0][1]), out[1] = 0;
    out[2 * h] = 2 * (y[0][0] - y[0][1]), out[2 * h + 1] = 0;
}

WT_INLINE void twos_fold(const wt__fft_pass *passes, const float *w, const float *in, float *out, float scale,
                         const int r1, const int r2)
{
    const int half = r1 * r2, h = 2 * half;
    const vec middle = join_pairs(in + 2 * half, in + 2 * half);
    vec x[TWOS_MOST], y[TWOS_MOST], before = {0, 0, in[0] - in[2 * h], in[0] + in[2 * h]};
    UNROLL for (int k = 1; k < half; k += 2)
    {
        const two_bins z = pair_points(load(in + 2 * k), swap_points(load(in + 2 * (h - k - 1))),
                                       bin_twiddles(w, half, k), true);
        x[k / 2] = __builtin_shuffle(before, z.low, (ivec){2, 3, 4, 5});
        x[half - 1 - k / 2] = swap_points(z.high);
        before = z.low;
    }
    const two_bins z = pair_points(middle, middle, bin_twiddles(w, half, half), true);
    x[half / 2] = __builtin_shuffle(before, z.high, (ivec){2, 3, 4, 5});
    twos(passes, x, y, scale, r1, r2);
    store_twos(out, y, half, true);
}

#define TWOS(n, r1, r2)                                                                                                \
    static void twos_##n(SHORT_SIGNATURE)                                                                              \
    {                                                                                                                  \
        (void)twiddles, (void)scale; /* 1 */                                                                           \
        twos_of_pairs(passes, in, out, 1, r1, r2, false);                                                              \
    }                                                                                                                  \
    static void twos_swapped_##n(SHORT_SIGNATURE)                                                                      \
    {                                                                                                                  \
        (void)twiddles, twos_of_pairs(passes, in, out, scale, r1, r2, true);                                           \
    }                                                                                                                  \
    static void twos_bins_##n(SHORT_SIGNATURE) { twos_bins(passes, twiddles, in, out, scale, r1, r2); }                \
    static void twos_fold_##n(SHORT_SIGNATURE) { twos_fold(passes, twiddles, in, out, scale, r1, r2); }
#define TWOS_ENTRY(n) {n, {twos_##n, twos_swapped_##n, twos_bins_##n, twos_fold_##n}}
