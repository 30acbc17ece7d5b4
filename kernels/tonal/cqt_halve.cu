// Half the rate, by soxr's HQ filter: overlap-save, one thread block for 1848 outputs.
//
// 4096 real samples are transformed as 2048 complex ones. With X their spectrum and H the filter's, real since it is
// symmetric, every other sample of the product has the spectrum (H X)[k] + conj (H X)[2048 - k] (times 1/2), which goes
// back as 1024 complex points: all in shared memory. 100 operations an output, of the 401 taps' 802.
// Judge: resample_ref.c with the same taps, 110 dB.
//
// cqt_halve_double sums the taps' products in double, a thread an output: as the CPU's precise halver
// (dsp/tonal/halve.c).
#include "fft.cuh"
#include "cqt_kernel.h"

#define POINTS (WT_CQT_HALVE_N / 2)
#define HALF   (POINTS / 2)

__device__ __forceinline__ float2 filtered(const wt_cqt_halve_args &a, const float *shared, int k)
{
    const float2 z = fft_shared_get<POINTS>(shared, k & (POINTS - 1));
    const float2 mirror = fft_shared_get<POINTS>(shared, (POINTS - k) & (POINTS - 1));
    return fft_scale(fft_real_bin(z, mirror, __ldg((const float2 *)a.roots + k)), __ldg(a.filter + k));
}

// Bin k of the halved signal.
__device__ __forceinline__ float2 halved(const wt_cqt_halve_args &a, const float *shared, int k)
{
    return fft_add(filtered(a, shared, k), fft_conj(filtered(a, shared, POINTS - k)));
}

extern "C" __global__ void __launch_bounds__(wt__fft_threads(POINTS, 1024)) cqt_halve(wt_cqt_halve_args a)
{
    extern __shared__ float shared[];
    constexpr int threads = wt__fft_threads(POINTS, 1024);
    const float *in = a.in + blockIdx.y * a.n_in;
    float *out = a.out + blockIdx.y * a.n_out;
    const long long first = (long long)blockIdx.x * WT_CQT_HALVE_OUT - a.phase, begin = 2 * first - WT_CQT_HALVE_EDGE;
    const auto sample = [&](long long at) { return at >= 0 && at < a.n_in ? __ldg(in + at) : 0.0f; };
    fft_block<POINTS, threads>(
        threadIdx.x, shared, a.twiddles,
        [&](int i) { return make_float2(sample(begin + 2 * i), sample(begin + 2 * i + 1)); },
        [&](int k, float2 v) { fft_shared_put<POINTS>(shared, k, v); });
    __syncthreads();
    const auto point = [&](int k) {
        float2 x = halved(a, shared, k), mirror = halved(a, shared, HALF - k);
        if (k == 0) x.y = mirror.y = 0;
        return fft_swap(fft_real_fold(x, mirror, __ldg((const float2 *)a.roots + 2 * k)));
    };
    const auto give = [&](int at, float value) {
        const long long to = first + at - WT_CQT_HALVE_EDGE / 2;
        if (at >= WT_CQT_HALVE_EDGE / 2 && at < WT_CQT_HALVE_EDGE / 2 + WT_CQT_HALVE_OUT && to >= 0 && to < a.n_out)
            out[to] = to < a.n_sounding ? value : 0.0f;
    };
    fft_block<HALF, threads>(threadIdx.x, shared, a.back, point, [&](int k, float2 v) {
        give(2 * k, v.y);
        give(2 * k + 1, v.x);
    });
}

extern "C" __global__ void __launch_bounds__(WT_CQT_HALVE_SUMS) cqt_halve_double(wt_cqt_halve_args a)
{
    __shared__ float samples[2 * (WT_CQT_HALVE_SUMS + WT_CQT_HALVE_EDGE)];
    const float *in = a.in + blockIdx.y * a.n_in;
    const long long first = (long long)blockIdx.x * WT_CQT_HALVE_SUMS, begin = 2 * first - WT_CQT_HALVE_EDGE;
    for (int i = threadIdx.x; i < 2 * (WT_CQT_HALVE_SUMS + WT_CQT_HALVE_EDGE); i += WT_CQT_HALVE_SUMS)
        samples[i] = begin + i >= 0 && begin + i < a.n_in ? __ldg(in + begin + i) : 0.0f;
    __syncthreads();
    const float *middle = samples + WT_CQT_HALVE_EDGE + 2 * threadIdx.x;
    const long long to = first + threadIdx.x;
    double sum = __ldg(a.taps) * middle[0];
    for (int k = 1; k <= WT_CQT_HALVE_EDGE; k++) sum += __ldg(a.taps + k) * ((double)middle[-k] + middle[k]);
    if (to < a.n_out) a.out[blockIdx.y * a.n_out + to] = to < a.n_sounding ? (float)sum : 0.0f;
}
