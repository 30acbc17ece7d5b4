// Troughs of a frame's difference function and their probabilities.
//
// A threshold gives its prior to the troughs below it, the k-th of n in order of period by a truncated geometric law:
// share[n] decay^k. So the weight of each threshold, share * prior, is multiplied by `decay` for every trough that is
// below it, and a trough's probability is the sum of the weights at its turn.

#include "pyin_internal.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/simd.h>

enum { LANES = 8 };

wt_status wt__pyin_candidates_create(const wt_pyin_model *m, wt__pyin_candidates *c)
{
    const size_t troughs = (size_t)m->max_troughs + 1, thresholds = (size_t)m->n_thresholds + LANES;
    *c = (wt__pyin_candidates){.bins = calloc(troughs, sizeof(int)),
                               .log_probs = calloc(troughs, sizeof(double)),
                               .troughs = calloc(troughs, sizeof(int)),
                               .first = calloc(troughs, sizeof(int)),
                               .counts = calloc(thresholds, sizeof(int)),
                               .weights = calloc(thresholds, sizeof(double))};
    if (c->bins && c->log_probs && c->troughs && c->first && c->counts && c->weights) return WT_OK;
    return wt_fail(WT_ERR_NO_MEMORY, "pyin: candidates of a frame");
}

void wt__pyin_candidates_destroy(wt__pyin_candidates *c)
{
    free(c->bins);
    free(c->log_probs);
    free(c->troughs);
    free(c->first);
    free(c->counts);
    free(c->weights);
    *c = (wt__pyin_candidates){.bins = NULL};
}

static int find_troughs(const double *d, int n, int *troughs)
{
    int count = 0;
    if (n < 2) return 0;
    troughs[0] = 0;
    count += d[0] < d[1];
    for (int i = 1; i + 1 < n; i++) {
        troughs[count] = i;
        count += (d[i] < d[i - 1]) & (d[i] <= d[i + 1]);
    }
    troughs[count] = n - 1;
    return count + (d[n - 1] < d[n - 2]);
}

// The first threshold above a height; n when none is.
static int first_above(const wt_pyin_model *m, double height)
{
    const int n = m->n_thresholds;
    double guess = height * n;
    int k = guess < 0 ? 0 : guess >= n ? n - 1 : (int)guess;
    while (k > 0 && height < m->thresholds[k - 1]) k--;
    while (k < n && !(height < m->thresholds[k])) k++;
    return k;
}

WT_CLONES static double take_weights(double *weights, int first, int n, double decay)
{
    double sum = 0, part[LANES] = {0};
    int k = first;
    for (; k < n && k % LANES; k++) {
        sum += weights[k];
        weights[k] *= decay;
    }
    for (; k < n; k += LANES) // zeros behind the last
        for (int i = 0; i < LANES; i++) {
            part[i] += weights[k + i];
            weights[k + i] *= decay;
        }
    for (int i = 0; i < LANES; i++) sum += part[i];
    return sum;
}

static void weigh_thresholds(const wt_pyin_model *m, wt__pyin_candidates *c, int n_troughs)
{
    memset(c->counts, 0, (size_t)(m->n_thresholds + 1) * sizeof *c->counts);
    for (int i = 0; i < n_troughs; i++) c->counts[c->first[i]]++;
    int below = 0;
    for (int k = 0; k < m->n_thresholds; k++) {
        below += c->counts[k];
        c->weights[k] = m->beta[k] * m->share[below];
    }
}

// Of two candidates in one bin the longer period stays, as numpy's assignment has it; bins only fall with the period.
static void put(const wt_pyin_model *m, const wt_yin_args *a, wt__pyin_candidates *c, double period, double prob)
{
    const double at = rint(m->bins_per_octave * log2(a->rate_hz / period / m->fmin_hz));
    const int bin = at < 0 ? 0 : (int)at;
    if (bin >= m->n_bins) return; // librosa writes these over with the unvoiced share
    if (!c->frame.n || c->bins[c->frame.n - 1] != bin) c->frame.n++;
    c->bins[c->frame.n - 1] = bin;
    c->log_probs[c->frame.n - 1] = prob;
}

static void place(const wt_pyin_model *m, const wt_yin_args *a, const double *d, wt__pyin_candidates *c, int n_troughs)
{
    const int n = a->max_period - a->min_period + 1;
    int lowest = 0;
    for (int i = 0; i < n_troughs; i++) {
        c->first[i] = first_above(m, d[c->troughs[i]]);
        if (d[c->troughs[i]] < d[c->troughs[lowest]]) lowest = i;
    }
    weigh_thresholds(m, c, n_troughs);
    for (int i = 0; i < n_troughs; i++) {
        const int at = c->troughs[i];
        double prob = take_weights(c->weights, c->first[i], m->n_thresholds, m->decay);
        if (i == lowest) prob += m->no_trough_prob * m->beta_sum[c->first[i]];
        if (prob == 0) continue;
        const double shift = at > 0 && at + 1 < n ? wt__yin_shift(d[at - 1], d[at], d[at + 1]) : 0;
        put(m, a, c, a->min_period + at + shift, prob);
    }
}

WT_RT void wt__pyin_observe(const wt_pyin_model *m, const wt_yin_args *a, const double *d, wt__pyin_candidates *c)
{
    c->frame.n = 0;
    const int n_troughs = d ? find_troughs(d, a->max_period - a->min_period + 1, c->troughs) : 0;
    if (n_troughs) place(m, a, d, c, n_troughs);
    double voiced = 0;
    for (int i = c->frame.n - 1; i >= 0; i--) {
        voiced += c->log_probs[i];
        c->log_probs[i] = log(c->log_probs[i] + DBL_MIN);
    }
    c->frame.voiced_prob = voiced > 1 ? 1 : voiced;
    c->frame.log_unvoiced = log((1 - c->frame.voiced_prob) / m->n_bins + DBL_MIN);
}
