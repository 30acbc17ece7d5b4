// The live engine at real pace: how long a block takes from the callback's call to its answer, and what a load beside
// it keeps.
//
//   bench_roundtrip [--blocks N] [--block FRAMES] [--sms N] [--workers N] [--path NAME] [--load NAME] [--chain NAME]
//                   [--streams N] [--processor N|quiet] [--witness 1]
//   bench_roundtrip --row PATH:LOAD:FRAMES:BLOCKS ...     these rows in this order; each is printed when it is known
//
// With --processor the audio thread has a processor to itself, as in `warptone live`: that one, or the one that takes
// the least from it; nobody else of the process uses its siblings.
//
// With --witness 1 a second kernel on another SM of the audio partition notes when it stood still (support/witness.h),
// to tell a kernel that was off its SM from a bus that did not answer. Its own looks are beside the measured ones then.
//
// SIGTERM and SIGINT end the row at hand, which is printed with the blocks it has, and leave out the others.
//
// Chains, at 48 kHz:
//
//   voice      high-pass, four bands, compressor, 512 taps of convolution, limiter; stereo
//   analysis   transform of 1024 every 64 frames, HPSS, constant-Q of 84 notes, pitch; 8 streams of one channel
//   analysis8  the same, one stream of 8 channels: one SM works, and notes and pitch are those of the channels' mean
//
// Every block's period (64 frames: 1.333 ms) the thread calls wt_live_process once and notes how long it took. Paths:
//
//   jitter     no device at all: how late the same thread is for its own periods, and the largest hole while it only
//              reads the clock. The host's share in every maximum below
//   cpu        wt_live on the CPU, as a share of the period
//   desk       64 streams with a convolution of 1 s each on the CPU, with --workers N threads beside the caller
//   resident   wt_live by the kernel that stays
//   graph      wt_live by a captured graph
//   copies     copy in, launch, copy out, synchronise, on a stream of the partition with the highest priority; voice
//   streams    64 stereo streams of the voice with a second of convolution each, by the kernel that stays; voice
//   turns      as resident, but the CPU has the chain every other 3 s: what the load does with and without the kernel
//              in the same minutes. Only by --row, with a load; the row's times are of both
//
// Loads, in a partition of all SMs but the audio partition's: idle; reads; gemm (8192 in bf16); reads4 and gemm4, the
// same launched from four threads on streams of their own; both4, two threads of each. `kept` is the load's rate
// against its rate alone on the whole GPU, and against its rate alone on its partition, launched by as many threads.
// Misses are late answers (wait_share 0.8 of the period). How many callbacks made a system call is what the kernel saw
// (support/system_calls.h). Behind a row of the device comes whose time it was: the row
// again less the longest time that the audio thread was away between two readings of the clock in each block; how often
// it was away while it only read the clock, between the blocks of the same row, and how often the kernel's scheduler
// had taken it (involuntary switches; else interrupts, or the hypervisor); the longest that the device did not look.
// Then the ten slowest blocks and those missed, at the clock's seconds, with whose time it mostly was and all parts of
// it: late beginning; until the doorbell was rung; until the device saw it, against the blocks before; what the device
// did until then; its own part; the ways there and back; until the answer was found, which for a missed block is when
// the next one came at the earliest; until the call ended.
#include "../hosts/live_processor.h"
#include "support/chain_copies.h"
#include "support/gpu_load.h"
#include "support/late_blocks.h"
#include "support/live_chains.h"
#include "support/load_turns.h"
#include "support/system_calls.h"
#include "support/witness.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/clock.h>
#include <warptone/histogram.h>
#include <warptone/live.h>

#define RATE 48000.0
enum { STREAMS = 64, MAX_BLOCK = 1024, WARM_BLOCKS = 500, MAX_ROWS = 64 };
static const int64_t SETTLE_NS = 250000000;
static const double ALONE_S = 0.25, TURN_S = 3;

typedef enum path { JITTER, CPU, DESK, RESIDENT, GRAPHS, COPIES, MANY, TURNS, N_PATHS } path;
static const char *const path_names[] = {"jitter", "cpu", "desk", "resident", "graph", "copies", "streams", "turns"};
typedef enum load_case { IDLE, READS, READS_4, GEMM, GEMM_4, BOTH_4, N_CASES } load_case;

/// What runs beside the blocks: a kind for each thread.
static const struct {
    const char *name;
    int n;
    gpu_load_kind kinds[GPU_LOAD_THREADS];
} cases[] = {{"idle", 0, {0}},
             {"reads", 1, {GPU_READS}},
             {"reads4", 4, {GPU_READS, GPU_READS, GPU_READS, GPU_READS}},
             {"gemm", 1, {GPU_GEMMS}},
             {"gemm4", 4, {GPU_GEMMS, GPU_GEMMS, GPU_GEMMS, GPU_GEMMS}},
             {"both4", 4, {GPU_READS, GPU_GEMMS, GPU_READS, GPU_GEMMS}}};

typedef struct row {
    path path;
    load_case load;
    int block, n_blocks;
} row;

typedef struct bench_chain {
    const char *name;
    const wt_chain_desc *desc;
    int channels, n_streams;
} bench_chain;
static const bench_chain chains[] = {
    {"voice", &bench_voice, 2, 1}, {"analysis", &bench_analysis, 1, 8}, {"analysis8", &bench_analysis, 8, 1}};
static const bench_chain many_voices = {"streams", &bench_voice_long, 2, STREAMS};

typedef struct bench {
    int n_blocks, block, n_sms, n_workers, n_streams; ///< blocks: of the row at hand; streams: 0 = the chain's
    const bench_chain *chain;
    const char *only_path, *only_load;
    row rows[MAX_ROWS];
    int n_rows;
    bool no_device, watched, knows_calls; ///< watched: by the witness; calls: of the system, by the kernel
    int n_calling;                               ///< blocks of the row at hand in whose callback there was one
    const char *processor;
    live_processor own; ///< the audio thread's
    wt_device *device;
    gpu_loads loads;
    wt_layout *layout;
    wt_partition *audio;
    wt_stream *load_streams[GPU_LOAD_THREADS];
    int load_sms;
    double alone[N_CASES][2][N_GPU_LOADS]; ///< with nothing beside them: on the whole GPU, on the partition
    wt_histogram *took, *late;
    late_blocks watch;
    witness witness;
    float *in, *out;
    const float *ins[2 * STREAMS];
    float *outs[2 * STREAMS];
} bench;

static int fail(const char *what)
{
    fprintf(stderr, "bench_roundtrip: %s: %s\n", what, wt_last_error());
    return 1;
}

static volatile sig_atomic_t stopped;

static void stop(int number)
{
    (void)number;
    stopped = 1;
}

// ---- blocks at their pace

typedef wt_status (*block_function)(void *user, const bench *b);

// `took`: the call. `late`: how long after its time it began. `live`: NULL, or what the function plays.
static wt_status run_blocks(bench *b, int n, block_function function, void *user, const wt_live *live)
{
    live_processor_place(&b->own, pthread_self(), true);
    const double period_ns = b->block / RATE * 1e9;
    const int64_t begin_ns = wt_clock_now_ns(NULL) + 1000000;
    wt_histogram_reset(b->took);
    wt_histogram_reset(b->late);
    b->n_calling = 0;
    late_blocks_begin(&b->watch);
    for (int k = 0; k < n && !stopped; k++) {
        slow_block block = {.number = k};
        const int64_t due_ns = begin_ns + (int64_t)(k * period_ns);
        late_blocks_spin(&b->watch, due_ns);
        block.start_ns = wt_clock_now_ns(NULL);
        if (live) system_calls_begin();
        wt_status status = function ? function(user, b) : WT_OK;
        if (live && system_calls_end()) b->n_calling++;
        if (status && status != WT_ERR_TIMEOUT) { // late blocks are the live engine's to count
            live_processor_place(&b->own, pthread_self(), false);
            return status;
        }
        block.took_ns = wt_clock_now_ns(NULL) - block.start_ns;
        block.late_ns = block.start_ns - due_ns;
        block.missed = status == WT_ERR_TIMEOUT;
        late_blocks_note(&b->watch, &block, live);
        wt_histogram_record(b->took, block.took_ns);
        wt_histogram_record(b->late, block.late_ns);
    }
    live_processor_place(&b->own, pthread_self(), false);
    return WT_OK;
}

static void print_row(const bench *b, const char *path, const char *load, const wt_histogram *histogram)
{
    wt_histogram_summary s;
    wt_histogram_summarize(histogram, &s);
    printf("roundtrip  %-8s %-7s block=%d n=%llu  p50 %.1f  p99 %.1f  p99.9 %.1f  p99.99 %.1f  max %.1f us", path, load,
           b->block, (unsigned long long)s.count, (double)s.p50 * 1e-3, (double)s.p99 * 1e-3, (double)s.p99_9 * 1e-3,
           (double)s.p99_99 * 1e-3, (double)s.max * 1e-3);
}

static wt_status bench_jitter(bench *b)
{
    wt_histogram *gaps = b->took;
    wt_status status = run_blocks(b, b->n_blocks, NULL, NULL, NULL);
    if (status) return status;
    print_row(b, "jitter", "-", b->late);
    printf(" late for the period\n");
    wt_histogram_reset(gaps);
    const int64_t end_ns = wt_clock_now_ns(NULL) + (int64_t)(b->n_blocks * b->block / RATE * 1e9);
    int over_20_us = 0;
    for (int64_t before = wt_clock_now_ns(NULL), now = before; now < end_ns && !stopped; before = now) {
        now = wt_clock_now_ns(NULL);
        wt_histogram_record(gaps, now - before);
        over_20_us += now - before > 20000;
    }
    print_row(b, "jitter", "-", gaps);
    printf(" between two readings of the clock, %d above 20 us\n", over_20_us);
    return WT_OK;
}

// ---- live

static wt_status live_block(void *user, const bench *b) { return wt_live_process(user, b->ins, b->outs, b->block); }

static wt_status live_open(const bench *b, path p, wt_live **live)
{
    static const wt_live_path paths[] = {[CPU] = WT_LIVE_CPU,
                                         [DESK] = WT_LIVE_CPU,
                                         [RESIDENT] = WT_LIVE_RESIDENT,
                                         [GRAPHS] = WT_LIVE_GRAPH,
                                         [MANY] = WT_LIVE_RESIDENT,
                                         [TURNS] = WT_LIVE_RESIDENT};
    const bench_chain *chain = p == DESK || p == MANY ? &many_voices : b->chain;
    const wt_live_config config = {.rate_hz = RATE,
                                   .channels = chain->channels,
                                   .n_streams = b->n_streams ? b->n_streams : chain->n_streams,
                                   .n_workers = b->n_workers,
                                   .worker_priority = 1,
                                   .max_frames = b->block,
                                   .device = p <= DESK ? NULL : b->device,
                                   .partition = p <= DESK ? NULL : b->audio,
                                   .path = paths[p]};
    wt_status status = wt_live_create(&config, live);
    return status ? status : wt_live_load(*live, chain->desc, NULL);
}

static void print_live(const bench *b, const wt_live_stats *before, const wt_live_stats *after)
{
    const double period_us = b->block / RATE * 1e6;
    wt_histogram_summary s;
    wt_histogram_summarize(b->took, &s);
    printf(" | p99.9 is %.1f %% of %.0f us | misses %llu, launches %llu, %llu streams' blocks by workers",
           100e-3 * (double)s.p99_9 / period_us, period_us, (unsigned long long)(after->n_misses - before->n_misses),
           (unsigned long long)(after->n_launches - before->n_launches),
           (unsigned long long)(after->n_helped - before->n_helped));
    if (after->n_threads) printf(", %d of %d threads", after->n_threads, after->n_threads_wanted);
    if (b->knows_calls) printf(", %d blocks with a system call in the callback", b->n_calling);
    if (b->n_calling) printf(" (the last %d)", system_calls_last());
}

// ---- plain copies

static wt_status copies_block(void *user, const bench *b) { return chain_copies_play(user, b->ins, b->outs, b->block); }

// ---- rows

static void print_kept(const bench *b, load_case which, const double *rates)
{
    const double(*alone)[N_GPU_LOADS] = b->alone[which];
    for (int kind = 0; kind < N_GPU_LOADS; kind++) {
        if (!alone[0][kind]) continue;
        printf(" | %s kept %.1f %% of the GPU's, %.1f %% of the partition's,", gpu_load_names[kind],
               100 * rates[kind] / alone[0][kind], 100 * rates[kind] / alone[1][kind]);
        gpu_load_print_rate((gpu_load_kind)kind, rates[kind]);
    }
}

/// What plays while rows of one path and block length are measured.
typedef struct played {
    wt_live *live; ///< NULL: the copies
    chain_copies copies;
} played;

static wt_status measure_row(bench *b, const row *r, played *p)
{
    const int n = cases[r->load].n;
    gpu_load loads[GPU_LOAD_THREADS];
    long long before[GPU_LOAD_THREADS];
    double rates[N_GPU_LOADS];
    wt_status status = WT_OK, ended;
    int n_started = 0;
    for (; n_started < n && !status; n_started++)
        status = gpu_load_start(&loads[n_started], &b->loads, cases[r->load].kinds[n_started],
                                b->load_streams[n_started], b->load_sms);
    if (status) return status;
    if (n) spin_until(wt_clock_now_ns(NULL) + SETTLE_NS);
    block_function function = p->live ? live_block : copies_block;
    void *user = p->live ? (void *)p->live : (void *)&p->copies;
    wt_live_stats first = {0}, last = {0};
    status = run_blocks(b, WARM_BLOCKS, function, user, p->live);
    if (p->live) wt_live_get_stats(p->live, &first);
    for (int k = 0; k < n; k++) before[k] = atomic_load(&loads[k].n_done);
    const int64_t begin_ns = wt_clock_now_ns(NULL);
    static load_turns turns;
    bool in_turns = false;
    const bool watched = b->watched && r->path > DESK;
    if (!status && r->path == TURNS) {
        status = load_turns_start(&turns, p->live, loads, n, TURN_S, r->n_blocks * b->block / RATE);
        in_turns = !status;
    }
    if (!status && watched) status = witness_start(&b->witness);
    if (!status) status = run_blocks(b, r->n_blocks, function, user, p->live);
    if (!status && watched) status = witness_stop(&b->witness);
    if (in_turns && (ended = load_turns_stop(&turns)) && !status) status = ended;
    gpu_load_rates(loads, n, before, begin_ns, rates);
    for (int k = 0; k < n; k++)
        if ((ended = gpu_load_stop(&loads[k])) && !status) status = ended;
    if (status) return status;
    print_row(b, path_names[r->path], cases[r->load].name, b->took);
    if (p->live) wt_live_get_stats(p->live, &last);
    if (p->live) print_live(b, &first, &last);
    print_kept(b, r->load, rates);
    wt_histogram_summary late;
    wt_histogram_summarize(b->late, &late);
    printf(" | began late p99.9 %.1f max %.1f us\n", (double)late.p99_9 * 1e-3, (double)late.max * 1e-3);
    if (in_turns)
        load_turns_print(&turns);
    else if (r->path > DESK && p->live) late_blocks_print(&b->watch);
    if (watched) witness_print(&b->witness);
    return WT_OK;
}

// ---- setting up

// Each load with nothing beside it, on these streams. On a partition this also loads what the loads need there, which
// cannot be done beside a resident kernel.
static wt_status measure_alone(bench *b, wt_stream *const *streams, int n_sms, int where)
{
    bool wanted[N_CASES] = {false};
    wt_status status = WT_OK;
    for (int k = 0; k < b->n_rows; k++) wanted[b->rows[k].load] = true;
    for (int which = READS; which < N_CASES && !status; which++) {
        if (!wanted[which]) continue;
        double *rates = b->alone[which][where];
        status = gpu_load_alone(&b->loads, cases[which].kinds, streams, cases[which].n, n_sms, ALONE_S, rates);
        printf("roundtrip  load alone: %-6s on %d SMs", cases[which].name, n_sms);
        for (int kind = 0; kind < N_GPU_LOADS; kind++)
            if (rates[kind] > 0) gpu_load_print_rate((gpu_load_kind)kind, rates[kind]);
        printf("\n");
    }
    return status;
}

static wt_status measure_whole(bench *b)
{
    wt_stream *streams[GPU_LOAD_THREADS] = {NULL};
    wt_status status = WT_OK;
    for (int k = 0; k < GPU_LOAD_THREADS && !status; k++) status = wt_stream_create(b->device, NULL, &streams[k]);
    if (!status) status = measure_alone(b, streams, wt_device_get_info(b->device)->n_sms, 0);
    for (int k = 0; k < GPU_LOAD_THREADS; k++) wt_stream_destroy(streams[k]);
    return status;
}

static bool can_run(const bench *b, const row *r)
{
    if (r->path > DESK && b->no_device) return false;
    for (int k = 0; k < cases[r->load].n; k++)
        if (cases[r->load].kinds[k] != GPU_READS && b->device && !b->loads.lt) return false;
    return true;
}

static wt_status open_witness(bench *b)
{
    wt_stream *stream = NULL;
    wt_status status = wt_partition_stream_create(b->audio, NULL, &stream);
    return status ? status : witness_open(&b->witness, b->device, stream);
}

static wt_status cut_device(bench *b)
{
    const wt_partition_config partitions[] = {{.name = "audio", .tier = WT_TIER_GUARANTEED, .n_sms = b->n_sms},
                                              {.name = "load"}};
    const bool fine = b->n_sms % wt_device_get_info(b->device)->partition_sms != 0;
    wt_partition_info info;
    wt_status status = gpu_loads_open(b->device, &b->loads);
    for (int k = 0; k < b->n_rows; k++)
        if (!can_run(b, &b->rows[k])) b->rows[k].load = IDLE, b->rows[k].n_blocks = 0;
    if (!status) status = measure_whole(b);
    if (!status)
        status = wt_layout_create(
            b->device, &(wt_layout_config){.partitions = partitions, .n_partitions = 2, .fine = fine}, &b->layout);
    if (status) return status;
    b->audio = wt_layout_at(b->layout, 0);
    wt_partition_get_info(wt_layout_at(b->layout, 1), &info);
    b->load_sms = info.n_sms;
    for (int k = 0; k < GPU_LOAD_THREADS && !status; k++)
        status = wt_partition_stream_create(wt_layout_at(b->layout, 1), NULL, &b->load_streams[k]);
    if (!status) status = measure_alone(b, b->load_streams, b->load_sms, 1);
    if (!status && b->watched) status = open_witness(b);
    if (!status)
        printf("bench_roundtrip: %s, %s, audio on %d SMs, load on %d\n", wt_device_get_info(b->device)->name,
               b->chain->name, b->n_sms, b->load_sms);
    return status;
}

// At the first row that needs it, so that the rows before are those of a machine without it.
static wt_status open_device(bench *b)
{
    if (b->device || b->no_device) return WT_OK;
    b->no_device = wt_device_count() < 1;
    wt_status status = WT_OK;
    if (!b->no_device) status = wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &b->device);
    if (status) return status;
    if (b->device && wt_device_get_info(b->device)->partition_sms) return cut_device(b);
    printf("bench_roundtrip: %s, paths of a device are left out\n",
           b->device ? "no green contexts with this driver" : "no CUDA device");
    wt_device_close(b->device);
    b->device = NULL;
    b->no_device = true;
    return WT_OK;
}

static wt_status set_up(bench *b)
{
    wt_status status = wt_histogram_create(&b->took);
    if (!status) status = wt_histogram_create(&b->late);
    if (!status) status = late_blocks_open(&b->watch);
    b->in = calloc(2 * STREAMS * MAX_BLOCK, sizeof *b->in);
    b->out = calloc(2 * STREAMS * MAX_BLOCK, sizeof *b->out);
    if (!status && (!b->in || !b->out)) status = wt_fail(WT_ERR_NO_MEMORY, "audio");
    for (int c = 0; c < 2 * STREAMS && !status; c++) {
        b->ins[c] = b->in + c * MAX_BLOCK;
        b->outs[c] = b->out + c * MAX_BLOCK;
        for (int n = 0; n < MAX_BLOCK; n++) b->in[c * MAX_BLOCK + n] = 0.3f * sinf(0.07f * (float)n + (float)c);
    }
    return status;
}

static void tear_down(bench *b)
{
    for (int k = 0; k < GPU_LOAD_THREADS; k++) wt_stream_destroy(b->load_streams[k]);
    witness_close(&b->witness);
    if (b->layout && wt_layout_destroy(b->layout)) fail("layout");
    if (b->device) gpu_loads_close(&b->loads);
    wt_device_close(b->device);
    wt_histogram_destroy(b->took);
    wt_histogram_destroy(b->late);
    late_blocks_close(&b->watch);
    free(b->in), free(b->out);
}

// ---- rows

static wt_status play(bench *b, const row *r, played *p)
{
    return r->path == COPIES ? chain_copies_open(b->device, b->audio, RATE, &bench_voice, b->block, &p->copies)
                             : live_open(b, r->path, &p->live);
}

static void end_play(played *p)
{
    wt_live_destroy(p->live);
    chain_copies_close(&p->copies);
    *p = (played){.live = NULL};
}

static wt_status bench_rows(bench *b)
{
    const row *before = NULL;
    played p = {.live = NULL};
    wt_status status = WT_OK;
    for (const row *r = b->rows; r < b->rows + b->n_rows && !status && !stopped; r++) {
        if (r->path > DESK) status = open_device(b);
        if (status || !r->n_blocks || !can_run(b, r)) continue;
        b->block = r->block, b->n_blocks = r->n_blocks;
        const bool plays = before && before->path == r->path && before->block == r->block;
        if (!plays) end_play(&p);
        before = r->path == JITTER ? NULL : r;
        if (r->path != JITTER && !plays) status = play(b, r, &p);
        if (!status) status = r->path == JITTER ? bench_jitter(b) : measure_row(b, r, &p);
        if (status) fail(path_names[r->path]);
        fflush(stdout);
    }
    end_play(&p);
    return status;
}

// Without --row: every path with every load, as far as they are wanted.
static void add_rows(bench *b)
{
    for (int p = 0; p < TURNS; p++)
        for (int which = 0; which < (p <= DESK ? 1 : N_CASES); which++) {
            const bool fits = (p != DESK && p != COPIES && p != MANY) || b->chain == &chains[0];
            if (!fits || (b->only_path && strcmp(b->only_path, path_names[p])) ||
                (b->only_load && p > DESK && strcmp(b->only_load, cases[which].name)))
                continue;
            b->rows[b->n_rows++] = (row){(path)p, (load_case)which, b->block, b->n_blocks};
        }
}

// "resident:reads4:64:100000"
static bool read_row(const char *text, bench *b)
{
    char path_name[16], load_name[16];
    row r = {.path = N_PATHS, .load = N_CASES};
    if (sscanf(text, "%15[a-z]:%15[a-z0-9]:%d:%d", path_name, load_name, &r.block, &r.n_blocks) != 4) return false;
    for (int p = 0; p < N_PATHS; p++)
        if (!strcmp(path_name, path_names[p])) r.path = (path)p;
    for (int which = 0; which < N_CASES; which++)
        if (!strcmp(load_name, cases[which].name)) r.load = (load_case)which;
    if (r.path == N_PATHS || r.load == N_CASES || (r.path <= DESK && r.load != IDLE) ||
        (r.path == TURNS && r.load == IDLE) || r.block < 1 || r.block > MAX_BLOCK || r.n_blocks < 1 ||
        b->n_rows == MAX_ROWS)
        return false;
    b->rows[b->n_rows++] = r;
    return true;
}

static const bench_chain *find_chain(const char *name)
{
    for (size_t k = 0; k < sizeof chains / sizeof *chains; k++)
        if (!strcmp(chains[k].name, name)) return &chains[k];
    return NULL;
}

static bool read_options(int argc, char **argv, bench *b)
{
    for (int k = 1; k < argc; k += 2) {
        if (k + 1 == argc) return false;
        if (!strcmp(argv[k], "--blocks"))
            b->n_blocks = atoi(argv[k + 1]);
        else if (!strcmp(argv[k], "--block"))
            b->block = atoi(argv[k + 1]);
        else if (!strcmp(argv[k], "--sms"))
            b->n_sms = atoi(argv[k + 1]);
        else if (!strcmp(argv[k], "--streams"))
            b->n_streams = atoi(argv[k + 1]);
        else if (!strcmp(argv[k], "--workers"))
            b->n_workers = atoi(argv[k + 1]);
        else if (!strcmp(argv[k], "--path"))
            b->only_path = argv[k + 1];
        else if (!strcmp(argv[k], "--load"))
            b->only_load = argv[k + 1];
        else if (!strcmp(argv[k], "--processor"))
            b->processor = argv[k + 1];
        else if (!strcmp(argv[k], "--witness"))
            b->watched = atoi(argv[k + 1]) != 0;
        else if (!strcmp(argv[k], "--chain"))
            b->chain = find_chain(argv[k + 1]);
        else if (strcmp(argv[k], "--row") || !read_row(argv[k + 1], b))
            return false;
    }
    return b->chain && b->n_blocks >= 0 && b->n_streams >= 0 && b->n_streams <= STREAMS && b->n_sms > 0 &&
           b->block > 0 && b->block <= MAX_BLOCK;
}

int main(int argc, char **argv)
{
    bench b = {.block = 64, .n_sms = 8, .chain = &chains[0]};
    if (!read_options(argc, argv, &b)) {
        fprintf(stderr,
                "bench_roundtrip: want [--blocks N] [--block 1..%d] [--sms N] [--workers N] [--path NAME] "
                "[--load NAME] [--chain voice|analysis|analysis8] [--streams 1..%d] [--processor N|quiet] "
                "[--witness 1] [--row PATH:LOAD:FRAMES:BLOCKS]\n",
                MAX_BLOCK, STREAMS);
        return 1;
    }
    if (!b.n_blocks) b.n_blocks = !b.n_rows && wt_device_count() > 0 ? 15000 : 3000;
    if (!b.n_rows) add_rows(&b);
    signal(SIGTERM, stop);
    signal(SIGINT, stop);
    if (b.processor) {
        if (live_processor_choose(b.processor, &b.own)) return fail("processor");
        printf("bench_roundtrip: the audio thread has processor %d", b.own.cpu);
        if (b.own.lost >= 0)
            printf(", which loses %.2f %% of its time, the worst %.2f %%", 100 * b.own.lost, 100 * b.own.most_lost);
        printf("\n");
    }
    b.knows_calls = system_calls_watch();
    wt_status status = set_up(&b);
    if (status) fail("setting up");
    if (!status) status = bench_rows(&b);
    tear_down(&b);
    return status ? 1 : 0;
}
