/// Fused operations of neural networks over arrays, on a GPU and the CPU by the same calls: norms, activations, gates,
/// embeddings, RoPE. What has no op of its own is in array.h, products in
/// matmul.h.
///
///     wt_nn_create(&(wt_nn_config){.device = device}, &nn);
///     wt_nn_norm(nn, stream, &(wt_norm_args){.kind = WT_NORM_RMS, .x = &x, .residual = &h, .sum = &h, .weight = &w,
///                                            .out = &y});
///
/// Rules, once. Activations and weights are F32, F16 or BF16, mixed freely where nothing else is said; arithmetic is in
/// float. Results are the same in every run. The last axis of every array is dense; of the axes before it, those that a
/// shape here writes as `..` must be one behind the other (any of their own in front is a view), unless strides are
/// said to be free. Everything is queued: nothing allocates, waits or reads back, so all of it may be recorded into a
/// graph; the arrays' descriptions are copied, what they point to is borrowed until it has run. The result may be an
/// operand of the same strides where that is said.
#ifndef WARPTONE_NN_H
#define WARPTONE_NN_H

#include <warptone/array.h>
#include <warptone/matmul.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_nn wt_nn;

typedef struct wt_nn_config {
    wt_device *device;       ///< borrowed until destroy
    wt_partition *partition; ///< whose streams it will run on, for the number of SMs; NULL = the whole device
} wt_nn_config;

/// Compiles the kernels. For one stream at a time. Errors: WT_ERR_NO_MEMORY, WT_ERR_ARMED, WT_ERR_NO_NVRTC,
/// WT_ERR_COMPILE, WT_ERR_CUDA.  [worker]
WT_CHECKED wt_status wt_nn_create(const wt_nn_config *config, wt_nn **nn);
void wt_nn_destroy(wt_nn *nn); ///< What it queued must have run. NULL is allowed.  [worker]

// All that follow: errors are WT_ERR_BAD_ARG (shapes and strides: what was met, what is wanted), WT_ERR_UNSUPPORTED
// (types), WT_ERR_CUDA.  [worker]

// ---- pointwise

/// What comes after: y = f(x).
typedef struct wt_nn_activation {
    wt_activation kind;
    double slope;          ///< of WT_ACTIVATION_LEAKY_RELU below 0; 0 = 0.01
    const wt_array *alpha; ///< [channels] of WT_ACTIVATION_SNAKE
} wt_nn_activation;

/// out = activation(x + bias) * up + residual.
typedef struct wt_pointwise_args {
    const wt_array *x;             ///< [..][channels]; signals: [..][channels][length]
    const wt_array *bias;          ///< [channels]; NULL = none
    const wt_array *up, *residual; ///< shaped as x; NULL = none
    wt_nn_activation activation;   ///< SwiGLU: SILU with up; GeGLU: GELU or GELU_TANH with up
    bool signals;                  ///< channels are the last axis but one
    const wt_array *out;           ///< shaped as x; may be x, up or residual
} wt_pointwise_args;
WT_CHECKED wt_status wt_nn_pointwise(wt_nn *nn, wt_stream *stream, const wt_pointwise_args *args);

// ---- norms

typedef enum wt_norm_kind {
    WT_NORM_RMS,      ///< x / sqrt(mean x^2 + eps) over the last axis
    WT_NORM_LAYER,    ///< (x - mean) / sqrt(variance + eps) over the last axis; the variance divides by n
    WT_NORM_L2,       ///< x / max(sqrt(sum x^2), eps) over the last axis
    WT_NORM_GROUP,    ///< LAYER over the channels of a group and all positions of [n][channels][length], dense
    WT_NORM_CHANNELS, ///< LAYER over the channels of each position of [n][channels][length]
} wt_norm_kind;

/// out = activation(norm(x + residual) * weight + bias).
typedef struct wt_norm_args {
    wt_norm_kind kind;
    const wt_array *x;        ///< [..][channels], or [n][channels][length]
    const wt_array *residual; ///< shaped as x, not for CHANNELS; NULL = none
    const wt_array *sum;      ///< gets x + residual, may be either; the norm is of what is kept there; NULL = not kept
    const wt_array *weight;   ///< [channels], or [n][channels]: a row for each n, or for as many rows of x (AdaLN,
                              ///< AdaIN); NULL = 1
    const wt_array *bias;     ///< likewise; NULL = 0
    bool one_plus;            ///< factors are 1 + weight
    int groups;               ///< of GROUP: 0 = each channel its own (InstanceNorm)
    double eps;               ///< 0 = 1e-5
    wt_nn_activation activation;
    const wt_array *out; ///< shaped as x; may be x
} wt_norm_args;
WT_CHECKED wt_status wt_nn_norm(wt_nn *nn, wt_stream *stream, const wt_norm_args *args);

// ---- tokens

/// out = sum or mean over the bag of table[id], times scale, + positions[position]. An id below 0 or past the table is
/// passed over, and not counted in the mean.
typedef struct wt_embed_args {
    const wt_array *ids;       ///< I32 or I64, dense [..], of bags [..][n]
    bool bag;                  ///< the last axis of ids is summed
    bool mean;                 ///< of the bag
    const wt_array *table;     ///< [vocab][width]
    const wt_array *positions; ///< [n_positions][width] learnt; NULL = none
    const wt_array *places;    ///< I32 or I64, dense, a row of positions for each row of out; NULL = 0, 1 .. along the
                               ///< last axis of out's rows
    double scale;              ///< 0 = 1
    const wt_array *out;       ///< [..][width]
} wt_embed_args;
WT_CHECKED wt_status wt_nn_embed(wt_nn *nn, wt_stream *stream, const wt_embed_args *args);

/// Pairs of the first dimensions of each head turn by position * frequency.
typedef struct wt_rope_args {
    const wt_array *x;           ///< [tokens][heads][d_head], strides of the first two free
    const wt_array *positions;   ///< I32 [tokens]
    const wt_array *frequencies; ///< F32 [n_dims / 2], n_dims <= d_head <= 1024: wt_rope_frequencies
    double scale;                ///< of cosines and sines; 0 = 1
    bool interleaved;            ///< pairs are (2k, 2k + 1) and not (k, k + n_dims / 2)
    const wt_array *out;         ///< shaped as x, strides free; may be x
} wt_rope_args;
WT_CHECKED wt_status wt_nn_rope(wt_nn *nn, wt_stream *stream, const wt_rope_args *args);

/// A joint projection to queries, keys and values: bias added, q and k turned.
typedef struct wt_qkv_args {
    const wt_array *x;                       ///< [tokens][(heads + 2 kv_heads) d_head]: q, k, v one after the other
    const wt_array *bias;                    ///< [(heads + 2 kv_heads) d_head]; NULL = none
    const wt_array *positions, *frequencies; ///< as above; NULL = q and k as they are
    double scale;
    bool interleaved;
    const wt_array *q, *k, *v; ///< [tokens][heads or kv_heads][d_head], strides of the first two free
} wt_qkv_args;
WT_CHECKED wt_status wt_nn_qkv(wt_nn *nn, wt_stream *stream, const wt_qkv_args *args);

#ifdef __cplusplus
}
#endif
#endif
