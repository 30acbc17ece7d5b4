/// Tensors: a shape, a type, and where the numbers lie. Views own nothing.
#ifndef WARPTONE_TENSOR_H
#define WARPTONE_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

// clang-format off
/// X(code, name in safetensors, bits an element). Block types of GGUF hold `block` elements in `bytes`: see below.
#define WT_DTYPE_LIST(X)            \
    X(WT_DTYPE_F32,     "F32",     32) \
    X(WT_DTYPE_F64,     "F64",     64) \
    X(WT_DTYPE_F16,     "F16",     16) \
    X(WT_DTYPE_BF16,    "BF16",    16) \
    X(WT_DTYPE_F8_E4M3, "F8_E4M3",  8) \
    X(WT_DTYPE_F8_E5M2, "F8_E5M2",  8) \
    X(WT_DTYPE_I64,     "I64",     64) \
    X(WT_DTYPE_I32,     "I32",     32) \
    X(WT_DTYPE_I16,     "I16",     16) \
    X(WT_DTYPE_I8,      "I8",       8) \
    X(WT_DTYPE_U8,      "U8",       8) \
    X(WT_DTYPE_BOOL,    "BOOL",     8)
/// X(code, name, elements a block, bytes a block): types of GGUF; and numbers of 4 bits, two a byte, the first in the
/// low nibble: -8..7, 0..15, and OCP E2M1 (0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives)
#define WT_DTYPE_BLOCK_LIST(X)       \
    X(WT_DTYPE_Q8_0, "Q8_0",  32,  34) \
    X(WT_DTYPE_Q4_0, "Q4_0",  32,  18) \
    X(WT_DTYPE_Q4_K, "Q4_K", 256, 144) \
    X(WT_DTYPE_Q6_K, "Q6_K", 256, 210) \
    X(WT_DTYPE_I4,   "I4",     2,   1) \
    X(WT_DTYPE_U4,   "U4",     2,   1) \
    X(WT_DTYPE_F4,   "F4",     2,   1)
// clang-format on

typedef enum wt_dtype {
#define WT_DTYPE_ENUM(code, name, bits)                  code,
#define WT_DTYPE_BLOCK_ENUM(code, name, elements, bytes) code,
    WT_DTYPE_LIST(WT_DTYPE_ENUM) WT_DTYPE_BLOCK_LIST(WT_DTYPE_BLOCK_ENUM)
#undef WT_DTYPE_ENUM
#undef WT_DTYPE_BLOCK_ENUM
        WT_N_DTYPES
} wt_dtype;

const char *wt_dtype_name(wt_dtype dtype);                  ///< "BF16"  [any]
/// The type of that name in safetensors. Errors: WT_ERR_NOT_FOUND names what there is.  [any]
WT_CHECKED wt_status wt_dtype_find(const char *name, wt_dtype *dtype);
int wt_dtype_block(wt_dtype dtype);                         ///< elements a block, 1 where there are none  [any]
/// Bytes of n elements in a row; 0 when n is no multiple of a block, or they are more than memory can hold.  [any]
size_t wt_dtype_bytes(wt_dtype dtype, int64_t n);

#define WT_TENSOR_MAX_RANK 8

typedef struct wt_tensor {
    const void *data;
    wt_dtype dtype;
    int rank;
    int64_t shape[WT_TENSOR_MAX_RANK]; ///< row-major, contiguous
} wt_tensor;

int64_t wt_tensor_elements(const wt_tensor *tensor); ///< [any]
size_t wt_tensor_bytes(const wt_tensor *tensor);     ///< [any]
/// "[4096][1024] BF16" into `text`, for messages.  [any]
const char *wt_tensor_describe(const wt_tensor *tensor, char text[96]);
const char *wt_shape_describe(int rank, const int64_t *shape, char text[96]); ///< "[4096][1024]"  [any]

/// Elements first .. first + n - 1, in row-major order, as float. Blocks are dequantised; first and n are multiples of
/// a block then; `data` may lie at any address. Source: the formats' own definitions (IEEE 754, OCP FP8 1.0, ggml's
/// block layouts).  [any]
void wt_tensor_to_f32(const wt_tensor *tensor, int64_t first, int64_t n, float *out);

#ifdef __cplusplus
}
#endif
#endif
