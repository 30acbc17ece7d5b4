// Batched transforms of any layout. Compiled for one plan:
//   FFT_POINTS     the complex transform done in a block; 0 = a long one, done in steps by fft_columns.cu
//   FFT_KIND       0 complex, 1 real to complex, 2 complex to real;  FFT_INVERSE  complex only
//   FFT_HALVED     a real signal of even n, as a complex one of n / 2
//   FFT_BLUESTEIN  FFT_POINTS >= 2 length - 1, the length itself has a prime factor above 13
//
// fft_block_batch: one block does wt__fft_sequences transforms from end to end, one row of threads each; it reads and
// writes each number once. fft_prepare and fft_finish: one thread a point, the two ends of a long transform.
// Judge: the CPU's transform, 2e-6 of the peak.
#ifndef FFT_POINTS
#    define FFT_POINTS    1024
#    define FFT_KIND      1
#    define FFT_INVERSE   0
#    define FFT_HALVED    1
#    define FFT_BLUESTEIN 0
#endif
#include "fft.cuh"

#define SWAPPED (FFT_INVERSE || FFT_KIND == 2)

__device__ __forceinline__ float2 fft_get(const float *x, long long at)
{
    return ((const float2 *)x)[at];
}

// Point i of signal b, as the complex transform wants it.
__device__ __forceinline__ float2 read_point(const wt_fft_args &a, long long b, int i)
{
    const long long base = b * a.in_distance, stride = a.in_stride;
    float2 v;
#if FFT_KIND == 0
    v = fft_get(a.in, base + i * stride);
#elif FFT_KIND == 1 && FFT_HALVED
    v = make_float2(a.in[base + 2 * i * stride], a.in[base + (2 * i + 1) * stride]);
#elif FFT_KIND == 1
    v = make_float2(a.in[base + i * stride], 0);
#elif FFT_HALVED
    float2 x = fft_get(a.in, base + i * stride), mirror = fft_get(a.in, base + (a.n / 2 - i) * stride);
    if (i == 0) x.y = mirror.y = 0;
    v = fft_real_fold(x, mirror, fft_get(a.real_twiddles, i));
#else
    v = fft_get(a.in, base + (i <= a.n / 2 ? i : a.n - i) * stride);
    if (i == 0) v.y = 0;
    if (i > a.n / 2) v.y = -v.y;
#endif
    return SWAPPED ? fft_swap(v) : v;
}

// The transform's point k; even real signals become bins elsewhere.
__device__ __forceinline__ void write_point(const wt_fft_args &a, long long b, int k, float2 v)
{
    const long long base = b * a.out_distance, stride = a.out_stride;
    v = fft_scale(SWAPPED ? fft_swap(v) : v, a.scale);
#if FFT_KIND == 2 && FFT_HALVED
    a.out[base + 2 * k * stride] = v.x;
    a.out[base + (2 * k + 1) * stride] = v.y;
#elif FFT_KIND == 2
    a.out[base + k * stride] = v.x;
#else
    if (FFT_KIND == 0 || k <= a.n / 2) ((float2 *)a.out)[base + k * stride] = v;
#endif
}

__device__ __forceinline__ void write_bin(const wt_fft_args &a, long long b, int k, float2 z, float2 mirror)
{
    ((float2 *)a.out)[b * a.out_distance + (long long)k * a.out_stride] =
        fft_real_bin(z, mirror, fft_get(a.real_twiddles, k));
}

#if FFT_POINTS
enum { THREADS = wt__fft_threads(FFT_POINTS, 1024), SEQUENCES = wt__fft_sequences(FFT_POINTS) };

// The transform between two ends: for Bluestein's, its first one and the filter come before.
template <class Load, class Store>
__device__ __forceinline__ void transform(const wt_fft_args &a, int t, float *shared, Load load, Store store)
{
#    if FFT_BLUESTEIN
    fft_block<FFT_POINTS, THREADS>(
        t, shared, a.twiddles,
        [&](int i) { return i < a.length ? fft_mul(load(i), fft_get(a.chirp, i)) : make_float2(0, 0); },
        [&](int k, float2 v) { fft_shared_put<FFT_POINTS>(shared, k, fft_swap(fft_mul(v, fft_get(a.filter, k)))); });
    __syncthreads();
    fft_block<FFT_POINTS, THREADS>(
        t, shared, a.twiddles, [&](int i) { return fft_shared_get<FFT_POINTS>(shared, i); },
        [&](int k, float2 v) {
            if (k < a.length) store(k, fft_mul(fft_swap(v), fft_get(a.chirp, k)));
        });
#    else
    fft_block<FFT_POINTS, THREADS>(t, shared, a.twiddles, load, store);
#    endif
}

extern "C" __global__ void __launch_bounds__(THREADS *SEQUENCES, 1) fft_block_batch(wt_fft_args a)
{
    extern __shared__ float all_shared[];
    float *shared = all_shared + threadIdx.y * wt__fft_shared_floats(FFT_POINTS);
    const int t = threadIdx.x;
    const long long b = (long long)blockIdx.x * SEQUENCES + threadIdx.y;
    const bool active = b < a.batch;
    auto read = [&](int i) { return active ? read_point(a, b, i) : make_float2(0, 0); };
#    if FFT_KIND == 1 && FFT_HALVED
    auto get = [&](int k) { return fft_shared_get<FFT_POINTS>(shared, k == a.length ? 0 : k); };
    transform(a, t, shared, read, [&](int k, float2 v) { fft_shared_put<FFT_POINTS>(shared, k, v); });
    __syncthreads();
    for (int k = t; active && k <= a.length; k += THREADS) write_bin(a, b, k, get(k), get(a.length - k));
#    else
    transform(a, t, shared, read, [&](int k, float2 v) {
        if (active) write_point(a, b, k, v);
    });
#    endif
}

#else

// in -> [batch][points] pairs, padded with zeros and multiplied by the chirp.
extern "C" __global__ void fft_prepare(wt_fft_args a, float *points)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const long long b = blockIdx.y;
    if (i >= a.points) return;
    float2 v = i < a.length ? read_point(a, b, i) : make_float2(0, 0);
    if (FFT_BLUESTEIN && i < a.length) v = fft_mul(v, fft_get(a.chirp, i));
    ((float2 *)points)[b * a.points + i] = v;
}

// Between Bluestein's two transforms; the exchange of parts makes the second the inverse.
extern "C" __global__ void fft_filter(wt_fft_args a, float *points)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const long long at = (long long)blockIdx.y * a.points + i;
    if (i < a.points) ((float2 *)points)[at] = fft_swap(fft_mul(fft_get(points, at), fft_get(a.filter, i)));
}

__device__ __forceinline__ float2 finished(const wt_fft_args &a, const float *points, long long b, int k)
{
    float2 v = fft_get(points, b * a.points + k);
    return FFT_BLUESTEIN ? fft_mul(fft_swap(v), fft_get(a.chirp, k)) : v;
}

// [batch][points] -> out.
extern "C" __global__ void fft_finish(wt_fft_args a, const float *points)
{
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    const long long b = blockIdx.y;
    if (FFT_KIND == 1 && FFT_HALVED) {
        if (k <= a.length)
            write_bin(a, b, k, finished(a, points, b, k < a.length ? k : 0),
                      finished(a, points, b, k ? a.length - k : 0));
    } else if (k < a.length) {
        write_point(a, b, k, finished(a, points, b, k));
    }
}
#endif
