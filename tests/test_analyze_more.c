// `warptone analyze`: features that are ops of the library as they are, each beside the call of the library.
#include "support/analyze_check.h"
#include "support/audio_files.h"
#include "support/npy.h"
#include "support/spectral_check.h"
#include "support/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/cqt.h>
#include <warptone/decompose.h>
#include <warptone/griffin_lim.h>
#include <warptone/mel.h>
#include <warptone/mel_inverse.h>
#include <warptone/mfcc.h>
#include <warptone/nsgt.h>
#include <warptone/reassigned.h>
#include <warptone/salience.h>
#include <warptone/stft.h>
#include <warptone/tempo.h>
#include <warptone/tuning.h>

enum { RATE_HZ = 22050, N = RATE_HZ, N_FFT = 1024, BINS = N_FFT / 2 + 1, HOP = 512, FRAMES = N / HOP + 1 };
#define SHORT " --n-fft 1024 "

static char input[4096];
static float *tones; // [N], in the file that is analysed
static float spectra[FRAMES * BINS], want[3 * FRAMES * BINS];

static int run(const char *options, const char *to)
{
    char arguments[8000];
    snprintf(arguments, sizeof arguments, "--backend cpu %s '%s' '%s'", options, input, to);
    return analyze_run(arguments, true);
}

/// Two tones, the upper one beginning anew every quarter of a second.
static int make_input(void **state)
{
    if (test_folder_create(state)) return -1;
    tones = malloc(sizeof *tones * N);
    for (int t = 0; t < N; t++) {
        const double s = (double)t / RATE_HZ, late = fmod(s, 0.25);
        tones[t] = (float)(0.2 * sin(2 * M_PI * 220 * s) + 0.4 * exp(-late * 15) * sin(2 * M_PI * 1320 * s));
    }
    snprintf(input, sizeof input, "%s", test_path(state, "in.wav"));
    test_write(input, &(wt_audio_writer_config){.rate_hz = RATE_HZ, .channels = 1, .sample = WT_SAMPLE_F32}, tones, N,
               1000);
    return 0;
}

static int remove_input(void **state)
{
    free(tones);
    return test_folder_remove(state);
}

/// Array k of what the options make.
static npy array_of(void **state, const char *options, int k)
{
    return analyze_array_of(state, options, input, k);
}

static void constant_q_goes_by_one_spectrogram(void **state)
{
    static const char *const options[] = {"-f pseudo_cqt --fmin 110 --n-bins 48",
                                          "-f hybrid_cqt --fmin 110 --n-bins 48"};
    for (int k = 0; k < 2; k++) {
        wt_cqt *cqt;
        const wt_cqt_config config = {
            .kind = k ? WT_CQT_HYBRID : WT_CQT_PSEUDO, .fmin_hz = 110, .n_bins = 48, .magnitude = true};
        assert_ok(wt_cqt_create(NULL, &config, N, &cqt));
        assert_int_equal(wt_cqt_frames(cqt, N), FRAMES);
        assert_int_equal(wt_cqt_run(cqt, tones, N, want), WT_OK);
        analyze_assert_turned(array_of(state, options[k], 0), want, 48, FRAMES);
        wt_cqt_destroy(cqt);
    }
}

/// The two slices that the signal lies in add up; a tone has its amplitude.
static void the_invertible_transform_is_sampled(void **state)
{
    enum { HALF = 32768 };
    wt_nsgt *nsgt;
    const wt_nsgt_config config = {.rate_hz = RATE_HZ, .fmin_hz = 110, .n_bins = 48, .n_slices = 2};
    assert_ok(wt_nsgt_create(NULL, &config, &nsgt));
    assert_int_equal(wt_nsgt_slices(nsgt, N), 2);
    float *points = malloc(2 * sizeof *points * (size_t)wt_nsgt_coefficients(nsgt));
    assert_int_equal(wt_nsgt_forward(nsgt, tones, N, 0, points), WT_OK);
    for (int t = 0; t < FRAMES; t++)
        for (int k = 0; k < 48; k++) {
            const wt_nsgt_row row = wt_nsgt_get_row(nsgt, k + 1);
            const int64_t m = (int64_t)t * HOP * row.n_points / (2 * HALF);
            const float *x = points + 2 * (row.offset + row.n_points / 2 + m);
            const float *y = points + 2 * (row.offset + row.stride + m);
            want[t * 48 + k] = hypotf(x[0] + y[0], x[1] + y[1]);
        }
    for (int t = 10; t + 10 < FRAMES; t++) assert_true(fabsf(want[t * 48 + 12] - 0.2f) < 0.002f); // 220 Hz
    analyze_assert_turned(array_of(state, "-f nsgt --fmin 110 --n-bins 48", 0), want, 48, FRAMES);
    wt_nsgt_destroy(nsgt);
    free(points);
}

/// Magnitudes of transforms in double, frame by frame, [FRAMES][BINS].
static void spectra_of(wt_stft_pad pad, float *x)
{
    wt_stft *stft;
    assert_ok(wt_stft_create(&(wt_stft_config){.n_fft = N_FFT, .hop = HOP, .pad = pad, .precise = true}, &stft));
    assert_int_equal(wt_stft_frames(stft, N), FRAMES);
    assert_int_equal(wt_stft_forward_real(stft, tones, N, false, x), WT_OK);
    wt_stft_destroy(stft);
}

static void peaks_of_spectra_are_pitches(void **state)
{
    spectra_of(WT_STFT_PAD_ZERO, spectra);
    const wt_piptrack_config config = {.rate_hz = RATE_HZ, .n_fft = N_FFT, .fmin_hz = 200, .fmax_hz = 2000};
    assert_ok(wt_piptrack(&config, spectra, FRAMES, want, want + FRAMES * BINS));
    for (int k = 0; k < 2; k++)
        analyze_assert_turned(array_of(state, "-f piptrack --fmin 200 --fmax 2000" SHORT, k), want + k * FRAMES * BINS,
                              BINS, FRAMES);
}

static void multiples_of_a_frequency_add_up(void **state)
{
    static const double harmonics[] = {1, 2, 3, 4}, weights[] = {1, 0.45, 0.33, 0.25};
    double hz[BINS];
    wt_salience *plan;
    spectra_of(WT_STFT_PAD_ZERO, spectra);
    for (int k = 0; k < BINS; k++) hz[k] = (double)k * RATE_HZ / N_FFT;
    const wt_salience_config config = {BINS, hz, 4, harmonics, weights, false, 0};
    assert_ok(wt_salience_create(NULL, &config, &plan));
    wt_salience_run(plan, spectra, FRAMES, want);
    wt_salience_destroy(plan);
    analyze_assert_turned(array_of(state, "-f salience" SHORT, 0), want, BINS, FRAMES);
}

static void bins_are_reassigned(void **state)
{
    wt_reassigned *plan;
    const wt_reassigned_config config = {.stft = {.n_fft = N_FFT, .hop = HOP}, .n_samples = N};
    assert_ok(wt_reassigned_create(NULL, &config, &plan));
    wt_reassigned_run(plan, tones, want);
    wt_reassigned_destroy(plan);
    for (int k = 0; k < 3; k++)
        analyze_assert_turned(array_of(state, "-f reassigned" SHORT, k), want + k * FRAMES * BINS, BINS, FRAMES);
}

static void envelope_of(void **state, float *x)
{
    npy a = array_of(state, "-f onset_strength", 0);
    assert_int_equal(a.count, FRAMES);
    memcpy(x, a.data, sizeof *x * FRAMES);
    npy_free(&a);
}

static void tempi_are_fourier_transformed(void **state)
{
    enum { TEMPI = 193 };
    float envelope[FRAMES];
    wt_stft *stft;
    envelope_of(state, envelope);
    assert_ok(wt_stft_create(&(wt_stft_config){.n_fft = 384, .hop = 1}, &stft));
    const int64_t n_frames = wt_stft_frames(stft, FRAMES);
    assert_true(n_frames == FRAMES + 1 && 2 * n_frames * TEMPI <= (int64_t)(sizeof want / sizeof *want));
    assert_int_equal(wt_stft_forward(stft, envelope, FRAMES, want), WT_OK);
    wt_stft_destroy(stft);
    npy a = array_of(state, "-f fourier_tempogram", 0);
    assert_int_equal(a.kind, 'c');
    analyze_assert_turned(a, want, TEMPI, (size_t)n_frames);
}

static void multiples_of_the_tempo_are_weighed(void **state)
{
    float envelope[FRAMES];
    double bpm[FRAMES];
    static float rows[FRAMES * 384];
    wt_tempogram *tempogram;
    wt_tempo *tempo;
    envelope_of(state, envelope);
    assert_ok(wt_tempogram_create(NULL, &(wt_tempogram_config){0}, &tempogram));
    assert_ok(wt_tempo_create(NULL, &(wt_tempo_config){.ac_size_s = 384.5 * 512 / 22050}, &tempo)); // 384 lags
    wt_tempogram_run(tempogram, envelope, FRAMES, rows);
    wt_tempo_run_frames(tempo, envelope, FRAMES, bpm);
    for (int t = 0; t < FRAMES; t++)
        wt_tempogram_ratio(RATE_HZ, HOP, rows + t * 384, 384, bpm[t], want + t * WT_TEMPO_RATIOS);
    wt_tempogram_destroy(tempogram), wt_tempo_destroy(tempo);
    analyze_assert_turned(array_of(state, "-f tempo_ratios", 0), want, WT_TEMPO_RATIOS, FRAMES);
}

/// Squares of v - w h.
static double distance(const npy *v, const npy *w, const npy *h)
{
    const size_t n = w->shape[1];
    double sum = 0;
    for (size_t k = 0; k < BINS; k++)
        for (size_t t = 0; t < FRAMES; t++) {
            double x = ((float *)v->data)[k * FRAMES + t];
            for (size_t i = 0; i < n; i++)
                x -= (double)((float *)w->data)[k * n + i] * ((float *)h->data)[i * FRAMES + t];
            sum += x * x;
        }
    return sum;
}

/// One iteration more of the library's, from what ten gave, is what eleven give.
static void spectra_are_sums_of_components(void **state)
{
    enum { PARTS = 3 };
    wt_nmf *nmf;
    npy v = array_of(state, "-f spectrogram" SHORT, 0);
    npy w = array_of(state, "-f nmf --components 3 --iterations 10 --seed 7" SHORT, 0);
    npy h = array_of(state, "-f nmf --components 3 --iterations 10 --seed 7" SHORT, 1);
    npy w_next = array_of(state, "-f nmf --components 3 --iterations 11 --seed 7" SHORT, 0);
    npy h_next = array_of(state, "-f nmf --components 3 --iterations 11 --seed 7" SHORT, 1);
    assert_true(w.shape[0] == BINS && w.shape[1] == PARTS && h.shape[0] == PARTS && h.shape[1] == FRAMES);
    const double before = distance(&v, &w, &h);
    double energy = 0;
    for (size_t k = 0; k < v.count; k++) energy += (double)((float *)v.data)[k] * ((float *)v.data)[k];
    assert_true(before < 0.05 * energy); // two tones and the clicks of one of them
    assert_ok(wt_nmf_create(NULL, &(wt_nmf_config){.rows = BINS, .columns = FRAMES, .n_components = PARTS, .n_iter = 1},
                            &nmf));
    wt_nmf_run(nmf, v.data, w.data, h.data);
    wt_nmf_destroy(nmf);
    assert_true(distance(&v, &w, &h) < before);
    // rounded to float between the tenth and the eleventh
    assert_near_peak(w.data, w_next.data, w.count, 1e-5, "components");
    assert_near_peak(h.data, h_next.data, h.count, 1e-5, "activations");
    npy_free(&v), npy_free(&w), npy_free(&h), npy_free(&w_next), npy_free(&h_next);
}

static void assert_signal(void **state, const char *options, wt_stft_pad pad, const float *magnitudes)
{
    int64_t n_frames;
    wt_griffin_lim *plan;
    const wt_griffin_lim_config config = {
        .stft = {.n_fft = N_FFT, .hop = HOP, .pad = pad},
        .n_frames = FRAMES, .length = N, .n_iter = 4, .seed = 5};
    float *signal = malloc(sizeof *signal * N);
    assert_ok(wt_griffin_lim_create(NULL, &config, &plan));
    wt_griffin_lim_run(plan, magnitudes, signal);
    wt_griffin_lim_destroy(plan);
    npy a = array_of(state, options, 0);
    assert_true(a.n_dims == 1 && a.shape[0] == N);
    assert_memory_equal(a.data, signal, sizeof *signal * N);
    npy_free(&a);
    if (run(options, test_path(state, "out.wav"))) fail_msg("%s", analyze_out);
    float *heard = test_read(test_path(state, "out.wav"), NULL, 4096, &n_frames);
    assert_int_equal(n_frames, N);
    assert_snr_db(signal, heard, N, 100); // 24 bits with dither
    free(signal), free(heard);
}

static void magnitudes_become_a_signal(void **state)
{
    spectra_of(WT_STFT_PAD_ZERO, spectra);
    assert_signal(state, "-f griffin_lim --iterations 4 --seed 5" SHORT, WT_STFT_PAD_ZERO, spectra);
    spectra_of(WT_STFT_PAD_REFLECT, spectra);
    assert_signal(state, "-f griffin_lim --iterations 4 --seed 5 --padding reflect" SHORT, WT_STFT_PAD_REFLECT,
                  spectra);
}

static wt_mel_config bands_of(wt_mel_scale scale)
{
    return (wt_mel_config){.n_samples = N, .stft = {.n_fft = N_FFT, .hop = HOP, .precise = true},
                           .bank = {.n_mels = 40}, .scale = scale};
}

/// Mel bands [40][FRAMES] or their decibels.
static void make_bands(wt_mel_scale scale, float *out)
{
    wt_mel *mel;
    const wt_mel_config config = bands_of(scale);
    assert_ok(wt_mel_create(NULL, &config, &mel));
    wt_mel_run(mel, tones, out);
    wt_mel_destroy(mel);
}

/// `spectra`, of 40 mel bands, become magnitudes that have these, frame by frame.
static void invert_bands(void)
{
    wt_mel_inverse *plan;
    const wt_mel_inverse_config config = {.bank = {.n_fft = N_FFT, .n_mels = 40}, .n_frames = FRAMES};
    assert_ok(wt_mel_inverse_create(NULL, &config, &plan));
    wt_mel_inverse_run(plan, spectra, want);
    wt_mel_inverse_destroy(plan);
    for (int t = 0; t < FRAMES; t++)
        for (int k = 0; k < BINS; k++) spectra[t * BINS + k] = want[k * FRAMES + t];
}

static void coefficients_become_bands_and_a_signal(void **state)
{
    static float mfcc[13 * FRAMES];
    const wt_mfcc_config config = {
        .mel = bands_of(WT_MEL_DB), .n_mfcc = 13, .dct_type = 3, .lifter = 22};
    make_bands(WT_MEL_DB, want);
    assert_ok(wt_mfcc_of_db(&config, want, FRAMES, mfcc));
    assert_ok(wt_mfcc_to_mel(&config, mfcc, FRAMES, spectra));
    npy a = array_of(state, "-f mfcc_to_mel --n-mels 40 --n-mfcc 13 --dct-type 3 --lifter 22" SHORT, 0);
    assert_true(a.n_dims == 2 && a.shape[0] == 40 && a.shape[1] == FRAMES);
    assert_memory_equal(a.data, spectra, sizeof(float) * 40 * FRAMES);
    npy_free(&a);
    invert_bands();
    assert_signal(
        state, "-f mfcc_to_audio --n-mels 40 --n-mfcc 13 --dct-type 3 --lifter 22 --iterations 4 --seed 5" SHORT,
        WT_STFT_PAD_ZERO, spectra);
}

static void mel_bands_become_a_signal(void **state)
{
    make_bands(WT_MEL_LINEAR, spectra);
    invert_bands();
    analyze_assert_turned(array_of(state, "-f mel_to_stft --n-mels 40" SHORT, 0), spectra, BINS, FRAMES);
    assert_signal(state, "-f mel_to_audio --n-mels 40 --iterations 4 --seed 5" SHORT, WT_STFT_PAD_ZERO, spectra);
}

#define EVERY                                                                                                          \
    "-f pseudo_cqt,hybrid_cqt,nsgt,piptrack,salience,reassigned,fourier_tempogram,tempo_ratios,nmf,griffin_lim,"       \
    "mel_to_audio --iterations 2 --fmin 110 --n-bins 48 --n-fft 512 --width 600 --height 200"

/// In arrays, JSON and pictures: one sample, silence.
static void short_and_silent_files_work(void **state)
{
    static const char *const outputs[] = {"hard.npz", "hard.json", "hard.png"};
    static const int lengths[] = {1, RATE_HZ / 2};
    char kept[sizeof input];
    float *x = calloc(RATE_HZ, sizeof *x);
    memcpy(kept, input, sizeof kept);
    snprintf(input, sizeof input, "%s", test_path(state, "hard.wav"));
    for (int k = 0; k < 2; k++) {
        x[0] = k == 0 ? 0.5f : 0;
        test_write(input, &(wt_audio_writer_config){.rate_hz = RATE_HZ, .channels = 1, .sample = WT_SAMPLE_F32}, x,
                   lengths[k], 1000);
        for (int i = 0; i < 3; i++)
            if (run(EVERY, test_path(state, outputs[i]))) fail_msg("%s", analyze_out);
    }
    memcpy(input, kept, sizeof kept);
    free(x);
}

/// In tiles of a fifth of the signal, which is more than they are held for, the same bytes.
static void tiles_are_the_whole(void **state)
{
    static const char *const options =
        "-f nsgt,piptrack,salience,fourier_tempogram,tempo_ratios,nmf,griffin_lim --iterations 2 --n-fft 512";
    char tiled[512];
    size_t n_whole, n_tiled;
    snprintf(tiled, sizeof tiled, "%s --tile 2400", options);
    if (run(options, test_path(state, "whole.npz"))) fail_msg("%s", analyze_out);
    if (run(tiled, test_path(state, "tiled.npz"))) fail_msg("%s", analyze_out);
    char *whole = test_slurp(test_path(state, "whole.npz"), &n_whole);
    char *parts = test_slurp(test_path(state, "tiled.npz"), &n_tiled);
    assert_int_equal(n_whole, n_tiled);
    assert_memory_equal(whole, parts, n_whole);
    free(whole), free(parts);
}

/// Times of a tile are rounded before the tile's own is added: a last digit. What is NaN is NaN.
static void times_of_tiles_are_the_signals(void **state)
{
    for (int k = 0; k < 3; k++) {
        npy whole = array_of(state, "-f reassigned" SHORT, k);
        npy tiled = array_of(state, "-f reassigned --tile 1000" SHORT, k);
        assert_true(whole.count == tiled.count && whole.shape[1] == tiled.shape[1]);
        const float *w = whole.data, *t = tiled.data, bound = k == 1 ? 6e-8f : 0; // one second long
        for (size_t i = 0; i < whole.count; i++)
            if (isnan(w[i]) ? !isnan(t[i]) : !(fabsf(w[i] - t[i]) <= bound))
                fail_msg("array %d, value %zu: %.9g, want %.9g", k, i, (double)t[i], (double)w[i]);
        npy_free(&whole), npy_free(&tiled);
    }
}

static void a_table_has_one_kind_of_column(void **state)
{
    assert_int_equal(run("-f nmf", test_path(state, "x.csv")), 2);
    assert_non_null(strstr(analyze_out, "csv holds one table, components and activations make two"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_q_goes_by_one_spectrogram),
        cmocka_unit_test(the_invertible_transform_is_sampled),
        cmocka_unit_test(peaks_of_spectra_are_pitches),
        cmocka_unit_test(multiples_of_a_frequency_add_up),
        cmocka_unit_test(bins_are_reassigned),
        cmocka_unit_test(tempi_are_fourier_transformed),
        cmocka_unit_test(multiples_of_the_tempo_are_weighed),
        cmocka_unit_test(spectra_are_sums_of_components),
        cmocka_unit_test(magnitudes_become_a_signal),
        cmocka_unit_test(mel_bands_become_a_signal),
        cmocka_unit_test(coefficients_become_bands_and_a_signal),
        cmocka_unit_test(short_and_silent_files_work),
        cmocka_unit_test(tiles_are_the_whole),
        cmocka_unit_test(times_of_tiles_are_the_signals),
        cmocka_unit_test(a_table_has_one_kind_of_column),
    };
    if (!find_program(analyze_program, sizeof analyze_program)) return 1;
    return cmocka_run_group_tests_name("analyze: more", tests, make_input, remove_input);
}
