// LSTM: the input's products by wt_matmul, then the steps: kernels/nn/nn_lstm.cu on a GPU; on the CPU a direction of a
// row of the batch each, four rows of weights with h at a time.
#include "nn_internal.h"

#include <limits.h>

enum { CLUSTER = 8, THREADS = 512, KEPT = 16, SET = 32, LANES = 16 };

// ---- the CPU

/// g[k] += row unit of gate k times h.
WT_INLINE void multiply_unit(int type, const void *w, int hidden, int unit, const float *h, float *g)
{
    typedef float lanes __attribute__((vector_size(4 * LANES)));
    const long long row[4] = {(long long)unit * hidden, ((long long)hidden + unit) * hidden,
                              ((long long)2 * hidden + unit) * hidden, ((long long)3 * hidden + unit) * hidden};
    lanes sums[4] = {{0}}, x, y;
    float parts[LANES];
    int k = 0;
    for (; k + LANES <= hidden; k += LANES) {
        memcpy(&x, h + k, sizeof x);
        for (int r = 0; r < 4; r++) {
            for (int i = 0; i < LANES; i++) parts[i] = nn_get(type, w, row[r] + k + i);
            memcpy(&y, parts, sizeof y);
            sums[r] += x * y;
        }
    }
    for (int r = 0; r < 4; r++) {
        memcpy(parts, &sums[r], sizeof parts);
        for (int i = 0; i < LANES; i++) g[r] += parts[i];
        for (int i = k; i < hidden; i++) g[r] += h[i] * nn_get(type, w, row[r] + i);
    }
}

#define MULTIPLY(name, type)                                                                                           \
    WT_CLONES static void multiply_##name(const void *w, int hidden, int unit, const float *h, float *g)               \
    {                                                                                                                  \
        multiply_unit(type, w, hidden, unit, h, g);                                                                    \
    }
MULTIPLY(f32, NN_F32)
MULTIPLY(f16, NN_F16)
MULTIPLY(bf16, NN_BF16)
#undef MULTIPLY

static void step_of(const nn_lstm_args *a, int d, int b, long long t, float *h, float *c, float *next)
{
    static void (*const multiply[])(const void *, int, int, const float *, float *) = {
        [NN_F32] = multiply_f32, [NN_F16] = multiply_f16, [NN_BF16] = multiply_bf16};
    const float *gates = a->gates + t * a->gate_strides[0] + b * a->gate_strides[1] + d * 4LL * a->hidden;
    for (int unit = 0; unit < a->hidden; unit++) {
        float g[4];
        for (int k = 0; k < 4; k++) {
            const int at = k * a->hidden + unit;
            g[k] = gates[at] + nn_get_or(&a->input_bias[d], at, 0) + nn_get_or(&a->recurrent_bias[d], at, 0);
        }
        multiply[a->recurrent[d].type](a->recurrent[d].data, a->hidden, unit, h, g);
        c[unit] = nn_activate(NN_SIGMOID, g[1], 0) * c[unit] + nn_activate(NN_SIGMOID, g[0], 0) * nn_tanh(g[2]);
        next[unit] = nn_activate(NN_SIGMOID, g[3], 0) * nn_tanh(c[unit]);
    }
    memcpy(h, next, sizeof(float) * (size_t)a->hidden);
}

static void sequence(const void *args, int item)
{
    const nn_lstm_args *a = args;
    const int d = item / a->batch, b = item % a->batch, n = a->hidden;
    const long long at = ((long long)d * a->batch + b) * n;
    float *h = a->states + 3 * at, *c = h + n, *next = c + n;
    for (int k = 0; k < n; k++) h[k] = nn_get_or(&a->h0, at + k, 0);
    for (int k = 0; k < n; k++) c[k] = nn_get_or(&a->c0, at + k, 0);
    for (int step = 0; step < a->steps; step++) {
        const long long t = d ? a->steps - 1 - step : step;
        const long long out = t * a->out.strides[0] + b * a->out.strides[1] + (long long)d * n;
        const bool runs = !a->lengths || t < a->lengths[b];
        if (runs) step_of(a, d, b, t, h, c, next);
        if (runs)
            wt__nn_write(a->out.type, a->out.data, out, n, h);
        else
            for (int k = 0; k < n; k++) nn_put(a->out.type, a->out.data, out + k, 0);
    }
    if (a->hn.data) wt__nn_write(a->hn.type, a->hn.data, at, n, h);
    if (a->cn.data) wt__nn_write(a->cn.type, a->cn.data, at, n, c);
}

// ---- the GPU

static int round_up(int n, int to) { return (n + to - 1) / to * to; }

/// Columns of h in shared memory, in floats a row of the batch.
static int padded_of(const nn_lstm_args *a)
{
    const int lanes = THREADS / 4 / (a->units < SET ? a->units : SET);
    return round_up(a->hidden, 4 * lanes);
}

/// Without the weights.
static size_t shared_bytes(const nn_lstm_args *a, int batch)
{
    return sizeof(float) * (size_t)batch * (size_t)(2 * padded_of(a) + 5 * a->units);
}

/// Units of a block: as many as leave all weights in registers, more where there are not so many SMs.
static void spread(const wt_nn *nn, bool cluster, nn_lstm_args *a)
{
    const int most = cluster ? CLUSTER : nn->n_sms / a->directions;
    a->units = cluster ? 4 : SET;
    while (!cluster && a->units > 4 && (long long)a->units * a->hidden > THREADS * KEPT) a->units /= 2;
    while (a->units < SET && (a->hidden + a->units - 1) / a->units > most) a->units *= 2;
    while ((a->hidden + a->units - 1) / a->units > most) a->units += SET;
    a->blocks = cluster ? CLUSTER : (a->hidden + a->units - 1) / a->units;
}

/// Elements of arrays begin at another row of the batch.
static const void *later(const nn_vector *v, long long elements)
{
    return v->data ? (const char *)v->data + elements * (long long)wt_dtype_bytes((wt_dtype)v->type, 1) : NULL;
}

static wt_status launch_batch(const wt_nn *nn, wt_stream *stream, const nn_lstm_args *whole, int first, int n,
                              bool cluster)
{
    nn_lstm_args a = *whole;
    const long long at = (long long)first * a.hidden;
    const size_t own = shared_bytes(&a, n), all = wt_device_get_info(nn->device)->shared_bytes;
    const int lanes = THREADS / 4 / (a.units < SET ? a.units : SET), fours = (a.hidden + 4 * lanes - 1) / (4 * lanes);
    const int wanted = (a.units + SET - 1) / SET * fours - (fours < KEPT ? fours : KEPT);
    const int room = (int)((all - own) / (4 * sizeof(float) * THREADS));
    a.kept = wanted < room ? wanted : room;
    a.batch = n;
    a.gates += first * a.gate_strides[1];
    a.h0.data = later(&a.h0, at);
    a.c0.data = later(&a.c0, at);
    a.hn.data = (void *)later(&(nn_vector){a.hn.data, a.hn.type}, at);
    a.cn.data = (void *)later(&(nn_vector){a.cn.data, a.cn.type}, at);
    a.out.data = (void *)later(&(nn_vector){a.out.data, a.out.type}, first * a.out.strides[1]);
    if (a.lengths) a.lengths += first;
    const wt_launch launch = {.grid = {a.blocks * a.directions},
                              .block = {THREADS},
                              .shared_bytes = own + 4 * sizeof(float) * THREADS * (size_t)a.kept,
                              .cooperative = !cluster};
    return wt__nn_launch(nn, cluster ? NN_LSTM_CLUSTER : NN_LSTM_GRID, stream, &launch, WT_ARG(a));
}

static wt_status queue_cuda(const wt_nn *nn, wt_stream *stream, nn_lstm_args *a)
{
    const wt_device_info *info = wt_device_get_info(nn->device);
    const bool cluster = nn->clusters && a->hidden <= CLUSTER * SET;
    wt_status status = WT_OK;
    a->arrived = (int *)wt_buffer_address(nn->counters);
    if (a->directions > nn->n_sms)
        return wt_fail(WT_ERR_UNSUPPORTED, "lstm: %d directions on %d SMs", a->directions, nn->n_sms);
    spread(nn, cluster, a);
    int each = (int)((info->shared_bytes - 1024) / shared_bytes(a, 1));
    if (each < 1)
        return wt_fail(WT_ERR_UNSUPPORTED, "lstm: %d hidden units on %d SMs: no room for their state in %zu bytes",
                       a->hidden, nn->n_sms, info->shared_bytes);
    for (int first = 0; first < a->all && !status; first += each)
        status = launch_batch(nn, stream, a, first, a->all - first < each ? a->all - first : each, cluster);
    return status;
}

// ---- both

static int directions_of(const wt_lstm_args *args) { return args->directions ? args->directions : 1; }

size_t wt_lstm_workspace_bytes(const wt_lstm_args *args)
{
    const wt_array *x = args->x, *w = args->weights[0].recurrent;
    const size_t rows = (size_t)directions_of(args) * (size_t)x->shape[1] * (size_t)w->shape[1];
    return sizeof(float) * rows * (4 * (size_t)x->shape[0] + 3);
}

/// One direction's weights.
static wt_status check_weights(const wt_lstm_args *args, int d, int inputs, nn_lstm_args *a, wt_matmul_part *product)
{
    const wt_array *w = args->weights[d].input, *u = args->weights[d].recurrent;
    const wt_array *const biases[] = {args->weights[d].input_bias, args->weights[d].recurrent_bias};
    nn_rows rows;
    long long n, width;
    wt_status status = wt__nn_rows("lstm: input weights", w, &rows, &n, &width);
    if (!status) status = wt__nn_shape("lstm: input weights", w, 2, (int64_t[]){4LL * a->hidden, inputs});
    if (!status && w->dtype != args->x->dtype)
        return wt_fail(WT_ERR_UNSUPPORTED, "lstm: input weights are of type %s, want %s as x", wt_dtype_name(w->dtype),
                       wt_dtype_name(args->x->dtype));
    if (!status && rows.stride != width)
        return wt_fail(WT_ERR_BAD_ARG, "lstm: input weights have gaps, want them dense");
    product->weight =
        (wt_matrix){.data = (uintptr_t)rows.data, .rows = 4 * a->hidden, .columns = inputs, .dtype = w ? w->dtype : 0};
    if (!status) status = wt__nn_rows("lstm: recurrent weights", u, &rows, &n, &width);
    if (!status) status = wt__nn_shape("lstm: recurrent weights", u, 2, (int64_t[]){4LL * a->hidden, a->hidden});
    if (!status && rows.stride != width)
        return wt_fail(WT_ERR_BAD_ARG, "lstm: recurrent weights have gaps, want them dense");
    a->recurrent[d] = (nn_vector){.data = rows.data, .type = rows.type};
    if (!status) status = wt__nn_vector("lstm: input bias", biases[0], 4LL * a->hidden, &a->input_bias[d]);
    return status ? status : wt__nn_vector("lstm: recurrent bias", biases[1], 4LL * a->hidden, &a->recurrent_bias[d]);
}

/// [directions][batch][hidden], dense.
static wt_status check_state(const char *what, const wt_array *s, const nn_lstm_args *a, nn_rows *rows)
{
    long long n, width;
    if (!s) return WT_OK;
    wt_status status = wt__nn_rows(what, s, rows, &n, &width);
    if (!status) status = wt__nn_shape(what, s, 3, (int64_t[]){a->directions, a->batch, a->hidden});
    if (!status && rows->stride != width && n > 1) status = wt_fail(WT_ERR_BAD_ARG, "%s has gaps, want it dense", what);
    return status;
}

static wt_status check_states(const wt_lstm_args *args, nn_lstm_args *a)
{
    nn_rows h0 = {0}, c0 = {0};
    wt_status status = check_state("lstm: h0", args->h0, a, &h0);
    if (!status) status = check_state("lstm: c0", args->c0, a, &c0);
    if (!status) status = check_state("lstm: hn", args->hn, a, &a->hn);
    if (!status) status = check_state("lstm: cn", args->cn, a, &a->cn);
    a->h0 = (nn_vector){.data = h0.data, .type = h0.type};
    a->c0 = (nn_vector){.data = c0.data, .type = c0.type};
    if (status) return status;
    return wt__nn_dense("lstm: lengths", args->lengths, WT_DTYPE_I32, WT_DTYPE_I32, a->batch, (void **)&a->lengths);
}

/// The products' rows are the steps and batch as they lie in memory.
static wt_status check_order(const nn_strided *x, nn_lstm_args *a, wt_matmul_args *product)
{
    const long long wide = 4LL * a->directions * a->hidden, *s = x->strides;
    const bool by_step = a->batch == 1 || a->steps == 1 || s[0] == a->batch * s[1];
    if (!by_step && s[1] != a->steps * s[0])
        return wt_fail(WT_ERR_BAD_ARG, "lstm: x has strides %lld and %lld, want its rows one after the other", s[0],
                       s[1]);
    product->x_stride = by_step ? (a->batch == 1 ? s[0] : s[1]) : s[0];
    if (a->batch == 1 && a->steps == 1) product->x_stride = 0;
    a->gate_strides[0] = by_step ? a->batch * wide : wide;
    a->gate_strides[1] = by_step ? wide : a->steps * wide;
    return WT_OK;
}

static wt_status check(const wt_nn *nn, const wt_lstm_args *args, nn_lstm_args *a, wt_matmul_args *product)
{
    nn_strided x = {0};
    wt_status status = wt__nn_strided("lstm: x", args->x, 3, &x);
    if (!status) status = wt__nn_strided("lstm: out", args->out, 3, &a->out);
    if (status) return status;
    if (!nn->matmul) return wt_fail(WT_ERR_BAD_ARG, "lstm: made without a matmul, want one in wt_nn_config");
    const wt_array *u = args->weights[0].recurrent;
    if (directions_of(args) > 2 || directions_of(args) < 1 || !u || u->rank != 2 || u->shape[1] < 1 ||
        u->shape[1] > INT_MAX / 16)
        return wt_fail(WT_ERR_BAD_ARG, "lstm: %d directions, want 1 or 2, and recurrent weights [4 hidden][hidden]",
                       directions_of(args));
    a->directions = directions_of(args);
    a->steps = (int)args->x->shape[0];
    a->batch = a->all = (int)args->x->shape[1];
    a->hidden = (int)u->shape[1];
    status =
        wt__nn_shape("lstm: out", args->out, 3, (int64_t[]){a->steps, a->batch, (int64_t)a->directions * a->hidden});
    if (!status) status = check_states(args, a);
    if (!status) status = check_order(&x, a, product);
    if (!args->workspace || args->workspace % 16)
        return wt_fail(WT_ERR_BAD_ARG, "lstm: a workspace at %#llx, want wt_lstm_workspace_bytes, aligned to 16",
                       (unsigned long long)args->workspace);
    a->gates = (const float *)args->workspace;
    a->states = (float *)args->workspace + 4LL * a->directions * a->hidden * a->steps * a->batch;
    for (int d = 0; d < a->directions && !status; d++) {
        status = check_weights(args, d, (int)args->x->shape[2], a, &product->parts[d]);
        product->parts[d].y = args->workspace + sizeof(float) * 4 * (size_t)d * (size_t)a->hidden;
        product->parts[d].y_stride = 4LL * a->directions * a->hidden;
    }
    product->n_parts = a->directions;
    product->x = (uintptr_t)x.data;
    product->x_dtype = args->x->dtype;
    product->y_dtype = WT_DTYPE_F32;
    product->m = a->steps * a->batch;
    return status;
}

wt_status wt_nn_lstm_prepare(wt_nn *nn, const wt_lstm_args *args)
{
    nn_lstm_args a = {0};
    wt_matmul_args product = {0};
    wt_status status = check(nn, args, &a, &product);
    return status ? status : wt_matmul_prepare(nn->matmul, &product);
}

wt_status wt_nn_lstm(wt_nn *nn, wt_stream *stream, const wt_lstm_args *args)
{
    nn_lstm_args a = {0};
    wt_matmul_args product = {0};
    wt_status status = check(nn, args, &a, &product);
    if (status || !product.m) return status;
    status = wt_matmul_enqueue(nn->matmul, stream, &product);
    if (status) return status;
    if (nn->on_gpu) return queue_cuda(nn, stream, &a);
    return wt_stream_run(stream, sequence, &a, sizeof a, a.directions * a.batch);
}
