// Invertible constant-Q transform, what lies between the Fourier transforms: cutting slices, laying a spectrum into
// rows, gathering it again, and adding slices up. One thread an output, neighbours read neighbours; all are bound by
// memory.
// Judge: dsp/tonal/nsgt.c, 2e-6 of the peak.
#include "nsgt_kernel.h"

static __device__ __forceinline__ int modulo(int i, int n)
{
    const int r = i % n;
    return r < 0 ? r + n : r;
}

// Line blockIdx.y is slice `s` of a channel.
extern "C" __global__ void nsgt_cut(const __grid_constant__ wt_nsgt_args a)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x, line = blockIdx.y;
    if (i >= a.slice) return;
    const long long c = line / a.n_slices, s = a.first + line % a.n_slices, at = (s - 1) * (a.slice / 2) + i;
    const float x = at >= 0 && at < a.n ? a.pcm[c * a.n + at] : 0.0f;
    a.slices[(long long)line * a.slice + i] = x * a.slice_window[i];
}

// Row blockIdx.y of line blockIdx.z.
extern "C" __global__ void nsgt_scatter(const __grid_constant__ wt_nsgt_args a)
{
    const wt_nsgt_place row = a.rows[blockIdx.y];
    const float2 *spectrum = (const float2 *)a.spectra + (long long)blockIdx.z * (a.slice / 2 + 1);
    float2 *points = (float2 *)a.points + row.offset + (long long)blockIdx.z * row.stride;
    for (int m = blockIdx.x * blockDim.x + threadIdx.x; m < row.n_points; m += gridDim.x * blockDim.x) {
        const int j = modulo(m - row.first, row.n_points);
        float2 y = make_float2(0, 0);
        if (j < row.length) {
            const float2 x = spectrum[row.first + j];
            const float g = a.analysis[row.window + j];
            y = make_float2(g * x.x, g * x.y);
        }
        points[m] = y;
    }
}

// Bins of line blockIdx.y; rows are added in their order.
extern "C" __global__ void nsgt_gather(const __grid_constant__ wt_nsgt_args a)
{
    const int f = blockIdx.x * blockDim.x + threadIdx.x, line = blockIdx.y;
    if (f > a.slice / 2) return;
    float2 sum = make_float2(0, 0);
    for (int r = a.rows_at[2 * f]; r <= a.rows_at[2 * f + 1]; r++) {
        const wt_nsgt_place row = a.rows[r];
        const float2 y = ((const float2 *)a.points)[row.offset + line * row.stride + f % row.n_points];
        const float g = a.synthesis[row.window + f - row.first];
        sum.x = fmaf(g, y.x, sum.x), sum.y = fmaf(g, y.y, sum.y);
    }
    ((float2 *)a.spectra)[(long long)line * (a.slice / 2 + 1) + f] = sum;
}

// Samples of channel blockIdx.y: each lies in two slices.
extern "C" __global__ void nsgt_overlap(const __grid_constant__ wt_nsgt_args a)
{
    const int hop = a.slice / 2;
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x, at = a.first * hop + i;
    if (i >= (long long)(a.n_slices - 1) * hop || at >= a.n) return;
    const float *line = a.slices + (blockIdx.y * a.n_slices + i / hop) * a.slice;
    a.out_pcm[blockIdx.y * a.n + at] = line[hop + i % hop] + line[a.slice + i % hop];
}
