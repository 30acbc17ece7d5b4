// Rows of transforms to and from tiles, in which LANES transforms lie side by side. Included by fft_passes.h alone,
// whose vectors it uses.

// Rows of at least LANES end with a block that overlaps the one before; those of bins with a pair behind whole blocks.
WT_INLINE ptrdiff_t without_pair(ptrdiff_t n, const int step) { return step == 2 && n % LANES == 2 ? n - 2 : n; }

// One pair of each row, moved whole: numbers that are stored one by one could not be loaded together soon after.
typedef double pairs_vec __attribute__((vector_size(4 * LANES)));
typedef double one_pair __attribute__((aligned(4), may_alias));
WT_INLINE cvec load_pairs(const float *rows, ptrdiff_t distance)
{
    pairs_vec low, high;
    UNROLL for (int row = 0; row < LANES / 2; row++)
    {
        low[row] = *(const one_pair *)(rows + row * distance);
        high[row] = *(const one_pair *)(rows + (row + LANES / 2) * distance);
    }
    const vec a = (vec)low, b = (vec)high;
    return (cvec){__builtin_shuffle(a, b, (ivec)EVEN), __builtin_shuffle(a, b, (ivec)ODD)};
}

WT_INLINE void store_pairs(float *rows, ptrdiff_t distance, cvec v)
{
    const pairs_vec low = (pairs_vec)zip_low(v.re, v.im), high = (pairs_vec)zip_high(v.re, v.im);
    UNROLL for (int row = 0; row < LANES / 2; row++)
    {
        *(one_pair *)(rows + row * distance) = low[row];
        *(one_pair *)(rows + (row + LANES / 2) * distance) = high[row];
    }
}

WT_INLINE void turn_in(const float *rows, ptrdiff_t distance, ptrdiff_t n, float *re, float *im, const int step)
{
    const ptrdiff_t most = without_pair(n, step);
    for (ptrdiff_t block = 0; block < most && n >= LANES; block += LANES) {
        const ptrdiff_t i = block + LANES <= most ? block : most - LANES, at = i / step * LANES;
        vec v[LANES];
        UNROLL for (int row = 0; row < LANES; row++) v[row] = load(rows + row * distance + i);
        transpose_square(v);
        UNROLL for (int k = 0; k < LANES; k++) store((k % step ? im : re) + at + k / step * LANES, v[k]);
    }
    for (ptrdiff_t i = n < LANES ? 0 : most; i < n; i += step) {
        if (step == 2) store_side(re, im, WT__FFT_SPLIT, i / 2 * LANES, load_pairs(rows + i, distance));
        else for (int row = 0; row < LANES; row++) re[i * LANES + row] = rows[row * distance + i];
    }
}

WT_INLINE void turn_out(const float *re, const float *im, ptrdiff_t n, float *rows, ptrdiff_t distance, const int step)
{
    const ptrdiff_t most = without_pair(n, step);
    for (ptrdiff_t block = 0; block < most && n >= LANES; block += LANES) {
        const ptrdiff_t i = block + LANES <= most ? block : most - LANES, at = i / step * LANES;
        vec v[LANES];
        UNROLL for (int k = 0; k < LANES; k++) v[k] = load((k % step ? im : re) + at + k / step * LANES);
        transpose_square(v);
        UNROLL for (int row = 0; row < LANES; row++) store(rows + row * distance + i, v[row]);
    }
    for (ptrdiff_t i = n < LANES ? 0 : most; i < n; i += step) {
        if (step == 2) store_pairs(rows + i, distance, load_side(re, im, WT__FFT_SPLIT, i / 2 * LANES));
        else for (int row = 0; row < LANES; row++) rows[row * distance + i] = re[i * LANES + row];
    }
}

static void rows_in(const float *rows, ptrdiff_t distance, int n, float *re, float *im, bool pairs)
{
    if (pairs) turn_in(rows, distance, n, re, im, 2);
    else turn_in(rows, distance, n, re, re, 1);
}

static void rows_out(const float *re, const float *im, int n, float *rows, ptrdiff_t distance, bool pairs)
{
    if (pairs) turn_out(re, im, n, rows, distance, 2);
    else turn_out(re, re, n, rows, distance, 1);
}
