/// Tempo and beats of an onset envelope (onset.h), with librosa 0.11's rules.
///
/// A Fourier tempogram is wt_stft_forward of the envelope with n_fft = the window and hop 1.
///
/// Plans work on the calling thread, on an envelope of any length; with a `device`, which is borrowed until the plan is
/// destroyed, also on its streams, on n_signals envelopes of n_frames (max_frames) each. On a GPU creating one may also
/// give the compiler's errors; windows above 4096 frames go by memory there, in double.
#ifndef WARPTONE_TEMPO_H
#define WARPTONE_TEMPO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <warptone/device.h>
#include <warptone/status.h>
#include <warptone/window.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- tempogram

typedef struct wt_tempogram_config {
    int win_length;          ///< frames, 0 = 384
    wt_window_config window; ///< 0 = periodic Hann; `n` is set from win_length
    bool no_center;          ///< row t begins at frame t, instead of being centred there
    bool no_norm;            ///< false: each row divided by its largest magnitude
    int64_t n_frames;        ///< of an envelope on a stream
    int n_signals;           ///< on a stream, 0 = 1
} wt_tempogram_config;

typedef struct wt_tempogram wt_tempogram;

/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_tempogram_create(wt_device *device, const wt_tempogram_config *config,
                                         wt_tempogram **plan);
void wt_tempogram_destroy(wt_tempogram *plan); ///< NULL is allowed.  [worker]
/// Rows of an envelope of n frames; 0 when it is empty, or without centring shorter than the window.  [any]
int64_t wt_tempogram_rows(const wt_tempogram *plan, int64_t n);

/// Local autocorrelation of the envelope.
///
///   envelope   [n]                 ramps of half a window lead to 0 at both ends
///   out        [rows][win_length]  row by row (librosa's array transposed)
///
/// Source: P. Grosche, M. Mueller and F. Kurth, Cyclic tempogram, ICASSP 2010; librosa 0.11.0 feature/rhythm.py.
/// Judge:  librosa in float64, 1e-6 of the peak.  [rt, running]
WT_RT void wt_tempogram_run(wt_tempogram *plan, const float *envelope, int64_t n, float *out);

/// Queue it for every signal: out [n_signals][rows][win_length]; offsets in bytes. Errors: WT_ERR_BAD_ARG.
/// Judge:  CUDA: the CPU, 2e-6 of the peak.  [worker]
WT_CHECKED wt_status wt_tempogram_enqueue(wt_tempogram *plan, wt_stream *stream, const wt_buffer *envelope,
                                          size_t envelope_offset, wt_buffer *out, size_t out_offset);

enum { WT_TEMPO_RATIOS = 13 };

/// The strength of a tempo's metric multiples, 4 8/3 3 2 4/3 3/2 1 2/3 3/4 1/2 1/3 3/8 1/4, in one tempogram row: by a
/// line between the tempi of its lags, 0 beyond them.
///
///   row      [win_length], 3 or more
///   ratios   [WT_TEMPO_RATIOS]
///
/// Source: M. Prockup et al., Modeling genre with musical attributes, 2015; librosa 0.11.0, tempogram_ratio().
/// Judge:  librosa in float64, 1e-6 of the peak.  [rt, running]
WT_RT void wt_tempogram_ratio(double rate_hz, int hop, const float *row, int win_length, double bpm, float *ratios);

typedef struct wt_tempo_ratios_config {
    double rate_hz; ///< 0 = 22050
    int hop;        ///< 0 = 512
    int win_length; ///< of the rows, 3 or more; 0 = 384
    int64_t n_rows; ///< of all signals, 1 or more
} wt_tempo_ratios_config;

typedef struct wt_tempo_ratios wt_tempo_ratios;

/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY, on a GPU the compiler's.  [worker]
WT_CHECKED wt_status wt_tempo_ratios_create(wt_device *device, const wt_tempo_ratios_config *config,
                                            wt_tempo_ratios **plan);
void wt_tempo_ratios_destroy(wt_tempo_ratios *plan); ///< NULL is allowed.  [worker]

/// Queue wt_tempogram_ratio of every row; offsets in bytes, bpm's a multiple of 8.
///
///   tempogram   float [n_rows][win_length]
///   bpm         double [n_rows]   wt_tempo_enqueue_frames gives them
///   ratios      float [n_rows][WT_TEMPO_RATIOS]
///
/// Errors: WT_ERR_BAD_ARG.  Judge: CUDA: the CPU, 2e-6 of the peak.  [worker]
WT_CHECKED wt_status wt_tempo_ratios_enqueue(wt_tempo_ratios *plan, wt_stream *stream, const wt_buffer *tempogram,
                                             size_t tempogram_offset, const wt_buffer *bpm, size_t bpm_offset,
                                             wt_buffer *ratios, size_t ratios_offset);

// ---- tempo

typedef struct wt_tempo_config {
    double rate_hz;   ///< 0 = 22050
    int hop;          ///< 0 = 512
    double start_bpm; ///< the prior's centre, 0 = 120
    double std_bpm;   ///< its width in octaves, 0 = 1
    double ac_size_s; ///< window in seconds, 0 = 8
    double max_bpm;   ///< 0 = 320
    bool fine;        ///< between the lags, from peaks several beats away: not librosa's, 0.1 BPM
    bool frames;      ///< on a stream also wt_tempo_enqueue_frames, whose tempograms take memory on a GPU
    int64_t n_frames; ///< of an envelope on a stream
    int n_signals;    ///< on a stream, 0 = 1
} wt_tempo_config;

typedef struct wt_tempo wt_tempo;

/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_tempo_create(wt_device *device, const wt_tempo_config *config, wt_tempo **plan);
void wt_tempo_destroy(wt_tempo *plan); ///< NULL is allowed.  [worker]

/// One tempo, in beats a minute, of the mean tempogram; the slowest there is when the envelope is empty or silent.
/// Source: D. Ellis, Beat tracking by dynamic programming, 2007; librosa 0.11.0 feature/rhythm.py, tempo().
/// Judge:  librosa, identical unless `fine`.  [rt, running]
WT_RT double wt_tempo_run(wt_tempo *plan, const float *envelope, int64_t n);
/// A tempo for each frame: bpm [n].  [rt, running]
WT_RT void wt_tempo_run_frames(wt_tempo *plan, const float *envelope, int64_t n, double *bpm);
/// Queue wt_tempo_run of every signal: bpm double [n_signals]; offsets in bytes, bpm's a multiple of 8.
/// Errors: WT_ERR_BAD_ARG.  Judge: CUDA: the CPU, identical unless `fine`.  [worker]
WT_CHECKED wt_status wt_tempo_enqueue(wt_tempo *plan, wt_stream *stream, const wt_buffer *envelope,
                                      size_t envelope_offset, wt_buffer *bpm, size_t bpm_offset);

/// Queue wt_tempo_run_frames of every signal, of a plan with `frames`: bpm double [n_signals][n_frames].
/// Errors: WT_ERR_BAD_ARG.  Judge: CUDA: the CPU, identical unless `fine` or two lags are as good but for rounding.
/// [worker]
WT_CHECKED wt_status wt_tempo_enqueue_frames(wt_tempo *plan, wt_stream *stream, const wt_buffer *envelope,
                                             size_t envelope_offset, wt_buffer *bpm, size_t bpm_offset);

// ---- beats

typedef struct wt_beat_config {
    wt_tempo_config tempo; ///< its n_frames and n_signals are set from those below
    double bpm;          ///< known tempo; 0 = estimated
    double tightness;    ///< 0 = 100
    bool no_trim;        ///< keep weak beats at both ends
    int64_t max_frames;  ///< of an envelope
    int n_signals;       ///< on a stream, 0 = 1
} wt_beat_config;

typedef struct wt_beat wt_beat;

/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_beat_create(wt_device *device, const wt_beat_config *config, wt_beat **plan);
void wt_beat_destroy(wt_beat *plan); ///< NULL is allowed.  [worker]

/// Beats by dynamic programming.
///
///   envelope   [n]   n <= max_frames (more are not looked at); librosa takes the median over mel bands
///   frames     [n]   at most, ascending; how many is returned
///   bpm        the tempo, 0 when the envelope is 0 everywhere
///
/// Source: D. Ellis, Beat tracking by dynamic programming, 2007; librosa 0.11.0 beat.py, beat_track().
/// Judge:  librosa, identical.  [rt, running]
WT_RT int64_t wt_beat_run(wt_beat *plan, const float *envelope, int64_t n, int *frames, double *bpm);

/// What was found in one signal of many.
typedef struct wt_beats {
    double bpm;      ///< 0 when the envelope is 0 everywhere
    int64_t n_beats;
} wt_beats;

/// Queue wt_beat_run of every signal; offsets in bytes, found's a multiple of 8.
///
///   envelope   float [n_signals][max_frames]
///   frames     int [n_signals][max_frames]   each row begins with its beats, the rest is not defined
///   found      wt_beats [n_signals]
///
/// Errors: WT_ERR_BAD_ARG.  Judge: CUDA: the CPU, identical.  [worker]
WT_CHECKED wt_status wt_beat_enqueue(wt_beat *plan, wt_stream *stream, const wt_buffer *envelope,
                                     size_t envelope_offset, wt_buffer *frames, size_t frames_offset, wt_buffer *found,
                                     size_t found_offset);

// ---- predominant local pulse

typedef struct wt_plp_config {
    double rate_hz;              ///< 0 = 22050
    int hop;                     ///< 0 = 512
    int win_length;              ///< frames, 0 = 384
    double min_bpm, max_bpm;     ///< 0 = 30 and 300
    int64_t max_frames;          ///< of an envelope, 1 or more
    int n_signals;               ///< on a stream, 0 = 1
} wt_plp_config;

typedef struct wt_plp wt_plp;

/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_plp_create(wt_device *device, const wt_plp_config *config, wt_plp **plan);
void wt_plp_destroy(wt_plp *plan); ///< NULL is allowed.  [worker]

/// Pulse curve, 0 .. 1, of an envelope of n frames, 1 .. max_frames.
/// Source: P. Grosche and M. Mueller, 2011; librosa 0.11.0 beat.py, plp().
/// Judge:  librosa in float64, 2.3e-6; of tempi that are equally strong all count, as its rule is in exact numbers;
/// rounding chooses among them in librosa (golden cases plp_tick and plp_beats32, 1e-6).  [rt, running]
WT_RT void wt_plp_run(wt_plp *plan, const float *envelope, int64_t n, float *pulse);
/// Queue it for every signal: envelope and pulse [n_signals][max_frames]; offsets in bytes. Errors: WT_ERR_BAD_ARG.
/// Judge:  CUDA: the CPU, 2e-6.  [worker]
WT_CHECKED wt_status wt_plp_enqueue(wt_plp *plan, wt_stream *stream, const wt_buffer *envelope, size_t envelope_offset,
                                    wt_buffer *pulse, size_t pulse_offset);

#ifdef __cplusplus
}
#endif
#endif
