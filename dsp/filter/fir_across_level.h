// Text of each level (simd_levels.inc): a short filter across many outputs, whose sums stay in registers.
#ifndef WT_LEVEL
#    define WT_LEVEL_TEXT "fir_across_level.h"
#    include <warptone/simd_levels.inc>
#else

#    define VEC  WT_LEVEL(across)
#    define F32S (WT_LEVEL_BYTES / 4)

typedef float VEC __attribute__((vector_size(WT_LEVEL_BYTES), aligned(4), may_alias));

// 16 outputs, or 32.
WT_INLINE void WT_LEVEL(across_tile)(const float *taps, int n_taps, const float *x, int step, const int n, float *y)
{
    VEC sum[32 / F32S];
    for (int v = 0; v < n / F32S; v++) sum[v] = *(const VEC *)(y + F32S * v);
    for (int k = 0; k < n_taps; k++, x += step)
        for (int v = 0; v < n / F32S; v++) sum[v] += taps[k] * *(const VEC *)(x + F32S * v);
    for (int v = 0; v < n / F32S; v++) *(VEC *)(y + F32S * v) = sum[v];
}

// y[i] += sum over k of taps[k] x[i + step k], i < n and up to 15 further on.
static void WT_LEVEL(fir_across)(const float *taps, int n_taps, const float *x, int step, int n, float *y)
{
    int at = 0;
    for (; n - at > 16; at += 32) WT_LEVEL(across_tile)(taps, n_taps, x + at, step, 32, y + at);
    if (at < n) WT_LEVEL(across_tile)(taps, n_taps, x + at, step, 16, y + at);
}

#    undef VEC
#    undef F32S
#endif
