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
    const wt_pool_request request = {.size_bytes = wt__gpu_draw_layout(g->n_logits, n, vocab, 0, &g->draw, &n_zeroed),
                                     .no_evict = true};
    if (!(g->serials = calloc((size_t)n, sizeof *g->serials))) return wt_fail(WT_ERR_NO_MEMORY, "llm: %d sequences", n);
    wt_status status = wt__gpu_drawer_create(g->device, &g->drawer);
    if (!status) status = wt_pool_allocate(g->pool, &request, s->stream, &g->draw_memory);
    if (!status) status = wt_pool_access(g->pool, g->draw_memory, s->stream, &g->draw_address);
    if (!status)
        status = wt_buffer_create(g->device, WT_MEMORY_MAPPED, sizeof(wt_llm_odds) * WT_LLM_RING, &g->ring_odds);
    if (!status) status = fill_zeros(s, n_zeroed);
    if (status) return status;
    wt__gpu_draw_layout(g->n_logits, n, vocab, g->draw_address, &g->draw, &n_zeroed);
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

/// The sequence's tallies are those that the sampler has now.
static wt_status push_tallies(wt_llm_session *s, int sequence, const wt_sampler *sampler)
{
    wt__gpu *g = s->gpu;
    const size_t bytes = sizeof(wt_llm_tally) * (size_t)s->llm->config.vocab_size;
    const size_t at = (size_t)((uintptr_t)g->draw.tallies - g->draw_address) + bytes * (size_t)sequence;
    g->serials[sequence] = wt__sampler_serial(sampler);
    return wt_pool_upload(g->pool, g->draw_memory, s->stream, at, wt__sampler_tallies(sampler), bytes);
}

wt_status wt__gpu_draw_by(wt_llm_session *s, int row, int sequence, const wt_sampler *sampler, bool logprobs, int n_top)
{
    wt__gpu *g = s->gpu;
    const int vocab = s->llm->config.vocab_size;
    wt_llm_draw *d = (wt_llm_draw *)wt__gpu_host(g, g->draws_at) + row;
    *d = sampler ? *wt__sampler_draw(sampler) : (wt_llm_draw){.tally = -1};
    d->logprobs = logprobs || n_top;
    d->n_top = n_top < vocab ? n_top : vocab;
    if (!sampler || !wt__sampler_tallies(sampler)) return WT_OK;
    d->tally = sequence;
    return g->serials[sequence] == wt__sampler_serial(sampler) ? WT_OK : push_tallies(s, sequence, sampler);
}

wt_status wt__gpu_draw_guesses(wt_llm_session *s, const wt_sampler *sampler, const int32_t *ids, int first)
{
    wt__gpu *g = s->gpu;
    const bool tallied = wt__sampler_tallies(sampler);
    wt_llm_draw *draws = wt__gpu_host(g, g->draws_at);
    int32_t *chosen = wt__gpu_host(g, g->chosen_at);
    wt_status status = WT_OK;
    int n = tallied ? wt__sampler_since(sampler, g->serials[s->sequence], chosen) : 0;
    if (n < 0) {
        n = 0;
        status = push_tallies(s, s->sequence, sampler);
    }
    for (int k = 0; k < s->n_tokens; k++) {
        wt_llm_draw *d = &draws[k];
        const int before = first + k; // guesses
        *d = *wt__sampler_draw(sampler);
        if (d->depth_scale > 0) d->number += (unsigned)before;
        if (!tallied) continue;
        d->tally = s->sequence;
        d->n_chosen = n + before;
        d->n_settled = n;
        if (before) chosen[d->n_chosen - 1] = ids[before];
    }
    for (int k = 1; k < first && tallied; k++) chosen[n + k - 1] = ids[k];
    g->serials[s->sequence] = tallied ? wt__sampler_serial(sampler) : g->serials[s->sequence];
    if (status) return status;
    return wt__gpu_push(s, g->chosen_at, g->draws_at - g->chosen_at + sizeof *draws * (size_t)s->n_tokens);
}

wt_status wt__gpu_push_draws(wt_llm_session *s, int n_rows)
{
    return wt__gpu_push(s, s->gpu->draws_at, sizeof(wt_llm_draw) * (size_t)n_rows);
}

void wt__gpu_pick_drawn(wt__pass *p)
{
    const wt__gpu *g = p->s->gpu;
    wt_llm_sample_args a = g->draw;
    if (p->s->is_run) {
        a.ring = (wt_llm_choice *)wt_buffer_address(g->ring);
        a.ring_odds = (wt_llm_odds *)wt_buffer_address(g->ring_odds);
    } else if (p->s->is_prompt)
        a.chosen = (const int *)(g->io_address + g->chosen_at);
    if (!p->status) p->status = wt__gpu_draw(&g->drawer, p->s->stream, &a, p->n_logits, g->n_sms);
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
