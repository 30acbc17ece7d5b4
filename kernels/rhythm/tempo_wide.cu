// Local autocorrelation of onset envelopes by windows that no block transforms (kernels/rhythm/tempo.cu), around
// transforms in double that lie in memory. Of a tile of rows:
//
//   tempo_wide_fill    a thread a number of a windowed row
//   tempo_wide_scale   a block a row: 1 / its energy
//   tempo_wide_power   a thread a number: powers in place of the spectrum, whose transform is n_fft times the lags
//   tempo_wide_give    a block a row: its lags, over the largest
//   tempo_wide_add     a thread a bin of a signal: powers over energies added to its sums, row after row
//
// and of a tile of signals:
//
//   tempo_wide_mean    a thread a number: the sums over the rows, whose transform is n_fft times the mean's lags
//
// A signal's sums do not depend on how tiles are cut. Judge: the CPU (dsp/rhythm/tempogram.c, dsp/rhythm/tempo.c), 2e-6
// of the peak.
#include "tempo.cuh"
#include "tempo_wide_kernel.h"

#define ALL     0xffffffffu
#define THREADS 256

static __device__ __forceinline__ long long here() { return (long long)blockIdx.x * THREADS + threadIdx.x; }

extern "C" __global__ void __launch_bounds__(THREADS) tempo_wide_fill(wt_tempo_wide_args a)
{
    const long long row = here() / a.n_fft, all = a.first + row;
    if (row >= a.count) return;
    const int i = (int)(here() % a.n_fft);
    const float *x = a.rows.envelope + all / a.rows.n_rows * a.rows.n_frames;
    ((double2 *)a.in)[row * a.pitch + i] = make_double2(windowed(a.rows, x, all % a.rows.n_rows - a.rows.begin, i), 0);
}

extern "C" __global__ void __launch_bounds__(THREADS) tempo_wide_scale(wt_tempo_wide_args a)
{
    __shared__ double sums[THREADS / 32];
    const double2 *row = (const double2 *)a.in + (long long)blockIdx.x * a.pitch;
    double energy = 0;
    for (int i = threadIdx.x; i < a.rows.length; i += THREADS) energy += row[i].x * row[i].x;
    for (int step = 16; step; step /= 2) energy += __shfl_xor_sync(ALL, energy, step);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = energy;
    __syncthreads();
    if (threadIdx.x) return;
    for (int w = 1; w < THREADS / 32; w++) energy += sums[w];
    a.scales[blockIdx.x] = energy > 2.2250738585072014e-308 ? 1 / energy : 1;
}

static __device__ __forceinline__ double power_of(double2 z) { return z.x * z.x + z.y * z.y; }

extern "C" __global__ void __launch_bounds__(THREADS) tempo_wide_power(wt_tempo_wide_args a)
{
    const long long row = here() / a.n_fft, at = row * a.pitch + here() % a.n_fft;
    if (row < a.count) ((double2 *)a.in)[at] = make_double2(power_of(((const double2 *)a.out)[at]), 0);
}

extern "C" __global__ void __launch_bounds__(THREADS) tempo_wide_give(wt_tempo_wide_args a)
{
    __shared__ int peak_bits;
    const double2 *row = (const double2 *)a.out + (long long)blockIdx.x * a.pitch;
    float most = 0;
    if (threadIdx.x == 0) peak_bits = 0;
    __syncthreads();
    for (int k = threadIdx.x; k < a.rows.length; k += THREADS) most = fmaxf(most, fabsf((float)(row[k].x / a.n_fft)));
    atomicMax(&peak_bits, __float_as_int(most)); // not negative: bits have their order
    __syncthreads();
    const float peak = __int_as_float(peak_bits);
    const bool norm = !a.rows.no_norm && peak > 1.17549435e-38f;
    float *out = a.rows.out + (a.first + blockIdx.x) * a.rows.length;
    for (int k = threadIdx.x; k < a.rows.length; k += THREADS) {
        const float value = (float)(row[k].x / a.n_fft);
        out[k] = norm ? value / peak : value;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) tempo_wide_add(wt_tempo_wide_args a)
{
    const int bins = a.n_fft / 2 + 1;
    const long long n_rows = a.rows.n_rows, signal = a.first / n_rows + here() / bins, k = here() % bins;
    long long begin = signal * n_rows - a.first, end = begin + n_rows; // the signal's rows in the tile
    if (begin < 0) begin = 0;
    if (end > a.count) end = a.count;
    if (begin >= end) return;
    double sum = a.rows.sums[signal * bins + k];
    for (long long row = begin; row < end; row++)
        sum += a.scales[row] * power_of(((const double2 *)a.out)[row * a.pitch + k]);
    a.rows.sums[signal * bins + k] = sum;
}

extern "C" __global__ void __launch_bounds__(THREADS) tempo_wide_mean(wt_tempo_wide_args a)
{
    const long long row = here() / a.n_fft;
    if (row >= a.count) return;
    const int i = (int)(here() % a.n_fft), bins = a.n_fft / 2 + 1, k = i < bins ? i : a.n_fft - i;
    const double sum = a.rows.sums[(a.first + row) * bins + k];
    ((double2 *)a.in)[row * a.pitch + i] = make_double2(sum / (double)a.rows.n_rows, 0);
}
