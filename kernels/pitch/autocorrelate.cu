// What stands around the two transforms of an autocorrelation: a block a tile of a signal.
//
//   autocorrelate_pad     signals with zeros behind them; signals that are none are zeros
//   autocorrelate_power   squared magnitudes in place of spectra
//   autocorrelate_take    the lags wanted
//
// Bound by memory. Judge: the CPU (dsp/pitch/autocorrelate.c), 2e-6 of the peak.
#include "autocorrelate_kernel.h"

// Calls one(signal, i) for the block's numbers of rows of `length`.
template <class One> static __device__ __forceinline__ void for_tile(int length, One one)
{
    const int tiles = (length + WT_AUTOCORRELATE_TILE - 1) / WT_AUTOCORRELATE_TILE, signal = blockIdx.x / tiles;
    const int begin = blockIdx.x % tiles * WT_AUTOCORRELATE_TILE;
    for (int i = begin + threadIdx.x; i < length && i < begin + WT_AUTOCORRELATE_TILE; i += 256) one(signal, i);
}

extern "C" __global__ void __launch_bounds__(256) autocorrelate_pad(wt_autocorrelate_args a)
{
    for_tile(a.n_fft, [&](long long signal, int i) {
        a.signals[signal * a.n_fft + i] = signal < a.n_signals && i < a.n ? a.in[signal * a.n + i] : 0.0f;
    });
}

extern "C" __global__ void __launch_bounds__(256) autocorrelate_power(wt_autocorrelate_args a)
{
    const int bins = a.n_fft / 2 + 1;
    for_tile(bins, [&](long long signal, int k) {
        float2 *z = (float2 *)a.spectra + signal * bins + k;
        *z = make_float2(z->x * z->x + z->y * z->y, 0.0f);
    });
}

extern "C" __global__ void __launch_bounds__(256) autocorrelate_take(wt_autocorrelate_args a)
{
    for_tile(a.lags, [&](long long signal, int i) { a.out[signal * a.lags + i] = a.signals[signal * a.n_fft + i]; });
}
