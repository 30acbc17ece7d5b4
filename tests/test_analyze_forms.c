// `warptone analyze`: spectra in other forms, medians, neighbours, masks, each beside the call of the library, and
// beside librosa where the golden set has it.
#include "support/analyze_check.h"
#include "support/audio_files.h"
#include "support/golden.h"
#include "support/npy.h"
#include "support/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/db.h>
#include <warptone/decompose.h>
#include <warptone/fft.h>
#include <warptone/loudness.h>
#include <warptone/median.h>
#include <warptone/stft.h>
#include <warptone/tempo.h>

enum { RATE_HZ = 22050, N = 2 * RATE_HZ + 77, N_FFT = 512, BINS = N_FFT / 2 + 1, HOP = 512, FRAMES = N / HOP + 1 };
#define SHORT " --n-fft 512 "

static char input[4096];
static float *noisy; // [N]: tones that begin anew, over noise
static float spectra[2 * FRAMES * BINS], want[2 * FRAMES * BINS], made[N];

static void write_file(const char *path, const float *x, int n)
{
    test_write(path, &(wt_audio_writer_config){.rate_hz = RATE_HZ, .channels = 1, .sample = WT_SAMPLE_F32}, x, n, 1000);
}

static int create(void **state)
{
    if (test_folder_create(state)) return -1;
    noisy = test_noise(1, N, 0.02f);
    for (int i = 0; i < N; i++) {
        const float t = (float)i / RATE_HZ;
        noisy[i] += 0.3f * expf(-8 * fmodf(t, 0.3f)) * sinf(6.2831853f * 447.3f * t);
    }
    snprintf(input, sizeof input, "%s", test_path(state, "in.wav"));
    write_file(input, noisy, N);
    return 0;
}

static int destroy(void **state)
{
    free(noisy);
    return test_folder_remove(state);
}

static npy array_of(void **state, const char *options, int k) { return analyze_array_of(state, options, input, k); }

static void spectra_of(bool precise, wt_stft_output output, float *x)
{
    wt_stft *stft;
    assert_ok(wt_stft_create(&(wt_stft_config){.n_fft = N_FFT, .hop = HOP, .precise = precise}, &stft));
    assert_int_equal(wt_stft_frames(stft, N), FRAMES);
    if (output == WT_STFT_COMPLEX)
        assert_int_equal(wt_stft_forward(stft, noisy, N, x), WT_OK);
    else
        assert_int_equal(wt_stft_forward_real(stft, noisy, N, output == WT_STFT_POWER, x), WT_OK);
    wt_stft_destroy(stft);
}

/// The array is these numbers, to the bit. Frees it.
static void assert_is(npy a, const float *x, size_t count)
{
    const size_t item = a.kind == 'c' ? 2 : 1;
    assert_int_equal(a.count * item, count);
    for (size_t i = 0; i < count; i++)
        if (memcmp((float *)a.data + i, x + i, sizeof *x))
            fail_msg("value %zu: %.9g, want %.9g", i, (double)((float *)a.data)[i], (double)x[i]);
    npy_free(&a);
}

static void spectra_have_powers_phases_and_decibels(void **state)
{
    spectra_of(false, WT_STFT_POWER, want);
    analyze_assert_turned(array_of(state, "-f power" SHORT, 0), want, BINS, FRAMES);
    spectra_of(true, WT_STFT_COMPLEX, spectra);
    for (int k = 0; k < FRAMES * BINS; k++) {
        want[k] = atan2f(spectra[2 * k + 1], spectra[2 * k]);
        if (want[k] <= -(float)M_PI) want[k] = (float)M_PI; // whichever sign a zero has
        if (hypotf(spectra[2 * k], spectra[2 * k + 1]) < 0.99e-10f) want[k] = 0;
    }
    analyze_assert_turned(array_of(state, "-f phase" SHORT, 0), want, BINS, FRAMES);
    spectra_of(true, WT_STFT_POWER, spectra);
    assert_ok(wt_db_from_power(NULL, spectra, FRAMES * BINS, want));
    analyze_assert_turned(array_of(state, "-f spectrogram_db" SHORT, 0), want, BINS, FRAMES);
}

static void a_signal_has_a_spectrum(void **state)
{
    wt_fft *plan;
    float *bins = malloc(sizeof *bins * 2 * (N / 2 + 1));
    assert_ok(wt_fft_create(NULL, &(wt_fft_config){.n = N, .kind = WT_FFT_REAL_TO_COMPLEX}, &plan));
    assert_int_equal(wt_fft_run(plan, noisy, bins), WT_OK);
    wt_fft_destroy(plan);
    assert_is(array_of(state, "-f fft", 0), bins, 2 * (N / 2 + 1));
    free(bins);
    size_t size;
    char head[64];
    assert_analyze("--backend cpu -f fft '%s' '%s'", input, test_path(state, "fft.csv"));
    char *table = test_slurp(test_path(state, "fft.csv"), &size);
    snprintf(head, sizeof head, "\r\n%.9g,", (double)RATE_HZ / N); // of the second row
    assert_memory_equal(table, "hz,fft_re,fft_im\r\n0,", 20);
    assert_non_null(memmem(table, size, head, strlen(head)));
    free(table);
}

static void librosa_correlates_the_same(void **state)
{
    const golden_case *g = golden_find("autocorrelate_plucks");
    size_t n;
    const float *x = golden_input(g, 0, &n);
    write_file(test_path(state, "plucks.wav"), x, (int)n);
    npy a = analyze_array_of(state, "-f autocorrelation --max-lags 1500", test_path(state, "plucks.wav"), 0);
    golden_check(g, a.data, 1, a.count);
    npy_free(&a);
    a = analyze_array_of(state, "-f autocorrelation", test_path(state, "plucks.wav"), 0);
    assert_int_equal(a.count, n); // of all lags
    npy_free(&a);
}

static void medians_are_of_samples_or_bins(void **state)
{
    static const struct {
        const char *options;
        int kernel;
    } cases[] = {{"-f median", 5}, {"-f median --kernel 40", 40}, {"-f median --kernel 1501", 1501}};
    wt_median *median;
    for (int k = 0; k < 3; k++) {
        assert_ok(wt_median_create(
            &(wt_median_config){.rows = 1, .columns = N, .kernel_columns = cases[k].kernel}, &median));
        wt_median_run(median, noisy, made);
        wt_median_destroy(median);
        assert_is(array_of(state, cases[k].options, 0), made, N);
    }
    spectra_of(false, WT_STFT_MAGNITUDE, spectra);
    for (int k = 0; k < 2; k++) {
        const wt_median_config config = {
            .rows = FRAMES, .columns = BINS, .kernel_rows = k ? 4 : 31, .kernel_columns = k ? 7 : 1};
        assert_ok(wt_median_create(&config, &median));
        wt_median_run(median, spectra, want);
        wt_median_destroy(median);
        analyze_assert_turned(array_of(state, k ? "-f median_spectrogram --kernel 4 --kernel-bins 7" SHORT
                                                : "-f median_spectrogram" SHORT, 0), want, BINS, FRAMES);
    }
}

static void frames_become_their_neighbours(void **state)
{
    static const struct {
        const char *options;
        wt_nn_filter_config config;
    } cases[] = {
        {"-f nn_filter" SHORT, {.k = 0}},
        {"-f nn_filter --neighbours 5 --apart 3 --distance cosine --aggregate median" SHORT,
         {.k = 5, .width = 3, .cosine = true, .median = true}},
        {"-f nn_filter --mutual --distance euclidean --aggregate mean" SHORT, {.symmetric = true}},
    };
    static float rows[FRAMES * BINS];
    spectra_of(true, WT_STFT_MAGNITUDE, spectra);
    for (int t = 0; t < FRAMES; t++)
        for (int k = 0; k < BINS; k++) {
            const float x = spectra[t * BINS + k];
            rows[k * FRAMES + t] = x < 1e-10f ? 0 : x;
        }
    for (int k = 0; k < 3; k++) {
        wt_nn_filter_config config = cases[k].config;
        config.rows = BINS, config.columns = FRAMES;
        assert_ok(wt_nn_filter(&config, rows, want));
        assert_is(array_of(state, cases[k].options, 0), want, FRAMES * BINS);
    }
}

/// Masks as librosa's; what both parts leave is the rest of the signal.
static void parts_have_masks_and_leave_a_rest(void **state)
{
    size_t n;
    const float *x = golden_input(golden_find("hpss_mask_harm"), 0, &n);
    write_file(test_path(state, "mix.wav"), x, (int)n);
    for (int k = 0; k < 2; k++) {
        const golden_case *g = golden_find(k ? "hpss_mask_perc" : "hpss_mask_harm");
        npy a = analyze_array_of(state, "-f hpss_masks --n-fft 1024 --kernel 13 --kernel-bins 31",
                                 test_path(state, "mix.wav"), k);
        golden_check(g, a.data, a.shape[0], a.shape[1]);
        npy_free(&a);
        g = golden_find(k ? "hpss_hard_perc" : "hpss_hard_harm");
        a = analyze_array_of(state, "-f hpss_masks --n-fft 1024 --hard-masks", test_path(state, "mix.wav"), k);
        golden_check(g, a.data, a.shape[0], a.shape[1]);
        npy_free(&a);
    }
    npy h = array_of(state, "-f hpss --margin 3 --kernel 17 --kernel-bins 9" SHORT, 0);
    npy p = array_of(state, "-f hpss --margin 3 --kernel 17 --kernel-bins 9" SHORT, 1);
    assert_int_equal(h.count, N);
    double energy = 0;
    for (int t = 0; t < N; t++) {
        made[t] = noisy[t] - ((float *)h.data)[t] - ((float *)p.data)[t];
        energy += (double)made[t] * made[t];
    }
    assert_true(energy > 1);
    assert_is(array_of(state, "-f residual --margin 3 --kernel 17 --kernel-bins 9" SHORT, 0), made, N);
    npy_free(&h), npy_free(&p);
}

static void each_frame_has_a_tempo(void **state)
{
    wt_tempo *tempo;
    double bpm[FRAMES];
    npy strength = array_of(state, "-f onset_strength", 0), a = array_of(state, "-f tempos", 0);
    assert_ok(wt_tempo_create(NULL, &(wt_tempo_config){0}, &tempo));
    wt_tempo_run_frames(tempo, strength.data, FRAMES, bpm);
    wt_tempo_destroy(tempo);
    assert_int_equal(a.count, FRAMES);
    assert_memory_equal(a.data, bpm, sizeof bpm);
    npy_free(&a), npy_free(&strength);
}

/// Of all channels at the file's own rate, at the end of each tenth of a second.
static void loudness_changes_with_time(void **state)
{
    enum { RATE = 11025, N_STEPS = 35, LENGTH = RATE * N_STEPS / 10 + 500 };
    float *x = test_noise(2, LENGTH, 0.2f);
    wt_loudness *meter;
    size_t size;
    for (int i = LENGTH; i < 2 * LENGTH; i++) x[i] *= (float)(i - LENGTH) / LENGTH;
    test_write(test_path(state, "louder.wav"),
               &(wt_audio_writer_config){.rate_hz = RATE, .channels = 2, .sample = WT_SAMPLE_F32}, x, LENGTH, 1000);
    npy a[2];
    for (int k = 0; k < 2; k++) {
        a[k] = analyze_array_of(state, "-f loudness_curve", test_path(state, "louder.wav"), k);
        assert_int_equal(a[k].count, N_STEPS);
    }
    assert_ok(wt_loudness_create(&(wt_loudness_config){.rate_hz = RATE, .channels = 2}, &meter));
    for (int k = 0; k < N_STEPS; k++) {
        wt_loudness_values v;
        const int from = RATE * k / 10, to = RATE * (k + 1) / 10;
        wt_loudness_process(meter, (const float *[]){x + from, x + LENGTH + from}, to - from);
        wt_loudness_query(meter, &v);
        const float want_m = (float)v.momentary_lufs, want_s = (float)v.short_term_lufs;
        assert_memory_equal((float *)a[0].data + k, &want_m, sizeof want_m);
        assert_memory_equal((float *)a[1].data + k, &want_s, sizeof want_s);
    }
    assert_true(((float *)a[1].data)[N_STEPS - 1] > ((float *)a[1].data)[10]);
    wt_loudness_destroy(meter);
    npy_free(&a[0]), npy_free(&a[1]), free(x);
    assert_analyze("--backend cpu -f loudness_curve '%s' '%s'", test_path(state, "louder.wav"),
                   test_path(state, "l.csv"));
    char *table = test_slurp(test_path(state, "l.csv"), &size);
    assert_memory_equal(table, "time_s,momentary_lufs,short_term_lufs\r\n0.1,", 43);
    free(table);
    assert_analyze("--backend cpu -f loudness_curve --width 600 --height 200 '%s' '%s'", test_path(state, "louder.wav"),
                   test_path(state, "l.png"));
}

#define EVERY                                                                                                          \
    "-f power,phase,spectrogram_db,fft,autocorrelation,median,median_spectrogram,nn_filter,hpss,residual,hpss_masks,"  \
    "tempos --kernel 9 --kernel-bins 5 --margin 2"

/// In tiles of a fifth of what is held, the same bytes.
static void tiles_are_the_whole(void **state)
{
    size_t n_whole, n_tiled;
    assert_analyze("--backend cpu " EVERY " --n-fft 1000 --hop 333 '%s' '%s'", input, test_path(state, "whole.npz"));
    assert_analyze("--backend cpu " EVERY " --n-fft 1000 --hop 333 --tile 1000 '%s' '%s'", input,
                   test_path(state, "tiled.npz"));
    char *whole = test_slurp(test_path(state, "whole.npz"), &n_whole);
    char *tiled = test_slurp(test_path(state, "tiled.npz"), &n_tiled);
    assert_int_equal(n_whole, n_tiled);
    assert_memory_equal(whole, tiled, n_whole);
    free(whole), free(tiled);
}

/// One sample, which has no neighbours, and silence: a number everywhere.
static void short_and_silent_files_work(void **state)
{
    static float silence[RATE_HZ];
    const char *path = test_path(state, "hard.wav");
    silence[0] = 0.5f;
    write_file(path, silence, 1);
    assert_analyze("--backend cpu -f power,phase,spectrogram_db,fft,autocorrelation,median,median_spectrogram,residual,"
                   "hpss_masks,tempos '%s' '%s'", path, test_path(state, "hard.npz"));
    assert_int_equal(analyze_runf("--backend cpu -f nn_filter '%s' '%s'", path, test_path(state, "none.npz")), 3);
    assert_non_null(strstr(analyze_out, "nn_filter: 1 frames, want 5 or more with a width of 1"));
    silence[0] = 0;
    write_file(path, silence, RATE_HZ);
    assert_analyze("--backend cpu " EVERY " '%s' '%s'", path, test_path(state, "silent.npz"));
    for (int k = 0; k < 14; k++) {
        npy a;
        assert_ok(npz_read(test_path(state, "silent.npz"), k, &a));
        double *x = npy_doubles(&a);
        for (size_t i = 0; i < a.count * (a.kind == 'c' ? 2 : 1); i++) assert_true(isfinite(x[i]));
        free(x), npy_free(&a);
    }
}

static void they_are_drawn_written_and_heard(void **state)
{
    assert_analyze("--backend cpu -f power,phase,spectrogram_db,median_spectrogram,nn_filter,hpss_masks,residual,"
                   "tempos,median --width 600 --height 200 '%s' '%s'", input, test_path(state, "forms.png"));
    assert_analyze("--backend cpu " EVERY " '%s' '%s'", input, test_path(state, "forms.json"));
    assert_analyze("--backend cpu -f power,phase_delta,hpss_masks,tempos '%s' '%s'", input, test_path(state, "f.csv"));
    assert_analyze("--backend cpu -f residual '%s' '%s'", input, test_path(state, "residual.wav"));
    assert_analyze("--backend cpu -f median --channels '%s' '%s'", input, test_path(state, "median.flac"));
}

/// Of what holds no more than some samples longer signals are refused.
static void whole_signals_are_bounded(void **state)
{
    enum { LONG = (1 << 22) + 1 };
    int16_t *x = calloc(LONG, sizeof *x);
    float *zeros = calloc(LONG, sizeof *zeros);
    const char *path = test_path(state, "long.wav");
    test_write(path, &(wt_audio_writer_config){.rate_hz = RATE_HZ, .channels = 1, .sample = WT_SAMPLE_S16}, zeros, LONG,
               1 << 16);
    free(x), free(zeros);
    assert_int_equal(analyze_runf("--backend cpu -f fft '%s' '%s'", path, test_path(state, "x.npz")), 3);
    assert_non_null(strstr(analyze_out, "fft is of the whole signal: 4194305 samples, want at most 4194304"));
    assert_int_equal(analyze_runf("--backend cpu -f autocorrelation '%s' '%s'", path, test_path(state, "x.npz")), 3);
    assert_non_null(
        strstr(analyze_out, "autocorrelation is of the whole signal: 4194305 samples, want at most 2097152"));
    assert_int_equal(analyze_runf("--backend cpu -f nn_filter --hop 100 '%s' '%s'", path, test_path(state, "x.npz")),
                     3);
    assert_non_null(strstr(analyze_out, "nn_filter: 41944 frames, want 32768 at most"));
}

static void what_has_no_meaning_is_refused(void **state)
{
    static const analyze_refusal cases[] = {
        {"-f median --kernel 0", "option --kernel is \"0\", want an integer in 1.."},
        {"-f median_spectrogram --kernel-bins 0", "option --kernel-bins is \"0\", want an integer in 1.."},
        {"-f hpss --kernel 2000", "want 1..1023"},
        {"-f hpss_masks --kernel-bins 1024", "want 1..1023"},
        {"-f hpss_masks --mask-power 0", "option --mask-power is \"0\""},
        {"-f nn_filter --neighbours 0", "option --neighbours is \"0\""},
        {"-f nn_filter --apart 0", "option --apart is \"0\""},
        {"-f nn_filter --distance x", "--distance is \"x\", want euclidean or cosine"},
        {"-f nn_filter --aggregate x", "--aggregate is \"x\", want mean or median"},
        {"-f autocorrelation --max-lags 0", "option --max-lags is \"0\""},
        {"-f fft_delta", "fft_delta: fft is not one array of real numbers a frame"},
        {"-f fft --format png", "fft has no time, png draws what changes with it: want csv or json"},
        {"-f fft,rms --format csv", "csv holds one table, fft and rms make two"},
    };
    static const analyze_refusal lengths[] = {
        {"-f nn_filter --apart 50", "nn_filter: 87 frames, want 103 or more with a width of 50"},
    };
    analyze_assert_refused(state, input, 2, cases, sizeof cases / sizeof *cases);
    analyze_assert_refused(state, input, 3, lengths, sizeof lengths / sizeof *lengths);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spectra_have_powers_phases_and_decibels),
        cmocka_unit_test(a_signal_has_a_spectrum),
        cmocka_unit_test(librosa_correlates_the_same),
        cmocka_unit_test(medians_are_of_samples_or_bins),
        cmocka_unit_test(frames_become_their_neighbours),
        cmocka_unit_test(parts_have_masks_and_leave_a_rest),
        cmocka_unit_test(each_frame_has_a_tempo),
        cmocka_unit_test(loudness_changes_with_time),
        cmocka_unit_test(tiles_are_the_whole),
        cmocka_unit_test(short_and_silent_files_work),
        cmocka_unit_test(they_are_drawn_written_and_heard),
        cmocka_unit_test(whole_signals_are_bounded),
        cmocka_unit_test(what_has_no_meaning_is_refused),
    };
    if (!find_program(analyze_program, sizeof analyze_program)) return 1;
    return cmocka_run_group_tests_name("analyze: forms", tests, create, destroy);
}
