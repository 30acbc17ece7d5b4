// Reassigned spectrograms, compiled for one SPECTRUM_N: three transforms in double for each two frames. The frames'
// products with t h travel as one complex signal; a frame's with h and with its derivative are the other two. Spectra
// stay in shared memory, results are written side by side.
// Judge: the CPU's, 2e-6 of the peak.
#ifndef SPECTRUM_N
#    define SPECTRUM_N 2048
#endif
#include "reassigned_kernel.h"
#include "spectrum.cuh"

extern __shared__ double2 all_shared[];

struct reassigned_place {
    int thread, t; // frame
    const float *pcm;
    float *out; // of frame 0
};

static __device__ __forceinline__ double sample_of(const wt_reassigned_args &a, const reassigned_place &p, int t, int i)
{
    const long long at = (long long)t * a.frames.hop - a.frames.margin + i;
    return t < a.frames.n_frames ? (double)padded_sample(p.pcm, a.frames.n_samples, at, a.frames.margin, a.frames.pad)
                                 : 0;
}

// All threads together.
static __device__ void do_frame(const wt_reassigned_args &a, const reassigned_place &p, double2 *points,
                                const double2 *times, int side)
{
    const int t = p.t + side;
    const double *window = a.windows, *derivative = a.windows + SPECTRUM_N;
    spectrum_transform(
        p.thread, points, a.twiddles,
        [&](int i) {
            const double x = sample_of(a, p, t, i);
            return make_double2(__ldg(window + i) * x, __ldg(derivative + i) * x);
        },
        [&](int k, double2 v) { points[spectrum_at(k)] = v; });
    for (int k = p.thread; k < SPECTRUM_BINS && t < a.frames.n_frames; k += SPECTRUM_THREADS) {
        double2 h, dh, th[2];
        spectrum_part(points, k, h, dh);
        spectrum_part(times, k, th[0], th[1]);
        wt__reassign(&a, t, k, &h.x, &dh.x, &th[side].x, p.out + (long long)t * SPECTRUM_BINS + k,
                     (long long)a.frames.n_frames * SPECTRUM_BINS);
    }
}

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK) reassigned(wt_reassigned_args a)
{
    const int pairs = (a.frames.n_frames + 1) / 2, blocks = (pairs + SPECTRUM_SEQUENCES - 1) / SPECTRUM_SEQUENCES;
    const int sequence = threadIdx.x / SPECTRUM_THREADS;
    const long long line = blockIdx.x / blocks;
    reassigned_place p;
    p.thread = threadIdx.x % SPECTRUM_THREADS;
    p.t = 2 * ((int)(blockIdx.x % blocks) * SPECTRUM_SEQUENCES + sequence);
    p.pcm = a.frames.pcm + line * a.frames.n_samples;
    p.out = a.out + line * 3 * a.frames.n_frames * SPECTRUM_BINS;
    double2 *times = all_shared + 2 * sequence * SPECTRUM_POINTS, *points = times + SPECTRUM_POINTS;
    const double *window = a.windows + 2 * SPECTRUM_N;
    spectrum_transform(
        p.thread, times, a.twiddles,
        [&](int i) {
            const double w = __ldg(window + i);
            return make_double2(w * sample_of(a, p, p.t, i), w * sample_of(a, p, p.t + 1, i));
        },
        [&](int k, double2 v) { times[spectrum_at(k)] = v; });
    do_frame(a, p, points, times, 0);
    __syncthreads();
    do_frame(a, p, points, times, 1);
}
