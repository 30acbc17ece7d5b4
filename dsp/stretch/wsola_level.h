// Text of each level (simd_levels.inc): products of what is wanted with neighbouring places.
#ifndef WT_LEVEL
#    define WT_LEVEL_TEXT "wsola_level.h"
#    include <warptone/simd_levels.inc>
#else

#    define VEC  WT_LEVEL(lanes)
#    define F64S (WT_LEVEL_BYTES / 8)

typedef double VEC __attribute__((vector_size(WT_LEVEL_BYTES), aligned(8), may_alias));

// The lanes of two vectors of the products with AT_ONCE neighbouring places, `whole` in all: eight sums in registers.
WT_INLINE void WT_LEVEL(compare_lanes)(const double *x, const double *y, int whole, double (*lanes)[LANES])
{
    VEC part[AT_ONCE][2] = {{{0}}};
    for (int n = 0; n < whole; n += LANES) {
        const VEC a = *(const VEC *)(x + n), b = *(const VEC *)(x + n + F64S);
        for (int k = 0; k < AT_ONCE; k++) {
            part[k][0] += a * *(const VEC *)(y + n + k);
            part[k][1] += b * *(const VEC *)(y + n + k + F64S);
        }
    }
    for (int k = 0; k < AT_ONCE; k++) memcpy(lanes[k], part[k], sizeof part[k]);
}

// Products with AT_ONCE neighbouring places of y. They are exact; the order of the sums is part of the result: a GPU
// has the same.
static void WT_LEVEL(compare)(const double *x, const double *y, int n, double *sums)
{
    double lanes[AT_ONCE][LANES];
    const int whole = n / LANES * LANES;
    for (int lane = 0; lane < LANES; lane += 2 * F64S)
        WT_LEVEL(compare_lanes)(x + lane, y + lane, whole, (double(*)[LANES])(lanes[0] + lane));
    for (int k = 0; k < AT_ONCE; k++) {
        double sum = 0;
        for (int i = whole; i < n; i++) sum += x[i] * y[i + k];
        for (int j = 0; j < LANES; j++) sum += lanes[k][j];
        sums[k] = sum;
    }
}

#    undef VEC
#    undef F64S
#endif
