// One of the two steps of a long transform n = n1 n2 (Bailey's four-step, transposition included):
//   step 1, FFT_TURNED 1: for each j2, over j1 of x[j1 n2 + j2], times w_n^(j2 k1), to y[j2 n1 + k1]
//   step 2, FFT_TURNED 0: for each k1, over j2 of y[j2 n1 + k1], to X[k2 n1 + k1]
// FFT_POINTS is n1, then n2. A block takes FFT_COLUMNS neighbouring columns, and neighbouring threads neighbouring
// columns, so both reads and the writes of step 2 move whole sectors; step 1 turns its tile in shared memory.
// Judge: the CPU's transform, 2e-6 of the peak.
#ifndef FFT_POINTS
#    define FFT_POINTS  1024
#    define FFT_COLUMNS 8
#    define FFT_TURNED  1
#endif
#include "fft.cuh"

enum { THREADS = wt__fft_threads(FFT_POINTS, 1024 / FFT_COLUMNS) };

extern "C" __global__ void __launch_bounds__(THREADS *FFT_COLUMNS, 1) fft_columns(wt_fft_columns_args a)
{
    extern __shared__ float all_shared[];
    const int column = threadIdx.x % FFT_COLUMNS, t = threadIdx.x / FFT_COLUMNS;
    const int first = blockIdx.x * FFT_COLUMNS, at = first + column;
    const int region = wt__fft_shared_floats(FFT_POINTS) | 1; // odd: neighbours fall into different banks
    float *shared = all_shared + column * region;
    const long long base = (long long)blockIdx.y * FFT_POINTS * a.columns;
    const float2 *in = (const float2 *)a.in + base;
    float2 *out = (float2 *)a.out + base;
    auto read = [&](int i) {
        if (at >= a.columns) return make_float2(0, 0);
        float2 v = in[(long long)i * a.columns + at];
        return a.swap_in ? fft_swap(v) : v;
    };
#if FFT_TURNED
    fft_block<FFT_POINTS, THREADS>(t, shared, a.twiddles, read, [&](int k, float2 v) {
        if (at >= a.columns) return;
        const int turn = k * at; // below n
        float2 w = fft_mul(((const float2 *)a.coarse)[turn >> 12], ((const float2 *)a.fine)[turn & 4095]);
        fft_shared_put<FFT_POINTS>(shared, k, fft_mul(v, w));
    });
    __syncthreads();
    for (int i = threadIdx.x; i < FFT_COLUMNS * FFT_POINTS; i += THREADS * FFT_COLUMNS) {
        const int row = i / FFT_POINTS, k = i % FFT_POINTS;
        if (first + row < a.columns)
            out[(long long)(first + row) * FFT_POINTS + k] = fft_shared_get<FFT_POINTS>(all_shared + row * region, k);
    }
#else
    fft_block<FFT_POINTS, THREADS>(t, shared, a.twiddles, read, [&](int k, float2 v) {
        v = fft_scale(a.swap_out ? fft_swap(v) : v, a.scale);
        if (at < a.columns) out[(long long)k * a.columns + at] = v;
    });
#endif
}
