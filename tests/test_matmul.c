// Products of matrices on both backends against sums in double: every type, scaling, epilogue and form, awkward shapes.
// An element may differ from the double result by a share of the sum of its magnitudes, sum |w x|, which is what
// rounding of float sums and of the inputs moves, and by half a step of its own type.
#include "support/device_check.h"
#include "support/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/graph.h>
#include <warptone/matmul.h>

enum { PAD = 3, GUARD = 0x5a };

/// What is multiplied; zeros are the plain choice.
typedef struct problem {
    wt_dtype w;
    wt_packing packing;
    wt_scaling scaling;
    wt_dtype scale_dtype;
    int group;
    bool zeros, tensor_scale;
    wt_dtype x, y;
    bool x_scales;
    int rows, columns, m; ///< rows of part 0; further parts have 5 more each, of a gated product as many
    int n_parts;          ///< 0 = 1
    bool gated, bias, add, strides;
    wt_activation activation;
    int n_batches;
    int n_experts; ///< with `chosen`: a matrix a row of y; else offsets
    bool chosen;
    int x_repeat;
} problem;

/// One array on the device and its copy here.
typedef struct array {
    wt_buffer *buffer;
    unsigned char *host;
    size_t bytes;
} array;

typedef struct bench {
    wt_device *device;
    wt_stream *stream;
    problem p;
    array w[4], scales[4], zeros[4], bias[4], y[4], tensor_scale, x, x_scales, experts;
    float *plain[4], *plain_x; ///< elements of w that are not packed, and of x
    int64_t n_stack, x_rows, y_rows, x_stride, y_stride[4];
    wt_matmul_args args;
} bench;

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
        if (block > 1)
            put_block(dtype, p, seed);
        else
            put_element(dtype, p, seed);
}

static double element(wt_dtype dtype, const void *data, int64_t k)
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

static array new_array(bench *b, size_t bytes)
{
    array a = {.bytes = bytes, .host = malloc(bytes)};
    assert_non_null(a.host);
    memset(a.host, GUARD, bytes);
    assert_ok(wt_buffer_create(b->device, WT_MEMORY_DEVICE, bytes, &a.buffer));
    return a;
}

static void send(bench *b, const array *a) { assert_ok(wt_stream_upload(b->stream, a->buffer, 0, a->host, a->bytes)); }

static array random_array(bench *b, wt_dtype dtype, int64_t n, uint64_t *seed)
{
    array a = new_array(b, wt_dtype_bytes(dtype, n));
    put(dtype, a.host, n, seed);
    send(b, &a);
    return a;
}

static void free_array(array *a)
{
    wt_buffer_destroy(a->buffer);
    free(a->host);
    *a = (array){0};
}

static uintptr_t at(const array *a) { return a->buffer ? wt_buffer_address(a->buffer) : 0; }

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
        send(b, &b->zeros[k]);
    }
    if (p->bias) b->bias[k] = random_array(b, WT_DTYPE_F32, b->n_stack * rows, seed);
    b->y_stride[k] = rows + (p->strides ? PAD : 0);
    const int64_t n_y = b->y_rows * b->y_stride[k];
    b->y[k] = p->add ? random_array(b, p->y, n_y, seed) : new_array(b, wt_dtype_bytes(p->y, n_y));
    send(b, &b->y[k]);
    b->args.parts[k] = (wt_matmul_part){
        .weight = {.data = at(&b->w[k]),
                   .rows = (int)rows,
                   .columns = p->columns,
                   .dtype = p->w,
                   .packing = p->packing,
                   .scaling = p->scaling,
                   .scale_dtype = p->scale_dtype,
                   .group = p->group,
                   .scales = at(&b->scales[k]),
                   .zeros = at(&b->zeros[k]),
                   .tensor_scale = at(&b->tensor_scale)},
        .y = at(&b->y[k]),
        .y_stride = p->strides ? b->y_stride[k] : 0,
        .bias = at(&b->bias[k]),
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
        b->args.experts = at(&b->experts);
    } else {
        for (int e = 0; e <= p->n_experts; e++)
            list[e] = e == 1 ? 0 : e < p->n_experts ? p->m * e / p->n_experts : p->m;
        list[0] = 0;
        b->args.offsets = at(&b->experts);
    }
    send(b, &b->experts);
    b->args.n_experts = p->n_experts;
    b->args.x_repeat = p->x_repeat;
}

static void make(bench *b, wt_device *device, const problem *p)
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
    if (p->x_scales) b->x_scales = random_array(b, WT_DTYPE_F32, b->y_rows, &seed);
    if (p->tensor_scale) b->tensor_scale = random_array(b, WT_DTYPE_F32, 1, &seed);
    b->args = (wt_matmul_args){.n_parts = b->p.n_parts,
                               .x = at(&b->x),
                               .x_dtype = p->x,
                               .x_stride = p->strides ? b->x_stride : 0,
                               .x_scales = at(&b->x_scales),
                               .m = p->m,
                               .y_dtype = p->y,
                               .activation = p->activation,
                               .gated = p->gated,
                               .add = p->add,
                               .n_batches = p->n_batches};
    for (int k = 0; k < b->p.n_parts; k++) make_part(b, k, &seed);
    if (p->n_experts) make_experts(b, &seed);
    assert_ok(wt_stream_synchronize(b->stream));
}

static void unmake(bench *b)
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
    free_array(&b->experts);
    wt_stream_destroy(b->stream);
}

// ---- the same in double

/// Weight k of row r of a matrix of the stack.
static double weight(const bench *b, int part, int64_t stack, int64_t r, int64_t k)
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
    if (p->scaling) v *= element(p->scale_dtype, b->scales[part].host, which[p->scaling]);
    return p->tensor_scale ? v * element(WT_DTYPE_F32, b->tensor_scale.host, 0) : v;
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
    const double x_scale = p->x_scales ? element(WT_DTYPE_F32, b->x_scales.host, i) : 1;
    double sum = p->bias ? element(WT_DTYPE_F32, b->bias[part].host, stack * rows_of(p, part) + r) : 0, sizes = 0;
    for (int64_t k = 0; k < p->columns; k++) {
        const double v = weight(b, part, stack, r, k) * (double)b->plain_x[x_row * b->x_stride + k] * x_scale;
        sum += v;
        sizes += fabs(v);
    }
    *size += sizes;
    return sum;
}

/// How far a sum may be moved by rounding, as a share of its magnitudes: sums of floats in any order and the epilogue's
/// functions 4e-6; weights that are rounded to a 16-bit x after scaling (beside many rows of x, and groups of 16
/// nibbles) half their step; FP8 by FP8 on tensor cores of compute
/// capability 9.0, which add with 14 bits (DeepSeek-V3 technical report, 3.3.2).
static double share_of(const problem *p)
{
    const bool wider = p->w != p->x && (p->scaling || p->packing || wt_dtype_block(p->w) > 1);
    const bool rounded =
        (wider && p->m > WT_MATMUL_SKINNY) || (p->packing && p->group == 16 && p->scale_dtype != WT_DTYPE_F8_E4M3);
    if (p->x == WT_DTYPE_F8_E4M3) return 0x1p-12; // 1.34e-4 met on an H200
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
    if (p->add) want += element(p->y, before, k);
    const double got = element(p->y, b->y[part].host, k);
    const double bound = (1.2 * share_of(p)) * size + step_of(p->y) * fabs(want) + 1e-6;
    if (!(fabs(got - want) <= bound))
        fail_msg("part %d, y[%lld][%lld] is %.9g, want %.9g within %.2g: %s %d x %d, m %d, x %s, y %s, packing %d, "
                 "scaling %d, group %d",
                 part, (long long)i, (long long)r, got, want, bound, wt_dtype_name(p->w), p->rows, p->columns, p->m,
                 wt_dtype_name(p->x), wt_dtype_name(p->y), (int)p->packing, (int)p->scaling, p->group);
}

/// All of small results, some of large ones; what lies between rows, and rows of no expert, stay as they were.
static void check(const bench *b, int part, const unsigned char *before)
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

static void fetch(bench *b, int part)
{
    assert_ok(wt_stream_download(b->stream, b->y[part].host, b->y[part].buffer, 0, b->y[part].bytes));
    assert_ok(wt_stream_synchronize(b->stream));
}

// ---- the tests

/// The problem through prepare and enqueue, twice (not when it adds) and from a graph: the same bits, and right.
static void solve(wt_device *device, const problem *p, bool no_library)
{
    bench b;
    wt_matmul *matmul = NULL;
    wt_graph *graph = NULL;
    unsigned char *before[4], *first[4];
    make(&b, device, p);
    assert_ok(wt_matmul_create(&(wt_matmul_config){.device = device, .no_library = no_library}, &matmul));
    assert_ok(wt_matmul_prepare(matmul, &b.args));
    assert_ok(wt_matmul_enqueue(matmul, b.stream, &b.args));
    const int n_results = p->gated ? 1 : b.p.n_parts;
    for (int k = 0; k < n_results; k++) {
        before[k] = malloc(b.y[k].bytes);
        first[k] = malloc(b.y[k].bytes);
        memcpy(before[k], b.y[k].host, b.y[k].bytes);
        fetch(&b, k);
        memcpy(first[k], b.y[k].host, b.y[k].bytes);
        check(&b, k, before[k]);
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
    unmake(&b);
}

#define SOLVE_ALL(device, problems)                                                                                    \
    for (size_t solve_k = 0; solve_k < sizeof(problems) / sizeof *(problems); solve_k++)                               \
        for (int no_library = 0; no_library < 2; no_library++) solve(device, &(problems)[solve_k], no_library)

#define F32  WT_DTYPE_F32
#define F16  WT_DTYPE_F16
#define BF16 WT_DTYPE_BF16
#define E4M3 WT_DTYPE_F8_E4M3
#define E5M2 WT_DTYPE_F8_E5M2
#define I8   WT_DTYPE_I8

static void every_type_of_weights_and_activations(void **state)
{
    static const wt_dtype weights[] = {F32, F16,           BF16,          E4M3,          E5M2,
                                       I8,  WT_DTYPE_Q8_0, WT_DTYPE_Q4_0, WT_DTYPE_Q4_K, WT_DTYPE_Q6_K};
    static const wt_dtype floats[] = {F32, F16, BF16};
    wt_device *device = device_of(state);
    for (int w = 0; w < 10; w++)
        for (int x = 0; x < 3; x++)
            for (int y = 0; y < 3; y++)
                solve(device,
                      &(problem){
                          .w = weights[w], .x = floats[x], .y = floats[y], .rows = 37, .columns = 512, .m = 1 + 2 * y},
                      true);
}

static void every_number_of_rows_of_x(void **state)
{
    wt_device *device = device_of(state);
    for (int m = 1; m <= 17; m++) {
        solve(device, &(problem){.w = BF16, .x = BF16, .y = F32, .rows = 40, .columns = 320, .m = m}, true);
        solve(device,
              &(problem){.w = I8, .scaling = WT_SCALING_ROW, .x = F16, .y = F16, .rows = 19, .columns = 272, .m = m},
              true);
        solve(device,
              &(problem){.w = WT_DTYPE_U8,
                         .packing = WT_PACKING_U4,
                         .scaling = WT_SCALING_GROUP,
                         .group = 128,
                         .zeros = true,
                         .x = BF16,
                         .y = BF16,
                         .rows = 33,
                         .columns = 384,
                         .m = m},
              true);
    }
    static const problem many[] = {
        {.w = BF16, .x = BF16, .y = BF16, .rows = 129, .columns = 264, .m = 64},
        {.w = BF16, .x = BF16, .y = F32, .rows = 256, .columns = 512, .m = 200, .bias = true},
        {.w = F16, .x = F16, .y = F16, .rows = 200, .columns = 320, .m = 130, .strides = true},
        {.w = F32, .x = F32, .y = F32, .rows = 72, .columns = 300, .m = 67},
        {.w = F16, .x = F16, .y = F32, .rows = 136, .columns = 256, .m = 200, .add = true},
        {.w = I8,
         .scaling = WT_SCALING_ROW,
         .x = BF16,
         .y = BF16,
         .rows = 136,
         .columns = 256,
         .m = 140,
         .n_parts = 2,
         .gated = true,
         .activation = WT_ACTIVATION_SILU},
        {.w = E4M3,
         .scaling = WT_SCALING_BLOCK,
         .x = BF16,
         .y = F32,
         .rows = 264,
         .columns = 384,
         .m = 140,
         .n_parts = 3,
         .add = true},
        {.w = WT_DTYPE_Q4_K, .x = BF16, .y = BF16, .rows = 40, .columns = 512, .m = 20, .bias = true},
        {.w = WT_DTYPE_Q4_K, .x = F16, .y = F32, .rows = 20, .columns = 2560, .m = 11},
        {.w = WT_DTYPE_Q6_K, .x = F16, .y = F32, .rows = 40, .columns = 512, .m = 33},
    };
    SOLVE_ALL(device, many);
}

static void awkward_columns(void **state)
{
    wt_device *device = device_of(state);
    static const int columns[] = {1, 7, 8, 24, 33, 100, 520, 1000, 2056, 4112};
    for (int k = 0; k < 10; k++) {
        solve(device, &(problem){.w = BF16, .x = BF16, .y = F32, .rows = 18, .columns = columns[k], .m = 3}, true);
        solve(device, &(problem){.w = I8, .x = BF16, .y = F32, .rows = 5, .columns = columns[k], .m = 2}, true);
        solve(device, &(problem){.w = F32, .x = F32, .y = F32, .rows = 1, .columns = columns[k], .m = 1}, true);
    }
}

static void every_scaling(void **state)
{
    static const problem problems[] = {
        {.w = I8, .scaling = WT_SCALING_TENSOR, .x = BF16, .y = F32, .rows = 20, .columns = 256, .m = 2},
        {.w = I8,
         .scaling = WT_SCALING_ROW,
         .scale_dtype = BF16,
         .x = BF16,
         .y = F32,
         .rows = 20,
         .columns = 256,
         .m = 2},
        {.w = I8, .scaling = WT_SCALING_BLOCK, .x = F32, .y = F32, .rows = 260, .columns = 272, .m = 2},
        {.w = I8,
         .scaling = WT_SCALING_GROUP,
         .scale_dtype = F16,
         .group = 32,
         .x = F32,
         .y = F32,
         .rows = 20,
         .columns = 256,
         .m = 2},
        {.w = I8,
         .scaling = WT_SCALING_GROUP,
         .scale_dtype = F16,
         .group = 32,
         .x = BF16,
         .y = F32,
         .rows = 20,
         .columns = 1024,
         .m = 9},
        {.w = I8, .scaling = WT_SCALING_GROUP, .group = 16, .x = F16, .y = F32, .rows = 20, .columns = 272, .m = 1},
        {.w = E4M3, .scaling = WT_SCALING_TENSOR, .x = BF16, .y = BF16, .rows = 48, .columns = 512, .m = 4},
        {.w = E4M3, .scaling = WT_SCALING_ROW, .x = BF16, .y = BF16, .rows = 48, .columns = 512, .m = 4},
        {.w = E4M3,
         .scaling = WT_SCALING_BLOCK,
         .scale_dtype = BF16,
         .x = BF16,
         .y = BF16,
         .rows = 260,
         .columns = 640,
         .m = 4},
        {.w = E4M3, .scaling = WT_SCALING_BLOCK, .x = F16, .y = F32, .rows = 130, .columns = 400, .m = 16},
        {.w = E5M2, .scaling = WT_SCALING_ROW, .x = F16, .y = F32, .rows = 30, .columns = 400, .m = 3},
        {.w = BF16, .scaling = WT_SCALING_ROW, .x = BF16, .y = F32, .rows = 30, .columns = 400, .m = 3},
        {.w = E4M3,
         .scaling = WT_SCALING_ROW,
         .x = E4M3,
         .x_scales = true,
         .y = BF16,
         .rows = 48,
         .columns = 512,
         .m = 20},
        {.w = E4M3, .scaling = WT_SCALING_TENSOR, .x = E4M3, .y = F32, .rows = 48, .columns = 512, .m = 200},
        {.w = I8, .scaling = WT_SCALING_ROW, .x = I8, .x_scales = true, .y = F32, .rows = 48, .columns = 512, .m = 20},
        {.w = I8,
         .scaling = WT_SCALING_ROW,
         .x = I8,
         .x_scales = true,
         .y = BF16,
         .rows = 160,
         .columns = 272,
         .m = 200,
         .bias = true},
    };
    SOLVE_ALL(device_of(state), problems);
}

static void four_bits(void **state)
{
    static const wt_dtype floats[] = {F32, F16, BF16};
    static const int groups[] = {16, 32, 64, 128, 256, 512};
    for (int g = 0; g < 6; g++)
        for (int x = 0; x < 3; x++)
            for (int zeros = 0; zeros < 2; zeros++)
                solve(device_of(state),
                      &(problem){.w = WT_DTYPE_U8,
                                 .packing = WT_PACKING_U4,
                                 .scaling = WT_SCALING_GROUP,
                                 .scale_dtype = floats[(g + x) % 3],
                                 .group = groups[g],
                                 .zeros = zeros,
                                 .x = floats[x],
                                 .y = F32,
                                 .rows = 21,
                                 .columns = 1024,
                                 .m = 1 + 4 * zeros},
                      true);
    static const problem problems[] = {
        {.w = WT_DTYPE_U8,
         .packing = WT_PACKING_E2M1,
         .scaling = WT_SCALING_GROUP,
         .scale_dtype = E4M3,
         .group = 16,
         .tensor_scale = true,
         .x = BF16,
         .y = F32,
         .rows = 40,
         .columns = 512,
         .m = 1},
        {.w = WT_DTYPE_U8,
         .packing = WT_PACKING_E2M1,
         .scaling = WT_SCALING_GROUP,
         .scale_dtype = E4M3,
         .group = 16,
         .tensor_scale = true,
         .x = F16,
         .y = F32,
         .rows = 40,
         .columns = 544,
         .m = 12},
        {.w = WT_DTYPE_U8, .packing = WT_PACKING_E2M1, .x = F16, .y = F32, .rows = 40, .columns = 64, .m = 2},
        {.w = WT_DTYPE_U8,
         .packing = WT_PACKING_U4,
         .scaling = WT_SCALING_ROW,
         .x = BF16,
         .y = F32,
         .rows = 40,
         .columns = 1056,
         .m = 2},
        {.w = WT_DTYPE_U8,
         .packing = WT_PACKING_U4,
         .scaling = WT_SCALING_TENSOR,
         .x = BF16,
         .y = F32,
         .rows = 40,
         .columns = 96,
         .m = 2},
        {.w = WT_DTYPE_U8,
         .packing = WT_PACKING_U4,
         .scaling = WT_SCALING_GROUP,
         .group = 48,
         .x = BF16,
         .y = F32,
         .rows = 40,
         .columns = 96,
         .m = 2},
        {.w = WT_DTYPE_U8,
         .packing = WT_PACKING_U4,
         .scaling = WT_SCALING_GROUP,
         .group = 128,
         .zeros = true,
         .x = BF16,
         .y = BF16,
         .rows = 136,
         .columns = 384,
         .m = 200},
    };
    SOLVE_ALL(device_of(state), problems);
}

static void parts_and_epilogues(void **state)
{
    static const problem problems[] = {
        {.w = BF16, .x = BF16, .y = BF16, .rows = 30, .columns = 256, .m = 1, .n_parts = 3, .bias = true},
        {.w = BF16, .x = BF16, .y = F32, .rows = 30, .columns = 256, .m = 5, .n_parts = 4, .strides = true},
        {.w = BF16, .x = BF16, .y = F32, .rows = 64, .columns = 256, .m = 1, .add = true, .strides = true},
        {.w = BF16, .x = BF16, .y = BF16, .rows = 64, .columns = 256, .m = 3, .add = true},
        {.w = F16, .x = F16, .y = F16, .rows = 64, .columns = 256, .m = 3, .add = true, .bias = true},
        {.w = BF16,
         .x = BF16,
         .y = BF16,
         .rows = 50,
         .columns = 256,
         .m = 1,
         .n_parts = 2,
         .gated = true,
         .activation = WT_ACTIVATION_SILU},
        {.w = BF16,
         .x = BF16,
         .y = F32,
         .rows = 50,
         .columns = 256,
         .m = 11,
         .n_parts = 2,
         .gated = true,
         .activation = WT_ACTIVATION_GELU_TANH,
         .bias = true},
        {.w = BF16,
         .x = BF16,
         .y = BF16,
         .rows = 200,
         .columns = 256,
         .m = 70,
         .n_parts = 2,
         .gated = true,
         .activation = WT_ACTIVATION_SILU},
        {.w = WT_DTYPE_Q4_K,
         .x = BF16,
         .y = F32,
         .rows = 50,
         .columns = 512,
         .m = 2,
         .n_parts = 2,
         .gated = true,
         .activation = WT_ACTIVATION_SILU},
        {.w = I8,
         .scaling = WT_SCALING_ROW,
         .x = I8,
         .x_scales = true,
         .y = F32,
         .rows = 50,
         .columns = 256,
         .m = 3,
         .n_parts = 2,
         .gated = true,
         .activation = WT_ACTIVATION_SILU},
        {.w = F32, .x = F32, .y = F32, .rows = 20, .columns = 64, .m = 2, .activation = WT_ACTIVATION_RELU},
        {.w = BF16,
         .x = BF16,
         .y = F32,
         .rows = 20,
         .columns = 64,
         .m = 2,
         .activation = WT_ACTIVATION_GELU,
         .bias = true},
        {.w = F16,
         .x = F16,
         .y = F16,
         .rows = 260,
         .columns = 128,
         .m = 66,
         .activation = WT_ACTIVATION_GELU,
         .bias = true},
        {.w = BF16, .x = BF16, .y = BF16, .rows = 260, .columns = 128, .m = 66, .n_parts = 3, .bias = true},
    };
    SOLVE_ALL(device_of(state), problems);
}

static void batches_and_experts(void **state)
{
    static const problem problems[] = {
        {.w = BF16, .x = BF16, .y = F32, .rows = 30, .columns = 128, .m = 3, .n_batches = 5, .strides = true},
        {.w = F16, .x = F16, .y = F16, .rows = 130, .columns = 128, .m = 70, .n_batches = 3, .bias = true},
        {.w = F32, .x = F32, .y = F32, .rows = 30, .columns = 33, .m = 3, .n_batches = 2},
        {.w = BF16,
         .x = BF16,
         .y = F32,
         .rows = 30,
         .columns = 128,
         .m = 8,
         .n_experts = 6,
         .chosen = true,
         .x_repeat = 4},
        {.w = BF16,
         .x = BF16,
         .y = BF16,
         .rows = 30,
         .columns = 128,
         .m = 8,
         .n_experts = 6,
         .chosen = true,
         .x_repeat = 2,
         .n_parts = 2,
         .gated = true,
         .activation = WT_ACTIVATION_SILU},
        {.w = I8,
         .scaling = WT_SCALING_ROW,
         .x = BF16,
         .y = F32,
         .rows = 30,
         .columns = 128,
         .m = 8,
         .n_experts = 6,
         .chosen = true},
        {.w = WT_DTYPE_U8,
         .packing = WT_PACKING_U4,
         .scaling = WT_SCALING_GROUP,
         .group = 64,
         .zeros = true,
         .x = BF16,
         .y = F32,
         .rows = 30,
         .columns = 128,
         .m = 8,
         .n_experts = 3,
         .chosen = true,
         .bias = true},
        {.w = BF16, .x = BF16, .y = F32, .rows = 30, .columns = 128, .m = 29, .n_experts = 5},
        {.w = BF16,
         .x = BF16,
         .y = BF16,
         .rows = 130,
         .columns = 128,
         .m = 300,
         .n_experts = 4,
         .bias = true,
         .strides = true},
        {.w = E4M3,
         .scaling = WT_SCALING_BLOCK,
         .x = BF16,
         .y = BF16,
         .rows = 130,
         .columns = 256,
         .m = 40,
         .n_experts = 4,
         .n_parts = 2,
         .gated = true,
         .activation = WT_ACTIVATION_SILU},
        {.w = F32, .x = F32, .y = F32, .rows = 10, .columns = 24, .m = 21, .n_experts = 4},
    };
    SOLVE_ALL(device_of(state), problems);
}

static void bare_sums_are_exact(void **state)
{
    const problem sizes[] = {{.rows = 33, .columns = 1000, .m = 3},
                             {.rows = 130, .columns = 2048, .m = 40},
                             {.rows = 64, .columns = 131072, .m = 1}};
    for (int k = 0; k < 3; k++) {
        bench b;
        wt_matmul *matmul = NULL;
        problem p = sizes[k];
        p.w = p.x = I8;
        p.y = WT_DTYPE_I32;
        make(&b, device_of(state), &p);
        assert_ok(wt_matmul_create(&(wt_matmul_config){.device = b.device}, &matmul));
        assert_ok(wt_matmul_enqueue(matmul, b.stream, &b.args));
        fetch(&b, 0);
        for (int i = 0; i < p.m; i++)
            for (int r = 0; r < p.rows; r++) {
                int32_t want = 0, got;
                for (int c = 0; c < p.columns; c++)
                    want +=
                        (int8_t)b.w[0].host[(int64_t)r * p.columns + c] * (int8_t)b.x.host[(int64_t)i * p.columns + c];
                memcpy(&got, b.y[0].host + 4 * ((int64_t)i * p.rows + r), sizeof got);
                assert_int_equal(got, want);
            }
        wt_matmul_destroy(matmul);
        unmake(&b);
    }
}

/// What batch verification and single decoding rely on: rows one by one give the bits of all rows together.
static void a_row_does_not_depend_on_the_others(void **state)
{
    static const problem problems[] = {
        {.w = BF16, .x = BF16, .y = F32, .rows = 48, .columns = 4096, .m = 16},
        {.w = F16, .x = F16, .y = F16, .rows = 48, .columns = 1024, .m = 13},
        {.w = I8, .scaling = WT_SCALING_ROW, .x = BF16, .y = F32, .rows = 48, .columns = 1024, .m = 16},
        {.w = E4M3, .scaling = WT_SCALING_BLOCK, .x = BF16, .y = F32, .rows = 48, .columns = 1024, .m = 16},
        {.w = WT_DTYPE_U8,
         .packing = WT_PACKING_U4,
         .scaling = WT_SCALING_GROUP,
         .group = 32,
         .x = BF16,
         .y = F32,
         .rows = 48,
         .columns = 1024,
         .m = 9},
        {.w = WT_DTYPE_Q4_K, .x = BF16, .y = F32, .rows = 48, .columns = 1024, .m = 9},
    };
    for (int k = 0; k < 6; k++) {
        bench b;
        wt_matmul *matmul = NULL;
        make(&b, device_of(state), &problems[k]);
        assert_ok(wt_matmul_create(&(wt_matmul_config){.device = b.device}, &matmul));
        assert_ok(wt_matmul_enqueue(matmul, b.stream, &b.args));
        fetch(&b, 0);
        unsigned char *together = malloc(b.y[0].bytes);
        memcpy(together, b.y[0].host, b.y[0].bytes);
        wt_matmul_args one = b.args;
        one.m = 1;
        for (int i = 0; i < b.p.m; i++) {
            one.x = b.args.x + (uintptr_t)i * wt_dtype_bytes(b.p.x, b.x_stride);
            one.parts[0].y = b.args.parts[0].y + (uintptr_t)i * wt_dtype_bytes(b.p.y, b.y_stride[0]);
            assert_ok(wt_matmul_enqueue(matmul, b.stream, &one));
        }
        fetch(&b, 0);
        assert_memory_equal(b.y[0].host, together, b.y[0].bytes);
        free(together);
        wt_matmul_destroy(matmul);
        unmake(&b);
    }
}

static void activations_are_quantised_by_rows(void **state)
{
    static const wt_dtype outs[] = {I8, E4M3};
    enum { M = 5, COLUMNS = 300 };
    for (int o = 0; o < 2; o++) {
        bench b;
        wt_matmul *matmul = NULL;
        make(&b, device_of(state), &(problem){.w = BF16, .x = BF16, .y = F32, .rows = 1, .columns = COLUMNS, .m = M});
        memset(b.x.host + 2 * COLUMNS, 0, 2 * COLUMNS); // row 1
        send(&b, &b.x);
        array out = new_array(&b, M * COLUMNS), scales = new_array(&b, M * sizeof(float));
        assert_ok(wt_matmul_create(&(wt_matmul_config){.device = b.device}, &matmul));
        assert_ok(wt_matmul_quantize(matmul, b.stream,
                                     &(wt_quantize_args){.x = at(&b.x),
                                                         .x_dtype = BF16,
                                                         .m = M,
                                                         .columns = COLUMNS,
                                                         .out = at(&out),
                                                         .out_dtype = outs[o],
                                                         .scales = at(&scales)}));
        assert_ok(wt_stream_download(b.stream, out.host, out.buffer, 0, out.bytes));
        assert_ok(wt_stream_download(b.stream, scales.host, scales.buffer, 0, scales.bytes));
        assert_ok(wt_stream_synchronize(b.stream));
        for (int i = 0; i < M; i++) {
            double most = 0;
            for (int k = 0; k < COLUMNS; k++) most = fmax(most, fabs(element(BF16, b.x.host, i * COLUMNS + k)));
            const double scale = element(F32, scales.host, i), top = o ? 448 : 127;
            assert_true(fabs(scale - (most > 0 ? most / top : 1)) <= 1e-7 * scale);
            for (int k = 0; k < COLUMNS; k++) { // half a step of 1, or of 4 significant bits and 2^-9
                const double want = element(BF16, b.x.host, i * COLUMNS + k) / scale,
                             got = element(outs[o], out.host, i * COLUMNS + k);
                assert_true(fabs(got - want) <= (o ? fmax(fabs(want) / 16, 0x1p-10) : 0.5) * 1.0001);
            }
        }
        wt_matmul_destroy(matmul);
        free_array(&out);
        free_array(&scales);
        unmake(&b);
    }
}

/// Products with the repacked matrix are those with its blocks, to rounding of sums.
static void blocks_keep_their_values_when_repacked(void **state)
{
    static const wt_dtype types[] = {WT_DTYPE_Q8_0, WT_DTYPE_Q4_0, WT_DTYPE_Q6_K};
    for (int k = 0; k < 3; k++) {
        bench b;
        wt_matmul *matmul = NULL;
        wt_buffer *memory = NULL;
        wt_matrix to;
        make(&b, device_of(state), &(problem){.w = types[k], .x = BF16, .y = F32, .rows = 35, .columns = 768, .m = 3});
        assert_ok(wt_matmul_create(&(wt_matmul_config){.device = b.device}, &matmul));
        const wt_matrix from = b.args.parts[0].weight;
        assert_ok(wt_buffer_create(b.device, WT_MEMORY_DEVICE, wt_matrix_repacked(&from, 0, &to), &memory));
        assert_int_not_equal(wt_matrix_repacked(&from, wt_buffer_address(memory), &to), 0);
        assert_ok(wt_matmul_repack(matmul, b.stream, &from, &to));
        b.args.parts[0].weight = to;
        assert_ok(wt_matmul_enqueue(matmul, b.stream, &b.args));
        unsigned char *before = malloc(b.y[0].bytes);
        memcpy(before, b.y[0].host, b.y[0].bytes);
        fetch(&b, 0);
        check(&b, 0, before);
        to.group *= 2;
        assert_int_equal(wt_matmul_repack(matmul, b.stream, &from, &to), WT_ERR_BAD_ARG);
        free(before);
        wt_buffer_destroy(memory);
        wt_matmul_destroy(matmul);
        unmake(&b);
    }
}

static void wrong_arguments_are_refused(void **state)
{
    bench b;
    wt_matmul *matmul = NULL;
    make(&b, device_of(state), &(problem){.w = BF16, .x = BF16, .y = F32, .rows = 16, .columns = 64, .m = 2});
    assert_fails(wt_matmul_create(&(wt_matmul_config){0}, &matmul), WT_ERR_BAD_ARG, "matmul: no device");
    assert_ok(wt_matmul_create(&(wt_matmul_config){.device = b.device}, &matmul));
    const wt_matmul_args good = b.args;
    wt_matmul_args bad;
#define REFUSED(change, code, sentence)                                                                                \
    do {                                                                                                               \
        bad = good;                                                                                                    \
        change;                                                                                                        \
        assert_fails(wt_matmul_enqueue(matmul, b.stream, &bad), code, sentence);                                       \
        assert_int_equal(wt_matmul_prepare(matmul, &bad), code);                                                       \
        assert_string_equal(wt_matmul_kernel(matmul, &bad), "");                                                       \
    } while (0)
    wt_matrix *w = &bad.parts[0].weight;
    REFUSED(bad.n_parts = 0, WT_ERR_BAD_ARG, "matmul: 0 parts, want 1 .. 4");
    REFUSED(bad.n_parts = 5, WT_ERR_BAD_ARG, "matmul: 5 parts, want 1 .. 4");
    REFUSED(w->rows = 0, WT_ERR_BAD_ARG, "matmul: a matrix of 0 x 64, want 1 .. 16777216 each");
    REFUSED(w->data = 0, WT_ERR_BAD_ARG, "matmul: weights are missing or unaligned");
    REFUSED(w->data++, WT_ERR_BAD_ARG, "matmul: weights are missing or unaligned");
    REFUSED(w->dtype = WT_DTYPE_F64, WT_ERR_UNSUPPORTED,
            "matmul: weights of type F64, want F32, F16, BF16, F8_E4M3, F8_E5M2, I8, Q8_0, Q4_0, Q4_K or Q6_K");
    REFUSED(w->dtype = WT_DTYPE_Q4_K, WT_ERR_BAD_ARG, "matmul: Q4_K weights with 64 columns, want a multiple of 256");
    REFUSED(w->packing = WT_PACKING_U4, WT_ERR_BAD_ARG,
            "matmul: packed weights of type BF16 with 64 columns, want U8 and an even number");
    REFUSED(w->scaling = WT_SCALING_ROW, WT_ERR_BAD_ARG, "matmul: scales are missing or unaligned");
    REFUSED((w->scaling = WT_SCALING_GROUP, w->scales = good.x, w->group = 24), WT_ERR_BAD_ARG,
            "matmul: groups of 24 of 64 columns, want a multiple of 16 that divides them");
    REFUSED((w->scaling = WT_SCALING_ROW, w->scales = good.x, w->scale_dtype = E4M3), WT_ERR_UNSUPPORTED,
            "matmul: scales of type F8_E4M3, want F32, F16, BF16, or F8_E4M3 of groups");
    REFUSED(w->zeros = good.x, WT_ERR_BAD_ARG, "matmul: zeros or a tensor scale without groups");
    REFUSED(w->next = -1, WT_ERR_BAD_ARG, "matmul: a negative distance of matrices in a stack");
    REFUSED((bad.n_parts = 2, bad.parts[1] = good.parts[0], bad.parts[1].weight.columns = 32), WT_ERR_BAD_ARG,
            "matmul: part 1 differs from part 0 in columns, type or scaling");
    REFUSED(bad.gated = true, WT_ERR_BAD_ARG, "matmul: a gated product wants two parts of as many rows");
    REFUSED(bad.x = 0, WT_ERR_BAD_ARG, "matmul: x is missing or unaligned");
    REFUSED(bad.x_dtype = WT_DTYPE_I64, WT_ERR_UNSUPPORTED, "matmul: x of type I64 with BF16 weights");
    REFUSED(bad.x_dtype = I8, WT_ERR_UNSUPPORTED, "matmul: x of type I8 with BF16 weights");
    REFUSED(bad.x_scales = good.x, WT_ERR_BAD_ARG, "matmul: scales of x are unaligned, or x is BF16, which has none");
    REFUSED(bad.x_stride = 63, WT_ERR_BAD_ARG, "matmul: x_stride 63, want 64 or more");
    REFUSED(bad.y_dtype = I8, WT_ERR_UNSUPPORTED, "matmul: y of type I8, want F32, F16, BF16 or I32");
    REFUSED(bad.y_dtype = WT_DTYPE_I32, WT_ERR_UNSUPPORTED, "matmul: y of type I32 is for bare sums of I8 products");
    REFUSED(bad.parts[0].y += 2, WT_ERR_BAD_ARG, "matmul: y of part 0 is missing or unaligned");
    REFUSED(bad.parts[0].y_stride = 8, WT_ERR_BAD_ARG, "matmul: y_stride 8, want 16 or more");
    REFUSED(bad.parts[0].bias = 2, WT_ERR_BAD_ARG, "matmul: the bias of part 0 is unaligned");
    REFUSED(bad.m = -1, WT_ERR_BAD_ARG, "matmul: m -1, want 0 .. 65535");
    REFUSED(bad.activation = WT_N_ACTIVATIONS, WT_ERR_BAD_ARG, "matmul: activation 5 is none");
    REFUSED(bad.n_batches = 65535, WT_ERR_BAD_ARG, "matmul: 65535 batches of 2 rows, want at most 65535 rows together");
    REFUSED((bad.experts = good.x, bad.offsets = good.x), WT_ERR_BAD_ARG,
            "matmul: experts or offsets, aligned, and no batches beside them");
    REFUSED(bad.experts = good.x, WT_ERR_BAD_ARG, "matmul: 0 experts, x_repeat 0, want 1 .. 4096, 0 or more");
#undef REFUSED
    bad = good;
    bad.m = 0; // nothing to do
    assert_ok(wt_matmul_prepare(matmul, &bad));
    assert_ok(wt_matmul_enqueue(matmul, b.stream, &bad));
    wt_matmul_destroy(matmul);
    wt_matmul_destroy(NULL);
    unmake(&b);
}

static void works_in_a_partition(void **state)
{
    wt_device *device = wide_device_of(state);
    wt_layout *layout = layout_of(device, &two_config);
    wt_partition *partition = wt_layout_find(layout, "llm");
    wt_stream *stream = stream_of(partition);
    static const problem problems[] = {{.w = BF16, .x = BF16, .y = F32, .rows = 300, .columns = 512, .m = 2},
                                       {.w = BF16, .x = BF16, .y = BF16, .rows = 256, .columns = 512, .m = 130}};
    for (int k = 0; k < 2; k++) {
        bench b;
        wt_matmul *matmul = NULL;
        make(&b, device, &problems[k]);
        assert_ok(wt_matmul_create(&(wt_matmul_config){.device = device, .partition = partition}, &matmul));
        assert_ok(wt_matmul_prepare(matmul, &b.args));
        assert_ok(wt_matmul_enqueue(matmul, stream, &b.args));
        assert_ok(wt_stream_synchronize(stream));
        unsigned char *before = malloc(b.y[0].bytes);
        memcpy(before, b.y[0].host, b.y[0].bytes);
        fetch(&b, 0);
        check(&b, 0, before);
        free(before);
        wt_matmul_destroy(matmul);
        unmake(&b);
    }
    wt_stream_destroy(stream);
    assert_ok(wt_layout_destroy(layout));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_of_weights_and_activations),
        cmocka_unit_test(every_number_of_rows_of_x),
        cmocka_unit_test(awkward_columns),
        cmocka_unit_test(every_scaling),
        cmocka_unit_test(four_bits),
        cmocka_unit_test(parts_and_epilogues),
        cmocka_unit_test(batches_and_experts),
        cmocka_unit_test(bare_sums_are_exact),
        cmocka_unit_test(a_row_does_not_depend_on_the_others),
        cmocka_unit_test(activations_are_quantised_by_rows),
        cmocka_unit_test(blocks_keep_their_values_when_repacked),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(works_in_a_partition),
    };
    int failed = cmocka_run_group_tests_name("matmul, CPU", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("matmul, CUDA", tests, open_cuda, close_device);
}
