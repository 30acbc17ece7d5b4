/// Arguments of the inverse constant-Q transform's kernels.
#ifndef WT_ICQT_KERNEL_H
#define WT_ICQT_KERNEL_H
#include "spectrum_kernel.h"

#define WT_ICQT_REACH      100 ///< samples to both sides that a doubling needs
#define WT_ICQT_TAIL       200 ///< samples kept before and behind a signal: what the doublings to come can reach
#define WT_ICQT_END_FRAMES 176 ///< of an octave's signal at each end, whose outputs are corrected; so far they see
#define WT_ICQT_END_KEPT   (2 * WT_ICQT_END_FRAMES)
#define WT_ICQT_END_TAPS   (2 * WT_ICQT_END_FRAMES + 1)
#define WT_ICQT_END_LEVELS 11
#define WT_ICQT_END_LANES  16
#define WT_ICQT_END_LINES  4 ///< of a thread of icqt_ends
#define WT_ICQT_THREADS    256
#define WT_ICQT_EACH       5 ///< input samples a thread doubles; odd, so that threads meet every bank once

/// Numbers between rows of what 1 << level outputs have.
WT_SHARED_FN int wt__icqt_end_stride(int level)
{
    return 1 << level < WT_ICQT_END_LANES ? WT_ICQT_END_LANES : 1 << level;
}

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
    float *kept; ///< [n_lines][2][WT_ICQT_END_KEPT] its first and last samples are added to; or NULL
} wt_icqt_octave_args;

/// Twice the rate: sample p of `out` is at p / 2 of `in`.
typedef struct wt_icqt_double_args {
    const float *in;   ///< [n_lines][WT_ICQT_TAIL + n + WT_ICQT_TAIL], silent around
    float *out;        ///< [n_lines][WT_ICQT_TAIL + 2 n + WT_ICQT_TAIL]
    const float *taps; ///< [2 WT_ICQT_REACH + 1] half of the filter, its middle first
    long long n;
} wt_icqt_double_args;

/// What one call of soxr gives beyond doublings, added where signals begin and end. Of a signal of n samples that was
/// doubled `level` times, output k of frame f = k >> level, that of one of its first or last WT_ICQT_END_FRAMES frames,
/// gets the sum over t of rows[t] times sample f - WT_ICQT_END_FRAMES + t.
typedef struct wt_icqt_ends_args {
    const float *kept;                      ///< [n_levels][n_lines][2][WT_ICQT_END_KEPT]
    float *out;                             ///< [n_lines][length]
    const float *rows[WT_ICQT_END_LEVELS];  ///< [WT_ICQT_END_TAPS][wt__icqt_end_stride]
    const float *start[WT_ICQT_END_LEVELS]; ///< [WT_ICQT_END_TAPS][n_start] in addition, for the first outputs
    int n_start[WT_ICQT_END_LEVELS];
    int n_levels; ///< from level 2 on
    int n_lines;
    long long n, length; ///< samples at the full rate, and those kept
} wt_icqt_ends_args;
#endif
