// Pairs taken apart and joined, bins of real signals from half their transforms and back, alone and in tiles. Included
// by fft_passes.h alone, whose vectors it uses.

static void split(const float *pairs, float *re, float *im, int n)
{
    int i = 0;
    for (; i + LANES <= n; i += LANES) store_side(re, im, WT__FFT_SPLIT, i, load_side(pairs, 0, WT__FFT_PAIRS, i));
    for (; i < n; i++) re[i] = pairs[2 * (size_t)i], im[i] = pairs[2 * (size_t)i + 1];
}

static void join(const float *re, const float *im, float *pairs, int n, float scale)
{
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        store_side(pairs, 0, WT__FFT_PAIRS, i, scaled(load_side(re, im, WT__FFT_SPLIT, i), scale));
    for (; i < n; i++) pairs[2 * (size_t)i] = re[i] * scale, pairs[2 * (size_t)i + 1] = im[i] * scale;
}

static void multiply(const float *a_re, const float *a_im, const float *b_re, const float *b_im, float *c_re,
                     float *c_im, int n)
{
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        store_side(c_re, c_im, WT__FFT_SPLIT, i,
                   times(load_side(a_re, a_im, WT__FFT_SPLIT, i), load(b_re + i), load(b_im + i)));
    for (; i < n; i++) {
        float re = a_re[i] * b_re[i] - a_im[i] * b_im[i], im = a_re[i] * b_im[i] + a_im[i] * b_re[i];
        c_re[i] = re, c_im[i] = im;
    }
}

// X[k] = E + w^k O and conj(X[h - k]) = E - w^k O, where E = Z[k] + conj(Z[h - k]), i O = Z[k] - conj(Z[h - k]), and Z
// is halved; back, Z[k] = E + i O and conj(Z[h - k]) = E - i O, where E = X[k] + conj(X[h - k]),
// O = conj(w^k) (X[k] - conj(X[h - k])), and Z comes doubled. Either way `low` is of k, `high` of h - k.
typedef struct bin_pair {
    cvec low, high;
} bin_pair;

WT_INLINE bin_pair pair_bins(cvec a, cvec b, vec w_re, vec w_im, const bool back)
{
    const cvec even = {a.re + b.re, a.im - b.im};
    if (back) {
        const cvec odd = times((cvec){a.re - b.re, a.im + b.im}, w_re, -w_im);
        return (bin_pair){add_i(even, odd), {even.re + odd.im, odd.re - even.im}};
    }
    const cvec odd = times((cvec){a.im + b.im, b.re - a.re}, w_re, w_im);
    return (bin_pair){add(even, odd), {even.re - odd.re, odd.im - even.im}};
}

WT_INLINE void store_bins(float *re, float *im, const wt__fft_form form, ptrdiff_t at, cvec v)
{
    if (form == WT__FFT_POWERS) store(re + at, v.re * v.re + v.im * v.im);
    else store_side(re, im, form, at, v);
}

// Pairs k, h - k for 1 <= k <= h / 2, vectors of k rising, of h - k falling. Blocks begin at multiples of LANES on both
// sides, which memory likes best: the first of a block of h - k comes with the next block of k, the others with this
// one, turned round. The last vectors begin where they must, and write the one that was left.
WT_INLINE void pair_blocks(const float *x_re, const float *x_im, const wt__fft_form from, const float *w_re,
                           const float *w_im, ptrdiff_t h, float *y_re, float *y_im, const wt__fft_form to,
                           const bool back)
{
    const ptrdiff_t last = h / 2, whole = (last + 1) / LANES * LANES, low = last - LANES + 1, high = h - last;
    cvec above = {{0}, {0}}, before = above;
    for (ptrdiff_t at = 0; at < whole; at += LANES) {
        const cvec a = load_side(x_re, x_im, from, at), b = load_side(x_re, x_im, from, h - at - LANES);
        const bin_pair y = pair_bins(a, turn(b, above), load(w_re + at), load(w_im + at), back);
        store_bins(y_re, y_im, to, at, y.low);
        if (at) store_bins(y_re, y_im, to, h - at, turn(before, y.high));
        above = b, before = y.high;
    }
    store_bins(y_re, y_im, to, h - whole, turn(before, before));
    const cvec a = load_side(x_re, x_im, from, low), b = reverse(load_side(x_re, x_im, from, high));
    const bin_pair y = pair_bins(a, b, load(w_re + low), load(w_im + low), back);
    store_bins(y_re, y_im, to, low, y.low);
    store_bins(y_re, y_im, to, high, reverse(y.high));
}

// The same of few, one by one: in the first lane, where sums round as they do in all.
WT_INLINE cvec one_of(const float *re, const float *im, ptrdiff_t at) { return (cvec){{re[at]}, {im[at]}}; }

WT_INLINE void pair_few(const float *x_re, const float *x_im, const float *w_re, const float *w_im, ptrdiff_t h,
                        float *y_re, float *y_im, const ptrdiff_t x_step, const ptrdiff_t y_step, const bool back)
{
    for (ptrdiff_t k = 1; k <= h / 2; k++) {
        const cvec a = one_of(x_re, x_im, k * x_step), b = one_of(x_re, x_im, (h - k) * x_step);
        const bin_pair y = pair_bins(a, b, (vec){w_re[k]}, (vec){w_im[k]}, back);
        y_re[k * y_step] = y.low.re[0], y_im[k * y_step] = y.low.im[0];
        y_re[(h - k) * y_step] = y.high.re[0], y_im[(h - k) * y_step] = y.high.im[0];
    }
}

WT_INLINE void real_bins(const float *z_re, const float *z_im, const float *twiddles, int h, float *re, float *im,
                         const wt__fft_form form)
{
    const ptrdiff_t step = form == WT__FFT_PAIRS ? 2 : 1;
    const float *w_im = twiddles + wt__fft_padded((size_t)h / 2 + 1);
    const float sum = 2 * (z_re[0] + z_im[0]), difference = 2 * (z_re[0] - z_im[0]);
    if (form == WT__FFT_PAIRS) im = re + 1;
    if (h / 2 >= LANES) pair_blocks(z_re, z_im, WT__FFT_SPLIT, twiddles, w_im, h, re, im, form, false);
    else pair_few(z_re, z_im, twiddles, w_im, h, re, im, 1, step, false);
    if (form == WT__FFT_POWERS) {
        re[0] = sum * sum, re[h] = difference * difference;
        return;
    }
    re[0] = sum, im[0] = 0;
    re[step * h] = difference, im[step * h] = 0;
}

WT_INLINE void real_fold(const float *re, const float *im, const float *twiddles, int h, float *z_re, float *z_im,
                         const wt__fft_form form)
{
    const ptrdiff_t step = form == WT__FFT_PAIRS ? 2 : 1;
    const float *w_im = twiddles + wt__fft_padded((size_t)h / 2 + 1);
    if (form == WT__FFT_PAIRS) im = re + 1;
    if (h / 2 >= LANES) pair_blocks(re, im, form, twiddles, w_im, h, z_re, z_im, WT__FFT_SPLIT, true);
    else pair_few(re, im, twiddles, w_im, h, z_re, z_im, step, 1, true);
    z_re[0] = re[0] + re[step * h], z_im[0] = re[0] - re[step * h];
}

// All but the first and the last of a tile's bins, from split sides to split ones.
WT_INLINE void tile_pairs(const float *from_re, const float *from_im, const float *twiddles, int h, float *re,
                          float *im, const bool fold)
{
    const float *w_im = twiddles + wt__fft_padded((size_t)h / 2 + 1);
    for (ptrdiff_t k = 1; k <= h / 2; k++) {
        const bin_pair y = pair_bins(load_side(from_re, from_im, WT__FFT_SPLIT, k * LANES),
                                     load_side(from_re, from_im, WT__FFT_SPLIT, (h - k) * LANES),
                                     (vec){0} + twiddles[k], (vec){0} + w_im[k], fold);
        store_side(re, im, WT__FFT_SPLIT, k * LANES, y.low);
        store_side(re, im, WT__FFT_SPLIT, (h - k) * LANES, y.high);
    }
}

static void tile_bins(const float *z_re, const float *z_im, const float *twiddles, int h, float *re, float *im)
{
    const vec z0_re = load(z_re), z0_im = load(z_im);
    tile_pairs(z_re, z_im, twiddles, h, re, im, false);
    store_side(re, im, WT__FFT_SPLIT, 0, (cvec){2 * (z0_re + z0_im), {0}});
    store_side(re, im, WT__FFT_SPLIT, (ptrdiff_t)h * LANES, (cvec){2 * (z0_re - z0_im), {0}});
}

static void tile_fold(const float *re, const float *im, const float *twiddles, int h, float *z_re, float *z_im)
{
    const vec first = load(re), last = load(re + (ptrdiff_t)h * LANES);
    tile_pairs(re, im, twiddles, h, z_re, z_im, true);
    store_side(z_re, z_im, WT__FFT_SPLIT, 0, (cvec){first + last, first - last});
}

#define BINS(name, form)                                                                                              \
    static void real_bins_##name(const float *z_re, const float *z_im, const float *twiddles, int h, float *re,       \
                                 float *im)                                                                           \
    {                                                                                                                 \
        real_bins(z_re, z_im, twiddles, h, re, im, form);                                                             \
    }
#define FOLD(name, form)                                                                                              \
    static void real_fold_##name(const float *re, const float *im, const float *twiddles, int h, float *z_re,         \
                                 float *z_im)                                                                         \
    {                                                                                                                 \
        real_fold(re, im, twiddles, h, z_re, z_im, form);                                                             \
    }

BINS(split, WT__FFT_SPLIT)
BINS(pairs, WT__FFT_PAIRS)
BINS(powers, WT__FFT_POWERS)
FOLD(split, WT__FFT_SPLIT)
FOLD(pairs, WT__FFT_PAIRS)
