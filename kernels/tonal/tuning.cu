// Peaks of spectra, and the deviation from A440 that most of the stronger ones share.
//
//   tuning_peaks    a warp a frame, lanes along its bins; all peaks in place, or those that count to the signal's list
//   tuning_choose   a block a signal: the median of the heights by their bits, eight at a time, then the fullest step
//
// The list has no order, and nothing that is made of it depends on one. Compiled without contraction to fused
// multiply-adds: peaks then have the CPU's bits.
// Judge: the CPU (dsp/tonal/tuning.c), identical.
#include "tuning_kernel.h"

#define ALL   0xffffffffu
#define WARPS 8

// The largest of a frame as the CPU finds it: a NaN at the front stays, others are passed over.
static __device__ float most_of(const float *s, int bins)
{
    float most = s[0];
    for (int k = threadIdx.x % 32; k < bins; k += 32) most = fmaxf(most, s[k]);
    for (int step = 16; step; step /= 2) most = fmaxf(most, __shfl_xor_sync(ALL, most, step));
    return s[0] == s[0] ? most : s[0];
}

// One slot of the list for each lane that has a peak; all lanes together.
static __device__ void append(const wt_tuning_args &a, long long signal, bool found, wt_tuning_peak peak)
{
    const int lane = threadIdx.x % 32;
    const unsigned votes = __ballot_sync(ALL, found);
    int first = 0;
    if (lane == 0 && votes) first = atomicAdd(a.n_peaks + signal, __popc(votes));
    first = __shfl_sync(ALL, first, 0);
    if (found) a.peaks[signal * a.most + first + __popc(votes & ((1u << lane) - 1))] = peak;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) tuning_peaks(wt_tuning_args a)
{
    const long long frame = (long long)blockIdx.x * WARPS + threadIdx.x / 32;
    if (frame >= a.n_signals * a.n_frames) return; // the whole warp
    const float *s = a.spectrum + frame * a.bins;
    const double floor = a.threshold * most_of(s, a.bins);
    const int end = a.hz ? a.bins : a.end;
    for (int begin = a.hz ? 0 : a.first; begin < end; begin += 32) {
        const int k = begin + threadIdx.x % 32;
        const bool peak = k >= a.first && k < a.end && wt__peak_is(s, k, a.bins, floor);
        double shift = 0, top = 0;
        if (peak) wt__peak_refine(s, k, a.bins, &shift, &top);
        const float hz = peak ? (float)((k + shift) * a.rate_hz / a.n_fft) : 0.0f, height = (float)top;
        if (a.hz) {
            if (k < a.bins) a.hz[frame * a.bins + k] = hz, a.height[frame * a.bins + k] = height;
            continue;
        }
        const bool counts = hz > 0 && height > 0;
        append(a, frame / a.n_frames, counts, {height, counts ? wt__tuning_step(hz, a.bins_per_octave, a.n_steps) : 0});
    }
}

// ---- choice

// The height of a rank; all threads of the block get it. Heights are above 0: bits have their order.
static __device__ float height_of_rank(const wt_tuning_peak *peaks, int n, int rank)
{
    __shared__ int bins[256];
    __shared__ unsigned prefix;
    __shared__ int left;
    if (threadIdx.x == 0) prefix = 0, left = rank;
    for (int shift = 24; shift >= 0; shift -= 8) {
        for (int i = threadIdx.x; i < 256; i += blockDim.x) bins[i] = 0;
        __syncthreads();
        const unsigned found = prefix;
        for (int i = threadIdx.x; i < n; i += blockDim.x) {
            const unsigned bits = (unsigned)__float_as_int(peaks[i].height);
            if (shift == 24 || bits >> (shift + 8) == found) atomicAdd(bins + (bits >> shift & 255), 1);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            int digit = 0, rest = left;
            while (digit < 255 && rest >= bins[digit]) rest -= bins[digit++];
            prefix = found << 8 | (unsigned)digit, left = rest;
        }
        __syncthreads();
    }
    const float height = __int_as_float((int)prefix);
    __syncthreads(); // before the next call writes there
    return height;
}

extern "C" __global__ void __launch_bounds__(1024) tuning_choose(wt_tuning_args a)
{
    __shared__ unsigned long long fullest; // its count, then the step from the top: the lowest of equals wins
    const wt_tuning_peak *peaks = a.peaks + blockIdx.x * a.most;
    int *counts = a.counts + (long long)blockIdx.x * a.n_steps;
    const int n = a.n_peaks[blockIdx.x];
    if (n == 0) { // all threads
        if (threadIdx.x == 0) a.tuning[blockIdx.x] = 0;
        return;
    }
    const float upper = height_of_rank(peaks, n, n / 2);
    const float least = n % 2 ? upper : 0.5f * (height_of_rank(peaks, n, n / 2 - 1) + upper);
    if (threadIdx.x == 0) fullest = 0;
    for (int i = threadIdx.x; i < a.n_steps; i += blockDim.x) counts[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        if (peaks[i].height >= least) atomicAdd(counts + peaks[i].step, 1);
    __syncthreads();
    unsigned long long mine = 0;
    for (int i = threadIdx.x; i < a.n_steps; i += blockDim.x) {
        const unsigned long long here = (unsigned long long)counts[i] << 32 | (unsigned)(a.n_steps - i);
        mine = here > mine ? here : mine;
    }
    atomicMax(&fullest, mine);
    __syncthreads();
    if (threadIdx.x == 0) a.tuning[blockIdx.x] = -0.5 + (a.n_steps - (int)(unsigned)fullest) * (1.0 / a.n_steps);
}
