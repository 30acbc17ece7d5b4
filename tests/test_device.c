#include "support/device_check.h"
#include "support/failing_alloc.h"
#include "support/testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <warptone/device.h>
#include <warptone/kernel.h>

// The tests of BOTH_BACKENDS run once on the CPU and once on a GPU; `state` holds the device, NULL without a GPU.

static void new_memory_is_zero_and_aligned(void **state)
{
    wt_device *device = device_of(state);
    wt_stream *stream = new_stream(device);
    for (int memory = WT_MEMORY_DEVICE; memory <= WT_MEMORY_MAPPED; memory++) {
        wt_buffer *buffer = buffer_of(device, (wt_memory)memory, 1001);
        unsigned char got[1001], zero[1001] = {0};
        memset(got, 1, sizeof got);
        assert_ok(wt_stream_download(stream, got, buffer, 0, sizeof got));
        assert_ok(wt_stream_synchronize(stream));
        assert_memory_equal(got, zero, sizeof got);
        assert_int_equal(wt_buffer_size_bytes(buffer), 1001);
        assert_int_equal(wt_buffer_address(buffer) % 64, 0);
        bool cuda = wt_device_get_info(device)->backend == WT_BACKEND_CUDA;
        assert_int_equal(wt_buffer_host(buffer) == NULL, cuda && memory == WT_MEMORY_DEVICE);
        assert_int_equal(wt_buffer_address(buffer) == 0, cuda && memory == WT_MEMORY_PINNED);
        wt_buffer_destroy(buffer);
    }
    wt_stream_destroy(stream);
}

static void buffers_refuse_no_bytes_and_too_many(void **state)
{
    wt_device *device = device_of(state);
    wt_buffer *buffer = NULL;
    assert_fails(wt_buffer_create(device, WT_MEMORY_DEVICE, 0, &buffer), WT_ERR_BAD_ARG,
                 "buffer: 0 bytes, want 1 or more");
    assert_null(buffer);
    assert_int_equal(wt_buffer_create(device, WT_MEMORY_DEVICE, SIZE_MAX, &buffer), WT_ERR_BAD_ARG);
    assert_null(buffer);
    assert_fails(wt_buffer_create(device, (wt_memory)3, 1, &buffer), WT_ERR_BAD_ARG,
                 "buffer: memory kind 3, want device, pinned or mapped");
    wt_buffer_destroy(NULL);
}

static void bytes_survive_a_trip_through_every_kind_of_memory(void **state)
{
    wt_device *device = device_of(state);
    wt_stream *stream = new_stream(device);
    wt_buffer *a = buffer_of(device, WT_MEMORY_PINNED, 4096), *b = buffer_of(device, WT_MEMORY_DEVICE, 4096),
              *c = buffer_of(device, WT_MEMORY_DEVICE, 4096), *d = buffer_of(device, WT_MEMORY_MAPPED, 4096),
              *e = buffer_of(device, WT_MEMORY_PINNED, 4096);
    unsigned char in[4096], out[4096] = {0};
    for (int n = 0; n < 4096; n++) in[n] = (unsigned char)(n * 7 + n / 256);
    assert_ok(wt_stream_upload(stream, a, 0, in, 4096));
    assert_ok(wt_stream_copy(stream, b, 0, a, 0, 4096));    // pinned to device
    assert_ok(wt_stream_copy(stream, c, 0, b, 0, 4096));    // device to device
    assert_ok(wt_stream_copy(stream, d, 0, c, 0, 4096));    // device to mapped
    assert_ok(wt_stream_copy(stream, e, 0, d, 0, 4096));    // host to host
    assert_ok(wt_stream_copy(stream, e, 100, a, 3000, 50)); // a part
    assert_ok(wt_stream_fill(stream, e, 200, 0xAB, 17));
    assert_ok(wt_stream_download(stream, out, e, 0, 4096));
    assert_ok(wt_stream_synchronize(stream));
    memcpy(in + 100, in + 3000, 50);
    memset(in + 200, 0xAB, 17);
    assert_memory_equal(in, out, 4096);
    wt_buffer *all[] = {a, b, c, d, e};
    for (int k = 0; k < 5; k++) wt_buffer_destroy(all[k]);
    wt_stream_destroy(stream);
}

static void copies_refuse_ranges_that_do_not_fit(void **state)
{
    wt_device *device = device_of(state);
    wt_stream *stream = new_stream(device);
    wt_buffer *a = buffer_of(device, WT_MEMORY_DEVICE, 100), *b = buffer_of(device, WT_MEMORY_DEVICE, 200);
    unsigned char host[200] = {0};
    assert_fails(wt_stream_copy(stream, a, 50, b, 0, 51), WT_ERR_BAD_ARG,
                 "copy, destination: 51 bytes at offset 50 do not fit a buffer of 100 bytes");
    assert_fails(wt_stream_copy(stream, b, 0, a, 0, 101), WT_ERR_BAD_ARG,
                 "copy, source: 101 bytes at offset 0 do not fit a buffer of 100 bytes");
    assert_fails(wt_stream_copy(stream, b, 99, b, 100, 10), WT_ERR_BAD_ARG,
                 "copy: 10 bytes at offsets 100 and 99 of one buffer overlap");
    assert_int_equal(wt_stream_upload(stream, a, SIZE_MAX, host, 2), WT_ERR_BAD_ARG); // the sum would wrap around
    assert_int_equal(wt_stream_upload(stream, a, 2, host, SIZE_MAX), WT_ERR_BAD_ARG);
    assert_fails(wt_stream_download(stream, host, a, 101, 0), WT_ERR_BAD_ARG,
                 "download: 0 bytes at offset 101 do not fit a buffer of 100 bytes");
    assert_int_equal(wt_stream_fill(stream, a, 0, 1, 101), WT_ERR_BAD_ARG);
    assert_ok(wt_stream_copy(stream, a, 100, b, 0, 0)); // nothing, at the very end
    assert_ok(wt_stream_copy(stream, b, 0, b, 100, 100));
    assert_ok(wt_stream_synchronize(stream));
    wt_buffer_destroy(a);
    wt_buffer_destroy(b);
    wt_stream_destroy(stream);
}

typedef struct user {
    wt_device *device;
    int number;
    atomic_int *n_wrong;
} user;

/// Work as several threads do it: own streams, shared device. Counts what went wrong (cmocka's asserts belong to the
/// main thread).
static void *use_device(void *data)
{
    user *u = data;
    for (int round = 0; round < 10; round++) {
        wt_stream *stream = NULL;
        wt_buffer *buffer = NULL;
        wt_event *event = NULL;
        unsigned char got[1000] = {0};
        int wrong = wt_stream_create(u->device, NULL, &stream) ||
                    wt_buffer_create(u->device, WT_MEMORY_DEVICE, sizeof got, &buffer) ||
                    wt_event_create(u->device, &event) ||
                    wt_stream_fill(stream, buffer, 0, (unsigned char)(u->number + round), sizeof got) ||
                    wt_stream_download(stream, got, buffer, 0, sizeof got) || wt_event_record(event, stream) ||
                    wt_event_synchronize(event) || got[999] != (unsigned char)(u->number + round);
        if (wrong) atomic_fetch_add(u->n_wrong, 1);
        wt_event_destroy(event);
        wt_buffer_destroy(buffer);
        wt_stream_destroy(stream);
    }
    return NULL;
}

static void threads_share_a_device(void **state)
{
    enum { N_THREADS = 6 };
    wt_device *device = device_of(state);
    pthread_t threads[N_THREADS];
    user users[N_THREADS];
    atomic_int n_wrong = 0;
    for (int k = 0; k < N_THREADS; k++) {
        users[k] = (user){device, k, &n_wrong};
        assert_int_equal(pthread_create(&threads[k], NULL, use_device, &users[k]), 0);
    }
    for (int k = 0; k < N_THREADS; k++) pthread_join(threads[k], NULL);
    assert_ok(wt_device_synchronize(device));
    assert_int_equal(atomic_load(&n_wrong), 0);
}

static void facts_of_the_device_are_sane(void **state)
{
    const wt_device_info *info = wt_device_get_info(device_of(state));
    assert_true(strlen(info->name) > 0);
    assert_true(info->n_sms >= 1);
    assert_true(info->memory_bytes > ((size_t)64 << 20) && info->memory_free_bytes <= info->memory_bytes);
    bool cuda = info->backend == WT_BACKEND_CUDA;
    assert_int_equal(cuda, info->compute_major >= 8);
    assert_int_equal(cuda, info->driver_version >= 11000);
    assert_int_equal(cuda, info->pci_bus_id[0] != 0);
    assert_true(info->partition_sms <= info->n_sms);
    assert_int_equal(info->partition_sms > 0, info->partition_align_sms > 0);
    wt_device_info again;
    assert_ok(wt_device_query(cuda ? 0 : -1, &again));
    assert_string_equal(again.name, info->name);
}

// ---- the CPU backend alone

static void handles_of_two_devices_do_not_mix(void **state)
{
    wt_device *device = device_of(state), *other = NULL;
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = 1}, &other));
    wt_stream *stream = new_stream(device);
    wt_buffer *mine = buffer_of(device, WT_MEMORY_DEVICE, 8), *foreign = buffer_of(other, WT_MEMORY_DEVICE, 8);
    wt_event *event = event_of(other);
    assert_fails(wt_stream_copy(stream, mine, 0, foreign, 0, 8), WT_ERR_BAD_ARG,
                 "copy, source: the buffer and the stream belong to different devices");
    assert_fails(wt_event_record(event, stream), WT_ERR_BAD_ARG,
                 "record: the event and the stream belong to different devices");
    assert_fails(wt_stream_wait(stream, event), WT_ERR_BAD_ARG,
                 "wait: the event and the stream belong to different devices");
    wt_event_destroy(event);
    wt_buffer_destroy(mine);
    wt_buffer_destroy(foreign);
    wt_stream_destroy(stream);
    wt_device_close(other);
}

typedef struct handles {
    wt_device *device;
    wt_stream *stream;
    wt_buffer *buffer;
    wt_event *event;
} handles;

static void destroy_handles(void *user)
{
    handles *h = user;
    wt_event_destroy(h->event);
    wt_buffer_destroy(h->buffer);
    wt_stream_destroy(h->stream);
    wt_device_close(h->device);
    *h = (handles){0};
}

static wt_status create_handles(void *user)
{
    handles *h = user;
    *h = (handles){0};
    wt_status status = wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = 2}, &h->device);
    if (!status) status = wt_stream_create(h->device, NULL, &h->stream);
    if (!status) status = wt_buffer_create(h->device, WT_MEMORY_DEVICE, 100, &h->buffer);
    if (!status) status = wt_event_create(h->device, &h->event);
    if (status) destroy_handles(h);
    return status;
}

static void every_failing_allocation_is_told_and_leaks_nothing(void **state)
{
    (void)state;
    handles h;
    assert_true(assert_survives_failing_alloc(create_handles, destroy_handles, &h) >= 7); // the handles and their parts
}

static void a_module_needs_a_gpu(void **state)
{
    wt_module *module = NULL;
    const wt_module_config config = {.name = "user.cu", .source = "extern \"C\" __global__ void f() {}"};
    assert_fails(wt_module_create(device_of(state), &config, &module), WT_ERR_UNSUPPORTED,
                 "user.cu: CUDA kernels need a GPU; this device is the CPU");
    assert_null(module);
    wt_module_destroy(NULL);
}

// ---- choosing

static void the_environment_chooses_the_backend(void **state)
{
    (void)state;
    wt_device *device = NULL;
    setenv("WARPTONE_BACKEND", "gpu", 1);
    assert_fails(wt_device_open(NULL, &device), WT_ERR_BAD_ARG, "WARPTONE_BACKEND is \"gpu\", want auto, cuda or cpu");
    assert_null(device);
    setenv("WARPTONE_BACKEND", "cpu", 1);
    assert_ok(wt_device_open(NULL, &device));
    assert_int_equal(wt_device_get_info(device)->backend, WT_BACKEND_CPU);
    wt_device_close(device);
    setenv("WARPTONE_BACKEND", "auto", 1);
    assert_ok(wt_device_open(NULL, &device));
    if (!wt_device_count()) assert_int_equal(wt_device_get_info(device)->backend, WT_BACKEND_CPU);
    wt_device_close(device);
    unsetenv("WARPTONE_BACKEND");
    wt_device_close(NULL);
}

static void without_a_gpu_the_sentence_says_why_and_what_to_do(void **state)
{
    (void)state;
    if (wt_device_count()) {
        print_message("skipped: this machine has a CUDA device\n");
        skip();
    }
    assert_true(strncmp(wt_last_error(), "CUDA driver not detected: ", 26) == 0 ||
                strncmp(wt_last_error(), "No GPU devices found: ", 22) == 0);
    char why[1024];
    snprintf(why, sizeof why, "%s", wt_last_error());
    wt_device *device = NULL;
    assert_true(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &device) != WT_OK);
    assert_string_equal(wt_last_error(), why);
    assert_ok(wt_device_open(NULL, &device));
    char fallback[1200];
    snprintf(fallback, sizeof fallback, "Falling back to CPU backend: %s", why);
    assert_string_equal(wt_last_error(), fallback);
    wt_device_close(device);
}

static void opening_refuses_nonsense(void **state)
{
    (void)state;
    wt_device *device = NULL;
    assert_int_equal(wt_device_open(&(wt_device_config){.ordinal = -1}, &device), WT_ERR_BAD_ARG);
    assert_int_equal(wt_device_open(&(wt_device_config){.n_threads = -1}, &device), WT_ERR_BAD_ARG);
    assert_int_equal(wt_device_open(&(wt_device_config){.backend = (wt_backend)9}, &device), WT_ERR_BAD_ARG);
    assert_null(device);
    wt_device_info info;
    assert_fails(wt_device_query(-2, &info), WT_ERR_BAD_ARG, "device: ordinal -2, want -1 (CPU) or more");
}

// ---- the GPU alone

static const char scale_text[] = "extern \"C\" __global__ void scale(float *x, float gain, int n)\n"
                                 "{\n"
                                 "    extern __shared__ float unused[];\n"
                                 "    int k = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                 "    if (k < n) x[k] *= gain;\n"
                                 "}\n"
                                 "extern \"C\" __global__ void stray(int *p) { *p = 1; }\n";

static void a_users_kernel_runs_with_typed_arguments(void **state)
{
    wt_device *device = device_of(state);
    wt_module *module = NULL;
    wt_kernel *scale = NULL, *again = NULL, *none = NULL;
    assert_ok(wt_module_create(device, &(wt_module_config){.name = "scale.cu", .source = scale_text}, &module));
    assert_ok(wt_module_get_kernel(module, "scale", &scale));
    assert_ok(wt_module_get_kernel(module, "scale", &again));
    assert_ptr_equal(scale, again);
    assert_int_equal(wt_module_get_kernel(module, "missing", &none), WT_ERR_NOT_FOUND);
    assert_true(wt_kernel_get_info(scale).n_registers > 0 && wt_kernel_get_info(scale).max_threads >= 256);

    float x[1000];
    for (int k = 0; k < 1000; k++) x[k] = (float)k;
    wt_stream *stream = new_stream(device);
    wt_buffer *buffer = buffer_of(device, WT_MEMORY_DEVICE, sizeof x);
    uintptr_t address = wt_buffer_address(buffer);
    float gain = 0.5f;
    int n = 1000;
    const wt_arg args[] = {WT_ARG(address), WT_ARG(gain), WT_ARG(n)};
    wt_launch launch = {.grid = {4}, .block = {256}};
    assert_ok(wt_stream_upload(stream, buffer, 0, x, sizeof x));
    assert_ok(wt_kernel_launch(scale, stream, &launch, args, 3));
    launch.shared_bytes = 64 * 1024; // above 48 KB the engine opts in
    assert_ok(wt_kernel_launch(scale, stream, &launch, args, 3));
    assert_ok(wt_stream_download(stream, x, buffer, 0, sizeof x));
    assert_ok(wt_stream_synchronize(stream));
    for (int k = 0; k < 1000; k++) assert_true(x[k] == 0.25f * (float)k);

    assert_int_equal(wt_kernel_launch(scale, stream, &(wt_launch){.block = {2048}}, args, 3), WT_ERR_BAD_ARG);
    assert_int_equal(wt_kernel_launch(scale, stream, &(wt_launch){.grid = {-1}}, args, 3), WT_ERR_BAD_ARG);
    launch.shared_bytes = (size_t)1 << 30;
    assert_int_equal(wt_kernel_launch(scale, stream, &launch, args, 3), WT_ERR_BAD_ARG);
    wt_buffer_destroy(buffer);
    wt_stream_destroy(stream);
    wt_module_destroy(module);
}

/// In a process of its own, since the context does not survive: a kernel writes to address 16.
static int lose_the_device(void)
{
    wt_device *device = NULL;
    wt_stream *stream = NULL;
    wt_module *module = NULL;
    wt_kernel *stray = NULL;
    uintptr_t address = 16;
    if (wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &device) ||
        wt_stream_create(device, NULL, &stream) ||
        wt_module_create(device, &(wt_module_config){.name = "stray.cu", .source = scale_text}, &module) ||
        wt_module_get_kernel(module, "stray", &stray) ||
        wt_kernel_launch(stray, stream, &(wt_launch){.grid = {1}, .block = {1}}, &WT_ARG(address), 1))
        return 2;
    bool lost =
        wt_stream_synchronize(stream) == WT_ERR_DEVICE_LOST && wt_device_synchronize(device) == WT_ERR_DEVICE_LOST;
    wt_buffer *buffer = NULL;
    bool refused = wt_buffer_create(device, WT_MEMORY_DEVICE, 16, &buffer) == WT_ERR_DEVICE_LOST;
    wt_module_destroy(module);
    wt_stream_destroy(stream);
    wt_device_close(device);
    return lost && refused ? 0 : 1;
}

static void a_stray_write_loses_the_device_with_a_status(void **state)
{
    device_of(state);
    char self[4096] = {0}, command[4200];
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    snprintf(command, sizeof command, "'%s' lose-the-device", self);
    int status = system(command);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

// ---- running

#define BOTH_BACKENDS                                                                                                  \
    cmocka_unit_test(facts_of_the_device_are_sane), cmocka_unit_test(new_memory_is_zero_and_aligned),                  \
        cmocka_unit_test(buffers_refuse_no_bytes_and_too_many),                                                        \
        cmocka_unit_test(bytes_survive_a_trip_through_every_kind_of_memory),                                           \
        cmocka_unit_test(copies_refuse_ranges_that_do_not_fit), cmocka_unit_test(threads_share_a_device)

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "lose-the-device")) return lose_the_device();
    const struct CMUnitTest choosing[] = {
        cmocka_unit_test(the_environment_chooses_the_backend),
        cmocka_unit_test(without_a_gpu_the_sentence_says_why_and_what_to_do),
        cmocka_unit_test(opening_refuses_nonsense),
    };
    const struct CMUnitTest cpu[] = {
        BOTH_BACKENDS,
        cmocka_unit_test(handles_of_two_devices_do_not_mix),
        cmocka_unit_test(every_failing_allocation_is_told_and_leaks_nothing),
        cmocka_unit_test(a_module_needs_a_gpu),
    };
    const struct CMUnitTest cuda[] = {
        BOTH_BACKENDS,
        cmocka_unit_test(a_users_kernel_runs_with_typed_arguments),
        cmocka_unit_test(a_stray_write_loses_the_device_with_a_status),
    };
    return cmocka_run_group_tests_name("device: choosing", choosing, NULL, NULL) +
           cmocka_run_group_tests_name("device: CPU", cpu, open_three_threads, close_device) +
           cmocka_run_group_tests_name("device: CUDA", cuda, open_cuda, close_device);
}
