/// The picture of `process --plot`: waveform and spectrogram of what went in and what came out.
#ifndef WT_PLOT_H
#define WT_PLOT_H

#include <warptone/audio_file.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_plot_config {
    const char *title; ///< above all, for example the file's name and the preset's; NULL = none
    int width, height; ///< pixels; 0 = 1600 and 1000, at least 1000 and 600
    double range_db;   ///< from the loudest to the first colour; 0 = 90
} wt_plot_config;

/// Draw `before` at the left and `after` at the right with the same scales, as PNG. Rates, channels and lengths may
/// differ. Waveform: extremes of all channels, and RMS. Spectrogram: power averaged over the channels, Hann window of
/// about 60 ms, 20 Hz to 20 kHz on a logarithmic axis; 0 dB is a sine at full scale.
///
///   before, after   borrowed for the call; `config` NULL = all zero
///
/// Errors: WT_ERR_BAD_ARG (no frames, size), WT_ERR_NO_MEMORY, WT_ERR_FILE.  [worker]
WT_CHECKED wt_status wt_plot_before_after(const char *path, const wt_audio *before, const wt_audio *after,
                                          const wt_plot_config *config);

/// Power in dB on n_rows logarithmic bands between low_hz (row 0) and high_hz, n_columns equal steps of time, a sine at
/// full scale 0 dB, -200 dB for silence and above half the rate.
///
///   out   [n_rows][n_columns]; a band wider than the transform's bins shows its highest one, a narrower one lies
///         between its neighbours
///
/// Errors: WT_ERR_BAD_ARG, WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_plot_spectrogram(const wt_audio *audio, double low_hz, double high_hz, int n_rows,
                                         int n_columns, float *out);

#ifdef __cplusplus
}
#endif
#endif
