// `warptone analyze`: settings of ops that the command line hands on, each beside the call of the library.
#include "support/analyze_check.h"
#include "support/audio_files.h"
#include "support/npy.h"
#include "support/spectral_check.h"
#include "support/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/decompose.h>
#include <warptone/mel.h>
#include <warptone/mfcc.h>
#include <warptone/pitch.h>
#include <warptone/stft.h>
#include <warptone/tempo.h>

enum { RATE_HZ = 22050, N = RATE_HZ + 77, N_FFT = 512, BINS = N_FFT / 2 + 1, HOP = 512, FRAMES = N / HOP + 1 };
#define SHORT " --n-fft 512 "

static char input[4096];
static float *noisy; // [N]: tones that begin anew, over noise
static float want[2 * FRAMES * BINS];

static int create(void **state)
{
    if (test_folder_create(state)) return -1;
    noisy = test_noise(1, N, 0.02f);
    for (int i = 0; i < N; i++) {
        const float t = (float)i / RATE_HZ;
        noisy[i] += 0.3f * expf(-8 * fmodf(t, 0.3f)) * sinf(6.2831853f * 447.3f * t);
    }
    snprintf(input, sizeof input, "%s", test_path(state, "in.wav"));
    test_write(input, &(wt_audio_writer_config){.rate_hz = RATE_HZ, .channels = 1, .sample = WT_SAMPLE_F32}, noisy, N,
               1000);
    return 0;
}

static int destroy(void **state)
{
    free(noisy);
    return test_folder_remove(state);
}

static npy array_of(void **state, const char *options, int k) { return analyze_array_of(state, options, input, k); }

static void windows_and_paddings_are_those_of_stft(void **state)
{
    static const struct {
        const char *options;
        wt_window_config window;
        wt_stft_pad pad;
    } cases[] = {
        {"-f stft --window hamming --padding reflect" SHORT, {.kind = WT_WINDOW_HAMMING}, WT_STFT_PAD_REFLECT},
        {"-f stft --window blackman --padding symmetric" SHORT, {.kind = WT_WINDOW_BLACKMAN}, WT_STFT_PAD_SYMMETRIC},
        {"-f stft --window blackman_harris --padding edge" SHORT,
         {.kind = WT_WINDOW_BLACKMAN_HARRIS}, WT_STFT_PAD_EDGE},
        {"-f stft --window kaiser --window-parameter 8.6 --padding ramp" SHORT,
         {.kind = WT_WINDOW_KAISER, .parameter = 8.6}, WT_STFT_PAD_RAMP},
        {"-f stft --window gaussian --window-parameter 70 --padding zero" SHORT,
         {.kind = WT_WINDOW_GAUSSIAN, .parameter = 70}, WT_STFT_PAD_ZERO},
        {"-f stft --window flat_top" SHORT, {.kind = WT_WINDOW_FLAT_TOP}, WT_STFT_PAD_ZERO},
        {"-f stft --window rectangular --tile 500" SHORT, {.kind = WT_WINDOW_RECTANGULAR}, WT_STFT_PAD_ZERO},
        {"-f stft --window hann --padding reflect --tile 500" SHORT, {.kind = WT_WINDOW_HANN}, WT_STFT_PAD_REFLECT},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        wt_stft *stft;
        const wt_stft_config config = {
            .n_fft = N_FFT, .hop = HOP, .window = cases[k].window, .pad = cases[k].pad};
        assert_ok(wt_stft_create(&config, &stft));
        assert_int_equal(wt_stft_forward(stft, noisy, N, want), WT_OK);
        wt_stft_destroy(stft);
        analyze_assert_turned(array_of(state, cases[k].options, 0), want, BINS, FRAMES);
    }
}

static void write_window(const char *path, const float *samples, int n)
{
    const wt_audio_writer_config config = {.rate_hz = 48000, .channels = 1, .sample = WT_SAMPLE_F32};
    test_write(path, &config, samples, n, n);
}

/// The writer leaves none: one sample of the file becomes no number behind its back.
static void spoil(const char *path, float sample)
{
    const float nan = NAN;
    size_t size, at = 0;
    char *bytes = test_slurp(path, &size);
    while (at + sizeof sample < size && memcmp(bytes + at, &sample, sizeof sample)) at++;
    memcpy(bytes + at, &nan, sizeof nan);
    test_spill(path, bytes, size);
    free(bytes);
}

/// Hamming's from a file are Hamming's, in tiles too; in double its digits are a float's.
static void a_window_may_be_given(void **state)
{
    float samples[N_FFT + 1] = {0};
    char options[4096], path[2000];
    snprintf(path, sizeof path, "%s", test_path(state, "window.wav"));
    assert_ok(wt_window_fill(&(wt_window_config){.kind = WT_WINDOW_HAMMING, .n = N_FFT}, samples));
    write_window(path, samples, N_FFT);
    const char *tiles[] = {"", "--tile 500"};
    for (int k = 0; k < 2; k++) {
        snprintf(options, sizeof options, "-f stft,istft,mel --window custom --window-file '%s' %s" SHORT, path,
                 tiles[k]);
        for (int i = 0; i < 3; i++) {
            npy a = array_of(state, options, i), b = array_of(state, "-f stft,istft,mel --window hamming" SHORT, i);
            assert_true(a.count == b.count && !memcmp(a.data, b.data, a.count * (size_t)a.item_bytes));
            npy_free(&a), npy_free(&b);
        }
    }
    const struct {
        const char *options, *sentence;
        int n;
        bool no_number;
    } bad[] = {{"-f stft --window custom", "--window custom wants --window-file FILE", N_FFT, false},
               {"-f stft --window hann --window-file W", "--window-file W is of --window custom", N_FFT, false},
               {"-f stft --window custom --window-file W", "cannot be opened", N_FFT, false},
               {"-f stft --window custom --window-file '%s'", "512 samples, want 2048", N_FFT, false},
               {"-f stft --window custom --window-file '%s'" SHORT, "511 samples, want 512", N_FFT - 1, false},
               {"-f stft --window custom --window-file '%s'" SHORT, "more than 512 samples", N_FFT + 1, false},
               {"-f stft --window custom --window-file '%s'" SHORT, "no numbers", N_FFT, true},
               {"-f fir --edges 900 --window custom --window-file '%s'" SHORT, "fir wants hamming", N_FFT, false},
               {"-f cqt --window custom --window-file '%s'" SHORT, "custom windows", N_FFT, false}};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        write_window(path, samples, bad[k].n);
        if (bad[k].no_number) spoil(path, samples[7]);
        snprintf(options, sizeof options, bad[k].options, path);
        analyze_assert_refused(state, input, strstr(bad[k].sentence, "cannot be opened") ? 1 : 2,
                               &(analyze_refusal){options, bad[k].sentence}, 1);
    }
}

static void assert_rows(npy a, const float *x, size_t rows)
{
    assert_int_equal(a.shape[0], rows);
    assert_int_equal(a.count, rows * FRAMES);
    assert_memory_equal(a.data, x, sizeof *x * a.count);
    npy_free(&a);
}

static void bands_and_coefficients_have_their_norms(void **state)
{
    static const char *const norms[] = {"slaney", "none", "1", "2", "inf"};
    for (int k = 0; k < 5; k++) {
        char options[64];
        wt_mel *mel;
        const wt_mel_config config = {.n_samples = N,
                                      .stft = {.n_fft = N_FFT, .hop = HOP},
                                      .bank = {.n_fft = N_FFT, .n_mels = 40, .norm = (wt_mel_norm)k}};
        assert_ok(wt_mel_create(NULL, &config, &mel));
        wt_mel_run(mel, noisy, want);
        wt_mel_destroy(mel);
        snprintf(options, sizeof options, "-f mel --n-mels 40 --mel-norm %s" SHORT, norms[k]);
        assert_rows(array_of(state, options, 0), want, 40);
    }
    for (int type = 1; type <= 3; type++) {
        char options[80];
        static float db[40 * FRAMES];
        wt_mel *mel;
        const wt_mfcc_config config = {.mel = {.n_samples = N,
                                               .stft = {.n_fft = N_FFT, .hop = HOP, .precise = true},
                                               .bank = {.n_fft = N_FFT, .n_mels = 40},
                                               .scale = WT_MEL_DB},
                                       .dct_type = type,
                                       .lifter = 22};
        assert_ok(wt_mel_create(NULL, &config.mel, &mel));
        wt_mel_run(mel, noisy, db);
        wt_mel_destroy(mel);
        assert_ok(wt_mfcc_of_db(&config, db, FRAMES, want));
        snprintf(options, sizeof options, "-f mfcc --n-mels 40 --lifter 22 --dct-type %d" SHORT, type);
        assert_rows(array_of(state, options, 0), want, 20);
    }
}

static void voicing_and_tempi_can_be_better_than_librosas(void **state)
{
    wt_pyin *pyin;
    const wt_pyin_config config = {
        .frames = {.fmin_hz = 65.40639132514966, .fmax_hz = 2093.004522404789, .hop = HOP, .n_samples = N},
        .calibrated = true};
    assert_ok(wt_pyin_create(NULL, &config, &pyin));
    float *voice = test_noise(1, N, 0.003f); // a tone that comes and goes
    for (int i = 0; i < N; i++)
        if (i % 8000 < 4000) voice[i] += 0.3f * sinf(6.2831853f * 180 * (float)i / RATE_HZ);
    test_write(test_path(state, "voice.wav"),
               &(wt_audio_writer_config){.rate_hz = RATE_HZ, .channels = 1, .sample = WT_SAMPLE_F32}, voice, N, 1000);
    wt_pyin_run(pyin, voice, want);
    wt_pyin_destroy(pyin);
    free(voice);
    npy voiced = analyze_array_of(state, "-f pyin --calibrated", test_path(state, "voice.wav"), 1);
    npy plain = analyze_array_of(state, "-f pyin", test_path(state, "voice.wav"), 1);
    int n_fewer = 0;
    assert_int_equal(voiced.count, FRAMES);
    for (int t = 0; t < FRAMES; t++) {
        assert_int_equal(((unsigned char *)voiced.data)[t], want[FRAMES + t] > 0);
        n_fewer += ((unsigned char *)voiced.data)[t] < ((unsigned char *)plain.data)[t];
    }
    assert_true(n_fewer > 0);
    npy_free(&voiced), npy_free(&plain);
    npy strength = array_of(state, "-f onset_strength", 0), coarse = array_of(state, "-f tempo", 0),
        fine = array_of(state, "-f tempo --fine", 0);
    wt_tempo *tempo;
    assert_ok(wt_tempo_create(NULL, &(wt_tempo_config){.fine = true}, &tempo));
    const double bpm = wt_tempo_run(tempo, strength.data, FRAMES);
    wt_tempo_destroy(tempo);
    assert_memory_equal(fine.data, &bpm, sizeof bpm);
    assert_true(fabs(bpm - *(double *)coarse.data) > 1e-3);
    npy_free(&strength), npy_free(&coarse), npy_free(&fine);
}

/// One iteration more of the library's, from what ten gave, is what eleven give.
static void components_are_found_in_three_ways(void **state)
{
    static const char *const solvers[] = {"cd", "multiplicative", "multiplicative_kl"};
    npy v = array_of(state, "-f spectrogram" SHORT, 0), parts[2][2];
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < 4; i++) {
            char options[128];
            snprintf(options, sizeof options, "-f nmf --components 3 --iterations %d --solver %s" SHORT, 10 + i / 2,
                     solvers[k]);
            parts[i / 2][i % 2] = array_of(state, options, i % 2);
        }
        wt_nmf *nmf;
        const wt_nmf_config config = {
            .rows = BINS, .columns = FRAMES, .n_components = 3, .n_iter = 1, .solver = (wt_nmf_solver)k};
        assert_ok(wt_nmf_create(NULL, &config, &nmf));
        wt_nmf_run(nmf, v.data, parts[0][0].data, parts[0][1].data);
        wt_nmf_destroy(nmf);
        // rounded to float between the tenth and the eleventh
        assert_near_peak(parts[0][0].data, parts[1][0].data, parts[0][0].count, 1e-5, solvers[k]);
        assert_near_peak(parts[0][1].data, parts[1][1].data, parts[0][1].count, 1e-5, solvers[k]);
        for (int i = 0; i < 4; i++) npy_free(&parts[i / 2][i % 2]);
    }
    npy_free(&v);
}

static void assert_same(void **state, const char *path, const char *plain, const char *said)
{
    npy want = analyze_array_of(state, plain, path, 0), got = analyze_array_of(state, said, path, 0);
    assert_int_equal(got.count, want.count);
    double *w = npy_doubles(&want), *g = npy_doubles(&got);
    for (size_t i = 0; i < want.count; i++)
        if (w[i] < g[i] || w[i] > g[i]) fail_msg("%s, value %zu: %.9g, want %.9g", said, i, g[i], w[i]);
    free(w), free(g);
    npy_free(&want), npy_free(&got);
}

/// A sample that stands alone, then silence, then a tone: repeated before the signal the sample would be no silence.
static void what_librosas_functions_have_not_is_left_alone(void **state)
{
    const char *path = test_path(state, "late.wav");
    float *late = calloc(N, sizeof *late);
    assert_non_null(late);
    late[0] = 0.5f;
    for (int i = N / 2; i < N; i++) late[i] = sinf(6.2831853f * 447.3f * (float)i / RATE_HZ);
    test_write(path, &(wt_audio_writer_config){.rate_hz = RATE_HZ, .channels = 1, .sample = WT_SAMPLE_F32}, late, N,
               1000);
    free(late);
    assert_same(state, path, "-f split --top-db 30", "-f split --top-db 30 --padding edge");
    assert_same(state, path, "-f split --top-db 30", "-f split --top-db 30 --padding edge --tile 500");
    assert_same(state, input, "-f chroma_cens --fmin 110 --n-octaves 4",
                "-f chroma_cens --fmin 110 --n-octaves 4 --threshold 3");
}

static void what_has_no_meaning_is_refused(void **state)
{
    static const analyze_refusal cases[] = {
        {"-f stft --window x",
         "--window is \"x\", want hann, hamming, blackman, blackman_harris, kaiser, gaussian, flat_top, "
         "rectangular or custom"},
        {"-f stft --window kaiser", "--window kaiser wants --window-parameter X"},
        {"-f stft --window gaussian", "--window gaussian wants --window-parameter X"},
        {"-f stft --window hann --window-parameter 3", "--window-parameter 3 is of --window kaiser or gaussian"},
        {"-f stft --window kaiser --window-parameter 0", "option --window-parameter is \"0\""},
        {"-f stft --window kaiser --window-parameter 900", "900"},
        {"-f stft --padding x", "--padding is \"x\", want zero, reflect, symmetric, edge or ramp"},
        {"-f mel --mel-norm x", "--mel-norm is \"x\", want slaney, none, 1, 2 or inf"},
        {"-f mfcc --dct-type 4", "option --dct-type is \"4\", want an integer in 1..3"},
        {"-f mfcc --lifter -1", "option --lifter is \"-1\""},
        {"-f logmel --ref x", "--ref is \"x\", want a power in 1e-30..1e30, or max"},
        {"-f logmel --ref 0", "--ref is \"0\", want a power"},
        {"-f logmel --amin 0", "option --amin is \"0\", want a number in 1e-37.."},
        {"-f mel --power 0", "option --power is \"0\", want a number in 0.001..100"},
        {"-f mfcc --dct-norm x", "--dct-norm is \"x\", want ortho or none"},
        {"-f mfcc_delta --delta-width 4", "delta: width 4, want an odd one"},
        {"-f mfcc_delta --delta-width 1", "option --delta-width is \"1\", want an integer in 3..1023"},
        {"-f mfcc_delta --delta-mode turn", "--delta-mode is \"turn\", want interp, nearest, mirror, constant or wrap"},
        {"-f rms_delta9 --delta-width 5", "delta: order 9, want 1..4"},
        {"-f rms_delta1", "unknown feature \"rms_delta1\""},
        {"-f cqt --filter-scale 0", "option --filter-scale is \"0\""},
        {"-f cqt --filter-norm 3", "--filter-norm is \"3\", want 1, 2, inf or none"},
        {"-f cqt --sparsity 1", "option --sparsity is \"1\""},
        {"-f cqt --padding ramp", "cqt: padding 4 (ramp), want 0..3 (zero, reflect, symmetric or edge)"},
        {"-f vqt --gamma -1", "option --gamma is \"-1\""},
        {"-f vqt --intervals 1,0.5", "--intervals is \"1,0.5\", want up to 64 ascending ratios from 1 to below 2"},
        {"-f vqt --intervals 1,9/0", "--intervals is \"1,9/0\", want up to 64"},
        {"-f vqt --intervals 1,3/2 --bins-per-octave 12", "--intervals are 2, want --bins-per-octave 12 of them"},
        {"-f pseudo_cqt --hop 1048576", "cqt: spectra of 84 filters in 2097152 points, want 33554432 points in all"},
        {"-f chroma_cens --fmin 0.001", "want 33554432 points in all at most: a smaller hop, a higher fmin"},
        {"-f chroma_cqt --bins-per-octave 13", "chroma: 91 bins, 13 an octave"},
        {"-f chroma --norm x", "--norm is \"x\", want inf, 1, 2 or none"},
        {"-f chroma_cqt --cqt-mode x", "--cqt-mode is \"x\", want full or hybrid"},
        {"-f nsgt --slice 257", "nsgt: slice 257, want an even 256.."},
        {"-f salience --harmonics 0,1", "--harmonics is \"0,1\", want multiples above 0"},
        {"-f salience --harmonics a", "--harmonics is \"a\", want up to 64 multiples above 0, as 1,2,3"},
        {"-f salience --weights 1,2", "--weights are 2, salience wants one of each of 4 harmonics"},
        {"-f salience --fill-value x", "--fill-value is \"x\", want a number or nan"},
        {"-f fir --edges 100 --design least_squares --weights 1,2,3",
         "--weights are 3, fir wants one of each of 2 bands"},
        {"-f fir --edges 100 --window flat_top",
         "--window flat_top, fir wants hamming, hann, blackman, kaiser or rectangular"},
        {"-f griffin_lim --init x", "--init is \"x\", want random or zero"},
        {"-f griffin_lim --momentum 2", "option --momentum is \"2\", want a number in 0..1"},
        {"-f rolloff --roll-percent 85", "option --roll-percent is \"85\""},
        {"-f contrast --fmin 0", "--fmin 0: contrast wants a lowest frequency above 0"},
        {"-f contrast --fmin 2000", "spectral: contrast band from 16000 Hz"},
        {"-f poly --poly-order 11", "option --poly-order is \"11\", want an integer in 0..10"},
        {"-f pyin --beta-parameters 2", "--beta-parameters is \"2\", want two numbers above 0, as 2,18"},
        {"-f pyin --switch-prob 0", "option --switch-prob is \"0\""},
        {"-f onset_strength --lag 0", "option --lag is \"0\""},
        {"-f onsets --post-max 0", "option --post-max is \"0\""},
        {"-f plp --tempo-min 300 --tempo-max 60", "plp: 300 to 60 BPM, want 0 < min < max"},
        {"-f tempogram --tempogram-length 2", "option --tempogram-length is \"2\", want an integer in 3.."},
        {"-f vad --vad-enter 2", "vad: enters at 2 and leaves at 4 dB"},
        {"-f stft --tempogram-lenght 3", "unknown option --tempogram-lenght; the nearest is --tempogram-length"},
        {"-f nmf --solver x", "--solver is \"x\", want cd, multiplicative or multiplicative_kl"},
    };
    static const analyze_refusal lengths[] = {
        {"-f rms_delta --delta-width 99", "rms_delta: 44 frames, want 99 or more"},
        {"-f rms --no-center --n-fft 100000", "rms: 22127 samples have no frame of 100000"},
        {"-f stft --no-center --n-fft 100000", "stft: 22127 samples have no frame"},
    };
    analyze_assert_refused(state, input, 2, cases, sizeof cases / sizeof *cases);
    analyze_assert_refused(state, input, 3, lengths, sizeof lengths / sizeof *lengths);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_and_paddings_are_those_of_stft),
        cmocka_unit_test(a_window_may_be_given),
        cmocka_unit_test(bands_and_coefficients_have_their_norms),
        cmocka_unit_test(voicing_and_tempi_can_be_better_than_librosas),
        cmocka_unit_test(components_are_found_in_three_ways),
        cmocka_unit_test(what_librosas_functions_have_not_is_left_alone),
        cmocka_unit_test(what_has_no_meaning_is_refused),
    };
    if (!find_program(analyze_program, sizeof analyze_program)) return 1;
    return cmocka_run_group_tests_name("analyze: settings", tests, create, destroy);
}
