// A strip of weights to fp8 (a block of threads for 128 x 128), int8 (one a row) or int4 (a warp a group). Each reads
// its weights twice, the second time from the L2 cache: the way to the GPU is fifty times as long.
// Judge: models/llm/quantize.c, to the bit.
#include "weight_kernel.h"

#define ALL     0xffffffffu
#define THREADS 256
#define WARPS   (THREADS / 32)

static __device__ float weight(const wt_weight_args &a, long long at)
{
    return a.type == ARRAY_F32 ? ((const float *)a.in)[at]
                               : array_read_small(a.type, ((const unsigned short *)a.in)[at]);
}

static __device__ float largest_of_block(float most)
{
    __shared__ float warps[WARPS];
    for (int step = 16; step; step /= 2) most = fmaxf(most, __shfl_xor_sync(ALL, most, step));
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = most;
    __syncthreads();
    most = warps[0];
    for (int w = 1; w < WARPS; w++) most = fmaxf(most, warps[w]);
    return most;
}

// A word of a row; zeros behind the last one.
static __device__ void put_padded(const wt_weight_args &a, unsigned *to, long long row, int column, unsigned word)
{
    to += row * a.words + column;
    *to = word;
    for (int k = 1; column == a.across - 1 && column + k < a.words; k++) to[k] = 0;
}

// Block x of row y of blocks.
extern "C" __global__ void __launch_bounds__(THREADS) weight_to_fp8(wt_weight_args a)
{
    const int row = blockIdx.y * WT_WEIGHT_SIDE, column = blockIdx.x * a.group;
    const int n_rows = min(a.rows - row, WT_WEIGHT_SIDE), n_columns = min(a.columns - column, a.group);
    const long long first = (long long)row * a.columns + column;
    float most = 0;
    for (int k = threadIdx.x; k < n_rows * a.group; k += THREADS)
        if (k % a.group < n_columns)
            most = fmaxf(most, fabsf(weight(a, first + (long long)(k / a.group) * a.columns + k % a.group)));
    const float scale = wt_weight_fp8_scale(largest_of_block(most));
    if (threadIdx.x == 0) a.scales[(long long)blockIdx.y * a.across + blockIdx.x] = scale;
    if (threadIdx.x == 0 && a.padded)
        put_padded(a, (unsigned *)a.padded, blockIdx.y, blockIdx.x, __float_as_uint(scale));
    for (int k = threadIdx.x; k < n_rows * a.group; k += THREADS) {
        const long long at = first + (long long)(k / a.group) * a.columns + k % a.group;
        if (k % a.group < n_columns) a.q[at] = (unsigned char)wt_weight_e4m3(weight(a, at) / scale);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) weight_to_int8(wt_weight_args a)
{
    const long long first = (long long)blockIdx.x * a.columns;
    float most = 0;
    for (int k = threadIdx.x; k < a.columns; k += THREADS) most = fmaxf(most, fabsf(weight(a, first + k)));
    const float scale = largest_of_block(most) / 127, by = wt_weight_int8_by(scale);
    if (threadIdx.x == 0) a.scales[blockIdx.x] = scale;
    for (int k = threadIdx.x; k < a.columns; k += THREADS)
        ((signed char *)a.q)[first + k] = wt_weight_int8(weight(a, first + k), by);
}

// A lane has pairs of neighbours, which share a byte.
extern "C" __global__ void __launch_bounds__(THREADS) weight_to_int4(wt_weight_args a)
{
    const int lane = threadIdx.x % 32;
    const long long g = (long long)blockIdx.x * WARPS + threadIdx.x / 32, first = g * a.group; // rows are whole groups
    if (g >= (long long)a.rows * a.across) return;
    float low = 0, high = 0;
    for (int k = lane; k < a.group; k += 32) {
        low = fminf(low, weight(a, first + k));
        high = fmaxf(high, weight(a, first + k));
    }
    for (int step = 16; step; step /= 2) {
        low = fminf(low, __shfl_xor_sync(ALL, low, step));
        high = fmaxf(high, __shfl_xor_sync(ALL, high, step));
    }
    const float scale = wt_weight_int4_scale(low, high);
    const int zero = wt_weight_int4_zero(low, scale);
    for (int k = 2 * lane; k < a.group; k += 64)
        a.q[(first + k) / 2] = (unsigned char)(wt_weight_int4(weight(a, first + k), scale, zero) |
                                               wt_weight_int4(weight(a, first + k + 1), scale, zero) << 4);
    if (lane) return;
    const unsigned half = wt_weight_half(scale);
    a.scales[g] = scale;
    a.zeros[g] = (unsigned char)zero;
    put_padded(a, a.both, g / a.across, (int)(g % a.across), half | (unsigned)zero << 16);
    if (array_read_small(ARRAY_F16, half) != scale) *a.odd = 1;
}
