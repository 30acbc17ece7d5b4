// Launches that may begin while the one before them still runs (wt_launch.overlap), and launches in a memory
// synchronisation domain of their own (wt_launch.apart), among others that are neither: a chain of kernels, each of
// which reads what another block of the one before wrote, and writes what another block of the one before read.
#include "support/device_check.h"
#include "support/testing.h"

#include <warptone/graph.h>

enum { N = 32 * 256, LINKS = 60 };

static const char link_text[] =
    "#include \"overlap.cuh\"\n"
    "extern \"C\" __global__ void link(const unsigned *from, unsigned *to, unsigned long long *times, int n)\n"
    "{\n"
    "    const int k = blockIdx.x * blockDim.x + threadIdx.x, other = (k + 37 * blockDim.x) % n;\n"
    "    unsigned long long begin, end;\n"
    "    let_next_begin();\n"
    "    asm volatile(\"mov.u64 %0, %%globaltimer;\" : \"=l\"(begin));\n"
    "    wait_for_earlier();\n"
    "    const unsigned x = from[other];\n"
    "    for (long long since = clock64(); clock64() - since < 2000 * (blockIdx.x % 4);) ;\n"
    "    to[k] = x * 1664525u + (unsigned)k;\n"
    "    asm volatile(\"mov.u64 %0, %%globaltimer;\" : \"=l\"(end));\n"
    "    if (!k) { times[0] = begin; times[1] = end; }\n"
    "}\n";

typedef struct rig {
    wt_stream *stream;
    wt_module *module;
    wt_kernel *link;
    wt_buffer *x, *times;
} rig;

static rig rig_on(wt_device *device, wt_stream *stream)
{
    rig r = {.stream = stream};
    assert_ok(wt_module_create(device, &(wt_module_config){.name = "link.cu", .source = link_text}, &r.module));
    assert_ok(wt_module_get_kernel(r.module, "link", &r.link));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, 2 * N * sizeof(unsigned), &r.x));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, LINKS * 2 * sizeof(uint64_t), &r.times));
    return r;
}

static void rig_free(rig *r)
{
    wt_buffer_destroy(r->x);
    wt_buffer_destroy(r->times);
    wt_module_destroy(r->module);
    wt_stream_destroy(r->stream);
}

/// Which launches of the chain overlap and which are apart, every so many; 0 = none.
typedef struct mix {
    const char *name;
    int overlap, apart;
} mix;
static const mix mixes[] = {
    {"overlapping", 1, 0}, {"every second one apart", 0, 2}, {"all apart and overlapping", 1, 1}};

static bool each(int every, int l) { return every && l % every == 0; }

/// From zeros, and back and forth between the halves of x.
static void queue(const rig *r, const mix *m)
{
    const uintptr_t halves[2] = {wt_buffer_address(r->x), wt_buffer_address(r->x) + N * sizeof(unsigned)};
    const int n = N;
    assert_ok(wt_stream_fill(r->stream, r->x, 0, 0, N * sizeof(unsigned)));
    for (int l = 0; l < LINKS; l++) {
        const uintptr_t from = halves[l % 2], to = halves[1 - l % 2],
                        times = wt_buffer_address(r->times) + 16 * (size_t)l;
        const wt_arg args[] = {WT_ARG(from), WT_ARG(to), WT_ARG(times), WT_ARG(n)};
        const wt_launch launch = {
            .grid = {N / 256}, .block = {256}, .overlap = each(m->overlap, l), .apart = each(m->apart, l)};
        assert_ok(wt_kernel_launch(r->link, r->stream, &launch, args, 4));
    }
}

static void check(const rig *r, const mix *m, const char *how)
{
    static unsigned want[2][N], got[2][N];
    uint64_t times[LINKS][2];
    int n_early = 0;
    for (int k = 0; k < N; k++) want[0][k] = 0;
    for (int l = 0; l < LINKS; l++)
        for (int k = 0; k < N; k++) want[1 - l % 2][k] = want[l % 2][(k + 37 * 256) % N] * 1664525u + (unsigned)k;
    assert_ok(wt_stream_download(r->stream, got, r->x, 0, sizeof got));
    assert_ok(wt_stream_download(r->stream, times, r->times, 0, sizeof times));
    assert_ok(wt_stream_synchronize(r->stream));
    for (int k = 0; k < 2 * N; k++)
        if (got[k / N][k % N] != want[k / N][k % N])
            fail_msg("%s, %s: element %d is %u, want %u", m->name, how, k, got[k / N][k % N], want[k / N][k % N]);
    for (int l = 1; l < LINKS; l++) n_early += times[l][0] < times[l - 1][1];
    print_message("%s, %s: %d of %d kernels began before the one before them had ended\n", m->name, how, n_early,
                  LINKS - 1);
    if (!m->overlap) assert_int_equal(n_early, 0);
}

static void check_both(rig *r, const mix *m, const char *direct, const char *recorded)
{
    wt_graph *graph;
    queue(r, m);
    check(r, m, direct);
    assert_ok(wt_graph_begin(r->stream, &graph));
    queue(r, m);
    assert_ok(wt_graph_end(graph));
    for (int k = 0; k < 3; k++) assert_ok(wt_graph_launch(graph, r->stream));
    check(r, m, recorded);
    wt_graph_destroy(graph);
}

static void a_chain_keeps_its_order(void **state)
{
    wt_stream *stream;
    assert_ok(wt_stream_create(device_of(state), NULL, &stream));
    rig r = rig_on(device_of(state), stream);
    for (size_t k = 0; k < sizeof mixes / sizeof *mixes; k++) check_both(&r, &mixes[k], "queued", "recorded");
    rig_free(&r);
}

static void a_chain_keeps_its_order_in_a_partition(void **state)
{
    wt_device *device = wide_device_of(state);
    wt_layout *layout = layout_of(device, &two_config);
    rig r = rig_on(device, stream_of(wt_layout_find(layout, "llm")));
    for (size_t k = 0; k < sizeof mixes / sizeof *mixes; k++)
        check_both(&r, &mixes[k], "queued in a partition", "recorded in a partition");
    rig_free(&r);
    assert_ok(wt_layout_destroy(layout));
}

int main(void)
{
    const struct CMUnitTest cuda[] = {cmocka_unit_test(a_chain_keeps_its_order),
                                      cmocka_unit_test(a_chain_keeps_its_order_in_a_partition)};
    return cmocka_run_group_tests_name("overlap: CUDA", cuda, open_cuda, close_device);
}
