#include "llm_pair.h"
#include "testing.h"

#include <math.h>
#include <stdlib.h>

enum { N_LAYERS = 2 };

static void *take(llm_model *m, size_t bytes)
{
    assert_true(m->n < 64);
    return m->memory[m->n++] = calloc(1, bytes);
}

static wt__linear floats(llm_model *m, int rows, int columns)
{
    float *x = take(m, sizeof *x * (size_t)rows * (size_t)columns);
    for (size_t k = 0; k < (size_t)rows * (size_t)columns; k++) x[k] = noise(&m->seed) / 16;
    return (wt__linear){.weight = {x, WT_DTYPE_F32, 2, {rows, columns}}};
}

static wt__linear matrix(llm_model *m, wt_dtype dtype, int rows, int columns)
{
    if (dtype == WT_DTYPE_F32) return floats(m, rows, columns);
    uint16_t *x = take(m, sizeof *x * (size_t)rows * (size_t)columns);
    for (size_t k = 0; k < (size_t)rows * (size_t)columns; k++) {
        const uint32_t r = (uint32_t)(noise(&m->seed) * 0x7fffff + 0x800000);
        const int exponent = dtype == WT_DTYPE_F16 ? 15 - 5 : 127 - 5, digits = dtype == WT_DTYPE_F16 ? 10 : 7;
        x[k] = (uint16_t)((r & 1) << 15 | (uint32_t)exponent << digits | (r >> 3 & ((1u << digits) - 1)));
    }
    return (wt__linear){.weight = {x, dtype, 2, {rows, columns}}};
}

static const float *vector(llm_model *m, int n)
{
    float *x = take(m, sizeof *x * (size_t)n);
    for (int k = 0; k < n; k++) x[k] = 1 + noise(&m->seed) / 4;
    return x;
}

/// One of n that lie one after the other.
static wt__linear slice(wt__linear all, int n, int which)
{
    wt_tensor *w = &all.weight;
    w->shape[0] /= n;
    w->data = (const unsigned char *)w->data + wt_tensor_bytes(w) * (size_t)which;
    return all;
}

static void make_experts(llm_model *m, wt_dtype t, wt__layer *w)
{
    const wt_model_config *c = &m->llm.config;
    const int n = c->n_experts;
    const wt__linear gates = matrix(m, t, n * c->d_ff_expert, c->d_model),
                     ups = matrix(m, t, n * c->d_ff_expert, c->d_model),
                     downs = matrix(m, t, n * c->d_model, c->d_ff_expert);
    w->router = matrix(m, t, n, c->d_model);
    w->experts = take(m, sizeof *w->experts * (size_t)n);
    for (int e = 0; e < n; e++)
        w->experts[e] = (wt__expert){.gate = slice(gates, n, e), .up = slice(ups, n, e), .down = slice(downs, n, e)};
}

void llm_model_make(llm_model *m, const wt_model_config *shape, wt_dtype t)
{
    *m = (llm_model){.llm.config = *shape, .seed = 1};
    wt_model_config *c = &m->llm.config;
    c->family = WT_MODEL_QWEN3;
    c->n_layers = N_LAYERS;
    c->vocab_size = VOCAB;
    c->max_positions = N_POSITIONS;
    c->activation = WT_ACTIVATION_SILU;
    c->norm_eps = 1e-6;
    c->rope = (wt_rope_config){.kind = WT_ROPE_DEFAULT,
                               .theta = 1e4,
                               .n_dims = c->rope.n_dims ? c->rope.n_dims : c->d_head,
                               .interleaved = c->rope.interleaved,
                               .factor = 1};
    c->layer_slides[1] = c->sliding_window;
    m->llm.embedding = matrix(m, t, VOCAB, c->d_model).weight;
    m->llm.head = matrix(m, t, VOCAB, c->d_model);
    m->llm.norm.weight = vector(m, c->d_model);
    m->llm.layers = take(m, sizeof *m->llm.layers * N_LAYERS);
    for (int l = 0; l < N_LAYERS; l++) {
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
        if (c->n_experts) {
            make_experts(m, t, w);
            continue;
        }
        w->gate = matrix(m, t, c->d_ff, c->d_model);
        w->up = matrix(m, t, c->d_ff, c->d_model);
        w->down = matrix(m, t, c->d_model, c->d_ff);
    }
}

void llm_model_free(llm_model *m)
{
    wt__llm_give_back(&m->llm);
    for (int k = 0; k < m->n; k++) free(m->memory[k]);
}

void llm_pair_compare(llm_pair *p, const float *got, const float *want, const char *what)
{
    double peak = 0, error = 0;
    for (int k = 0; k < VOCAB; k++) {
        peak = fmax(peak, fabs(want[k]));
        error = fmax(error, isnan(got[k]) ? INFINITY : fabs(got[k] - want[k]));
    }
    p->worst = fmax(p->worst, error / peak);
    if (!(error <= p->bound * peak)) fail_msg("%s: logits differ by %.2g of %.3g", what, error, peak);
}

void llm_pair_close(llm_pair *p, llm_model *m)
{
    for (int b = 0; b < 2; b++) {
        wt_llm_session_destroy(p->session[b]);
        if (b) assert_ok(wt_layout_destroy(p->layout));
        wt_device_close(p->device[b]);
    }
    llm_model_free(m);
}

void skip_without_gpu(void)
{
    if (wt_device_count()) return;
    print_message("skipped: %s\n", wt_last_error());
    skip();
}
