// Tempi, beats, tempograms and pulses of many signals on a stream, on both backends, against each signal alone.
#include "support/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/stft.h>
#include <warptone/tempo.h>

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
        cmocka_unit_test(batches_on_a_cpu_give_what_each_signal_gives),
        cmocka_unit_test(cuda_gives_what_the_cpu_gives),
    };
    return cmocka_run_group_tests_name("tempo of many signals", tests, NULL, NULL);
}
