/// Arguments of the kernels of level and silence.
#ifndef WT_LEVEL_KERNEL_H
#define WT_LEVEL_KERNEL_H

/// Frame t begins at sample t hop - margin.
typedef struct wt_level_frames_args {
    const float *pcm; ///< [n_lines][n_samples]
    long long n_samples, n_frames;
    int frame, hop, margin, pad; ///< pad: wt_stft_pad
} wt_level_frames_args;

typedef struct wt_level_args {
    wt_level_frames_args frames;
    float *out; ///< [n_lines][n_frames]
    long long n_lines;
    int kind; ///< wt_level_kind
} wt_level_args;

/// wt_span of warptone/silence.h.
typedef struct wt_silence_span {
    long long begin, end;
} wt_silence_span;

typedef struct wt_silence_args {
    wt_level_frames_args frames; ///< lines are [n_signals][channels]
    double *levels;              ///< [n_signals][n_frames] of the loudest channel
    unsigned long long *peaks;   ///< [n_signals] bits of the loudest frame
    wt_silence_span *spans;      ///< [n_signals][room]
    int *counts;                 ///< [n_signals]
    long long n_signals, room;
    int channels, trim;
    double top_db;
} wt_silence_args;

#endif
