// Text of each level (simd_levels.inc): sums of products for YIN. Eight vectors of lags at a time slide along the
// samples; each vector that is loaded is multiplied with all the samples that meet it. The order of a lag's sum is that
// of eight doubles a vector at each level: samples i, i + 8, ... of 64, then i + 1, i + 9, ...
#ifndef WT_LEVEL
#    define WT_LEVEL_TEXT "yin_level.h"
#    include <warptone/simd_levels.inc>
#else

#    define VEC   WT_LEVEL(lags)
#    define LANES (WT_LEVEL_BYTES / 8)

typedef double VEC __attribute__((vector_size(WT_LEVEL_BYTES), aligned(8), may_alias));

// acc[k] += sum over n < 64 of x[n] y[n + k]
WT_INLINE void WT_LEVEL(add_group)(const double *x, const double *y, VEC acc[SUMS])
{
    for (int i = 0; i < STRIDE; i++) {
#    pragma GCC unroll 64
        for (int m = 0; m < SUMS + (GROUP - STRIDE) / LANES; m++) {
            const VEC v = *(const VEC *)(y + i + LANES * m);
#    pragma GCC unroll 8
            for (int u = 0; u < GROUP / STRIDE; u++) {
                const int j = m - u * (STRIDE / LANES);
                if (j >= 0 && j < SUMS) acc[j] += x[i + STRIDE * u] * v;
            }
        }
    }
}

// sums[k] = sum over n < count of x[n] x[n + k] for SUMS * LANES lags from `lag` on.
WT_INLINE void WT_LEVEL(correlate_part)(const double *x, int count, int lag, double *sums)
{
    VEC acc[SUMS] = {{0}};
    int n = 0;
    for (; n + GROUP <= count; n += GROUP) WT_LEVEL(add_group)(x + n, x + n + lag, acc);
    for (; n < count; n++) {
#    pragma GCC unroll 8
        for (int j = 0; j < SUMS; j++) acc[j] += x[n] * *(const VEC *)(x + n + lag + LANES * j);
    }
#    pragma GCC unroll 8
    for (int j = 0; j < SUMS; j++) *(VEC *)(sums + LANES * j) = acc[j];
}

static void WT_LEVEL(correlate_tile)(const double *x, int count, int lag, double *sums)
{
    for (int part = 0; part < TILE; part += SUMS * LANES) WT_LEVEL(correlate_part)(x, count, lag + part, sums + part);
}

#    undef VEC
#    undef LANES

#endif
