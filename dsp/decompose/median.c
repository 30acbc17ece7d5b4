// The image is copied with its mirrored margin as keys; then lanes run along the columns. A kernel of one column slides
// down sixteen rows at a time, others select afresh for every row of outputs. More than WT__MEDIAN_MAX_K values go by
// sorted strips (median_long.c).

#include <warptone/median.h>
#include "median_long.h"
#include "median_run.h"
#include "softmask.h"

#include <stdlib.h>

struct wt_median {
    wt_median_config config;
    int width, height; // of the margined image; both cover whole runs of lanes and rows
    int *image;        // [height][width]
    int *scratch;
    int *run;                  // [16][16]
    wt__median_long *long_one; // instead of these
};

wt_status wt__median_resolve(wt_median_config *c)
{
    if (c->rows < 1 || c->columns < 1 || c->rows > 1 << 24 || c->columns > 1 << 24)
        return wt_fail(WT_ERR_BAD_ARG, "median: image of %d x %d, want 1..16777216 each", c->rows, c->columns);
    if (!c->kernel_rows) c->kernel_rows = 1;
    if (!c->kernel_columns) c->kernel_columns = 1;
    if (c->kernel_rows < 1 || c->kernel_columns < 1 ||
        (int64_t)c->kernel_rows * c->kernel_columns > WT_MEDIAN_MAX_KERNEL)
        return wt_fail(WT_ERR_BAD_ARG, "median: kernel %d x %d, want 1..%d values", c->kernel_rows, c->kernel_columns,
                       WT_MEDIAN_MAX_KERNEL);
    if (!c->lines) c->lines = 1;
    if (c->lines < 1) return wt_fail(WT_ERR_BAD_ARG, "median: %d lines, want 1 or more", c->lines);
    return WT_OK;
}

wt_status wt_median_create(const wt_median_config *config, wt_median **median)
{
    *median = NULL;
    wt_median_config c = *config;
    wt_status status = wt__median_resolve(&c);
    if (status) return status;
    wt_median *m = calloc(1, sizeof *m);
    if (!m) return wt_fail(WT_ERR_NO_MEMORY, "median: handle");
    m->config = c;
    if (c.kernel_rows * c.kernel_columns > WT__MEDIAN_MAX_K) {
        status = wt__median_long_create(&c, &m->long_one);
        if (status)
            wt_median_destroy(m);
        else
            *median = m;
        return status;
    }
    m->width = (c.columns + WT__MEDIAN_LANES - 1) / WT__MEDIAN_LANES * WT__MEDIAN_LANES + c.kernel_columns - 1;
    m->height = (c.rows + WT__MEDIAN_RUN - 1) / WT__MEDIAN_RUN * WT__MEDIAN_RUN + c.kernel_rows - 1;
    m->image = calloc((size_t)m->width * (size_t)m->height, sizeof(int));
    m->scratch = calloc(wt__median_scratch(c.kernel_rows * c.kernel_columns), sizeof(int));
    m->run = calloc(WT__MEDIAN_LANES * WT__MEDIAN_RUN, sizeof(int));
    if (!m->image || !m->scratch || !m->run) {
        wt_median_destroy(m);
        return wt_fail(WT_ERR_NO_MEMORY, "median: image of %d x %d", c.rows, c.columns);
    }
    *median = m;
    return WT_OK;
}

void wt_median_destroy(wt_median *median)
{
    if (!median) return;
    wt__median_long_destroy(median->long_one);
    free(median->image);
    free(median->scratch);
    free(median->run);
    free(median);
}

// Rows and columns behind the mirrored margin only fill up lanes; what they hold is never given out.
WT_RT static void fill_image(wt_median *m, const float *in)
{
    const wt_median_config *c = &m->config;
    for (int r = 0; r < m->height; r++) {
        const float *from = in + wt__median_mirror(r - c->kernel_rows / 2, c->rows) * c->columns;
        int *to = m->image + (size_t)r * (size_t)m->width;
        for (int x = 0; x < m->width; x++)
            to[x] = wt__median_key(from[wt__median_mirror(x - c->kernel_columns / 2, c->columns)]);
    }
}

WT_RT static void give_rows(const wt_median *m, int row, int n_rows, int column, float *out)
{
    const wt_median_config *c = &m->config;
    const int n = c->columns - column < WT__MEDIAN_LANES ? c->columns - column : WT__MEDIAN_LANES;
    for (int r = 0; r < n_rows && row + r < c->rows; r++)
        for (int l = 0; l < n; l++)
            out[(size_t)(row + r) * (size_t)c->columns + (size_t)(column + l)] =
                wt__median_value(m->run[r * WT__MEDIAN_LANES + l]);
}

WT_RT void wt_median_run(wt_median *median, const float *in, float *out)
{
    const wt_median_config *c = &median->config;
    const size_t area = (size_t)c->rows * (size_t)c->columns;
    const int step = c->kernel_columns == 1 ? WT__MEDIAN_RUN : 1;
    for (int line = 0; line < c->lines; line++, in += area, out += area) {
        if (median->long_one) {
            wt__median_long_run(median->long_one, in, out);
            continue;
        }
        fill_image(median, in);
        for (int row = 0; row < c->rows; row += step)
            for (int column = 0; column < c->columns; column += WT__MEDIAN_LANES) {
                const int *x = median->image + (size_t)row * (size_t)median->width + column;
                if (step > 1)
                    wt__median_run(x, median->width, c->kernel_rows, median->run, WT__MEDIAN_LANES, median->scratch);
                else
                    wt__median_box(x, median->width, c->kernel_rows, c->kernel_columns, median->run, median->scratch);
                give_rows(median, row, step, column, out);
            }
    }
}

WT_CLONES static void mask(const float *x, const float *reference, size_t n, float power, float silent, float *out)
{
    for (size_t i = 0; i < n; i++) out[i] = wt__softmask(x[i], reference[i], power, silent);
}

wt_status wt_softmask(const float *x, const float *reference, size_t n, float power, bool split_zeros, float *out)
{
    if (!(power > 0)) return wt_fail(WT_ERR_BAD_ARG, "softmask: power %g, want above 0", (double)power);
    mask(x, reference, n, power, split_zeros ? 0.5f : 0.0f, out);
    return WT_OK;
}
