// Attention: kernels/nn/nn_attend.cu on a GPU; on the CPU a query at a time, with its running maximum and total over
// tiles of keys.
#include "nn_internal.h"

#include <math.h>

enum {
    MAX_HEAD = 256,
    KEYS = 64,
    LANES = 16,
    QUERIES_AN_ITEM = 8,
    THREADS = 128,
    TILE = 64,
    MARGIN = 8,
    ALIGNMENT = 1024, ///< of tiles that products of warpgroups read
    BARRIERS = 64
};
static const float nothing = -1e30f; ///< as in nn_attend.cu

// ---- the CPU

typedef struct query {
    const nn_attend_args *a;
    int n, head, at;
    int first, end; ///< keys
    float q[MAX_HEAD], sum[MAX_HEAD + LANES], most, total;
} query;

/// s[key] = sum over d of q[d] keys[d][key], for KEYS keys: sums in registers, of vectors that the processor has.
#define MULTIPLY(vector)                                                                                               \
    {                                                                                                                  \
        enum { VECTORS = KEYS * sizeof(float) / sizeof(vector) };                                                      \
        vector sums[VECTORS] = {{0}}, key;                                                                             \
        for (int d = 0; d < d_head; d++)                                                                               \
            for (int k = 0; k < VECTORS; k++) {                                                                        \
                memcpy(&key, keys + d * KEYS + k * (KEYS / VECTORS), sizeof key);                                      \
                sums[k] += q[d] * key;                                                                                 \
            }                                                                                                          \
        memcpy(s, sums, sizeof sums);                                                                                  \
    }

WT_CLONES static void multiply(const float *q, const float *keys, int d_head, float *s)
{
    if (wt_simd_floats() == 16)
        MULTIPLY(wt_f32x16)
    else
        MULTIPLY(wt_f32x8)
}

/// s[k] = e^(s[k] - most), or 0 for keys that are masked; their sum.
WT_CLONES static float shares_of(float *s, float most, int n)
{
    float sum = 0;
    for (int k = 0; k < n; k++) s[k] = s[k] > nothing ? nn_exp(s[k] - most) : 0;
    for (int k = 0; k < n; k++) sum += s[k];
    return sum;
}

/// sum = sum fade + shares values, 16 dimensions at a time.
WT_CLONES static void weigh(float *sum, float fade, const float *shares, const float *values, int n, int d_head)
{
    for (int d = 0; d < d_head; d += LANES) { // sum and the last row of values have room for whole lanes
        float own[LANES];
        for (int i = 0; i < LANES; i++) own[i] = sum[d + i] * fade;
        for (int k = 0; k < n; k++)
            for (int i = 0; i < LANES; i++) own[i] += shares[k] * values[k * d_head + d + i];
        memcpy(sum + d, own, sizeof own);
    }
}

static long long row_of(const nn_strided *x, int n, int head, long long position)
{
    return n * x->strides[0] + head * x->strides[1] + position * x->strides[2];
}

static float score(const query *u, int key, float x)
{
    const nn_attend_args *a = u->a;
    x *= a->scale;
    if (!a->mask) return x;
    const long long at = u->n * a->mask_strides[0] + u->head * a->mask_strides[1] + u->at * a->mask_strides[2] +
                         key * a->mask_strides[3];
    if (a->mask_type == NN_BOOL) return ((const unsigned char *)a->mask)[at] ? x : nothing;
    return fmaxf(x + nn_get(a->mask_type, a->mask, at), nothing);
}

/// Keys begin .. end - 1, of a tile that begins at `first`: keys [d_head][KEYS], values [KEYS][d_head].
static void look(query *u, const float *keys, const float *values, int first, int begin, int end)
{
    float s[KEYS], most = u->most;
    if (begin >= end) return;
    multiply(u->q, keys, u->a->d_head, s);
    for (int key = begin; key < end; key++) {
        s[key - first] = score(u, key, s[key - first]);
        most = fmaxf(most, s[key - first]);
    }
    const float fade = expf(u->most - most);
    u->most = most;
    u->total = u->total * fade + shares_of(s + begin - first, most, end - begin);
    weigh(u->sum, fade, s + begin - first, values + (begin - first) * u->a->d_head, end - begin, u->a->d_head);
}

/// A tile of keys, turned, and of values.
static void fetch(const nn_attend_args *a, int n, int head, int first, int end, float *keys, float *values)
{
    float line[MAX_HEAD];
    for (int key = first; key < end; key++) {
        wt__nn_read(a->k.type, a->k.data, row_of(&a->k, n, head / a->group, key), a->d_head, line);
        for (int d = 0; d < a->d_head; d++) keys[d * KEYS + key - first] = line[d];
        wt__nn_read(a->v.type, a->v.data, row_of(&a->v, n, head / a->group, key), a->d_head,
                    values + (key - first) * a->d_head);
    }
}

static void begin_query(query *u, const nn_attend_args *a, int n, int head, int at)
{
    const int last = a->causal ? at + a->keys - a->queries : a->keys - 1;
    u->a = a;
    u->n = n, u->head = head, u->at = at;
    u->first = a->window && last - a->window + 1 > 0 ? last - a->window + 1 : 0;
    u->end = last + 1 < a->keys ? last + 1 : a->keys;
    u->most = nothing;
    u->total = 0;
    memset(u->sum, 0, sizeof u->sum);
    wt__nn_read(a->q.type, a->q.data, row_of(&a->q, n, head, at), a->d_head, u->q);
}

/// Eight queries share each tile of keys.
static void item(const void *args, int index)
{
    const nn_attend_args *a = args;
    const int pieces = (a->queries + QUERIES_AN_ITEM - 1) / QUERIES_AN_ITEM, begin = index % pieces * QUERIES_AN_ITEM;
    const int count = a->queries - begin < QUERIES_AN_ITEM ? a->queries - begin : QUERIES_AN_ITEM;
    const int head = index / pieces % a->heads, n = index / pieces / a->heads, d = a->d_head;
    float keys[KEYS * MAX_HEAD] = {0}, values[KEYS * MAX_HEAD + LANES] = {0};
    query u[QUERIES_AN_ITEM] = {{0}};
    for (int k = 0; k < count; k++) begin_query(&u[k], a, n, head, begin + k);
    for (int first = u[0].first; first < u[count - 1].end; first += KEYS) { // spans only move on
        const int end = first + KEYS < u[count - 1].end ? first + KEYS : u[count - 1].end;
        fetch(a, n, head, first, end, keys, values);
        for (int k = 0; k < count; k++)
            look(&u[k], keys, values, first, first > u[k].first ? first : u[k].first, end < u[k].end ? end : u[k].end);
    }
    for (int k = 0; k < count; k++) {
        for (int i = 0; i < d; i++) u[k].sum[i] *= u[k].total > 0 ? 1 / u[k].total : 0;
        wt__nn_write(a->out.type, a->out.data, row_of(&a->out, n, head, begin + k), d, u[k].sum);
    }
}

// ---- both

/// Rows that a GPU's thread can copy eight elements at a time.
static bool in_eights(const nn_strided *x)
{
    return (uintptr_t)x->data % 16 == 0 && x->strides[0] % 8 == 0 && x->strides[1] % 8 == 0 && x->strides[2] % 8 == 0;
}

static bool in_fours(const nn_strided *x)
{
    return x->type == NN_F32 && (uintptr_t)x->data % 16 == 0 && x->strides[0] % 4 == 0 && x->strides[1] % 4 == 0 &&
           x->strides[2] % 4 == 0;
}

static bool in_pairs(const nn_strided *x)
{
    return (uintptr_t)x->data % 4 == 0 && x->strides[0] % 2 == 0 && x->strides[1] % 2 == 0 && x->strides[2] % 2 == 0;
}

/// A kernel for some width of heads, its tile of queries, threads and shared memory.
typedef struct form {
    nn_kernel kernel;
    int tile, threads;
    size_t shared_bytes;
} form;

static form form_of_16(const wt_nn *nn, const nn_attend_args *a)
{
    const size_t d = a->d_head <= 64 ? 64 : 128;
    const nn_kernel kernel =
        (nn_kernel)((a->q.type == NN_F16 ? NN_ATTEND_F16 : NN_ATTEND_BF16) + 2 * (d == 128) + !!a->mask);
    if (nn->wgmma) return (form){kernel, 2 * TILE, 3 * THREADS, ALIGNMENT + 2 * d * 5 * 2 * TILE + BARRIERS};
    return (form){kernel, TILE, THREADS, 2 * 4 * TILE * (d + MARGIN)};
}

/// In float on tensor cores: two tiles of keys and values, in three parts each.
static form form_of_parts(const nn_attend_args *a)
{
    const size_t d = a->d_head <= 64 ? 64 : 128, keys = d == 64 ? TILE : TILE / 2;
    return (form){(nn_kernel)(NN_ATTEND_F32 + 2 * (d == 128) + !!a->mask), 2 * TILE, 2 * THREADS,
                  2 * 2 * 3 * 2 * keys * (d + MARGIN)};
}

/// In float, heads up to 256: queries, shares, and keys or values.
static form form_of_wide(void)
{
    const size_t d = MAX_HEAD, tile = TILE / 2, pitch = tile + 4;
    return (form){NN_ATTEND_WIDE, (int)tile, THREADS, sizeof(float) * (2 * d * pitch + tile * pitch)};
}

static wt_status queue_cuda(const wt_nn *nn, wt_stream *stream, nn_attend_args *a)
{
    const bool one_type = a->q.type == a->k.type && a->q.type == a->v.type && a->q.type != NN_F32;
    const bool tensor = one_type && a->d_head <= 128 && in_eights(&a->q) && in_eights(&a->k) && in_eights(&a->v);
    form f = tensor ? form_of_16(nn, a) : form_of_parts(a);
    if (!tensor && (a->d_head > 128 || f.shared_bytes > wt_device_get_info(nn->device)->shared_bytes))
        f = form_of_wide();
    a->fours = in_fours(&a->k) && in_fours(&a->v);
    a->pairs = tensor && a->out.type == a->q.type && in_pairs(&a->out);
    const int n_tiles = (a->queries + f.tile - 1) / f.tile;
    const wt_launch launch = {
        .grid = {a->heads, n_tiles, a->n}, .block = {f.threads}, .shared_bytes = f.shared_bytes, .overlap = true};
    if (n_tiles > 65535 || a->n > 65535)
        return wt_fail(WT_ERR_BAD_ARG, "attention: %d tiles of queries, %d at once, want at most 65535 each", n_tiles,
                       a->n);
    return wt__nn_launch(nn, f.kernel, stream, &launch, WT_ARG(*a));
}

static wt_status check_mask(const wt_array *mask, nn_attend_args *a)
{
    wt_array view;
    if (!mask) return WT_OK;
    if (mask->dtype != WT_DTYPE_BOOL && !wt__nn_is_float(mask->dtype))
        return wt_fail(WT_ERR_UNSUPPORTED, "attention: mask is of type %s, want BOOL, F32, F16 or BF16",
                       wt_dtype_name(mask->dtype));
    if (!mask->data) return wt_fail(WT_ERR_BAD_ARG, "attention: mask has no address");
    wt_status status = wt_array_broadcast(mask, 4, (int64_t[]){a->n, a->heads, a->queries, a->keys}, &view);
    if (status) return status;
    a->mask = (const void *)mask->data;
    a->mask_type = (int)mask->dtype;
    for (int d = 0; d < 4; d++) a->mask_strides[d] = view.strides[d];
    return WT_OK;
}

wt_status wt_nn_attention(wt_nn *nn, wt_stream *stream, const wt_attention_args *args)
{
    nn_attend_args a = {.causal = args->causal, .window = args->window};
    const wt_array *q = args->q, *k = args->k;
    wt_status status = wt__nn_strided("attention: q", q, 4, &a.q);
    if (!status) status = wt__nn_strided("attention: k", k, 4, &a.k);
    if (!status) status = wt__nn_strided("attention: v", args->v, 4, &a.v);
    if (!status) status = wt__nn_strided("attention: out", args->out, 4, &a.out);
    if (status) return status;
    const int64_t heads = q->shape[1], kv_heads = k->shape[1], d = q->shape[3];
    if (d < 8 || d > MAX_HEAD || d % 8 || kv_heads < 1 || heads % kv_heads || args->window < 0)
        return wt_fail(
            WT_ERR_BAD_ARG,
            "attention: %lld heads of %lld on %lld, window %d; want a multiple of 8 up to %d, heads a multiple "
            "of the others, a window of 0 or more",
            (long long)heads, (long long)d, (long long)kv_heads, args->window, MAX_HEAD);
    status = wt__nn_shape("attention: k", k, 4, (int64_t[]){q->shape[0], kv_heads, -1, d});
    if (!status) status = wt__nn_shape("attention: v", args->v, 4, k->shape);
    if (!status) status = wt__nn_shape("attention: out", args->out, 4, q->shape);
    if (status) return status;
    a.n = (int)q->shape[0];
    a.heads = (int)heads;
    a.group = (int)(heads / kv_heads);
    a.queries = (int)q->shape[2];
    a.keys = (int)k->shape[2];
    a.d_head = (int)d;
    a.scale = args->scale != 0 ? (float)args->scale : 1 / sqrtf((float)d);
    status = check_mask(args->mask, &a);
    if (status || !a.n || !a.heads || !a.queries) return status;
    if (nn->on_gpu) return queue_cuda(nn, stream, &a);
    const int pieces = (a.queries + QUERIES_AN_ITEM - 1) / QUERIES_AN_ITEM;
    return wt_stream_run(stream, item, &a, sizeof a, a.n * a.heads * pieces);
}
