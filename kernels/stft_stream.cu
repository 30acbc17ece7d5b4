// Short-time transforms of running signals, compiled for one SPECTRUM_N. A team of threads has one frame by itself:
// with a partner its bits would depend on where blocks were cut.
//
//   stft_stream_forward   the frames that a block completes, from the samples before it and its own
//   stft_stream_keep      the newest samples, for the next block
//   stft_stream_back      frames to windowed samples
//   stft_stream_add       a thread a sample: what was summed before, then the block's frames in order; what is whole is
//                         given, the rest becomes the state
//
// State goes from one buffer to another, so that no thread overwrites what its neighbour has yet to read.
// Judge: the CPU's stream, 2e-6 of the peak.
#ifndef SPECTRUM_N
#    define SPECTRUM_N 2048
#endif
#include "spectrum_overlap.cuh"
#include "stft_stream_kernel.h"

extern __shared__ float2 all_shared[];

// Sample i of the newest SPECTRUM_N before sample `end` of the block.
static __device__ __forceinline__ float sample_at(const wt_stft_stream_args &a, long long line, int end, int i)
{
    const int at = end - SPECTRUM_N + i;
    return at < 0 ? __ldg(a.old + line * SPECTRUM_N + SPECTRUM_N + at) : a.pcm[line * a.n + at];
}

struct stream_place {
    int thread, frame;
    long long line;
    float2 *points;
};

static __device__ __forceinline__ stream_place find_place(const wt_stft_stream_args &a)
{
    const int blocks = (a.n_frames + SPECTRUM_SEQUENCES - 1) / SPECTRUM_SEQUENCES;
    stream_place p;
    p.thread = threadIdx.x % SPECTRUM_THREADS;
    p.frame = (int)(blockIdx.x % blocks) * SPECTRUM_SEQUENCES + threadIdx.x / SPECTRUM_THREADS;
    p.line = blockIdx.x / blocks;
    p.points = all_shared + threadIdx.x / SPECTRUM_THREADS * SPECTRUM_POINTS;
    return p;
}

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK) stft_stream_forward(wt_stft_stream_args a)
{
    const stream_place p = find_place(a);
    const bool there = p.frame < a.n_frames;
    const int end = a.first + p.frame * a.hop;
    spectrum_transform(
        p.thread, p.points, a.twiddles,
        [&](int i) { return make_float2(there ? __ldg(a.window + i) * sample_at(a, p.line, end, i) : 0, 0); },
        [&](int k, float2 v) { p.points[spectrum_at(k)] = v; });
    float2 *out = (float2 *)a.frames + (p.line * a.n_frames + p.frame) * SPECTRUM_BINS;
    for (int k = p.thread; k < SPECTRUM_BINS && there; k += SPECTRUM_THREADS) {
        float2 x, none;
        spectrum_part(p.points, k, x, none);
        out[k] = x;
    }
}

extern "C" __global__ void __launch_bounds__(256) stft_stream_keep(wt_stft_stream_args a)
{
    const int blocks = (SPECTRUM_N + 255) / 256, i = (int)(blockIdx.x % blocks) * 256 + threadIdx.x;
    const long long line = blockIdx.x / blocks;
    if (i < SPECTRUM_N) a.state[line * SPECTRUM_N + i] = sample_at(a, line, a.n, i);
}

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK) stft_stream_back(wt_stft_stream_args a)
{
    const stream_place p = find_place(a);
    const bool there = p.frame < a.n_frames;
    const float2 none = make_float2(0, 0);
    const float2 *in = (const float2 *)a.frames + (p.line * a.n_frames + p.frame) * SPECTRUM_BINS;
    for (int k = p.thread; k < SPECTRUM_BINS; k += SPECTRUM_THREADS)
        spectrum_put_pair(p.points, k, there ? __ldg(in + k) : none, none);
    __syncthreads();
    spectrum_back(p.thread, p.points, a.window, a.twiddles);
    float *out = a.windowed + (p.line * a.n_frames + p.frame) * SPECTRUM_N;
    for (int i = p.thread; i < SPECTRUM_N && there; i += SPECTRUM_THREADS) out[i] = p.points[spectrum_at(i)].x;
}

extern "C" __global__ void __launch_bounds__(256) stft_stream_add(wt_stft_stream_args a)
{
    const int blocks = (a.n + SPECTRUM_N + 255) / 256, at = (int)(blockIdx.x % blocks) * 256 + threadIdx.x;
    const long long line = blockIdx.x / blocks;
    if (at >= a.n + SPECTRUM_N) return;
    float sum = at < SPECTRUM_N ? __ldg(a.old + line * SPECTRUM_N + at) : 0;
    const int since = at - a.first; // frame f is given from sample first + f hop on
    const float *frames = a.windowed + line * a.n_frames * SPECTRUM_N;
    for (int f = since < SPECTRUM_N ? 0 : (since - SPECTRUM_N) / a.hop + 1; f < a.n_frames && f * a.hop <= since; f++)
        sum += frames[(long long)f * SPECTRUM_N + since - f * a.hop];
    if (at < a.n)
        a.pcm[line * a.n + at] = sum * __ldg(a.steady + (since % a.hop + a.hop) % a.hop);
    else
        a.state[line * SPECTRUM_N + at - a.n] = sum;
}
