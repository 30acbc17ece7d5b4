// Short-time transforms of lengths that no block holds: the transforms are wt_fft's, and these kernels what is around
// them, a thread a number each:
//
//   stft_wide_fill   windowed frames of padded signals
//   stft_wide_give   magnitudes, powers or phases of bins
//   stft_wide_add    windowed frames summed to samples, over the sum of the windows' squares
//
// Bound by memory. Judge: the CPU (dsp/stft.c), 2e-6 of the peak.
#include "padded.cuh"
#include "stft_wide_kernel.h"

enum { COMPLEX, MAGNITUDE, POWER, PHASE }; // wt_stft_output

static __device__ long long here() { return (long long)blockIdx.x * blockDim.x + threadIdx.x; }

extern "C" __global__ void stft_wide_fill(wt_stft_wide_args a)
{
    const long long at = here(), frame = at / a.n_fft, line = frame / a.n_frames, t = frame % a.n_frames;
    const int i = (int)(at % a.n_fft);
    if (line >= a.n_lines) return;
    const float *pcm = a.pcm + line * a.n_samples;
    a.frames[at] = a.window[i] * padded_sample(pcm, a.n_samples, t * a.hop - a.margin + i, a.n_fft / 2, a.pad);
}

extern "C" __global__ void stft_wide_give(wt_stft_wide_args a)
{
    const long long at = here();
    if (at >= a.n_lines * a.n_frames * a.bins) return;
    const float re = a.pairs[2 * at], im = a.pairs[2 * at + 1], power = re * re + im * im;
    a.out[at] = a.kind == PHASE ? atan2f(im, re) : a.kind == POWER ? power : sqrtf(power);
}

extern "C" __global__ void stft_wide_add(wt_stft_wide_args a)
{
    const long long at = here(), line = at / a.length, place = at % a.length + a.margin;
    if (line >= a.n_lines) return;
    const float *frames = a.frames + line * a.n_frames * a.n_fft;
    double sum = 0, squares = 0;
    for (long long t = place < a.n_fft ? 0 : (place - a.n_fft) / a.hop + 1; t < a.used_frames && t * a.hop <= place;
         t++) {
        const int i = (int)(place - t * a.hop);
        const double w = a.window[i];
        sum += w * frames[t * a.n_fft + i];
        squares += w * w;
    }
    a.out[at] = (float)(squares > 1.1754943508222875e-38 ? sum / squares : sum);
}
