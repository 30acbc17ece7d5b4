#include "matmul_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/graph.h>

enum { PAD = 3, GUARD = 0x5a };

static unsigned random_of(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*seed >> 33);
}

// ---- contents: random bits with exponents that keep values between 1/32 and 2

static void put_element(wt_dtype dtype, unsigned char *p, uint64_t *seed)
{
    const unsigned r = random_of(seed);
    const uint32_t f32 = (r & 1) << 31 | (122 + r / 2 % 6) << 23 | (random_of(seed) & 0x7fffff);
    const uint16_t f16 = (uint16_t)((r & 1) << 15 | (10 + r / 2 % 6) << 10 | (random_of(seed) & 0x3ff));
    const uint16_t bf16 = (uint16_t)(f32 >> 16);
    switch (dtype) {
    case WT_DTYPE_F32:
        memcpy(p, &f32, sizeof f32);
        break;
    case WT_DTYPE_F16:
        memcpy(p, &f16, sizeof f16);
        break;
    case WT_DTYPE_BF16:
        memcpy(p, &bf16, sizeof bf16);
        break;
    case WT_DTYPE_F8_E4M3:
        *p = (unsigned char)((r & 1) << 7 | r / 2 % 0x60);
        break; // up to 14, with subnormals
    case WT_DTYPE_F8_E5M2:
        *p = (unsigned char)((r & 1) << 7 | r / 2 % 0x50);
        break;
    default:
        *p = (unsigned char)r;
    }
}

/// Random bytes, with the f16 factors of a block between 1/32 and 2.
static void put_block(wt_dtype dtype, unsigned char *p, uint64_t *seed)
{
    const size_t bytes = wt_dtype_bytes(dtype, wt_dtype_block(dtype));
    for (size_t k = 0; k < bytes; k++) p[k] = (unsigned char)random_of(seed);
    put_element(WT_DTYPE_F16, dtype == WT_DTYPE_Q6_K ? p + 208 : p, seed);
    if (dtype == WT_DTYPE_Q4_K) put_element(WT_DTYPE_F16, p + 2, seed);
}

static void put(wt_dtype dtype, unsigned char *p, int64_t n, uint64_t *seed)
{
    const int block = wt_dtype_block(dtype);
    const size_t bytes = wt_dtype_bytes(dtype, block);
    for (int64_t k = 0; k < n / block; k++, p += bytes)
        if (dtype == WT_DTYPE_F4)
            *p = (unsigned char)random_of(seed);
        else if (block > 1)
            put_block(dtype, p, seed);
        else
            put_element(dtype, p, seed);
}

double element_of(wt_dtype dtype, const void *data, int64_t k)
{
    const int block = wt_dtype_block(dtype);
    const wt_tensor tensor = {.data = data, .dtype = dtype};
    float values[256];
    wt_tensor_to_f32(&tensor, k / block * block, block, values);
    return values[k % block];
}

static float *floats_of(wt_dtype dtype, const array *a, int64_t n)
{
    float *floats = malloc(sizeof(float) * (size_t)n);
    assert_non_null(floats);
    wt_tensor_to_f32(&(wt_tensor){.data = a->host, .dtype = dtype}, 0, n, floats);
    return floats;
}

array new_array(bench *b, size_t bytes)
{
    array a = {.bytes = bytes, .host = malloc(bytes)};
    assert_non_null(a.host);
    memset(a.host, GUARD, bytes);
    assert_ok(wt_buffer_create(b->device, WT_MEMORY_DEVICE, bytes, &a.buffer));
    return a;
}

void send_array(bench *b, const array *a) { assert_ok(wt_stream_upload(b->stream, a->buffer, 0, a->host, a->bytes)); }

static array random_array(bench *b, wt_dtype dtype, int64_t n, uint64_t *seed)
{
    array a = new_array(b, wt_dtype_bytes(dtype, n));
    put(dtype, a.host, n, seed);
    send_array(b, &a);
    return a;
}

void free_array(array *a)
{
    wt_buffer_destroy(a->buffer);
    free(a->host);
    *a = (array){0};
}

uintptr_t address_of(const array *a) { return a->buffer ? wt_buffer_address(a->buffer) : 0; }

// ---- a problem on a device

static int rows_of(const problem *p, int part) { return p->rows + (p->gated ? 0 : 5 * part); }

static void make_part(bench *b, int k, uint64_t *seed)
{
    const problem *p = &b->p;
    const int64_t rows = rows_of(p, k), groups = p->group ? p->columns / p->group : 0,
                  across = (p->columns + 127) / 128;
    const int64_t n_scales[] = {[WT_SCALING_NONE] = 0,
                                [WT_SCALING_TENSOR] = 1,
                                [WT_SCALING_ROW] = rows,
                                [WT_SCALING_BLOCK] = (rows + 127) / 128 * across,
                                [WT_SCALING_GROUP] = rows * groups};
    b->w[k] = random_array(b, p->w, b->n_stack * rows * p->columns / (p->packing ? 2 : 1), seed);
    if (!p->packing) b->plain[k] = floats_of(p->w, &b->w[k], b->n_stack * rows * p->columns);
    if (p->scaling) b->scales[k] = random_array(b, p->scale_dtype, b->n_stack * n_scales[p->scaling], seed);
    if (p->zeros) {
        b->zeros[k] = new_array(b, (size_t)(b->n_stack * rows * groups));
        for (size_t i = 0; i < b->zeros[k].bytes; i++) b->zeros[k].host[i] = (unsigned char)(random_of(seed) % 17);
        send_array(b, &b->zeros[k]);
    }
    if (p->bias) b->bias[k] = random_array(b, WT_DTYPE_F32, b->n_stack * rows, seed);
    b->y_stride[k] = rows + (p->strides ? PAD : 0);
    const int64_t n_y = (p->two_parts && p->y != WT_DTYPE_F32 ? 2 : 1) * b->y_rows * b->y_stride[k];
    b->y[k] = p->add ? random_array(b, p->y, n_y, seed) : new_array(b, wt_dtype_bytes(p->y, n_y));
    send_array(b, &b->y[k]);
    b->args.parts[k] = (wt_matmul_part){
        .weight = {.data = address_of(&b->w[k]),
                   .rows = (int)rows,
                   .columns = p->columns,
                   .dtype = p->w,
                   .packing = p->packing,
                   .scaling = p->scaling,
                   .scale_dtype = p->scale_dtype,
                   .group = p->group,
                   .scales = address_of(&b->scales[k]),
                   .zeros = address_of(&b->zeros[k]),
                   .tensor_scale = address_of(&b->tensor_scale)},
        .y = address_of(&b->y[k]),
        .y_stride = p->strides ? b->y_stride[k] : 0,
        .bias = address_of(&b->bias[k]),
    };
}

/// Which expert each row of y belongs to, and the array that tells the device: some experts get no row, and the first
/// row none at all when they are chosen.
static void make_experts(bench *b, uint64_t *seed)
{
    const problem *p = &b->p;
    int32_t *list;
    b->experts = new_array(b, sizeof *list * (size_t)(p->chosen ? p->m : p->n_experts + 1));
    list = (int32_t *)b->experts.host;
    if (p->chosen) {
        for (int i = 0; i < p->m; i++) list[i] = i ? (int)(random_of(seed) % (unsigned)p->n_experts) : -1;
        b->args.experts = address_of(&b->experts);
    } else {
        for (int e = 0; e <= p->n_experts; e++)
            list[e] = e == 1 ? 0 : e < p->n_experts ? p->m * e / p->n_experts : p->m;
        list[0] = 0;
        b->args.offsets = address_of(&b->experts);
    }
    send_array(b, &b->experts);
    b->args.n_experts = p->n_experts;
    b->args.x_repeat = p->x_repeat;
}

/// Scales of 16 columns of x, not below 0.
static void make_groups(bench *b, uint64_t *seed)
{
    const int64_t n = b->x_rows * b->p.columns / 16;
    b->x_groups = random_array(b, WT_DTYPE_F8_E4M3, n, seed);
    for (int64_t k = 0; k < n; k++) b->x_groups.host[k] &= 0x7f;
    for (int64_t k = 0; k < n * 16; k++) b->plain_x[k] *= (float)element_of(WT_DTYPE_F8_E4M3, b->x_groups.host, k / 16);
    send_array(b, &b->x_groups);
}

/// What rounding left of x: elements of 2^-8 its size, with which it becomes plain.
static void make_low(bench *b, uint64_t *seed)
{
    const int64_t n = b->x_rows * b->x_stride;
    const unsigned less = 8u << (b->p.x == WT_DTYPE_BF16 ? 7 : 10); // of the exponent
    free_array(&b->x);
    b->x = random_array(b, b->p.x, 2 * n, seed);
    for (int64_t k = 0; k < n; k++) {
        uint16_t *low = (uint16_t *)b->x.host + n + k;
        *low = (uint16_t)(*low - less);
        b->plain_x[k] = (float)(element_of(b->p.x, b->x.host, k) + element_of(b->p.x, b->x.host, n + k));
    }
    send_array(b, &b->x);
}

void make_bench(bench *b, wt_device *device, const problem *p)
{
    uint64_t seed = 7;
    *b = (bench){.device = device, .p = *p};
    assert_ok(wt_stream_create(device, NULL, &b->stream));
    if (!b->p.n_parts) b->p.n_parts = 1;
    const int batches = p->n_batches ? p->n_batches : 1, repeat = p->x_repeat ? p->x_repeat : 1;
    b->n_stack = p->n_experts ? p->n_experts : batches;
    b->y_rows = (int64_t)batches * p->m;
    b->x_rows = (b->y_rows + repeat - 1) / repeat;
    b->x_stride = p->columns + (p->strides ? 16 : 0);
    b->x = random_array(b, p->x, b->x_rows * b->x_stride, &seed);
    b->plain_x = floats_of(p->x, &b->x, b->x_rows * b->x_stride);
    if (p->x == WT_DTYPE_F4) make_groups(b, &seed);
    if (p->two_parts) make_low(b, &seed);
    if (p->x_scales) b->x_scales = random_array(b, WT_DTYPE_F32, b->y_rows, &seed);
    if (p->tensor_scale) b->tensor_scale = random_array(b, WT_DTYPE_F32, 1, &seed);
    b->args = (wt_matmul_args){.n_parts = b->p.n_parts,
                               .x = address_of(&b->x),
                               .x_dtype = p->x,
                               .x_stride = p->strides ? b->x_stride : 0,
                               .x_scales = address_of(&b->x_scales),
                               .x_groups = address_of(&b->x_groups),
                               .m = p->m,
                               .y_dtype = p->y,
                               .activation = p->activation,
                               .gated = p->gated,
                               .add = p->add,
                               .two_parts = p->two_parts,
                               .n_batches = p->n_batches};
    for (int k = 0; k < b->p.n_parts; k++) make_part(b, k, &seed);
    if (p->n_experts) make_experts(b, &seed);
    assert_ok(wt_stream_synchronize(b->stream));
}

void unmake_bench(bench *b)
{
    for (int k = 0; k < 4; k++) {
        free_array(&b->w[k]);
        free_array(&b->scales[k]);
        free_array(&b->zeros[k]);
        free_array(&b->bias[k]);
        free_array(&b->y[k]);
        free(b->plain[k]);
    }
    free_array(&b->tensor_scale);
    free_array(&b->x);
    free(b->plain_x);
    free_array(&b->x_scales);
    free_array(&b->x_groups);
    free_array(&b->experts);
    wt_stream_destroy(b->stream);
}

// ---- the same in double

double weight_of(const bench *b, int part, int64_t stack, int64_t r, int64_t k)
{
    static const double e2m1[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    const problem *p = &b->p;
    const int64_t rows = rows_of(p, part), i = (stack * rows + r) * p->columns + k;
    const int64_t group = p->group ? (stack * rows + r) * (p->columns / p->group) + k / p->group : 0;
    const int64_t across = (p->columns + 127) / 128, down = (rows + 127) / 128;
    double v;
    if (p->packing) {
        const int nibble = b->w[part].host[i / 2] >> (i % 2 * 4) & 15;
        v = p->packing == WT_PACKING_U4 ? nibble - (p->zeros ? b->zeros[part].host[group] : 8)
                                        : (nibble & 8 ? -1 : 1) * e2m1[nibble & 7];
    } else
        v = b->plain[part][i];
    const int64_t which[] = {[WT_SCALING_TENSOR] = stack,
                             [WT_SCALING_ROW] = stack * rows + r,
                             [WT_SCALING_BLOCK] = (stack * down + r / 128) * across + k / 128,
                             [WT_SCALING_GROUP] = group};
    if (p->scaling) v *= element_of(p->scale_dtype, b->scales[part].host, which[p->scaling]);
    return p->tensor_scale ? v * element_of(WT_DTYPE_F32, b->tensor_scale.host, 0) : v;
}

static double activated(wt_activation activation, double v)
{
    switch (activation) {
    case WT_ACTIVATION_RELU:
        return v > 0 ? v : 0;
    case WT_ACTIVATION_SILU:
        return v / (1 + exp(-v));
    case WT_ACTIVATION_GELU:
        return v * (1 + erf(v / sqrt(2))) / 2;
    case WT_ACTIVATION_GELU_TANH:
        return v * (1 + tanh(sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))) / 2;
    default:
        return v;
    }
}

/// The matrix of row i of y, -1 for none.
static int64_t stack_of(const bench *b, int64_t i)
{
    const int32_t *list = (const int32_t *)b->experts.host;
    if (!b->p.n_experts) return i / b->p.m;
    if (b->p.chosen) return list[i];
    int e = 0;
    while (i >= list[e + 1]) e++;
    return e;
}

/// Row r of W times the row of x of row i of y, with bias; `size` grows by the sum of the magnitudes.
static double sum_of(const bench *b, int part, int64_t i, int64_t r, double *size)
{
    const problem *p = &b->p;
    const int64_t stack = stack_of(b, i), x_row = i / (p->x_repeat ? p->x_repeat : 1);
    const double x_scale = p->x_scales ? element_of(WT_DTYPE_F32, b->x_scales.host, i) : 1;
    double sum = p->bias ? element_of(WT_DTYPE_F32, b->bias[part].host, stack * rows_of(p, part) + r) : 0, sizes = 0;
    for (int64_t k = 0; k < p->columns; k++) {
        const double v = weight_of(b, part, stack, r, k) * (double)b->plain_x[x_row * b->x_stride + k] * x_scale;
        sum += v;
        sizes += fabs(v);
    }
    *size += sizes;
    return sum;
}

/// How far a sum may be moved by rounding, as a share of its magnitudes: sums of floats in any order and the epilogue's
/// functions 4e-6; weights that are rounded to a 16-bit x after scaling (beside many rows of x, and groups of 16
/// nibbles) half their step; FP8 by FP8 on tensor cores of compute capability 9.0, which add with 14 bits (DeepSeek-V3
/// technical report, 3.3.2): a product is cut towards zero at 2^-13 of the largest of its 32, by half of that on
/// average, and the largest is about 16 times the mean magnitude of these contents, so 2^-10 where all have one sign.
static double share_of(const problem *p)
{
    const bool wider = p->w != p->x && (p->scaling || p->packing || wt_dtype_block(p->w) > 1);
    const bool rounded =
        (wider && p->m > WT_MATMUL_SKINNY) || (p->packing && p->group == 16 && p->scale_dtype != WT_DTYPE_F8_E4M3);
    if (p->x == WT_DTYPE_F8_E4M3) return 0x1p-10; // 6.8e-4 met on an H200, with 144 columns
    return 4e-6 + (!rounded || p->x == WT_DTYPE_F32 ? 0 : p->x == WT_DTYPE_F16 ? 0x1p-11 : 0x1p-8);
}

/// Half a step of the type, as a share.
static double step_of(wt_dtype dtype) { return dtype == WT_DTYPE_BF16 ? 0x1p-8 : dtype == WT_DTYPE_F16 ? 0x1p-11 : 0; }

/// One element of y against its double; `before` is what y held.
static void check_element(const bench *b, int part, int64_t i, int64_t r, const unsigned char *before)
{
    const problem *p = &b->p;
    const int64_t k = i * b->y_stride[part] + r;
    double size = 0, want = activated(p->activation, sum_of(b, part, i, r, &size));
    if (p->gated) { // both sums' errors are multiplied with the other sum
        double other = 0;
        const double up = sum_of(b, 1, i, r, &other);
        size = size * fabs(up) + other * fabs(want) + size * other * share_of(p);
        want *= up;
        if (p->m > WT_MATMUL_SKINNY)
            size += 2 * step_of(p->y) / share_of(p) * fabs(want); // the library's sums in 16 bits
    }
    if (p->add) want += element_of(p->y, before, k);
    const bool low = p->two_parts && p->y != WT_DTYPE_F32;
    const double got = element_of(p->y, b->y[part].host, k) +
                       (low ? element_of(p->y, b->y[part].host, k + b->y_rows * b->y_stride[part]) : 0);
    const double step = low ? step_of(p->y) * step_of(p->y) : step_of(p->y);
    const double bound = (1.2 * share_of(p)) * size + step * fabs(want) + 1e-6;
    if (!(fabs(got - want) <= bound))
        fail_msg("part %d, y[%lld][%lld] is %.9g, want %.9g within %.2g: %s %d x %d, m %d, x %s, y %s, packing %d, "
                 "scaling %d, group %d",
                 part, (long long)i, (long long)r, got, want, bound, wt_dtype_name(p->w), p->rows, p->columns, p->m,
                 wt_dtype_name(p->x), wt_dtype_name(p->y), (int)p->packing, (int)p->scaling, p->group);
}

void check_results(const bench *b, int part, const unsigned char *before)
{
    const int64_t rows = rows_of(&b->p, part), stride = b->y_stride[part], n = b->y_rows * stride;
    const int64_t step = n * b->p.columns > 1000000 ? n * b->p.columns / 1000000 | 1 : 1;
    const size_t bytes = wt_dtype_bytes(b->p.y, 1);
    for (int64_t k = 0; k < n; k++) {
        const bool written = k % stride < rows && stack_of(b, k / stride) >= 0;
        if (!written) assert_memory_equal(b->y[part].host + (size_t)k * bytes, before + (size_t)k * bytes, bytes);
        if (written && (k % step == 0 || k >= n - 3)) check_element(b, part, k / stride, k % stride, before);
    }
}

void fetch(bench *b, int part)
{
    assert_ok(wt_stream_download(b->stream, b->y[part].host, b->y[part].buffer, 0, b->y[part].bytes));
    assert_ok(wt_stream_synchronize(b->stream));
}

void assert_bare_sums(const bench *b)
{
    const problem *p = &b->p;
    const int8_t *w = (const int8_t *)b->w[0].host, *x = (const int8_t *)b->x.host;
    for (int i = 0; i < p->m; i++)
        for (int r = 0; r < p->rows; r++) {
            int32_t want = 0, got;
            for (int c = 0; c < p->columns; c++)
                want += w[(int64_t)r * p->columns + c] * x[(int64_t)i * p->columns + c];
            memcpy(&got, b->y[0].host + 4 * ((int64_t)i * p->rows + r), sizeof got);
            assert_int_equal(got, want);
        }
}

void solve(wt_device *device, const problem *p, int without)
{
    bench b;
    wt_matmul *matmul = NULL;
    wt_graph *graph = NULL;
    unsigned char *before[4], *first[4];
    make_bench(&b, device, p);
    const wt_matmul_config config = {
        .device = device, .no_library = without >= WITHOUT_LIBRARY, .no_wgmma = without >= WITHOUT_WGMMA};
    assert_ok(wt_matmul_create(&config, &matmul));
    assert_ok(wt_matmul_prepare(matmul, &b.args));
    assert_ok(wt_matmul_enqueue(matmul, b.stream, &b.args));
    const int n_results = p->gated ? 1 : b.p.n_parts;
    for (int k = 0; k < n_results; k++) {
        before[k] = malloc(b.y[k].bytes);
        first[k] = malloc(b.y[k].bytes);
        memcpy(before[k], b.y[k].host, b.y[k].bytes);
        fetch(&b, k);
        memcpy(first[k], b.y[k].host, b.y[k].bytes);
        check_results(&b, k, before[k]);
        assert_ok(wt_stream_upload(b.stream, b.y[k].buffer, 0, before[k], b.y[k].bytes));
    }
    assert_ok(wt_stream_synchronize(b.stream));
    assert_ok(wt_graph_begin(b.stream, &graph));
    assert_ok(wt_matmul_enqueue(matmul, b.stream, &b.args));
    assert_ok(wt_graph_end(graph));
    assert_ok(wt_graph_launch(graph, b.stream));
    for (int k = 0; k < n_results; k++) {
        fetch(&b, k);
        assert_memory_equal(b.y[k].host, first[k], b.y[k].bytes);
        free(before[k]);
        free(first[k]);
    }
    wt_graph_destroy(graph);
    wt_matmul_destroy(matmul);
    unmake_bench(&b);
}
