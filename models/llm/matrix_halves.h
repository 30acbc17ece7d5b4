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

/// Of words' bytes the even ones, as halves times 2^-8, or the odd ones: a third fewer instructions than widening bytes
/// to words.
WT_INLINE words part_e4m3(words w, const int odd) { return (words)((signed_words)(odd ? w : w << 8) >> 1) & 0xbf80; }

/// Of each 64 columns the even ones, then the odd ones.
WT_INLINE pair load_e4m3_parted(const uint8_t *row, int64_t k)
{
    __m256i halves[2];
#pragma GCC unroll 2
    for (size_t i = 0; i < sizeof halves; i += sizeof(words)) {
        words w;
        memcpy(&w, row + k / PARTED * PARTED + i, sizeof w);
        w = part_e4m3(w, k % PARTED != 0);
        memcpy((char *)halves + i, &w, sizeof w);
    }
    return (pair){sixteen_halves(halves[0]), sixteen_halves(halves[1])};
}

/// Whether rows, and the blocks of columns that have a scale, are of whole PARTED columns.
static bool is_parted(const wt__linear *l)
{
    const int64_t columns = l->weight.shape[1];
    return columns % PARTED == 0 && (!l->scales || l->scale_columns >= columns || l->scale_columns % PARTED == 0);
}

/// x [n] times `scale`; parted, as load_e4m3_parted() has columns.
static void scale_columns(const float *restrict x, float scale, int64_t n, bool parted, float *restrict out)
{
    for (int64_t k = 0; k < n && !parted; k++) out[k] = x[k] * scale;
    for (int64_t k = 0; k < n && parted; k += TILE_STEP) {
        const pair p = load_even_odd((const uint8_t *)x, k);
        float *even = out + k / PARTED * PARTED + k % PARTED / 2;
        for (int i = 0; i < 16; i++) even[i] = p.a.part[i / TILE_FLOATS][i % TILE_FLOATS] * scale;
        for (int i = 0; i < 16; i++) even[PARTED / 2 + i] = p.b.part[i / TILE_FLOATS][i % TILE_FLOATS] * scale;
    }
}

/// Vectors, four at a time, get the 2^8 and the scales of the blocks that the rows from `row` on have.
static wt__product prescale(const wt__product *p, int64_t row, int t, int n, bool parted)
{
    const wt__linear *l = p->linear;
    const int64_t columns = l->weight.shape[1];
    const bool blocks = l->scales && l->scale_columns < columns;
    const int64_t step = blocks ? l->scale_columns : columns, n_scales = (columns + step - 1) / step;
    for (int j = 0; j < n; j++)
        for (int64_t b = 0; b < n_scales; b++) {
            const float scale = 256 * (blocks ? l->scales[row / l->scale_rows * n_scales + b] : 1);
            const int64_t end = b * step + step < columns ? b * step + step : columns;
            scale_columns(p->x + p->x_stride * (t + j) + b * step, scale, end - b * step, parted,
                          p->rows + j * columns + b * step);
        }
    wt__product scaled = *p;
    scaled.x = p->rows;
    scaled.x_stride = columns;
    scaled.out += t * p->out_stride;
    scaled.n = n;
    return scaled;
}

#ifndef __AVX512F__
/// Four rows with one vector, by way of halves in memory: from there F16C widens eight in half a cycle of a Zen 3, from
/// registers in one, and in one more it brings their upper half down. The sums of tiles(), in the same order.
WT_INLINE void e4m3_by_memory(const void *args, const int64_t *rows, float *y)
{
    enum { PIECE = 512 };
    const tile_args *a = args;
    const int64_t columns = a->p->linear->weight.shape[1];
    words halves[TILE_ROWS][PIECE / 16];
    const uint8_t *w[TILE_ROWS];
    sixteen sums[TILE_ROWS][TILE_MANY];
    for (int r = 0; r < TILE_ROWS; r++) w[r] = (const uint8_t *)halves[r], sums[r][0] = (sixteen){{{0}}};
    for (int64_t k = 0, n; k < columns; k += n) {
        const uint8_t *x = (const uint8_t *)(a->p->x + k);
        n = columns - k < PIECE ? columns - k : PIECE;
        for (int64_t at = 0; at < n; at += PARTED)
            for (int r = 0; r < TILE_ROWS; r++) {
                const uint8_t *row = a->data + a->row_bytes * (size_t)rows[r] + k + at;
                __builtin_prefetch(row + AHEAD, 0, 2);
                words v[2], *to = &halves[r][at / 16];
                memcpy(&v[0], row, sizeof *v);
                memcpy(&v[1], row + sizeof *v, sizeof *v);
                to[0] = part_e4m3(v[0], 0), to[1] = part_e4m3(v[1], 0);
                to[2] = part_e4m3(v[0], 1), to[3] = part_e4m3(v[1], 1);
            }
        for (int64_t at = 0; at < n; at += TILE_STEP) tile_step(load_f16, load_in_order, w, TILE_ROWS, &x, 1, at, sums);
    }
    for (int r = 0; r < TILE_ROWS; r++) y[r] = sum_of(&sums[r][0]);
}
#endif

/// Rows of whole PARTED columns.
static void e4m3_parted(const wt__product *p, const uint8_t *data, size_t row_bytes, int64_t first, int64_t n_rows)
{
#ifndef __AVX512F__
    const tile_args args = {.p = p, .data = data, .row_bytes = row_bytes};
    if (p->n == 1) runs(p, first, n_rows, 0, e4m3_by_memory, &args);
    if (p->n == 1) return;
#endif
    tiles(p, load_e4m3_parted, load_in_order, 1, PARTED, data, row_bytes, first, n_rows);
}

static void strips_e4m3(const wt__product *p, int64_t first, int64_t n_rows)
{
    const wt__linear *l = p->linear;
    const bool blocks = l->scales && l->scale_columns < l->weight.shape[1], parted = is_parted(l);
    for (int64_t r = first, n; r < first + n_rows; r += n) {
        const int64_t left = first + n_rows - r, until = blocks ? l->scale_rows - r % l->scale_rows : left;
        n = until < left ? until : left;
        for (int t = 0; t < p->n; t += VECTORS) {
            const wt__product scaled = prescale(p, r, t, p->n - t < VECTORS ? p->n - t : VECTORS, parted);
            const uint8_t *rows = wt__row(l, r);
            if (parted)
                e4m3_parted(&scaled, rows, wt__row_bytes(l), r, n);
            else
                tiles(&scaled, load_e4m3, load_in_order, 1, TILE_STEP, rows, wt__row_bytes(l), r, n);
        }
    }
}

#endif
