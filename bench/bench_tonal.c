// Tonal analysis: 60 s of mono at 22.05 kHz on one core, in times real time by the time that it worked; on a GPU, hours
// of audio a second with the signals resident there. One row a case:
//   cqt   84       one core   5000 x
//   hpss  2048/512 one core    800 x
//   cuda  cqt 84     400.0 h/s
// "cuda" as argument leaves out the CPU, another word all but the CPU's rows whose names hold it.

#include "support/cpu_time.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/cqt.h>
#include <warptone/hpss.h>
#include <warptone/icqt.h>
#include <warptone/nsgt.h>
#include <warptone/salience.h>
#include <warptone/stft.h>
#include <warptone/tuning.h>

enum { RATE_HZ = 22050, SECONDS = 60, REPEATS = 8, GPU_LINES = 256, GPU_FRAMES = 1 + RATE_HZ * SECONDS / 512 };
enum { NSGT_SLICES = (RATE_HZ * SECONDS - 1) / 32768 + 2 };

static int say(const char *what)
{
    fprintf(stderr, "bench_tonal: %s: %s\n", what, wt_last_error());
    return 1;
}

static float *music(size_t n)
{
    float *x = malloc(n * sizeof *x);
    uint64_t seed = 1;
    for (size_t i = 0; x && i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = (float)(int32_t)(seed >> 32) * 0x1p-31f;
    }
    return x;
}

static double seconds_since(double begin) { return bench_cpu_s() - begin; }

// ---- one core

static int bench_cqt(const float *x, const char *name, wt_cqt_config config)
{
    const int64_t n = (int64_t)RATE_HZ * SECONDS;
    wt_cqt *cqt;
    if (wt_cqt_create(NULL, &config, 0, &cqt)) return say("cqt");
    float *out = malloc((size_t)(wt_cqt_frames(cqt, n) * wt_cqt_bins(cqt)) * 2 * sizeof *out);
    double best = 1e30;
    for (int i = 0; out && i < REPEATS; i++) {
        const double begin = bench_cpu_s();
        if (wt_cqt_run(cqt, x, n, out)) return say("cqt");
        if (seconds_since(begin) < best) best = seconds_since(begin);
    }
    printf("%-16s one core  %7.0f x\n", name, SECONDS / best);
    wt_cqt_destroy(cqt);
    free(out);
    return 0;
}

static int bench_icqt(const float *x)
{
    const int64_t frames = 1 + (int64_t)RATE_HZ * SECONDS / 512;
    wt_icqt *icqt;
    if (wt_icqt_create(NULL, &(wt_cqt_config){0}, frames, &icqt)) return say("icqt");
    float *y = malloc((size_t)wt_icqt_samples(icqt, frames) * sizeof *y);
    double best = 1e30;
    for (int i = 0; y && i < REPEATS; i++) { // 84 pairs a frame are fewer numbers than 512 samples
        const double begin = bench_cpu_s();
        if (wt_icqt_run(icqt, x, frames, 0, y)) return say("icqt");
        if (seconds_since(begin) < best) best = seconds_since(begin);
    }
    printf("%-16s one core  %7.0f x\n", "icqt 84", SECONDS / best);
    wt_icqt_destroy(icqt);
    free(y);
    return 0;
}

// The spectrogram's separation alone, and from audio to two signals.
static int bench_hpss(const float *x)
{
    const int64_t n = (int64_t)RATE_HZ * SECONDS;
    wt_stft *stft;
    wt_hpss *hpss;
    if (wt_stft_create(&(wt_stft_config){.n_fft = 2048}, &stft)) return say("stft");
    if (wt_hpss_create(NULL, &(wt_hpss_config){.bins = 1025, .complex_in = true}, &hpss)) return say("hpss");
    const int64_t frames = wt_stft_frames(stft, n);
    const size_t floats = (size_t)frames * 1025 * 2;
    float *z = malloc(floats * sizeof *z), *part = malloc(2 * floats * sizeof *part);
    float *y = malloc((size_t)n * sizeof *y);
    double best[2] = {1e30, 1e30};
    for (int i = 0; z && part && y && i < REPEATS; i++) {
        const double begin = bench_cpu_s();
        int failed = wt_stft_forward(stft, x, n, z);
        const double middle = bench_cpu_s();
        failed |= wt_hpss_run(hpss, z, frames, part, part + floats);
        if (seconds_since(middle) < best[0]) best[0] = seconds_since(middle);
        for (int k = 0; k < 2; k++) failed |= wt_stft_inverse(stft, part + (size_t)k * floats, frames, n, y);
        if (seconds_since(begin) < best[1]) best[1] = seconds_since(begin);
        if (failed) return say("hpss");
    }
    printf("%-16s one core  %7.0f x\n%-16s one core  %7.0f x\n", "hpss spectrogram", SECONDS / best[0], "hpss audio",
           SECONDS / best[1]);
    wt_stft_destroy(stft), wt_hpss_destroy(hpss);
    free(z), free(part), free(y);
    return 0;
}

static int bench_nsgt(const float *x)
{
    const int64_t n = (int64_t)RATE_HZ * SECONDS;
    wt_nsgt *s;
    if (wt_nsgt_create(NULL, &(wt_nsgt_config){.n_slices = NSGT_SLICES}, &s)) return say("nsgt");
    float *points = malloc((size_t)wt_nsgt_coefficients(s) * 2 * sizeof *points), *y = calloc((size_t)n, sizeof *y);
    double best[2] = {1e30, 1e30};
    for (int i = 0; points && y && i < REPEATS; i++) {
        const double begin = bench_cpu_s();
        int failed = wt_nsgt_forward(s, x, n, 0, points);
        if (seconds_since(begin) < best[0]) best[0] = seconds_since(begin);
        const double middle = bench_cpu_s();
        failed |= wt_nsgt_inverse(s, points, n, 0, y);
        if (seconds_since(middle) < best[1]) best[1] = seconds_since(middle);
        if (failed) return say("nsgt");
    }
    printf("%-16s one core  %7.0f x\n%-16s one core  %7.0f x\n", "nsgt forward", SECONDS / best[0], "nsgt inverse",
           SECONDS / best[1]);
    wt_nsgt_destroy(s);
    free(points), free(y);
    return 0;
}

// Both of a spectrogram that is there; salience of the harmonics 1, 2, 3, 4.
static wt_status salience_create(wt_device *device, wt_salience **plan)
{
    static const double harmonics[] = {1, 2, 3, 4};
    double frequencies[1025];
    for (int k = 0; k < 1025; k++) frequencies[k] = k * RATE_HZ / 2048.0;
    return wt_salience_create(
        device,
        &(wt_salience_config){.n_bins = 1025, .frequencies = frequencies, .n_harmonics = 4, .harmonics = harmonics},
        plan);
}

static int bench_spectrogram(const float *noise)
{
    const size_t floats = (size_t)GPU_FRAMES * 1025;
    wt_salience *salience;
    float *x = malloc(floats * sizeof *x), *y = malloc(floats * sizeof *y);
    double best[2] = {1e30, 1e30}, tuning;
    if (!x || !y || salience_create(NULL, &salience)) return say("salience");
    for (size_t i = 0; i < floats; i++) x[i] = noise[i % (RATE_HZ * SECONDS)] * noise[i % (RATE_HZ * SECONDS)];
    for (int i = 0; i < REPEATS; i++) {
        const double begin = bench_cpu_s();
        if (wt_tuning_estimate(&(wt_piptrack_config){0}, x, GPU_FRAMES, 0, 0, &tuning)) return say("tuning");
        if (seconds_since(begin) < best[0]) best[0] = seconds_since(begin);
        const double middle = bench_cpu_s();
        wt_salience_run(salience, x, GPU_FRAMES, y);
        if (seconds_since(middle) < best[1]) best[1] = seconds_since(middle);
    }
    printf("%-16s one core  %7.0f x\n%-16s one core  %7.0f x\n", "tuning", SECONDS / best[0], "salience 4",
           SECONDS / best[1]);
    wt_salience_destroy(salience);
    free(x), free(y);
    return 0;
}

// ---- a GPU: noise on every line, timed by events

typedef wt_status (*queue)(void *plan, wt_stream *stream, wt_buffer *in, wt_buffer *out);

static wt_status queue_cqt(void *plan, wt_stream *stream, wt_buffer *in, wt_buffer *out)
{
    return wt_cqt_enqueue(plan, stream, in, 0, (int64_t)RATE_HZ * SECONDS, out, 0);
}

static wt_status queue_icqt(void *plan, wt_stream *stream, wt_buffer *in, wt_buffer *out)
{
    return wt_icqt_enqueue(plan, stream, in, 0, GPU_FRAMES, 0, out, 0);
}

static wt_status queue_nsgt(void *plan, wt_stream *stream, wt_buffer *in, wt_buffer *out)
{
    return wt_nsgt_enqueue_forward(plan, stream, in, 0, (int64_t)RATE_HZ * SECONDS, 0, out, 0);
}

static wt_status queue_hpss(void *plan, wt_stream *stream, wt_buffer *in, wt_buffer *out)
{
    return wt_hpss_enqueue(plan, stream, in, 0, GPU_FRAMES, out, 0, out, wt_buffer_size_bytes(out) / 2);
}

static wt_status queue_tuning(void *plan, wt_stream *stream, wt_buffer *in, wt_buffer *out)
{
    return wt_tuning_enqueue(plan, stream, in, 0, out, 0);
}

static wt_status queue_salience(void *plan, wt_stream *stream, wt_buffer *in, wt_buffer *out)
{
    return wt_salience_enqueue(plan, stream, in, 0, (int64_t)GPU_FRAMES * GPU_LINES, out, 0);
}

static int time_queue(wt_device *gpu, const char *name, queue run, void *plan, size_t in_bytes, size_t out_bytes)
{
    wt_buffer *in, *out;
    wt_stream *stream;
    wt_event *begin, *end;
    double best = 1e30, us;
    float *x = music(in_bytes / sizeof *x);
    if (!x || wt_buffer_create(gpu, WT_MEMORY_DEVICE, in_bytes, &in) ||
        wt_buffer_create(gpu, WT_MEMORY_DEVICE, out_bytes, &out) || wt_stream_create(gpu, NULL, &stream) ||
        wt_event_create(gpu, &begin) || wt_event_create(gpu, &end) || wt_stream_upload(stream, in, 0, x, in_bytes))
        return say(name);
    for (int i = 0; i < REPEATS; i++) {
        if (wt_event_record(begin, stream) || run(plan, stream, in, out) || wt_event_record(end, stream) ||
            wt_stream_synchronize(stream) || wt_event_elapsed_us(begin, end, &us))
            return say(name);
        if (us < best) best = us;
    }
    printf("cuda  %-16s %7.1f h/s\n", name, GPU_LINES * SECONDS / 3600.0 / (best * 1e-6));
    wt_event_destroy(begin), wt_event_destroy(end), wt_stream_destroy(stream);
    wt_buffer_destroy(in), wt_buffer_destroy(out);
    free(x);
    return 0;
}

static int bench_gpu(wt_device *gpu)
{
    const int64_t n = (int64_t)RATE_HZ * SECONDS;
    wt_cqt *cqt;
    wt_hpss *hpss;
    wt_icqt *icqt;
    if (wt_cqt_create(gpu, &(wt_cqt_config){.channels = GPU_LINES}, n, &cqt)) return say("cqt");
    if (wt_hpss_create(gpu, &(wt_hpss_config){.bins = 1025, .lines = GPU_LINES}, &hpss)) return say("hpss");
    const size_t cqt_bytes = (size_t)(wt_cqt_frames(cqt, n) * 84 * 2) * GPU_LINES * sizeof(float);
    const size_t spectrum = (size_t)GPU_FRAMES * 1025 * GPU_LINES * sizeof(float);
    int failed = time_queue(gpu, "cqt 84", queue_cqt, cqt, (size_t)n * GPU_LINES * sizeof(float), cqt_bytes);
    failed |= time_queue(gpu, "hpss spectrogram", queue_hpss, hpss, spectrum, 2 * spectrum);
    wt_cqt_destroy(cqt), wt_hpss_destroy(hpss);
    if (wt_icqt_create(gpu, &(wt_cqt_config){.channels = GPU_LINES}, GPU_FRAMES, &icqt)) return say("icqt");
    failed |= time_queue(gpu, "icqt 84", queue_icqt, icqt, cqt_bytes, (size_t)n * GPU_LINES * sizeof(float));
    wt_icqt_destroy(icqt);
    wt_tuning *tuning;
    wt_salience *salience;
    if (wt_tuning_create(gpu, &(wt_tuning_config){.n_frames = GPU_FRAMES, .n_signals = GPU_LINES}, &tuning))
        return say("tuning");
    if (salience_create(gpu, &salience)) return say("salience");
    failed |= time_queue(gpu, "tuning", queue_tuning, tuning, spectrum, GPU_LINES * sizeof(double));
    failed |= time_queue(gpu, "salience 4", queue_salience, salience, spectrum, spectrum);
    wt_tuning_destroy(tuning), wt_salience_destroy(salience);
    wt_nsgt *nsgt;
    if (wt_nsgt_create(gpu, &(wt_nsgt_config){.n_slices = NSGT_SLICES, .channels = GPU_LINES}, &nsgt))
        return say("nsgt");
    failed |= time_queue(gpu, "nsgt forward", queue_nsgt, nsgt, (size_t)n * GPU_LINES * sizeof(float),
                         (size_t)wt_nsgt_coefficients(nsgt) * 2 * sizeof(float));
    wt_nsgt_destroy(nsgt);
    return failed;
}

static bool wanted(const char *filter, const char *name) { return !filter || strstr(name, filter); }

static int bench_cpu(const char *filter)
{
    float *x = music((size_t)RATE_HZ * SECONDS);
    if (!x) return 1;
    int failed = wanted(filter, "cqt 84") && bench_cqt(x, "cqt 84", (wt_cqt_config){0});
    failed |= wanted(filter, "vqt 84") && bench_cqt(x, "vqt 84", (wt_cqt_config){.erb_gamma = true});
    failed |= wanted(filter, "cqt 252") &&
              bench_cqt(x, "cqt 252", (wt_cqt_config){.n_bins = 252, .bins_per_octave = 36});
    failed |= wanted(filter, "icqt 84") && bench_icqt(x);
    failed |= wanted(filter, "hpss") && bench_hpss(x);
    failed |= wanted(filter, "nsgt") && bench_nsgt(x);
    failed |= wanted(filter, "tuning salience") && bench_spectrogram(x);
    free(x);
    return failed;
}

int main(int argc, char **argv)
{
    const bool no_cpu = argc > 1 && !strcmp(argv[1], "cuda");
    int failed = no_cpu ? 0 : bench_cpu(argc > 1 ? argv[1] : NULL);
    wt_device *gpu;
    if (argc > 1 && !no_cpu) return failed;
    if (wt_device_count() < 1 || wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &gpu)) {
        printf("skipped on a GPU: %s\n", wt_last_error());
        return failed;
    }
    failed |= bench_gpu(gpu);
    wt_device_close(gpu);
    return failed;
}
