// From names to layers: which tensors a family has, under the hub's names or GGUF's, and of what shape.
#include "quant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct wt__taken {
    struct wt__taken *after;
    _Alignas(64) unsigned char bytes[];
} taken;

typedef enum role {
    EMBEDDING,
    POSITIONS,
    NORM,
    HEAD,
    ATTENTION_NORM,
    QKV,
    Q,
    K,
    V,
    O,
    Q_NORM,
    K_NORM,
    FFN_NORM,
    GATE,
    UP,
    DOWN,
    ROUTER,
    EXPERT_GATE,
    EXPERT_UP,
    EXPERT_DOWN,
    N_ROLES
} role;

/// Without ".weight" and ".bias"; the first %d is the layer, the second the expert.
static const char *const hub_names[N_ROLES] = {
    [EMBEDDING] = "model.embed_tokens",
    [NORM] = "model.norm",
    [HEAD] = "lm_head",
    [ATTENTION_NORM] = "model.layers.%d.input_layernorm",
    [Q] = "model.layers.%d.self_attn.q_proj",
    [K] = "model.layers.%d.self_attn.k_proj",
    [V] = "model.layers.%d.self_attn.v_proj",
    [O] = "model.layers.%d.self_attn.o_proj",
    [Q_NORM] = "model.layers.%d.self_attn.q_norm",
    [K_NORM] = "model.layers.%d.self_attn.k_norm",
    [FFN_NORM] = "model.layers.%d.post_attention_layernorm",
    [GATE] = "model.layers.%d.mlp.gate_proj",
    [UP] = "model.layers.%d.mlp.up_proj",
    [DOWN] = "model.layers.%d.mlp.down_proj",
    [ROUTER] = "model.layers.%d.mlp.gate",
    [EXPERT_GATE] = "model.layers.%d.mlp.experts.%d.gate_proj",
    [EXPERT_UP] = "model.layers.%d.mlp.experts.%d.up_proj",
    [EXPERT_DOWN] = "model.layers.%d.mlp.experts.%d.down_proj",
};
static const char *const mixtral_names[N_ROLES] = {
    [ROUTER] = "model.layers.%d.block_sparse_moe.gate",
    [EXPERT_GATE] = "model.layers.%d.block_sparse_moe.experts.%d.w1",
    [EXPERT_UP] = "model.layers.%d.block_sparse_moe.experts.%d.w3",
    [EXPERT_DOWN] = "model.layers.%d.block_sparse_moe.experts.%d.w2",
};
/// Files of the hub have them with "transformer." before, or as here.
static const char *const gpt2_names[N_ROLES] = {
    [EMBEDDING] = "wte",
    [POSITIONS] = "wpe",
    [NORM] = "ln_f",
    [HEAD] = "lm_head",
    [ATTENTION_NORM] = "h.%d.ln_1",
    [QKV] = "h.%d.attn.c_attn",
    [O] = "h.%d.attn.c_proj",
    [FFN_NORM] = "h.%d.ln_2",
    [UP] = "h.%d.mlp.c_fc",
    [DOWN] = "h.%d.mlp.c_proj",
};
/// llama.cpp, gguf-py/gguf/constants.py, TENSOR_NAMES. Experts of a layer are one tensor.
static const char *const gguf_names[N_ROLES] = {
    [EMBEDDING] = "token_embd",
    [POSITIONS] = "position_embd",
    [NORM] = "output_norm",
    [HEAD] = "output",
    [ATTENTION_NORM] = "blk.%d.attn_norm",
    [QKV] = "blk.%d.attn_qkv",
    [Q] = "blk.%d.attn_q",
    [K] = "blk.%d.attn_k",
    [V] = "blk.%d.attn_v",
    [O] = "blk.%d.attn_output",
    [Q_NORM] = "blk.%d.attn_q_norm",
    [K_NORM] = "blk.%d.attn_k_norm",
    [FFN_NORM] = "blk.%d.ffn_norm",
    [GATE] = "blk.%d.ffn_gate",
    [UP] = "blk.%d.ffn_up",
    [DOWN] = "blk.%d.ffn_down",
    [ROUTER] = "blk.%d.ffn_gate_inp",
    [EXPERT_GATE] = "blk.%d.ffn_gate_exps",
    [EXPERT_UP] = "blk.%d.ffn_up_exps",
    [EXPERT_DOWN] = "blk.%d.ffn_down_exps",
};

typedef struct binder {
    wt_llm *llm;
    bool gguf, transposed; ///< GPT-2 of the hub holds [columns][rows]
    wt_status status;      ///< the first error; nothing is done after it
    char name[128];
} binder;

void *wt__llm_take(wt_llm *llm, size_t bytes)
{
    const size_t padded = (sizeof(taken) + bytes + 63) / 64 * 64;
    taken *t = aligned_alloc(64, padded);
    if (!t) return NULL;
    memset(t, 0, padded);
    t->after = llm->taken;
    llm->taken = t;
    return t->bytes;
}

void wt__llm_give_back(wt_llm *llm)
{
    for (taken *t = llm->taken, *after; t; t = after) {
        after = t->after;
        free(t);
    }
}

static void *take(binder *b, size_t bytes)
{
    void *memory = b->status ? NULL : wt__llm_take(b->llm, bytes);
    if (!memory && !b->status) b->status = wt_fail(WT_ERR_NO_MEMORY, "llm: no memory for %zu bytes of weights", bytes);
    return memory;
}

// ---- names

static const char *const *names_of(const binder *b, role r)
{
    const wt_model_family family = b->llm->config.family;
    if (b->gguf) return gguf_names;
    if (family == WT_MODEL_GPT2) return gpt2_names;
    return family == WT_MODEL_MIXTRAL && mixtral_names[r] ? mixtral_names : hub_names;
}

static const char *name_of(binder *b, role r, const char *part, int layer, int expert)
{
    char stem[96];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(stem, sizeof stem, names_of(b, r)[r], layer, expert);
#pragma GCC diagnostic pop
    snprintf(b->name, sizeof b->name, "%s.%s", stem, part);
    if (b->transposed && !wt_weights_find(b->llm->weights, b->name))
        snprintf(b->name, sizeof b->name, "transformer.%s.%s", stem, part);
    return b->name;
}

// ---- tensors

/// Integers are what quantised checkpoints are made of, and fp8 wants scales.
static void check_type(binder *b, const wt_tensor *t)
{
    const bool known = t->dtype == WT_DTYPE_F32 || t->dtype == WT_DTYPE_F16 || t->dtype == WT_DTYPE_BF16 ||
                       t->dtype == WT_DTYPE_F64 || wt_dtype_block(t->dtype) > 1;
    if (!known && !b->status)
        b->status =
            wt_fail(WT_ERR_UNSUPPORTED, "llm: %s is of type %s, want F32, F16, BF16, F64 or a block type of GGUF",
                    b->name, wt_dtype_name(t->dtype));
}

/// A vector as floats.
static const float *vector(binder *b, role r, const char *part, int layer, int width)
{
    wt_tensor t;
    if (b->status) return NULL;
    b->status = wt_weights_get(b->llm->weights, name_of(b, r, part, layer, 0), 1, (int64_t[]){width}, &t);
    if (!b->status) check_type(b, &t);
    float *values = take(b, sizeof(float) * (size_t)width);
    if (values) wt_tensor_to_f32(&t, 0, width, values);
    return values;
}

static wt__norm norm(binder *b, role r, int layer, int width)
{
    const bool bias = b->llm->config.family == WT_MODEL_GPT2;
    return (wt__norm){vector(b, r, "weight", layer, width), bias ? vector(b, r, "bias", layer, width) : NULL};
}

static void get(binder *b, int rank, const int64_t *shape, wt_tensor *t)
{
    if (b->status) return;
    b->status = wt_weights_get(b->llm->weights, b->name, rank, shape, t);
    if (!b->status) check_type(b, t);
}

/// [columns][rows] to [rows][columns], copied.
static void transpose(binder *b, wt_tensor *t)
{
    const int64_t columns = t->shape[0], rows = t->shape[1];
    const size_t width = wt_dtype_bytes(t->dtype, 1);
    const unsigned char *from = t->data;
    unsigned char *to = take(b, wt_tensor_bytes(t));
    for (int64_t r = 0; to && r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            memcpy(to + (size_t)(r * columns + c) * width, from + (size_t)(c * rows + r) * width, width);
    t->data = to;
    t->shape[0] = rows;
    t->shape[1] = columns;
}

static wt_tensor table(binder *b, role r, int64_t rows, int64_t columns)
{
    wt_tensor t = {0};
    name_of(b, r, "weight", 0, 0);
    get(b, 2, (int64_t[]){rows, columns}, &t);
    return t;
}

/// A matrix that the checkpoint has quantised; false when it has not.
static bool quantised(binder *b, int64_t rows, int64_t columns, wt__linear *m)
{
    char stem[128];
    snprintf(stem, sizeof stem, "%.*s", (int)(strlen(b->name) - strlen(".weight")), b->name);
    if (b->status || !wt__llm_is_quantised(b->llm, stem)) return false;
    b->status = wt__llm_bind_quantised(b->llm, stem, rows, columns, m);
    return true;
}

static wt__linear head(binder *b)
{
    const wt_model_config *c = &b->llm->config;
    wt__linear m = {0};
    name_of(b, HEAD, "weight", 0, 0);
    if (!quantised(b, c->vocab_size, c->d_model, &m)) m.weight = table(b, HEAD, c->vocab_size, c->d_model);
    return m;
}

static wt__linear linear(binder *b, role r, int layer, int64_t rows, int64_t columns, bool bias)
{
    wt__linear m = {0};
    if (bias) m.bias = vector(b, r, "bias", layer, (int)rows);
    name_of(b, r, "weight", layer, 0);
    if (quantised(b, rows, columns, &m)) return m;
    get(b, 2, b->transposed ? (int64_t[]){columns, rows} : (int64_t[]){rows, columns}, &m.weight);
    if (b->transposed && !b->status) transpose(b, &m.weight);
    return m;
}

static wt__linear expert_linear(binder *b, role r, int layer, int expert, int64_t rows, int64_t columns)
{
    wt__linear m = {0};
    name_of(b, r, "weight", layer, expert);
    if (quantised(b, rows, columns, &m)) return m;
    if (!b->gguf) {
        get(b, 2, (int64_t[]){rows, columns}, &m.weight);
        return m;
    }
    get(b, 3, (int64_t[]){b->llm->config.n_experts, rows, columns}, &m.weight);
    if (b->status) return m;
    m.weight = (wt_tensor){.data = (const unsigned char *)m.weight.data +
                                   wt_dtype_bytes(m.weight.dtype, rows * columns) * (size_t)expert,
                           .dtype = m.weight.dtype,
                           .rank = 2,
                           .shape = {rows, columns}};
    return m;
}

/// Some rows of a matrix as a matrix.
static wt__linear rows_of(const wt__linear *all, int64_t first, int64_t n)
{
    wt__linear m = *all;
    m.weight.shape[0] = n;
    if (m.weight.data) m.weight.data = wt__row(all, first);
    if (m.bias) m.bias += first;
    return m;
}

// ---- layers

static void bind_attention(binder *b, int l, wt__layer *layer)
{
    const wt_model_config *c = &b->llm->config;
    const int64_t q = (int64_t)c->n_heads * c->d_head, kv = (int64_t)c->n_kv_heads * c->d_head;
    layer->attention_norm = norm(b, ATTENTION_NORM, l, c->d_model);
    if (c->family == WT_MODEL_GPT2) {
        const wt__linear qkv = linear(b, QKV, l, q + 2 * kv, c->d_model, true);
        layer->q = rows_of(&qkv, 0, q);
        layer->k = rows_of(&qkv, q, kv);
        layer->v = rows_of(&qkv, q + kv, kv);
    } else {
        layer->q = linear(b, Q, l, q, c->d_model, c->qkv_bias);
        layer->k = linear(b, K, l, kv, c->d_model, c->qkv_bias);
        layer->v = linear(b, V, l, kv, c->d_model, c->qkv_bias);
    }
    layer->o = linear(b, O, l, c->d_model, q, c->o_bias);
    if (!c->qk_norm) return;
    layer->q_norm = norm(b, Q_NORM, l, c->d_head);
    layer->k_norm = norm(b, K_NORM, l, c->d_head);
}

static void bind_ffn(binder *b, int l, wt__layer *layer)
{
    const wt_model_config *c = &b->llm->config;
    layer->ffn_norm = norm(b, FFN_NORM, l, c->d_model);
    if (!c->layer_has_experts[l]) {
        if (c->family != WT_MODEL_GPT2) layer->gate = linear(b, GATE, l, c->d_ff, c->d_model, c->mlp_bias);
        layer->up = linear(b, UP, l, c->d_ff, c->d_model, c->mlp_bias);
        layer->down = linear(b, DOWN, l, c->d_model, c->d_ff, c->mlp_bias);
        return;
    }
    layer->router = linear(b, ROUTER, l, c->n_experts, c->d_model, false);
    layer->experts = take(b, sizeof *layer->experts * (size_t)c->n_experts);
    for (int e = 0; e < c->n_experts && !b->status; e++)
        layer->experts[e] = (wt__expert){.gate = expert_linear(b, EXPERT_GATE, l, e, c->d_ff_expert, c->d_model),
                                         .up = expert_linear(b, EXPERT_UP, l, e, c->d_ff_expert, c->d_model),
                                         .down = expert_linear(b, EXPERT_DOWN, l, e, c->d_model, c->d_ff_expert)};
}

static void bind_rope_factors(binder *b)
{
    const int n = b->llm->config.rope.n_dims / 2;
    wt_tensor t;
    if (b->status) return;
    b->status = wt_weights_get(b->llm->weights, "rope_freqs.weight", 1, (int64_t[]){n}, &t);
    float *factors = take(b, sizeof(float) * (size_t)n);
    if (factors) wt_tensor_to_f32(&t, 0, n, factors);
    b->llm->rope_factors = factors;
}

/// Of a tied pair, files have either: who stores each tensor once takes the first name or the last.
static role embedding_role(binder *b)
{
    const wt_weights *weights = b->llm->weights;
    const bool head_alone = b->llm->config.tied_head &&
                            !wt_weights_find(weights, name_of(b, EMBEDDING, "weight", 0, 0)) &&
                            wt_weights_find(weights, name_of(b, HEAD, "weight", 0, 0));
    return head_alone ? HEAD : EMBEDDING;
}

wt_status wt__llm_bind(wt_llm *llm, const wt_llm_load_config *load)
{
    const wt_model_config *c = &llm->config;
    const bool turns = c->quant.method == WT_QUANT_AWQ || c->quant.method == WT_QUANT_GPTQ;
    binder b = {.llm = llm, .gguf = !strcmp(wt_weights_format(llm->weights), "GGUF")};
    b.transposed = c->family == WT_MODEL_GPT2 && !b.gguf;
    llm->embedding = table(&b, embedding_role(&b), c->vocab_size, c->d_model);
    if (c->rope.kind == WT_ROPE_NONE) llm->positions = table(&b, POSITIONS, c->max_positions, c->d_model);
    if (c->rope.kind == WT_ROPE_FACTORS) bind_rope_factors(&b);
    llm->norm = norm(&b, NORM, 0, c->d_model);
    if (c->tied_head)
        llm->head.weight = llm->embedding;
    else
        llm->head = head(&b);
    llm->layers = take(&b, sizeof *llm->layers * (size_t)c->n_layers);
    for (int l = 0; l < c->n_layers && !b.status; l++) {
        bind_attention(&b, l, &llm->layers[l]);
        bind_ffn(&b, l, &llm->layers[l]);
        if (!b.status && turns && load->progress) load->progress(load->user, l + 1, c->n_layers);
    }
    return b.status;
}
