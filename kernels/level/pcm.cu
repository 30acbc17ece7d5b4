// Interleaved samples as files hold them to planar float and back: 256 threads, a frame each; blockIdx.y is the signal.
// Channels of a frame lie side by side, so a warp's reads and writes are one run. Judge: wt_pcm_read, wt_pcm_to_mono
// and wt_pcm_write, identical.
//
//   pcm_read
//   pcm_write     counts of a warp go to the signal's state by its first lane
//   pcm_written   a thread a signal: the dither's counter moves on when all have read it
#include "pcm_kernel.h"

enum { S16, S24, S32, F32, F64 }; // wt_pcm_format

static __device__ __forceinline__ float one(int format, const unsigned char *at)
{
    switch (format) {
    case S16: return *(const short *)at * 0x1p-15f;
    case S24: return (float)(int)((unsigned)at[0] << 8 | (unsigned)at[1] << 16 | (unsigned)at[2] << 24) * 0x1p-31f;
    case S32: return (float)*(const int *)at * 0x1p-31f;
    case F32: return *(const float *)at;
    default: return (float)*(const double *)at;
    }
}

extern "C" __global__ void __launch_bounds__(256) pcm_read(wt_pcm_args a)
{
    const int bytes = a.format == S16 ? 2 : a.format == S24 ? 3 : a.format == F64 ? 8 : 4;
    const long long n = (long long)blockIdx.x * 256 + threadIdx.x, signal = blockIdx.y;
    if (n >= a.n_frames) return;
    const unsigned char *in = a.in + (signal * a.n_frames + n) * a.channels * bytes;
    if (a.fold) {
        float sum = one(a.format, in);
        for (int c = 1; c < a.channels; c++) sum += one(a.format, in + c * bytes);
        a.out[signal * a.n_frames + n] = sum / (float)a.channels;
        return;
    }
    float *out = a.out + signal * a.channels * a.n_frames + n;
    for (int c = 0; c < a.channels; c++) out[c * a.n_frames] = one(a.format, in + c * bytes);
}

static __device__ __forceinline__ void put(int format, float x, double dither, unsigned long long *n_clipped,
                                           unsigned long long *n_bad, unsigned char *at)
{
    switch (format) {
    case S16: *(short *)at = (short)pcm_quantise(x, 0x1p15, dither, n_clipped, n_bad); return;
    case S24: {
        const unsigned s24 = (unsigned)pcm_quantise(x, 0x1p23, dither, n_clipped, n_bad);
        at[0] = (unsigned char)s24, at[1] = (unsigned char)(s24 >> 8), at[2] = (unsigned char)(s24 >> 16);
        return;
    }
    case S32: *(int *)at = pcm_quantise(x, 0x1p31, 0, n_clipped, n_bad); return;
    case F32: *(float *)at = x; return;
    default: *(double *)at = (double)x;
    }
}

static __device__ __forceinline__ void count(unsigned long long own, unsigned long long *all)
{
    for (int k = 16; k; k >>= 1) own += __shfl_xor_sync(~0u, own, k);
    if (own && threadIdx.x % 32 == 0) atomicAdd(all, own);
}

extern "C" __global__ void __launch_bounds__(256) pcm_write(wt_pcm_write_args a)
{
    const int bytes = a.format == S16 ? 2 : a.format == S24 ? 3 : a.format == F64 ? 8 : 4;
    const long long n = (long long)blockIdx.x * 256 + threadIdx.x, signal = blockIdx.y;
    wt_pcm_state *state = a.states + signal;
    unsigned long long n_clipped = 0, n_bad = 0;
    if (n < a.n_frames) {
        const bool dithered = !state->no_dither && a.format <= S24;
        const unsigned long long counter = state->n_samples + (unsigned long long)(n * a.channels);
        const float *in = a.in + signal * a.channels * a.n_frames + n;
        unsigned char *out = a.out + (signal * a.n_frames + n) * a.channels * bytes;
        for (int c = 0; c < a.channels; c++)
            put(a.format, in[c * a.n_frames], dithered ? pcm_dither(counter + c) : 0, &n_clipped, &n_bad,
                out + c * bytes);
    }
    count(n_clipped, &state->n_clipped);
    count(n_bad, &state->n_bad);
}

extern "C" __global__ void __launch_bounds__(256) pcm_written(wt_pcm_write_args a)
{
    const int signal = blockIdx.x * 256 + threadIdx.x;
    if (signal < a.n_signals) a.states[signal].n_samples += (unsigned long long)(a.n_frames * a.channels);
}
