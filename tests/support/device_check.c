#include "support/device_check.h"
#include "support/testing.h"

#include <stdlib.h>
#include <warptone/kernel.h>

wt_device *device_of(void **state)
{
    if (!*state) {
        print_message("skipped: no CUDA device\n");
        skip();
    }
    return *state;
}

wt_device *wide_device_of(void **state)
{
    wt_device *device = device_of(state);
    if (wt_device_get_info(device)->n_sms < 2) {
        print_message("skipped: one processor cannot be shared out\n");
        skip();
    }
    return device;
}

wt_buffer *buffer_of(wt_device *device, wt_memory memory, size_t size_bytes)
{
    wt_buffer *buffer = NULL;
    assert_ok(wt_buffer_create(device, memory, size_bytes, &buffer));
    return buffer;
}

wt_stream *new_stream(wt_device *device)
{
    wt_stream *stream = NULL;
    assert_ok(wt_stream_create(device, NULL, &stream));
    return stream;
}

wt_event *event_of(wt_device *device)
{
    wt_event *event = NULL;
    assert_ok(wt_event_create(device, &event));
    return event;
}

wt_layout *layout_of(wt_device *device, const wt_layout_config *config)
{
    wt_layout *layout = NULL;
    assert_ok(wt_layout_create(device, config, &layout));
    return layout;
}

wt_stream *stream_of(wt_partition *partition)
{
    wt_stream *stream = NULL;
    assert_ok(wt_partition_stream_create(partition, NULL, &stream));
    return stream;
}

wt_partition_info info_of(wt_partition *partition)
{
    wt_partition_info info;
    wt_partition_get_info(partition, &info);
    return info;
}

wt_layout_info facts_of(const wt_layout *layout)
{
    wt_layout_info info;
    wt_layout_get_info(layout, &info);
    return info;
}

static const wt_partition_config two[] = {
    {.name = "audio", .tier = WT_TIER_GUARANTEED, .sm_share = 0.05, .max_streams = 2}, {.name = "llm"}};
const wt_layout_config two_config = {.partitions = two, .n_partitions = 2};

static const wt_partition_config lending[] = {
    {.name = "speech", .tier = WT_TIER_GUARANTEED, .sm_share = 0.5, .lends = true},
    {.name = "llm", .borrows = true},
};
const wt_layout_config lending_config = {.partitions = lending, .n_partitions = 2};

void assert_compiles_everywhere(const char *name, const char *source)
{
    if (!wt_nvrtc_version()) {
        print_message("skipped: no NVRTC\n");
        skip();
    }
    static const int architectures[] = {80, 90, 100, 120};
    for (int k = 0; k < 4; k++) {
        wt_compiled compiled;
        assert_ok(wt_kernel_compile(&(wt_module_config){.name = name, .source = source}, architectures[k], &compiled));
        free(compiled.image);
    }
}

static int open_threads(void **state, int n_threads)
{
    const wt_device_config config = {.backend = WT_BACKEND_CPU, .n_threads = n_threads};
    return wt_device_open(&config, (wt_device **)state) != WT_OK;
}

int open_cpu(void **state) { return open_threads(state, 2); }

int open_three_threads(void **state) { return open_threads(state, 3); }

int open_cuda(void **state)
{
    if (wt_device_count() && wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, (wt_device **)state))
        return 1;
    return 0;
}

int close_device(void **state)
{
    wt_device_close(*state);
    return 0;
}

wt_backend group_backend;

int group_on_cpu(void **state)
{
    (void)state;
    group_backend = WT_BACKEND_CPU;
    return 0;
}

int group_on_cuda(void **state)
{
    (void)state;
    group_backend = WT_BACKEND_CUDA;
    return 0;
}
