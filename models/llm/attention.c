// Attention of the batch's tokens over the cache. Positions are taken page by page, with a running maximum: what is
// summed, and in which order, depends on the position alone.
#include "attention.h"

#include <math.h>
#include <string.h>
#include <warptone/simd.h>

enum { LANES = 16, HEADS = 8 };

WT_INLINE float dot(const float *a, const float *b, int n)
{
    wt_f32x16 sums[2] = {{0}, {0}}, x, y;
    int k = 0;
    for (; k + 2 * LANES <= n; k += 2 * LANES)
        for (int j = 0; j < 2; j++) {
            memcpy(&x, a + k + j * LANES, sizeof x);
            memcpy(&y, b + k + j * LANES, sizeof y);
            sums[j] += x * y;
        }
    float lanes[LANES], sum = 0;
    sums[0] += sums[1];
    memcpy(lanes, &sums[0], sizeof lanes);
    for (int half = LANES / 2; half; half /= 2)
        for (int j = 0; j < half; j++) lanes[j] += lanes[j + half];
    for (; k < n; k++) sum += a[k] * b[k];
    return lanes[0] + sum;
}

typedef struct range {
    const wt__attention *attention;
    int sequence, kv_head, first, last; ///< positions
    float scale;
} range;

/// Some heads of one of keys: out = sum over positions of softmax(q k scale) v. Keys and values are read once for all.
WT_INLINE void attend_heads(const range *r, const float *q, int n_heads, int d_head, float *out)
{
    const wt_llm_session *s = r->attention->session;
    float most[HEADS], total[HEADS] = {0}, scores[HEADS][WT__LLM_PAGE], wide[WT__CACHE_MAX_DIMS];
    for (int h = 0; h < n_heads; h++) most[h] = -INFINITY;
    memset(out, 0, sizeof *out * (size_t)(n_heads * d_head));
    for (int begin = r->first - r->first % WT__LLM_PAGE; begin <= r->last; begin += WT__LLM_PAGE) {
        const int64_t page = wt__cache_at(r->attention, r->sequence, begin, r->kv_head);
        const int from = begin < r->first ? r->first - begin : 0;
        const int to = begin + WT__LLM_PAGE - 1 < r->last ? WT__LLM_PAGE - 1 : r->last - begin;
        float before[HEADS];
        for (int h = 0; h < n_heads; h++) before[h] = most[h];
        for (int j = from; j <= to; j++) {
            const float *k = wt__cache_read(s, s->keys, page + (int64_t)j * d_head, d_head, wide);
            for (int h = 0; h < n_heads; h++) {
                const float score = scores[h][j] = dot(q + h * d_head, k, d_head) * r->scale;
                most[h] = score > most[h] ? score : most[h];
            }
        }
        for (int h = 0; h < n_heads; h++) {
            const float fade = total[h] > 0 ? expf(before[h] - most[h]) : 0; // of what was summed before
            total[h] *= fade;
            for (int d = 0; d < d_head; d++) out[h * d_head + d] *= fade;
        }
        for (int j = from; j <= to; j++) {
            const float *v = wt__cache_read(s, s->values, page + (int64_t)j * d_head, d_head, wide);
            for (int h = 0; h < n_heads; h++) {
                const float share = expf(scores[h][j] - most[h]);
                total[h] += share;
                for (int d = 0; d < d_head; d++) out[h * d_head + d] += share * v[d];
            }
        }
    }
    for (int h = 0; h < n_heads; h++)
        for (int d = 0; d < d_head; d++) out[h * d_head + d] /= total[h];
}

float wt__attention_scale(const wt_model_config *config, int layer)
{
    const float scale = 1 / sqrtf((float)config->d_head);
    return config->scale_by_layer ? scale / (float)(layer + 1) : scale;
}

WT_CLONES void wt__attend(const wt__attention *a, int token, int kv_head)
{
    const wt_llm_session *s = a->session;
    const wt_model_config *c = &s->llm->config;
    const int group = c->n_heads / c->n_kv_heads, last = s->tokens[token].place;
    const range r = {.attention = a,
                     .sequence = s->tokens[token].sequence,
                     .kv_head = kv_head,
                     .first = c->layer_slides[a->layer] && last >= c->sliding_window ? last - c->sliding_window + 1 : 0,
                     .last = last,
                     .scale = wt__attention_scale(c, a->layer)};
    for (int h = 0; h < group; h += HEADS) {
        const int64_t at = ((int64_t)token * c->n_heads + kv_head * group + h) * c->d_head;
        attend_heads(&r, s->q + at, group - h < HEADS ? group - h : HEADS, c->d_head, s->a + at);
    }
}
