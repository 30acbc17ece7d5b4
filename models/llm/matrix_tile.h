/// Sums of a matrix's rows with vectors in float, for the files that say how 32 weights become floats. Four rows at a
/// time, up to four vectors: a weight is read and widened once for all of them. What is summed for a row and a vector,
/// and in which order, does not depend on how many vectors there are.
#ifndef WT_LLM_MATRIX_TILE_H
#define WT_LLM_MATRIX_TILE_H

#include "matrix.h"

#include <string.h>
#include <warptone/simd.h>

enum { TILE_STEP = 32, TILE_ROWS = 4, TILE_VECTORS = 4 };

typedef struct pair {
    wt_f32x16 a, b;
} pair;

/// 32 weights from column k on, in the order that the other function of the type takes 32 of a vector.
typedef pair (*pair_loader)(const uint8_t *row, int64_t k);

/// Columns k .. k + 15 and k + 16 .. k + 31.
WT_INLINE pair load_in_order(const uint8_t *row, int64_t k)
{
    pair p;
    memcpy(&p.a, row + 4 * k, sizeof p.a);
    memcpy(&p.b, row + 4 * k + sizeof p.a, sizeof p.b);
    return p;
}

/// Halves are added to halves, in registers: through memory it took a tenth of a row of 1024.
WT_INLINE float sum_of(wt_f32x16 v)
{
    v += __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15);
    v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7);
    v += __builtin_shufflevector(v, v, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3);
    return v[0] + v[1];
}

/// The last columns, fewer than TILE_STEP, with zeros after them.
WT_INLINE pair load_tail(pair_loader load, const uint8_t *row, int64_t k, int n, size_t width)
{
    uint8_t padded[TILE_STEP * 4] = {0};
    memcpy(padded, row + (size_t)k * width, (size_t)n * width);
    return load(padded, 0);
}

/// out[t][r] = sum over k of w[r][k] x[t][k]. Rows beyond n_rows are computed again from the last and not stored.
/// `unit` columns at a time, a multiple of TILE_STEP; columns are, too, where it is another.
WT_INLINE void tile(const wt__product *p, pair_loader load, pair_loader load_x, size_t width, const int unit,
                    const uint8_t *data, size_t row_bytes, int64_t columns, int64_t first, int n_rows, int t,
                    const int n_vectors)
{
    const uint8_t *w[TILE_ROWS], *x[TILE_VECTORS];
    wt_f32x16 sums[TILE_ROWS][TILE_VECTORS];
    for (int r = 0; r < TILE_ROWS; r++) {
        w[r] = data + row_bytes * (size_t)(r < n_rows ? r : n_rows - 1);
        for (int j = 0; j < n_vectors; j++) sums[r][j] = (wt_f32x16){0};
    }
    for (int j = 0; j < n_vectors; j++) x[j] = (const uint8_t *)(p->x + p->x_stride * (t + j));
    const int64_t whole = columns - columns % TILE_STEP;
    for (int64_t n = 0; n < whole / unit; n++)
#pragma GCC unroll 2
        for (int64_t k = n * unit; k < (n + 1) * unit; k += TILE_STEP) {
            pair wide[TILE_ROWS];
#pragma GCC unroll 4
            for (int r = 0; r < TILE_ROWS; r++) { // prefetched: the same place of the next rows
                if (k * (int64_t)width % 64 == 0)
                    __builtin_prefetch(w[r] + TILE_ROWS * row_bytes + (size_t)k * width, 0, 2);
                wide[r] = load(w[r], k);
            }
#pragma GCC unroll 4
            for (int j = 0; j < n_vectors; j++) {
                const pair v = load_x(x[j], k);
#pragma GCC unroll 4
                for (int r = 0; r < TILE_ROWS; r++) sums[r][j] += wide[r].a * v.a;
#pragma GCC unroll 4
                for (int r = 0; r < TILE_ROWS; r++) sums[r][j] += wide[r].b * v.b;
            }
        }
    if (whole < columns)
        for (int r = 0; r < TILE_ROWS; r++) {
            const pair wide = load_tail(load, w[r], whole, (int)(columns - whole), width);
            for (int j = 0; j < n_vectors; j++) {
                const pair v = load_tail(load_x, x[j], whole, (int)(columns - whole), 4);
                sums[r][j] += wide.a * v.a;
                sums[r][j] += wide.b * v.b;
            }
        }
    for (int j = 0; j < n_vectors; j++)
        for (int r = 0; r < n_rows; r++) wt__product_store(p, first + r, t + j, sum_of(sums[r][j]));
}

/// Rows first .. first + n_rows - 1 of the matrix, which lie at `data`, with all vectors.
WT_INLINE void tiles(const wt__product *p, pair_loader load, pair_loader load_x, size_t width, const int unit,
                     const uint8_t *data, size_t row_bytes, int64_t first, int64_t n_rows)
{
    const int64_t columns = p->linear->weight.shape[1];
    for (int64_t r = 0; r < n_rows; r += TILE_ROWS) {
        const uint8_t *at = data + row_bytes * (size_t)r;
        const int n = (int)(n_rows - r < TILE_ROWS ? n_rows - r : TILE_ROWS);
        int t = 0;
        for (; t + TILE_VECTORS <= p->n; t += TILE_VECTORS)
            tile(p, load, load_x, width, unit, at, row_bytes, columns, first + r, n, t, TILE_VECTORS);
        for (; t < p->n; t++) tile(p, load, load_x, width, unit, at, row_bytes, columns, first + r, n, t, 1);
    }
}

#endif
