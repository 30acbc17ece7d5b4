// `warptone analyze`: signals made of signals, each beside the call of the library, and beside librosa where the golden
// set has it. A bound is that of rounding to float (6e-8 of the peak), or the op's own.
#include "support/analyze_check.h"
#include "support/audio_files.h"
#include "support/golden.h"
#include "support/npy.h"
#include "support/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/agc.h>
#include <warptone/delta.h>
#include <warptone/denoise.h>
#include <warptone/echo.h>
#include <warptone/filter.h>
#include <warptone/fir_design.h>
#include <warptone/normalize.h>
#include <warptone/overlap_save.h>
#include <warptone/silence.h>

enum { RATE_HZ = 22050, N = 2 * RATE_HZ + 77, N_IMPULSE = 3000 };

static float *speech;                  // [2][N]: tones over noise
static float playback[N], impulse[N_IMPULSE];
static float want[2 * N], made[N + N_IMPULSE];

static void write_file(void **state, const char *name, const float *x, int channels, int n)
{
    test_write(test_path(state, name),
               &(wt_audio_writer_config){.rate_hz = RATE_HZ, .channels = channels, .sample = WT_SAMPLE_F32}, x, n,
               1000);
}

static int create(void **state)
{
    if (test_folder_create(state)) return -1;
    speech = test_noise(2, N, 0.02f);
    float *heard = test_noise(1, N, 0.3f);
    for (int i = 0; i < 2 * N; i++) {
        const float t = (float)(i % N) / RATE_HZ;
        speech[i] += 0.3f * expf(-8 * fmodf(t, 0.3f)) * sinf(6.2831853f * 447.3f * t);
    }
    memcpy(playback, heard, sizeof playback);
    for (int k = 0; k < N_IMPULSE; k++) impulse[k] = heard[k] * expf(-(float)k / 500);
    free(heard);
    write_file(state, "in.wav", speech, 2, N);
    write_file(state, "mono.wav", speech, 1, N);
    write_file(state, "playback.wav", playback, 1, N);
    write_file(state, "impulse.wav", impulse, 1, N_IMPULSE);
    return 0;
}

static int destroy(void **state)
{
    free(speech);
    return test_folder_remove(state);
}

/// The samples that options make of a file in the test's folder: [*n].
static float *signal_of(void **state, const char *options, const char *input, size_t *n)
{
    char arguments[512];
    npy a;
    snprintf(arguments, sizeof arguments, "--backend cpu %s '%%s' '%%s'", options);
    assert_analyze(arguments, test_path(state, input), test_path(state, "out.npy"));
    assert_ok(npy_read(test_path(state, "out.npy"), &a));
    float *x = npy_floats(&a);
    *n = a.count;
    npy_free(&a);
    return x;
}

static void assert_made(void **state, const char *options, const char *input, const float *wanted, int count,
                        double bound)
{
    size_t n;
    double peak = 0;
    float *got = signal_of(state, options, input, &n);
    assert_int_equal(n, count);
    for (int i = 0; i < count; i++) peak = fmax(peak, fabs((double)wanted[i]));
    for (int i = 0; i < count; i++)
        if (!(fabs((double)wanted[i] - got[i]) <= bound * peak))
            fail_msg("%s, sample %d: %.9g, want %.9g, peak %.9g", options, i, (double)got[i], (double)wanted[i], peak);
    free(got);
}

// ---- filters

static const wt_sos_design_config telephone = {.family = WT_ELLIPTIC, .band = WT_BAND_PASS, .order = 5,
                                               .rate_hz = RATE_HZ, .edge_hz = {300, 3400}, .ripple_db = 0.5,
                                               .attenuation_db = 50};
#define TELEPHONE " --family elliptic --band pass --order 5 --edges 300,3400 --ripple 0.5 --attenuation 50"

static void sections_filter_each_channel(void **state)
{
    double sos[WT_SOS_MAX_SECTIONS][6];
    wt_sos *filter;
    int n;
    assert_ok(wt_sos_design(&telephone, sos[0], &n));
    assert_ok(wt_sos_create(&(wt_sos_config){.sos = sos[0], .n_sections = n}, &filter));
    wt_sos_process(filter, (const float *[]){speech, speech + N}, (float *[]){want, want + N}, N);
    assert_made(state, "-f filter --channels" TELEPHONE, "in.wav", want, 2 * N, 1e-7);
    wt_sos_destroy(filter);
}

static void sections_filter_forward_and_backward(void **state)
{
    double sos[WT_SOS_MAX_SECTIONS][6];
    int n;
    assert_ok(wt_sos_design(&telephone, sos[0], &n));
    assert_ok(wt_sos_filtfilt(sos[0], n, speech, want, N, 0));
    assert_made(state, "-f filtfilt" TELEPHONE, "mono.wav", want, N, 0);
}

/// The middle tap is at the output's time.
static void assert_fir(void **state, const char *options, const double *taps, int n_taps)
{
    float *rounded = malloc(sizeof *rounded * (size_t)n_taps);
    for (int k = 0; k < n_taps; k++) rounded[k] = (float)taps[k];
    assert_ok(wt_fft_convolve(speech, N, rounded, n_taps, made));
    assert_made(state, options, "mono.wav", made + (n_taps - 1) / 2, N, 1e-6);
    free(rounded);
}

static void fir_filters_are_designed_in_three_ways(void **state)
{
    const double top = RATE_HZ / 2.0, edge[] = {2000 / top};
    const double edges[] = {0, 1800 / top, 2200 / top, 1}, low[] = {1, 1, 0, 0}, high[] = {0, 0, 1, 1};
    double taps[255];
    assert_ok(wt_fir_design_window(&(wt_fir_window_config){.n_taps = 255, .cutoffs = edge, .n_cutoffs = 1}, taps));
    assert_fir(state, "-f fir --edges 2000", taps, 255);
    assert_ok(wt_fir_design_least_squares(
        &(wt_fir_bands_config){.n_taps = 101, .n_bands = 2, .edges = edges, .desired = low}, taps));
    assert_fir(state, "-f fir --edges 2000 --transition 400 --taps 101 --design least_squares", taps, 101);
    assert_ok(wt_fir_design_equiripple(
        &(wt_fir_bands_config){.n_taps = 101, .n_bands = 2, .edges = edges, .desired = high}, taps));
    assert_fir(state, "-f fir --edges 2000 --transition 400 --taps 101 --design equiripple --band high", taps, 101);
}

static void impulses_come_from_files(void **state)
{
    assert_ok(wt_fft_convolve(speech, N, impulse, N_IMPULSE, made));
    char options[4200];
    snprintf(options, sizeof options, "-f convolve --impulse '%s'", test_path(state, "impulse.wav"));
    size_t n;
    char arguments[8400];
    npy a;
    snprintf(arguments, sizeof arguments, "--backend cpu %s '%%s' '%%s'", options);
    assert_analyze(arguments, test_path(state, "mono.wav"), test_path(state, "out.npy"));
    assert_ok(npy_read(test_path(state, "out.npy"), &a));
    n = a.count;
    assert_int_equal(n, N);
    assert_snr_db(made, (const float *)a.data, N, 120.0);
    npy_free(&a);
}

static void polynomials_smooth_and_differentiate(void **state)
{
    assert_ok(wt_savgol_filter(&(wt_savgol_config){.n_taps = 11, .order = 3}, speech, want, N));
    assert_made(state, "-f savgol", "mono.wav", want, N, 0);
    assert_ok(wt_savgol_filter(&(wt_savgol_config){.n_taps = 21, .order = 4, .derivative = 1}, speech, want, N));
    assert_made(state, "-f savgol --taps 21 --polynomial 4 --derivative 1", "mono.wav", want, N, 0);
}

// ---- level

static void one_gain_brings_all_channels_to_a_level(void **state)
{
    static const struct {
        const char *options;
        wt_normalize_config config;
    } cases[] = {
        {"-f normalize --channels", {.rate_hz = RATE_HZ}},
        {"-f normalize --channels --target -16 --ceiling -3", {.rate_hz = RATE_HZ, .target_db = -16, .ceiling_db = -3}},
        {"-f normalize --channels --by rms --target -30", {.kind = WT_NORMALIZE_RMS, .target_db = -30}},
        {"-f normalize --channels --by peak", {.kind = WT_NORMALIZE_PEAK}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        wt_normalize_config config = cases[k].config;
        wt_normalize *plan;
        config.channels = 2, config.n_frames = N;
        assert_ok(wt_normalize_create(NULL, &config, &plan));
        wt_normalize_run(plan, speech, want);
        assert_made(state, cases[k].options, "in.wav", want, 2 * N, 0);
        wt_normalize_destroy(plan);
    }
}

/// Whole, in tiles, and by other measures: one sentence of what was met and wanted; none where the target is met.
static void a_target_that_the_ceiling_keeps_away_is_told(void **state)
{
    static const struct {
        const char *options, *sentence;
    } cases[] = {
        {"--target -3", " LUFS, want -3.0: its true peak is at the ceiling of 0 dBTP"},
        {"--target -3 --ceiling -6 --tile 4096", " LUFS, want -3.0: its true peak is at the ceiling of -6 dBTP"},
        {"--target -3 --no-true-peak", " LUFS, want -3.0: its largest sample is at the ceiling of 0 dB"},
        {"--by rms --target -1 --channels", " dB, want -1.0: its largest sample is at the ceiling of 0 dB"},
        {"--target -40", NULL},
        {"--by peak", NULL},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char arguments[512];
        snprintf(arguments, sizeof arguments, "--backend cpu -f normalize %s '%%s' '%%s'", cases[k].options);
        assert_analyze(arguments, test_path(state, "in.wav"), test_path(state, "level.npz"));
        static const char told[] = "in.wav: normalize met ";
        const char *at = strstr(analyze_out, told);
        assert_true(!at == !cases[k].sentence);
        if (at && !strstr(at, cases[k].sentence)) fail_msg("%s: %s", cases[k].options, analyze_out);
        assert_true(!at || !strstr(at + strlen(told), "normalize met")); // once
    }
}

static void gain_control_is_of_all_channels(void **state)
{
    wt_agc *agc;
    assert_ok(wt_agc_create(&(wt_agc_config){.rate_hz = RATE_HZ, .target_db = -12, .max_gain_db = 9}, &agc));
    wt_agc_process(agc, (const float *[]){speech, speech + N}, (float *[]){want, want + N}, N);
    assert_made(state, "-f agc --channels --target -12 --max-gain 9", "in.wav", want, 2 * N, 1e-7);
    wt_agc_destroy(agc);
}

// ---- voice

/// The op's outputs, moved to their own time: what it gives for silence behind the signal counts too.
static void denoise_to(const wt_denoise_config *config, int noise_from, int n_noise)
{
    wt_denoise *denoise;
    static float in[N + RATE_HZ], out[N + RATE_HZ];
    memcpy(in, speech, sizeof *in * N);
    assert_ok(wt_denoise_create(config, &denoise));
    if (n_noise) assert_ok(wt_denoise_learn(denoise, (const float *[]){speech + noise_from}, n_noise));
    wt_denoise_process(denoise, (const float *[]){in}, (float *[]){out}, N + RATE_HZ);
    memcpy(want, out + wt_denoise_latency_frames(denoise), sizeof *want * N);
    wt_denoise_destroy(denoise);
}

static void noise_is_tracked_or_learnt(void **state)
{
    denoise_to(&(wt_denoise_config){.rate_hz = RATE_HZ, .channels = 1}, 0, 0);
    assert_made(state, "-f denoise", "mono.wav", want, N, 1e-7);
    denoise_to(&(wt_denoise_config){.rate_hz = RATE_HZ, .channels = 1, .mode = WT_DENOISE_GATE, .max_cut_db = 12}, 0,
               0);
    assert_made(state, "-f denoise --denoiser gate --max-cut 12", "mono.wav", want, N, 1e-7);
    denoise_to(&(wt_denoise_config){.rate_hz = RATE_HZ, .channels = 1, .mode = WT_DENOISE_WIENER, .stationary = true},
               RATE_HZ / 4, RATE_HZ / 4);
    assert_made(state, "-f denoise --denoiser wiener --noise 0.250001,0.500001", "mono.wav", want, N, 1e-7);
}

static void echoes_of_another_file_are_taken_out(void **state)
{
    static float in[N + RATE_HZ], out[N + RATE_HZ], heard[N + RATE_HZ];
    wt_echo *echo;
    char arguments[8400];
    npy a;
    memcpy(heard, playback, sizeof playback);
    for (int t = 0; t < N; t++) in[t] = speech[t] + (t < 200 ? 0 : 0.5f * playback[t - 200]);
    write_file(state, "mic.wav", in, 1, N);
    assert_ok(wt_echo_create(&(wt_echo_config){.rate_hz = RATE_HZ, .tail_ms = 100}, &echo));
    wt_echo_process(echo, (const float *[]){in}, heard, (float *[]){out}, N + RATE_HZ);
    snprintf(arguments, sizeof arguments, "--backend cpu -f echo_cancel --tail 100 --playback '%s' '%%s' '%%s'",
             test_path(state, "playback.wav"));
    assert_analyze(arguments, test_path(state, "mic.wav"), test_path(state, "out.npy"));
    assert_ok(npy_read(test_path(state, "out.npy"), &a));
    assert_int_equal(a.count, N);
    assert_snr_db(out + wt_echo_latency_frames(echo), (const float *)a.data, N, 120.0);
    double before = 0, after = 0; // the second half, once it has learnt the room
    for (int t = N / 2; t < N; t++) {
        before += pow(in[t] - speech[t], 2);
        after += pow(((const float *)a.data)[t] - speech[t], 2);
    }
    assert_true(after < 0.1 * before);
    npy_free(&a);
    wt_echo_destroy(echo);
}

// ---- there and back, other rates, librosa

static void transforms_give_the_signal_back(void **state)
{
    assert_made(state, "-f istft", "mono.wav", speech, N, 5e-7);
    assert_made(state, "-f istft --n-fft 1000 --hop 300 --channels", "in.wav", speech, 2 * N, 5e-7);
    assert_made(state, "-f insgt", "mono.wav", speech, N, 1e-6); // 120 dB
    assert_made(state, "-f resample", "mono.wav", speech, N, 0);
}

static void librosa_makes_the_same(void **state)
{
    static const struct {
        const char *name, *options;
    } cases[] = {
        {"preemphasis_default", "-f preemphasis --rate 0"},
        {"deemphasis_default", "-f deemphasis --rate 0"},
        {"resample_hq_22k_16k", "-f resample --rate 16000 --quality soxr_hq"},
        {"resample_hq_1to2", "-f resample --rate 44100 --quality soxr_hq"},
        {"istft_roundtrip_1000", "-f istft --n-fft 1000 --hop 250"},
        {"icqt_default", "-f icqt"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const golden_case *g = golden_find(cases[k].name);
        size_t n_in, n;
        const float *in = golden_input(g, 0, &n_in);
        write_file(state, "golden.wav", in, 1, (int)n_in);
        float *got = signal_of(state, cases[k].options, "golden.wav", &n);
        assert_true(n >= g->columns); // librosa's inverses leave out what is behind the last frame's middle
        golden_check(g, got, 1, g->columns);
        free(got);
    }
}

static void slopes_are_of_any_row_of_numbers(void **state)
{
    enum { FRAMES = N / 512 + 1 };
    static float rms[FRAMES];
    assert_ok(wt_level_rms(&(wt_level_config){0}, speech, N, rms));
    for (int order = 1; order <= 2; order++) {
        assert_ok(wt_delta_run(&(wt_delta_config){.order = order}, rms, 1, FRAMES, want));
        assert_made(state, order == 1 ? "-f rms_delta" : "-f rms_delta2", "mono.wav", want, FRAMES, 0);
    }
    assert_analyze("--backend cpu -f mfcc_delta,chroma_delta,plp_delta '%s' '%s'", test_path(state, "mono.wav"),
                   test_path(state, "slopes.npz"));
}

// ---- formats

static void sound_keeps_its_channels_and_rate(void **state)
{
    double sos[WT_SOS_MAX_SECTIONS][6];
    int n;
    int64_t n_frames;
    wt_sos *filter;
    assert_ok(wt_sos_design(&telephone, sos[0], &n));
    assert_ok(wt_sos_create(&(wt_sos_config){.sos = sos[0], .n_sections = n}, &filter));
    wt_sos_process(filter, (const float *[]){speech, speech + N}, (float *[]){want, want + N}, N);
    wt_sos_destroy(filter);
    assert_analyze("--backend cpu -f filter" TELEPHONE " '%s' '%s'", test_path(state, "in.wav"),
                   test_path(state, "out.wav"));
    float *got = test_read(test_path(state, "out.wav"), NULL, 1000, &n_frames);
    assert_int_equal(n_frames, N);
    assert_snr_db(want, got, 2 * N, 130.0);
    free(got);
}

static void waves_are_drawn(void **state)
{
    assert_analyze("--backend cpu -f resample,agc,rms '%s' '%s'", test_path(state, "mono.wav"),
                   test_path(state, "out.png"));
    assert_analyze("--backend cpu -f resample,agc '%s' '%s'", test_path(state, "mono.wav"),
                   test_path(state, "out.csv"));
    assert_analyze("--backend cpu -f normalize '%s' '%s'", test_path(state, "mono.wav"), test_path(state, "out.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sections_filter_each_channel),
        cmocka_unit_test(sections_filter_forward_and_backward),
        cmocka_unit_test(fir_filters_are_designed_in_three_ways),
        cmocka_unit_test(impulses_come_from_files),
        cmocka_unit_test(polynomials_smooth_and_differentiate),
        cmocka_unit_test(one_gain_brings_all_channels_to_a_level),
        cmocka_unit_test(a_target_that_the_ceiling_keeps_away_is_told),
        cmocka_unit_test(gain_control_is_of_all_channels),
        cmocka_unit_test(noise_is_tracked_or_learnt),
        cmocka_unit_test(echoes_of_another_file_are_taken_out),
        cmocka_unit_test(transforms_give_the_signal_back),
        cmocka_unit_test(librosa_makes_the_same),
        cmocka_unit_test(slopes_are_of_any_row_of_numbers),
        cmocka_unit_test(sound_keeps_its_channels_and_rate),
        cmocka_unit_test(waves_are_drawn),
    };
    if (!find_program(analyze_program, sizeof analyze_program)) return 1;
    return cmocka_run_group_tests_name("analyze: effects", tests, create, destroy);
}
