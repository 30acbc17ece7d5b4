// Where guesses come from. None of it may change the answer: the model verifies them all.
#include "guess.h"

#include <string.h>

static int32_t largest(const float *x, int n)
{
    int best = 0;
    for (int k = 1; k < n; k++)
        if (x[k] > x[best]) best = k;
    return best;
}

// ---- n-grams of prompt and answer

/// What followed the last occurrence of the last `length` tokens, and again from there where the text ends before
/// `most` are found, for then it repeats itself; how many.
static int follow(const int32_t *ids, int n, int length, int most, int32_t *guesses)
{
    const int32_t *end = ids + n - length;
    for (int at = n - length - 1; at >= 0; at--) {
        if (memcmp(ids + at, end, sizeof *ids * (size_t)length)) continue;
        const int from = at + length, left = n - from;
        for (int k = 0; k < most; k++) guesses[k] = k < left ? ids[from + k] : guesses[k - left];
        return most;
    }
    return 0;
}

static int look_up(const int32_t *ids, int n, int most, int32_t *guesses)
{
    for (int length = 3; length >= 2; length--) {
        const int found = n > length ? follow(ids, n, length, most, guesses) : 0;
        if (found) return found;
    }
    return 0;
}

// ---- a smaller model, and the first layers

static wt_status ask_draft(wt__guesser *g, const int32_t *ids, int n, int most, int32_t *guesses)
{
    const int held = wt_llm_position(g->draft);
    wt_status status = wt_llm_prefill(g->draft, ids + held, n - held);
    for (int k = 0; k < most && !status; k++) {
        guesses[k] = largest(wt_llm_logits(g->draft), g->vocab_size);
        if (k < most - 1) status = wt_llm_decode(g->draft, guesses[k]);
    }
    return status;
}

static wt_status ask_layers(wt__guesser *g, int32_t last, int most, int32_t *guesses)
{
    const wt_llm_snapshot before = wt_llm_session_snapshot(g->session);
    wt_status status = WT_OK;
    for (int k = 0; k < most && !status; k++) {
        status = wt_llm_draft(g->session, k ? guesses[k - 1] : last, g->n_layers);
        if (!status) guesses[k] = largest(wt_llm_logits(g->session), g->vocab_size);
    }
    const wt_status back = wt_llm_session_restore(g->session, before);
    return status ? status : back;
}

// ---- Jacobi and lookahead

/// The last step's own next tokens, then the last of them again.
static int go_on(const wt__guesser *g, int32_t last, int n, int most, int32_t *guesses)
{
    for (int k = 0; n < most; k++, n++) guesses[n] = k < g->n_coming ? g->coming[k] : n ? guesses[n - 1] : last;
    return n;
}

/// An n-gram that began with the last token, then as Jacobi goes on from there.
static int look_ahead(const wt__guesser *g, int32_t last, int most, int32_t *guesses)
{
    const wt__ngrams *seen = &g->pool[(uint32_t)last % WT__POOL_KEYS];
    for (int k = 0; k < seen->n; k++) {
        const int32_t *gram = seen->next[(seen->at - 1 - k + 2 * WT__POOL) % WT__POOL];
        if (gram[0] != last || most < 2) continue;
        memcpy(guesses, gram + 1, 2 * sizeof *guesses);
        return go_on(g, last, 2, most, guesses);
    }
    return go_on(g, last, 0, most, guesses);
}

static void keep(wt__guesser *g, int32_t a, int32_t b, int32_t c)
{
    wt__ngrams *seen = &g->pool[(uint32_t)a % WT__POOL_KEYS];
    memcpy(seen->next[seen->at], (int32_t[]){a, b, c}, sizeof seen->next[0]);
    seen->at = (seen->at + 1) % WT__POOL;
    if (seen->n < WT__POOL) seen->n++;
}

void wt__guess_learn(wt__guesser *g, const int32_t *input, int n_input, int at, int n_right, const int32_t *next)
{
    if (g->strategy == WT_STRATEGY_DRAFT && wt_llm_position(g->draft) > at + n_right) {
        const wt_status status = wt_llm_session_restore(g->draft, (wt_llm_snapshot){at + n_right, 0});
        (void)status; // a restore to fewer tokens does not fail
    }
    if (g->strategy != WT_STRATEGY_JACOBI && g->strategy != WT_STRATEGY_LOOKAHEAD) return;
    // a token of the step before, the one after it in this step, and what this step has next
    for (int k = 0; g->pool && k < n_input; k++) {
        const int before = at + k - 1 - g->input_at;
        if (before >= 0 && before < g->n_input) keep(g, g->input[before], input[k], next[k]);
    }
    memcpy(g->input, input, sizeof *input * (size_t)n_input);
    g->n_input = n_input;
    g->input_at = at;
    g->n_coming = n_input - n_right;
    memcpy(g->coming, next + n_right, sizeof *next * (size_t)g->n_coming);
}

// ---- the choice

wt_status wt__guess(wt__guesser *g, const int32_t *ids, int n, int most, int32_t *guesses, int *n_guesses)
{
    *n_guesses = most;
    switch (g->strategy) {
    case WT_STRATEGY_NGRAM:
        *n_guesses = look_up(ids, n, most, guesses);
        return WT_OK;
    case WT_STRATEGY_DRAFT:
        return ask_draft(g, ids, n, most, guesses);
    case WT_STRATEGY_EARLY:
        return ask_layers(g, ids[n - 1], most, guesses);
    case WT_STRATEGY_JACOBI:
        *n_guesses = go_on(g, ids[n - 1], 0, most, guesses);
        return WT_OK;
    case WT_STRATEGY_LOOKAHEAD:
        *n_guesses = look_ahead(g, ids[n - 1], most, guesses);
        return WT_OK;
    default:
        *n_guesses = 0;
        return WT_OK;
    }
}
