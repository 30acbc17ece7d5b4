// The CPU's cache of keys and values: its types, pages that are copied, and positions that move.
#include "attention.h"
#include "quant.h"

#include <math.h>
#include <string.h>

size_t wt__cache_bytes(const wt_llm_session *s, int n)
{
    const wt_model_config *c = &s->llm->config;
    return wt_dtype_bytes(s->kv_type, (int64_t)n * c->n_layers * c->n_kv_heads * WT__LLM_PAGE * c->d_head);
}

static uint16_t brain_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return isnan(x) ? 0x7fff : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// To the nearest, the even one of two. What is too large for F16 and fp8 becomes their largest.
void wt__cache_write(const wt_llm_session *s, void *cache, int64_t at, int n, const float *x)
{
    switch (s->kv_type) {
    case WT_DTYPE_F16:
        for (int d = 0; d < n; d++)
            ((uint16_t *)cache)[at + d] = isnan(x[d]) ? 0x7fff : (uint16_t)wt_weight_half(x[d]);
        return;
    case WT_DTYPE_BF16:
        for (int d = 0; d < n; d++) ((uint16_t *)cache)[at + d] = brain_of(x[d]);
        return;
    case WT_DTYPE_F8_E4M3:
        for (int d = 0; d < n; d++)
            ((uint8_t *)cache)[at + d] = isnan(x[d]) ? 0x7f : (uint8_t)wt_weight_e4m3(x[d]);
        return;
    default:
        memcpy((float *)cache + at, x, sizeof *x * (size_t)n);
    }
}

wt_status wt__cpu_copy_page(wt_llm_session *s, int from, int to)
{
    const size_t bytes = wt__cache_bytes(s, 1);
    unsigned char *const both[] = {s->keys, s->values};
    for (int k = 0; k < 2; k++) memcpy(both[k] + bytes * (size_t)to, both[k] + bytes * (size_t)from, bytes);
    return WT_OK;
}

// ---- positions that move

typedef struct shift_args {
    wt_llm_session *session;
    int sequence, first, end, n_drop;
} shift_args;

/// A key, by -n_drop places.
static void turn_back(const shift_args *a, float *x)
{
    const wt_rope_config *r = &a->session->llm->config.rope;
    const int half = r->n_dims / 2, step = r->interleaved ? 2 : 1, apart = r->interleaved ? 1 : half;
    const float *frequencies = a->session->frequencies + (int64_t)a->sequence * half;
    for (int k = 0; k < half; k++) {
        const float angle = (float)a->n_drop * frequencies[k], c = cosf(angle), s = sinf(angle);
        const float p = x[k * step], q = x[k * step + apart];
        x[k * step] = p * c + q * s;
        x[k * step + apart] = q * c - p * s;
    }
}

/// A head of a layer.
static void shift_head(const void *args, int item)
{
    const shift_args *a = args;
    const wt_llm_session *s = a->session;
    const wt_model_config *c = &s->llm->config;
    const wt__attention in = {s, item / c->n_kv_heads};
    void *const both[] = {s->keys, s->values};
    float row[WT__CACHE_MAX_DIMS];
    for (int place = a->first; place < a->end; place++) {
        const int64_t from = wt__cache_at(&in, a->sequence, place + a->n_drop, item % c->n_kv_heads);
        const int64_t to = wt__cache_at(&in, a->sequence, place, item % c->n_kv_heads);
        for (int k = 0; k < 2; k++) {
            wt_tensor_to_f32(&(wt_tensor){.data = both[k], .dtype = s->kv_type}, from, c->d_head, row);
            if (!k) turn_back(a, row);
            wt__cache_write(s, both[k], to, c->d_head, row);
        }
    }
}

wt_status wt__cpu_shift(wt_llm_session *s, int sequence, int first, int end, int n_drop)
{
    const wt_model_config *c = &s->llm->config;
    const shift_args a = {s, sequence, first, end, n_drop};
    wt_status status = wt_stream_run(s->stream, shift_head, &a, sizeof a, c->n_layers * c->n_kv_heads);
    const wt_status ran = wt_stream_synchronize(s->stream);
    return status ? status : ran;
}
