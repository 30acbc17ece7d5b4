#include "support/failing_alloc.h"
#include "support/golden.h"
#include "support/realtime.h"
#include "support/spectral_check.h"
#include "support/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/audio_file.h>
#include <warptone/pitch.h>

static wt_pyin_config config_of(const golden_case *g, size_t n)
{
    double beta[2] = {0};
    if (golden_has(g, "beta_parameters")) assert_int_equal(golden_list(g, "beta_parameters", beta, 2), 2);
    return (wt_pyin_config){.frames = golden_pitch_frames(g, n),
                            .keep_unvoiced = strstr(g->params, "fill_na=none"),
                            .n_thresholds = golden_int(g, "n_thresholds", 0),
                            .beta_a = beta[0],
                            .beta_b = beta[1],
                            .boltzmann = golden_double(g, "boltzmann_parameter", 0),
                            .resolution = golden_double(g, "resolution", 0),
                            .max_transition_rate = golden_double(g, "max_transition_rate", 0),
                            .switch_prob = golden_double(g, "switch_prob", 0),
                            .no_trough_prob = golden_double(g, "no_trough_prob", 0)};
}

static void check_case(const golden_case *g, const float *out, size_t n_frames)
{
    const char *part = strrchr(g->name, '_');
    if (!strcmp(part, "_f0")) {
        golden_check(g, out, 1, n_frames); // 1e-6 is far less than a bin: the bins are identical
    } else if (!strcmp(part, "_prob")) {
        golden_check(g, out + 2 * n_frames, 1, n_frames);
    } else {
        int *voiced = malloc(n_frames * sizeof *voiced);
        assert_non_null(voiced);
        for (size_t t = 0; t < n_frames; t++) voiced[t] = (int)out[n_frames + t];
        golden_check_int(g, voiced, 1, n_frames);
        free(voiced);
    }
}

static void every_golden_case_holds(void **state)
{
    (void)state;
    int n_cases = 0;
    for (const golden_case *g = NULL; (g = golden_next("pyin", g)); n_cases++) {
        size_t n;
        const float *pcm = golden_input(g, 0, &n);
        const wt_pyin_config config = config_of(g, n);
        wt_pyin *plan;
        assert_ok(wt_pyin_create(NULL, &config, &plan));
        const size_t n_frames = (size_t)wt_pyin_n_frames(plan);
        float *out = calloc(3 * n_frames, sizeof *out);
        assert_non_null(out);
        RT_SECTION wt_pyin_run(plan, pcm, out);
        check_case(g, out, n_frames);
        wt_pyin_destroy(plan);
        free(out);
    }
    assert_int_equal(n_cases, 15);
}

// A tone that glides, pauses and hisses.
static void fill(float *pcm, int n, int variant)
{
    uint64_t seed = (uint64_t)variant + 1;
    double phase = 0;
    for (int i = 0; i < n; i++) {
        const double t = i / 22050.0;
        phase += 6.283185307179586 * (110 + 60 * variant) * exp2(0.5 * sin(3 * t)) / 22050;
        const double tone = fmod(t, 0.5) < 0.35 ? sin(phase) + 0.5 * sin(2 * phase) : 0;
        pcm[i] = (float)(0.3 * tone + 0.01 * noise(&seed) * (variant % 3));
    }
}

static wt_status enqueue_pyin(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                              size_t out_offset)
{
    return wt_pyin_enqueue(op, stream, in, in_offset, out, out_offset);
}

// On the CPU the batch gives the bits of its signals; a GPU sums in another order, in double, and decides alike.
static void check_device(wt_device *device, double bound, bool calibrated)
{
    enum { N = 33075, SIGNALS = 5 };
    wt_pyin_config config = {.frames = {.fmin_hz = 65, .fmax_hz = 1500, .hop = 500, .n_samples = N},
                             .calibrated = calibrated};
    wt_pyin *one, *many;
    assert_ok(wt_pyin_create(NULL, &config, &one));
    config.frames.n_signals = SIGNALS;
    assert_ok(wt_pyin_create(device, &config, &many));
    const size_t frames = (size_t)wt_pyin_n_frames(one), plane = frames * SIGNALS;
    float *pcm = floats(N * SIGNALS), *want = floats(3 * frames), *got = floats(3 * plane);
    for (int s = 0; s < SIGNALS; s++) fill(pcm + s * N, N, s);
    run_on_stream(&(stream_call){device, enqueue_pyin, many}, pcm, N * SIGNALS, got, 3 * plane);
    int n_voiced = 0;
    for (int s = 0; s < SIGNALS; s++) {
        wt_pyin_run(one, pcm + s * N, want);
        for (size_t t = 0; t < frames; t++) {
            const float f0 = got[(size_t)s * frames + t], voiced = got[plane + (size_t)s * frames + t];
            const float prob = got[2 * plane + (size_t)s * frames + t];
            n_voiced += voiced == 1;
            if (voiced != want[frames + t] || (voiced == 1 && f0 != want[t]) || (voiced == 0 && !isnan(f0)) ||
                !(fabsf(prob - want[2 * frames + t]) <= bound))
                fail_msg("signal %d frame %zu: %g Hz, %g, %g; want %g Hz, %g, %g", s, t, (double)f0, (double)voiced,
                         (double)prob, (double)want[t], (double)want[frames + t], (double)want[2 * frames + t]);
        }
    }
    assert_in_range(n_voiced, plane / 3, plane - plane / 8); // both kinds were met
    wt_pyin_destroy(one), wt_pyin_destroy(many);
    wt_device_close(device);
    free(pcm), free(want), free(got);
}

static void a_batch_gives_what_each_signal_gives(void **state)
{
    (void)state;
    check_device(cpu_device(), 0, false);
    check_device(cpu_device(), 0, true);
}

static void cuda_gives_what_the_cpu_gives(void **state)
{
    (void)state;
    check_device(gpu_device(), 1e-6, false);
    check_device(gpu_device(), 1e-6, true);
}

// Beyond a segment of kept values (here 5,500 frames and more) the way back makes them again: the track of a signal
// repeated must repeat, away from the ends, where the same context decides.
static void long_signals_are_walked_in_segments(void **state)
{
    (void)state;
    enum { PERIOD = 22528, REPEATS = 24, N = PERIOD * REPEATS }; // 44 hops of 512
    float *pcm = malloc(sizeof *pcm * N);
    assert_non_null(pcm);
    fill(pcm, PERIOD, 2);
    for (int i = PERIOD; i < N; i++) pcm[i] = pcm[i - PERIOD];
    const wt_pyin_config config = {.frames = {.fmin_hz = 65, .fmax_hz = 2000, .hop = 64, .n_samples = N}};
    wt_pyin *plan;
    assert_ok(wt_pyin_create(NULL, &config, &plan));
    const size_t frames = (size_t)wt_pyin_n_frames(plan), lap = PERIOD / 64;
    assert_true(frames > (64u << 20) / 16 / (size_t)wt_pyin_n_bins(plan)); // or there is one segment only
    float *out = malloc(3 * frames * sizeof *out);
    assert_non_null(out);
    wt_pyin_run(plan, pcm, out);
    for (size_t t = 2 * lap; t + 2 * lap < frames; t++) {
        assert_true(out[frames + t] == out[frames + t - lap]);
        assert_true(out[frames + t] == 0 || out[t] == out[t - lap]);
    }
    wt_pyin_destroy(plan);
    free(pcm), free(out);
}

// A voice that glides and pauses, over noise; every third time it dies away. It counts as voiced down to -40 dB, and
// down to the noise's own level.
static void fill_voices(float *pcm, char *voiced, int n, double noise_amplitude)
{
    uint64_t seed = 9;
    double phase = 0;
    for (int i = 0; i < n; i++) {
        const double t = i / 22050.0, in = fmod(t, 0.9);
        const bool decays = fmod(t, 2.7) >= 1.8;
        phase += 6.283185307179586 * 150 * exp2(0.4 * sin(1.7 * t)) / 22050;
        double tone = 0, level = in < 0.4 ? 1 : 0;
        if (decays) level = exp(-9 * in); // -40 dB after 0.51 s
        for (int m = 1; m <= 8; m++) tone += sin(m * phase) / m;
        voiced[i] =
            level >= 0.01 && level >= 2.2 * noise_amplitude; // the noise has 0.58 of its amplitude, the voice 0.27
        pcm[i] = (float)(0.3 * level * tone + noise_amplitude * (double)noise(&seed));
    }
}

typedef struct scores {
    double recall, false_alarms;
} scores;

static scores score(const float *pcm, const char *truth, int n, bool calibrated)
{
    wt_pyin *plan;
    assert_ok(wt_pyin_create(
        NULL, &(wt_pyin_config){.frames = {.fmin_hz = 65, .fmax_hz = 800, .n_samples = n}, .calibrated = calibrated},
        &plan));
    const int64_t frames = wt_pyin_n_frames(plan);
    float *out = calloc(3 * (size_t)frames, sizeof *out);
    assert_non_null(out);
    RT_SECTION wt_pyin_run(plan, pcm, out);
    int seen[2] = {0}, called[2] = {0};
    for (int64_t t = 0; t * 512 < n; t++) {
        const int is = truth[t * 512];
        seen[is]++;
        called[is] += out[frames + t] == 1;
        assert_true((out[frames + t] == 0) == isnan(out[t]));
    }
    wt_pyin_destroy(plan);
    free(out);
    assert_true(seen[0] > 100 && seen[1] > 100);
    return (scores){called[1] / (double)seen[1], called[0] / (double)seen[0]};
}

static void calibrated_voicing_gives_few_false_alarms(void **state)
{
    (void)state;
    enum { N = 22050 * 12 };
    float *pcm = malloc(N * sizeof *pcm);
    char *truth = malloc(N);
    assert_true(pcm && truth);
    static const double noises[] = {0, 1e-4, 0.01, 0.1};
    for (int i = 0; i < 4; i++) {
        fill_voices(pcm, truth, N, noises[i]);
        const scores plain = score(pcm, truth, N, false), calibrated = score(pcm, truth, N, true);
        if (!(calibrated.false_alarms < 0.05 && calibrated.recall >= plain.recall - 0.01))
            fail_msg("noise of %g: recall %.3f, false alarms %.3f; want %.3f and 0.05", noises[i], calibrated.recall,
                     calibrated.false_alarms, plain.recall - 0.01);
    }
    free(pcm), free(truth);
}

// Recorded speech between pauses of two seconds with noise at -60 dB. There is no truth for the speech: what the plain
// tracker calls voiced within 20 dB of the loudest frame stays so, but for frames that its path only bridges, whose own
// probability of voicing is below 0.05.
static void pauses_of_recorded_speech_are_unvoiced(void **state)
{
    (void)state;
    const char *const files[] = {"audio/speech/jfk.wav", "audio/speech/1089-134686-0000.flac",
                                 "audio/speech/1272-141231-0002.flac"};
    enum { PAUSE = 44032, HOP = 512 };
    for (int k = 0; k < 3; k++) {
        wt_audio audio;
        if (!shared_data(files[k])) {
            print_message("skipped: no shared data\n");
            skip();
        }
        assert_ok(wt_audio_load(shared_data(files[k]), 22050, &audio));
        const int64_t speech = audio.n_frames < 220500 ? audio.n_frames : 220500, n = speech + 2 * PAUSE;
        float *pcm = malloc((size_t)n * sizeof *pcm);
        assert_non_null(pcm);
        uint64_t seed = 3;
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = i - PAUSE;
            pcm[i] = at >= 0 && at < speech ? audio.samples[at] : 0.001f * noise(&seed);
        }
        wt_pyin_config config = {.frames = {.fmin_hz = 65, .fmax_hz = 800, .n_samples = n}};
        float *out[2];
        int64_t frames = 0;
        for (int calibrated = 0; calibrated < 2; calibrated++) {
            wt_pyin *plan;
            config.calibrated = calibrated;
            assert_ok(wt_pyin_create(NULL, &config, &plan));
            frames = wt_pyin_n_frames(plan);
            out[calibrated] = malloc(3 * (size_t)frames * sizeof(float));
            assert_non_null(out[calibrated]);
            wt_pyin_run(plan, pcm, out[calibrated]);
            wt_pyin_destroy(plan);
        }
        double loudest = 0;
        int quiet = 0, alarms = 0, plain = 0, kept = 0;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t t = 2; t + 2 < frames; t++) {
                double power = 0;
                for (int i = -HOP / 2; i < HOP / 2; i++) power += pow(pcm[t * HOP + i], 2);
                if (!pass) {
                    loudest = fmax(loudest, power);
                } else if (t * HOP < PAUSE || t * HOP >= PAUSE + speech) {
                    quiet++, alarms += out[1][frames + t] == 1;
                } else if (power > 0.01 * loudest && out[0][frames + t] == 1 && out[0][2 * frames + t] > 0.05f) {
                    plain++, kept += out[1][frames + t] == 1;
                }
            }
        if (!(alarms < 0.05 * quiet && kept > 0.98 * plain && plain > 50))
            fail_msg("%s: %d false alarms in %d frames, %d of %d kept", files[k], alarms, quiet, kept, plain);
        wt_audio_free(&audio);
        free(pcm), free(out[0]), free(out[1]);
    }
}

static void silence_and_nan_are_unvoiced(void **state)
{
    (void)state;
    enum { N = 8192, T = 17 };
    float pcm[N] = {0}, out[3 * T];
    wt_pyin *plan;
    const wt_pyin_config plain = {.frames = {.fmin_hz = 65, .fmax_hz = 2093, .n_samples = N}};
    assert_ok(wt_pyin_create(NULL, &plain, &plan));
    for (int round = 0; round < 2; round++) {
        wt_pyin_run(plan, pcm, out);
        for (int t = 0; t < T; t++) assert_true(isnan(out[t]) && out[T + t] == 0 && out[2 * T + t] == 0);
        pcm[4000] = NAN;
    }
    wt_pyin_destroy(plan);
    assert_ok(wt_pyin_create(
        NULL, &(wt_pyin_config){.frames = {.fmin_hz = 65, .fmax_hz = 2093, .n_samples = N}, .keep_unvoiced = true},
        &plan));
    wt_pyin_run(plan, pcm, out);
    for (int t = 0; t < T; t++) assert_true(out[t] >= 65 && out[t] <= 2093);
    wt_pyin_destroy(plan);
}

// librosa 0.11 takes the first of states that nothing tells apart: those of both ends, which are alike, keep the lowest
// pitch.
static void a_file_without_voice_stays_at_the_lowest_pitch(void **state)
{
    (void)state;
    enum { N = 5000, T = 1 + N / 512 };
    static float pcm[N], out[3 * T];
    wt_pyin *plan;
    assert_ok(wt_pyin_create(NULL,
                             &(wt_pyin_config){.frames = {.rate_hz = 8000, .fmin_hz = 100, .fmax_hz = 1000,
                                                          .n_samples = N},
                                               .max_transition_rate = 20,
                                               .switch_prob = 0.05,
                                               .keep_unvoiced = true},
                             &plan));
    wt_pyin_run(plan, pcm, out);
    for (int t = 0; t < T; t++) assert_true(out[t] == 100);
    wt_pyin_destroy(plan);
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    static const struct {
        wt_pyin_config config;
        const char *sentence;
    } cases[] = {
        {{.frames = {.fmin_hz = 500, .fmax_hz = 400, .n_samples = 9}}, "pyin: fmax 400 Hz, want above fmin 500 Hz"},
        {{.frames = {.fmin_hz = 65, .fmax_hz = 400, .n_samples = 9}, .n_thresholds = -1},
         "pyin: -1 thresholds, want 1..10000"},
        {{.frames = {.fmin_hz = 65, .fmax_hz = 400, .n_samples = 9}, .resolution = 1},
         "pyin: resolution 1 semitones, want within 0..1"},
        {{.frames = {.fmin_hz = 100, .fmax_hz = 200, .n_samples = 9}, .resolution = 1e-6},
         "pyin: 12000001 pitch bins, want at most 32767"},
        {{.frames = {.fmin_hz = 100, .fmax_hz = 200, .n_samples = 9}, .resolution = 1e-10},
         "pyin: 120000000001 pitch bins, want at most 32767"},
        {{.frames = {.fmin_hz = 65, .fmax_hz = 70, .n_samples = 9}},
         "pyin: transitions over 101 bins, want at most the 13 pitch bins"},
        {{.frames = {.fmin_hz = 65, .fmax_hz = 400, .n_samples = 9}, .switch_prob = 2},
         "pyin: switch_prob 2, no_trough_prob 0.01, want within 0..1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wt_pyin *plan = NULL;
        assert_fails(wt_pyin_create(NULL, &cases[i].config, &plan), WT_ERR_BAD_ARG, cases[i].sentence);
        assert_null(plan);
    }
    wt_pyin_destroy(NULL);
}

static wt_status create(void *user)
{
    return wt_pyin_create(NULL, &(wt_pyin_config){.frames = {.fmin_hz = 65, .fmax_hz = 400, .n_samples = 9}}, user);
}

static void destroy(void *user)
{
    wt_pyin_destroy(*(wt_pyin **)user);
}

static void running_out_of_memory_is_survived(void **state)
{
    (void)state;
    wt_pyin *plan = NULL;
    assert_survives_failing_alloc(create, destroy, &plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_golden_case_holds),
        cmocka_unit_test(a_batch_gives_what_each_signal_gives),
        cmocka_unit_test(cuda_gives_what_the_cpu_gives),
        cmocka_unit_test(long_signals_are_walked_in_segments),
        cmocka_unit_test(calibrated_voicing_gives_few_false_alarms),
        cmocka_unit_test(pauses_of_recorded_speech_are_unvoiced),
        cmocka_unit_test(silence_and_nan_are_unvoiced),
        cmocka_unit_test(a_file_without_voice_stays_at_the_lowest_pitch),
        cmocka_unit_test(bad_input_gets_a_sentence),
        cmocka_unit_test(running_out_of_memory_is_survived),
    };
    return cmocka_run_group_tests_name("pyin", tests, NULL, NULL);
}
