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

// ---- experts

enum { N_EXPERTS = 8, N_USED = 2, UP_ROWS = 768 };

/// A launch of the chosen experts' up and gate, matrices and scales of one expert as far from the next one's.
static void multiply_chosen(int group, int64_t apart, int64_t scales_apart)
{
    static wt__gpu gpu;
    static wt_llm llm;
    static wt_llm_session session;
    static wt__linear parts[2][2]; // of the first expert and the second
    wt_llm_matvec_args args = {.n_parts = 2, .columns = COLUMNS, .norm_weight = (const float *)16, .gated = true};
    for (int e = 0; e < 2; e++)
        for (int k = 0; k < 2; k++)
            parts[e][k] = (wt__linear){
                .weight = {(const void *)(uintptr_t)(((k + 1) << 28) + e * apart), WT_DTYPE_I8, 2, {UP_ROWS, COLUMNS}},
                .scales = (const float *)(uintptr_t)(((k + 1) << 20) + e * scales_apart),
                .scale_rows = 1,
                .scale_columns = group};
    for (int k = 0; k < 2; k++)
        args.parts[k] = (wt_llm_part){
            .weight = parts[0][k].weight.data, .scales = parts[0][k].scales, .rows = UP_ROWS};
    gpu = (wt__gpu){.n_sms = N_SMS, .n_quants = 1};
    llm.config.n_experts = N_EXPERTS;
    llm.config.n_experts_used = N_USED;
    session = (wt_llm_session){.gpu = &gpu, .llm = &llm, .n_tokens = 1};
    assert_true(wt__llm_is_quant(&parts[0][0], &gpu.quants[0].kind));
    gpu.quants[0].kind.experts = true;
    memset(&seen, 0, sizeof seen);
    assert_ok(wt__gpu_multiply_chosen(&(wt__pass){.s = &session},
                                      &(wt__llm_chosen){.first = {&parts[0][0], &parts[0][1]},
                                                        .second = {&parts[1][0], &parts[1][1]}},
                                      &args));
    assert_int_equal(seen.n_launches, 1);
    assert_int_equal(seen.launched.choose.n_experts, N_EXPERTS);
}

/// A map begins at the first expert and ends with the last one's rows, however far they are apart.
static void experts_come_in_boxes_of_one_map(void **state)
{
    (void)state;
    enum { APART = 3 * UP_ROWS }; // down lies between
    multiply_chosen(COLUMNS, (int64_t)APART * COLUMNS, 4 * APART);
    assert_true(seen.launched.has_boxes);
    assert_int_equal(seen.n_maps, 2); // a scale a row comes by lanes
    for (int k = 0; k < 2; k++) {
        assert_int_equal(seen.launched.next_rows[k], APART);
        assert_int_equal(seen.maps[k].data, (k + 1) << 28);
        assert_int_equal(seen.maps[k].rows, (N_EXPERTS - 1) * APART + UP_ROWS);
        assert_map(&seen.launched.w[k], k);
    }
}

/// Scales of groups may lie closer than the rows that they belong to.
static void so_do_the_scales_of_experts_groups(void **state)
{
    (void)state;
    enum { APART = 3 * UP_ROWS, SCALES_APART = 2 * UP_ROWS, OF_ROW = COLUMNS / 128 * 4 };
    multiply_chosen(128, (int64_t)APART * COLUMNS, SCALES_APART * OF_ROW);
    assert_true(seen.launched.has_boxes);
    assert_int_equal(seen.n_maps, 4);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(seen.launched.next_rows[k], APART);
        assert_int_equal(seen.launched.next_scale_rows[k], SCALES_APART);
        assert_int_equal(seen.maps[2 * k].rows, (N_EXPERTS - 1) * APART + UP_ROWS);
        assert_int_equal(seen.maps[2 * k + 1].rows, (N_EXPERTS - 1) * SCALES_APART + UP_ROWS);
        assert_int_equal(seen.maps[2 * k + 1].data, (k + 1) << 20);
        assert_map(&seen.launched.s[k], 2 * k + 1);
    }
}

/// Experts that do not lie whole rows apart, or whose scales do not, are left to lanes.
static void experts_between_rows_do_not(void **state)
{
    (void)state;
    multiply_chosen(128, (int64_t)UP_ROWS * COLUMNS + 16, UP_ROWS * COLUMNS / 128 * 4);
    assert_false(seen.launched.has_boxes);
    multiply_chosen(128, (int64_t)UP_ROWS * COLUMNS, UP_ROWS * COLUMNS / 128 * 4 + 16);
    assert_false(seen.launched.has_boxes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_part_comes_in_boxes),
                                       cmocka_unit_test(so_do_the_scales_of_groups),
                                       cmocka_unit_test(rows_of_no_whole_pieces_do_not),
                                       cmocka_unit_test(experts_come_in_boxes_of_one_map),
                                       cmocka_unit_test(so_do_the_scales_of_experts_groups),
                                       cmocka_unit_test(experts_between_rows_do_not)};
    return cmocka_run_group_tests_name("llm boxes", tests, NULL, NULL);
}
