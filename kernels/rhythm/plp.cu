// Predominant local pulse, compiled for one SPECTRUM_N, the window.
//
//   plp_strongest   a row of the Fourier tempogram a transform, each alone as in tempo.cu; its strongest bin is kept
//   plp_pulse       a thread a frame of the pulse: the waves of the rows over it, one bin each, so that a row's inverse
//                   is one cosine
//   plp_scale       over the signal's largest
//
// Windows that no block transforms have PLP_WIDE, and plp_wide.cu for the first.
//
// Judge: the CPU (dsp/rhythm/plp.c), 2e-6 of the peak. Where two bins are as strong but for rounding it may keep the
// other one.
#ifndef SPECTRUM_N
#    define SPECTRUM_N 384
#endif
#ifndef PLP_WIDE
#    include "spectrum.cuh"
#endif
#include "plp_kernel.h"

#if SPECTRUM_N > 1 << 15
typedef long long plp_turns; // a bin times a frame of the window
#else
typedef int plp_turns;
#endif

enum { PLP_MARGIN = SPECTRUM_N / 2, PLP_BLOCK = 256 };

// In numpy's order of complex numbers.
static __device__ __forceinline__ bool is_below_zero(const wt_plp_wave &w)
{
    return w.re < 0 || (w.re == 0 && w.im < 0);
}

#ifndef PLP_WIDE
extern __shared__ float2 plp_shared[];

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK) plp_strongest(wt_plp_args a)
{
    __shared__ unsigned long long
        best[SPECTRUM_SEQUENCES]; // power, then the bin from the top: the lowest of equals wins
    const long long blocks = (a.n_rows + SPECTRUM_SEQUENCES - 1) / SPECTRUM_SEQUENCES;
    const long long signal = blockIdx.x / blocks;
    const int sequence = threadIdx.x / SPECTRUM_THREADS, thread = threadIdx.x % SPECTRUM_THREADS;
    const long long t = blockIdx.x % blocks * SPECTRUM_SEQUENCES + sequence;
    const float *x = a.envelope + signal * a.n_frames;
    float2 *points = plp_shared + sequence * SPECTRUM_POINTS;
    if (thread == 0) best[sequence] = 0;
    spectrum_transform(
        thread, points, a.twiddles,
        [&](int i) {
            const long long at = t + i - PLP_MARGIN;
            return make_float2(at >= 0 && at < a.n_frames ? __ldg(a.window + i) * __ldg(x + at) : 0.0f, 0.0f);
        },
        [&](int k, float2 v) { points[spectrum_at(k)] = v; });
    for (int k = a.first + thread; k <= a.last; k += SPECTRUM_THREADS) {
        const float2 z = points[spectrum_at(k)];
        const float power = z.x * z.x + z.y * z.y;
        const unsigned long long bits = (unsigned)__float_as_int(power), from_top = SPECTRUM_BINS - k;
        if (power > 0) atomicMax(best + sequence, bits << 32 | from_top); // not negative: bits have their order
    }
    __syncthreads();
    if (thread || t >= a.n_rows) return;
    const int k = best[sequence] ? SPECTRUM_BINS - (int)(unsigned)best[sequence] : -1;
    const float2 z = points[spectrum_at(k < 0 ? 0 : k)];
    const wt_plp_wave wave = k < 0 ? wt_plp_wave{0, 0, -1} : wt_plp_wave{z.x, z.y, k};
    a.waves[signal * a.n_rows + t] = wave;
    if (is_below_zero(wave)) atomicOr(a.facts + 2 * signal, 1);
}
#endif

// Sample i of a wave's inverse transform; see dsp/rhythm/plp.c for the weights.
static __device__ __forceinline__ float sample_of(const wt_plp_args &a, const wt_plp_wave &w, int i, bool any_below)
{
    if (w.bin < 0 || (any_below && !is_below_zero(w))) return 0;
    const float2 turn = __ldg((const float2 *)a.turn + (int)((plp_turns)w.bin * i % SPECTRUM_N));
    const bool end = w.bin == 0 || 2 * w.bin == SPECTRUM_N; // has no mirror, and no imaginary part
    const float sum = end ? w.re * turn.x : 2 * (w.re * turn.x - w.im * turn.y);
    return any_below ? sum : sum / hypotf(w.re, w.im);
}

extern "C" __global__ void __launch_bounds__(PLP_BLOCK) plp_pulse(wt_plp_args a)
{
    __shared__ int peak;
    const long long blocks = (a.n_frames + PLP_BLOCK - 1) / PLP_BLOCK, signal = blockIdx.x / blocks;
    const long long t = blockIdx.x % blocks * PLP_BLOCK + threadIdx.x;
    const wt_plp_wave *waves = a.waves + signal * a.n_rows;
    const bool any_below = a.facts[2 * signal] != 0;
    if (threadIdx.x == 0) peak = 0;
    __syncthreads();
    double sum = 0, squares = 0;
    for (int i = 0; i < SPECTRUM_N; i++) {
        const long long row = t + PLP_MARGIN - i;
        if (t >= a.n_frames || row < 0 || row >= a.n_rows) continue;
        const float w = __ldg(a.window + i);
        sum += (double)w * sample_of(a, waves[row], i, any_below);
        squares += (double)w * w;
    }
    const float value = squares > 1.17549435e-38 ? (float)(sum / (squares * SPECTRUM_N)) : 0.0f;
    const float pulse = value > 0 ? value : 0.0f;
    if (t < a.n_frames) {
        a.pulse[signal * a.n_frames + t] = pulse;
        atomicMax(&peak, __float_as_int(pulse));
    }
    __syncthreads();
    if (threadIdx.x == 0) atomicMax(a.facts + 2 * signal + 1, peak);
}

extern "C" __global__ void __launch_bounds__(PLP_BLOCK) plp_scale(wt_plp_args a)
{
    const long long blocks = (a.n_frames + PLP_BLOCK - 1) / PLP_BLOCK, signal = blockIdx.x / blocks;
    const long long t = blockIdx.x % blocks * PLP_BLOCK + threadIdx.x;
    const float peak = __int_as_float(a.facts[2 * signal + 1]);
    if (t < a.n_frames && peak > 1.17549435e-38f) a.pulse[signal * a.n_frames + t] /= peak;
}
