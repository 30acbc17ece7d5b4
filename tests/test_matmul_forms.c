// Products of matrices on both backends: parts, epilogues, batches, experts, exact sums; quantised activations,
// repacked weights, refusals, partitions.
#include "support/matmul_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const problem part_problems[] = {
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

static void parts_and_epilogues(void **state) { SOLVE_ALL(device_of(state), part_problems); }

static const problem stack_problems[] = {
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

static void batches_and_experts(void **state) { SOLVE_ALL(device_of(state), stack_problems); }

/// Fewer rows than matmul_wgmma has in a tile: more than the few kernels take, and of experts.
static void rows_that_do_not_fill_a_tile(void **state)
{
    static const problem problems[] = {
        {.w = BF16, .x = BF16, .y = F32, .rows = 200, .columns = 136, .m = 65, .add = true},
        {.w = F16, .x = F16, .y = F16, .rows = 264, .columns = 512, .m = 100, .bias = true, .strides = true},
        {.w = BF16, .x = BF16, .y = BF16, .rows = 136, .columns = 128, .m = 128, .n_parts = 3},
        {.w = BF16,
         .x = BF16,
         .y = BF16,
         .rows = 130,
         .columns = 192,
         .m = 90,
         .n_parts = 2,
         .gated = true,
         .activation = WT_ACTIVATION_SILU},
        {.w = BF16, .x = BF16, .y = F32, .rows = 130, .columns = 128, .m = 36, .n_experts = 4},
        {.w = F16,
         .x = F16,
         .y = F16,
         .rows = 72,
         .columns = 136,
         .m = 60,
         .n_experts = 3,
         .n_parts = 2,
         .gated = true,
         .activation = WT_ACTIVATION_SILU},
        {.w = BF16, .x = BF16, .y = F32, .rows = 40, .columns = 2048, .m = 500, .n_experts = 7, .bias = true},
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
        make_bench(&b, device_of(state), &p);
        assert_ok(wt_matmul_create(&(wt_matmul_config){.device = b.device}, &matmul));
        assert_ok(wt_matmul_enqueue(matmul, b.stream, &b.args));
        fetch(&b, 0);
        assert_bare_sums(&b);
        wt_matmul_destroy(matmul);
        unmake_bench(&b);
    }
}

/// What batch verification relies on: rows one by one give the bits of all rows together.
static void a_row_does_not_depend_on_the_others(void **state)
{
    static const problem problems[] = {
        {.w = BF16, .x = BF16, .y = F32, .rows = 48, .columns = 4096, .m = 8},
        {.w = F16, .x = F16, .y = F16, .rows = 48, .columns = 1024, .m = 7},
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
        make_bench(&b, device_of(state), &problems[k]);
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
        unmake_bench(&b);
    }
}

static void activations_are_quantised_by_rows(void **state)
{
    static const wt_dtype outs[] = {I8, E4M3};
    enum { M = 5, COLUMNS = 300 };
    for (int o = 0; o < 2; o++) {
        bench b;
        wt_matmul *matmul = NULL;
        make_bench(&b, device_of(state),
                   &(problem){.w = BF16, .x = BF16, .y = F32, .rows = 1, .columns = COLUMNS, .m = M});
        memset(b.x.host + 2 * COLUMNS, 0, 2 * COLUMNS); // row 1
        send_array(&b, &b.x);
        array out = new_array(&b, M * COLUMNS), scales = new_array(&b, M * sizeof(float));
        assert_ok(wt_matmul_create(&(wt_matmul_config){.device = b.device}, &matmul));
        assert_ok(wt_matmul_quantize(matmul, b.stream,
                                     &(wt_quantize_args){.x = address_of(&b.x),
                                                         .x_dtype = BF16,
                                                         .m = M,
                                                         .columns = COLUMNS,
                                                         .out = address_of(&out),
                                                         .out_dtype = outs[o],
                                                         .scales = address_of(&scales)}));
        assert_ok(wt_stream_download(b.stream, out.host, out.buffer, 0, out.bytes));
        assert_ok(wt_stream_download(b.stream, scales.host, scales.buffer, 0, scales.bytes));
        assert_ok(wt_stream_synchronize(b.stream));
        for (int i = 0; i < M; i++) {
            double most = 0;
            for (int k = 0; k < COLUMNS; k++) most = fmax(most, fabs(element_of(BF16, b.x.host, i * COLUMNS + k)));
            const double scale = element_of(F32, scales.host, i), top = o ? 448 : 127;
            assert_true(fabs(scale - (most > 0 ? most / top : 1)) <= 1e-7 * scale);
            for (int k = 0; k < COLUMNS; k++) { // half a step of 1, or of 4 significant bits and 2^-9
                const double want = element_of(BF16, b.x.host, i * COLUMNS + k) / scale,
                             got = element_of(outs[o], out.host, i * COLUMNS + k);
                assert_true(fabs(got - want) <= (o ? fmax(fabs(want) / 16, 0x1p-10) : 0.5) * 1.0001);
            }
        }
        wt_matmul_destroy(matmul);
        free_array(&out);
        free_array(&scales);
        unmake_bench(&b);
    }
}

/// To E2M1: scales of a row, and of 16 columns in E4M3, and the nearest numbers to the quotients.
static void activations_are_quantised_to_nvfp4(void **state)
{
    enum { M = 4, COLUMNS = 320, GROUPS = COLUMNS / 16 };
    static const double steps[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    bench b;
    wt_matmul *matmul = NULL;
    make_bench(&b, device_of(state), &(problem){.w = BF16, .x = BF16, .y = F32, .rows = 1, .columns = COLUMNS, .m = M});
    memset(b.x.host + 2 * COLUMNS, 0, 2 * COLUMNS);       // row 1
    memset(b.x.host + 2 * (2 * COLUMNS + 32), 0, 2 * 16); // a group of row 2
    ((uint16_t *)(void *)b.x.host)[3 * COLUMNS] = 0x4780; // 65536, beside which others are below a group's scale
    send_array(&b, &b.x);
    array out = new_array(&b, M * COLUMNS / 2), scales = new_array(&b, M * sizeof(float));
    array groups = new_array(&b, M * GROUPS);
    assert_ok(wt_matmul_create(&(wt_matmul_config){.device = b.device}, &matmul));
    wt_quantize_args args = {.x = address_of(&b.x),
                             .x_dtype = BF16,
                             .m = M,
                             .columns = COLUMNS,
                             .out = address_of(&out),
                             .out_dtype = WT_DTYPE_F4,
                             .scales = address_of(&scales),
                             .groups = address_of(&groups)};
    assert_ok(wt_matmul_quantize(matmul, b.stream, &args));
    assert_ok(wt_stream_download(b.stream, out.host, out.buffer, 0, out.bytes));
    assert_ok(wt_stream_download(b.stream, scales.host, scales.buffer, 0, scales.bytes));
    assert_ok(wt_stream_download(b.stream, groups.host, groups.buffer, 0, groups.bytes));
    assert_ok(wt_stream_synchronize(b.stream));
    for (int j = 0; j < M * GROUPS; j++) {
        double most = 0, of_row = 0;
        for (int k = 0; k < COLUMNS; k++)
            of_row = fmax(of_row, fabs(element_of(BF16, b.x.host, j / GROUPS * COLUMNS + k)));
        for (int k = 0; k < 16; k++) most = fmax(most, fabs(element_of(BF16, b.x.host, j * 16 + k)));
        const double scale = element_of(F32, scales.host, j / GROUPS), group = element_of(E4M3, groups.host, j);
        assert_true(fabs(scale - (of_row > 0 ? of_row / 2688 : 1)) <= 1e-7 * scale);
        assert_true(fabs(group - most / 6 / scale) <= fmax(most / 6 / scale / 16, 0x1p-10) * 1.0001);
        for (int k = 0; k < 16; k++) {
            const double x = element_of(BF16, b.x.host, j * 16 + k), step = scale * group,
                         got = element_of(WT_DTYPE_F4, out.host, j * 16 + k);
            double nearest = 6;
            for (int i = 0; i < 8; i++)
                if (fabs(fabs(x) - steps[i] * step) < fabs(fabs(x) - nearest * step)) nearest = steps[i];
            if (group == 0) nearest = 0;
            assert_true(fabs(fabs(x) - fabs(got) * step) <= fabs(fabs(x) - nearest * step) + 1e-6 * step);
            assert_true(got * x >= 0);
        }
    }
    args.columns = COLUMNS - 8;
    assert_fails(wt_matmul_quantize(matmul, b.stream, &args), WT_ERR_BAD_ARG,
                 "matmul: quantize: groups go with F4 and multiples of 16 columns, met 312");
    args.out_dtype = I8;
    args.columns = COLUMNS;
    assert_fails(wt_matmul_quantize(matmul, b.stream, &args), WT_ERR_BAD_ARG,
                 "matmul: quantize: groups go with F4 and multiples of 16 columns, met 320");
    wt_matmul_destroy(matmul);
    free_array(&out);
    free_array(&scales);
    free_array(&groups);
    unmake_bench(&b);
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
        make_bench(&b, device_of(state),
                   &(problem){.w = types[k], .x = BF16, .y = F32, .rows = 35, .columns = 768, .m = 3});
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
        check_results(&b, 0, before);
        to.group *= 2;
        assert_int_equal(wt_matmul_repack(matmul, b.stream, &from, &to), WT_ERR_BAD_ARG);
        free(before);
        wt_buffer_destroy(memory);
        wt_matmul_destroy(matmul);
        unmake_bench(&b);
    }
}

/// A product that is good, and one change that is not, which is refused and names no kernel.
typedef struct refusal {
    bench b;
    wt_matmul *matmul;
    wt_matmul_args good, bad;
} refusal;

static void open_refusal(refusal *r, void **state)
{
    make_bench(&r->b, device_of(state), &(problem){.w = BF16, .x = BF16, .y = F32, .rows = 16, .columns = 64, .m = 2});
    assert_ok(wt_matmul_create(&(wt_matmul_config){.device = r->b.device}, &r->matmul));
    r->good = r->b.args;
}

static void close_refusal(refusal *r)
{
    wt_matmul_destroy(r->matmul);
    unmake_bench(&r->b);
}

static void assert_refused(refusal *r, wt_status code, const char *sentence)
{
    assert_fails(wt_matmul_enqueue(r->matmul, r->b.stream, &r->bad), code, sentence);
    assert_int_equal(wt_matmul_prepare(r->matmul, &r->bad), code);
    assert_string_equal(wt_matmul_kernel(r->matmul, &r->bad), "");
}

#define REFUSED(change, code, sentence)                                                                                \
    do {                                                                                                               \
        r.bad = r.good;                                                                                                \
        change;                                                                                                        \
        assert_refused(&r, code, sentence);                                                                            \
    } while (0)

static void wrong_weights_are_refused(void **state)
{
    refusal r;
    open_refusal(&r, state);
    const wt_matmul_args good = r.good;
    wt_matrix *w = &r.bad.parts[0].weight;
    REFUSED(r.bad.n_parts = 0, WT_ERR_BAD_ARG, "matmul: 0 parts, want 1 .. 4");
    REFUSED(r.bad.n_parts = 5, WT_ERR_BAD_ARG, "matmul: 5 parts, want 1 .. 4");
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
    REFUSED((r.bad.n_parts = 2, r.bad.parts[1] = good.parts[0], r.bad.parts[1].weight.columns = 32), WT_ERR_BAD_ARG,
            "matmul: part 1 differs from part 0 in columns, type or scaling");
    close_refusal(&r);
}

static void wrong_arguments_are_refused(void **state)
{
    refusal r;
    wt_matmul *none = NULL;
    open_refusal(&r, state);
    assert_fails(wt_matmul_create(&(wt_matmul_config){0}, &none), WT_ERR_BAD_ARG, "matmul: no device");
    const wt_matmul_args good = r.good;
    REFUSED(r.bad.gated = true, WT_ERR_BAD_ARG, "matmul: a gated product wants two parts of as many rows");
    REFUSED(r.bad.x = 0, WT_ERR_BAD_ARG, "matmul: x is missing or unaligned");
    REFUSED(r.bad.x_dtype = WT_DTYPE_I64, WT_ERR_UNSUPPORTED, "matmul: x of type I64 with BF16 weights");
    REFUSED(r.bad.x_dtype = I8, WT_ERR_UNSUPPORTED, "matmul: x of type I8 with BF16 weights");
    REFUSED(r.bad.x_dtype = WT_DTYPE_F4, WT_ERR_UNSUPPORTED, "matmul: x of type F4 with BF16 weights");
    REFUSED(r.bad.x_groups = good.x, WT_ERR_BAD_ARG, "matmul: x_groups go with x of type F4, which is dense");
    REFUSED(r.bad.x_scales = good.x, WT_ERR_BAD_ARG, "matmul: scales of x are unaligned, or x is BF16, which has none");
    REFUSED(r.bad.x_stride = 63, WT_ERR_BAD_ARG, "matmul: x_stride 63, want 64 or more");
    REFUSED(r.bad.y_dtype = I8, WT_ERR_UNSUPPORTED, "matmul: y of type I8, want F32, F16, BF16 or I32");
    REFUSED(r.bad.y_dtype = WT_DTYPE_I32, WT_ERR_UNSUPPORTED, "matmul: y of type I32 is for bare sums of I8 products");
    REFUSED(r.bad.parts[0].y += 2, WT_ERR_BAD_ARG, "matmul: y of part 0 is missing or unaligned");
    REFUSED(r.bad.parts[0].y_stride = 8, WT_ERR_BAD_ARG, "matmul: y_stride 8, want 16 or more");
    REFUSED(r.bad.parts[0].bias = 2, WT_ERR_BAD_ARG, "matmul: the bias of part 0 is unaligned");
    REFUSED(r.bad.m = -1, WT_ERR_BAD_ARG, "matmul: m -1, want 0 .. 65535");
    REFUSED(r.bad.activation = WT_N_ACTIVATIONS, WT_ERR_BAD_ARG, "matmul: activation 5 is none");
    REFUSED(r.bad.n_batches = 65535, WT_ERR_BAD_ARG, "matmul: 65535 batches of 2 rows, want at most 65535 rows together");
    REFUSED((r.bad.experts = good.x, r.bad.offsets = good.x), WT_ERR_BAD_ARG,
            "matmul: experts or offsets, aligned, and no batches beside them");
    REFUSED(r.bad.experts = good.x, WT_ERR_BAD_ARG, "matmul: 0 experts, x_repeat 0, want 1 .. 4096, 0 or more");
    r.bad = r.good;
    r.bad.m = 0; // nothing to do
    assert_ok(wt_matmul_prepare(r.matmul, &r.bad));
    assert_ok(wt_matmul_enqueue(r.matmul, r.b.stream, &r.bad));
    wt_matmul_destroy(NULL);
    close_refusal(&r);
}
#undef REFUSED

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
        make_bench(&b, device, &problems[k]);
        assert_ok(wt_matmul_create(&(wt_matmul_config){.device = device, .partition = partition}, &matmul));
        assert_ok(wt_matmul_prepare(matmul, &b.args));
        assert_ok(wt_matmul_enqueue(matmul, stream, &b.args));
        assert_ok(wt_stream_synchronize(stream));
        unsigned char *before = malloc(b.y[0].bytes);
        memcpy(before, b.y[0].host, b.y[0].bytes);
        fetch(&b, 0);
        check_results(&b, 0, before);
        free(before);
        wt_matmul_destroy(matmul);
        unmake_bench(&b);
    }
    wt_stream_destroy(stream);
    assert_ok(wt_layout_destroy(layout));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_and_epilogues),
        cmocka_unit_test(batches_and_experts),
        cmocka_unit_test(rows_that_do_not_fill_a_tile),
        cmocka_unit_test(bare_sums_are_exact),
        cmocka_unit_test(a_row_does_not_depend_on_the_others),
        cmocka_unit_test(activations_are_quantised_by_rows),
        cmocka_unit_test(activations_are_quantised_to_nvfp4),
        cmocka_unit_test(blocks_keep_their_values_when_repacked),
        cmocka_unit_test(wrong_weights_are_refused),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(works_in_a_partition),
    };
    int failed = cmocka_run_group_tests_name("matmul forms, CPU", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("matmul forms, CUDA", tests, open_cuda, close_device);
}
