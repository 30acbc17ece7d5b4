// Arguments of the Fourier transform's kernels, and what host and kernels must agree on: radices and threads.
#ifndef WT_FFT_KERNEL_H
#define WT_FFT_KERNEL_H

#ifdef __CUDACC__
#    define WT_FFT_BOTH __host__ __device__ constexpr
#else
#    define WT_FFT_BOTH static inline
#endif

// The longest transform one thread block does in shared memory: 68 KB, which every device of 8.0 or newer has.
#define WT_FFT_BLOCK_MAX 8192

/// Radix of the next pass when `rest` points are left, 0 when a prime factor is above 13: eights, with one 16 or one 4
/// to make the power of two come out, then the odd primes.
WT_FFT_BOTH int wt__fft_block_radix(int rest)
{
    int twos = 0, odd = rest;
    for (; odd % 2 == 0; odd /= 2) twos++;
    if (twos % 3 == 1 && twos > 1) return 16;
    if (twos > 2) return 8;
    if (twos) return 1 << twos;
    return odd % 3 == 0 ? 3 : odd % 5 == 0 ? 5 : odd % 7 == 0 ? 7 : odd % 11 == 0 ? 11 : odd % 13 == 0 ? 13 : 0;
}

/// Threads that share one transform of n points, at most `most`: eight points each.
WT_FFT_BOTH int wt__fft_threads(int n, int most)
{
    return (n + 7) / 8 < most ? (n + 7) / 8 : most;
}

/// Floats of shared memory one transform takes: real and imaginary parts, each padded by one in 32.
WT_FFT_BOTH int wt__fft_shared_floats(int n)
{
    return 2 * (n + n / 32 + 1);
}

/// Short transforms a thread block does at once.
WT_FFT_BOTH int wt__fft_sequences(int n)
{
    return wt__fft_threads(n, 1024) >= 128 ? 1 : 256 / wt__fft_threads(n, 1024);
}

/// Signals: n samples, `points` the complex transform they run as (n, n / 2 of even real ones, or more by Bluestein).
typedef struct wt_fft_args {
    const float *in;
    float *out;
    const float *twiddles;               ///< of the transform of `points`, pass by pass [radix - 1][m][2]
    const float *real_twiddles;          ///< [n / 2 + 1][2] w_n^k, even real transforms
    const float *chirp;                  ///< [length][2] Bluestein's
    const float *filter;                 ///< [points][2] and its filter's transform, divided by points
    long long in_distance, out_distance; ///< elements
    int in_stride, out_stride;           ///< elements
    int n, length, points, batch;        ///< length: n or n / 2, before Bluestein's padding
    float scale;
} wt_fft_args;

/// One step of a long transform n = points * columns: transforms of `points` elements, `columns` apart.
typedef struct wt_fft_columns_args {
    const float *in;
    float *out;
    const float *twiddles; ///< of the transform of `points`
    const float *coarse;   ///< [..][2] w_n^(4096 i), and
    const float *fine;     ///< [4096][2] w_n^i: the factors between the two steps; NULL in the second
    int columns, batch;
    int swap_in, swap_out; ///< exchange real and imaginary parts: the inverse
    float scale;
} wt_fft_columns_args;

#ifndef __CUDACC__
/// X[k] = sum over n of x[n] exp(-2 pi i k n / length), in double, straight from the definition; NaN where memory is
/// out.  in, out: pairs, apart.
void wt__dft_ref(const double *in, int length, double *out);
#endif

#endif
