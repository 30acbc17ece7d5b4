// Pages of the cache: sequences take them as they grow, may share those of a common beginning, and give them back. A
// shared page is copied before one of its sequences writes into it.
#include "llm_internal.h"

#include <stdlib.h>

static int pages_for(int n_positions) { return (n_positions + WT__LLM_PAGE - 1) / WT__LLM_PAGE; }

wt_status wt__pages_open(wt_llm_session *s)
{
    wt__pages *p = &s->pool;
    p->free = malloc(sizeof *p->free * (size_t)p->n);
    p->uses = calloc((size_t)p->n, sizeof *p->uses);
    p->held = calloc((size_t)s->n_sequences, sizeof *p->held);
    if (!p->free || !p->uses || !p->held) return wt_fail(WT_ERR_NO_MEMORY, "llm: %d pages", p->n);
    for (p->n_free = 0; p->n_free < p->n; p->n_free++) p->free[p->n_free] = p->n - 1 - p->n_free;
    return WT_OK;
}

void wt__pages_close(wt_llm_session *s)
{
    free(s->pool.free);
    free(s->pool.uses);
    free(s->pool.held);
}

static int32_t *row_of(const wt_llm_session *s, int sequence) { return s->pages + (int64_t)sequence * s->n_pages; }

static void release(wt__pages *p, int32_t page)
{
    if (!--p->uses[page]) p->free[p->n_free++] = page;
}

int wt__pages_wanted(const wt_llm_session *s, int sequence, int first, int end)
{
    const int held = s->pool.held[sequence], n_pages = pages_for(end);
    int n = n_pages > held ? n_pages - held : 0;
    for (int k = first / WT__LLM_PAGE; k < held && k < n_pages; k++) n += s->pool.uses[row_of(s, sequence)[k]] > 1;
    return n;
}

int wt__pages_wanted_together(const wt_llm_session *s, const wt_llm_turn *turns, int n)
{
    int wanted = 0;
    for (int k = 0; k < n; k++) {
        const int at = s->sequences[turns[k].sequence].position / WT__LLM_PAGE;
        if (at >= s->pool.held[turns[k].sequence]) {
            wanted++;
            continue;
        }
        const int32_t page = row_of(s, turns[k].sequence)[at];
        int uses = s->pool.uses[page]; // that are left when the turns before have copies of their own
        for (int j = 0; j < k; j++) {
            const int before = s->sequences[turns[j].sequence].position / WT__LLM_PAGE;
            uses -= before < s->pool.held[turns[j].sequence] && row_of(s, turns[j].sequence)[before] == page;
        }
        wanted += uses > 1;
    }
    return wanted;
}

wt_status wt__pages_own(wt_llm_session *s, int sequence, int first, int end)
{
    wt__pages *p = &s->pool;
    int32_t *row = row_of(s, sequence);
    const int wanted = wt__pages_wanted(s, sequence, first, end);
    const int n_positions = sequence == s->sequence ? s->position : s->sequences[sequence].position;
    wt_status status = WT_OK;
    if (wanted > p->n_free)
        return wt_fail(WT_ERR_FULL, "llm: sequence %d wants %d more pages of %d positions, %d of %d are free", sequence,
                       wanted, WT__LLM_PAGE, p->n_free, p->n);
    for (int k = first / WT__LLM_PAGE; k < pages_for(end) && !status; k++) {
        const bool is_held = k < p->held[sequence];
        const int32_t before = row[k];
        if (is_held && p->uses[before] == 1) continue;
        row[k] = p->free[--p->n_free];
        p->uses[row[k]] = 1;
        p->held[sequence] += !is_held;
        if (!is_held) continue;
        if (k * WT__LLM_PAGE < n_positions) // it is not empty
            status = (s->gpu ? wt__gpu_copy_page : wt__cpu_copy_page)(s, before, row[k]);
        release(p, before);
    }
    return status;
}

void wt__pages_trim(wt_llm_session *s, int sequence, int n_positions)
{
    wt__pages *p = &s->pool;
    while (p->held[sequence] > pages_for(n_positions)) release(p, row_of(s, sequence)[--p->held[sequence]]);
}

// ---- public

int wt_llm_free_positions(const wt_llm_session *session) { return session->pool.n_free * WT__LLM_PAGE; }

wt_status wt_llm_share(wt_llm_session *session, int from, int to, int n)
{
    wt_llm_session *s = session;
    const int most = s->n_sequences - 1;
    if (from < 0 || from > most || to < 0 || to > most || from == to)
        return wt_fail(WT_ERR_BAD_ARG, "llm: sequence %d shares with %d, want two of 0..%d", from, to, most);
    s->sequences[s->sequence] = wt_llm_session_snapshot(s);
    const wt_llm_snapshot *source = &s->sequences[from];
    if (n < 0 || n > source->position)
        return wt_fail(WT_ERR_BAD_ARG, "llm: %d tokens of sequence %d, want 0..%d", n, from, source->position);
    wt__pages_trim(s, to, 0);
    for (int k = 0; k < pages_for(n); k++) s->pool.uses[row_of(s, to)[k] = row_of(s, from)[k]]++;
    s->pool.held[to] = pages_for(n);
    s->sequences[to] = (wt_llm_snapshot){n, source->rope_length};
    if (to != s->sequence) return WT_OK;
    s->position = n;
    s->rope_length = source->rope_length;
    s->has_logits = false;
    return WT_OK;
}

bool wt_llm_can_shift(const wt_llm *llm)
{
    return llm->config.rope.kind != WT_ROPE_NONE && llm->config.rope.kind != WT_ROPE_DYNAMIC;
}

wt_status wt_llm_shift(wt_llm_session *session, int n_keep, int n_drop)
{
    wt_llm_session *s = session;
    if (!wt_llm_can_shift(s->llm))
        return wt_fail(WT_ERR_UNSUPPORTED, "llm: keys of learnt positions or dynamic angles cannot move");
    if (n_keep < 0 || n_drop < 1 || n_drop > s->position - n_keep)
        return wt_fail(WT_ERR_BAD_ARG, "llm: drop %d tokens after %d, the session has %d", n_drop, n_keep, s->position);
    wt_status status = wt__pages_own(s, s->sequence, n_keep, s->position);
    if (status) return status;
    s->has_logits = false;
    wt__llm_prepare_rope(s, s->sequence, s->position);
    status = (s->gpu ? wt__gpu_shift : wt__cpu_shift)(s, s->sequence, n_keep, s->position - n_drop, n_drop);
    if (status) return status;
    s->position -= n_drop;
    wt__pages_trim(s, s->sequence, s->position);
    return WT_OK;
}
