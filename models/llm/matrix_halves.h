/// Products of halves and of fp8, in float, for x86-64-v3 and up; the file that includes this names the instructions by
/// a pragma.
#ifndef WT_LLM_MATRIX_HALVES_H
#define WT_LLM_MATRIX_HALVES_H

#include "matrix_tile.h"

#include <immintrin.h>

enum { VECTORS = 4, PARTED = 64 };

typedef uint16_t words __attribute__((vector_size(sizeof(tile_vec))));
typedef int16_t signed_words __attribute__((vector_size(sizeof(tile_vec))));

WT_INLINE __m256i bytes_at(const void *p) { return _mm256_loadu_si256(p); }

WT_INLINE sixteen sixteen_halves_at(const void *p)
{
#ifdef __AVX512F__
    return (sixteen){{(wt_f32x16)_mm512_cvtph_ps(bytes_at(p))}};
#else
    const __m128i *h = p;
    return (sixteen){{_mm256_cvtph_ps(_mm_loadu_si128(h)), _mm256_cvtph_ps(_mm_loadu_si128(h + 1))}};
#endif
}

WT_INLINE sixteen sixteen_halves(__m256i h)
{
#ifdef __AVX512F__
    return (sixteen){{(wt_f32x16)_mm512_cvtph_ps(h)}};
#else
    return (sixteen){{_mm256_cvtph_ps(_mm256_castsi256_si128(h)), _mm256_cvtph_ps(_mm256_extracti128_si256(h, 1))}};
#endif
}

WT_INLINE pair load_f16(const uint8_t *row, int64_t k)
{
    return (pair){sixteen_halves_at(row + 2 * k), sixteen_halves_at(row + 2 * k + 32)};
}
TILE_STRIPS(strips_f16, load_f16, load_in_order, 2)

/// e4m3's bits at the place of binary16's give the value times 2^-8; there is no NaN among weights.
WT_INLINE sixteen sixteen_e4m3(const uint8_t *p)
{
    const __m256i h = _mm256_slli_epi16(_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p)), 7);
    return sixteen_halves(_mm256_and_si256(h, _mm256_set1_epi16((short)0xbf80)));
}

WT_INLINE pair load_e4m3(const uint8_t *row, int64_t k)
{
    return (pair){sixteen_e4m3(row + k), sixteen_e4m3(row + k + 16)};
}

#ifdef __AVX512F__
/// Of words' bytes the even ones, as halves times 2^-8, or the odd ones: a third fewer instructions than widening bytes
/// to words.
WT_INLINE words part_e4m3(words w, const int odd) { return (words)((signed_words)(odd ? w : w << 8) >> 1) & 0xbf80; }

/// Of each 64 columns the even ones, then the odd ones.
WT_INLINE pair load_e4m3_parted(const uint8_t *row, int64_t k)
{
    words w;
    memcpy(&w, row + k / PARTED * PARTED, sizeof w);
    w = part_e4m3(w, k % PARTED != 0);
    __m256i halves[2];
    memcpy(halves, &w, sizeof halves);
    return (pair){sixteen_halves(halves[0]), sixteen_halves(halves[1])};
}

/// What the vector is multiplied with before, and sums after.
enum { PARTED_X = 256, PARTED_SUMS = 1 };
#else
/// e4m3's bits at the place of a float's give the value times 2^-120, without what F16C costs; half of the 2^120 goes
/// to the vector and half to the sums, so that neither is too large or too small. Of each 64 columns those that are 1,
/// 3, 0 and 2 beyond a multiple of four: products with 16 and with 0 leave every other byte, four bits from its word's
/// end, and shifts of whole registers bring them to their places. That is another order than with AVX-512, where F16C
/// costs less and Intel's processors take long over products with subnormal floats.
WT_INLINE pair load_e4m3_parted(const uint8_t *row, int64_t k)
{
    const tile_words bits = (tile_words){0} + 0x87f00000;
    const __m256i sixteens = _mm256_set1_epi16(k % PARTED ? 16 : 16 << 8);
    pair p;
#    pragma GCC unroll 2
    for (int i = 0; i < TILE_PARTS; i++) {
        words w;
        memcpy(&w, row + k / PARTED * PARTED + (size_t)i * sizeof w, sizeof w);
        const tile_words both = (tile_words)_mm256_maddubs_epi16(sixteens, (__m256i)w);
        p.a.part[i] = (tile_vec)(both << 16 & bits), p.b.part[i] = (tile_vec)(both & bits);
    }
    return p;
}

static const float PARTED_X = 0x1p60f, PARTED_SUMS = 0x1p60f;
#endif

/// Whether rows, and the blocks of columns that have a scale, are of whole PARTED columns.
static bool is_parted(const wt__linear *l)
{
    const int64_t columns = l->weight.shape[1];
    return columns % PARTED == 0 && (!l->scales || l->scale_columns >= columns || l->scale_columns % PARTED == 0);
}

/// 32 columns from x on: the even ones to `even`, the odd ones to `odd`.
WT_INLINE void part_columns(const float *x, float *even, float *odd)
{
    const pair p = load_even_odd((const uint8_t *)x, 0);
    memcpy(even, &p.a, sizeof p.a);
    memcpy(odd, &p.b, sizeof p.b);
}

/// Columns as load_e4m3_parted() has them.
static void part_vector(const float *x, int64_t n, float *out)
{
    for (int64_t k = 0; k < n; k += PARTED) {
#ifdef __AVX512F__
        part_columns(x + k, out + k, out + k + 32);
        part_columns(x + k + 32, out + k + 16, out + k + 48);
#else
        float v[PARTED], *even = v, *odd = v + PARTED / 2;
        part_columns(x + k, even, odd);
        part_columns(x + k + 32, even + 16, odd + 16);
        part_columns(odd, out + k, out + k + 16);
        part_columns(even, out + k + 32, out + k + 48);
#endif
    }
}

/// Vector t in the order of the weights' columns. One vector's is beyond the first of the scratch, where calls for
/// other rows find it.
static const float *ordered(const wt__product *p, int t, int slot, bool parted)
{
    const int64_t columns = p->linear->weight.shape[1];
    const float *x = p->x + p->x_stride * t;
    float *out = p->rows + columns * (p->n == 1 ? 1 : slot);
    if (!parted) return x;
    if (!p->prepared) part_vector(x, columns, out);
    return out;
}

/// Vectors, four at a time, get what weights as they are loaded lack, and the scales of the blocks that the rows from
/// `row` on have.
static wt__product prescale(const wt__product *p, int64_t row, int t, int n, bool parted)
{
    const wt__linear *l = p->linear;
    const int64_t columns = l->weight.shape[1];
    const bool blocks = l->scales && l->scale_columns < columns;
    const int64_t step = blocks ? l->scale_columns : columns, n_scales = (columns + step - 1) / step;
    for (int j = 0; j < n; j++) {
        const float *x = ordered(p, t + j, j, parted);
        float *out = p->rows + j * columns;
        for (int64_t b = 0; b < n_scales; b++) {
            const float of_block = blocks ? l->scales[row / l->scale_rows * n_scales + b] : 1;
            const float scale = (parted ? PARTED_X : 256) * of_block;
            const int64_t end = b * step + step < columns ? b * step + step : columns;
            for (int64_t k = b * step; k < end; k++) out[k] = x[k] * scale;
        }
    }
    wt__product scaled = *p;
    scaled.x = p->rows;
    scaled.x_stride = columns;
    scaled.out += t * p->out_stride;
    scaled.n = n;
    scaled.factor = parted ? PARTED_SUMS : 1;
    return scaled;
}

static void products_e4m3(const wt__product *p, int64_t first, int64_t n_rows)
{
    const wt__linear *l = p->linear;
    const bool blocks = l->scales && l->scale_columns < l->weight.shape[1], parted = is_parted(l);
    const size_t row_bytes = wt__row_bytes(l);
    wt__product q = *p;
    for (int64_t r = first, n; r < first + n_rows; r += n) {
        const int64_t left = first + n_rows - r, until = blocks ? l->scale_rows - r % l->scale_rows : left;
        n = until < left ? until : left;
        for (int t = 0; t < p->n; t += VECTORS) {
            const wt__product scaled = prescale(&q, r, t, p->n - t < VECTORS ? p->n - t : VECTORS, parted);
            if (parted)
                tiles(&scaled, load_e4m3_parted, load_in_order, 1, PARTED, wt__row(l, r), row_bytes, r, n);
            else
                tiles(&scaled, load_e4m3, load_in_order, 1, TILE_STEP, wt__row(l, r), row_bytes, r, n);
        }
        q.prepared = p->n == 1;
    }
}

/// Weights may be subnormal floats here, which count in a thread that flushes them, too.
static void strips_e4m3(const wt__product *p, int64_t first, int64_t n_rows)
{
    enum { FLUSHES = 0x8040 };
    const unsigned mode = _mm_getcsr();
    if (mode & FLUSHES) _mm_setcsr(mode & ~(unsigned)FLUSHES);
    products_e4m3(p, first, n_rows);
    if (mode & FLUSHES) _mm_setcsr(mode);
}

#endif
