// Products of many rows of x (matmul_wgmma, matmul_tiles) on both backends: sides that are no multiples of a tile or a
// step, every epilogue, batches, experts, exact sums.
#include "support/matmul_check.h"

#include <stdlib.h>
#include <string.h>

#define SILU WT_ACTIVATION_SILU

static void ragged_sides(void **state)
{
    static const problem problems[] = {
        {.w = BF16, .x = BF16, .y = F32, .rows = 256, .columns = 64, .m = 256},
        {.w = BF16, .x = BF16, .y = BF16, .rows = 300, .columns = 200, .m = 129},
        {.w = BF16, .x = BF16, .y = F32, .rows = 37, .columns = 8, .m = 300},
        {.w = F16, .x = F16, .y = F16, .rows = 129, .columns = 1032, .m = 191},
        {.w = F16, .x = F16, .y = F32, .rows = 515, .columns = 328, .m = 130, .strides = true},
        {.w = I8,
         .scaling = WT_SCALING_ROW,
         .x = I8,
         .x_scales = true,
         .y = BF16,
         .rows = 300,
         .columns = 208,
         .m = 150},
        {.w = I8, .x = I8, .y = F32, .rows = 64, .columns = 1040, .m = 135},
        {.w = E4M3, .scaling = WT_SCALING_TENSOR, .x = E4M3, .y = BF16, .rows = 260, .columns = 400, .m = 140},
        {.w = E4M3,
         .scaling = WT_SCALING_ROW,
         .x = E4M3,
         .x_scales = true,
         .y = F32,
         .rows = 130,
         .columns = 1040,
         .m = 133},
        {.w = E4M3, .x = E4M3, .y = F16, .rows = 33, .columns = 16, .m = 257},
        {.w = F32, .x = F32, .y = F32, .rows = 256, .columns = 64, .m = 256},
        {.w = F32, .x = F32, .y = F32, .rows = 300, .columns = 204, .m = 129},
        {.w = F32, .x = F32, .y = BF16, .rows = 37, .columns = 4, .m = 300, .strides = true},
        {.w = F32, .x = F32, .y = F32, .rows = 515, .columns = 1036, .m = 17, .strides = true},
    };
    SOLVE_ALL(device_of(state), problems);
}

static void epilogues(void **state)
{
    static const problem problems[] = {
        {.w = BF16,
         .x = BF16,
         .y = BF16,
         .rows = 260,
         .columns = 136,
         .m = 140,
         .bias = true,
         .activation = WT_ACTIVATION_GELU},
        {.w = BF16,
         .x = BF16,
         .y = F32,
         .rows = 260,
         .columns = 136,
         .m = 140,
         .add = true,
         .activation = WT_ACTIVATION_RELU},
        {.w = F16,
         .x = F16,
         .y = F16,
         .rows = 260,
         .columns = 136,
         .m = 140,
         .bias = true,
         .add = true,
         .strides = true},
        {.w = BF16, .x = BF16, .y = BF16, .rows = 150, .columns = 136, .m = 140, .n_parts = 3, .bias = true},
        {.w = BF16,
         .x = BF16,
         .y = F32,
         .rows = 150,
         .columns = 136,
         .m = 140,
         .n_parts = 4,
         .activation = WT_ACTIVATION_GELU_TANH},
        {.w = BF16,
         .x = BF16,
         .y = BF16,
         .rows = 150,
         .columns = 136,
         .m = 140,
         .n_parts = 2,
         .gated = true,
         .activation = SILU,
         .bias = true},
        {.w = F16,
         .x = F16,
         .y = F32,
         .rows = 300,
         .columns = 72,
         .m = 180,
         .n_parts = 2,
         .gated = true,
         .activation = SILU},
        {.w = F32,
         .x = F32,
         .y = F32,
         .rows = 260,
         .columns = 136,
         .m = 140,
         .bias = true,
         .add = true,
         .strides = true,
         .activation = WT_ACTIVATION_GELU},
        {.w = F32, .x = F32, .y = F16, .rows = 150, .columns = 140, .m = 140, .n_parts = 3, .bias = true},
        {.w = F32,
         .x = F32,
         .y = F32,
         .rows = 150,
         .columns = 72,
         .m = 180,
         .n_parts = 2,
         .gated = true,
         .activation = SILU,
         .bias = true},
        {.w = I8,
         .scaling = WT_SCALING_ROW,
         .x = I8,
         .x_scales = true,
         .y = F32,
         .rows = 136,
         .columns = 272,
         .m = 140,
         .n_parts = 2,
         .gated = true,
         .activation = SILU},
        {.w = E4M3,
         .scaling = WT_SCALING_TENSOR,
         .x = E4M3,
         .x_scales = true,
         .y = BF16,
         .rows = 140,
         .columns = 272,
         .m = 140,
         .n_parts = 2,
         .gated = true,
         .activation = SILU},
    };
    SOLVE_ALL(device_of(state), problems);
}

/// Up to 64 rows: matmul_wgmma's tiles of 64, of whose columns several blocks have slices.
static void few_rows(void **state)
{
    static const problem problems[] = {
        {.w = BF16, .x = BF16, .y = F32, .rows = 300, .columns = 1032, .m = 64},
        {.w = BF16, .x = BF16, .y = BF16, .rows = 300, .columns = 1032, .m = 8, .n_parts = 3},
        {.w = F16, .x = F16, .y = F32, .rows = 140, .columns = 2056, .m = 2, .add = true},
        {.w = BF16, .x = BF16, .y = BF16, .rows = 130, .columns = 264, .m = 17, .bias = true, .add = true},
        {.w = F16, .x = F16, .y = F32, .rows = 515, .columns = 520, .m = 33, .strides = true, .add = true},
        {.w = F16, .x = F16, .y = F16, .rows = 37, .columns = 72, .m = 48, .activation = WT_ACTIVATION_GELU},
        {.w = BF16, .x = BF16, .y = F32, .rows = 140, .columns = 776, .m = 40, .n_parts = 3, .bias = true},
        {.w = BF16,
         .scaling = WT_SCALING_ROW,
         .x = BF16,
         .y = BF16,
         .rows = 200,
         .columns = 1288,
         .m = 50,
         .n_parts = 2,
         .gated = true,
         .activation = SILU,
         .bias = true},
        {.w = F16,
         .x = F16,
         .y = F32,
         .rows = 97,
         .columns = 136,
         .m = 20,
         .n_parts = 2,
         .gated = true,
         .activation = SILU},
    };
    SOLVE_ALL(device_of(state), problems);
}

/// Slices of a tile end in any order, and are added in one; nothing is left of them for the next product.
static void slices_give_the_same_bits_again(void **state)
{
    bench b;
    wt_matmul *matmul = NULL;
    wt_device *device = device_of(state);
    make_bench(&b, device, &(problem){.w = BF16, .x = BF16, .y = F32, .rows = 520, .columns = 2056, .m = 60});
    assert_ok(wt_matmul_create(&(wt_matmul_config){.device = device, .no_library = true}, &matmul));
    unsigned char *first = malloc(b.y[0].bytes);
    assert_non_null(first);
    for (int k = 0; k < 20; k++) {
        assert_ok(wt_matmul_enqueue(matmul, b.stream, &b.args));
        fetch(&b, 0);
        if (!k) {
            memcpy(first, b.y[0].host, b.y[0].bytes);
            check_results(&b, 0, first);
        }
        assert_memory_equal(b.y[0].host, first, b.y[0].bytes);
        if (wt_device_get_info(device)->backend == WT_BACKEND_CPU) break;
    }
    free(first);
    wt_matmul_destroy(matmul);
    unmake_bench(&b);
}

static void scales_of_blocks(void **state)
{
    static const problem problems[] = {
        {.w = E4M3,
         .scaling = WT_SCALING_BLOCK,
         .x = E4M3,
         .x_scales = true,
         .y = BF16,
         .rows = 400,
         .columns = 528,
         .m = 140},
        {.w = E4M3,
         .scaling = WT_SCALING_BLOCK,
         .scale_dtype = BF16,
         .x = E4M3,
         .y = F32,
         .rows = 136,
         .columns = 144,
         .m = 200,
         .bias = true},
        {.w = E4M3,
         .scaling = WT_SCALING_BLOCK,
         .x = E4M3,
         .x_scales = true,
         .y = BF16,
         .rows = 200,
         .columns = 272,
         .m = 130,
         .n_parts = 2,
         .gated = true,
         .activation = SILU},
    };
    SOLVE_ALL(device_of(state), problems);
}

static void batches_and_experts(void **state)
{
    static const problem problems[] = {
        {.w = BF16, .x = BF16, .y = BF16, .rows = 130, .columns = 136, .m = 140, .n_batches = 3},
        {.w = F32, .x = F32, .y = F32, .rows = 130, .columns = 136, .m = 140, .n_batches = 3, .strides = true},
        {.w = F32, .x = F32, .y = F32, .rows = 130, .columns = 132, .m = 300, .n_experts = 4, .bias = true},
        {.w = F16,
         .x = F16,
         .y = F32,
         .rows = 70,
         .columns = 136,
         .m = 130,
         .n_batches = 2,
         .strides = true,
         .bias = true},
        {.w = BF16,
         .x = BF16,
         .y = BF16,
         .rows = 130,
         .columns = 128,
         .m = 700,
         .n_experts = 4,
         .bias = true,
         .strides = true},
        {.w = BF16,
         .x = BF16,
         .y = F32,
         .rows = 70,
         .columns = 72,
         .m = 600,
         .n_experts = 4,
         .n_parts = 2,
         .gated = true,
         .activation = SILU},
        {.w = E4M3,
         .scaling = WT_SCALING_BLOCK,
         .x = E4M3,
         .x_scales = true,
         .y = BF16,
         .rows = 140,
         .columns = 272,
         .m = 450,
         .n_experts = 3},
    };
    SOLVE_ALL(device_of(state), problems);
}

static void bare_sums_are_exact(void **state)
{
    bench b;
    wt_matmul *matmul = NULL;
    const problem p = {.w = I8, .x = I8, .y = WT_DTYPE_I32, .rows = 133, .columns = 1040, .m = 145};
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
static void the_kernel_is_the_one_told(void **state)
{
    wt_device *device = device_of(state);
    const wt_device_info *info = wt_device_get_info(device);
    if (info->backend != WT_BACKEND_CUDA) skip();
    const bool hopper = info->compute_major == 9 && info->compute_minor == 0;
    bench b;
    wt_matmul *matmul = NULL;
    make_bench(&b, device, &(problem){.w = BF16, .x = BF16, .y = F32, .rows = 64, .columns = 64, .m = 130});
    for (int without = 0; without < 2; without++) {
        assert_ok(
            wt_matmul_create(&(wt_matmul_config){.device = device, .no_library = true, .no_wgmma = without}, &matmul));
        assert_string_equal(wt_matmul_kernel(matmul, &b.args), hopper && !without ? "matmul_wgmma" : "matmul_tiles");
        wt_matmul_destroy(matmul);
    }
    unmake_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ragged_sides),
        cmocka_unit_test(epilogues),
        cmocka_unit_test(few_rows),
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
