// Pacing: a task that always has work spins in pieces of about 200 us; its share of device time over any 100 ms
// (windows that begin every 10 ms), from the events around each piece, against the share that was asked for.
//   pacing  share 80 %   mean 79.94 %   worst  1.93 points in 191 windows of 100 ms   piece 201.8 us
//
//   bench_pacing [sms|priority|none]     isolation of the layout, sms where the device can
//
// Then a guaranteed task of 100 us every 1.333 ms in the partition "audio", alone and beside that load in "llm", paced
// or not: how long from its release to its end, as the host saw it. With `priority` this is what pacing and slices are
// worth where there are no SMs of one's own.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <warptone/clock.h>
#include <warptone/device_executor.h>
#include <warptone/histogram.h>
#include <warptone/kernel.h>

enum { PIECE_NS = 200000, STEP_NS = 10000000, STEPS_A_WINDOW = 10, N_STEPS = 200, SETTLE_STEPS = 10 };

static const char spin_text[] = "extern \"C\" __global__ void spin(long long clocks)\n"
                                "{\n"
                                "    long long begin = clock64();\n"
                                "    while (clock64() - begin < clocks) ;\n"
                                "}\n";

typedef struct bench {
    wt_device *device;
    wt_layout *layout;
    wt_module *module;
    wt_kernel *kernel; ///< NULL on the CPU
    int64_t spin;      ///< GPU: clocks; CPU: nanoseconds of one piece
    wt_launch launch;  ///< GPU: blocks and threads of a piece
} bench;

static int fail(const char *what)
{
    fprintf(stderr, "bench_pacing: %s: %s\n", what, wt_last_error());
    return 1;
}

static void spin_cpu(const void *args, int item)
{
    (void)item;
    int64_t ns = *(const int64_t *)args, begin_ns = wt_clock_now_ns(NULL);
    while (wt_clock_now_ns(NULL) - begin_ns < ns) {}
}

static wt_status queue_spin(void *user, wt_stream *stream, int64_t offset_item, int64_t n_items)
{
    (void)offset_item, (void)n_items; // one item a slice
    bench *b = user;
    if (!b->kernel) return wt_stream_run(stream, spin_cpu, &b->spin, sizeof b->spin, 1);
    return wt_kernel_launch(b->kernel, stream, &b->launch, &WT_ARG(b->spin), 1);
}

/// How many clocks a piece is: the fastest of a few, since the first ones find the GPU's clock low.
static wt_status calibrate(bench *b)
{
    wt_stream *stream;
    wt_event *begin = NULL, *end = NULL;
    wt_status status = wt_partition_stream_create(wt_layout_at(b->layout, 0), NULL, &stream);
    if (status) return status;
    status = wt_event_create(b->device, &begin);
    if (!status) status = wt_event_create(b->device, &end);
    b->spin = 10000000;
    double best_us = 1e30, us = 0;
    for (int k = 0; k < 10 && !status; k++) {
        status = wt_event_record(begin, stream);
        if (!status) status = queue_spin(b, stream, 0, 0);
        if (!status) status = wt_event_record(end, stream);
        if (!status) status = wt_stream_synchronize(stream);
        if (!status) status = wt_event_elapsed_us(begin, end, &us);
        best_us = fmin(best_us, us);
    }
    b->spin = llrint((double)b->spin * PIECE_NS * 1e-3 / best_us);
    wt_event_destroy(begin);
    wt_event_destroy(end);
    wt_stream_destroy(stream);
    return status;
}

typedef struct sample {
    int64_t time_ns;
    double device_us;
} sample;

/// Look every 10 ms, on an absolute grid.
static wt_device_executor_info watch(wt_device_executor *executor, sample samples[N_STEPS + 1])
{
    wt_device_executor_info info;
    const int64_t begin_ns = wt_clock_now_ns(NULL);
    for (int k = -SETTLE_STEPS; k <= N_STEPS; k++) {
        int64_t at_ns = begin_ns + (int64_t)(k + SETTLE_STEPS + 1) * STEP_NS;
        struct timespec at = {.tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        wt_device_executor_get_info(executor, &info);
        if (k >= 0) samples[k] = (sample){wt_clock_now_ns(NULL), info.device_us};
    }
    return info;
}

static void print_row(double share, const sample *samples, const wt_device_executor_info *info)
{
    double worst = 0, sum = 0;
    const int n = N_STEPS - STEPS_A_WINDOW + 1;
    for (int k = 0; k < n; k++) {
        const sample *from = &samples[k], *to = &samples[k + STEPS_A_WINDOW];
        double got = (to->device_us - from->device_us) * 1e3 / (double)(to->time_ns - from->time_ns);
        worst = fmax(worst, fabs(got - share));
        sum += got;
    }
    printf("pacing  share %2.0f %%   mean %5.2f %%   worst %5.2f points in %d windows of 100 ms   piece %.1f us\n",
           share * 100, sum / n * 100, worst * 100, n, info->device_us / (double)info->n_launches);
}

static wt_status run_share(bench *b, wt_scheduler *scheduler, wt_device_executor *executor, double share)
{
    int partition;
    wt_task task;
    wt_status status = wt_scheduler_add_partition(scheduler, &(wt_scheduler_partition_config){.name = "paced",
        .executor = wt_device_executor_callbacks(executor), .pacing_share = share}, &partition);
    if (status) return status;
    wt_device_work work = {.queue = queue_spin, .user = b, .n_items = INT64_MAX};
    status = wt_slicer_init(&work.slicer, &(wt_slicer_config){.bound_us = PIECE_NS * 1e-3, .max_items = 1});
    if (status) return status;
    status = wt_scheduler_submit(scheduler, &(wt_task_config){.partition = partition, .work = {.device = &work}}, &task,
                                 NULL);
    if (status) return status;
    static sample samples[N_STEPS + 1];
    wt_device_executor_info info = watch(executor, samples);
    status = wt_scheduler_cancel(scheduler, task);
    if (!status && wt_scheduler_wait(scheduler, task, -1) != WT_ERR_CANCELLED) status = WT_ERR_STATE;
    print_row(share, samples, &info);
    return status;
}

static wt_status bench_share(bench *b, double share)
{
    wt_scheduler *scheduler;
    wt_device_executor *executor = NULL;
    wt_status status = wt_scheduler_create(&(wt_scheduler_config){.timer_thread = true}, &scheduler);
    if (status) return status;
    status = wt_device_executor_create(&(wt_device_executor_config){.scheduler = scheduler, .poll_us = 5,
                                       .partition = wt_layout_at(b->layout, 0)}, &executor);
    if (!status) status = run_share(b, scheduler, executor, share);
    wt_device_executor_destroy(executor);
    wt_scheduler_destroy(scheduler);
    return status;
}

// ---- a guaranteed task beside it

enum { PERIOD_NS = 1333333, N_PERIODS = 2000, TASK_NS = 100000 };

typedef struct audio {
    bench *b;
    int64_t spin;
    wt_histogram *responses; ///< written by done
    wt_scheduler *scheduler;
} audio;

static wt_status queue_audio(void *user, wt_stream *stream, int64_t offset_item, int64_t n_items)
{
    (void)offset_item, (void)n_items;
    audio *a = user;
    if (!a->b->kernel) return wt_stream_run(stream, spin_cpu, &a->spin, sizeof a->spin, 1);
    return wt_kernel_launch(a->b->kernel, stream, &(wt_launch){.grid = {1}}, &WT_ARG(a->spin), 1);
}

static wt_status run_periods(audio *a, int partition)
{
    wt_status status = WT_OK;
    wt_device_work work = {.queue = queue_audio, .user = a};
    const int64_t begin_ns = wt_clock_now_ns(NULL);
    for (int k = 0; k < N_PERIODS && !status; k++) {
        wt_task task;
        const int64_t at_ns = begin_ns + (k + 1) * (int64_t)PERIOD_NS;
        const struct timespec at = {.tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        const int64_t release_ns = wt_clock_now_ns(NULL);
        status = wt_scheduler_submit(
            a->scheduler,
            &(wt_task_config){.partition = partition, .work = {.device = &work}, .tier = WT_TIER_GUARANTEED}, &task,
            NULL);
        if (!status) status = wt_scheduler_wait(a->scheduler, task, -1);
        wt_histogram_record(a->responses, wt_clock_now_ns(NULL) - release_ns);
    }
    return status;
}

/// `share` of the load: 0 = no load, 1 = not paced.
static wt_status run_beside(audio *a, double share, wt_device_executor *const executors[2])
{
    int partitions[2];
    wt_task load;
    wt_status status = WT_OK;
    for (int k = 0; k < 2 && !status; k++)
        status = wt_scheduler_add_partition(
            a->scheduler,
            &(wt_scheduler_partition_config){.executor = wt_device_executor_callbacks(executors[k]),
                                             .pacing_share = k == 1 && share < 1 ? share : 0},
            &partitions[k]);
    wt_device_work work = {.queue = queue_spin, .user = a->b, .n_items = INT64_MAX};
    if (!status)
        status = wt_slicer_init(&work.slicer, &(wt_slicer_config){.bound_us = PIECE_NS * 1e-3, .max_items = 1});
    if (!status && share > 0)
        status = wt_scheduler_submit(
            a->scheduler, &(wt_task_config){.partition = partitions[1], .work = {.device = &work}}, &load, NULL);
    if (!status) status = run_periods(a, partitions[0]);
    if (!status && share > 0) status = wt_scheduler_cancel(a->scheduler, load);
    if (!status && share > 0 && wt_scheduler_wait(a->scheduler, load, -1) != WT_ERR_CANCELLED) status = WT_ERR_STATE;
    return status;
}

static wt_status bench_beside(bench *b, wt_layout *layout, double share)
{
    audio a = {.b = b, .spin = b->spin * TASK_NS / PIECE_NS};
    wt_device_executor *executors[2] = {NULL, NULL};
    wt_status status = wt_histogram_create(&a.responses);
    if (!status) status = wt_scheduler_create(&(wt_scheduler_config){.timer_thread = true}, &a.scheduler);
    for (int k = 0; k < 2 && !status; k++)
        status = wt_device_executor_create(
            &(wt_device_executor_config){.scheduler = a.scheduler, .poll_us = 5, .partition = wt_layout_at(layout, k)},
            &executors[k]);
    if (!status) status = run_beside(&a, share, executors);
    wt_histogram_summary s;
    if (!status) {
        wt_histogram_summarize(a.responses, &s);
        printf("task    beside a load of %3.0f %%   p50 %6.1f   p99 %6.1f   p99.9 %6.1f   max %6.1f us\n", share * 100,
               (double)s.p50 * 1e-3, (double)s.p99 * 1e-3, (double)s.p99_9 * 1e-3, (double)s.max * 1e-3);
    }
    for (int k = 0; k < 2; k++) wt_device_executor_destroy(executors[k]);
    wt_scheduler_destroy(a.scheduler);
    wt_histogram_destroy(a.responses);
    return status;
}

static bool read_isolation(const char *text, wt_isolation *isolation)
{
    static const char *const names[] = {"auto", "sms", "priority", "none"};
    for (int k = 0; k < 4; k++)
        if (!strcmp(text, names[k])) return *isolation = (wt_isolation)k, true;
    return false;
}

static wt_status bench_task(bench *b, wt_isolation isolation)
{
    static const double shares[] = {0, 0.5, 1};
    const wt_partition_config two[] = {{.name = "audio", .tier = WT_TIER_GUARANTEED, .sm_share = 0.05},
                                       {.name = "llm"}};
    wt_layout *layout;
    // Threads for every SM of the device, all at once: without SMs of its own the task has to wait for some of them.
    b->launch = (wt_launch){.grid = {8 * wt_device_get_info(b->device)->n_sms}, .block = {256}};
    wt_status status = wt_layout_create(
        b->device, &(wt_layout_config){.partitions = two, .n_partitions = 2, .isolation = isolation}, &layout);
    if (status) return status;
    for (int k = 0; k < 3 && !status; k++) status = bench_beside(b, layout, shares[k]);
    wt_status destroyed = wt_layout_destroy(layout);
    return status ? status : destroyed;
}

int main(int argc, char **argv)
{
    static const double shares[] = {0.1, 0.2, 0.5, 0.8};
    bench b = {0};
    wt_isolation isolation = WT_ISOLATION_AUTO;
    if (argc > 1 && !read_isolation(argv[1], &isolation)) {
        fprintf(stderr, "bench_pacing: isolation %s, want sms, priority or none\n", argv[1]);
        return 1;
    }
    if (wt_device_open(NULL, &b.device)) return fail("device");
    const wt_layout_config all = {
        .partitions = &(wt_partition_config){.name = "all"}, .n_partitions = 1, .isolation = isolation};
    if (wt_layout_create(b.device, &all, &b.layout)) return fail("layout");
    if (wt_device_get_info(b.device)->backend == WT_BACKEND_CUDA) {
        if (wt_module_create(b.device, &(wt_module_config){.name = "spin.cu", .source = spin_text}, &b.module) ||
            wt_module_get_kernel(b.module, "spin", &b.kernel))
            return fail("kernel");
    }
    if (calibrate(&b)) return fail("calibrate");
    printf("pacing on %s\n", wt_device_get_info(b.device)->name);
    for (int k = 0; k < 4; k++)
        if (bench_share(&b, shares[k])) return fail("share");
    if (wt_layout_destroy(b.layout)) return fail("layout");
    if (bench_task(&b, isolation)) return fail("task");
    wt_module_destroy(b.module);
    wt_device_close(b.device);
    return 0;
}
