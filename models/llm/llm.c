// Models and sessions: opening, memory, and tokens in batches through the forward pass.
#include "attention.h"
#include "gpu.h"
#include "matrix.h"
#include "sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- models

static wt_status open_files(const wt_llm_load_config *config, wt_llm *llm)
{
    wt_status status = wt_model_config_open(config->path, &llm->config);
    if (status) return status;
    status = wt_weights_open(config->path, &llm->weights);
    return status ? status : wt__llm_bind(llm, config);
}

wt_status wt_llm_load(const wt_llm_load_config *config, wt_llm **llm)
{
    wt_llm *m = *llm = calloc(1, sizeof *m);
    if (!m) return wt_fail(WT_ERR_NO_MEMORY, "llm: handle");
    wt_status status = open_files(config, m);
    if (!status) return WT_OK;
    wt_llm_close(m);
    *llm = NULL;
    return status;
}

wt_status wt_llm_open(const char *path, wt_llm **llm) { return wt_llm_load(&(wt_llm_load_config){.path = path}, llm); }

void wt_llm_close(wt_llm *llm)
{
    if (!llm) return;
    wt__llm_give_back(llm);
    wt_weights_close(llm->weights);
    free(llm);
}

const wt_model_config *wt_llm_config(const wt_llm *llm) { return &llm->config; }

static size_t linear_bytes(const wt__linear *m)
{
    return m->weight.data ? wt__row_bytes(m) * (size_t)m->weight.shape[0] : 0;
}

size_t wt_llm_step_bytes(const wt_llm *llm)
{
    const wt_model_config *c = &llm->config;
    size_t bytes = linear_bytes(&llm->head);
    for (int l = 0; l < c->n_layers; l++) {
        const wt__layer *w = &llm->layers[l];
        const wt__linear *all[] = {&w->q, &w->k, &w->v, &w->o, &w->gate, &w->up, &w->down, &w->router};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) bytes += linear_bytes(all[k]);
        if (w->experts)
            bytes += (size_t)c->n_experts_used * (linear_bytes(&w->experts->gate) + linear_bytes(&w->experts->up) +
                                                  linear_bytes(&w->experts->down));
    }
    return bytes;
}

bool wt_llm_ends(const wt_llm *llm, int32_t id)
{
    for (int k = 0; k < llm->config.n_eos; k++)
        if (llm->config.eos_ids[k] == id) return true;
    return false;
}

// ---- sessions

enum { DEFAULT_POSITIONS = 4096, DEFAULT_BATCH = 64, DEFAULT_GPU_BATCH = 512, ALIGN = 64 };
enum { LEAST_BY_AMX = 16 }; // tokens of a prompt; a block of them takes as long as one

/// The next `count` numbers of 4 bytes; with memory NULL only measures.
static void *lay(unsigned char *memory, size_t *at, size_t count)
{
    void *here = memory ? memory + *at : NULL;
    *at += (count * 4 + ALIGN - 1) / ALIGN * ALIGN;
    return here;
}

/// Types whose products need room: for widened rows or rounded vectors.
static bool wants_rows(const wt__linear *l)
{
    return l->weight.dtype != WT_DTYPE_F32 && l->weight.dtype != WT_DTYPE_F16;
}

/// Whether it is so of any matrix.
static bool any(const wt_llm *llm, bool (*is)(const wt__linear *l))
{
    bool found = is(&llm->head);
    for (int l = 0; l < llm->config.n_layers; l++) {
        const wt__layer *w = &llm->layers[l];
        const wt__linear *all[] = {&w->q, &w->k, &w->v, &w->o, &w->gate, &w->up, &w->down, &w->router};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) found |= all[k]->weight.data && is(all[k]);
        for (int e = 0; w->experts && e < llm->config.n_experts; e++)
            found |= is(&w->experts[e].gate) || is(&w->experts[e].up) || is(&w->experts[e].down);
    }
    return found;
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/// Place everything in `memory`, or with NULL tell how many bytes it takes.
static size_t lay_out(wt_llm_session *s, unsigned char *memory)
{
    const wt_model_config *c = &s->llm->config;
    const size_t n = (size_t)s->n_batch, d = (size_t)c->d_model, q = (size_t)c->n_heads * (size_t)c->d_head;
    const size_t kv = (size_t)c->n_kv_heads * (size_t)c->d_head, used = (size_t)c->n_experts_used;
    const size_t ff = larger((size_t)c->d_ff, used * (size_t)c->d_ff_expert), half = (size_t)c->rope.n_dims / 2;
    const size_t cache = (wt__cache_bytes(s, s->pool.n) + 3) / 4;
    const size_t columns = larger(larger(d, q), larger((size_t)c->d_ff, (size_t)c->d_ff_expert));
    size_t at = 0;
    s->tokens = lay(memory, &at, n * sizeof *s->tokens / 4);
    s->pages = lay(memory, &at, (size_t)s->n_pages * (size_t)s->n_sequences);
    s->x = lay(memory, &at, n * d);
    s->n = lay(memory, &at, n * d);
    s->q = lay(memory, &at, n * q);
    s->k = lay(memory, &at, n * kv);
    s->v = lay(memory, &at, n * kv);
    s->a = lay(memory, &at, n * q);
    s->gate = lay(memory, &at, n * ff);
    s->up = lay(memory, &at, n * ff);
    s->routes = lay(memory, &at, n * (size_t)c->n_experts);
    s->chosen = lay(memory, &at, n * used);
    s->shares = lay(memory, &at, n * used);
    s->cosines = lay(memory, &at, n * half);
    s->sines = lay(memory, &at, n * half);
    s->frequencies = lay(memory, &at, half * (size_t)s->n_sequences);
    s->keys = lay(memory, &at, cache);
    s->values = lay(memory, &at, cache);
    s->logits = lay(memory, &at, (size_t)c->vocab_size * (size_t)s->n_sequences);
    s->rows = any(s->llm, wants_rows) ? lay(memory, &at, wt__room((int64_t)columns) * (size_t)s->n_items) : NULL;
    const bool laid = s->n_batch > 1 && any(s->llm, wt__suits_amx);
    s->laid = laid ? lay(memory, &at, wt__amx_bytes((int64_t)columns, s->n_batch) / 4) : NULL;
    return at;
}

/// What the config asks for, or the model's own and at most DEFAULT_POSITIONS.
static wt_status choose_sizes(const wt_llm *llm, const wt_llm_session_config *config, wt_llm_session *s)
{
    const int most = llm->config.max_positions;
    const wt_device_info *info = wt_device_get_info(config->device);
    if (config->n_positions < 0 || config->n_batch < 0 || config->n_batch > 4096)
        return wt_fail(WT_ERR_BAD_ARG, "llm: %d positions, batches of %d, want 0 or more, and 0..4096",
                       config->n_positions, config->n_batch);
    if (config->n_cached < 0)
        return wt_fail(WT_ERR_BAD_ARG, "llm: a cache of %d positions, want 0 or more", config->n_cached);
    if (config->kv_type != WT_DTYPE_F32 && config->kv_type != WT_DTYPE_F16 && config->kv_type != WT_DTYPE_BF16 &&
        config->kv_type != WT_DTYPE_F8_E4M3)
        return wt_fail(WT_ERR_UNSUPPORTED, "llm: keys and values of type %s, want F32, F16, BF16 or F8_E4M3",
                       wt_dtype_name(config->kv_type));
    if (llm->config.d_head > WT__CACHE_MAX_DIMS)
        return wt_fail(WT_ERR_UNSUPPORTED, "llm: heads of %d, want at most %d", llm->config.d_head, WT__CACHE_MAX_DIMS);
    if (llm->positions.data && config->n_positions > most)
        return wt_fail(WT_ERR_BAD_ARG, "llm: %d positions, the model learnt %d", config->n_positions, most);
    const bool on_gpu = info->backend == WT_BACKEND_CUDA;
    s->n_positions = config->n_positions ? config->n_positions : most < DEFAULT_POSITIONS ? most : DEFAULT_POSITIONS;
    s->n_batch = config->n_batch ? config->n_batch : on_gpu ? DEFAULT_GPU_BATCH : DEFAULT_BATCH;
    s->n_sequences = config->n_sequences ? config->n_sequences : 1;
    if (s->n_sequences < 1 || s->n_sequences > s->n_batch)
        return wt_fail(WT_ERR_BAD_ARG, "llm: %d sequences, want 0 to %d, a batch", s->n_sequences, s->n_batch);
    s->sequences = calloc((size_t)s->n_sequences, sizeof *s->sequences);
    if (!s->sequences) return wt_fail(WT_ERR_NO_MEMORY, "llm: %d sequences", s->n_sequences);
    s->n_pages = (s->n_positions + WT__LLM_PAGE - 1) / WT__LLM_PAGE;
    s->pool.n = config->n_cached ? (config->n_cached + WT__LLM_PAGE - 1) / WT__LLM_PAGE : s->n_pages * s->n_sequences;
    s->kv_type = config->kv_type;
    s->n_items = info->n_sms;
    s->ops = on_gpu ? &wt__llm_cuda_ops : &wt__llm_cpu_ops;
    return WT_OK;
}

static wt_status open_on_cpu(wt_llm_session *s)
{
    uintptr_t memory;
    wt_status status =
        wt__llm_arena(s->memory_pool, "keys, values and activations", lay_out(s, NULL), &s->memory, &memory);
    if (status) return status;
    lay_out(s, (unsigned char *)memory);
    return WT_OK;
}

wt_status wt_llm_session_create(const wt_llm *llm, const wt_llm_session_config *config, wt_llm_session **session)
{
    wt_llm_session *s = *session = calloc(1, sizeof *s);
    if (!s) return wt_fail(WT_ERR_NO_MEMORY, "llm: session");
    s->llm = llm;
    s->exact = config->exact_products;
    s->exact_guesses = config->exact_guesses;
    s->rough_guesses = config->rough_guesses && !config->exact_guesses;
    s->partition = config->partition;
    wt_status status = choose_sizes(llm, config, s);
    if (!status)
        status = config->partition ? wt_partition_stream_create(config->partition, NULL, &s->own)
                                   : wt_stream_create(config->device, NULL, &s->own);
    s->stream = s->own;
    if (!status) status = wt__llm_pool(config->device, config->partition, "llm session", &s->memory_pool);
    if (!status) status = s->ops == &wt__llm_cuda_ops ? wt__gpu_create(s, llm, config) : open_on_cpu(s);
    if (!status) status = wt__pages_open(s);
    if (!status && s->gpu && s->partition) status = wt__gpu_prepare(s);
    if (!status) return WT_OK;
    wt_llm_session_destroy(s);
    *session = NULL;
    return status;
}

void wt_llm_session_destroy(wt_llm_session *session)
{
    if (!session) return;
    wt__gpu_destroy(session);
    wt__pages_close(session);
    wt_pool_arena_destroy(session->memory, NULL);
    wt_pool_destroy(session->memory_pool);
    wt_event_destroy(session->began);
    wt_event_destroy(session->ended);
    wt_stream_destroy(session->own);
    free(session->sequences);
    free(session);
}

// ---- tokens

static wt_status check_tokens(const wt_llm_session *s, const int32_t *ids, int n)
{
    const int vocab = s->llm->config.vocab_size;
    if (n < 1) return wt_fail(WT_ERR_BAD_ARG, "llm: %d tokens, want 1 or more", n);
    for (int k = 0; k < n; k++)
        if (ids[k] < 0 || ids[k] >= vocab)
            return wt_fail(WT_ERR_BAD_ARG, "llm: token %d of %d is %d, want 0..%d", k, n, ids[k], vocab - 1);
    if (n > s->n_positions - s->position)
        return wt_fail(WT_ERR_FULL, "llm: %d tokens after %d, the session has room for %d", n, s->position,
                       s->n_positions);
    return WT_OK;
}

void wt__llm_prepare_rope(wt_llm_session *s, int sequence, int length)
{
    const wt_rope_config *r = &s->llm->config.rope;
    int *met = sequence == s->sequence ? &s->rope_length : &s->sequences[sequence].rope_length;
    if (!r->kind) return;
    *met = length > *met || length < r->original_positions ? length : *met;
    wt_rope_frequencies(r, s->llm->rope_factors, *met, s->frequencies + (int64_t)sequence * (r->n_dims / 2),
                        &s->rope_scale);
}

static void put_token(wt_llm_session *s, int t, wt_llm_token token)
{
    const int half = s->llm->config.rope.n_dims / 2;
    s->tokens[t] = token;
    for (int k = 0; !s->gpu && k < half; k++) {
        const float angle = (float)token.place * s->frequencies[token.sequence * half + k];
        s->cosines[t * half + k] = cosf(angle) * s->rope_scale;
        s->sines[t * half + k] = sinf(angle) * s->rope_scale;
    }
}

static void prepare_batch(wt_llm_session *s, const int32_t *ids, int n)
{
    s->n_tokens = n;
    s->is_prompt = true;
    for (int t = 0; t < n; t++)
        put_token(s, t, (wt_llm_token){.id = ids[t], .place = s->position + t, .sequence = s->sequence});
}

/// The batch through the first n_layers, and the logits of its last n_logits tokens to `logits`; with `leads` what
/// routers on a GPU lead by to its tokens.
static wt_status run_batch(wt_llm_session *s, int n_layers, float *logits, int n_logits, bool leads)
{
    wt_status status = wt__llm_step_begin(s);
    if (status) return status;
    status = s->gpu ? wt__gpu_run(s, n_layers, logits, n_logits, leads) : wt__llm_forward(s, n_layers, logits, n_logits);
    return wt__llm_step_finish(s, status);
}

/// The batch, whose first token is number `first` of `ids`, through all layers of a GPU, and what is chosen after its
/// tokens to `next`; the most probable ones' leads to `leads`, if any.
static wt_status run_choosing(wt_llm_session *s, wt_sampler *sampler, const int32_t *ids, int first, int32_t *next,
                              float *leads)
{
    wt_status status = wt__llm_step_begin(s);
    if (status) return status;
    status = wt__llm_step_finish(s, sampler ? wt__gpu_verify_drawn(s, sampler, ids, first) : wt__gpu_verify_greedy(s));
    for (int k = 0; k < s->n_tokens; k++) {
        next[k] = s->tokens[k].id;
        if (leads) leads[k] = s->tokens[k].lead;
    }
    return status;
}

/// Tokens through the first n_layers; the logits of the last to the session, or those of each to `all`
/// [n][vocab_size], or of a GPU the token that `sampler` chooses after each, NULL = the most probable one, to `next`
/// [n]. To `leads` [n] what those lead by, or of `all` what routers on a GPU do.
static wt_status append(wt_llm_session *s, const int32_t *ids, int n, int n_layers, float *all, wt_sampler *sampler,
                        int32_t *next, float *leads)
{
    const size_t vocab = (size_t)s->llm->config.vocab_size;
    const int n_logits = !(all || next) || !s->gpu ? s->n_batch : s->rough_guesses ? s->gpu->n_logits : WT__LLM_ALIKE;
    const int n_batch = n_logits < s->n_batch ? n_logits : s->n_batch;
    wt_status status = check_tokens(s, ids, n);
    if (!status) status = wt__pages_own(s, s->sequence, s->position, s->position + n);
    if (status) return status;
    s->has_logits = false;
    s->by_amx = s->laid && !all && n >= LEAST_BY_AMX;
    wt__llm_prepare_rope(s, s->sequence, s->position + n);
    for (int first = 0; first < n && !status; first += n_batch) {
        const int left = n - first, batch = left < n_batch ? left : n_batch;
        prepare_batch(s, ids + first, batch);
        status = next  ? run_choosing(s, sampler, ids, first, next + first, leads ? leads + first : NULL)
                 : all ? run_batch(s, n_layers, all + vocab * (size_t)first, batch, leads)
                       : run_batch(s, n_layers, s->logits, batch == left, false);
        if (!status) s->position += batch;
        for (int k = 0; !status && all && leads && k < batch; k++)
            leads[first + k] = s->gpu && s->llm->config.n_experts ? s->tokens[k].lead : 1;
    }
    if (!status && all) memcpy(s->logits, all + vocab * (size_t)(n - 1), vocab * sizeof *all);
    s->has_logits = !status && !next;
    return status;
}

wt_status wt_llm_prefill(wt_llm_session *session, const int32_t *ids, int n)
{
    return append(session, ids, n, session->llm->config.n_layers, NULL, NULL, NULL, NULL);
}

wt_status wt_llm_decode(wt_llm_session *session, int32_t id) { return wt_llm_prefill(session, &id, 1); }

wt_status wt_llm_verify(wt_llm_session *session, const int32_t *ids, int n, float *logits)
{
    return wt__llm_verify(session, ids, n, logits, NULL);
}

wt_status wt__llm_verify(wt_llm_session *session, const int32_t *ids, int n, float *logits, float *leads)
{
    return append(session, ids, n, session->llm->config.n_layers, logits, NULL, NULL, leads);
}

wt_status wt_llm_draft(wt_llm_session *session, int32_t id, int n_layers)
{
    const int most = session->llm->config.n_layers;
    if (n_layers < 1 || n_layers > most)
        return wt_fail(WT_ERR_BAD_ARG, "llm: a draft of %d layers, want 1..%d", n_layers, most);
    return append(session, &id, 1, n_layers, NULL, NULL, NULL, NULL);
}

int32_t wt__llm_most_probable(const float *logits, int n, float *lead)
{
    float second = -INFINITY, lowest = INFINITY;
    int best = 0;
    for (int k = 0; k < n; k++) {
        if (isnan(logits[k])) return -1;
        if (logits[k] < lowest && logits[k] > -INFINITY) lowest = logits[k];
        if (logits[k] > logits[best]) {
            second = logits[best];
            best = k;
        } else if (k && logits[k] > second)
            second = logits[k];
    }
    *lead = logits[best] > lowest ? (logits[best] - second) / (logits[best] - lowest) : 0;
    return isfinite(logits[best]) ? best : -1;
}

float wt__llm_doubt(const wt_llm_session *s)
{
    const wt__layer *w = &s->llm->layers[0];
    const wt__linear *up = w->experts ? &w->experts->up : &w->up, *down = w->experts ? &w->experts->down : &w->down;
    const wt__linear *all[] = {&s->llm->head, &w->q, &w->o, up, down};
    float doubt = 1e-4f; // of F32
    if (!s->gpu || s->exact_guesses || s->rough_guesses) return 0;
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        const wt_dtype t = all[k]->weight.dtype;
        if (all[k]->weight.data && t != WT_DTYPE_F32) doubt = fmaxf(doubt, t == WT_DTYPE_F8_E4M3 ? 2.4e-3f : 6e-4f);
    }
    return doubt;
}

/// On the CPU, and where a GPU has no room for so many guesses.
static wt_status verify_by_logits(wt_llm_session *s, const int32_t *ids, int n, wt_sampler *sampler, int32_t *next,
                                  float *leads)
{
    const int vocab = s->llm->config.vocab_size;
    float *logits = malloc(sizeof *logits * (size_t)(n > 0 ? n : 1) * (size_t)vocab);
    if (!logits) return wt_fail(WT_ERR_NO_MEMORY, "llm: logits of %d tokens", n);
    wt_status status = append(s, ids, n, s->llm->config.n_layers, logits, NULL, NULL, NULL);
    for (int k = 0; k < n && !status; k++) {
        const float *row = logits + (size_t)k * (size_t)vocab;
        float lead;
        if (!sampler)
            next[k] = wt__llm_most_probable(row, vocab, leads ? &leads[k] : &lead);
        else if (wt__sampler_pick_after(sampler, row, ids + 1, k, &next[k]))
            next[k] = -1;
    }
    free(logits);
    s->has_logits = false;
    return status;
}

wt_status wt_llm_verify_greedy(wt_llm_session *session, const int32_t *ids, int n, int32_t *next, float *leads)
{
    if (!session->gpu) return verify_by_logits(session, ids, n, NULL, next, leads);
    return append(session, ids, n, session->llm->config.n_layers, NULL, NULL, next, leads);
}

/// -1 when a logit is not a number, or none is finite.
static int32_t choose(const float *logits, int vocab, wt_sampler *sampler)
{
    int32_t id;
    float lead;
    if (!sampler) return wt__llm_most_probable(logits, vocab, &lead);
    return wt_sampler_pick(sampler, logits, &id) ? -1 : id;
}

static wt_status check_choice(const wt_llm_session *s, const wt_sampler *sampler, int n_top)
{
    const int vocab = s->llm->config.vocab_size;
    if (n_top < 0 || n_top > WT_LLM_MOST_TOP)
        return wt_fail(WT_ERR_BAD_ARG, "llm: %d most probable tokens, want 0..%d", n_top, WT_LLM_MOST_TOP);
    if (sampler && wt__sampler_vocab_size(sampler) != vocab)
        return wt_fail(WT_ERR_BAD_ARG, "llm: a sampler of %d tokens, want one of %d", wt__sampler_vocab_size(sampler),
                       vocab);
    return WT_OK;
}

wt_status wt_llm_verify_drawn(wt_llm_session *session, const int32_t *ids, int n, wt_sampler *sampler, int32_t *next)
{
    wt_status status = check_choice(session, sampler, 0);
    if (status) return status;
    if (!session->gpu || n > WT__SAMPLER_LOG) return verify_by_logits(session, ids, n, sampler, next, NULL);
    return append(session, ids, n, session->llm->config.n_layers, NULL, sampler, next, NULL);
}

static wt_status run_by_steps(wt_llm_session *s, int32_t id, const wt_llm_run_config *config)
{
    const int vocab = s->llm->config.vocab_size;
    wt_status status = WT_OK;
    for (int k = 0; k < config->n_tokens && !status; k++) {
        status = wt_llm_decode(s, id);
        const float *logits = status ? NULL : wt_llm_logits(s);
        if (!logits) break;
        wt_llm_pick pick = {.id = id = choose(logits, vocab, config->sampler)};
        if (id < 0) return wt_fail(WT_ERR_FORMAT, "llm: after %d tokens a logit is not a number", s->position);
        if (config->logprobs || config->n_top) wt_llm_tell(logits, vocab, config->n_top, &pick);
        if (config->on_token && !config->on_token(config->user, &pick)) break;
    }
    return status;
}

wt_status wt_llm_run(wt_llm_session *session, int32_t id, const wt_llm_run_config *config)
{
    wt_llm_session *s = session;
    if (config->n_tokens > s->n_positions - s->position)
        return wt_fail(WT_ERR_FULL, "llm: %d tokens after %d, the session has room for %d", config->n_tokens,
                       s->position, s->n_positions);
    wt_status status = check_choice(s, config->sampler, config->n_top);
    if (!status) status = check_tokens(s, &id, 1);
    if (status || config->n_tokens < 1) return status;
    status = wt__pages_own(s, s->sequence, s->position, s->position + config->n_tokens);
    if (status) return status;
    s->has_logits = false;
    if (!s->gpu || s->llm->config.rope.kind == WT_ROPE_DYNAMIC)
        status = run_by_steps(s, id, config);
    else {
        wt__llm_prepare_rope(s, s->sequence, s->position + config->n_tokens);
        prepare_batch(s, &id, 1);
        status = wt__gpu_generate(s, config);
    }
    wt__pages_trim(s, s->sequence, s->position);
    return status;
}

const float *wt_llm_logits(const wt_llm_session *session)
{
    if (!session->has_logits) return NULL;
    return session->gpu && wt__gpu_fetch_logits(session) ? NULL : session->logits;
}

int wt_llm_position(const wt_llm_session *session) { return session->position; }

wt_llm_snapshot wt_llm_session_snapshot(const wt_llm_session *session)
{
    return (wt_llm_snapshot){session->position, session->rope_length};
}

wt_status wt_llm_session_restore(wt_llm_session *session, wt_llm_snapshot snapshot)
{
    if (snapshot.position < 0 || snapshot.position > session->position)
        return wt_fail(WT_ERR_BAD_ARG, "llm: restore to %d tokens, the session has %d", snapshot.position,
                       session->position);
    session->position = snapshot.position;
    session->rope_length = snapshot.rope_length;
    session->has_logits = false;
    wt__pages_trim(session, session->sequence, snapshot.position);
    return WT_OK;
}

// ---- several sequences

wt_status wt_llm_select(wt_llm_session *session, int sequence)
{
    wt_llm_session *s = session;
    if (sequence < 0 || sequence >= s->n_sequences)
        return wt_fail(WT_ERR_BAD_ARG, "llm: sequence %d, want 0..%d", sequence, s->n_sequences - 1);
    if (sequence == s->sequence) return WT_OK;
    s->sequences[s->sequence] = wt_llm_session_snapshot(s);
    s->sequence = sequence;
    s->position = s->sequences[sequence].position;
    s->rope_length = s->sequences[sequence].rope_length;
    s->has_logits = false;
    return WT_OK;
}

/// A page for each sequence that has none for its next token, or a copy of a shared one.
static wt_status take_pages(wt_llm_session *s, const wt_llm_turn *turns, int n)
{
    const int wanted = wt__pages_wanted_together(s, turns, n);
    wt_status status = WT_OK;
    if (wanted > s->pool.n_free)
        return wt_fail(WT_ERR_FULL, "llm: a step of %d sequences wants %d more pages of %d positions, %d of %d are free",
                       n, wanted, WT__LLM_PAGE, s->pool.n_free, s->pool.n);
    for (int k = 0; k < n && !status; k++) {
        const int at = s->sequences[turns[k].sequence].position;
        status = wt__pages_own(s, turns[k].sequence, at, at + 1);
    }
    return status;
}

static wt_status check_turns(const wt_llm_session *s, const wt_llm_turn *turns, int n)
{
    const int vocab = s->llm->config.vocab_size;
    if (n < 1 || n > s->n_sequences)
        return wt_fail(WT_ERR_BAD_ARG, "llm: %d turns, want 1..%d, one of a sequence", n, s->n_sequences);
    for (int k = 0; k < n; k++) {
        const wt_llm_turn *t = &turns[k];
        if (t->sequence < 0 || t->sequence >= s->n_sequences || t->id < 0 || t->id >= vocab)
            return wt_fail(WT_ERR_BAD_ARG, "llm: turn %d is token %d of sequence %d, want 0..%d of 0..%d", k, t->id,
                           t->sequence, vocab - 1, s->n_sequences - 1);
        for (int j = 0; j < k; j++)
            if (turns[j].sequence == t->sequence)
                return wt_fail(WT_ERR_BAD_ARG, "llm: turns %d and %d are both of sequence %d", j, k, t->sequence);
        wt_status status = check_choice(s, t->sampler, t->n_top);
        if (status) return status;
        if (s->sequences[t->sequence].position >= s->n_positions)
            return wt_fail(WT_ERR_FULL, "llm: sequence %d is full with %d tokens", t->sequence, s->n_positions);
    }
    return WT_OK;
}

/// What a step that has run has chosen.
static void take_choices(wt_llm_session *s, const wt_llm_turn *turns, int32_t *next, float *logits)
{
    const int n = s->n_tokens, vocab = s->llm->config.vocab_size;
    if (s->gpu) {
        wt__gpu_step_choices(s, turns, next);
        return;
    }
    for (int k = 0; k < n; k++) {
        const float *row = s->logits + (size_t)k * (size_t)vocab;
        next[k] = choose(row, vocab, turns[k].sampler);
        if (!turns[k].pick) continue;
        turns[k].pick->id = next[k];
        if (next[k] >= 0) wt_llm_tell(row, vocab, turns[k].n_top, turns[k].pick);
    }
    if (logits) memcpy(logits, s->logits, sizeof *logits * (size_t)n * (size_t)vocab);
}

wt_status wt_llm_step(wt_llm_session *session, const wt_llm_turn *turns, int n, int32_t *next, float *logits)
{
    wt_llm_session *s = session;
    s->sequences[s->sequence] = wt_llm_session_snapshot(s);
    wt_status status = check_turns(s, turns, n);
    if (!status) status = take_pages(s, turns, n);
    if (status) return status;
    s->has_logits = false;
    s->n_tokens = n;
    s->is_prompt = false;
    s->by_amx = false;
    for (int k = 0; k < n; k++) {
        const int sequence = turns[k].sequence;
        wt__llm_prepare_rope(s, sequence, s->sequences[sequence].position + 1);
        const int place = s->sequences[sequence].position;
        put_token(s, k, (wt_llm_token){.id = turns[k].id, .place = place, .sequence = sequence});
    }
    status = wt__llm_step_begin(s);
    if (status) return status;
    status = s->gpu ? wt__gpu_step(s, turns, logits) : wt__llm_forward(s, s->llm->config.n_layers, s->logits, n);
    status = wt__llm_step_finish(s, status);
    if (!status) take_choices(s, turns, next, logits);
    for (int k = 0; k < n && !status; k++) s->sequences[turns[k].sequence].position++;
    s->position = s->sequences[s->sequence].position;
    for (int k = 0; k < n && !status; k++)
        if (next[k] < 0) status = wt_fail(WT_ERR_FORMAT, "llm: turn %d gives a logit that is not a number", k);
    return status;
}
