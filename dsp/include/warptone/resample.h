/// Change of the sampling rate by a polyphase filter: any ratio, streaming on the CPU, batches on a device.
///
/// Output frame n is the input at time n * in_hz / out_hz: nothing is shifted. It is handed out as soon as the
/// wt_resample_latency_frames input frames after that time are known; behind its end a signal is silent.
#ifndef WARPTONE_RESAMPLE_H
#define WARPTONE_RESAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <warptone/device.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WT_RESAMPLE_MAX_CHANNELS 1024

typedef enum wt_resample_quality {
    WT_RESAMPLE_BEST,    ///< 150 dB, flat to 95.5 % of the lower Nyquist frequency, -3 dB at 97 %; sums in double
    WT_RESAMPLE_FAST,    ///< 100 dB, flat to 90 %; sums in float
    /// As soxr's HQ, librosa's default: 126 dB, flat to 91 % of the lower Nyquist frequency, -3 dB at 95 %; sums in
    /// float. What soxr's chain of filters loses before a signal's start is lost, and where soxr rounds the length
    /// down the last frame is silent, as librosa pads it. Real-valued ratios: the nearest whole rates.
    WT_RESAMPLE_SOXR_HQ,
    WT_RESAMPLE_POLYPHASE, ///< scipy's resample_poly, librosa's "polyphase": ten zero crossings a side, Kaiser 5
} wt_resample_quality;

typedef struct wt_resample_config {
    int in_hz, out_hz;           ///< 1 .. 100000000, their ratio within 1/256 .. 256
    int channels;                ///< 1 .. WT_RESAMPLE_MAX_CHANNELS; 0 = 2
    wt_resample_quality quality; ///< 0 = best
    bool variable;               ///< the ratio may be steered while running (wt_resample_steer)
} wt_resample_config;

typedef struct wt_resample wt_resample;

/// Errors: WT_ERR_BAD_ARG (rates, ratio, channels, quality; soxr_hq or polyphase that are variable), WT_ERR_NO_MEMORY.
/// Ratios whose reduced form has few phases get each phase's own taps; others, and variable ones, interpolate between
/// phases by a cubic, which adds an error below -150 dB; soxr_hq where soxr does, as it does.  [any but rt]
WT_CHECKED wt_status wt_resample_create(const wt_resample_config *config, wt_resample **resampler);
void wt_resample_destroy(wt_resample *resampler); ///< NULL is allowed.  [any but rt]

/// Input frames that must follow an output frame's time before it can be computed.  [any]
int wt_resample_latency_frames(const wt_resample *resampler);

/// Output frames that `n_in` input frames make in all, drained: ceil(n_in * out_hz / in_hz). Of a variable resampler,
/// whose ratio is a multiple of 2^-40, and of soxr_hq, whose clock may be one of 2^-32, one more or less.  [any]
int64_t wt_resample_out_frames(const wt_resample_config *config, int64_t n_in);

/// Forget the past: the next frame is at time 0.  [rt, running]
WT_RT void wt_resample_reset(wt_resample *resampler);

/// Take input and give output until either is at its end. Every cut into blocks gives the same bits.
///
///   in      [channels][n_in]      borrowed for the call; *n_used is set to the frames taken
///   out     [channels][max_out]   *n_out is set to the frames written
///
/// Source: J. O. Smith, Digital Audio Resampling; Kaiser window.
/// Judge:  the sines of libsamplerate's snr_bw_test: best 144 dB, fast 105 dB; soxr_hq and
/// polyphase librosa in float64, 1e-6 of the peak, soxr_hq also where noise begins and ends at once.  [rt, running]
WT_RT void wt_resample_process(wt_resample *resampler, const float *const *in, int n_in, int *n_used,
                               float *const *out, int max_out, int *n_out);

/// After the last input: give what is still to come, at most `max_out` frames; *n_out < max_out says that all is out.
/// Then only wt_resample_reset is of use.  [rt, running]
WT_RT void wt_resample_drain(wt_resample *resampler, float *const *out, int max_out, int *n_out);

/// Follow a clock that drifts: read the input `speed` times (0.9 .. 1.1) as fast as the configured rates say, reached
/// along a straight line over the next `ramp_frames` output frames. Needs `variable`.
/// Returns WT_ERR_STATE without it, WT_ERR_BAD_ARG out of range; writes no sentence.  [rt, running]
WT_RT wt_status wt_resample_steer(wt_resample *resampler, double speed, int ramp_frames);

// ---- whole signals, on a device

typedef struct wt_resample_plan_config {
    int in_hz, out_hz;
    wt_resample_quality quality;
    int n_lines;   ///< batch * channels, 1 or more; 0 = 1
    int n_in;      ///< frames of a line
} wt_resample_plan_config;

typedef struct wt_resample_plan wt_resample_plan;

/// Plan the resampling of `n_lines` signals of equal length. `device` is borrowed until the plan is destroyed.
/// Errors: as wt_resample_create, and those of wt_module_create and wt_buffer_create.  [worker, not armed]
WT_CHECKED wt_status wt_resample_plan_create(wt_device *device, const wt_resample_plan_config *config,
                                             wt_resample_plan **plan);
void wt_resample_plan_destroy(wt_resample_plan *plan); ///< NULL is allowed.  [worker, not armed]

int wt_resample_plan_out_frames(const wt_resample_plan *plan); ///< frames of an output line.  [any]

/// Queue it. Both backends give, line for line, what process and drain give on the CPU, to the rounding of their sums.
///
///   in    [n_lines][n_in]           float, at in_offset bytes
///   out   [n_lines][out_frames]     float, at out_offset bytes
///
/// Errors: WT_ERR_BAD_ARG naming the range that does not fit, WT_ERR_CUDA.
/// Judge:  resample_ref.c, 140 dB (best), 110 dB (others).  [worker]
WT_CHECKED wt_status wt_resample_plan_enqueue(wt_resample_plan *plan, wt_stream *stream, const wt_buffer *in,
                                              size_t in_offset, wt_buffer *out, size_t out_offset);

// ---- many streams, on a device

typedef struct wt_resample_stream_config {
    wt_resample_config resample; ///< `channels`: those of one signal
    int n_signals;               ///< 0 = 1; 65535 lines at most
    int max_in;                  ///< frames that one call takes, 1 or more
} wt_resample_stream_config;

/// Streams in step, which are steered together; what they reach back to lies on the device.
typedef struct wt_resample_stream wt_resample_stream;

/// `device` is borrowed until the plan is destroyed.
/// Errors: those of wt_resample_create, WT_ERR_BAD_ARG (no device, n_signals, max_in), those of wt_module_create.
/// [worker]
WT_CHECKED wt_status wt_resample_stream_create(wt_device *device, const wt_resample_stream_config *config,
                                               wt_resample_stream **plan);
void wt_resample_stream_destroy(wt_resample_stream *plan); ///< NULL is allowed.  [worker]

/// Frames that the next block gives when it has `n_in`, and that draining gives.  [worker]
int wt_resample_stream_frames(const wt_resample_stream *plan, int n_in);
int wt_resample_stream_rest(const wt_resample_stream *plan);

/// Queue wt_resample_reset. Errors: WT_ERR_BAD_ARG (a stream of another device), WT_ERR_CUDA.  [worker]
WT_CHECKED wt_status wt_resample_stream_reset(wt_resample_stream *plan, wt_stream *stream);
/// wt_resample_steer from the next block's first output on.
/// Errors: WT_ERR_STATE (not variable), WT_ERR_BAD_ARG (out of range).  [worker]
WT_CHECKED wt_status wt_resample_stream_steer(wt_resample_stream *plan, wt_stream *stream, double speed,
                                              int ramp_frames);
/// Queue the next block: all outputs whose reach it completes. Offsets in bytes. All calls of a plan go to one stream
/// of its device. Every cut into blocks gives the same bits, as every number of signals does.
///
///   in    [n_signals][channels][n_in]
///   out   [n_signals][channels][wt_resample_stream_frames]   NULL is allowed when there are none
///
/// Errors: WT_ERR_BAD_ARG (n_in outside 1 .. max_in, a range that does not fit), WT_ERR_STATE (drained).
/// Judge:  wt_resample_process, on a GPU 2e-6 of the peak.  [worker]
WT_CHECKED wt_status wt_resample_stream_enqueue(wt_resample_stream *plan, wt_stream *stream, const wt_buffer *in,
                                                size_t in_offset, int n_in, wt_buffer *out, size_t out_offset);
/// Queue what is still to come, [n_signals][channels][wt_resample_stream_rest]; then only a reset is of use.
/// Errors: WT_ERR_BAD_ARG (a range that does not fit), WT_ERR_STATE (drained).  [worker]
WT_CHECKED wt_status wt_resample_stream_drain(wt_resample_stream *plan, wt_stream *stream, wt_buffer *out,
                                              size_t out_offset);

#ifdef __cplusplus
}
#endif
#endif
