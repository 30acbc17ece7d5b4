// Convolution along time, plain, strided, dilated, in groups and transposed, in float; nn_conv_16.cu has 16-bit types.
//
//   nn_conv_few        a thread an output: groups of few outputs (depthwise), and what is no product of tiles
//   nn_conv_f32_128_s  a block 128 rows x 128 positions, a warp 64 x 32; s blocks of a cluster share the terms
//   nn_conv_f32_64_s   a block 64 x 64, a warp 32 x 32
//   nn_conv_any        likewise, of any types
//
// Products run on tensor cores with every number in three bf16 (parts.cuh). Terms come 32 at a time, the next on their
// way from memory while some are used; their parts lie in shared memory, [part][row][term] and [part][term][position],
// of two steps in turn. Sums of a step begin with zeros. Judge: the CPU's (models/nn_conv.c), and torch.
#include "nn_conv.cuh"

#include "parts.cuh"

static __device__ __forceinline__ float x_at(const nn_conv_args &a, int n, int channel, long long at)
{
    if (at < 0 || at >= a.length) return 0;
    return load(a.x.data, a.x.type, n * a.x.strides[0] + channel * a.x.strides[1] + at);
}

// Grid: blocks of 256 positions, output channels, n.
extern "C" __global__ void __launch_bounds__(256) nn_conv_few(nn_conv_args a)
{
    let_next_begin();
    wait_for_earlier();
    const long long position = (long long)blockIdx.x * 256 + threadIdx.x;
    if (position >= a.out_length) return;
    const int n = blockIdx.z, channel = blockIdx.y, group = channel / a.outputs, output = channel % a.outputs;
    float sum = 0;
    for (int tap = 0; tap < a.taps; tap++) {
        long long at = position * a.stride - a.padding + (long long)tap * a.dilation;
        if (a.transposed) {
            const long long from = position + a.padding - (long long)tap * a.dilation;
            at = (int)from == from ? (int)from / a.stride : from / a.stride;
            if (from < 0 || at * a.stride != from) continue;
        }
        const long long w = group * a.next_group + output * a.weight.strides[0] + tap * a.weight.strides[2];
        for (int c = 0; c < a.inputs; c++)
            sum +=
                load(a.weight.data, a.weight.type, w + c * a.weight.strides[1]) * x_at(a, n, group * a.inputs + c, at);
    }
    float y = after(a.after, sum + load_or(a.bias, channel, 0), channel);
    if (a.residual.data)
        y += load(a.residual.data, a.residual.type,
                  n * a.residual.strides[0] + channel * a.residual.strides[1] + position);
    store(a.out.data, a.out.type, n * a.out.strides[0] + channel * a.out.strides[1] + position, y);
}

// ---- products

#define TERMS   32 // of a step
#define W_PITCH (TERMS + 8)

template <int SIDE> struct step {
    unsigned short weights[PARTS][SIDE][W_PITCH], x[PARTS][TERMS][SIDE + 8];
};

// What a thread brings of each step: four times four terms of a row, and eight times two positions of a term.
template <int SIDE> struct carrier {
    int weights[4], n_taps[4]; // where rows begin, of the group's weights; taps of the rows
    int row[4], term[4];
    int at[2], x_term, x_position;
    const char *w, *x; // of the group
};

struct coming {
    float weights[4][4], x[8][2];
};

static __device__ __forceinline__ int bytes_of(int type) { return type == NN_F32 ? 4 : 2; }

template <int SIDE> static __device__ __forceinline__ carrier<SIDE> carrier_of(const nn_conv_args &a, const tile &t)
{
    const nn_conv_product &p = a.product;
    carrier<SIDE> c;
    c.x_term = threadIdx.x / (SIDE / 2);
    c.x_position = threadIdx.x % (SIDE / 2) * 2;
    c.w = (const char *)a.weight.data + t.group * a.next_group * bytes_of(a.weight.type);
    c.x = (const char *)a.x.data +
          (t.n * a.x.strides[0] + (long long)t.group * a.inputs * a.x.strides[1]) * bytes_of(a.x.type);
#pragma unroll
    for (int j = 0; j < 4; j++) {
        c.row[j] = p.rows_inside ? threadIdx.x % SIDE : threadIdx.x / 8 + SIDE / 4 * j;
        c.term[j] = 4 * (p.rows_inside ? threadIdx.x / SIDE + 2 * j : threadIdx.x % 8);
        c.weights[j] = (int)weights_of(a, t.row + c.row[j], &c.n_taps[j]);
    }
#pragma unroll
    for (int i = 0; i < 2; i++) c.at[i] = (t.position + c.x_position + i) * p.x_step + p.at;
    return c;
}

// Channel and tap of a term; the channel is beyond the last one's, or the tap, where there is no such term.
static __device__ __forceinline__ void term_of(const nn_conv_product &p, int k, int *channel, int *tap)
{
    const int u = (int)__umulhi((unsigned)k, p.magic), v = k - u * p.inner;
    *channel = p.taps_inside ? u : v;
    *tap = p.taps_inside ? v : u;
}

template <bool ANY>
static __device__ __forceinline__ float one_of(const char *from, int type, long long at, bool is_there)
{
    if (!is_there) return 0;
    return ANY ? load(from, type, at) : ((const float *)from)[at];
}

// Terms k .. k + TERMS - 1.
template <int SIDE, bool ANY>
static __device__ __forceinline__ void fetch(const nn_conv_args &a, const carrier<SIDE> &c, int k, coming *to)
{
    const nn_conv_product &p = a.product;
    int from[4], last[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (!j || p.rows_inside) {
                int channel, tap;
                term_of(p, k + c.term[j] + i, &channel, &tap);
                from[i] = channel * (int)a.weight.strides[1] + tap * p.merged * (int)a.weight.strides[2];
                last[i] = channel < a.inputs ? tap : a.taps; // no row has that one
            }
            to->weights[j][i] = one_of<ANY>(c.w, a.weight.type, c.weights[j] + from[i], last[i] < c.n_taps[j]);
        }
    }
#pragma unroll
    for (int j = 0; j < 8; j++) {
        int channel, tap;
        term_of(p, k + c.x_term + 4 * j, &channel, &tap);
        const long long line = channel * a.x.strides[1];
        const int shift = tap * p.at_step;
        const unsigned length = channel < a.inputs && tap < p.n_taps ? (unsigned)a.length : 0;
#pragma unroll
        for (int i = 0; i < 2; i++)
            to->x[j][i] = one_of<ANY>(c.x, a.x.type, line + (c.at[i] + shift), (unsigned)(c.at[i] + shift) < length);
    }
}

template <int SIDE>
static __device__ __forceinline__ void put(const carrier<SIDE> &c, const coming &own, step<SIDE> *to)
{
#pragma unroll
    for (int j = 0; j < 4; j++) {
        unsigned low[PARTS], high[PARTS];
        part_pair(own.weights[j][0], own.weights[j][1], low);
        part_pair(own.weights[j][2], own.weights[j][3], high);
#pragma unroll
        for (int p = 0; p < PARTS; p++) *(uint2 *)&to->weights[p][c.row[j]][c.term[j]] = make_uint2(low[p], high[p]);
    }
#pragma unroll
    for (int j = 0; j < 8; j++) {
        unsigned parts[PARTS];
        part_pair(own.x[j][0], own.x[j][1], parts);
#pragma unroll
        for (int p = 0; p < PARTS; p++) *(unsigned *)&to->x[p][c.x_term + 4 * j][c.x_position] = parts[p];
    }
}

template <int SIDE> struct own_sums {
    float at[SIDE / 32][4][4]; // 16 rows, 8 positions
};

// A warp has SIDE / 2 rows and 32 positions.
template <int SIDE> static __device__ __forceinline__ void multiply(const step<SIDE> &m, own_sums<SIDE> *sums)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, matrix = lane / 8;
    const int row = warp / (SIDE / 32) * (SIDE / 2), position = warp % (SIDE / 32) * 32;
#pragma unroll
    for (int n = 0; n < 4; n += 2) {
        unsigned b[TERMS / 16][PARTS][4];
#pragma unroll
        for (int k = 0; k < TERMS / 16; k++)
#pragma unroll
            for (int p = 0; p < PARTS; p++)
                load_matrices_transposed(
                    b[k][p], &m.x[p][16 * k + matrix % 2 * 8 + lane % 8][position + 8 * n + matrix / 2 * 8]);
#pragma unroll
        for (int i = 0; i < SIDE / 32; i++) {
            float sum[2][4] = {};
#pragma unroll
            for (int k = 0; k < TERMS / 16; k++) {
                unsigned w[PARTS][4];
#pragma unroll
                for (int p = 0; p < PARTS; p++)
                    load_matrices(w[p], &m.weights[p][row + 16 * i + lane % 16][16 * k + lane / 16 * 8]);
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const unsigned low[PARTS] = {b[k][0][2 * h], b[k][1][2 * h], b[k][2][2 * h]};
                    const unsigned high[PARTS] = {b[k][0][2 * h + 1], b[k][1][2 * h + 1], b[k][2][2 * h + 1]};
                    mma_parts(sum[h], sum[h], w, low, high);
                }
            }
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int e = 0; e < 4; e++) sums->at[i][n + h][e] += sum[h][e];
        }
    }
}

template <int SIDE, int SPLITS, bool ANY = false> static __device__ __forceinline__ void conv_f32(const nn_conv_args &a)
{
    extern __shared__ uint4 memory[];
    step<SIDE> *m = (step<SIDE> *)memory; // two; then SIDE / 2 rows of sums
    const tile t = tile_of<SIDE, SPLITS>(a);
    const int steps = (a.inputs * a.product.n_taps + TERMS - 1) / TERMS;
    const int begin = steps * t.split / SPLITS, end = steps * (t.split + 1) / SPLITS;
    own_sums<SIDE> sums = {};
    coming next;
    let_next_begin();
    wait_for_earlier();
    const carrier<SIDE> c = carrier_of<SIDE>(a, t);
    if (begin < end) {
        fetch<SIDE, ANY>(a, c, begin * TERMS, &next);
        put(c, next, m);
    }
    for (int s = begin; s < end; s++) {
        if (s + 1 < end) fetch<SIDE, ANY>(a, c, (s + 1) * TERMS, &next);
        __syncthreads(); // the step's terms are there, and those of the step before were used by all
        multiply(m[(s - begin) % 2], &sums);
        if (s + 1 < end) put(c, next, m + (s - begin + 1) % 2);
    }
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    constexpr int some = SIDE / 2; // rows at a time
    float *const to = (float *)memory;
    for (int first = 0; first < SIDE; first += some) {
        __syncthreads();
        if (warp / (SIDE / 32) * some == first) {
#pragma unroll
            for (int i = 0; i < SIDE / 32; i++)
#pragma unroll
                for (int n = 0; n < 4; n++)
#pragma unroll
                    for (int h = 0; h < 2; h++)
                        *(float2 *)(to + (16 * i + lane / 4 + 8 * h) * (SIDE + 4) + warp % (SIDE / 32) * 32 + 8 * n +
                                    lane % 4 * 2) = make_float2(sums.at[i][n][2 * h], sums.at[i][n][2 * h + 1]);
        }
        finish<SIDE, SPLITS, 2 * SIDE, some>(a, t, to, first);
    }
}

#define KERNEL(side, splits, blocks)                                                                                   \
    extern "C" __global__ void CLUSTER_##splits __launch_bounds__(2 * side, blocks)                                    \
        nn_conv_f32_##side##_##splits(const __grid_constant__ nn_conv_args a)                                          \
    {                                                                                                                  \
        conv_f32<side, splits>(a);                                                                                     \
    }

KERNEL(128, 1, 1)
KERNEL(128, 2, 1)
KERNEL(128, 3, 1)
KERNEL(128, 4, 1)
KERNEL(64, 1, 2)
KERNEL(64, 8, 2)

extern "C" __global__ void __launch_bounds__(128, 2) nn_conv_any(const __grid_constant__ nn_conv_args a)
{
    conv_f32<64, 1, true>(a);
}
