#include "cqt_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- one octave

static wt_status add_part(wt__cqt_plan *plan, const wt__cqt_basis *b, const wt__cqt_part *shape, const double *gain)
{
    wt__cqt_part *p = &plan->parts[plan->n_parts++];
    const size_t n = (size_t)b->begin[b->n_rows];
    *p = *shape;
    p->n_fft = b->n_fft, p->n_rows = b->n_rows;
    p->begin = malloc(((size_t)b->n_rows + 1) * sizeof(int));
    p->bin = malloc(n * sizeof(int));
    p->value = malloc(2 * n * sizeof(float));
    if (!p->begin || !p->bin || !p->value) return wt_fail(WT_ERR_NO_MEMORY, "cqt: %zu filter values", n);
    memcpy(p->begin, b->begin, ((size_t)b->n_rows + 1) * sizeof(int));
    memcpy(p->bin, b->bin, n * sizeof(int));
    for (int r = 0; r < b->n_rows; r++)
        for (int i = b->begin[r]; i < b->begin[r + 1]; i++) {
            const double re = b->value[2 * i] * gain[r], im = b->value[2 * i + 1] * gain[r];
            if (p->pseudo)
                p->value[i] = (float)hypot(re, im);
            else
                p->value[2 * i] = (float)re, p->value[2 * i + 1] = (float)im;
        }
    return WT_OK;
}

// Halvings before the first octave, as librosa's __early_downsample_count.
static int early_halvings(double nyquist, double cutoff, int hop, int n_octaves)
{
    const int by_band = (int)ceil(log2(nyquist / cutoff)) - 2;
    int twos = 0;
    for (int rest = hop; rest % 2 == 0; rest /= 2) twos++;
    const int by_hop = twos - n_octaves + 1, least = by_band < by_hop ? by_band : by_hop;
    return least > 0 ? least : 0;
}

// All octaves of the lowest `n_bins` bins, from the top.
static wt_status add_octaves(wt__cqt_plan *plan, int n_bins)
{
    const wt_cqt_config *c = &plan->config;
    wt__cqt_scale scale;
    wt_status status = wt__cqt_scale_create(c, 0, n_bins, &scale);
    if (status) return status;
    const int per_octave = c->bins_per_octave < n_bins ? c->bins_per_octave : n_bins;
    const int n_octaves = (n_bins + c->bins_per_octave - 1) / c->bins_per_octave;
    const int early = early_halvings(c->rate_hz / 2, scale.cutoff_hz, c->hop, n_octaves);
    plan->early = early;
    wt__cqt_part shape = {.level = early, .hop = c->hop >> early};
    for (int octave = 0; octave < n_octaves && !status; octave++) {
        const int end = n_bins - octave * per_octave, first = end > per_octave ? end - per_octave : 0;
        wt__cqt_basis basis;
        status = wt__cqt_basis_create(c, &scale, first, end - first, ldexp(c->rate_hz, -shape.level), 1, &basis);
        if (status) break;
        // librosa scales each halved signal and, again, the filters by the root of the ratio; and what was halved
        // early once more when lengths do not do it
        double *gain = basis.lengths, factor = ldexp(1, shape.level) * pow(2, -0.5 * early);
        if (c->no_scale) factor *= pow(2, 0.5 * early);
        for (int r = 0; r < end - first; r++) {
            const double length = wt__cqt_length(c, &scale, first + r, ldexp(c->rate_hz, -early));
            gain[r] = c->no_scale ? factor : factor / sqrt(length);
        }
        shape.first = first;
        status = add_part(plan, &basis, &shape, gain);
        plan->n_levels = shape.level + 1;
        if (shape.hop % 2 == 0) shape.hop /= 2, shape.level++;
        wt__cqt_basis_destroy(&basis);
    }
    wt__cqt_scale_destroy(&scale);
    return status;
}

// Bins `first` and up from one spectrogram.
static wt_status add_pseudo(wt__cqt_plan *plan, int first)
{
    const wt_cqt_config *c = &plan->config;
    const int n = c->n_bins - first;
    wt__cqt_scale scale;
    wt__cqt_basis basis;
    wt_status status = wt__cqt_scale_create(c, first, n, &scale);
    if (status) return status;
    status = wt__cqt_basis_create(c, &scale, 0, n, c->rate_hz, 2 << (int)ceil(log2(c->hop)), &basis);
    wt__cqt_scale_destroy(&scale);
    if (status) return status;
    for (int r = 0; r < n; r++)
        basis.lengths[r] = c->no_scale ? sqrt(basis.lengths[r] / basis.n_fft) : sqrt(1.0 / basis.n_fft);
    status = add_part(plan, &basis, &(wt__cqt_part){.hop = c->hop, .pseudo = true, .first = first}, basis.lengths);
    wt__cqt_basis_destroy(&basis);
    return status;
}

// ---- all of them

static wt_status list_bins(wt__cqt_plan *plan, int *n_full)
{
    const wt_cqt_config *c = &plan->config;
    wt__cqt_scale scale;
    wt_status status = wt__cqt_scale_create(c, 0, c->n_bins, &scale);
    if (status) return status;
    plan->hz = calloc(2 * (size_t)c->n_bins, sizeof(double));
    *n_full = c->kind == WT_CQT_PSEUDO ? 0 : c->n_bins;
    if (plan->hz)
        plan->lengths = plan->hz + c->n_bins;
    else
        status = wt_fail(WT_ERR_NO_MEMORY, "cqt: %d bins", c->n_bins);
    for (int k = 0; k < c->n_bins && !status; k++) {
        plan->hz[k] = scale.hz[k];
        plan->lengths[k] = wt__cqt_length(c, &scale, k, c->rate_hz);
        if (c->kind == WT_CQT_HYBRID && exp2(ceil(log2(plan->lengths[k]))) < 2 * c->hop) --*n_full;
    }
    wt__cqt_scale_destroy(&scale);
    return status;
}

wt_status wt__cqt_plan_create(const wt_cqt_config *config, wt__cqt_plan *plan)
{
    *plan = (wt__cqt_plan){.config = *config, .n_levels = 1};
    wt_cqt_config *c = &plan->config;
    int n_full = 0;
    wt_status status = wt__cqt_resolve(c);
    if (status) return status;
    plan->magnitude = c->magnitude || c->kind != WT_CQT_FULL;
    status = list_bins(plan, &n_full);
    if (!status) {
        plan->parts = calloc((size_t)(c->n_bins / c->bins_per_octave + 2), sizeof *plan->parts);
        if (!plan->parts) status = wt_fail(WT_ERR_NO_MEMORY, "cqt: parts of %d bins", c->n_bins);
    }
    if (!status && n_full < c->n_bins) status = add_pseudo(plan, n_full);
    if (!status && n_full) status = add_octaves(plan, n_full);
    c->intervals = NULL; // read above
    if (status) wt__cqt_plan_destroy(plan);
    return status;
}

void wt__cqt_plan_destroy(wt__cqt_plan *plan)
{
    for (int i = 0; i < plan->n_parts; i++) {
        free(plan->parts[i].begin);
        free(plan->parts[i].bin);
        free(plan->parts[i].value);
    }
    free(plan->parts);
    free(plan->hz);
    *plan = (wt__cqt_plan){0};
}

int64_t wt__cqt_plan_frames(const wt__cqt_plan *plan, int64_t n)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < plan->n_parts && n > 0; i++) {
        const wt__cqt_part *p = &plan->parts[i];
        const int64_t frames = 1 + wt__cqt_samples(n, p->level) / p->hop;
        if (frames < least) least = frames;
    }
    return n > 0 ? least : 0;
}

// A run of a halver that lacks a sample has other bits throughout, at worst it lacks its last alone. A precise one sums
// each output by itself.
int64_t wt__cqt_plan_reach(const wt__cqt_plan *plan)
{
    const int64_t run = plan->config.precise ? WT_CQT_HALVE_EDGE : 2 * WT_CQT_HALVE_OUT + WT_CQT_HALVE_EDGE;
    int64_t reach = 0;
    for (int i = 0; i < plan->n_parts; i++) {
        const wt__cqt_part *p = &plan->parts[i];
        const int64_t own = run * (((int64_t)1 << p->level) - 1) + ((int64_t)(p->n_fft / 2) << p->level);
        if (own > reach) reach = own;
    }
    return reach;
}
