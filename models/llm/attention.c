// Attention of the batch's tokens over the cache. Positions are taken in blocks that lie at multiples of BLOCK whatever
// the batch, with a running maximum: what is summed, and in which order, depends on the position alone.
#include "attention.h"

#include <math.h>
#include <string.h>
#include <warptone/simd.h>

enum { BLOCK = 64, LANES = 16 };

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

/// One head: out = sum over positions of softmax(q k scale) v.
WT_INLINE void attend_head(const float *q, const float *keys, const float *values, int first, int last, int d_head,
                           float scale, float *out)
{
    float most = -INFINITY, total = 0;
    memset(out, 0, sizeof *out * (size_t)d_head);
    for (int begin = first - first % BLOCK; begin <= last; begin += BLOCK) {
        const int from = begin < first ? first : begin, to = begin + BLOCK - 1 < last ? begin + BLOCK - 1 : last;
        float scores[BLOCK], before = most;
        for (int j = from; j <= to; j++) {
            const float score = scores[j - begin] = dot(q, keys + (int64_t)j * d_head, d_head) * scale;
            most = score > most ? score : most;
        }
        const float fade = total > 0 ? expf(before - most) : 0; // of what was summed under the old maximum
        total *= fade;
        for (int d = 0; d < d_head; d++) out[d] *= fade;
        for (int j = from; j <= to; j++) {
            const float share = expf(scores[j - begin] - most), *v = values + (int64_t)j * d_head;
            total += share;
            for (int d = 0; d < d_head; d++) out[d] += share * v[d];
        }
    }
    for (int d = 0; d < d_head; d++) out[d] /= total;
}

WT_CLONES void wt__attend(const wt__attention *a, int token, int kv_head)
{
    const wt_llm_session *s = a->session;
    const wt_model_config *c = &s->llm->config;
    const int group = c->n_heads / c->n_kv_heads, last = s->base + token;
    const int first = c->layer_slides[a->layer] && last >= c->sliding_window ? last - c->sliding_window + 1 : 0;
    const int64_t cache = ((int64_t)a->layer * c->n_kv_heads + kv_head) * s->n_positions * c->d_head;
    float scale = 1 / sqrtf((float)c->d_head);
    if (c->scale_by_layer) scale /= (float)(a->layer + 1);
    for (int h = kv_head * group; h < (kv_head + 1) * group; h++) {
        const int64_t at = ((int64_t)token * c->n_heads + h) * c->d_head;
        attend_head(s->q + at, s->keys + cache, s->values + cache, first, last, c->d_head, scale, s->a + at);
    }
}
