// Text of each level (simd_levels.inc): what the ends of an inverse constant-Q transform add.
#ifndef WT_LEVEL
#    define WT_LEVEL_TEXT "icqt_ends_level.h"
#    include <warptone/simd_levels.inc>
#else

#    define VEC   WT_LEVEL(outputs)
#    define PARTS (WT_ICQT_END_LANES * 4 / WT_LEVEL_BYTES)

typedef float VEC __attribute__((vector_size(WT_LEVEL_BYTES), aligned(4), may_alias));

// The outputs of up to AT_ONCE frames, whose surroundings begin at x and each one further: summed first, since they are
// small beside what is there.
static void WT_LEVEL(add_frames)(const float *rows, int level, const float *x, int n_frames, float *out)
{
    const int width = 1 << level, stride = wt__icqt_end_stride(level);
    for (int begin = 0; begin < stride; begin += WT_ICQT_END_LANES) {
        VEC sum[AT_ONCE][PARTS] = {{{0}}};
        float sums[AT_ONCE][WT_ICQT_END_LANES];
        for (int t = 0; t < TAPS; t++)
            for (int i = 0; i < PARTS; i++) {
                const VEC row = ((const VEC *)(rows + t * stride + begin))[i];
                for (int f = 0; f < AT_ONCE; f++) sum[f][i] += row * x[t + f];
            }
        memcpy(sums, sum, sizeof sums);
        for (int f = 0; f < n_frames; f++)
            for (int p = 0; p < WT_ICQT_END_LANES && begin + p < width; p++) out[f * width + begin + p] += sums[f][p];
    }
}

#    undef VEC
#    undef PARTS
#endif
