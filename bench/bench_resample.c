// Resampling: on one core against libsamplerate in the same run, and on a GPU where there is one.
//
//   bench_resample [cpu|cuda]
//
// One core, blocks of 1024 frames, best of several repeats; times real time of one channel:
//   resample  44100 to 48000 Hz  best  ch=1   ours 1234 x   libsamplerate best 321 x   3.84
// GPU, 64 lines of 60 s on the device, between events:
//   resample  44100 to 48000 Hz  fast  gpu    1.23 ms   3118 h/s

#include <samplerate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/clock.h>
#include <warptone/resample.h>

enum { SECONDS = 4, BLOCK = 1024, REPEATS = 5, LINES = 64, LINE_SECONDS = 60 };

typedef struct row {
    int in_hz, out_hz;
    wt_resample_quality quality;
    int peer; // libsamplerate's converter of like noise floor
} row;

static const row rows[] = {
    {44100, 48000, WT_RESAMPLE_BEST, SRC_SINC_BEST_QUALITY},
    {44100, 48000, WT_RESAMPLE_FAST, SRC_SINC_FASTEST},
    {48000, 44100, WT_RESAMPLE_BEST, SRC_SINC_BEST_QUALITY},
    {48000, 44100, WT_RESAMPLE_FAST, SRC_SINC_FASTEST},
    {48000, 16000, WT_RESAMPLE_BEST, SRC_SINC_BEST_QUALITY},
    {48000, 16000, WT_RESAMPLE_FAST, SRC_SINC_FASTEST},
    {44101, 47999, WT_RESAMPLE_FAST, SRC_SINC_FASTEST},
    {22050, 11025, WT_RESAMPLE_SOXR_HQ, SRC_SINC_MEDIUM_QUALITY},
    {44100, 48000, WT_RESAMPLE_SOXR_HQ, SRC_SINC_MEDIUM_QUALITY},
    {48000, 44100, WT_RESAMPLE_SOXR_HQ, SRC_SINC_MEDIUM_QUALITY},
    {44100, 16000, WT_RESAMPLE_SOXR_HQ, SRC_SINC_MEDIUM_QUALITY},
    {44101, 47999, WT_RESAMPLE_SOXR_HQ, SRC_SINC_MEDIUM_QUALITY},
    {44101, 47999, WT_RESAMPLE_BEST, SRC_SINC_BEST_QUALITY},
};
static const char *const names[] = {"best", "fast", "soxr_hq"};

static double ours_s(const row *r, int channels, const float *in, float *out)
{
    wt_resample *resampler = NULL;
    const int n_in = SECONDS * r->in_hz;
    if (wt_resample_create(&(wt_resample_config){r->in_hz, r->out_hz, channels, r->quality, false}, &resampler))
        return 0;
    double best = 1e30;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        const int64_t begin = wt_clock_now_ns(NULL);
        wt_resample_reset(resampler);
        for (int at = 0, done = 0, n_used, n_out; at < n_in; at += n_used, done += n_out) {
            const float *lines[2] = {in + at, in + at};
            float *outs[2] = {out + done, out + done};
            const int n = n_in - at < BLOCK ? n_in - at : BLOCK;
            wt_resample_process(resampler, lines, n, &n_used, outs, 4 * BLOCK, &n_out);
        }
        const double elapsed = (double)(wt_clock_now_ns(NULL) - begin) / 1e9;
        if (elapsed < best) best = elapsed;
    }
    wt_resample_destroy(resampler);
    return best;
}

static double peer_s(const row *r, float *in, float *out)
{
    double best = 1e30;
    for (int repeat = 0; repeat < 2; repeat++) {
        SRC_DATA data = {.data_in = in,
                         .data_out = out,
                         .input_frames = SECONDS * r->in_hz,
                         .output_frames = (SECONDS + 1) * r->out_hz,
                         .src_ratio = (double)r->out_hz / r->in_hz};
        const int64_t begin = wt_clock_now_ns(NULL);
        if (src_simple(&data, r->peer, 1)) return 0;
        const double elapsed = (double)(wt_clock_now_ns(NULL) - begin) / 1e9;
        if (elapsed < best) best = elapsed;
    }
    return best;
}

static void one_core(const row *r, float *in, float *out)
{
    const double peer = peer_s(r, in, out);
    for (int channels = 1; channels <= 2; channels++) {
        const double ours = ours_s(r, channels, in, out) / channels;
        printf("resample  %5d to %5d Hz  %-7s ch=%d   ours %6.0f x   libsamplerate %6.0f x   %.2f\n", r->in_hz,
               r->out_hz, names[r->quality], channels, SECONDS / ours, SECONDS / peer, peer / ours);
    }
}

static wt_status time_gpu(const row *r, wt_device *gpu, double *best_us)
{
    wt_resample_plan *plan = NULL;
    wt_stream *stream = NULL;
    wt_buffer *in = NULL, *out = NULL;
    wt_event *begin = NULL, *end = NULL;
    const wt_resample_plan_config config = {r->in_hz, r->out_hz, r->quality, LINES, LINE_SECONDS * r->in_hz};
    wt_status status = wt_resample_plan_create(gpu, &config, &plan);
    if (!status) status = wt_stream_create(gpu, NULL, &stream);
    if (!status) status = wt_event_create(gpu, &begin);
    if (!status) status = wt_event_create(gpu, &end);
    const size_t in_bytes = sizeof(float) * LINES * (size_t)config.n_in;
    if (!status) status = wt_buffer_create(gpu, WT_MEMORY_DEVICE, in_bytes, &in);
    const size_t out_bytes = status ? 0 : sizeof(float) * LINES * (size_t)wt_resample_plan_out_frames(plan);
    if (!status) status = wt_buffer_create(gpu, WT_MEMORY_DEVICE, out_bytes, &out);
    *best_us = 1e30;
    for (int repeat = 0; repeat < 20 && !status; repeat++) {
        double us = 0;
        status = wt_event_record(begin, stream);
        if (!status) status = wt_resample_plan_enqueue(plan, stream, in, 0, out, 0);
        if (!status) status = wt_event_record(end, stream);
        if (!status) status = wt_stream_synchronize(stream);
        if (!status) status = wt_event_elapsed_us(begin, end, &us);
        if (!status && us < *best_us) *best_us = us;
    }
    wt_event_destroy(begin);
    wt_event_destroy(end);
    wt_buffer_destroy(in);
    wt_buffer_destroy(out);
    wt_stream_destroy(stream);
    wt_resample_plan_destroy(plan);
    return status;
}

static int all_on_one_core(void)
{
    float *in = malloc(sizeof *in * SECONDS * 48000), *out = malloc(sizeof *out * (SECONDS + 1) * 48000);
    if (!in || !out) return 1;
    for (int n = 0; n < SECONDS * 48000; n++) in[n] = (float)(n * 2654435761u >> 8) * 0x1p-23f - 1;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) one_core(&rows[k], in, out);
    free(in);
    free(out);
    return 0;
}

int main(int argc, char **argv)
{
    const int n_rows = (int)(sizeof rows / sizeof *rows);
    const char *backend = argc > 1 ? argv[1] : "";
    wt_device *gpu = NULL;
    if (strcmp(backend, "cuda") && all_on_one_core()) return 1;
    if (!strcmp(backend, "cpu")) return 0;
    if (!wt_device_count() || wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &gpu)) {
        printf("resample  gpu rows skipped: %s\n", wt_last_error());
        return 0;
    }
    for (int k = 0; k < n_rows; k++) {
        double us = 0;
        if (time_gpu(&rows[k], gpu, &us))
            printf("resample  gpu: %s\n", wt_last_error());
        else
            printf("resample  %5d to %5d Hz  %-7s gpu    %8.3f ms   %8.0f h/s\n", rows[k].in_hz, rows[k].out_hz,
                   names[rows[k].quality], us / 1e3, LINES * LINE_SECONDS / 3600.0 / (us / 1e6));
    }
    wt_device_close(gpu);
    return 0;
}
