// Pitch, rhythm and time of mono signals at 22.05 kHz, as librosa's defaults have them. CPU: times real time, a batch
// of two minutes on the device's threads, by the clock and by the time that processors worked for it. CUDA: hours of
// audio a second, signals on the device, between two events.
//   bench_pitch [NAME [cpu|cuda]]   ops whose name holds NAME, "" = all; one backend
//   yin      cpu   9000 x     cuda  120.0 h/s
// (The figures above only show the form.)

#include "support/cpu_time.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/autocorrelate.h>
#include <warptone/clock.h>
#include <warptone/onset.h>
#include <warptone/pitch.h>
#include <warptone/stretch.h>
#include <warptone/tempo.h>

enum { RATE_HZ = 22050, SECONDS = 30, CPU_SIGNALS = 4, CUDA_SIGNALS = 1024, REPEATS = 5 };

typedef struct op {
    const char *name;
    wt_status (*create)(wt_device *device, int n_signals, void **plan);
    void (*destroy)(void *plan);
    wt_status (*enqueue)(void *plan, wt_stream *stream, const wt_buffer *in, wt_buffer *out);
    size_t out_floats; // of a signal, at most
    bool has_cuda;
} op;

static wt_pitch_frames frames_of(int n_signals)
{
    return (wt_pitch_frames){.fmin_hz = 65.406, .fmax_hz = 2093.005, .n_samples = RATE_HZ * SECONDS,
                             .n_signals = n_signals}; // C2 to C7, as in librosa's documentation
}

static wt_status yin_create(wt_device *device, int n_signals, void **plan)
{
    return wt_yin_create(device, &(wt_yin_config){.frames = frames_of(n_signals)}, (wt_yin **)plan);
}

static void yin_destroy(void *plan)
{
    wt_yin_destroy(plan);
}

static wt_status yin_enqueue(void *plan, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    return wt_yin_enqueue(plan, stream, in, 0, out, 0);
}

static wt_status pyin_create(wt_device *device, int n_signals, void **plan)
{
    return wt_pyin_create(device, &(wt_pyin_config){.frames = frames_of(n_signals)}, (wt_pyin **)plan);
}

static wt_status calibrated_create(wt_device *device, int n_signals, void **plan)
{
    const wt_pyin_config config = {.frames = frames_of(n_signals), .calibrated = true};
    return wt_pyin_create(device, &config, (wt_pyin **)plan);
}

static void pyin_destroy(void *plan)
{
    wt_pyin_destroy(plan);
}

static wt_status pyin_enqueue(void *plan, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    return wt_pyin_enqueue(plan, stream, in, 0, out, 0);
}

static wt_status autocorrelate_create(wt_device *device, int n_signals, void **plan)
{
    const wt_autocorrelate_config config = {.n = RATE_HZ * SECONDS, .n_signals = n_signals};
    return wt_autocorrelate_create(device, &config, (wt_autocorrelate **)plan);
}

static void autocorrelate_destroy(void *plan)
{
    wt_autocorrelate_destroy(plan);
}

static wt_status autocorrelate_enqueue(void *plan, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    return wt_autocorrelate_enqueue(plan, stream, in, 0, out, 0);
}

static wt_status make_stretch(wt_device *device, wt_stretch_mode mode, int n_signals, void **plan)
{
    const wt_stretch_config config = {
        .mode = mode, .rate = 1.25, .n_samples = RATE_HZ * SECONDS, .n_signals = n_signals};
    return wt_stretch_create(device, &config, (wt_stretch **)plan);
}

static wt_status stretch_create(wt_device *device, int n_signals, void **plan)
{
    return make_stretch(device, WT_STRETCH_LIBROSA, n_signals, plan);
}

static wt_status locked_create(wt_device *device, int n_signals, void **plan)
{
    return make_stretch(device, WT_STRETCH_LOCKED, n_signals, plan);
}

static wt_status attacks_create(wt_device *device, int n_signals, void **plan)
{
    return make_stretch(device, WT_STRETCH_TRANSIENT, n_signals, plan);
}

static wt_status wsola_create(wt_device *device, int n_signals, void **plan)
{
    return make_stretch(device, WT_STRETCH_WSOLA, n_signals, plan);
}

static void stretch_destroy(void *plan)
{
    wt_stretch_destroy(plan);
}

static wt_status stretch_enqueue(void *plan, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    return wt_stretch_enqueue(plan, stream, in, 0, out, 0);
}

static wt_status make_shift(wt_device *device, bool keep_formants, int n_signals, void **plan)
{
    const wt_pitch_shift_config config = {
        .n_steps = 4, .n_samples = RATE_HZ * SECONDS, .n_signals = n_signals, .keep_formants = keep_formants};
    return wt_pitch_shift_create(device, &config, (wt_pitch_shift **)plan);
}

static wt_status shift_create(wt_device *device, int n_signals, void **plan)
{
    return make_shift(device, false, n_signals, plan);
}

static wt_status voice_create(wt_device *device, int n_signals, void **plan)
{
    return make_shift(device, true, n_signals, plan);
}

static void shift_destroy(void *plan)
{
    wt_pitch_shift_destroy(plan);
}

static wt_status shift_enqueue(void *plan, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    return wt_pitch_shift_enqueue(plan, stream, in, 0, out, 0);
}

// Beats are three plans in a row: strength, and from it tempo and beats; the pulse two.
typedef struct beats {
    wt_onset *onset;
    wt_beat *beat;
    wt_plp *plp;
    wt_buffer *envelope, *frames, *found, *pulse;
} beats;

static void beats_destroy(void *plan)
{
    beats *b = plan;
    if (!b) return;
    wt_onset_destroy(b->onset);
    wt_beat_destroy(b->beat);
    wt_plp_destroy(b->plp);
    wt_buffer_destroy(b->envelope), wt_buffer_destroy(b->frames);
    wt_buffer_destroy(b->found), wt_buffer_destroy(b->pulse);
    free(b);
}

static wt_status beats_create(wt_device *device, int n_signals, void **plan)
{
    const int n = 1 + RATE_HZ * SECONDS / 512;
    const size_t bytes = sizeof(float) * (size_t)n * (size_t)n_signals;
    beats *b = *plan = calloc(1, sizeof *b);
    if (!b) return WT_ERR_NO_MEMORY;
    const wt_onset_config onset = {.median = true, .n_samples = RATE_HZ * SECONDS, .n_signals = n_signals};
    const wt_beat_config beat = {.max_frames = n, .n_signals = n_signals};
    wt_status status = wt_onset_create(device, &onset, &b->onset);
    if (!status) status = wt_beat_create(device, &beat, &b->beat);
    if (!status)
        status = wt_plp_create(device, &(wt_plp_config){.max_frames = n, .n_signals = n_signals}, &b->plp);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &b->envelope);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &b->pulse);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &b->frames);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, sizeof(wt_beats) * (size_t)n_signals, &b->found);
    return status;
}

static wt_status onset_enqueue(void *plan, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    const beats *b = plan;
    (void)out;
    return wt_onset_enqueue(b->onset, stream, in, 0, b->envelope, 0);
}

static wt_status beats_enqueue(void *plan, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    const beats *b = plan;
    wt_status status = onset_enqueue(plan, stream, in, out);
    return status ? status : wt_beat_enqueue(b->beat, stream, b->envelope, 0, b->frames, 0, b->found, 0);
}

static wt_status pulse_enqueue(void *plan, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    const beats *b = plan;
    wt_status status = onset_enqueue(plan, stream, in, out);
    return status ? status : wt_plp_enqueue(b->plp, stream, b->envelope, 0, b->pulse, 0);
}

static const op ops[] = {
    {"yin", yin_create, yin_destroy, yin_enqueue, 2000, true},
    {"pyin", pyin_create, pyin_destroy, pyin_enqueue, 4000, true},
    {"pyin calibrated", calibrated_create, pyin_destroy, pyin_enqueue, 4000, true},
    {"autocorrelation", autocorrelate_create, autocorrelate_destroy, autocorrelate_enqueue, RATE_HZ * SECONDS, true},
    {"stretch 1.25", stretch_create, stretch_destroy, stretch_enqueue, RATE_HZ * SECONDS, true},
    {"stretch locked", locked_create, stretch_destroy, stretch_enqueue, RATE_HZ * SECONDS, true},
    {"stretch attacks", attacks_create, stretch_destroy, stretch_enqueue, RATE_HZ * SECONDS, true},
    {"stretch wsola", wsola_create, stretch_destroy, stretch_enqueue, RATE_HZ * SECONDS, true},
    {"pitch shift 4", shift_create, shift_destroy, shift_enqueue, RATE_HZ * SECONDS, true},
    {"pitch shift voice", voice_create, shift_destroy, shift_enqueue, RATE_HZ * SECONDS, true},
    {"onset strength", beats_create, beats_destroy, onset_enqueue, 1, true},
    {"beats", beats_create, beats_destroy, beats_enqueue, 1, true},
    {"pulse", beats_create, beats_destroy, pulse_enqueue, 1, true},
};

// A voice that glides and breathes: harmonics with noise, a pause every second.
static void fill(float *pcm, size_t n)
{
    double phase = 0;
    unsigned seed = 1;
    for (size_t i = 0; i < n; i++) {
        const double t = (double)i / RATE_HZ, f0 = 220 * pow(2, 0.5 * sin(t));
        phase += 2 * 3.14159265358979 * f0 / RATE_HZ;
        seed = seed * 1664525u + 1013904223u;
        const double noise = (double)seed / 4294967296.0 - 0.5;
        const double tone = sin(phase) + 0.5 * sin(2 * phase) + 0.3 * sin(3 * phase);
        pcm[i] = (float)((fmod(t, 1) < 0.8 ? 0.3 * tone : 0) + 0.02 * noise);
    }
}

static wt_status time_op(const op *o, wt_device *device, int n_signals, double *best_s, double *best_cpu_s)
{
    const bool cuda = wt_device_get_info(device)->backend == WT_BACKEND_CUDA;
    const size_t n = (size_t)RATE_HZ * SECONDS, bytes = n * sizeof(float);
    void *plan = NULL;
    wt_stream *stream = NULL;
    wt_buffer *in = NULL, *out = NULL;
    float *pcm = malloc(bytes);
    wt_status status = pcm ? o->create(device, n_signals, &plan) : WT_ERR_NO_MEMORY;
    if (!status) status = wt_stream_create(device, NULL, &stream);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, bytes * (size_t)n_signals, &in);
    if (!status)
        status = wt_buffer_create(device, WT_MEMORY_DEVICE, o->out_floats * sizeof(float) * (size_t)n_signals, &out);
    if (pcm) fill(pcm, n);
    for (int s = 0; s < n_signals && !status; s++) status = wt_stream_upload(stream, in, bytes * (size_t)s, pcm, bytes);
    if (!status) status = wt_stream_synchronize(stream);
    *best_s = *best_cpu_s = 1e30;
    for (int repeat = 0; repeat < REPEATS && !status; repeat++) {
        int64_t begin = wt_clock_now_ns(NULL);
        const double begin_cpu = bench_cpu_s();
        status = o->enqueue(plan, stream, in, out);
        if (!status) status = wt_stream_synchronize(stream);
        *best_s = fmin(*best_s, (double)(wt_clock_now_ns(NULL) - begin) * 1e-9);
        *best_cpu_s = fmin(*best_cpu_s, bench_cpu_s() - begin_cpu);
    }
    if (status) fprintf(stderr, "bench_pitch: %s on %s: %s\n", o->name, cuda ? "cuda" : "cpu", wt_last_error());
    wt_buffer_destroy(in), wt_buffer_destroy(out);
    wt_stream_destroy(stream);
    o->destroy(plan);
    free(pcm);
    return status;
}

static int bench(wt_backend backend, const char *filter)
{
    wt_device *device;
    if (wt_device_open(&(wt_device_config){.backend = backend}, &device)) {
        fprintf(stderr, "bench_pitch: %s\n", wt_last_error());
        return 1;
    }
    const bool cuda = backend == WT_BACKEND_CUDA;
    const int n_signals = cuda ? CUDA_SIGNALS : CPU_SIGNALS, n_threads = wt_device_get_info(device)->n_sms;
    int failed = 0;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        double seconds, cpu_s;
        if ((filter && !strstr(ops[i].name, filter)) || (cuda && !ops[i].has_cuda)) continue;
        failed |= time_op(&ops[i], device, n_signals, &seconds, &cpu_s) != WT_OK;
        const double audio_s = (double)SECONDS * n_signals;
        if (cuda)
            printf("pitch  %-17s cuda %8.1f h/s\n", ops[i].name, audio_s / 3600 / seconds);
        else
            printf("pitch  %-17s cpu  %8.0f x on %d threads %8.0f x of processors' time\n", ops[i].name,
                   audio_s / seconds, n_threads, audio_s / cpu_s * n_threads);
        fflush(stdout);
    }
    wt_device_close(device);
    return failed;
}

int main(int argc, char **argv)
{
    const char *filter = argc > 1 ? argv[1] : NULL, *backend = argc > 2 ? argv[2] : "";
    int failed = strcmp(backend, "cuda") ? bench(WT_BACKEND_CPU, filter) : 0;
    if (wt_device_count() < 1)
        printf("bench_pitch: no CUDA device\n");
    else if (strcmp(backend, "cpu"))
        failed |= bench(WT_BACKEND_CUDA, filter);
    return failed;
}
