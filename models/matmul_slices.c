// Products by matmul_slices.cu: how many rows its blocks have, and how many slices a tile's columns.
#include "matmul_internal.h"

enum { STAGES = 4, STEP_BYTES = 128, THREADS = 256 };
enum { SLOTS = 264, OTHER_STEPS = 8, MOST_SLICED = 2 * SLOTS }; // blocks: see slices_of
enum { COUNTER_BYTES = 4096 };                                  // of the tiles that have slices, in front of the sums

_Static_assert(MOST_SLICED / 2 * sizeof(int) <= COUNTER_BYTES, "a tile of two slices and more has a counter");

bool wt__mm_slices_takes(const wt_mm_args *a)
{
    return a->m > WT_MATMUL_SKINNY && a->m <= WT_MM_TILE && !a->experts && !a->offsets;
}

/// By shape alone, as if there were always 132 SMs with two blocks each: the number that is soonest done, where the
/// beginning and the end of a slice take as long as OTHER_STEPS of its steps.
static int slices_of(const wt_mm_args *a, int64_t n_tiles)
{
    const int n_steps = (4 * a->columns + STEP_BYTES - 1) / STEP_BYTES;
    int best = 1;
    int64_t least = INT64_MAX;
    for (int n = 1; n <= n_steps && (n == 1 || n * n_tiles <= MOST_SLICED); n++) {
        const int64_t cost = (n_tiles * n + SLOTS - 1) / SLOTS * ((n_steps + n - 1) / n + OTHER_STEPS);
        if (cost >= least) continue;
        least = cost;
        best = n;
    }
    return best;
}

wt__mm_slices_shape wt__mm_slices_shape_of(wt_mm_args *a)
{
    wt__mm_slices_shape s = {.x_rows = a->m <= 32 ? 32 : a->m <= 64 ? 64 : 128, .stages = STAGES, .threads = THREADS};
    s.n_tiles = (int64_t)wt__mm_number_tiles(a, WT_MM_SLICE_ROWS / (a->gated ? 2 : 1)) * a->n_batches;
    s.n_slices = slices_of(a, s.n_tiles);
    const size_t step_bytes = (size_t)(STAGES * (WT_MM_SLICE_ROWS + s.x_rows) * STEP_BYTES);
    const size_t sum_bytes = sizeof(float) * (size_t)(s.x_rows * (WT_MM_SLICE_ROWS + 4));
    s.shared_bytes = step_bytes > sum_bytes ? step_bytes : sum_bytes;
    return s;
}

size_t wt__mm_slices_partial_bytes(void)
{
    return COUNTER_BYTES + sizeof(float) * MOST_SLICED * WT_MM_TILE * WT_MM_SLICE_ROWS;
}

void wt__mm_slices_fill(const wt_mm_args *a, int n_slices, uintptr_t partial, wt_mm_slices_args *filled)
{
    *filled = (wt_mm_slices_args){.args = *a, .n_slices = n_slices};
    if (n_slices == 1) return;
    filled->arrived = (int *)partial;
    filled->partial = (float *)(partial + COUNTER_BYTES);
}
