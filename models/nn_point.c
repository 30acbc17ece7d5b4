// Bias, activation, gate and residual in one pass: kernels/nn/nn_point.cu on a GPU, pieces of rows on the CPU.
#include "nn_internal.h"

enum { PIECE = 1024, THREADS = 256, BLOCKS_AN_SM = 32, PIECES_AN_ITEM = 16 };

// ---- the CPU

WT_CLONES static void add(float *x, const float *y, int n)
{
    for (int k = 0; k < n; k++) x[k] += y[k];
}

WT_CLONES static void add_one(float *x, float y, int n)
{
    for (int k = 0; k < n; k++) x[k] += y;
}

WT_CLONES static void multiply(float *x, const float *y, int n)
{
    for (int k = 0; k < n; k++) x[k] *= y[k];
}

static void piece(const nn_point_args *a, long long row, long long column, int n)
{
    float x[PIECE], other[PIECE];
    const long long channel = a->row_channels ? row % a->row_channels : column;
    wt__nn_read(a->x.type, a->x.data, row * a->x.stride + column, n, x);
    if (a->bias.data && a->row_channels) add_one(x, nn_get(a->bias.type, a->bias.data, channel), n);
    if (a->bias.data && !a->row_channels) {
        wt__nn_read(a->bias.type, a->bias.data, column, n, other);
        add(x, other, n);
    }
    wt__nn_activate(&a->after, n, x, channel, a->row_channels != 0);
    if (a->up.data) {
        wt__nn_read(a->up.type, a->up.data, row * a->up.stride + column, n, other);
        multiply(x, other, n);
    }
    if (a->residual.data) {
        wt__nn_read(a->residual.type, a->residual.data, row * a->residual.stride + column, n, other);
        add(x, other, n);
    }
    wt__nn_write(a->out.type, a->out.data, row * a->out.stride + column, n, x);
}

static long long pieces_of(const nn_point_args *a) { return (a->width + PIECE - 1) / PIECE; }

static void item(const void *args, int index)
{
    const nn_point_args *a = args;
    const long long each = pieces_of(a);
    for (long long k = (long long)index * PIECES_AN_ITEM; k < (long long)(index + 1) * PIECES_AN_ITEM; k++) {
        const long long row = k / each, column = k % each * PIECE;
        if (row >= a->rows) return;
        piece(a, row, column, (int)(a->width - column < PIECE ? a->width - column : PIECE));
    }
}

// ---- both

static wt_status queue(wt_nn *nn, wt_stream *stream, nn_point_args *a)
{
    if (!a->rows || !a->width) return WT_OK;
    if (!nn->on_gpu)
        return wt_stream_run(stream, item, a, sizeof *a,
                             (int)((a->rows * pieces_of(a) + PIECES_AN_ITEM - 1) / PIECES_AN_ITEM));
    const nn_rows *const rows[] = {&a->x, &a->up, &a->residual, &a->out};
    const nn_rows bias = {.data = a->row_channels ? NULL : (void *)a->bias.data, .type = a->bias.type};
    a->access = wt__nn_access(rows, 4, (const nn_rows *const[]){&bias}, 1, a->width);
    const long long n = a->rows * a->width / wt__nn_pack(a->access);
    const wt_launch launch = {
        .grid = {wt__nn_blocks(nn, n, THREADS, BLOCKS_AN_SM)}, .block = {THREADS}, .overlap = true};
    return wt__nn_launch(nn, NN_POINT, stream, &launch, WT_ARG(*a));
}

wt_status wt_nn_pointwise(wt_nn *nn, wt_stream *stream, const wt_pointwise_args *args)
{
    nn_point_args a = {0};
    wt_status status = wt__nn_rows("pointwise: x", args->x, &a.x, &a.rows, &a.width);
    if (status) return status;
    const wt_array *x = args->x;
    if (args->signals && x->rank < 2) return wt_fail(WT_ERR_BAD_ARG, "pointwise: signals of rank 1, want 2 or more");
    const int64_t channels = args->signals ? x->shape[x->rank - 2] : a.width;
    a.row_channels = args->signals ? (int)channels : 0;
    if (!args->out) return wt_fail(WT_ERR_BAD_ARG, "pointwise: out is missing");
    status = wt__nn_rows_like("pointwise: out", args->out, x, &a.out);
    if (!status) status = wt__nn_rows_like("pointwise: up", args->up, x, &a.up);
    if (!status) status = wt__nn_rows_like("pointwise: residual", args->residual, x, &a.residual);
    if (!status) status = wt__nn_vector("pointwise: bias", args->bias, channels, &a.bias);
    if (!status) status = wt__nn_after("pointwise", &args->activation, channels, &a.after);
    return status ? status : queue(nn, stream, &a);
}
