// Attention: keys and values to the cache, and softmax(q k) v by the kernel that takes the batch.
#include "ops_cuda.h"

enum {
    FLASH_TOKENS = 17,
    FLASH_BLOCK = 128,
    FLASH_THREADS = 384,
    ATTEND_THREADS = 128,
};

static wt_llm_cache cache_of(const wt__pass *p, int layer)
{
    const wt_llm_session *s = p->s;
    const wt_model_config *c = &s->llm->config;
    const int64_t of_layer = (int64_t)c->n_kv_heads * WT__LLM_PAGE * c->d_head;
    const int64_t skipped = (int64_t)wt_dtype_bytes(s->kv_type, layer * of_layer);
    return (wt_llm_cache){.keys = (unsigned char *)s->keys + skipped,
                          .values = (unsigned char *)s->values + skipped,
                          .pages = wt__gpu_io(p, s->gpu->pages_at),
                          .page_stride = of_layer * c->n_layers,
                          .n_pages = s->n_pages};
}

static wt_llm_turn_args turn_of(const wt__pass *p, int layer)
{
    const wt_llm_session *s = p->s;
    const wt_model_config *c = &s->llm->config;
    const wt__layer *w = &s->llm->layers[layer];
    return (wt_llm_turn_args){.cosines = s->cosines,
                              .sines = s->sines,
                              .q_norm = w->q_norm.weight,
                              .k_norm = w->k_norm.weight,
                              .eps = (float)c->norm_eps,
                              .n_dims = c->rope.n_dims,
                              .interleaved = c->rope.interleaved};
}

/// Few tokens, by llm_attend_16.cu, where tokens of this step are another sum than those of the cache, or one between
/// products by llm_stream.cu or llm_quant.cu, by llm_attend_one.cu, beside whose blocks there is room for theirs.
static bool on_tensor_cores(const wt_llm_session *s)
{
    return s->gpu->kernels[WT__LLM_ATTEND_16] && !s->exact_guesses && (!s->is_prompt || s->n_tokens < FLASH_TOKENS);
}

/// Tokens of different sequences do not see each other: attention itself can put them into the cache.
static bool places_itself(const wt_llm_session *s) { return !s->is_prompt || s->n_tokens == 1 || on_tensor_cores(s); }

/// Of a prompt.
static bool by_flash(const wt_llm_session *s)
{
    return s->is_prompt && s->n_tokens >= FLASH_TOKENS && s->gpu->kernels[WT__LLM_FLASH];
}

/// A warp a head; of many tokens a warp several of one, one after the other.
void wt__gpu_place(wt__pass *p, int layer)
{
    const wt_llm_session *s = p->s;
    const wt_model_config *c = &s->llm->config;
    if (places_itself(s) && !wt__gpu_is_alike(s)) return;
    const wt_llm_place_args a = {.tokens = wt__gpu_tokens(p),
                                 .cache = cache_of(p, layer),
                                 .turn = turn_of(p, layer),
                                 .q = s->q,
                                 .k = s->k,
                                 .v = s->v,
                                 .n_heads = c->n_heads,
                                 .n_kv_heads = c->n_kv_heads,
                                 .narrow_q = by_flash(s) && s->gpu->flash_by_wgmma};
    const int of_token = (c->n_heads + 2 * c->n_kv_heads + WT_LLM_PLACE_WARPS - 1) / WT_LLM_PLACE_WARPS;
    const int wanted = (WT_LLM_PLACE_BLOCKS * s->gpu->n_sms + s->n_tokens - 1) / s->n_tokens;
    wt__gpu_launch(
        p, WT__LLM_PLACE,
        (wt_launch){.grid = {s->n_tokens, wanted < of_token ? wanted : of_token}, .block = {32 * WT_LLM_PLACE_WARPS}},
        &a, sizeof a);
}

/// Processors that were cut `fine` have no room for large clusters: the largest of up to 2 to `form` blocks that they
/// have room for.
static int form_with_room(wt__pass *p, int first_kernel, int form, wt_launch shape)
{
    const wt_llm_session *s = p->s;
    for (bool has_room = false; form && !p->status; form--) {
        shape.grid[0] = 1 << form;
        p->status = wt_kernel_has_room(s->gpu->kernels[first_kernel + form], s->stream, &shape, &has_room);
        if (has_room) break;
    }
    return form;
}

/// As many blocks share the positions of some tokens as there are processors for, with half a processor each; of single
/// tokens, whose clusters of more than two do not fill all processors, five eighths (64 blocks of 124 beside audio).
static void attend_by_clusters(wt__pass *p, wt_llm_attend_args *a, int layer)
{
    const wt_llm_session *s = p->s;
    const bool one = wt__gpu_attends_beside(s);
    const int per = s->is_prompt ? WT_LLM_ATTEND_ROWS / (a->n_heads / a->n_kv_heads) : 1;
    const int heads = one ? a->n_heads / s->gpu->heads_of_one : a->n_kv_heads;
    const int groups = (s->n_tokens + per - 1) / per, blocks = groups * heads, n_sms = s->gpu->n_sms;
    int form = 0;
    while (form < 3 && n_sms >= WT__GPU_CLUSTER_SMS && blocks << (form + 1) <= (form && one ? n_sms * 5 / 8 : n_sms))
        form++;
    const size_t of_kv = wt_dtype_bytes(s->kv_type, 1), d = (size_t)s->llm->config.d_head;
    const size_t at_once = (size_t)s->gpu->heads_of_one;
    const size_t bytes =
        one ? WT_LLM_ATTEND_WARPS * WT_LLM_ATTEND_OF_WARP(d, of_kv, at_once) : WT_LLM_ATTEND_VALUES(d, of_kv);
    const int first_kernel = one ? WT__LLM_ATTEND_ONE : WT__LLM_ATTEND_16;
    wt_launch shape = {
        .grid = {1, heads, groups}, .block = {32 * WT_LLM_ATTEND_WARPS}, .shared_bytes = bytes, .overlap = true};
    a->follow = s->is_prompt;
    if (!layer) p->form = form_with_room(p, first_kernel, form, shape);
    shape.grid[0] = 1 << p->form;
    wt__gpu_launch(p, first_kernel + p->form, shape, a, sizeof *a);
}

/// By products of warpgroups: the queries and two tiles of keys and values, swizzled and aligned, and barriers. Else
/// two pages with room between rows.
static void flash(wt__pass *p, const wt_llm_attend_args *a)
{
    const wt_llm_session *s = p->s;
    const bool by_wgmma = s->gpu->flash_by_wgmma;
    const size_t d = (size_t)s->llm->config.d_head, swizzled = 2 * 5 * FLASH_BLOCK * d + 64 + 1024;
    const size_t padded = 2 * 2 * 2 * WT__LLM_PAGE * (d + 8);
    wt__gpu_launch(p, WT__LLM_FLASH,
                   (wt_launch){.grid = {a->n_heads, (s->n_tokens + FLASH_BLOCK - 1) / FLASH_BLOCK},
                               .block = {by_wgmma ? FLASH_THREADS : WT__GPU_THREADS},
                               .shared_bytes = by_wgmma ? swizzled : padded},
                   a, sizeof *a);
}

void wt__gpu_attend(wt__pass *p, int layer)
{
    const wt_llm_session *s = p->s;
    const wt_model_config *c = &s->llm->config;
    const wt_dtype type = wt__gpu_input_type(s, &s->llm->layers[layer].o, s->n_tokens);
    wt_llm_attend_args a = {.tokens = wt__gpu_tokens(p),
                            .cache = cache_of(p, layer),
                            .q = s->q,
                            .out = s->a,
                            .messages = (float *)(s->gpu->io_address + s->gpu->messages_at),
                            .arrived = s->gpu->arrived,
                            .scale = wt__attention_scale(c, layer),
                            .n_heads = c->n_heads,
                            .n_kv_heads = c->n_kv_heads,
                            .n_splits = 1,
                            .window = c->layer_slides[layer] ? c->sliding_window : 0,
                            .n_tokens = s->n_tokens,
                            .out_type = wt__gpu_type(type),
                            .two_parts = wt__gpu_in_two_parts(s, type)};
    if (by_flash(s)) {
        flash(p, &a);
        return;
    }
    if (places_itself(s) && !wt__gpu_is_alike(s)) {
        a.turn = turn_of(p, layer);
        a.k = s->k;
        a.v = s->v;
    }
    if (on_tensor_cores(s)) {
        attend_by_clusters(p, &a, layer);
        return;
    }
    a.n_splits = wt__gpu_n_splits(s, s->n_tokens);
    wt__gpu_launch(
        p, WT__LLM_ATTEND,
        (wt_launch){.grid = {a.n_splits, c->n_heads / s->gpu->heads_at_once, s->n_tokens}, .block = {ATTEND_THREADS}},
        &a, sizeof a);
}
