// The steps of the forward pass on a GPU, each a launch or a few. Nothing here waits or takes memory, so all of it can
// be recorded into a graph; where tokens stand is read on the device.
#include "gpu.h"

#include <math.h>

enum { MATVEC_WARPS = 16, PLACE_WARPS = 8, ATTEND_THREADS = 128, THREADS = 256, SCRATCH_BYTES = 1024 };

static void launch(wt__pass *p, int kernel, wt_launch shape, const void *args, size_t bytes)
{
    const wt_arg arg = {args, bytes};
    if (!p->status) p->status = wt_kernel_launch(p->s->gpu->kernels[kernel], p->s->stream, &shape, &arg, 1);
}

static int type_of(const wt_tensor *t)
{
    return t->dtype == WT_DTYPE_F16 ? WT_LLM_F16 : t->dtype == WT_DTYPE_BF16 ? WT_LLM_BF16 : WT_LLM_F32;
}

static const void *io_at(const wt__pass *p, size_t at) { return (const void *)(p->s->gpu->io_address + at); }

static const wt_llm_token *tokens_of(const wt__pass *p) { return io_at(p, p->s->gpu->tokens_at); }

// ---- embedding

static void embed(wt__pass *p)
{
    const wt_llm_session *s = p->s;
    const wt_llm *m = s->llm;
    const wt_llm_embed_args a = {.tokens = tokens_of(p),
                                 .embedding = m->embedding.data,
                                 .positions = m->positions.data,
                                 .frequencies = io_at(p, s->gpu->frequencies_at),
                                 .x = s->x,
                                 .cosines = s->cosines,
                                 .sines = s->sines,
                                 .rope_scale = s->rope_scale,
                                 .d_model = m->config.d_model,
                                 .half = m->config.rope.n_dims / 2,
                                 .embedding_type = type_of(&m->embedding),
                                 .positions_type = type_of(&m->positions)};
    launch(p, WT__LLM_EMBED, (wt_launch){.grid = {s->n_tokens}, .block = {THREADS}}, &a, sizeof a);
}

static void normalise(wt__pass *p, const wt__norm *norm)
{
    const wt_model_config *c = &p->s->llm->config;
    const wt_llm_norm_args a = {.x = p->s->x,
                                .weight = norm->weight,
                                .bias = norm->bias,
                                .out = p->s->n,
                                .eps = (float)c->norm_eps,
                                .width = c->d_model,
                                .type = WT_LLM_F32};
    launch(p, WT__LLM_NORM, (wt_launch){.grid = {p->s->n_tokens}, .block = {THREADS}}, &a, sizeof a);
}

// ---- matrices

/// Blocks stay, two on a processor, unless the vector fills its shared memory.
static wt_launch rows_launch(const wt__pass *p, int n_rows, int columns, int n)
{
    const size_t shared = sizeof(float) * (size_t)columns;
    const size_t most = wt_device_get_info(p->s->gpu->device)->shared_bytes / 2 - 2 * SCRATCH_BYTES;
    const int wanted = (n_rows + MATVEC_WARPS - 1) / MATVEC_WARPS, there = p->s->gpu->n_sms * (shared > most ? 1 : 2);
    return (wt_launch){
        .grid = {wanted < there ? wanted : there, n}, .block = {32 * MATVEC_WARPS}, .shared_bytes = shared};
}

static wt_llm_part part_of(const wt__linear *linear, float *out)
{
    return (wt_llm_part){linear->weight.data, linear->bias, out, (int)linear->weight.shape[0]};
}

static void matvec(wt__pass *p, const wt_tensor *w, wt_llm_matvec_args a, const wt__norm *norm, int n)
{
    a.columns = (int)w->shape[1];
    a.eps = (float)p->s->llm->config.norm_eps;
    if (norm) {
        a.norm_weight = norm->weight;
        a.norm_bias = norm->bias;
    }
    a.n_rows = 0;
    for (int k = 0; k < (a.gated ? 1 : a.n_parts); k++) a.n_rows += a.parts[k].rows;
    launch(p, WT__LLM_MATVEC + type_of(w), rows_launch(p, a.n_rows, a.columns, n), &a, sizeof a);
}

static void qkv(wt__pass *p, const wt__layer *w)
{
    const wt_llm_session *s = p->s;
    const wt__linear *all[3] = {&w->q, &w->k, &w->v};
    float *out[3] = {s->q, s->k, s->v};
    for (int first = 0, n; first < 3; first += n) { // those of one type together
        wt_llm_matvec_args a = {.x = s->x};
        for (n = 0; first + n < 3 && all[first + n]->weight.dtype == all[first]->weight.dtype; n++)
            a.parts[n] = part_of(all[first + n], out[first + n]);
        a.n_parts = n;
        matvec(p, &all[first]->weight, a, &w->attention_norm, s->n_tokens);
    }
}

static void project(wt__pass *p, const wt__linear *linear, const float *in)
{
    const wt_llm_matvec_args a = {.parts = {part_of(linear, p->s->x)}, .n_parts = 1, .x = in, .add = true};
    matvec(p, &linear->weight, a, NULL, p->s->n_tokens);
}

static void gate(wt__pass *p, const wt__layer *w)
{
    const bool gated = w->gate.weight.data;
    wt_llm_matvec_args a = {.parts = {part_of(&w->up, p->s->up)},
                            .n_parts = gated ? 2 : 1,
                            .x = p->s->x,
                            .gated = gated,
                            .activation = (int)p->s->llm->config.activation};
    if (gated) a.parts[1] = part_of(&w->gate, NULL);
    matvec(p, &w->up.weight, a, &w->ffn_norm, p->s->n_tokens);
}

static void head(wt__pass *p)
{
    const wt_llm_session *s = p->s;
    const wt_llm *m = s->llm;
    const wt_llm_matvec_args a = {.parts = {part_of(&m->head, p->logits)},
                                  .n_parts = 1,
                                  .x = s->x + (int64_t)(s->n_tokens - p->n_logits) * m->config.d_model};
    matvec(p, &m->head.weight, a, &m->norm, p->n_logits);
}

// ---- attention

static wt_llm_cache cache_of(const wt__pass *p, int layer)
{
    const wt_llm_session *s = p->s;
    const wt_model_config *c = &s->llm->config;
    const int64_t of_layer = (int64_t)c->n_kv_heads * WT__LLM_PAGE * c->d_head;
    const int64_t skipped = layer * of_layer * (s->gpu->kv_type ? 2 : 4);
    return (wt_llm_cache){.keys = (unsigned char *)s->keys + skipped,
                          .values = (unsigned char *)s->values + skipped,
                          .pages = io_at(p, s->gpu->pages_at),
                          .page_stride = of_layer * c->n_layers,
                          .n_pages = s->n_pages};
}

static void place(wt__pass *p, int layer)
{
    const wt_llm_session *s = p->s;
    const wt_model_config *c = &s->llm->config;
    const wt__layer *w = &s->llm->layers[layer];
    const wt_llm_place_args a = {.tokens = tokens_of(p),
                                 .cache = cache_of(p, layer),
                                 .q = s->q,
                                 .k = s->k,
                                 .v = s->v,
                                 .cosines = s->cosines,
                                 .sines = s->sines,
                                 .q_norm = w->q_norm.weight,
                                 .k_norm = w->k_norm.weight,
                                 .eps = (float)c->norm_eps,
                                 .n_heads = c->n_heads,
                                 .n_kv_heads = c->n_kv_heads,
                                 .n_dims = c->rope.n_dims,
                                 .interleaved = c->rope.interleaved};
    const int n_heads = c->n_heads + 2 * c->n_kv_heads;
    launch(p, WT__LLM_PLACE,
           (wt_launch){.grid = {s->n_tokens, (n_heads + PLACE_WARPS - 1) / PLACE_WARPS}, .block = {32 * PLACE_WARPS}},
           &a, sizeof a);
}

static void attend(wt__pass *p, int layer)
{
    const wt_llm_session *s = p->s;
    const wt_model_config *c = &s->llm->config;
    const wt_llm_attend_args a = {.tokens = tokens_of(p),
                                  .cache = cache_of(p, layer),
                                  .q = s->q,
                                  .out = s->a,
                                  .partial = s->gpu->partial,
                                  .arrived = s->gpu->arrived,
                                  .scale = wt__attention_scale(c, layer),
                                  .n_heads = c->n_heads,
                                  .n_kv_heads = c->n_kv_heads,
                                  .n_splits = wt__gpu_n_splits(s, s->n_tokens),
                                  .window = c->layer_slides[layer] ? c->sliding_window : 0,
                                  .out_type = WT_LLM_F32};
    launch(
        p, WT__LLM_ATTEND,
        (wt_launch){.grid = {a.n_splits, c->n_heads / s->gpu->heads_at_once, s->n_tokens}, .block = {ATTEND_THREADS}},
        &a, sizeof a);
}

// ---- experts

static void mixture(wt__pass *p, const wt__layer *w)
{
    const wt_llm_session *s = p->s;
    const wt_model_config *c = &s->llm->config;
    const wt__expert *first = &w->experts[0], *second = &w->experts[c->n_experts > 1];
    const int type = type_of(&first->up.weight);
    normalise(p, &w->ffn_norm);
    const wt_llm_matvec_args routes = {.parts = {part_of(&w->router, s->routes)}, .n_parts = 1, .x = s->n};
    matvec(p, &w->router.weight, routes, NULL, s->n_tokens);
    const wt_llm_choose_args choose = {.routes = s->routes,
                                       .chosen = s->chosen,
                                       .shares = s->shares,
                                       .n_tokens = s->n_tokens,
                                       .n_experts = c->n_experts,
                                       .n_used = c->n_experts_used,
                                       .normalise = c->norm_expert_weights};
    launch(p, WT__LLM_CHOOSE,
           (wt_launch){.grid = {s->n_tokens}, .block = {32}, .shared_bytes = sizeof(float) * (size_t)c->n_experts},
           &choose, sizeof choose);
    const wt_llm_expert_args a = {.gate = first->gate.weight.data,
                                  .up = first->up.weight.data,
                                  .down = first->down.weight.data,
                                  .gate_stride = wt__llm_expert_stride(s->llm, &first->gate, &second->gate),
                                  .up_stride = wt__llm_expert_stride(s->llm, &first->up, &second->up),
                                  .down_stride = wt__llm_expert_stride(s->llm, &first->down, &second->down),
                                  .chosen = s->chosen,
                                  .shares = s->shares,
                                  .n = s->n,
                                  .hidden = s->up,
                                  .x = s->x,
                                  .d_model = c->d_model,
                                  .d_ff = c->d_ff_expert,
                                  .n_used = c->n_experts_used,
                                  .activation = (int)c->activation};
    launch(p, WT__LLM_EXPERT + type, rows_launch(p, c->d_ff_expert, c->d_model, s->n_tokens * c->n_experts_used), &a,
           sizeof a);
    launch(p, WT__LLM_DOWN + type, rows_launch(p, c->d_model, c->d_ff_expert, s->n_tokens), &a, sizeof a);
}

// ---- the next token

void wt__gpu_pick(wt__pass *p)
{
    const wt_llm_session *s = p->s;
    const wt__gpu *g = s->gpu;
    const wt_llm_pick_args a = {.logits = p->logits,
                                .tokens = (wt_llm_token *)(g->io_address + g->tokens_at),
                                .best = (float *)(g->io_address + g->best_at),
                                .arrived = g->arrived,
                                .step = (int *)(g->io_address + g->step_at),
                                .ring = (wt_llm_choice *)wt_buffer_address(g->ring),
                                .vocab_size = s->llm->config.vocab_size};
    launch(p, WT__LLM_PICK, (wt_launch){.grid = {WT_LLM_PICK_BLOCKS}, .block = {THREADS}}, &a, sizeof a);
}

const wt__llm_ops wt__llm_cuda_ops = {.embed = embed,
                                      .qkv = qkv,
                                      .place = place,
                                      .attend = attend,
                                      .project = project,
                                      .gate = gate,
                                      .mixture = mixture,
                                      .head = head};
