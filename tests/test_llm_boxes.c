// What llm_quant's launches are told to copy by boxes, without a GPU: the device, its maps and its launches are
// stand-ins that the library calls in place of its own. Weights that come by lanes give the same logits a third slower,
// and so no other test sees it: q, k and v had none where the third part's rows were read behind the end of an array of
// two.
#include "support/testing.h"

#include "../models/llm/gpu.h"
#include "../models/llm/ops_cuda.h"
#include "../models/llm/quant.h"

#include <string.h>

enum { MOST_MAPS = 8, COLUMNS = 4096, N_SMS = 132, SHARED_BYTES = 232448 - 1024 };

static struct {
    wt_tensor_map_config maps[MOST_MAPS];
    int n_maps, n_launches;
    wt_llm_quant_args launched;
} seen;

static const wt_device_info info = {.shared_bytes = SHARED_BYTES, .n_sms = N_SMS, .compute_major = 9};

const wt_device_info *wt_device_get_info(const wt_device *device)
{
    (void)device;
    return &info;
}

wt_status wt_tensor_map_create(wt_device *device, const wt_tensor_map_config *config, wt_tensor_map *map)
{
    (void)device;
    assert_true(seen.n_maps < MOST_MAPS);
    seen.maps[seen.n_maps++] = *config;
    memset(map, seen.n_maps, sizeof *map); // so that it is known again
    return WT_OK;
}

wt_status wt_kernel_launch(wt_kernel *kernel, wt_stream *stream, const wt_launch *launch, const wt_arg *args,
                           int n_args)
{
    (void)kernel, (void)stream, (void)launch;
    assert_int_equal(n_args, 1);
    assert_int_equal(args->size_bytes, sizeof seen.launched);
    memcpy(&seen.launched, args->data, sizeof seen.launched);
    seen.n_launches++;
    return WT_OK;
}

static const int rows[3] = {4096, 1024, 1024};

/// One launch of three parts of such a matrix.
static void multiply(const wt__linear *like)
{
    static wt__gpu gpu;
    static wt_llm_session session;
    wt_llm_matvec_args args = {.n_parts = 3, .columns = COLUMNS, .norm_weight = (const float *)16};
    gpu = (wt__gpu){.n_sms = N_SMS, .n_quants = 1};
    session = (wt_llm_session){.gpu = &gpu};
    assert_true(wt__llm_is_quant(like, &gpu.quants[0].kind));
    for (int k = 0; k < 3; k++)
        args.parts[k] = (wt_llm_part){.weight = (const void *)(uintptr_t)((k + 1) << 12),
                                      .scales = (const void *)(uintptr_t)((k + 1) << 20),
                                      .rows = rows[k]};
    memset(&seen, 0, sizeof seen);
    assert_ok(wt__gpu_multiply_quant(&session, like, &args, false));
    assert_int_equal(seen.n_launches, 1);
}

/// The map that the launch has of a part is the `which`-th that was made.
static void assert_map(const wt_mm_map *map, int which)
{
    unsigned char bytes[sizeof *map];
    memset(bytes, which + 1, sizeof bytes);
    assert_memory_equal(map, bytes, sizeof bytes);
}

static void every_part_comes_in_boxes(void **state)
{
    (void)state;
    const wt__linear int8 = {.weight = {(const void *)16, WT_DTYPE_I8, 2, {rows[0], COLUMNS}},
                             .scales = (const float *)32,
                             .scale_rows = 1,
                             .scale_columns = COLUMNS};
    multiply(&int8);
    assert_true(seen.launched.has_boxes);
    assert_int_equal(seen.n_maps, 3);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(seen.maps[k].rows, rows[k]);
        assert_int_equal(seen.maps[k].data, (k + 1) << 12);
        assert_map(&seen.launched.w[k], k);
    }
}

static void so_do_the_scales_of_groups(void **state)
{
    (void)state;
    const wt__linear groups = {.weight = {(const void *)16, WT_DTYPE_I8, 2, {rows[0], COLUMNS}},
                               .scales = (const float *)32,
                               .scale_rows = 1,
                               .scale_columns = 128};
    multiply(&groups);
    assert_true(seen.launched.has_boxes);
    assert_int_equal(seen.n_maps, 6);
    for (int k = 0; k < 3; k++) {
        const wt_tensor_map_config *weights = &seen.maps[2 * k], *scales = &seen.maps[2 * k + 1];
        assert_int_equal(weights->rows, rows[k]);
        assert_int_equal(scales->rows, rows[k]);
        assert_int_equal(scales->data, (k + 1) << 20);
        assert_int_equal(scales->columns, COLUMNS / 128 * 4);
        assert_map(&seen.launched.w[k], 2 * k);
        assert_map(&seen.launched.s[k], 2 * k + 1);
    }
}

/// Rows that are no whole pieces are left to lanes, and no map is made of them.
static void rows_of_no_whole_pieces_do_not(void **state)
{
    (void)state;
    const wt__linear odd = {.weight = {(const void *)16, WT_DTYPE_I8, 2, {rows[0], COLUMNS + 16}},
                            .scales = (const float *)32,
                            .scale_rows = 1,
                            .scale_columns = COLUMNS + 16};
    multiply(&odd);
    assert_false(seen.launched.has_boxes);
    assert_int_equal(seen.n_maps, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_part_comes_in_boxes),
                                       cmocka_unit_test(so_do_the_scales_of_groups),
                                       cmocka_unit_test(rows_of_no_whole_pieces_do_not)};
    return cmocka_run_group_tests_name("llm boxes", tests, NULL, NULL);
}
