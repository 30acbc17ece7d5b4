// Triangles side by side: between two neighbouring bands' peaks a bin counts in both and in no other, so one read of
// its power serves two sums. Slopes of high bands have many bins, of low ones two or three, and lanes that work side by
// side wait for the longest: long slopes are cut into runs, as short as leaves the fewest rows.

#include "mel_slopes.h"

#include <stdlib.h>

typedef struct layout {
    const wt_mel *m;
    int n_fft, bins, n_mels, lanes;
    int base;                 // where a transform leaves room for powers
    int n_runs, n_rows, most; // most: bins of a run
    int *slopes, *counts;     // [bins] of each bin, -1 = no band has it; [n_mels + 1] bins of each
} layout;

// A bin's slope is that of the highest band it counts in, or of a bin before it. False when one counts in three bands.
static bool find_slopes(layout *l)
{
    for (int k = 0, slope = 0; k < l->bins; k++) {
        int low = -1, high = -1, at = 0;
        for (int b = 0; b < l->n_mels; at += l->m->lengths[b++]) {
            const int i = k - l->m->begins[b];
            if (i < 0 || i >= l->m->lengths[b] || l->m->weights[at + i] == 0) continue;
            low = low < 0 ? b : low, high = b;
        }
        l->slopes[k] = -1;
        if (high < 0) continue;
        if (high > slope) slope = high;
        if (low < slope - 1) return false;
        l->slopes[k] = slope, l->counts[slope]++;
    }
    return true;
}

static int parts_of(const layout *l, int slope) { return (l->counts[slope] + l->most - 1) / l->most; }

static int length_of(const layout *l, int slope)
{
    const int parts = parts_of(l, slope);
    return parts ? (l->counts[slope] + parts - 1) / parts : 0;
}

// Rows of groups of `lanes` runs, each as long as its longest, in fours; `rows` [groups + 1], or NULL.
static void lay_out(layout *l, int *rows)
{
    int begin = 0, longest = 0;
    l->n_runs = l->n_rows = 0;
    for (int s = 0; s <= l->n_mels; s++)
        for (int i = parts_of(l, s); i > 0; i--, l->n_runs++) {
            if (l->n_runs % l->lanes == 0) begin = l->n_rows, longest = 0;
            if (length_of(l, s) > longest) longest = length_of(l, s);
            l->n_rows = begin + (longest + 3) / 4 * 4;
            if (rows) rows[l->n_runs / l->lanes + 1] = l->n_rows;
        }
}

static int groups_of(const layout *l) { return (l->n_runs + l->lanes - 1) / l->lanes; }

static void choose_most(layout *l)
{
    enum { GROUP = 4 }; // rows that a group's beginning and end cost
    int best = 1, least = 0;
    for (l->most = 1; l->most <= 128; l->most++) {
        lay_out(l, NULL);
        const int cost = l->n_rows + GROUP * groups_of(l);
        if (!least || cost < least) least = cost, best = l->most;
    }
    l->most = best;
    lay_out(l, NULL);
}

// ---- tables

typedef union word {
    int i;
    float f;
} word;

// Where each table begins, in words.
typedef struct places {
    size_t rows, runs, bins, lengths, all; // the weights lie at 0
} places;

static places find_places(const layout *l)
{
    const size_t groups = (size_t)groups_of(l), lanes = (size_t)l->lanes;
    places p = {.rows = 2 * (size_t)l->n_rows * lanes};
    p.runs = p.rows + groups + 1;
    p.bins = p.runs + (size_t)l->n_mels + 2;
    p.lengths = p.bins + (size_t)l->bins;
    p.all = p.lengths + groups * lanes;
    return p;
}

// The one band's weight of a bin.
static float weight_of(const wt_mel *m, int band, int bin)
{
    if (band < 0 || band >= m->config.bank.n_mels) return 0;
    const float *weight = m->weights;
    for (int b = 0; b < band; b++) weight += m->lengths[b];
    const int i = bin - m->begins[band];
    return i >= 0 && i < m->lengths[band] ? weight[i] : 0;
}

static void fill(const layout *l, const places *p, word *table)
{
    const int pitch = l->lanes | 1;
    int *const rows = &table[p->rows].i, *const runs = &table[p->runs].i, *const lengths = &table[p->lengths].i;
    for (int s = 0; s <= l->n_mels && l->n_runs; s++) runs[s + 1] = runs[s] + parts_of(l, s);
    for (int k = 0, slope = -1, at = 0; k < l->bins; k++) {
        const int s = l->slopes[k];
        table[p->bins + (size_t)k].i = l->n_runs ? -1 : l->base + k;
        if (s < 0 || !l->n_runs) continue;
        if (s != slope) slope = s, at = 0;
        const int run = runs[s] + at / length_of(l, s), i = at % length_of(l, s), lane = run % l->lanes;
        const int row = rows[run / l->lanes] + i;
        table[p->bins + (size_t)k].i = l->base + row * pitch + lane;
        table[2 * (row * l->lanes + lane)].f = weight_of(l->m, s, k);
        table[2 * (row * l->lanes + lane) + 1].f = weight_of(l->m, s - 1, k);
        lengths[run] = i + 1;
        at++;
    }
}

static wt_status upload(layout *l, wt_buffer **buffer, wt_spectrum_slopes *slopes)
{
    const places p = find_places(l);
    const int sums = groups_of(l) * l->lanes;
    slopes->n_groups = groups_of(l);
    slopes->powers = l->base;
    slopes->risen = l->base + l->n_rows * (l->lanes | 1), slopes->fallen = slopes->risen + sums;
    slopes->room = wt__spectrum_room(l->n_fft);
    if (slopes->room < slopes->fallen + sums) slopes->room = slopes->fallen + sums;
    word *table = calloc(p.all, sizeof *table);
    if (!table) return wt_fail(WT_ERR_NO_MEMORY, "mel: %zu words of tables", p.all);
    if (l->n_runs) lay_out(l, &table[p.rows].i);
    fill(l, &p, table);
    wt_status status = wt__op_upload(l->m->device, table, p.all * sizeof *table, buffer);
    free(table);
    if (status) return status;
    const float *at = (const float *)wt_buffer_address(*buffer);
    slopes->weights = at;
    slopes->rows = (const int *)(at + p.rows), slopes->runs = (const int *)(at + p.runs);
    slopes->places = (const int *)(at + p.bins), slopes->lengths = (const int *)(at + p.lengths);
    return WT_OK;
}

wt_status wt__mel_slopes_upload(const wt_mel *mel, int n_fft, wt_buffer **table, wt_spectrum_slopes *slopes)
{
    layout l = {.m = mel,
                .n_fft = n_fft,
                .bins = mel->bins,
                .n_mels = mel->config.bank.n_mels,
                .lanes = wt__spectrum_lanes(n_fft)};
    l.base = wt__spectrum_base(n_fft);
    l.slopes = calloc((size_t)l.bins, sizeof *l.slopes);
    l.counts = calloc((size_t)l.n_mels + 1, sizeof *l.counts);
    wt_status status = l.slopes && l.counts ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "mel: %d bins", l.bins);
    if (!status && wt__spectrum_sloped(n_fft) && find_slopes(&l)) choose_most(&l);
    if (!status) status = upload(&l, table, slopes);
    free(l.slopes);
    free(l.counts);
    return status;
}
