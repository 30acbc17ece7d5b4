// Streams that change their rate, from block to block:
//
//   resample_stream   a warp an output of eight lines: lanes side by side along the taps, which are blended once for
//   all resample_keep     a thread a frame: what the next block reaches back to
//
// _wide has taps and sums in double. Every output's sum has one order, whatever the blocks and the lines beside it.
// Judge: the CPU (dsp/filter/resample.c), 2e-6 of the peak.
#include "resample_stream_kernel.h"

#define ALL 0xffffffffu

// Frame i of a line's block, those before it below 0. Behind its end there is silence.
static __device__ float frame_of(const wt_resample_stream_args &a, int line, long long i)
{
    const int held = a.n_taps - 1;
    if (i < 0) return i < -held ? 0 : a.old[(long long)line * held + held + i];
    return i < a.n_in ? a.in[(long long)line * a.n_in + i] : 0;
}

// Tap k of an output: a row's own, or between four rows.
template <typename T> struct tap_row {
    const T *row;
    const float *start; // none but for the first outputs
    double weights[4];
    bool blended;
    __device__ T at(int k, int n_taps) const
    {
        if (start) return (T)start[k];
        if (!blended) return row[k];
        const T *r = row + k;
        return (T)weights[0] * r[0] + (T)weights[1] * r[n_taps] + (T)weights[2] * r[2 * n_taps] +
               (T)weights[3] * r[3 * n_taps];
    }
};

template <typename T>
static __device__ tap_row<T> row_of(const wt_resample_stream_args &a, int n, const wt_resample_time &t)
{
    tap_row<T> row = {(const T *)a.taps, nullptr, {1, 0, 0, 0}, false};
    if (n < a.n_start) {
        row.start = a.start + (long long)n * a.n_taps;
    } else if (a.interpolated) {
        const double at = (double)t.phase / (double)t.denominator * a.n_phases;
        row.blended = true;
        row.row += (long long)(int)at * a.n_taps;
        wt__resample_weights(a.order, at - (int)at, row.weights);
    } else {
        row.row += t.phase * a.n_taps;
    }
    return row;
}

template <typename T> static __device__ void stream(const wt_resample_stream_args &a)
{
    const int lane = threadIdx.x % 32, n = blockIdx.x * WT_RESAMPLE_STREAM_WARPS + threadIdx.x / 32;
    const int first = blockIdx.y * WT_RESAMPLE_STREAM_LINES, lines = min(WT_RESAMPLE_STREAM_LINES, a.n_lines - first);
    if (n >= a.n_out) return; // the whole warp
    const wt_resample_time t = wt__resample_later(&a.time, n);
    const tap_row<T> row = row_of<T>(a, n, t);
    const long long from = t.frame - a.before - a.begin;
    T sum[WT_RESAMPLE_STREAM_LINES] = {};
    for (int k = lane; k < a.n_taps; k += 32) {
        const T tap = row.at(k, a.n_taps);
#pragma unroll
        for (int l = 0; l < WT_RESAMPLE_STREAM_LINES; l++)
            if (l < lines) sum[l] += tap * (T)frame_of(a, first + l, from + k);
    }
#pragma unroll
    for (int l = 0; l < WT_RESAMPLE_STREAM_LINES; l++) {
        for (int d = 16; d; d /= 2) sum[l] += __shfl_xor_sync(ALL, sum[l], d);
        if (lane == 0 && l < lines) a.out[(first + l) * a.pitch + n] = n < a.n_heard ? (float)sum[l] : 0;
    }
}

extern "C" __global__ void __launch_bounds__(32 * WT_RESAMPLE_STREAM_WARPS) resample_stream(wt_resample_stream_args a)
{
    stream<float>(a);
}

extern "C" __global__ void __launch_bounds__(32 * WT_RESAMPLE_STREAM_WARPS)
    resample_stream_wide(wt_resample_stream_args a)
{
    stream<double>(a);
}

extern "C" __global__ void resample_keep(wt_resample_stream_args a)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x, held = a.n_taps - 1;
    if (i < a.n_lines * held) a.state[i] = frame_of(a, (int)(i / held), a.n_in - held + i % held);
}
