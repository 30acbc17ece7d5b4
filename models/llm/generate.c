// The loop of an answer: guess, verify, choose, tell. Every token is chosen from the model's own logits by the sampler
// in its order, so guesses change the time and nothing else.
//
// On a GPU the logits of tokens that are verified together differ a little from those of single steps, and so do the
// keys and values that such tokens leave (wt__llm_doubt). Where the most probable token is wanted and leads the second
// by less than that may make up, it is decided by single steps alone: all that they have not computed so far is
// computed once more, a token at a time. No position is computed a third time.
#include "answer.h"
#include "guess.h"
#include "sampler.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/clock.h>

enum { DEFAULT_GUESSES = 5, DOUBT_FACTOR = 4, ROUNDS = 8, FIRST_REST = 32, LONGEST_REST = 1024, SINGLE_STEPS = 3 };

/// Does guessing pay? Judged over ROUNDS rounds against what single steps take.
typedef struct payoff {
    double single_s, spent_s; ///< a single step, smoothed; of the rounds so far
    double owed_s;            ///< that deciding again took, and no rounds have gained since
    int n_single, n_rounds, n_gained;
    int rest, next_rest; ///< single steps until guessing is tried again
} payoff;

/// What may come after a token.
typedef struct choice {
    const float *logits; ///< of which the sampler chooses; NULL = the session chose
    int32_t id;          ///< by the session, or the most probable
    float lead;          ///< of the most probable one (wt_llm_verify_greedy)
} choice;

struct wt_generator {
    wt_generator_config config;
    const wt_llm *llm;
    int vocab_size;
    bool is_greedy;  ///< the most probable tokens are chosen
    float doubt;     ///< leads below it are decided by single steps; 0 = none
    bool has_experts; ///< leads are those of routers too
    int n_single;    ///< positions whose keys and values are those of single steps, and of the prompt
    bool by_session; ///< the session chooses, and logits are not asked for
    wt__answer answer;
    float *logits; ///< [n_guesses + 1][vocab_size]
    float *leads;  ///< [n_positions] of what was told after each
    wt__guesser guesser;
    payoff payoff;
    bool starts_thinking;
    wt_status run_status; ///< of take_run
    atomic_bool cancelled;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool paused;
};

// ---- names

const char *wt_strategy_name(wt_strategy strategy)
{
    static const char *const names[] = {
#define NAME(code, name) [code] = name,
        WT_STRATEGY_LIST(NAME)
#undef NAME
    };
    return (unsigned)strategy < WT_N_STRATEGIES ? names[strategy] : "unknown";
}

wt_status wt_strategy_find(const char *name, wt_strategy *strategy)
{
    for (int k = 0; k < WT_N_STRATEGIES; k++)
        if (!strcmp(name, wt_strategy_name((wt_strategy)k))) {
            *strategy = (wt_strategy)k;
            return WT_OK;
        }
    return wt_fail(WT_ERR_NOT_FOUND,
                   "strategy \"%.40s\" is not known, want single, ngram, draft, early, jacobi or lookahead", name);
}

// ---- create

static wt_status check(const wt_generator_config *c)
{
    const wt_llm *llm = c->session->llm;
    wt_status status = wt__answer_fits("generate", llm, c->tokenizer);
    if (status) return status;
    if (c->n_positions < 1) return wt_fail(WT_ERR_BAD_ARG, "generate: %d positions, want 1 or more", c->n_positions);
    if (c->n_top < 0 || c->n_top > WT_LLM_MOST_TOP)
        return wt_fail(WT_ERR_BAD_ARG, "generate: %d most probable tokens, want 0..%d", c->n_top, WT_LLM_MOST_TOP);
    const int most_kept = c->n_positions > 2 ? c->n_positions - 2 : 0; // one that is dropped, and the last
    if (c->n_keep < 0 || c->n_keep > most_kept)
        return wt_fail(WT_ERR_BAD_ARG, "generate: keep %d tokens, want 0..%d", c->n_keep, most_kept);
    if (c->n_guesses < 0 || c->n_guesses > WT__MAX_GUESSES)
        return wt_fail(WT_ERR_BAD_ARG, "generate: %d guesses a step, want 0..%d", c->n_guesses, WT__MAX_GUESSES);
    if (c->n_draft_layers < 0 || c->n_draft_layers > llm->config.n_layers)
        return wt_fail(WT_ERR_BAD_ARG, "generate: %d layers of a draft, want 0..%d", c->n_draft_layers,
                       llm->config.n_layers);
    if ((unsigned)c->strategy >= WT_N_STRATEGIES)
        return wt_fail(WT_ERR_BAD_ARG, "generate: strategy %d, want 0..%d", (int)c->strategy, WT_N_STRATEGIES - 1);
    if (c->strategy != WT_STRATEGY_DRAFT) return WT_OK;
    if (!c->draft) return wt_fail(WT_ERR_BAD_ARG, "generate: strategy draft wants a draft's session");
    const int vocab = c->draft->llm->config.vocab_size;
    if (vocab == llm->config.vocab_size) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG, "generate: the draft's vocabulary has %d tokens, the model's %d", vocab,
                   llm->config.vocab_size);
}

static wt_status take_memory(wt_generator *g)
{
    const size_t n = (size_t)g->config.n_guesses + 1;
    g->logits = malloc(n * (size_t)g->vocab_size * sizeof *g->logits);
    g->leads = malloc((size_t)g->config.n_positions * sizeof *g->leads);
    const bool pool = g->config.strategy == WT_STRATEGY_LOOKAHEAD;
    if (pool) g->guesser.pool = calloc(WT__POOL_KEYS, sizeof *g->guesser.pool);
    if (g->logits && g->leads && (!pool || g->guesser.pool)) return WT_OK;
    return wt_fail(WT_ERR_NO_MEMORY, "generate: a vocabulary of %d", g->vocab_size);
}

static void settle(wt_generator *g)
{
    wt_generator_config *c = &g->config;
    const wt_model_config *m = &g->llm->config;
    if (!c->n_guesses) c->n_guesses = DEFAULT_GUESSES;
    if (!c->n_draft_layers) c->n_draft_layers = (m->n_layers + 3) / 4;
    if (m->rope.kind == WT_ROPE_DYNAMIC) c->strategy = WT_STRATEGY_SINGLE;
    g->vocab_size = m->vocab_size;
    g->has_experts = m->n_experts;
    const bool is_told = c->logprobs || c->n_top;
    g->is_greedy = !wt__sampler_tallies(c->sampler) && !(wt__sampler_draw(c->sampler)->depth_scale > 0);
    g->by_session = !is_told && (g->is_greedy || c->session->gpu);
    if (g->is_greedy && c->strategy != WT_STRATEGY_SINGLE)
        g->doubt = c->doubt > 0 ? c->doubt : wt__llm_doubt(c->session);
    g->guesser = (wt__guesser){.strategy = c->strategy,
                               .session = c->session,
                               .draft = c->draft,
                               .vocab_size = m->vocab_size,
                               .n_layers = c->n_draft_layers};
    g->payoff = (payoff){.next_rest = FIRST_REST};
}

wt_status wt_generator_create(const wt_generator_config *config, wt_generator **generator)
{
    wt_generator *g = *generator = NULL;
    wt_status status = check(config);
    if (status) return status;
    if (!(g = calloc(1, sizeof *g))) return wt_fail(WT_ERR_NO_MEMORY, "generate: handle");
    pthread_mutex_init(&g->mutex, NULL);
    pthread_cond_init(&g->changed, NULL);
    g->config = *config;
    g->llm = config->session->llm;
    settle(g);
    status = take_memory(g);
    g->answer = (wt__answer){.llm = g->llm,
                             .tokenizer = config->tokenizer,
                             .vocab = config->vocab,
                             .max_tokens = config->max_tokens,
                             .n_positions = config->n_positions,
                             .ignore_eos = config->ignore_eos,
                             .goes_on = config->n_keep > 0,
                             .on_token = config->on_token,
                             .user = config->user};
    if (!status) status = wt__answer_create(&g->answer, config->text);
    g->starts_thinking = config->text && config->text->starts_thinking;
    g->config.text = NULL;
    if (!status) {
        *generator = g;
        return WT_OK;
    }
    wt_generator_destroy(g);
    return status;
}

void wt_generator_destroy(wt_generator *generator)
{
    if (!generator) return;
    wt__answer_destroy(&generator->answer);
    free(generator->guesser.pool);
    free(generator->leads);
    free(generator->logits);
    pthread_cond_destroy(&generator->changed);
    pthread_mutex_destroy(&generator->mutex);
    free(generator);
}

void wt_generator_start_thinking(wt_generator *generator, bool thinking) { generator->starts_thinking = thinking; }

// ---- wishes of other threads

void wt_generator_cancel(wt_generator *generator)
{
    pthread_mutex_lock(&generator->mutex);
    generator->cancelled = true;
    pthread_cond_broadcast(&generator->changed);
    pthread_mutex_unlock(&generator->mutex);
}

void wt_generator_pause(wt_generator *generator, bool pause)
{
    pthread_mutex_lock(&generator->mutex);
    generator->paused = pause;
    pthread_cond_broadcast(&generator->changed);
    pthread_mutex_unlock(&generator->mutex);
}

/// Between steps: wait while paused; false once cancelled.
static bool may_go_on(wt_generator *g)
{
    pthread_mutex_lock(&g->mutex);
    while (g->paused && !g->cancelled) pthread_cond_wait(&g->changed, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
    const wt_generator_config *c = &g->config;
    if (g->cancelled || (c->may_go_on && !c->may_go_on(c->user))) wt__answer_end(&g->answer, WT_FINISH_CANCELLED);
    return !g->answer.ended;
}

// ---- steps

static wt_status choose(wt_generator *g, const float *logits, int32_t *id)
{
    wt_status status = wt_sampler_pick(g->config.sampler, logits, id);
    if (status) return status;
    wt_llm_pick pick = {.id = *id};
    if (g->config.logprobs || g->config.n_top) wt_llm_tell(logits, g->vocab_size, g->config.n_top, &pick);
    return wt__answer_take(&g->answer, &pick);
}

/// A token that the session chose, as the sampler would have.
static wt_status take(wt_generator *g, int32_t id)
{
    if (id < 0) return wt_fail(WT_ERR_FORMAT, "generate: after %d tokens a logit is not a number", g->answer.n_ids);
    wt__sampler_chose(g->config.sampler, id);
    return wt__answer_take(&g->answer, &(wt_llm_pick){.id = id});
}

static double seconds_since(int64_t begin) { return (double)(wt_clock_now_ns(NULL) - begin) * 1e-9; }

static bool worth_guessing(const wt_generator *g)
{
    if (g->config.strategy == WT_STRATEGY_SINGLE) return false;
    return g->config.keep_guessing || (g->payoff.n_single >= SINGLE_STEPS && !g->payoff.rest);
}

static void note_single(payoff *p, double seconds)
{
    p->single_s = p->n_single++ ? 0.8 * p->single_s + 0.2 * seconds : seconds;
    if (p->rest) p->rest--;
}

static void note_round(wt_generator *g, double seconds, int n_gained)
{
    payoff *p = &g->payoff;
    p->spent_s += seconds;
    p->n_gained += n_gained;
    if (++p->n_rounds < ROUNDS) return;
    const double gained_s = p->n_gained * p->single_s - p->spent_s;
    if (gained_s > 0) p->owed_s = fmax(p->owed_s - gained_s, 0);
    if ((gained_s < 0 || p->owed_s > 0) && !g->config.keep_guessing) {
        p->rest = p->next_rest;
        p->next_rest = p->next_rest < LONGEST_REST ? 2 * p->next_rest : LONGEST_REST;
        g->answer.report.n_switched_off++;
    } else
        p->next_rest = FIRST_REST;
    p->spent_s = 0;
    p->n_rounds = p->n_gained = 0;
}

/// Append tokens [n], and what may come after each to `next`.
static wt_status append(wt_generator *g, const int32_t *ids, int n, choice *next)
{
    wt_llm_session *s = g->config.session;
    int32_t chosen[WT__MAX_GUESSES + 1];
    float leads[WT__MAX_GUESSES + 1] = {0};
    wt_status status = !g->by_session ? wt__llm_verify(s, ids, n, g->logits, leads)
                       : g->is_greedy ? wt_llm_verify_greedy(s, ids, n, chosen, leads)
                                      : wt_llm_verify_drawn(s, ids, n, g->config.sampler, chosen);
    for (int k = 0; k < n && !status; k++) {
        const float *logits = g->logits + (int64_t)k * g->vocab_size;
        next[k] = (choice){.id = chosen[k], .lead = leads[k]};
        if (g->by_session) continue;
        next[k].logits = logits;
        next[k].id = wt__llm_most_probable(logits, g->vocab_size, &next[k].lead);
        next[k].lead = fminf(next[k].lead, leads[k]);
    }
    return status;
}

/// Is what comes after the token at that position to be decided by single steps, which have not all computed it?
static bool is_doubtful(const wt_generator *g, const choice *c, int position)
{
    return c->lead < g->doubt && g->n_single <= position;
}

/// What single steps chose after a position, and what was told, or would have been: how far their leads are apart, as
/// a sum where the tokens differ, is by how much verified guesses may err. Not where a router was in doubt: behind
/// another expert all is different.
static void compare(wt_generator *g, const choice *single, int32_t told, float lead)
{
    if (g->has_experts && lead < g->doubt) return;
    const bool same = single->id == told;
    g->doubt = fmaxf(g->doubt, DOUBT_FACTOR * (same ? fabsf(single->lead - lead) : single->lead + lead));
}

/// Compute what single steps have not computed once more, up to that position, and what may come after it.
static wt_status decide_singly(wt_generator *g, int position, choice *next)
{
    const int64_t begin = wt_clock_now_ns(NULL);
    wt_llm_snapshot snapshot = wt_llm_session_snapshot(g->config.session);
    snapshot.position = g->n_single;
    wt_status status = wt_llm_session_restore(g->config.session, snapshot);
    const choice doubtful = *next;
    while (!status && g->n_single <= position && may_go_on(g)) {
        const int at = g->n_single;
        status = append(g, &g->answer.ids[at], 1, next);
        if (status) break;
        compare(g, next, at < position ? g->answer.ids[at + 1] : doubtful.id,
                at < position ? g->leads[at] : doubtful.lead);
        if (at < position && next->id != g->answer.ids[at + 1]) g->answer.report.n_differing++;
        g->leads[at] = next->lead;
        g->n_single++;
        g->answer.report.n_repeated++;
    }
    g->answer.report.n_doubtful++;
    g->payoff.owed_s += seconds_since(begin);
    return status;
}

static wt_status take_choice(wt_generator *g, const choice *c, int32_t *id)
{
    *id = c->id;
    g->leads[g->answer.n_ids - 1] = c->lead;
    return c->logits ? choose(g, c->logits, id) : take(g, *id);
}

/// Take back what was appended beyond so many tokens.
static wt_status take_back(wt_llm_session *s, int n)
{
    wt_llm_snapshot snapshot = wt_llm_session_snapshot(s);
    if (snapshot.position <= n) return WT_OK;
    snapshot.position = n;
    return wt_llm_session_restore(s, snapshot);
}

/// Verify the guesses [n] after the last token and choose as far as they are right.
static wt_status verify(wt_generator *g, const int32_t *guesses, int n, int *n_right)
{
    const int at = g->answer.n_ids - 1;
    int32_t input[WT__MAX_GUESSES + 1] = {g->answer.ids[at]}, best[WT__MAX_GUESSES + 1], id;
    choice next[WT__MAX_GUESSES + 1];
    memcpy(input + 1, guesses, sizeof *guesses * (size_t)n);
    wt_status status = append(g, input, n + 1, next);
    if (status) return status;
    for (int k = 0; k <= n; k++) best[k] = next[k].id;
    for (*n_right = 1;; ++*n_right) {
        choice *c = &next[*n_right - 1];
        const bool again = is_doubtful(g, c, at + *n_right - 1);
        if (again) status = decide_singly(g, at + *n_right - 1, c);
        if (!status && !g->answer.ended) status = take_choice(g, c, &id);
        if (status || again || g->answer.ended || g->answer.n_ids >= g->config.n_positions) break;
        if (*n_right > n || guesses[*n_right - 1] != id) break;
    }
    const wt_status back = take_back(g->config.session, at + *n_right);
    wt__guess_learn(&g->guesser, input, n + 1, at, *n_right, best);
    return status ? status : back;
}

static wt_status step_singly(wt_generator *g)
{
    const int at = g->answer.n_ids - 1;
    choice next;
    int32_t id;
    wt_status status = append(g, &g->answer.ids[at], 1, &next);
    if (!status && g->n_single == at) g->n_single++;
    if (!status && is_doubtful(g, &next, at)) status = decide_singly(g, at, &next);
    return status || g->answer.ended ? status : take_choice(g, &next, &id);
}

/// One step of the model, with guesses or without, and the tokens that come of it.
static wt_status step(wt_generator *g)
{
    const int64_t begin = wt_clock_now_ns(NULL);
    const double owed_s = g->payoff.owed_s;
    const int before = g->answer.n_ids, room = g->config.n_positions - g->answer.n_ids;
    int32_t guesses[WT__MAX_GUESSES];
    int n = 0, n_right = 0;
    wt_status status = WT_OK;
    if (worth_guessing(g))
        status = wt__guess(&g->guesser, g->answer.ids, g->answer.n_ids,
                           room < g->config.n_guesses ? room : g->config.n_guesses, guesses, &n);
    if (status == WT_ERR_FULL) { // of a draft's session
        status = WT_OK;
        n = 0;
    }
    g->answer.report.n_steps++;
    if (!status && n) {
        status = verify(g, guesses, n, &n_right);
        g->answer.report.n_guessed += n;
        g->answer.report.n_correct += n_right - 1;
        note_round(g, seconds_since(begin) - (g->payoff.owed_s - owed_s), g->answer.n_ids - before);
        return status;
    }
    if (!status) status = step_singly(g);
    if (!status) note_single(&g->payoff, seconds_since(begin) - (g->payoff.owed_s - owed_s));
    return status;
}

/// Tokens one by one in one run, which a GPU does without waiting for the host.
static bool take_run(void *user, const wt_llm_pick *pick)
{
    wt_generator *g = user;
    g->answer.report.n_steps++;
    g->run_status = wt__answer_take(&g->answer, pick);
    return !g->run_status && may_go_on(g);
}

static wt_status run_singly(wt_generator *g)
{
    const int room = g->config.n_positions - g->answer.n_ids, left = g->config.max_tokens - g->answer.report.n_tokens;
    const wt_llm_run_config run = {.n_tokens = g->config.max_tokens && left < room ? left : room,
                                   .sampler = g->config.sampler,
                                   .logprobs = g->config.logprobs,
                                   .n_top = g->config.n_top,
                                   .on_token = take_run,
                                   .user = g};
    g->run_status = WT_OK;
    wt_status status = wt_llm_run(g->config.session, g->answer.ids[g->answer.n_ids - 1], &run);
    return status ? status : g->run_status;
}

/// The context is full: half of what is not kept goes, the oldest first, and the last token is still to come.
static wt_status drop_half(wt_generator *g)
{
    wt_llm_session *s = g->config.session, *draft = g->config.draft;
    wt__answer *a = &g->answer;
    const int keep = g->config.n_keep, n_drop = (a->n_ids - keep + 1) / 2, position = wt_llm_position(s);
    wt_status status = WT_OK;
    a->n_ids -= n_drop;
    memmove(a->ids + keep, a->ids + keep + n_drop, sizeof *a->ids * (size_t)(a->n_ids - keep));
    a->report.n_dropped += n_drop;
    g->guesser.n_coming = g->guesser.n_input = 0;
    if (draft && wt_llm_position(draft) > keep)
        status = wt_llm_session_restore(draft, (wt_llm_snapshot){.position = keep});
    if (status) return status;
    if (wt_llm_can_shift(g->llm) && n_drop <= position - keep) return wt_llm_shift(s, keep, n_drop);
    const bool dynamic = g->llm->config.rope.kind == WT_ROPE_DYNAMIC; // whose kept keys would have other angles
    const int from = dynamic ? 0 : keep < position ? keep : position;
    status = wt_llm_session_restore(s, (wt_llm_snapshot){.position = from});
    return status || a->n_ids - 1 == from ? status : wt_llm_prefill(s, a->ids + from, a->n_ids - 1 - from);
}

static wt_status make_room(wt_generator *g)
{
    wt_status status = drop_half(g);
    g->n_single = wt_llm_position(g->config.session); // what is left counts as it is
    return status;
}

/// The next tokens: of one step, or as many as need no guesses.
static wt_status go_on(wt_generator *g)
{
    wt_status status = g->answer.n_ids < g->config.n_positions ? WT_OK : make_room(g);
    if (status) return status;
    return g->config.strategy == WT_STRATEGY_SINGLE ? run_singly(g) : step(g);
}

// ---- the prompt

/// Take back what is not the beginning of the prompt; at least its last token is to come.
static wt_status reuse(wt_generator *g, const int32_t *ids, int n)
{
    wt_llm_session *s = g->config.session;
    int held = wt_llm_position(s), same = 0;
    if (held > g->answer.n_ids) held = g->answer.n_ids; // a session that came with tokens
    while (same < held && same < n - 1 && g->answer.ids[same] == ids[same]) same++;
    wt_llm_snapshot snapshot = wt_llm_session_snapshot(s);
    snapshot.position = g->answer.report.n_reused = same;
    wt_status status = wt_llm_session_restore(s, snapshot);
    wt_llm_session *draft = g->config.draft;
    if (!status && draft && wt_llm_position(draft) > same)
        status = wt_llm_session_restore(draft, (wt_llm_snapshot){same, 0});
    memcpy(g->answer.ids, ids, sizeof *ids * (size_t)n);
    g->answer.n_ids = n;
    return status;
}

static wt_status prefill(wt_generator *g)
{
    const int64_t begin = wt_clock_now_ns(NULL);
    const bool whole = g->llm->config.rope.kind == WT_ROPE_DYNAMIC; // whose angles depend on the length of a call
    const int batch = whole ? g->answer.n_ids : g->config.session->n_batch;
    wt_status status = WT_OK;
    for (int at = g->answer.report.n_reused; at < g->answer.n_ids && !status && may_go_on(g);) {
        const int n = g->answer.n_ids - at < batch ? g->answer.n_ids - at : batch;
        status = wt_llm_prefill(g->config.session, g->answer.ids + at, n);
        at += n;
    }
    g->n_single = wt_llm_position(g->config.session);
    g->answer.report.prefill_s = seconds_since(begin);
    return status;
}

static wt_status begin_answer(wt_generator *g, const int32_t *ids, int n)
{
    wt_status status = wt__answer_begin(&g->answer, g->starts_thinking, n);
    if (status) return status;
    g->guesser.n_coming = g->guesser.n_input = 0;
    wt_sampler_forget(g->config.sampler);
    wt_sampler_see(g->config.sampler, ids, n);
    return reuse(g, ids, n);
}

wt_status wt_generator_run(wt_generator *generator, const int32_t *ids, int n, wt_generation *report)
{
    wt_generator *g = generator;
    int32_t id;
    wt_status status = begin_answer(g, ids, n);
    if (!status) status = prefill(g);
    const int64_t begin = wt_clock_now_ns(NULL);
    if (!status && may_go_on(g)) status = choose(g, wt_llm_logits(g->config.session), &id);
    while (!status && may_go_on(g)) status = go_on(g);
    if (!status) status = wt__answer_tell_rest(&g->answer);
    if (g->answer.ended && g->answer.report.finish == WT_FINISH_CANCELLED) g->cancelled = false;
    g->answer.report.decode_s = seconds_since(begin);
    *report = g->answer.report;
    return status;
}
