/// Sums of a matrix's rows with vectors in float, for the files that say how 32 weights become floats. Four rows with
/// one vector, or as many of both as registers hold: a weight is read and widened once for all of the vectors. What is
/// summed for a row and a vector, and in which order, does not depend on how many vectors there are, nor on how many
/// floats a register of the instructions holds that the file including this names.
#ifndef WT_LLM_MATRIX_TILE_H
#define WT_LLM_MATRIX_TILE_H

#include "matrix_runs.h"

#include <string.h>
#include <warptone/simd.h>

#ifdef __AVX512F__
enum { TILE_FLOATS = 16, TILE_MANY = 4 }; // in a vector; rows, and vectors, at a time
typedef wt_f32x16 tile_vec;
#elif defined(__AVX__)
enum { TILE_FLOATS = 8, TILE_MANY = 2 };
typedef wt_f32x8 tile_vec;
#else
enum { TILE_FLOATS = 4, TILE_MANY = 2 };
typedef wt_f32x4 tile_vec;
#endif
enum { TILE_STEP = 32, TILE_ROWS = FOUR_ROWS, TILE_PARTS = 16 / TILE_FLOATS };
typedef uint32_t tile_words __attribute__((vector_size(sizeof(tile_vec))));

/// Sixteen floats. Wider vectors than the registers GCC keeps in memory.
typedef struct sixteen {
    tile_vec part[TILE_PARTS];
} sixteen;

typedef struct pair {
    sixteen a, b;
} pair;

/// 32 weights from column k on, in the order that the other function of the type takes 32 of a vector.
typedef pair (*pair_loader)(const uint8_t *row, int64_t k);

WT_INLINE sixteen sixteen_at(const uint8_t *p)
{
    sixteen v;
#pragma GCC unroll 4
    for (size_t i = 0; i < TILE_PARTS; i++) memcpy(&v.part[i], p + i * sizeof *v.part, sizeof *v.part);
    return v;
}

WT_INLINE void add_product(sixteen *sum, const sixteen *a, const sixteen *b)
{
#pragma GCC unroll 4
    for (int i = 0; i < TILE_PARTS; i++) sum->part[i] += a->part[i] * b->part[i];
}

/// Columns k .. k + 15 and k + 16 .. k + 31.
WT_INLINE pair load_in_order(const uint8_t *row, int64_t k)
{
    return (pair){sixteen_at(row + 4 * k), sixteen_at(row + 4 * k + 64)};
}

/// 32 bf16 as floats: the even columns, then the odd ones.
WT_INLINE pair load_bf16(const uint8_t *row, int64_t k)
{
    pair p;
#pragma GCC unroll 4
    for (size_t i = 0; i < TILE_PARTS; i++) {
        tile_words both;
        memcpy(&both, row + 2 * k + i * sizeof both, sizeof both);
        p.a.part[i] = (tile_vec)(both << 16), p.b.part[i] = (tile_vec)(both & 0xffff0000);
    }
    return p;
}

/// Of two neighbouring vectors the even numbers, or the odd ones.
WT_INLINE tile_vec every_other(tile_vec x, tile_vec y, const int odd)
{
#ifdef __AVX512F__
    return odd ? __builtin_shufflevector(x, y, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
               : __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
#elif defined(__AVX__)
    const wt_f64x4 v = (wt_f64x4)(odd ? __builtin_shufflevector(x, y, 1, 3, 9, 11, 5, 7, 13, 15)
                                      : __builtin_shufflevector(x, y, 0, 2, 8, 10, 4, 6, 12, 14));
    return (tile_vec)__builtin_shufflevector(v, v, 0, 2, 1, 3); // GCC takes five instructions to do both at once
#else
    return odd ? __builtin_shufflevector(x, y, 1, 3, 5, 7) : __builtin_shufflevector(x, y, 0, 2, 4, 6);
#endif
}

WT_INLINE pair load_even_odd(const uint8_t *row, int64_t k)
{
    const pair in_order = load_in_order(row, k);
    const tile_vec *a = in_order.a.part, *b = in_order.b.part;
    tile_vec v[2 * TILE_PARTS];
    pair p;
#pragma GCC unroll 4
    for (int i = 0; i < TILE_PARTS; i++) v[i] = a[i], v[TILE_PARTS + i] = b[i];
#pragma GCC unroll 4
    for (int i = 0; i < TILE_PARTS; i++) {
        p.a.part[i] = every_other(v[2 * i], v[2 * i + 1], 0);
        p.b.part[i] = every_other(v[2 * i], v[2 * i + 1], 1);
    }
    return p;
}

/// Halves are added to halves, in registers: through memory it took a tenth of a row of 1024.
WT_INLINE float sum_of(const sixteen *sums)
{
#ifdef __AVX512F__
    const wt_f32x16 v = sums->part[0];
    const wt_f32x8 eight = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                           __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
#elif defined(__AVX__)
    const wt_f32x8 eight = sums->part[0] + sums->part[1];
#endif
#ifdef __AVX__
    const wt_f32x4 four =
        __builtin_shufflevector(eight, eight, 0, 1, 2, 3) + __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
#else
    const wt_f32x4 four = (sums->part[0] + sums->part[2]) + (sums->part[1] + sums->part[3]);
#endif
    return (four[0] + four[2]) + (four[1] + four[3]);
}

/// The last columns, fewer than TILE_STEP, with zeros after them.
WT_INLINE pair load_tail(pair_loader load, const uint8_t *row, int64_t k, int n, size_t width)
{
    uint8_t padded[TILE_STEP * 4] = {0};
    memcpy(padded, row + (size_t)k * width, (size_t)n * width);
    return load(padded, 0);
}

/// TILE_STEP columns from k on.
WT_INLINE void tile_step(pair_loader load, pair_loader load_x, const uint8_t *const *w, const int n_rows,
                         const uint8_t *const *x, const int n_vectors, int64_t k, sixteen sums[][TILE_MANY])
{
    pair v[TILE_MANY], wide[TILE_ROWS];
    if (n_vectors == 1) v[0] = load_x(x[0], k);
#pragma GCC unroll 4
    for (int r = 0; r < n_rows; r++) {
        wide[r] = load(w[r], k);
        if (n_vectors > 1) continue;
        add_product(&sums[r][0], &wide[r].a, &v[0].a);
        add_product(&sums[r][0], &wide[r].b, &v[0].b);
    }
#pragma GCC unroll 4
    for (int j = 0; j < n_vectors && n_vectors > 1; j++) {
        v[j] = load_x(x[j], k);
#pragma GCC unroll 4
        for (int r = 0; r < n_rows; r++) add_product(&sums[r][j], &wide[r].a, &v[j].a);
#pragma GCC unroll 4
        for (int r = 0; r < n_rows; r++) add_product(&sums[r][j], &wide[r].b, &v[j].b);
    }
}

/// y[j][r] = sum over k of w[r][k] x[t + j][k] of the first n_stored rows; `ahead` bytes are fetched before their turn.
/// `unit` columns at a time, TILE_STEP or twice that; columns are a multiple of the latter.
WT_INLINE void tile(const wt__product *p, pair_loader load, pair_loader load_x, size_t width, const int unit,
                    const uint8_t *const *w, size_t ahead, const int n_rows, int n_stored, int t, const int n_vectors,
                    float *y)
{
    const int64_t columns = p->linear->weight.shape[1], whole = columns - columns % TILE_STEP;
    const uint8_t *x[TILE_MANY];
    sixteen sums[TILE_ROWS][TILE_MANY];
    for (int r = 0; r < n_rows; r++)
        for (int j = 0; j < n_vectors; j++) sums[r][j] = (sixteen){{{0}}};
    for (int j = 0; j < n_vectors; j++) x[j] = (const uint8_t *)(p->x + p->x_stride * (t + j));
    for (int64_t k = 0; k < whole; k += unit) {
#pragma GCC unroll 4
        for (int r = 0; r < n_rows; r++)
            if (k * (int64_t)width % 64 == 0) __builtin_prefetch(w[r] + ahead + (size_t)k * width, 0, 2);
        tile_step(load, load_x, w, n_rows, x, n_vectors, k, sums);
        if (unit > TILE_STEP) tile_step(load, load_x, w, n_rows, x, n_vectors, k + TILE_STEP, sums);
    }
    if (whole < columns)
        for (int r = 0; r < n_rows; r++) {
            const pair wide = load_tail(load, w[r], whole, (int)(columns - whole), width);
            for (int j = 0; j < n_vectors; j++) {
                const pair v = load_tail(load_x, x[j], whole, (int)(columns - whole), 4);
                add_product(&sums[r][j], &wide.a, &v.a);
                add_product(&sums[r][j], &wide.b, &v.b);
            }
        }
    for (int j = 0; j < n_vectors; j++)
        for (int r = 0; r < n_stored; r++) y[j * n_stored + r] = sum_of(&sums[r][j]);
}

typedef struct tile_args {
    const wt__product *p;
    pair_loader load, load_x;
    const uint8_t *data;
    size_t width, row_bytes;
    int unit;
} tile_args;

WT_INLINE void tile_of_four(const void *args, const int64_t *rows, float *y)
{
    const tile_args *a = args;
    const uint8_t *w[TILE_ROWS];
    for (int r = 0; r < TILE_ROWS; r++) w[r] = a->data + a->row_bytes * (size_t)rows[r];
    tile(a->p, a->load, a->load_x, a->width, a->unit, w, AHEAD, TILE_ROWS, TILE_ROWS, 0, 1, y);
}

/// Neighbouring rows, n of which count, with all vectors: those that are not of a whole TILE_MANY find the rows in the
/// cache.
WT_INLINE void tiles_of_many(const wt__product *p, pair_loader load, pair_loader load_x, size_t width, const int unit,
                             const uint8_t *data, size_t row_bytes, int64_t first, int n)
{
    const uint8_t *w[TILE_ROWS];
    float y[TILE_ROWS * TILE_MANY];
    int t = 0;
    for (int r = 0; r < TILE_ROWS; r++) w[r] = data + row_bytes * (size_t)(r < n ? r : n - 1);
    for (; t + TILE_MANY <= p->n; t += TILE_MANY)
        for (int i = 0; i < n; i += TILE_MANY) {
            const int stored = n - i < TILE_MANY ? n - i : TILE_MANY;
            tile(p, load, load_x, width, unit, w + i, TILE_MANY * row_bytes, TILE_MANY, stored, t, TILE_MANY, y);
            wt__products_store(p, first + i, stored, t, TILE_MANY, y);
        }
    for (; t < p->n; t++) {
        tile(p, load, load_x, width, unit, w, TILE_ROWS * row_bytes, TILE_ROWS, n, t, 1, y);
        wt__products_store(p, first, n, t, 1, y);
    }
}

/// Rows first .. first + n_rows - 1 of the matrix, which lie at `data`, with all vectors.
WT_INLINE void tiles(const wt__product *p, pair_loader load, pair_loader load_x, size_t width, const int unit,
                     const uint8_t *data, size_t row_bytes, int64_t first, int64_t n_rows)
{
    const tile_args args = {p, load, load_x, data, width, row_bytes, unit};
    if (p->n == 1) runs(p, first, n_rows, 0, tile_of_four, &args);
    for (int64_t r = 0; r < n_rows && p->n > 1; r += TILE_ROWS)
        tiles_of_many(p, load, load_x, width, unit, data + row_bytes * (size_t)r, row_bytes, first + r,
                      (int)(n_rows - r < TILE_ROWS ? n_rows - r : TILE_ROWS));
}

#define TILE_STRIPS(name, load, load_x, width)                                                                         \
    static void name(const wt__product *p, int64_t first, int64_t n_rows)                                              \
    {                                                                                                                  \
        tiles(p, load, load_x, width, TILE_STEP, wt__row(p->linear, first), wt__row_bytes(p->linear), first, n_rows);  \
    }
TILE_STRIPS(strips_bf16, load_bf16, load_even_odd, 2)

/// Also of rows that were widened to floats.
static void strips_f32(const wt__product *p, int64_t first, int64_t n_rows)
{
    const uint8_t *data = p->widened ? (const uint8_t *)p->rows : wt__row(p->linear, first);
    tiles(p, load_in_order, load_in_order, 4, TILE_STEP, data, sizeof(float) * (size_t)p->linear->weight.shape[1],
          first, n_rows);
}

#endif
