// The steps of the forward pass on a GPU, each a launch or a few. Nothing here waits or takes memory, so all of it can
// be recorded into a graph; where tokens stand is read on the device. Products of one vector are in ops_cuda_vector.c,
// attention in ops_cuda_attend.c, experts in ops_cuda_experts.c.
#include "ops_cuda.h"

#include <string.h>

enum {
    NORMED_TOKENS = 8,
    NORM_BLOCKS = 4,  ///< of llm_norm_many on a processor
    NORM_WIDTH = 4096 ///< its widest row
};

/// Those that wait for earlier ones themselves (kernels/spectral/overlap.cuh). The embedding does not: all that comes
/// before a step is done before any of it.
static const bool overlaps[WT__N_LLM_KERNELS] = {
    [WT__LLM_NORM] = true,           [WT__LLM_NORM_MANY] = true,      [WT__LLM_CHOOSE] = true,
    [WT__LLM_GROUP] = true,          [WT__LLM_GATHER] = true,         [WT__LLM_MIX] = true,
    [WT__LLM_PICK] = true,           [WT__LLM_PLACE] = true,          [WT__LLM_ATTEND] = true,
    [WT__LLM_FLASH] = true,          [WT__LLM_MATVEC] = true,         [WT__LLM_MATVEC + 1] = true,
    [WT__LLM_MATVEC + 2] = true,     [WT__LLM_STREAM] = true,         [WT__LLM_STREAM + 1] = true,
    [WT__LLM_STREAM + 2] = true,     [WT__LLM_STREAM + 3] = true,     [WT__LLM_STREAM + 4] = true,
    [WT__LLM_STREAM + 5] = true,     [WT__LLM_STREAM + 6] = true,     [WT__LLM_STREAM + 7] = true,
    [WT__LLM_EXPERTS] = true,        [WT__LLM_EXPERTS + 1] = true,    [WT__LLM_EXPERTS + 2] = true,
    [WT__LLM_EXPERTS + 3] = true,    [WT__LLM_EXPERTS + 4] = true,    [WT__LLM_EXPERTS + 5] = true,
    [WT__LLM_ROUTE] = true,
    [WT__LLM_ATTEND_16] = true,      [WT__LLM_ATTEND_16 + 1] = true,
    [WT__LLM_ATTEND_16 + 2] = true,  [WT__LLM_ATTEND_16 + 3] = true,  [WT__LLM_ATTEND_ONE] = true,
    [WT__LLM_ATTEND_ONE + 1] = true, [WT__LLM_ATTEND_ONE + 2] = true, [WT__LLM_ATTEND_ONE + 3] = true,
};

void wt__gpu_launch(wt__pass *p, int kernel, wt_launch shape, const void *args, size_t bytes)
{
    const wt_arg arg = {args, bytes};
    shape.overlap = overlaps[kernel];
    if (p->status || p->s->gpu->is_dry) return;
    p->status = wt_kernel_launch(p->s->gpu->kernels[kernel], p->s->stream, &shape, &arg, 1);
}

// ---- embedding

static void embed(wt__pass *p)
{
    const wt_llm_session *s = p->s;
    const wt_llm *m = s->llm;
    const wt_llm_embed_args a = {.tokens = (wt_llm_token *)wt__gpu_tokens(p),
                                 .embedding = m->embedding.data,
                                 .positions = m->positions.data,
                                 .frequencies = wt__gpu_io(p, s->gpu->frequencies_at),
                                 .x = s->x,
                                 .cosines = s->cosines,
                                 .sines = s->sines,
                                 .rope_scale = s->rope_scale,
                                 .d_model = m->config.d_model,
                                 .half = m->config.rope.n_dims / 2,
                                 .embedding_type = wt__gpu_type(m->embedding.dtype),
                                 .positions_type = wt__gpu_type(m->positions.dtype)};
    wt__gpu_launch(p, WT__LLM_EMBED, (wt_launch){.grid = {s->n_tokens, 2}, .block = {WT__GPU_THREADS}}, &a, sizeof a);
}

void wt__gpu_normalise(wt__pass *p, const wt__norm *norm, const float *x, int n, wt_dtype type)
{
    const wt_model_config *c = &p->s->llm->config;
    const wt_llm_norm_args a = {.x = x,
                                .weight = norm->weight,
                                .bias = norm->bias,
                                .out = p->s->n,
                                .eps = (float)c->norm_eps,
                                .width = c->d_model,
                                .type = wt__gpu_type(type),
                                .n_rows = n,
                                .two_parts = wt__gpu_in_two_parts(p->s, type)};
    const int blocks = NORM_BLOCKS * p->s->gpu->n_sms;
    const bool by_many = n > blocks && !norm->bias && type != WT_DTYPE_F32 && !a.two_parts && c->d_model % 4 == 0 &&
                         c->d_model <= NORM_WIDTH && (uintptr_t)norm->weight % 16 == 0;
    wt__gpu_launch(p, by_many ? WT__LLM_NORM_MANY : WT__LLM_NORM,
                   (wt_launch){.grid = {by_many ? blocks : n}, .block = {WT__GPU_THREADS}}, &a, sizeof a);
    p->normed = NULL;
}

// ---- matrices: one vector at a time by ops_cuda_vector.c, all else by matmul.h

wt_scaling wt__llm_scaling(const wt__linear *w)
{
    if (!w->scales) return WT_SCALING_NONE;
    if (w->scale_rows > 1) return w->scale_rows < w->weight.shape[0] ? WT_SCALING_BLOCK : WT_SCALING_TENSOR;
    return w->nibbles || w->scale_columns < w->weight.shape[1] ? WT_SCALING_GROUP : WT_SCALING_ROW;
}

wt_matrix wt__gpu_matrix(const wt__linear *w)
{
    const wt_scaling scaling = wt__llm_scaling(w);
    return (wt_matrix){.data = (uintptr_t)w->weight.data,
                       .rows = (int)w->weight.shape[0],
                       .columns = (int)w->weight.shape[1],
                       .dtype = w->weight.dtype,
                       .packing = w->nibbles ? WT_PACKING_U4 : WT_PACKING_NONE,
                       .scaling = scaling,
                       .group = scaling == WT_SCALING_GROUP ? w->scale_columns : 0,
                       .scale_dtype = w->half_scales ? WT_DTYPE_F16 : WT_DTYPE_F32,
                       .scales = (uintptr_t)w->scales,
                       .zeros = (uintptr_t)w->zeros};
}

void wt__gpu_multiply(wt__pass *p, const wt_matmul_args *a)
{
    wt_matmul_args overlapping = *a;
    overlapping.overlap = true; // weights were there before the step
    overlapping.two_parts = wt__gpu_in_two_parts(p->s, a->x_dtype);
    const wt__gpu *g = p->s->gpu;
    if (!p->status)
        p->status = g->is_dry ? wt_matmul_prepare(g->matmul, &overlapping)
                              : wt_matmul_enqueue(g->matmul, p->s->stream, &overlapping);
}

/// x of a product is norm(s->x): within this product if the one before has begun with it, else by a launch.
static void norm_before(wt__pass *p, const wt__norm *norm, wt_matmul_args *a)
{
    const wt_llm_session *s = p->s;
    if (p->normed == norm) {
        a->norm_before = (wt_matmul_norm){.squares = (uintptr_t)s->gpu->squares, .eps = (float)s->llm->config.norm_eps};
        if (wt_matmul_norms(s->gpu->matmul, a) == p->n_squares) return;
        a->norm_before = (wt_matmul_norm){0};
    }
    wt__gpu_normalise(p, norm, s->x, s->n_tokens, a->x_dtype);
}

/// The RMSNorm of what a layer's o or down adds to.
static const wt__norm *norm_after(const wt__pass *p, const wt__linear *w)
{
    const wt_llm *m = p->s->llm;
    const wt__layer *layer = p->layer;
    const bool is_last = layer == &m->layers[m->config.n_layers - 1];
    const wt__norm *norm = w == &layer->o ? &layer->ffn_norm : is_last ? &m->norm : &(layer + 1)->attention_norm;
    return norm->bias || (w == &layer->o && layer->experts) ? NULL : norm;
}

bool wt__llm_alike(const wt__linear *a, const wt__linear *b)
{
    return a->weight.dtype == b->weight.dtype && a->nibbles == b->nibbles && wt__llm_scaling(a) == wt__llm_scaling(b) &&
           a->scale_columns == b->scale_columns && a->half_scales == b->half_scales && !a->both == !b->both;
}

/// What attention reads before it has q.
static void tell_ahead(const wt__pass *p, wt_llm_ahead *ahead)
{
    const wt_llm_session *s = p->s;
    const wt_model_config *c = &s->llm->config;
    const int half = (int)sizeof(float) * c->rope.n_dims / 2, head = (int)sizeof(float) * c->d_head;
    const wt_llm_ahead all[WT_LLM_AHEAD] = {{wt__gpu_tokens(p), sizeof(wt_llm_token)},
                                            {wt__gpu_io(p, s->gpu->pages_at), (int)sizeof(int32_t) * s->n_pages},
                                            {s->cosines, half},
                                            {s->sines, half},
                                            {p->layer->q_norm.weight, p->layer->q_norm.weight ? head : 0},
                                            {p->layer->k_norm.weight, p->layer->k_norm.weight ? head : 0}};
    memcpy(ahead, all, sizeof all);
}

static void qkv(wt__pass *p, const wt__layer *w)
{
    const wt_llm_session *s = p->s;
    const wt__linear *all[3] = {&w->q, &w->k, &w->v};
    float *out[3] = {s->q, s->k, s->v};
    p->layer = w;
    for (int first = 0, n; first < 3; first += n) { // those of one kind together
        wt_llm_matvec_args single = {.x = s->x};
        const wt_dtype type = wt__gpu_input_type(s, all[first], s->n_tokens);
        wt_matmul_args a = {
            .x = (uintptr_t)s->n, .x_dtype = type, .y_dtype = WT_DTYPE_F32, .m = wt__gpu_batch_rows(s), .n_parts = 0};
        for (n = 0; first + n < 3 && wt__llm_alike(all[first], all[first + n]); n++) {
            const wt__linear *l = all[first + n];
            a.parts[n] = wt__gpu_part(l, out[first + n]);
            single.parts[n] = wt__gpu_vector_part(l, out[first + n]);
        }
        single.n_parts = a.n_parts = n;
        if (wt__gpu_by_vector(s, all[first], s->n_tokens)) {
            tell_ahead(p, single.ahead);
            wt__gpu_multiply_vector(p, all[first], single, &w->attention_norm);
            continue;
        }
        norm_before(p, &w->attention_norm, &a);
        wt__gpu_multiply(p, &a);
    }
}

static void project(wt__pass *p, const wt__linear *w, const float *in)
{
    const wt_llm_session *s = p->s;
    if (wt__gpu_by_vector(s, w, s->n_tokens)) {
        const wt_llm_part part = wt__gpu_vector_part(w, s->x);
        wt__gpu_multiply_vector(p, w, (wt_llm_matvec_args){.parts = {part}, .n_parts = 1, .x = in, .add = true}, NULL);
        return;
    }
    wt_matmul_args a = {.n_parts = 1,
                        .parts = {wt__gpu_part(w, s->x)},
                        .x = (uintptr_t)in,
                        .x_dtype = wt__gpu_input_type(s, w, s->n_tokens),
                        .y_dtype = WT_DTYPE_F32,
                        .m = wt__gpu_batch_rows(s),
                        .add = true};
    const wt__norm *norm = norm_after(p, w);
    if (norm)
        a.norm_after = (wt_matmul_norm){
            .weight = (uintptr_t)norm->weight, .out = (uintptr_t)s->n, .squares = (uintptr_t)s->gpu->squares};
    const bool few = s->n_tokens <= NORMED_TOKENS; // of more, a launch is faster (H200)
    p->n_squares = norm && few ? wt_matmul_norms(s->gpu->matmul, &a) : 0;
    if (!p->n_squares) a.norm_after = (wt_matmul_norm){0};
    wt__gpu_multiply(p, &a);
    p->normed = p->n_squares ? norm : NULL;
}

static void gate(wt__pass *p, const wt__layer *w)
{
    const wt_llm_session *s = p->s;
    const bool gated = w->gate.weight.data;
    const wt_activation activation = s->llm->config.activation;
    if (wt__gpu_by_vector(s, &w->up, s->n_tokens)) {
        wt__gpu_multiply_vector(
            p, &w->up,
            (wt_llm_matvec_args){.parts = {wt__gpu_vector_part(&w->up, s->up), wt__gpu_vector_part(&w->gate, NULL)},
                                 .n_parts = gated ? 2 : 1,
                                 .x = s->x,
                                 .gated = gated,
                                 .activation = (int)activation},
            &w->ffn_norm);
        return;
    }
    const wt_dtype type = wt__gpu_input_type(s, &w->up, s->n_tokens);
    wt_matmul_args a = {.n_parts = gated ? 2 : 1,
                        .parts = {wt__gpu_part(gated ? &w->gate : &w->up, s->up), wt__gpu_part(&w->up, s->up)},
                        .x = (uintptr_t)s->n,
                        .x_dtype = type,
                        .y_dtype = wt__gpu_input_type(s, &w->down, s->n_tokens),
                        .m = wt__gpu_batch_rows(s),
                        .activation = activation,
                        .gated = gated};
    norm_before(p, &w->ffn_norm, &a);
    wt__gpu_multiply(p, &a);
}

static void head(wt__pass *p)
{
    const wt_llm_session *s = p->s;
    const wt__linear *w = &s->llm->head;
    const wt__norm *norm = &s->llm->norm;
    const float *x = s->x + (int64_t)(s->n_tokens - p->n_logits) * s->llm->config.d_model;
    if (wt__gpu_by_vector(s, w, p->n_logits)) {
        const wt_llm_part part = wt__gpu_vector_part(w, p->logits);
        wt__gpu_multiply_vector(p, w, (wt_llm_matvec_args){.parts = {part}, .n_parts = 1, .x = x}, norm);
        return;
    }
    wt_matmul_args a = {.n_parts = 1,
                        .parts = {wt__gpu_part(w, p->logits)},
                        .x = (uintptr_t)s->n,
                        .x_dtype = wt__gpu_input_type(s, w, p->n_logits),
                        .y_dtype = WT_DTYPE_F32,
                        .m = wt__gpu_rows(p->n_logits, s->gpu->n_logits)};
    if (p->n_logits == s->n_tokens)
        norm_before(p, norm, &a);
    else
        wt__gpu_normalise(p, norm, x, p->n_logits, a.x_dtype);
    wt__gpu_multiply(p, &a);
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
                                .ring = s->is_run ? (wt_llm_choice *)wt_buffer_address(g->ring) : NULL,
                                .vocab_size = s->llm->config.vocab_size};
    wt__gpu_launch(p, WT__LLM_PICK, (wt_launch){.grid = {WT_LLM_PICK_BLOCKS, p->n_logits}, .block = {WT__GPU_THREADS}},
                   &a, sizeof a);
}

const wt__llm_ops wt__llm_cuda_ops = {.embed = embed,
                                      .qkv = qkv,
                                      .place = wt__gpu_place,
                                      .attend = wt__gpu_attend,
                                      .project = project,
                                      .gate = gate,
                                      .mixture = wt__gpu_mixture,
                                      .head = head};
