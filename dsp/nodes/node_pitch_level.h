// Text of each level (simd_levels.inc): the pitch node's difference function.
#ifndef WT_LEVEL
#    define WT_LEVEL_TEXT "node_pitch_level.h"
#    include <warptone/simd_levels.inc>
#else

#    define VEC  WT_LEVEL(lags)
#    define F32S (WT_LEVEL_BYTES / 4)
#    define SUMS (WT_LEVEL_BYTES == 64 ? 4 : 8)

typedef float VEC __attribute__((vector_size(WT_LEVEL_BYTES), aligned(4), may_alias));

// d of 64 neighbouring lags.
static void WT_LEVEL(differences)(const float *x, int lag, int width, float *d)
{
    for (int first = 0; first < 64; first += SUMS * F32S) {
        VEC sum[SUMS] = {{0}};
        for (int n = 0; n < width; n++) {
            const VEC here = x[n] - (VEC){0};
#    pragma GCC unroll 8
            for (int i = 0; i < SUMS; i++) {
                const VEC apart = *(const VEC *)(x + lag + first + n + F32S * i) - here;
                sum[i] += apart * apart;
            }
        }
        memcpy(d + first, sum, sizeof sum);
    }
}

#    undef VEC
#    undef F32S
#    undef SUMS
#endif
