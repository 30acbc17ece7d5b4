// Ops on a GPU whose forms for unusual sizes go another way than those that are usual: each beside a usual size.
// Signals of 60 s at 22.05 kHz, frames of 2048 every 512, on the device; best of some runs. One row a case:
//
//   cuda  tempogram 8192 lags          12.3 h/s of 64 signals
//
//   bench_wide [NAME]   rows whose name holds NAME

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/cqt.h>
#include <warptone/decompose.h>
#include <warptone/hpss.h>
#include <warptone/loudness.h>
#include <warptone/onset.h>
#include <warptone/tempo.h>

enum { RATE_HZ = 22050, SECONDS = 60, N = RATE_HZ * SECONDS, FRAMES = 1 + N / 512, BINS = 1025, REPEATS = 4 };
enum { PROGRAMME_HZ = 48000, BLOCK_S = 2 };

static wt_device *gpu;
static const char *filter = "";

static int say(const char *what)
{
    fprintf(stderr, "bench_wide: %s: %s\n", what, wt_last_error());
    return 1;
}

typedef wt_status (*queue)(void *plan, wt_stream *stream, wt_buffer *in, wt_buffer *out);

/// `in` holds noise of 0 .. 1, or -1 .. 1 when `sign`.
static float *noise(size_t n, int sign)
{
    float *x = malloc(n * sizeof *x);
    uint64_t seed = 1;
    for (size_t i = 0; x && i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = (float)(int32_t)(seed >> 32) * 0x1p-31f;
        if (!sign && x[i] < 0) x[i] = -x[i];
    }
    return x;
}

static int measure(const char *name, queue run, void *plan, int n_signals, double seconds, int sign, size_t in_bytes,
                   size_t out_bytes)
{
    wt_buffer *in, *out;
    wt_stream *stream;
    wt_event *begin, *end;
    double best = 1e30, us;
    float *x = noise(in_bytes / sizeof *x, sign);
    if (!x || wt_buffer_create(gpu, WT_MEMORY_DEVICE, in_bytes, &in) ||
        wt_buffer_create(gpu, WT_MEMORY_DEVICE, out_bytes, &out) || wt_stream_create(gpu, NULL, &stream) ||
        wt_event_create(gpu, &begin) || wt_event_create(gpu, &end) || wt_stream_upload(stream, in, 0, x, in_bytes) ||
        wt_stream_fill(stream, out, 0, 0x3c, out_bytes))
        return say(name);
    for (int i = 0; i < REPEATS; i++) {
        if (wt_event_record(begin, stream) || run(plan, stream, in, out) || wt_event_record(end, stream) ||
            wt_stream_synchronize(stream) || wt_event_elapsed_us(begin, end, &us))
            return say(name);
        if (us < best) best = us;
    }
    printf("cuda  %-28s %9.2f h/s of %d signals\n", name, n_signals * seconds / 3600.0 / (best * 1e-6), n_signals);
    fflush(stdout);
    wt_event_destroy(begin), wt_event_destroy(end), wt_stream_destroy(stream);
    wt_buffer_destroy(in), wt_buffer_destroy(out);
    free(x);
    return 0;
}

// ---- the ops

static wt_status queue_tempogram(void *plan, wt_stream *stream, wt_buffer *in, wt_buffer *out)
{
    return wt_tempogram_enqueue(plan, stream, in, 0, out, 0);
}

static int bench_tempogram(const char *name, int lags)
{
    const int n = 16;
    wt_tempogram *plan;
    if (!strstr(name, filter)) return 0;
    if (wt_tempogram_create(gpu, &(wt_tempogram_config){.win_length = lags, .n_frames = FRAMES, .n_signals = n}, &plan))
        return say(name);
    const size_t in = sizeof(float) * (size_t)n * FRAMES;
    const int failed = measure(name, queue_tempogram, plan, n, SECONDS, 0, in, in * (size_t)lags);
    wt_tempogram_destroy(plan);
    return failed;
}

static wt_status queue_cqt(void *plan, wt_stream *stream, wt_buffer *in, wt_buffer *out)
{
    return wt_cqt_enqueue(plan, stream, in, 0, N, out, 0);
}

static int bench_cqt(const char *name, wt_stft_pad pad)
{
    const int n = 128;
    wt_cqt *plan;
    if (!strstr(name, filter)) return 0;
    if (wt_cqt_create(gpu, &(wt_cqt_config){.channels = n, .pad = pad}, N, &plan)) return say(name);
    const size_t out = sizeof(float) * 2 * 84 * (size_t)n * (size_t)wt_cqt_frames(plan, N);
    const int failed = measure(name, queue_cqt, plan, n, SECONDS, 1, sizeof(float) * (size_t)n * N, out);
    wt_cqt_destroy(plan);
    return failed;
}

typedef struct factors {
    wt_nmf *nmf;
    size_t w, h; // bytes before them
} factors;

static wt_status queue_nmf(void *plan, wt_stream *stream, wt_buffer *in, wt_buffer *out)
{
    const factors *f = plan;
    return wt_nmf_enqueue(f->nmf, stream, in, 0, out, f->w, out, f->h);
}

static int bench_nmf(const char *name, int components)
{
    const int n = 8;
    factors f = {.h = sizeof(float) * (size_t)n * BINS * (size_t)components};
    const wt_nmf_config config = {
        .rows = BINS, .columns = FRAMES, .n_components = components, .n_iter = 20, .n_signals = n};
    if (!strstr(name, filter)) return 0;
    if (wt_nmf_create(gpu, &config, &f.nmf)) return say(name);
    const size_t spectra = sizeof(float) * (size_t)n * BINS * FRAMES;
    const int failed = measure(name, queue_nmf, &f, n, SECONDS, 0, spectra,
                               f.h + sizeof(float) * (size_t)n * FRAMES * (size_t)components);
    wt_nmf_destroy(f.nmf);
    return failed;
}

static wt_status queue_onset(void *plan, wt_stream *stream, wt_buffer *in, wt_buffer *out)
{
    return wt_onset_enqueue(plan, stream, in, 0, out, 0);
}

static int bench_onset(const char *name, int bands)
{
    const int n = 64;
    wt_onset *plan;
    if (!strstr(name, filter)) return 0;
    if (wt_onset_create(gpu, &(wt_onset_config){.n_mels = bands, .n_fft = 8192, .n_samples = N, .n_signals = n}, &plan))
        return say(name);
    const int failed = measure(name, queue_onset, plan, n, SECONDS, 1, sizeof(float) * (size_t)n * N,
                               sizeof(float) * (size_t)n * FRAMES);
    wt_onset_destroy(plan);
    return failed;
}

static wt_status queue_hpss(void *plan, wt_stream *stream, wt_buffer *in, wt_buffer *out)
{
    return wt_hpss_enqueue(plan, stream, in, 0, FRAMES, out, 0, out, wt_buffer_size_bytes(in));
}

static int bench_hpss(const char *name, int kernel)
{
    const int n = 32;
    wt_hpss *plan;
    const size_t spectra = sizeof(float) * (size_t)n * BINS * FRAMES;
    if (!strstr(name, filter)) return 0;
    if (wt_hpss_create(
            gpu, &(wt_hpss_config){.bins = BINS, .lines = n, .kernel_harmonic = kernel, .kernel_percussive = kernel},
            &plan))
        return say(name);
    const int failed = measure(name, queue_hpss, plan, n, SECONDS, 0, spectra, 2 * spectra);
    wt_hpss_destroy(plan);
    return failed;
}

static wt_status queue_loudness(void *plan, wt_stream *stream, wt_buffer *in, wt_buffer *out)
{
    wt_status status = wt_loudness_plan_enqueue(plan, stream, in, 0, PROGRAMME_HZ * BLOCK_S);
    return status ? status : wt_loudness_plan_query(plan, stream, out, 0);
}

/// Two channels at 48 kHz, a block of two seconds and the figures after it.
static int bench_loudness(const char *name, int n)
{
    wt_loudness_plan *plan;
    if (!strstr(name, filter)) return 0;
    if (wt_loudness_plan_create(gpu, &(wt_loudness_config){.channels = 2}, n, &plan)) return say(name);
    const int failed =
        measure(name, queue_loudness, plan, n, BLOCK_S, 1, sizeof(float) * 2 * (size_t)n * PROGRAMME_HZ * BLOCK_S,
                sizeof(wt_loudness_values) * (size_t)n);
    wt_loudness_plan_destroy(plan);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc > 1) filter = argv[1];
    if (wt_device_count() < 1 || wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &gpu)) {
        printf("bench_wide: no CUDA device\n");
        return 0;
    }
    int failed = bench_tempogram("tempogram 384 lags", 384) | bench_tempogram("tempogram 8192 lags", 8192);
    failed |= bench_cqt("cqt 84, zeros", WT_STFT_PAD_ZERO) | bench_cqt("cqt 84, reflected", WT_STFT_PAD_REFLECT);
    failed |= bench_nmf("nmf 8", 8) | bench_nmf("nmf 64", 64) | bench_nmf("nmf 96", 96) | bench_nmf("nmf 300", 300);
    failed |= bench_onset("onset 128 of 8192", 128) | bench_onset("onset 2000 of 8192", 2000);
    failed |= bench_hpss("hpss 31", 31) | bench_hpss("hpss 127", 127) | bench_hpss("hpss 301", 301);
    failed |= bench_loudness("loudness in blocks, 1", 1) | bench_loudness("loudness in blocks, 512", 512);
    wt_device_close(gpu);
    return failed;
}
