/// Products of a model's matrices with vectors, one function a type of weights.
#ifndef WT_LLM_MATRIX_H
#define WT_LLM_MATRIX_H

#include "llm_internal.h"

/// Rows first .. first + n_rows - 1 with all vectors of the product.
typedef void (*wt__strips)(const wt__product *p, int64_t first, int64_t n_rows);

/// By the type of the weights; NULL = none. What needs the instructions of one kind of processor: halves and fp8
/// widened by F16C, and products of bytes, whose vectors are rounded to 8 bits with a scale for 32 numbers.
extern const wt__strips wt__strips_avx2[WT_N_DTYPES];
extern const wt__strips wt__strips_vnni[WT_N_DTYPES]; ///< AVX-512 with VNNI

/// Of BF16 weights with vectors rounded to bf16, for AVX-512 with AVX512_BF16 only.
void wt__strips_bf16_dots(const wt__product *p, int64_t first, int64_t n_rows);

// ---- AMX

/// Whether the processor has AMX, and the system lets this process use it: asked once.
bool wt__has_amx(void);
bool wt__suits_amx(const wt__linear *linear); ///< those, and BF16 weights
/// A product whose vectors are laid out in `laid`, once for all rows: so many blocks of them, and bytes.
void wt__strips_amx(const wt__product *p, int64_t first, int64_t n_rows);
void wt__amx_lay(const wt__product *p, int block);
static inline int wt__amx_blocks(int n) { return (n + 15) / 16; }
static inline size_t wt__amx_bytes(int64_t columns, int n)
{
    return (size_t)wt__amx_blocks(n) * (size_t)((columns + 31) / 32) * 3072;
}

// ---- rows

size_t wt__row_bytes(const wt__linear *linear);
static inline const uint8_t *wt__row(const wt__linear *linear, int64_t row)
{
    return (const uint8_t *)linear->weight.data + wt__row_bytes(linear) * (size_t)row;
}

/// A row as floats, scales and zeros applied.
void wt__row_widen(const wt__linear *linear, int64_t row, float *out);

/// out[t + j][row + r] = or += y[j][r] scale + bias, with the scale of types that have one for a row or for the whole
/// matrix.
void wt__products_store(const wt__product *p, int64_t row, int n_rows, int64_t t, int n_vectors, const float *y);

#endif
