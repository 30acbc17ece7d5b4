// What a running signal's short-time transform keeps from block to block, for any n_fft:
//
//   stft_stream_keep   the newest samples, for the next block
//   stft_stream_add    a thread a sample: what was summed before, then the block's frames in order; what is whole is
//                      given, the rest becomes the state
//
// State goes from one buffer to another, so that no thread overwrites what its neighbour has yet to read.
// Judge: the CPU's stream, 2e-6 of the peak.
#include "stft_stream.cuh"

extern "C" __global__ void __launch_bounds__(256) stft_stream_keep(wt_stft_stream_args a)
{
    const int blocks = (a.n_fft + 255) / 256, i = (int)(blockIdx.x % blocks) * 256 + threadIdx.x;
    const long long line = blockIdx.x / blocks;
    if (i < a.n_fft) a.state[line * a.n_fft + i] = stream_sample(a, line, a.n, i);
}

extern "C" __global__ void __launch_bounds__(256) stft_stream_add(wt_stft_stream_args a)
{
    const int blocks = (a.n + a.n_fft + 255) / 256, at = (int)(blockIdx.x % blocks) * 256 + threadIdx.x;
    const long long line = blockIdx.x / blocks;
    if (at >= a.n + a.n_fft) return;
    float sum = at < a.n_fft ? __ldg(a.old + line * a.n_fft + at) : 0;
    const int since = at - a.first; // frame f is given from sample first + f hop on
    const float *frames = a.windowed + line * a.n_frames * a.n_fft;
    for (int f = since < a.n_fft ? 0 : (since - a.n_fft) / a.hop + 1; f < a.n_frames && f * a.hop <= since; f++)
        sum += frames[(long long)f * a.n_fft + since - f * a.hop];
    if (at < a.n)
        a.pcm[line * a.n + at] = sum * __ldg(a.steady + (since % a.hop + a.hop) % a.hop);
    else
        a.state[line * a.n_fft + at - a.n] = sum;
}
