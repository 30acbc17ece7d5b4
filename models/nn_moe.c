// Mixtures of experts, but for the products: kernels/nn/nn_moe.cu on a GPU, a token at a time on the CPU.
#include "nn_internal.h"

#include <math.h>

enum { THREADS = 256, MAX_EXPERTS = 1024, PIECE = 1024, GROUP_THREADS = 1024 };

// ---- the CPU

static void route_token(const void *args, int token)
{
    const nn_moe_args *a = args;
    float shares[MAX_EXPERTS], keys[MAX_EXPERTS], most = -INFINITY, total = 0, kept = 0;
    int *chosen = a->chosen + (long long)token * a->used;
    float *out = a->shares + (long long)token * a->used;
    wt__nn_read(a->scores.type, a->scores.data, token * a->scores.stride, a->experts, shares);
    for (int e = 0; e < a->experts; e++) most = fmaxf(most, shares[e]);
    for (int e = 0; e < a->experts; e++) {
        shares[e] = a->sigmoid ? 1 / (1 + expf(-shares[e])) : expf(shares[e] - most);
        total += shares[e];
    }
    for (int e = 0; e < a->experts; e++) {
        if (!a->sigmoid) shares[e] /= total;
        keys[e] = shares[e] + nn_get_or(&a->bias, e, 0);
    }
    for (int k = 0; k < a->used; k++) {
        int best = -1;
        for (int e = 0; e < a->experts; e++)
            if (keys[e] > (best < 0 ? -INFINITY : keys[best])) best = e;
        if (best < 0) best = k; // not a number is nobody's largest
        kept += out[k] = shares[best];
        chosen[k] = best;
        keys[best] = -INFINITY;
    }
    for (int k = 0; k < a->used; k++) out[k] *= a->normalise ? a->scale / kept : a->scale;
}

static void group_all(const void *args, int item)
{
    const nn_moe_args *a = args;
    const int pairs = a->tokens * a->used;
    int next[MAX_EXPERTS];
    (void)item;
    memset(a->offsets, 0, sizeof(int) * (size_t)(a->experts + 1));
    for (int k = 0; k < pairs; k++)
        if (a->chosen[k] >= 0 && a->chosen[k] < a->experts) a->offsets[a->chosen[k] + 1]++;
    for (int e = 0; e < a->experts; e++) {
        next[e] = a->offsets[e];
        a->offsets[e + 1] += a->offsets[e];
    }
    for (int k = 0; k < pairs; k++) {
        const int e = a->chosen[k];
        a->slots[k] = e >= 0 && e < a->experts ? next[e]++ : -1;
    }
}

static void permute_pair(const void *args, int pair)
{
    const nn_moe_args *a = args;
    const size_t bytes = wt_dtype_bytes((wt_dtype)a->x.type, 1);
    if (a->slots[pair] < 0) return;
    memcpy((char *)a->grouped.data + (size_t)(a->slots[pair] * a->grouped.stride) * bytes,
           (const char *)a->x.data + (size_t)(pair / a->used * a->x.stride) * bytes, (size_t)a->width * bytes);
}

static void unpermute_token(const void *args, int token)
{
    const nn_moe_args *a = args;
    float sum[PIECE], x[PIECE];
    for (long long k = 0; k < a->width; k += PIECE) {
        const int n = (int)(a->width - k < PIECE ? a->width - k : PIECE);
        memset(sum, 0, sizeof sum);
        if (a->residual.data) wt__nn_read(a->residual.type, a->residual.data, token * a->residual.stride + k, n, sum);
        for (int j = 0; j < a->used; j++) {
            const int pair = token * a->used + j;
            if (a->slots[pair] < 0) continue;
            wt__nn_read(a->grouped.type, a->grouped.data, a->slots[pair] * a->grouped.stride + k, n, x);
            for (int i = 0; i < n; i++) sum[i] += a->shares[pair] * x[i];
        }
        wt__nn_write(a->out.type, a->out.data, token * a->out.stride + k, n, sum);
    }
}

// ---- both

static wt_status queue(const wt_nn *nn, wt_stream *stream, nn_kernel kernel, wt_cpu_function function, int n,
                       int threads, size_t shared, const nn_moe_args *a)
{
    if (!n) return WT_OK;
    if (!nn->on_gpu) return wt_stream_run(stream, function, a, sizeof *a, n);
    const wt_launch launch = {.grid = {n}, .block = {threads}, .shared_bytes = shared};
    return wt__nn_launch(nn, kernel, stream, &launch, WT_ARG(*a));
}

/// [tokens][k]: both extents.
static wt_status pairs_of(const char *what, const wt_array *chosen, nn_moe_args *a)
{
    char text[96];
    if (!chosen || chosen->rank != 2 || chosen->shape[1] < 1)
        return wt_fail(WT_ERR_BAD_ARG, "%s is %s, want [tokens][k]", what,
                       chosen ? wt_shape_describe(chosen->rank, chosen->shape, text) : "missing");
    a->tokens = (int)chosen->shape[0];
    a->used = (int)chosen->shape[1];
    return WT_OK;
}

static wt_status check_experts(long long n)
{
    if (n >= 1 && n <= MAX_EXPERTS) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG, "moe: %lld experts, want 1..%d", n, MAX_EXPERTS);
}

/// Dense integers or floats that must be there.
static wt_status needed(const char *what, const wt_array *x, wt_dtype type, int64_t n, void **data)
{
    return x ? wt__nn_dense(what, x, type, type, n, data) : wt_fail(WT_ERR_BAD_ARG, "%s is missing", what);
}

wt_status wt_nn_route(wt_nn *nn, wt_stream *stream, const wt_route_args *args)
{
    nn_moe_args a = {
        .sigmoid = args->sigmoid, .normalise = args->normalise, .scale = args->scale != 0 ? (float)args->scale : 1};
    long long tokens, experts;
    wt_status status = wt__nn_rows("route: scores", args->scores, &a.scores, &tokens, &experts);
    if (!status) status = check_experts(experts);
    if (!status) status = pairs_of("route: chosen", args->chosen, &a);
    if (status) return status;
    if (a.tokens != tokens || a.used > experts)
        return wt_fail(WT_ERR_BAD_ARG, "route: chosen is [%d][%d], want [%lld][1..%lld]", a.tokens, a.used, tokens,
                       experts);
    a.experts = (int)experts;
    status = needed("route: chosen", args->chosen, WT_DTYPE_I32, tokens * a.used, (void **)&a.chosen);
    if (!status) status = needed("route: shares", args->shares, WT_DTYPE_F32, tokens * a.used, (void **)&a.shares);
    if (!status) status = wt__nn_vector("route: bias", args->bias, experts, &a.bias);
    if (status) return status;
    return queue(nn, stream, NN_ROUTE, route_token, a.tokens, 32, sizeof(float) * (size_t)experts, &a);
}

wt_status wt_nn_permute(wt_nn *nn, wt_stream *stream, const wt_permute_args *args)
{
    nn_moe_args a = {0};
    long long tokens, rows, width;
    wt_status status = wt__nn_rows("permute: x", args->x, &a.x, &tokens, &a.width);
    if (!status) status = wt__nn_rows("permute: grouped", args->grouped, &a.grouped, &rows, &width);
    if (!status) status = pairs_of("permute: chosen", args->chosen, &a);
    if (status) return status;
    const int64_t pairs = (int64_t)a.tokens * a.used,
                  experts = args->offsets ? wt_array_elements(args->offsets) - 1 : 0;
    if (a.tokens != tokens || rows != pairs || width != a.width || a.x.type != a.grouped.type)
        return wt_fail(WT_ERR_BAD_ARG, "permute: grouped is [%lld][%lld] %s, want [%lld][%lld] %s", rows, width,
                       wt_dtype_name(args->grouped->dtype), (long long)tokens * a.used, a.width,
                       wt_dtype_name(args->x->dtype));
    a.experts = (int)experts;
    status = check_experts(experts);
    if (!status) status = needed("permute: chosen", args->chosen, WT_DTYPE_I32, pairs, (void **)&a.chosen);
    if (!status) status = needed("permute: offsets", args->offsets, WT_DTYPE_I32, experts + 1, (void **)&a.offsets);
    if (!status) status = needed("permute: slots", args->slots, WT_DTYPE_I32, pairs, (void **)&a.slots);
    if (!status) status = queue(nn, stream, NN_GROUP, group_all, 1, GROUP_THREADS, 0, &a);
    return status ? status : queue(nn, stream, NN_PERMUTE, permute_pair, (int)pairs, THREADS, 0, &a);
}

wt_status wt_nn_unpermute(wt_nn *nn, wt_stream *stream, const wt_unpermute_args *args)
{
    nn_moe_args a = {0};
    long long rows, width, tokens;
    wt_status status = wt__nn_rows("unpermute: grouped", args->grouped, &a.grouped, &rows, &width);
    if (!status) status = wt__nn_rows("unpermute: out", args->out, &a.out, &tokens, &a.width);
    if (!status) status = wt__nn_rows_like("unpermute: residual", args->residual, args->out, &a.residual);
    if (!status) status = pairs_of("unpermute: slots", args->slots, &a);
    if (status) return status;
    const int64_t pairs = (int64_t)a.tokens * a.used;
    if (a.tokens != tokens || rows != pairs || width != a.width)
        return wt_fail(WT_ERR_BAD_ARG, "unpermute: grouped is [%lld][%lld], want [%lld][%lld]", rows, width,
                       (long long)tokens * a.used, a.width);
    status = needed("unpermute: slots", args->slots, WT_DTYPE_I32, pairs, (void **)&a.slots);
    if (!status) status = needed("unpermute: shares", args->shares, WT_DTYPE_F32, pairs, (void **)&a.shares);
    return status ? status : queue(nn, stream, NN_UNPERMUTE, unpermute_token, a.tokens, THREADS, 0, &a);
}
