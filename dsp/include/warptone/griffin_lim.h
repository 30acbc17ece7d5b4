/// A signal for magnitudes without phases: Griffin and Lim's iteration with momentum.
#ifndef WARPTONE_GRIFFIN_LIM_H
#define WARPTONE_GRIFFIN_LIM_H

#include <warptone/stft.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_griffin_lim_config {
    wt_stft_config stft; ///< `channels` count as signals; `precise` is not looked at
    int64_t n_frames;    ///< of each, 1 or more
    int64_t length;      ///< samples wanted; 0 = wt_stft_samples()
    int n_signals;       ///< 0 = 1
    int n_iter;          ///< 0 = 32
    double momentum;     ///< 0 = 0.99
    bool no_momentum;    ///< Griffin and Lim's original
    bool zero_phase;     ///< begin with phase 0; false = with random phases
    bool in_float;       ///< sums in float: a quarter of the time on a CPU, a twentieth on a GPU, for a signal that
                         ///< depends on rounding, which 32 iterations magnify a hundredfold
    uint64_t seed;       ///< of them: 2 pi (u + 1) / 2 of Knuth's MMIX generator, bin after bin and frame after frame
    /// [length] Room for a signal between eight iterations and the next, when in_float and no device; borrowed until
    /// the plan is destroyed. NULL = the plan takes it: else its memory does not grow with the signal's.
    float *work;
} wt_griffin_lim_config;

/// A plan: tables and all memory; one call at a time.
typedef struct wt_griffin_lim wt_griffin_lim;

/// `device` NULL = immediate calls only; a CPU device runs signals on its threads; a GPU takes up to 8 GB for the
/// spectra of as many signals as fit. There n_fft of 2 to 8192 without a prime factor above 13, whose hop suits a
/// block's shared memory, take one kernel an iteration in float; others go by memory, in double. Errors:
/// WT_ERR_BAD_ARG naming the field (also a length that has not n_frames frames), WT_ERR_NO_MEMORY, those of
/// wt_module_create.  [worker]
WT_CHECKED wt_status wt_griffin_lim_create(wt_device *device, const wt_griffin_lim_config *config,
                                           wt_griffin_lim **plan);
void wt_griffin_lim_destroy(wt_griffin_lim *plan); ///< NULL is allowed.  [worker]

int64_t wt_griffin_lim_length(const wt_griffin_lim *plan); ///< samples of a signal.  [any]

/// Find signals.
///
///   magnitude   [n_signals][n_frames][bins]
///   out         [n_signals][length]
///
/// Source: Griffin, Lim, 1984; Perraudin, Balazs, Sondergaard, 2013; librosa 0.11.0 griffinlim().
/// Judge:  librosa in float64 from the same phases: 1e-6 of the peak after 32 iterations; in float three times
///         librosa's own float32 error, 2.7e-5.  [rt, running]
WT_RT void wt_griffin_lim_run(wt_griffin_lim *plan, const float *magnitude, float *out);
/// Queue the same on a stream of the plan's device.  Errors: as wt_mel_enqueue.  Judge: wt_griffin_lim_run, from the
/// same phases; on a GPU 2e-6 of the peak; in float 5e-6 after two iterations, and more of them magnify rounding.
/// [worker]
WT_CHECKED wt_status wt_griffin_lim_enqueue(wt_griffin_lim *plan, wt_stream *stream, const wt_buffer *magnitude,
                                            size_t magnitude_offset, wt_buffer *out, size_t out_offset);

#ifdef __cplusplus
}
#endif
#endif
