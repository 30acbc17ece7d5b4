// Embeddings, RoPE and the split of joint projections: kernels/nn/nn_token.cu on a GPU, a token at a time on the CPU.
#include "nn_internal.h"

#include <math.h>

enum { THREADS = 256, MAX_HEAD = 1024, PIECE = 1024 };

// ---- embeddings

static long long id_at(int type, const void *ids, long long at)
{
    return type == NN_I64 ? ((const long long *)ids)[at] : ((const int *)ids)[at];
}

static void embed_piece(const nn_embed_args *a, long long row, long long column, int n)
{
    float sum[PIECE] = {0}, x[PIECE];
    int found = 0;
    for (long long j = 0; j < a->bag; j++) {
        const long long id = id_at(a->ids_type, a->ids, row * a->bag + j);
        if (id < 0 || id >= a->vocab) continue;
        wt__nn_read(a->table.type, a->table.data, id * a->table.stride + column, n, x);
        for (int k = 0; k < n; k++) sum[k] += x[k];
        found++;
    }
    const float scale = a->mean && found ? a->scale / (float)found : a->scale;
    for (int k = 0; k < n; k++) sum[k] *= scale;
    const long long place = a->places ? id_at(a->places_type, a->places, row) : row % a->n_places;
    if (a->positions.data && place >= 0 && place < a->n_positions) {
        wt__nn_read(a->positions.type, a->positions.data, place * a->positions.stride + column, n, x);
        for (int k = 0; k < n; k++) sum[k] += x[k];
    }
    wt__nn_write(a->out.type, a->out.data, row * a->out.stride + column, n, sum);
}

static void embed_row(const void *args, int row)
{
    const nn_embed_args *a = args;
    for (long long k = 0; k < a->width; k += PIECE)
        embed_piece(a, row, k, (int)(a->width - k < PIECE ? a->width - k : PIECE));
}

static wt_status check_embed(const wt_embed_args *args, nn_embed_args *a)
{
    long long vocab, width, own;
    wt_status status = wt__nn_rows("embed: out", args->out, &a->out, &a->rows, &a->width);
    if (!status) status = wt__nn_rows("embed: table", args->table, &a->table, &vocab, &width);
    if (status) return status;
    const wt_array *ids = args->ids;
    if (!ids) return wt_fail(WT_ERR_BAD_ARG, "embed: ids are missing");
    if (width != a->width) return wt_fail(WT_ERR_BAD_ARG, "embed: out has rows of %lld, want %lld", a->width, width);
    if (args->bag && ids->rank < 1) return wt_fail(WT_ERR_BAD_ARG, "embed: a bag of rank 0, want 1 or more");
    a->bag = args->bag ? ids->shape[ids->rank - 1] : 1;
    a->vocab = vocab;
    a->n_places = args->out->rank > 1 ? args->out->shape[args->out->rank - 2] : 1;
    a->ids_type = (int)ids->dtype;
    status = wt__nn_dense("embed: ids", ids, WT_DTYPE_I32, WT_DTYPE_I64, a->rows * a->bag, (void **)&a->ids);
    if (!status && args->positions)
        status = wt__nn_rows("embed: positions", args->positions, &a->positions, &a->n_positions, &own);
    if (!status && args->positions && own != width)
        return wt_fail(WT_ERR_BAD_ARG, "embed: positions have rows of %lld, want %lld", own, width);
    if (status || !args->places) return status;
    a->places_type = (int)args->places->dtype;
    return wt__nn_dense("embed: places", args->places, WT_DTYPE_I32, WT_DTYPE_I64, a->rows, (void **)&a->places);
}

wt_status wt_nn_embed(wt_nn *nn, wt_stream *stream, const wt_embed_args *args)
{
    nn_embed_args a = {.scale = args->scale != 0 ? (float)args->scale : 1, .mean = args->mean};
    wt_status status = check_embed(args, &a);
    if (status || !a.rows || !a.width) return status;
    if (!nn->on_gpu) return wt_stream_run(stream, embed_row, &a, sizeof a, (int)a.rows);
    const wt_launch launch = {.grid = {(int)a.rows}, .block = {THREADS}};
    return wt__nn_launch(nn, NN_EMBED, stream, &launch, WT_ARG(a));
}

// ---- RoPE

/// A head's values, biased and turned.
static void turn(const nn_rope_args *a, const float *cosines, const float *sines, float *x)
{
    const int step = a->interleaved ? 2 : 1, apart = a->interleaved ? 1 : a->half;
    for (int k = 0; k < a->half; k++) {
        const float p = x[k * step], q = x[k * step + apart];
        x[k * step] = p * cosines[k] - q * sines[k];
        x[k * step + apart] = q * cosines[k] + p * sines[k];
    }
}

static void rope_token(const void *args, int t)
{
    const nn_rope_args *a = args;
    float cosines[MAX_HEAD / 2], sines[MAX_HEAD / 2], x[MAX_HEAD], bias[MAX_HEAD];
    for (int k = 0; a->positions && k < a->half; k++) {
        const float angle = (float)a->positions[t] * a->frequencies[k];
        cosines[k] = cosf(angle) * a->scale;
        sines[k] = sinf(angle) * a->scale;
    }
    for (int h = 0; h < a->heads + 2 * a->kv_heads; h++) {
        const int part = h < a->heads ? 0 : h < a->heads + a->kv_heads ? 1 : 2;
        const int own = part == 0 ? h : h - a->heads - (part - 1) * a->kv_heads;
        wt__nn_read(a->x.type, a->x.data, t * a->x.strides[0] + h * a->x.strides[1], a->d_head, x);
        if (a->bias.data) wt__nn_read(a->bias.type, a->bias.data, (long long)h * a->d_head, a->d_head, bias);
        for (int k = 0; a->bias.data && k < a->d_head; k++) x[k] += bias[k];
        if (a->positions && part < 2) turn(a, cosines, sines, x);
        const nn_strided *out = &a->out[part];
        wt__nn_write(out->type, out->data, t * out->strides[0] + own * out->strides[1], a->d_head, x);
    }
}

static wt_status check_turns(const char *what, const wt_array *positions, const wt_array *frequencies, double scale,
                             nn_rope_args *a)
{
    if (!positions && !frequencies) return WT_OK;
    if (!positions || !frequencies) return wt_fail(WT_ERR_BAD_ARG, "%s: positions and frequencies go together", what);
    const int64_t half = frequencies->rank == 1 ? frequencies->shape[0] : -1;
    if (half < 1 || 2 * half > a->d_head)
        return wt_fail(WT_ERR_BAD_ARG, "%s: %lld frequencies for heads of %d, want 1..%d", what, (long long)half,
                       a->d_head, a->d_head / 2);
    a->half = (int)half;
    a->scale = scale != 0 ? (float)scale : 1;
    wt_status status =
        wt__nn_dense("rope: positions", positions, WT_DTYPE_I32, WT_DTYPE_I32, a->tokens, (void **)&a->positions);
    return status ? status
                  : wt__nn_dense("rope: frequencies", frequencies, WT_DTYPE_F32, WT_DTYPE_F32, half,
                                 (void **)&a->frequencies);
}

static wt_status queue_rope(wt_nn *nn, wt_stream *stream, const nn_rope_args *a)
{
    if (a->d_head > MAX_HEAD || a->d_head < 1)
        return wt_fail(WT_ERR_BAD_ARG, "rope: heads of %d, want 1..%d", a->d_head, MAX_HEAD);
    if (!a->tokens || !a->heads) return WT_OK;
    if (!nn->on_gpu) return wt_stream_run(stream, rope_token, a, sizeof *a, a->tokens);
    const wt_launch launch = {.grid = {a->tokens}, .block = {THREADS}};
    return wt__nn_launch(nn, NN_ROPE, stream, &launch, WT_ARG(*a));
}

wt_status wt_nn_rope(wt_nn *nn, wt_stream *stream, const wt_rope_args *args)
{
    nn_rope_args a = {.interleaved = args->interleaved};
    wt_status status = wt__nn_strided("rope: x", args->x, 3, &a.x);
    if (!status) status = wt__nn_strided("rope: out", args->out, 3, &a.out[0]);
    if (!status) status = wt__nn_shape("rope: out", args->out, 3, args->x->shape);
    if (status) return status;
    if (!args->positions) return wt_fail(WT_ERR_BAD_ARG, "rope: positions are missing");
    a.tokens = (int)args->x->shape[0];
    a.heads = (int)args->x->shape[1];
    a.d_head = (int)args->x->shape[2];
    status = check_turns("rope", args->positions, args->frequencies, args->scale, &a);
    return status ? status : queue_rope(nn, stream, &a);
}

wt_status wt_nn_qkv(wt_nn *nn, wt_stream *stream, const wt_qkv_args *args)
{
    nn_rope_args a = {.interleaved = args->interleaved};
    const wt_array *const out[] = {args->q, args->k, args->v};
    static const char *const names[] = {"qkv: q", "qkv: k", "qkv: v"};
    nn_rows x;
    long long tokens, width;
    wt_status status = wt__nn_rows("qkv: x", args->x, &x, &tokens, &width);
    for (int k = 0; k < 3 && !status; k++) status = wt__nn_strided(names[k], out[k], 3, &a.out[k]);
    if (status) return status;
    a.tokens = (int)tokens;
    a.heads = (int)args->q->shape[1];
    a.kv_heads = (int)args->k->shape[1];
    a.d_head = (int)args->q->shape[2];
    for (int k = 0; k < 3 && !status; k++)
        status = wt__nn_shape(names[k], out[k], 3, (int64_t[]){tokens, k ? a.kv_heads : a.heads, a.d_head});
    if (status) return status;
    if (width != (long long)(a.heads + 2 * a.kv_heads) * a.d_head)
        return wt_fail(WT_ERR_BAD_ARG, "qkv: x has rows of %lld, want (%d + 2 * %d) * %d", width, a.heads, a.kv_heads,
                       a.d_head);
    a.x = (nn_strided){.data = x.data, .strides = {x.stride, a.d_head}, .type = x.type};
    status = wt__nn_vector("qkv: bias", args->bias, width, &a.bias);
    if (!status) status = check_turns("qkv", args->positions, args->frequencies, args->scale, &a);
    return status ? status : queue_rope(nn, stream, &a);
}
