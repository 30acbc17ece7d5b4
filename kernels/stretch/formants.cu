// What of moving a voice's spectral envelope (dsp/stretch/formants.c) is transforms, compiled for one SPECTRUM_N; the
// rest is kernels/stretch/formants_move.cu:
//
//   formants_cepstra   logarithms of a pair of frames, even and real both, are one complex signal, and so are their
//                      cepstra; only what may be a period is kept
//   formants_back      a pair of frames there and back in one, its windowed samples in place of its bins
//
// In double, from spectra in float that are the CPU's: peaks are the CPU's to the bin, and so are, but for ties, the
// samples: a vocoder behind this makes 1e-5 and more of the rounding of a way back in float.
// Judge: the CPU's, 2e-6 of the peak.
#ifndef SPECTRUM_N
#    define SPECTRUM_N 2048
#endif
#include "formants_kernel.h"
#include "spectrum.cuh"

extern __shared__ double2 all_shared[];

// ---- cepstra

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK) formants_cepstra(wt_formants_args a)
{
    __shared__ unsigned long long most[SPECTRUM_SEQUENCES][2]; // as bits: positive numbers keep their order
    const int thread = threadIdx.x % SPECTRUM_THREADS, sequence = threadIdx.x / SPECTRUM_THREADS;
    const int pairs = (a.n_held + 1) / 2, blocks = (pairs + SPECTRUM_SEQUENCES - 1) / SPECTRUM_SEQUENCES;
    const long long line = blockIdx.x / blocks,
                    t = 2 * ((long long)(blockIdx.x % blocks) * SPECTRUM_SEQUENCES + sequence);
    const float *rows[2];
    for (int f = 0; f < 2; f++) { // a frame that does not exist is another one again
        const long long at = t + f < a.n_held ? t + f : a.n_held - 1;
        rows[f] = a.spectra + (line * a.n_held + at) * SPECTRUM_BINS * 2;
    }
    for (int f = thread; f < 2; f += SPECTRUM_THREADS) most[sequence][f] = 0;
    __syncthreads();
    for (int f = 0; f < 2; f++) {
        double largest = 0;
        for (int k = thread; k < SPECTRUM_BINS; k += SPECTRUM_THREADS) {
            const double power = wt__formants_power(rows[f] + 2 * k);
            if (power > largest) largest = power;
        }
        atomicMax(&most[sequence][f], (unsigned long long)__double_as_longlong(largest));
    }
    __syncthreads();
    const double first = __longlong_as_double((long long)most[sequence][0]),
                 second = __longlong_as_double((long long)most[sequence][1]);
    const int width = a.last - a.first + 3;
    double *out = a.cepstra + (line * a.n_held + t) * width;
    spectrum_transform(
        thread, all_shared + sequence * SPECTRUM_POINTS, a.twiddles,
        [&](int i) {
            const int k = 2 * (i <= SPECTRUM_N / 2 ? i : SPECTRUM_N - i);
            return make_double2(wt__formants_log(wt__formants_power(rows[0] + k), first),
                                wt__formants_log(wt__formants_power(rows[1] + k), second));
        },
        [&](int q, double2 v) {
            const int at = q - a.first + 1;
            if (at < 0 || at >= width) return;
            if (t < a.n_held) out[at] = v.x / SPECTRUM_N;
            if (t + 1 < a.n_held) out[width + at] = v.y / SPECTRUM_N;
        });
}

// ---- back

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK) formants_back(wt_formants_args a)
{
    const int thread = threadIdx.x % SPECTRUM_THREADS, sequence = threadIdx.x / SPECTRUM_THREADS;
    const int pairs = (a.n_held + 1) / 2, blocks = (pairs + SPECTRUM_SEQUENCES - 1) / SPECTRUM_SEQUENCES;
    const long long line = blockIdx.x / blocks,
                    t = 2 * ((long long)(blockIdx.x % blocks) * SPECTRUM_SEQUENCES + sequence);
    float *rows[2]; // a frame that does not exist is not there
    for (int f = 0; f < 2; f++)
        rows[f] = t + f < a.n_held ? a.spectra + (line * a.n_held + t + f) * SPECTRUM_BINS * 2 : nullptr;
    const auto bin = [&](const float *row, int i) { // of a real signal's spectrum
        const int k = i <= SPECTRUM_N / 2 ? i : SPECTRUM_N - i;
        if (!row) return make_double2(0, 0);
        return make_double2(row[2 * k], 2 * k % SPECTRUM_N == 0 ? 0 : i == k ? row[2 * k + 1] : -row[2 * k + 1]);
    };
    spectrum_transform( // parts exchanged at both ends: the inverse
        thread, all_shared + sequence * SPECTRUM_POINTS, a.twiddles,
        [&](int i) {
            const double2 x = bin(rows[0], i), y = bin(rows[1], i);
            return make_double2(x.y + y.x, x.x - y.y);
        },
        [&](int i, double2 v) {
            const double by = a.window[i] / SPECTRUM_N;
            if (rows[0]) rows[0][i] = (float)(v.y * by);
            if (rows[1]) rows[1][i] = (float)(v.x * by);
        });
}
