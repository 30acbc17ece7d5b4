#include "llm_random.h"

#include "testing.h"

#include <stdlib.h>

static void *take(random_model *m, size_t bytes)
{
    assert_true(m->n < 64);
    return m->memory[m->n++] = calloc(1, bytes);
}

/// Numbers around 1/32, of both signs.
static wt__linear matrix(random_model *m, wt_dtype dtype, int rows, int columns)
{
    const size_t n = (size_t)rows * (size_t)columns;
    const int exponent = dtype == WT_DTYPE_F16 ? 15 - 5 : 127 - 5, digits = dtype == WT_DTYPE_F16 ? 10 : 7;
    uint16_t *x = take(m, dtype == WT_DTYPE_F32 ? 4 * n : 2 * n);
    for (size_t k = 0; k < n; k++) {
        const uint32_t r = (uint32_t)(noise(&m->seed) * 0x7fffff + 0x800000);
        const uint16_t bits =
            (uint16_t)((r & 1) << 15 | (uint32_t)exponent << digits | (r >> 3 & ((1u << digits) - 1)));
        x[dtype == WT_DTYPE_F32 ? 2 * k + 1 : k] = bits; // the upper half of an F32 is a BF16
    }
    return (wt__linear){.weight = {x, dtype, 2, {rows, columns}}};
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
    m->llm.embedding = matrix(m, t, RANDOM_VOCAB, c->d_model).weight;
    m->llm.head = matrix(m, t, RANDOM_VOCAB, c->d_model);
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
