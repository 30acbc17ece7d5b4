/// Harmonic and percussive parts of spectrograms, by medians along time and along frequency.
#ifndef WARPTONE_HPSS_H
#define WARPTONE_HPSS_H

#include <stdbool.h>
#include <stdint.h>
#include <warptone/device.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WT_HPSS_MAX_KERNEL 1023

typedef struct wt_hpss_config {
    int bins;                                 ///< of a frame: n_fft / 2 + 1
    int lines;                                ///< batch * channels, 0 = 1
    int kernel_harmonic;                      ///< frames of the median along time, 0 = 31, at most WT_HPSS_MAX_KERNEL
    int kernel_percussive;                    ///< bins of the median along frequency, 0 = 31
    float power;                              ///< of the mask, 0 = 2; INFINITY = 0 or 1
    float margin_harmonic, margin_percussive; ///< 0 = 1; above 1 each part takes less, and a residual stays
    bool complex_in;                          ///< the spectrogram is complex, and so are the parts; else magnitudes
    bool give_masks; ///< write the masks instead of the masked spectrogram, real in either case
} wt_hpss_config;

/// A plan: scratch, which one call at a time uses, and on a GPU the compiled kernel.
typedef struct wt_hpss wt_hpss;

/// `device` NULL = the CPU, immediate calls only; else it is borrowed until the plan is destroyed.
/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY, and those of wt_module_create.  [worker, not armed]
WT_CHECKED wt_status wt_hpss_create(wt_device *device, const wt_hpss_config *config, wt_hpss **hpss);
void wt_hpss_destroy(wt_hpss *hpss); ///< NULL is allowed.  [worker, not armed]

/// Separate on the calling thread, whatever the plan's device. The medians' windows reach kernel / 2 before and
/// (kernel - 1) / 2 behind; spectrograms are mirrored with their ends repeated. What is silent in both medians goes
/// half to each part when both margins are 1, else to neither. What the parts leave (margins above 1) is in - both.
///
///   in                     [lines][n_frames][bins], complex: [..][2]; librosa's memory order
///   harmonic, percussive   the same shape, of masks without [2]
///
/// Returns WT_ERR_BAD_ARG when n_frames is below 1.
/// Source: librosa 0.11.0 decompose.py, hpss(); D. Fitzgerald, DAFx 2010.  Judge: librosa in float64, 2e-7 of the peak,
/// hard masks identical.  [rt, running]
WT_RT wt_status wt_hpss_run(wt_hpss *hpss, const float *in, int64_t n_frames, float *harmonic, float *percussive);

/// Queue the same on a stream of the plan's device; offsets in bytes. On the CPU backend it is spread over the device's
/// threads. Until the stream has passed it no other call may use the plan, but for further enqueues on the same stream.
/// Errors: WT_ERR_BAD_ARG (no device, n_frames, a range that does not fit its buffer), WT_ERR_CUDA.
/// Judge:  on a GPU, the CPU's result, 2e-7 of the peak; hard masks identical.  [worker]
WT_CHECKED wt_status wt_hpss_enqueue(wt_hpss *hpss, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                     int64_t n_frames, wt_buffer *harmonic, size_t harmonic_offset,
                                     wt_buffer *percussive, size_t percussive_offset);

#ifdef __cplusplus
}
#endif
#endif
