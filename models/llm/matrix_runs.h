/// One vector with a matrix's rows, four at a time, as memory gives them; the file that includes this names the
/// instructions by a pragma.
#ifndef WT_LLM_MATRIX_RUNS_H
#define WT_LLM_MATRIX_RUNS_H

#include "matrix.h"

#include <warptone/simd.h>

#ifdef __AVX512F__
enum { AHEAD = 1024 }; // bytes that are fetched before their turn
#else
enum { AHEAD = 256 };
#endif
enum { FOUR_ROWS = 4, RUN = 1024 };

/// Sums of four rows, counted from the first of the call, with one vector.
typedef void (*four_rows)(const void *args, const int64_t *rows, float *y);

/// n_rows from `first` on with vector t. With one vector memory is what is waited for: four rows at a time that are a
/// quarter of a run apart are four streams, each in memory's order, which processors fetch ahead of faster than of one;
/// AHEAD bytes the function does, too, since processors do not fetch over a page's end.
WT_INLINE void runs(const wt__product *p, int64_t first, int64_t n_rows, int t, four_rows four, const void *args)
{
    for (int64_t begin = 0, n; begin < n_rows; begin += n) {
        float y[RUN], of_four[FOUR_ROWS];
        n = n_rows - begin < RUN ? n_rows - begin : RUN;
        const int64_t apart = (n + FOUR_ROWS - 1) / FOUR_ROWS;
        for (int64_t i = 0; i < apart; i++) {
            int64_t rows[FOUR_ROWS];
            for (int r = 0; r < FOUR_ROWS; r++) // beyond the last: that again
                rows[r] = begin + (r * apart + i < n ? r * apart + i : n - 1);
            four(args, rows, of_four);
            for (int r = 0; r < FOUR_ROWS; r++) y[rows[r] - begin] = of_four[r];
        }
        wt__products_store(p, first + begin, (int)n, t, 1, y);
    }
}

#endif
