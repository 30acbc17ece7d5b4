// Products of F32 by F32 whose blocks have slices of a tile's columns (matmul_slices.cu, and matmul_tiles.cu): how many
// rows a block has, and how many slices a tile. By shape alone, as if there were always 132 SMs.
#include "matmul_internal.h"

enum { STAGES = 4, STEP_BYTES = 128, THREADS = 256, OTHER_STEPS = 8 };
enum { SMS = 132, MOST_SLICED = 4 * SMS };        // blocks of matmul_slices that have slices, two an SM
enum { COUNTER_BYTES = 4096 };                    // of the tiles that have slices, in front of the sums
enum { TILES_STEP_BYTES = 64, LEAST_STEPS = 16 }; // of matmul_tiles: steps of a slice

_Static_assert(MOST_SLICED / 2 * sizeof(int) <= COUNTER_BYTES, "a tile of two slices and more has a counter");

bool wt__mm_slices_takes(const wt_mm_args *a)
{
    return a->m > WT_MATMUL_SKINNY && a->m <= WT_MM_TILE && !a->experts && !a->offsets;
}

/// Blocks that run together, most that there may be with slices, steps of a tile's columns, fewest of a slice.
typedef struct slots {
    int together, most, n_steps, least;
} slots;

/// The number of slices that is soonest done, where the beginning and the end of a slice take as long as OTHER_STEPS of
/// its steps.
static int slices_of(int64_t n_tiles, const slots *s)
{
    int best = 1;
    int64_t least = INT64_MAX;
    for (int n = 1; n <= s->n_steps && (n == 1 || (n * n_tiles <= s->most && s->n_steps >= n * s->least)); n++) {
        const int64_t rounds = (n_tiles * n + s->together - 1) / s->together,
                      cost = rounds * ((s->n_steps + n - 1) / n + OTHER_STEPS);
        if (cost >= least) continue;
        least = cost;
        best = n;
    }
    return best;
}

static int steps_of(const wt_mm_args *a, int bytes) { return (4 * a->columns + bytes - 1) / bytes; }

wt__mm_slices_shape wt__mm_slices_shape_of(wt_mm_args *a)
{
    wt__mm_slices_shape s = {.x_rows = a->m <= 32 ? 32 : a->m <= 64 ? 64 : 128, .stages = STAGES, .threads = THREADS};
    s.n_tiles = (int64_t)wt__mm_number_tiles(a, WT_MM_SLICE_ROWS / (a->gated ? 2 : 1)) * a->n_batches;
    s.n_slices = slices_of(s.n_tiles, &(slots){2 * SMS, MOST_SLICED, steps_of(a, STEP_BYTES), 1});
    const size_t step_bytes = (size_t)(STAGES * (WT_MM_SLICE_ROWS + s.x_rows) * STEP_BYTES);
    const size_t sum_bytes = sizeof(float) * (size_t)(s.x_rows * (WT_MM_SLICE_ROWS + 4));
    s.shared_bytes = step_bytes > sum_bytes ? step_bytes : sum_bytes;
    return s;
}

/// Of up to 128 rows where they keep most SMs busy (H200, 4096 x 4096).
int wt__mm_tiles_slices(wt_mm_args *a)
{
    if (a->m <= WT_MM_TILE / 2 || a->experts || a->offsets) return 1;
    const int64_t n_tiles =
        (int64_t)wt__mm_number_tiles(a, WT_MM_SLICED_ROWS / (a->gated ? 2 : 1)) * wt_mm_n_tiles(a, WT_MM_TILE);
    const int n = slices_of(n_tiles, &(slots){SMS, SMS, steps_of(a, TILES_STEP_BYTES), LEAST_STEPS});
    return a->m > WT_MM_TILE || 4 * n * n_tiles >= 3 * SMS ? n : 1;
}

size_t wt__mm_slices_partial_bytes(void)
{
    _Static_assert(SMS * WT_MM_SLICED_ROWS <= MOST_SLICED * WT_MM_SLICE_ROWS, "room for the slices of matmul_tiles");
    return COUNTER_BYTES + sizeof(float) * MOST_SLICED * WT_MM_TILE * WT_MM_SLICE_ROWS;
}

void wt__mm_slices_fill(const wt_mm_args *a, int n_slices, uintptr_t partial, wt_mm_slices_args *filled)
{
    *filled = (wt_mm_slices_args){.args = *a, .n_slices = n_slices};
    if (n_slices == 1) return;
    filled->arrived = (int *)partial;
    filled->partial = (float *)(partial + COUNTER_BYTES);
}
