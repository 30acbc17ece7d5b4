/// Fused operations of neural networks over arrays, on a GPU and the CPU by the same calls: norms, activations, gates,
/// embeddings, RoPE, convolution, LSTM, experts, attention. What has no op of its own is in array.h, products in
/// matmul.h.
///
///     wt_nn_create(&(wt_nn_config){.device = device, .matmul = matmul}, &nn);
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
    wt_matmul *matmul;       ///< of the same device, for lstm; borrowed until destroy; NULL = without that
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

// ---- signals

/// Convolution along the last axis (a correlation, as in PyTorch): of length n becomes
/// (n + 2 padding - dilation (taps - 1) - 1) / stride + 1, transposed
/// (n - 1) stride - 2 padding + dilation (taps - 1) + output_padding + 1. out = activation(conv + bias) + residual.
typedef struct wt_conv1d_args {
    const wt_array *x;      ///< [n][channels][length], strides of the first two free
    const wt_array *weight; ///< [out_channels][channels / groups][taps], transposed [channels][out_channels /
                            ///< groups][taps]; strides free. With x in 16 bits [out][taps][in] in memory (a transposed
                            ///< view) is fastest
    const wt_array *bias;   ///< [out_channels]; NULL = none
    const wt_array *residual;     ///< shaped and strided as out; NULL = none
    int stride, dilation, groups; ///< 0 = 1
    int padding, output_padding;  ///< zeros on both sides; added at the end, below stride, of transposed
    bool transposed;
    wt_nn_activation activation;
    const wt_array *out; ///< [n][out_channels][length], strides of the first two free; not x
} wt_conv1d_args;
WT_CHECKED wt_status wt_nn_conv1d(wt_nn *nn, wt_stream *stream, const wt_conv1d_args *args);
/// The length that comes out, 0 where nothing does.  [any]
int64_t wt_conv1d_length(const wt_conv1d_args *args, int64_t length, int64_t taps);

// ---- sequences

/// A layer of LSTM, in one direction or both: the input's products for all steps first, then all steps in one launch.
/// Gates in PyTorch's order: input, forget, cell, output. States are kept as float within the sequence.
typedef struct wt_lstm_args {
    const wt_array *x; ///< [steps][batch][inputs], of either order in memory
    int directions;    ///< 1 or 2, 0 = 1; the second runs backwards
    struct {
        const wt_array *input, *recurrent; ///< [4 hidden][inputs] of x's type, dense; [4 hidden][hidden], dense
        const wt_array *input_bias, *recurrent_bias; ///< [4 hidden]; NULL = none
    } weights[2];
    const wt_array *h0, *c0; ///< [directions][batch][hidden], dense; NULL = 0
    const wt_array *lengths; ///< I32 [batch], of the steps; beyond, out is 0 and the state stays; NULL = all
    const wt_array *out;     ///< [steps][batch][directions hidden], strides of the first two free
    const wt_array *hn, *cn; ///< [directions][batch][hidden], dense; may be h0 and c0; NULL = not kept
    uintptr_t workspace;     ///< wt_lstm_workspace_bytes, aligned to 16
} wt_lstm_args;
size_t wt_lstm_workspace_bytes(const wt_lstm_args *args); ///< [any]
/// Compile and load what the products of this form need; before capture and arming. Errors: those of lstm and of
/// wt_matmul_prepare.  [worker]
WT_CHECKED wt_status wt_nn_lstm_prepare(wt_nn *nn, const wt_lstm_args *args);
WT_CHECKED wt_status wt_nn_lstm(wt_nn *nn, wt_stream *stream, const wt_lstm_args *args);

// ---- experts

/// The experts of each token, the best first, the first of equals, and their shares.
typedef struct wt_route_args {
    const wt_array *scores; ///< [tokens][experts]
    bool sigmoid;           ///< shares are sigmoid(score), not softmax over all experts
    const wt_array *bias;   ///< [experts], added for the choice only; NULL = none
    bool normalise;         ///< shares of a token sum to 1
    double scale;           ///< of the shares; 0 = 1
    const wt_array *chosen; ///< I32 [tokens][k], k of 1 .. experts, dense
    const wt_array *shares; ///< F32 [tokens][k], dense
} wt_route_args;
WT_CHECKED wt_status wt_nn_route(wt_nn *nn, wt_stream *stream, const wt_route_args *args);

/// Rows of tokens, one for each choice, by expert: those of expert e are offsets[e] .. offsets[e + 1] - 1, in the order
/// of the tokens: what wt_matmul_args.offsets takes.
typedef struct wt_permute_args {
    const wt_array *chosen;  ///< I32 [tokens][k]
    const wt_array *offsets; ///< I32 [experts + 1], 1 .. 1024 experts
    const wt_array *slots;   ///< I32 [tokens][k]: the row of each choice; -1 where chosen is no expert
    const wt_array *x;       ///< [tokens][width]
    const wt_array *grouped; ///< [tokens k][width], of x's type
} wt_permute_args;
WT_CHECKED wt_status wt_nn_permute(wt_nn *nn, wt_stream *stream, const wt_permute_args *args);

/// out = sum over k of shares * grouped[slots], + residual.
typedef struct wt_unpermute_args {
    const wt_array *grouped;  ///< [tokens k][width]
    const wt_array *slots;    ///< I32 [tokens][k]
    const wt_array *shares;   ///< F32 [tokens][k]
    const wt_array *residual; ///< [tokens][width]; NULL = none
    const wt_array *out;      ///< [tokens][width]; may be residual
} wt_unpermute_args;
WT_CHECKED wt_status wt_nn_unpermute(wt_nn *nn, wt_stream *stream, const wt_unpermute_args *args);

// ---- attention

/// out = softmax(scale q k^T + mask) v, heads / kv_heads neighbouring heads of q to a head of k and v. A query that may
/// look at nothing gives 0.
typedef struct wt_attention_args {
    const wt_array *q; ///< [n][heads][queries][d_head], d_head a multiple of 8 up to 256; strides of the first three
                       ///< free in all
    const wt_array *k, *v; ///< [n][kv_heads][keys][d_head], of q's type
    const wt_array *mask;  ///< BOOL: 1 where a query may look; floats: added. Broadcast to [n][heads][queries][keys];
                           ///< NULL = none
    bool causal;           ///< query i looks at keys 0 .. i + keys - queries
    int window;            ///< of which only the last so many; 0 = all
    double scale;          ///< 0 = 1 / sqrt(d_head)
    const wt_array *out;   ///< shaped as q; not an operand
} wt_attention_args;
WT_CHECKED wt_status wt_nn_attention(wt_nn *nn, wt_stream *stream, const wt_attention_args *args);

#ifdef __cplusplus
}
#endif
#endif
