// Forgetful selection: of the values seen so far only those are kept that may still become the median, given how many
// are to come. With every value above the half, the smallest and the largest kept one are forgotten, and inserting is
//
//     kept'[i] = min(max(kept[i], y), kept[i + 1])
//
// Sixteen neighbouring outputs share most of their windows: the common part is selected from once, then its halves,
// quarters and so on each add what they have and their neighbours have not. 56 comparisons an output for k = 31, all
// across lanes, and no branch depends on data. (A sorted list that slides, one out and one in, takes 124.)

#include "median_run.h"

typedef struct kept {
    int *key; // [m][lanes], ascending
    int m, rank, to_come; // rank: of the answer among the kept and those to come
} kept;

// One value of every lane.
typedef wt_i32x16 row;

WT_INLINE row get(const int *from)
{
    row r;
    memcpy(&r, from, sizeof r);
    return r;
}

WT_INLINE void put(int *to, row r)
{
    memcpy(to, &r, sizeof r);
}

WT_INLINE row smaller(row a, row b)
{
    const row less = a < b;
    return (a & less) | (b & ~less);
}

WT_INLINE row larger(row a, row b)
{
    const row less = a < b;
    return (b & less) | (a & ~less);
}

WT_INLINE void insert(kept *s, const int *from)
{
    enum { L = WT__MEDIAN_LANES };
    int *key = s->key;
    const int m = s->m;
    const row y = get(from);
    s->to_come--;
    const int drop_low = s->rank > s->to_come, drop_high = m > s->rank;
    if (drop_low) {
        row below = get(key);
        for (int i = 0; i < m - 1; i++) {
            const row above = get(key + (i + 1) * L);
            put(key + i * L, smaller(larger(below, y), above));
            below = above;
        }
        if (!drop_high) put(key + (m - 1) * L, larger(below, y));
    } else {
        row rest = y;
        for (int i = 0; i < m; i++) {
            const row old = get(key + i * L);
            put(key + i * L, smaller(old, rest));
            rest = larger(old, rest);
        }
        if (!drop_high) put(key + m * L, rest);
    }
    s->m += 1 - drop_low - drop_high;
    s->rank -= drop_low;
}

WT_INLINE void run(const int *x, ptrdiff_t stride, int k, int *out, ptrdiff_t out_stride, int *scratch)
{
    // a short kernel shares nothing between 16 outputs: they go in smaller groups
    int group = WT__MEDIAN_RUN;
    while (group > 1 && k - group + 1 < 1) group /= 2;
    kept level[6];
    for (int l = 0; l < 6; l++) level[l].key = scratch + l * WT__MEDIAN_LANES * (k + 2);
    for (int begin = 0; begin < WT__MEDIAN_RUN; begin++, x += stride, out += out_stride) {
        const int at = begin % group;
        int depth = 0;
        if (at == 0) {
            level[0].m = 0, level[0].rank = k / 2, level[0].to_come = k;
            for (int i = group - 1; i < k; i++) insert(&level[0], x + i * stride);
        }
        for (int size = group / 2; size >= 1; size /= 2) {
            kept *node = &level[++depth];
            if (at % size) continue;
            int *keys = node->key;
            *node = level[depth - 1];
            node->key = keys;
            memcpy(keys, level[depth - 1].key, sizeof(int) * (size_t)(node->m * WT__MEDIAN_LANES));
            const int first = at % (2 * size) ? k - size : size - 1; // the right half adds behind, the left before
            for (int i = 0; i < size; i++) insert(node, x + (first + i) * stride);
        }
        memcpy(out, level[depth].key, sizeof(int) * WT__MEDIAN_LANES);
    }
}

WT_CLONES void wt__median_run(const int *x, ptrdiff_t stride, int k, int *out, ptrdiff_t out_stride, int *scratch)
{
    if (k == 31)
        run(x, stride, 31, out, out_stride, scratch);
    else
        run(x, stride, k, out, out_stride, scratch);
}

WT_CLONES void wt__median_box(const int *x, ptrdiff_t stride, int rows, int columns, int *out, int *scratch)
{
    kept all = {.key = scratch, .rank = rows * columns / 2, .to_come = rows * columns};
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) insert(&all, x + r * stride + c);
    memcpy(out, all.key, sizeof(int) * WT__MEDIAN_LANES);
}
