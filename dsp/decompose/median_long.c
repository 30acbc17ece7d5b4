// A window slides along the kernel's longer side, over a strip of the image as wide as the shorter one. The strip's
// values are sorted once; then a window is a count at each rank, in a tree of partial sums (P. Fenwick, A new data
// structure for cumulative frequency tables, 1994), to which one column comes and from which one goes: some 3 log n
// steps an output for each value of the shorter side, however long the other is.

#include "median_long.h"
#include "median_run.h"

#include <stdlib.h>
#include <string.h>

// Along is the side that the window slides on.
struct wt__median_long {
    int along, across, kernel_along, kernel_across, n_rows; // n_rows: of the strip, at most
    int64_t along_apart, across_apart, rank;                // floats between neighbours; of the median
    int *rows, *weights;      // [n_rows] of the strip, and how often each is under the kernel; [across]
    int *columns;             // [along] how often each is under the first window
    uint64_t *cells, *spare;  // [n_rows][along] keys above places
    int *keys, *ranks, *tree; // of each rank; of each place; [cells + 1]
    int top;                  // the largest power of two up to the number of cells
};

wt_status wt__median_long_create(const wt_median_config *c, wt__median_long **median)
{
    const bool flat = c->kernel_columns >= c->kernel_rows;
    wt__median_long *m = *median = calloc(1, sizeof *m); // the median's destroy takes it back, also half built
    if (!m) return wt_fail(WT_ERR_NO_MEMORY, "median: handle");
    *m = (wt__median_long){.along = flat ? c->columns : c->rows,
                           .across = flat ? c->rows : c->columns,
                           .kernel_along = flat ? c->kernel_columns : c->kernel_rows,
                           .kernel_across = flat ? c->kernel_rows : c->kernel_columns,
                           .along_apart = flat ? 1 : c->columns,
                           .across_apart = flat ? c->columns : 1,
                           .rank = (int64_t)c->kernel_rows * c->kernel_columns / 2};
    m->n_rows = m->kernel_across < m->across ? m->kernel_across : m->across;
    const int64_t n = (int64_t)m->n_rows * m->along;
    if (n >= INT32_MAX)
        return wt_fail(WT_ERR_BAD_ARG, "median: %lld values under a strip of windows, want fewer than 2^31",
                       (long long)n);
    m->rows = malloc((size_t)m->n_rows * sizeof *m->rows);
    m->weights = malloc((size_t)m->across * sizeof *m->weights);
    m->columns = malloc((size_t)m->along * sizeof *m->columns);
    m->cells = malloc((size_t)n * sizeof *m->cells);
    m->spare = malloc((size_t)n * sizeof *m->spare);
    m->keys = malloc((size_t)n * sizeof *m->keys);
    m->ranks = malloc((size_t)n * sizeof *m->ranks);
    m->tree = malloc(((size_t)n + 1) * sizeof *m->tree);
    if (m->rows && m->weights && m->columns && m->cells && m->spare && m->keys && m->ranks && m->tree) return WT_OK;
    return wt_fail(WT_ERR_NO_MEMORY, "median: strip of %lld values", (long long)n);
}

void wt__median_long_destroy(wt__median_long *m)
{
    if (!m) return;
    void *const arrays[] = {m->rows, m->weights, m->columns, m->cells, m->spare, m->keys, m->ranks, m->tree};
    for (int i = 0; i < 8; i++) free(arrays[i]);
    free(m);
}

// By the upper halves: three passes of eleven bits.
static void sort_cells(wt__median_long *m, int n)
{
    enum { BITS = 11, BINS = 1 << BITS };
    for (int shift = 32; shift < 64; shift += BITS) {
        int begins[BINS + 1] = {0};
        for (int i = 0; i < n; i++) begins[(m->cells[i] >> shift) % BINS + 1]++;
        for (int b = 0; b < BINS; b++) begins[b + 1] += begins[b];
        for (int i = 0; i < n; i++) m->spare[begins[(m->cells[i] >> shift) % BINS]++] = m->cells[i];
        uint64_t *other = m->cells;
        m->cells = m->spare, m->spare = other;
    }
}

// How often each of n places is under a window of `count` that begins at `begin`.
static void count_places(int64_t begin, int count, int n, int *counts)
{
    memset(counts, 0, (size_t)n * sizeof *counts);
    for (int i = 0; i < count; i++) counts[wt__median_mirror(begin + i, n)]++;
}

// The strip of outputs number `row`, sorted; returns how many of the image's rows it has.
static int take_strip(wt__median_long *m, const float *in, int row)
{
    int n_rows = 0;
    count_places(row - m->kernel_across / 2, m->kernel_across, m->across, m->weights);
    for (int r = 0; r < m->across; r++)
        if (m->weights[r]) m->rows[n_rows++] = r;
    const int n = n_rows * m->along;
    for (int r = 0, i = 0; r < n_rows; r++)
        for (int x = 0; x < m->along; x++, i++) {
            const int key = wt__median_key(in[m->rows[r] * m->across_apart + x * m->along_apart]);
            m->cells[i] = (uint64_t)((uint32_t)key ^ 0x80000000u) << 32 | (uint32_t)i;
        }
    sort_cells(m, n);
    for (int i = 0; i < n; i++) {
        m->keys[i] = (int)((uint32_t)(m->cells[i] >> 32) ^ 0x80000000u);
        m->ranks[(uint32_t)m->cells[i]] = i;
    }
    memset(m->tree, 0, ((size_t)n + 1) * sizeof *m->tree);
    for (m->top = 1; 2 * (int64_t)m->top <= n;) m->top *= 2;
    return n_rows;
}

// Column x comes to the window so many times.
static void add_column(wt__median_long *m, int n_rows, int64_t x, int times)
{
    const int n = n_rows * m->along;
    for (int r = 0; r < n_rows; r++) {
        const int count = times * m->weights[m->rows[r]];
        for (int at = m->ranks[r * m->along + x] + 1; at <= n; at += at & -at) m->tree[at] += count;
    }
}

// The key of the window's median: the first rank up to which there are more than `rank` values.
static int find_median(const wt__median_long *m, int n)
{
    int64_t left = m->rank;
    int at = 0;
    for (int step = m->top; step; step /= 2)
        if (at + step <= n && m->tree[at + step] <= left) at += step, left -= m->tree[at];
    return m->keys[at];
}

WT_RT void wt__median_long_run(wt__median_long *m, const float *in, float *out)
{
    const int64_t before = m->kernel_along / 2, behind = m->kernel_along - before;
    for (int row = 0; row < m->across; row++) {
        const int n_rows = take_strip(m, in, row);
        count_places(-before, m->kernel_along, m->along, m->columns);
        for (int x = 0; x < m->along; x++)
            if (m->columns[x]) add_column(m, n_rows, x, m->columns[x]);
        for (int x = 0; x < m->along; x++) {
            out[row * m->across_apart + x * m->along_apart] = wt__median_value(find_median(m, n_rows * m->along));
            add_column(m, n_rows, wt__median_mirror(x - before, m->along), -1);
            add_column(m, n_rows, wt__median_mirror(x + behind, m->along), 1);
        }
    }
}
