// Text of each level (simd_levels.inc): forgetful selection in vectors of neighbouring lines.
#ifndef WT_LEVEL
#    define WT_LEVEL_TEXT "median_level.h"
#    include <warptone/simd_levels.inc>
#else

#    define LANES (WT_LEVEL_BYTES / 4)
#    define ROW   WT_LEVEL(row)
#    define PLACE WT_LEVEL(place)
#    define KEPT  WT_LEVEL(kept)

// One value of every lane.
typedef int ROW __attribute__((vector_size(WT_LEVEL_BYTES)));
typedef int PLACE __attribute__((vector_size(WT_LEVEL_BYTES), aligned(4), may_alias));

typedef struct KEPT {
    int *key;             // [m][LANES], ascending
    int m, rank, to_come; // rank: of the answer among the kept and those to come
} KEPT;

// By name: GCC makes a comparison and a choice of them else, three instructions for one.
WT_INLINE ROW WT_LEVEL(smaller)(ROW a, ROW b)
{
#    if WT_LEVEL_BYTES == 64
    return (ROW)_mm512_min_epi32((__m512i)a, (__m512i)b);
#    elif WT_LEVEL_BYTES == 32
    return (ROW)_mm256_min_epi32((__m256i)a, (__m256i)b);
#    else
    const ROW less = a < b;
    return (a & less) | (b & ~less);
#    endif
}

WT_INLINE ROW WT_LEVEL(larger)(ROW a, ROW b)
{
#    if WT_LEVEL_BYTES == 64
    return (ROW)_mm512_max_epi32((__m512i)a, (__m512i)b);
#    elif WT_LEVEL_BYTES == 32
    return (ROW)_mm256_max_epi32((__m256i)a, (__m256i)b);
#    else
    const ROW less = a < b;
    return (b & less) | (a & ~less);
#    endif
}

// `old_keys`: those so far, s->key itself or another's.
WT_INLINE void WT_LEVEL(insert)(KEPT *s, const int *old_keys, const int *from)
{
    const PLACE *old = (const PLACE *)old_keys;
    PLACE *key = (PLACE *)s->key;
    const int m = s->m;
    const ROW y = *(const PLACE *)from;
    s->to_come--;
    const int drop_low = s->rank > s->to_come, drop_high = m > s->rank;
    if (drop_low) {
        ROW below = old[0];
        for (int i = 0; i < m - 1; i++) {
            const ROW above = old[i + 1];
            key[i] = WT_LEVEL(smaller)(WT_LEVEL(larger)(below, y), above);
            below = above;
        }
        if (!drop_high) key[m - 1] = WT_LEVEL(larger)(below, y);
    } else {
        ROW rest = y;
        for (int i = 0; i < m; i++) {
            const ROW here = old[i];
            key[i] = WT_LEVEL(smaller)(here, rest);
            rest = WT_LEVEL(larger)(here, rest);
        }
        if (!drop_high) key[m] = rest;
    }
    s->m += 1 - drop_low - drop_high;
    s->rank -= drop_low;
}

WT_INLINE void WT_LEVEL(run)(const int *x, ptrdiff_t stride, int k, int *out, ptrdiff_t out_stride, int *scratch)
{
    // a short kernel shares nothing between 16 outputs: they go in smaller groups
    int group = WT__MEDIAN_RUN;
    while (group > 1 && k - group + 1 < 1) group /= 2;
    KEPT level[6];
    for (int l = 0; l < 6; l++) level[l].key = scratch + l * LANES * (k + 2);
    for (int begin = 0; begin < WT__MEDIAN_RUN; begin++, x += stride, out += out_stride) {
        const int at = begin & (group - 1);
        int depth = 0;
        if (at == 0) {
            level[0].m = 0, level[0].rank = k / 2, level[0].to_come = k;
            for (int i = group - 1; i < k; i++) WT_LEVEL(insert)(&level[0], level[0].key, x + i * stride);
        }
        for (int size = group / 2; size >= 1; size /= 2) {
            KEPT *node = &level[++depth];
            if (at & (size - 1)) continue;
            const KEPT *above = &level[depth - 1];
            node->m = above->m, node->rank = above->rank, node->to_come = above->to_come;
            const int first = at & size ? k - size : size - 1; // the right half adds behind, the left before
            for (int i = 0; i < size; i++) WT_LEVEL(insert)(node, i ? node->key : above->key, x + (first + i) * stride);
        }
        memcpy(out, level[depth].key, sizeof(ROW));
    }
}

static void WT_LEVEL(run_lines)(const int *x, ptrdiff_t stride, int k, int *out, ptrdiff_t out_stride, int *scratch)
{
    for (int line = 0; line < WT__MEDIAN_LANES; line += LANES) {
        if (k == 31)
            WT_LEVEL(run)(x + line, stride, 31, out + line, out_stride, scratch);
        else
            WT_LEVEL(run)(x + line, stride, k, out + line, out_stride, scratch);
    }
}

static void WT_LEVEL(run_box)(const int *x, ptrdiff_t stride, int rows, int columns, int *out, int *scratch)
{
    for (int line = 0; line < WT__MEDIAN_LANES; line += LANES) {
        KEPT all = {.key = scratch, .rank = rows * columns / 2, .to_come = rows * columns};
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < columns; c++) WT_LEVEL(insert)(&all, all.key, x + r * stride + c + line);
        memcpy(out + line, all.key, sizeof(ROW));
    }
}

#    undef LANES
#    undef ROW
#    undef PLACE
#    undef KEPT

#endif
