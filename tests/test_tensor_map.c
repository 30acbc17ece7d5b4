// Boxes of matrices that a kernel has copied to shared memory: where their pieces lie, zeros outside, refusals.
#include "support/device_check.h"
#include "support/testing.h"

#include <warptone/kernel.h>

enum { COLUMNS = 88, ROWS = 11, MATRICES = 3, ROW_BYTES = 192, BOX_ROWS = 8, BOX_COLUMNS = 64 };

static const char copy_text[] =
    "#include \"wgmma.cuh\"\n"
    "typedef struct map { unsigned long long opaque[16]; } __attribute__((aligned(64))) map;\n"
    "extern \"C\" __global__ void copy(const __grid_constant__ map m, int column, int row, int matrix, uint4 *out)\n"
    "{\n"
    "    __shared__ __align__(1024) uint4 box[64];\n"
    "    __shared__ unsigned long long barrier;\n"
    "    if (threadIdx.x == 0) {\n"
    "        barrier_create(&barrier, 1);\n"
    "        barriers_created();\n"
    "        barrier_expect(&barrier, sizeof box);\n"
    "        copy_box(box, &m, column, row, matrix, &barrier);\n"
    "    }\n"
    "    __syncthreads();\n"
    "    barrier_wait(&barrier, 0);\n"
    "    out[threadIdx.x] = box[threadIdx.x];\n"
    "}\n";

static bool has_boxes(const wt_device *device)
{
    const wt_device_info *info = wt_device_get_info(device);
    return info->backend == WT_BACKEND_CUDA && info->compute_major >= 9 && info->driver_version >= 12000;
}

static void other_devices_are_refused(void **state)
{
    wt_device *device = device_of(state);
    if (has_boxes(device)) skip();
    wt_tensor_map map;
    const wt_tensor_map_config config = {.data = 16, .element_bytes = 2, .columns = 8, .rows = 1, .n_matrices = 1};
    assert_int_equal(wt_tensor_map_create(device, &config, &map), WT_ERR_UNSUPPORTED);
}

/// Element of a matrix, 0 outside.
static uint16_t element_of(const uint16_t *all, int matrix, int row, int column)
{
    if (matrix >= MATRICES || row >= ROWS || column >= COLUMNS || row < 0) return 0;
    return all[(matrix * ROWS + row) * (ROW_BYTES / 2) + column];
}

static void pieces_lie_where_products_read_them(void **state)
{
    wt_device *device = device_of(state);
    if (!has_boxes(device)) skip();
    static const int places[][3] = {{0, 0, 0}, {64, 0, 1}, {8, 5, 2}, {64, 8, 2}, {0, -2, 1}};
    uint16_t all[MATRICES * ROWS * ROW_BYTES / 2], box[BOX_ROWS * BOX_COLUMNS];
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) all[k] = (uint16_t)(k * 7 + 1);
    wt_module *module;
    wt_kernel *kernel;
    wt_stream *stream;
    wt_buffer *in, *out;
    wt_tensor_map map;
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, sizeof all, &in));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, sizeof box, &out));
    assert_ok(wt_stream_upload(stream, in, 0, all, sizeof all));
    assert_ok(wt_module_create(device, &(wt_module_config){.name = "copy.cu", .source = copy_text}, &module));
    assert_ok(wt_module_get_kernel(module, "copy", &kernel));
    assert_ok(wt_tensor_map_create(device,
                                   &(wt_tensor_map_config){.data = wt_buffer_address(in),
                                                           .element_bytes = 2,
                                                           .columns = COLUMNS,
                                                           .rows = ROWS,
                                                           .n_matrices = MATRICES,
                                                           .row_bytes = ROW_BYTES,
                                                           .matrix_bytes = ROWS * ROW_BYTES,
                                                           .box_rows = BOX_ROWS},
                                   &map));
    for (int k = 0; k < 5; k++) {
        const uintptr_t to = wt_buffer_address(out);
        const wt_arg args[] = {WT_ARG(map), WT_ARG(places[k][0]), WT_ARG(places[k][1]), WT_ARG(places[k][2]),
                               WT_ARG(to)};
        assert_ok(wt_kernel_launch(kernel, stream, &(wt_launch){.block = {64}}, args, 5));
        assert_ok(wt_stream_download(stream, box, out, 0, sizeof box));
        assert_ok(wt_stream_synchronize(stream));
        for (int row = 0; row < BOX_ROWS; row++)
            for (int c = 0; c < BOX_COLUMNS; c++) { // piece c / 8 of a row is exchanged by the row's place among eight
                const int at = row * BOX_COLUMNS + ((c / 8) ^ (row % 8)) * 8 + c % 8;
                assert_int_equal(box[at], element_of(all, places[k][2], places[k][1] + row, places[k][0] + c));
            }
    }
    wt_module_destroy(module);
    wt_buffer_destroy(in);
    wt_buffer_destroy(out);
    wt_stream_destroy(stream);
}

static void what_the_driver_refuses_is_told(void **state)
{
    wt_device *device = device_of(state);
    if (!has_boxes(device)) skip();
    wt_tensor_map map;
    const wt_tensor_map_config good = {.data = 1 << 20,
                                       .element_bytes = 2,
                                       .columns = 64,
                                       .rows = 64,
                                       .n_matrices = 1,
                                       .row_bytes = 128,
                                       .matrix_bytes = 64 * 128,
                                       .box_rows = 64};
    assert_ok(wt_tensor_map_create(device, &good, &map));
    wt_tensor_map_config bad = good;
    bad.row_bytes = 136; // no multiple of 16
    assert_int_equal(wt_tensor_map_create(device, &bad, &map), WT_ERR_CUDA);
    bad = good;
    bad.data += 8;
    assert_int_equal(wt_tensor_map_create(device, &bad, &map), WT_ERR_CUDA);
    bad = good;
    bad.box_rows = 257;
    assert_int_equal(wt_tensor_map_create(device, &bad, &map), WT_ERR_CUDA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_devices_are_refused),
        cmocka_unit_test(pieces_lie_where_products_read_them),
        cmocka_unit_test(what_the_driver_refuses_is_told),
    };
    int failed = cmocka_run_group_tests_name("tensor maps, CPU", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("tensor maps, CUDA", tests, open_cuda, close_device);
}
