// Signals brought to a level:
//
//   normalize_measure   a block a chunk of a signal: its squares in double, its largest sample
//   normalize_find      a warp a signal: its chunks in a fixed order, or what the loudness kernels found; its gain
//   normalize_apply     a thread four samples
//
// Bound by memory: a sample is read twice and written once. Judge: the CPU (dsp/level/normalize.c), 2e-6 of the peak.
#include "normalize_kernel.h"

#define ALL     0xffffffffu
#define THREADS 256

static __device__ normalize_facts of_warp(normalize_facts f)
{
    for (int d = 16; d; d /= 2) {
        const normalize_facts other = {__shfl_xor_sync(ALL, f.squares, d), __shfl_xor_sync(ALL, f.count, d),
                                       __shfl_xor_sync(ALL, f.peak, d)};
        normalize_add(&f, &other);
    }
    return f;
}

extern "C" __global__ void __launch_bounds__(THREADS) normalize_measure(normalize_args a)
{
    __shared__ normalize_facts of_warps[THREADS / 32];
    const long long signal = blockIdx.x / a.n_chunks, chunk = blockIdx.x % a.n_chunks;
    const float *in = a.in + signal * a.area;
    const long long end = min((chunk + 1) * NORMALIZE_CHUNK, a.area);
    normalize_facts f = {};
    for (long long i = chunk * NORMALIZE_CHUNK + threadIdx.x; i < end; i += THREADS) normalize_count(&f, in[i]);
    f = of_warp(f);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = f;
    __syncthreads();
    if (threadIdx.x) return;
    for (int w = 1; w < THREADS / 32; w++) normalize_add(&f, &of_warps[w]);
    a.facts[blockIdx.x] = f;
}

extern "C" __global__ void __launch_bounds__(32) normalize_find(normalize_args a)
{
    const long long signal = blockIdx.x;
    if (a.values) {
        if (threadIdx.x == 0) a.gains[signal] = normalize_by_loudness(&a, a.values + signal);
        return;
    }
    normalize_facts f = {};
    for (long long k = threadIdx.x; k < a.n_chunks; k += 32) normalize_add(&f, a.facts + signal * a.n_chunks + k);
    f = of_warp(f);
    if (threadIdx.x == 0) a.gains[signal] = normalize_by_facts(&a, &f);
}

extern "C" __global__ void __launch_bounds__(THREADS) normalize_apply(normalize_args a)
{
    const long long first = (long long)blockIdx.x * (4 * THREADS) + threadIdx.x, count = a.n_signals * a.area;
    for (int k = 0; k < 4; k++) {
        const long long i = first + k * THREADS;
        if (i < count) a.out[i] = a.in[i] * a.gains[i / a.area];
    }
}
