// A guaranteed task beside a load that saturates the GPU: how much later it ends, and what the load keeps.
//
//   bench_qos [n_sms] [seconds]     SMs of the guaranteed partition (8), seconds a row (0.5: p99 of 375 runs)
//
// The task takes about 100 us alone and starts every 1.333 ms. Its kernel has one block of 512 threads for each SM of
// its partition; every thread does dependent multiply-adds and now and then reads 16 bytes of a table. `on-chip` reads
// once, its input, as a chain does whose state lies in shared memory; `chain` about twelve times, one after the other;
// `tables` in every round, as a network with its weights does. They read the same bytes every time: in L2 while alone,
// thrown out by the load.
//
// Loads (support/gpu_load.h), each in a best-effort partition of all other SMs: `reads`, `gemm`, `prefill`.
// Protections: own SMs (green contexts), priority streams, none; the task's grid stays the same.
//
// The task is started in three ways: `launch`, a kernel launch; `graph`, a captured graph; `bell`, a kernel that stays
// on its SMs and answers a number in mapped memory (with SMs of its own only).
//
// `device` is from the first block's first instruction to the last block's last one (%globaltimer, whose step is up to
// 1 us); `host` from the start until the host sees the result in mapped memory. `clock` is what the task's first SM ran
// at, clock64 over %globaltimer within each run (median), and `cycles` its length in clock cycles: where time grows and
// cycles do not, the clock fell; where cycles grow, the task waited for memory or for SMs. The percentages are against
// the same figure of the same task alone under the same protection. `kept` is the load's rate against its rate alone on
// the whole GPU, so it has both the price of the SMs given away and that of the neighbour.
#include "support/gpu_load.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <warptone/clock.h>
#include <warptone/graph.h>
#include <warptone/kernel.h>
#include <warptone/partition.h>

enum {
    TASK_THREADS = 512,
    TABLE_BYTES = 16 << 20,
    MAX_SAMPLES = 100000,
    BELL_AT = 40, ///< of task_state
};
static const int64_t PERIOD_NS = 1333333, TIMEOUT_NS = 1000000000, SETTLE_NS = 250000000;
static const double TASK_US = 100;

static const char text[] =
    "struct task_state { unsigned long long begin, end, cycles, ns, n_runs, bell; unsigned n_done; };\n"
    "static __device__ unsigned long long now()\n"
    "{\n"
    "    unsigned long long t;\n"
    "    asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(t));\n"
    "    return t;\n"
    "}\n"
    // one run; the last block to end writes the result, its number last
    "static __device__ void run(const float4 *table, int n_vectors, int rounds, int read_every,\n"
    "                           volatile task_state *state, volatile unsigned long long *out)\n"
    "{\n"
    "    unsigned long long begin = now();\n"
    "    long long cycles = clock64();\n"
    "    if (threadIdx.x == 0) atomicMin((unsigned long long *)&state->begin, begin);\n"
    "    float x = 1.0f + threadIdx.x;\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    for (int r = 0; r < rounds; r++) {\n"
    "        if (r % read_every == 0) {\n"
    "            float4 v = table[i];\n"
    "            x += v.x + v.y + v.z + v.w;\n"
    "            i = (i + gridDim.x * blockDim.x) % n_vectors;\n"
    "        }\n"
    "        for (int k = 0; k < 64; k++) x = x * 0.9999f + 1e-4f;\n"
    "    }\n"
    "    if (x == 12345.678f) out[7] = 1;\n" // so that nothing is dropped
    "    __syncthreads();\n"
    "    if (threadIdx.x) return;\n"
    "    unsigned long long end = now();\n"
    "    if (blockIdx.x == 0) state->cycles = clock64() - cycles, state->ns = end - begin;\n"
    "    atomicMax((unsigned long long *)&state->end, end);\n"
    "    __threadfence();\n"
    "    if (atomicAdd((unsigned *)&state->n_done, 1u) + 1 < gridDim.x) return;\n"
    "    __threadfence();\n"
    "    unsigned long long number = state->n_runs + 1;\n"
    "    out[0] = state->begin, out[1] = state->end, out[3] = state->cycles, out[4] = state->ns;\n"
    "    state->begin = ~0ull, state->end = 0, state->n_done = 0, state->n_runs = number;\n"
    "    __threadfence_system();\n"
    "    out[2] = number;\n"
    "}\n"
    "extern \"C\" __global__ void task(const float4 *table, int n_vectors, int rounds, int read_every,\n"
    "                                volatile task_state *state, volatile unsigned long long *out)\n"
    "{\n"
    "    run(table, n_vectors, rounds, read_every, state, out);\n"
    "}\n"
    // stays, and runs once for each new number in `bell`; ends at ~0, or after a second without one. Block 0 alone
    // reads host memory and tells the others: eight blocks that poll it took half of the neighbours' rate
    "extern \"C\" __global__ void resident(const float4 *table, int n_vectors, int rounds, int read_every,\n"
    "                                    volatile task_state *state, volatile unsigned long long *out,\n"
    "                                    volatile unsigned long long *bell, unsigned long long last)\n"
    "{\n"
    "    __shared__ unsigned long long seen;\n"
    "    const volatile unsigned long long *from = blockIdx.x ? &state->bell : bell;\n"
    "    for (;;) {\n"
    "        if (threadIdx.x == 0) {\n"
    "            unsigned long long idle = now(), number;\n"
    "            while ((number = *from) == last && now() - idle < 1000000000ull) continue;\n"
    "            seen = number == last ? ~0ull : number;\n"
    "            if (blockIdx.x == 0) state->bell = seen;\n"
    "        }\n"
    "        __syncthreads();\n"
    "        last = seen;\n"
    "        __syncthreads();\n" // all have read it before thread 0 writes it again
    "        if (last == ~0ull) return;\n"
    "        run(table, n_vectors, rounds, read_every, state, out);\n"
    "    }\n"
    "}\n";

typedef enum value { DEVICE_US, HOST_US, KCYCLES, MHZ, N_VALUES } value;

typedef enum start_kind { LAUNCH, GRAPH, BELL, N_STARTS } start_kind;
static const char *const start_names[] = {"launch", "graph", "bell"};

typedef struct bench {
    wt_device *device;
    gpu_loads loads;
    wt_kernel *task, *resident;
    wt_buffer *table, *state, *out, *bell;
    int n_sms, n_runs; ///< of the task
    double seconds;
    double *values[N_VALUES]; ///< [MAX_SAMPLES] each
} bench;

typedef struct percentiles {
    double p50, p99, p999, max;
} percentiles;

typedef struct figures {
    percentiles of[N_VALUES];
} figures;

/// The task as it is started.
typedef struct task {
    const char *name;
    int read_every, rounds;
    start_kind start;
    wt_stream *stream;
    wt_graph *graph;
} task;

static int fail(const char *what)
{
    fprintf(stderr, "bench_qos: %s: %s\n", what, wt_last_error());
    return 1;
}

// ---- the task

static wt_status launch_task(bench *b, const task *t)
{
    uintptr_t table = wt_buffer_address(b->table), state = wt_buffer_address(b->state), out = wt_buffer_address(b->out);
    uintptr_t bell = wt_buffer_address(b->bell);
    int n_vectors = TABLE_BYTES / 16;
    uint64_t last = (uint64_t)b->n_runs;
    const wt_arg args[] = {WT_ARG(table), WT_ARG(n_vectors), WT_ARG(t->rounds), WT_ARG(t->read_every),
                           WT_ARG(state), WT_ARG(out),       WT_ARG(bell),      WT_ARG(last)};
    const wt_launch launch = {.grid = {b->n_sms}, .block = {TASK_THREADS}};
    return t->start == BELL ? wt_kernel_launch(b->resident, t->stream, &launch, args, 8)
                            : wt_kernel_launch(b->task, t->stream, &launch, args, 6);
}

static void ring(bench *b, uint64_t number)
{
    atomic_store_explicit((_Atomic uint64_t *)wt_buffer_host(b->bell), number, memory_order_release);
}

/// Before a row: what the way of starting needs. Beside a resident kernel nothing is loaded or freed.
static wt_status prepare_task(bench *b, task *t)
{
    t->graph = NULL;
    if (t->start == BELL) {
        const uint64_t number = (uint64_t)b->n_runs;
        ring(b, number);
        wt_status status = wt_stream_upload(t->stream, b->state, BELL_AT, &number, sizeof number);
        return status ? status : launch_task(b, t);
    }
    if (t->start != GRAPH) return WT_OK;
    wt_status status = wt_graph_begin(t->stream, &t->graph);
    if (!status) status = launch_task(b, t);
    return status ? status : wt_graph_end(t->graph);
}

static wt_status end_task(bench *b, task *t)
{
    if (t->start == BELL) ring(b, UINT64_MAX);
    wt_status status = wt_stream_synchronize(t->stream);
    wt_graph_destroy(t->graph);
    return status;
}

static wt_status start_task(bench *b, const task *t)
{
    b->n_runs++;
    if (t->start == GRAPH) return wt_graph_launch(t->graph, t->stream);
    if (t->start == LAUNCH) return launch_task(b, t);
    ring(b, (uint64_t)b->n_runs);
    return WT_OK;
}

/// One run, as sample n; false when it does not end in time.
static bool run_task(bench *b, const task *t, int n)
{
    volatile uint64_t *out = wt_buffer_host(b->out);
    int64_t begin_ns = wt_clock_now_ns(NULL);
    if (start_task(b, t)) return !fail("task");
    while (out[2] != (uint64_t)b->n_runs)
        if (wt_clock_now_ns(NULL) - begin_ns > TIMEOUT_NS) return !fail("the task does not end within 1 s");
    atomic_thread_fence(memory_order_acquire);
    b->values[HOST_US][n] = (double)(wt_clock_now_ns(NULL) - begin_ns) * 1e-3;
    b->values[DEVICE_US][n] = (double)(out[1] - out[0]) * 1e-3;
    b->values[KCYCLES][n] = (double)out[3] * 1e-3;
    b->values[MHZ][n] = out[4] ? (double)out[3] * 1e3 / (double)out[4] : 0;
    return true;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static percentiles percentiles_of(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, ascending);
    return (percentiles){values[n / 2], values[(int)(n * 0.99)], values[(int)(n * 0.999)], values[n - 1]};
}

static bool run_periods(bench *b, const task *t, double seconds, int *n_samples)
{
    int n = 0;
    int64_t next_ns = wt_clock_now_ns(NULL), end_ns = next_ns + (int64_t)(seconds * 1e9);
    for (; next_ns < end_ns && n < MAX_SAMPLES; n++) {
        spin_until(next_ns);
        if (!run_task(b, t, n)) return false;
        do next_ns += PERIOD_NS; // a run that is longer than its period costs the next one its turn
        while (next_ns < wt_clock_now_ns(NULL));
    }
    *n_samples = n;
    return true;
}

/// Runs every period for `seconds`.
static bool run_tasks(bench *b, task *t, double seconds, figures *f)
{
    int n = 0;
    if (prepare_task(b, t)) return !fail("preparing the task");
    bool ok = run_periods(b, t, seconds, &n);
    if (end_task(b, t)) return !fail("ending the task");
    for (int k = 0; k < N_VALUES && ok; k++) f->of[k] = percentiles_of(b->values[k], n);
    return ok;
}

static bool calibrate(bench *b, task *t)
{
    t->rounds = 100;
    for (int k = 0; k < 4; k++) {
        figures f;
        if (!run_tasks(b, t, 0.1, &f)) return false;
        double scaled = t->rounds * TASK_US / f.of[DEVICE_US].p50;
        t->rounds = scaled < 1 ? 1 : scaled > 1e6 ? 1000000 : (int)(scaled + 0.5);
    }
    return true;
}

// ---- rows

static double percent(double now, double alone) { return 100 * (now / alone - 1); }

static void print_row(const char *protection, const task *t, const char *beside, const figures *f, const figures *solo)
{
    const percentiles *d = &f->of[DEVICE_US], *h = &f->of[HOST_US], *c = &f->of[KCYCLES];
    const percentiles *d0 = &solo->of[DEVICE_US], *h0 = &solo->of[HOST_US], *c0 = &solo->of[KCYCLES];
    double mhz = f->of[MHZ].p50;
    printf("qos  %-8s %-6s %-7s %-8s", protection, start_names[t->start], t->name, beside);
    printf(" | %6.1f %6.1f %6.1f %7.1f us %+6.1f %+6.1f %%", d->p50, d->p99, d->p999, d->max, percent(d->p50, d0->p50),
           percent(d->p99, d0->p99));
    printf(" | %5.0f MHz %+6.1f %%", mhz, percent(mhz, solo->of[MHZ].p50));
    printf(" | %6.1f %6.1f k %+6.1f %+6.1f %%", c->p50, c->p99, percent(c->p50, c0->p50), percent(c->p99, c0->p99));
    printf(" | %6.1f %6.1f %7.1f us %+6.1f %%", h->p50, h->p99, h->max, percent(h->p99, h0->p99));
}

typedef struct pair {
    wt_layout *layout;
    wt_stream *task, *load;
    int load_sms;
} pair;

static void pair_close(pair *p)
{
    wt_stream_destroy(p->task);
    wt_stream_destroy(p->load);
    if (wt_layout_destroy(p->layout)) fail("layout");
}

static wt_status pair_open(const bench *b, wt_isolation isolation, pair *p)
{
    const wt_partition_config partitions[] = {{.name = "task", .tier = WT_TIER_GUARANTEED, .n_sms = b->n_sms},
                                              {.name = "load"}};
    *p = (pair){0};
    const bool fine = b->n_sms % wt_device_get_info(b->device)->partition_sms != 0;
    const wt_layout_config config = {.partitions = partitions, .n_partitions = 2, .isolation = isolation, .fine = fine};
    wt_status status = wt_layout_create(b->device, &config, &p->layout);
    if (!status) status = wt_partition_stream_create(wt_layout_at(p->layout, 0), NULL, &p->task);
    if (!status) status = wt_partition_stream_create(wt_layout_at(p->layout, 1), NULL, &p->load);
    if (status) return status;
    wt_partition_info info;
    wt_partition_get_info(wt_layout_at(p->layout, 1), &info);
    p->load_sms = info.n_sms;
    return WT_OK;
}

static bool bench_beside(bench *b, const pair *p, const char *protection, task *t, const figures *solo,
                         gpu_load_kind kind, double share, double alone)
{
    figures f;
    gpu_load l;
    char name[32];
    if (gpu_load_start(&l, &b->loads, kind, p->load, p->load_sms)) return !fail(gpu_load_names[kind]);
    atomic_store(&l.share, share);
    spin_until(wt_clock_now_ns(NULL) + SETTLE_NS);
    long long n_before = atomic_load(&l.n_done);
    int64_t begin_ns = wt_clock_now_ns(NULL);
    bool ok = run_tasks(b, t, b->seconds, &f);
    double rate = gpu_load_rate(&l, n_before, begin_ns);
    if (gpu_load_stop(&l)) return !fail(gpu_load_names[kind]);
    if (!ok) return false;
    snprintf(name, sizeof name, share < 1 ? "%s %.0f%%" : "%s", gpu_load_names[kind], 100 * share);
    print_row(protection, t, name, &f, solo);
    printf(" | kept %5.1f %% ", 100 * rate / alone);
    gpu_load_print_rate(kind, rate);
    printf("\n");
    fflush(stdout);
    return true;
}

static bool bench_solo(bench *b, const pair *p, const char *protection, task *t, figures *solo)
{
    t->stream = p->task;
    if (!run_tasks(b, t, b->seconds, solo)) return false;
    print_row(protection, t, "alone", solo, solo);
    printf("\n");
    return true;
}

static bool bench_task(bench *b, const pair *p, const char *protection, task *t, const double *alone)
{
    figures solo;
    bool ok = bench_solo(b, p, protection, t, &solo);
    for (int kind = 0; kind < gpu_loads_count(&b->loads) && ok; kind++)
        ok = bench_beside(b, p, protection, t, &solo, (gpu_load_kind)kind, 1, alone[kind]);
    return ok;
}

/// Products that rest between pieces draw less power: what that does to the clock, and what they keep.
static bool bench_rests(bench *b, const pair *p, task *t, const double *alone)
{
    static const double shares[] = {0.9, 0.8, 0.7, 0.6, 0.5};
    figures solo;
    if (gpu_loads_count(&b->loads) <= GPU_GEMMS) return true; // no cuBLASLt
    bool ok = bench_solo(b, p, "sms", t, &solo);
    for (int k = 0; k < 5 && ok; k++) ok = bench_beside(b, p, "sms", t, &solo, GPU_GEMMS, shares[k], alone[GPU_GEMMS]);
    return ok;
}

static bool measure_loads(bench *b, const pair *p, double alone[N_GPU_LOADS])
{
    const int n_sms = wt_device_get_info(b->device)->n_sms;
    double rates[N_GPU_LOADS];
    for (int k = 0; k < gpu_loads_count(&b->loads); k++) {
        const gpu_load_kind kind = (gpu_load_kind)k;
        if (gpu_load_alone(&b->loads, &kind, &p->load, 1, n_sms, b->seconds, rates)) return !fail(gpu_load_names[k]);
        alone[k] = rates[k];
        printf("qos  load alone, whole GPU: %-7s ", gpu_load_names[k]);
        gpu_load_print_rate(kind, alone[k]);
        printf("\n");
    }
    return true;
}

static bool bench_protections(bench *b)
{
    static const char *const names[] = {"", "sms", "priority", "none"};
    task chip = {.name = "on-chip", .read_every = INT_MAX}, chain = {.name = "chain", .read_every = 64};
    task tables = {.name = "tables", .read_every = 1};
    double alone[N_GPU_LOADS] = {0};
    pair p;
    if (pair_open(b, WT_ISOLATION_NONE, &p)) return !fail("layout");
    chip.stream = chain.stream = tables.stream = p.task;
    bool ok = measure_loads(b, &p, alone) && calibrate(b, &chip) && calibrate(b, &chain) && calibrate(b, &tables);
    pair_close(&p);
    printf(
        "qos  %-30s | device p50   p99  p99.9     max      p50    p99   | clock               | cycles p50    p99     "
        "p50    p99   | host p50   p99     max      p99\n",
        "protection, start, task, load");
    for (int isolation = WT_ISOLATION_SMS; isolation <= WT_ISOLATION_NONE && ok; isolation++) {
        const bool own_sms = isolation == WT_ISOLATION_SMS;
        if (pair_open(b, (wt_isolation)isolation, &p)) return !fail(names[isolation]);
        for (int start = 0; start < (own_sms ? N_STARTS : 1) && ok; start++) {
            chip.start = (start_kind)start;
            ok = bench_task(b, &p, names[isolation], &chip, alone);
        }
        if (ok) ok = bench_task(b, &p, names[isolation], &chain, alone);
        if (own_sms && ok) ok = bench_task(b, &p, names[isolation], &tables, alone);
        if (own_sms && ok) {
            chip.start = LAUNCH;
            ok = bench_rests(b, &p, &chip, alone);
        }
        pair_close(&p);
    }
    return ok;
}

// ---- setting up

static wt_status set_up(bench *b, wt_module **module)
{
    wt_status status = wt_module_create(b->device, &(wt_module_config){.name = "qos.cu", .source = text}, module);
    if (!status) status = wt_module_get_kernel(*module, "task", &b->task);
    if (!status) status = wt_module_get_kernel(*module, "resident", &b->resident);
    if (!status) status = wt_buffer_create(b->device, WT_MEMORY_DEVICE, TABLE_BYTES, &b->table);
    if (!status) status = wt_buffer_create(b->device, WT_MEMORY_DEVICE, 64, &b->state);
    if (!status) status = wt_buffer_create(b->device, WT_MEMORY_MAPPED, 64, &b->out);
    if (!status) status = wt_buffer_create(b->device, WT_MEMORY_MAPPED, 64, &b->bell);
    if (!status) status = gpu_loads_open(b->device, &b->loads);
    wt_stream *stream = NULL;
    if (!status) status = wt_stream_create(b->device, NULL, &stream);
    if (!status) status = gpu_loads_fill_noise(&b->loads, stream, b->table);
    if (!status) status = wt_stream_fill(stream, b->state, 0, 0xff, 8); // the smallest begin so far
    if (!status) status = wt_stream_synchronize(stream);
    wt_stream_destroy(stream);
    return status;
}

int main(int argc, char **argv)
{
    bench b = {.n_sms = argc > 1 ? atoi(argv[1]) : 8, .seconds = argc > 2 ? atof(argv[2]) : 0.5};
    if (b.n_sms < 1 || b.seconds < 0.2 || b.seconds > 60) {
        fprintf(stderr, "bench_qos: %d SMs, %g seconds; want 1 or more, 0.2..60\n", b.n_sms, b.seconds);
        return 1;
    }
    if (wt_device_count() < 1) {
        printf("bench_qos: no CUDA device\n");
        return 0;
    }
    if (wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &b.device)) return fail("device");
    const wt_device_info *info = wt_device_get_info(b.device);
    if (!info->partition_sms) {
        printf("bench_qos: %s has no green contexts with this driver\n", info->name);
        wt_device_close(b.device);
        return 0;
    }
    printf("bench_qos: %s, CUDA %d.%d, task on %d of %d SMs every %.0f us\n", info->name, info->driver_version / 1000,
           info->driver_version % 1000 / 10, b.n_sms, info->n_sms, (double)PERIOD_NS * 1e-3);
    wt_module *module = NULL;
    bool ok = true;
    for (int k = 0; k < N_VALUES; k++) ok &= (b.values[k] = calloc(MAX_SAMPLES, sizeof *b.values[k])) != NULL;
    ok = ok && (!set_up(&b, &module) || !fail("setting up")) && bench_protections(&b);
    gpu_loads_close(&b.loads);
    wt_buffer *const buffers[] = {b.table, b.state, b.out, b.bell};
    for (int k = 0; k < 4; k++) wt_buffer_destroy(buffers[k]);
    wt_module_destroy(module);
    wt_device_close(b.device);
    for (int k = 0; k < N_VALUES; k++) free(b.values[k]);
    return ok ? 0 : 1;
}
