/// Mel spectrograms of whole signals, from samples to decibels in one pass; Whisper's front end; mel filter banks.
#ifndef WARPTONE_MEL_H
#define WARPTONE_MEL_H

#include <warptone/db.h>
#include <warptone/device.h>
#include <warptone/stft.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WT_MEL_MAX_MELS 4096

typedef enum wt_mel_norm {
    WT_MEL_NORM_SLANEY, ///< each band divided by its width in Hz, times 2
    WT_MEL_NORM_NONE,   ///< triangles of height 1
    WT_MEL_NORM_1,      ///< sum 1, and so on: librosa's util.normalize
    WT_MEL_NORM_2,
    WT_MEL_NORM_INF,
} wt_mel_norm;

typedef struct wt_mel_bank_config {
    int rate_hz;      ///< 0 = 22050
    int n_fft;        ///< 0 = 2048
    int n_mels;       ///< 0 = 128
    double fmin_hz;   ///< 0 = 0
    double fmax_hz;   ///< 0 = rate_hz / 2, and at most that
    bool htk;         ///< HTK's scale; false = Slaney's
    wt_mel_norm norm; ///< 0 = Slaney's
} wt_mel_bank_config;

/// Write the triangles.
///
///   bank   [n_mels][n_fft / 2 + 1]
///
/// Errors: WT_ERR_BAD_ARG naming the field.
/// Source: librosa 0.11.0 filters.py, mel(); Slaney, Auditory Toolbox, 1998; Young et al., The HTK Book.
/// Judge: librosa in float64, 1e-12.  [any but rt]
WT_CHECKED wt_status wt_mel_bank_fill(const wt_mel_bank_config *config, double *bank);

typedef enum wt_mel_scale {
    WT_MEL_LINEAR,  ///< as the bank gives it
    WT_MEL_DB,      ///< librosa.power_to_db, by `db`
    WT_MEL_WHISPER, ///< (max(log10, peak - 8) + 4) / 4 with 1e-10 as the least
} wt_mel_scale;

typedef struct wt_mel_config {
    int64_t n_samples;       ///< of a channel of a signal, 1 or more
    int n_signals;           ///< 0 = 1; each has its own maximum
    wt_stft_config stft;     ///< `channels`: those of one signal, which share a maximum
    wt_mel_bank_config bank; ///< `n_fft` is taken from stft
    const float *weights;    ///< [n_mels][n_fft / 2 + 1] another bank; copied. NULL = `bank`
    double power;            ///< of the magnitudes, 0 = 2
    wt_mel_scale scale;      ///< 0 = linear
    wt_db_config db;         ///< WT_MEL_DB only; no median
    bool frames_first;       ///< out is [n_frames][n_mels]
    bool drop_last;          ///< leave the last frame out, as Whisper does
    bool float_on_gpu;       ///< spectra that are `precise` on the CPU are in float on a GPU, in one kernel
} wt_mel_config;

/// openai/whisper's front end for 16 kHz: 400 / 160, reflected ends, Slaney bands; `precise`, but `float_on_gpu`, where
/// a band 80 dB below the largest is then up to 1e-5 of the peak off.  [any]
wt_mel_config wt_mel_whisper(int n_mels, int64_t n_samples);

/// A plan: tables, and scratch that one call at a time uses.
typedef struct wt_mel wt_mel;

/// Plan. `device` NULL = the CPU, immediate calls only; else borrowed until the plan is destroyed.
/// On a GPU n_fft of 2 to 8192 without a prime factor above 13 take one kernel; others, and precise spectra unless
/// `float_on_gpu`, go by memory, in double.
/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_LENGTH (signals without a frame), WT_ERR_NO_MEMORY, and those of
/// wt_module_create.  [worker, not armed]
WT_CHECKED wt_status wt_mel_create(wt_device *device, const wt_mel_config *config, wt_mel **mel);
void wt_mel_destroy(wt_mel *mel); ///< NULL is allowed.  [worker, not armed]

int wt_mel_bands(const wt_mel *mel);      ///< n_mels.  [any]
int64_t wt_mel_frames(const wt_mel *mel); ///< frames of a channel.  [any]

/// Analyse on the calling thread, whatever the plan's device.
///
///   pcm   [n_signals][channels][n_samples]        borrowed for the call
///   out   [n_signals][channels][n_mels][n_frames] or, frames_first, [..][n_frames][n_mels]
///
/// A NaN among the samples makes the frames that hold it NaN, and no others. Silence gives amin.
/// Source: librosa 0.11.0 feature/spectral.py, melspectrogram(), power_to_db(); openai/whisper audio.py.
/// Judge:  librosa in float64, 2e-7 of the peak.  [rt, running]
WT_RT void wt_mel_run(wt_mel *mel, const float *pcm, float *out);

/// Queue the same on a stream of the plan's device; offsets in bytes. A CPU device shares the frames among its threads.
/// Until the stream has passed it, no other call may use the plan but enqueues on the same stream.
/// Errors: WT_ERR_BAD_ARG (no device, a stream of another, a range that does not fit), WT_ERR_CUDA.
/// Judge:  on a GPU, the CPU, 2e-6 of the peak.  [worker]
WT_CHECKED wt_status wt_mel_enqueue(wt_mel *mel, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset,
                                    wt_buffer *out, size_t out_offset);

#ifdef __cplusplus
}
#endif
#endif
