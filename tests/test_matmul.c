// Products of matrices on both backends: every type and scaling, awkward shapes. Parts, epilogues, experts and the
// other calls: test_matmul_forms.c; many rows of x: test_matmul_tiles.c.
#include "support/matmul_check.h"

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

static const problem scaled_problems[] = {
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

static void every_scaling(void **state) { SOLVE_ALL(device_of(state), scaled_problems); }

static const problem nibble_problems[] = {
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
    SOLVE_ALL(device_of(state), nibble_problems);
}

/// Both sides in 4 bits, with scales of 16 columns, of rows of x and of the tensor.
static void nvfp4_by_nvfp4(void **state)
{
    static const struct {
        int rows, columns, m;
        bool gated;
    } sizes[] = {{40, 128, 1, false}, {35, 48, 3, false}, {130, 256, 150, false}, {72, 384, 20, true}};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        problem p = {.w = WT_DTYPE_U8,
                     .packing = WT_PACKING_E2M1,
                     .scaling = WT_SCALING_GROUP,
                     .scale_dtype = E4M3,
                     .group = 16,
                     .tensor_scale = true,
                     .x = WT_DTYPE_F4,
                     .x_scales = true,
                     .y = k % 2 ? BF16 : F32,
                     .rows = sizes[k].rows,
                     .columns = sizes[k].columns,
                     .m = sizes[k].m,
                     .n_parts = sizes[k].gated || k == 1 ? 2 : 1,
                     .gated = sizes[k].gated,
                     .activation = sizes[k].gated ? WT_ACTIVATION_SILU : WT_ACTIVATION_NONE,
                     .bias = k == 2};
        solve(device_of(state), &p, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_of_weights_and_activations),
        cmocka_unit_test(every_number_of_rows_of_x),
        cmocka_unit_test(awkward_columns),
        cmocka_unit_test(every_scaling),
        cmocka_unit_test(four_bits),
        cmocka_unit_test(nvfp4_by_nvfp4),
    };
    int failed = cmocka_run_group_tests_name("matmul, CPU", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("matmul, CUDA", tests, open_cuda, close_device);
}
