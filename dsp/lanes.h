/// Private to dsp/: sixteen frames side by side, one in each lane, so that loops over lanes become vectors.
#ifndef WT_LANES_H
#define WT_LANES_H

#include <stddef.h>
#include <stdint.h>
#include <warptone/simd.h>

enum { WT__LANES = 16 };

/// Bits of numbers of 0 and more lie in their order (a NaN at one end), and vectors compare them in one step each way.
typedef int32_t wt__bits __attribute__((may_alias));

WT_INLINE wt__bits wt__least(wt__bits a, wt__bits b) { return a < b ? a : b; }
WT_INLINE wt__bits wt__most(wt__bits a, wt__bits b) { return a < b ? b : a; }

/// The lesser numbers of two rows [WT__LANES] go to a, the greater to b.
WT_INLINE void wt__lanes_order(wt__bits *restrict a, wt__bits *restrict b)
{
    wt__bits low[WT__LANES], high[WT__LANES];
    for (int i = 0; i < WT__LANES; i++) low[i] = wt__least(a[i], b[i]), high[i] = wt__most(a[i], b[i]);
    for (int i = 0; i < WT__LANES; i++) a[i] = low[i], b[i] = high[i];
}

/// `count` rows of n numbers, `distance` apart, to turned [n][WT__LANES]; lanes behind them get the last row.  [rt]
void wt__lanes_turn(const float *rows, ptrdiff_t distance, int count, int n, float *turned);
/// And back: lanes 0 .. count - 1 of turned [n][WT__LANES] to rows of n numbers, side by side.  [rt]
void wt__lanes_turn_back(const float *turned, int n, int count, float *rows);
/// Sort rows [n][WT__LANES], each lane by itself, by their bits.  [rt]
void wt__lanes_sort(float *rows, int n);
/// The `share` lowest numbers of each lane of rows [n][WT__LANES], ascending, and the highest, descending; share <= n.
/// Takes n share steps.  [rt]
void wt__lanes_select(const float *rows, int n, int share, float *low, float *high);

#endif
