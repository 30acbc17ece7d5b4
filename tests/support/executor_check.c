#include "executor_check.h"
#include "testing.h"

#include <warptone/clock.h>

// spin: one thread stays for so many nanoseconds of the GPU's own clock.
const char executor_text[] = "extern \"C\" __global__ void spin(long long ns)\n"
                             "{\n"
                             "    long long begin, now;\n"
                             "    asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(begin));\n"
                             "    do asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(now));\n"
                             "    while (now - begin < ns);\n"
                             "}\n"
                             // gate: waits until the host opens a word in mapped memory, at most 10 s
                             "extern \"C\" __global__ void gate(volatile int *word)\n"
                             "{\n"
                             "    long long begin = clock64();\n"
                             "    while (!*word && clock64() - begin < 20000000000ll) ;\n"
                             "}\n"
                             // add: counts its launches; stray: a write to address 16
                             "extern \"C\" __global__ void add(int *sum, int n) { *sum += n; }\n"
                             "extern \"C\" __global__ void stray(int *address) { *address = 1; }\n";

static void spin_cpu(const void *args, int item)
{
    (void)item;
    int64_t ns = *(const int64_t *)args, begin_ns = wt_clock_now_ns(NULL);
    while (wt_clock_now_ns(NULL) - begin_ns < ns) {
    }
}

wt_status queue_spin(void *user, wt_stream *stream, int64_t offset_item, int64_t n_items)
{
    spinning *s = user;
    if (offset_item != s->next_item) return wt_fail(WT_ERR_STATE, "a slice is out of order");
    s->next_item += n_items;
    if (n_items > s->largest) s->largest = n_items;
    if (s->n_before) s->order = atomic_fetch_add(s->n_before, 1);
    atomic_fetch_add(&s->n_queued, 1);
    if (s->status) return s->status;
    int64_t ns = n_items ? s->ns * n_items : s->ns;
    if (!s->rig->kernel) return wt_stream_run(stream, spin_cpu, &ns, sizeof ns, 1);
    return wt_kernel_launch(s->rig->kernel, stream, &(wt_launch){.grid = {1}}, &WT_ARG(ns), 1);
}

static void count_hung(void *user, const wt_hang *hang)
{
    executor_rig *r = user;
    r->hang = *hang;
    atomic_fetch_add(&r->n_hung, 1);
}

void executor_rig_start(executor_rig *r, void **state, double pacing_share, int64_t hang_ns)
{
    wt_device *device = device_of(state);
    *r = (executor_rig){0};
    r->layout =
        layout_of(device, &(wt_layout_config){.partitions = &(wt_partition_config){.name = "all"}, .n_partitions = 1});
    if (wt_device_get_info(device)->backend == WT_BACKEND_CUDA) {
        assert_ok(
            wt_module_create(device, &(wt_module_config){.name = "spin.cu", .source = executor_text}, &r->module));
        assert_ok(wt_module_get_kernel(r->module, "spin", &r->kernel));
    }
    assert_ok(wt_scheduler_create(&(wt_scheduler_config){.timer_thread = true}, &r->scheduler));
    assert_ok(wt_device_executor_create(
        &(wt_device_executor_config){.scheduler = r->scheduler, .partition = wt_layout_at(r->layout, 0)},
        &r->executor));
    assert_ok(wt_scheduler_add_partition(
        r->scheduler,
        &(wt_scheduler_partition_config){.name = "all",
                                         .executor = wt_device_executor_callbacks(r->executor),
                                         .pacing_share = pacing_share,
                                         .policy = WT_POLICY_PRIORITY,
                                         .hang_ns = hang_ns,
                                         .hung = count_hung,
                                         .hung_user = r},
        &r->partition));
}

void executor_rig_end(executor_rig *r)
{
    wt_device_executor_destroy(r->executor);
    wt_scheduler_destroy(r->scheduler);
    wt_module_destroy(r->module);
    assert_ok(wt_layout_destroy(r->layout));
}

spinning spin_of(executor_rig *r, int64_t ns) { return (spinning){.rig = r, .ns = ns}; }

spinning sliced_of(executor_rig *r, int64_t ns, int64_t n_items, double bound_us)
{
    spinning s = {.rig = r, .ns = ns, .work.n_items = n_items};
    assert_ok(wt_slicer_init(&s.work.slicer, &(wt_slicer_config){.bound_us = bound_us}));
    return s;
}

wt_task submit_spin(executor_rig *r, spinning *s, int priority)
{
    wt_task task;
    s->work.queue = queue_spin;
    s->work.user = s;
    assert_ok(wt_scheduler_submit(
        r->scheduler, &(wt_task_config){.partition = r->partition, .priority = priority, .work = {.device = &s->work}},
        &task, NULL));
    return task;
}

wt_device_executor_info info_of_executor(executor_rig *r)
{
    wt_device_executor_info info;
    wt_device_executor_get_info(r->executor, &info);
    return info;
}
