// Convolution of whole rows by overlap-save, compiled for one SPECTRUM_N. A block makes two runs of outputs as one
// complex signal, whose parts real taps leave apart: samples to spectrum, times the taps' spectrum, and back. Taps that
// are longer than half a transform come in parts; each part's product is added where the thread keeps it, and one
// transform goes back. Judge: the CPU (dsp/filter/overlap_save.c), 2e-6 of the peak.
#ifndef SPECTRUM_N
#    define SPECTRUM_N 2048
#endif
#include "overlap_save_kernel.h"
#include "spectrum.cuh"

static_assert(SPECTRUM_SEQUENCES == 1, "a block has one transform");

extern __shared__ float2 all_shared[]; // points, then sums [SPECTRUM_N]

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK) overlap_save_rows(wt_overlap_save_args a)
{
    const long long per_row = (a.n_out + 2 * a.fresh - 1) / (2 * a.fresh), row = blockIdx.x / per_row;
    const long long begin = blockIdx.x % per_row * 2 * a.fresh;
    const float *in = a.in + row * a.n_in;
    float *out = a.out + row * a.n_out;
    float2 *sums = all_shared + SPECTRUM_POINTS;
    const auto sample = [&](long long at) { return at >= 0 && at < a.n_in ? __ldg(in + at) : 0; };
    for (int part = 0; part < a.n_parts; part++) {
        const long long first = begin - (long long)part * a.part - (SPECTRUM_N - a.fresh);
        const float2 *response = (const float2 *)a.response + (long long)part * SPECTRUM_N;
        spectrum_transform(
            threadIdx.x, all_shared, a.twiddles,
            [&](int i) { return make_float2(sample(first + i), sample(first + a.fresh + i)); },
            [&](int k, float2 v) {
                const float2 product = fft_mul(v, __ldg(response + k));
                sums[k] = part ? fft_add(sums[k], product) : product;
            });
    }
    spectrum_transform(
        threadIdx.x, all_shared, a.twiddles, [&](int i) { return fft_swap(sums[i]); },
        [&](int k, float2 v) {
            const long long to = begin + k - (SPECTRUM_N - a.fresh);
            if (to < begin) return;
            if (to < a.n_out) out[to] = v.y;
            if (to + a.fresh < a.n_out) out[to + a.fresh] = v.x;
        });
}
