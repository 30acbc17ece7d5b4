// What a session beside audio may need later is made before: while a device is armed no kernel can be loaded, and the
// library must not meet a size for the first time.
//
// Batches of a prompt have any size, so products are computed with a few sizes of rows, a quarter apart; at 16 and
// fewer a kernel takes all.
#include "gpu.h"

#include <warptone/arm.h>

enum { SKINNY = 16 };

int wt__gpu_rows(int n, int most)
{
    if (n <= WT__LLM_ALIKE) return n;
    int unit = SKINNY; // a quarter of the power of two at or below n
    while (8 * unit <= n) unit *= 2;
    const int rows = (n + unit - 1) / unit * unit;
    return rows < most ? rows : most;
}

static bool same_types(const wt__linear *a, const wt__linear *b)
{
    return !a->weight.data == !b->weight.data && (!a->weight.data || wt__llm_alike(a, b));
}

/// Layers whose matrices have all the types there are: one, or all.
static int layers_of_all_types(const wt_llm *llm)
{
    const int n = llm->config.n_layers;
    for (int l = 1; l < n; l++) {
        const wt__layer *w = &llm->layers[l], *of = &llm->layers[0];
        const wt__linear *all[] = {&w->q, &w->k, &w->v, &w->o, &w->gate, &w->up, &w->down, &w->router};
        const wt__linear *first[] = {&of->q, &of->k, &of->v, &of->o, &of->gate, &of->up, &of->down, &of->router};
        bool same = !w->experts == !of->experts;
        for (size_t k = 0; k < sizeof all / sizeof *all && same; k++) same = same_types(all[k], first[k]);
        if (same && w->experts)
            same = same_types(&w->experts->gate, &of->experts->gate) && same_types(&w->experts->up, &of->experts->up) &&
                   same_types(&w->experts->down, &of->experts->down);
        if (!same) return n;
    }
    return 1;
}

/// A batch of n zeros, and the logits of n_logits. What it leaves in the cache is written over by the first prompt.
static wt_status run_zeros(wt_llm_session *s, int n_layers, int n, int n_logits, bool is_prompt)
{
    s->n_tokens = n;
    s->is_prompt = is_prompt;
    for (int t = 0; t < n; t++) s->tokens[t] = (wt_llm_token){.place = is_prompt ? t : 0};
    wt_status status = wt__llm_step_begin(s);
    if (status) return status;
    status = wt__gpu_push(s, s->gpu->tokens_at, sizeof *s->tokens * (size_t)n);
    if (!status) status = wt__llm_forward(s, n_layers, (float *)(s->gpu->io_address + s->gpu->logits_at), n_logits);
    return wt__llm_step_finish(s, status);
}

/// The batch as run_zeros has it, without a launch: only products are prepared.
static wt_status run_dry(wt_llm_session *s, int n_layers, int n, int n_logits, bool is_prompt)
{
    s->n_tokens = n;
    s->is_prompt = is_prompt;
    return wt__llm_forward(s, n_layers, (float *)(s->gpu->io_address + s->gpu->logits_at), n_logits);
}

/// The largest batch that there may be.
static int most_of(const wt_llm_session *s)
{
    const int most = s->n_batch < s->n_positions ? s->n_batch : s->n_positions, there = s->pool.n * WT__LLM_PAGE;
    return most < there ? most : there;
}

/// `run` of batches of every size that products tell apart, of a prompt and of several sequences.
static wt_status run_sizes(wt_llm_session *s, wt_status (*run)(wt_llm_session *, int, int, int, bool))
{
    const int n_layers = layers_of_all_types(s->llm), most = most_of(s);
    wt_status status = WT_OK;
    for (int n = 1, rows = 0; n <= most && !status; n++) {
        if (wt__gpu_rows(n, s->n_batch) == rows) continue;
        rows = wt__gpu_rows(n, s->n_batch);
        status = run(s, n_layers, n, 1, true);
        if (!status && n <= WT__LLM_ALIKE) status = run(s, n_layers, n, n, true);
        if (!status && n <= s->gpu->n_logits) status = run(s, n_layers, n, n, false);
    }
    if (!status) status = run(s, n_layers, most, 1, true);
    return status ? status : run(s, n_layers, 1, 1, true); // last: with its token a step is recorded
}

wt_status wt__gpu_prepare(wt_llm_session *s)
{
    const int most = most_of(s);
    wt_status status = wt__pages_own(s, 0, 0, most);
    wt__llm_prepare_rope(s, 0, most);
    if (!status) status = wt__gpu_push_tables(s);
    if (!status) status = run_sizes(s, run_zeros);
    if (!status) status = wt__gpu_record_all(s);
    wt__pages_trim(s, 0, 0);
    s->usage = (wt_llm_usage){0};
    return status;
}

wt_status wt__gpu_follow(wt_llm_session *s, const wt_partition_info *partition)
{
    wt__gpu *g = s->gpu;
    const int n_tokens = s->n_tokens;
    const bool is_prompt = s->is_prompt;
    if (wt_device_is_armed(g->device))
        return wt_fail(WT_ERR_ARMED,
                       "llm: partition %s was resized, and the first step after it makes products anew: run one before "
                       "arming, or inside wt_quiesce",
                       partition->name);
    wt__gpu_forget(g);
    wt_matmul_destroy(g->matmul); // first: the memory quota may have no room for two
    g->matmul = NULL;
    wt_status status =
        wt_matmul_create(&(wt_matmul_config){.device = g->device, .partition = s->partition}, &g->matmul);
    if (status) return status;
    g->n_sms = g->own_sms = partition->n_sms;
    g->is_dry = true;
    status = run_sizes(s, run_dry);
    g->is_dry = false;
    s->n_tokens = n_tokens;
    s->is_prompt = is_prompt;
    if (!status) g->generation = partition->generation;
    return status;
}
