// Pacing: a task that always has work spins in pieces of about 200 us; its share of device time over any 100 ms
// (windows that begin every 10 ms), from the events around each piece, against the share that was asked for.
//   pacing  share 80 %   mean 79.94 %   worst  1.93 points in 191 windows of 100 ms   piece 201.8 us
#include <math.h>
#include <stdio.h>
#include <time.h>
#include <warptone/clock.h>
#include <warptone/device_executor.h>
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
    return wt_kernel_launch(b->kernel, stream, &(wt_launch){.grid = {1}}, &WT_ARG(b->spin), 1);
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

int main(void)
{
    static const double shares[] = {0.1, 0.2, 0.5, 0.8};
    bench b = {0};
    if (wt_device_open(NULL, &b.device)) return fail("device");
    const wt_layout_config all = {.partitions = &(wt_partition_config){.name = "all"}, .n_partitions = 1};
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
    wt_module_destroy(b.module);
    if (wt_layout_destroy(b.layout)) return fail("layout");
    wt_device_close(b.device);
    return 0;
}
