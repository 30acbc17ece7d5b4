// The voice front end and its neighbours over whole signals, mono at 48 kHz, data on the device, synchronised. CPU:
// times real time of one core by the time that processors worked for it, signals of 20 s. CUDA: 30 s signals, one
// alone, then 64 and 512 side by side: times real time, and hours of audio a second.
//   bench_voice [NAME [cpu|cuda]]   ops whose name holds NAME, "" = all; one backend
//   agc          cpu    9000 x
//   agc          cuda   1 signal  5000 x   64 signals  80.0 h/s   512 signals  200.0 h/s
// (The figures above only show the form.)

#include "support/cpu_time.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/agc.h>
#include <warptone/clock.h>
#include <warptone/db.h>
#include <warptone/denoise.h>
#include <warptone/echo.h>
#include <warptone/filter.h>
#include <warptone/fir_design.h>
#include <warptone/overlap_save.h>
#include <warptone/vad.h>

enum { RATE_HZ = 48000, CPU_SECONDS = 20, CUDA_SECONDS = 30, REPEATS = 3 };

typedef struct op {
    const char *name;
    wt_status (*create)(wt_device *device, int n_signals, int n, void **plan);
    void (*destroy)(void *plan);
    wt_status (*enqueue)(void *plan, wt_stream *stream, const wt_buffer *in, int n, wt_buffer *out);
} op;

static wt_status agc_create(wt_device *device, int n_signals, int n, void **plan)
{
    (void)n;
    return wt_agc_plan_create(device, &(wt_agc_config){.channels = 1}, n_signals, (wt_agc_plan **)plan);
}

static void agc_destroy(void *plan) { wt_agc_plan_destroy(plan); }

static wt_status agc_enqueue(void *plan, wt_stream *stream, const wt_buffer *in, int n, wt_buffer *out)
{
    return wt_agc_plan_enqueue(plan, stream, in, 0, n, out, 0);
}

static wt_status denoise_of(wt_device *device, int n_signals, int n, wt_denoise_mode mode, void **plan)
{
    const wt_denoise_plan_config config = {{.channels = 1, .mode = mode}, n_signals, n};
    return wt_denoise_plan_create(device, &config, (wt_denoise_plan **)plan);
}

#define DENOISE(noun, mode)                                                                                            \
    static wt_status noun##_create(wt_device *device, int n_signals, int n, void **plan)                               \
    {                                                                                                                  \
        return denoise_of(device, n_signals, n, mode, plan);                                                           \
    }
DENOISE(lsa, WT_DENOISE_LSA)
DENOISE(wiener, WT_DENOISE_WIENER)
DENOISE(gate, WT_DENOISE_GATE)

static void denoise_destroy(void *plan) { wt_denoise_plan_destroy(plan); }

static wt_status denoise_enqueue(void *plan, wt_stream *stream, const wt_buffer *in, int n, wt_buffer *out)
{
    return wt_denoise_plan_enqueue(plan, stream, in, 0, n, out, 0);
}

static wt_status echo_create(wt_device *device, int n_signals, int n, void **plan)
{
    return wt_echo_plan_create(device, &(wt_echo_plan_config){.n_signals = n_signals, .max_frames = n},
                               (wt_echo_plan **)plan);
}

static void echo_destroy(void *plan) { wt_echo_plan_destroy(plan); }

// The microphone hears what is played.
static wt_status echo_enqueue(void *plan, wt_stream *stream, const wt_buffer *in, int n, wt_buffer *out)
{
    return wt_echo_plan_enqueue(plan, stream, in, 0, in, 0, n, out, 0);
}

static wt_status vad_create(wt_device *device, int n_signals, int n, void **plan)
{
    return wt_vad_plan_create(device, &(wt_vad_plan_config){.n_samples = n, .n_lines = n_signals},
                              (wt_vad_plan **)plan);
}

static void vad_destroy(void *plan) { wt_vad_plan_destroy(plan); }

static wt_status vad_enqueue(void *plan, wt_stream *stream, const wt_buffer *in, int n, wt_buffer *out)
{
    (void)n;
    return wt_vad_plan_enqueue(plan, stream, in, 0, NULL, NULL, 0, out, 0);
}

static wt_status savgol_create(wt_device *device, int n_signals, int n, void **plan)
{
    return wt_savgol_rows_create(device, &(wt_savgol_config){.n_taps = 31, .order = 3}, n_signals, n,
                                 (wt_savgol_rows **)plan);
}

static void savgol_destroy(void *plan) { wt_savgol_rows_destroy(plan); }

static wt_status savgol_enqueue(void *plan, wt_stream *stream, const wt_buffer *in, int n, wt_buffer *out)
{
    (void)n;
    return wt_savgol_rows_enqueue(plan, stream, in, 0, out, 0);
}

static wt_status sections_create(wt_device *device, int n_signals, int n, void **plan)
{
    (void)n;
    double sos[WT_SOS_MAX_SECTIONS][6];
    wt_sos_config config = {.sos = sos[0], .channels = 1};
    wt_status status = wt_sos_design(&(wt_sos_design_config){.order = 4, .rate_hz = RATE_HZ, .edge_hz = {1000}}, sos[0],
                                     &config.n_sections);
    return status ? status : wt_sos_plan_create(device, &config, n_signals, (wt_sos_plan **)plan);
}

static void sections_destroy(void *plan) { wt_sos_plan_destroy(plan); }

static wt_status sections_enqueue(void *plan, wt_stream *stream, const wt_buffer *in, int n, wt_buffer *out)
{
    return wt_sos_plan_enqueue(plan, stream, in, 0, n, out, 0);
}

static wt_status convolve_create(wt_device *device, int n_signals, int n, void **plan)
{
    float taps[512];
    for (int k = 0; k < 512; k++) taps[k] = expf((float)-k / 60) * (k % 3 ? 0.1f : -0.2f);
    const wt_overlap_save_plan_config config = {{taps, 512, 1}, n_signals, n};
    return wt_overlap_save_plan_create(device, &config, (wt_overlap_save_plan **)plan);
}

static void convolve_destroy(void *plan) { wt_overlap_save_plan_destroy(plan); }

static wt_status convolve_enqueue(void *plan, wt_stream *stream, const wt_buffer *in, int n, wt_buffer *out)
{
    return wt_overlap_save_plan_enqueue(plan, stream, in, 0, n, out, 0);
}

static wt_status median_create(wt_device *device, int n_signals, int n, void **plan)
{
    return wt_db_create(device, &(wt_db_config){.reference = WT_DB_REF_MEDIAN}, false, n_signals, n, (wt_db **)plan);
}

static void median_destroy(void *plan) { wt_db_destroy(plan); }

static wt_status median_enqueue(void *plan, wt_stream *stream, const wt_buffer *in, int n, wt_buffer *out)
{
    (void)n;
    return wt_db_enqueue(plan, stream, in, 0, out, 0);
}

static const op ops[] = {
    {"agc", agc_create, agc_destroy, agc_enqueue},
    {"denoise lsa", lsa_create, denoise_destroy, denoise_enqueue},
    {"denoise wiener", wiener_create, denoise_destroy, denoise_enqueue},
    {"denoise gate", gate_create, denoise_destroy, denoise_enqueue},
    {"echo 256 ms", echo_create, echo_destroy, echo_enqueue},
    {"vad", vad_create, vad_destroy, vad_enqueue},
    {"sections, 2", sections_create, sections_destroy, sections_enqueue},
    {"512 taps", convolve_create, convolve_destroy, convolve_enqueue},
    {"savgol 31", savgol_create, savgol_destroy, savgol_enqueue},
    {"dB of median", median_create, median_destroy, median_enqueue},
};

// A voice that glides and breathes in noise.
static void fill(float *pcm, size_t n)
{
    unsigned seed = 1;
    for (size_t i = 0; i < n; i++) {
        const double t = (double)i / RATE_HZ, tone = sin(2 * 3.14159265358979 * (220 * t + 20 * sin(t)));
        seed = seed * 1664525u + 1013904223u;
        pcm[i] = (float)((fmod(t, 1) < 0.7 ? 0.3 * tone : 0) + 0.02 * ((double)seed / 4294967296.0 - 0.5));
    }
}

// Best of several, seconds by the clock and of processors.
static wt_status time_op(const op *o, wt_device *device, int n_signals, int n, double *best_s, double *best_cpu_s)
{
    const size_t bytes = (size_t)n * sizeof(float);
    void *plan = NULL;
    wt_stream *stream = NULL;
    wt_buffer *in = NULL, *out = NULL;
    float *pcm = malloc(bytes);
    wt_status status = pcm ? o->create(device, n_signals, n, &plan) : WT_ERR_NO_MEMORY;
    if (!status) status = wt_stream_create(device, NULL, &stream);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, bytes * (size_t)n_signals, &in);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, bytes * (size_t)n_signals, &out);
    if (pcm) fill(pcm, (size_t)n);
    for (int s = 0; s < n_signals && !status; s++) status = wt_stream_upload(stream, in, bytes * (size_t)s, pcm, bytes);
    if (!status) status = wt_stream_synchronize(stream);
    *best_s = *best_cpu_s = 1e30;
    for (int repeat = 0; repeat < REPEATS && !status; repeat++) {
        const int64_t begin = wt_clock_now_ns(NULL);
        const double begin_cpu = bench_cpu_s();
        status = o->enqueue(plan, stream, in, n, out);
        if (!status) status = wt_stream_synchronize(stream);
        *best_s = fmin(*best_s, (double)(wt_clock_now_ns(NULL) - begin) * 1e-9);
        *best_cpu_s = fmin(*best_cpu_s, bench_cpu_s() - begin_cpu);
    }
    if (status) fprintf(stderr, "bench_voice: %s: %s\n", o->name, wt_last_error());
    wt_buffer_destroy(in), wt_buffer_destroy(out);
    wt_stream_destroy(stream);
    o->destroy(plan);
    free(pcm);
    return status;
}

static int bench_cpu(wt_device *device, const op *o)
{
    double seconds, cpu_s;
    if (time_op(o, device, 1, RATE_HZ * CPU_SECONDS, &seconds, &cpu_s)) return 1;
    printf("%-15s cpu  %8.0f x\n", o->name, CPU_SECONDS / cpu_s);
    return 0;
}

static int bench_cuda(wt_device *device, const op *o)
{
    static const int batches[] = {1, 64, 512};
    double seconds[3], cpu_s;
    for (int k = 0; k < 3; k++)
        if (time_op(o, device, batches[k], RATE_HZ * CUDA_SECONDS, &seconds[k], &cpu_s)) return 1;
    printf("%-15s cuda  1 signal %8.0f x   64 signals %8.1f h/s   512 signals %8.1f h/s\n", o->name,
           CUDA_SECONDS / seconds[0], CUDA_SECONDS * 64 / 3600.0 / seconds[1],
           CUDA_SECONDS * 512 / 3600.0 / seconds[2]);
    return 0;
}

static int bench(wt_backend backend, const char *filter)
{
    wt_device *device;
    int failed = 0;
    if (wt_device_open(&(wt_device_config){.backend = backend, .n_threads = 1}, &device)) {
        fprintf(stderr, "bench_voice: %s\n", wt_last_error());
        return 1;
    }
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (!strstr(ops[i].name, filter)) continue;
        failed |= backend == WT_BACKEND_CPU ? bench_cpu(device, &ops[i]) : bench_cuda(device, &ops[i]);
        fflush(stdout);
    }
    wt_device_close(device);
    return failed;
}

int main(int argc, char **argv)
{
    const char *filter = argc > 1 ? argv[1] : "", *backend = argc > 2 ? argv[2] : "";
    int failed = strcmp(backend, "cuda") ? bench(WT_BACKEND_CPU, filter) : 0;
    if (wt_device_count() < 1)
        printf("bench_voice: no CUDA device\n");
    else if (strcmp(backend, "cpu"))
        failed |= bench(WT_BACKEND_CUDA, filter);
    return failed;
}
