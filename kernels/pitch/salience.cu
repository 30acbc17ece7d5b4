// Harmonic salience: a thread a bin, for the frames of a tile, so that its taps are read once for all of them.
// Compiled without contraction to fused multiply-adds. Judge: the CPU (dsp/pitch/salience.c), identical.
#include "salience_kernel.h"

extern "C" __global__ void __launch_bounds__(256) salience(wt_salience_args a)
{
    const long long first = (long long)blockIdx.x * WT_SALIENCE_TILE;
    const int k = blockIdx.y * 256 + threadIdx.x;
    if (k >= a.n_bins) return;
    const float *in = a.in + first * a.n_bins;
    const int n = a.n_frames - first < WT_SALIENCE_TILE ? (int)(a.n_frames - first) : WT_SALIENCE_TILE;
    float sums[WT_SALIENCE_TILE] = {};
    for (int h = 0; h < a.n_harmonics; h++) {
        const wt_salience_tap tap = a.taps[(long long)h * a.n_bins + k];
#pragma unroll
        for (int t = 0; t < WT_SALIENCE_TILE; t++) {
            if (t >= n) break;
            const float *x = in + (long long)t * a.n_bins + tap.lower;
            sums[t] += tap.at_lower * __ldg(x) + tap.at_upper * __ldg(x + 1);
        }
    }
#pragma unroll
    for (int t = 0; t < WT_SALIENCE_TILE; t++) {
        if (t >= n) break;
        const float *x = in + (long long)t * a.n_bins + k;
        const bool peak = k > 0 && k + 1 < a.n_bins && x[0] > x[-1] && x[0] > x[1];
        a.out[(first + t) * a.n_bins + k] = peak || a.all_bins ? sums[t] : a.fill;
    }
}
