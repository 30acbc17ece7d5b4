// Text of each level (simd_levels.inc): WT_FIR_RUN outputs, in turns of eight sums in registers.
#ifndef WT_LEVEL
#    define WT_LEVEL_TEXT "fir_level.h"
#    include <warptone/simd_levels.inc>
#else

#    define VEC  WT_LEVEL(outputs)
#    define F32S (WT_LEVEL_BYTES / 4)

typedef float VEC __attribute__((vector_size(WT_LEVEL_BYTES), aligned(4), may_alias));

static void WT_LEVEL(fir_run)(const float *x, const float *h, int n_taps, float *y)
{
    for (int begin = 0; begin < WT_FIR_RUN; begin += 4 * F32S, x += 4 * F32S, y += 4 * F32S) {
        VEC even[4] = {{0}}, odd[4] = {{0}};
        for (int k = 0; k + 1 < n_taps; k += 2)
            for (int v = 0; v < 4; v++) {
                even[v] += h[k] * *(const VEC *)(x + F32S * v - k);
                odd[v] += h[k + 1] * *(const VEC *)(x + F32S * v - k - 1);
            }
        for (int v = 0; v < 4; v++) {
            if (n_taps & 1) even[v] += h[n_taps - 1] * *(const VEC *)(x + F32S * v - n_taps + 1);
            *(VEC *)(y + F32S * v) = even[v] + odd[v];
        }
    }
}

#    undef VEC
#    undef F32S
#endif
