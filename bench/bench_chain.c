// Chains on one core and, where there is one, on a GPU.
//
//   bench_chain [filter]     rows whose name contains `filter`, for example "voice" or "cuda"
//
// CPU: noise that keeps the dynamics busy, 0.5 s of audio after a warm-up; a row is the time of one block. Real time is
// by the median, which other programs on the machine do not move:
//   chain  cpu voice  ch=2 block=64   p50 2.60  p99 2.90  max 9.00 us | 0.2 % of 1333 us | 513 x real time
// CUDA: instances of one chain in one launch, best of several; real time counts all of them:
//   chain  cuda voice  ch=2 instances=128 span=9600   740.0 us | 34595 x real time

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/chain.h>
#include <warptone/clock.h>

#define RATE 48000.0
enum { MAX_CHANNELS = 64, MAX_BLOCK = 256, CPU_FRAMES = 24000 };

static const wt_setting low_cut[] = {{"shape", "highpass", 0}, {"frequency_hz", NULL, 80}};
static const wt_setting warmth[] = {{"shape", "peak", 0}, {"frequency_hz", NULL, 200}, {"gain_db", NULL, 2}};
static const wt_setting mud[] = {{"shape", "peak", 0}, {"frequency_hz", NULL, 450}, {"gain_db", NULL, -3}};
static const wt_setting presence[] = {{"shape", "peak", 0}, {"frequency_hz", NULL, 3000}, {"gain_db", NULL, 3}};
static const wt_setting air[] = {{"shape", "peak", 0}, {"frequency_hz", NULL, 10000}, {"gain_db", NULL, 2}};
static const wt_setting louder[] = {{"threshold_db", NULL, -24}, {"makeup_db", NULL, 12}};

static const wt_setting fifth[] = {{"semitones", NULL, 7}};
static const wt_setting room[] = {{"synthetic_ms", NULL, 2000}, {"mix", NULL, 0.2}};

// The voice chain is all but the last of these.
static const wt_node_desc voice[] = {
    {.type = "biquad", .settings = low_cut, .n_settings = 2},
    {.type = "biquad", .settings = warmth, .n_settings = 3},
    {.type = "biquad", .settings = mud, .n_settings = 3},
    {.type = "biquad", .settings = presence, .n_settings = 3},
    {.type = "biquad", .settings = air, .n_settings = 3},
    {.type = "compressor", .settings = louder, .n_settings = 2},
    {.type = "limiter"},
    {.type = "convolution", .settings = room, .n_settings = 2},
};

static const struct {
    const char *name;
    const wt_node_desc *nodes;
    int n_nodes;
} chains[] = {
    {"voice", voice, 7},
    {"voice-room", voice, 8}, // with a convolution of 2 s
    {"biquad", voice, 1},
    {"biquad-x5", voice, 5},
    {"compressor", voice + 5, 1},
    {"limiter", voice + 6, 1},
    {"expander", &(const wt_node_desc){.type = "expander"}, 1},
    {"gate", &(const wt_node_desc){.type = "gate"}, 1},
    {"deesser", &(const wt_node_desc){.type = "deesser"}, 1},
    {"saturation", &(const wt_node_desc){.type = "saturation"}, 1},
    {"meter", &(const wt_node_desc){.type = "meter"}, 1},
    {"spectrum", &(const wt_node_desc){.type = "spectrum"}, 1},
    {"cqt", &(const wt_node_desc){.type = "cqt"}, 1},
    {"pitch", &(const wt_node_desc){.type = "pitch"}, 1},
    {"hpss", &(const wt_node_desc){.type = "hpss"}, 1},
    {"pitch-shift", &(const wt_node_desc){.type = "pitch_shift", .settings = fifth, .n_settings = 1}, 1},
    {"denoise", &(const wt_node_desc){.type = "denoise"}, 1},
};

static float *loud_noise(int count)
{
    float *x = malloc(sizeof *x * (size_t)count);
    unsigned long long seed = 1;
    for (int n = 0; x && n < count; n++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u; // Knuth, MMIX
        x[n] = (float)(int)(seed >> 32) * 0x1p-31f;
    }
    return x;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static wt_status cpu_row(const char *name, const wt_chain_desc *desc, int channels, int block, const float *noise)
{
    static double us[CPU_FRAMES];
    static float y[MAX_CHANNELS][MAX_BLOCK];
    const float *in[MAX_CHANNELS];
    float *out[MAX_CHANNELS];
    wt_chain *chain;
    wt_status status = wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = channels}, desc, &chain);
    if (status) return status;
    const int n_blocks = CPU_FRAMES / block;
    const double period_us = block / RATE * 1e6;
    for (int pass = 0; pass < 2; pass++) { // the first is the warm-up
        for (int k = 0; k < n_blocks; k++) {
            for (int c = 0; c < channels; c++) in[c] = noise + c * 997 + k * block, out[c] = y[c];
            int64_t begin = wt_clock_now_ns(NULL);
            (void)!wt_chain_process(chain, in, out, block);
            us[k] = (double)(wt_clock_now_ns(NULL) - begin) / 1e3;
        }
    }
    qsort(us, (size_t)n_blocks, sizeof *us, compare);
    printf("chain  cpu %-10s ch=%-2d block=%-3d   p50 %.2f  p99 %.2f  max %.2f us | %.2f %% of %.0f us | %.0f x real "
           "time\n",
           name, channels, block, us[n_blocks / 2], us[n_blocks * 99 / 100], us[n_blocks - 1],
           100 * us[n_blocks / 2] / period_us, period_us, period_us / us[n_blocks / 2]);
    wt_chain_destroy(chain);
    return WT_OK;
}

typedef struct batch {
    wt_chain *chain;
    wt_stream *stream;
    wt_buffer *audio; // [instances][channels][span], processed in place
    wt_chain_job *jobs;
} batch;

static void batch_close(batch *b)
{
    wt_buffer_destroy(b->audio);
    wt_stream_destroy(b->stream);
    wt_chain_destroy(b->chain);
    free(b->jobs);
}

static wt_status batch_open(batch *b, wt_device *gpu, const wt_chain_desc *desc, int channels, int instances, int span,
                            const float *noise)
{
    const size_t bytes = sizeof(float) * (size_t)channels * (size_t)span;
    *b = (batch){.jobs = calloc((size_t)instances, sizeof *b->jobs)};
    if (!b->jobs) return wt_fail(WT_ERR_NO_MEMORY, "bench: %d jobs", instances);
    wt_chain_config config = {.rate_hz = RATE, .channels = channels, .device = gpu, .n_instances = instances};
    wt_status status = wt_chain_create(&config, desc, &b->chain);
    if (!status) status = wt_stream_create(gpu, NULL, &b->stream);
    if (!status) status = wt_buffer_create(gpu, WT_MEMORY_DEVICE, bytes * (size_t)instances, &b->audio);
    for (int k = 0; k < instances && !status; k++) {
        b->jobs[k] = (wt_chain_job){.instance = k,
                                    .in = b->audio,
                                    .in_offset = bytes * (size_t)k,
                                    .in_stride = span,
                                    .out = b->audio,
                                    .out_offset = bytes * (size_t)k,
                                    .out_stride = span,
                                    .n_frames = span};
        status = wt_stream_upload(b->stream, b->audio, bytes * (size_t)k, noise, bytes);
    }
    return status ? status : wt_stream_synchronize(b->stream);
}

static wt_status cuda_row(wt_device *gpu, const char *name, const wt_chain_desc *desc, int channels, int instances,
                          int span, const float *noise)
{
    batch b;
    double best_us = 1e30;
    wt_status status = batch_open(&b, gpu, desc, channels, instances, span, noise);
    for (int repeat = 0; repeat < 8 && !status; repeat++) {
        int64_t begin = wt_clock_now_ns(NULL);
        status = wt_chain_enqueue(b.chain, b.stream, b.jobs, instances);
        if (!status) status = wt_stream_synchronize(b.stream);
        double us = (double)(wt_clock_now_ns(NULL) - begin) / 1e3;
        if (us < best_us) best_us = us;
    }
    if (!status)
        printf("chain  cuda %-10s ch=%-2d instances=%-4d span=%-4d   %.1f us | %.0f x real time\n", name, channels,
               instances, span, best_us, instances * (span / RATE * 1e6) / best_us);
    batch_close(&b);
    return status;
}

// One block after another, as live audio would come: launch, run and wait, seen from the host.
static wt_status block_row(wt_device *gpu, const char *name, const wt_chain_desc *desc, int channels, int instances,
                           int block, const float *noise)
{
    enum { BLOCKS = 4000 };
    static double us[BLOCKS];
    const double period_us = block / RATE * 1e6;
    batch b;
    wt_status status = batch_open(&b, gpu, desc, channels, instances, block, noise);
    for (int k = -200; k < BLOCKS && !status; k++) { // the first are the warm-up
        int64_t begin = wt_clock_now_ns(NULL);
        status = wt_chain_enqueue(b.chain, b.stream, b.jobs, instances);
        if (!status) status = wt_stream_synchronize(b.stream);
        if (k >= 0) us[k] = (double)(wt_clock_now_ns(NULL) - begin) / 1e3;
    }
    qsort(us, BLOCKS, sizeof *us, compare);
    if (!status)
        printf("chain  cuda %-10s channels=%d block=%d   p50 %.1f  p99 %.1f  p99.9 %.1f  max %.1f us | %.1f %% of %.0f "
               "us\n",
               name, channels * instances, block, us[BLOCKS / 2], us[BLOCKS * 99 / 100], us[BLOCKS * 999 / 1000],
               us[BLOCKS - 1], 100 * us[BLOCKS * 99 / 100] / period_us, period_us);
    batch_close(&b);
    return status;
}

// Pinned memory to pinned memory, as a long batch goes: the instances stand in four lanes, whose copies in, chains and
// copies out overlap, for eight spans in a row.
static wt_status copied_row(wt_device *gpu, const char *name, const wt_chain_desc *desc, int instances, int span,
                            const float *noise)
{
    enum { CHANNELS = 2, LANES = 4, REPEATS = 6, SPANS = 8 };
    const size_t bytes = sizeof(float) * CHANNELS * (size_t)span * (size_t)instances;
    batch b[LANES] = {{NULL}};
    wt_buffer *in[LANES] = {NULL}, *out[LANES] = {NULL};
    double best_us = 1e30, best_copy_us = 1e30;
    wt_status status = WT_OK;
    for (int k = 0; k < LANES && !status; k++) {
        status = batch_open(&b[k], gpu, desc, CHANNELS, instances / LANES, span, noise);
        if (!status) status = wt_buffer_create(gpu, WT_MEMORY_PINNED, bytes / LANES, &in[k]);
        if (!status) status = wt_buffer_create(gpu, WT_MEMORY_PINNED, bytes / LANES, &out[k]);
    }
    for (int repeat = 0; repeat < 2 * REPEATS && !status; repeat++) { // odd ones copy only
        int64_t begin = wt_clock_now_ns(NULL);
        for (int k = 0; k < SPANS * LANES && !status; k++) {
            status = wt_stream_copy(b[k % LANES].stream, b[k % LANES].audio, 0, in[k % LANES], 0, bytes / LANES);
            if (!status && repeat % 2 == 0)
                status =
                    wt_chain_enqueue(b[k % LANES].chain, b[k % LANES].stream, b[k % LANES].jobs, instances / LANES);
            if (!status)
                status = wt_stream_copy(b[k % LANES].stream, out[k % LANES], 0, b[k % LANES].audio, 0, bytes / LANES);
        }
        for (int k = 0; k < LANES && !status; k++) status = wt_stream_synchronize(b[k].stream);
        double us = (double)(wt_clock_now_ns(NULL) - begin) / 1e3 / SPANS,
               *best = repeat % 2 ? &best_copy_us : &best_us;
        if (us < *best) *best = us;
    }
    if (!status)
        printf("chain  cuda %-10s ch=%d instances=%d span=%d host to host   %.0f us | %.0f x real time | copies alone "
               "%.0f us, %.1f GB/s each way\n",
               name, CHANNELS, instances, span, best_us, instances * (span / RATE * 1e6) / best_us, best_copy_us,
               (double)bytes / best_copy_us / 1e3);
    for (int k = 0; k < LANES; k++) batch_close(&b[k]), wt_buffer_destroy(in[k]), wt_buffer_destroy(out[k]);
    return status;
}

static wt_status cuda_rows(wt_device *gpu, const char *name, const wt_chain_desc *desc, const float *noise)
{
    const int instances[] = {1, 128, 1024}, spans[] = {64, 9600};
    for (int i = 0; i < 3; i++)
        for (int s = 0; s < 2; s++) {
            wt_status status = cuda_row(gpu, name, desc, 2, instances[i], spans[s], noise);
            if (status) return status;
        }
    wt_status status = block_row(gpu, name, desc, 2, 128, 64, noise);
    return status ? status : copied_row(gpu, name, desc, 1000, 9600, noise);
}

static wt_status cpu_rows(const char *name, const wt_chain_desc *desc, const float *noise)
{
    const int channels[] = {1, 2, 8, 64}, blocks[] = {16, 64, 256};
    for (int c = 0; c < 4; c++)
        for (int b = 0; b < 3; b++) {
            wt_status status = cpu_row(name, desc, channels[c], blocks[b], noise);
            if (status) return status;
        }
    return WT_OK;
}

int main(int argc, char **argv)
{
    const char *filter = argc > 1 ? argv[1] : "";
    float *noise = loud_noise(CPU_FRAMES + MAX_CHANNELS * 997);
    wt_device *gpu = NULL;
    wt_status status = noise ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "bench: noise");
    if (wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &gpu))
        printf("chain  cuda: skipped, %s\n", wt_last_error());
    for (size_t k = 0; k < sizeof chains / sizeof *chains && !status; k++) {
        char row[2][64];
        const wt_chain_desc desc = {.nodes = chains[k].nodes, .n_nodes = chains[k].n_nodes};
        snprintf(row[0], sizeof row[0], "cpu %s", chains[k].name);
        snprintf(row[1], sizeof row[1], "cuda %s", chains[k].name);
        if (strstr(row[0], filter)) status = cpu_rows(chains[k].name, &desc, noise);
        if (gpu && !status && strstr(row[1], filter)) status = cuda_rows(gpu, chains[k].name, &desc, noise);
    }
    if (status) fprintf(stderr, "bench_chain: %s\n", wt_last_error());
    wt_device_close(gpu);
    free(noise);
    return status ? 1 : 0;
}
