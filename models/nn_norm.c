// Norms: kernels/nn/nn_norm.cu on a GPU; on the CPU pieces of rows, sums of a piece in float and of pieces in double.
#include "nn_internal.h"

#include <math.h>

enum { PIECE = 1024, ROWS_A_BLOCK = 4, THREADS = 256, WIDE = 1024, POSITIONS = 32, ITEM_ELEMENTS = 16384 };
enum { WARP_WIDTH = 1280, BLOCK_WIDTH = 4096 }; ///< largest rows of those kernels
enum { FEW_ROWS = 512, FEW_WIDTH = 512 };       ///< few rows have more threads each

// ---- the CPU

WT_CLONES static float sum_of(const float *x, int n)
{
    float lanes[16] = {0}, sum = 0;
    int k = 0;
    for (; k + 16 <= n; k += 16)
        for (int i = 0; i < 16; i++) lanes[i] += x[k + i];
    for (; k < n; k++) sum += x[k];
    for (int i = 0; i < 16; i++) sum += lanes[i];
    return sum;
}

WT_CLONES static float squares_of(const float *x, float mean, int n)
{
    float lanes[16] = {0}, sum = 0;
    int k = 0;
    for (; k + 16 <= n; k += 16)
        for (int i = 0; i < 16; i++) lanes[i] += (x[k + i] - mean) * (x[k + i] - mean);
    for (; k < n; k++) sum += (x[k] - mean) * (x[k] - mean);
    for (int i = 0; i < 16; i++) sum += lanes[i];
    return sum;
}

/// A piece of x + residual, as it is kept.
static void source(const nn_norm_args *a, long long row, long long k, int n, float *x)
{
    float other[PIECE];
    wt__nn_read(a->x.type, a->x.data, row * a->x.stride + k, n, x);
    if (!a->residual.data) return;
    wt__nn_read(a->residual.type, a->residual.data, row * a->residual.stride + k, n, other);
    for (int i = 0; i < n; i++) x[i] += other[i];
    if (!a->sum.data) return;
    wt__nn_write(a->sum.type, a->sum.data, row * a->sum.stride + k, n, x);
    wt__nn_read(a->sum.type, a->sum.data, row * a->sum.stride + k, n, x);
}

WT_CLONES static void scale_columns(const nn_norm_args *a, float *x, int n, float mean, float scale,
                                    const float *weight, const float *bias)
{
    const float one = a->one_plus ? 1 : 0;
    for (int k = 0; k < n; k++) x[k] = (x[k] - mean) * scale * (one + weight[k]) + bias[k];
}

/// Columns from k on, at most n, that belong to one channel.
static int run_of(const nn_norm_args *a, long long k, int n)
{
    const long long left = a->inner - k % a->inner;
    return left < n ? (int)left : n;
}

/// The piece's weights or biases, a column or a channel each.
static void columns_of(const nn_norm_args *a, const nn_rows *r, long long row, long long k, int n, float otherwise,
                       float *out)
{
    const long long at = row / a->rows_a_weight * r->stride + row % a->groups * a->channels;
    if (r->data && a->inner == 1) {
        wt__nn_read(r->type, r->data, at + k, n, out);
        return;
    }
    for (int i = 0, some; i < n; i += some) { // the run of one channel
        some = run_of(a, k + i, n - i);
        const float x = r->data ? nn_get(r->type, r->data, at + (k + i) / a->inner) : otherwise;
        for (int j = 0; j < some; j++) out[i + j] = x;
    }
}

/// The activation of a piece, whose channels may change within it.
static void activate(const nn_norm_args *a, long long row, long long k, int n, float *x)
{
    const long long first = row % a->groups * a->channels;
    if (a->inner == 1) {
        wt__nn_activate(&a->after, n, x, first + k, false);
        return;
    }
    for (int i = 0, some; i < n; i += some) {
        some = run_of(a, k + i, n - i);
        wt__nn_activate(&a->after, some, x + i, first + (k + i) / a->inner, true);
    }
}

static int piece_at(const nn_norm_args *a, long long k) { return (int)(a->width - k < PIECE ? a->width - k : PIECE); }

static void norm_row(const nn_norm_args *a, long long row)
{
    float x[PIECE], weight[PIECE], bias[PIECE];
    double sum = 0, squares = 0;
    nn_norm_args own = *a;
    for (long long k = 0; k < a->width && (a->centre || a->sum.data); k += PIECE) {
        source(a, row, k, piece_at(a, k), x);
        sum += (double)sum_of(x, piece_at(a, k));
    }
    const float mean = a->centre ? (float)(sum / (double)a->width) : 0;
    if (a->sum.data && a->residual.data) { // it is read now, and nothing is added
        own.x = a->sum;
        own.residual.data = NULL;
    }
    for (long long k = 0; k < a->width; k += PIECE) {
        source(&own, row, k, piece_at(a, k), x);
        squares += (double)squares_of(x, mean, piece_at(a, k));
    }
    const double eps = (double)a->eps;
    const double scale = a->l2 ? 1 / fmax(sqrt(squares), eps) : 1 / sqrt(squares / (double)a->width + eps);
    for (long long k = 0; k < a->width; k += PIECE) {
        const int n = piece_at(a, k);
        if (k || a->width > PIECE) source(&own, row, k, n, x);
        columns_of(a, &a->weight, row, k, n, a->one_plus ? 0 : 1, weight);
        columns_of(a, &a->bias, row, k, n, 0, bias);
        scale_columns(a, x, n, mean, (float)scale, weight, bias);
        activate(a, row, k, n, x);
        wt__nn_write(a->out.type, a->out.data, row * a->out.stride + k, n, x);
    }
}

static long long rows_an_item(const nn_norm_args *a) { return ITEM_ELEMENTS / (a->width + 1) + 1; }

static void rows_item(const void *args, int index)
{
    const nn_norm_args *a = args;
    const long long each = rows_an_item(a), first = index * each, end = first + each < a->rows ? first + each : a->rows;
    for (long long row = first; row < end; row++) norm_row(a, row);
}

/// 32 positions of one n, over the channels.
static void positions_item(const void *args, int index)
{
    const nn_norm_args *a = args;
    const long long pieces = (a->inner + POSITIONS - 1) / POSITIONS, n = index / pieces;
    const long long at = index % pieces * POSITIONS, which = n / a->rows_a_weight;
    const int count = (int)(a->inner - at < POSITIONS ? a->inner - at : POSITIONS);
    double sum[POSITIONS] = {0}, squares[POSITIONS] = {0};
    float x[POSITIONS], mean[POSITIONS], scale[POSITIONS];
    for (long long c = 0; c < a->width; c++) {
        wt__nn_read(a->x.type, a->x.data, n * a->x.stride + c * a->inner + at, count, x);
        for (int i = 0; i < count; i++) sum[i] += (double)x[i];
    }
    for (int i = 0; i < count; i++) mean[i] = (float)(sum[i] / (double)a->width);
    for (long long c = 0; c < a->width; c++) {
        wt__nn_read(a->x.type, a->x.data, n * a->x.stride + c * a->inner + at, count, x);
        for (int i = 0; i < count; i++) squares[i] += (double)(x[i] - mean[i]) * (double)(x[i] - mean[i]);
    }
    for (int i = 0; i < count; i++) scale[i] = (float)(1 / sqrt(squares[i] / (double)a->width + (double)a->eps));
    for (long long c = 0; c < a->width; c++) {
        const float w = a->weight.data ? nn_get(a->weight.type, a->weight.data, which * a->weight.stride + c) : 1;
        const float b = a->bias.data ? nn_get(a->bias.type, a->bias.data, which * a->bias.stride + c) : 0;
        const float factor = a->one_plus && a->weight.data ? 1 + w : w;
        wt__nn_read(a->x.type, a->x.data, n * a->x.stride + c * a->inner + at, count, x);
        for (int i = 0; i < count; i++) x[i] = (x[i] - mean[i]) * scale[i] * factor + b;
        wt__nn_activate(&a->after, count, x, c, true);
        wt__nn_write(a->out.type, a->out.data, n * a->out.stride + c * a->inner + at, count, x);
    }
}

// ---- both

static wt_status queue_rows(wt_nn *nn, wt_stream *stream, nn_norm_args *a)
{
    if (!nn->on_gpu)
        return wt_stream_run(stream, rows_item, a, sizeof *a, (int)((a->rows + rows_an_item(a) - 1) / rows_an_item(a)));
    const nn_rows *const rows[] = {&a->x, &a->residual, &a->sum, &a->out};
    const nn_rows *const factors[] = {&a->weight, &a->bias};
    // a pack has one channel of signals, or as many factors as elements
    a->access = wt__nn_access(rows, 4, factors, a->inner > 1 ? 0 : 2,
                              a->inner > 1  ? a->inner
                              : a->channels ? a->channels
                                            : a->width);
    const bool kept = a->access >= NN_PACKS_F32 && a->width <= BLOCK_WIDTH; // in registers
    const bool warp = a->width <= (a->rows < FEW_ROWS ? FEW_WIDTH : WARP_WIDTH);
    const long long blocks = warp ? (a->rows + ROWS_A_BLOCK - 1) / ROWS_A_BLOCK : a->rows;
    const wt_launch launch = {.grid = {(int)blocks},
                              .block = {warp   ? 32 * ROWS_A_BLOCK
                                        : kept ? THREADS
                                               : WIDE},
                              .overlap = true};
    const nn_kernel kernel = kept ? (warp ? NN_NORM_WARP : NN_NORM_BLOCK) : warp ? NN_NORM_NARROW : NN_NORM_WIDE;
    return wt__nn_launch(nn, kernel, stream, &launch, WT_ARG(*a));
}

static wt_status queue_positions(wt_nn *nn, wt_stream *stream, nn_norm_args *a)
{
    const int pieces = (int)((a->inner + POSITIONS - 1) / POSITIONS);
    if (!nn->on_gpu) return wt_stream_run(stream, positions_item, a, sizeof *a, pieces * (int)a->rows);
    const wt_launch launch = {.grid = {pieces, (int)a->rows}, .block = {THREADS}, .overlap = true};
    return wt__nn_launch(nn, NN_NORM_CHANNELS, stream, &launch, WT_ARG(*a));
}

/// Factors or biases: [channels], or [n][channels] where n divides the rows.
static wt_status factors(const char *what, const wt_array *w, long long channels, long long n, nn_rows *rows,
                         int *rows_a_weight)
{
    long long own, width;
    if (!w) return WT_OK;
    wt_status status = wt__nn_rows(what, w, rows, &own, &width);
    if (status) return status;
    const bool fits = w->rank <= 2 && width == channels && own >= 1 && n % own == 0;
    if (!fits || (own > 1 && *rows_a_weight && *rows_a_weight != n / own)) {
        char text[96];
        return wt_fail(WT_ERR_BAD_ARG, "%s is %s, want [%lld], or a row of that for a part of %lld", what,
                       wt_shape_describe(w->rank, w->shape, text), channels, n);
    }
    if (own == 1)
        rows->stride = 0;
    else
        *rows_a_weight = (int)(n / own);
    return WT_OK;
}

/// [n][channels][length] as rows: of groups, or of n with the channels across.
static wt_status as_signals(const wt_norm_args *args, nn_norm_args *a)
{
    const wt_array *x = args->x;
    if (x->rank != 3) return wt_fail(WT_ERR_BAD_ARG, "norm: x has rank %d, want [n][channels][length]", x->rank);
    const long long channels = x->shape[1], length = x->shape[2];
    const long long groups = args->kind == WT_NORM_CHANNELS ? 1 : args->groups ? args->groups : channels;
    if (groups < 1 || channels % groups)
        return wt_fail(WT_ERR_BAD_ARG, "norm: %lld channels in %lld groups, want a divisor", channels, groups);
    const wt_array *all[] = {x, args->out, args->residual, args->sum};
    for (int k = 0; k < 4; k++)
        if (all[k] && ((all[k]->shape[1] > 1 && all[k]->strides[1] != length) ||
                       (all[k]->shape[0] > 1 && all[k]->strides[0] != channels * length)))
            return wt_fail(WT_ERR_BAD_ARG, "norm: an array of signals has gaps, want it dense");
    a->groups = (int)groups;
    a->channels = (int)(channels / groups);
    a->rows = x->shape[0] * groups;
    a->inner = length;
    a->width = args->kind == WT_NORM_CHANNELS ? channels : a->channels * length;
    for (nn_rows *r[] = {&a->x, &a->out, &a->residual, &a->sum}, **p = r; p < r + 4; p++)
        (*p)->stride = a->channels * length;
    return WT_OK;
}

static wt_status check(const wt_norm_args *args, nn_norm_args *a)
{
    wt_status status = wt__nn_rows("norm: x", args->x, &a->x, &a->rows, &a->width);
    if (status) return status;
    if (!args->out) return wt_fail(WT_ERR_BAD_ARG, "norm: out is missing");
    if (args->sum && !args->residual) return wt_fail(WT_ERR_BAD_ARG, "norm: a sum without a residual");
    if (args->residual && args->kind == WT_NORM_CHANNELS)
        return wt_fail(WT_ERR_UNSUPPORTED, "norm: a residual of channels, want it added before");
    status = wt__nn_rows_like("norm: out", args->out, args->x, &a->out);
    if (!status) status = wt__nn_rows_like("norm: residual", args->residual, args->x, &a->residual);
    if (!status) status = wt__nn_rows_like("norm: sum", args->sum, args->x, &a->sum);
    const bool signals = args->kind == WT_NORM_GROUP || args->kind == WT_NORM_CHANNELS;
    if (!status && signals) status = as_signals(args, a);
    if (status) return status;
    const long long channels = signals ? args->x->shape[1] : a->width, n = signals ? args->x->shape[0] : a->rows;
    int each = 0;
    status = factors("norm: weight", args->weight, channels, n, &a->weight, &each);
    if (!status) status = factors("norm: bias", args->bias, channels, n, &a->bias, &each);
    a->rows_a_weight = (each ? each : 1) * (args->kind == WT_NORM_GROUP ? a->groups : 1);
    return status ? status : wt__nn_after("norm", &args->activation, channels, &a->after);
}

wt_status wt_nn_norm(wt_nn *nn, wt_stream *stream, const wt_norm_args *args)
{
    if ((unsigned)args->kind > WT_NORM_CHANNELS)
        return wt_fail(WT_ERR_BAD_ARG, "norm: kind %d, want 0..%d", (int)args->kind, WT_NORM_CHANNELS);
    nn_norm_args a = {.inner = 1,
                      .groups = 1,
                      .eps = args->eps != 0 ? (float)args->eps : 1e-5f,
                      .centre = args->kind != WT_NORM_RMS && args->kind != WT_NORM_L2,
                      .l2 = args->kind == WT_NORM_L2,
                      .one_plus = args->one_plus};
    wt_status status = check(args, &a);
    if (status || !a.rows || !a.width || !a.inner) return status;
    return args->kind == WT_NORM_CHANNELS ? queue_positions(nn, stream, &a) : queue_rows(nn, stream, &a);
}
