// The steps of the forward pass on the CPU: functions over items that the device's threads share. The steps of a batch
// are queued in one go and the caller waits once, at the end.
#include "attention.h"
#include "matrix.h"

#include <math.h>
#include <string.h>
#include <warptone/simd.h>

enum { LANES = 16, ITEM_BYTES = 65536, SHARES = 4, BATCH_FOURS = 8, ACTIVATIONS_AN_ITEM = 512 };

static void run(wt__pass *p, wt_cpu_function function, const void *args, size_t bytes, int n_items)
{
    if (!p->status) p->status = wt_stream_run(p->s->stream, function, args, bytes, n_items);
}

// ---- embedding

static void embed_token(const void *args, int t)
{
    const wt_llm_session *s = *(wt_llm_session *const *)args;
    const wt_llm *m = s->llm;
    const int d = m->config.d_model;
    float *x = s->x + (int64_t)t * d, *position = s->n + (int64_t)t * d;
    wt_tensor_to_f32(&m->embedding, (int64_t)s->tokens[t].id * d, d, x);
    if (!m->positions.data) return;
    wt_tensor_to_f32(&m->positions, (int64_t)s->tokens[t].place * d, d, position);
    for (int k = 0; k < d; k++) x[k] += position[k];
}

// ---- norms

/// Sum of (x - mean)^2.
WT_INLINE float squares(const float *x, float mean, int n)
{
    wt_f32x16 sums = {0}, v;
    float lanes[LANES], sum = 0;
    int k = 0;
    for (; k + LANES <= n; k += LANES) {
        memcpy(&v, x + k, sizeof v);
        v -= mean;
        sums += v * v;
    }
    for (; k < n; k++) sum += (x[k] - mean) * (x[k] - mean);
    memcpy(lanes, &sums, sizeof lanes);
    for (int j = 0; j < LANES; j++) sum += lanes[j];
    return sum;
}

/// RMSNorm, or LayerNorm when there is a bias; `out` may be `x`.
WT_CLONES static void norm_vector(const wt__norm *norm, const float *x, int n, double eps, float *out)
{
    float mean = 0;
    if (norm->bias) {
        for (int k = 0; k < n; k++) mean += x[k];
        mean /= (float)n;
    }
    const float scale = 1 / sqrtf(squares(x, mean, n) / (float)n + (float)eps);
    for (int k = 0; k < n; k++) out[k] = (x[k] - mean) * scale * norm->weight[k] + (norm->bias ? norm->bias[k] : 0);
}

typedef struct norm_args {
    const wt_model_config *config;
    const wt__norm *norm;
    const float *x;
    float *out;
} norm_args;

static void norm_token(const void *args, int t)
{
    const norm_args *a = args;
    const int64_t at = (int64_t)t * a->config->d_model;
    norm_vector(a->norm, a->x + at, a->config->d_model, a->config->norm_eps, a->out + at);
}

static void normalise(wt__pass *p, const wt__norm *norm, const float *x, float *out, int n_tokens)
{
    run(p, norm_token, &(norm_args){&p->s->llm->config, norm, x, out}, sizeof(norm_args), n_tokens);
}

// ---- matrices

/// What threads share who take rows of a matrix as they get through them, in fours.
typedef struct deal {
    wt_llm_session *session;
    int64_t n_fours, fewest; ///< in all; at a time
} deal;

/// Some of the fours that are left, fewer as they become few, so that threads end together whatever holds one of them
/// up; 0 = none are left.
static int64_t take_fours(const deal *d, int64_t *first)
{
    wt_llm_session *s = d->session;
    int64_t n, left;
    *first = atomic_load_explicit(&s->n_dealt, memory_order_relaxed);
    do {
        if (!(left = d->n_fours - *first)) return 0;
        n = left / (SHARES * s->n_items) / d->fewest * d->fewest;
        if (!n) n = d->fewest < left ? d->fewest : left;
    } while (!atomic_compare_exchange_weak_explicit(&s->n_dealt, first, *first + n, memory_order_relaxed,
                                                    memory_order_relaxed));
    return n;
}

/// Every item ends so; the last one makes ready for the next deal.
static void end_deal(const deal *d)
{
    wt_llm_session *s = d->session;
    if (atomic_fetch_add(&s->n_ended, 1) + 1 < s->n_items) return;
    s->n_dealt = 0;
    s->n_ended = 0;
}

/// `rows` in all, of row_bytes for each of n_vectors: pieces that are worth the taking, and of several vectors, which
/// may be rounded for each piece or take 32 rows at a time, not of a few rows only.
static deal deal_rows(wt_llm_session *s, int64_t fours, size_t row_bytes, int n_vectors)
{
    const int64_t fewest = (int64_t)(ITEM_BYTES / (4 * row_bytes * (size_t)n_vectors)) + 1;
    return (deal){s, fours, n_vectors > 1 ? (fewest + BATCH_FOURS - 1) / BATCH_FOURS * BATCH_FOURS : fewest};
}

static int64_t fours_of(const wt__linear *l) { return (l->weight.shape[0] + 3) / 4; }

/// Of fours from `first` on.
static void multiply_fours(wt__product *p, int64_t first, int64_t n)
{
    const int64_t left = p->linear->weight.shape[0] - 4 * first;
    wt__multiply(p, 4 * first, 4 * n < left ? 4 * n : left);
    p->prepared = p->n == 1;
}

typedef struct multiply_args {
    wt__product parts[WT__LLM_MAX_PARTS]; ///< matrices with the same input
    int n_parts;
    deal deal;
    size_t scratch_floats; ///< an item's
} multiply_args;

static void multiply_rows(const void *args, int item)
{
    const multiply_args *a = args;
    wt__product parts[WT__LLM_MAX_PARTS];
    memcpy(parts, a->parts, sizeof parts);
    for (int k = 0; k < a->n_parts; k++)
        if (parts[k].rows) parts[k].rows += a->scratch_floats * (size_t)item;
    for (int64_t first, n; (n = take_fours(&a->deal, &first));)
        for (int k = 0; k < a->n_parts; k++) {
            const int64_t all = fours_of(parts[k].linear), left = first < all ? all - first : 0;
            const int64_t here = n < left ? n : left;
            if (here) multiply_fours(&parts[k], first, here);
            n -= here;
            first = first > all ? first - all : 0;
        }
    end_deal(&a->deal);
}

static wt__product product(const wt_llm_session *s, const wt__linear *linear, const float *x, float *out, int n)
{
    return (wt__product){.linear = linear,
                         .x = x,
                         .out = out,
                         .rows = s->rows,
                         .laid = s->by_amx ? s->laid : NULL,
                         .x_stride = linear->weight.shape[1],
                         .out_stride = linear->weight.shape[0],
                         .n = n,
                         .exact = s->exact};
}

static void lay_vectors(const void *args, int item) { wt__amx_lay(args, item); }

static void multiply(wt__pass *p, int n_parts, const wt__product *parts)
{
    multiply_args a = {.n_parts = n_parts, .scratch_floats = wt__room(parts[0].linear->weight.shape[1])};
    int64_t n_fours = 0;
    bool laid = false;
    for (int k = 0; k < n_parts; k++) {
        a.parts[k] = parts[k];
        n_fours += fours_of(parts[k].linear);
        laid |= parts[k].laid && wt__suits_amx(parts[k].linear);
    }
    a.deal = deal_rows(p->s, n_fours, wt__row_bytes(parts[0].linear), parts[0].n);
    if (laid) run(p, lay_vectors, &parts[0], sizeof *parts, wt__amx_blocks(parts[0].n));
    run(p, multiply_rows, &a, sizeof a, p->s->n_items);
}

static void project(wt__pass *p, const wt__linear *linear, const float *in)
{
    wt__product out = product(p->s, linear, in, p->s->x, p->s->n_tokens);
    out.add = true;
    multiply(p, 1, &out);
}

// ---- attention

/// Turn the pairs of a head's first n_dims dimensions.
static void rotate(const wt_rope_config *r, const float *cosines, const float *sines, float *x)
{
    const int half = r->n_dims / 2, step = r->interleaved ? 2 : 1, apart = r->interleaved ? 1 : half;
    for (int k = 0; k < half; k++) {
        const float a = x[k * step], b = x[k * step + apart];
        x[k * step] = a * cosines[k] - b * sines[k];
        x[k * step + apart] = b * cosines[k] + a * sines[k];
    }
}

/// Norms and RoPE of a token's heads of q and k; k and v into the cache.
static void place_token(const void *args, int t)
{
    const wt__attention *a = args;
    const wt_llm_session *s = a->session;
    const wt_model_config *c = &s->llm->config;
    const wt__layer *w = &s->llm->layers[a->layer];
    const int d = c->d_head, half = c->rope.n_dims / 2;
    const float *cosines = s->cosines + (int64_t)t * half, *sines = s->sines + (int64_t)t * half;
    for (int h = 0; h < c->n_heads + c->n_kv_heads; h++) {
        const bool is_k = h >= c->n_heads;
        const wt__norm *norm = is_k ? &w->k_norm : &w->q_norm;
        float *x =
            is_k ? s->k + ((int64_t)t * c->n_kv_heads + h - c->n_heads) * d : s->q + ((int64_t)t * c->n_heads + h) * d;
        if (norm->weight) norm_vector(norm, x, d, c->norm_eps, x);
        if (c->rope.kind) rotate(&c->rope, cosines, sines, x);
    }
    for (int h = 0; h < c->n_kv_heads; h++) {
        const int64_t from = ((int64_t)t * c->n_kv_heads + h) * d;
        const int64_t to = wt__cache_at(a, s->tokens[t].sequence, s->tokens[t].place, h);
        wt__cache_write(s, s->keys, to, d, s->k + from);
        wt__cache_write(s, s->values, to, d, s->v + from);
    }
}

static void attend_item(const void *args, int item)
{
    const wt__attention *a = args;
    const int n = a->session->llm->config.n_kv_heads, most = wt__attend_tokens(a->session), token = item / n * most;
    const int left = a->session->n_tokens - token;
    wt__attend(a, token, left < most ? left : most, item % n);
}

// ---- feed-forward

static float activate(wt_activation kind, float x)
{
    switch (kind) {
    case WT_ACTIVATION_SILU:
        return x / (1 + expf(-x));
    case WT_ACTIVATION_GELU:
        return 0.5f * x * (1 + erff(x * 0.70710678f));
    case WT_ACTIVATION_GELU_TANH:
        return 0.5f * x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
    default:
        return x > 0 ? x : 0;
    }
}

typedef struct activate_args {
    wt_activation kind;
    float *gate;         ///< NULL = up alone
    float *up;           ///< [n_rows][width]; gets activation(gate) up
    const float *shares; ///< [n_rows] further factors; NULL = none
    int64_t n_rows, width;
} activate_args;

static void activate_item(const void *args, int item)
{
    const activate_args *a = args;
    const int64_t first = (int64_t)item * ACTIVATIONS_AN_ITEM, all = a->n_rows * a->width;
    const int64_t end = first + ACTIVATIONS_AN_ITEM < all ? first + ACTIVATIONS_AN_ITEM : all;
    for (int64_t k = first; k < end; k++) {
        const float y = a->gate ? activate(a->kind, a->gate[k]) * a->up[k] : activate(a->kind, a->up[k]);
        a->up[k] = a->shares ? y * a->shares[k / a->width] : y;
    }
}

static void activate_all(wt__pass *p, activate_args a)
{
    a.kind = p->s->llm->config.activation;
    a.up = p->s->up;
    run(p, activate_item, &a, sizeof a, (int)((a.n_rows * a.width + ACTIVATIONS_AN_ITEM - 1) / ACTIVATIONS_AN_ITEM));
}

static void gate(wt__pass *p, const wt__layer *w)
{
    wt_llm_session *s = p->s;
    const bool gated = w->gate.weight.data;
    normalise(p, &w->ffn_norm, s->x, s->n, s->n_tokens);
    wt__product parts[2] = {product(s, &w->up, s->n, s->up, s->n_tokens)};
    if (gated) parts[1] = product(s, &w->gate, s->n, s->gate, s->n_tokens);
    multiply(p, gated ? 2 : 1, parts);
    activate_all(
        p, (activate_args){.gate = gated ? s->gate : NULL, .n_rows = s->n_tokens, .width = w->up.weight.shape[0]});
}

// ---- experts

/// Softmax over all experts, then the most probable ones, the first of equals; their shares made to sum to 1 if asked.
static void choose_experts(const void *args, int t)
{
    const wt_llm_session *s = *(wt_llm_session *const *)args;
    const wt_model_config *c = &s->llm->config;
    float *p = s->routes + (int64_t)t * c->n_experts, *shares = s->shares + (int64_t)t * c->n_experts_used;
    int32_t *chosen = s->chosen + (int64_t)t * c->n_experts_used;
    float most = p[0], total = 0, kept = 0;
    for (int e = 1; e < c->n_experts; e++) most = fmaxf(most, p[e]);
    for (int e = 0; e < c->n_experts; e++) total += p[e] = expf(p[e] - most);
    for (int k = 0; k < c->n_experts_used; k++) {
        int best = 0;
        for (int e = 1; e < c->n_experts; e++)
            if (p[e] > p[best]) best = e;
        kept += shares[k] = p[best] / total;
        chosen[k] = best;
        p[best] = -1;
    }
    for (int k = 0; c->norm_expert_weights && k < c->n_experts_used; k++) shares[k] /= kept;
}

typedef struct expert_args {
    deal deal;
    const wt__layer *layer;
    bool down; ///< else gate and up
} expert_args;

/// Some rows of every expert that a token of the batch chose.
static void multiply_experts_rows(const expert_args *a, int64_t first, int64_t n, float *scratch)
{
    const wt_llm_session *s = a->deal.session;
    const wt_model_config *c = &s->llm->config;
    for (int k = 0; k < s->n_tokens * c->n_experts_used; k++) {
        const wt__expert *e = &a->layer->experts[s->chosen[k]];
        const int64_t t = k / c->n_experts_used * c->d_model, h = (int64_t)k * c->d_ff_expert;
        wt__product p[2] = {
            product(s, a->down ? &e->down : &e->up, a->down ? s->up + h : s->n + t, a->down ? s->x + t : s->up + h, 1)};
        p[0].add = a->down;
        if (!a->down) p[1] = product(s, &e->gate, s->n + t, s->gate + h, 1);
        for (int j = 0; j < (a->down ? 1 : 2); j++) {
            p[j].rows = scratch;
            p[j].laid = NULL; // one vector
            multiply_fours(&p[j], first, n);
        }
    }
}

static void expert_rows(const void *args, int item)
{
    const expert_args *a = args;
    const wt_llm_session *s = a->deal.session;
    const size_t columns = (size_t)(a->down ? s->llm->config.d_ff_expert : s->llm->config.d_model);
    for (int64_t first, n; (n = take_fours(&a->deal, &first));)
        multiply_experts_rows(a, first, n, s->rows ? s->rows + wt__room((int64_t)columns) * (size_t)item : NULL);
    end_deal(&a->deal);
}

static void multiply_experts(wt__pass *p, const wt__layer *w, bool down)
{
    const wt__linear *m = down ? &w->experts[0].down : &w->experts[0].up;
    const deal rows = deal_rows(p->s, fours_of(m), wt__row_bytes(m), 1);
    run(p, expert_rows, &(expert_args){rows, w, down}, sizeof(expert_args), p->s->n_items);
}

static void mixture(wt__pass *p, const wt__layer *w)
{
    wt_llm_session *s = p->s;
    const wt_model_config *c = &s->llm->config;
    normalise(p, &w->ffn_norm, s->x, s->n, s->n_tokens);
    wt__product routes = product(s, &w->router, s->n, s->routes, s->n_tokens);
    routes.exact = true; // two experts may be almost alike
    multiply(p, 1, &routes);
    run(p, choose_experts, &s, sizeof s, s->n_tokens);
    multiply_experts(p, w, false);
    activate_all(p, (activate_args){.gate = s->gate,
                                    .shares = s->shares,
                                    .n_rows = (int64_t)s->n_tokens * c->n_experts_used,
                                    .width = c->d_ff_expert});
    multiply_experts(p, w, true);
}

// ---- the steps

static void embed(wt__pass *p) { run(p, embed_token, &p->s, sizeof p->s, p->s->n_tokens); }

static void qkv(wt__pass *p, const wt__layer *w)
{
    wt_llm_session *s = p->s;
    const int n = s->n_tokens;
    normalise(p, &w->attention_norm, s->x, s->n, n);
    multiply(p, 3,
             (wt__product[]){product(s, &w->q, s->n, s->q, n), product(s, &w->k, s->n, s->k, n),
                             product(s, &w->v, s->n, s->v, n)});
}

static void place(wt__pass *p, int layer)
{
    run(p, place_token, &(wt__attention){p->s, layer}, sizeof(wt__attention), p->s->n_tokens);
}

static void attend(wt__pass *p, int layer)
{
    const int most = wt__attend_tokens(p->s), tiles = (p->s->n_tokens + most - 1) / most;
    run(p, attend_item, &(wt__attention){p->s, layer}, sizeof(wt__attention), tiles * p->s->llm->config.n_kv_heads);
}

static void head(wt__pass *p)
{
    wt_llm_session *s = p->s;
    const wt_llm *m = s->llm;
    normalise(p, &m->norm, s->x + (int64_t)(s->n_tokens - p->n_logits) * m->config.d_model, s->n, p->n_logits);
    wt__product logits = product(s, &m->head, s->n, p->logits, p->n_logits);
    logits.laid = NULL; // a prompt's are of one vector
    multiply(p, 1, &logits);
}

const wt__llm_ops wt__llm_cpu_ops = {.embed = embed,
                                     .qkv = qkv,
                                     .place = place,
                                     .attend = attend,
                                     .project = project,
                                     .gate = gate,
                                     .mixture = mixture,
                                     .head = head};
