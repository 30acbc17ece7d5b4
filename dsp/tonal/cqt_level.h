// Text of each level (simd_levels.inc): the filters of one octave over sixteen frames of its spectra.
#ifndef WT_LEVEL
#    define WT_LEVEL_TEXT "cqt_level.h"
#    include <warptone/simd_levels.inc>
#else

#    define VEC    WT_LEVEL(frames)
#    define FLOATS (WT_LEVEL_BYTES / 4)
#    define PARTS  (2 * FRAMES / FLOATS)

typedef float VEC __attribute__((vector_size(WT_LEVEL_BYTES), aligned(4), may_alias));

// rows[r][f] = sum over i of value[i] spectrum[bin[i]][f]: the sums with the filters' real parts and with their
// imaginary ones in registers, then a + i b.
static void WT_LEVEL(project)(const wt__cqt_part *p, const float *spectrum, float *rows)
{
    for (int r = 0; r < p->n_rows; r++, rows += 2 * FRAMES) {
        VEC by_re[PARTS] = {{0}}, by_im[PARTS] = {{0}};
        for (int i = p->begin[r]; i < p->begin[r + 1]; i++)
            for (int h = 0; h < PARTS; h++) {
                const VEC x = *(const VEC *)(spectrum + (size_t)p->bin[i] * 2 * FRAMES + h * FLOATS);
                by_re[h] += p->value[2 * i] * x, by_im[h] += p->value[2 * i + 1] * x;
            }
        float re[2 * FRAMES], im[2 * FRAMES];
        memcpy(re, by_re, sizeof re), memcpy(im, by_im, sizeof im);
        for (int f = 0; f < 2 * FRAMES; f += 2) {
            rows[f] = re[f] - im[f + 1];
            rows[f + 1] = re[f + 1] + im[f];
        }
    }
}

#    undef VEC
#    undef FLOATS
#    undef PARTS
#endif
