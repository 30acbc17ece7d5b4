// Products of few rows of x by rows of W that are whole pieces of 128 bytes, which matmul_few takes on a GPU that
// copies boxes, and by weights of 8 and 4 bits, which matmul_thin takes: several spans or slices of columns, more tiles
// than a block has at a time, parts, gates, scales, and which kernel is told.
#include "support/matmul_check.h"

static void spans_and_parts(void **state)
{
    static const problem problems[] = {
        {.w = BF16, .x = BF16, .y = F32, .rows = 40, .columns = 64, .m = 8},
        {.w = BF16, .x = BF16, .y = F32, .rows = 50, .columns = 1088, .m = 5, .n_parts = 3, .bias = true},
        {.w = F16, .x = F16, .y = F16, .rows = 33, .columns = 576, .m = 2, .strides = true},
        {.w = E4M3, .scaling = WT_SCALING_BLOCK, .x = BF16, .y = F32, .rows = 260, .columns = 2176, .m = 8},
        {.w = E4M3, .scaling = WT_SCALING_ROW, .x = F16, .y = F32, .rows = 70, .columns = 1152, .m = 16, .n_parts = 2},
        {.w = E5M2, .scaling = WT_SCALING_TENSOR, .x = BF16, .y = BF16, .rows = 17, .columns = 128, .m = 1},
        {.w = I8, .scaling = WT_SCALING_ROW, .x = BF16, .y = F32, .rows = 100, .columns = 1280, .m = 7, .add = true},
        {.w = I8, .scaling = WT_SCALING_GROUP, .group = 64, .x = F16, .y = F32, .rows = 30, .columns = 640, .m = 12}};
    SOLVE_ALL(device_of(state), problems);
}

/// Of 4096 columns each, the last one short, and columns that are no pieces of a warp.
static void slices_of_columns(void **state)
{
    static const problem problems[] = {
        {.w = E4M3,
         .scaling = WT_SCALING_BLOCK,
         .x = BF16,
         .y = F32,
         .rows = 70,
         .columns = 4368,
         .m = 8,
         .bias = true},
        {.w = E4M3, .scaling = WT_SCALING_ROW, .x = F16, .y = F16, .rows = 33, .columns = 12288, .m = 16},
        {.w = I8, .scaling = WT_SCALING_TENSOR, .x = BF16, .y = F32, .rows = 20, .columns = 9008, .m = 3, .n_parts = 3},
        {.w = WT_DTYPE_U8,
         .packing = WT_PACKING_U4,
         .scaling = WT_SCALING_GROUP,
         .group = 128,
         .scale_dtype = F16,
         .zeros = true,
         .x = BF16,
         .y = F32,
         .rows = 2500, // as many weights as matmul_thin wants of nibbles
         .columns = 8320,
         .m = 8,
         .add = true},
        {.w = WT_DTYPE_U8,
         .packing = WT_PACKING_U4,
         .scaling = WT_SCALING_GROUP,
         .group = 256,
         .x = F16,
         .y = F16,
         .rows = 21,
         .columns = 5120,
         .m = 11,
         .n_parts = 2,
         .gated = true,
         .activation = WT_ACTIVATION_SILU}};
    SOLVE_ALL(device_of(state), problems);
}

static void gates(void **state)
{
    static const problem problems[] = {
        {.w = BF16, .x = BF16, .y = BF16, .rows = 53, .columns = 640, .m = 8, .gated = true},
        {.w = E4M3,
         .scaling = WT_SCALING_BLOCK,
         .x = BF16,
         .y = F32,
         .rows = 129,
         .columns = 256,
         .m = 3,
         .gated = true}};
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++) {
        problem p = problems[k];
        p.activation = WT_ACTIVATION_SILU;
        p.n_parts = 2;
        solve(device_of(state), &p, WITHOUT_LIBRARY);
    }
}

/// A block has two tiles of 16 rows at a time, or eight of several slices; the largest GPUs have some 150 blocks.
static void more_tiles_than_a_block_has_at_a_time(void **state)
{
    solve(device_of(state), &(problem){.w = BF16, .x = BF16, .y = F32, .rows = 13000, .columns = 64, .m = 2},
          WITHOUT_LIBRARY);
    const problem slices = {
        .w = I8, .scaling = WT_SCALING_ROW, .x = BF16, .y = F32, .rows = 25000, .columns = 4112, .m = 2};
    if (wt_device_get_info(device_of(state))->backend == WT_BACKEND_CUDA)
        solve(device_of(state), &slices, WITHOUT_LIBRARY);
}

/// With what 16 bits left of x and y: by matmul_few, matmul_thin, matmul_skinny with each kind of scales, and
/// matmul_any.
static void two_parts(void **state)
{
    static const problem problems[] = {
        {.w = BF16, .x = BF16, .y = F32, .rows = 50, .columns = 1088, .m = 5, .n_parts = 3, .bias = true},
        {.w = BF16, .x = BF16, .y = F32, .rows = 40, .columns = 4096, .m = 4},
        {.w = BF16, .x = BF16, .y = F32, .rows = 4600, .columns = 4160, .m = 8}, // more tiles than at a time
        {.w = F16, .x = F16, .y = F16, .rows = 33, .columns = 576, .m = 2, .strides = true},
        {.w = E4M3, .scaling = WT_SCALING_BLOCK, .x = BF16, .y = F32, .rows = 70, .columns = 4368, .m = 4},
        {.w = BF16, .x = BF16, .y = BF16, .rows = 53, .columns = 640, .m = 8, .n_parts = 2, .gated = true},
        {.w = BF16, .x = BF16, .y = F32, .rows = 40, .columns = 136, .m = 7, .add = true},
        {.w = I8, .scaling = WT_SCALING_ROW, .x = BF16, .y = F32, .rows = 100, .columns = 1280, .m = 7, .add = true},
        {.w = E4M3, .scaling = WT_SCALING_BLOCK, .x = BF16, .y = F32, .rows = 260, .columns = 4368, .m = 8},
        {.w = E4M3, .scaling = WT_SCALING_BLOCK, .x = BF16, .y = F32, .rows = 4600, .columns = 4224, .m = 8},
        {.w = I8, .scaling = WT_SCALING_ROW, .x = BF16, .y = F32, .rows = 260, .columns = 4224, .m = 5},
        {.w = I8, .scaling = WT_SCALING_GROUP, .group = 32, .x = BF16, .y = F32, .rows = 30, .columns = 640, .m = 3},
        {.w = WT_DTYPE_U8,
         .packing = WT_PACKING_U4,
         .scaling = WT_SCALING_GROUP,
         .group = 128,
         .scale_dtype = F16,
         .zeros = true,
         .x = BF16,
         .y = F32,
         .rows = 2500, // as many weights as matmul_thin wants of nibbles
         .columns = 8320,
         .m = 8},
        {.w = WT_DTYPE_U8,
         .packing = WT_PACKING_U4,
         .scaling = WT_SCALING_GROUP,
         .group = 32,
         .x = F16,
         .y = F16,
         .rows = 21,
         .columns = 512,
         .m = 4,
         .n_parts = 2,
         .gated = true},
        {.w = WT_DTYPE_Q4_K, .x = BF16, .y = F32, .rows = 40, .columns = 512, .m = 8},
        {.w = WT_DTYPE_Q8_0, .x = BF16, .y = BF16, .rows = 40, .columns = 512, .m = 8},
        {.w = BF16,
         .x = BF16,
         .y = BF16,
         .rows = 40,
         .columns = 256,
         .m = 12,
         .n_experts = 5,
         .chosen = true,
         .x_repeat = 2}};
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++) {
        problem p = problems[k];
        p.two_parts = true;
        if (p.gated) p.activation = WT_ACTIVATION_SILU;
        solve(device_of(state), &p, WITHOUT_NOTHING);
    }
}

static void two_parts_are_of_few_rows(void **state)
{
    wt_device *device = device_of(state);
    wt_matmul *matmul;
    bench b;
    make_bench(&b, device, &(problem){.w = BF16, .x = BF16, .y = F32, .rows = 40, .columns = 128, .m = 9});
    assert_ok(wt_matmul_create(&(wt_matmul_config){.device = device}, &matmul));
    b.args.two_parts = true;
    assert_fails(wt_matmul_enqueue(matmul, b.stream, &b.args), WT_ERR_BAD_ARG,
                 "matmul: x of type BF16 in two parts, m 9, want F16 or BF16 and at most 8 rows");
    wt_matmul_destroy(matmul);
    unmake_bench(&b);
}

static void the_kernel_is_told(void **state)
{
    wt_device *device = device_of(state);
    const wt_device_info *info = wt_device_get_info(device);
    const bool boxes = info->backend == WT_BACKEND_CUDA && info->compute_major >= 9 && info->driver_version >= 12000;
    static const struct {
        problem p;
        const char *kernel;
    } cases[] = {{{.w = BF16, .x = BF16, .y = F32, .rows = 40, .columns = 128, .m = 8}, "matmul_few"},
                 {{.w = BF16, .x = BF16, .y = F32, .rows = 40, .columns = 136, .m = 8}, "matmul_skinny"},
                 {{.w = E4M3, .scaling = WT_SCALING_ROW, .x = BF16, .y = F32, .rows = 40, .columns = 144, .m = 8},
                  "matmul_thin"}};
    for (int k = 0; k < 3; k++) {
        bench b;
        wt_matmul *matmul;
        make_bench(&b, device, &cases[k].p);
        assert_ok(wt_matmul_create(&(wt_matmul_config){.device = device, .no_library = true}, &matmul));
        const char *kernel = info->backend != WT_BACKEND_CUDA ? "cpu"
                             : !boxes && k == 0               ? "matmul_skinny"
                                                              : cases[k].kernel;
        assert_string_equal(wt_matmul_kernel(matmul, &b.args), kernel);
        wt_matmul_destroy(matmul);
        unmake_bench(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_and_parts),
        cmocka_unit_test(slices_of_columns),
        cmocka_unit_test(gates),
        cmocka_unit_test(more_tiles_than_a_block_has_at_a_time),
        cmocka_unit_test(two_parts),
        cmocka_unit_test(two_parts_are_of_few_rows),
        cmocka_unit_test(the_kernel_is_told),
    };
    int failed = cmocka_run_group_tests_name("few rows, CPU", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("few rows, CUDA", tests, open_cuda, close_device);
}
