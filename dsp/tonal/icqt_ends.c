#include "icqt_ends.h"

#include "soxr_hq.h"

#include <stdlib.h>
#include <string.h>
#include <warptone/simd.h>

enum { FRAMES = WT_ICQT_END_FRAMES, KEPT = WT_ICQT_END_KEPT, TAPS = WT_ICQT_END_TAPS, AT_ONCE = 4 };

// ---- rows

// What a sample becomes at the full rate through a chain that only raises the rate; of its n values the one at `centre`
// has the sample's time. The caller frees it with free(); NULL = no memory.
static double *response_of(const wt__soxr_chain *chain, int *n, int *centre)
{
    double *made = malloc(sizeof *made);
    *n = 1, *centre = 0;
    if (made) made[0] = 1;
    for (int i = 0; made && i < chain->n_links; i++) {
        const wt__soxr_link *link = &chain->links[i];
        const int longer = (*n - 1) * link->scale + link->n_taps;
        double *next = calloc((size_t)longer, sizeof *next);
        for (int k = 0; next && k < *n; k++)
            for (int t = 0; t < link->n_taps; t++) next[k * link->scale + t] += made[k] * link->taps[t];
        free(made);
        made = next, *n = longer, *centre = *centre * link->scale + (int)link->centre;
    }
    return made;
}

// `sign` times the response, as rows.
static wt_status fill_rows(const wt__soxr_chain *chain, float sign, int level, float *rows)
{
    const int stride = wt__icqt_end_stride(level);
    int n, centre;
    double *response = response_of(chain, &n, &centre);
    if (!response) return wt_fail(WT_ERR_NO_MEMORY, "icqt: response of %d doublings", level);
    for (int t = 0; t < TAPS; t++)
        for (int p = 0; p < 1 << level; p++) {
            const int at = centre + p + (FRAMES - t) * (1 << level);
            if (at >= 0 && at < n) rows[t * stride + p] += sign * (float)response[at];
        }
    free(response);
    return WT_OK;
}

// `sign` times the row of output n, added to column n.
static void add_row(const wt__soxr_chain *chain, int n, int frame, bool started, float sign, wt__soxr_row *row,
                    wt__icqt_end_rows *to)
{
    wt__soxr_row_of(chain, n, 0, started, row);
    for (int k = 0; k < row->n; k++) {
        const int64_t tap = row->first + k - frame + FRAMES;
        if (tap >= 0 && tap < TAPS) to->start[tap * to->n_start + n] += sign * (float)row->weights[k];
    }
}

static wt_status fill_start(const wt__soxr_chain *chain, wt__icqt_end_rows *to, int level)
{
    wt__soxr_row row;
    wt_status status = wt__soxr_row_create(chain, &row);
    for (row.cut = !status; row.cut; to->n_start += row.cut) wt__soxr_row_of(chain, to->n_start, 0, true, &row);
    to->start = calloc((size_t)to->n_start * TAPS + 1, sizeof *to->start);
    if (!status && !to->start) status = wt_fail(WT_ERR_NO_MEMORY, "icqt: %d first samples", to->n_start);
    for (int n = 0; n < to->n_start && !status; n++) {
        add_row(chain, n, n >> level, true, 1, &row, to);
        add_row(chain, n, n >> level, false, -1, &row, to);
    }
    wt__soxr_row_destroy(&row);
    return status;
}

static wt_status make_rows(int level, wt__icqt_end_rows *to)
{
    wt__soxr_chain chain, doublings = {0};
    wt_status status = wt__soxr_chain_create(1, 1 << level, &chain);
    if (!status) status = wt__soxr_doublings_create(level, &doublings);
    to->rows = calloc((size_t)TAPS * (size_t)wt__icqt_end_stride(level), sizeof *to->rows);
    if (!status && !to->rows) status = wt_fail(WT_ERR_NO_MEMORY, "icqt: rows of %d doublings", level);
    if (!status) status = fill_rows(&chain, 1, level, to->rows);
    if (!status) status = fill_rows(&doublings, -1, level, to->rows);
    if (!status) status = fill_start(&chain, to, level);
    wt__soxr_chain_destroy(&chain);
    wt__soxr_chain_destroy(&doublings);
    return status;
}

wt_status wt__icqt_ends_create(int n_levels, wt__icqt_ends *ends)
{
    wt_status status = WT_OK;
    *ends = (wt__icqt_ends){.n_levels = n_levels < WT_ICQT_END_LEVELS ? n_levels : WT_ICQT_END_LEVELS};
    for (int i = 2; i < ends->n_levels && !status; i++) status = make_rows(i, &ends->levels[i]);
    return status;
}

void wt__icqt_ends_destroy(wt__icqt_ends *ends)
{
    for (int i = 0; i < ends->n_levels; i++) free(ends->levels[i].rows), free(ends->levels[i].start);
    *ends = (wt__icqt_ends){0};
}

// ---- running

void wt__icqt_ends_keep(const float *x, int64_t n, float *kept)
{
    for (int i = 0; i < KEPT; i++) {
        if (i < n) kept[i] += x[i];
        if (n - KEPT + i >= 0) kept[KEPT + i] += x[n - KEPT + i];
    }
}

#include "icqt_ends_level.h"

// Frames `from` .. FRAMES - 1 and no more than n of those whose first has its surroundings at x.
static void add_end(const float *rows, int level, const float *x, int64_t from, int64_t n, float *out)
{
    for (int64_t f = from; f < FRAMES && f < n; f += AT_ONCE) {
        int64_t left = FRAMES - f < n - f ? FRAMES - f : n - f;
        if (left > AT_ONCE) left = AT_ONCE;
        WT_LEVEL_CALL(add_frames, rows, level, x + f, (int)left, out + ((f - from) << level));
    }
}

void wt__icqt_ends_add(const wt__icqt_ends *ends, int level, const float *kept, int64_t n, float *out)
{
    if (level >= ends->n_levels || !ends->levels[level].rows) return;
    const wt__icqt_end_rows *r = &ends->levels[level];
    float x[KEPT + TAPS + AT_ONCE] = {0};
    memcpy(x + FRAMES, kept, KEPT * sizeof *x);
    add_end(r->rows, level, x, 0, n, out);
    for (int i = 0; i < r->n_start && i < n << level; i++) {
        float sum = 0;
        for (int t = 0; t < TAPS; t++) sum += r->start[t * r->n_start + i] * x[(i >> level) + t];
        out[i] += sum;
    }
    memset(x, 0, sizeof x);
    memcpy(x, kept + KEPT, KEPT * sizeof *x);
    const int64_t first = n - FRAMES > FRAMES ? n - FRAMES : FRAMES; // those before have been first ones
    add_end(r->rows, level, x, first - (n - FRAMES), FRAMES, out + (first << level));
}
