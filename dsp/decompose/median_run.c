// Forgetful selection: of the values seen so far only those are kept that may still become the median, given how many
// are to come. With every value above the half, the smallest and the largest kept one are forgotten, and inserting is
//
//     kept'[i] = min(max(kept[i], y), kept[i + 1])
//
// Sixteen neighbouring outputs share most of their windows: the common part is selected from once, then its halves,
// quarters and so on each add what they have and their neighbours have not. 56 comparisons an output for k = 31, all
// across lanes, and no branch depends on data. (A sorted list that slides, one out and one in, takes 124.)

#include "median_run.h"

#if defined(__x86_64__)
#    include <immintrin.h>
#endif

#include "median_level.h"

void wt__median_run(const int *x, ptrdiff_t stride, int k, int *out, ptrdiff_t out_stride, int *scratch)
{
    WT_LEVEL_CALL(run_lines, x, stride, k, out, out_stride, scratch);
}

void wt__median_box(const int *x, ptrdiff_t stride, int rows, int columns, int *out, int *scratch)
{
    WT_LEVEL_CALL(run_box, x, stride, rows, columns, out, scratch);
}
