// Operations of neural networks, shared by the CPU and the GPU: arguments, and activations.
#ifndef WT_NN_KERNEL_H
#define WT_NN_KERNEL_H
#include "fastmath_kernel.h"

// Types of elements: numbers of wt_dtype.
#define NN_F32  0
#define NN_F16  2
#define NN_BF16 3
#define NN_I64  6
#define NN_I32  7
#define NN_BOOL 11

// The order of wt_activation.
enum { NN_NONE, NN_RELU, NN_SILU, NN_GELU, NN_GELU_TANH, NN_SIGMOID, NN_TANH, NN_LEAKY_RELU, NN_RELU2, NN_SNAKE,
       NN_N_ACTIVATIONS };

// ---- activations, without branches, so that loops vectorise

// e^x for |x| < 87; the exponent's rounding makes errors of 6e-8 |x|. Not a number stays.
WT_SHARED_FN float nn_exp(float x)
{
#ifdef __CUDACC__
    return __expf(x);
#else
    return x != x ? x : wt_exp2(x * 1.44269504f);
#endif
}

// x / y; on a GPU within two units of the last place, and 0 where |y| is above 2^126.
WT_SHARED_FN float nn_divide(float x, float y)
{
#ifdef __CUDACC__
    return __fdividef(x, y);
#else
    return x / y;
#endif
}

// erf by a ratio of polynomials in x^2 for |x| <= 4, where it is 1 - 1.5e-8; largest error 5e-7 (tests/test_nn.c).
// Coefficients: Eigen, MathFunctionsImpl.h, generic_fast_erf_float of 3.3.
WT_SHARED_FN float nn_erf(float x)
{
    const float v = x != x ? x : wt_min(wt_max(x, -4.0f), 4.0f), v2 = v * v;
    float p = -2.72614225801306e-10f, q = -1.45660718464996e-05f;
    p = p * v2 + 2.77068142495902e-08f;
    p = p * v2 - 2.10102402082508e-06f;
    p = p * v2 - 5.69250639462346e-05f;
    p = p * v2 - 7.34990630326855e-04f;
    p = p * v2 - 2.95459980854025e-03f;
    p = p * v2 - 1.60960333262415e-02f;
    q = q * v2 - 2.13374055278905e-04f;
    q = q * v2 - 1.68282697438203e-03f;
    q = q * v2 - 7.37332916720468e-03f;
    q = q * v2 - 1.42647390514189e-02f;
    return nn_divide(v * p, q);
}

// wt_tanh of the words above. Not a number stays.
WT_SHARED_FN float nn_tanh(float x)
{
    const float a = x < 0 ? -x : x, a2 = a * a;
    const float series = -0.333333333f + a2 * (0.133333333f + a2 * (-0.0539682540f + a2 * 0.0218694885f));
    const float small = a * (1 + a2 * series);
    const float y = a < 0.3f ? small : 1 - nn_divide(2, nn_exp(2 * a) + 1);
    return x != x ? x : x < 0 ? -y : y;
}

// sin(x)^2: x less the nearest multiple of pi, in two parts, then the sine's series to x^11, cut below 6e-8 of 1.
WT_SHARED_FN float nn_sin2(float x)
{
    const float turns = x * 0.318309886f, n = (float)(int)(turns + (turns < 0 ? -0.5f : 0.5f));
    const float r = (x - n * 3.140625f) - n * 9.67653589793e-4f, r2 = r * r;
    float s = -2.50521084e-8f;
    s = s * r2 + 2.75573192e-6f;
    s = s * r2 - 1.98412698e-4f;
    s = s * r2 + 8.33333333e-3f;
    s = s * r2 - 0.166666667f;
    s = r + r * r2 * s;
    return s * s;
}

// `p`: the slope of LEAKY_RELU, alpha of SNAKE.
WT_SHARED_FN float nn_activate(int kind, float x, float p)
{
    switch (kind) {
    case NN_RELU: return x < 0 ? 0 : x;
    case NN_SILU: return nn_divide(x, 1 + nn_exp(-x));
    case NN_GELU: return 0.5f * x * (1 + nn_erf(x * 0.70710678f));
    case NN_GELU_TANH: return 0.5f * x * (1 + nn_tanh(0.79788456f * (x + 0.044715f * x * x * x)));
    case NN_SIGMOID: return nn_divide(1, 1 + nn_exp(-x));
    case NN_TANH: return nn_tanh(x);
    case NN_LEAKY_RELU: return x < 0 ? x * p : x;
    case NN_RELU2: return x < 0 ? 0 : x * x;
    case NN_SNAKE: return x + nn_divide(nn_sin2(p * x), p);
    default: return x;
    }
}

// ---- operands

typedef struct nn_rows { // [rows][width], the last axis dense
    void *data;          // NULL = not there
    long long stride;    // elements between rows
    int type;
} nn_rows;

typedef struct nn_vector { // dense
    const void *data;      // NULL = not there
    int type;
} nn_vector;

typedef struct nn_strided { // up to three strides before a dense axis
    void *data;
    long long strides[3];
    int type;
} nn_strided;

typedef struct nn_after {
    nn_vector alpha;
    float slope;
    int kind;
} nn_after;

// How a GPU's threads meet the elements of rows: NN_PACKS_F32 .. NN_PACKS_BF16: all of that type, 16 bytes at once;
// NN_PACKS: fours of any types; else one by one.
typedef enum nn_access { NN_SINGLE, NN_PACKS, NN_PACKS_F32, NN_PACKS_F16, NN_PACKS_BF16 } nn_access;

// ---- pointwise: out = activation(x + bias) * up + residual

typedef struct nn_point_args {
    nn_rows x, up, residual, out;
    nn_vector bias;
    nn_after after;
    long long rows, width;
    int row_channels; // channels are rows, modulo this; 0 = columns
    nn_access access; // GPU
} nn_point_args;

// ---- norms of rows, and of channels

typedef struct nn_norm_args {
    nn_rows x, residual, sum, out, weight, bias;
    nn_after after;
    long long rows, width; // of CHANNELS rows are n, width the channels
    long long inner;       // columns that share a channel; of CHANNELS the length
    int rows_a_weight;     // rows that share a row of weights
    int groups, channels;  // row r holds channels (r modulo groups) * channels ..
    float eps;
    int centre, l2, one_plus; // mean removed; the sum and not the mean of squares
    nn_access access;         // GPU
} nn_norm_args;

// ---- tokens

typedef struct nn_embed_args {
    const void *ids, *places; // places NULL = row modulo n_places
    nn_rows table, positions, out;
    long long rows, width, bag, vocab, n_positions, n_places;
    float scale;
    int ids_type, places_type, mean;
} nn_embed_args;

// Heads of q, k and v out of one row a token; a single array: no kv_heads.
typedef struct nn_rope_args {
    nn_strided x; // strides of tokens and heads
    nn_strided out[3];
    nn_vector bias;
    const int *positions; // NULL = nothing turns
    const float *frequencies;
    float scale;
    int tokens, heads, kv_heads, d_head, half, interleaved;
} nn_rope_args;

// ---- convolution

// For a GPU a convolution is a product: rows are outputs, of a transposed one (output, position modulo stride), columns
// are positions q, and terms are (channel, tap i). Row (o, r) has weights of taps r + i merged, x is at q x_step + at +
// i at_step, and the sum goes to q merged + r - shift.
typedef struct nn_conv_product {
    int rows, merged, n_taps, x_step, at, at_step, shift;
    int positions;
    // f32: term k = u inner + v, u = k magic / 2^32; u and v are channel and tap, or tap and channel
    unsigned magic;
    int inner, taps_inside, rows_inside; // rows_inside: rows of weights are nearer than terms
    // 16 bits: taps of a window of x, its length; x and weights can be read 16 bytes at a time
    int chunk, window, x_packs, w_packs;
    int fours; // out and residual, four positions at once
} nn_conv_product;

typedef struct nn_conv_args {
    nn_strided x, residual, out; // strides of n and channels
    nn_strided weight;           // of outputs, inputs, taps; of transposed the outputs of a group
    nn_vector bias;
    nn_after after;
    long long length, out_length, next_group; // next_group: weights between groups, transposed and not
    int n, groups, inputs, outputs, taps;     // inputs and outputs of a group
    int stride, padding, dilation, transposed;
    int phases;              // stride of transposed, else 1
    nn_conv_product product; // GPU
} nn_conv_args;

// A convolution is one or, transposed, `stride` plain ones: output first + j step is the sum over taps
// tap + i tap_step, i < n_taps, of weight * x[at + i at_step + j x_step].
typedef struct nn_phase {
    int first, step, tap, tap_step, n_taps, at, at_step, x_step;
    long long n; // outputs
} nn_phase;

WT_SHARED_FN nn_phase nn_phase_of(const nn_conv_args *a, int phase)
{
    nn_phase p = {0, 1, 0, 1, a->taps, -a->padding, a->dilation, a->stride, a->out_length};
    if (!a->transposed) return p;
    // x[(q + padding - tap dilation) / stride] where that is whole
    p.first = phase;
    p.step = a->stride;
    p.x_step = 1;
    p.n = (a->out_length - phase + a->stride - 1) / a->stride;
    p.tap_step = 1;
    while (p.tap_step * a->dilation % a->stride) p.tap_step++;
    while (p.tap < p.tap_step && (phase + a->padding - p.tap * a->dilation) % a->stride) p.tap++;
    p.n_taps = p.tap < p.tap_step && p.tap < a->taps ? (a->taps - p.tap + p.tap_step - 1) / p.tap_step : 0;
    p.at = p.n_taps ? (phase + a->padding - p.tap * a->dilation) / a->stride : 0;
    p.at_step = -(p.tap_step * a->dilation / a->stride);
    return p;
}

// ---- LSTM

typedef struct nn_lstm_args {
    const float *gates;        // the input's products: [..][directions][4 hidden]
    long long gate_strides[2]; // of steps and batch
    nn_vector recurrent[2], input_bias[2], recurrent_bias[2];
    nn_vector h0, c0;   // [directions][all][hidden], of the first of this batch
    const int *lengths; // NULL = all steps
    nn_strided out;     // strides of steps and batch
    nn_rows hn, cn;     // as h0
    float *states; // CPU: [directions][batch][3][hidden], h, c and the next h; GPU: h, [2][directions][batch][hidden]
    int *arrived;  // GPU: [directions][32], 0 before and after
    int steps, batch, all, hidden, directions; // all: the whole batch, of which this may be a part
    int units, blocks, kept; // GPU: hidden units of a block; blocks of a direction; fours of columns in shared memory
} nn_lstm_args;

// ---- experts

typedef struct nn_moe_args {
    nn_rows scores, x, grouped, residual, out;
    nn_vector bias;
    int *chosen, *slots, *offsets;
    float *shares;
    long long width;
    int tokens, experts, used, sigmoid, normalise;
    float scale;
} nn_moe_args;

// ---- attention

typedef struct nn_attend_args {
    nn_strided q, k, v, out; // strides of n, heads, positions
    const void *mask;
    long long mask_strides[4];
    int mask_type;
    int n, heads, group, queries, keys, d_head, causal, window;
    int fours, pairs; // GPU: rows of k and v in fours of F32; of out in pairs of its 16-bit type, which is the others'
    float scale;
} nn_attend_args;
#endif
