// Steps of one token on a GPU, without the host between them. A step reads its token and position from memory, chooses
// the next and writes it there, and into a ring that the host reads: so one recording serves all steps, and some of
// them are launched before the first is done. A recording keeps the processors it was made on: there is one for each of
// the streams that a partition changes between.
#include "gpu.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <warptone/clock.h>

enum { AHEAD = 2, MOST_RECORDED = 64, PAUSE_NS = 20000, PATIENCE_MS = 2000 };

void wt__gpu_forget(wt__gpu *g)
{
    for (int k = 0; k < WT__N_STEP_KINDS * WT__LLM_MAX_VARIANTS; k++) {
        wt_graph **step = &g->steps[k / WT__LLM_MAX_VARIANTS][k % WT__LLM_MAX_VARIANTS];
        wt_graph_destroy(*step);
        *step = NULL;
    }
    for (int k = 0; k < g->n_batches; k++) wt_graph_destroy(g->batches[k].graph);
    g->n_batches = 0;
}

// ---- a step

static wt_status queue(wt_llm_session *s, wt__step_kind kind)
{
    wt__pass p = {.s = s, .n_logits = s->n_tokens, .logits = (float *)(s->gpu->io_address + s->gpu->logits_at)};
    p.status = wt__llm_forward(s, s->llm->config.n_layers, p.logits, p.n_logits);
    if (kind == WT__STEP_GREEDY) wt__gpu_pick(&p);
    if (kind == WT__STEP_DRAWN) wt__gpu_pick_drawn(&p);
    return p.status;
}

static wt_status record_on(wt_llm_session *s, wt__step_kind kind, wt_stream *stream, wt_graph **graph)
{
    wt_status status = wt_graph_begin(stream, graph);
    if (status) return status;
    status = queue(s, kind);
    const wt_status ended = wt_graph_end(*graph);
    return status ? status : ended;
}

static wt_status record(wt_llm_session *s, wt__step_kind kind, wt_stream *stream, int n_sms, wt_graph **graph)
{
    wt__gpu *g = s->gpu;
    wt_stream *const own = s->stream;
    const int own_sms = g->n_sms;
    s->stream = stream;
    s->n_tokens = 1;
    s->is_run = true;
    g->n_sms = n_sms;
    // once without recording, so that every kernel is there; what it leaves the step itself leaves again
    wt_status status = wt__llm_forward(s, s->llm->config.n_layers, (float *)(g->io_address + g->logits_at), 1);
    if (!status) status = record_on(s, kind, stream, graph);
    s->stream = own;
    s->is_run = false;
    g->n_sms = own_sms;
    return status;
}

static wt_status launch_on(wt_llm_session *s, wt__step_kind kind, int variant, wt_stream *stream, int n_sms)
{
    wt_graph **graph = &s->gpu->steps[kind][variant];
    wt_status status = *graph ? WT_OK : record(s, kind, stream, n_sms, graph);
    if (!status) return wt_graph_launch(*graph, stream);
    wt_graph_destroy(*graph);
    *graph = NULL;
    return status;
}

static wt_status launch_step(wt_llm_session *s, wt__step_kind kind)
{
    wt_status status = wt__llm_step_begin(s);
    if (status) return status;
    status = launch_on(s, kind, s->step.variant, s->step.stream, s->step.n_sms);
    const wt_status queued = wt__llm_step_queued(s);
    return status ? status : queued;
}

wt_status wt__gpu_record_all(wt_llm_session *s)
{
    const int n = s->partition ? wt_partition_n_variants(s->partition) : 1;
    wt_status status = wt__llm_step_begin(s); // nobody else's step is queued on a stream that is being recorded
    if (status) return status;
    for (int k = 0; k < n * WT__N_STEP_KINDS && !status; k++) {
        const int v = k / WT__N_STEP_KINDS, kind = k % WT__N_STEP_KINDS;
        wt_stream *stream = n > 1 ? wt_partition_variant_stream(s->partition, v) : s->own;
        const int n_sms = n > 1 ? wt_partition_variant_sms(s->partition, v) : s->gpu->n_sms;
        status = record(s, (wt__step_kind)kind, stream, n_sms, &s->gpu->steps[kind][v]);
        if (!status) status = wt_stream_synchronize(stream);
    }
    const wt_status queued = wt__llm_step_queued(s);
    return status ? status : queued;
}

/// Steps that may be under way. Borrowed processors go back after the step that has them, and a paced step waits for
/// what the one before took.
static int most_ahead(const wt_llm_session *s) { return s->is_paced || s->step.variant ? 1 : AHEAD; }

// ---- a batch

/// The one of that kind and size on the step's stream; NULL = it comes for the first time.
static wt__gpu_batch *find_batch(const wt_llm_session *s, wt__step_kind kind)
{
    wt__gpu *g = s->gpu;
    const wt__gpu_batch wanted = {kind, s->is_prompt, s->n_tokens, s->step.variant, NULL};
    for (int k = 0; k < g->n_batches; k++) {
        const wt__gpu_batch *b = &g->batches[k];
        if (b->kind == wanted.kind && b->is_prompt == wanted.is_prompt && b->n_tokens == wanted.n_tokens &&
            b->variant == wanted.variant)
            return &g->batches[k];
    }
    if (wanted.n_tokens <= MOST_RECORDED && g->n_batches < WT__LLM_MAX_BATCHES) g->batches[g->n_batches++] = wanted;
    return NULL;
}

wt_status wt__gpu_queue_batch(wt_llm_session *s, wt__step_kind kind)
{
    wt__gpu_batch *b = find_batch(s, kind);
    if (!b) return queue(s, kind); // which also gets all kernels there
    if (b->graph || record_on(s, kind, s->stream, &b->graph) == WT_OK) return wt_graph_launch(b->graph, s->stream);
    wt_graph_destroy(b->graph);
    b->graph = NULL;
    return queue(s, kind); // a driver that cannot record
}

// ---- the results

/// Wait for the choice of step `number`, 1 for the first. The device stores a choice in one piece.
static wt_status wait_for(wt_llm_session *s, int number, int32_t *id)
{
    const wt_llm_choice *ring = wt_buffer_host(s->gpu->ring);
    const _Atomic uint64_t *word = (const _Atomic uint64_t *)(const void *)&ring[number % WT_LLM_RING];
    wt_status status = WT_OK;
    for (int64_t begin = wt_clock_now_ns(NULL); !status;) {
        const uint64_t bits = atomic_load_explicit(word, memory_order_acquire);
        wt_llm_choice choice;
        memcpy(&choice, &bits, sizeof choice);
        *id = choice.id;
        if (choice.step == number) break;
        if (!s->step.variant) nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL); // else the GPU waits for us
        if (wt_clock_now_ns(NULL) - begin < PATIENCE_MS * (int64_t)1000000) continue;
        status = wt_stream_synchronize(s->stream); // which tells what went wrong
        begin = wt_clock_now_ns(NULL);
    }
    return status;
}

static wt_status begin(wt_llm_session *s, const wt_llm_run_config *config)
{
    wt__gpu *g = s->gpu;
    memset(wt_buffer_host(g->ring), 0, wt_buffer_size_bytes(g->ring));
    *(int *)wt__gpu_host(g, g->step_at) = 0;
    wt_status status = wt__gpu_push(s, g->tokens_at, sizeof(wt_llm_token));
    if (!status) status = wt__gpu_push_tables(s);
    if (!status) status = wt__gpu_push(s, g->step_at, sizeof(int));
    if (!status) status = wt__gpu_draw_by(s, 0, s->sequence, config->sampler, config->logprobs, config->n_top);
    if (!status) status = wt__gpu_push_draws(s, 1);
    return status ? status : wt_stream_synchronize(s->stream);
}

/// The choice of step `number` is used: what is told of it, and whether the run goes on.
static bool use_choice(wt_llm_session *s, const wt_llm_run_config *config, int number, int32_t id)
{
    const wt_llm_odds *odds = wt_buffer_host(s->gpu->ring_odds);
    wt_llm_pick pick = {.id = id};
    if (config->logprobs || config->n_top) wt__gpu_odds(&odds[number % WT_LLM_RING], &pick);
    wt__gpu_drawn(s, s->sequence, config->sampler, id);
    return !config->on_token || config->on_token(config->user, &pick);
}

wt_status wt__gpu_generate(wt_llm_session *s, const wt_llm_run_config *config)
{
    const int first = s->position;
    int n_launched = 0, n_seen = 0;
    bool goes_on = true;
    const bool drawn = config->sampler || config->logprobs || config->n_top;
    const wt__step_kind kind = drawn ? WT__STEP_DRAWN : WT__STEP_GREEDY;
    wt_status found = WT_OK, status = begin(s, config);
    while (!status && n_seen < config->n_tokens && (goes_on || n_seen < n_launched)) {
        while (!status && goes_on && n_launched < config->n_tokens && n_launched < n_seen + most_ahead(s)) {
            status = launch_step(s, kind);
            n_launched += !status;
        }
        int32_t id;
        if (!status) status = wait_for(s, ++n_seen, &id);
        if (!status) status = wt__llm_step_ran(s);
        if (status || !goes_on) continue; // launched ahead, and forgotten
        s->position = first + n_seen;
        if (id < 0) found = wt_fail(WT_ERR_FORMAT, "llm: after %d tokens a logit is not a number", s->position);
        goes_on = !found && use_choice(s, config, n_seen, id);
    }
    if (s->position != first + n_launched)
        s->gpu->serials[s->sequence] = 0; // what was launched ahead was counted there
    s->gpu->logits_away = s->has_logits = !status && s->position == first + n_launched;
    return status ? status : found;
}
