// Products of many rows of x (matmul_wgmma, matmul_tiles, matmul_slices) on both backends: sides that are no multiples
// of a tile or a step, every epilogue, batches, experts, exact sums.
#include "support/matmul_check.h"

#include <stdlib.h>
#include <string.h>

#define SILU WT_ACTIVATION_SILU
#define OF(type, out, n_rows, n_columns, n_x)                                                                          \
    .w = type, .x = type, .y = out, .rows = n_rows, .columns = n_columns, .m = n_x

static void ragged_sides(void **state)
{
    static const problem problems[] = {
        {OF(BF16, F32, 256, 64, 256)},
        {OF(BF16, BF16, 300, 200, 129)},
        {OF(BF16, F32, 37, 8, 300)},
        {OF(F16, F16, 129, 1032, 191)},
        {OF(F16, F32, 515, 328, 130), .strides = true},
        {OF(I8, BF16, 300, 208, 150), .scaling = WT_SCALING_ROW, .x_scales = true},
        {OF(I8, F32, 64, 1040, 135)},
        {OF(E4M3, BF16, 260, 400, 140), .scaling = WT_SCALING_TENSOR},
        {OF(E4M3, F32, 130, 1040, 133), .scaling = WT_SCALING_ROW, .x_scales = true},
        {OF(E4M3, F16, 33, 16, 257)},
        {OF(F32, F32, 256, 64, 256)},
        {OF(F32, F32, 300, 204, 129)},
        {OF(F32, BF16, 37, 4, 300), .strides = true},
        {OF(F32, F32, 515, 1036, 17), .strides = true},
    };
    SOLVE_ALL(device_of(state), problems);
}

static void epilogues(void **state)
{
    static const problem problems[] = {
        {OF(BF16, BF16, 260, 136, 140), .bias = true, .activation = WT_ACTIVATION_GELU},
        {OF(BF16, F32, 260, 136, 140), .add = true, .activation = WT_ACTIVATION_RELU},
        {OF(F16, F16, 260, 136, 140), .bias = true, .add = true, .strides = true},
        {OF(BF16, BF16, 150, 136, 140), .n_parts = 3, .bias = true},
        {OF(BF16, F32, 150, 136, 140), .n_parts = 4, .activation = WT_ACTIVATION_GELU_TANH},
        {OF(BF16, BF16, 150, 136, 140), .n_parts = 2, .gated = true, .activation = SILU, .bias = true},
        {OF(F16, F32, 300, 72, 180), .n_parts = 2, .gated = true, .activation = SILU},
        {OF(F32, F32, 260, 136, 140), .bias = true, .add = true, .strides = true, .activation = WT_ACTIVATION_GELU},
        {OF(F32, F16, 150, 140, 140), .n_parts = 3, .bias = true},
        {OF(F32, F32, 150, 72, 180), .n_parts = 2, .gated = true, .activation = SILU, .bias = true},
        {OF(I8, F32, 136, 272, 140), .scaling = WT_SCALING_ROW, .x_scales = true, .n_parts = 2, .gated = true,
         .activation = SILU},
        {OF(E4M3, BF16, 140, 272, 140), .scaling = WT_SCALING_TENSOR, .x_scales = true, .n_parts = 2, .gated = true,
         .activation = SILU},
    };
    SOLVE_ALL(device_of(state), problems);
}

/// Up to 64 rows: matmul_wgmma's tiles of 64, of whose columns several blocks have slices.
static void few_rows(void **state)
{
    static const problem problems[] = {
        {OF(BF16, F32, 300, 1032, 64)},
        {OF(BF16, BF16, 300, 1032, 8), .n_parts = 3},
        {OF(F16, F32, 140, 2056, 2), .add = true},
        {OF(BF16, BF16, 130, 264, 17), .bias = true, .add = true},
        {OF(F16, F32, 515, 520, 33), .strides = true, .add = true},
        {OF(F16, F16, 37, 72, 48), .activation = WT_ACTIVATION_GELU},
        {OF(BF16, F32, 140, 776, 40), .n_parts = 3, .bias = true},
        {OF(BF16, BF16, 200, 1288, 50), .scaling = WT_SCALING_ROW, .n_parts = 2, .gated = true, .activation = SILU,
         .bias = true},
        {OF(F16, F32, 97, 136, 20), .n_parts = 2, .gated = true, .activation = SILU},
    };
    SOLVE_ALL(device_of(state), problems);
}

/// 17 to 128 rows of floats: matmul_slices with tiles of 32, 64 and 128 rows, one slice and several.
static void few_rows_of_floats(void **state)
{
    static const problem problems[] = {
        {OF(F32, F32, 64, 32, 32)},
        {OF(F32, BF16, 37, 4, 17), .strides = true},
        {OF(F32, F32, 515, 1036, 33), .strides = true, .bias = true, .add = true},
        {OF(F32, F32, 130, 2052, 64), .n_parts = 3, .bias = true, .activation = WT_ACTIVATION_GELU},
        {OF(F32, F16, 300, 776, 128), .activation = WT_ACTIVATION_RELU},
        {OF(F32, F32, 97, 1284, 100), .n_parts = 2, .gated = true, .activation = SILU, .bias = true},
        {OF(F32, F32, 70, 516, 40), .n_batches = 3, .strides = true},
        {OF(F32, F32, 70, 517, 40)}, // not aligned: matmul_any
    };
    SOLVE_ALL(device_of(state), problems);
}

/// Tiles whose columns several blocks have slices of: of floats by matmul_tiles (up to 128 rows of x, and more), and of
/// other types by matmul_wgmma.
static void slices_of_tiles(void **state)
{
    static const problem problems[] = {
        {OF(F32, F32, 2600, 2564, 100), .bias = true, .add = true, .strides = true},
        {OF(F32, F16, 300, 1300, 300), .activation = WT_ACTIVATION_RELU},
        {OF(F32, F32, 200, 1028, 130), .n_parts = 3, .bias = true},
        {OF(F32, F32, 300, 516, 200), .n_parts = 2, .gated = true, .activation = SILU, .bias = true},
        {OF(F32, F32, 270, 772, 140), .n_batches = 3, .strides = true},
        {OF(BF16, BF16, 300, 2056, 100)},
        {OF(F16, F32, 515, 4104, 130), .strides = true, .add = true},
        {OF(BF16, BF16, 200, 2312, 90), .n_parts = 2, .gated = true, .activation = SILU},
        {OF(I8, BF16, 300, 4112, 150), .scaling = WT_SCALING_ROW, .x_scales = true},
        {OF(E4M3, BF16, 260, 4112, 140), .scaling = WT_SCALING_TENSOR},
        {OF(E4M3, BF16, 136, 4128, 140), .scaling = WT_SCALING_BLOCK, .x_scales = true, .n_parts = 3},
        {OF(BF16, F32, 130, 2056, 100), .n_batches = 2, .bias = true},
    };
    SOLVE_ALL(device_of(state), problems);
}

/// As many tiles of 64 rows of W as fill the SMs: by matmul_wgmma two blocks of a cluster have halves of their columns.
static void halves_meet(void **state)
{
    static const problem problems[] = {
        {OF(BF16, BF16, 4096, 1032, 64)},
        {OF(BF16, F32, 3100, 520, 9), .bias = true, .add = true},
        {OF(F16, F16, 4200, 648, 33), .strides = true, .activation = WT_ACTIVATION_GELU},
        {OF(BF16, BF16, 1100, 776, 20), .n_parts = 3, .bias = true},
        {OF(BF16, BF16, 3328, 2056, 128), .scaling = WT_SCALING_ROW},
        {OF(F16, F32, 3333, 2312, 90), .strides = true, .add = true},
        {OF(BF16, BF16, 1600, 2056, 140), .bias = true},
        {OF(F16, F16, 1600, 2056, 70), .n_batches = 2},
    };
    SOLVE_ALL(device_of(state), problems);
}

/// Slices of a tile end in any order, and are added in one; nothing is left of them for the next product.
static void give_the_same_bits_again(wt_device *device, const problem *p, bool tf32)
{
    bench b;
    wt_matmul *matmul = NULL;
    make_bench(&b, device, p);
    assert_ok(wt_matmul_create(&(wt_matmul_config){.device = device, .no_library = true, .tf32 = tf32}, &matmul));
    unsigned char *first = malloc(b.y[0].bytes);
    assert_non_null(first);
    for (int k = 0; k < 20; k++) {
        assert_ok(wt_matmul_enqueue(matmul, b.stream, &b.args));
        fetch(&b, 0);
        if (!k) {
            memcpy(first, b.y[0].host, b.y[0].bytes);
            if (!tf32) check_results(&b, 0, first);
        }
        assert_memory_equal(b.y[0].host, first, b.y[0].bytes);
        if (wt_device_get_info(device)->backend == WT_BACKEND_CPU) break;
    }
    free(first);
    wt_matmul_destroy(matmul);
    unmake_bench(&b);
}

static void slices_give_the_same_bits_again(void **state)
{
    for (int m = 60; m <= 180; m += 60)
        give_the_same_bits_again(device_of(state), &(problem){OF(BF16, F32, 520, 2056, m)}, false);
    for (int m = 60; m <= 120; m += 60)
        give_the_same_bits_again(device_of(state), &(problem){OF(BF16, F32, 4096, 2056, m)}, false);
    for (int tf32 = 0; tf32 < 2; tf32++)
        for (int m = 60; m <= 180; m += 60)
            give_the_same_bits_again(device_of(state), &(problem){OF(F32, F32, 520, 2056, m)}, tf32);
}

static void scales_of_blocks(void **state)
{
    static const problem problems[] = {
        {OF(E4M3, BF16, 400, 528, 140), .scaling = WT_SCALING_BLOCK, .x_scales = true},
        {OF(E4M3, F32, 136, 144, 200), .scaling = WT_SCALING_BLOCK, .scale_dtype = BF16, .bias = true},
        {OF(E4M3, BF16, 200, 272, 130), .scaling = WT_SCALING_BLOCK, .x_scales = true, .n_parts = 2, .gated = true,
         .activation = SILU},
    };
    SOLVE_ALL(device_of(state), problems);
}

static void batches_and_experts(void **state)
{
    static const problem problems[] = {
        {OF(BF16, BF16, 130, 136, 140), .n_batches = 3},
        {OF(F32, F32, 130, 136, 140), .n_batches = 3, .strides = true},
        {OF(F32, F32, 130, 132, 300), .n_experts = 4, .bias = true},
        {OF(F16, F32, 70, 136, 130), .n_batches = 2, .strides = true, .bias = true},
        {OF(BF16, BF16, 130, 128, 700), .n_experts = 4, .bias = true, .strides = true},
        {OF(BF16, F32, 70, 72, 600), .n_experts = 4, .n_parts = 2, .gated = true, .activation = SILU},
        {OF(E4M3, BF16, 140, 272, 450), .scaling = WT_SCALING_BLOCK, .x_scales = true, .n_experts = 3},
    };
    SOLVE_ALL(device_of(state), problems);
}

static void bare_sums_are_exact(void **state)
{
    bench b;
    wt_matmul *matmul = NULL;
    const problem p = {OF(I8, WT_DTYPE_I32, 133, 1040, 145)};
    make_bench(&b, device_of(state), &p);
    assert_ok(wt_matmul_create(&(wt_matmul_config){.device = b.device, .no_library = true}, &matmul));
    assert_ok(wt_matmul_enqueue(matmul, b.stream, &b.args));
    fetch(&b, 0);
    assert_bare_sums(&b);
    wt_matmul_destroy(matmul);
    unmake_bench(&b);
}

/// More tiles than SMs: a block computes several, its stages go round many times. Neither the width of a tile nor the
/// number of stages changes a bit.
static void many_tiles(void **state)
{
    static const wt_dtype types[] = {BF16, E4M3, I8};
    wt_device *device = device_of(state);
    const bool gpu = wt_device_get_info(device)->backend == WT_BACKEND_CUDA;
    for (int k = 0; k < 3; k++) {
        bench b;
        unsigned char *first = NULL;
        const problem p = {
            .w = types[k], .x = types[k], .y = F32, .rows = gpu ? 5000 : 300, .columns = 640, .m = gpu ? 3000 : 140};
        make_bench(&b, device, &p);
        for (int shape = 0; shape < 4; shape++) {
            const wt_matmul_config config = {.device = device,
                                             .no_library = true,
                                             .wgmma_columns = shape & 1 ? 256 : 128,
                                             .wgmma_stages = shape & 2 ? 3 : 4};
            wt_matmul *matmul = NULL;
            assert_ok(wt_matmul_create(&config, &matmul));
            assert_ok(wt_matmul_enqueue(matmul, b.stream, &b.args));
            fetch(&b, 0);
            if (!first) {
                first = malloc(b.y[0].bytes);
                assert_non_null(first);
                memcpy(first, b.y[0].host, b.y[0].bytes);
                check_results(&b, 0, first);
            }
            assert_memory_equal(b.y[0].host, first, b.y[0].bytes);
            wt_matmul_destroy(matmul);
        }
        free(first);
        unmake_bench(&b);
    }
}

/// A large product by tiles of 256 rows of W, its first rows alone by narrower ones: the same bits.
static void narrow_tiles_give_the_same_bits(void **state)
{
    enum { ROWS = 5000, M = 1500, SOME_ROWS = 100, SOME_M = 140 };
    static const wt_dtype types[] = {BF16, E4M3, I8, F32};
    wt_device *device = device_of(state);
    const wt_device_info *info = wt_device_get_info(device);
    if (info->backend != WT_BACKEND_CUDA) skip();
    for (int k = 0; k < 4; k++) {
        if (types[k] == E4M3 && info->compute_major * 10 + info->compute_minor < 89) continue;
        bench b;
        wt_matmul *matmul = NULL;
        make_bench(&b, device,
                   &(problem){.w = types[k], .x = types[k], .y = F32, .rows = ROWS, .columns = 272, .m = M});
        const wt_matmul_config config = {.device = device, .no_library = true, .no_wgmma = true};
        assert_ok(wt_matmul_create(&config, &matmul));
        float *whole = malloc(b.y[0].bytes);
        assert_non_null(whole);
        for (int some = 0; some < 2; some++) {
            wt_matmul_args args = b.args;
            args.parts[0].y_stride = ROWS;
            if (some) {
                args.parts[0].weight.rows = SOME_ROWS;
                args.m = SOME_M;
                memset(b.y[0].host, 0, b.y[0].bytes);
                send_array(&b, &b.y[0]);
            }
            assert_string_equal(wt_matmul_kernel(matmul, &args), "matmul_tiles");
            assert_ok(wt_matmul_enqueue(matmul, b.stream, &args));
            fetch(&b, 0);
            if (!some) memcpy(whole, b.y[0].host, b.y[0].bytes);
        }
        for (int i = 0; i < SOME_M; i++)
            assert_memory_equal((float *)b.y[0].host + i * ROWS, whole + i * ROWS, sizeof(float) * SOME_ROWS);
        free(whole);
        wt_matmul_destroy(matmul);
        unmake_bench(&b);
    }
}

/// Which kernel it was, on the device where there is a choice.
static void assert_kernel(wt_device *device, const problem *p, bool no_wgmma, const char *kernel)
{
    bench b;
    wt_matmul *matmul = NULL;
    make_bench(&b, device, p);
    assert_ok(
        wt_matmul_create(&(wt_matmul_config){.device = device, .no_library = true, .no_wgmma = no_wgmma}, &matmul));
    assert_string_equal(wt_matmul_kernel(matmul, &b.args), kernel);
    wt_matmul_destroy(matmul);
    unmake_bench(&b);
}

static void the_kernel_is_the_one_told(void **state)
{
    wt_device *device = device_of(state);
    const wt_device_info *info = wt_device_get_info(device);
    if (info->backend != WT_BACKEND_CUDA) skip();
    const bool hopper = info->compute_major == 9 && info->compute_minor == 0, small = info->shared_bytes < 133120;
    assert_kernel(device, &(problem){OF(BF16, F32, 64, 64, 130)}, false, hopper ? "matmul_wgmma" : "matmul_tiles");
    assert_kernel(device, &(problem){OF(BF16, F32, 64, 64, 130)}, true, "matmul_tiles");
    assert_kernel(device, &(problem){OF(F32, F32, 64, 64, 129)}, false, "matmul_tiles");
    assert_kernel(device, &(problem){OF(F32, F32, 64, 64, 128)}, false, "matmul_slices");
    assert_kernel(device, &(problem){OF(F32, F32, 64, 64, 17)}, false, "matmul_slices");
    assert_kernel(device, &(problem){OF(F32, F32, 64, 64, 16)}, false, "matmul_any");
    assert_kernel(device, &(problem){OF(F32, F32, 4096, 2048, 96)}, false, small ? "matmul_slices" : "matmul_tiles");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ragged_sides),
        cmocka_unit_test(epilogues),
        cmocka_unit_test(few_rows),
        cmocka_unit_test(few_rows_of_floats),
        cmocka_unit_test(slices_of_tiles),
        cmocka_unit_test(halves_meet),
        cmocka_unit_test(slices_give_the_same_bits_again),
        cmocka_unit_test(scales_of_blocks),
        cmocka_unit_test(batches_and_experts),
        cmocka_unit_test(many_tiles),
        cmocka_unit_test(bare_sums_are_exact),
        cmocka_unit_test(narrow_tiles_give_the_same_bits),
        cmocka_unit_test(the_kernel_is_the_one_told),
    };
    int failed = cmocka_run_group_tests_name("matmul tiles, CPU", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("matmul tiles, CUDA", tests, open_cuda, close_device);
}
