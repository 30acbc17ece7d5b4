/// Invertible constant-Q transform by nonstationary Gabor frames, in slices of the signal.
///
/// librosa's constant-Q transform (cqt.h) has no exact inverse. This one has: forward and back is the signal again, to
/// float rounding (above 120 dB). Filters are drawn in the frequency domain, a Hann bump a row from neighbour to
/// neighbour; each row is sampled no faster than its bump is wide, so nothing folds over and the frame's dual is a
/// division. Slices of 2 * hop samples, hop apart, are cut by windows that sum to one; long signals pass in tiles of
/// slices, and memory does not grow with them.
///
/// Rows: 0 is what lies below the lowest bin, 1 .. n_bins the bins, n_bins + 1 what lies above the highest. All rows
/// of one octave have the same number of points a slice. A sine of amplitude A at a bin's frequency has magnitude A
/// there, in the middle half of a slice; point m is at sample m * slice / n_points of the slice.
#ifndef WARPTONE_NSGT_H
#define WARPTONE_NSGT_H

#include <stdint.h>
#include <warptone/device.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_nsgt_config {
    double rate_hz;      ///< 0 = 22050
    double fmin_hz;      ///< 0 = C1, 32.703 Hz
    int bins_per_octave; ///< 0 = 12, at most 192
    int n_bins;          ///< 0 = as many as stay below half the rate
    int slice;           ///< samples of a slice, even, 256 .. 2^22; 0 = 65536. Rows narrower than 4 / slice are widened
    int n_slices;        ///< of a call, 0 = 1
    int channels;        ///< 0 = 1: batch * channels
} wt_nsgt_config;

typedef struct wt_nsgt wt_nsgt;

/// `device` NULL = the CPU, immediate calls only; else it is borrowed until the plan is destroyed.
/// Errors: WT_ERR_BAD_ARG naming the field, also when a bin reaches half the rate; WT_ERR_NO_MEMORY, those of
/// wt_fft_create and wt_module_create.  [worker, not armed]
WT_CHECKED wt_status wt_nsgt_create(wt_device *device, const wt_nsgt_config *config, wt_nsgt **nsgt);
void wt_nsgt_destroy(wt_nsgt *nsgt); ///< NULL is allowed.  [worker, not armed]

/// A row's place in the coefficients, counted in complex numbers: point m of slice s of channel c lies at
/// offset + (c * n_slices + s) * stride + m.
typedef struct wt_nsgt_row {
    double hz; ///< of its middle; 0 of row 0, half the rate of the last
    int n_points;
    int64_t offset, stride;
} wt_nsgt_row;

int wt_nsgt_n_rows(const wt_nsgt *nsgt);                   ///< [any]
wt_nsgt_row wt_nsgt_get_row(const wt_nsgt *nsgt, int row); ///< [any]
int64_t wt_nsgt_coefficients(const wt_nsgt *nsgt);         ///< complex numbers of a call, all channels  [any]
int64_t wt_nsgt_slices(const wt_nsgt *nsgt, int64_t n);    ///< that a signal of n samples has  [any]

/// Slices first .. first + n_slices - 1 of a signal; those behind its end are zeros.
///
///   pcm   [channels][n]
///   out   complex, laid out as wt_nsgt_get_row says
///
/// Returns WT_ERR_BAD_ARG when n is below 1 or `first` below 0.
/// Source: G. A. Velasco, N. Holighaus, M. Doerfler, T. Grill, Constructing an invertible constant-Q transform with
/// nonstationary Gabor frames, DAFx 2011; slices: N. Holighaus et al., A framework for invertible, real-time constant-Q
/// transforms, IEEE TASLP 21(4), 2013.  Judge: a double discrete Fourier sum (test_nsgt.c), 120 dB.  [rt, running]
WT_RT wt_status wt_nsgt_forward(wt_nsgt *nsgt, const float *pcm, int64_t n, int64_t first, float *out);

/// The samples that n_slices slices from `first` on determine: first * slice / 2 .. (first + n_slices - 1) * slice / 2
/// of each channel, cut off at n; others are not written. Tiles overlap by one slice.
///
///   in    as wt_nsgt_forward gives it, perhaps changed
///   pcm   [channels][n]
///
/// Returns as wt_nsgt_forward.  Judge: forward and back, 120 dB.  [rt, running]
WT_RT wt_status wt_nsgt_inverse(wt_nsgt *nsgt, const float *in, int64_t n, int64_t first, float *pcm);

/// Queue the same on a stream of the plan's device; offsets in bytes. On the CPU backend slices are spread over the
/// device's threads. Until the stream has passed it no other call may use the plan, but for further enqueues on the
/// same stream. Errors: WT_ERR_BAD_ARG (no device, n, first, a range that does not fit its buffer), WT_ERR_CUDA.
/// Judge:  on a GPU, the CPU's result, 2e-6 of the peak.  [worker]
WT_CHECKED wt_status wt_nsgt_enqueue_forward(wt_nsgt *nsgt, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset,
                                             int64_t n, int64_t first, wt_buffer *out, size_t out_offset);
WT_CHECKED wt_status wt_nsgt_enqueue_inverse(wt_nsgt *nsgt, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                             int64_t n, int64_t first, wt_buffer *pcm, size_t pcm_offset);

#ifdef __cplusplus
}
#endif
#endif
