// The likeliest path through pYIN's states: librosa's Viterbi, with the values it computes and its first-of-equals
// rule.
//
// librosa adds a full row of transitions for each state (1,202 x 1,202 for the defaults). Here a step
//
//   1. takes the maximum over all states plus log_tiny: what an impossible transition gives;
//   2. slides the band over the unvoiced sources, eight offsets a pass, for both kinds of targets;
//   3. adds voiced sources one by one, but only those that can beat the worst target so far: most hold log_tiny, as
//      only candidates are observed.
//
// No pointers are kept: the way back asks for one state a frame, and its band is searched again among the kept values,
// in the order in which numpy's argmax meets them. The transition of a bin near an end is log_norm + the band, which
// differs from the logarithm of librosa's quotient by a rounding.

#include "pyin_internal.h"

#include <math.h>
#include <stdlib.h>
#include <warptone/simd.h>

enum { TAPS = 8, LANES = 8 };

static int row_of(const wt_pyin_model *m)
{
    return (m->n_bins + LANES - 1) / LANES * LANES;
}

size_t wt__pyin_row_doubles(const wt_pyin_model *m)
{
    return 2 * (size_t)row_of(m);
}

wt_status wt__pyin_viterbi_create(const wt_pyin_model *m, wt__pyin_viterbi *v)
{
    const int row = row_of(m), margin = m->width + 2 * TAPS;
    const size_t count = (size_t)row + 2 * (size_t)margin;
    double *part = malloc(4 * count * sizeof *part);
    *v = (wt__pyin_viterbi){m, row, margin, part, NULL, NULL, NULL};
    if (!part) return wt_fail(WT_ERR_NO_MEMORY, "pyin: scratch of %d bins", m->n_bins);
    for (size_t i = 0; i < 4 * count; i++) part[i] = -INFINITY;
    v->voiced = v->unvoiced + count;
    v->to_voiced = v->voiced + count;
    v->to_unvoiced = v->to_voiced + count;
    return WT_OK;
}

void wt__pyin_viterbi_destroy(wt__pyin_viterbi *v)
{
    free(v->unvoiced);
    v->unvoiced = NULL;
}

// ---- forward

WT_INLINE double larger(double a, double b)
{
    return a > b ? a : b;
}

WT_CLONES static double largest(const double *x, int n)
{
    double part[4 * LANES], all = x[0];
    for (int i = 0; i < 4 * LANES; i++) part[i] = x[0];
    int k = 0;
    for (; k + 4 * LANES <= n; k += 4 * LANES)
        for (int i = 0; i < 4 * LANES; i++) part[i] = larger(x[k + i], part[i]);
    for (; k < n; k++) all = larger(x[k], all);
    for (int i = 0; i < 4 * LANES; i++) all = larger(part[i], all);
    return all;
}

WT_CLONES static void add(const double *a, const double *b, double *sum, int n)
{
    for (int i = 0; i < n; i++) sum[i] = a[i] + b[i];
}

// Both kinds of targets take eight offsets: from x[j], x[j - 1], ... with the bands' values.
WT_CLONES static void take_offsets(const double *x, const double *leave, const double *stay, int n,
                                   double *restrict to_voiced, double *restrict to_unvoiced)
{
    for (int j = 0; j < n; j++) {
        double v = to_voiced[j], u = to_unvoiced[j];
        const double x0 = x[j], x1 = x[j - 1], x2 = x[j - 2], x3 = x[j - 3];
        const double x4 = x[j - 4], x5 = x[j - 5], x6 = x[j - 6], x7 = x[j - 7];
        v = larger(larger(larger(x0 + leave[0], x1 + leave[1]), larger(x2 + leave[2], x3 + leave[3])), v);
        u = larger(larger(larger(x0 + stay[0], x1 + stay[1]), larger(x2 + stay[2], x3 + stay[3])), u);
        v = larger(larger(larger(x4 + leave[4], x5 + leave[5]), larger(x6 + leave[6], x7 + leave[7])), v);
        u = larger(larger(larger(x4 + stay[4], x5 + stay[5]), larger(x6 + stay[6], x7 + stay[7])), u);
        to_voiced[j] = v;
        to_unvoiced[j] = u;
    }
}

WT_CLONES static void take_source(double value, const double *band, int width, double *to)
{
    for (int d = 0; d < width; d++) to[d] = larger(value + band[d], to[d]);
}

static double smallest(const double *x, int n)
{
    double least = x[0];
    for (int i = 1; i < n; i++) least = x[i] < least ? x[i] : least;
    return least;
}

static void from_unvoiced(const wt_pyin_model *m, const double *sources, double *to_voiced, double *to_unvoiced)
{
    for (int d = 0; d < m->width; d += TAPS) {
        double leave[TAPS], stay[TAPS];
        for (int i = 0; i < TAPS; i++) {
            leave[i] = d + i < m->width ? m->log_leave[d + i] : -INFINITY;
            stay[i] = d + i < m->width ? m->log_stay[d + i] : -INFINITY;
        }
        take_offsets(sources - m->first - d, leave, stay, m->n_bins, to_voiced, to_unvoiced);
    }
}

static void from_voiced(const wt_pyin_model *m, const double *sources, double *to_voiced, double *to_unvoiced)
{
    const double stay = largest(m->log_stay, m->width), leave = largest(m->log_leave, m->width);
    const double least_voiced = smallest(to_voiced, m->n_bins), least_unvoiced = smallest(to_unvoiced, m->n_bins);
    for (int i = 0; i < m->n_bins; i++) {
        if (sources[i] + stay >= least_voiced)
            take_source(sources[i], m->log_stay, m->width, to_voiced + i + m->first);
        if (sources[i] + leave >= least_unvoiced)
            take_source(sources[i], m->log_leave, m->width, to_unvoiced + i + m->first);
    }
}

WT_RT void wt__pyin_step(wt__pyin_viterbi *v, const wt__pyin_candidates *seen, const double *before, double *values)
{
    const wt_pyin_model *m = v->model;
    const int n = m->n_bins;
    double *to_voiced = v->to_voiced + v->margin, *to_unvoiced = v->to_unvoiced + v->margin;
    double anywhere = m->log_init;
    if (before) anywhere = larger(largest(before, n), largest(before + v->row, n)) + m->log_tiny;
    for (int j = 0; j < n; j++) to_voiced[j] = to_unvoiced[j] = anywhere;
    if (before) {
        add(before, m->log_norm, v->voiced + v->margin, n);
        add(before + v->row, m->log_norm, v->unvoiced + v->margin, n);
        from_unvoiced(m, v->unvoiced + v->margin, to_voiced, to_unvoiced);
        from_voiced(m, v->voiced + v->margin, to_voiced, to_unvoiced);
    }
    for (int j = 0; j < n; j++) {
        values[j] = m->log_tiny + to_voiced[j];
        values[v->row + j] = seen->frame.log_unvoiced + to_unvoiced[j];
    }
    for (int i = 0; i < seen->frame.n; i++) values[seen->bins[i]] = seen->log_probs[i] + to_voiced[seen->bins[i]];
}

// ---- back

WT_RT int wt__pyin_last(const wt_pyin_model *m, const double *values)
{
    const int n = m->n_bins, row = row_of(m);
    int best = 0;
    for (int i = 1; i < 2 * n; i++) {
        const int at = i < n ? i : row + i - n;
        if (values[at] > values[best < n ? best : row + best - n]) best = i;
    }
    return best;
}

WT_RT int wt__pyin_from(const wt_pyin_model *m, const double *before, int state)
{
    const int n = m->n_bins, row = row_of(m), bin = state % n;
    const int begin = bin - m->first - (m->width - 1), end = bin - m->first; // sources in the band, both included
    double value = -INFINITY;
    int best = 0;
    for (int half = 0; half < 2; half++) {
        const double *band = half == state / n ? m->log_stay : m->log_leave;
        for (int i = begin < 0 ? 0 : begin; i <= end && i < n; i++) {
            const double here = before[half * row + i] + m->log_norm[i] + band[end - i];
            if (here > value) value = here, best = half * n + i;
        }
    }
    const double anywhere = larger(largest(before, n), largest(before + row, n)) + m->log_tiny;
    if (anywhere < value) return best;
    int at = 0;
    while (before[at < n ? at : row + at - n] + m->log_tiny < anywhere) at++;
    return anywhere > value || at < best ? at : best;
}
