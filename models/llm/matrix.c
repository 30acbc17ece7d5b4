// Products of a matrix in a model's own type with one vector or several. Four rows at a time, up to four vectors: a
// weight is read and widened once for all of them. What is summed for a row and a vector, and in which order, does not
// depend on how many vectors there are, so a prompt in one batch gives the bits that token by token gives.
#include "llm_internal.h"

#include <string.h>
#include <warptone/simd.h>

enum { LANES = 16, ROWS = 4, VECTORS = 4 };

typedef uint16_t u16x16 __attribute__((vector_size(32)));
typedef uint32_t u32x16 __attribute__((vector_size(64)));
typedef int16_t i16x16 __attribute__((vector_size(32)));
typedef int8_t i8x16 __attribute__((vector_size(16)));

// ---- 16 weights of a row, from column k on, as floats

WT_INLINE wt_f32x16 load_f32(const uint8_t *row, int64_t k)
{
    wt_f32x16 w;
    memcpy(&w, row + 4 * k, sizeof w);
    return w;
}

WT_INLINE u32x16 load_u16(const uint8_t *row, int64_t k)
{
    u16x16 h;
    memcpy(&h, row + 2 * k, sizeof h);
    return __builtin_convertvector(h, u32x16);
}

WT_INLINE wt_f32x16 load_bf16(const uint8_t *row, int64_t k) { return (wt_f32x16)(load_u16(row, k) << 16); }

/// As tensor.c: subnormals by a difference of normal numbers, which costs no assist of the processor.
WT_INLINE wt_f32x16 load_f16(const uint8_t *row, int64_t k)
{
    const u32x16 h = load_u16(row, k), m = h & 0x7fff, shifted = (m << 13) + (112u << 23);
    const u32x16 one = (u32x16){0} + (113u << 23);
    const u32x16 small = (u32x16)((wt_f32x16)(shifted + (1u << 23)) - (wt_f32x16)one);
    const u32x16 is_small = (u32x16)(m < 0x400), is_special = (u32x16)(m >= 0x7c00);
    const u32x16 bits = (small & is_small) | (shifted & ~is_small);
    return (wt_f32x16)((bits + (is_special & (112u << 23))) | (h & 0x8000) << 16);
}

/// f16 d and 32 of i8 a block.
WT_INLINE wt_f32x16 load_q8_0(const uint8_t *row, int64_t k)
{
    const uint8_t *block = row + k / 32 * 34;
    uint16_t h;
    i8x16 q;
    memcpy(&h, block, sizeof h);
    memcpy(&q, block + 2 + k % 32, sizeof q);
    const uint32_t m = h & 0x7fff, shifted = (m << 13) + (112u << 23);
    union {
        uint32_t bits;
        float value;
    } d = {shifted + (1u << 23)}, one = {113u << 23};
    d.value -= one.value;
    if (m >= 0x400) d.bits = shifted + (m >= 0x7c00 ? 112u << 23 : 0);
    d.bits |= (uint32_t)(h & 0x8000) << 16;
    return __builtin_convertvector(__builtin_convertvector(__builtin_convertvector(q, i16x16), wt_i32x16), wt_f32x16) *
           d.value;
}

// ---- rows times vectors

WT_INLINE float sum_of(wt_f32x16 v)
{
    float sum[LANES];
    memcpy(sum, &v, sizeof sum);
    for (int half = LANES / 2; half; half /= 2)
        for (int k = 0; k < half; k++) sum[k] += sum[k + half];
    return sum[0];
}

typedef wt_f32x16 (*loader)(const uint8_t *row, int64_t k);

/// The last columns, fewer than LANES, as a whole vector with zeros.
WT_INLINE wt_f32x16 load_tail(loader load, const uint8_t *row, int64_t k, int n, size_t width)
{
    uint8_t padded[LANES * 4] = {0};
    memcpy(padded, row + (size_t)k * width, (size_t)n * width);
    return load(padded, 0);
}

/// out[t][r] = sum over k of w[r][k] x[t][k]. Rows beyond n_rows are computed again from the last and not stored.
WT_INLINE void tile(const wt__product *p, loader load, size_t width, const uint8_t *data, size_t row_bytes,
                    int64_t columns, int64_t first, int n_rows, int t, const int n_vectors)
{
    const uint8_t *w[ROWS];
    const float *x[VECTORS];
    wt_f32x16 sums[ROWS][VECTORS];
    for (int r = 0; r < ROWS; r++) {
        w[r] = data + row_bytes * (size_t)(r < n_rows ? r : n_rows - 1);
        for (int j = 0; j < n_vectors; j++) sums[r][j] = (wt_f32x16){0};
    }
    for (int j = 0; j < n_vectors; j++) x[j] = p->x + p->x_stride * (t + j);
    const int64_t whole = columns - columns % LANES;
    for (int64_t k = 0; k < whole; k += LANES) {
        wt_f32x16 wide[ROWS];
#pragma GCC unroll 4
        for (int r = 0; r < ROWS; r++) wide[r] = load(w[r], k);
#pragma GCC unroll 4
        for (int j = 0; j < n_vectors; j++) {
            const wt_f32x16 v = load_f32((const uint8_t *)x[j], k);
#pragma GCC unroll 4
            for (int r = 0; r < ROWS; r++) sums[r][j] += wide[r] * v;
        }
    }
    if (whole < columns)
        for (int r = 0; r < ROWS; r++) {
            const wt_f32x16 wide = load_tail(load, w[r], whole, (int)(columns - whole), width);
            for (int j = 0; j < n_vectors; j++)
                sums[r][j] += wide * load_tail(load_f32, (const uint8_t *)x[j], whole, (int)(columns - whole), 4);
        }
    for (int j = 0; j < n_vectors; j++)
        for (int r = 0; r < n_rows; r++) {
            float *out = p->out + p->out_stride * (t + j) + first + r;
            const float bias = p->linear->bias ? p->linear->bias[first + r] : 0, y = sum_of(sums[r][j]) + bias;
            *out = p->add ? *out + y : y;
        }
}

/// `n_rows` of at most ROWS rows, whose first is row `first` of the matrix, with all vectors.
WT_INLINE void strip(const wt__product *p, loader load, size_t width, const uint8_t *data, size_t row_bytes,
                     int64_t columns, int64_t first, int n_rows)
{
    int t = 0;
    for (; t + VECTORS <= p->n; t += VECTORS) tile(p, load, width, data, row_bytes, columns, first, n_rows, t, VECTORS);
    for (; t < p->n; t++) tile(p, load, width, data, row_bytes, columns, first, n_rows, t, 1);
}

#define STRIPS(name, load, width)                                                                                      \
    WT_CLONES static void name(const wt__product *p, const uint8_t *data, size_t row_bytes, int64_t first,             \
                               int64_t n_rows)                                                                         \
    {                                                                                                                  \
        for (int64_t r = 0; r < n_rows; r += ROWS)                                                                     \
            strip(p, load, width, data + row_bytes * (size_t)r, row_bytes, p->linear->weight.shape[1], first + r,      \
                  (int)(n_rows - r < ROWS ? n_rows - r : ROWS));                                                       \
    }
STRIPS(strips_f32, load_f32, 4)
STRIPS(strips_f16, load_f16, 2)
STRIPS(strips_bf16, load_bf16, 2)
STRIPS(strips_q8_0, load_q8_0, 0)
#undef STRIPS

/// Types without a loader: rows are widened to floats first.
static void strips_any(const wt__product *p, int64_t first, int64_t n_rows)
{
    const int64_t columns = p->linear->weight.shape[1];
    for (int64_t r = 0; r < n_rows; r += ROWS) {
        const int64_t n = n_rows - r < ROWS ? n_rows - r : ROWS;
        wt_tensor_to_f32(&p->linear->weight, (first + r) * columns, n * columns, p->rows);
        strips_f32(p, (const uint8_t *)p->rows, sizeof(float) * (size_t)columns, first + r, n);
    }
}

void wt__multiply(const wt__product *product, int64_t first, int64_t n_rows)
{
    static void (*const strips[WT_N_DTYPES])(const wt__product *, const uint8_t *, size_t, int64_t,
                                             int64_t) = {[WT_DTYPE_F32] = strips_f32,
                                                         [WT_DTYPE_F16] = strips_f16,
                                                         [WT_DTYPE_BF16] = strips_bf16,
                                                         [WT_DTYPE_Q8_0] = strips_q8_0};
    const wt_tensor *w = &product->linear->weight;
    const size_t row_bytes = wt_dtype_bytes(w->dtype, w->shape[1]);
    if (strips[w->dtype])
        strips[w->dtype](product, (const uint8_t *)w->data + row_bytes * (size_t)first, row_bytes, first, n_rows);
    else
        strips_any(product, first, n_rows);
}
