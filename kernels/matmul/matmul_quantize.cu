// Rows of activations to I8 or FP8 E4M3 with a scale a row, or to E2M1 with one a group of 16 besides: a block a row,
// which reads it twice. Bound by the reading.
// Judge: the CPU, to the bit (a maximum and correctly rounded quotients; rint of the C library and of CUDA agree).
#include "matmul.cuh"

#define ALL     0xffffffffu
#define THREADS 256

static __device__ float largest(const wt_mm_quantize_args &a)
{
    __shared__ float warps[THREADS / 32];
    float most = 0;
    for (int k = threadIdx.x; k < a.columns; k += THREADS)
        most = fmaxf(most, fabsf(element(a.x_type, a.x, blockIdx.x * a.x_stride + k)));
    for (int step = 16; step; step /= 2) most = fmaxf(most, __shfl_xor_sync(ALL, most, step));
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = most;
    __syncthreads();
    most = warps[0];
    for (int w = 1; w < THREADS / 32; w++) most = fmaxf(most, warps[w]);
    return most;
}

extern "C" __global__ void __launch_bounds__(THREADS) matmul_quantize(wt_mm_quantize_args a)
{
    const float scale = wt_mm_quantum(largest(a), a.out_type);
    unsigned char *out = a.out + (long long)blockIdx.x * a.columns;
    if (threadIdx.x == 0) a.scales[blockIdx.x] = scale;
    for (int k = threadIdx.x; k < a.columns; k += THREADS)
        out[k] = wt_mm_quantized(element(a.x_type, a.x, blockIdx.x * a.x_stride + k) / scale, a.out_type);
}

extern "C" __global__ void __launch_bounds__(THREADS) matmul_quantize_e2m1(wt_mm_quantize_args a)
{
    const float scale = wt_mm_quantum(largest(a), WT_MM_E2M1);
    const int n_groups = a.columns / 16;
    if (threadIdx.x == 0) a.scales[blockIdx.x] = scale;
    for (int j = threadIdx.x; j < n_groups; j += THREADS) {
        const long long group = (long long)blockIdx.x * n_groups + j;
        float x[16];
        for (int k = 0; k < 16; k++) x[k] = element(a.x_type, a.x, blockIdx.x * a.x_stride + j * 16 + k);
        a.groups[group] = wt_mm_quantize_16(x, scale, a.out + group * 8);
    }
}
