/// Private to dsp/: complex transforms in double on a GPU, of any length, many at once. What no thread block holds goes
/// this way, and what must not depend on a float's rounding.
#ifndef WT_FFT_DOUBLE_CUDA_H
#define WT_FFT_DOUBLE_CUDA_H

#include "op.h"
#include "fft_double_kernel.h"

enum { WT__FFT64_PASSES = 24 };

/// Rows [rows][points][2] in a work space of the plan's: the caller's kernel fills the first n numbers of each at
/// `in`, and finds the result there at `out`. Exchange parts at both ends for the inverse times n.
typedef struct wt__fft64_cuda {
    double *in, *out;
    int n, points;
    int64_t rows; ///< at once, as many as were wanted or the work space holds
    wt_module *modules[WT__FFT64_PASSES];
    wt_kernel *passes[WT__FFT64_PASSES], *product;
    int radix[WT__FFT64_PASSES], n_passes;
    wt_buffer *tables, *work[2];
    const double *chirp, *back, *filter; ///< of Bluestein's algorithm, else NULL
} wt__fft64_cuda;

/// For n of 1 to 2^22 and so many rows, a multiple of `step` at a time. Errors: those of wt_module_create and
/// wt_buffer_create.
WT_CHECKED wt_status wt__fft64_cuda_create(const char *op, wt_device *device, int n, int64_t rows, int step,
                                           wt__fft64_cuda *fft);
void wt__fft64_cuda_release(wt__fft64_cuda *fft); ///< a zeroed one is allowed
/// Transform the first `rows`.
WT_CHECKED wt_status wt__fft64_cuda_run(const wt__fft64_cuda *fft, wt_stream *stream, int64_t rows);

/// A kernel of 256 threads a block that has a thread for each of `count` numbers; none below 1.
WT_CHECKED wt_status wt__fft64_cuda_each(const char *op, wt_kernel *kernel, wt_stream *stream, wt_arg args,
                                         int64_t count);

#endif
