// Products of matrices: what is asked for is checked and written as a kernel's arguments here, once for both backends.
#include "matmul_internal.h"

#include <limits.h>
#include <stdlib.h>

enum { MOST_IN_PARTS = 8 };
enum { MAX_ROWS_OF_X = 65535, MAX_SIDE = 1 << 24, MAX_EXACT_COLUMNS = 1 << 17, BLOCK = 128 };

static const int types[WT_N_DTYPES] = {
    [WT_DTYPE_F32] = WT_MM_F32 + 1,      [WT_DTYPE_F16] = WT_MM_F16 + 1,      [WT_DTYPE_BF16] = WT_MM_BF16 + 1,
    [WT_DTYPE_F8_E4M3] = WT_MM_E4M3 + 1, [WT_DTYPE_F8_E5M2] = WT_MM_E5M2 + 1, [WT_DTYPE_I8] = WT_MM_I8 + 1,
    [WT_DTYPE_I32] = WT_MM_I32 + 1,      [WT_DTYPE_Q8_0] = WT_MM_Q8_0 + 1,    [WT_DTYPE_Q4_0] = WT_MM_Q4_0 + 1,
    [WT_DTYPE_Q4_K] = WT_MM_Q4_K + 1,    [WT_DTYPE_Q6_K] = WT_MM_Q6_K + 1,
};

/// WT_MM_ of a type, -1 where there is none.
static int type_of(wt_dtype dtype) { return (unsigned)dtype < WT_N_DTYPES ? types[dtype] - 1 : -1; }

static bool is_float(wt_dtype dtype)
{
    return dtype == WT_DTYPE_F32 || dtype == WT_DTYPE_F16 || dtype == WT_DTYPE_BF16;
}

static bool is_aligned(uintptr_t address, wt_dtype dtype)
{
    const size_t bytes = dtype == WT_DTYPE_F32 || dtype == WT_DTYPE_I32 ? 4 : is_float(dtype) ? 2 : 1;
    return address && address % bytes == 0;
}

// ---- one matrix

static wt_status check_type(const wt_matrix *w)
{
    const char *name = wt_dtype_name(w->dtype);
    if (w->packing != WT_PACKING_NONE) {
        if (w->packing != WT_PACKING_U4 && w->packing != WT_PACKING_E2M1)
            return wt_fail(WT_ERR_BAD_ARG, "matmul: packing %d, want U4 or E2M1", (int)w->packing);
        if (w->dtype != WT_DTYPE_U8 || w->columns % 2)
            return wt_fail(WT_ERR_BAD_ARG,
                           "matmul: packed weights of type %s with %d columns, want U8 and an even number", name,
                           w->columns);
        return WT_OK;
    }
    if (type_of(w->dtype) < 0 || w->dtype == WT_DTYPE_I32)
        return wt_fail(WT_ERR_UNSUPPORTED,
                       "matmul: weights of type %s, want F32, F16, BF16, F8_E4M3, F8_E5M2, I8, Q8_0, "
                       "Q4_0, Q4_K or Q6_K",
                       name);
    if (w->columns % wt_dtype_block(w->dtype))
        return wt_fail(WT_ERR_BAD_ARG, "matmul: %s weights with %d columns, want a multiple of %d", name, w->columns,
                       wt_dtype_block(w->dtype));
    return WT_OK;
}

static wt_status check_scaling(const wt_matrix *w)
{
    const bool groups = w->scaling == WT_SCALING_GROUP;
    if ((unsigned)w->scaling > WT_SCALING_GROUP)
        return wt_fail(WT_ERR_BAD_ARG, "matmul: scaling %d is none", (int)w->scaling);
    if (w->scaling == WT_SCALING_NONE)
        return w->zeros || w->tensor_scale ? wt_fail(WT_ERR_BAD_ARG, "matmul: zeros or a tensor scale without groups")
                                           : WT_OK;
    if (w->packing == WT_PACKING_NONE && wt_dtype_block(w->dtype) > 1)
        return wt_fail(WT_ERR_BAD_ARG, "matmul: scales beside %s, whose blocks hold their own",
                       wt_dtype_name(w->dtype));
    if (!is_float(w->scale_dtype) && !(groups && w->scale_dtype == WT_DTYPE_F8_E4M3))
        return wt_fail(WT_ERR_UNSUPPORTED, "matmul: scales of type %s, want F32, F16, BF16, or F8_E4M3 of groups",
                       wt_dtype_name(w->scale_dtype));
    if (!is_aligned(w->scales, w->scale_dtype))
        return wt_fail(WT_ERR_BAD_ARG, "matmul: scales are missing or unaligned");
    if (!groups && (w->zeros || w->tensor_scale))
        return wt_fail(WT_ERR_BAD_ARG, "matmul: zeros or a tensor scale without groups");
    if (w->zeros && w->packing != WT_PACKING_U4) return wt_fail(WT_ERR_BAD_ARG, "matmul: zeros go with packed U4 only");
    if (w->tensor_scale % sizeof(float)) return wt_fail(WT_ERR_BAD_ARG, "matmul: the tensor scale is unaligned");
    if (groups && (w->group < 16 || w->group % 16 || w->columns % w->group))
        return wt_fail(WT_ERR_BAD_ARG, "matmul: groups of %d of %d columns, want a multiple of 16 that divides them",
                       w->group, w->columns);
    return WT_OK;
}

static wt_status check_matrix(const wt_matrix *w)
{
    if (w->rows < 1 || w->columns < 1 || w->rows > MAX_SIDE || w->columns > MAX_SIDE)
        return wt_fail(WT_ERR_BAD_ARG, "matmul: a matrix of %d x %d, want 1 .. %d each", w->rows, w->columns, MAX_SIDE);
    wt_status status = check_type(w);
    if (!status) status = check_scaling(w);
    if (status) return status;
    if (!is_aligned(w->data, wt_dtype_block(w->dtype) > 1 ? WT_DTYPE_F16 : w->dtype))
        return wt_fail(WT_ERR_BAD_ARG, "matmul: weights are missing or unaligned");
    if (w->next < 0 || w->scales_next < 0 || w->zeros_next < 0)
        return wt_fail(WT_ERR_BAD_ARG, "matmul: a negative distance of matrices in a stack");
    return WT_OK;
}

// ---- all of a product

static bool alike(const wt_matrix *a, const wt_matrix *b)
{
    return a->columns == b->columns && a->dtype == b->dtype && a->packing == b->packing && a->scaling == b->scaling &&
           (a->scaling == WT_SCALING_NONE || a->scale_dtype == b->scale_dtype) &&
           (a->scaling != WT_SCALING_GROUP || a->group == b->group);
}

static wt_status check_parts(const wt_matmul_args *g)
{
    if (g->n_parts < 1 || g->n_parts > WT_MATMUL_MAX_PARTS)
        return wt_fail(WT_ERR_BAD_ARG, "matmul: %d parts, want 1 .. %d", g->n_parts, WT_MATMUL_MAX_PARTS);
    for (int k = 0; k < g->n_parts; k++) {
        const wt_matmul_part *p = &g->parts[k];
        wt_status status = check_matrix(&p->weight);
        if (status) return status;
        if (!alike(&p->weight, &g->parts[0].weight))
            return wt_fail(WT_ERR_BAD_ARG, "matmul: part %d differs from part 0 in columns, type or scaling", k);
        if (p->bias % sizeof(float)) return wt_fail(WT_ERR_BAD_ARG, "matmul: the bias of part %d is unaligned", k);
        if (g->gated && k) continue;
        if (!is_aligned(p->y, g->y_dtype))
            return wt_fail(WT_ERR_BAD_ARG, "matmul: y of part %d is missing or unaligned", k);
        if (p->y_stride && p->y_stride < p->weight.rows)
            return wt_fail(WT_ERR_BAD_ARG, "matmul: y_stride %lld, want %d or more", (long long)p->y_stride,
                           p->weight.rows);
    }
    if (g->gated && (g->n_parts != 2 || g->parts[0].weight.rows != g->parts[1].weight.rows))
        return wt_fail(WT_ERR_BAD_ARG, "matmul: a gated product wants two parts of as many rows");
    return WT_OK;
}

static bool is_constant_along_columns(const wt_matrix *w)
{
    return w->scaling == WT_SCALING_NONE || w->scaling == WT_SCALING_TENSOR || w->scaling == WT_SCALING_ROW;
}

static bool is_nvfp4(const wt_matrix *w)
{
    return w->packing == WT_PACKING_E2M1 && w->scaling == WT_SCALING_GROUP && w->group == 16 &&
           w->scale_dtype == WT_DTYPE_F8_E4M3;
}

static wt_status check_types(const wt_matmul_args *g)
{
    const wt_matrix *w = &g->parts[0].weight;
    const char *x_name = wt_dtype_name(g->x_dtype), *w_name = w->packing ? "packed" : wt_dtype_name(w->dtype);
    const bool eight = g->x_dtype == WT_DTYPE_I8 || g->x_dtype == WT_DTYPE_F8_E4M3, four = g->x_dtype == WT_DTYPE_F4;
    if (!is_float(g->x_dtype) && !(eight && !w->packing && w->dtype == g->x_dtype) && !(four && is_nvfp4(w)))
        return wt_fail(WT_ERR_UNSUPPORTED, "matmul: x of type %s with %s weights", x_name, w_name);
    if (!four != !g->x_groups || (four && g->x_stride && g->x_stride != w->columns) ||
        (four && g->x_batch_stride && g->x_batch_stride != (int64_t)g->m * w->columns))
        return wt_fail(WT_ERR_BAD_ARG, "matmul: x_groups go with x of type F4, which is dense");
    if (g->x_scales % sizeof(float) || (g->x_scales && !eight && !four))
        return wt_fail(WT_ERR_BAD_ARG, "matmul: scales of x are unaligned, or x is %s, which has none", x_name);
    if (g->x_dtype == WT_DTYPE_I8 && (!is_constant_along_columns(w) || w->columns > MAX_EXACT_COLUMNS))
        return wt_fail(WT_ERR_UNSUPPORTED, "matmul: an I8 product wants a scale a tensor or row and at most %d columns",
                       MAX_EXACT_COLUMNS);
    if (g->y_dtype != WT_DTYPE_I32)
        return is_float(g->y_dtype) ? WT_OK
                                    : wt_fail(WT_ERR_UNSUPPORTED, "matmul: y of type %s, want F32, F16, BF16 or I32",
                                              wt_dtype_name(g->y_dtype));
    bool plain = g->x_dtype == WT_DTYPE_I8 && !g->x_scales && !g->activation && !g->gated && !g->add;
    for (int k = 0; k < g->n_parts; k++) plain &= g->parts[k].weight.scaling == WT_SCALING_NONE && !g->parts[k].bias;
    return plain ? WT_OK : wt_fail(WT_ERR_UNSUPPORTED, "matmul: y of type I32 is for bare sums of I8 products");
}

static wt_status check_rest(const wt_matmul_args *g)
{
    const int columns = g->parts[0].weight.columns;
    if (g->m < 0 || g->m > MAX_ROWS_OF_X)
        return wt_fail(WT_ERR_BAD_ARG, "matmul: m %d, want 0 .. %d", g->m, MAX_ROWS_OF_X);
    if (!is_aligned(g->x, g->x_dtype)) return wt_fail(WT_ERR_BAD_ARG, "matmul: x is missing or unaligned");
    if (g->x_stride && g->x_stride < columns)
        return wt_fail(WT_ERR_BAD_ARG, "matmul: x_stride %lld, want %d or more", (long long)g->x_stride, columns);
    const bool x_is_16 = g->x_dtype == WT_DTYPE_F16 || g->x_dtype == WT_DTYPE_BF16,
               y_is_32 = g->y_dtype == WT_DTYPE_F32;
    if (g->two_parts &&
        (!x_is_16 || (g->add && !y_is_32) || g->offsets || g->n_batches > 1 || (g->m > MOST_IN_PARTS && !g->experts)))
        return wt_fail(WT_ERR_BAD_ARG, "matmul: x of type %s in two parts, m %d, want F16 or BF16 and at most %d rows",
                       wt_dtype_name(g->x_dtype), g->m, MOST_IN_PARTS);
    if ((unsigned)g->activation >= WT_N_ACTIVATIONS)
        return wt_fail(WT_ERR_BAD_ARG, "matmul: activation %d is none", (int)g->activation);
    if (g->n_batches < 0 || g->x_batch_stride < 0 || g->y_batch_stride < 0 ||
        (int64_t)g->n_batches * (g->m + 7) > MAX_ROWS_OF_X)
        return wt_fail(WT_ERR_BAD_ARG, "matmul: %d batches of %d rows, want at most %d rows together", g->n_batches,
                       g->m, MAX_ROWS_OF_X);
    if (!g->experts && !g->offsets) return WT_OK;
    if ((g->experts && g->offsets) || g->experts % 4 || g->offsets % 4 || g->n_batches > 1)
        return wt_fail(WT_ERR_BAD_ARG, "matmul: experts or offsets, aligned, and no batches beside them");
    if (g->n_experts < 1 || g->n_experts > 4096 || g->x_repeat < 0)
        return wt_fail(WT_ERR_BAD_ARG, "matmul: %d experts, x_repeat %d, want 1 .. 4096, 0 or more", g->n_experts,
                       g->x_repeat);
    return WT_OK;
}

// ---- as a kernel sees it

static void fill_scales(const wt_matrix *w, wt_mm_args *a)
{
    a->scale_type = type_of(w->scale_dtype);
    a->scale_rows = w->scaling == WT_SCALING_TENSOR ? INT_MAX : w->scaling == WT_SCALING_BLOCK ? BLOCK : 1;
    a->scale_columns = w->scaling == WT_SCALING_GROUP ? w->group : w->scaling == WT_SCALING_BLOCK ? BLOCK : INT_MAX;
    a->scale_shift = a->scale_columns & (a->scale_columns - 1) ? -1 : __builtin_ctz((unsigned)a->scale_columns);
    a->scale_stride = a->scale_columns == INT_MAX ? 1 : (w->columns + a->scale_columns - 1) / a->scale_columns;
}

static void fill_part(const wt_matmul_part *from, const wt_mm_args *a, int64_t y_batch, wt_mm_part *p)
{
    const wt_matrix *w = &from->weight;
    const int64_t n_scales = (int64_t)((w->rows - 1) / a->scale_rows + 1) * a->scale_stride;
    *p = (wt_mm_part){
        .w = (const unsigned char *)w->data,
        .scales = (const unsigned char *)w->scales,
        .zeros = (const unsigned char *)w->zeros,
        .tensor_scale = (const float *)w->tensor_scale,
        .bias = (const float *)from->bias,
        .y = (void *)from->y,
        .y_stride = from->y_stride ? from->y_stride : w->rows,
        .w_next = w->next ? w->next : w->rows * a->row_bytes,
        .scales_next = w->scales_next ? w->scales_next : (int64_t)wt_dtype_bytes(w->scale_dtype, n_scales),
        .zeros_next = w->zeros_next ? w->zeros_next : (int64_t)w->rows * a->scale_stride,
        .rows = w->rows,
    };
    if (w->scaling == WT_SCALING_NONE) p->scales = NULL;
    p->y_batch = y_batch ? y_batch : a->m * p->y_stride;
}

/// Check `g` and write it as a kernel's; first_tile of the parts is left to the kernel's host.
static wt_status fill_args(const wt_matmul_args *g, wt_mm_args *a)
{
    wt_status status = check_parts(g);
    if (!status) status = check_types(g);
    if (!status) status = check_rest(g);
    if (status) return status;
    const wt_matrix *w = &g->parts[0].weight;
    *a = (wt_mm_args){
        .x = (const unsigned char *)g->x,
        .x_scales = (const float *)g->x_scales,
        .x_groups = (const unsigned char *)g->x_groups,
        .experts = (const int *)g->experts,
        .offsets = (const int *)g->offsets,
        .x_stride = g->x_stride ? g->x_stride : w->columns,
        .row_bytes = w->packing ? w->columns / 2 : (int64_t)wt_dtype_bytes(w->dtype, w->columns),
        .n_parts = g->n_parts,
        .columns = w->columns,
        .m = g->m,
        .n_batches = g->n_batches ? g->n_batches : 1,
        .n_experts = g->n_experts,
        .x_repeat = g->x_repeat ? g->x_repeat : 1,
        .w_type = w->packing == WT_PACKING_U4     ? WT_MM_U4
                  : w->packing == WT_PACKING_E2M1 ? WT_MM_E2M1
                                                  : type_of(w->dtype),
        .x_type = g->x_dtype == WT_DTYPE_F4 ? WT_MM_E2M1 : type_of(g->x_dtype),
        .y_type = type_of(g->y_dtype),
        .activation = (int)g->activation,
        .gated = g->gated,
        .add = g->add,
        .overlap = g->overlap,
        .two_parts = g->two_parts,
        .norm_weight = (const float *)g->norm_after.weight,
        .normed = (unsigned short *)g->norm_after.out,
        .squares = (float *)g->norm_after.squares,
        .x_squares = (const float *)g->norm_before.squares,
        .norm_eps = g->norm_before.eps,
    };
    a->x_low = (a->experts ? (a->m + a->x_repeat - 1) / a->x_repeat : a->m) * a->x_stride;
    a->x_batch = g->x_batch_stride ? g->x_batch_stride : a->m * a->x_stride;
    fill_scales(w, a);
    for (int k = 0; k < g->n_parts; k++) fill_part(&g->parts[k], a, g->y_batch_stride, &a->parts[k]);
    return WT_OK;
}

int wt__mm_number_tiles(wt_mm_args *a, int rows)
{
    int n = 0;
    for (int k = 0; k < (a->gated ? 1 : a->n_parts); k++) {
        a->parts[k].first_tile = n;
        n += (a->parts[k].rows + rows - 1) / rows;
    }
    return n;
}

static wt_status fill_quantize(const wt_quantize_args *q, wt_mm_quantize_args *a)
{
    const bool four = q->out_dtype == WT_DTYPE_F4;
    if (!is_float(q->x_dtype) || (q->out_dtype != WT_DTYPE_I8 && q->out_dtype != WT_DTYPE_F8_E4M3 && !four))
        return wt_fail(WT_ERR_UNSUPPORTED, "matmul: quantize %s to %s, want F32, F16 or BF16 to I8, F8_E4M3 or F4",
                       wt_dtype_name(q->x_dtype), wt_dtype_name(q->out_dtype));
    if (!four != !q->groups || (four && q->columns % 16))
        return wt_fail(WT_ERR_BAD_ARG, "matmul: quantize: groups go with F4 and multiples of 16 columns, met %d",
                       q->columns);
    if (q->m < 0 || q->columns < 1 || q->columns > MAX_SIDE || (q->x_stride && q->x_stride < q->columns))
        return wt_fail(WT_ERR_BAD_ARG, "matmul: quantize %d rows of %d, x_stride %lld", q->m, q->columns,
                       (long long)q->x_stride);
    if (!is_aligned(q->x, q->x_dtype) || !q->out || !q->scales || q->scales % sizeof(float))
        return wt_fail(WT_ERR_BAD_ARG, "matmul: quantize: x, out or scales are missing or unaligned");
    *a = (wt_mm_quantize_args){.x = (const unsigned char *)q->x,
                               .out = (unsigned char *)q->out,
                               .scales = (float *)q->scales,
                               .groups = (unsigned char *)q->groups,
                               .x_stride = q->x_stride ? q->x_stride : q->columns,
                               .m = q->m,
                               .columns = q->columns,
                               .x_type = type_of(q->x_dtype),
                               .out_type = four ? WT_MM_E2M1 : type_of(q->out_dtype)};
    return WT_OK;
}

// ---- public

wt_status wt_matmul_create(const wt_matmul_config *config, wt_matmul **matmul)
{
    *matmul = NULL;
    if (!config->device) return wt_fail(WT_ERR_BAD_ARG, "matmul: no device");
    if (config->partition && wt_partition_device(config->partition) != config->device)
        return wt_fail(WT_ERR_BAD_ARG, "matmul: the partition belongs to another device");
    wt_matmul *m = calloc(1, sizeof *m);
    if (!m) return wt_fail(WT_ERR_NO_MEMORY, "matmul: no memory for a handle");
    const wt_device_info *info = wt_device_get_info(config->device);
    m->config = *config;
    m->n_sms = info->n_sms;
    if (config->partition) {
        wt_partition_info of;
        wt_partition_get_info(config->partition, &of);
        m->n_sms = of.n_sms;
    }
    wt_status status = info->backend == WT_BACKEND_CUDA ? wt__mm_cuda_create(config, m->n_sms, &m->cuda) : WT_OK;
    if (status) {
        wt_matmul_destroy(m);
        return status;
    }
    *matmul = m;
    return WT_OK;
}

void wt_matmul_destroy(wt_matmul *matmul)
{
    if (!matmul) return;
    wt__mm_cuda_destroy(matmul->cuda);
    free(matmul);
}

wt_status wt_matmul_prepare(wt_matmul *matmul, const wt_matmul_args *args)
{
    wt_mm_args a;
    wt_status status = fill_args(args, &a);
    if (status || !a.m || !matmul->cuda) return status;
    return wt__mm_cuda_enqueue(matmul->cuda, NULL, &a);
}

static wt_status check_stream(const wt_matmul *matmul, const wt_stream *stream)
{
    if (wt_stream_device(stream) == matmul->config.device) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG, "matmul: the stream belongs to another device");
}

wt_status wt_matmul_enqueue(wt_matmul *matmul, wt_stream *stream, const wt_matmul_args *args)
{
    wt_mm_args a;
    wt_status status = check_stream(matmul, stream);
    if (!status) status = fill_args(args, &a);
    if (status || !a.m) return status;
    if (!matmul->cuda && wt__mm_has_norm(&a)) return wt_fail(WT_ERR_UNSUPPORTED, "matmul: no norms on the CPU");
    return matmul->cuda ? wt__mm_cuda_enqueue(matmul->cuda, stream, &a) : wt__mm_cpu_enqueue(stream, &a);
}

int wt_matmul_norms(wt_matmul *matmul, const wt_matmul_args *args)
{
    wt_mm_args a;
    if (!matmul->cuda || fill_args(args, &a)) return 0;
    return wt__mm_cuda_norms(matmul->cuda, &a);
}

const char *wt_matmul_kernel(wt_matmul *matmul, const wt_matmul_args *args)
{
    wt_mm_args a;
    if (fill_args(args, &a)) return "";
    return matmul->cuda ? wt__mm_cuda_kernel(matmul->cuda, &a) : "cpu";
}

wt_status wt_matmul_quantize(wt_matmul *matmul, wt_stream *stream, const wt_quantize_args *args)
{
    wt_mm_quantize_args a;
    wt_status status = check_stream(matmul, stream);
    if (!status) status = fill_quantize(args, &a);
    if (status || !a.m) return status;
    return matmul->cuda ? wt__mm_cuda_quantize(matmul->cuda, stream, &a) : wt__mm_cpu_quantize(stream, &a);
}

size_t wt_matrix_repacked(const wt_matrix *from, uintptr_t memory, wt_matrix *to)
{
    const bool q6 = from->dtype == WT_DTYPE_Q6_K, q4 = from->dtype == WT_DTYPE_Q4_0;
    if (from->packing || from->rows < 1 || from->columns < 1 || (from->dtype != WT_DTYPE_Q8_0 && !q6 && !q4)) return 0;
    const int group = q6 ? 16 : 32;
    const size_t n = (size_t)from->rows * (size_t)from->columns, data_bytes = ((q4 ? n / 2 : n) + 255) / 256 * 256;
    *to = (wt_matrix){.data = memory,
                      .rows = from->rows,
                      .columns = from->columns,
                      .dtype = q4 ? WT_DTYPE_U8 : WT_DTYPE_I8,
                      .packing = q4 ? WT_PACKING_U4 : WT_PACKING_NONE,
                      .scaling = WT_SCALING_GROUP,
                      .scale_dtype = q6 ? WT_DTYPE_F32 : WT_DTYPE_F16,
                      .group = group,
                      .scales = memory ? memory + data_bytes : 0};
    return data_bytes + n / (size_t)group * (q6 ? 4 : 2);
}

wt_status wt_matmul_repack(wt_matmul *matmul, wt_stream *stream, const wt_matrix *from, const wt_matrix *to)
{
    wt_matrix want;
    wt_status status = check_stream(matmul, stream);
    if (!status) status = check_matrix(from);
    if (status) return status;
    if (!wt_matrix_repacked(from, to->data, &want) || !to->data || to->data % 64 || to->scales != want.scales ||
        !alike(to, &want) || to->rows != want.rows)
        return wt_fail(WT_ERR_BAD_ARG, "matmul: repack %s, want Q8_0, Q4_0 or Q6_K and what wt_matrix_repacked gave",
                       wt_dtype_name(from->dtype));
    const wt_mm_repack_args a = {.from = (const unsigned char *)from->data,
                                 .to = (unsigned char *)to->data,
                                 .scales = (unsigned char *)to->scales,
                                 .type = type_of(from->dtype),
                                 .rows = from->rows,
                                 .columns = from->columns};
    return matmul->cuda ? wt__mm_cuda_repack(matmul->cuda, stream, &a) : wt__mm_cpu_repack(stream, &a);
}
