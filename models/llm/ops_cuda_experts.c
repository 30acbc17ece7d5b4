// Experts: whom each token goes to, and their products together.
#include "ops_cuda.h"

enum { GROUP_THREADS = 1024, HALF_BYTES = 110000 };

/// The matrices of several experts, which lie one after the other.
static wt_matrix stack_of(const wt_llm *m, const wt__linear *first, const wt__linear *second)
{
    wt_matrix all = wt__gpu_matrix(first);
    all.next = wt__llm_expert_stride(m, first->weight.data, second->weight.data);
    all.scales_next = wt__llm_expert_stride(m, first->scales, second->scales);
    all.zeros_next = wt__llm_expert_stride(m, first->zeros, second->zeros);
    return all;
}

wt_llm_choose_args wt__gpu_choice(const wt__pass *p)
{
    const wt_llm_session *s = p->s;
    const wt_model_config *c = &s->llm->config;
    return (wt_llm_choose_args){.routes = s->routes,
                                .chosen = s->chosen,
                                .shares = s->shares,
                                .tokens = (wt_llm_token *)wt__gpu_tokens(p),
                                .n_tokens = s->n_tokens,
                                .n_experts = c->n_experts,
                                .n_used = c->n_experts_used,
                                .normalise = c->norm_expert_weights};
}

/// Are a token's norm and router one launch, after which the products' blocks choose?
static bool routes_alone(const wt_llm_session *s, const wt__layer *w)
{
    const wt_dtype t = w->router.weight.dtype;
    return s->n_tokens == 1 && !s->exact_guesses && s->llm->config.d_model % 8 == 0 && !w->ffn_norm.bias &&
           !w->router.bias && (t == WT_DTYPE_F32 || t == WT_DTYPE_F16 || t == WT_DTYPE_BF16) &&
           s->llm->config.n_experts_used <= WT_LLM_STREAM_EXPERTS && s->llm->config.n_experts <= WT_LLM_ROUTED;
}

/// Between streamed products it has a block on every processor, like them, and one beside one of theirs.
static void route_alone(wt__pass *p, const wt__layer *w)
{
    const wt_llm_session *s = p->s;
    const wt_model_config *c = &s->llm->config;
    const wt_llm_route_args a = {.router = w->router.weight.data,
                                 .x = s->x,
                                 .norm_weight = w->ffn_norm.weight,
                                 .routes = s->routes,
                                 .eps = (float)c->norm_eps,
                                 .n_experts = c->n_experts,
                                 .width = c->d_model,
                                 .type = wt__gpu_type(w->router.weight.dtype)};
    const int n = (c->n_experts + WT_LLM_ROUTE_ROWS - 1) / WT_LLM_ROUTE_ROWS, n_sms = s->gpu->n_sms;
    const bool is_streamed = wt__gpu_streams_experts(s, w);
    wt__gpu_launch(p, WT__LLM_ROUTE,
                   (wt_launch){.grid = {is_streamed && n < n_sms ? n_sms : n},
                               .block = {WT__GPU_THREADS},
                               .shared_bytes = is_streamed ? HALF_BYTES : 0},
                   &a, sizeof a);
}

static void route(wt__pass *p, const wt__layer *w)
{
    const wt_llm_session *s = p->s;
    const int n = s->n_tokens;
    if (wt__gpu_by_vector(s, &w->router, n)) {
        const wt_llm_part part = wt__gpu_vector_part(&w->router, s->routes);
        wt__gpu_multiply_vector(p, &w->router, (wt_llm_matvec_args){.parts = {part}, .n_parts = 1, .x = s->x},
                                &w->ffn_norm);
    } else {
        const wt_dtype type = wt__gpu_input_type(s, &w->router, n);
        wt__gpu_normalise(p, &w->ffn_norm, s->x, n, type);
        wt__gpu_multiply(p, &(wt_matmul_args){.n_parts = 1,
                                              .parts = {wt__gpu_part(&w->router, s->routes)},
                                              .x = (uintptr_t)s->n,
                                              .x_dtype = type,
                                              .y_dtype = WT_DTYPE_F32,
                                              .m = wt__gpu_batch_rows(s)});
    }
    const wt_llm_choose_args choose = wt__gpu_choice(p);
    wt__gpu_launch(p, WT__LLM_CHOOSE, (wt_launch){.grid = {n}, .block = {32}}, &choose, sizeof choose);
}

/// Are the experts of one token multiplied by llm_quant's kernels?
static bool are_quants(const wt_llm_session *s, const wt__layer *w)
{
    const wt__expert *e = &w->experts[0];
    wt__llm_quant kind;
    return s->n_tokens == 1 && !s->exact_guesses && !w->ffn_norm.bias && wt__llm_is_quant(&e->up, &kind) &&
           wt__llm_is_quant(&e->down, &kind);
}

/// What each gave to `mixed`.
static wt_status multiply_quants(const wt__pass *p, const wt__layer *w)
{
    const wt_llm_session *s = p->s;
    const wt_model_config *c = &s->llm->config;
    const wt__expert *first = &w->experts[0], *second = &w->experts[c->n_experts > 1];
    const wt__llm_chosen gates = {.first = {&first->up, &first->gate}, .second = {&second->up, &second->gate}};
    const wt__llm_chosen downs = {.first = {&first->down}, .second = {&second->down}, .have_vectors = true};
    const wt_llm_matvec_args up = {
        .parts = {wt__gpu_vector_part(&first->up, s->up), wt__gpu_vector_part(&first->gate, NULL)},
        .n_parts = 2,
        .x = s->x,
        .norm_weight = w->ffn_norm.weight,
        .eps = (float)c->norm_eps,
        .columns = c->d_model,
        .gated = true,
        .activation = (int)c->activation};
    const wt_llm_matvec_args down = {.parts = {wt__gpu_vector_part(&first->down, s->gpu->mixed)},
                                     .n_parts = 1,
                                     .x = s->up,
                                     .columns = c->d_ff_expert};
    wt_status status = wt__gpu_multiply_chosen(p, &gates, &up);
    return status ? status : wt__gpu_multiply_chosen(p, &downs, &down);
}

static void mix(wt__pass *p, const wt_llm_mix_args *a)
{
    const wt_llm_session *s = p->s;
    const int of_token = (a->d_model + WT__GPU_THREADS - 1) / WT__GPU_THREADS, most = s->gpu->n_sms / s->n_tokens;
    wt__gpu_launch(p, WT__LLM_MIX,
                   (wt_launch){.grid = {s->n_tokens, most < 1 ? 1 : most < of_token ? most : of_token},
                               .block = {WT__GPU_THREADS}},
                   a, sizeof *a);
}

/// One token: by llm_stream's kernels or llm_quant's. Few tokens: each row of an expert is read for each token that
/// chose it. Many: tokens stand together by expert.
void wt__gpu_mixture(wt__pass *p, const wt__layer *w)
{
    const wt_llm_session *s = p->s;
    const wt_model_config *c = &s->llm->config;
    const wt__expert *first = &w->experts[0], *second = &w->experts[c->n_experts > 1];
    const int n_pairs = s->n_tokens * c->n_experts_used;
    const wt_dtype type = wt__gpu_input_type(s, &first->up, 0), inner = wt__gpu_input_type(s, &first->down, 0);
    const bool grouped = n_pairs > 4 * c->n_experts && !wt__gpu_is_alike(s) && !wt__gpu_in_two_parts(s, type);
    const wt_llm_mix_args pairs = {.chosen = s->chosen,
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
                                   .type = wt__gpu_type(type)};
    const bool alone = routes_alone(s, w), are_streamed = alone && wt__gpu_streams_experts(s, w);
    if (are_streamed || (alone && are_quants(s, w))) {
        route_alone(p, w);
        if (are_streamed) {
            wt__gpu_stream_experts(p, w);
            return;
        }
        if (!p->status && !s->gpu->is_dry) p->status = multiply_quants(p, w);
        mix(p, &pairs);
        return;
    }
    route(p, w);
    wt__gpu_normalise(p, &w->ffn_norm, s->x, s->n_tokens, type);
    if (grouped) {
        wt__gpu_launch(p, WT__LLM_GROUP, (wt_launch){.block = {GROUP_THREADS}}, &pairs, sizeof pairs);
        wt__gpu_launch(p, WT__LLM_GATHER, (wt_launch){.grid = {n_pairs}, .block = {WT__GPU_THREADS}}, &pairs,
                       sizeof pairs);
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
    wt__gpu_multiply(p, &a);
    a.n_parts = 1;
    a.parts[0] =
        (wt_matmul_part){.weight = stack_of(s->llm, &first->down, &second->down), .y = (uintptr_t)s->gpu->mixed};
    a.x = (uintptr_t)s->up;
    a.x_dtype = inner;
    a.y_dtype = WT_DTYPE_F32;
    a.activation = WT_ACTIVATION_NONE;
    a.gated = false;
    a.x_repeat = 0;
    wt__gpu_multiply(p, &a);
    mix(p, &pairs);
}
