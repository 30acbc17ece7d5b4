// What the kernels of running signals share.
#pragma once
#include "stft_stream_kernel.h"

// Sample i of the newest n_fft before sample `end` of the block.
static __device__ __forceinline__ float stream_sample(const wt_stft_stream_args &a, long long line, int end, int i)
{
    const int at = end - a.n_fft + i;
    return at < 0 ? __ldg(a.old + line * a.n_fft + a.n_fft + at) : a.pcm[line * a.n + at];
}
