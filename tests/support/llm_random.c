#include "llm_random.h"

#include "testing.h"

#include <stdlib.h>

static void *take(random_model *m, size_t bytes)
{
    assert_true(m->n < 256);
    return m->memory[m->n++] = calloc(1, bytes);
}

static uint32_t bits(random_model *m) { return (uint32_t)(noise(&m->seed) * 0x7fffff + 0x800000); }

/// Numbers around 1/32, of both signs.
static wt__linear plain_matrix(random_model *m, wt_dtype dtype, int rows, int columns)
{
    const size_t n = (size_t)rows * (size_t)columns;
    const int exponent = dtype == WT_DTYPE_F16 ? 15 - 5 : 127 - 5, digits = dtype == WT_DTYPE_F16 ? 10 : 7;
    uint16_t *x = take(m, dtype == WT_DTYPE_F32 ? 4 * n : 2 * n);
    for (size_t k = 0; k < n; k++) {
        const uint32_t r = bits(m);
        const uint16_t b = (uint16_t)((r & 1) << 15 | (uint32_t)exponent << digits | (r >> 3 & ((1u << digits) - 1)));
        x[dtype == WT_DTYPE_F32 ? 2 * k + 1 : k] = b; // the upper half of an F32 is a BF16
    }
    return (wt__linear){.weight = {x, dtype, 2, {rows, columns}}};
}

/// Of the same size, as quantised checkpoints have them.
static wt__linear matrix(random_model *m, wt_dtype dtype, int rows, int columns)
{
    if (dtype == WT_DTYPE_F32 || dtype == WT_DTYPE_F16 || dtype == WT_DTYPE_BF16)
        return plain_matrix(m, dtype, rows, columns);
    const bool is_fp8 = dtype == WT_DTYPE_F8_E4M3;
    wt__linear w = {.weight = {NULL, dtype, 2, {rows, columns}},
                    .scale_rows = is_fp8 ? 128 : 1,
                    .scale_columns = dtype == WT_DTYPE_I8 || columns < 128 ? columns : 128,
                    .nibbles = dtype == WT_DTYPE_U8};
    const size_t n = (size_t)rows * (size_t)columns / (w.nibbles ? 2 : 1);
    const size_t n_scales = (size_t)((rows + w.scale_rows - 1) / w.scale_rows) *
                            (size_t)((columns + w.scale_columns - 1) / w.scale_columns);
    uint8_t *x = take(m, n), *zeros = take(m, n_scales);
    float *scales = take(m, sizeof *scales * n_scales);
    for (size_t k = 0; k < n; k++) x[k] = (uint8_t)(is_fp8 ? (bits(m) & 0x9f) | 0x20 : bits(m)); // 2^-3 .. 1/2
    for (size_t k = 0; k < n_scales; k++) {
        scales[k] = (float)(64 + bits(m) % 64) * (is_fp8 ? 0x1p-9f : w.nibbles ? 0x1p-14f : 0x1p-18f);
        zeros[k] = (uint8_t)(bits(m) % 16);
    }
    w.weight.data = x;
    w.scales = scales;
    w.zeros = w.nibbles ? zeros : NULL;
    return w;
}

static const float *vector(random_model *m, int n)
{
    float *x = take(m, sizeof *x * (size_t)n);
    for (int k = 0; k < n; k++) x[k] = 1 + noise(&m->seed) / 4;
    return x;
}

void random_model_make(random_model *m, const wt_model_config *shape, wt_dtype t)
{
    *m = (random_model){.llm.config = *shape, .seed = 1};
    wt_model_config *c = &m->llm.config;
    c->family = WT_MODEL_QWEN3;
    c->n_layers = RANDOM_LAYERS;
    c->vocab_size = RANDOM_VOCAB;
    c->max_positions = RANDOM_POSITIONS;
    c->activation = WT_ACTIVATION_SILU;
    c->norm_eps = 1e-6;
    c->rope = (wt_rope_config){.kind = WT_ROPE_DEFAULT, .theta = 1e4, .n_dims = c->d_head, .factor = 1};
    c->layer_slides[1] = c->sliding_window;
    const bool plain = t == WT_DTYPE_F32 || t == WT_DTYPE_F16 || t == WT_DTYPE_BF16;
    m->llm.embedding = plain_matrix(m, plain ? t : WT_DTYPE_BF16, RANDOM_VOCAB, c->d_model).weight;
    m->llm.head = matrix(m, t == WT_DTYPE_U8 ? WT_DTYPE_I8 : t, RANDOM_VOCAB, c->d_model);
    m->llm.norm.weight = vector(m, c->d_model);
    m->llm.layers = take(m, sizeof *m->llm.layers * RANDOM_LAYERS);
    for (int l = 0; l < RANDOM_LAYERS; l++) {
        const int q = c->n_heads * c->d_head, kv = c->n_kv_heads * c->d_head;
        wt__layer *w = &m->llm.layers[l];
        w->attention_norm.weight = vector(m, c->d_model);
        w->ffn_norm.weight = vector(m, c->d_model);
        if (c->qk_norm) w->q_norm.weight = vector(m, c->d_head);
        if (c->qk_norm) w->k_norm.weight = vector(m, c->d_head);
        w->q = matrix(m, t, q, c->d_model);
        w->k = matrix(m, t, kv, c->d_model);
        w->v = matrix(m, t, kv, c->d_model);
        w->o = matrix(m, t, c->d_model, q);
        w->gate = matrix(m, t, c->d_ff, c->d_model);
        w->up = matrix(m, t, c->d_ff, c->d_model);
        w->down = matrix(m, t, c->d_model, c->d_ff);
    }
}

void random_model_free(random_model *m)
{
    for (int k = 0; k < m->n; k++) free(m->memory[k]);
}
