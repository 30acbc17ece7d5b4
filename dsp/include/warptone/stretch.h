/// Time stretch and pitch shift by phase vocoders, a phase-locked one, with care for attacks or without, and librosa
/// 0.11's; and by overlapped pieces of the signal.
///
/// Phases are kept as unit vectors in double, so they do not lose digits with time; librosa's own sums of angles in
/// float are off by 1e-3 of the peak after a few seconds.
#ifndef WARPTONE_STRETCH_H
#define WARPTONE_STRETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <warptone/device.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- spectra

typedef struct wt_phase_vocoder wt_phase_vocoder;

typedef struct wt_phase_vocoder_config {
    int bins;    ///< n_fft / 2 + 1, 1 or more
    double rate; ///< 1/256 .. 256; 2 = twice as fast
} wt_phase_vocoder_config;

/// `device` NULL = immediate calls only; else it is borrowed until the plan is destroyed.
/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY, on a GPU those of wt_module_create.  [worker]
WT_CHECKED wt_status wt_phase_vocoder_create(wt_device *device, const wt_phase_vocoder_config *config,
                                             wt_phase_vocoder **vocoder);
void wt_phase_vocoder_destroy(wt_phase_vocoder *vocoder); ///< NULL is allowed.  [worker]

/// Frames that n_frames become: ceil(n_frames / rate).  [any]
int64_t wt_phase_vocoder_frames(const wt_phase_vocoder *vocoder, int64_t n_frames);

/// Stretch a spectrogram.
///
///   in    [n_frames][bins][2]      frames whose distance is the hop of the frames that come out
///   out   [frames][bins][2]
///
/// Source: J. L. Flanagan and R. M. Golden, Phase vocoder, 1966; librosa 0.11.0 core/spectrum.py, phase_vocoder().
/// Judge:  librosa in float64, 2e-6 of the peak.  [rt, running]
WT_RT void wt_phase_vocoder_run(wt_phase_vocoder *vocoder, const float *in, int64_t n_frames, float *out);
/// Queue it for [n_lines] spectrograms on a stream of the plan's device; offsets in bytes.
/// Errors: WT_ERR_BAD_ARG, WT_ERR_CUDA.  Judge: wt_phase_vocoder_run, on a GPU 2e-6 of the peak, however long: phases
/// are unit vectors in double there too.  [worker]
WT_CHECKED wt_status wt_phase_vocoder_enqueue(wt_phase_vocoder *vocoder, wt_stream *stream, const wt_buffer *in,
                                              size_t in_offset, int64_t n_frames, int n_lines, wt_buffer *out,
                                              size_t out_offset);

// ---- signals

typedef enum wt_stretch_mode {
    /// Phase-locked, and time runs at rate 1 around attacks, whose bins begin anew: a sine stays one to 80 dB and more,
    /// an impulse keeps its shape and lies within 64 samples of its place. Attacks nearer than n_fft, in the input or
    /// the output, share what lies between them and leave echoes there.
    WT_STRETCH_TRANSIENT,
    WT_STRETCH_LOCKED,  ///< the same without care for attacks
    WT_STRETCH_LIBROSA, ///< librosa's phase vocoder: a sine at 41 dB
    /// Overlapped pieces of n_fft samples, a hop apart: for one voice. What repeats within n_fft / 2 samples keeps its
    /// period; attacks as above.
    WT_STRETCH_WSOLA,
} wt_stretch_mode;

typedef struct wt_stretch_config {
    wt_stretch_mode mode; ///< 0 = transient
    double rate;          ///< 0 = 1; 1/256 .. 256, 2 = half as long
    int n_fft;            ///< 0 = 2048, WSOLA: 1024
    int hop;              ///< 0 = n_fft / 4, WSOLA: n_fft / 2
    int64_t n_samples;    ///< of one signal, 1 or more
    int n_signals;        ///< 0 = 1
    /// Frames of the output of a signal that are held at once, 0 = 16, on a GPU all of them or as many as fit. The
    /// result is the same; on a GPU rounding may differ.
    int frames_at_once;
} wt_stretch_config;

/// Tables, and work space for the spectra of a few frames a thread, however long signals are, and 24 bytes for each
/// attack that they may have, one in n_fft / 4 samples; one call at a time uses it.
typedef struct wt_stretch wt_stretch;

/// `device` NULL = immediate calls only; else it is borrowed until the plan is destroyed. On a GPU the plan takes up to
/// 16 GB, at most a quarter of what is free, for the spectra of as many signals as fit, or of a signal's frames.
/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY, those of wt_module_create.  [worker]
WT_CHECKED wt_status wt_stretch_create(wt_device *device, const wt_stretch_config *config, wt_stretch **plan);
void wt_stretch_destroy(wt_stretch *plan);        ///< NULL is allowed.  [worker]
int64_t wt_stretch_n_out(const wt_stretch *plan); ///< samples of a result: round(n_samples / rate).  [any]

/// Stretch, on the calling thread.
///
///   pcm   [n_signals][n_samples]
///   out   [n_signals][n_out]
///
/// Source: J. Laroche and M. Dolson, 1999 (locked); librosa 0.11.0 effects.py, time_stretch(); C. Duxbury, M. Davies
/// and M. Sandler, 2002, and A. Roebel, 2003 (attacks); W. Verhelst and M. Roelands, 1993 (WSOLA). Judge:  sines, 80 dB
/// (locked, transient); librosa in float64, 2e-6 of the peak; impulses, periodic signals (tests).  [rt, running]
WT_RT void wt_stretch_run(wt_stretch *plan, const float *pcm, float *out);
/// Queue it on a stream of the plan's device; offsets in bytes. Errors: WT_ERR_BAD_ARG, WT_ERR_CUDA.
/// Judge: wt_stretch_run; on a GPU 2e-6 of the peak, attacks and places of pieces the same.  [worker]
WT_CHECKED wt_status wt_stretch_enqueue(wt_stretch *plan, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset,
                                        wt_buffer *out, size_t out_offset);

typedef struct wt_pitch_shift_config {
    double rate_hz;       ///< 0 = 22050
    double n_steps;       ///< up when positive, at most 8 octaves
    int bins_per_octave;  ///< steps of an octave, 0 = 12
    bool scale;           ///< keep the energy (librosa's scale=True), not the amplitude
    wt_stretch_mode mode; ///< of the stretch, 0 = transient
    int n_fft, hop;       ///< as of the stretch
    int frames_at_once;   ///< as of the stretch
    int64_t n_samples;    ///< of one signal, 1 or more; a result has as many
    int n_signals;        ///< 0 = 1
    bool keep_formants;   ///< the spectral envelope stays where it is, as of a voice
    int formant_order; ///< the envelope rests on peaks rate_hz / (2 formant_order) apart; 0 = on the harmonics of the
                       ///< pitch, 60 to 500 Hz
    /// [n_samples] Room for the signal with its envelope moved, when keep_formants and no device; borrowed until the
    /// plan is destroyed. NULL = the plan takes it: else its memory does not grow with n_samples, but for attacks.
    float *work;
} wt_pitch_shift_config;

typedef struct wt_pitch_shift wt_pitch_shift;

/// `device` as of a stretch. Errors: as wt_stretch_create, and those of wt_resample_plan_create.  [worker]
WT_CHECKED wt_status wt_pitch_shift_create(wt_device *device, const wt_pitch_shift_config *config,
                                           wt_pitch_shift **plan);
void wt_pitch_shift_destroy(wt_pitch_shift *plan); ///< NULL is allowed.  [worker]

/// Shift, on the calling thread: stretch by 2^(-n_steps / bins_per_octave), then resample back to the length.
///
///   pcm, out   [n_signals][n_samples]
///
/// Source: librosa 0.11.0 effects.py, pitch_shift(); in mode librosa the resampler is soxr_hq, as there, else
/// Warptone's best, which keeps more of the highest twentieth of the band. keep_formants: D. B. Paul, The spectral
/// envelope estimation vocoder, 1981; A. Roebel and X. Rodet, Efficient spectral envelope estimation and its
/// application to pitch shifting and envelope preservation, DAFx 2005.
/// Judge:  mode librosa: librosa in float64, 2e-6 of the peak; keep_formants: a vowel's formants within 3 % (tests).
/// [rt, running]
WT_RT void wt_pitch_shift_run(wt_pitch_shift *plan, const float *pcm, float *out);
/// Queue it on a stream of the plan's device; offsets in bytes. Errors, judge: as wt_stretch_enqueue.  [worker]
WT_CHECKED wt_status wt_pitch_shift_enqueue(wt_pitch_shift *plan, wt_stream *stream, const wt_buffer *pcm,
                                            size_t pcm_offset, wt_buffer *out, size_t out_offset);

#ifdef __cplusplus
}
#endif
#endif
