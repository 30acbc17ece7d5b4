// Products of a matrix in a model's own type with one vector or several: which function a type has on this processor,
// and those that need no instructions of its own.
#include "matrix.h"
#include "matrix_tile.h"

typedef uint16_t u16x16 __attribute__((vector_size(32)));
typedef uint32_t u32x16 __attribute__((vector_size(64)));

// ---- rows

size_t wt__row_bytes(const wt__linear *l)
{
    return l->nibbles ? (size_t)l->weight.shape[1] / 2 : wt_dtype_bytes(l->weight.dtype, l->weight.shape[1]);
}

void wt__row_widen(const wt__linear *l, int64_t row, float *out)
{
    const int64_t columns = l->weight.shape[1];
    const uint8_t *q = wt__row(l, row);
    if (l->nibbles)
        for (int64_t k = 0; k < columns; k++) out[k] = (float)(q[k / 2] >> k % 2 * 4 & 15);
    else
        wt_tensor_to_f32(&l->weight, row * columns, columns, out);
    if (!l->scales) return;
    const int64_t n = (columns + l->scale_columns - 1) / l->scale_columns, first = row / l->scale_rows * n;
    for (int64_t k = 0; k < columns; k++) {
        const int64_t at = first + k / l->scale_columns;
        const float zero = l->zeros ? (float)l->zeros[at] : l->nibbles ? 8 : 0;
        out[k] = (out[k] - zero) * l->scales[at];
    }
}

void wt__product_store(const wt__product *p, int64_t row, int64_t t, float y)
{
    const wt__linear *l = p->linear;
    float *out = p->out + p->out_stride * t + row;
    if (!p->widened && l->scales && !l->nibbles && l->scale_columns == l->weight.shape[1])
        y *= l->scales[row / l->scale_rows];
    if (l->bias) y += l->bias[row];
    *out = p->add ? *out + y : y;
}

// ---- in float

/// 32 bf16 as floats: the even columns, then the odd ones.
WT_INLINE pair load_bf16(const uint8_t *row, int64_t k)
{
    u32x16 both;
    memcpy(&both, row + 2 * k, sizeof both);
    return (pair){(wt_f32x16)(both << 16), (wt_f32x16)(both & 0xffff0000)};
}

WT_INLINE pair load_even_odd(const uint8_t *row, int64_t k)
{
    const pair p = load_in_order(row, k);
    return (pair){__builtin_shufflevector(p.a, p.b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
                  __builtin_shufflevector(p.a, p.b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)};
}

/// As tensor.c: subnormals by a difference of normal numbers, which costs no assist of the processor.
WT_INLINE wt_f32x16 halves_at(const uint8_t *p)
{
    u16x16 narrow;
    memcpy(&narrow, p, sizeof narrow);
    const u32x16 h = __builtin_convertvector(narrow, u32x16), m = h & 0x7fff, shifted = (m << 13) + (112u << 23);
    const u32x16 one = (u32x16){0} + (113u << 23);
    const u32x16 small = (u32x16)((wt_f32x16)(shifted + (1u << 23)) - (wt_f32x16)one);
    const u32x16 is_small = (u32x16)(m < 0x400), is_special = (u32x16)(m >= 0x7c00);
    const u32x16 bits = (small & is_small) | (shifted & ~is_small);
    return (wt_f32x16)((bits + (is_special & (112u << 23))) | (h & 0x8000) << 16);
}

WT_INLINE pair load_f16(const uint8_t *row, int64_t k)
{
    return (pair){halves_at(row + 2 * k), halves_at(row + 2 * k + 32)};
}

#define STRIPS(name, load, load_x, width)                                                                              \
    WT_CLONES static void name(const wt__product *p, int64_t first, int64_t n_rows)                                    \
    {                                                                                                                  \
        tiles(p, load, load_x, width, TILE_STEP, wt__row(p->linear, first), wt__row_bytes(p->linear), first, n_rows);  \
    }
STRIPS(strips_f32, load_in_order, load_in_order, 4)
STRIPS(strips_f16, load_f16, load_in_order, 2)
STRIPS(strips_bf16, load_bf16, load_even_odd, 2)
#undef STRIPS

WT_CLONES static void widened_strip(const wt__product *p, int64_t first, int64_t n_rows)
{
    const int64_t columns = p->linear->weight.shape[1];
    tiles(p, load_in_order, load_in_order, 4, TILE_STEP, (const uint8_t *)p->rows, sizeof(float) * (size_t)columns,
          first, n_rows);
}

/// Types without their own: four rows are widened to floats first.
static void strips_any(const wt__product *p, int64_t first, int64_t n_rows)
{
    wt__product widened = *p;
    widened.widened = true;
    for (int64_t r = 0, n; r < n_rows; r += n) {
        n = n_rows - r < TILE_ROWS ? n_rows - r : TILE_ROWS;
        for (int64_t k = 0; k < n; k++)
            wt__row_widen(p->linear, first + r + k, p->rows + k * p->linear->weight.shape[1]);
        widened_strip(&widened, first + r, n);
    }
}

// ---- the choice

/// Rounding to bytes wants blocks of 32 columns, and groups of whole blocks.
static bool suits(const wt__linear *l)
{
    const int64_t columns = l->weight.shape[1];
    if (columns % 32) return false;
    return !l->nibbles || l->scale_columns % 32 == 0;
}

static wt__strips choose(const wt__product *p)
{
    static const wt__strips portable[WT_N_DTYPES] = {
        [WT_DTYPE_F32] = strips_f32, [WT_DTYPE_F16] = strips_f16, [WT_DTYPE_BF16] = strips_bf16};
    const wt_dtype dtype = p->linear->weight.dtype;
    wt__strips strips = NULL;
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
    const bool bytes = dtype != WT_DTYPE_F16 && dtype != WT_DTYPE_F8_E4M3;
    if (__builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512vnni"))
        strips = wt__strips_vnni[dtype];
    else if (__builtin_cpu_supports("x86-64-v3"))
        strips = wt__strips_avx2[dtype];
    if (bytes && (p->exact || !suits(p->linear))) strips = NULL;
#endif
    if (!strips) strips = portable[dtype];
    return strips ? strips : strips_any;
}

void wt__multiply(const wt__product *product, int64_t first, int64_t n_rows)
{
    choose(product)(product, first, n_rows);
}
