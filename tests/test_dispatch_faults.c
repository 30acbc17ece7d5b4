// A launch that loses the GPU is blamed by name. Each in a process of its own, since the context does not survive.
#include "support/device_check.h"
#include "support/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <warptone/dispatch.h>

// note: a write to a place that is there. stray: one to address 16.
static const char work_text[] =
    "extern \"C\" __global__ void note(int *log, int tag) { log[atomicAdd(log, 1) + 1] = tag; }\n"
    "extern \"C\" __global__ void stray(int *address) { *address = 1; }\n";

typedef struct doomed {
    wt_device *device;
    wt_stream *stream;
    wt_module *module;
    wt_kernel *note, *stray;
    wt_buffer *memory;
    wt_dispatch *dispatch;
    int lane;
} doomed;

static bool make_doomed(doomed *d, bool traced)
{
    return !wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &d->device) &&
           !wt_stream_create(d->device, NULL, &d->stream) &&
           !wt_module_create(d->device, &(wt_module_config){.name = "work.cu", .source = work_text}, &d->module) &&
           !wt_module_get_kernel(d->module, "note", &d->note) && !wt_module_get_kernel(d->module, "stray", &d->stray) &&
           !wt_buffer_create(d->device, WT_MEMORY_MAPPED, 4096, &d->memory) &&
           !wt_dispatch_create(d->device, NULL, &d->dispatch) &&
           !wt_dispatch_add_stream(d->dispatch, d->stream, &(wt_dispatch_stream_config){.traced = traced}, &d->lane);
}

static wt_status submit_doomed(const doomed *d, bool stray, const char *task, wt_dispatch_ticket *ticket)
{
    uintptr_t address = stray ? 16 : wt_buffer_address(d->memory);
    int tag = 1;
    const wt_arg args[] = {WT_ARG(address), WT_ARG(tag)};
    return wt_dispatch_submit(
        d->dispatch,
        &(wt_dispatch_request){
            .lane = d->lane, .task = task, .args = args, .kernel = stray ? d->stray : d->note, .n_args = stray ? 1 : 2},
        ticket);
}

/// Five good launches, the stray one, five more. 0 = the stray one is blamed, exactly so when traced.
static int lose_the_device(bool traced)
{
    doomed d = {0};
    wt_dispatch_ticket good, bad, later;
    if (!make_doomed(&d, traced)) return 2;
    for (int k = 0; k < 5; k++)
        if (submit_doomed(&d, false, "fine", &good)) return 3;
    if (wt_dispatch_wait(d.dispatch, good, -1) || submit_doomed(&d, true, "culprit", &bad)) return 4;
    wt_status status = submit_doomed(&d, false, "fine", &later);
    if (status && status != WT_ERR_DEVICE_LOST) return 5; // it may be noticed as early as here
    if (wt_dispatch_drain(d.dispatch) != WT_ERR_DEVICE_LOST) return 6;
    wt_dispatch_info info;
    if (wt_dispatch_wait(d.dispatch, bad, -1) != WT_ERR_DEVICE_LOST) return 7;
    if (!strstr(wt_last_error(), "running was stray (task culprit)")) return 8;
    if (traced && strstr(wt_last_error(), "or one of")) return 9;
    if (wt_dispatch_wait(d.dispatch, good, -1)) return 10; // it ended well and keeps its answer
    if (wt_dispatch_query(d.dispatch, bad, &info) || info.state != WT_DISPATCH_FAILED) return 11;
    if (submit_doomed(&d, false, "fine", &later) != WT_ERR_DEVICE_LOST) return 12;
    if (!strstr(wt_last_error(), "stray")) return 13;
    wt_dispatch_destroy(d.dispatch); // closes in order
    wt_buffer_destroy(d.memory);
    wt_module_destroy(d.module);
    wt_stream_destroy(d.stream);
    wt_device_close(d.device);
    wt_device *cpu = NULL; // and the caller may go on with the CPU
    if (wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU}, &cpu)) return 14;
    wt_device_close(cpu);
    return 0;
}

static void run_self(const char *argument)
{
    char self[4096] = {0}, command[4200];
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    snprintf(command, sizeof command, "'%s' %s", self, argument);
    int status = system(command);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_faulting_kernel_is_blamed_by_name(void **state)
{
    device_of(state);
    run_self("lose-the-device");
}

static void a_traced_stream_blames_exactly_one(void **state)
{
    device_of(state);
    run_self("lose-the-device-traced");
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "lose-the-device")) return lose_the_device(false);
    if (argc > 1 && !strcmp(argv[1], "lose-the-device-traced")) return lose_the_device(true);
    const struct CMUnitTest cuda[] = {
        cmocka_unit_test(a_faulting_kernel_is_blamed_by_name),
        cmocka_unit_test(a_traced_stream_blames_exactly_one),
    };
    return cmocka_run_group_tests_name("dispatch, faults", cuda, open_cuda, close_device);
}
