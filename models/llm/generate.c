// The loop of an answer: guess, verify, choose, tell. Every token is chosen from the model's own logits by the sampler
// in its order, so guesses change the time and nothing else.
#include "guess.h"
#include "llm_internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/clock.h>

enum { DEFAULT_GUESSES = 5, ROUNDS = 8, FIRST_REST = 32, LONGEST_REST = 1024, SINGLE_STEPS = 3 };

/// Does guessing pay? Judged over ROUNDS rounds against what single steps take.
typedef struct payoff {
    double single_s, spent_s; ///< a single step, smoothed; of the rounds so far
    int n_single, n_rounds, n_gained;
    int rest, next_rest; ///< single steps until guessing is tried again
} payoff;

struct wt_generator {
    wt_generator_config config;
    const wt_llm *llm;
    int vocab_size;
    int32_t *ids; ///< [n_positions] prompt and answer
    int n_ids;
    float *logits; ///< [n_guesses + 1][vocab_size]
    wt__guesser guesser;
    payoff payoff;
    wt_detokenizer *stream;
    wt_answer_text *text;
    bool starts_thinking;
    wt_generation report;
    wt_status run_status; ///< of take_run
    bool ended;
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

const char *wt_finish_name(wt_finish finish)
{
    static const char *const names[] = {[WT_FINISH_LENGTH] = "length",
                                        [WT_FINISH_EOS] = "eos",
                                        [WT_FINISH_STOP] = "stop",
                                        [WT_FINISH_CONTEXT] = "context",
                                        [WT_FINISH_CANCELLED] = "cancelled"};
    return (unsigned)finish <= WT_FINISH_CANCELLED ? names[finish] : "unknown";
}

// ---- create

static wt_status check(const wt_generator_config *c)
{
    const wt_llm *llm = c->session->llm;
    if (c->n_positions < 1) return wt_fail(WT_ERR_BAD_ARG, "generate: %d positions, want 1 or more", c->n_positions);
    if (c->n_top < 0 || c->n_top > WT_LLM_MOST_TOP)
        return wt_fail(WT_ERR_BAD_ARG, "generate: %d most probable tokens, want 0..%d", c->n_top, WT_LLM_MOST_TOP);
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
    g->ids = calloc((size_t)g->config.n_positions, sizeof *g->ids);
    g->logits = malloc(n * (size_t)g->vocab_size * sizeof *g->logits);
    const bool pool = g->config.strategy == WT_STRATEGY_LOOKAHEAD;
    if (pool) g->guesser.pool = calloc(WT__POOL_KEYS, sizeof *g->guesser.pool);
    if (g->ids && g->logits && (!pool || g->guesser.pool)) return WT_OK;
    return wt_fail(WT_ERR_NO_MEMORY, "generate: %d positions, a vocabulary of %d", g->config.n_positions,
                   g->vocab_size);
}

static void settle(wt_generator *g)
{
    wt_generator_config *c = &g->config;
    const wt_model_config *m = &g->llm->config;
    if (!c->n_guesses) c->n_guesses = DEFAULT_GUESSES;
    if (!c->n_draft_layers) c->n_draft_layers = (m->n_layers + 3) / 4;
    if (m->rope.kind == WT_ROPE_DYNAMIC) c->strategy = WT_STRATEGY_SINGLE;
    g->vocab_size = m->vocab_size;
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
    if (!status) status = wt_answer_text_create(config->text ? config->text : &(wt_answer_text_config){0}, &g->text);
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
    wt_detokenizer_destroy(generator->stream);
    wt_answer_text_destroy(generator->text);
    free(generator->guesser.pool);
    free(generator->logits);
    free(generator->ids);
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

static void end(wt_generator *g, wt_finish finish)
{
    if (!g->ended) g->report.finish = finish;
    g->ended = true;
}

/// Between steps: wait while paused; false once cancelled.
static bool may_go_on(wt_generator *g)
{
    pthread_mutex_lock(&g->mutex);
    while (g->paused && !g->cancelled) pthread_cond_wait(&g->changed, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
    const wt_generator_config *c = &g->config;
    if (g->cancelled || (c->may_go_on && !c->may_go_on(c->user))) end(g, WT_FINISH_CANCELLED);
    return !g->ended;
}

// ---- telling

static const char *piece_of(wt_generator *g, int32_t id, size_t *length)
{
    *length = 0;
    if (g->config.vocab) return wt_llama2c_piece(g->config.vocab, g->n_ids ? g->ids[g->n_ids - 1] : -1, id, length);
    const char *piece = g->stream ? wt_detokenizer_push(g->stream, id) : "";
    *length = strlen(piece);
    return piece;
}

static void tell(wt_generator *g, const wt_generated *token)
{
    if (g->config.on_token && !g->config.on_token(g->config.user, token)) end(g, WT_FINISH_CANCELLED);
    if (token->text.stopped) end(g, WT_FINISH_STOP);
}

/// A token of the answer is told; the answer may end with it.
static wt_status take(wt_generator *g, const wt_llm_pick *pick)
{
    const int32_t id = pick->id;
    const wt_generator_config *c = &g->config;
    if (!c->ignore_eos && wt_llm_ends(g->llm, id)) {
        end(g, WT_FINISH_EOS);
        return WT_OK;
    }
    wt_generated token = {.id = id, .logprob = pick->logprob, .pick = pick};
    size_t length;
    const char *piece = piece_of(g, id, &length);
    wt_status status = wt_answer_text_push(g->text, piece, length, &token.text);
    if (status) return status;
    g->ids[g->n_ids++] = id;
    g->report.n_tokens++;
    tell(g, &token);
    if (c->max_tokens && g->report.n_tokens >= c->max_tokens) end(g, WT_FINISH_LENGTH);
    if (g->n_ids >= c->n_positions) end(g, WT_FINISH_CONTEXT);
    return WT_OK;
}

static wt_status choose(wt_generator *g, const float *logits, int32_t *id)
{
    wt_status status = wt_sampler_pick(g->config.sampler, logits, id);
    if (status) return status;
    wt_llm_pick pick = {.id = *id};
    if (g->config.logprobs || g->config.n_top) wt_llm_tell(logits, g->vocab_size, g->config.n_top, &pick);
    return take(g, &pick);
}

/// What was held back: of a character, a tag or a stop string.
static wt_status tell_rest(wt_generator *g)
{
    wt_generated token = {.id = -1};
    const char *rest = g->stream ? wt_detokenizer_flush(g->stream) : "";
    wt_answer_part first;
    wt_status status = wt_answer_text_push(g->text, rest, strlen(rest), &first);
    if (status) return status;
    token.text = first;
    if (first.n_thinking + first.n_answer) tell(g, &token);
    wt_answer_text_flush(g->text, &token.text);
    if (token.text.n_thinking + token.text.n_answer) tell(g, &token);
    return WT_OK;
}

// ---- steps

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
    if (p->n_gained * p->single_s < p->spent_s && !g->config.keep_guessing) {
        p->rest = p->next_rest;
        p->next_rest = p->next_rest < LONGEST_REST ? 2 * p->next_rest : LONGEST_REST;
        g->report.n_switched_off++;
    } else
        p->next_rest = FIRST_REST;
    p->spent_s = 0;
    p->n_rounds = p->n_gained = 0;
}

/// Verify the guesses [n] after the last token and choose as far as they are right.
static wt_status verify(wt_generator *g, const int32_t *guesses, int n, int *n_right)
{
    wt_llm_session *s = g->config.session;
    const int at = g->n_ids - 1;
    wt_llm_snapshot snapshot = wt_llm_session_snapshot(s);
    int32_t input[WT__MAX_GUESSES + 1] = {g->ids[at]}, id;
    memcpy(input + 1, guesses, sizeof *guesses * (size_t)n);
    wt_status status = wt_llm_verify(s, input, n + 1, g->logits);
    if (status) return status;
    for (*n_right = 1;; ++*n_right) {
        status = choose(g, g->logits + (int64_t)(*n_right - 1) * g->vocab_size, &id);
        if (status || g->ended || *n_right > n || guesses[*n_right - 1] != id) break;
    }
    snapshot.position = at + *n_right;
    if (*n_right <= n) {
        const wt_status back = wt_llm_session_restore(s, snapshot);
        if (!status) status = back;
    }
    wt__guess_learn(&g->guesser, input, n + 1, at, *n_right, g->logits);
    return status;
}

/// One step of the model, with guesses or without, and the tokens that come of it.
static wt_status step(wt_generator *g)
{
    const int64_t begin = wt_clock_now_ns(NULL);
    const int before = g->n_ids, room = g->config.n_positions - g->n_ids;
    int32_t guesses[WT__MAX_GUESSES], id;
    int n = 0, n_right = 0;
    wt_status status = WT_OK;
    if (worth_guessing(g))
        status = wt__guess(&g->guesser, g->ids, g->n_ids, room < g->config.n_guesses ? room : g->config.n_guesses,
                           guesses, &n);
    if (status == WT_ERR_FULL) { // of a draft's session
        status = WT_OK;
        n = 0;
    }
    g->report.n_steps++;
    if (!status && n) {
        status = verify(g, guesses, n, &n_right);
        g->report.n_guessed += n;
        g->report.n_correct += n_right - 1;
        note_round(g, seconds_since(begin), g->n_ids - before);
        return status;
    }
    if (!status) status = wt_llm_decode(g->config.session, g->ids[g->n_ids - 1]);
    if (!status) note_single(&g->payoff, seconds_since(begin));
    return status ? status : choose(g, wt_llm_logits(g->config.session), &id);
}

/// Tokens one by one in one run, which a GPU does without waiting for the host.
static bool take_run(void *user, const wt_llm_pick *pick)
{
    wt_generator *g = user;
    g->report.n_steps++;
    g->run_status = take(g, pick);
    return !g->run_status && may_go_on(g);
}

static wt_status run_singly(wt_generator *g)
{
    const int room = g->config.n_positions - g->n_ids, left = g->config.max_tokens - g->report.n_tokens;
    const wt_llm_run_config run = {.n_tokens = g->config.max_tokens && left < room ? left : room,
                                   .sampler = g->config.sampler,
                                   .logprobs = g->config.logprobs,
                                   .n_top = g->config.n_top,
                                   .on_token = take_run,
                                   .user = g};
    g->run_status = WT_OK;
    wt_status status = wt_llm_run(g->config.session, g->ids[g->n_ids - 1], &run);
    return status ? status : g->run_status;
}

/// The next tokens: of one step, or as many as need no guesses.
static wt_status go_on(wt_generator *g) { return g->config.strategy == WT_STRATEGY_SINGLE ? run_singly(g) : step(g); }

// ---- the prompt

/// Take back what is not the beginning of the prompt; at least its last token is to come.
static wt_status reuse(wt_generator *g, const int32_t *ids, int n)
{
    wt_llm_session *s = g->config.session;
    int held = wt_llm_position(s), same = 0;
    if (held > g->n_ids) held = g->n_ids; // a session that came with tokens
    while (same < held && same < n - 1 && g->ids[same] == ids[same]) same++;
    wt_llm_snapshot snapshot = wt_llm_session_snapshot(s);
    snapshot.position = g->report.n_reused = same;
    wt_status status = wt_llm_session_restore(s, snapshot);
    wt_llm_session *draft = g->config.draft;
    if (!status && draft && wt_llm_position(draft) > same)
        status = wt_llm_session_restore(draft, (wt_llm_snapshot){same, 0});
    memcpy(g->ids, ids, sizeof *ids * (size_t)n);
    g->n_ids = n;
    return status;
}

static wt_status prefill(wt_generator *g)
{
    const int64_t begin = wt_clock_now_ns(NULL);
    const bool whole = g->llm->config.rope.kind == WT_ROPE_DYNAMIC; // whose angles depend on the length of a call
    const int batch = whole ? g->n_ids : g->config.session->n_batch;
    wt_status status = WT_OK;
    for (int at = g->report.n_reused; at < g->n_ids && !status && may_go_on(g);) {
        const int n = g->n_ids - at < batch ? g->n_ids - at : batch;
        status = wt_llm_prefill(g->config.session, g->ids + at, n);
        at += n;
    }
    g->report.prefill_s = seconds_since(begin);
    return status;
}

static wt_status begin_answer(wt_generator *g, const int32_t *ids, int n)
{
    g->report = (wt_generation){.n_prompt = n};
    g->ended = false;
    wt_answer_text_begin(g->text, g->starts_thinking);
    wt_detokenizer_destroy(g->stream);
    g->stream = NULL;
    g->guesser.n_coming = g->guesser.n_input = 0;
    if (n < 1 || n >= g->config.n_positions)
        return wt_fail(n < 1 ? WT_ERR_BAD_ARG : WT_ERR_FULL, "generate: a prompt of %d tokens, want 1..%d", n,
                       g->config.n_positions - 1);
    if (g->config.tokenizer) {
        wt_status status = wt_detokenizer_create(g->config.tokenizer, true, &g->stream);
        if (status) return status;
    }
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
    if (!status) status = tell_rest(g);
    if (g->ended && g->report.finish == WT_FINISH_CANCELLED) g->cancelled = false;
    g->report.decode_s = seconds_since(begin);
    *report = g->report;
    return status;
}
