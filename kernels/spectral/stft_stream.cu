// Short-time transforms of running signals, compiled for one SPECTRUM_N. A team of threads has one frame by itself:
// with a partner its bits would depend on where blocks were cut.
//
//   stft_stream_forward   the frames that a block completes, from the samples before it and its own
//   stft_stream_back      frames to windowed samples
//
// kernels/spectral/stft_stream_state.cu keeps samples and sums. Judge: the CPU's stream, 2e-6 of the peak.
#ifndef SPECTRUM_N
#    define SPECTRUM_N 2048
#endif
#include "spectrum_overlap.cuh"
#include "stft_stream.cuh"

extern __shared__ float2 all_shared[];

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
        [&](int i) { return make_float2(there ? __ldg(a.window + i) * stream_sample(a, p.line, end, i) : 0, 0); },
        [&](int k, float2 v) { p.points[spectrum_at(k)] = v; });
    float2 *out = (float2 *)a.frames + (p.line * a.n_frames + p.frame) * SPECTRUM_BINS;
    for (int k = p.thread; k < SPECTRUM_BINS && there; k += SPECTRUM_THREADS) {
        float2 x, none;
        spectrum_part(p.points, k, x, none);
        out[k] = x;
    }
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
