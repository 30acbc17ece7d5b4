#include "support/failing_alloc.h"
#include "support/golden.h"
#include "support/realtime.h"
#include "support/testing.h"

#include <math.h>
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
        cmocka_unit_test(bad_input_gets_a_sentence),
        cmocka_unit_test(running_out_of_memory_is_survived),
    };
    return cmocka_run_group_tests_name("tempo", tests, NULL, NULL);
}
