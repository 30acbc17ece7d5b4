// Operations of neural networks: the handle, and what all of them check and share.
#include "nn_internal.h"

#include <assert.h>
#include <stdlib.h>

static_assert(WT_DTYPE_F32 == NN_F32 && WT_DTYPE_F16 == NN_F16 && WT_DTYPE_BF16 == NN_BF16 && WT_DTYPE_I64 == NN_I64 &&
                  WT_DTYPE_I32 == NN_I32 && WT_DTYPE_BOOL == NN_BOOL,
              "the kernels' types are wt_dtype's");
static_assert((int)WT_ACTIVATION_SNAKE == NN_SNAKE && (int)WT_ACTIVATION_SIGMOID == NN_SIGMOID &&
                  (int)WT_N_NN_ACTIVATIONS == NN_N_ACTIVATIONS,
              "the orders of activations are the same");

// ---- the handle

static const char attend_16[] = "kernels/nn/nn_attend.cu", attend_wgmma[] = "kernels/nn/nn_attend_wgmma.cu";
#define CONV_16(first)                                                                                                 \
    {"nn_conv_16_128_1", first}, {"nn_conv_16_128_2", (first) + 1}, {"nn_conv_16_64_1", (first) + 2},                  \
    {                                                                                                                  \
        "nn_conv_16_64_4", (first) + 3                                                                                 \
    }
enum { MOST_FUNCTIONS = 8, CLUSTER_SMS = 16 }; // fewer have no room for every cluster

static const struct {
    const char *file, *options[2];
    struct {
        const char *name;
        int kernel; ///< nn_kernel
    } functions[MOST_FUNCTIONS];
} modules[] = {
    {"kernels/nn/nn_norm.cu",
     {NULL},
     {{"nn_norm_warp", NN_NORM_WARP},
      {"nn_norm_block", NN_NORM_BLOCK},
      {"nn_norm_narrow", NN_NORM_NARROW},
      {"nn_norm_wide", NN_NORM_WIDE},
      {"nn_norm_channels", NN_NORM_CHANNELS}}},
    {"kernels/nn/nn_point.cu", {NULL}, {{"nn_point", NN_POINT}}},
    {"kernels/nn/nn_conv.cu",
     {NULL},
     {{"nn_conv_few", NN_CONV_FEW},
      {"nn_conv_any", NN_CONV_ANY},
      {"nn_conv_f32_128_1", NN_CONV_F32},
      {"nn_conv_f32_128_2", NN_CONV_F32 + 1},
      {"nn_conv_f32_128_3", NN_CONV_F32 + 2},
      {"nn_conv_f32_128_4", NN_CONV_F32 + 3},
      {"nn_conv_f32_64_1", NN_CONV_F32 + 4},
      {"nn_conv_f32_64_8", NN_CONV_F32 + 5}}},
    {"kernels/nn/nn_conv_16.cu", {"-DBF16=0"}, {CONV_16(NN_CONV_F16)}},
    {"kernels/nn/nn_conv_16.cu", {"-DBF16=1"}, {CONV_16(NN_CONV_BF16)}},
    {"kernels/nn/nn_lstm.cu", {NULL}, {{"nn_lstm_cluster", NN_LSTM_CLUSTER}, {"nn_lstm_grid", NN_LSTM_GRID}}},
    {"kernels/nn/nn_moe.cu",
     {NULL},
     {{"nn_route", NN_ROUTE}, {"nn_group", NN_GROUP}, {"nn_permute", NN_PERMUTE}, {"nn_unpermute", NN_UNPERMUTE}}},
    {"kernels/nn/nn_attend_wide.cu", {NULL}, {{"nn_attend_wide", NN_ATTEND_WIDE}}},
    {"kernels/nn/nn_attend_parts.cu",
     {"-DD_HEAD=64"},
     {{"nn_attend_parts", NN_ATTEND_F32}, {"nn_attend_parts_masked", NN_ATTEND_F32_MASKED}}},
    {"kernels/nn/nn_attend_parts.cu",
     {"-DD_HEAD=128"},
     {{"nn_attend_parts", NN_ATTEND_F32_128}, {"nn_attend_parts_masked", NN_ATTEND_F32_128_MASKED}}},
    {attend_16,
     {"-DBF16=0", "-DD_HEAD=64"},
     {{"nn_attend_16", NN_ATTEND_F16}, {"nn_attend_16_masked", NN_ATTEND_F16_MASKED}}},
    {attend_16,
     {"-DBF16=0", "-DD_HEAD=128"},
     {{"nn_attend_16", NN_ATTEND_F16_128}, {"nn_attend_16_masked", NN_ATTEND_F16_128_MASKED}}},
    {attend_16,
     {"-DBF16=1", "-DD_HEAD=64"},
     {{"nn_attend_16", NN_ATTEND_BF16}, {"nn_attend_16_masked", NN_ATTEND_BF16_MASKED}}},
    {attend_16,
     {"-DBF16=1", "-DD_HEAD=128"},
     {{"nn_attend_16", NN_ATTEND_BF16_128}, {"nn_attend_16_masked", NN_ATTEND_BF16_128_MASKED}}},
    {"kernels/nn/nn_token.cu", {NULL}, {{"nn_embed", NN_EMBED}, {"nn_rope", NN_ROPE}}},
};
static_assert(sizeof modules / sizeof *modules <= NN_MODULES, "the handle has room");

static wt_status load_kernels(wt_nn *nn)
{
    wt_status status = WT_OK;
    for (size_t m = 0; m < sizeof modules / sizeof *modules && !status; m++) {
        const bool by_warpgroups = nn->wgmma && modules[m].file == attend_16;
        const wt_module_config config = {.name = by_warpgroups ? attend_wgmma : modules[m].file,
                                         .options = modules[m].options,
                                         .n_options = !modules[m].options[0]  ? 0
                                                      : modules[m].options[1] ? 2
                                                                              : 1};
        status = wt_module_create(nn->device, &config, &nn->modules[m]);
        for (int f = 0; f < MOST_FUNCTIONS && modules[m].functions[f].name && !status; f++)
            status = wt_module_get_kernel(nn->modules[m], modules[m].functions[f].name,
                                          &nn->kernels[modules[m].functions[f].kernel]);
    }
    return status;
}

wt_status wt_nn_create(const wt_nn_config *config, wt_nn **nn)
{
    *nn = NULL;
    wt_nn *n = calloc(1, sizeof *n);
    if (!n) return wt_fail(WT_ERR_NO_MEMORY, "nn: handle");
    const wt_device_info *info = wt_device_get_info(config->device);
    wt_partition_info partition = {.n_sms = info->n_sms};
    if (config->partition) wt_partition_get_info(config->partition, &partition);
    *n = (wt_nn){.device = config->device,
                 .matmul = config->matmul,
                 .n_sms = partition.n_sms,
                 .clusters = info->compute_major >= 9 && partition.n_sms >= CLUSTER_SMS && !partition.fine,
                 .on_gpu = info->backend == WT_BACKEND_CUDA,
                 .wgmma = info->compute_major == 9 && info->compute_minor == 0};
    wt_status status = n->on_gpu ? load_kernels(n) : WT_OK;
    if (!status && n->on_gpu)
        status = wt_buffer_create(n->device, WT_MEMORY_DEVICE, sizeof(int) * NN_COUNTERS, &n->counters);
    if (status) {
        wt_nn_destroy(n);
        return status;
    }
    *nn = n;
    return WT_OK;
}

void wt_nn_destroy(wt_nn *nn)
{
    if (!nn) return;
    for (int m = 0; m < NN_MODULES; m++) wt_module_destroy(nn->modules[m]);
    wt_buffer_destroy(nn->counters);
    free(nn);
}

wt_status wt__nn_launch(const wt_nn *nn, nn_kernel kernel, wt_stream *stream, const wt_launch *launch, wt_arg args)
{
    return wt_kernel_launch(nn->kernels[kernel], stream, launch, &args, 1);
}

// ---- operands

static bool in_packs(const nn_rows *r, int n)
{
    const uintptr_t bytes = (uintptr_t)n * wt_dtype_bytes((wt_dtype)r->type, 1);
    return !r->data || ((uintptr_t)r->data % (bytes < 16 ? bytes : 16) == 0 && r->stride % n == 0);
}

nn_access wt__nn_access(const nn_rows *const *rows, int n, const nn_rows *const *factors, int n_factors, long long run)
{
    const int wide = rows[0]->type == NN_F32 ? 4 : 8;
    bool one_type = run % wide == 0, fours = run % 4 == 0;
    for (int k = 0; k < n + n_factors; k++) {
        const nn_rows *r = k < n ? rows[k] : factors[k - n];
        one_type &= in_packs(r, wide) && (!r->data || r->type == rows[0]->type || (k >= n && r->type == NN_F32));
        fours &= in_packs(r, 4);
    }
    if (!one_type) return fours ? NN_PACKS : NN_SINGLE;
    return rows[0]->type == NN_F32 ? NN_PACKS_F32 : rows[0]->type == NN_F16 ? NN_PACKS_F16 : NN_PACKS_BF16;
}

static wt_status check_any(const char *what, const wt_array *a)
{
    char text[96];
    if (!a) return wt_fail(WT_ERR_BAD_ARG, "%s is missing", what);
    if (a->rank < 1 || a->rank > WT_TENSOR_MAX_RANK)
        return wt_fail(WT_ERR_BAD_ARG, "%s has rank %d, want 1..%d", what, a->rank, WT_TENSOR_MAX_RANK);
    if (!wt__nn_is_float(a->dtype))
        return wt_fail(WT_ERR_UNSUPPORTED, "%s is of type %s, want F32, F16 or BF16", what, wt_dtype_name(a->dtype));
    for (int d = 0; d < a->rank; d++)
        if (a->shape[d] < 0)
            return wt_fail(WT_ERR_BAD_ARG, "%s is %s", what, wt_shape_describe(a->rank, a->shape, text));
    if (!a->data || a->data % wt_dtype_bytes(a->dtype, 1))
        return wt_fail(WT_ERR_BAD_ARG, "%s lies at %#llx, want an address aligned to its type", what,
                       (unsigned long long)a->data);
    return WT_OK;
}

static wt_status check(const char *what, const wt_array *a)
{
    wt_status status = check_any(what, a);
    if (status) return status;
    if (a->shape[a->rank - 1] > 1 && a->strides[a->rank - 1] != 1)
        return wt_fail(WT_ERR_BAD_ARG, "%s has stride %lld along its last axis, want 1", what,
                       (long long)a->strides[a->rank - 1]);
    return WT_OK;
}

wt_status wt__nn_view(const char *what, const wt_array *a, int rank)
{
    wt_status status = check_any(what, a);
    if (!status && a->rank != rank) status = wt_fail(WT_ERR_BAD_ARG, "%s has rank %d, want %d", what, a->rank, rank);
    return status;
}

wt_status wt__nn_rows(const char *what, const wt_array *a, nn_rows *rows, long long *n, long long *width)
{
    wt_status status = check(what, a);
    if (status) return status;
    *width = a->shape[a->rank - 1];
    *n = 1;
    *rows = (nn_rows){.data = (void *)a->data, .stride = *width, .type = (int)a->dtype};
    for (int d = a->rank - 2; d >= 0; d--) { // the axes before the last as one
        if (a->shape[d] == 1) continue;
        if (*n == 1)
            rows->stride = a->strides[d];
        else if (a->strides[d] != *n * rows->stride)
            return wt_fail(WT_ERR_BAD_ARG, "%s has stride %lld along axis %d, want %lld: its rows one after the other",
                           what, (long long)a->strides[d], d, *n * rows->stride);
        *n *= a->shape[d];
    }
    return WT_OK;
}

wt_status wt__nn_shape(const char *what, const wt_array *a, int rank, const int64_t *shape)
{
    char met[96], wanted[96];
    bool same = a->rank == rank;
    for (int d = 0; d < rank && same; d++) same = shape[d] < 0 || a->shape[d] == shape[d];
    if (same) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG, "%s is %s, want %s", what, wt_shape_describe(a->rank, a->shape, met),
                   wt_shape_describe(rank, shape, wanted));
}

wt_status wt__nn_rows_like(const char *what, const wt_array *a, const wt_array *like, nn_rows *rows)
{
    long long n, width;
    if (!a) return WT_OK;
    wt_status status = wt__nn_shape(what, a, like->rank, like->shape);
    return status ? status : wt__nn_rows(what, a, rows, &n, &width);
}

wt_status wt__nn_vector(const char *what, const wt_array *a, long long n, nn_vector *vector)
{
    if (!a) return WT_OK;
    wt_status status = check(what, a);
    if (!status) status = wt__nn_shape(what, a, 1, (int64_t[]){n});
    *vector = (nn_vector){.data = (const void *)a->data, .type = (int)a->dtype};
    return status;
}

wt_status wt__nn_strided(const char *what, const wt_array *a, int rank, nn_strided *strided)
{
    wt_status status = check(what, a);
    if (status) return status;
    if (a->rank != rank) return wt_fail(WT_ERR_BAD_ARG, "%s has rank %d, want %d", what, a->rank, rank);
    *strided = (nn_strided){.data = (void *)a->data, .type = (int)a->dtype};
    for (int d = 0; d < rank - 1; d++) strided->strides[d] = a->strides[d];
    return WT_OK;
}

wt_status wt__nn_dense(const char *what, const wt_array *a, wt_dtype type, wt_dtype or, int64_t n, void **data)
{
    if (!a) return WT_OK;
    if (a->dtype != type && a->dtype != or)
        return wt_fail(WT_ERR_UNSUPPORTED, "%s is of type %s, want %s", what, wt_dtype_name(a->dtype),
                       wt_dtype_name(type));
    int64_t stride = 1;
    bool dense = true;
    for (int d = a->rank - 1; d >= 0; d--) {
        dense &= a->shape[d] == 1 || a->strides[d] == stride;
        stride *= a->shape[d];
    }
    if (stride != n || !dense)
        return wt_fail(WT_ERR_BAD_ARG, "%s has %lld elements%s, want %lld, dense", what, (long long)stride,
                       dense ? "" : " with gaps", (long long)n);
    if (!a->data || a->data % wt_dtype_bytes(a->dtype, 1))
        return wt_fail(WT_ERR_BAD_ARG, "%s lies at %#llx, want an address aligned to its type", what,
                       (unsigned long long)a->data);
    *data = (void *)a->data;
    return WT_OK;
}

wt_status wt__nn_after(const char *what, const wt_nn_activation *activation, long long channels, nn_after *after)
{
    if ((unsigned)activation->kind >= WT_N_NN_ACTIVATIONS)
        return wt_fail(WT_ERR_BAD_ARG, "%s: activation %d, want 0..%d", what, (int)activation->kind,
                       WT_N_NN_ACTIVATIONS - 1);
    *after =
        (nn_after){.kind = (int)activation->kind, .slope = activation->slope != 0 ? (float)activation->slope : 0.01f};
    if (activation->kind != WT_ACTIVATION_SNAKE) return WT_OK;
    if (!activation->alpha) return wt_fail(WT_ERR_BAD_ARG, "%s: a snake without alpha", what);
    return wt__nn_vector(what, activation->alpha, channels, &after->alpha);
}

// ---- the CPU

WT_CLONES void wt__nn_read(int type, const void *p, long long at, long long n, float *out)
{
    if (type == NN_F32) memcpy(out, (const float *)p + at, sizeof(float) * (size_t)n);
    if (type == NN_F16)
        for (long long k = 0; k < n; k++) out[k] = nn_get(NN_F16, p, at + k);
    if (type == NN_BF16)
        for (long long k = 0; k < n; k++) out[k] = nn_get(NN_BF16, p, at + k);
}

WT_CLONES void wt__nn_write(int type, void *p, long long at, long long n, const float *x)
{
    if (type == NN_F32) memcpy((float *)p + at, x, sizeof(float) * (size_t)n);
    if (type == NN_F16)
        for (long long k = 0; k < n; k++) nn_put(NN_F16, p, at + k, x[k]);
    if (type == NN_BF16)
        for (long long k = 0; k < n; k++) nn_put(NN_BF16, p, at + k, x[k]);
}

WT_CLONES void wt__nn_activate(const nn_after *after, long long n, float *x, long long channel, bool one)
{
    const float p = after->kind == NN_SNAKE ? nn_get(after->alpha.type, after->alpha.data, channel) : after->slope;
#define EACH(kind)                                                                                                     \
    case kind:                                                                                                         \
        for (long long k = 0; k < n; k++) x[k] = nn_activate(kind, x[k], p);                                           \
        break;
    switch (after->kind) {
        EACH(NN_RELU)
        EACH(NN_SILU)
        EACH(NN_GELU)
        EACH(NN_GELU_TANH)
        EACH(NN_SIGMOID)
        EACH(NN_TANH)
        EACH(NN_LEAKY_RELU)
        EACH(NN_RELU2)
    case NN_SNAKE:
        for (long long k = 0; one && k < n; k++) x[k] = nn_activate(NN_SNAKE, x[k], p);
        for (long long k = 0; !one && k < n; k++)
            x[k] = nn_activate(NN_SNAKE, x[k], nn_get(after->alpha.type, after->alpha.data, channel + k));
        break;
    default:
        break;
    }
#undef EACH
}
