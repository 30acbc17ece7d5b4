// What tempograms say row by row, [n_signals][n_rows][length].
//
//   tempo_rows     a warp a row: the best lag under the prior, then its tempo
//   tempo_ratios   a thread a value: the row between the two lags around a multiple of its tempo
//
// Compiled without contraction to fused multiply-adds. Judge: the CPU (dsp/rhythm/tempo.c, dsp/rhythm/tempogram.c).
#include "tempo_kernel.h"

#define ALL   0xffffffffu
#define WARPS 8

extern "C" __global__ void __launch_bounds__(32 * WARPS) tempo_rows(wt_tempo_rows_args a)
{
    const long long row = (long long)blockIdx.x * WARPS + threadIdx.x / 32;
    if (row >= a.n_rows) return; // the whole warp
    const int lane = threadIdx.x % 32, length = a.choice.length;
    const float *lags = a.rows + row * length;
    double value = -__longlong_as_double(0x7ff0000000000000ll);
    int best = 0;
    for (int k = lane ? lane : 32; k < length; k += 32) { // lag 0 is none
        const double here = log1p(1e6 * lags[k]) + a.choice.prior[k];
        if (here > value) value = here, best = k;
    }
    for (int step = 16; step; step /= 2) {
        const double other = __shfl_xor_sync(ALL, value, step);
        const int at = __shfl_xor_sync(ALL, best, step);
        if (other > value || (other == value && at && (at < best || !best))) value = other, best = at;
    }
    if (lane) return;
    if (!best) best = length - 1; // nothing but not-a-number
    a.bpm[row] = wt__tempo_bpm(&a.choice, a.choice.fine ? wt__tempo_refine(&a.choice, lags, best) : best);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) tempo_ratios(wt_tempo_ratios_args a)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.n_rows * WT_TEMPO_MULTIPLES) return;
    const long long row = i / WT_TEMPO_MULTIPLES;
    a.ratios[i] = wt__tempo_ratio(a.rows + row * a.length, a.length, a.unit, a.bpm[row], (int)(i % WT_TEMPO_MULTIPLES));
}
