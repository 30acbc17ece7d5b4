// Convolution by overlap-save, compiled for one SPECTRUM_N. Two runs of outputs are one complex signal, whose parts
// real taps leave apart: samples to spectrum, times the taps' spectrum, and back. Taps that are longer than half a
// transform come in parts; each part's product is added where the thread keeps it, and one transform goes back.
//
//   overlap_save_rows    whole rows: teams of threads, one to a block from 2048 points on, a pair of runs each
//   overlap_save_take    rows that go on: a thread a frame, into the ring of inputs,
//   overlap_save_pairs   teams again: pairs of runs that now have all their inputs, into the ring of outputs,
//   overlap_save_give    and a thread a frame out of it
//
// Pairs begin at multiples of two runs since reset, whatever the blocks are: so each output has the same bits in every
// cut. Judge: the CPU (dsp/filter/overlap_save.c), 2e-6 of the peak.
#ifndef SPECTRUM_N
#    define SPECTRUM_N 2048
#endif
#include "overlap_save_kernel.h"
#include "spectrum.cuh"

extern __shared__ float2 all_shared[]; // points of each team, then its sums [SPECTRUM_N]

// The team's pair: sample(i) is its input i, those before its first output below 0; store(k, x) takes output k of
// 2 fresh. All threads of the block together.
template <class Sample, class Store>
static __device__ __forceinline__ void convolve_pair(const wt_overlap_save_taps &taps, Sample sample, Store store)
{
    const int t = threadIdx.x % SPECTRUM_THREADS, team = threadIdx.x / SPECTRUM_THREADS;
    float2 *points = all_shared + team * SPECTRUM_POINTS;
    float2 *sums = all_shared + SPECTRUM_SEQUENCES * SPECTRUM_POINTS + team * SPECTRUM_N;
    const int lead = SPECTRUM_N - taps.fresh;
    for (int part = 0; part < taps.n_parts; part++) {
        const int first = -part * taps.part - lead;
        const float2 *response = (const float2 *)taps.response + (long long)part * SPECTRUM_N;
        spectrum_transform(
            t, points, taps.twiddles,
            [&](int i) { return make_float2(sample(first + i), sample(first + taps.fresh + i)); },
            [&](int k, float2 v) {
                const float2 product = fft_mul(v, __ldg(response + k));
                sums[k] = part ? fft_add(sums[k], product) : product;
            });
    }
    spectrum_transform(
        t, points, taps.twiddles, [&](int i) { return fft_swap(sums[i]); },
        [&](int k, float2 v) {
            if (k < lead) return;
            store(k - lead, v.y);
            store(k - lead + taps.fresh, v.x);
        });
}

// The team's pair of those that the grid has.
static __device__ __forceinline__ long long this_pair()
{
    return (long long)blockIdx.x * SPECTRUM_SEQUENCES + threadIdx.x / SPECTRUM_THREADS;
}

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK) overlap_save_rows(wt_overlap_save_args a)
{
    const long long per_row = (a.n_out + 2 * a.taps.fresh - 1) / (2 * a.taps.fresh), row = this_pair() / per_row;
    const long long begin = this_pair() % per_row * 2 * a.taps.fresh;
    const float *in = a.in + row * a.n_in;
    float *out = a.out + row * a.n_out;
    convolve_pair(
        a.taps,
        [&](int i) {
            const long long at = begin + i;
            return at >= 0 && at < a.n_in ? __ldg(in + at) : 0;
        },
        [&](int k, float x) {
            if (begin + k < a.n_out) out[begin + k] = x;
        });
}

// A place at most a ring's length beside it.
static __device__ __forceinline__ int around(int place, int n)
{
    return place < 0 ? place + n : place < n ? place : place - n;
}

// Row and frame of the block.
struct row_frame {
    long long row;
    int frame;
    bool exists;
};

static __device__ __forceinline__ row_frame this_frame(const wt_overlap_save_stream_args &a)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x, row = i / a.n_frames;
    return {row, (int)(i - row * a.n_frames), row < a.n_rows};
}

extern "C" __global__ void overlap_save_take(wt_overlap_save_stream_args a)
{
    const row_frame f = this_frame(a);
    if (f.exists) a.past[f.row * a.n_past + around(a.past_at + f.frame, a.n_past)] = a.in[f.row * a.pitch + f.frame];
}

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK) overlap_save_pairs(wt_overlap_save_stream_args a)
{
    const long long row = this_pair() / a.n_pairs;
    const bool exists = row < a.n_rows;
    const int begin = (int)(this_pair() % a.n_pairs) * 2 * a.taps.fresh;
    const float *past = a.past + row * a.n_past;
    float *made = a.made + row * a.n_made;
    convolve_pair(
        a.taps, [&](int i) { return exists ? past[around(a.pair_past_at + begin + i, a.n_past)] : 0; },
        [&](int k, float x) {
            if (exists) made[around(a.pair_made_at + begin + k, a.n_made)] = x;
        });
}

extern "C" __global__ void overlap_save_give(wt_overlap_save_stream_args a)
{
    const row_frame f = this_frame(a);
    if (f.exists) a.out[f.row * a.pitch + f.frame] = a.made[f.row * a.n_made + around(a.made_at + f.frame, a.n_made)];
}
