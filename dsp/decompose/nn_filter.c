#include "nn_filter_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct neighbour {
    double distance;
    int frame;
} neighbour;

static int nearer(const void *a, const void *b)
{
    const neighbour *x = a, *y = b;
    if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
    return (x->frame > y->frame) - (x->frame < y->frame);
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static double distance_of(const wt_nn_filter_config *c, const float *in, int a, int b)
{
    double square = 0, dot = 0, of_a = 0, of_b = 0;
    for (int r = 0; r < c->rows; r++, in += c->columns) {
        const double x = in[a], y = in[b];
        square += (x - y) * (x - y), dot += x * y, of_a += x * x, of_b += y * y;
    }
    if (!c->cosine) return square;
    return 1 - (of_a > 0 && of_b > 0 ? dot / sqrt(of_a * of_b) : 0);
}

// linked[j] of frame t, [columns].
static void link_frame(const wt_nn_filter_config *c, const float *in, int t, neighbour *all, unsigned char *linked)
{
    int n = 0, kept = 0;
    for (int j = 0; j < c->columns; j++)
        if (j != t) all[n++] = (neighbour){distance_of(c, in, t, j), j};
    qsort(all, (size_t)n, sizeof *all, nearer);
    for (int i = 0; i < n && i < c->k + 2 * c->width; i++) linked[all[i].frame] = abs(all[i].frame - t) >= c->width;
    for (int j = 0; j < c->columns; j++)
        if (linked[j] && ++kept > c->k) linked[j] = 0;
}

static float gather(const wt_nn_filter_config *c, const float *row, int t, const unsigned char *linked, float *values)
{
    int n = 0;
    double sum = 0;
    for (int j = 0; j < c->columns; j++) {
        if (!linked[(size_t)t * (size_t)c->columns + (size_t)j]) continue;
        if (c->symmetric && !linked[(size_t)j * (size_t)c->columns + (size_t)t]) continue;
        values[n++] = row[j];
        sum += row[j];
    }
    if (!n) return row[t];
    if (!c->median) return (float)(sum / n);
    qsort(values, (size_t)n, sizeof *values, ascending);
    return n % 2 ? values[n / 2] : 0.5f * (values[n / 2 - 1] + values[n / 2]);
}

wt_status wt__nn_filter_resolve(wt_nn_filter_config *c)
{
    if (!c->width) c->width = 1;
    if (c->rows < 1 || c->columns < 1)
        return wt_fail(WT_ERR_BAD_ARG, "nn_filter: %d x %d, want 1 or more rows and columns", c->rows, c->columns);
    if (c->columns > 32768) return wt_fail(WT_ERR_LENGTH, "nn_filter: %d frames, want 32768 at most", c->columns);
    if (c->width < 1 || c->width > 32768)
        return wt_fail(WT_ERR_BAD_ARG, "nn_filter: width %d, want 1..32768", c->width);
    if (c->width >= (c->columns - 1) / 2)
        return wt_fail(WT_ERR_LENGTH, "nn_filter: %d frames, want %d or more with a width of %d", c->columns,
                       2 * c->width + 3, c->width);
    if (!c->k) c->k = 2 * (int)ceil(sqrt(c->columns - 2 * c->width + 1));
    if (c->k < 1) return wt_fail(WT_ERR_BAD_ARG, "nn_filter: k %d, want 1 or more", c->k);
    if (c->k > c->columns) c->k = c->columns; // more there are not
    return WT_OK;
}

wt_status wt__nn_filter_take(const wt_nn_filter_config *config, wt__nn_filter_scratch *scratch)
{
    const size_t n = (size_t)config->columns;
    scratch->neighbours = malloc(n * sizeof(neighbour));
    scratch->linked = malloc(n * n);
    scratch->values = malloc(n * sizeof *scratch->values);
    if (scratch->neighbours && scratch->linked && scratch->values) return WT_OK;
    return wt_fail(WT_ERR_NO_MEMORY, "nn_filter: links of %d frames", config->columns);
}

void wt__nn_filter_free(wt__nn_filter_scratch *scratch)
{
    free(scratch->neighbours);
    free(scratch->linked);
    free(scratch->values);
}

void wt__nn_filter_run(const wt_nn_filter_config *c, const float *in, float *out, wt__nn_filter_scratch *s)
{
    const size_t n = (size_t)c->columns;
    memset(s->linked, 0, n * n);
    for (int t = 0; t < c->columns; t++) link_frame(c, in, t, s->neighbours, s->linked + (size_t)t * n);
    for (int r = 0; r < c->rows; r++)
        for (int t = 0; t < c->columns; t++)
            out[(size_t)r * n + (size_t)t] = gather(c, in + (size_t)r * n, t, s->linked, s->values);
}

wt_status wt_nn_filter(const wt_nn_filter_config *config, const float *in, float *out)
{
    wt_nn_filter_config c = *config;
    wt__nn_filter_scratch scratch = {0};
    wt_status status = wt__nn_filter_resolve(&c);
    if (!status) status = wt__nn_filter_take(&c, &scratch);
    if (!status) wt__nn_filter_run(&c, in, out, &scratch);
    wt__nn_filter_free(&scratch);
    return status;
}
