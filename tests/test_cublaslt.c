// cuBLASLt behind its own calls, on a GPU: a workspace for each partition, of its quota, and the same bits in every
// run, from a graph, and beside another partition's products. Its sums: test_matmul*.c.
#include "support/device_check.h"
#include "support/testing.h"

#include <stdlib.h>
#include <string.h>
#include <warptone/cublaslt.h>
#include <warptone/graph.h>

enum { MB = 1 << 20, WORKSPACE = 32 * MB, ROWS = 256, COLUMNS = 16384, M = 72, RUNS = 20 };

static const wt_partition_config halves[] = {{.name = "left", .sm_share = 0.5, .memory_quota_bytes = 40 * MB},
                                             {.name = "right"}};
static const wt_layout_config halves_config = {.partitions = halves, .n_partitions = 2};

/// Few rows and columns of y and long sums: what the library shares out over SMs and adds up in its workspace.
static const wt_cublaslt_form form = {.w = WT_CUBLASLT_BF16,
                                      .x = WT_CUBLASLT_BF16,
                                      .y = WT_CUBLASLT_F32,
                                      .rows = ROWS,
                                      .columns = COLUMNS,
                                      .m = M,
                                      .n_batches = 1,
                                      .x_stride = COLUMNS,
                                      .y_stride = ROWS};

/// The halves of a device; skipped without the library.
static wt_layout *halves_of(wt_device *device)
{
    if (!wt_cublaslt_version()) {
        print_message("skipped: no cuBLASLt\n");
        skip();
    }
    return layout_of(device, &halves_config);
}

static wt_cublaslt *handle_of(wt_device *device, wt_partition *partition)
{
    wt_cublaslt *c = NULL;
    assert_ok(wt_cublaslt_create(device, partition, &c));
    return c;
}

/// A partition's products: its handle, a matrix, and a result of its own.
typedef struct side {
    wt_cublaslt *library;
    wt_stream *stream;
    wt_buffer *w, *x, *y;
    float alone[ROWS * M], got[ROWS * M];
} side;

static void send_noise(side *s, wt_buffer *to, size_t n, uint64_t seed)
{
    uint16_t *halfs = malloc(sizeof *halfs * n);
    for (size_t k = 0; k < n; k++) {
        const float v = noise(&seed);
        uint32_t bits;
        memcpy(&bits, &v, sizeof bits);
        halfs[k] = (uint16_t)(bits >> 16);
    }
    assert_ok(wt_stream_upload(s->stream, to, 0, halfs, sizeof *halfs * n));
    assert_ok(wt_stream_synchronize(s->stream));
    free(halfs);
}

static void begin(side *s, wt_device *device, wt_partition *partition, uint64_t seed)
{
    s->stream = stream_of(partition);
    s->library = handle_of(device, partition);
    s->w = buffer_of(device, WT_MEMORY_DEVICE, 2 * ROWS * COLUMNS);
    s->x = buffer_of(device, WT_MEMORY_DEVICE, 2 * M * COLUMNS);
    s->y = buffer_of(device, WT_MEMORY_DEVICE, sizeof s->got);
    send_noise(s, s->w, ROWS * COLUMNS, seed);
    send_noise(s, s->x, M * COLUMNS, seed + 1);
}

static wt_status enqueue(side *s)
{
    return wt_cublaslt_enqueue(s->library, s->stream, &form, wt_buffer_address(s->w), wt_buffer_address(s->x),
                               wt_buffer_address(s->y), 0);
}

static void fetch(side *s, float *to) { assert_ok(wt_stream_download(s->stream, to, s->y, 0, sizeof s->got)); }

static void end(side *s)
{
    wt_cublaslt_destroy(s->library);
    wt_buffer_destroy(s->w);
    wt_buffer_destroy(s->x);
    wt_buffer_destroy(s->y);
    wt_stream_destroy(s->stream);
}

/// Products of both sides in their streams at once, as often as the two devices' queues let them meet.
static void check_beside_each_other(side *s)
{
    for (int k = 0; k < RUNS; k++) {
        for (int i = 0; i < 2; i++) {
            assert_ok(wt_stream_fill(s[i].stream, s[i].y, 0, 0xff, sizeof s[i].got));
            assert_ok(enqueue(&s[i]));
        }
        for (int i = 0; i < 2; i++) fetch(&s[i], s[i].got);
        for (int i = 0; i < 2; i++) {
            assert_ok(wt_stream_synchronize(s[i].stream));
            assert_memory_equal(s[i].got, s[i].alone, sizeof s[i].got);
        }
    }
}

static void check_graph(side *s)
{
    wt_graph *graph = NULL;
    assert_ok(wt_graph_begin(s->stream, &graph));
    assert_ok(enqueue(s));
    assert_ok(wt_graph_end(graph));
    for (int k = 0; k < 3; k++) {
        assert_ok(wt_stream_fill(s->stream, s->y, 0, 0xff, sizeof s->got));
        assert_ok(wt_graph_launch(graph, s->stream));
        fetch(s, s->got);
        assert_ok(wt_stream_synchronize(s->stream));
        assert_memory_equal(s->got, s->alone, sizeof s->got);
    }
    wt_graph_destroy(graph);
}

static void each_partition_has_the_same_bits_in_every_run(void **state)
{
    wt_device *device = wide_device_of(state);
    wt_layout *layout = halves_of(device);
    side *s = calloc(2, sizeof *s);
    assert_non_null(s);
    for (int i = 0; i < 2; i++) {
        begin(&s[i], device, wt_layout_at(layout, i), 10 * (uint64_t)i + 1);
        assert_fails(enqueue(&s[i]), WT_ERR_STATE, "cublaslt: a form that was not prepared");
        assert_ok(wt_cublaslt_prepare(s[i].library, &form));
        assert_ok(enqueue(&s[i]));
        fetch(&s[i], s[i].alone);
        assert_ok(wt_stream_synchronize(s[i].stream));
        assert_ok(wt_cublaslt_prepare(s[i].library, &form)); // kept: nothing is chosen again
    }
    assert_memory_not_equal(s[0].alone, s[1].alone, sizeof s->alone);
    check_beside_each_other(s);
    for (int i = 0; i < 2; i++) check_graph(&s[i]);
    for (int i = 0; i < 2; i++) end(&s[i]);
    free(s);
    assert_ok(wt_layout_destroy(layout));
}

static void the_workspace_is_of_the_partition_s_quota(void **state)
{
    wt_device *device = wide_device_of(state);
    wt_layout *layout = halves_of(device);
    wt_partition *left = wt_layout_at(layout, 0), *right = wt_layout_at(layout, 1);
    wt_cublaslt *first = handle_of(device, left), *other = handle_of(device, right), *second = NULL;
    assert_int_equal(info_of(left).memory_used_bytes, WORKSPACE);
    assert_int_equal(info_of(right).memory_used_bytes, WORKSPACE);
    assert_fails(wt_cublaslt_create(device, left, &second), WT_ERR_QUOTA,
                 "cublaslt: a workspace of 33554432 bytes, partition left has 8388608 left");
    assert_null(second);
    wt_cublaslt_destroy(other);
    wt_cublaslt_destroy(first);
    assert_int_equal(info_of(left).memory_used_bytes, 0);
    assert_ok(wt_layout_destroy(layout));
}

static void the_cpu_has_none(void **state)
{
    wt_cublaslt *c = NULL;
    assert_fails(wt_cublaslt_create(device_of(state), NULL, &c), WT_ERR_UNSUPPORTED, "cublaslt: it needs a GPU");
    assert_null(c);
    wt_cublaslt_destroy(c);
}

int main(void)
{
    const struct CMUnitTest cpu[] = {cmocka_unit_test(the_cpu_has_none)};
    const struct CMUnitTest gpu[] = {cmocka_unit_test(each_partition_has_the_same_bits_in_every_run),
                                     cmocka_unit_test(the_workspace_is_of_the_partition_s_quota)};
    int failed = cmocka_run_group_tests_name("cuBLASLt, CPU", cpu, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("cuBLASLt, GPU", gpu, open_cuda, close_device);
}
