/// Operations of neural networks: what their files share.
#ifndef WT_NN_INTERNAL_H
#define WT_NN_INTERNAL_H

#include <string.h>
#include <warptone/kernel.h>
#include <warptone/nn.h>
#include <warptone/simd.h>
#include "nn_kernel.h"

typedef enum nn_kernel {
    NN_POINT,
    NN_NORM_WARP,
    NN_NORM_BLOCK,
    NN_NORM_NARROW,
    NN_NORM_WIDE,
    NN_NORM_CHANNELS,
    NN_EMBED,
    NN_ROPE,
    NN_CONV_FEW,
    NN_CONV_ANY,
    NN_CONV_F32, ///< of each type by the order of nn_conv.c's forms
    NN_CONV_F16 = NN_CONV_F32 + 6,
    NN_CONV_BF16 = NN_CONV_F16 + 4,
    NN_LSTM_CLUSTER = NN_CONV_BF16 + 4,
    NN_LSTM_GRID,
    NN_ROUTE,
    NN_GROUP,
    NN_PERMUTE,
    NN_UNPERMUTE,
    NN_ATTEND_WIDE, ///< heads up to 256
    NN_ATTEND_F32,  ///< heads up to 64, and with a mask; heads up to 128, and with a mask
    NN_ATTEND_F32_MASKED,
    NN_ATTEND_F32_128,
    NN_ATTEND_F32_128_MASKED,
    NN_ATTEND_F16, ///< likewise
    NN_ATTEND_F16_MASKED,
    NN_ATTEND_F16_128,
    NN_ATTEND_F16_128_MASKED,
    NN_ATTEND_BF16,
    NN_ATTEND_BF16_MASKED,
    NN_ATTEND_BF16_128,
    NN_ATTEND_BF16_128_MASKED,
    NN_N_KERNELS
} nn_kernel;

enum { NN_MODULES = 18, NN_COUNTERS = 64 };

struct wt_nn {
    wt_device *device;
    wt_matmul *matmul;
    int n_sms;
    bool clusters;      ///< there is room for clusters of eight blocks
    bool on_gpu, wgmma; ///< wgmma: 16-bit attention by products of warpgroups
    wt_module *modules[NN_MODULES];
    wt_kernel *kernels[NN_N_KERNELS];
    wt_buffer *counters; ///< of the LSTM's blocks, zeros between calls
};

// ---- operands, checked; `what` begins the sentence: "norm: x"

WT_CHECKED wt_status wt__nn_rows(const char *what, const wt_array *a, nn_rows *rows, long long *n, long long *width);
/// Likewise, of a known shape; a NULL array is allowed and leaves data NULL.
WT_CHECKED wt_status wt__nn_rows_like(const char *what, const wt_array *a, const wt_array *like, nn_rows *rows);
/// [n], dense; a NULL array is allowed.
WT_CHECKED wt_status wt__nn_vector(const char *what, const wt_array *a, long long n, nn_vector *vector);
/// A given rank of at most 4 with a dense last axis; strides of the others free.
WT_CHECKED wt_status wt__nn_strided(const char *what, const wt_array *a, int rank, nn_strided *strided);
/// A given rank, strides free.
WT_CHECKED wt_status wt__nn_view(const char *what, const wt_array *a, int rank);
/// Dense, of a type among two, with so many elements; NULL is allowed.
WT_CHECKED wt_status wt__nn_dense(const char *what, const wt_array *a, wt_dtype type, wt_dtype or, int64_t n,
                                  void **data);
/// A shape of known extents, -1 = any.
WT_CHECKED wt_status wt__nn_shape(const char *what, const wt_array *a, int rank, const int64_t *shape);
WT_CHECKED wt_status wt__nn_after(const char *what, const wt_nn_activation *activation, long long channels,
                                  nn_after *after);

/// How many neighbours a GPU's thread can take at once: of `rows`, the first of them always there, and of `factors`,
/// which may be F32 as well; `run` elements lie beside each other.
nn_access wt__nn_access(const nn_rows *const *rows, int n, const nn_rows *const *factors, int n_factors, long long run);

/// Elements of a pack.
static inline int wt__nn_pack(nn_access access) { return access == NN_SINGLE ? 1 : access <= NN_PACKS_F32 ? 4 : 8; }

static inline bool wt__nn_is_float(wt_dtype type)
{
    return type == WT_DTYPE_F32 || type == WT_DTYPE_F16 || type == WT_DTYPE_BF16;
}

WT_CHECKED wt_status wt__nn_launch(const wt_nn *nn, nn_kernel kernel, wt_stream *stream, const wt_launch *launch,
                                   wt_arg args);

/// Blocks for n items of work of `threads` a block that step through the rest.
static inline int wt__nn_blocks(const wt_nn *nn, long long n, int threads, int blocks_an_sm)
{
    const long long all = (n + threads - 1) / threads, most = (long long)nn->n_sms * blocks_an_sm;
    return (int)(all < most ? all : most);
}

// ---- the CPU: elements as floats, of a type that is a constant where loops are to vectorise

__extension__ typedef _Float16 nn_half; // IEEE 754 binary16, converted by instructions where there are any

WT_INLINE float nn_get(int type, const void *p, long long at)
{
    if (type == NN_F32) return ((const float *)p)[at];
    if (type == NN_BF16) return wt_from_bits((int)((unsigned)((const unsigned short *)p)[at] << 16));
    return (float)((const nn_half *)p)[at];
}

WT_INLINE void nn_put(int type, void *p, long long at, float x)
{
    if (type == NN_F32) {
        ((float *)p)[at] = x;
    } else if (type == NN_BF16) {
        const unsigned bits = (unsigned)wt_bits(x), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        ((unsigned short *)p)[at] = (unsigned short)(x != x ? bits >> 16 | 0x40 : rounded);
    } else {
        ((nn_half *)p)[at] = (nn_half)x;
    }
}

WT_INLINE float nn_get_or(const nn_vector *v, long long at, float otherwise)
{
    return v->data ? nn_get(v->type, v->data, at) : otherwise;
}

/// Elements at .. at + n - 1 as floats, and back.
void wt__nn_read(int type, const void *p, long long at, long long n, float *out);
void wt__nn_write(int type, void *p, long long at, long long n, const float *x);
/// x[k] = f(x[k]); alpha of a channel each, or alphas[0] for all where `one`.
void wt__nn_activate(const nn_after *after, long long n, float *x, long long channel, bool one);

#endif
