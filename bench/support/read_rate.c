#include "read_rate.h"

#include <warptone/kernel.h>

static const char read_text[] =
    "extern \"C\" __global__ void __launch_bounds__(1024) read_all(const uint4 *p, unsigned long long n, unsigned "
    "*out)\n"
    "{\n"
    "    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;\n"
    "    unsigned sum = 0;\n"
    "    for (unsigned long long k = blockIdx.x * blockDim.x + threadIdx.x; k + 3 * step < n; k += 4 * step) {\n"
    "        const uint4 a = p[k], b = p[k + step], c = p[k + 2 * step], d = p[k + 3 * step];\n"
    "        sum += a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w ^ c.x ^ c.y ^ c.z ^ c.w ^ d.x ^ d.y ^ d.z ^ d.w;\n"
    "    }\n"
    "    if (sum == 1) *out = sum;\n"
    "}\n";

wt_status bench_read_rate(wt_device *device, wt_stream *stream, int n_sms, uintptr_t address, size_t bytes,
                          double *rate)
{
    wt_module *module = NULL;
    wt_kernel *kernel = NULL;
    wt_event *begin = NULL, *end = NULL;
    wt_buffer *out = NULL;
    const unsigned long long n = bytes / 16;
    wt_status status = wt_module_create(device, &(wt_module_config){.name = "read.cu", .source = read_text}, &module);
    if (!status) status = wt_module_get_kernel(module, "read_all", &kernel);
    if (!status) status = wt_event_create(device, &begin);
    if (!status) status = wt_event_create(device, &end);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, 4, &out);
    const uintptr_t sum = out ? wt_buffer_address(out) : 0;
    const wt_arg args[] = {WT_ARG(address), WT_ARG(n), WT_ARG(sum)};
    const wt_launch launch = {.grid = {2 * n_sms}, .block = {1024}};
    *rate = 0;
    for (int k = 0; k < 5 && !status; k++) {
        double us;
        status = wt_event_record(begin, stream);
        if (!status) status = wt_kernel_launch(kernel, stream, &launch, args, 3);
        if (!status) status = wt_event_record(end, stream);
        if (!status) status = wt_event_synchronize(end);
        if (!status) status = wt_event_elapsed_us(begin, end, &us);
        if (!status) *rate = (double)bytes / us / 1e3 > *rate ? (double)bytes / us / 1e3 : *rate;
    }
    wt_event_destroy(begin);
    wt_event_destroy(end);
    wt_buffer_destroy(out);
    wt_module_destroy(module);
    return status;
}
