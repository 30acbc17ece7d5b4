// What tempograms say row by row, [n_signals][n_rows][length].
//
//   tempo_rows     a warp a row: the best lag under the prior, then its tempo
//   tempo_ratios   a thread a value: the row between the two lags around a multiple of its tempo
//
// Compiled without contraction to fused multiply-adds. Judge: the CPU (dsp/rhythm/tempo.c, dsp/rhythm/tempogram.c).
#include "tempo.cuh"

#define ALL   0xffffffffu
#define WARPS 8

// The best of the lags that may be it but for WT_TEMPO_SLACK, by sums in double.
static __device__ int choose_again(const wt_tempo_rows_args &a, long long row, const float *lags, int best)
{
    const wt_tempo_choice &c = a.choice;
    const wt_tempogram_args &g = a.tempogram;
    const double sure = wt__tempo_sure(&c, lags[best], best);
    const long long signal = row / g.n_rows, t = row % g.n_rows;
    double value = -__longlong_as_double(0x7ff0000000000000ll);
    int n_open = 0;
    for (int begin = 0; begin < c.length; begin += 32) {
        const int k = begin + (int)threadIdx.x % 32;
        const bool open =
            k && k < c.length && wt__tempo_most(&c, wt__tempo_worth(&c, lags[k], k), lags[k], k) >= sure;
        n_open += __popc(__ballot_sync(ALL, open));
    }
    for (int k = 1; k < c.length && n_open > 1; k++) {
        if (!(wt__tempo_most(&c, wt__tempo_worth(&c, lags[k], k), lags[k], k) >= sure)) continue;
        const double sum = tempo_sum_again(g, g.envelope + signal * g.n_frames, t, t + 1, 1, k);
        const double here = wt__tempo_worth(&c, sum, k);
        if (here > value) value = here, best = k;
    }
    return best;
}

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
    if (best && lags[0] != 0 && !a.in_double) best = choose_again(a, row, lags, best); // not of silence
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
