/// Arguments of the kernels of voice activity in whole signals.
#ifndef WT_VAD_BATCH_KERNEL_H
#define WT_VAD_BATCH_KERNEL_H
#include "vad_kernel.h"

/// What a line's windows leave to the next part.
typedef struct vad_state {
    vad_count count;
    vad_voice voice;
} vad_state;

/// A window by itself, behind a high-pass that begins at rest: the sums of y^2 and of y pole^k, its k-th sample being
/// y, k from 1, and the last y.
typedef struct vad_window {
    double sum, cross, end;
} vad_window;

typedef struct vad_batch_args {
    const float *pcm;          ///< [n_lines][n_samples]
    vad_state *states;         ///< [n_lines]
    vad_window *windows;       ///< [n_lines][n_windows]
    int *speech;               ///< [n_lines][n_windows]
    long long n_samples, from; ///< of a line; where its first window begins
    int n_lines, n_windows, window, continued;
    double pole;
    vad_rules rules;
} vad_batch_args;

#endif
