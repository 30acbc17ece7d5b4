// Products of a matrix in a model's own type with one vector or several: which function a type has on this processor,
// and those that need no instructions of its own.
#include "matrix.h"
#include "matrix_tile.h"

typedef uint16_t narrow __attribute__((vector_size(sizeof(tile_vec) / 2)));

// ---- rows

size_t wt__row_bytes(const wt__linear *l)
{
    return l->nibbles ? (size_t)l->weight.shape[1] / 2 : wt_dtype_bytes(l->weight.dtype, l->weight.shape[1]);
}

void wt__row_widen(const wt__linear *l, int64_t row, float *out)
{
    const int64_t columns = l->weight.shape[1];
    const uint8_t *q = wt__row(l, row);
    for (int64_t k = 0; l->nibbles && k < columns / 2; k++) {
        out[2 * k] = (float)(q[k] & 15);
        out[2 * k + 1] = (float)(q[k] >> 4);
    }
    if (!l->nibbles) wt_tensor_to_f32(&l->weight, row * columns, columns, out);
    if (!l->scales) return;
    const int64_t n = (columns + l->scale_columns - 1) / l->scale_columns, first = row / l->scale_rows * n;
    for (int64_t g = 0; g < n; g++) {
        const int64_t begin = g * l->scale_columns, end = begin + l->scale_columns;
        const float zero = l->zeros ? (float)l->zeros[first + g] : l->nibbles ? 8 : 0, scale = l->scales[first + g];
        for (int64_t k = begin; k < (end < columns ? end : columns); k++) out[k] = (out[k] - zero) * scale;
    }
}

void wt__products_store(const wt__product *p, int64_t row, int n_rows, int64_t t, int n_vectors, const float *y)
{
    const wt__linear *l = p->linear;
    const bool scaled = !p->widened && l->scales && !l->nibbles && l->scale_columns == l->weight.shape[1];
    for (int j = 0; j < n_vectors; j++) {
        float *out = p->out + p->out_stride * (t + j) + row;
        for (int r = 0; r < n_rows; r++) {
            float sum = p->factor ? y[j * n_rows + r] * p->factor : y[j * n_rows + r];
            if (scaled) sum *= l->scales[(row + r) / l->scale_rows];
            if (l->bias) sum += l->bias[row + r];
            out[r] = p->add ? out[r] + sum : sum;
        }
    }
}

// ---- in float, without instructions of its own

/// As tensor.c: subnormals by a difference of normal numbers, which costs no assist of the processor.
WT_INLINE tile_vec halves_at(const uint8_t *p)
{
    narrow bits16;
    memcpy(&bits16, p, sizeof bits16);
    const tile_words h = __builtin_convertvector(bits16, tile_words), m = h & 0x7fff;
    const tile_words shifted = (m << 13) + (112u << 23), one = (tile_words){0} + (113u << 23);
    const tile_words small = (tile_words)((tile_vec)(shifted + (1u << 23)) - (tile_vec)one);
    const tile_words is_small = (tile_words)(m < 0x400), is_special = (tile_words)(m >= 0x7c00);
    const tile_words bits = (small & is_small) | (shifted & ~is_small);
    return (tile_vec)((bits + (is_special & (112u << 23))) | (h & 0x8000) << 16);
}

WT_INLINE pair load_f16(const uint8_t *row, int64_t k)
{
    pair p;
#pragma GCC unroll 4
    for (int i = 0; i < TILE_PARTS; i++) {
        p.a.part[i] = halves_at(row + 2 * (k + i * TILE_FLOATS));
        p.b.part[i] = halves_at(row + 2 * (k + i * TILE_FLOATS) + 32);
    }
    return p;
}
TILE_STRIPS(strips_f16, load_f16, load_in_order, 2)

static const wt__strips portable[WT_N_DTYPES] = {
    [WT_DTYPE_F32] = strips_f32, [WT_DTYPE_F16] = strips_f16, [WT_DTYPE_BF16] = strips_bf16};

/// By the processor's instructions.
static const wt__strips *table(void)
{
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
    if (__builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512vnni")) return wt__strips_vnni;
    if (__builtin_cpu_supports("x86-64-v3")) return wt__strips_avx2;
#endif
    return portable;
}

/// Where vectors may be rounded to bf16; NULL = the processor has no products of it, or better ones for prompts.
static wt__strips bf16_dots(void)
{
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
    const bool dots = __builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512bf16");
    if (dots && !wt__has_amx()) return wt__strips_bf16_dots;
#endif
    return NULL;
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
        table()[WT_DTYPE_F32](&widened, first + r, n);
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

/// Those whose vectors are rounded to bytes.
static bool is_bytes(wt_dtype dtype)
{
    return dtype != WT_DTYPE_F32 && dtype != WT_DTYPE_F16 && dtype != WT_DTYPE_BF16 && dtype != WT_DTYPE_F8_E4M3;
}

bool wt__suits_amx(const wt__linear *linear) { return linear->weight.dtype == WT_DTYPE_BF16 && wt__has_amx(); }

static wt__strips choose(const wt__product *p)
{
    const wt_dtype dtype = p->linear->weight.dtype;
    if (p->laid && wt__suits_amx(p->linear)) return wt__strips_amx;
    if (dtype == WT_DTYPE_BF16 && !p->exact && bf16_dots()) return bf16_dots();
    const wt__strips strips = is_bytes(dtype) && (p->exact || !suits(p->linear)) ? NULL : table()[dtype];
    return strips ? strips : strips_any;
}

void wt__multiply(const wt__product *product, int64_t first, int64_t n_rows)
{
    choose(product)(product, first, n_rows);
}
