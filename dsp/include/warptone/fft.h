/// Fast Fourier transforms: complex and real, both directions, batched, any length, on the CPU and on a GPU.
///
/// Scaling is numpy's and librosa's: forward unscaled, inverse divided by n. A complex number is two floats, real part
/// first (numpy complex64); a real signal of n samples has n / 2 + 1 bins.
#ifndef WARPTONE_FFT_H
#define WARPTONE_FFT_H

#include <stdbool.h>
#include <stddef.h>
#include <warptone/device.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WT_FFT_MAX_N     (1 << 22)
#define WT_FFT_MAX_BATCH (1 << 24)

typedef enum wt_fft_kind {
    WT_FFT_COMPLEX,         ///< n complex -> n complex
    WT_FFT_REAL_TO_COMPLEX, ///< n real -> n / 2 + 1 complex, forward
    WT_FFT_COMPLEX_TO_REAL, ///< n / 2 + 1 complex -> n real, inverse; the imaginary parts of bin 0 and, for even n,
                            ///< of bin n / 2 are not read (numpy's irfft)
} wt_fft_kind;

/// Element i of transform b lies at [b * distance + i * stride], counted in elements of its side: complex numbers or
/// floats. Input transforms may overlap (in_distance = hop: the frames of a spectrogram), output transforms must not.
typedef struct wt_fft_config {
    int n;            ///< length in the time domain, 1 .. WT_FFT_MAX_N
    int batch;        ///< transforms a call, 0 = 1
    wt_fft_kind kind; ///< 0 = complex
    bool inverse;     ///< complex only: +i in the exponent, and 1 / n
    int in_stride;    ///< 0 = 1
    int in_distance;  ///< 0 = the elements of one transform
    int out_stride;   ///< 0 = 1
    int out_distance; ///< 0 = the elements of one transform
} wt_fft_config;

/// A plan: tables, which never change, and scratch, which one call at a time uses. Calls on one plan from two threads
/// at once are an error of the caller; make one plan for each thread.
typedef struct wt_fft wt_fft;

/// Plan transforms. `device` NULL = the CPU, immediate calls only; else it is borrowed until the plan is destroyed.
/// Lengths whose prime factors are 61 or less run directly, others by Bluestein's algorithm; even real transforms run
/// as complex ones of half the length.
/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY, and those of wt_module_create.  [worker, not armed]
WT_CHECKED wt_status wt_fft_create(wt_device *device, const wt_fft_config *config, wt_fft **plan);
void wt_fft_destroy(wt_fft *plan); ///< NULL is allowed.  [worker, not armed]

/// Transform on the calling thread, whatever the plan's device.
///
///   in, out   as the plan's layout says; they may be the same when each transform begins at the same address on both
///             sides and no two transforms share one; otherwise they must not overlap
///
/// Returns WT_OK: the plan was checked when it was made.
/// Source: Stockham autosort, as in C. Van Loan, Computational Frameworks for the FFT, 1992; L. Bluestein, 1970.
/// Judge:  fft_ref.c, 130 dB up to n = 4096, above that 1 dB less for each further doubling.  [rt, running]
WT_RT wt_status wt_fft_run(wt_fft *plan, const float *in, float *out);

/// Queue the same transform on a stream of the plan's device; offsets in bytes, multiples of an element. Until the
/// stream has passed it no other call may use the plan, but for further enqueues on the same stream.
/// Errors: WT_ERR_BAD_ARG (no device, a stream of another, a range that does not fit its buffer), WT_ERR_CUDA.
/// Judge:  on a GPU, the CPU's transform, 2e-6 of the peak.  [worker]
WT_CHECKED wt_status wt_fft_enqueue(wt_fft *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                    wt_buffer *out, size_t out_offset);

/// The smallest length >= n with no prime factor above 5: a fast size to pad to.  [any]
int wt_fft_good_size(int n);

#ifdef __cplusplus
}
#endif
#endif
