// Attention of the batch's tokens over the cache, for a tile of tokens that follow each other and some of the heads
// that share one of keys: rows. Positions are taken page by page, with a running maximum. Keys of a page are turned, so
// that a vector holds positions and a score is a sum from the first dimension to the last; values are summed
// from the first position to the last. So what is summed, and in which order, depends on the position alone, whatever
// the tile.
#include "attention.h"

#include <math.h>
#include <string.h>
#include <warptone/simd.h>

enum { LANES = 16, HEADS = 8, TOKENS = 8, ROWS = TOKENS * HEADS, PAGE = WT__LLM_PAGE, DIMS = 4 * LANES };

#define FLOATS(vector) ((int)(sizeof(vector) / sizeof(float)))
typedef wt_f32x8 octet __attribute__((aligned(4), may_alias));

/// Of all rows, for one page.
typedef struct tile {
    const wt__attention *attention;
    int kv_head, token, n_tokens, n_heads; ///< tokens follow each other in one sequence; heads of each
    int d_head;
    int floats; ///< of a vector
    float scale;
    int first[TOKENS], last[TOKENS]; ///< positions
    const float *q[ROWS];            ///< [n_tokens][n_heads]
    float *out[ROWS];
    float most[ROWS], total[ROWS], fade[ROWS];
    float scores[ROWS][PAGE];
    float wide[PAGE][DIMS], turned[DIMS][PAGE]; ///< some dimensions of a page's keys or values
} tile;

typedef union number {
    float value;
    int32_t bits;
} number;

/// e^x of x <= 0, to two units of the last place: 2^n e^r, |r| <= ln 2 / 2, by Taylor's series. Below -87 it is 0, of
/// NaN NaN. No branches, and comparisons of bits, for loops that become vectors everywhere.
WT_INLINE float exponential(float x)
{
    const number lowest = {-87}, least = {-INFINITY};
    number y = {x}, shifted, power, e;
    const int32_t zero = -((y.bits > lowest.bits) & (y.bits <= least.bits)); // bits of negative numbers fall
    y.bits = (lowest.bits & zero) | (y.bits & ~zero);
    shifted.value = y.value * 1.44269504f + 12582912.0f; // 1.5 2^23: to a whole number, which the low bits hold
    const float n = shifted.value - 12582912.0f, r = (y.value - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = r * 0.00138888889f + 0.00833333333f;
    p = r * p + 0.0416666667f;
    p = r * p + 0.166666667f;
    p = r * p + 0.5f;
    p = r * p + 1;
    p = r * p + 1;
    power.bits = ((shifted.bits + 127) & 0xff) << 23;
    e.value = p * power.value;
    e.bits &= ~zero;
    return e.value;
}

/// `n` dimensions from `dim` on of the page's positions up to `to`, to `wide`. What lies behind them takes part in what
/// follows, but not in what comes of it: scores there are left out, and sums there are not kept.
WT_INLINE void read_page(tile *t, const void *cache, int64_t page, int to, int dim, int n)
{
    float widened[DIMS];
    for (int j = 0; j <= to; j++) {
        const float *x = wt__cache_read(t->attention->session, cache, page + (int64_t)j * t->d_head + dim, n, widened);
        int d = 0;
        for (; d + 8 <= n; d += 8) *(octet *)&t->wide[j][d] = *(const octet *)(x + d);
        for (; d < n; d++) t->wide[j][d] = x[d];
    }
}

WT_INLINE void turn_page(tile *t, int n)
{
    for (int d = 0; d < n; d += 8)
        for (int j = 0; j < PAGE; j += 8) {
            wt_f32x8 v[8];
            for (int i = 0; i < 8; i++) v[i] = *(const octet *)&t->wide[j + i][d];
            wt_transpose_8x8(v);
            for (int i = 0; i < 8; i++) *(octet *)&t->turned[d + i][j] = v[i];
        }
}

/// Scores of n_rows rows from `row` on take n more dimensions: `n_vectors` vectors of positions at a time, as many as
/// registers hold sums.
#define ADD_SCORES(vector, n_vectors)                                                                                  \
    for (int j = 0; j < PAGE; j += n_vectors * FLOATS(vector)) {                                                       \
        vector sums[4][n_vectors], keys[n_vectors];                                                                    \
        for (int r = 0; r < n_rows; r++)                                                                               \
            for (int k = 0; k < n_vectors; k++)                                                                        \
                memcpy(&sums[r][k], t->scores[row + r] + j + k * FLOATS(vector), sizeof(vector));                      \
        for (int d = 0; d < n; d++) {                                                                                  \
            for (int k = 0; k < n_vectors; k++)                                                                        \
                memcpy(&keys[k], t->turned[d] + j + k * FLOATS(vector), sizeof(vector));                               \
            for (int r = 0; r < n_rows; r++)                                                                           \
                for (int k = 0; k < n_vectors; k++) sums[r][k] += t->q[row + r][dim + d] * keys[k];                    \
        }                                                                                                              \
        for (int r = 0; r < n_rows; r++)                                                                               \
            for (int k = 0; k < n_vectors; k++)                                                                        \
                memcpy(t->scores[row + r] + j + k * FLOATS(vector), &sums[r][k], sizeof(vector));                      \
    }

WT_INLINE void add_scores(tile *t, int row, const int n_rows, int dim, int n)
{
    if (t->floats == 16) {
        ADD_SCORES(wt_f32x16, 4)
    } else {
        ADD_SCORES(wt_f32x8, 2)
    }
}

/// Scores become shares of a softmax so far, for positions from .. to of the page; the others get none.
WT_INLINE void take_shares(tile *t, int row, int from, int to)
{
    float scores[PAGE], lanes[LANES], sums[LANES] = {0};
    for (int j = 0; j < PAGE; j++) {
        const number none = {-INFINITY};
        const int32_t seen = -((j >= from) & (j <= to));
        number score = {t->scores[row][j] * t->scale};
        score.bits = (score.bits & seen) | (none.bits & ~seen);
        scores[j] = score.value;
    }
    memcpy(lanes, scores, sizeof lanes);
    for (int k = LANES; k < PAGE; k += LANES)
        for (int j = 0; j < LANES; j++) lanes[j] = scores[k + j] > lanes[j] ? scores[k + j] : lanes[j];
    for (int half = LANES / 2; half; half /= 2)
        for (int j = 0; j < half; j++) lanes[j] = lanes[j + half] > lanes[j] ? lanes[j + half] : lanes[j];
    const float before = t->most[row], most = lanes[0] > before ? lanes[0] : before;
    for (int j = 0; j < PAGE; j++) scores[j] = exponential(scores[j] - most);
    for (int k = 0; k < PAGE; k += LANES)
        for (int j = 0; j < LANES; j++) sums[j] += scores[k + j];
    for (int half = LANES / 2; half; half /= 2)
        for (int j = 0; j < half; j++) sums[j] += sums[j + half];
    memcpy(t->scores[row], scores, sizeof scores);
    t->fade[row] = t->total[row] > 0 ? exponential(before - most) : 0; // of what was summed before
    t->total[row] = t->total[row] * t->fade[row] + sums[0];
    t->most[row] = most;
}

/// `n_vectors` vectors of dimensions from `dim` + `at` on, of the n behind `dim`, of what n_rows rows have summed so
/// far, and of this page's positions from .. to.
#define ADD_VALUES(vector, n_vectors)                                                                                  \
    {                                                                                                                  \
        const int whole = n_vectors * FLOATS(vector), count = n - at < whole ? n - at : whole;                         \
        float room[4][n_vectors * FLOATS(vector)] = {{0}};                                                             \
        vector sums[4][n_vectors], values[n_vectors];                                                                  \
        for (int r = 0; r < n_rows; r++) memcpy(room[r], t->out[row + r] + dim + at, sizeof(float) * (size_t)count);   \
        for (int r = 0; r < n_rows; r++)                                                                               \
            for (int k = 0; k < n_vectors; k++) {                                                                      \
                memcpy(&sums[r][k], room[r] + k * FLOATS(vector), sizeof(vector));                                     \
                sums[r][k] *= t->fade[row + r];                                                                        \
            }                                                                                                          \
        for (int j = from; j <= to; j++) {                                                                             \
            for (int k = 0; k < n_vectors; k++)                                                                        \
                memcpy(&values[k], t->wide[j] + at + k * FLOATS(vector), sizeof(vector));                              \
            for (int r = 0; r < n_rows; r++)                                                                           \
                for (int k = 0; k < n_vectors; k++) sums[r][k] += t->scores[row + r][j] * values[k];                   \
        }                                                                                                              \
        for (int r = 0; r < n_rows; r++)                                                                               \
            for (int k = 0; k < n_vectors; k++) memcpy(room[r] + k * FLOATS(vector), &sums[r][k], sizeof(vector));     \
        for (int r = 0; r < n_rows; r++) memcpy(t->out[row + r] + dim + at, room[r], sizeof(float) * (size_t)count);   \
        at += whole;                                                                                                   \
    }

WT_INLINE void add_values(tile *t, int row, const int n_rows, int from, int to, int dim, int n)
{
    int at = 0;
    if (t->floats == 16) {
        while (at + DIMS <= n) ADD_VALUES(wt_f32x16, 4)
        while (at < n) ADD_VALUES(wt_f32x16, 1)
    } else {
        while (at + 16 <= n) ADD_VALUES(wt_f32x8, 2)
        while (at < n) ADD_VALUES(wt_f32x8, 1)
    }
}

/// Of the page from `begin` on, what a row's token sees.
WT_INLINE int sees_from(const tile *t, int row, int begin)
{
    const int first = t->first[row / t->n_heads] - begin;
    return first > 0 ? first : 0;
}

WT_INLINE int sees_to(const tile *t, int row, int begin)
{
    const int last = t->last[row / t->n_heads] - begin;
    return last < PAGE ? last : PAGE - 1;
}

/// Positions begin .. begin + PAGE - 1 for the tokens from `token` to `end` that see some of them.
WT_INLINE void attend_page(tile *t, int begin, int token, int end)
{
    const wt_llm_session *s = t->attention->session;
    const int64_t page = wt__cache_at(t->attention, s->tokens[t->token].sequence, begin, t->kv_head);
    const int stop = end * t->n_heads, seen = t->last[end - 1] - begin, to = seen < PAGE ? seen : PAGE - 1;
    for (int row = token * t->n_heads; row < stop; row++) memset(t->scores[row], 0, sizeof t->scores[row]);
    for (int dim = 0; dim < t->d_head; dim += DIMS) {
        const int n = t->d_head - dim < DIMS ? t->d_head - dim : DIMS;
        int row = token * t->n_heads;
        read_page(t, s->keys, page, to, dim, n);
        turn_page(t, n);
        for (; row + 4 <= stop; row += 4) add_scores(t, row, 4, dim, n);
        for (; row < stop; row++) add_scores(t, row, 1, dim, n);
    }
    for (int row = token * t->n_heads; row < stop; row++)
        take_shares(t, row, sees_from(t, row, begin), sees_to(t, row, begin));
    for (int dim = 0; dim < t->d_head; dim += DIMS) {
        const int n = t->d_head - dim < DIMS ? t->d_head - dim : DIMS;
        read_page(t, s->values, page, to, dim, n);
        for (int row = token * t->n_heads, n_rows; row < stop; row += n_rows) {
            const int from = sees_from(t, row, begin), until = sees_to(t, row, begin);
            const bool alike =
                row + 4 <= stop && sees_from(t, row + 3, begin) == from && sees_to(t, row + 3, begin) == until;
            n_rows = alike ? 4 : 1;
            if (alike)
                add_values(t, row, 4, from, until, dim, n);
            else
                add_values(t, row, 1, from, until, dim, n);
        }
    }
}

/// out = sum over positions of softmax(q k scale) v.
WT_INLINE void attend_tile(tile *t)
{
    const int n_rows = t->n_tokens * t->n_heads;
    for (int row = 0; row < n_rows; row++) {
        t->most[row] = -INFINITY, t->total[row] = 0;
        memset(t->out[row], 0, sizeof(float) * (size_t)t->d_head);
    }
    for (int begin = t->first[0] - t->first[0] % PAGE; begin <= t->last[t->n_tokens - 1]; begin += PAGE) {
        int token = 0, end = t->n_tokens; // both bounds grow from token to token
        while (t->last[token] < begin) token++;
        while (t->first[end - 1] >= begin + PAGE) end--;
        attend_page(t, begin, token, end);
    }
    for (int row = 0; row < n_rows; row++)
        for (int d = 0; d < t->d_head; d++) t->out[row][d] /= t->total[row];
}

float wt__attention_scale(const wt_model_config *config, int layer)
{
    const float scale = 1 / sqrtf((float)config->d_head);
    return config->scale_by_layer ? scale / (float)(layer + 1) : scale;
}

/// Tokens of the batch from `token` on that follow each other in one sequence, `most` of them at most.
static int count_followers(const wt_llm_session *s, int token, int most)
{
    const wt_llm_token *t = s->tokens + token;
    int n = 1;
    while (n < most && t[n].sequence == t->sequence && t[n].place == t->place + n) n++;
    return n;
}

WT_CLONES static void attend_heads(const wt__attention *a, int token, int n_tokens, int kv_head, int head, int n_heads)
{
    const wt_llm_session *s = a->session;
    const wt_model_config *c = &s->llm->config;
    tile t; // large: only what is used is set
    t.attention = a, t.kv_head = kv_head, t.token = token, t.n_tokens = n_tokens, t.n_heads = n_heads;
    t.d_head = c->d_head, t.floats = wt_simd_floats(), t.scale = wt__attention_scale(c, a->layer);
    for (int i = 0; i < n_tokens; i++) {
        const int last = s->tokens[token + i].place;
        t.last[i] = last;
        t.first[i] = c->layer_slides[a->layer] && last >= c->sliding_window ? last - c->sliding_window + 1 : 0;
        for (int h = 0; h < n_heads; h++) {
            const int64_t at = ((int64_t)(token + i) * c->n_heads + head + h) * c->d_head;
            t.q[i * n_heads + h] = s->q + at, t.out[i * n_heads + h] = s->a + at;
        }
    }
    attend_tile(&t);
}

int wt__attend_tokens(const wt_llm_session *session)
{
    return session->n_tokens * session->llm->config.n_kv_heads < 64 ? 1 : TOKENS;
}

void wt__attend(const wt__attention *a, int token, int n_tokens, int kv_head)
{
    const wt_model_config *c = &a->session->llm->config;
    const int group = c->n_heads / c->n_kv_heads;
    for (int n, end = token + n_tokens; token < end; token += n) {
        n = count_followers(a->session, token, end - token);
        for (int h = 0; h < group; h += HEADS)
            attend_heads(a, token, n, kv_head, kv_head * group + h, group - h < HEADS ? group - h : HEADS);
    }
}
