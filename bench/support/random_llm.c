#include "random_llm.h"

#include <stdlib.h>
#include <string.h>

typedef struct shape {
    const char *name;
    wt_model_config config;
} shape;

static const shape shapes[] = {
    {"qwen3-8b",
     {.family = WT_MODEL_QWEN3,
      .n_layers = 36,
      .d_model = 4096,
      .n_heads = 32,
      .n_kv_heads = 8,
      .d_head = 128,
      .vocab_size = 151936,
      .d_ff = 12288,
      .qk_norm = true}},
    {"qwen3-0.6b",
     {.family = WT_MODEL_QWEN3,
      .n_layers = 28,
      .d_model = 1024,
      .n_heads = 16,
      .n_kv_heads = 8,
      .d_head = 128,
      .vocab_size = 151936,
      .d_ff = 3072,
      .qk_norm = true,
      .tied_head = true}},
    {"llama3-8b",
     {.family = WT_MODEL_LLAMA,
      .n_layers = 32,
      .d_model = 4096,
      .n_heads = 32,
      .n_kv_heads = 8,
      .d_head = 128,
      .vocab_size = 128256,
      .d_ff = 14336}},
    {"mixtral",
     {.family = WT_MODEL_MIXTRAL,
      .n_layers = 32,
      .d_model = 4096,
      .n_heads = 32,
      .n_kv_heads = 8,
      .d_head = 128,
      .vocab_size = 32000,
      .n_experts = 8,
      .n_experts_used = 2,
      .d_ff_expert = 14336,
      .norm_expert_weights = true}},
    {"qwen3-30b-a3b",
     {.family = WT_MODEL_QWEN3_MOE,
      .n_layers = 48,
      .d_model = 2048,
      .n_heads = 32,
      .n_kv_heads = 4,
      .d_head = 128,
      .vocab_size = 151936,
      .n_experts = 128,
      .n_experts_used = 8,
      .d_ff_expert = 768,
      .qk_norm = true,
      .norm_expert_weights = true}},
};

// ---- a model of random numbers

static uint16_t *random_bytes; ///< bf16 of +-0.03
static float *ones;

static wt__linear matrix(int64_t rows, int64_t columns)
{
    return (wt__linear){.weight = {random_bytes, WT_DTYPE_BF16, 2, {rows, columns}}};
}

static void make_layer(const wt_model_config *c, wt__layer *w)
{
    const int64_t d = c->d_model, q = (int64_t)c->n_heads * c->d_head, kv = (int64_t)c->n_kv_heads * c->d_head;
    *w = (wt__layer){.attention_norm = {ones, NULL}, .ffn_norm = {ones, NULL}};
    if (c->qk_norm) w->q_norm.weight = w->k_norm.weight = ones;
    w->q = matrix(q, d);
    w->k = w->v = matrix(kv, d);
    w->o = matrix(d, q);
    if (!c->n_experts) {
        w->gate = w->up = matrix(c->d_ff, d);
        w->down = matrix(d, c->d_ff);
        return;
    }
    w->router = matrix(c->n_experts, d);
    w->experts = calloc((size_t)c->n_experts, sizeof *w->experts);
    for (int e = 0; e < c->n_experts; e++)
        w->experts[e] = (wt__expert){matrix(c->d_ff_expert, d), matrix(c->d_ff_expert, d), matrix(d, c->d_ff_expert)};
}

bool random_llm_make(const char *name, wt_llm *m)
{
    const shape *s = shapes, *end = shapes + sizeof shapes / sizeof *shapes;
    while (s < end && strcmp(s->name, name)) s++;
    if (s == end) return false;
    *m = (wt_llm){.config = s->config};
    wt_model_config *c = &m->config;
    c->max_positions = 40960;
    c->activation = WT_ACTIVATION_SILU;
    c->norm_eps = 1e-6;
    c->rope = (wt_rope_config){.kind = WT_ROPE_DEFAULT, .theta = 1e6, .n_dims = c->d_head, .factor = 1};
    const size_t most = (size_t)c->vocab_size * (size_t)c->d_model;
    const size_t n_random = most + (size_t)c->d_model;
    random_bytes = malloc(n_random * sizeof *random_bytes);
    ones = malloc(sizeof *ones * (size_t)c->d_model);
    uint64_t seed = 1;
    for (size_t k = 0; k < n_random; k++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        random_bytes[k] = (uint16_t)((seed >> 63) << 15 | (0x3c80 + (seed >> 50 & 0x7f))); // 2^-6 .. 2^-5
    }
    for (int k = 0; k < c->d_model; k++) ones[k] = 1;
    m->embedding = matrix(c->vocab_size, c->d_model).weight;
    m->head = matrix(c->vocab_size, c->d_model);
    if (!c->tied_head) m->head.weight.data = random_bytes + 8; // not the embedding
    m->norm.weight = ones;
    m->layers = calloc((size_t)c->n_layers, sizeof *m->layers);
    for (int l = 0; l < c->n_layers; l++) make_layer(c, &m->layers[l]);
    return true;
}

void random_llm_repeat(wt_llm *m)
{
    float *small = malloc(sizeof *small * (size_t)m->config.d_model);
    for (int k = 0; k < m->config.d_model; k++) small[k] = 0x1p-20f;
    for (int l = 0; l < m->config.n_layers; l++)
        m->layers[l].attention_norm.weight = m->layers[l].ffn_norm.weight = small;
    if (!m->config.tied_head) m->head.weight.data = random_bytes + m->config.d_model;
}

// ---- other types

static const struct {
    const char *name;
    wt_dtype dtype, head; ///< U8 = nibbles
} types[] = {{"bf16", WT_DTYPE_BF16, WT_DTYPE_BF16}, {"fp8", WT_DTYPE_F8_E4M3, WT_DTYPE_F8_E4M3},
             {"int8", WT_DTYPE_I8, WT_DTYPE_I8},     {"int4", WT_DTYPE_U8, WT_DTYPE_I8},
             {"q8_0", WT_DTYPE_Q8_0, WT_DTYPE_Q8_0}, {"q4_0", WT_DTYPE_Q4_0, WT_DTYPE_Q4_0},
             {"q4_k", WT_DTYPE_Q4_K, WT_DTYPE_Q6_K}, {"q6_k", WT_DTYPE_Q6_K, WT_DTYPE_Q6_K}};

/// Scales of 2^-6 for as many groups as the largest matrix has, and zeros.
static float *scales;
static uint8_t *zeros;

static void retype(wt__linear *w, wt_dtype dtype)
{
    const int columns = (int)w->weight.shape[1];
    if (!w->weight.data) return;
    w->weight.dtype = dtype;
    if (dtype != WT_DTYPE_F8_E4M3 && dtype != WT_DTYPE_I8 && dtype != WT_DTYPE_U8) return;
    w->scales = scales;
    w->scale_rows = dtype == WT_DTYPE_F8_E4M3 ? 128 : 1;
    w->scale_columns = dtype == WT_DTYPE_I8 ? columns : 128;
    w->nibbles = dtype == WT_DTYPE_U8;
    if (w->nibbles) w->zeros = zeros;
}

/// Fp8 has two that are none among its bytes.
static void clear_no_numbers(size_t n_bytes)
{
    unsigned char *bytes = (unsigned char *)random_bytes;
    for (size_t k = 0; k < n_bytes; k++)
        if ((bytes[k] & 0x7f) == 0x7f) bytes[k] ^= 1;
}

bool random_llm_retype(wt_llm *m, const char *type)
{
    size_t t = 0;
    while (t < sizeof types / sizeof *types && strcmp(types[t].name, type)) t++;
    if (t == sizeof types / sizeof *types) return false;
    const size_t n = (size_t)m->head.weight.shape[0] * (size_t)m->head.weight.shape[1] / 128;
    if (!t) return true;
    scales = malloc(sizeof *scales * n);
    zeros = malloc(n);
    for (size_t k = 0; k < n; k++) scales[k] = 0x1p-6f;
    for (size_t k = 0; k < n; k++) zeros[k] = (uint8_t)(k * 7 % 16);
    for (int l = 0; l < m->config.n_layers; l++) {
        wt__layer *w = &m->layers[l];
        wt__linear *all[] = {&w->q, &w->k, &w->v, &w->o, &w->gate, &w->up, &w->down};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) retype(all[k], types[t].dtype);
        for (int e = 0; e < m->config.n_experts; e++) {
            retype(&w->experts[e].gate, types[t].dtype);
            retype(&w->experts[e].up, types[t].dtype);
            retype(&w->experts[e].down, types[t].dtype);
        }
    }
    m->head.weight.data = random_bytes + 8; // not the embedding
    if (!strcmp(type, "fp8")) clear_no_numbers(2 * 128 * n);
    retype(&m->head, types[t].head);
    return true;
}
