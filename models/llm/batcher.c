// Requests in order of their coming: a list, of which the first ones have a sequence and the rest wait for one. What a
// sequence holds of an ended request stays in the cache until its pages or the sequence are wanted.
#include "answer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/batcher.h>
#include <warptone/clock.h>

enum { DEFAULT_REQUESTS = 256 };

typedef struct request {
    uint64_t id;
    wt__answer answer; ///< its ids are the prompt and what was chosen
    wt_sampler *sampler;
    bool starts_thinking, tells, cancelled;
    int n_top;
    int sequence; ///< -1 = it waits
    int64_t begin_ns, first_ns;
    void (*on_end)(void *user, wt_status status, const wt_generation *report);
    void *user;
    struct request *next;
} request;

/// A sequence: whose it is, and what is in the cache of it.
typedef struct slot {
    request *request; ///< NULL = nobody's
    int32_t *ids;     ///< [n_positions]
    int n;
    uint64_t last_use;
} slot;

struct wt_batcher {
    wt_batcher_config config;
    wt_llm_session *session;
    slot *slots; ///< [n_sequences]
    uint64_t n_uses;
    wt_llm_turn *turns; ///< [n_sequences]
    wt_llm_pick *picks;
    int32_t *next;
    pthread_mutex_t mutex; ///< of the list and its requests' wishes
    request *requests;     ///< in order of their coming
    int n_requests;
    uint64_t n_submitted;
};

// ---- create

static void free_request(request *r)
{
    if (!r) return;
    wt__answer_destroy(&r->answer);
    wt_sampler_destroy(r->sampler);
    free(r);
}

static wt_status take_memory(wt_batcher *b)
{
    const size_t n = (size_t)b->session->n_sequences, positions = (size_t)b->session->n_positions;
    b->slots = calloc(n, sizeof *b->slots);
    b->turns = calloc(n, sizeof *b->turns);
    b->picks = calloc(n, sizeof *b->picks);
    b->next = calloc(n, sizeof *b->next);
    bool whole = b->slots && b->turns && b->picks && b->next;
    for (size_t q = 0; whole && q < n; q++)
        whole = (b->slots[q].ids = malloc(positions * sizeof *b->slots[q].ids)) != NULL;
    return whole ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "batcher: %zu sequences of %zu positions", n, positions);
}

wt_status wt_batcher_create(const wt_batcher_config *config, wt_batcher **batcher)
{
    wt_llm_session *s = config->session;
    *batcher = NULL;
    if (config->max_requests < 0)
        return wt_fail(WT_ERR_BAD_ARG, "batcher: %d requests, want 0 or more", config->max_requests);
    if (s->pool.n_free < s->pool.n) return wt_fail(WT_ERR_BAD_ARG, "batcher: the session has tokens");
    wt_status status = wt__answer_fits("batcher", s->llm, config->tokenizer);
    if (status) return status;
    wt_batcher *b = calloc(1, sizeof *b);
    if (!b) return wt_fail(WT_ERR_NO_MEMORY, "batcher: handle");
    pthread_mutex_init(&b->mutex, NULL);
    b->config = *config;
    if (!b->config.max_requests) b->config.max_requests = DEFAULT_REQUESTS;
    if (s->llm->config.rope.kind == WT_ROPE_DYNAMIC) b->config.no_sharing = true; // angles follow the whole length
    b->session = s;
    status = take_memory(b);
    if (!status) {
        *batcher = b;
        return WT_OK;
    }
    wt_batcher_destroy(b);
    return status;
}

void wt_batcher_destroy(wt_batcher *batcher)
{
    if (!batcher) return;
    for (request *r = batcher->requests, *next; r; r = next) {
        next = r->next;
        free_request(r);
    }
    for (int q = 0; batcher->slots && q < batcher->session->n_sequences; q++) free(batcher->slots[q].ids);
    free(batcher->slots);
    free(batcher->turns);
    free(batcher->picks);
    free(batcher->next);
    pthread_mutex_destroy(&batcher->mutex);
    free(batcher);
}

// ---- requests

static int pages_for(int n) { return (n + WT__LLM_PAGE - 1) / WT__LLM_PAGE; }

static wt_status check(const wt_batcher *b, const wt_request *q)
{
    const wt_llm_session *s = b->session;
    const int vocab = s->llm->config.vocab_size;
    if (q->max_tokens < 0 || q->n_top < 0 || q->n_top > WT_LLM_MOST_TOP)
        return wt_fail(WT_ERR_BAD_ARG, "batcher: %d tokens with %d of the most probable, want 0 or more, and 0..%d",
                       q->max_tokens, q->n_top, WT_LLM_MOST_TOP);
    if (q->n_prompt < 1) return wt_fail(WT_ERR_BAD_ARG, "batcher: a prompt of %d tokens", q->n_prompt);
    if (q->n_prompt >= s->n_positions)
        return wt_fail(WT_ERR_FULL, "batcher: a prompt of %d tokens, want 1..%d", q->n_prompt, s->n_positions - 1);
    for (int k = 0; k < q->n_prompt; k++)
        if (q->prompt[k] < 0 || q->prompt[k] >= vocab)
            return wt_fail(WT_ERR_BAD_ARG, "batcher: token %d of the prompt is %d, want 0..%d", k, q->prompt[k],
                           vocab - 1);
    return WT_OK;
}

static wt_status make_request(const wt_batcher *b, const wt_request *q, request *r)
{
    const wt_llm_session *s = b->session;
    const int room = s->n_positions - q->n_prompt, most = q->max_tokens && q->max_tokens < room ? q->max_tokens : room;
    if (pages_for(q->n_prompt + most) > s->pool.n)
        return wt_fail(WT_ERR_FULL, "batcher: %d tokens, the cache has room for %d", q->n_prompt + most,
                       s->pool.n * WT__LLM_PAGE);
    r->answer = (wt__answer){.llm = s->llm,
                             .tokenizer = b->config.tokenizer,
                             .vocab = b->config.vocab,
                             .max_tokens = q->max_tokens,
                             .n_positions = q->n_prompt + most,
                             .ignore_eos = q->ignore_eos,
                             .on_token = q->on_token,
                             .user = q->user};
    r->starts_thinking = q->text && q->text->starts_thinking;
    r->tells = q->logprobs || q->n_top;
    r->n_top = q->n_top;
    r->sequence = -1;
    r->on_end = q->on_end;
    r->user = q->user;
    wt_status status = wt__answer_create(&r->answer, q->text);
    if (!status && q->sampling) status = wt_sampler_create(q->sampling, s->llm->config.vocab_size, &r->sampler);
    if (!status) status = wt__answer_begin(&r->answer, r->starts_thinking, q->n_prompt);
    if (status) return status;
    memcpy(r->answer.ids, q->prompt, sizeof *q->prompt * (size_t)q->n_prompt);
    r->answer.n_ids = q->n_prompt;
    if (r->sampler) wt_sampler_see(r->sampler, q->prompt, q->n_prompt);
    return WT_OK;
}

wt_status wt_batcher_submit(wt_batcher *batcher, const wt_request *wanted, uint64_t *id)
{
    wt_batcher *b = batcher;
    wt_status status = check(b, wanted);
    if (status) return status;
    request *r = calloc(1, sizeof *r);
    if (!r) return wt_fail(WT_ERR_NO_MEMORY, "batcher: a request");
    status = make_request(b, wanted, r);
    pthread_mutex_lock(&b->mutex);
    if (!status && b->n_requests >= b->config.max_requests)
        status = wt_fail(WT_ERR_FULL, "batcher: %d requests wait or are under way", b->n_requests);
    if (!status) {
        request **last = &b->requests;
        while (*last) last = &(*last)->next;
        *last = r;
        b->n_requests++;
        r->id = ++b->n_submitted;
        if (id) *id = r->id;
    }
    pthread_mutex_unlock(&b->mutex);
    if (status) free_request(r);
    return status;
}

void wt_batcher_cancel(wt_batcher *batcher, uint64_t id)
{
    pthread_mutex_lock(&batcher->mutex);
    for (request *r = batcher->requests; r; r = r->next) r->cancelled |= r->id == id;
    pthread_mutex_unlock(&batcher->mutex);
}

/// Out of the list, and told.
static void end_request(wt_batcher *b, request *r, wt_status status)
{
    if (!status) status = wt__answer_tell_rest(&r->answer);
    pthread_mutex_lock(&b->mutex);
    request **at = &b->requests;
    while (*at != r) at = &(*at)->next;
    *at = r->next;
    b->n_requests--;
    pthread_mutex_unlock(&b->mutex);
    if (r->sequence >= 0) b->slots[r->sequence].request = NULL;
    if (r->first_ns) r->answer.report.decode_s = (double)(wt_clock_now_ns(NULL) - r->first_ns) * 1e-9;
    if (r->on_end) r->on_end(r->user, status, &r->answer.report);
    free_request(r);
}

/// The first that is cancelled, or NULL.
static request *find_cancelled(wt_batcher *b)
{
    pthread_mutex_lock(&b->mutex);
    request *r = b->requests;
    while (r && !r->cancelled) r = r->next;
    pthread_mutex_unlock(&b->mutex);
    return r;
}

// ---- taking up

static wt_status forget(wt_batcher *b, int sequence, int n)
{
    wt_status status = wt_llm_select(b->session, sequence);
    if (!status) status = wt_llm_session_restore(b->session, (wt_llm_snapshot){.position = n});
    if (!status) b->slots[sequence].n = n;
    return status;
}

static int common(const slot *s, const request *r)
{
    int n = 0; // the prompt's last token is still to come
    while (n < s->n && n < r->answer.report.n_prompt - 1 && s->ids[n] == r->answer.ids[n]) n++;
    return n;
}

/// The sequence that has most of the prompt's beginning; -1 = none has any.
static int find_donor(const wt_batcher *b, const request *r)
{
    int best = -1, most = 0;
    for (int q = 0; !b->config.no_sharing && q < b->session->n_sequences; q++) {
        const int n = common(&b->slots[q], r);
        if (n <= most) continue;
        most = n;
        best = q;
    }
    return best;
}

/// Nobody's sequence that was used longest ago, which must hold tokens if so wanted, and is not `but`; -1 = none.
static int find_idle(const wt_batcher *b, bool holding, int but)
{
    int oldest = -1;
    for (int q = 0; q < b->session->n_sequences; q++) {
        const slot *s = &b->slots[q];
        if (s->request || q == but || (holding && !s->n)) continue;
        if (oldest < 0 || s->last_use < b->slots[oldest].last_use) oldest = q;
    }
    return oldest;
}

/// Pages that may still be taken by those that have a sequence.
static int pages_to_come(const wt_batcher *b)
{
    int n = 0;
    for (int q = 0; q < b->session->n_sequences; q++) {
        const request *r = b->slots[q].request;
        if (r) n += wt__pages_wanted(b->session, q, b->slots[q].n, r->answer.n_positions);
    }
    return n;
}

/// The beginning that a sequence has already: its own, if it is nobody's, or whole pages of another's.
static wt_status begin_sequence(wt_batcher *b, request *r, int sequence, int donor)
{
    slot *s = &b->slots[sequence];
    const int n = donor >= 0 ? common(&b->slots[donor], r) : 0, whole = n - n % WT__LLM_PAGE;
    wt_status status = forget(b, sequence, donor == sequence ? n : 0);
    if (!status && donor >= 0 && donor != sequence && whole) {
        status = wt_llm_share(b->session, donor, sequence, whole);
        if (!status) s->n = whole;
    }
    if (status) return status;
    memcpy(s->ids, r->answer.ids, sizeof *s->ids * (size_t)s->n);
    s->request = r;
    s->last_use = ++b->n_uses;
    r->sequence = sequence;
    r->answer.report.n_reused = s->n;
    return WT_OK;
}

/// A sequence and pages for the next that waits; *took = there were.
static wt_status take_up(wt_batcher *b, request *r, bool *took)
{
    const int donor = find_donor(b, r), idle = find_idle(b, false, -1);
    const int sequence = donor >= 0 && !b->slots[donor].request ? donor : idle;
    *took = false;
    if (sequence < 0) return WT_OK;
    wt_status status = begin_sequence(b, r, sequence, donor);
    for (int old; !status && pages_to_come(b) > b->session->pool.n_free;) {
        if ((old = find_idle(b, true, sequence)) >= 0) {
            status = forget(b, old, 0);
            continue;
        }
        b->slots[sequence].request = NULL; // it waits on
        r->sequence = -1;
        return WT_OK;
    }
    *took = !status;
    r->begin_ns = wt_clock_now_ns(NULL);
    return status;
}

static request *find_waiting(wt_batcher *b)
{
    pthread_mutex_lock(&b->mutex);
    request *r = b->requests;
    while (r && r->sequence >= 0) r = r->next;
    pthread_mutex_unlock(&b->mutex);
    return r;
}

static wt_status take_up_all(wt_batcher *b)
{
    wt_status status = WT_OK;
    bool took = true;
    for (request *r; !status && took && (r = find_waiting(b));) status = take_up(b, r, &took);
    return status;
}

// ---- steps

/// A batch of the prompt that was taken up first of those that are not through.
static wt_status take_prompt(wt_batcher *b)
{
    wt_llm_session *s = b->session;
    slot *oldest = NULL;
    for (int q = 0; q < s->n_sequences; q++) {
        slot *here = &b->slots[q];
        if (!here->request || here->n >= here->request->answer.report.n_prompt - 1) continue;
        if (!oldest || here->request->id < oldest->request->id) oldest = here;
    }
    if (!oldest) return WT_OK;
    const request *r = oldest->request;
    const int left = r->answer.report.n_prompt - 1 - oldest->n;
    const bool whole = s->llm->config.rope.kind == WT_ROPE_DYNAMIC; // whose angles depend on the length of a call
    const int n = whole || left < s->n_batch ? left : s->n_batch;
    wt_status status = wt_llm_select(s, r->sequence);
    if (!status) status = wt_llm_prefill(s, r->answer.ids + oldest->n, n);
    if (status) return status;
    memcpy(oldest->ids + oldest->n, r->answer.ids + oldest->n, sizeof *oldest->ids * (size_t)n);
    oldest->n += n;
    return WT_OK;
}

/// A token of each sequence that is past its prompt.
static int prepare_turns(wt_batcher *b)
{
    int n = 0;
    for (int q = 0; q < b->session->n_sequences; q++) {
        const request *r = b->slots[q].request;
        if (!r || b->slots[q].n < r->answer.n_ids - 1) continue;
        b->turns[n] = (wt_llm_turn){.sequence = q,
                                    .id = r->answer.ids[r->answer.n_ids - 1],
                                    .sampler = r->sampler,
                                    .pick = r->tells ? &b->picks[n] : NULL,
                                    .n_top = r->n_top};
        n++;
    }
    return n;
}

static void take_choice(wt_batcher *b, const wt_llm_turn *turn, int32_t next)
{
    slot *s = &b->slots[turn->sequence];
    request *r = s->request;
    const wt_llm_pick plain = {.id = next};
    s->ids[s->n++] = turn->id;
    r->answer.report.n_steps++;
    if (!r->first_ns) {
        r->first_ns = wt_clock_now_ns(NULL);
        r->answer.report.prefill_s = (double)(r->first_ns - r->begin_ns) * 1e-9;
    }
    wt_status status = next < 0 ? wt_fail(WT_ERR_FORMAT, "batcher: after %d tokens a logit is not a number", s->n)
                                : wt__answer_take(&r->answer, turn->pick ? turn->pick : &plain);
    if (status || r->answer.ended) end_request(b, r, status);
}

static wt_status take_step(wt_batcher *b)
{
    const int n = prepare_turns(b);
    if (!n) return WT_OK;
    for (int k = 0; k < n; k++) b->next[k] = 0;
    const wt_status status = wt_llm_step(b->session, b->turns, n, b->next, NULL);
    bool one_is_bad = false;
    for (int k = 0; k < n; k++) one_is_bad |= b->next[k] < 0;
    if (status && !(status == WT_ERR_FORMAT && one_is_bad)) return status;
    for (int k = 0; k < n; k++) take_choice(b, &b->turns[k], b->next[k]);
    return WT_OK;
}

wt_status wt_batcher_step(wt_batcher *batcher, int *n_left)
{
    wt_batcher *b = batcher;
    for (request *r; (r = find_cancelled(b));) {
        wt__answer_end(&r->answer, WT_FINISH_CANCELLED);
        end_request(b, r, WT_OK);
    }
    wt_status status = take_up_all(b);
    if (!status) status = take_prompt(b);
    if (!status) status = take_step(b);
    for (int q = 0; status && q < b->session->n_sequences; q++)
        if (b->slots[q].request) end_request(b, b->slots[q].request, status);
    pthread_mutex_lock(&b->mutex);
    *n_left = b->n_requests;
    pthread_mutex_unlock(&b->mutex);
    return status;
}
