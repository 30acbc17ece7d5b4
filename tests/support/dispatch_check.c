#include "dispatch_check.h"
#include "testing.h"

#include <sched.h>
#include <time.h>
#include <warptone/clock.h>

enum { MAX_LOG = 4096 };

// The gate says in the word before its own that it runs, and waits until the host sets its own.
static const char work_text[] =
    "extern \"C\" __global__ void note(int *log, int tag) { log[atomicAdd(log, 1) + 1] = tag; }\n"
    "extern \"C\" __global__ void gate(volatile int *word)\n"
    "{\n"
    "    word[-1] = 1;\n"
    "    long long begin = clock64();\n"
    "    while (!*word && clock64() - begin < 10000000000ll) ;\n"
    "}\n";

void note_item(const void *args, int item)
{
    (void)item;
    const note_args *a = args;
    atomic_store(&a->log[atomic_fetch_add(a->log, 1) + 1], a->tag);
}

static void gate_item(const void *args, int item)
{
    (void)item;
    atomic_int *word = *(atomic_int *const *)args;
    int64_t begin_ns = wt_clock_now_ns(NULL);
    atomic_store(word - 1, 1);
    while (!atomic_load(word) && wt_clock_now_ns(NULL) - begin_ns < 5000000000)
        nanosleep(&(struct timespec){0, 50000}, NULL);
}

rig rig_on(wt_device *device, const wt_dispatch_config *config, const wt_dispatch_stream_config *lane)
{
    rig r = {.device = device};
    if (wt_device_get_info(device)->backend == WT_BACKEND_CUDA) {
        assert_ok(wt_module_create(device, &(wt_module_config){.name = "work.cu", .source = work_text}, &r.module));
        assert_ok(wt_module_get_kernel(r.module, "note", &r.note));
        assert_ok(wt_module_get_kernel(r.module, "gate", &r.gate));
    }
    assert_ok(wt_buffer_create(device, WT_MEMORY_MAPPED, (MAX_LOG + 2) * sizeof(int), &r.memory));
    assert_ok(wt_dispatch_create(device, config, &r.dispatch));
    for (int k = 0; k < 2; k++) {
        assert_ok(wt_stream_create(device, NULL, &r.streams[k]));
        assert_ok(wt_dispatch_add_stream(r.dispatch, r.streams[k], lane, &r.lanes[k]));
    }
    return r;
}

void rig_free(rig *r)
{
    wt_dispatch_destroy(r->dispatch);
    for (int k = 0; k < 2; k++) wt_stream_destroy(r->streams[k]);
    wt_buffer_destroy(r->memory);
    wt_module_destroy(r->module);
}

atomic_int *log_of(const rig *r) { return wt_buffer_host(r->memory); }

void await_gate(const rig *r)
{
    while (!atomic_load(&log_of(r)[MAX_LOG])) sched_yield();
}

void open_gate(const rig *r) { atomic_store(&log_of(r)[MAX_LOG + 1], 1); }

wt_status submit_note(const rig *r, int tag, wt_dispatch_request like, wt_dispatch_ticket *ticket)
{
    uintptr_t address = wt_buffer_address(r->memory);
    const wt_arg args[] = {WT_ARG(address), WT_ARG(tag)};
    note_args a = {log_of(r), tag};
    const wt_arg whole = WT_ARG(a);
    like.task = like.task ? like.task : "test";
    if (r->note) {
        like.kernel = r->note;
        like.args = args;
        like.n_args = 2;
    } else {
        like.name = "note";
        like.function = note_item;
        like.n_items = 1;
        like.args = &whole;
        like.n_args = 1;
    }
    return wt_dispatch_submit(r->dispatch, &like, ticket);
}

wt_status submit_gate(const rig *r, wt_dispatch_request like, wt_dispatch_ticket *ticket)
{
    uintptr_t address = wt_buffer_address(r->memory) + (MAX_LOG + 1) * sizeof(int);
    like.task = "test";
    like.kernel = r->gate;
    like.function = r->gate ? NULL : gate_item;
    like.name = "gate";
    like.n_items = 1;
    like.args = &WT_ARG(address);
    like.n_args = 1;
    return wt_dispatch_submit(r->dispatch, &like, ticket);
}

wt_dispatch_info info_of_ticket(const rig *r, wt_dispatch_ticket ticket)
{
    wt_dispatch_info info;
    assert_ok(wt_dispatch_query(r->dispatch, ticket, &info));
    return info;
}

void assert_log(const rig *r, const int *tags, int n)
{
    assert_int_equal(atomic_load(log_of(r)), n);
    for (int k = 0; k < n; k++) assert_int_equal(atomic_load(&log_of(r)[k + 1]), tags[k]);
}
