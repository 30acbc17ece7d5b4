// A load that shows something in every column: in "audio" 100 us of work every 1.333 ms with a deadline; in "llm" a
// queue kept full of 2 ms slices, each over one of six blocks of memory where the quota holds four.
#include "cmd_top.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <warptone/clock.h>
#include <warptone/dispatch.h>

enum {
    AUDIO,
    LLM,
    N_PARTS,
    N_BLOCKS = 6,
    BLOCK_BYTES = 1 << 20,
    QUOTA_BYTES = 4 << 20,
    PERIOD_NS = 1333333,
    AUDIO_NS = 100000,
    LLM_NS = 2000000,
    SLICES_IN_FLIGHT = 3,
};

static const char spin_text[] = "extern \"C\" __global__ void spin(int ns)\n"
                                "{\n"
                                "    long long begin, now;\n"
                                "    asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(begin));\n"
                                "    do asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(now));\n"
                                "    while (now - begin < ns);\n"
                                "}\n";

static void spin(const void *args, int item)
{
    (void)item;
    int64_t until_ns = wt_clock_now_ns(NULL) + *(const int *)args;
    while (wt_clock_now_ns(NULL) < until_ns) continue;
}

typedef struct part {
    top_demo *demo;
    wt_partition *partition;
    wt_stream *stream;
    wt_dispatch *dispatch;
    wt_telemetry_row *row, *task; ///< of the partition, of the task in it
    int lane;
    pthread_t thread;
    bool running;
} part;

struct top_demo {
    wt_device *device;
    wt_layout *layout;
    wt_module *module; ///< NULL on the CPU
    wt_kernel *kernel;
    wt_telemetry *telemetry;
    wt_pool *pool;
    wt_pool_block blocks[N_BLOCKS];
    part parts[N_PARTS];
    atomic_bool stop;
    atomic_int failed; ///< a wt_status
};

// ---- the work

static wt_status submit(part *p, int ns, const char *task, wt_dispatch_ticket *ticket)
{
    wt_dispatch_request r = {.lane = p->lane,
                             .task = task,
                             .name = "spin",
                             .timed = true,
                             .watchdog_us = 1000000,
                             .args = &WT_ARG(ns),
                             .n_args = 1,
                             .n_items = 1};
    if (p->demo->kernel)
        r.kernel = p->demo->kernel;
    else
        r.function = spin;
    return wt_dispatch_submit(p->dispatch, &r, ticket);
}

static wt_status end_run(part *p, wt_dispatch_ticket ticket)
{
    wt_dispatch_info info;
    wt_status status = wt_dispatch_wait(p->dispatch, ticket, -1);
    if (!status) status = wt_dispatch_query(p->dispatch, ticket, &info);
    if (status) return status;
    wt_telemetry_add(p->task, WT_FIGURE_LAUNCHES, 1);
    wt_telemetry_add(p->task, WT_FIGURE_RUNS, 1);
    wt_telemetry_add(p->task, WT_FIGURE_DEVICE_NS, (int64_t)(info.device_us * 1e3));
    return WT_OK;
}

static void *play(void *user)
{
    part *p = user;
    wt_status status = WT_OK;
    int64_t due_ns = wt_clock_now_ns(NULL);
    while (!status && !atomic_load(&p->demo->stop)) {
        wt_dispatch_ticket ticket;
        due_ns += PERIOD_NS;
        status = submit(p, AUDIO_NS, "mix", &ticket);
        if (!status) status = end_run(p, ticket);
        int64_t left_ns = due_ns - wt_clock_now_ns(NULL);
        if (left_ns > 0) {
            nanosleep(&(struct timespec){0, (long)left_ns}, NULL);
        } else {
            wt_telemetry_add(p->task, WT_FIGURE_DEADLINE_MISSES, 1);
            due_ns = wt_clock_now_ns(NULL); // the next period begins now
        }
    }
    if (status) atomic_store(&p->demo->failed, (int)status);
    return NULL;
}

/// One slice over a block, which comes back from the host when it was moved out.
static wt_status decode_slice(part *p, int block, wt_dispatch_ticket *ticket)
{
    top_demo *d = p->demo;
    uintptr_t address;
    wt_status status = wt_pool_access(d->pool, d->blocks[block], p->stream, &address);
    if (status) return status;
    status = submit(p, LLM_NS, "decode", ticket);
    wt_status released = wt_pool_release_access(d->pool, d->blocks[block], p->stream);
    wt_telemetry_add(p->task, WT_FIGURE_SLICES, 1);
    return status ? status : released;
}

static void *decode(void *user)
{
    part *p = user;
    wt_dispatch_ticket tickets[SLICES_IN_FLIGHT];
    wt_status status = WT_OK;
    uint64_t n = 0;
    for (; !status && !atomic_load(&p->demo->stop); n++) {
        if (n >= SLICES_IN_FLIGHT) status = end_run(p, tickets[n % SLICES_IN_FLIGHT]);
        if (!status) status = decode_slice(p, (int)(n % N_BLOCKS), &tickets[n % SLICES_IN_FLIGHT]);
    }
    if (status) atomic_store(&p->demo->failed, (int)status);
    return NULL;
}

// ---- setting up

static wt_status make_layout(top_demo *d)
{
    static const char *const names[] = {"audio+llm", "all"};
    wt_partition_config partitions[WT_LAYOUT_PRESET_PARTITIONS];
    wt_layout_config config;
    const wt_device_info *info = wt_device_get_info(d->device);
    wt_status status = WT_ERR_QUOTA;
    for (int k = 0; k < 2 && status; k++) { // a device of one processor has one partition
        status = wt_layout_preset(names[k], info, partitions, &config);
        if (!status) status = wt_layout_create(d->device, &config, &d->layout);
    }
    if (status) return status;
    wt_layout_info facts;
    wt_layout_get_info(d->layout, &facts);
    for (int k = 0; k < N_PARTS; k++) {
        d->parts[k].demo = d;
        d->parts[k].partition = wt_layout_at(d->layout, k < facts.n_partitions ? k : 0);
    }
    return WT_OK;
}

static wt_status make_part(top_demo *d, int k)
{
    static const char *const names[] = {"audio", "llm"}, *const tasks[] = {"mix", "decode"};
    part *p = &d->parts[k];
    wt_partition_info info;
    wt_partition_get_info(p->partition, &info);
    wt_telemetry_row_config row = {.kind = WT_TELEMETRY_PARTITION, .name = names[k], .tier = info.tier};
    wt_telemetry_row_config task = {
        .kind = WT_TELEMETRY_TASK, .name = tasks[k], .partition = names[k], .tier = info.tier};
    wt_status status = wt_telemetry_open_row(d->telemetry, &row, &p->row);
    if (!status) status = wt_telemetry_open_row(d->telemetry, &task, &p->task);
    if (!status) status = wt_partition_stream_create(p->partition, NULL, &p->stream);
    wt_dispatch_config config = {.name = names[k], .partition = p->partition, .telemetry = p->row};
    if (!status) status = wt_dispatch_create(d->device, &config, &p->dispatch);
    if (!status)
        status =
            wt_dispatch_add_stream(p->dispatch, p->stream, &(wt_dispatch_stream_config){.max_in_flight = 2}, &p->lane);
    return status;
}

static wt_status make_memory(top_demo *d)
{
    wt_pool_config config = {.name = "llm", .quota_bytes = QUOTA_BYTES};
    wt_status status = wt_pool_create(d->device, &config, &d->pool);
    for (int k = 0; k < N_BLOCKS && !status; k++)
        status = wt_pool_allocate(d->pool, &(wt_pool_request){.size_bytes = BLOCK_BYTES}, d->parts[LLM].stream,
                                  &d->blocks[k]);
    return status;
}

static wt_status make_kernel(top_demo *d)
{
    if (wt_device_get_info(d->device)->backend != WT_BACKEND_CUDA) return WT_OK;
    wt_module_config config = {.name = "spin.cu", .source = spin_text};
    wt_status status = wt_module_create(d->device, &config, &d->module);
    return status ? status : wt_module_get_kernel(d->module, "spin", &d->kernel);
}

static wt_status start_threads(top_demo *d)
{
    void *(*const works[])(void *) = {play, decode};
    for (int k = 0; k < N_PARTS; k++) {
        d->parts[k].running = !pthread_create(&d->parts[k].thread, NULL, works[k], &d->parts[k]);
        if (!d->parts[k].running) return wt_fail(WT_ERR_NO_MEMORY, "demo: the system gives no thread");
    }
    return WT_OK;
}

wt_status top_demo_start(top_demo **demo)
{
    *demo = NULL;
    top_demo *d = calloc(1, sizeof *d);
    if (!d) return wt_fail(WT_ERR_NO_MEMORY, "demo: no memory");
    wt_status status = wt_device_open(NULL, &d->device);
    if (!status) status = wt_telemetry_create(&d->telemetry);
    if (!status) status = make_layout(d);
    for (int k = 0; k < N_PARTS && !status; k++) status = make_part(d, k);
    if (!status) status = make_kernel(d);
    if (!status) status = make_memory(d);
    if (!status) status = start_threads(d);
    if (status) {
        top_demo_stop(d);
        return status;
    }
    *demo = d;
    return WT_OK;
}

wt_status top_demo_publish(top_demo *demo)
{
    int failed = atomic_load(&demo->failed);
    if (failed) return wt_fail((wt_status)failed, "demo: the load failed: %s", wt_status_text((wt_status)failed));
    for (int k = 0; k < N_PARTS; k++) wt_telemetry_sample_partition(demo->parts[k].row, demo->parts[k].partition);
    wt_telemetry_sample_pool(demo->parts[LLM].row, demo->pool);
    return wt_telemetry_publish(demo->telemetry);
}

void top_demo_stop(top_demo *demo)
{
    if (!demo) return;
    atomic_store(&demo->stop, true);
    for (int k = 0; k < N_PARTS; k++)
        if (demo->parts[k].running) pthread_join(demo->parts[k].thread, NULL);
    for (int k = 0; k < N_PARTS; k++) wt_dispatch_destroy(demo->parts[k].dispatch);
    wt_pool_destroy(demo->pool);
    for (int k = 0; k < N_PARTS; k++) wt_stream_destroy(demo->parts[k].stream);
    wt_module_destroy(demo->module);
    if (demo->layout && wt_layout_destroy(demo->layout)) demo->layout = NULL; // nothing is in flight any more
    wt_device_close(demo->device);
    wt_telemetry_destroy(demo->telemetry);
    free(demo);
}
