// Text of each level (simd_levels.inc): a sweep over the columns of a problem.
#ifndef WT_LEVEL
#    define WT_LEVEL_TEXT "nnls_level.h"
#    include <warptone/simd_levels.inc>
#else

#    define VEC   WT_LEVEL(sides)
#    define MASK  WT_LEVEL(sides_mask)
#    define PARTS (LANES * 8 / WT_LEVEL_BYTES)

typedef double VEC __attribute__((vector_size(WT_LEVEL_BYTES), aligned(8), may_alias));
typedef int64_t MASK __attribute__((vector_size(WT_LEVEL_BYTES)));

// One sweep; returns by how much the residual moved at most.
static double WT_LEVEL(sweep)(const wt__nnls_problem *p, double *x, double *residual)
{
    VEC most[PARTS] = {{0}}, *rest = (VEC *)residual;
    for (int j = 0; j < p->n_columns; j++) {
        if (!(p->squares[j] > 0)) continue;
        const double *column = p->a + (size_t)j * (size_t)p->n_rows, size = sqrt(p->squares[j]);
        VEC slope[PARTS] = {{0}}, step[PARTS], *now = (VEC *)x + PARTS * j;
        for (int i = p->begins[j]; i < p->ends[j]; i++)
            for (int k = 0; k < PARTS; k++) slope[k] += column[i] * rest[PARTS * i + k];
        for (int k = 0; k < PARTS; k++) {
            VEC next = now[k] + slope[k] / p->squares[j];
            next = (VEC)((MASK)next & (next > 0));
            step[k] = next - now[k];
            now[k] = next;
        }
        for (int i = p->begins[j]; i < p->ends[j]; i++)
            for (int k = 0; k < PARTS; k++) rest[PARTS * i + k] -= column[i] * step[k];
        for (int k = 0; k < PARTS; k++) {
            const VEC moved = size * (VEC)((MASK)step[k] & INT64_MAX);
            const MASK more = moved > most[k];
            most[k] = (VEC)(((MASK)moved & more) | ((MASK)most[k] & ~more));
        }
    }
    double moved[LANES], all = 0;
    memcpy(moved, most, sizeof moved);
    for (int k = 0; k < LANES; k++) all = fmax(all, moved[k]);
    return all;
}

#    undef VEC
#    undef MASK
#    undef PARTS
#endif
