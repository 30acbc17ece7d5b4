// YIN: a block has a tile of a signal's frames; a warp ends a frame. Double throughput bounds it: 0.3 M
// products a frame at 2048 / 512 and 65 Hz.
// Judge: the CPU (dsp/pitch/yin.c), 1e-6 of the peak.
#include "yin.cuh"

// The first trough below the threshold, else the first of the lowest values; all lanes get it.
static __device__ int pick(const double *d, int n, double threshold)
{
    const int lane = threadIdx.x & 31;
    int lowest = 0x7fffffff;
    double value = 1e300;
    for (int i0 = 0; i0 < n; i0 += 32) {
        const int i = i0 + lane;
        const bool found = i < n && yin_is_trough(d, i, n) && d[i] < threshold;
        const unsigned votes = __ballot_sync(0xffffffffu, found);
        if (votes) return i0 + __ffs(votes) - 1;
        if (i < n && d[i] < value) value = d[i], lowest = i;
    }
    for (int step = 16; step; step /= 2) {
        const double other = __shfl_xor_sync(0xffffffffu, value, step);
        const int at = __shfl_xor_sync(0xffffffffu, lowest, step);
        if (other < value || (other == value && at < lowest)) value = other, lowest = at;
    }
    return lowest;
}

extern "C" __global__ void __launch_bounds__(YIN_THREADS) yin(wt_yin_args a)
{
    const int n = a.max_period - a.min_period + 1;
    for_tiles<double>(a.places, [&](double *scratch, long long tile, int signal) {
        const long long first = tile * a.tile;
        const yin_block b = yin_load(a, scratch, signal, first);
        yin_correlate(a, b);
        for (int f = threadIdx.x / 32; f < a.tile && first + f < a.n_frames; f += YIN_WARPS) {
            double *d;
            const bool finite = yin_function(a, b, f, &d);
            const int i = finite ? pick(d, n, a.threshold) : 0;
            if ((threadIdx.x & 31) == 0)
                a.f0[signal * a.n_frames + first + f] =
                    finite ? (float)(a.rate_hz / (a.min_period + i + yin_shift_at(d, i, n))) : nanf("");
        }
    });
}
