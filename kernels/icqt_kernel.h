/// Arguments of the inverse constant-Q transform's kernels.
#ifndef WT_ICQT_KERNEL_H
#define WT_ICQT_KERNEL_H
#include "spectrum_kernel.h"

#define WT_ICQT_REACH   100 ///< samples to both sides that a doubling needs
#define WT_ICQT_TAIL    200 ///< samples kept before and behind a signal: what the doublings to come can reach
#define WT_ICQT_THREADS 256
#define WT_ICQT_EACH    5 ///< input samples a thread doubles; odd, so that threads meet every bank once

/// One octave's signal, added to what lies at its rate.
typedef struct wt_icqt_octave_args {
    wt_spectrum_walk walk;
    const float *in;         ///< [n_lines][n_frames][n_bins][2]
    const float *under;      ///< [n_lines][WT_ICQT_TAIL + n + WT_ICQT_TAIL]; may be `out`
    float *out;              ///< the same, or, `last`, [n_lines][walk.length]
    const int *begin;        ///< [bins + 1] of each bin the filters that have it
    const int *row;          ///< filters, in order
    const float *value;      ///< pairs
    long long stored_frames; ///< of a line
    long long n;             ///< samples that the octave makes
    int n_frames;            ///< that count
    int n_bins, first;       ///< of the transform; the octave's first
    int last;
} wt_icqt_octave_args;

/// Twice the rate: sample p of `out` is at p / 2 of `in`.
typedef struct wt_icqt_double_args {
    const float *in;   ///< [n_lines][WT_ICQT_TAIL + n + WT_ICQT_TAIL], silent around
    float *out;        ///< [n_lines][WT_ICQT_TAIL + 2 n + WT_ICQT_TAIL]
    const float *taps; ///< [2 WT_ICQT_REACH + 1] half of the filter, its middle first
    long long n;
} wt_icqt_double_args;
#endif
