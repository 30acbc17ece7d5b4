// One vector times weights of 16 bits by llm_stream.cu, those of chosen experts by llm_experts.cu, times quantised ones
// by llm_quant.cu and times what is left by llm_matvec.cu, with the norm before it.
#include "ops_cuda.h"

enum {
    MATVEC_WARPS = 8,
    LARGE_BYTES = 16 << 20,
    MORE_BLOCKS = 30,     ///< processors for one block more of llm_stream than there are processors
    MANY_ROWS = 16384,    ///< of a matrix, whichever partition multiplies it
    STREAM_ALONE = 115200, ///< bytes of a block of which a processor has room for one, beside one of another product
    STREAM_BYTES = 120000  ///< that a block may want with what it has besides; chips of 8.6, 8.9 and 12.0 have less
};

bool wt__gpu_by_vector(const wt_llm_session *s, const wt__linear *w, int n)
{
    wt__llm_quant kind;
    const wt_dtype t = w->weight.dtype;
    return n == 1 && !s->exact_guesses &&
           (t == WT_DTYPE_F32 || t == WT_DTYPE_F16 || t == WT_DTYPE_BF16 || wt__llm_is_quant(w, &kind));
}

wt_llm_part wt__gpu_vector_part(const wt__linear *w, float *out)
{
    return (wt_llm_part){w->weight.data, w->bias, out, (int)w->weight.shape[0], wt__llm_scales_read(w)};
}

wt_dtype wt__gpu_input_type(const wt_llm_session *s, const wt__linear *w, int n)
{
    const wt_dtype t = w->weight.dtype;
    if (wt__gpu_by_vector(s, w, n)) return WT_DTYPE_F32;
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
    wt__gpu_launch(p, WT__LLM_MATVEC + wt__gpu_type(w->weight.dtype),
                   (wt_launch){.grid = {wanted < there ? wanted : there},
                               .block = {32 * MATVEC_WARPS},
                               .shared_bytes = sizeof(float) * (size_t)(n_chunks * of_chunk)},
                   &a, sizeof a);
}

static bool streams(const wt_llm_session *s, const wt__linear *w, const wt__norm *norm)
{
    return (w->weight.dtype == WT_DTYPE_F16 || w->weight.dtype == WT_DTYPE_BF16) && w->weight.shape[1] % 8 == 0 &&
           !(norm && norm->bias) && wt_device_get_info(s->gpu->device)->shared_bytes >= STREAM_BYTES;
}

/// Does down of the pass's layer begin while gate and up still run? Then o, before them, clears s->up. Of a vector of
/// one pass it would be no faster.
static bool awaits_up(const wt__pass *p)
{
    const wt__layer *w = p->layer;
    return !w->experts && w->down.weight.shape[1] > WT_LLM_STREAM_PASS && streams(p->s, &w->o, NULL) &&
           streams(p->s, &w->up, &w->ffn_norm) && streams(p->s, &w->down, NULL);
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

static size_t shared_of(const wt_llm_stream_args *a)
{
    return (size_t)(2 * WT_LLM_STREAM_WARPS * a->n_stages * WT_LLM_STREAM_TILE * WT_LLM_STREAM_COLUMNS) +
           3 * (size_t)WT_LLM_STREAM_PITCH(a->each);
}

/// Beside a narrow vector there is room for more stages.
static int stages_for(int each)
{
    const bool is_narrow = WT_LLM_STREAM_WARPS * each <= WT_LLM_STREAM_NARROW;
    return is_narrow ? WT_LLM_STREAM_DEEP : WT_LLM_STREAM_STAGES;
}

/// Warps that share a row: as many as have a whole part of a pass each.
static int team_for(int columns)
{
    const int of_warp = WT_LLM_STREAM_PASS / WT_LLM_STREAM_WARPS;
    return columns <= WT_LLM_STREAM_SHORT * of_warp  ? WT_LLM_STREAM_SHORT
           : columns <= WT_LLM_STREAM_HALF * of_warp ? WT_LLM_STREAM_HALF
                                                     : WT_LLM_STREAM_WARPS;
}

/// Rows of 16 bits at multiples of 16 bytes, without a LayerNorm: two blocks fill a processor, one of this launch and
/// one of the next; every processor has one, with rows or without, so that none is left over for two of another launch.
/// Passes are alike. Many short rows are shared by fewer warps (0.6B's head 75 us, 91); of few a warp would be longer
/// about its part of the vector (H200).
static void stream(wt__pass *p, const wt__linear *w, wt_llm_matvec_args m)
{
    const int n = (m.columns + WT_LLM_STREAM_COLUMNS - 1) / WT_LLM_STREAM_COLUMNS;
    wt_llm_stream_args a = {.m = m, .n_passes = (m.columns + WT_LLM_STREAM_PASS - 1) / WT_LLM_STREAM_PASS};
    int n_rows = 0, n_tiles = 0;
    for (int k = 0; k < (m.gated ? 1 : m.n_parts); k++) {
        n_rows += m.parts[k].rows;
        n_tiles += (m.parts[k].rows + WT_LLM_STREAM_TILE - 1) / WT_LLM_STREAM_TILE;
    }
    const int of_row = n_rows >= MANY_ROWS ? team_for(m.columns) : WT_LLM_STREAM_WARPS;
    const int is_bf16 = w->weight.dtype == WT_DTYPE_BF16;
    a.each = (n + of_row * a.n_passes - 1) / (of_row * a.n_passes) * WT_LLM_STREAM_COLUMNS;
    a.n_stages = stages_for(a.each);
    const bool awaits = awaits_up(p), is_awaited = awaits && w == &p->layer->down;
    if (awaits && w == &p->layer->o) {
        a.cleared = (unsigned *)p->s->up;
        a.n_cleared = p->s->llm->config.d_ff;
    }
    a.is_awaited = awaits && w == &p->layer->up;
    size_t shared = shared_of(&a);
    const bool is_alone = w == &p->layer->o;
    if (is_alone && shared < STREAM_ALONE) shared = STREAM_ALONE;
    const int64_t bytes = 2ll * (m.gated ? 2 : 1) * n_rows * m.columns;
    const int n_sms = p->s->gpu->n_sms, n_blocks = is_alone ? n_sms : blocks_for(n_tiles, bytes, n_sms);
    wt__gpu_launch(p,
                   WT__LLM_STREAM + is_bf16 +
                       (is_awaited                      ? 4
                        : of_row == WT_LLM_STREAM_SHORT ? 2
                        : of_row == WT_LLM_STREAM_HALF  ? 6
                                                        : 0),
                   (wt_launch){.grid = {n_blocks}, .block = {32 * WT_LLM_STREAM_WARPS}, .shared_bytes = shared}, &a,
                   sizeof a);
}

// ---- experts of one token

bool wt__gpu_streams_experts(const wt_llm_session *s, const wt__layer *w)
{
    const wt__expert *e = &w->experts[0];
    return s->n_tokens == 1 && !s->exact_guesses && streams(s, &e->up, &w->ffn_norm) &&
           streams(s, &e->down, NULL);
}

/// A product that reads so many columns of so many tiles of rows.
static void launch_experts(wt__pass *p, const wt__linear *w, int kernel, wt_llm_stream_args *a, int n_tiles,
                           int n_columns)
{
    const wt_llm_session *s = p->s;
    const int is_bf16 = w->weight.dtype == WT_DTYPE_BF16;
    const int64_t bytes = 2ll * n_tiles * WT_LLM_STREAM_TILE * n_columns;
    a->m.columns = (int)w->weight.shape[1];
    a->n_stages = stages_for(a->each);
    a->choose = wt__gpu_choice(p);
    wt__gpu_launch(p, kernel + is_bf16,
                   (wt_launch){.grid = {blocks_for(n_tiles, bytes, s->gpu->n_sms)},
                               .block = {32 * WT_LLM_STREAM_WARPS},
                               .shared_bytes = shared_of(a)},
                   a, sizeof *a);
}

/// Columns of a warp in a pass, of `columns` n_used times side by side: those with which there are the fewest in all
/// passes, and of these the most.
static int each_of_downs(int columns, int n_used)
{
    int best = 0, fewest = 0;
    for (int each = WT_LLM_STREAM_PASS / WT_LLM_STREAM_WARPS; each; each -= WT_LLM_STREAM_COLUMNS) {
        const int n_shares = n_used * ((columns + each - 1) / each);
        const int n = (n_shares + WT_LLM_STREAM_WARPS - 1) / WT_LLM_STREAM_WARPS * each;
        if (best && n >= fewest) continue;
        best = each;
        fewest = n;
    }
    return best;
}

void wt__gpu_stream_experts(wt__pass *p, const wt__layer *w)
{
    const wt_llm_session *s = p->s;
    const wt_model_config *c = &s->llm->config;
    const wt__expert *e = &w->experts[0], *next = &w->experts[c->n_experts > 1];
    const int rows = (int)e->up.weight.shape[0], columns = (int)e->up.weight.shape[1], all = WT_LLM_STREAM_WARPS;
    const int n = (columns + WT_LLM_STREAM_COLUMNS - 1) / WT_LLM_STREAM_COLUMNS, tile = WT_LLM_STREAM_TILE;
    const bool is_half = team_for(columns) < all;
    const int team = is_half ? WT_LLM_STREAM_HALF : all;
    wt_llm_stream_args a = {.n_passes = (columns + WT_LLM_STREAM_PASS - 1) / WT_LLM_STREAM_PASS,
                            .is_awaited = true,
                            .next = {wt__llm_expert_stride(s->llm, e->up.weight.data, next->up.weight.data),
                                     wt__llm_expert_stride(s->llm, e->gate.weight.data, next->gate.weight.data)},
                            .m = {.parts = {wt__gpu_vector_part(&e->up, s->up), wt__gpu_vector_part(&e->gate, NULL)},
                                  .n_parts = 2,
                                  .x = s->x,
                                  .norm_weight = w->ffn_norm.weight,
                                  .eps = (float)c->norm_eps,
                                  .gated = true,
                                  .activation = (int)c->activation}};
    a.each = (n + team * a.n_passes - 1) / (team * a.n_passes) * WT_LLM_STREAM_COLUMNS;
    launch_experts(p, &e->up, WT__LLM_EXPERTS + (is_half ? 4 : 0), &a, c->n_experts_used * ((rows + tile - 1) / tile),
                   2 * columns);

    wt_llm_stream_args down = {.each = each_of_downs(rows, c->n_experts_used),
                               .next = {wt__llm_expert_stride(s->llm, e->down.weight.data, next->down.weight.data)},
                               .m = {.parts = {wt__gpu_vector_part(&e->down, s->x)},
                                     .n_parts = 1,
                                     .x = s->up,
                                     .add = true}};
    down.n_shares = (rows + down.each - 1) / down.each;
    down.n_passes = (c->n_experts_used * down.n_shares + all - 1) / all;
    launch_experts(p, &e->down, WT__LLM_EXPERTS + 2, &down, (c->d_model + tile - 1) / tile,
                   c->n_experts_used * rows);
}

// ---- any product of one vector

bool wt__gpu_attends_beside(const wt_llm_session *s)
{
    const wt__layer *w = &s->llm->layers[0];
    wt__llm_quant kind;
    return s->n_tokens == 1 &&
           (streams(s, &w->o, NULL) || (wt__llm_is_quant(&w->q, &kind) && wt__llm_is_quant(&w->o, &kind)));
}

static bool is_beside_attention(const wt__pass *p, const wt__linear *w)
{
    const wt__layer *l = p->layer;
    return p->s->gpu->kernels[WT__LLM_ATTEND_ONE] && wt__gpu_attends_beside(p->s) &&
           (w == &l->q || w == &l->k || w == &l->v || w == &l->o);
}

void wt__gpu_multiply_vector(wt__pass *p, const wt__linear *w, wt_llm_matvec_args a, const wt__norm *norm)
{
    wt__llm_quant kind;
    a.columns = (int)w->weight.shape[1];
    a.eps = (float)p->s->llm->config.norm_eps;
    if (norm) {
        a.norm_weight = norm->weight;
        a.norm_bias = norm->bias;
    }
    if (streams(p->s, w, norm))
        stream(p, w, a);
    else if (!wt__llm_is_quant(w, &kind))
        plain_matvec(p, w, a);
    else if (!p->status && !p->s->gpu->is_dry)
        p->status = wt__gpu_multiply_quant(p->s, w, &a, is_beside_attention(p, w));
}
