// GGUF's blocks as plain elements beside their scales: a thread takes 16 elements of a row. Bound by its small loads,
// once at loading. Judge: the CPU, to the bit.
#include "matmul.cuh"

extern "C" __global__ void __launch_bounds__(256) matmul_repack(const __grid_constant__ wt_mm_repack_args a)
{
    const long long n = (long long)a.rows * (a.columns / 16), step = (long long)gridDim.x * blockDim.x;
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < n; at += step) wt_mm_repack_16(&a, at);
}
