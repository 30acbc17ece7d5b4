// The steps of the forward pass on a GPU, each a launch or a few. Nothing here waits or takes memory, so all of it can
// be recorded into a graph; where tokens stand is read on the device.
#include "gpu.h"

#include <string.h>

enum {
    FLASH_TOKENS = 17,
    NORMED_TOKENS = 8,
    FLASH_BLOCK = 128,
    FLASH_THREADS = 384,
    MATVEC_WARPS = 8,
    LARGE_BYTES = 16 << 20,
    MORE_BLOCKS = 30,  ///< processors for one block more of llm_stream than there are processors
    MANY_ROWS = 16384, ///< of a matrix, whichever partition multiplies it
    NORM_BLOCKS = 4,   ///< of llm_norm_many on a processor
    NORM_WIDTH = 4096, ///< its widest row
    PLACE_WARPS = 8,
    PLACE_BLOCKS = 4,      ///< on a processor, before a warp takes several heads
    STREAM_ALONE = 115200, ///< bytes of a block of which a processor has room for one, beside one of another product
    CLUSTER_SMS = 16,      ///< fewer have no room for every cluster
    ATTEND_THREADS = 128,
    GROUP_THREADS = 1024,
    THREADS = 256
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
    [WT__LLM_STREAM + 5] = true,     [WT__LLM_ATTEND_16] = true,      [WT__LLM_ATTEND_16 + 1] = true,
    [WT__LLM_ATTEND_16 + 2] = true,  [WT__LLM_ATTEND_16 + 3] = true,  [WT__LLM_ATTEND_ONE] = true,
    [WT__LLM_ATTEND_ONE + 1] = true, [WT__LLM_ATTEND_ONE + 2] = true, [WT__LLM_ATTEND_ONE + 3] = true,
};

static void launch(wt__pass *p, int kernel, wt_launch shape, const void *args, size_t bytes)
{
    const wt_arg arg = {args, bytes};
    shape.overlap = overlaps[kernel];
    if (!p->status) p->status = wt_kernel_launch(p->s->gpu->kernels[kernel], p->s->stream, &shape, &arg, 1);
}

static int kernel_type(wt_dtype t)
{
    return t == WT_DTYPE_F16 ? WT_LLM_F16 : t == WT_DTYPE_BF16 ? WT_LLM_BF16 : WT_LLM_F32;
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
                                 .embedding_type = kernel_type(m->embedding.dtype),
                                 .positions_type = kernel_type(m->positions.dtype)};
    launch(p, WT__LLM_EMBED, (wt_launch){.grid = {s->n_tokens}, .block = {THREADS}}, &a, sizeof a);
}

/// To s->n, in the type that the products take.
static void normalise(wt__pass *p, const wt__norm *norm, const float *x, int n, wt_dtype type)
{
    const wt_model_config *c = &p->s->llm->config;
    const wt_llm_norm_args a = {.x = x,
                                .weight = norm->weight,
                                .bias = norm->bias,
                                .out = p->s->n,
                                .eps = (float)c->norm_eps,
                                .width = c->d_model,
                                .type = kernel_type(type),
                                .n_rows = n};
    const int blocks = NORM_BLOCKS * p->s->gpu->n_sms;
    const bool by_many = n > blocks && !norm->bias && type != WT_DTYPE_F32 && c->d_model % 4 == 0 &&
                         c->d_model <= NORM_WIDTH && (uintptr_t)norm->weight % 16 == 0;
    launch(p, by_many ? WT__LLM_NORM_MANY : WT__LLM_NORM,
           (wt_launch){.grid = {by_many ? blocks : n}, .block = {THREADS}}, &a, sizeof a);
    p->normed = NULL;
}

// ---- matrices: one vector times weights of 16 bits by llm_stream.cu, times quantised ones by llm_quant.cu and times
// what is left by llm_matvec.cu, with the norm before it; all else by matmul.h

/// Tokens of one sequence whose bits are to be those of each alone.
static bool is_alike(const wt_llm_session *s)
{
    return s->exact_guesses && s->is_prompt && s->n_tokens <= WT__LLM_ALIKE;
}

static bool by_matvec(const wt_llm_session *s, const wt__linear *w, int n)
{
    wt__llm_quant kind;
    const wt_dtype t = w->weight.dtype;
    return n == 1 && !s->exact_guesses &&
           (t == WT_DTYPE_F32 || t == WT_DTYPE_F16 || t == WT_DTYPE_BF16 || wt__llm_is_quant(w, &kind));
}

static wt_llm_part vector_part(const wt__linear *w, float *out)
{
    return (wt_llm_part){w->weight.data, w->bias, out, (int)w->weight.shape[0], w->both ? (void *)w->both : w->scales};
}

/// Of the vectors that `w` is multiplied with: its own type, 16 bits for smaller ones.
static wt_dtype input_type(const wt_llm_session *s, const wt__linear *w, int n)
{
    const wt_dtype t = w->weight.dtype;
    if (by_matvec(s, w, n)) return WT_DTYPE_F32;
    return t == WT_DTYPE_F32 || t == WT_DTYPE_F16 ? t : WT_DTYPE_BF16;
}

/// The most warps that share a row of n_chunks 16 bytes each and have at most one lane of eight idle.
static int team_of(int n_chunks)
{
    int warps = MATVEC_WARPS;
    for (; warps > 1; warps /= 2) {
        const int lanes = 32 * warps, strips = (n_chunks + lanes - 1) / lanes;
        if (8 * n_chunks >= 7 * lanes * strips) break;
    }
    return warps;
}

/// Blocks a processor: four read the rows of a large matrix fastest; of a small one two, beside which there is room for
/// the next launch's.
static void plain_matvec(wt__pass *p, const wt__linear *w, wt_llm_matvec_args a)
{
    const int of_chunk = 16 / (int)wt_dtype_bytes(w->weight.dtype, 1);
    const int n_chunks = (a.columns + of_chunk - 1) / of_chunk;
    a.warps = team_of(n_chunks);
    for (int k = 0; k < (a.gated ? 1 : a.n_parts); k++) a.n_rows += a.parts[k].rows;
    const int64_t bytes = (a.gated ? 2 : 1) * (int64_t)a.n_rows * a.columns * 16 / of_chunk;
    const int n_teams = MATVEC_WARPS / a.warps, wanted = (a.n_rows + n_teams - 1) / n_teams;
    const int there = (bytes > LARGE_BYTES ? 4 : 2) * p->s->gpu->n_sms;
    launch(p, WT__LLM_MATVEC + kernel_type(w->weight.dtype),
           (wt_launch){.grid = {wanted < there ? wanted : there},
                       .block = {32 * MATVEC_WARPS},
                       .shared_bytes = sizeof(float) * (size_t)(n_chunks * of_chunk)},
           &a, sizeof a);
}

static bool streams(const wt__linear *w, const wt__norm *norm)
{
    return (w->weight.dtype == WT_DTYPE_F16 || w->weight.dtype == WT_DTYPE_BF16) && w->weight.shape[1] % 8 == 0 &&
           !(norm && norm->bias);
}

/// Does down of the pass's layer begin while gate and up still run? Then o, before them, clears s->up. Of a vector of
/// one pass it would be no faster.
static bool awaits_up(const wt__pass *p)
{
    const wt__layer *w = p->layer;
    return !w->experts && w->down.weight.shape[1] > WT_LLM_STREAM_PASS && streams(&w->o, NULL) &&
           streams(&w->up, &w->ffn_norm) && streams(&w->down, NULL);
}

/// Tiles of rows are dealt to a block on every processor. Where a few blocks more have the same number of tiles each, a
/// sixteenth fewer, those come as the first processors are ready with the launch before: on 124 processors, beside
/// audio, a step of 8B is 4 % shorter with 128 (H200). Where they have not, or of a short launch, it would be longer.
static int blocks_for(int n_tiles, int64_t bytes, int n_sms)
{
    const int fullest = (n_tiles + n_sms - 1) / n_sms;
    for (int n = n_sms + 1; n <= n_sms + n_sms / MORE_BLOCKS && bytes > LARGE_BYTES; n++)
        if (n_tiles % n == 0 && 16 * (n_tiles / n) <= 15 * fullest) return n;
    return n_sms;
}

/// Rows of 16 bits at multiples of 16 bytes, without a LayerNorm: two blocks fill a processor, one of this launch and
/// one of the next; every processor has one, with rows or without, so that none is left over for two of another launch.
/// Passes are alike. Many short rows are shared by fewer warps (0.6B's head 75 us, 91); of few a warp would be longer
/// about its part of the vector (H200). Beside a narrow vector there is room for more stages.
static void stream(wt__pass *p, const wt__linear *w, wt_llm_matvec_args m)
{
    const int n = (m.columns + WT_LLM_STREAM_COLUMNS - 1) / WT_LLM_STREAM_COLUMNS, warps = WT_LLM_STREAM_WARPS;
    wt_llm_stream_args a = {.m = m, .n_passes = (m.columns + WT_LLM_STREAM_PASS - 1) / WT_LLM_STREAM_PASS};
    int n_rows = 0, n_tiles = 0;
    for (int k = 0; k < (m.gated ? 1 : m.n_parts); k++) {
        n_rows += m.parts[k].rows;
        n_tiles += (m.parts[k].rows + WT_LLM_STREAM_TILE - 1) / WT_LLM_STREAM_TILE;
    }
    const bool is_short = n_rows >= MANY_ROWS && m.columns <= WT_LLM_STREAM_SHORT * WT_LLM_STREAM_PASS / warps;
    const int of_row = is_short ? WT_LLM_STREAM_SHORT : warps, is_bf16 = w->weight.dtype == WT_DTYPE_BF16;
    a.each = (n + of_row * a.n_passes - 1) / (of_row * a.n_passes) * WT_LLM_STREAM_COLUMNS;
    const bool is_narrow = !is_short && m.columns <= WT_LLM_STREAM_NARROW;
    a.n_stages = is_narrow ? WT_LLM_STREAM_DEEP : WT_LLM_STREAM_STAGES;
    const size_t stages = (size_t)(2 * warps * a.n_stages * WT_LLM_STREAM_TILE * WT_LLM_STREAM_COLUMNS);
    const bool awaits = awaits_up(p), is_awaited = awaits && w == &p->layer->down;
    if (awaits && w == &p->layer->o) {
        a.cleared = (unsigned *)p->s->up;
        a.n_cleared = p->s->llm->config.d_ff;
    }
    a.is_awaited = awaits && w == &p->layer->up;
    size_t shared = stages + 3 * (size_t)WT_LLM_STREAM_PITCH(a.each);
    const bool is_alone = w == &p->layer->o;
    if (is_alone && shared < STREAM_ALONE) shared = STREAM_ALONE;
    const int64_t bytes = 2ll * (m.gated ? 2 : 1) * n_rows * m.columns;
    const int n_sms = p->s->gpu->n_sms, n_blocks = is_alone ? n_sms : blocks_for(n_tiles, bytes, n_sms);
    launch(p,
           WT__LLM_STREAM + is_bf16 +
               (is_awaited ? 4
                : is_short ? 2
                           : 0),
           (wt_launch){.grid = {n_blocks}, .block = {32 * warps}, .shared_bytes = shared}, &a, sizeof a);
}

/// Is a step's attention that of llm_attend_one.cu, whose blocks find room beside those of the products before and
/// after it?
static bool attends_beside(const wt_llm_session *s)
{
    const wt__layer *w = &s->llm->layers[0];
    wt__llm_quant kind;
    return s->n_tokens == 1 &&
           (streams(&w->o, NULL) || (wt__llm_is_quant(&w->q, &kind) && wt__llm_is_quant(&w->o, &kind)));
}

static bool is_beside_attention(const wt__pass *p, const wt__linear *w)
{
    const wt__layer *l = p->layer;
    return p->s->gpu->kernels[WT__LLM_ATTEND_ONE] && attends_beside(p->s) &&
           (w == &l->q || w == &l->k || w == &l->v || w == &l->o);
}

static void matvec(wt__pass *p, const wt__linear *w, wt_llm_matvec_args a, const wt__norm *norm)
{
    wt__llm_quant kind;
    a.columns = (int)w->weight.shape[1];
    a.eps = (float)p->s->llm->config.norm_eps;
    if (norm) {
        a.norm_weight = norm->weight;
        a.norm_bias = norm->bias;
    }
    if (streams(w, norm))
        stream(p, w, a);
    else if (!wt__llm_is_quant(w, &kind))
        plain_matvec(p, w, a);
    else if (!p->status)
        p->status = wt__gpu_multiply_quant(p->s->gpu, p->s->stream, w, &a, is_beside_attention(p, w));
}

wt_scaling wt__llm_scaling(const wt__linear *w)
{
    if (!w->scales) return WT_SCALING_NONE;
    if (w->scale_rows > 1) return w->scale_rows < w->weight.shape[0] ? WT_SCALING_BLOCK : WT_SCALING_TENSOR;
    return w->nibbles || w->scale_columns < w->weight.shape[1] ? WT_SCALING_GROUP : WT_SCALING_ROW;
}

static wt_matrix matrix_of(const wt__linear *w)
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

/// The matrices of several experts, which lie one after the other.
static wt_matrix stack_of(const wt_llm *m, const wt__linear *first, const wt__linear *second)
{
    wt_matrix all = matrix_of(first);
    all.next = wt__llm_expert_stride(m, first->weight.data, second->weight.data);
    all.scales_next = wt__llm_expert_stride(m, first->scales, second->scales);
    all.zeros_next = wt__llm_expert_stride(m, first->zeros, second->zeros);
    return all;
}

static wt_matmul_part part_of(const wt__linear *w, void *y)
{
    return (wt_matmul_part){.weight = matrix_of(w), .y = (uintptr_t)y, .bias = (uintptr_t)w->bias};
}

/// Of the batch, as products see it.
static int rows_of(const wt_llm_session *s) { return wt__gpu_rows(s->n_tokens, s->n_batch); }

static void multiply(wt__pass *p, const wt_matmul_args *a)
{
    wt_matmul_args overlapping = *a;
    overlapping.overlap = true; // weights were there before the step
    if (!p->status) p->status = wt_matmul_enqueue(p->s->gpu->matmul, p->s->stream, &overlapping);
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
    normalise(p, norm, s->x, s->n_tokens, a->x_dtype);
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
    const wt_llm_ahead all[WT_LLM_AHEAD] = {{tokens_of(p), sizeof(wt_llm_token)},
                                            {io_at(p, s->gpu->pages_at), (int)sizeof(int32_t) * s->n_pages},
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
        const wt_dtype type = input_type(s, all[first], s->n_tokens);
        wt_matmul_args a = {
            .x = (uintptr_t)s->n, .x_dtype = type, .y_dtype = WT_DTYPE_F32, .m = rows_of(s), .n_parts = 0};
        for (n = 0; first + n < 3 && wt__llm_alike(all[first], all[first + n]); n++) {
            const wt__linear *l = all[first + n];
            a.parts[n] = part_of(l, out[first + n]);
            single.parts[n] = vector_part(l, out[first + n]);
        }
        single.n_parts = a.n_parts = n;
        if (by_matvec(s, all[first], s->n_tokens)) {
            tell_ahead(p, single.ahead);
            matvec(p, all[first], single, &w->attention_norm);
            continue;
        }
        norm_before(p, &w->attention_norm, &a);
        multiply(p, &a);
    }
}

static void project(wt__pass *p, const wt__linear *w, const float *in)
{
    const wt_llm_session *s = p->s;
    if (by_matvec(s, w, s->n_tokens)) {
        const wt_llm_part part = vector_part(w, s->x);
        matvec(p, w, (wt_llm_matvec_args){.parts = {part}, .n_parts = 1, .x = in, .add = true}, NULL);
        return;
    }
    wt_matmul_args a = {.n_parts = 1,
                        .parts = {part_of(w, s->x)},
                        .x = (uintptr_t)in,
                        .x_dtype = input_type(s, w, s->n_tokens),
                        .y_dtype = WT_DTYPE_F32,
                        .m = rows_of(s),
                        .add = true};
    const wt__norm *norm = norm_after(p, w);
    if (norm)
        a.norm_after = (wt_matmul_norm){
            .weight = (uintptr_t)norm->weight, .out = (uintptr_t)s->n, .squares = (uintptr_t)s->gpu->squares};
    const bool few = s->n_tokens <= NORMED_TOKENS; // of more, a launch is faster (H200)
    p->n_squares = norm && few ? wt_matmul_norms(s->gpu->matmul, &a) : 0;
    if (!p->n_squares) a.norm_after = (wt_matmul_norm){0};
    multiply(p, &a);
    p->normed = p->n_squares ? norm : NULL;
}

static void gate(wt__pass *p, const wt__layer *w)
{
    const wt_llm_session *s = p->s;
    const bool gated = w->gate.weight.data;
    const wt_activation activation = s->llm->config.activation;
    if (by_matvec(s, &w->up, s->n_tokens)) {
        matvec(p, &w->up,
               (wt_llm_matvec_args){.parts = {vector_part(&w->up, s->up), vector_part(&w->gate, NULL)},
                                    .n_parts = gated ? 2 : 1,
                                    .x = s->x,
                                    .gated = gated,
                                    .activation = (int)activation},
               &w->ffn_norm);
        return;
    }
    const wt_dtype type = input_type(s, &w->up, s->n_tokens);
    wt_matmul_args a = {.n_parts = gated ? 2 : 1,
                        .parts = {part_of(gated ? &w->gate : &w->up, s->up), part_of(&w->up, s->up)},
                        .x = (uintptr_t)s->n,
                        .x_dtype = type,
                        .y_dtype = input_type(s, &w->down, s->n_tokens),
                        .m = rows_of(s),
                        .activation = activation,
                        .gated = gated};
    norm_before(p, &w->ffn_norm, &a);
    multiply(p, &a);
}

static void head(wt__pass *p)
{
    const wt_llm_session *s = p->s;
    const wt__linear *w = &s->llm->head;
    const wt__norm *norm = &s->llm->norm;
    const float *x = s->x + (int64_t)(s->n_tokens - p->n_logits) * s->llm->config.d_model;
    if (by_matvec(s, w, p->n_logits)) {
        const wt_llm_part part = vector_part(w, p->logits);
        matvec(p, w, (wt_llm_matvec_args){.parts = {part}, .n_parts = 1, .x = x}, norm);
        return;
    }
    wt_matmul_args a = {.n_parts = 1,
                        .parts = {part_of(w, p->logits)},
                        .x = (uintptr_t)s->n,
                        .x_dtype = input_type(s, w, p->n_logits),
                        .y_dtype = WT_DTYPE_F32,
                        .m = wt__gpu_rows(p->n_logits, s->gpu->n_logits)};
    if (p->n_logits == s->n_tokens)
        norm_before(p, norm, &a);
    else
        normalise(p, norm, x, p->n_logits, a.x_dtype);
    multiply(p, &a);
}

// ---- attention

static wt_llm_cache cache_of(const wt__pass *p, int layer)
{
    const wt_llm_session *s = p->s;
    const wt_model_config *c = &s->llm->config;
    const int64_t of_layer = (int64_t)c->n_kv_heads * WT__LLM_PAGE * c->d_head;
    const int64_t skipped = (int64_t)wt_dtype_bytes(s->kv_type, layer * of_layer);
    return (wt_llm_cache){.keys = (unsigned char *)s->keys + skipped,
                          .values = (unsigned char *)s->values + skipped,
                          .pages = io_at(p, s->gpu->pages_at),
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
static void place(wt__pass *p, int layer)
{
    const wt_llm_session *s = p->s;
    const wt_model_config *c = &s->llm->config;
    if (places_itself(s) && !is_alike(s)) return;
    const wt_llm_place_args a = {.tokens = tokens_of(p),
                                 .cache = cache_of(p, layer),
                                 .turn = turn_of(p, layer),
                                 .q = s->q,
                                 .k = s->k,
                                 .v = s->v,
                                 .n_heads = c->n_heads,
                                 .n_kv_heads = c->n_kv_heads,
                                 .narrow_q = by_flash(s) && s->gpu->flash_by_wgmma};
    const int of_token = (c->n_heads + 2 * c->n_kv_heads + PLACE_WARPS - 1) / PLACE_WARPS;
    const int wanted = (PLACE_BLOCKS * s->gpu->n_sms + s->n_tokens - 1) / s->n_tokens;
    launch(p, WT__LLM_PLACE,
           (wt_launch){.grid = {s->n_tokens, wanted < of_token ? wanted : of_token}, .block = {32 * PLACE_WARPS}}, &a,
           sizeof a);
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
    const bool one = attends_beside(s);
    const int per = s->is_prompt ? WT_LLM_ATTEND_ROWS / (a->n_heads / a->n_kv_heads) : 1;
    const int heads = one ? a->n_heads / s->gpu->heads_at_once : a->n_kv_heads;
    const int groups = (s->n_tokens + per - 1) / per, blocks = groups * heads, n_sms = s->gpu->n_sms;
    int form = 0;
    while (form < 3 && n_sms >= CLUSTER_SMS && blocks << (form + 1) <= (form && one ? n_sms * 5 / 8 : n_sms)) form++;
    const size_t of_kv = wt_dtype_bytes(s->kv_type, 1), d = (size_t)s->llm->config.d_head;
    const size_t at_once = (size_t)s->gpu->heads_at_once;
    const size_t bytes =
        one ? WT_LLM_ATTEND_WARPS * WT_LLM_ATTEND_OF_WARP(d, of_kv, at_once) : WT_LLM_ATTEND_VALUES(d, of_kv);
    const int first_kernel = one ? WT__LLM_ATTEND_ONE : WT__LLM_ATTEND_16;
    wt_launch shape = {
        .grid = {1, heads, groups}, .block = {32 * WT_LLM_ATTEND_WARPS}, .shared_bytes = bytes, .overlap = true};
    a->follow = s->is_prompt;
    if (!layer) p->form = form_with_room(p, first_kernel, form, shape);
    shape.grid[0] = 1 << p->form;
    launch(p, first_kernel + p->form, shape, a, sizeof *a);
}

/// By products of warpgroups: the queries and two tiles of keys and values, swizzled and aligned, and barriers. Else
/// two pages with room between rows.
static void flash(wt__pass *p, const wt_llm_attend_args *a)
{
    const wt_llm_session *s = p->s;
    const bool by_wgmma = s->gpu->flash_by_wgmma;
    const size_t d = (size_t)s->llm->config.d_head, swizzled = 2 * 5 * FLASH_BLOCK * d + 64 + 1024;
    const size_t padded = 2 * 2 * 2 * WT__LLM_PAGE * (d + 8);
    launch(p, WT__LLM_FLASH,
           (wt_launch){.grid = {a->n_heads, (s->n_tokens + FLASH_BLOCK - 1) / FLASH_BLOCK},
                       .block = {by_wgmma ? FLASH_THREADS : THREADS},
                       .shared_bytes = by_wgmma ? swizzled : padded},
           a, sizeof *a);
}

static void attend(wt__pass *p, int layer)
{
    const wt_llm_session *s = p->s;
    const wt_model_config *c = &s->llm->config;
    wt_llm_attend_args a = {.tokens = tokens_of(p),
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
                            .out_type = kernel_type(input_type(s, &s->llm->layers[layer].o, s->n_tokens))};
    if (by_flash(s)) {
        flash(p, &a);
        return;
    }
    if (places_itself(s) && !is_alike(s)) {
        a.turn = turn_of(p, layer);
        a.k = s->k;
        a.v = s->v;
    }
    if (on_tensor_cores(s)) {
        attend_by_clusters(p, &a, layer);
        return;
    }
    a.n_splits = wt__gpu_n_splits(s, s->n_tokens);
    launch(
        p, WT__LLM_ATTEND,
        (wt_launch){.grid = {a.n_splits, c->n_heads / s->gpu->heads_at_once, s->n_tokens}, .block = {ATTEND_THREADS}},
        &a, sizeof a);
}

// ---- experts

static void route(wt__pass *p, const wt__layer *w)
{
    const wt_llm_session *s = p->s;
    const wt_model_config *c = &s->llm->config;
    const int n = s->n_tokens;
    if (by_matvec(s, &w->router, n)) {
        const wt_llm_part part = vector_part(&w->router, s->routes);
        matvec(p, &w->router, (wt_llm_matvec_args){.parts = {part}, .n_parts = 1, .x = s->x}, &w->ffn_norm);
    } else {
        const wt_dtype type = input_type(s, &w->router, n);
        normalise(p, &w->ffn_norm, s->x, n, type);
        multiply(p, &(wt_matmul_args){.n_parts = 1,
                                      .parts = {part_of(&w->router, s->routes)},
                                      .x = (uintptr_t)s->n,
                                      .x_dtype = type,
                                      .y_dtype = WT_DTYPE_F32,
                                      .m = rows_of(s)});
    }
    const wt_llm_choose_args choose = {.routes = s->routes,
                                       .chosen = s->chosen,
                                       .shares = s->shares,
                                       .n_tokens = n,
                                       .n_experts = c->n_experts,
                                       .n_used = c->n_experts_used,
                                       .normalise = c->norm_expert_weights};
    launch(p, WT__LLM_CHOOSE,
           (wt_launch){.grid = {n}, .block = {32}, .shared_bytes = sizeof(float) * (size_t)c->n_experts}, &choose,
           sizeof choose);
}

/// Few tokens: each row of an expert is read for each token that chose it. Many: tokens stand together by expert.
static void mixture(wt__pass *p, const wt__layer *w)
{
    const wt_llm_session *s = p->s;
    const wt_model_config *c = &s->llm->config;
    const wt__expert *first = &w->experts[0], *second = &w->experts[c->n_experts > 1];
    const int n_pairs = s->n_tokens * c->n_experts_used;
    const bool grouped = n_pairs > 4 * c->n_experts && !is_alike(s);
    const wt_dtype type = input_type(s, &first->up, 0), inner = input_type(s, &first->down, 0);
    const wt_llm_mix_args mix = {.chosen = s->chosen,
                                 .shares = s->shares,
                                 .offsets = s->gpu->offsets,
                                 .slots = grouped ? s->gpu->slots : NULL,
                                 .n = s->n,
                                 .grouped = s->gpu->grouped,
                                 .mixed = s->gpu->mixed,
                                 .x = s->x,
                                 .n_pairs = n_pairs,
                                 .n_experts = c->n_experts,
                                 .n_used = c->n_experts_used,
                                 .d_model = c->d_model,
                                 .type = kernel_type(type)};
    route(p, w);
    normalise(p, &w->ffn_norm, s->x, s->n_tokens, type);
    if (grouped) {
        launch(p, WT__LLM_GROUP, (wt_launch){.block = {GROUP_THREADS}}, &mix, sizeof mix);
        launch(p, WT__LLM_GATHER, (wt_launch){.grid = {n_pairs}, .block = {THREADS}}, &mix, sizeof mix);
    }
    wt_matmul_args a = {.n_parts = 2,
                        .parts = {{.weight = stack_of(s->llm, &first->gate, &second->gate), .y = (uintptr_t)s->up},
                                  {.weight = stack_of(s->llm, &first->up, &second->up)}},
                        .x = (uintptr_t)(grouped ? s->gpu->grouped : s->n),
                        .x_dtype = type,
                        .y_dtype = inner,
                        .m = n_pairs,
                        .activation = c->activation,
                        .gated = true,
                        .experts = grouped ? 0 : (uintptr_t)s->chosen,
                        .offsets = grouped ? (uintptr_t)s->gpu->offsets : 0,
                        .n_experts = c->n_experts,
                        .x_repeat = grouped ? 0 : c->n_experts_used};
    multiply(p, &a);
    a.n_parts = 1;
    a.parts[0] =
        (wt_matmul_part){.weight = stack_of(s->llm, &first->down, &second->down), .y = (uintptr_t)s->gpu->mixed};
    a.x = (uintptr_t)s->up;
    a.x_dtype = inner;
    a.y_dtype = WT_DTYPE_F32;
    a.activation = WT_ACTIVATION_NONE;
    a.gated = false;
    a.x_repeat = 0;
    multiply(p, &a);
    launch(p, WT__LLM_MIX, (wt_launch){.grid = {s->n_tokens}, .block = {THREADS}}, &mix, sizeof mix);
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
    launch(p, WT__LLM_PICK, (wt_launch){.grid = {WT_LLM_PICK_BLOCKS, p->n_logits}, .block = {THREADS}}, &a, sizeof a);
}

const wt__llm_ops wt__llm_cuda_ops = {.embed = embed,
                                      .qkv = qkv,
                                      .place = place,
                                      .attend = attend,
                                      .project = project,
                                      .gate = gate,
                                      .mixture = mixture,
                                      .head = head};
