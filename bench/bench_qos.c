// A guaranteed task beside a load that saturates the GPU: how much later it ends, and what the load keeps.
//
//   bench_qos [n_sms] [seconds]     SMs of the guaranteed partition (8), seconds a row (0.5: p99 of 375 runs)
//
// The task takes about 100 us alone and starts every 1.333 ms. Its kernel has one block of 512 threads for each SM of
// its partition; every thread does dependent multiply-adds and now and then reads 16 bytes of a table. `chain` reads
// rarely, as audio nodes do whose state lies in shared memory; `tables` reads in every round, as a network with its
// weights does. Both read the same bytes every time: in L2 while alone, thrown out by the load.
//
// Loads, each in a best-effort partition of all other SMs: `reads`, 64 MB a launch as the layers of a decode step, with
// neighbouring blocks at neighbouring addresses and 4 x 16 bytes in flight a thread; `gemm`, 8192 x 8192 x 8192 in bf16
// through cuBLASLt, its SM count target set to the partition; `prefill`, a product of 2048 rows and eight reads in
// turn. Protections: own SMs (green contexts), priority streams, none; the task's grid stays the same.
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
#include "../engine/cuda_libs.h"
#include "../engine/device_cuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/clock.h>
#include <warptone/graph.h>
#include <warptone/kernel.h>
#include <warptone/partition.h>

enum {
    TASK_THREADS = 512,
    TABLE_BYTES = 16 << 20,
    READ_THREADS = 512,
    READ_BYTES = 64 << 20,
    N_WINDOWS = 32, ///< of READ_BYTES, so that no launch finds its data in L2
    GEMM = 8192,
    PREFILL = 2048,
    WORKSPACE_BYTES = 32 << 20,
    DEPTH = 3, ///< pieces of load in flight
    MAX_SAMPLES = 100000,
};
static const int64_t PERIOD_NS = 1333333, TIMEOUT_NS = 1000000000, SETTLE_NS = 250000000;
static const double TASK_US = 100;

static const char text[] =
    "struct task_state { unsigned long long begin, end, cycles, ns, n_runs; unsigned n_done; };\n"
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
    // stays, and runs once for each new number in `bell`; ends at ~0, or after a second without one
    "extern \"C\" __global__ void resident(const float4 *table, int n_vectors, int rounds, int read_every,\n"
    "                                    volatile task_state *state, volatile unsigned long long *out,\n"
    "                                    volatile unsigned long long *bell, unsigned long long last)\n"
    "{\n"
    "    __shared__ unsigned long long seen;\n"
    "    for (;;) {\n"
    "        if (threadIdx.x == 0) {\n"
    "            unsigned long long idle = now(), number;\n"
    "            while ((number = *bell) == last && now() - idle < 1000000000ull) continue;\n"
    "            seen = number == last ? ~0ull : number;\n"
    "        }\n"
    "        __syncthreads();\n"
    "        last = seen;\n"
    "        __syncthreads();\n" // all have read it before thread 0 writes it again
    "        if (last == ~0ull) return;\n"
    "        run(table, n_vectors, rounds, read_every, state, out);\n"
    "    }\n"
    "}\n"
    "extern \"C\" __global__ void reads(const uint4 *data, int n_vectors, unsigned *out)\n"
    "{\n"
    "    unsigned sum = 0;\n"
    "    int stride = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    for (; i + 3 * stride < n_vectors; i += 4 * stride) {\n"
    "        uint4 a = data[i], b = data[i + stride], c = data[i + 2 * stride], d = data[i + 3 * stride];\n"
    "        sum ^= a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w ^ c.x ^ c.y ^ c.z ^ c.w ^ d.x ^ d.y ^ d.z ^ d.w;\n"
    "    }\n"
    "    for (; i < n_vectors; i += stride) sum ^= data[i].x ^ data[i].y ^ data[i].z ^ data[i].w;\n"
    "    if (sum == 0x12345678) *out = sum;\n"
    "}\n"
    "extern \"C\" __global__ void noise(unsigned *to, long long n)\n" // bf16 pairs of magnitude 0.5 to 1
    "{\n"
    "    long long stride = (long long)gridDim.x * blockDim.x;\n"
    "    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {\n"
    "        unsigned h = (unsigned)i * 2654435761u;\n"
    "        h = (h ^ h >> 15) * 2246822519u;\n"
    "        h = (h ^ h >> 13) * 3266489917u;\n"
    "        to[i] = ((h ^ h >> 16) & 0x807f807fu) | 0x3f003f00u;\n"
    "    }\n"
    "}\n";

typedef enum value { DEVICE_US, HOST_US, KCYCLES, MHZ, N_VALUES } value;

typedef enum start_kind { LAUNCH, GRAPH, BELL, N_STARTS } start_kind;
static const char *const start_names[] = {"launch", "graph", "bell"};

typedef struct gemm {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algo;
} gemm;

typedef struct bench {
    wt_device *device;
    const wt__cublaslt *lt; ///< NULL = not available
    cublasLtHandle_t handle;
    wt_kernel *task, *resident, *reads, *noise;
    wt_buffer *table, *state, *out, *bell, *data, *a, *b, *d, *workspace;
    int n_sms, n_runs; ///< of the task
    double seconds;
    double *values[N_VALUES]; ///< [MAX_SAMPLES] each
} bench;

typedef enum load_kind { READS, GEMMS, PREFILLS, N_LOADS } load_kind;
static const char *const load_names[] = {"reads", "gemm", "prefill"};

typedef struct load {
    const bench *b;
    load_kind kind;
    wt_stream *stream;
    int n_sms;
    gemm gemm;
    wt_event *events[DEPTH];
    atomic_bool quit, failed;
    atomic_llong n_done; ///< pieces
    pthread_t thread;
} load;

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

// ---- the load

static wt_status lt_status(cublasStatus_t result, const char *what)
{
    return result ? wt_fail(WT_ERR_CUDA, "cuBLASLt %s: status %d", what, result) : WT_OK;
}

/// d[n][m] = a[m][GEMM] b[n][GEMM]', all bf16, sums in f32: cuBLASLt's column-major D = A' B.
static wt_status gemm_plan(const bench *b, int m, int n, int n_sms, gemm *g)
{
    const wt__cublaslt *lt = b->lt;
    const int transpose = 1; // CUBLAS_OP_T
    const int32_t target = n_sms;
    const size_t workspace_bytes = WORKSPACE_BYTES;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t result;
    int n_results = 0;
    wt_status status = wt__cuda_enter(wt__cuda_device_of(b->device));
    if (status) return status;
    cublasStatus_t r = lt->MatmulDescCreate(&g->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (!r) r = lt->MatmulDescSetAttribute(g->desc, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose);
    if (!r) r = lt->MatmulDescSetAttribute(g->desc, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &target, sizeof target);
    if (!r) r = lt->MatrixLayoutCreate(&g->a, CUDA_R_16BF, GEMM, (uint64_t)m, GEMM);
    if (!r) r = lt->MatrixLayoutCreate(&g->b, CUDA_R_16BF, GEMM, (uint64_t)n, GEMM);
    if (!r) r = lt->MatrixLayoutCreate(&g->d, CUDA_R_16BF, (uint64_t)m, (uint64_t)n, m);
    if (!r) r = lt->MatmulPreferenceCreate(&preference);
    if (!r)
        r = lt->MatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                                             sizeof workspace_bytes);
    if (!r)
        r = lt->MatmulAlgoGetHeuristic(b->handle, g->desc, g->a, g->b, g->d, g->d, preference, 1, &result, &n_results);
    if (preference) lt->MatmulPreferenceDestroy(preference);
    if (!r && n_results) g->algo = result.algo;
    return r || n_results ? lt_status(r, "plan") : wt_fail(WT_ERR_CUDA, "cuBLASLt has no algorithm");
}

static void gemm_free(const bench *b, gemm *g)
{
    if (g->desc) b->lt->MatmulDescDestroy(g->desc);
    cublasLtMatrixLayout_t layouts[] = {g->a, g->b, g->d};
    for (int k = 0; k < 3; k++)
        if (layouts[k]) b->lt->MatrixLayoutDestroy(layouts[k]);
}

static wt_status queue_gemm(const load *l)
{
    const bench *b = l->b;
    const float one = 1, zero = 0;
    wt_status status = wt__cuda_enter(wt__cuda_device_of(b->device));
    if (status) return status;
    void *d = (void *)wt_buffer_address(b->d);
    return lt_status(b->lt->Matmul(b->handle, l->gemm.desc, &one, (const void *)wt_buffer_address(b->a), l->gemm.a,
                                   (const void *)wt_buffer_address(b->b), l->gemm.b, &zero, d, l->gemm.d, d, l->gemm.d,
                                   &l->gemm.algo, (void *)wt_buffer_address(b->workspace), WORKSPACE_BYTES,
                                   wt__cuda_stream_of(l->stream)),
                     "matmul");
}

static wt_status queue_reads(const load *l, int n, int *window)
{
    wt_status status = WT_OK;
    for (int k = 0; k < n && !status; k++) {
        uintptr_t data = wt_buffer_address(l->b->data) + (size_t)(*window)++ % N_WINDOWS * READ_BYTES;
        uintptr_t out = wt_buffer_address(l->b->workspace);
        int n_vectors = READ_BYTES / 16;
        const wt_arg args[] = {WT_ARG(data), WT_ARG(n_vectors), WT_ARG(out)};
        const wt_launch launch = {.grid = {l->n_sms * 4}, .block = {READ_THREADS}};
        status = wt_kernel_launch(l->b->reads, l->stream, &launch, args, 3);
    }
    return status;
}

static wt_status queue_piece(const load *l, int *window)
{
    if (l->kind == READS) return queue_reads(l, 16, window);
    wt_status status = queue_gemm(l);
    return status || l->kind == GEMMS ? status : queue_reads(l, 8, window);
}

static void *load_thread(void *user)
{
    load *l = user;
    int window = 0;
    wt_status status = WT_OK;
    for (long long n = 0; !atomic_load(&l->quit) && !status; n++) {
        if (n >= DEPTH) status = wt_event_synchronize(l->events[n % DEPTH]);
        if (n >= DEPTH) atomic_store(&l->n_done, n - DEPTH + 1);
        if (!status) status = queue_piece(l, &window);
        if (!status) status = wt_event_record(l->events[n % DEPTH], l->stream);
    }
    if (!status) status = wt_stream_synchronize(l->stream);
    if (status) fail(load_names[l->kind]);
    atomic_store(&l->failed, status != WT_OK);
    return NULL;
}

static wt_status load_start(load *l, const bench *b, load_kind kind, wt_stream *stream, int n_sms)
{
    *l = (load){.b = b, .kind = kind, .stream = stream, .n_sms = n_sms};
    wt_status status = kind == READS ? WT_OK : gemm_plan(b, GEMM, kind == GEMMS ? GEMM : PREFILL, n_sms, &l->gemm);
    for (int k = 0; k < DEPTH && !status; k++) status = wt_event_create(b->device, &l->events[k]);
    int window = 0;
    if (!status) status = queue_piece(l, &window); // the first use loads kernels
    if (!status) status = wt_stream_synchronize(stream);
    if (!status && pthread_create(&l->thread, NULL, load_thread, l)) status = wt_fail(WT_ERR_NO_MEMORY, "no thread");
    return status;
}

static bool load_stop(load *l)
{
    atomic_store(&l->quit, true);
    pthread_join(l->thread, NULL);
    for (int k = 0; k < DEPTH; k++) wt_event_destroy(l->events[k]);
    if (l->kind != READS) gemm_free(l->b, &l->gemm);
    return !atomic_load(&l->failed);
}

// ---- the task

static void spin_until(int64_t time_ns)
{
    while (wt_clock_now_ns(NULL) < time_ns) {
    }
}

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
        ring(b, (uint64_t)b->n_runs);
        return launch_task(b, t);
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
    printf("qos  %-8s %-6s %-6s %-7s", protection, start_names[t->start], t->name, beside);
    printf(" | %6.1f %6.1f %6.1f %7.1f us %+6.1f %+6.1f %%", d->p50, d->p99, d->p999, d->max, percent(d->p50, d0->p50),
           percent(d->p99, d0->p99));
    printf(" | %5.0f MHz %+6.1f %%", mhz, percent(mhz, solo->of[MHZ].p50));
    printf(" | %6.1f %6.1f k %+6.1f %+6.1f %%", c->p50, c->p99, percent(c->p50, c0->p50), percent(c->p99, c0->p99));
    printf(" | %6.1f %6.1f %7.1f us %+6.1f %%", h->p50, h->p99, h->max, percent(h->p99, h0->p99));
}

/// Pieces a second of a load, while nothing or the task runs.
static double rate_of(const load *l, long long n_before, int64_t begin_ns)
{
    return (double)(atomic_load(&l->n_done) - n_before) / ((double)(wt_clock_now_ns(NULL) - begin_ns) * 1e-9);
}

static void print_rate(load_kind kind, double rate)
{
    const double read = READ_BYTES * 1e-9, product = 2e-12 * GEMM * GEMM;
    if (kind == READS) printf("%7.0f GB/s", 16 * read * rate);
    if (kind == GEMMS) printf("%7.0f TFLOP/s", product * GEMM * rate);
    if (kind == PREFILLS) printf("%7.0f TFLOP/s + %.0f GB/s", product * PREFILL * rate, 8 * read * rate);
}

static bool measure_alone(const bench *b, load_kind kind, wt_stream *stream, double *rate)
{
    load l;
    if (load_start(&l, b, kind, stream, wt_device_get_info(b->device)->n_sms)) return !fail(load_names[kind]);
    spin_until(wt_clock_now_ns(NULL) + SETTLE_NS);
    long long n_before = atomic_load(&l.n_done);
    int64_t begin_ns = wt_clock_now_ns(NULL);
    spin_until(begin_ns + (int64_t)(b->seconds * 1e9));
    *rate = rate_of(&l, n_before, begin_ns);
    return load_stop(&l);
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

static bool bench_task(bench *b, const pair *p, const char *protection, task *t, const double *alone)
{
    figures solo, f;
    t->stream = p->task;
    if (!run_tasks(b, t, b->seconds, &solo)) return false;
    print_row(protection, t, "alone", &solo, &solo);
    printf("\n");
    for (int kind = 0; kind < (b->lt ? N_LOADS : GEMMS); kind++) {
        load l;
        if (load_start(&l, b, (load_kind)kind, p->load, p->load_sms)) return !fail(load_names[kind]);
        spin_until(wt_clock_now_ns(NULL) + SETTLE_NS);
        long long n_before = atomic_load(&l.n_done);
        int64_t begin_ns = wt_clock_now_ns(NULL);
        bool ok = run_tasks(b, t, b->seconds, &f);
        double rate = rate_of(&l, n_before, begin_ns);
        if (!load_stop(&l) || !ok) return false;
        print_row(protection, t, load_names[kind], &f, &solo);
        printf(" | kept %5.1f %% ", 100 * rate / alone[kind]);
        print_rate((load_kind)kind, rate);
        printf("\n");
        fflush(stdout);
    }
    return true;
}

static bool measure_loads(bench *b, const pair *p, double alone[N_LOADS])
{
    bool ok = true;
    for (int kind = 0; kind < (b->lt ? N_LOADS : GEMMS) && ok; kind++) {
        ok = measure_alone(b, (load_kind)kind, p->load, &alone[kind]);
        printf("qos  load alone, whole GPU: %-7s ", load_names[kind]);
        print_rate((load_kind)kind, alone[kind]);
        printf("\n");
    }
    return ok;
}

static bool bench_protections(bench *b)
{
    static const char *const names[] = {"", "sms", "priority", "none"};
    task chain = {.name = "chain", .read_every = 64}, tables = {.name = "tables", .read_every = 1};
    double alone[N_LOADS] = {0};
    pair p;
    if (pair_open(b, WT_ISOLATION_NONE, &p)) return !fail("layout");
    chain.stream = tables.stream = p.task;
    bool ok = measure_loads(b, &p, alone) && calibrate(b, &chain) && calibrate(b, &tables);
    pair_close(&p);
    printf(
        "qos  %-30s | device p50   p99  p99.9     max      p50    p99   | clock               | cycles p50    p99     "
        "p50    p99   | host p50   p99     max      p99\n",
        "protection, start, task, load");
    for (int isolation = WT_ISOLATION_SMS; isolation <= WT_ISOLATION_NONE && ok; isolation++) {
        const bool own_sms = isolation == WT_ISOLATION_SMS;
        if (pair_open(b, (wt_isolation)isolation, &p)) return !fail(names[isolation]);
        for (int start = 0; start < (own_sms ? N_STARTS : 1) && ok; start++) {
            chain.start = (start_kind)start;
            ok = bench_task(b, &p, names[isolation], &chain, alone);
        }
        chain.start = LAUNCH;
        if (own_sms && ok) ok = bench_task(b, &p, names[isolation], &tables, alone);
        pair_close(&p);
    }
    return ok;
}

// ---- setting up

static wt_status fill_noise(const bench *b, wt_stream *stream, wt_buffer *buffer)
{
    uintptr_t address = wt_buffer_address(buffer);
    long long n = (long long)(wt_buffer_size_bytes(buffer) / 4);
    const wt_arg args[] = {WT_ARG(address), WT_ARG(n)};
    return wt_kernel_launch(b->noise, stream, &(wt_launch){.grid = {1024}, .block = {256}}, args, 2);
}

static wt_status set_up(bench *b, wt_module **module)
{
    const size_t matrix_bytes = (size_t)GEMM * GEMM * 2;
    const struct {
        wt_buffer **buffer;
        size_t size_bytes;
    } buffers[] = {{&b->table, TABLE_BYTES},        {&b->state, 64},       {&b->data, (size_t)N_WINDOWS * READ_BYTES},
                   {&b->a, matrix_bytes},           {&b->b, matrix_bytes}, {&b->d, matrix_bytes},
                   {&b->workspace, WORKSPACE_BYTES}};
    wt_status status = wt_module_create(b->device, &(wt_module_config){.name = "qos.cu", .source = text}, module);
    if (!status) status = wt_module_get_kernel(*module, "task", &b->task);
    if (!status) status = wt_module_get_kernel(*module, "resident", &b->resident);
    if (!status) status = wt_module_get_kernel(*module, "reads", &b->reads);
    if (!status) status = wt_module_get_kernel(*module, "noise", &b->noise);
    for (int k = 0; k < 7 && !status; k++)
        status = wt_buffer_create(b->device, WT_MEMORY_DEVICE, buffers[k].size_bytes, buffers[k].buffer);
    if (!status) status = wt_buffer_create(b->device, WT_MEMORY_MAPPED, 64, &b->out);
    if (!status) status = wt_buffer_create(b->device, WT_MEMORY_MAPPED, 64, &b->bell);
    wt_stream *stream = NULL;
    if (!status) status = wt_stream_create(b->device, NULL, &stream);
    wt_buffer *const noisy[] = {b->table, b->data, b->a, b->b};
    for (int k = 0; k < 4 && !status; k++) status = fill_noise(b, stream, noisy[k]);
    if (!status) status = wt_stream_fill(stream, b->state, 0, 0xff, 8); // the smallest begin so far
    if (!status) status = wt_stream_synchronize(stream);
    wt_stream_destroy(stream);
    if (status || wt__cublaslt_open(&b->lt)) { // the bench goes on with reads alone
        if (!status) printf("bench_qos: %s\n", wt_last_error());
        b->lt = NULL;
        return status;
    }
    status = wt__cuda_enter(wt__cuda_device_of(b->device));
    return status ? status : lt_status(b->lt->Create(&b->handle), "handle");
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
    if (b.handle) b.lt->Destroy(b.handle);
    wt_buffer *const buffers[] = {b.table, b.state, b.out, b.bell, b.data, b.a, b.b, b.d, b.workspace};
    for (int k = 0; k < 9; k++) wt_buffer_destroy(buffers[k]);
    wt_module_destroy(module);
    wt_device_close(b.device);
    for (int k = 0; k < N_VALUES; k++) free(b.values[k]);
    return ok ? 0 : 1;
}
