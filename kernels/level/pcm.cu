// Interleaved samples as files hold them to planar float: 256 threads, a frame each; blockIdx.y is the signal. Channels
// of a frame lie side by side, so a warp's reads are one run. Judge: wt_pcm_read and wt_pcm_to_mono, identical.
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
