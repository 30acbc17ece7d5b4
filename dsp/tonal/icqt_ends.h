// Where an inverse constant-Q transform's signal begins and ends. librosa brings each octave to the full rate in one
// call of soxr, whose chain is another than our doublings one after another: alike where an octave's bins lie, not
// where its signal breaks off.
#ifndef WT_ICQT_ENDS_H
#define WT_ICQT_ENDS_H

#include "icqt_kernel.h"
#include <stdint.h>
#include <warptone/status.h>

// What the one gives beyond the other, of an output's phase.
typedef struct wt__icqt_end_rows {
    float *rows;  // [WT_ICQT_END_TAPS][wt__icqt_end_stride]
    int n_start;  // outputs whose rows lack what the chain would give before the start
    float *start; // [WT_ICQT_END_TAPS][n_start] what is to be added to rows there
} wt__icqt_end_rows;

typedef struct wt__icqt_ends {
    int n_levels; // 2 doublings .. n_levels - 1 have rows
    wt__icqt_end_rows levels[WT_ICQT_END_LEVELS];
} wt__icqt_ends;

WT_CHECKED wt_status wt__icqt_ends_create(int n_levels, wt__icqt_ends *ends);
void wt__icqt_ends_destroy(wt__icqt_ends *ends);

/// Of n samples x at one rate the first and the last: added to `kept` [2][WT_ICQT_END_KEPT].
void wt__icqt_ends_keep(const float *x, int64_t n, float *kept);
/// To the samples of the full rate, of which there are n << level: what soxr's chain makes of those kept beyond
/// doublings.
void wt__icqt_ends_add(const wt__icqt_ends *ends, int level, const float *kept, int64_t n, float *out);

#endif
