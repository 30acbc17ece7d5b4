#include "support/device_check.h"
#include "support/failing_alloc.h"
#include "support/testing.h"

#include <pthread.h>
#include <string.h>
#include <warptone/graph.h>

enum { N = 1000, N_SMS = 1024 };

// Work of both backends: x[k] = x[k] * gain + offset, as a kernel or a function.
static const char work_text[] = "extern \"C\" __global__ void scale(float *x, float gain, float offset, int n)\n"
                                "{\n"
                                "    int k = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                "    if (k < n) x[k] = x[k] * gain + offset;\n"
                                "}\n"
                                "extern \"C\" __global__ void where(unsigned *seen)\n"
                                "{\n"
                                "    unsigned sm;\n"
                                "    asm volatile(\"mov.u32 %0, %smid;\" : \"=r\"(sm));\n"
                                "    if (threadIdx.x == 0) seen[sm] = 1;\n"
                                "    long long begin = clock64();\n"
                                "    while (clock64() - begin < 40000) ;\n"
                                "}\n";

typedef struct scale_args {
    uintptr_t x;
    float gain, offset;
} scale_args;

static void scale_item(const void *args, int k)
{
    const scale_args *a = args;
    float *x = (float *)a->x;
    x[k] = x[k] * a->gain + a->offset;
}

typedef struct rig {
    wt_device *device;
    wt_module *module; ///< NULL on the CPU
    wt_kernel *scale, *where;
    wt_stream *stream;
    wt_buffer *x, *y;
} rig;

static rig rig_on(wt_device *device, wt_stream *stream)
{
    rig r = {.device = device, .stream = stream};
    if (!stream) assert_ok(wt_stream_create(device, NULL, &r.stream));
    if (wt_device_get_info(device)->backend == WT_BACKEND_CUDA) {
        assert_ok(wt_module_create(device, &(wt_module_config){.name = "work.cu", .source = work_text}, &r.module));
        assert_ok(wt_module_get_kernel(r.module, "scale", &r.scale));
        assert_ok(wt_module_get_kernel(r.module, "where", &r.where));
    }
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, N * sizeof(float), &r.x));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, N * sizeof(float), &r.y));
    return r;
}

static void rig_free(rig *r)
{
    wt_stream_destroy(r->stream);
    wt_buffer_destroy(r->x);
    wt_buffer_destroy(r->y);
    wt_module_destroy(r->module);
}

static wt_status queue_scale(const rig *r, wt_stream *stream, float gain, float offset)
{
    scale_args a = {wt_buffer_address(r->x), gain, offset};
    if (!r->scale) return wt_stream_run(stream, scale_item, &a, sizeof a, N);
    int n = N;
    const wt_arg args[] = {WT_ARG(a.x), WT_ARG(a.gain), WT_ARG(a.offset), WT_ARG(n)};
    return wt_kernel_launch(r->scale, stream, &(wt_launch){.grid = {4}, .block = {256}}, args, 4);
}

static wt_status set_scale(const rig *r, wt_graph *graph, int node, float gain, float offset)
{
    scale_args a = {wt_buffer_address(r->x), gain, offset};
    if (!r->scale) return wt_graph_set_args(graph, node, &WT_ARG(a), 1);
    int n = N;
    const wt_arg args[] = {WT_ARG(a.x), WT_ARG(a.gain), WT_ARG(a.offset), WT_ARG(n)};
    return wt_graph_set_args(graph, node, args, 4);
}

/// x = 3, x = x * 2 + 1, x = x * 0.5 + offset, y = x: one fill (of bytes: 0), two scales and a copy.
static wt_graph *record(const rig *r)
{
    wt_graph *graph = NULL;
    assert_ok(wt_graph_begin(r->stream, &graph));
    assert_ok(wt_stream_fill(r->stream, r->x, 0, 0, N * sizeof(float)));
    assert_ok(queue_scale(r, r->stream, 2, 3));
    assert_ok(queue_scale(r, r->stream, 4, 1));
    assert_ok(wt_stream_copy(r->stream, r->y, 0, r->x, 0, N * sizeof(float)));
    assert_ok(wt_stream_copy(r->stream, r->y, 0, r->x, 0, 0)); // of nothing: no node
    assert_ok(wt_graph_end(graph));
    return graph;
}

static float first_of(const rig *r, const wt_buffer *buffer)
{
    float x[N];
    assert_ok(wt_stream_download(r->stream, x, buffer, 0, sizeof x));
    assert_ok(wt_stream_synchronize(r->stream));
    for (int k = 1; k < N; k++) assert_true(x[k] == x[0]);
    return x[0];
}

static void recording_runs_nothing_and_a_launch_all(void **state)
{
    rig r = rig_on(device_of(state), NULL);
    wt_graph *graph = record(&r);
    assert_true(first_of(&r, r.y) == 0);
    wt_graph_info info;
    wt_graph_get_info(graph, &info);
    assert_int_equal(info.n_nodes, 4);
    assert_int_equal(info.n_kernels + info.n_runs, 2);
    assert_int_equal(info.n_copies, 1);
    assert_int_equal(info.n_fills, 1);
    assert_int_equal(info.n_foreign, 0);
    assert_true(info.ready);
    for (int k = 0; k < 3; k++) assert_ok(wt_graph_launch(graph, r.stream));
    assert_true(first_of(&r, r.y) == 13); // 3 * 4 + 1
    wt_buffer *const changed[] = {r.x, r.y};
    assert_ok(wt_graph_check(graph, r.stream, changed, 2));
    wt_graph_destroy(graph);
    rig_free(&r);
}

static void arguments_change_in_place(void **state)
{
    rig r = rig_on(device_of(state), NULL);
    wt_graph *graph = record(&r);
    assert_ok(wt_graph_launch(graph, r.stream)); // keeps its own
    float before;
    assert_ok(wt_stream_download(r.stream, &before, r.y, 0, sizeof before));
    assert_ok(set_scale(&r, graph, 2, 10, 0.5f));
    assert_ok(wt_graph_launch(graph, r.stream));
    assert_true(first_of(&r, r.y) == 30.5f);
    assert_true(before == 13);
    wt_buffer *const changed[] = {r.x, r.y};
    assert_ok(wt_graph_check(graph, r.stream, changed, 2)); // the list knows the new arguments too
    wt_graph_destroy(graph);
    rig_free(&r);
}

static void updates_are_checked(void **state)
{
    rig r = rig_on(device_of(state), NULL);
    wt_graph *graph = record(&r);
    char small = 0;
    assert_fails(wt_graph_set_args(graph, 4, &WT_ARG(small), 1), WT_ERR_BAD_ARG, "graph: node 4, want 0..3");
    assert_int_equal(wt_graph_set_args(graph, -1, &WT_ARG(small), 1), WT_ERR_BAD_ARG);
    assert_fails(wt_graph_set_args(graph, 0, &WT_ARG(small), 1), WT_ERR_BAD_ARG,
                 "graph: node 0 is a copy or fill, which has no arguments");
    assert_int_equal(wt_graph_set_args(graph, 1, &WT_ARG(small), 1), WT_ERR_BAD_ARG);
    assert_int_equal(wt_graph_set_args(graph, 1, &WT_ARG(small), 0), WT_ERR_BAD_ARG);
    assert_ok(wt_graph_launch(graph, r.stream));
    assert_true(first_of(&r, r.y) == 13);
    wt_graph_destroy(graph);
    rig_free(&r);
}

static void what_waits_is_refused_while_recording(void **state)
{
    wt_device *device = device_of(state);
    rig r = rig_on(device, NULL);
    wt_event *event = NULL;
    wt_graph *graph = NULL, *second = NULL, *ready = record(&r);
    assert_ok(wt_event_create(device, &event));
    assert_ok(wt_graph_begin(r.stream, &graph));
    assert_fails(wt_stream_synchronize(r.stream), WT_ERR_STATE,
                 "stream: synchronize: not possible while a graph is recorded on the stream");
    assert_int_equal(wt_device_synchronize(device), WT_ERR_STATE);
    assert_int_equal(wt_event_record(event, r.stream), WT_ERR_STATE);
    assert_int_equal(wt_stream_wait(r.stream, event), WT_ERR_STATE);
    assert_int_equal(wt_graph_begin(r.stream, &second), WT_ERR_STATE);
    assert_null(second);
    assert_int_equal(wt_graph_launch(ready, r.stream), WT_ERR_STATE);
    assert_int_equal(wt_graph_launch(graph, r.stream), WT_ERR_STATE);
    assert_ok(queue_scale(&r, r.stream, 1, 1));
    assert_ok(wt_graph_end(graph)); // the refusals did no harm
    assert_int_equal(wt_graph_end(graph), WT_ERR_STATE);
    assert_ok(wt_graph_launch(graph, r.stream));
    assert_ok(wt_device_synchronize(device));
    assert_true(first_of(&r, r.x) == 1);
    wt_graph_destroy(graph);
    wt_graph_destroy(ready);
    wt_event_destroy(event);
    rig_free(&r);
}

static void an_empty_graph_is_refused_and_half_recorded_ones_go_away(void **state)
{
    rig r = rig_on(device_of(state), NULL);
    wt_graph *graph = NULL;
    assert_ok(wt_graph_begin(r.stream, &graph));
    assert_fails(wt_graph_end(graph), WT_ERR_STATE, "graph: nothing was recorded");
    wt_graph_destroy(graph);
    assert_ok(wt_graph_begin(r.stream, &graph));
    assert_ok(queue_scale(&r, r.stream, 1, 1));
    wt_graph_destroy(graph); // while recording
    assert_ok(queue_scale(&r, r.stream, 1, 5));
    assert_true(first_of(&r, r.x) == 5);
    wt_stream *brief = NULL;
    assert_ok(wt_stream_create(r.device, NULL, &brief));
    assert_ok(wt_graph_begin(brief, &graph));
    assert_ok(queue_scale(&r, brief, 1, 1));
    wt_stream_destroy(brief); // ends the recording
    assert_int_equal(wt_graph_end(graph), WT_ERR_STATE);
    wt_graph_destroy(graph);
    wt_graph_destroy(NULL);
    assert_ok(wt_device_synchronize(r.device));
    rig_free(&r);
}

static void a_check_finds_what_a_node_leaves_out(void **state)
{
    rig r = rig_on(device_of(state), NULL);
    wt_graph *graph = NULL;
    float host = 1;
    assert_ok(wt_graph_begin(r.stream, &graph));
    assert_ok(wt_stream_download(r.stream, &host, r.x, 0, sizeof host)); // hidden state: host memory, not among buffers
    assert_ok(queue_scale(&r, r.stream, 1, 1));
    assert_ok(wt_stream_upload(r.stream, r.y, 0, &host, sizeof host));
    assert_ok(wt_graph_end(graph));
    wt_buffer *const only_y[] = {r.y}; // x is changed too, so the second run begins from another x
    assert_int_equal(wt_graph_check(graph, r.stream, only_y, 1), WT_ERR_STATE);
    assert_non_null(strstr(wt_last_error(), "graph: buffer 0, byte "));
    wt_buffer *const both[] = {r.x, r.y};
    assert_ok(wt_graph_check(graph, r.stream, both, 2));
    wt_graph_destroy(graph);
    rig_free(&r);
}

// ---- partitions

static void a_graph_is_cloned_onto_another_partition(void **state)
{
    wt_device *device = wide_device_of(state);
    wt_layout *layout = layout_of(device, &two_config);
    wt_stream *audio = stream_of(wt_layout_find(layout, "audio"));
    rig r = rig_on(device, stream_of(wt_layout_find(layout, "llm")));
    wt_graph *graph = record(&r), *clone = NULL;
    assert_int_equal(wt_graph_launch(graph, audio), WT_ERR_BAD_ARG);
    assert_ok(set_scale(&r, graph, 2, 10, 0.5f));
    assert_ok(wt_graph_clone(graph, audio, &clone));
    assert_ok(wt_graph_launch(clone, audio));
    assert_ok(wt_stream_synchronize(audio));
    assert_true(first_of(&r, r.y) == 30.5f);
    wt_buffer *const changed[] = {r.x, r.y};
    assert_ok(wt_graph_check(clone, audio, changed, 2));
    wt_graph_destroy(graph);
    wt_graph_destroy(clone);
    wt_stream_destroy(audio);
    rig_free(&r);
    assert_ok(wt_layout_destroy(layout));
}

static void a_resize_makes_graphs_stale(void **state)
{
    wt_device *device = wide_device_of(state);
    wt_layout *layout = layout_of(device, &two_config);
    rig r = rig_on(device, stream_of(wt_layout_find(layout, "llm")));
    wt_graph *graph = record(&r), *clone = NULL;
    assert_ok(wt_graph_launch(graph, r.stream));
    assert_ok(wt_stream_synchronize(r.stream));
    assert_ok(wt_layout_resize(layout, &two_config));
    assert_fails(wt_graph_launch(graph, r.stream), WT_ERR_STATE,
                 "graph: recorded in layout 1, which is 2 now; clone it on a stream of it");
    assert_ok(wt_graph_clone(graph, r.stream, &clone));
    assert_ok(wt_graph_launch(clone, r.stream));
    assert_true(first_of(&r, r.y) == 13);
    wt_graph_destroy(graph);
    wt_graph_destroy(clone);
    rig_free(&r);
    assert_ok(wt_layout_destroy(layout));
}

/// The SMs that a graph of `where` on `stream` runs on, as a set.
static void sms_of(wt_graph *graph, wt_stream *stream, wt_buffer *seen, unsigned *set)
{
    assert_ok(wt_stream_fill(stream, seen, 0, 0, N_SMS * sizeof *set));
    for (int k = 0; k < 4; k++) assert_ok(wt_graph_launch(graph, stream));
    assert_ok(wt_stream_download(stream, set, seen, 0, N_SMS * sizeof *set));
    assert_ok(wt_stream_synchronize(stream));
}

static void a_clone_stays_on_its_own_sms(void **state)
{
    wt_device *device = wide_device_of(state);
    wt_layout *layout = layout_of(device, &two_config);
    if (facts_of(layout).isolation != WT_ISOLATION_SMS) {
        assert_ok(wt_layout_destroy(layout));
        print_message("skipped: the driver has no green contexts\n");
        skip();
    }
    wt_partition *small = wt_layout_find(layout, "audio");
    wt_stream *audio = stream_of(small);
    rig r = rig_on(device, stream_of(wt_layout_find(layout, "llm")));
    wt_buffer *seen = NULL;
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, N_SMS * sizeof(unsigned), &seen));
    uintptr_t address = wt_buffer_address(seen);
    wt_graph *graph = NULL, *clone = NULL;
    assert_ok(wt_graph_begin(r.stream, &graph));
    assert_ok(wt_kernel_launch(r.where, r.stream, &(wt_launch){.grid = {2048}, .block = {32}}, &WT_ARG(address), 1));
    assert_ok(wt_graph_end(graph));
    assert_ok(wt_graph_clone(graph, audio, &clone));
    unsigned wide[N_SMS], narrow[N_SMS];
    sms_of(graph, r.stream, seen, wide);
    sms_of(clone, audio, seen, narrow);
    int n_narrow = 0;
    for (int k = 0; k < N_SMS; k++) {
        assert_false(wide[k] && narrow[k]);
        n_narrow += narrow[k] != 0;
    }
    assert_int_equal(n_narrow, info_of(small).n_sms); // 2048 blocks reach every SM there is
    wt_graph_destroy(graph);
    wt_graph_destroy(clone);
    wt_buffer_destroy(seen);
    wt_stream_destroy(audio);
    rig_free(&r);
    assert_ok(wt_layout_destroy(layout));
}

// ---- the rest

static void a_graph_stays_on_its_device(void **state)
{
    wt_device *device = device_of(state), *other = NULL;
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = 1}, &other));
    wt_stream *foreign = NULL;
    assert_ok(wt_stream_create(other, NULL, &foreign));
    rig r = rig_on(device, NULL);
    wt_graph *graph = record(&r), *clone = NULL;
    assert_fails(wt_graph_launch(graph, foreign), WT_ERR_BAD_ARG, "graph: the stream belongs to another device");
    assert_int_equal(wt_graph_clone(graph, foreign, &clone), WT_ERR_BAD_ARG);
    assert_null(clone);
    wt_graph_destroy(graph);
    rig_free(&r);
    wt_stream_destroy(foreign);
    wt_device_close(other);
}

typedef struct shared {
    const rig *r;
    wt_graph *graph;
} shared;

static void *launch_and_update(void *user)
{
    const shared *s = user;
    wt_status status = WT_OK;
    for (int k = 0; k < 50 && !status; k++) {
        status = set_scale(s->r, s->graph, 1, 2, (float)(k % 5));
        if (!status) status = wt_graph_launch(s->graph, s->r->stream);
    }
    return status ? user : NULL;
}

static void eight_threads_share_a_graph(void **state)
{
    rig r = rig_on(device_of(state), NULL);
    shared s = {&r, record(&r)};
    pthread_t threads[8];
    for (int k = 0; k < 8; k++) assert_int_equal(pthread_create(&threads[k], NULL, launch_and_update, &s), 0);
    for (int k = 0; k < 8; k++) {
        void *failed;
        pthread_join(threads[k], &failed);
        assert_null(failed);
    }
    assert_ok(set_scale(&r, s.graph, 1, 2, 3));
    assert_ok(wt_graph_launch(s.graph, r.stream));
    assert_true(first_of(&r, r.y) == 13);
    wt_graph_destroy(s.graph);
    rig_free(&r);
}

static wt_status create_one(void *user)
{
    void **at = user;
    rig *r = at[0];
    wt_graph *graph = NULL;
    at[1] = NULL;
    wt_status status = wt_graph_begin(r->stream, &graph);
    if (!status) status = queue_scale(r, r->stream, 2, 3);
    if (!status) status = wt_graph_end(graph);
    if (status)
        wt_graph_destroy(graph);
    else
        at[1] = graph;
    return status;
}

static void destroy_one(void *user)
{
    wt_graph_destroy(((void **)user)[1]);
}

static void every_failing_allocation_is_told(void **state)
{
    rig r = rig_on(device_of(state), NULL);
    void *at[] = {&r, NULL};
    assert_true(assert_survives_failing_alloc(create_one, destroy_one, at) >= 3); // handle, list, arguments
    rig_free(&r);
}

#define BOTH_BACKENDS                                                                                                  \
    cmocka_unit_test(recording_runs_nothing_and_a_launch_all), cmocka_unit_test(arguments_change_in_place),            \
        cmocka_unit_test(updates_are_checked), cmocka_unit_test(what_waits_is_refused_while_recording),                \
        cmocka_unit_test(an_empty_graph_is_refused_and_half_recorded_ones_go_away),                                    \
        cmocka_unit_test(a_check_finds_what_a_node_leaves_out),                                                        \
        cmocka_unit_test(a_graph_is_cloned_onto_another_partition), cmocka_unit_test(a_resize_makes_graphs_stale),     \
        cmocka_unit_test(a_graph_stays_on_its_device), cmocka_unit_test(eight_threads_share_a_graph)

int main(void)
{
    const struct CMUnitTest cpu[] = {BOTH_BACKENDS, cmocka_unit_test(every_failing_allocation_is_told)};
    const struct CMUnitTest cuda[] = {BOTH_BACKENDS, cmocka_unit_test(a_clone_stays_on_its_own_sms)};
    return cmocka_run_group_tests_name("graph: CPU", cpu, open_cpu, close_device) +
           cmocka_run_group_tests_name("graph: CUDA", cuda, open_cuda, close_device);
}
