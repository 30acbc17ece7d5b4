// Which tokens a session's steps choose on a GPU, when it is not just the most probable ones: settings and tallies of
// samplers come to the device, what was chosen and what is told of it goes back.
#include "gpu.h"

#include <stdlib.h>
#include <string.h>

static wt_status fill_zeros(wt_llm_session *s, size_t bytes)
{
    wt__gpu *g = s->gpu;
    void *zeros = calloc(1, bytes);
    if (!zeros) return wt_fail(WT_ERR_NO_MEMORY, "llm: %zu bytes", bytes);
    wt_status status = wt_pool_upload(g->pool, g->draw_memory, s->stream, 0, zeros, bytes);
    if (!status) status = wt_stream_synchronize(s->stream);
    free(zeros);
    return status;
}

wt_status wt__gpu_draw_open(wt_llm_session *s)
{
    wt__gpu *g = s->gpu;
    const int n = s->n_sequences, vocab = s->llm->config.vocab_size;
    size_t n_zeroed;
    const wt_pool_request request = {.size_bytes = wt__gpu_draw_layout(n, vocab, 0, &g->draw, &n_zeroed),
                                     .no_evict = true};
    if (!(g->serials = calloc((size_t)n, sizeof *g->serials))) return wt_fail(WT_ERR_NO_MEMORY, "llm: %d sequences", n);
    wt_status status = wt__gpu_drawer_create(g->device, &g->drawer);
    if (!status) status = wt_pool_allocate(g->pool, &request, s->stream, &g->draw_memory);
    if (!status) status = wt_pool_access(g->pool, g->draw_memory, s->stream, &g->draw_address);
    if (!status)
        status = wt_buffer_create(g->device, WT_MEMORY_MAPPED, sizeof(wt_llm_odds) * WT_LLM_RING, &g->ring_odds);
    if (!status) status = fill_zeros(s, n_zeroed);
    if (status) return status;
    wt__gpu_draw_layout(n, vocab, g->draw_address, &g->draw, &n_zeroed);
    g->draw.logits = (const float *)(g->io_address + g->logits_at);
    g->draw.draws = (wt_llm_draw *)(g->io_address + g->draws_at);
    g->draw.odds = (wt_llm_odds *)(g->io_address + g->odds_at);
    g->draw.tokens = (wt_llm_token *)(g->io_address + g->tokens_at);
    g->draw.step = (int *)(g->io_address + g->step_at);
    return WT_OK;
}

void wt__gpu_draw_close(wt_llm_session *s)
{
    wt__gpu *g = s->gpu;
    wt_status status = g->draw_address ? wt_pool_release_access(g->pool, g->draw_memory, s->stream) : WT_OK;
    if (g->draw_memory.slot || g->draw_memory.generation) status = wt_pool_free(g->pool, g->draw_memory, s->stream);
    (void)status; // nothing of it is left in any case
    wt_buffer_destroy(g->ring_odds);
    wt__gpu_drawer_destroy(&g->drawer);
    free(g->serials);
}

wt_status wt__gpu_draw_by(wt_llm_session *s, int row, int sequence, const wt_sampler *sampler, bool logprobs, int n_top)
{
    wt__gpu *g = s->gpu;
    const int vocab = s->llm->config.vocab_size;
    const size_t bytes = sizeof(wt_llm_tally) * (size_t)vocab;
    const wt_llm_tally *tallies = sampler ? wt__sampler_tallies(sampler) : NULL;
    wt_llm_draw *d = (wt_llm_draw *)wt__gpu_host(g, g->draws_at) + row;
    *d = sampler ? *wt__sampler_draw(sampler) : (wt_llm_draw){.tally = -1};
    d->logprobs = logprobs || n_top;
    d->n_top = n_top < vocab ? n_top : vocab;
    if (!tallies) return WT_OK;
    d->tally = sequence;
    if (g->serials[sequence] == wt__sampler_serial(sampler)) return WT_OK;
    g->serials[sequence] = wt__sampler_serial(sampler);
    const size_t at = (size_t)((uintptr_t)g->draw.tallies - g->draw_address) + bytes * (size_t)sequence;
    return wt_pool_upload(g->pool, g->draw_memory, s->stream, at, tallies, bytes);
}

wt_status wt__gpu_push_draws(wt_llm_session *s, int n_rows)
{
    return wt__gpu_push(s, s->gpu->draws_at, sizeof(wt_llm_draw) * (size_t)n_rows);
}

void wt__gpu_pick_drawn(wt__pass *p, bool tops)
{
    const wt__gpu *g = p->s->gpu;
    wt_llm_sample_args a = g->draw;
    if (p->s->is_run) {
        a.ring = (wt_llm_choice *)wt_buffer_address(g->ring);
        a.ring_odds = (wt_llm_odds *)wt_buffer_address(g->ring_odds);
    }
    if (!p->status) p->status = wt__gpu_draw(&g->drawer, p->s->stream, &a, p->n_logits, tops);
}

void wt__gpu_drawn(wt_llm_session *s, int sequence, wt_sampler *sampler, int32_t id)
{
    if (!sampler) return;
    wt__sampler_chose(sampler, id);
    s->gpu->serials[sequence] = wt__sampler_serial(sampler);
}

void wt__gpu_odds(const wt_llm_odds *odds, wt_llm_pick *pick)
{
    pick->logprob = odds->logprob;
    pick->n_top = odds->n_top;
    memcpy(pick->top_ids, odds->top_ids, sizeof pick->top_ids);
    memcpy(pick->top_logprobs, odds->top_logprobs, sizeof pick->top_logprobs);
}
