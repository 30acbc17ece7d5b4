// What the engine adds to a launch: CPU time of a dispatched launch and of a graph's replay over the bare driver calls
// (on the CPU backend over queueing on the stream), the best of several rounds taken in turn; and how much of the time
// of copies is hidden behind compute on another stream.
//   dispatch  plain launch              bare 1840 ns   engine 1990 ns   added  150 ns   (limit 500)
//   dispatch  graph of 16               bare 2500 ns   engine 2560 ns   added   60 ns   (limit 300)
//   dispatch  copy beside compute       alone 900 + 850 us   together 960 us   0.93 of the shorter hidden
// Figures above are made up. Bare calls go through libcuda itself, opened again here: no engine, no context switch.

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <warptone/clock.h>
#include <warptone/dispatch.h>

enum { ROUNDS = 31, LAUNCHES = 512, GRAPH_NODES = 16, COPY_BYTES = 16 << 20, OVERLAP_ROUNDS = 5, SPIN_ITEMS = 64 };

static const char work_text[] =
    "extern \"C\" __global__ void tick(unsigned long long *p) { if (p[0] == 77) p[1] = 1; }\n"
    "extern \"C\" __global__ void spin(int us)\n"
    "{\n"
    "    long long begin, now;\n"
    "    asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(begin));\n"
    "    do asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(now));\n"
    "    while (now - begin < us * 1000ll);\n"
    "}\n";

// The bare driver, after "CUDA Driver API" (12.4): only what is measured against.
typedef struct driver {
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                  void **);
    int (*graph_launch)(void *, void *);
    int (*stream_create)(void **, unsigned);
    int (*stream_sync)(void *);
    int (*begin)(void *, int);
    int (*end)(void *, void **);
    int (*instantiate)(void **, void *, unsigned long long);
    int (*module_load)(void **, const void *);
    int (*get_function)(void **, void *, const char *);
} driver;

typedef struct bench {
    wt_device *device;
    wt_stream *stream, *other;
    wt_module *module; ///< NULL on the CPU
    wt_kernel *tick, *spin;
    wt_buffer *memory, *pinned;
    wt_dispatch *dispatch;
    int lane;
    wt_graph *graph;
    driver cuda;
    void *bare_stream, *bare_function, *bare_exec;
} bench;

static int fail(const char *what)
{
    fprintf(stderr, "bench_dispatch: %s: %s\n", what, wt_last_error());
    return 1;
}

// ---- the bare side

static bool load_driver(driver *d)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    const struct {
        void **slot;
        const char *name;
    } symbols[] = {
        {(void **)&d->launch, "cuLaunchKernel"},
        {(void **)&d->graph_launch, "cuGraphLaunch"},
        {(void **)&d->stream_create, "cuStreamCreate"},
        {(void **)&d->stream_sync, "cuStreamSynchronize"},
        {(void **)&d->begin, "cuStreamBeginCapture_v2"},
        {(void **)&d->end, "cuStreamEndCapture"},
        {(void **)&d->instantiate, "cuGraphInstantiateWithFlags"},
        {(void **)&d->module_load, "cuModuleLoadData"},
        {(void **)&d->get_function, "cuModuleGetFunction"},
    };
    for (size_t k = 0; library && k < sizeof symbols / sizeof *symbols; k++)
        if (!(*symbols[k].slot = dlsym(library, symbols[k].name))) return false;
    return library;
}

static int bare_launch(bench *b)
{
    uintptr_t address = wt_buffer_address(b->memory);
    void *params[] = {&address};
    return b->cuda.launch(b->bare_function, 1, 1, 1, 1, 1, 1, 0, b->bare_stream, params, NULL);
}

static bool make_bare(bench *b)
{
    const wt_device_info *info = wt_device_get_info(b->device);
    wt_compiled compiled;
    void *module, *graph;
    if (!load_driver(&b->cuda)) return false;
    if (wt_kernel_compile(&(wt_module_config){.name = "work.cu", .source = work_text},
                          info->compute_major * 10 + info->compute_minor, &compiled))
        return false;
    bool made = !b->cuda.module_load(&module, compiled.image) &&
                !b->cuda.get_function(&b->bare_function, module, "tick") &&
                !b->cuda.stream_create(&b->bare_stream, 1) && !b->cuda.begin(b->bare_stream, 1);
    free(compiled.image);
    for (int k = 0; k < GRAPH_NODES && made; k++) made = !bare_launch(b);
    return made && !b->cuda.end(b->bare_stream, &graph) && !b->cuda.instantiate(&b->bare_exec, graph, 0);
}

// ---- what is measured: one function each, called LAUNCHES times

static void tick_item(const void *args, int item)
{
    (void)args;
    (void)item;
}

static wt_status queue_tick(bench *b, wt_stream *stream)
{
    uintptr_t address = wt_buffer_address(b->memory);
    return b->tick ? wt_kernel_launch(b->tick, stream, &(wt_launch){0}, &WT_ARG(address), 1)
                   : wt_stream_run(stream, tick_item, &address, sizeof address, 1);
}

static wt_status plain_launch(bench *b)
{
    if (!b->tick) return queue_tick(b, b->stream);
    return bare_launch(b) ? wt_fail(WT_ERR_CUDA, "bare launch") : WT_OK;
}

static wt_status plain_graph(bench *b)
{
    wt_status status = WT_OK;
    if (b->tick) return b->cuda.graph_launch(b->bare_exec, b->bare_stream) ? wt_fail(WT_ERR_CUDA, "bare graph") : WT_OK;
    for (int k = 0; k < GRAPH_NODES && !status; k++) status = queue_tick(b, b->stream);
    return status;
}

static wt_status engine_launch(bench *b)
{
    return queue_tick(b, b->stream);
}

static wt_status submit_tick(bench *b, bool timed)
{
    uintptr_t address = wt_buffer_address(b->memory);
    wt_dispatch_request r = {.lane = b->lane,
                             .kernel = b->tick,
                             .task = "bench",
                             .timed = timed,
                             .args = &WT_ARG(address),
                             .n_args = 1,
                             .n_items = 1};
    if (!b->tick) r.function = tick_item;
    return wt_dispatch_submit(b->dispatch, &r, NULL);
}

static wt_status dispatched(bench *b)
{
    return submit_tick(b, false);
}

static wt_status dispatched_timed(bench *b)
{
    return submit_tick(b, true);
}

static wt_status engine_graph(bench *b)
{
    return wt_graph_launch(b->graph, b->stream);
}

static wt_status settle(bench *b)
{
    if (b->bare_stream && b->cuda.stream_sync(b->bare_stream)) return wt_fail(WT_ERR_CUDA, "bare stream");
    wt_status status = wt_dispatch_drain(b->dispatch);
    return status ? status : wt_stream_synchronize(b->stream);
}

/// The two in turn, so that a change of the machine's clock meets both; best of the rounds, in ns a call.
static wt_status compare(bench *b, const char *name, wt_status (*plain)(bench *), wt_status (*engine)(bench *), int n,
                         int limit_ns)
{
    wt_status (*const sides[])(bench *) = {plain, engine};
    double best[2] = {1e300, 1e300};
    wt_status status = settle(b);
    for (int round = 0; round < ROUNDS && !status; round++)
        for (int side = 0; side < 2 && !status; side++) {
            int64_t begin_ns = wt_clock_now_ns(NULL);
            for (int k = 0; k < n && !status; k++) status = sides[side](b);
            double ns = (double)(wt_clock_now_ns(NULL) - begin_ns) / n;
            if (ns < best[side]) best[side] = ns;
            if (!status) status = settle(b);
        }
    if (status) return status;
    printf("dispatch  %-24s  %s %7.0f ns   engine %7.0f ns   added %6.0f ns", name, b->tick ? "bare" : "stream",
           best[0], best[1], best[1] - best[0]);
    printf(limit_ns ? "   (limit %d)\n" : "\n", limit_ns);
    return WT_OK;
}

// ---- copies beside compute

static void spin_item(const void *args, int item)
{
    (void)item;
    int64_t until_ns = wt_clock_now_ns(NULL) + *(const int *)args * (int64_t)1000 / SPIN_ITEMS;
    while (wt_clock_now_ns(NULL) < until_ns) continue;
}

static wt_status compute(bench *b, int us)
{
    return b->spin ? wt_kernel_launch(b->spin, b->stream, &(wt_launch){0}, &WT_ARG(us), 1)
                   : wt_stream_run(b->stream, spin_item, &us, sizeof us, SPIN_ITEMS);
}

/// Time of mask 1 = compute, 2 = copy, 3 = both, best of some.
static wt_status run_both(bench *b, int mask, int us, double *best_us)
{
    wt_status status = WT_OK;
    *best_us = 1e300;
    for (int k = 0; k < OVERLAP_ROUNDS && !status; k++) {
        int64_t begin_ns = wt_clock_now_ns(NULL);
        if (mask & 1) status = compute(b, us);
        if (mask & 2 && !status) status = wt_stream_copy(b->other, b->memory, 0, b->pinned, 0, COPY_BYTES);
        if (!status) status = wt_stream_synchronize(b->stream);
        if (!status) status = wt_stream_synchronize(b->other);
        double took = (double)(wt_clock_now_ns(NULL) - begin_ns) * 1e-3;
        if (took < *best_us) *best_us = took;
    }
    return status;
}

static wt_status bench_overlap(bench *b)
{
    double copy_us, compute_us, both_us;
    wt_status status = run_both(b, 2, 0, &copy_us);
    int us = status ? 0 : (int)copy_us; // as long as the copy takes
    if (!status) status = run_both(b, 1, us, &compute_us);
    if (!status) status = run_both(b, 3, us, &both_us);
    if (status) return status;
    double shorter = copy_us < compute_us ? copy_us : compute_us;
    printf("dispatch  %-24s  alone %.0f + %.0f us   together %.0f us   %.2f of the shorter hidden\n",
           "copy beside compute", copy_us, compute_us, both_us, (copy_us + compute_us - both_us) / shorter);
    return WT_OK;
}

// ---- setting up

static wt_status make_graph(bench *b)
{
    wt_status status = wt_graph_begin(b->stream, &b->graph);
    for (int k = 0; k < GRAPH_NODES && !status; k++) status = queue_tick(b, b->stream);
    return status ? status : wt_graph_end(b->graph);
}

static wt_status open_bench(bench *b)
{
    wt_status status = wt_device_open(NULL, &b->device);
    if (!status) status = wt_stream_create(b->device, NULL, &b->stream);
    if (!status) status = wt_stream_create(b->device, NULL, &b->other);
    if (!status) status = wt_buffer_create(b->device, WT_MEMORY_DEVICE, COPY_BYTES, &b->memory);
    if (!status) status = wt_buffer_create(b->device, WT_MEMORY_PINNED, COPY_BYTES, &b->pinned);
    if (!status) status = wt_dispatch_create(b->device, NULL, &b->dispatch);
    wt_dispatch_stream_config lane = {.max_in_flight = 2 * LAUNCHES}; // measured is launching, not a full stream
    if (!status) status = wt_dispatch_add_stream(b->dispatch, b->stream, &lane, &b->lane);
    if (!status && wt_device_get_info(b->device)->backend == WT_BACKEND_CUDA) {
        status = wt_module_create(b->device, &(wt_module_config){.name = "work.cu", .source = work_text}, &b->module);
        if (!status) status = wt_module_get_kernel(b->module, "tick", &b->tick);
        if (!status) status = wt_module_get_kernel(b->module, "spin", &b->spin);
        if (!status && !make_bare(b)) status = wt_fail(WT_ERR_CUDA, "the bare driver calls cannot be set up");
    }
    return status ? status : make_graph(b);
}

static void close_bench(bench *b)
{
    wt_dispatch_destroy(b->dispatch);
    wt_graph_destroy(b->graph);
    wt_stream_destroy(b->stream);
    wt_stream_destroy(b->other);
    wt_buffer_destroy(b->memory);
    wt_buffer_destroy(b->pinned);
    wt_module_destroy(b->module);
    wt_device_close(b->device);
}

int main(void)
{
    bench b = {0};
    if (open_bench(&b)) return fail("open");
    printf("dispatch  on %s\n", wt_device_get_info(b.device)->name);
    int n = b.tick ? LAUNCHES : LAUNCHES / 2, n_graphs = b.tick ? 64 : 16; // the CPU's queue holds 64 KB
    wt_status status = compare(&b, "wt_kernel_launch", plain_launch, engine_launch, n, 0);
    if (!status) status = compare(&b, "launch", plain_launch, dispatched, n, 500);
    if (!status) status = compare(&b, "launch, timed", plain_launch, dispatched_timed, 31, 0);
    if (!status) status = compare(&b, "graph of 16", plain_graph, engine_graph, n_graphs, 300);
    if (!status) status = bench_overlap(&b);
    if (status) return fail("run");
    close_bench(&b);
    return 0;
}
