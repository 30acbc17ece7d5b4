// A lost device: the account of it with stand-ins for the driver; and on a GPU, in a process of its own, a kernel that
// faults on purpose under the device executor: attributed, all calls refused at once, work that may goes on with the
// CPU, everything closes in order, and the device is opened again.
#include "support/device_check.h"
#include "support/testing.h"
#include "../engine/cuda_lost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <warptone/device_executor.h>
#include <warptone/kernel.h>

// ---- with stand-ins for the driver

enum { GPU = 63 }; ///< a number that no machine of the tests has

static struct {
    int n_retained, n_released, n_reset;
    CUresult answer; ///< of retaining
} driver;

static CUresult retain(CUcontext *context, CUdevice device)
{
    (void)device;
    *context = (CUcontext)&driver;
    driver.n_retained++;
    return driver.answer;
}

static CUresult release(CUdevice device)
{
    (void)device;
    driver.n_released++;
    return CUDA_SUCCESS;
}

static CUresult reset(CUdevice device)
{
    (void)device;
    driver.n_reset++;
    return CUDA_SUCCESS;
}

static CUresult get_state(CUdevice device, unsigned int *flags, int *active)
{
    (void)device;
    *flags = 0;
    *active = driver.n_retained > driver.n_released;
    return CUDA_SUCCESS;
}

static CUresult set_current(CUcontext context)
{
    (void)context;
    return CUDA_SUCCESS;
}

static CUresult name_of(CUresult result, const char **name)
{
    (void)result;
    *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
    return CUDA_SUCCESS;
}

static const wt__cuda table = {.DevicePrimaryCtxRetain = retain,
                               .DevicePrimaryCtxRelease = release,
                               .DevicePrimaryCtxReset = reset,
                               .DevicePrimaryCtxGetState = get_state,
                               .CtxSetCurrent = set_current,
                               .GetErrorName = name_of,
                               .GetErrorString = name_of};

static void a_loss_lasts_until_the_last_handle_is_closed(void **state)
{
    (void)state;
    memset(&driver, 0, sizeof driver);
    CUcontext context;
    assert_ok(wt__cuda_retain(&table, GPU, "X", &context));
    assert_ok(wt__cuda_retain(&table, GPU, "X", &context));
    assert_false(wt__cuda_is_lost(GPU));
    wt__cuda_entering(GPU);
    assert_int_equal(wt__cu(&table, CUDA_ERROR_ILLEGAL_ADDRESS, "launch of stray"), WT_ERR_DEVICE_LOST);
    assert_int_equal(wt__cu(&table, CUDA_ERROR_ILLEGAL_ADDRESS, "a later call"), WT_ERR_DEVICE_LOST);
    assert_true(wt__cuda_is_lost(GPU));
    assert_false(wt__cuda_is_lost(GPU - 1));
    assert_fails(wt__cuda_say_lost(GPU), WT_ERR_DEVICE_LOST,
                 "launch of stray: CUDA_ERROR_ILLEGAL_ADDRESS (700): CUDA_ERROR_ILLEGAL_ADDRESS; the device is lost "
                 "until all handles of it are closed");
    assert_fails(wt__cuda_retain(&table, GPU, "X", &context), WT_ERR_DEVICE_LOST,
                 "device X: it is lost, and 2 handles of it are open; close them first");
    wt__cuda_release(&table, GPU);
    assert_true(wt__cuda_is_lost(GPU));
    assert_int_equal(driver.n_reset, 0);
    wt__cuda_release(&table, GPU);
    assert_false(wt__cuda_is_lost(GPU));
    assert_true(driver.n_reset == 0 && driver.n_released == 2); // the driver does it by itself, nobody holds it
    assert_ok(wt__cuda_retain(&table, GPU, "X", &context));
    wt__cuda_release(&table, GPU);
    assert_int_equal(driver.n_retained, driver.n_released);
}

static void what_others_still_hold_is_reset_after_a_loss_only(void **state)
{
    (void)state;
    memset(&driver, 0, sizeof driver);
    CUcontext context;
    retain(&context, GPU); // another library
    for (int lost = 0; lost < 2; lost++) {
        assert_ok(wt__cuda_retain(&table, GPU, "X", &context));
        wt__cuda_entering(GPU);
        if (lost) assert_int_equal(wt__cu(&table, CUDA_ERROR_ILLEGAL_ADDRESS, "launch"), WT_ERR_DEVICE_LOST);
        wt__cuda_release(&table, GPU);
        assert_int_equal(driver.n_reset, lost);
        assert_int_equal(driver.n_retained, driver.n_released + 1);
    }
}

static void what_the_driver_keeps_is_told_in_one_sentence(void **state)
{
    (void)state;
    memset(&driver, 0, sizeof driver);
    CUcontext context;
    assert_ok(wt__cuda_retain(&table, GPU, "X", &context));
    wt__cuda_entering(GPU);
    assert_int_equal(wt__cu(&table, CUDA_ERROR_ILLEGAL_ADDRESS, "launch"), WT_ERR_DEVICE_LOST);
    wt__cuda_release(&table, GPU);
    driver.answer = CUDA_ERROR_ILLEGAL_ADDRESS;
    assert_fails(wt__cuda_retain(&table, GPU, "X", &context), WT_ERR_DEVICE_LOST,
                 "device X: it was lost to a fault and the driver does not give it back to this process (CUDA error "
                 "700); start the program again, or work on the CPU");
    driver.answer = CUDA_SUCCESS;
    assert_ok(wt__cuda_retain(&table, GPU, "X", &context));
    wt__cuda_release(&table, GPU);
}

// ---- on a GPU

static const char kernels_text[] = "extern \"C\" __global__ void stray(int *address) { *address = 1; }\n"
                                   "extern \"C\" __global__ void square(int *x, int n)\n"
                                   "{\n"
                                   "    int k = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                   "    if (k < n) x[k] = k * k;\n"
                                   "}\n";

enum { N_SQUARES = 1000 };

/// 0 = `device` loads a kernel and computes right.
static int compute(wt_device *device)
{
    wt_stream *stream;
    wt_module *module;
    wt_kernel *square;
    wt_buffer *buffer;
    if (wt_stream_create(device, NULL, &stream) ||
        wt_module_create(device, &(wt_module_config){.name = "squares.cu", .source = kernels_text}, &module) ||
        wt_module_get_kernel(module, "square", &square) ||
        wt_buffer_create(device, WT_MEMORY_DEVICE, N_SQUARES * sizeof(int), &buffer))
        return 20;
    static int got[N_SQUARES];
    uintptr_t address = wt_buffer_address(buffer);
    int n = N_SQUARES;
    const wt_arg args[] = {WT_ARG(address), WT_ARG(n)};
    if (wt_kernel_launch(square, stream, &(wt_launch){.grid = {8}, .block = {128}}, args, 2) ||
        wt_stream_download(stream, got, buffer, 0, sizeof got) || wt_stream_synchronize(stream))
        return 21;
    wt_buffer_destroy(buffer);
    wt_module_destroy(module);
    wt_stream_destroy(stream);
    for (int k = 0; k < N_SQUARES; k++)
        if (got[k] != k * k) return 22;
    return 0;
}

typedef struct doomed {
    wt_device_work work;
    wt_kernel *stray;
    int n_cpu;
} doomed;

static wt_status queue_stray(void *user, wt_stream *stream, int64_t offset_item, int64_t n_items)
{
    (void)offset_item, (void)n_items;
    const doomed *d = user;
    uintptr_t address = 16;
    return wt_kernel_launch(d->stray, stream, &(wt_launch){.grid = {1}}, &WT_ARG(address), 1);
}

static wt_status queue_on_cpu(void *user, wt_stream *stream, int64_t offset_item, int64_t n_items)
{
    (void)offset_item, (void)n_items;
    doomed *d = user;
    d->n_cpu++;
    return wt_device_get_info(wt_stream_device(stream))->backend == WT_BACKEND_CPU ? WT_OK : WT_ERR_STATE;
}

typedef struct rig {
    wt_device *device;
    wt_layout *layout;
    wt_module *module;
    wt_scheduler *scheduler;
    wt_device_executor *executor;
    int partition;
    doomed doomed;
} rig;

static bool make_rig(rig *r)
{
    return !wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &r->device) && !compute(r->device) &&
           !wt_layout_create(
               r->device, &(wt_layout_config){.partitions = &(wt_partition_config){.name = "all"}, .n_partitions = 1},
               &r->layout) &&
           !wt_module_create(r->device, &(wt_module_config){.name = "stray.cu", .source = kernels_text}, &r->module) &&
           !wt_module_get_kernel(r->module, "stray", &r->doomed.stray) && !wt_scheduler_create(NULL, &r->scheduler) &&
           !wt_device_executor_create(&(wt_device_executor_config){.scheduler = r->scheduler,
                                                                   .fall_back_to_cpu = true,
                                                                   .partition = wt_layout_at(r->layout, 0)},
                                      &r->executor) &&
           !wt_scheduler_add_partition(
               r->scheduler,
               &(wt_scheduler_partition_config){.name = "all", .executor = wt_device_executor_callbacks(r->executor)},
               &r->partition);
}

static wt_status run(rig *r, const char *name, bool with_cpu)
{
    wt_task task;
    r->doomed.work = (wt_device_work){.queue = queue_stray, .user = &r->doomed};
    if (with_cpu) r->doomed.work.queue_cpu = queue_on_cpu;
    wt_status status = wt_scheduler_submit(
        r->scheduler, &(wt_task_config){.name = name, .partition = r->partition, .work = {.device = &r->doomed.work}},
        &task, NULL);
    return status ? status : wt_scheduler_wait(r->scheduler, task, 5000000000);
}

/// The number of what went wrong, 0 = nothing.
static int lose(rig *r)
{
    wt_device_executor_info info;
    if (wt_device_is_lost(r->device)) return 3;
    if (run(r, "culprit", false) != WT_ERR_DEVICE_LOST) return 4;
    wt_device_executor_get_info(r->executor, &info);
    if (!info.lost || !strstr(info.why_lost, "running was task culprit, last kernel stray: ")) return 5;
    if (!wt_device_is_lost(r->device)) return 6;
    if (run(r, "later", false) != WT_ERR_DEVICE_LOST) return 7;
    if (run(r, "pair", true) || r->doomed.n_cpu != 1) return 8; // goes on with the CPU
    wt_buffer *buffer;
    wt_device *second = NULL;
    if (wt_buffer_create(r->device, WT_MEMORY_DEVICE, 16, &buffer) != WT_ERR_DEVICE_LOST) return 9;
    if (wt_device_synchronize(r->device) != WT_ERR_DEVICE_LOST) return 10;
    if (wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &second) != WT_ERR_DEVICE_LOST) return 11;
    if (!strstr(wt_last_error(), "it is lost, and 1 handles of it are open")) return 12;
    return 0;
}

static bool close_rig(rig *r)
{
    wt_device_executor_destroy(r->executor);
    wt_scheduler_destroy(r->scheduler);
    wt_module_destroy(r->module);
    bool closed = !wt_layout_destroy(r->layout);
    wt_device_close(r->device);
    return closed;
}

static int lose_and_reopen(void)
{
    rig r = {0};
    if (!make_rig(&r)) return 2;
    int wrong = lose(&r);
    if (wrong) fprintf(stderr, "step %d: %s\n", wrong, wt_last_error());
    if (!close_rig(&r)) return 13;
    if (wrong) return wrong;
    wt_device *again = NULL;
    wt_status status = wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &again);
    if (status) { // the driver's choice, which must be told
        printf("not reopened: %s\n", wt_last_error());
        return status == WT_ERR_DEVICE_LOST && strstr(wt_last_error(), "start the program again") ? 0 : 14;
    }
    wrong = compute(again);
    if (wrong)
        fprintf(stderr, "after reopening, step %d: %s\n", wrong, wt_last_error());
    else
        printf("reopened, and computes right\n");
    wt_device_close(again);
    return wrong;
}

static void a_device_is_lost_closed_and_opened_again(void **state)
{
    device_of(state);
    char self[4096] = {0}, command[4200];
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    snprintf(command, sizeof command, "'%s' lose", self);
    int status = system(command);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void its_kernels_compile_for_every_architecture(void **state)
{
    (void)state;
    assert_compiles_everywhere("squares.cu", kernels_text);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "lose")) return lose_and_reopen();
    const struct CMUnitTest account[] = {cmocka_unit_test(a_loss_lasts_until_the_last_handle_is_closed),
                                         cmocka_unit_test(what_others_still_hold_is_reset_after_a_loss_only),
                                         cmocka_unit_test(what_the_driver_keeps_is_told_in_one_sentence),
                                         cmocka_unit_test(its_kernels_compile_for_every_architecture)};
    const struct CMUnitTest cuda[] = {cmocka_unit_test(a_device_is_lost_closed_and_opened_again)};
    return cmocka_run_group_tests_name("device lost: account", account, NULL, NULL) +
           cmocka_run_group_tests_name("device lost: CUDA", cuda, open_cuda, close_device);
}
