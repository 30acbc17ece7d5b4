/// Arguments of the kernels that meter programmes block by block.
#ifndef WT_LOUDNESS_STREAM_KERNEL_H
#define WT_LOUDNESS_STREAM_KERNEL_H
#include "loudness_batch_kernel.h"

#define LOUDNESS_STREAM_STEPS 256 ///< that may end in one launch

/// Of a channel; zeros to begin with.
typedef struct loudness_line_state {
    double filter[2][2];          ///< [section][delay]
    double power;                 ///< of the step so far
    float history[LOUDNESS_TAPS]; ///< the last samples; the first is not looked at
} loudness_line_state;

/// Of a programme; zeros to begin with.
typedef struct loudness_programme_state {
    double ring[LOUDNESS_SHORT_TERM]; ///< powers of the last steps, that of step k at k % SHORT_TERM
    loudness_facts facts;
} loudness_programme_state;

typedef struct loudness_stream_args {
    const float *pcm;                     ///< [n_signals][channels][stride], of which `count` frames from here on
    loudness_line_state *lines;           ///< [n_signals][channels]
    loudness_programme_state *programmes; ///< [n_signals]
    loudness_sum *bins;                   ///< [n_signals][2][LOUDNESS_N_BINS] gating blocks; values of the range
    double *steps;                        ///< [n_signals][channels][LOUDNESS_STREAM_STEPS] that end here
    loudness_values *values;              ///< [n_signals]
    long long stride, frame, step;        ///< frames and whole steps before
    int n_signals, channels, rate_hz, oversampling;
    int count, n_steps; ///< frames, and steps that end within them
    loudness_weighting weighting;
    double weights[LOUDNESS_MAX_CHANNELS];
} loudness_stream_args;

#endif
