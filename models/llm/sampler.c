// Choosing a token, with the arithmetic of kernels/llm/sample_kernel.h, which a GPU's kernel shares. Only as many
// candidates are put in order as the choice needs: they lie in a heap and are taken from it, the most probable first.
#include "sampler.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 32 }; ///< bits of a key below the depth

typedef struct typical {
    uint64_t key; ///< its distance from the mean depth, then its id
    uint64_t weight;
} typical;

/// A token that was counted in the tallies' state `before`.
typedef struct counted {
    uint64_t before;
    int32_t id;
} counted;

struct wt_sampler {
    wt_sampler_config config;
    wt_llm_draw draw;
    int vocab_size;
    wt_llm_tally *tallies; ///< [vocab_size] of penalties and biases; NULL without
    float *logits;         ///< [vocab_size] after them
    uint64_t *heap;        ///< [vocab_size] keys: [0 .. n_heap - 1] a heap, from n_all backwards what was taken
    int n_all, n_heap;
    typical *typicals;            ///< [vocab_size] of typical sampling; NULL without
    uint64_t serial;              ///< of this state of the tallies: no other state of any sampler has it
    counted log[WT__SAMPLER_LOG]; ///< number n at n % WT__SAMPLER_LOG; of what follows each other up to now
    unsigned n_log, n_counted;    ///< how many, and the number of the next
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

/// Biases of one token add up.
static wt_status take_tallies(wt_sampler *s)
{
    const wt_sampler_config *c = &s->config;
    const bool repeats = c->repetition_penalty != 0 && c->repetition_penalty != 1;
    if (!repeats && c->presence_penalty == 0 && c->frequency_penalty == 0 && !c->n_biases) return WT_OK;
    s->tallies = calloc((size_t)s->vocab_size, sizeof *s->tallies);
    if (!s->tallies) return wt_fail(WT_ERR_NO_MEMORY, "sampler: a vocabulary of %d", s->vocab_size);
    for (int k = 0; k < c->n_biases; k++) s->tallies[c->biases[k].id].bias += c->biases[k].bias;
    return WT_OK;
}

static wt_llm_draw settings(const wt_sampler_config *c, int vocab_size)
{
    const double unit = 1u << WT_SAMPLE_DEPTH_BITS, deepest = c->min_p > 0 ? -log(c->min_p) * unit : WT_SAMPLE_DEEPEST;
    return (wt_llm_draw){.depth_scale = c->temperature > 0 ? unit / c->temperature : 0,
                         .top_p = c->top_p > 0 ? c->top_p : 1,
                         .typical_p = c->typical_p > 0 ? c->typical_p : 1,
                         .presence = llround(c->presence_penalty * 4294967296.0),
                         .frequency = llround(c->frequency_penalty * 4294967296.0),
                         .seed = c->seed,
                         .repeated = c->repetition_penalty > 0 ? (float)c->repetition_penalty : 1,
                         .deepest = deepest < WT_SAMPLE_DEEPEST ? (unsigned)deepest : WT_SAMPLE_DEEPEST,
                         .top_k = c->top_k && c->top_k < vocab_size ? c->top_k : vocab_size,
                         .tally = -1};
}

static void renew_serial(wt_sampler *s)
{
    static atomic_ullong last;
    s->serial = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

/// The tallies are in a state that none have been in.
static void change(wt_sampler *s)
{
    renew_serial(s);
    s->n_log = 0;
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
    s->draw = settings(config, vocab_size);
    s->logits = malloc(n * sizeof *s->logits);
    s->heap = malloc(n * sizeof *s->heap);
    if (s->draw.typical_p < 1) s->typicals = malloc(n * sizeof *s->typicals);
    status = take_tallies(s);
    if (!status && (!s->logits || !s->heap || (s->draw.typical_p < 1 && !s->typicals)))
        status = wt_fail(WT_ERR_NO_MEMORY, "sampler: a vocabulary of %d", vocab_size);
    if (status) {
        wt_sampler_destroy(s);
        return status;
    }
    s->config.biases = NULL;
    change(s);
    *sampler = s;
    return WT_OK;
}

void wt_sampler_destroy(wt_sampler *sampler)
{
    if (!sampler) return;
    free(sampler->tallies);
    free(sampler->logits);
    free(sampler->heap);
    free(sampler->typicals);
    free(sampler);
}

void wt_sampler_forget(wt_sampler *sampler)
{
    if (!sampler->tallies) return;
    for (int k = 0; k < sampler->vocab_size; k++) sampler->tallies[k].count = 0;
    change(sampler);
}

void wt_sampler_see(wt_sampler *sampler, const int32_t *ids, int n)
{
    if (!sampler->tallies) return;
    for (int k = 0; k < n; k++)
        if (ids[k] >= 0 && ids[k] < sampler->vocab_size) sampler->tallies[ids[k]].count |= WT_LLM_SEEN;
    change(sampler);
}

int wt__sampler_vocab_size(const wt_sampler *sampler) { return sampler->vocab_size; }

const wt_llm_draw *wt__sampler_draw(const wt_sampler *sampler) { return &sampler->draw; }

const wt_llm_tally *wt__sampler_tallies(const wt_sampler *sampler) { return sampler->tallies; }

uint64_t wt__sampler_serial(const wt_sampler *sampler) { return sampler->serial; }

void wt__sampler_chose(wt_sampler *sampler, int32_t id)
{
    wt_sampler *s = sampler;
    if (s->draw.depth_scale > 0) s->draw.number++;
    if (!s->tallies) return;
    s->tallies[id].count = (s->tallies[id].count + 1) | WT_LLM_SEEN;
    s->log[s->n_counted++ % WT__SAMPLER_LOG] = (counted){s->serial, id};
    if (s->n_log < WT__SAMPLER_LOG) s->n_log++;
    renew_serial(s);
}

void wt_sampler_took(wt_sampler *sampler, int32_t id)
{
    if (id >= 0 && id < sampler->vocab_size) wt__sampler_chose(sampler, id);
}

int wt__sampler_since(const wt_sampler *s, uint64_t serial, int32_t *ids)
{
    int n = 0;
    if (serial == s->serial) return 0;
    for (unsigned k = 1; k <= s->n_log && !n; k++)
        if (s->log[(s->n_counted - k) % WT__SAMPLER_LOG].before == serial) n = (int)k;
    for (int k = 0; k < n; k++) ids[k] = s->log[(s->n_counted - (unsigned)(n - k)) % WT__SAMPLER_LOG].id;
    return n ? n : -1;
}

// ---- the heap: smaller keys first

static void sink(uint64_t *heap, int n, int at)
{
    const uint64_t moved = heap[at];
    for (int child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= moved) break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

/// All tokens that are not out, and their mass.
static uint64_t build_heap(wt_sampler *s, float most)
{
    uint64_t mass = 0;
    int n = 0;
    for (int k = 0; k < s->vocab_size; k++) {
        const unsigned depth = wt_sample_depth(s->logits[k], most, s->draw.depth_scale);
        if (depth == WT_SAMPLE_OUT) continue;
        s->heap[n++] = wt_sample_key(depth, k);
        mass += wt_sample_weight(depth);
    }
    for (int k = n / 2; k-- > 0;) sink(s->heap, n, k);
    s->n_all = s->n_heap = n;
    return mass;
}

/// Key number n in their order. The smallest that is left moves behind the heap: number n lies at n_all - 1 - n.
static uint64_t nth(wt_sampler *s, int n)
{
    while (s->n_all - s->n_heap <= n) {
        const uint64_t top = s->heap[0];
        s->heap[0] = s->heap[--s->n_heap];
        s->heap[s->n_heap] = top;
        sink(s->heap, s->n_heap, 0);
    }
    return s->heap[s->n_all - 1 - n];
}

// ---- the choice

static void penalise(wt_sampler *s)
{
    for (int k = 0; s->tallies && k < s->vocab_size; k++)
        s->logits[k] = wt_sample_penalised(&s->draw, s->tallies[k], s->logits[k]);
}

static int32_t largest(const float *x, int n)
{
    int best = 0;
    for (int k = 1; k < n; k++)
        if (x[k] > x[best]) best = k;
    return best;
}

/// The first tokens: how many, their mass, the last of them.
typedef struct prefix {
    int n;
    uint64_t mass;
    int32_t last;
} prefix;

/// Those whose number is below `n`, with less than `mass` before them, no deeper than `deepest`.
static prefix first(wt_sampler *s, int n, uint64_t mass, unsigned deepest)
{
    prefix p = {0};
    for (uint64_t key; p.n < n && p.mass < mass && (key = nth(s, p.n)) >> DEPTH <= deepest; p.n++) {
        p.mass += wt_sample_weight((unsigned)(key >> DEPTH));
        p.last = (int32_t)(uint32_t)key;
    }
    return p;
}

static int by_key(const void *a, const void *b)
{
    const typical *x = a, *y = b;
    return x->key < y->key ? -1 : 1;
}

/// Of the first n, those whose surprise is nearest to its mean, until their share reaches typical_p; one of them. A
/// surprise is a depth and what is the same for all.
static int32_t draw_typical(wt_sampler *s, prefix kept)
{
    unsigned long long high = 0, low = 0;
    uint64_t mass = 0, sum = 0;
    for (int k = 0; k < kept.n; k++) {
        const uint64_t key = nth(s, k), weight = wt_sample_weight((unsigned)(key >> DEPTH));
        s->typicals[k] = (typical){key, weight};
        wt_sample_add_moment(weight, (unsigned)(key >> DEPTH), &high, &low);
    }
    const unsigned mean = wt_sample_mean(high, low, kept.mass);
    for (int k = 0; k < kept.n; k++) {
        const uint64_t key = s->typicals[k].key;
        s->typicals[k].key = wt_sample_key(wt_sample_distance((unsigned)(key >> DEPTH), mean), (int)(uint32_t)key);
    }
    qsort(s->typicals, (size_t)kept.n, sizeof *s->typicals, by_key);
    const uint64_t wanted = wt_sample_share(s->draw.typical_p, kept.mass);
    for (int k = 0; k < kept.n && mass < wanted; k++) mass += s->typicals[k].weight;
    const uint64_t target = wt_sample_target(&s->draw, mass);
    const typical *t = s->typicals;
    while ((sum += t->weight) <= target) t++;
    return (int32_t)(uint32_t)t->key;
}

/// What top-k leaves, of that what top-p and min-p leave, and one of those.
static int32_t draw(wt_sampler *s, float most)
{
    const wt_llm_draw *d = &s->draw;
    prefix kept = {.mass = build_heap(s, most)};
    kept.n = s->n_all;
    if (d->top_k < kept.n) kept = first(s, d->top_k, WT_SAMPLE_ALL, WT_SAMPLE_OUT);
    if (d->top_p < 1 || d->deepest < WT_SAMPLE_DEEPEST)
        kept = first(s, kept.n, wt_sample_share(d->top_p, kept.mass), d->deepest);
    if (s->typicals) return draw_typical(s, kept);
    return first(s, kept.n, wt_sample_target(d, kept.mass) + 1, WT_SAMPLE_OUT).last;
}

static wt_status choose(wt_sampler *s, const float *logits, int32_t *id)
{
    for (int k = 0; k < s->vocab_size; k++)
        if (isnan(logits[k])) return wt_fail(WT_ERR_FORMAT, "sampler: the logit of token %d is not a number", k);
    memcpy(s->logits, logits, (size_t)s->vocab_size * sizeof *logits);
    penalise(s);
    const int32_t best = largest(s->logits, s->vocab_size);
    if (!isfinite(s->logits[best]))
        return wt_fail(WT_ERR_FORMAT, "sampler: the largest logit is %g, want a finite one", (double)s->logits[best]);
    *id = s->draw.depth_scale > 0 ? draw(s, s->logits[best]) : best;
    return WT_OK;
}

wt_status wt_sampler_pick(wt_sampler *sampler, const float *logits, int32_t *id)
{
    wt_status status = choose(sampler, logits, id);
    if (!status) wt__sampler_chose(sampler, *id);
    return status;
}

wt_status wt__sampler_pick_after(wt_sampler *s, const float *logits, const int32_t *guesses, int n, int32_t *id)
{
    const wt_llm_draw draw = s->draw;
    wt_llm_tally *saved = s->tallies ? malloc(sizeof *saved * (size_t)(n + 1)) : NULL;
    if (s->tallies && !saved) return wt_fail(WT_ERR_NO_MEMORY, "sampler: %d guesses", n);
    for (int k = 0; k < n && saved; k++) {
        wt_llm_tally *tally = &s->tallies[guesses[k]];
        saved[k] = *tally;
        tally->count = (tally->count + 1) | WT_LLM_SEEN;
    }
    if (draw.depth_scale > 0) s->draw.number += (unsigned)n;
    wt_status status = choose(s, logits, id);
    s->draw = draw;
    for (int k = n; k-- > 0 && saved;) s->tallies[guesses[k]] = saved[k];
    free(saved);
    return status;
}

// ---- probabilities

static double log_total(const float *logits, int vocab_size, double most)
{
    double total = 0;
    for (int k = 0; k < vocab_size; k++) total += exp(logits[k] - most);
    return log(total);
}

double wt_llm_logprob(const float *logits, int vocab_size, int32_t id)
{
    const double most = logits[largest(logits, vocab_size)];
    return logits[id] - most - log_total(logits, vocab_size, most);
}

void wt_llm_tell(const float *logits, int vocab_size, int n_top, wt_llm_pick *pick)
{
    const double most = logits[largest(logits, vocab_size)], total = log_total(logits, vocab_size, most);
    int n = 0;
    for (int k = 0; k < vocab_size && n_top; k++) {
        if (n == n_top && !(logits[k] > logits[pick->top_ids[n - 1]])) continue;
        int at = n < n_top ? n++ : n - 1;
        for (; at && logits[k] > logits[pick->top_ids[at - 1]]; at--) pick->top_ids[at] = pick->top_ids[at - 1];
        pick->top_ids[at] = k;
    }
    for (int k = 0; k < n; k++) pick->top_logprobs[k] = (float)(logits[pick->top_ids[k]] - most - total);
    pick->n_top = n;
    pick->logprob = (float)(logits[pick->id] - most - total);
}
