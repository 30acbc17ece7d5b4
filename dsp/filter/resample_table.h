// The taps of a resampler, shared by the streaming form and the plans.
#ifndef WT_RESAMPLE_TABLE_H
#define WT_RESAMPLE_TABLE_H

#include <warptone/resample.h>

#include "resample_kernel.h"

#include <math.h>

// Row p holds the taps of an output that lies p / n_phases of an input frame behind input frame i: tap k belongs to
// input frame i - before + k. With `interpolated`, phases between rows are read by a polynomial (wt__resample_weights)
// from four rows, so there is one row ahead of row 0 and two behind row n_phases - 1; rows[] points at the first of
// all. A chain of filters, soxr's, makes its first outputs without what its links would give before the signal's start:
// those have rows of their own. Where soxr rounds the length of its output down, librosa adds a silent frame.
typedef struct wt__resample_table {
    int64_t numerator, denominator; // an output advances the input by numerator / denominator frames
    int n_taps;                     // of a row, a multiple of 16
    int before, after;              // input frames a row reads before and after its own
    int n_phases;
    int order;                       // of the polynomial between rows, 2 or 3
    bool interpolated, wide, halves; // wide: taps and sums in double; halves: the one filter of 2:1
    bool variable, rounds;           // may be steered; ends as soxr does
    int n_start;                     // outputs with their own rows
    double *taps;                    // [n_phases or n_phases + 3][n_taps]
    float *taps_f32;                 // the same in float, NULL when wide
    float *start;                    // [n_start][n_taps]
} wt__resample_table;

wt_status wt__resample_table_create(const wt_resample_config *config, wt__resample_table *table);
void wt__resample_table_destroy(wt__resample_table *table);

// n_taps taps of an output `phase` / `denominator` behind its frame; double or float as `wide` says. `scratch` holds
// n_taps doubles.
const void *wt__resample_row(const wt__resample_table *table, int64_t phase, void *scratch);

int64_t wt__common_divisor(int64_t a, int64_t b);

// A resampler whose table belongs to someone else, who keeps it longer.
wt_status wt__resample_create_sharing(const wt__resample_table *table, int channels, wt_resample **resampler);

// Whether soxr's rounded length ends before an output `frame` frames and a phase behind the signal's end: half an
// output on, its time lies there.
static inline bool wt__resample_rounded_away(const wt__resample_table *t, int64_t frame, int64_t phase)
{
    return t->rounds && 2 * (frame * t->denominator + phase) + t->numerator > 0;
}

// The step at `speed`, and by how much each of `ramp_frames` outputs changes `step` on the way; 0: at once, or no way.
static inline int64_t wt__resample_aim(const wt__resample_table *t, double speed, int ramp_frames, int64_t step,
                                       int64_t *change)
{
    const int64_t target = llround(speed * (double)t->numerator), way = target - step;
    *change = !ramp_frames || !way ? 0 : way / ramp_frames ? way / ramp_frames : way > 0 ? 1 : -1;
    return target;
}

// The kernels' form of a table: taps turned to [n_taps][n_columns], exact phases in the order in which outputs meet
// them (caller frees with free(); NULL = no memory), and the arguments but for their pointers.
void *wt__resample_turned_taps(const wt__resample_table *table, size_t *size_bytes);
wt_resample_args wt__resample_args_of(const wt__resample_table *table, int n_lines, int n_in, int n_out);

#endif
