#include "support/testing.h"
#include "support/chain_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES = 5000, MAX_CHANNELS = 64 };

float *noise_signal(int count, uint64_t seed)
{
    float *x = malloc(sizeof *x * (size_t)count);
    for (int n = 0; n < count; n++) x[n] = 0.5f * noise(&seed);
    return x;
}

void process_blocks(wt_chain *chain, const float *in, float *out, int n_frames, int block, int stride)
{
    const float *from[MAX_CHANNELS];
    float *to[MAX_CHANNELS];
    for (int done = 0; done < n_frames; done += block) {
        for (int c = 0; c < MAX_CHANNELS; c++) from[c] = in + (size_t)c * (size_t)stride + done;
        for (int c = 0; c < MAX_CHANNELS; c++) to[c] = out + (size_t)c * (size_t)stride + done;
        assert_int_equal(wt_chain_process(chain, from, to, n_frames - done < block ? n_frames - done : block), WT_OK);
    }
}

static wt_chain *build(const wt_chain_desc *desc, int channels, double rate_hz, wt_device *device, int n_instances)
{
    wt_chain *chain = NULL;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = rate_hz, .channels = channels, .device = device,
                                                 .n_instances = n_instances}, desc, &chain));
    return chain;
}

void check_block_sizes(const wt_chain_desc *desc, int channels, double rate_hz)
{
    const int sizes[] = {FRAMES, 1, 31, 32, 33, 64, 65, 253, 256, 1000};
    float *x = noise_signal(channels * FRAMES, 7), *reference = NULL;
    size_t out_bytes = 0;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        wt_chain *chain = build(desc, channels, rate_hz, NULL, 1);
        out_bytes = sizeof(float) * (size_t)wt_chain_out_channels(chain) * FRAMES;
        float *y = calloc(1, out_bytes);
        process_blocks(chain, x, y, FRAMES, sizes[k], FRAMES);
        if (!reference) {
            reference = y;
        } else {
            if (memcmp(reference, y, out_bytes)) fail_msg("blocks of %d frames give other bits", sizes[k]);
            free(y);
        }
        wt_chain_destroy(chain);
    }
    free(x), free(reference);
}

void check_latency(const wt_chain_desc *desc, double rate_hz)
{
    wt_chain *chain = build(desc, 1, rate_hz, NULL, 1);
    int latency = wt_chain_latency_frames(chain), n_frames = latency + 64;
    float *x = calloc((size_t)n_frames, sizeof *x), *y = calloc((size_t)n_frames, sizeof *y);
    x[0] = 0.5f;
    process_blocks(chain, x, y, n_frames, 64, n_frames);
    for (int n = 0; n < latency; n++) assert_true(fabsf(y[n]) < 1e-6f);
    assert_true(fabsf(y[latency]) > 1e-3f);
    free(x), free(y);
    wt_chain_destroy(chain);
}

wt_device *test_gpu(void)
{
    wt_device *device = NULL;
    if (wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &device) == WT_OK) return device;
    printf("skipped: no CUDA device (%s)\n", wt_last_error());
    return NULL;
}

// Feed both instances of a GPU chain from `x`, the second half a block later, and compare with the CPU's result.
static void run_on_gpu(wt_chain *chain, wt_device *gpu, const float *x, float *y, int channels, int from, int n_frames)
{
    int out_channels = wt_chain_out_channels(chain);
    size_t in_bytes = sizeof(float) * (size_t)channels * FRAMES;
    size_t out_bytes = sizeof(float) * (size_t)out_channels * FRAMES;
    wt_buffer *in, *out;
    wt_stream *stream;
    assert_ok(wt_buffer_create(gpu, WT_MEMORY_DEVICE, in_bytes, &in));
    assert_ok(wt_buffer_create(gpu, WT_MEMORY_DEVICE, 2 * out_bytes, &out));
    assert_ok(wt_stream_create(gpu, NULL, &stream));
    assert_ok(wt_stream_upload(stream, in, 0, x, in_bytes));
    assert_ok(wt_stream_upload(stream, out, 0, y, out_bytes));
    assert_ok(wt_stream_upload(stream, out, out_bytes, y, out_bytes));
    for (int done = from, n; done < from + n_frames; done += n) {
        n = from + n_frames - done < 777 ? from + n_frames - done : 777;
        wt_chain_job jobs[2];
        for (int k = 0; k < 2; k++)
            jobs[k] = (wt_chain_job){.instance = k, .in = in, .in_offset = sizeof(float) * (size_t)done,
                                     .in_stride = FRAMES, .out = out,
                                     .out_offset = sizeof(float) * (size_t)done + (size_t)k * out_bytes,
                                     .out_stride = FRAMES, .n_frames = n};
        assert_ok(wt_chain_enqueue(chain, stream, jobs, 2));
    }
    float *second = malloc(out_bytes);
    assert_ok(wt_stream_download(stream, y, out, 0, out_bytes));
    assert_ok(wt_stream_download(stream, second, out, out_bytes, out_bytes));
    assert_ok(wt_stream_synchronize(stream));
    assert_memory_equal(y, second, out_bytes); // both instances did the same work
    free(second);
    wt_buffer_destroy(in), wt_buffer_destroy(out), wt_stream_destroy(stream);
}

void check_cuda(const wt_chain_desc *desc, int channels, double rate_hz, int node, int param, float value,
                double bound_db)
{
    wt_device *gpu = test_gpu();
    if (!gpu) skip();
    wt_chain *cpu_chain = build(desc, channels, rate_hz, NULL, 1), *gpu_chain = build(desc, channels, rate_hz, gpu, 2);
    int out_channels = wt_chain_out_channels(cpu_chain);
    size_t out_floats = (size_t)out_channels * FRAMES;
    float *x = noise_signal(channels * FRAMES, 11), *expected = calloc(out_floats, sizeof(float)),
          *got = calloc(out_floats, sizeof(float));
    for (int c = 0; c < channels; c++)
        for (int n = 0; n < FRAMES; n++) x[c * FRAMES + n] *= n < FRAMES / 2 ? 0.1f : 1.5f;
    process_blocks(cpu_chain, x, expected, 2048, 64, FRAMES);
    run_on_gpu(gpu_chain, gpu, x, got, channels, 0, 2048);
    if (param >= 0) {
        assert_int_equal(wt_chain_set(cpu_chain, node, param, value), WT_OK);
        assert_int_equal(wt_chain_set(gpu_chain, node, param, value), WT_OK);
    }
    process_blocks(cpu_chain, x + 2048, expected + 2048, FRAMES - 2048, 64, FRAMES);
    run_on_gpu(gpu_chain, gpu, x, got, channels, 2048, FRAMES - 2048);
    assert_snr_db(expected, got, out_floats, bound_db);
    free(x), free(expected), free(got);
    wt_chain_destroy(cpu_chain), wt_chain_destroy(gpu_chain);
    wt_device_close(gpu);
}

void check_cuda_readings(const wt_chain_desc *desc, int channels, double rate_hz, float bound)
{
    enum { MOST = 128 };
    wt_device *gpu = test_gpu();
    if (!gpu) skip();
    wt_chain *cpu_chain = build(desc, channels, rate_hz, NULL, 1), *gpu_chain = build(desc, channels, rate_hz, gpu, 2);
    float *x = noise_signal(channels * FRAMES, 11);
    float *y = calloc((size_t)wt_chain_out_channels(cpu_chain) * FRAMES, sizeof *y), expected[MOST], got[MOST];
    process_blocks(cpu_chain, x, y, FRAMES, 64, FRAMES);
    run_on_gpu(gpu_chain, gpu, x, y, channels, 0, FRAMES);
    const int n = wt_chain_readings(cpu_chain, 0, expected, MOST);
    assert_int_equal(wt_chain_readings(gpu_chain, 0, got, MOST), n);
    for (int r = 0; r < n; r++)
        if (!(fabsf(got[r] - expected[r]) <= bound))
            fail_msg("reading %d of %d channels is %g, the CPU's is %g", r, channels, (double)got[r],
                     (double)expected[r]);
    free(x), free(y);
    wt_chain_destroy(cpu_chain), wt_chain_destroy(gpu_chain);
    wt_device_close(gpu);
}
