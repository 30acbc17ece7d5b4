// Products of matrices on both backends: parts, epilogues, batches, experts, exact sums; quantised activations,
// repacked weights, refusals, partitions.
#include "support/matmul_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/// Part `part` of the results by the library or without it, in tf32 or not; caller frees with free().
static float *floats_by(bench *b, bool no_library, bool tf32, int part)
{
    const wt_matmul_config config = {.device = b->device, .no_library = no_library, .tf32 = tf32};
    const int64_t n = b->y_rows * b->y_stride[part];
    wt_matmul *matmul = NULL;
    float *y = malloc(sizeof *y * (size_t)n);
    assert_non_null(y);
    assert_ok(wt_matmul_create(&config, &matmul));
    assert_ok(wt_matmul_enqueue(matmul, b->stream, &b->args));
    fetch(b, part);
    for (int64_t k = 0; k < n; k++) y[k] = (float)element_of(b->p.y, b->y[part].host, k);
    wt_matmul_destroy(matmul);
    return y;
}

/// 10 bits of both sides instead of 23, through the library and without it, on a GPU; never of itself (every F32
/// product of test_matmul.c is within 4e-6).
static void check_tf32(wt_device *device, const problem *p)
{
    bench b;
    make_bench(&b, device, p);
    for (int way = 0; way < 2 * (p->n_parts > 1 && !p->gated ? p->n_parts : 1); way++) {
        const int part = way / 2;
        const bool no_library = way % 2;
        float *exact = floats_by(&b, no_library, false, part), *rounded = floats_by(&b, no_library, true, part);
        double peak = 0, apart = 0;
        for (int64_t k = 0; k < b.y_rows * b.y_stride[part]; k++) {
            peak = fmax(peak, fabs(exact[k]));
            apart = fmax(apart, fabs(exact[k] - rounded[k]));
        }
        print_message("%d rows: tf32 moves y by %.1e of its largest%s\n", p->m, apart / peak,
                      no_library ? ", without the library" : "");
        assert_true(peak > 0 && peak < 1e6);
        assert_true(apart <= 2e-3 * peak);
        if (wt_device_get_info(b.device)->backend == WT_BACKEND_CUDA)
            assert_true(apart > 1e-5 * peak);
        else
            assert_true(apart == 0);
        free(exact);
        free(rounded);
    }
    unmake_bench(&b);
}

#define FLOATS(n_rows, n_columns, n_x) .w = F32, .x = F32, .y = F32, .rows = n_rows, .columns = n_columns, .m = n_x

static void tf32_comes_only_when_asked_for(void **state)
{
    static const problem problems[] = {
        {FLOATS(64, 516, 136)},
        {FLOATS(64, 516, 128)},
        {FLOATS(64, 516, 60)},
        {FLOATS(64, 516, 20)},
        {FLOATS(1000, 1028, 256)},
        {FLOATS(200, 772, 100), .bias = true, .n_parts = 3},
        {FLOATS(300, 260, 140), .n_parts = 2, .gated = true, .activation = WT_ACTIVATION_SILU, .bias = true},
        {FLOATS(130, 260, 50), .n_parts = 2, .gated = true, .activation = WT_ACTIVATION_SILU},
        {FLOATS(130, 132, 130), .n_batches = 3},
        {FLOATS(130, 132, 50), .n_batches = 3},
        {FLOATS(130, 132, 300), .n_experts = 4, .bias = true},
        {.w = F32, .x = F32, .y = F16, .rows = 264, .columns = 300, .m = 200},
    };
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++) check_tf32(device_of(state), &problems[k]);
}

/// Of a float the 10 bits of a tf32, cut off, or the nearest one; of two as near the even one, or that away from zero.
enum { CUT, NEAREST_EVEN, NEAREST_AWAY, N_ROUNDINGS };

static float tf32_of(float v, int rounding)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    if (rounding == NEAREST_EVEN) bits += 0xfff + (bits >> 13 & 1);
    if (rounding == NEAREST_AWAY) bits += 0x1000;
    bits &= ~(uint32_t)0x1fff;
    memcpy(&v, &bits, sizeof bits);
    return v;
}

/// Rows of x that are 1 in one column bring elements of W to y as tensor cores have them.
static void look_at_rounding(wt_device *device, int m, int without, const char **kernel, int *n_alike)
{
    enum { ROWS = 64, COLUMNS = 516 };
    bench b;
    wt_matmul *matmul = NULL;
    make_bench(&b, device, &(problem){.w = F32, .x = F32, .y = F32, .rows = ROWS, .columns = COLUMNS, .m = m});
    float *x = (float *)b.x.host, *w = (float *)b.w[0].host, *y = (float *)b.y[0].host;
    memset(x, 0, b.x.bytes);
    for (int i = 0; i < m; i++) x[i * b.x_stride + 3 * i] = 1;
    for (int r = 0; r < ROWS; r += 2) { // halves between two tf32
        uint32_t bits;
        memcpy(&bits, &w[r * COLUMNS], sizeof bits);
        bits = (bits & ~(uint32_t)0x1fff) | 0x1000;
        memcpy(&w[r * COLUMNS], &bits, sizeof bits);
    }
    send_array(&b, &b.x);
    send_array(&b, &b.w[0]);
    const wt_matmul_config config = {
        .device = device, .no_library = without >= WITHOUT_LIBRARY, .no_wgmma = without >= WITHOUT_WGMMA, .tf32 = true};
    assert_ok(wt_matmul_create(&config, &matmul));
    *kernel = wt_matmul_kernel(matmul, &b.args);
    assert_ok(wt_matmul_enqueue(matmul, b.stream, &b.args));
    fetch(&b, 0);
    for (int k = 0; k < N_ROUNDINGS; k++) n_alike[k] = 0;
    for (int i = 0; i < m; i++)
        for (int r = 0; r < ROWS; r++)
            for (int k = 0; k < N_ROUNDINGS; k++)
                n_alike[k] += y[i * b.y_stride[0] + r] == tf32_of(w[r * COLUMNS + 3 * i], k);
    wt_matmul_destroy(matmul);
    unmake_bench(&b);
}

static void tf32_is_the_nearest(void **state)
{
    wt_device *device = device_of(state);
    const wt_device_info *info = wt_device_get_info(device);
    if (info->backend != WT_BACKEND_CUDA) skip();
    static const int rows[] = {136, 100, 60, 20};
    for (int k = 0; k < 4 * N_WITHOUT; k++) {
        const char *kernel;
        const int m = rows[k / N_WITHOUT], without = k % N_WITHOUT, all = m * 64;
        int n_alike[N_ROUNDINGS];
        look_at_rounding(device, m, without, &kernel, n_alike);
        print_message("%s, %d rows: of %d elements %d as cut off, %d as the nearest, %d with halves away from zero\n",
                      kernel, m, all, n_alike[CUT], n_alike[NEAREST_EVEN], n_alike[NEAREST_AWAY]);
        if (!strcmp(kernel, "library")) continue;
        const bool boxes = info->compute_major == 9 && info->compute_minor == 0 && without < WITHOUT_WGMMA;
        assert_string_equal(kernel, boxes ? "matmul_wgmma" : m > 128 ? "matmul_tiles" : "matmul_slices");
        assert_int_equal(n_alike[boxes ? NEAREST_EVEN : CUT], all);
    }
}

static void wrong_arguments_are_refused(void **state)
{
    bench b;
    wt_matmul *matmul = NULL;
    make_bench(&b, device_of(state), &(problem){.w = BF16, .x = BF16, .y = F32, .rows = 16, .columns = 64, .m = 2});
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
    REFUSED(bad.x_dtype = WT_DTYPE_F4, WT_ERR_UNSUPPORTED, "matmul: x of type F4 with BF16 weights");
    REFUSED(bad.x_groups = good.x, WT_ERR_BAD_ARG, "matmul: x_groups go with x of type F4, which is dense");
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
    unmake_bench(&b);
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
        cmocka_unit_test(tf32_comes_only_when_asked_for),
        cmocka_unit_test(tf32_is_the_nearest),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(works_in_a_partition),
    };
    int failed = cmocka_run_group_tests_name("matmul forms, CPU", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("matmul forms, CUDA", tests, open_cuda, close_device);
}
