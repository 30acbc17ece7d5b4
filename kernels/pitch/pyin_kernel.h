/// Arguments of the pYIN kernels; the CPU works from the same tables.
#ifndef WT_PYIN_KERNEL_H
#define WT_PYIN_KERNEL_H

#include "yin_kernel.h"

/// The model: states 0 .. n_bins - 1 are voiced, n_bins .. 2 n_bins - 1 unvoiced. From bin i a step leads to bin
/// i + first + d, d in 0 .. width - 1, with log probability log_stay[d] + log_norm[i] when voicing stays, else
/// log_leave[d] + log_norm[i]; anywhere else with log_tiny.
typedef struct wt_pyin_model {
    int n_bins, bins_per_octave, width, first, n_thresholds, max_troughs;
    const double *thresholds; ///< [n_thresholds] their upper ends
    const double *beta;       ///< [n_thresholds] prior
    const double *beta_sum;   ///< [n_thresholds + 1] prior of the first k
    const double *share;      ///< [max_troughs + 1] prior of the first of so many troughs
    const double *log_stay, *log_leave; ///< [width]
    const double *log_norm;             ///< [n_bins] 0 but at the ends, where steps beyond are impossible
    double decay;                       ///< prior of a trough by that of the one before
    double no_trough_prob, fmin_hz, log_tiny, log_init;
} wt_pyin_model;

/// A frame's observation: voiced bins, descending, and the probability left to each unvoiced one, as logarithms.
typedef struct wt_pyin_frame {
    double log_unvoiced, voiced_prob;
    int n;
} wt_pyin_frame;

/// How voiced a frame's centre is; dsp/pitch/pyin_voicing.c says what the bounds are.
typedef struct wt_pyin_voicing {
    double periodicity, power;
} wt_pyin_voicing;

#define WT_PYIN_LEAST_PERIODICITY 0.4
#define WT_PYIN_SURE_PERIODICITY  0.8
#define WT_PYIN_LEAST_LEVEL       2e-4 ///< -37 dB of the surely voiced frames' mean power

/// n samples around the centre of frame t, as far as the signal goes.
typedef struct wt_pyin_span {
    long long begin, end;
} wt_pyin_span;

WT_YIN_FN wt_pyin_span wt__pyin_centred(const wt_yin_args *a, long long t, long long n)
{
    const long long begin = t * a->hop - a->margin + a->frame / 2 - n / 2, end = begin + n;
    const wt_pyin_span span = {begin > 0 ? begin : 0, end < a->n_samples ? end : a->n_samples};
    return span;
}

typedef struct wt_pyin_args {
    wt_yin_args yin;
    wt_pyin_model model;
    float *out;                      ///< [3][n_signals][n_frames]
    wt_pyin_frame *frames;           ///< [signals at work][n_frames]
    int *bins;                       ///< [signals at work][n_frames][max_troughs]
    double *log_probs;               ///< as bins
    unsigned short *from;            ///< [signals at work][n_frames][2 n_bins]
    wt_pyin_voicing *voicing;        ///< [signals at work][n_frames], calibrated alone
    double *path;                    ///< [signals at work][path_doubles] what shared memory has no room for; or NULL
    long long path_doubles;
    int first_signal, keep_unvoiced;
} wt_pyin_args;

#endif
