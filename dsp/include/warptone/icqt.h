/// Inverse of the constant-Q transform, with librosa 0.11's rules.
#ifndef WARPTONE_ICQT_H
#define WARPTONE_ICQT_H

#include <stdint.h>
#include <warptone/cqt.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_icqt wt_icqt; ///< Filters and buffers; one call at a time uses it.

/// `config` as the forward transform had it (kind full, equal temperament, no gamma). Buffers hold `max_frames`.
/// `device` NULL = immediate calls only; else it is borrowed until the plan is destroyed.
/// On a GPU filters whose spectra have more than 8192 points go by memory, in double.
/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY, on a GPU those of wt_module_create.  [worker]
WT_CHECKED wt_status wt_icqt_create(wt_device *device, const wt_cqt_config *config, int64_t max_frames,
                                    wt_icqt **icqt);
void wt_icqt_destroy(wt_icqt *icqt); ///< NULL is allowed.  [worker]

/// Samples that n_frames give when no length is asked for: hop (n_frames - 1).  [any]
int64_t wt_icqt_samples(const wt_icqt *icqt, int64_t n_frames);

/// Add up what the octaves' filters make of the transform. This is no perfect inverse: the way there and back has 12 to
/// 15 dB (filters overlap unevenly, and the top of the spectrum is in no bin).
///
///   in       [channels][n_frames][n_bins][2]
///   length   samples wanted, 0 = wt_icqt_samples(); more than there are is filled with zeros
///   out      [channels][length]
///
/// Returns WT_ERR_BAD_ARG when n_frames is outside 1 .. max_frames or `length` negative.
/// Source: librosa 0.11.0 core/constantq.py, icqt().  Judge: librosa in float64, 1e-6 of the peak, but for the first
/// 4096 and last 2048 samples, where it shows how soxr begins a doubling by 4 and more: there 2e-4.  [rt, running]
WT_RT wt_status wt_icqt_run(wt_icqt *icqt, const float *in, int64_t n_frames, int64_t length, float *out);

/// Queue the same on a stream of the plan's device; offsets in bytes. On the CPU backend channels are spread over the
/// device's threads. Until the stream has passed it no other call may use the plan, but for further enqueues on the
/// same stream.
/// Errors: WT_ERR_BAD_ARG (frames, length, a range that does not fit its buffer), WT_ERR_CUDA.
/// Judge:  on a GPU, wt_icqt_run, 2e-6 of the peak.  [worker]
WT_CHECKED wt_status wt_icqt_enqueue(wt_icqt *icqt, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                     int64_t n_frames, int64_t length, wt_buffer *out, size_t out_offset);

#ifdef __cplusplus
}
#endif
#endif
