#include "support/failing_alloc.h"
#include "support/golden.h"
#include "support/realtime.h"
#include "support/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/onset.h>
#include <warptone/stft.h>
#include <warptone/tempo.h>

static float *envelope_of(const golden_case *g, bool median, size_t *n_frames)
{
    size_t n;
    const float *pcm = golden_input(g, 0, &n);
    wt_onset *plan;
    if (golden_int(g, "envelope", 0)) {
        float *copy = malloc(n * sizeof *copy);
        assert_non_null(copy);
        *n_frames = n;
        return memcpy(copy, pcm, n * sizeof *copy);
    }
    assert_ok(wt_onset_create(NULL, &(wt_onset_config){.median = median, .n_samples = (int64_t)n}, &plan));
    *n_frames = (size_t)wt_onset_n_frames(plan);
    float *envelope = malloc(*n_frames * sizeof *envelope);
    assert_non_null(envelope);
    wt_onset_run(plan, pcm, envelope);
    wt_onset_destroy(plan);
    return envelope;
}

// [rows][columns] of `width` floats to [columns][rows].
static float *turned(const float *x, size_t rows, size_t columns, size_t width)
{
    float *y = malloc(rows * columns * width * sizeof *y);
    assert_non_null(y);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            memcpy(y + (c * rows + r) * width, x + (r * columns + c) * width, width * sizeof *y);
    return y;
}

static void tempograms_equal_librosas(void **state)
{
    (void)state;
    int n_cases = 0;
    for (const golden_case *g = NULL; (g = golden_next("tempogram", g)); n_cases++) {
        size_t n;
        float *envelope = envelope_of(g, false, &n);
        const bool hamming = !strcmp(golden_text(g, "window", "hann"), "hamming");
        const size_t length = (size_t)golden_int(g, "win_length", 384);
        wt_tempogram *plan;
        assert_ok(
            wt_tempogram_create(NULL,
                                &(wt_tempogram_config){.win_length = (int)length,
                                                       .window = {.kind = hamming ? WT_WINDOW_HAMMING : WT_WINDOW_HANN},
                                                       .no_center = !golden_int(g, "center", 1),
                                                       .no_norm = hamming}, // the one case without a norm
                                &plan));
        const size_t n_rows = (size_t)wt_tempogram_rows(plan, (int64_t)n);
        float *out = malloc(n_rows * length * sizeof *out);
        assert_non_null(out);
        wt_tempogram_run(plan, envelope, (int64_t)n, out);
        float *y = turned(out, n_rows, length, 1);
        golden_check(g, y, length, n_rows);
        wt_tempogram_destroy(plan);
        free(envelope), free(out), free(y);
    }
    assert_int_equal(n_cases, 3);
}

static void a_fourier_tempogram_is_a_stft_of_the_envelope(void **state)
{
    (void)state;
    int n_cases = 0;
    for (const golden_case *g = NULL; (g = golden_next("fourier_tempogram", g)); n_cases++) {
        size_t n;
        float *envelope = envelope_of(g, false, &n);
        wt_stft *stft;
        assert_ok(wt_stft_create(&(wt_stft_config){.n_fft = golden_int(g, "win_length", 384),
                                                   .hop = 1,
                                                   .no_center = !golden_int(g, "center", 1)},
                                 &stft));
        const size_t rows = (size_t)wt_stft_frames(stft, (int64_t)n), bins = (size_t)wt_stft_bins(stft);
        float *out = malloc(rows * bins * 2 * sizeof *out);
        assert_non_null(out);
        assert_int_equal(wt_stft_forward(stft, envelope, (int64_t)n, out), WT_OK);
        float *y = turned(out, rows, bins, 2);
        golden_check(g, y, bins, rows);
        wt_stft_destroy(stft);
        free(envelope), free(out), free(y);
    }
    assert_int_equal(n_cases, 2);
}

static void ratios_equal_librosas(void **state)
{
    (void)state;
    const golden_case *g = golden_find("tempogram_ratio_drums");
    size_t n;
    float *envelope = envelope_of(g, false, &n);
    wt_tempogram *tempogram;
    wt_tempo *tempo;
    assert_ok(wt_tempogram_create(NULL, &(wt_tempogram_config){0}, &tempogram));
    assert_ok(wt_tempo_create(NULL, &(wt_tempo_config){.ac_size_s = 384.5 * 512 / 22050}, &tempo)); // the same 384 lags
    float *rows = malloc(n * 384 * sizeof *rows), *ratios = malloc(n * WT_TEMPO_RATIOS * sizeof *ratios);
    double *bpm = malloc(n * sizeof *bpm);
    assert_true(rows && ratios && bpm);
    wt_tempogram_run(tempogram, envelope, (int64_t)n, rows);
    wt_tempo_run_frames(tempo, envelope, (int64_t)n, bpm);
    for (size_t t = 0; t < n; t++)
        wt_tempogram_ratio(22050, 512, rows + t * 384, 384, bpm[t], ratios + t * WT_TEMPO_RATIOS);
    float *y = turned(ratios, n, WT_TEMPO_RATIOS, 1);
    golden_check(g, y, WT_TEMPO_RATIOS, n);
    wt_tempogram_destroy(tempogram), wt_tempo_destroy(tempo);
    free(envelope), free(rows), free(ratios), free(bpm), free(y);
}

static void tempi_are_librosas(void **state)
{
    (void)state;
    int n_cases = 0;
    for (const golden_case *g = NULL; (g = golden_next("tempo", g)); n_cases++) {
        size_t n;
        float *envelope = envelope_of(g, false, &n);
        wt_tempo *plan;
        assert_ok(wt_tempo_create(NULL,
                                  &(wt_tempo_config){.start_bpm = golden_double(g, "start_bpm", 0),
                                                     .std_bpm = golden_double(g, "std_bpm", 0),
                                                     .ac_size_s = golden_double(g, "ac_size", 0),
                                                     .max_bpm = golden_double(g, "max_tempo", 0)},
                                  &plan));
        double *bpm = malloc(n * sizeof *bpm);
        assert_non_null(bpm);
        const bool each = !golden_has(g, "aggregate");
        bpm[0] = wt_tempo_run(plan, envelope, (int64_t)n);
        if (each) wt_tempo_run_frames(plan, envelope, (int64_t)n, bpm);
        golden_check_double(g, bpm, 1, each ? n : 1);
        wt_tempo_destroy(plan);
        free(envelope), free(bpm);
    }
    assert_int_equal(n_cases, 6);
}

static void beats_are_librosas(void **state)
{
    (void)state;
    int n_cases = 0;
    for (const golden_case *g = NULL; (g = golden_next("beat_track", g)); n_cases++) {
        size_t n;
        float *envelope = envelope_of(g, true, &n);
        wt_beat *plan;
        assert_ok(wt_beat_create(NULL,
                                 &(wt_beat_config){.tempo = {.start_bpm = golden_double(g, "start_bpm", 0)},
                                                   .bpm = golden_double(g, "bpm", 0),
                                                   .tightness = golden_double(g, "tightness", 0),
                                                   .no_trim = !golden_int(g, "trim", 1),
                                                   .max_frames = (int64_t)n},
                                 &plan));
        int *frames = malloc(n * sizeof *frames);
        assert_non_null(frames);
        double bpm;
        int64_t count = 0;
        RT_SECTION count = wt_beat_run(plan, envelope, (int64_t)n, frames, &bpm);
        if (strstr(g->name, "_bpm"))
            golden_check_double(g, &bpm, 1, 1);
        else
            golden_check_int(g, frames, 1, (size_t)count);
        wt_beat_destroy(plan);
        free(envelope), free(frames);
    }
    assert_int_equal(n_cases, 12);
}

static void pulses_equal_librosas(void **state)
{
    (void)state;
    int n_cases = 0;
    for (const golden_case *g = NULL; (g = golden_next("plp", g)); n_cases++) {
        size_t n;
        float *envelope = envelope_of(g, true, &n);
        wt_plp *plan;
        assert_ok(wt_plp_create(NULL,
                                &(wt_plp_config){.win_length = golden_int(g, "win_length", 0),
                                                 .min_bpm = golden_double(g, "tempo_min", 0),
                                                 .max_bpm = golden_double(g, "tempo_max", 0),
                                                 .max_frames = (int64_t)n},
                                &plan));
        float *pulse = malloc(n * sizeof *pulse);
        assert_non_null(pulse);
        wt_plp_run(plan, envelope, (int64_t)n, pulse);
        golden_check(g, pulse, 1, n);
        wt_plp_destroy(plan);
        free(envelope), free(pulse);
    }
    assert_int_equal(n_cases, 4);
}

// A pulse every 21.5332 frames: 120 BPM at 22050 / 512. librosa's lags give 117.45 or 123.05.
static void fine_tempi_lie_between_the_lags(void **state)
{
    (void)state;
    const double want[] = {90, 120, 140, 163.7};
    for (int k = 0; k < 4; k++) {
        float envelope[1292];
        const double period = 22050.0 / 512 * 60 / want[k];
        for (int t = 0; t < 1292; t++) {
            const double away = t - rint(t / period) * period;
            envelope[t] = (float)exp(-0.5 * away * away / 2.25);
        }
        wt_tempo *plan;
        assert_ok(wt_tempo_create(NULL, &(wt_tempo_config){.fine = true, .ac_size_s = 8}, &plan));
        const double bpm = wt_tempo_run(plan, envelope, 1292);
        if (!(fabs(bpm - want[k]) <= 0.1)) fail_msg("%g BPM, want %g", bpm, want[k]);
        wt_tempo_destroy(plan);
    }
}

// Noise has no period: its lags are few frames, and their peaks lie anywhere.
static void fine_tempi_stay_near_their_lag(void **state)
{
    (void)state;
    const wt_tempo_config config = {.rate_hz = 8000, .hop = 700, .ac_size_s = 8};
    for (uint64_t seed = 1; seed <= 300; seed++) {
        wt_tempo *plan;
        double bpm[2];
        uint64_t own = seed;
        float envelope[120];
        for (int t = 0; t < 120; t++) envelope[t] = fabsf(noise(&own));
        for (int fine = 0; fine < 2; fine++) {
            wt_tempo_config c = config;
            c.fine = fine;
            assert_ok(wt_tempo_create(NULL, &c, &plan));
            bpm[fine] = wt_tempo_run(plan, envelope, 120);
            wt_tempo_destroy(plan);
        }
        if (!(bpm[1] > bpm[0] / 2 && bpm[1] < bpm[0] * 2.5))
            fail_msg("seed %d: %g BPM of %g", (int)seed, bpm[1], bpm[0]);
    }
}

// From samples on: half a minute of decaying bursts of noise, the grid of frames at any place against them.
static void a_drum_track_has_its_tempo(void **state)
{
    (void)state;
    enum { N = 30 * 22050 };
    static const double want[] = {72.3, 90, 112.4, 120, 133.3, 150.1};
    float *pcm = malloc(N * sizeof *pcm);
    assert_non_null(pcm);
    for (int k = 0; k < 6; k++) {
        uint64_t seed = 3 + (uint64_t)k;
        const double period = 22050 * 60 / want[k];
        for (int i = 0; i < N; i++)
            pcm[i] = (float)(0.5 * exp(-fmod(i + 1000 * k, period) / 900)) * noise(&seed) + 1e-4f * noise(&seed);
        wt_onset *onset;
        wt_tempo *tempo;
        assert_ok(wt_onset_create(NULL, &(wt_onset_config){.n_samples = N}, &onset));
        float *envelope = malloc((size_t)wt_onset_n_frames(onset) * sizeof *envelope);
        assert_non_null(envelope);
        wt_onset_run(onset, pcm, envelope);
        assert_ok(wt_tempo_create(NULL, &(wt_tempo_config){.fine = true}, &tempo));
        const double bpm = wt_tempo_run(tempo, envelope, wt_onset_n_frames(onset));
        if (!(fabs(bpm - want[k]) <= 0.05)) fail_msg("%g BPM, want %g", bpm, want[k]);
        wt_tempo_destroy(tempo), wt_onset_destroy(onset);
        free(envelope);
    }
    free(pcm);
}

static void silence_has_no_beat(void **state)
{
    (void)state;
    float envelope[300] = {0}, pulse[300];
    int frames[300];
    double bpm = -1;
    wt_beat *beat;
    wt_plp *plp;
    assert_ok(wt_beat_create(NULL, &(wt_beat_config){.max_frames = 300}, &beat));
    assert_int_equal(wt_beat_run(beat, envelope, 300, frames, &bpm), 0);
    assert_true(bpm == 0);
    envelope[0] = 1; // alone, at the frame that the score leaves out
    wt_beat_run(beat, envelope, 300, frames, &bpm);
    assert_true(bpm > 0);
    wt_beat_destroy(beat);
    envelope[0] = 0;
    assert_ok(wt_plp_create(NULL, &(wt_plp_config){.max_frames = 300}, &plp));
    wt_plp_run(plp, envelope, 300, pulse);
    for (int t = 0; t < 300; t++) assert_true(pulse[t] == 0);
    wt_plp_destroy(plp);
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    wt_tempogram *tempogram = NULL;
    wt_tempo *tempo = NULL;
    wt_beat *beat = NULL;
    wt_plp *plp = NULL;
    assert_fails(wt_tempogram_create(NULL, &(wt_tempogram_config){.win_length = -1}, &tempogram), WT_ERR_BAD_ARG,
                 "tempogram: win_length -1, want 1..1048576");
    assert_fails(wt_tempo_create(NULL, &(wt_tempo_config){.hop = -1}, &tempo), WT_ERR_BAD_ARG,
                 "tempo: hop -1, want 1 or more");
    assert_fails(wt_tempo_create(NULL, &(wt_tempo_config){.ac_size_s = 0.01}, &tempo), WT_ERR_BAD_ARG,
                 "tempo: a window of 0.01 s is 0 frames, want 2 or more");
    assert_fails(wt_beat_create(NULL, &(wt_beat_config){.bpm = 1e6, .max_frames = 5}, &beat), WT_ERR_BAD_ARG,
                 "beat: bpm 1e+06 is 0 frames a beat, want 1 or more");
    assert_fails(wt_plp_create(NULL, &(wt_plp_config){.min_bpm = 90, .max_bpm = 60, .max_frames = 5}, &plp),
                 WT_ERR_BAD_ARG, "plp: 90 to 60 BPM, want 0 < min < max");
    assert_true(!tempogram && !tempo && !beat && !plp);
}

static wt_status create(void *user) { return wt_beat_create(NULL, &(wt_beat_config){.max_frames = 100}, user); }

static void destroy(void *user) { wt_beat_destroy(*(wt_beat **)user); }

static void running_out_of_memory_is_survived(void **state)
{
    (void)state;
    wt_beat *plan = NULL;
    assert_survives_failing_alloc(create, destroy, &plan);
}

// ---- many signals on a stream

enum { BATCH = 6, FRAMES = 700 };

// Pulses at several tempi over noise; silence; a single pulse where the score begins; one not-a-number.
static void fill_envelopes(float *x)
{
    uint64_t seed = 11;
    for (int s = 0; s < BATCH; s++)
        for (int t = 0; t < FRAMES; t++) {
            const double period = 14 + 5.3 * s, away = t - rint(t / period) * period;
            const double pulse = exp(-0.5 * away * away) * (1 + 0.3 * sin(t * 0.05)), floor = 0.05 * (1 + noise(&seed));
            x[s * FRAMES + t] = s == 3 ? 0 : s == 4 ? t == 0 : (float)(pulse + floor);
        }
    x[5 * FRAMES + 90] = NAN;
}

static wt_buffer *buffer_of(wt_device *device, size_t bytes)
{
    wt_buffer *buffer;
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &buffer));
    return buffer;
}

static void check_beats(wt_device *device, wt_stream *stream, const float *x, const wt_beat_config *config)
{
    wt_beat *one, *many;
    wt_beat_config c = *config;
    c.max_frames = FRAMES;
    assert_ok(wt_beat_create(NULL, &c, &one));
    c.n_signals = BATCH;
    assert_ok(wt_beat_create(device, &c, &many));
    wt_buffer *in = buffer_of(device, sizeof(float) * BATCH * FRAMES), *found = buffer_of(device, 16 * BATCH);
    wt_buffer *out = buffer_of(device, sizeof(int) * BATCH * FRAMES);
    static int got[BATCH * FRAMES], want[FRAMES];
    wt_beats beats[BATCH];
    for (int repeat = 0; repeat < 2; repeat++) {
        assert_ok(wt_stream_upload(stream, in, 0, x, sizeof(float) * BATCH * FRAMES));
        assert_ok(wt_beat_enqueue(many, stream, in, 0, out, 0, found, 0));
        assert_ok(wt_stream_download(stream, got, out, 0, sizeof got));
        assert_ok(wt_stream_download(stream, beats, found, 0, sizeof beats));
        assert_ok(wt_stream_synchronize(stream));
        for (int s = 0; s < BATCH; s++) {
            double bpm;
            const int64_t n = wt_beat_run(one, x + s * FRAMES, FRAMES, want, &bpm);
            if (beats[s].bpm != bpm || beats[s].n_beats != n)
                fail_msg("signal %d: %lld beats at %.17g BPM, want %lld at %.17g", s, (long long)beats[s].n_beats,
                         beats[s].bpm, (long long)n, bpm);
            for (int64_t k = 0; k < n; k++)
                if (got[s * FRAMES + k] != want[k])
                    fail_msg("signal %d, beat %lld of %lld: frame %d, want %d", s, (long long)k, (long long)n,
                             got[s * FRAMES + k], want[k]);
        }
    }
    assert_fails(wt_beat_enqueue(many, stream, in, 0, out, 0, found, 4), WT_ERR_BAD_ARG,
                 "beat: found takes 96 bytes at 4, the buffer has 96");
    wt_buffer_destroy(in), wt_buffer_destroy(out), wt_buffer_destroy(found);
    wt_beat_destroy(one), wt_beat_destroy(many);
}

static void check_tempi(wt_device *device, wt_stream *stream, const float *x, bool fine)
{
    wt_tempo *one, *many;
    const wt_tempo_config c = {.fine = fine, .n_frames = FRAMES, .n_signals = BATCH};
    assert_ok(wt_tempo_create(NULL, &c, &one));
    assert_ok(wt_tempo_create(device, &c, &many));
    wt_buffer *in = buffer_of(device, sizeof(float) * BATCH * FRAMES), *out = buffer_of(device, 8 * BATCH);
    double bpm[BATCH];
    assert_ok(wt_stream_upload(stream, in, 0, x, sizeof(float) * BATCH * FRAMES));
    assert_ok(wt_tempo_enqueue(many, stream, in, 0, out, 0));
    assert_ok(wt_stream_download(stream, bpm, out, 0, sizeof bpm));
    assert_ok(wt_stream_synchronize(stream));
    for (int s = 0; s < BATCH; s++) { // lags are a float transform's: their parabola moves with its rounding
        const double want = wt_tempo_run(one, x + s * FRAMES, FRAMES), bound = fine ? 1e-4 : 0;
        if (!(fabs(bpm[s] - want) <= bound)) fail_msg("signal %d: %.17g BPM, want %.17g", s, bpm[s], want);
    }
    wt_buffer_destroy(in), wt_buffer_destroy(out);
    wt_tempo_destroy(one), wt_tempo_destroy(many);
}

// A tempo a frame, and what the tempogram says of its multiples.
static void check_frames(wt_device *device, wt_stream *stream, const float *x)
{
    enum { LAGS = 100, ROWS = BATCH * FRAMES };
    const wt_tempo_config c = {
        .frames = true, .n_frames = FRAMES, .n_signals = BATCH, .ac_size_s = 100.5 * 512 / 22050};
    wt_tempo *one, *many;
    wt_tempogram *tempogram;
    wt_tempo_ratios *ratios;
    static double got_bpm[ROWS], bpm[FRAMES];
    static float rows[ROWS * LAGS], got[ROWS * WT_TEMPO_RATIOS], want[WT_TEMPO_RATIOS];
    assert_ok(wt_tempo_create(NULL, &c, &one));
    assert_ok(wt_tempo_create(device, &c, &many));
    assert_ok(wt_tempogram_create(
        device, &(wt_tempogram_config){.win_length = LAGS, .n_frames = FRAMES, .n_signals = BATCH}, &tempogram));
    assert_ok(wt_tempo_ratios_create(device, &(wt_tempo_ratios_config){.win_length = LAGS, .n_rows = ROWS}, &ratios));
    wt_buffer *in = buffer_of(device, sizeof(float) * ROWS), *tempi = buffer_of(device, sizeof got_bpm);
    wt_buffer *lags = buffer_of(device, sizeof rows), *out = buffer_of(device, sizeof got);
    assert_ok(wt_stream_upload(stream, in, 0, x, sizeof(float) * ROWS));
    assert_ok(wt_tempo_enqueue_frames(many, stream, in, 0, tempi, 0));
    assert_ok(wt_tempogram_enqueue(tempogram, stream, in, 0, lags, 0));
    assert_ok(wt_tempo_ratios_enqueue(ratios, stream, lags, 0, tempi, 0, out, 0));
    assert_ok(wt_stream_download(stream, got_bpm, tempi, 0, sizeof got_bpm));
    assert_ok(wt_stream_download(stream, rows, lags, 0, sizeof rows));
    assert_ok(wt_stream_download(stream, got, out, 0, sizeof got));
    assert_ok(wt_stream_synchronize(stream));
    for (int s = 0; s < BATCH; s++) {
        wt_tempo_run_frames(one, x + s * FRAMES, FRAMES, bpm);
        for (int t = 0; t < FRAMES; t++) {
            const int row = s * FRAMES + t;
            if (got_bpm[row] != bpm[t])
                fail_msg("signal %d, frame %d: %.9g BPM, want %.9g", s, t, got_bpm[row], bpm[t]);
            wt_tempogram_ratio(22050, 512, rows + row * LAGS, LAGS, bpm[t], want);
            for (int k = 0; k < WT_TEMPO_RATIOS; k++) {
                const float g = got[row * WT_TEMPO_RATIOS + k];
                if (!(fabsf(g - want[k]) <= 2e-6f) && !(isnan(g) && isnan(want[k]))) // rows are at most 1
                    fail_msg("signal %d, frame %d, ratio %d: %.9g, want %.9g", s, t, k, (double)g, (double)want[k]);
            }
        }
    }
    assert_fails(wt_tempo_ratios_enqueue(ratios, stream, lags, 0, tempi, 4, out, 0), WT_ERR_BAD_ARG,
                 "tempo ratios: bpm takes 33600 bytes at 4, the buffer has 33600");
    wt_buffer_destroy(in), wt_buffer_destroy(tempi), wt_buffer_destroy(lags), wt_buffer_destroy(out);
    wt_tempo_destroy(one), wt_tempo_destroy(many);
    wt_tempogram_destroy(tempogram), wt_tempo_ratios_destroy(ratios);
}

static void check_tempogram(wt_device *device, wt_stream *stream, const float *x, wt_tempogram_config c, int n_signals)
{
    wt_tempogram *one, *many;
    c.n_frames = FRAMES, c.n_signals = n_signals;
    assert_ok(wt_tempogram_create(NULL, &c, &one));
    assert_ok(wt_tempogram_create(device, &c, &many));
    const size_t area = (size_t)wt_tempogram_rows(one, FRAMES) * (size_t)(c.win_length ? c.win_length : 384);
    const size_t bytes = (size_t)n_signals * area * sizeof(float);
    wt_buffer *in = buffer_of(device, sizeof(float) * BATCH * FRAMES), *out = buffer_of(device, bytes);
    float *got = malloc(bytes), *want = malloc(area * sizeof *want);
    assert_true(got && want);
    assert_ok(wt_stream_upload(stream, in, 0, x, sizeof(float) * BATCH * FRAMES));
    assert_ok(wt_tempogram_enqueue(many, stream, in, 0, out, 0));
    assert_ok(wt_stream_download(stream, got, out, 0, bytes));
    assert_ok(wt_stream_synchronize(stream));
    for (int s = 0; s < n_signals; s++) {
        wt_tempogram_run(one, x + s * FRAMES, FRAMES, want);
        double peak = 0;
        for (size_t i = 0; i < area; i++) peak = fmax(peak, fabs((double)want[i])); // fmax passes NaN over
        for (size_t i = 0; i < area; i++) {
            const float g = got[(size_t)s * area + i], w = want[i];
            if (!(fabs((double)g - w) <= 2e-6 * peak) && !(isnan(g) && isnan(w)))
                fail_msg("signal %d, value %zu: %.9g, want %.9g", s, i, (double)g, (double)w);
        }
    }
    wt_buffer_destroy(in), wt_buffer_destroy(out);
    wt_tempogram_destroy(one), wt_tempogram_destroy(many);
    free(got), free(want);
}

// Of signal 4, a single pulse, every bin is as strong as the others.
static void check_pulses(wt_device *device, wt_stream *stream, const float *x, wt_plp_config c, int n_signals)
{
    wt_plp *one, *many;
    c.max_frames = FRAMES;
    assert_ok(wt_plp_create(NULL, &c, &one));
    c.n_signals = n_signals;
    assert_ok(wt_plp_create(device, &c, &many));
    const size_t bytes = sizeof(float) * (size_t)n_signals * FRAMES;
    wt_buffer *in = buffer_of(device, bytes + 8), *out = buffer_of(device, bytes + 8);
    static float got[2][BATCH * FRAMES], want[FRAMES];
    for (int repeat = 0; repeat < 2; repeat++) {
        assert_ok(wt_stream_fill(stream, out, 0, 0xff, bytes + 8));
        assert_ok(wt_stream_upload(stream, in, 8, x, bytes));
        assert_ok(wt_plp_enqueue(many, stream, in, 8, out, 8));
        assert_ok(wt_stream_download(stream, got[repeat], out, 8, bytes));
        assert_ok(wt_stream_synchronize(stream));
    }
    assert_memory_equal(got[0], got[1], bytes);
    for (int s = 0; s < n_signals; s++) {
        wt_plp_run(one, x + s * FRAMES, FRAMES, want);
        for (int t = 0; t < FRAMES; t++)
            if (!(fabs((double)got[0][s * FRAMES + t] - want[t]) <= 2e-6))
                fail_msg("signal %d, frame %d: %.9g, want %.9g", s, t, got[0][s * FRAMES + t], want[t]);
    }
    char sentence[96];
    snprintf(sentence, sizeof sentence, "plp: pulse takes %zu bytes at 12, the buffer has %zu", bytes, bytes + 8);
    assert_fails(wt_plp_enqueue(many, stream, in, 8, out, 12), WT_ERR_BAD_ARG, sentence);
    wt_buffer_destroy(in), wt_buffer_destroy(out);
    wt_plp_destroy(one), wt_plp_destroy(many);
}

// A Fourier tempogram is a short-time transform of hop 1.
static void check_fourier(wt_device *device, wt_stream *stream, const float *x)
{
    enum { LENGTH = 384, BINS = LENGTH / 2 + 1, SIGNALS = 3, AREA = (FRAMES + 1) * BINS * 2 };
    wt_stft *one;
    wt_stft_plan *many;
    const wt_stft_plan_config c = {.stft = {.n_fft = LENGTH, .hop = 1}, .n_samples = FRAMES, .n_signals = SIGNALS};
    assert_ok(wt_stft_create(&c.stft, &one));
    assert_ok(wt_stft_plan_create(device, &c, &many));
    assert_int_equal(wt_stft_plan_frames(many), FRAMES + 1);
    static float got[SIGNALS * AREA], want[AREA];
    wt_buffer *in = buffer_of(device, sizeof(float) * SIGNALS * FRAMES), *out = buffer_of(device, sizeof got);
    assert_ok(wt_stream_upload(stream, in, 0, x, sizeof(float) * SIGNALS * FRAMES));
    assert_ok(wt_stft_plan_forward(many, stream, in, 0, out, 0));
    assert_ok(wt_stream_download(stream, got, out, 0, sizeof got));
    assert_ok(wt_stream_synchronize(stream));
    for (int s = 0; s < SIGNALS; s++) {
        double peak = 0;
        assert_int_equal(wt_stft_forward(one, x + s * FRAMES, FRAMES, want), WT_OK);
        for (int i = 0; i < AREA; i++) peak = fmax(peak, fabs((double)want[i]));
        for (int i = 0; i < AREA; i++)
            if (!(fabs((double)got[s * AREA + i] - want[i]) <= 2e-6 * peak))
                fail_msg("signal %d, value %d: %.9g, want %.9g, peak %g", s, i, got[s * AREA + i], want[i], peak);
    }
    wt_buffer_destroy(in), wt_buffer_destroy(out);
    wt_stft_destroy(one), wt_stft_plan_destroy(many);
}

static void check_device(wt_backend backend)
{
    wt_device *device;
    wt_stream *stream;
    static float x[BATCH * FRAMES];
    fill_envelopes(x);
    assert_ok(wt_device_open(&(wt_device_config){.backend = backend, .n_threads = 2}, &device));
    assert_ok(wt_stream_create(device, NULL, &stream));
    check_tempi(device, stream, x, false);
    check_tempi(device, stream, x, true);
    check_frames(device, stream, x);
    check_tempogram(device, stream, x, (wt_tempogram_config){.win_length = 100}, 3);
    check_tempogram(device, stream, x, (wt_tempogram_config){.win_length = 63, .no_norm = true, .no_center = true},
                    BATCH);
    check_pulses(device, stream, x, (wt_plp_config){.win_length = 0}, BATCH);
    check_pulses(device, stream, x, (wt_plp_config){.win_length = 63, .min_bpm = 60}, 2);
    check_pulses(device, stream, x, (wt_plp_config){.win_length = 100, .max_bpm = 5000}, 3);
    check_pulses(device, stream, x, (wt_plp_config){.win_length = 134, .min_bpm = 60},
                 2); // no thread block transforms it
    check_fourier(device, stream, x);
    check_beats(device, stream, x, &(wt_beat_config){.tightness = 0});
    check_beats(device, stream, x, &(wt_beat_config){.bpm = 97, .no_trim = true});
    check_beats(device, stream, x, &(wt_beat_config){.bpm = 2583, .tightness = 3}); // a frame a beat
    wt_stream_destroy(stream);
    wt_device_close(device);
}

static void batches_on_a_cpu_give_what_each_signal_gives(void **state)
{
    (void)state;
    check_device(WT_BACKEND_CPU);
}

static void cuda_gives_what_the_cpu_gives(void **state)
{
    (void)state;
    if (wt_device_count() < 1) {
        print_message("skipped: no CUDA device\n");
        skip();
    }
    check_device(WT_BACKEND_CUDA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tempograms_equal_librosas),
        cmocka_unit_test(a_fourier_tempogram_is_a_stft_of_the_envelope),
        cmocka_unit_test(ratios_equal_librosas),
        cmocka_unit_test(tempi_are_librosas),
        cmocka_unit_test(beats_are_librosas),
        cmocka_unit_test(pulses_equal_librosas),
        cmocka_unit_test(fine_tempi_lie_between_the_lags),
        cmocka_unit_test(fine_tempi_stay_near_their_lag),
        cmocka_unit_test(a_drum_track_has_its_tempo),
        cmocka_unit_test(silence_has_no_beat),
        cmocka_unit_test(batches_on_a_cpu_give_what_each_signal_gives),
        cmocka_unit_test(cuda_gives_what_the_cpu_gives),
        cmocka_unit_test(bad_input_gets_a_sentence),
        cmocka_unit_test(running_out_of_memory_is_survived),
    };
    return cmocka_run_group_tests_name("tempo", tests, NULL, NULL);
}
