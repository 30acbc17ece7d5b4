// Steps of one token on a GPU, without the host between them. A step reads its token and position from memory, chooses
// the next and writes it there, and into a ring that the host reads: so one recording serves all steps, and some of
// them are launched before the first is done. A recording keeps the processors it was made on: there is one for each of
// the streams that a partition changes between.
#include "gpu.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <warptone/clock.h>

enum { AHEAD = 3, PAUSE_NS = 20000, PATIENCE_MS = 2000 };

// ---- a step

static wt_status record(wt_llm_session *s, wt__step_kind kind, wt_stream *stream, int n_sms, wt_graph **graph)
{
    wt__gpu *g = s->gpu;
    wt_stream *const own = s->stream;
    const int own_sms = g->n_sms;
    wt__pass pick = {.s = s, .n_logits = 1, .logits = (float *)(g->io_address + g->logits_at)};
    s->stream = stream;
    s->n_tokens = 1;
    s->is_run = true;
    g->n_sms = n_sms;
    // once without recording, so that every kernel is there; what it leaves the step itself leaves again
    wt_status status = wt__llm_forward(s, s->llm->config.n_layers, pick.logits, 1);
    if (!status) status = wt_graph_begin(stream, graph);
    if (!status) pick.status = wt__llm_forward(s, s->llm->config.n_layers, pick.logits, 1);
    if (!status) kind == WT__STEP_GREEDY ? wt__gpu_pick(&pick) : wt__gpu_pick_drawn(&pick, kind == WT__STEP_TOLD);
    s->stream = own;
    s->is_run = false;
    g->n_sms = own_sms;
    if (!status) status = wt_graph_end(*graph);
    return pick.status ? pick.status : status;
}

static wt_status launch_on(wt_llm_session *s, wt__step_kind kind, int variant, wt_stream *stream, int n_sms)
{
    wt_graph **graph = &s->gpu->steps[kind][variant];
    if (*graph && wt_graph_launch(*graph, stream) == WT_OK) return WT_OK;
    wt_graph_destroy(*graph); // none yet, or one of the layout before
    wt_status status = record(s, kind, stream, n_sms, graph);
    if (!status) return wt_graph_launch(*graph, stream);
    wt_graph_destroy(*graph);
    *graph = NULL;
    return status;
}

/// On the widest stream there is now.
static wt_status launch_step(wt_llm_session *s, wt__step_kind kind)
{
    wt__gpu *g = s->gpu;
    if (!g->partition || wt_partition_n_variants(g->partition) == 1) return launch_on(s, kind, 0, s->stream, g->n_sms);
    wt_partition_step step;
    wt_status status = wt_partition_step_begin(g->partition, &step);
    if (status) return status;
    status = launch_on(s, kind, step.variant, step.stream, step.n_sms);
    const wt_status ended = wt_partition_step_end(g->partition);
    return status ? status : ended;
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
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
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
    const wt__step_kind kind = config->n_top                         ? WT__STEP_TOLD
                               : config->sampler || config->logprobs ? WT__STEP_DRAWN
                                                                     : WT__STEP_GREEDY;
    wt_status found = WT_OK, status = begin(s, config);
    while (!status && n_seen < config->n_tokens && (goes_on || n_seen < n_launched)) {
        while (!status && goes_on && n_launched < config->n_tokens && n_launched < n_seen + AHEAD) {
            status = launch_step(s, kind);
            n_launched += !status;
        }
        int32_t id;
        if (!status) status = wait_for(s, ++n_seen, &id);
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
