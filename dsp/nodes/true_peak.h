/// True peaks of a block on the CPU, across time; see true_peak_kernel.h.
#ifndef WT_TRUE_PEAK_H
#define WT_TRUE_PEAK_H

#include <math.h>
#include <string.h>
#include "fir_across_level.h"
#include "true_peak_kernel.h"

enum { TRUE_PEAK_LANES = 16, TRUE_PEAK_LINE = 2 * TRUE_PEAK_LANES + WT_CHAIN_BLOCK + 2 * TRUE_PEAK_LANES };

/// The three points behind each frame; frame n at [TRUE_PEAK_LANES + n], the one before the block at n = -1.
typedef struct true_peak_points {
    float p[3][TRUE_PEAK_LINE];
} true_peak_points;

/// `line`: `taps` samples of history, then n_frames, then room for the vectors' reach; frame n of the block is
/// line[n + taps / 2]. `table`: [3][taps].
WT_INLINE void wt__true_peak_points(const float *table, int taps, const float *line, int n_frames,
                                    true_peak_points *points)
{
    float before[TRUE_PEAK_LANES] = {0};
    WT_LEVEL_CALL(fir_across, table + 2 * taps, taps, line, 1, 1, before);
    points->p[2][TRUE_PEAK_LANES - 1] = before[0];
    for (int row = 0; row < 3; row++) {
        float *to = points->p[row] + TRUE_PEAK_LANES;
        memset(to, 0, sizeof *to * (size_t)(n_frames + TRUE_PEAK_LANES));
        WT_LEVEL_CALL(fir_across, table + row * taps, taps, line + 1, 1, n_frames, to);
    }
}

/// peak[n] = the highest of itself and the tops of the parabolas; `here` is frame 0 in the line.
WT_INLINE void wt__true_peak_tops(const float *here, const true_peak_points *points, int n_frames, float *peak)
{
    const float *p0 = points->p[0] + TRUE_PEAK_LANES, *p1 = points->p[1] + TRUE_PEAK_LANES,
                *p2 = points->p[2] + TRUE_PEAK_LANES, *before = p2 - 1;
    for (int n = 0; n < n_frames; n++) {
        float first = wt_max(true_peak_top(before[n], here[n], p0[n]), true_peak_top(here[n], p0[n], p1[n]));
        float second = wt_max(true_peak_top(p0[n], p1[n], p2[n]), true_peak_top(p1[n], p2[n], here[n + 1]));
        first = wt_max(first, second);
        peak[n] = wt_max(first, peak[n]);
    }
}

#endif
