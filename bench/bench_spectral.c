// Spectral ops on whole signals. On the CPU: 60 s of mono at 22.05 kHz on a device of all processors, times real time,
// a call of two or three milliseconds, of which the waking of threads takes a part; two rows have ten minutes.
// On a GPU: batches of 256 signals of 60 s, data on the device, the stream synchronised, hours of audio a second.
//
//   bench_spectral [NAME [cpu|cuda]]   rows whose name holds NAME, "" = all; one backend
//
//   cpu   mel 128 dB           2048/512  22.05 kHz   25000 x real time   26000 x of processors' time
//   cpu   mel 128, 10 min      2048/512  22.05 kHz   25000 x real time   26000 x of processors' time
//   cuda  mel 128 dB           2048/512  22.05 kHz    1500 h/s
//
// Each row is the best of several runs; the second figure of the CPU counts the time that its processors worked for
// this process, so that it says what an idle machine would do. Griffin-Lim on a GPU: 64 signals.

#include "support/cpu_time.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/chroma.h>
#include <warptone/clock.h>
#include <warptone/delta.h>
#include <warptone/filter.h>
#include <warptone/griffin_lim.h>
#include <warptone/kernel.h>
#include <warptone/loudness.h>
#include <warptone/mfcc.h>
#include <warptone/pcen.h>
#include <warptone/reassigned.h>
#include <warptone/silence.h>
#include <warptone/spectral.h>
#include <warptone/stft_stream.h>

enum { SECONDS = 60, GPU_SIGNALS = 256, MINUTES = 10 };

typedef struct bench {
    wt_device *device;
    wt_stream *stream;
    wt_buffer *pcm, *out;
    const char *filter; // NULL = all rows
    bool gpu;
    int n_signals;
} bench;

typedef wt_status (*enqueue_fn)(void *op, const bench *b);

static wt_status run_mel(void *op, const bench *b) { return wt_mel_enqueue(op, b->stream, b->pcm, 0, b->out, 0); }

static wt_status run_mfcc(void *op, const bench *b) { return wt_mfcc_enqueue(op, b->stream, b->pcm, 0, b->out, 0); }

static wt_status run_stft(void *op, const bench *b)
{
    return wt_stft_plan_forward(op, b->stream, b->pcm, 0, b->out, 0);
}

static wt_status run_istft(void *op, const bench *b)
{
    return wt_stft_plan_inverse(op, b->stream, b->out, 0, b->pcm, 0);
}

static wt_status run_griffin_lim(void *op, const bench *b)
{
    return wt_griffin_lim_enqueue(op, b->stream, b->out, 0, b->pcm, 0);
}

static wt_status measure(const bench *b, const char *name, const char *shape, enqueue_fn run, void *op, int repeats)
{
    double best = 1e30, best_cpu = 1e30;
    if (b->filter && !strstr(name, b->filter)) return WT_OK;
    for (int i = 0; i <= repeats; i++) { // the first warms up
        const int64_t begin = wt_clock_now_ns(NULL);
        const double begin_cpu = bench_cpu_s();
        wt_status status = run(op, b);
        if (!status) status = wt_stream_synchronize(b->stream);
        if (status) return status;
        const double seconds = (double)(wt_clock_now_ns(NULL) - begin) * 1e-9;
        const double cpu_s = (bench_cpu_s() - begin_cpu) / wt_device_get_info(b->device)->n_sms;
        if (i && seconds < best) best = seconds;
        if (i && cpu_s < best_cpu) best_cpu = cpu_s;
    }
    const double audio_s = (double)b->n_signals * SECONDS;
    if (b->gpu)
        printf("cuda  %-20s %-20s %8.1f h/s\n", name, shape, audio_s / best / 3600);
    else
        printf("cpu   %-20s %-20s %8.0f x real time %8.0f x of processors' time\n", name, shape, audio_s / best,
               audio_s / best_cpu);
    return WT_OK;
}

static wt_status bench_mel(const bench *b, const char *name, const char *shape, wt_mel_config c)
{
    wt_mel *mel;
    c.n_samples = (int64_t)SECONDS * c.bank.rate_hz, c.n_signals = b->n_signals;
    wt_status status = wt_mel_create(b->device, &c, &mel);
    if (status) return status;
    status = measure(b, name, shape, run_mel, mel, 10);
    wt_mel_destroy(mel);
    return status;
}

static wt_status bench_mfcc(const bench *b, const char *name, const char *shape, wt_mfcc_config c)
{
    wt_mfcc *mfcc;
    c.mel.n_samples = (int64_t)SECONDS * c.mel.bank.rate_hz, c.mel.n_signals = b->n_signals;
    wt_status status = wt_mfcc_create(b->device, &c, &mfcc);
    if (status) return status;
    status = measure(b, name, shape, run_mfcc, mfcc, 10);
    wt_mfcc_destroy(mfcc);
    return status;
}

// Forward and back; `samples` a signal.
static wt_status bench_stft(const bench *b, const char *shape, wt_stft_config c, int64_t samples)
{
    wt_stft_plan *plan;
    wt_status status = wt_stft_plan_create(
        b->device, &(wt_stft_plan_config){.stft = c, .n_samples = samples, .n_signals = b->n_signals}, &plan);
    if (status) return status;
    status = measure(b, "stft complex", shape, run_stft, plan, 10);
    if (!status) status = measure(b, "istft", shape, run_istft, plan, 10);
    wt_stft_plan_destroy(plan);
    return status;
}

// On the CPU two signals, so that both processors have one. Magnitudes are those of the samples: silence has a way of
// its own.
static wt_status bench_griffin_lim(const bench *b, bool precise)
{
    wt_griffin_lim *plan;
    wt_stft_plan *stft;
    bench some = *b;
    some.n_signals = b->gpu ? 64 : 2;
    if (b->filter && !strstr("griffin-lim 32 double", b->filter)) return WT_OK;
    const wt_stft_plan_config magnitudes = {.stft = {.n_fft = 2048},
                                            .n_samples = 22050 * SECONDS,
                                            .n_signals = some.n_signals,
                                            .output = WT_STFT_MAGNITUDE};
    wt_status status = wt_stft_plan_create(b->device, &magnitudes, &stft);
    if (status) return status;
    status = run_stft(stft, &some);
    if (!status) status = wt_stream_synchronize(b->stream);
    wt_stft_plan_destroy(stft);
    if (status) return status;
    status = wt_griffin_lim_create(b->device,
                                   &(wt_griffin_lim_config){.in_float = !precise,
                                                            .n_frames = 1 + SECONDS * 22050 / 512,
                                                            .n_signals = some.n_signals},
                                   &plan);
    if (status) return status;
    status = measure(&some, precise ? "griffin-lim 32 double" : "griffin-lim 32", "2048/512  22.05 kHz",
                     run_griffin_lim, plan, b->gpu ? 4 : 3);
    wt_griffin_lim_destroy(plan);
    return status;
}

// ---- features of spectrograms that lie in `out`, into `pcm`

enum { FRAMES = 1 + SECONDS * 22050 / 512, ROWS = 128 };

static wt_status run_feature(void *op, const bench *b)
{
    return wt_spectral_enqueue(op, b->stream, b->out, 0, b->pcm, 0);
}

static wt_status run_chroma(void *op, const bench *b)
{
    return wt_chroma_enqueue(op, b->stream, b->out, 0, FRAMES, b->pcm, 0);
}

static wt_status run_delta(void *op, const bench *b) { return wt_delta_enqueue(op, b->stream, b->out, 0, b->pcm, 0); }

static wt_status run_pcen(void *op, const bench *b) { return wt_pcen_enqueue(op, b->stream, b->out, 0, b->pcm, 0); }

static wt_status bench_feature(const bench *b, const char *name, wt_spectral_config c)
{
    wt_spectral *plan;
    c.shape.n_frames = FRAMES, c.n_signals = b->n_signals;
    wt_status status = wt_spectral_create(b->device, &c, &plan);
    if (status) return status;
    status = measure(b, name, "of 1025 magnitudes", run_feature, plan, 5);
    wt_spectral_destroy(plan);
    return status;
}

static wt_status bench_features(const bench *b)
{
    wt_stft_plan *stft;
    wt_chroma *chroma = NULL;
    wt_delta *delta = NULL;
    wt_pcen *pcen = NULL;
    const wt_pcen_config energy = wt_pcen_defaults();
    const wt_stft_plan_config magnitudes = {
        .stft = {.n_fft = 2048}, .n_samples = 22050 * SECONDS, .n_signals = b->n_signals, .output = WT_STFT_MAGNITUDE};
    wt_status status = wt_stft_plan_create(b->device, &magnitudes, &stft);
    if (status) return status;
    status = measure(b, "stft magnitude", "2048/512  22.05 kHz", run_stft, stft, 10);
    wt_stft_plan_destroy(stft);
    if (!status) status = bench_feature(b, "centroid", (wt_spectral_config){.kind = WT_SPECTRAL_CENTROID});
    if (!status) status = bench_feature(b, "roll-off", (wt_spectral_config){.kind = WT_SPECTRAL_ROLLOFF});
    if (!status) status = bench_feature(b, "flatness", (wt_spectral_config){.kind = WT_SPECTRAL_FLATNESS});
    if (!status) status = bench_feature(b, "contrast", (wt_spectral_config){.kind = WT_SPECTRAL_CONTRAST});
    if (!status)
        status = bench_feature(b, "polynomial 1", (wt_spectral_config){.kind = WT_SPECTRAL_POLYNOMIAL, .order = 1});
    if (!status) status = wt_chroma_create(b->device, &(wt_chroma_config){.channels = b->n_signals}, &chroma);
    if (!status) status = measure(b, "chroma 12", "of 1025 magnitudes", run_chroma, chroma, 5);
    if (!status) status = wt_delta_create(b->device, NULL, (int64_t)b->n_signals * ROWS, FRAMES, &delta);
    if (!status) status = measure(b, "delta 9", "of 128 bands", run_delta, delta, 5);
    if (!status) status = wt_pcen_create(b->device, &energy, b->n_signals, ROWS, FRAMES, &pcen);
    if (!status) status = measure(b, "pcen", "of 128 bands", run_pcen, pcen, 5);
    wt_chroma_destroy(chroma);
    wt_delta_destroy(delta);
    wt_pcen_destroy(pcen);
    return status;
}

static wt_status run_sos(void *op, const bench *b) { return wt_sos_rows_enqueue(op, b->stream, b->pcm, 0, b->out, 0); }

static wt_status bench_sos(const bench *b)
{
    double sos[WT_SOS_MAX_SECTIONS][6];
    wt_sos_rows *plan;
    wt_sos_config c = {.sos = sos[0]};
    wt_status status =
        wt_sos_design(&(wt_sos_design_config){.order = 4, .rate_hz = 22050, .edge_hz = {1000}}, sos[0], &c.n_sections);
    if (!status) status = wt_sos_rows_create(b->device, &c, b->n_signals, 22050 * SECONDS, &plan);
    if (status) return status;
    status = measure(b, "low-pass, 2 sections", "22.05 kHz", run_sos, plan, 5);
    wt_sos_rows_destroy(plan);
    return status;
}

static wt_status run_reassigned(void *op, const bench *b)
{
    return wt_reassigned_enqueue(op, b->stream, b->pcm, 0, b->out, 0);
}

// On a GPU fewer signals: each has three numbers a bin, and `out` room for two.
static wt_status bench_reassigned(const bench *b)
{
    wt_reassigned *plan;
    bench some = *b;
    if (b->gpu) some.n_signals = b->n_signals * 2 / 3;
    wt_status status = wt_reassigned_create(
        b->device, &(wt_reassigned_config){.n_samples = 22050 * SECONDS, .n_signals = some.n_signals}, &plan);
    if (status) return status;
    status = measure(&some, "reassigned", "2048/512  22.05 kHz", run_reassigned, plan, 5);
    wt_reassigned_destroy(plan);
    return status;
}

// ---- level of the samples in `pcm`, into `out`

static wt_status run_level(void *op, const bench *b)
{
    return wt_level_plan_enqueue(op, b->stream, b->pcm, 0, b->out, 0);
}

static wt_status run_silence(void *op, const bench *b)
{
    const size_t spans = sizeof(wt_span) * (size_t)wt_silence_room(op) * (size_t)b->n_signals;
    return wt_silence_enqueue(op, b->stream, b->pcm, 0, b->out, 0, b->out, spans);
}

static wt_status run_loudness(void *op, const bench *b)
{
    return wt_loudness_batch_enqueue(op, b->stream, b->pcm, 0, b->out, 0);
}

static wt_status bench_level(const bench *b, const char *name, wt_level_kind kind)
{
    wt_level_plan *plan;
    const wt_level_plan_config c = {.kind = kind, .n_samples = 22050 * SECONDS, .n_signals = b->n_signals};
    wt_status status = wt_level_plan_create(b->device, &c, &plan);
    if (status) return status;
    status = measure(b, name, "2048/512  22.05 kHz", run_level, plan, 5);
    wt_level_plan_destroy(plan);
    return status;
}

static wt_status bench_levels(const bench *b)
{
    wt_silence *silence = NULL;
    wt_loudness_batch *loudness = NULL;
    const wt_silence_config split = {.n_samples = 22050 * SECONDS, .n_signals = b->n_signals};
    const wt_loudness_batch_config programmes = {{.rate_hz = 22050, .channels = 1}, 22050 * SECONDS, b->n_signals};
    wt_status status = bench_level(b, "rms", WT_LEVEL_RMS);
    if (!status) status = bench_level(b, "zero crossings", WT_LEVEL_ZERO_CROSSINGS);
    if (!status) status = wt_silence_create(b->device, &split, &silence);
    if (!status) status = measure(b, "split by silence", "2048/512  22.05 kHz", run_silence, silence, 5);
    if (!status) status = wt_loudness_batch_create(b->device, &programmes, &loudness);
    if (!status) status = measure(b, "loudness, true peak", "22.05 kHz", run_loudness, loudness, 5);
    wt_silence_destroy(silence);
    wt_loudness_batch_destroy(loudness);
    return status;
}

enum { STREAM_BLOCK = 4096 };

// There and back, block by block, in place.
static wt_status run_stream(void *op, const bench *b)
{
    wt_status status = WT_OK;
    for (int done = 0; done < SECONDS * 22050 && !status; done += STREAM_BLOCK) {
        status = wt_stft_stream_plan_forward(op, b->stream, b->pcm, 0, STREAM_BLOCK, b->out, 0);
        if (!status) status = wt_stft_stream_plan_inverse(op, b->stream, b->out, 0, b->pcm, 0);
    }
    return status;
}

static wt_status bench_stream(const bench *b)
{
    wt_stft_stream_plan *plan;
    wt_status status = wt_stft_stream_plan_create(
        b->device, &(wt_stft_stream_plan_config){.n_signals = b->n_signals, .max_samples = STREAM_BLOCK}, &plan);
    if (status) return status;
    status = measure(b, "stream there, back", "2048/512  22.05 kHz", run_stream, plan, 5);
    wt_stft_stream_plan_destroy(plan);
    return status;
}

// Frames that no thread block holds: a long one, and a prime.
static wt_status bench_long(const bench *b)
{
    static const struct {
        const char *shape;
        wt_stft_config stft;
    } rows[] = {{"10240/2560 22.05 kHz", {.n_fft = 10240}}, {"4099/1024 22.05 kHz", {.n_fft = 4099, .hop = 1024}}};
    wt_status status = WT_OK;
    for (int i = 0; i < 2 && !status; i++) {
        status = bench_stft(b, rows[i].shape, rows[i].stft, 22050 * SECONDS);
        if (!status)
            status = bench_mel(b, "mel 128 dB", rows[i].shape,
                               (wt_mel_config){.bank = {.rate_hz = 22050}, .stft = rows[i].stft, .scale = WT_MEL_DB});
    }
    return status;
}

// One signal of ten minutes.
static wt_status bench_minutes(const bench *b)
{
    wt_stft_plan *stft;
    wt_mel *mel;
    bench ten = *b; // whose seconds are ten minutes'
    ten.n_signals = MINUTES;
    const int64_t samples = (int64_t)MINUTES * SECONDS * 22050;
    const char *shape = "2048/512  22.05 kHz";
    wt_status status = wt_stft_plan_create(
        b->device, &(wt_stft_plan_config){.stft = {.n_fft = 2048}, .n_samples = samples}, &stft);
    if (status) return status;
    status = measure(&ten, "stft complex, 10 min", shape, run_stft, stft, 5);
    wt_stft_plan_destroy(stft);
    if (!status)
        status = wt_mel_create(b->device, &(wt_mel_config){.bank = {.rate_hz = 22050}, .n_samples = samples}, &mel);
    if (status) return status;
    status = measure(&ten, "mel 128, 10 min", shape, run_mel, mel, 5);
    wt_mel_destroy(mel);
    return status;
}

static wt_status bench_all(const bench *b)
{
    const char *music = "2048/512  22.05 kHz", *speech = "400/160   16 kHz";
    const wt_stft_config short_frames = {.n_fft = 400, .hop = 160};
    const wt_mel_bank_config wide = {.rate_hz = 22050}, narrow = {.rate_hz = 16000, .n_mels = 80};
    wt_mel_config whisper = wt_mel_whisper(80, 0);
    wt_status status = bench_stft(b, music, (wt_stft_config){.n_fft = 2048}, 22050 * SECONDS);
    if (!status) status = bench_stft(b, speech, short_frames, 16000 * SECONDS);
    if (!status) status = bench_mel(b, "mel 128", music, (wt_mel_config){.bank = wide});
    if (!status) status = bench_mel(b, "mel 128 dB", music, (wt_mel_config){.bank = wide, .scale = WT_MEL_DB});
    if (!status) status = bench_mel(b, "mel 80", speech, (wt_mel_config){.bank = narrow, .stft = short_frames});
    if (!status) status = bench_mel(b, "whisper 80", speech, whisper);
    if (!status) status = bench_mfcc(b, "mfcc 20", music, (wt_mfcc_config){.mel = {.bank = wide}});
    if (!status)
        status = bench_mfcc(b, "mfcc 40", speech,
                            (wt_mfcc_config){.mel = {.bank = narrow, .stft = short_frames}, .n_mfcc = 40});
    if (!status) status = (b->gpu ? bench_long : bench_minutes)(b);
    for (int precise = 0; precise < 2 && !status; precise++) status = bench_griffin_lim(b, precise);
    if (!status) status = bench_sos(b);
    if (!status) status = bench_reassigned(b);
    if (!status) status = bench_stream(b);
    if (!status) status = bench_levels(b);
    return status ? status : bench_features(b); // the last: they write where the samples were
}

static wt_status fill(const bench *b, size_t samples)
{
    float *x = malloc(samples * sizeof *x);
    if (!x) return wt_fail(WT_ERR_NO_MEMORY, "bench: %zu samples", samples);
    for (size_t i = 0; i < samples; i++) x[i] = (float)(i * 7919 % 2000) / 1000 - 1;
    wt_status status = wt_stream_upload(b->stream, b->pcm, 0, x, samples * sizeof *x);
    if (!status) status = wt_stream_synchronize(b->stream);
    free(x);
    return status;
}

static wt_status bench_device(bool gpu, const char *filter)
{
    bench b = {.gpu = gpu, .n_signals = gpu ? GPU_SIGNALS : 1, .filter = filter};
    const size_t room = (size_t)(gpu ? GPU_SIGNALS : MINUTES), samples = room * SECONDS * 22050;
    const size_t spectra = room * (2 + SECONDS * 22050 / 512) * 1025 * 2, more = room * (SECONDS * 100 + 1) * 201 * 2;
    const wt_device_config device = {.backend = gpu ? WT_BACKEND_CUDA : WT_BACKEND_CPU};
    wt_status status = wt_device_open(&device, &b.device);
    if (status) return status;
    status = wt_stream_create(b.device, NULL, &b.stream);
    if (!status) status = wt_buffer_create(b.device, WT_MEMORY_DEVICE, samples * sizeof(float), &b.pcm);
    if (!status)
        status =
            wt_buffer_create(b.device, WT_MEMORY_DEVICE, (spectra > more ? spectra : more) * sizeof(float), &b.out);
    if (!status) status = fill(&b, samples);
    if (!status) status = bench_all(&b);
    wt_buffer_destroy(b.pcm);
    wt_buffer_destroy(b.out);
    wt_stream_destroy(b.stream);
    wt_device_close(b.device);
    return status;
}

int main(int argc, char **argv)
{
    const bool gpu = wt_device_count() > 0;
    const char *filter = argc > 1 ? argv[1] : NULL, *backend = argc > 2 ? argv[2] : "";
    wt_status status = strcmp(backend, "cuda") ? bench_device(false, filter) : WT_OK;
    if (!status && gpu && strcmp(backend, "cpu")) status = bench_device(true, filter);
    if (status)
        fprintf(stderr, "bench_spectral: %s\n", wt_last_error());
    else if (!gpu)
        printf("cuda  skipped: no CUDA device\n");
    return status != WT_OK;
}
