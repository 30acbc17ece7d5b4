#include "support/device_check.h"
#include "support/testing.h"
#include "../engine/cuda_guard.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <warptone/arm.h>
#include <warptone/clock.h>
#include <warptone/kernel.h>

static wt_arm_counts counts_of(const wt_device *device)
{
    wt_arm_counts counts;
    wt_arm_stats(device, &counts);
    return counts;
}

static void sleep_us(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

// ---- the table, with a driver made of stand-ins, in a child process so that no real one is disturbed

static int n_driver_calls;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define STAND_IN(need, name, symbol, arguments)                                                                        \
    static CUresult stand_in_##name arguments                                                                          \
    {                                                                                                                  \
        n_driver_calls++;                                                                                              \
        return CUDA_SUCCESS;                                                                                           \
    }
WT__CUDA_LIST(STAND_IN)
#undef STAND_IN
#pragma GCC diagnostic pop

static CUresult on_device_0(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

static wt__cuda guarded_table(void)
{
    wt__cuda table;
#define FILL(need, name, symbol, arguments) table.name = stand_in_##name;
    WT__CUDA_LIST(FILL)
#undef FILL
    table.CtxGetDevice = on_device_0;
    wt__cuda_guard_table(&table);
    return table;
}

static CUresult call_entry(const wt__cuda *t, wt_arm_call call)
{
    CUgreenCtx green = NULL;
    CUmodule module = NULL;
    switch (call) {
    case WT_ARM_CTX_SYNCHRONIZE:
        return t->CtxSynchronize();
    case WT_ARM_MODULE_LOAD:
        return t->ModuleLoadData(&module, "");
    case WT_ARM_MODULE_UNLOAD:
        return t->ModuleUnload(NULL);
    case WT_ARM_FUNC_LOAD:
        return t->FuncLoad(NULL);
    case WT_ARM_MEM_FREE:
        return t->MemFree(0);
    case WT_ARM_MEM_FREE_HOST:
        return t->MemFreeHost(NULL);
    case WT_ARM_MEM_POOL_DESTROY:
        return t->MemPoolDestroy(NULL);
    case WT_ARM_MEM_POOL_TRIM:
        return t->MemPoolTrimTo(NULL, 0);
    case WT_ARM_GREEN_CTX_CREATE:
        return t->GreenCtxCreate(&green, NULL, 0, 0);
    case WT_ARM_GREEN_CTX_DESTROY:
        return t->GreenCtxDestroy(NULL);
    default:
        return -1;
    }
}

static int count_slips(void)
{
    const wt__cuda table = guarded_table();
    int n_wrong = 0;
    for (int k = 0; k < WT_N_ARM_CALLS; k++) {
        n_driver_calls = 0;
        atomic_store(&wt__cuda_guard_of(0)->armed, true);
        bool refused = call_entry(&table, (wt_arm_call)k) == WT_CUDA_REFUSED + k && n_driver_calls == 0;
        atomic_store(&wt__cuda_guard_of(0)->armed, false);
        bool passed = call_entry(&table, (wt_arm_call)k) == CUDA_SUCCESS && n_driver_calls == 1;
        bool counted = atomic_load(&wt__cuda_guard_of(0)->refused[k]) == 1;
        if (refused && passed && counted) continue;
        fprintf(stderr, "%s: refused %d, passed %d, counted %d\n", wt_arm_call_name((wt_arm_call)k), refused, passed,
                counted);
        n_wrong++;
    }
    return n_wrong + (atomic_load(&wt__cuda_guard_of(0)->n_inside) != 0);
}

static bool waits_for_the_device(const char *symbol)
{
    static const char *const families[] = {
        "cuModuleLoad",      "cuModuleUnload",      "cuLibrary",        "cuFuncLoad",    "cuCtxSynchronize",
        "cuCtxDestroy",      "cuMemFree",           "cuMemPoolDestroy", "cuMemPoolTrim", "cuGreenCtxCreate",
        "cuGreenCtxDestroy", "cuMemHostUnregister", "cuArrayDestroy"};
    if (!strncmp(symbol, "cuMemFreeAsync", 14)) return false; // in the order of its stream
    for (size_t k = 0; k < sizeof families / sizeof *families; k++)
        if (!strncmp(symbol, families[k], strlen(families[k]))) return true;
    return false;
}

/// Also entries that join the table later: by the families of names that are known to wait.
static int count_bare_entries(void)
{
    const wt__cuda table = guarded_table();
    int n_wrong = 0, n_seen = 0;
#define CHECK(need, name, symbol, arguments)                                                                           \
    if (waits_for_the_device(symbol)) {                                                                                \
        n_seen++;                                                                                                      \
        if (table.name == stand_in_##name) {                                                                           \
            fprintf(stderr, "%s is not guarded\n", symbol);                                                            \
            n_wrong++;                                                                                                 \
        }                                                                                                              \
    }
    WT__CUDA_LIST(CHECK)
#undef CHECK
    return n_wrong + (n_seen < 8);
}

static int in_a_child(int (*function)(void))
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) _exit(function());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void every_forbidden_entry_refuses_while_armed_and_calls_the_driver_otherwise(void **state)
{
    (void)state;
    assert_int_equal(in_a_child(count_slips), 0);
}

static void no_entry_of_a_forbidden_family_is_bare(void **state)
{
    (void)state;
    assert_int_equal(in_a_child(count_bare_entries), 0);
}

// ---- both backends

static void an_armed_device_refuses_to_synchronise_and_counts_it(void **state)
{
    wt_device *device = device_of(state);
    uint64_t before = counts_of(device).refused[WT_ARM_CTX_SYNCHRONIZE];
    assert_false(wt_device_is_armed(device));
    assert_ok(wt_device_arm(device));
    assert_true(wt_device_is_armed(device));
    assert_fails(wt_device_synchronize(device), WT_ERR_ARMED,
                 "device: synchronize: cuCtxSynchronize is refused while audio is running; do it before arming, or "
                 "inside wt_quiesce");
    assert_int_equal(counts_of(device).refused[WT_ARM_CTX_SYNCHRONIZE], before + 1);
    assert_true(counts_of(device).armed);
    assert_ok(wt_device_disarm(device));
    assert_ok(wt_device_synchronize(device));
}

static void arming_twice_and_disarming_twice_are_refused(void **state)
{
    wt_device *device = device_of(state);
    assert_int_equal(wt_device_disarm(device), WT_ERR_STATE);
    assert_ok(wt_device_arm(device));
    assert_int_equal(wt_device_arm(device), WT_ERR_STATE);
    assert_int_equal(wt_device_set_safe_point(device, NULL), WT_ERR_STATE);
    assert_ok(wt_device_disarm(device));
    assert_int_equal(wt_device_set_safe_point(device, &(wt_safe_point){0}), WT_ERR_BAD_ARG);
    assert_int_equal(wt_quiesce(device, NULL, NULL, -1), WT_ERR_BAD_ARG);
}

static void buffers_destroyed_while_armed_are_given_back_later(void **state)
{
    wt_device *device = device_of(state);
    wt_buffer *buffers[6];
    for (int k = 0; k < 6; k++) assert_ok(wt_buffer_create(device, (wt_memory)(k % 3), 1 << 20, &buffers[k]));
    uint64_t before = counts_of(device).n_put_aside;
    assert_ok(wt_device_arm(device));
    for (int k = 0; k < 3; k++) wt_buffer_destroy(buffers[k]);
    assert_int_equal(counts_of(device).n_waiting, 3);
    assert_ok(wt_quiesce(device, NULL, NULL, 0)); // gives back and stays armed
    assert_int_equal(counts_of(device).n_waiting, 0);
    assert_true(wt_device_is_armed(device));
    for (int k = 3; k < 6; k++) wt_buffer_destroy(buffers[k]);
    assert_int_equal(counts_of(device).n_waiting, 3);
    assert_ok(wt_device_disarm(device));
    assert_int_equal(counts_of(device).n_waiting, 0);
    assert_int_equal(counts_of(device).n_put_aside, before + 6);
}

typedef struct script {
    wt_device *device;
    char text[64]; ///< what was called, in order
    wt_status stop_status;
} script;

static wt_status stop(void *user, int64_t timeout_us)
{
    script *s = user;
    strcat(s->text, timeout_us == 5000 ? "stop " : "? ");
    return s->stop_status ? wt_fail(s->stop_status, "it does not stop") : WT_OK;
}

static wt_status restart(void *user)
{
    script *s = user;
    strcat(s->text, wt_device_is_armed(s->device) ? "restart " : "early ");
    return WT_OK;
}

static wt_status forbidden_work(void *user)
{
    script *s = user;
    strcat(s->text, "work ");
    return wt_device_synchronize(s->device);
}

static void a_quiesce_stops_works_and_restarts_in_order(void **state)
{
    wt_device *device = device_of(state);
    script s = {.device = device};
    const wt_safe_point point = {stop, restart, &s};
    assert_ok(wt_device_set_safe_point(device, &point));
    assert_ok(wt_quiesce(device, forbidden_work, &s, 5000)); // not armed: the function alone
    assert_string_equal(s.text, "work ");
    assert_ok(wt_device_arm(device));
    s.text[0] = 0;
    uint64_t before = counts_of(device).n_quiesces;
    assert_ok(wt_quiesce(device, forbidden_work, &s, 5000));
    assert_string_equal(s.text, "stop work restart ");
    assert_int_equal(counts_of(device).n_quiesces, before + 1);
    s.text[0] = 0;
    s.stop_status = WT_ERR_TIMEOUT;
    assert_fails(wt_quiesce(device, forbidden_work, &s, 5000), WT_ERR_TIMEOUT, "it does not stop");
    assert_string_equal(s.text, "stop ");
    assert_ok(wt_device_disarm(device));
    assert_ok(wt_device_set_safe_point(device, NULL));
}

// Who arms at a safe point of its own is stopped at that one, whatever was set before, and for as long as it is armed.
static void who_is_refused_leaves_the_safe_point_alone(void **state)
{
    wt_device *device = device_of(state);
    script set = {.device = device}, first = {.device = device}, second = {.device = device};
    const wt_safe_point points[] = {{stop, restart, &set}, {stop, restart, &first}, {stop, restart, &second}};
    assert_fails(wt_device_arm_at(device, &(wt_safe_point){.stop = stop}), WT_ERR_BAD_ARG,
                 "safe point: a callback is NULL, want stop and restart");
    assert_ok(wt_device_set_safe_point(device, &points[0]));
    assert_ok(wt_device_arm_at(device, &points[1]));
    assert_int_equal(wt_device_arm_at(device, &points[2]), WT_ERR_STATE);
    assert_ok(wt_quiesce(device, NULL, NULL, 5000));
    assert_string_equal(first.text, "stop restart ");
    assert_ok(wt_device_disarm(device));
    assert_ok(wt_device_arm(device));
    assert_ok(wt_quiesce(device, NULL, NULL, 5000));
    assert_ok(wt_device_disarm(device));
    assert_ok(wt_device_set_safe_point(device, NULL));
    assert_string_equal(set.text, "stop restart ");
    assert_string_equal(first.text, "stop restart ");
    assert_string_equal(second.text, "");
}

// ---- the CPU alone: work that lasts as long as the test wants

typedef struct gate {
    atomic_bool open;
    atomic_int n_called;
} gate;

static void wait_at(const void *args, int item)
{
    (void)item;
    gate *g = *(gate *const *)args;
    while (!atomic_load(&g->open)) sleep_us(100);
}

static wt_status count_call(void *user)
{
    atomic_fetch_add(&((gate *)user)->n_called, 1);
    return WT_OK;
}

static void a_quiesce_without_safe_point_waits_for_the_streams(void **state)
{
    wt_device *device = device_of(state);
    wt_stream *stream = NULL;
    gate g = {0}, *to = &g;
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_stream_run(stream, wait_at, &to, sizeof to, 1));
    assert_ok(wt_device_arm(device));
    assert_int_equal(wt_quiesce(device, count_call, &g, 3000), WT_ERR_TIMEOUT);
    assert_int_equal(atomic_load(&g.n_called), 0);
    atomic_store(&g.open, true);
    assert_ok(wt_quiesce(device, count_call, &g, 0));
    assert_int_equal(atomic_load(&g.n_called), 1);
    assert_ok(wt_device_disarm(device));
    wt_stream_destroy(stream);
}

static void *synchronise(void *device)
{
    return (void *)(intptr_t)wt_device_synchronize(device);
}

static void *arm(void *device)
{
    return (void *)(intptr_t)wt_device_arm(device);
}

static void arming_waits_for_a_forbidden_call_under_way(void **state)
{
    wt_device *device = device_of(state);
    wt_stream *stream = NULL;
    gate g = {0}, *to = &g;
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_stream_run(stream, wait_at, &to, sizeof to, 1));
    pthread_t waiting, arming;
    pthread_create(&waiting, NULL, synchronise, device);
    sleep_us(20000); // it stands in the call now
    pthread_create(&arming, NULL, arm, device);
    sleep_us(20000);
    assert_int_equal(pthread_tryjoin_np(arming, NULL), EBUSY);
    atomic_store(&g.open, true);
    void *status = NULL;
    pthread_join(waiting, &status);
    assert_null(status);
    pthread_join(arming, &status);
    assert_null(status);
    assert_ok(wt_device_disarm(device));
    wt_stream_destroy(stream);
}

static void closing_an_armed_device_gives_back_what_was_put_aside(void **state)
{
    (void)state;
    wt_device *device = NULL;
    wt_buffer *buffer = NULL;
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = 1}, &device));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, 1000, &buffer));
    assert_ok(wt_device_arm(device));
    wt_buffer_destroy(buffer); // the sanitizer build sees a leak when it is lost
    wt_device_close(device);
}

typedef struct hammer {
    wt_device *device;
    atomic_bool *quit;
    atomic_int *n_wrong;
} hammer;

static void *use_while_arming(void *data)
{
    hammer *h = data;
    while (!atomic_load(h->quit)) {
        wt_buffer *buffer = NULL;
        bool made = !wt_buffer_create(h->device, WT_MEMORY_DEVICE, 100, &buffer);
        wt_buffer_destroy(buffer);
        wt_status status = wt_device_synchronize(h->device);
        if (!made || (status && status != WT_ERR_ARMED)) atomic_fetch_add(h->n_wrong, 1);
        sleep_us(50);
    }
    return NULL;
}

static void eight_threads_go_on_while_the_device_is_armed_and_disarmed(void **state)
{
    wt_device *device = device_of(state);
    atomic_bool quit = false;
    atomic_int n_wrong = 0;
    hammer h = {device, &quit, &n_wrong};
    pthread_t threads[8];
    for (int k = 0; k < 8; k++) pthread_create(&threads[k], NULL, use_while_arming, &h);
    for (int k = 0; k < 100; k++) {
        assert_ok(wt_device_arm(device));
        sleep_us(300);
        if (k % 2) assert_ok(wt_quiesce(device, NULL, NULL, 0));
        assert_ok(wt_device_disarm(device));
    }
    atomic_store(&quit, true);
    for (int k = 0; k < 8; k++) pthread_join(threads[k], NULL);
    assert_int_equal(atomic_load(&n_wrong), 0);
    assert_int_equal(counts_of(device).n_waiting, 0);
}

// ---- the GPU alone: a resident kernel

// resident: spins until flag[0] is set, 2 s at most so that a failing test ends. Judge: the host.
static const char resident_text[] = "extern \"C\" __global__ void resident(volatile int *flag)\n"
                                    "{\n"
                                    "    long long begin, now;\n"
                                    "    asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(begin));\n"
                                    "    do asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(now));\n"
                                    "    while (!flag[0] && now - begin < 2000000000ll);\n"
                                    "    if (flag[0]) flag[1] = 1;\n"
                                    "}\n";
static const char other_text[] = "extern \"C\" __global__ void other(int *p) { *p = 1; }\n";

typedef struct resident {
    wt_device *device;
    wt_stream *stream;
    wt_buffer *flag;
    wt_kernel *kernel;
    wt_module *loaded; ///< by the quiesced function
} resident;

static wt_status launch_resident(void *user)
{
    resident *r = user;
    volatile int *flag = wt_buffer_host(r->flag);
    flag[0] = flag[1] = 0;
    uintptr_t address = wt_buffer_address(r->flag);
    return wt_kernel_launch(r->kernel, r->stream, &(wt_launch){.grid = {1}}, &WT_ARG(address), 1);
}

static wt_status stop_resident(void *user, int64_t timeout_us)
{
    (void)timeout_us;
    resident *r = user;
    ((volatile int *)wt_buffer_host(r->flag))[0] = 1;
    return wt_stream_synchronize(r->stream);
}

static wt_status load_other(void *user)
{
    resident *r = user;
    return wt_module_create(r->device, &(wt_module_config){.name = "other.cu", .source = other_text}, &r->loaded);
}

static void beside_a_resident_kernel_nothing_hangs_and_a_quiesce_loads_a_module(void **state)
{
    resident r = {.device = device_of(state)};
    wt_module *module = NULL, *refused = NULL;
    wt_buffer *buffer = NULL;
    assert_ok(wt_module_create(r.device, &(wt_module_config){.name = "resident.cu", .source = resident_text}, &module));
    assert_ok(wt_module_get_kernel(module, "resident", &r.kernel));
    assert_ok(wt_stream_create(r.device, NULL, &r.stream));
    assert_ok(wt_buffer_create(r.device, WT_MEMORY_MAPPED, 64, &r.flag));
    assert_ok(wt_buffer_create(r.device, WT_MEMORY_DEVICE, 1 << 20, &buffer));
    const wt_safe_point point = {stop_resident, launch_resident, &r};
    assert_ok(wt_device_set_safe_point(r.device, &point));
    assert_ok(launch_resident(&r));
    assert_ok(wt_device_arm(r.device));

    int64_t begin_ns = wt_clock_now_ns(NULL);
    assert_int_equal(wt_device_synchronize(r.device), WT_ERR_ARMED);
    assert_int_equal(
        wt_module_create(r.device, &(wt_module_config){.name = "other.cu", .source = other_text}, &refused),
        WT_ERR_ARMED);
    wt_buffer_destroy(buffer);
    assert_true(wt_clock_now_ns(NULL) - begin_ns < 500000000); // the kernel stays for 2 s: nothing waited for it
    assert_int_equal(counts_of(r.device).n_waiting, 1);

    assert_ok(wt_quiesce(r.device, load_other, &r, 0));
    assert_non_null(r.loaded);
    assert_int_equal(counts_of(r.device).n_waiting, 0);
    print_message("quiesce with a module load: %.0f us\n", counts_of(r.device).quiesce_last_us);

    assert_ok(stop_resident(&r, 0)); // the relaunched one lives, and leaves at the flag
    assert_int_equal(((volatile int *)wt_buffer_host(r.flag))[1], 1);
    assert_ok(wt_device_disarm(r.device));
    assert_ok(wt_device_set_safe_point(r.device, NULL));
    wt_module_destroy(r.loaded);
    wt_module_destroy(module);
    wt_buffer_destroy(r.flag);
    wt_stream_destroy(r.stream);
}

static void its_kernel_compiles_for_every_architecture(void **state)
{
    (void)state;
    assert_compiles_everywhere("resident.cu", resident_text);
}

// ---- running

#define BOTH_BACKENDS                                                                                                  \
    cmocka_unit_test(an_armed_device_refuses_to_synchronise_and_counts_it),                                            \
        cmocka_unit_test(arming_twice_and_disarming_twice_are_refused),                                                \
        cmocka_unit_test(buffers_destroyed_while_armed_are_given_back_later),                                          \
        cmocka_unit_test(a_quiesce_stops_works_and_restarts_in_order),                                                 \
        cmocka_unit_test(who_is_refused_leaves_the_safe_point_alone),                                                 \
        cmocka_unit_test(eight_threads_go_on_while_the_device_is_armed_and_disarmed)

int main(void)
{
    const struct CMUnitTest table[] = {
        cmocka_unit_test(every_forbidden_entry_refuses_while_armed_and_calls_the_driver_otherwise),
        cmocka_unit_test(no_entry_of_a_forbidden_family_is_bare),
        cmocka_unit_test(its_kernel_compiles_for_every_architecture),
    };
    const struct CMUnitTest cpu[] = {
        BOTH_BACKENDS,
        cmocka_unit_test(a_quiesce_without_safe_point_waits_for_the_streams),
        cmocka_unit_test(arming_waits_for_a_forbidden_call_under_way),
        cmocka_unit_test(closing_an_armed_device_gives_back_what_was_put_aside),
    };
    const struct CMUnitTest cuda[] = {
        BOTH_BACKENDS,
        cmocka_unit_test(beside_a_resident_kernel_nothing_hangs_and_a_quiesce_loads_a_module),
    };
    return cmocka_run_group_tests_name("arm: table", table, NULL, NULL) +
           cmocka_run_group_tests_name("arm: CPU", cpu, open_cpu, close_device) +
           cmocka_run_group_tests_name("arm: CUDA", cuda, open_cuda, close_device);
}
