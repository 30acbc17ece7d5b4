// Which SMs ran the blocks: needs a GPU, but for the compilation of the kernel that asks.
#include "support/device_check.h"
#include "support/testing.h"
#include "../engine/device_cuda.h"

#include <string.h>
#include <warptone/kernel.h>
#include <warptone/partition.h>

enum { MAX_SMS = 1024 };

// where: every block marks its SM and stays for 20 us, so that blocks spread over all SMs they may use.
static const char where_text[] = "extern \"C\" __global__ void where(unsigned *seen)\n"
                                 "{\n"
                                 "    unsigned sm;\n"
                                 "    asm volatile(\"mov.u32 %0, %smid;\" : \"=r\"(sm));\n"
                                 "    if (threadIdx.x == 0) seen[sm] = 1;\n"
                                 "    long long begin = clock64();\n"
                                 "    while (clock64() - begin < 40000) ;\n"
                                 "}\n";

typedef struct probe {
    wt_module *module;
    wt_kernel *kernel;
    wt_buffer *seen;
} probe;

static probe probe_of(wt_device *device)
{
    probe p;
    assert_ok(wt_module_create(device, &(wt_module_config){.name = "where.cu", .source = where_text}, &p.module));
    assert_ok(wt_module_get_kernel(p.module, "where", &p.kernel));
    assert_ok(wt_buffer_create(device, WT_MEMORY_MAPPED, MAX_SMS * sizeof(unsigned), &p.seen));
    return p;
}

static void probe_free(probe *p)
{
    wt_buffer_destroy(p->seen);
    wt_module_destroy(p->module);
}

static void probe_launch(const probe *p, wt_stream *stream)
{
    uintptr_t address = wt_buffer_address(p->seen);
    assert_ok(wt_kernel_launch(p->kernel, stream, &(wt_launch){.grid = {2048}, .block = {256}}, &WT_ARG(address), 1));
}

/// The SMs marked since the last call.
static int probe_read(const probe *p, wt_stream *stream, bool *sms)
{
    assert_ok(wt_stream_synchronize(stream));
    unsigned *seen = wt_buffer_host(p->seen);
    int n = 0;
    for (int k = 0; k < MAX_SMS; k++) n += sms[k] = seen[k] > 0;
    memset(seen, 0, MAX_SMS * sizeof *seen);
    return n;
}

static int n_common(const bool *a, const bool *b)
{
    int n = 0;
    for (int k = 0; k < MAX_SMS; k++) n += a[k] && b[k];
    return n;
}

/// Skip where the driver has no green contexts.
static wt_device *green_device_of(void **state)
{
    wt_device *device = device_of(state);
    if (!wt_device_get_info(device)->partition_sms) {
        print_message("skipped: no green contexts\n");
        skip();
    }
    return device;
}

static void check_confinement(wt_device *device, const wt_layout_config *config)
{
    wt_layout *layout = layout_of(device, config);
    probe p = probe_of(device);
    static bool sms[WT_LAYOUT_MAX_PARTITIONS][MAX_SMS];
    int total = 0;
    for (int k = 0; k < config->n_partitions; k++) {
        wt_stream *stream = stream_of(wt_layout_at(layout, k));
        probe_launch(&p, stream);
        int n = probe_read(&p, stream, sms[k]);
        print_message("%s: %d SMs\n", info_of(wt_layout_at(layout, k)).name, n);
        assert_int_equal(n, info_of(wt_layout_at(layout, k)).n_sms);
        for (int other = 0; other < k; other++) assert_int_equal(n_common(sms[k], sms[other]), 0);
        total += n;
        wt_stream_destroy(stream);
    }
    assert_int_equal(total + facts_of(layout).unassigned_sms, facts_of(layout).n_sms);
    probe_free(&p);
    assert_ok(wt_layout_destroy(layout));
}

static void blocks_stay_on_the_sms_of_their_partition(void **state)
{
    static const char *const names[] = {"audio+speech+llm", "audio+llm", "all"};
    wt_device *device = green_device_of(state);
    for (int k = 0; k < 3; k++) {
        wt_partition_config partitions[WT_LAYOUT_PRESET_PARTITIONS];
        wt_layout_config config;
        assert_ok(wt_layout_preset(names[k], wt_device_get_info(device), partitions, &config));
        check_confinement(device, &config);
    }
    const wt_partition_config odd[] = {{.name = "small", .n_sms = 2}, {.name = "odd", .n_sms = 11}, {.name = "rest"}};
    check_confinement(device, &(wt_layout_config){.partitions = odd, .n_partitions = 3, .fine = true});
    check_confinement(device, &(wt_layout_config){.partitions = odd, .n_partitions = 2}); // some SMs belong to nobody
}

static void without_confinement_every_sm_is_used(void **state)
{
    wt_device *device = device_of(state);
    for (int isolation = WT_ISOLATION_PRIORITY; isolation <= WT_ISOLATION_NONE; isolation++) {
        wt_layout_config config = two_config;
        config.isolation = (wt_isolation)isolation;
        wt_layout *layout = layout_of(device, &config);
        probe p = probe_of(device);
        wt_stream *stream = stream_of(wt_layout_find(layout, "audio"));
        static bool sms[MAX_SMS];
        probe_launch(&p, stream);
        assert_int_equal(probe_read(&p, stream, sms), wt_device_get_info(device)->n_sms);
        wt_stream_destroy(stream);
        probe_free(&p);
        assert_ok(wt_layout_destroy(layout));
    }
}

/// Capture one launch on `stream` as a graph.
static CUgraphExec capture(wt_device *device, const probe *p, wt_stream *stream)
{
    const wt__cuda *cuda = wt__cuda_device_of(device)->cuda;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    assert_ok(wt__cu(cuda, cuda->StreamBeginCapture(wt__cuda_stream_of(stream), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                     "begin capture"));
    probe_launch(p, stream);
    assert_ok(wt__cu(cuda, cuda->StreamEndCapture(wt__cuda_stream_of(stream), &graph), "end capture"));
    assert_ok(wt__cu(cuda, cuda->GraphInstantiateWithFlags(&exec, graph, 0), "instantiate"));
    cuda->GraphDestroy(graph);
    return exec;
}

static void a_graph_keeps_the_sms_it_was_captured_on(void **state)
{
    wt_device *device = green_device_of(state);
    const wt__cuda *cuda = wt__cuda_device_of(device)->cuda;
    wt_layout *layout = layout_of(device, &two_config);
    probe p = probe_of(device);
    wt_stream *audio = stream_of(wt_layout_find(layout, "audio")), *llm = stream_of(wt_layout_find(layout, "llm"));
    static bool direct[MAX_SMS], replayed[MAX_SMS];
    probe_launch(&p, audio);
    int n = probe_read(&p, audio, direct);
    CUgraphExec exec = capture(device, &p, audio);
    assert_ok(wt__cu(cuda, cuda->GraphLaunch(exec, wt__cuda_stream_of(llm)), "replay")); // from the other partition
    assert_int_equal(probe_read(&p, llm, replayed), n);
    assert_int_equal(n_common(direct, replayed), n);
    cuda->GraphExecDestroy(exec);
    wt_stream_destroy(audio);
    wt_stream_destroy(llm);
    probe_free(&p);
    assert_ok(wt_layout_destroy(layout));
}

static void a_borrower_gets_idle_sms_and_gives_them_back_within_a_step(void **state)
{
    wt_device *device = green_device_of(state);
    wt_layout *layout = layout_of(device, &lending_config);
    wt_partition *speech = wt_layout_find(layout, "speech"), *llm = wt_layout_find(layout, "llm");
    probe p = probe_of(device);
    wt_stream *stream = stream_of(speech);
    static bool lender[MAX_SMS], got[MAX_SMS];
    probe_launch(&p, stream);
    const int n_lender = probe_read(&p, stream, lender);
    for (int round = 0; round < 4; round++) {
        wt_partition_step step;
        assert_ok(wt_partition_idle(speech, round % 2));
        assert_ok(wt_partition_step_begin(llm, &step));
        probe_launch(&p, step.stream);
        assert_ok(wt_partition_step_end(llm));
        assert_int_equal(probe_read(&p, step.stream, got), step.n_sms);
        assert_int_equal(n_common(got, lender), round % 2 ? n_lender : 0);
        assert_false(info_of(speech).lent);
    }
    wt_stream_destroy(stream);
    probe_free(&p);
    assert_ok(wt_layout_destroy(layout));
}

static void streams_move_to_their_new_sms_in_a_resize(void **state)
{
    wt_device *device = green_device_of(state);
    wt_layout *layout = layout_of(device, &two_config);
    probe p = probe_of(device);
    wt_stream *audio = stream_of(wt_layout_find(layout, "audio"));
    static bool sms[MAX_SMS];
    wt_partition_config wider[] = {two_config.partitions[0], two_config.partitions[1]};
    wider[0].sm_share = 0.3;
    probe_launch(&p, audio);
    assert_int_equal(wt_layout_resize(layout, &(wt_layout_config){.partitions = wider, .n_partitions = 2}),
                     WT_ERR_STATE);
    assert_int_equal(probe_read(&p, audio, sms), info_of(wt_layout_at(layout, 0)).n_sms);
    int before = info_of(wt_layout_at(layout, 0)).n_sms;
    assert_ok(wt_layout_resize(layout, &(wt_layout_config){.partitions = wider, .n_partitions = 2}));
    probe_launch(&p, audio);
    assert_int_equal(probe_read(&p, audio, sms), info_of(wt_layout_at(layout, 0)).n_sms);
    assert_true(info_of(wt_layout_at(layout, 0)).n_sms > before);
    wt_stream_destroy(audio);
    probe_free(&p);
    assert_ok(wt_layout_destroy(layout));
}

// cluster: N blocks that run together.
static const char cluster_text[] = "extern \"C\" __global__ void __cluster_dims__(N, 1, 1) cluster() {}\n";

/// Whether there is room for clusters on the stream's processors is told as launches then find it.
static int largest_cluster(wt_device *device, wt_stream *stream)
{
    int largest = 0;
    for (int n = 1; n <= 8; n *= 2) {
        char option[] = "-DN=1";
        const char *options = option;
        wt_module *module;
        wt_kernel *kernel;
        bool has_room;
        option[4] = (char)('0' + n);
        const wt_module_config config = {
            .name = "cluster.cu", .source = cluster_text, .options = &options, .n_options = 1};
        assert_ok(wt_module_create(device, &config, &module));
        assert_ok(wt_module_get_kernel(module, "cluster", &kernel));
        assert_ok(wt_kernel_has_room(kernel, stream, &(wt_launch){.grid = {16}, .block = {256}}, &has_room));
        const wt_status status = wt_kernel_launch(kernel, stream, &(wt_launch){.grid = {16}, .block = {256}}, NULL, 0);
        print_message("clusters of %d: %s\n", n, status ? wt_last_error() : "run");
        assert_int_equal(has_room, !status);
        assert_ok(wt_stream_synchronize(stream));
        if (has_room) largest = n;
        wt_module_destroy(module);
    }
    return largest;
}

static void room_for_clusters_is_told(void **state)
{
    wt_device *device = green_device_of(state);
    if (wt_device_get_info(device)->compute_major < 9) {
        print_message("skipped: clusters want compute capability 9.0\n");
        skip();
    }
    const wt_partition_config parts[] = {{.name = "small", .n_sms = 4}, {.name = "rest"}};
    for (int fine = 0; fine < 2; fine++) {
        wt_layout *layout =
            layout_of(device, &(wt_layout_config){.partitions = parts, .n_partitions = 2, .fine = fine});
        for (int k = 0; k < 2; k++) {
            wt_stream *stream = stream_of(wt_layout_at(layout, k));
            print_message("%s, %d SMs\n", fine ? "fine" : "whole units", info_of(wt_layout_at(layout, k)).n_sms);
            const int largest = largest_cluster(device, stream);
            assert_int_equal(info_of(wt_layout_at(layout, k)).fine, fine);
            assert_int_equal(largest, fine ? 2 : 8); // a unit's SMs
            wt_stream_destroy(stream);
        }
        assert_ok(wt_layout_destroy(layout));
    }
}

static void its_kernel_compiles_for_every_architecture(void **state)
{
    (void)state;
    assert_compiles_everywhere("where.cu", where_text);
}

int main(void)
{
    const struct CMUnitTest text[] = {cmocka_unit_test(its_kernel_compiles_for_every_architecture)};
    const struct CMUnitTest cuda[] = {
        cmocka_unit_test(blocks_stay_on_the_sms_of_their_partition),
        cmocka_unit_test(without_confinement_every_sm_is_used),
        cmocka_unit_test(a_graph_keeps_the_sms_it_was_captured_on),
        cmocka_unit_test(a_borrower_gets_idle_sms_and_gives_them_back_within_a_step),
        cmocka_unit_test(streams_move_to_their_new_sms_in_a_resize),
        cmocka_unit_test(room_for_clusters_is_told),
    };
    return cmocka_run_group_tests_name("partition: kernel", text, NULL, NULL) +
           cmocka_run_group_tests_name("partition: SMs", cuda, open_cuda, close_device);
}
