// Choosing a token. Only as many candidates are put in order as the choice needs: they lie in a heap and are taken from
// it, the most probable first.
#include "llm_internal.h"
#include "philox_kernel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct candidate {
    float logit; ///< less the largest, divided by the temperature
    int32_t id;
} candidate;

typedef struct typical {
    double distance; ///< of its surprise from the mean
    double weight;
    int32_t id;
} typical;

struct wt_sampler {
    wt_sampler_config config;
    wt_logit_bias *biases;
    int vocab_size;
    uint64_t n_drawn;
    bool *seen;      ///< [vocab_size] in prompt or answer
    int *counts;     ///< [vocab_size] times generated
    float *logits;   ///< [vocab_size] after penalties and bias
    candidate *heap; ///< [vocab_size]: [0 .. n_heap - 1] a heap, from the end on what was taken
    int n_heap, n_taken;
    typical *typicals; ///< [vocab_size] of typical sampling; NULL without
};

// ---- create

static wt_status check(const wt_sampler_config *c, int vocab_size)
{
    if (vocab_size < 1) return wt_fail(WT_ERR_BAD_ARG, "sampler: a vocabulary of %d, want 1 or more", vocab_size);
    if (!(c->temperature >= 0 && c->temperature <= 1e3))
        return wt_fail(WT_ERR_BAD_ARG, "sampler: temperature %g, want 0..1000", c->temperature);
    if (c->top_k < 0) return wt_fail(WT_ERR_BAD_ARG, "sampler: top_k %d, want 0 or more", c->top_k);
    if (!(c->top_p >= 0 && c->top_p <= 1)) return wt_fail(WT_ERR_BAD_ARG, "sampler: top_p %g, want 0..1", c->top_p);
    if (!(c->min_p >= 0 && c->min_p <= 1)) return wt_fail(WT_ERR_BAD_ARG, "sampler: min_p %g, want 0..1", c->min_p);
    if (!(c->typical_p >= 0 && c->typical_p <= 1))
        return wt_fail(WT_ERR_BAD_ARG, "sampler: typical_p %g, want 0..1", c->typical_p);
    if (!(c->repetition_penalty >= 0 && c->repetition_penalty <= 1e3))
        return wt_fail(WT_ERR_BAD_ARG, "sampler: repetition_penalty %g, want 0..1000", c->repetition_penalty);
    if (!(fabs(c->presence_penalty) <= 1e3 && fabs(c->frequency_penalty) <= 1e3))
        return wt_fail(WT_ERR_BAD_ARG, "sampler: presence_penalty %g, frequency_penalty %g, want -1000..1000",
                       c->presence_penalty, c->frequency_penalty);
    for (int k = 0; k < c->n_biases; k++)
        if (c->biases[k].id < 0 || c->biases[k].id >= vocab_size || !(c->biases[k].bias < INFINITY))
            return wt_fail(WT_ERR_BAD_ARG, "sampler: bias %d is %g for token %d, want one below infinity for 0..%d", k,
                           (double)c->biases[k].bias, c->biases[k].id, vocab_size - 1);
    return WT_OK;
}

wt_status wt_sampler_create(const wt_sampler_config *config, int vocab_size, wt_sampler **sampler)
{
    *sampler = NULL;
    wt_status status = check(config, vocab_size);
    if (status) return status;
    wt_sampler *s = calloc(1, sizeof *s);
    if (!s) return wt_fail(WT_ERR_NO_MEMORY, "sampler: handle");
    const size_t n = (size_t)vocab_size;
    s->config = *config;
    s->vocab_size = vocab_size;
    s->seen = calloc(n, sizeof *s->seen);
    s->counts = calloc(n, sizeof *s->counts);
    s->logits = malloc(n * sizeof *s->logits);
    s->heap = malloc(n * sizeof *s->heap);
    s->biases = malloc(((size_t)config->n_biases + 1) * sizeof *s->biases);
    const bool typical_p = config->typical_p > 0 && config->typical_p < 1;
    if (typical_p) s->typicals = malloc(n * sizeof *s->typicals);
    if ((typical_p && !s->typicals) || !s->seen || !s->counts || !s->logits || !s->heap || !s->biases) {
        wt_sampler_destroy(s);
        return wt_fail(WT_ERR_NO_MEMORY, "sampler: a vocabulary of %d", vocab_size);
    }
    if (config->n_biases) memcpy(s->biases, config->biases, (size_t)config->n_biases * sizeof *s->biases);
    s->config.biases = s->biases;
    *sampler = s;
    return WT_OK;
}

void wt_sampler_destroy(wt_sampler *sampler)
{
    if (!sampler) return;
    free(sampler->seen);
    free(sampler->counts);
    free(sampler->logits);
    free(sampler->heap);
    free(sampler->typicals);
    free(sampler->biases);
    free(sampler);
}

void wt_sampler_forget(wt_sampler *sampler)
{
    memset(sampler->seen, 0, (size_t)sampler->vocab_size * sizeof *sampler->seen);
    memset(sampler->counts, 0, (size_t)sampler->vocab_size * sizeof *sampler->counts);
}

void wt_sampler_see(wt_sampler *sampler, const int32_t *ids, int n)
{
    for (int k = 0; k < n; k++)
        if (ids[k] >= 0 && ids[k] < sampler->vocab_size) sampler->seen[ids[k]] = true;
}

bool wt__sampler_is_plain(const wt_sampler *sampler)
{
    const wt_sampler_config *c = &sampler->config;
    const bool repeats = c->repetition_penalty == 0 || c->repetition_penalty == 1;
    return c->temperature == 0 && repeats && c->presence_penalty == 0 && c->frequency_penalty == 0 && !c->n_biases;
}

// ---- the heap: larger logits first, of equal ones the smaller id

static bool before(candidate a, candidate b) { return a.logit > b.logit || (a.logit == b.logit && a.id < b.id); }

static void sink(candidate *heap, int n, int at)
{
    const candidate moved = heap[at];
    for (int child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && before(heap[child + 1], heap[child])) child++;
        if (!before(heap[child], moved)) break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

static void build_heap(wt_sampler *s, double most)
{
    s->n_heap = s->vocab_size;
    s->n_taken = 0;
    for (int k = 0; k < s->vocab_size; k++)
        s->heap[k] = (candidate){(float)((s->logits[k] - most) / s->config.temperature), k};
    for (int k = s->n_heap / 2; k-- > 0;) sink(s->heap, s->n_heap, k);
}

/// The most probable that is left moves behind the heap: number k taken lies at vocab_size - 1 - k.
static candidate take(wt_sampler *s)
{
    const candidate top = s->heap[0];
    s->heap[0] = s->heap[--s->n_heap];
    s->heap[s->n_heap] = top;
    s->n_taken++;
    sink(s->heap, s->n_heap, 0);
    return top;
}

static candidate taken(const wt_sampler *s, int k) { return s->heap[s->vocab_size - 1 - k]; }

// ---- the choice

static void penalise(wt_sampler *s)
{
    const wt_sampler_config *c = &s->config;
    const float repeated = c->repetition_penalty > 0 ? (float)c->repetition_penalty : 1;
    for (int k = 0; k < s->vocab_size; k++) {
        float *x = &s->logits[k];
        if (s->seen[k]) *x = *x < 0 ? *x * repeated : *x / repeated;
        if (s->counts[k]) *x -= (float)(c->presence_penalty + c->frequency_penalty * s->counts[k]);
    }
    for (int k = 0; k < c->n_biases; k++) s->logits[c->biases[k].id] += c->biases[k].bias;
}

static int32_t largest(const float *x, int n)
{
    int best = 0;
    for (int k = 1; k < n; k++)
        if (x[k] > x[best]) best = k;
    return best;
}

static int nearer(const void *a, const void *b)
{
    const typical *x = a, *y = b;
    if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

/// Of the first n taken, those whose surprise is nearest to the mean, until their share reaches typical_p; one of them
/// by `number` in [0, 1).
static int32_t draw_typical(wt_sampler *s, int n, double number)
{
    double total = 0, mean = 0, mass = 0, sum = 0;
    for (int k = 0; k < n; k++) {
        const candidate c = taken(s, k);
        s->typicals[k] = (typical){.weight = exp(c.logit), .id = c.id};
        total += s->typicals[k].weight;
    }
    for (int k = 0; k < n; k++)
        if (s->typicals[k].weight > 0) mean -= s->typicals[k].weight / total * log(s->typicals[k].weight / total);
    for (int k = 0; k < n; k++) s->typicals[k].distance = fabs(-log(s->typicals[k].weight / total) - mean);
    qsort(s->typicals, (size_t)n, sizeof *s->typicals, nearer);
    int kept = 0;
    while (kept < n && mass < s->config.typical_p * total) mass += s->typicals[kept++].weight;
    for (int k = 0; k < kept; k++) {
        sum += s->typicals[k].weight;
        if (sum > number * mass) return s->typicals[k].id;
    }
    return s->typicals[0].id;
}

/// Weights are exp(logit), of the largest 1. Take what top-k, top-p and min-p leave, then as many as the number drawn
/// asks.
static int32_t draw(wt_sampler *s, double most)
{
    const wt_sampler_config *c = &s->config;
    build_heap(s, most);
    double total = 0, mass = 0;
    if (c->top_k && c->top_k < s->vocab_size)
        for (int k = 0; k < c->top_k; k++) total += exp(take(s).logit);
    else
        for (int k = 0; k < s->vocab_size; k++) total += exp(s->heap[k].logit);
    const bool top_p = c->top_p > 0 && c->top_p < 1, cut = top_p || c->min_p > 0 || s->n_taken;
    const int n_most = s->n_taken ? s->n_taken : s->vocab_size;
    int n = 0;
    for (; cut && n < n_most; n++) {
        if (n >= s->n_taken) take(s);
        const double weight = exp(taken(s, n).logit);
        if (n && ((top_p && mass >= c->top_p * total) || weight < c->min_p)) break;
        mass += weight;
    }
    const double number = wt_philox_uniform(c->seed, s->n_drawn++), target = number * (cut ? mass : total);
    const int n_left = cut ? n : s->vocab_size;
    if (s->typicals) {
        while (s->n_taken < n_left) take(s);
        return draw_typical(s, n_left, number);
    }
    double sum = 0;
    for (int k = 0; k < n_left; k++) {
        if (k >= s->n_taken) take(s);
        sum += exp(taken(s, k).logit);
        if (sum > target) return taken(s, k).id;
    }
    return taken(s, 0).id; // sums in another order may fall short of the target by a rounding
}

wt_status wt_sampler_pick(wt_sampler *sampler, const float *logits, int32_t *id)
{
    wt_sampler *s = sampler;
    for (int k = 0; k < s->vocab_size; k++)
        if (isnan(logits[k])) return wt_fail(WT_ERR_FORMAT, "sampler: the logit of token %d is not a number", k);
    memcpy(s->logits, logits, (size_t)s->vocab_size * sizeof *logits);
    penalise(s);
    const int32_t best = largest(s->logits, s->vocab_size);
    if (!isfinite(s->logits[best]))
        return wt_fail(WT_ERR_FORMAT, "sampler: the largest logit is %g, want a finite one", (double)s->logits[best]);
    *id = s->config.temperature > 0 ? draw(s, s->logits[best]) : best;
    s->seen[*id] = true;
    s->counts[*id]++;
    return WT_OK;
}

double wt_llm_logprob(const float *logits, int vocab_size, int32_t id)
{
    const double most = logits[largest(logits, vocab_size)];
    double total = 0;
    for (int k = 0; k < vocab_size; k++) total += exp(logits[k] - most);
    return logits[id] - most - log(total);
}
