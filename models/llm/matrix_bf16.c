// Products of bf16 for x86-64-v4 with AVX512_BF16: a vector is rounded to bf16, and one instruction adds two columns'
// products to each of sixteen sums, where floats take five for 32 columns of one vector.
//
// The rounding errs by 0.4 % of a number at most, where that to bytes errs by as much of the largest of 32. A float as
// two parts of bf16 would gain a fifth over products of floats and lose 8 bits; three, which have all, lose time. What
// is summed for a row and a vector, and in which order, does not depend on how many there are. Subnormal numbers count
// as 0.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#    pragma GCC target("arch=x86-64-v4,avx512vnni,avx512bf16")
#    include "matrix_runs.h"

#    include <immintrin.h>
#    include <string.h>

enum { STEP = 32, STRETCH = 1024, ROWS = 3, MOST_ROWS = 8 * ROWS, VECTORS = 8 };

WT_INLINE __mmask32 first_columns(int64_t n) { return n < STEP ? (1u << n) - 1 : ~0u; }

/// Of n_vectors the j-th: they lie STEP columns of each after another, and so do the columns that are left. Columns of
/// several in rows of their own would be kilobytes apart, which a cache has few places for.
static void round_vector(const float *x, int64_t columns, int n_vectors, int j, uint16_t *out)
{
    for (int64_t k = 0; k < columns; k += STEP) {
        const int64_t n = columns - k < STEP ? columns - k : STEP;
        const __mmask32 mask = first_columns(n);
        const __m512 low = _mm512_maskz_loadu_ps((__mmask16)mask, x + k);
        const __m512 high = _mm512_maskz_loadu_ps((__mmask16)(mask >> 16), x + k + STEP / 2);
        _mm512_mask_storeu_epi16(out + k * n_vectors + j * n, mask, (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
}

/// sum[r][j] gets the products of n columns, STEP at most, from w[r] + k and x + n j on.
WT_INLINE void add_step(const uint16_t *const *w, const int n_rows, const uint16_t *x, const int n_vectors, int64_t k,
                        int64_t n, __m512 (*sum)[VECTORS])
{
    const __mmask32 mask = first_columns(n);
    __m512bh row[FOUR_ROWS];
#    pragma GCC unroll 4
    for (int r = 0; r < n_rows; r++) row[r] = (__m512bh)_mm512_maskz_loadu_epi16(mask, w[r] + k);
#    pragma GCC unroll 8
    for (int j = 0; j < n_vectors; j++) {
        const __m512bh v = (__m512bh)_mm512_maskz_loadu_epi16(mask, x + n * j);
#    pragma GCC unroll 4
        for (int r = 0; r < n_rows; r++) sum[r][j] = _mm512_dpbf16_ps(sum[r][j], row[r], v);
    }
}

/// sums[r][j] get the products of columns begin .. end - 1; `ahead` bytes of rows are fetched before their turn.
WT_INLINE void add_dots(const uint16_t *const *w, const int n_rows, const uint16_t *x, const int n_vectors,
                        int64_t begin, int64_t end, size_t ahead, __m512 (*sums)[VECTORS])
{
    __m512 sum[FOUR_ROWS][VECTORS];
    int64_t k = begin;
#    pragma GCC unroll 4
    for (int r = 0; r < n_rows; r++)
#    pragma GCC unroll 8
        for (int j = 0; j < n_vectors; j++) sum[r][j] = sums[r][j];
    for (; k + STEP <= end; k += STEP) {
#    pragma GCC unroll 4
        for (int r = 0; r < n_rows; r++) __builtin_prefetch((const uint8_t *)(w[r] + k) + ahead, 0, 2);
        add_step(w, n_rows, x + k * n_vectors, n_vectors, k, STEP, sum);
    }
    if (k < end) add_step(w, n_rows, x + k * n_vectors, n_vectors, k, end - k, sum);
#    pragma GCC unroll 4
    for (int r = 0; r < n_rows; r++)
#    pragma GCC unroll 8
        for (int j = 0; j < n_vectors; j++) sums[r][j] = sum[r][j];
}

// ---- one vector

typedef struct one_args {
    const uint16_t *w, *x; ///< w: the first row
    int64_t columns;
} one_args;

WT_INLINE void dots_of_four(const void *args, const int64_t *rows, float *y)
{
    const one_args *a = args;
    const uint16_t *w[FOUR_ROWS];
    __m512 sums[FOUR_ROWS][VECTORS];
    for (int r = 0; r < FOUR_ROWS; r++) {
        w[r] = a->w + a->columns * rows[r];
        sums[r][0] = _mm512_setzero_ps();
    }
    add_dots(w, FOUR_ROWS, a->x, 1, 0, a->columns, AHEAD, sums);
    for (int r = 0; r < FOUR_ROWS; r++) y[r] = _mm512_reduce_add_ps(sums[r][0]);
}

// ---- several: of some rows a stretch of columns after another, which all vectors find in the nearest cache

WT_INLINE void dots_of_rows(const wt__product *p, int64_t first, int n_rows, int t, const int n_vectors)
{
    const int64_t columns = p->linear->weight.shape[1];
    const uint16_t *data = (const uint16_t *)wt__row(p->linear, first), *x = (const uint16_t *)p->rows;
    __m512 sums[MOST_ROWS][VECTORS];
    float y[MOST_ROWS * VECTORS];
    memset(sums, 0, sizeof sums);
    for (int64_t begin = 0; begin < columns; begin += STRETCH)
        for (int i = 0; i < n_rows; i += ROWS) {
            const uint16_t *w[FOUR_ROWS];
            for (int r = 0; r < ROWS; r++) w[r] = data + columns * (i + r < n_rows ? i + r : n_rows - 1);
            const int64_t end = begin + STRETCH < columns ? begin + STRETCH : columns;
            add_dots(w, ROWS, x, n_vectors, begin, end, sizeof *x * ROWS * (size_t)columns, &sums[i]);
        }
    for (int j = 0; j < n_vectors; j++)
        for (int r = 0; r < n_rows; r++) y[j * n_rows + r] = _mm512_reduce_add_ps(sums[r][j]);
    wt__products_store(p, first, n_rows, t, n_vectors, y);
}

WT_INLINE void dots_of_many(const wt__product *p, int64_t first, int64_t n_rows, int t, const int n_vectors)
{
    for (int64_t r = 0; r < n_rows; r += MOST_ROWS)
        dots_of_rows(p, first + r, (int)(n_rows - r < MOST_ROWS ? n_rows - r : MOST_ROWS), t, n_vectors);
}

void wt__strips_bf16_dots(const wt__product *p, int64_t first, int64_t n_rows)
{
    const int64_t columns = p->linear->weight.shape[1];
    uint16_t *x = (uint16_t *)p->rows;
    for (int t = 0, n; t < p->n; t += n) {
        const int left = p->n - t;
        n = left >= VECTORS ? VECTORS : left >= FOUR_ROWS ? FOUR_ROWS : 1;
        for (int j = 0; j < n && !p->prepared; j++) round_vector(p->x + p->x_stride * (t + j), columns, n, j, x);
        if (n == VECTORS)
            dots_of_many(p, first, n_rows, t, VECTORS);
        else if (n == FOUR_ROWS)
            dots_of_many(p, first, n_rows, t, FOUR_ROWS);
        else
            runs(p, first, n_rows, t, dots_of_four,
                 &(one_args){(const uint16_t *)wt__row(p->linear, first), x, columns});
    }
}
#else
typedef int wt__matrix_no_bf16; // a translation unit may not be empty
#endif
