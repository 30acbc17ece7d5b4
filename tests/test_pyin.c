#include "support/failing_alloc.h"
#include "support/golden.h"
#include "support/realtime.h"
#include "support/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/pitch.h>

static wt_pyin_config config_of(const golden_case *g, size_t n)
{
    double beta[2] = {0};
    if (golden_has(g, "beta_parameters")) assert_int_equal(golden_list(g, "beta_parameters", beta, 2), 2);
    return (wt_pyin_config){.frames = {.rate_hz = golden_double(g, "sr", 22050),
                                       .fmin_hz = golden_double(g, "fmin", 0),
                                       .fmax_hz = golden_double(g, "fmax", 0),
                                       .frame_length = golden_int(g, "frame_length", 0),
                                       .hop = golden_int(g, "hop_length", 0),
                                       .n_samples = (int64_t)n},
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
    assert_int_equal(n_cases, 12);
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

// On the CPU the batch gives the bits of its signals; a GPU sums in another order, in double, and decides alike.
static void check_device(wt_backend backend, double bound)
{
    enum { N = 33075, SIGNALS = 5 };
    wt_device *device;
    assert_ok(wt_device_open(&(wt_device_config){.backend = backend}, &device));
    wt_pyin_config config = {.frames = {.fmin_hz = 65, .fmax_hz = 1500, .hop = 500, .n_samples = N}};
    wt_pyin *one, *many;
    assert_ok(wt_pyin_create(NULL, &config, &one));
    config.frames.n_signals = SIGNALS;
    assert_ok(wt_pyin_create(device, &config, &many));
    const size_t frames = (size_t)wt_pyin_n_frames(one), plane = frames * SIGNALS;
    float *pcm = malloc(sizeof *pcm * N * SIGNALS), *want = malloc(3 * frames * sizeof *want),
          *got = malloc(3 * plane * sizeof *got);
    assert_true(pcm && want && got);
    for (int s = 0; s < SIGNALS; s++) fill(pcm + s * N, N, s);
    wt_stream *stream;
    wt_buffer *in, *out;
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, sizeof *pcm * N * SIGNALS, &in));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, 3 * plane * sizeof *got, &out));
    assert_ok(wt_stream_upload(stream, in, 0, pcm, sizeof *pcm * N * SIGNALS));
    assert_ok(wt_pyin_enqueue(many, stream, in, 0, out, 0));
    assert_ok(wt_stream_download(stream, got, out, 0, 3 * plane * sizeof *got));
    assert_ok(wt_stream_synchronize(stream));
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
    wt_buffer_destroy(in), wt_buffer_destroy(out), wt_stream_destroy(stream);
    wt_pyin_destroy(one), wt_pyin_destroy(many);
    wt_device_close(device);
    free(pcm), free(want), free(got);
}

static void a_batch_gives_what_each_signal_gives(void **state)
{
    (void)state;
    check_device(WT_BACKEND_CPU, 0);
}

static void cuda_gives_what_the_cpu_gives(void **state)
{
    (void)state;
    if (wt_device_count() < 1) {
        print_message("skipped: no CUDA device\n");
        skip();
    }
    check_device(WT_BACKEND_CUDA, 1e-6);
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
        cmocka_unit_test(silence_and_nan_are_unvoiced),
        cmocka_unit_test(bad_input_gets_a_sentence),
        cmocka_unit_test(running_out_of_memory_is_survived),
    };
    return cmocka_run_group_tests_name("pyin", tests, NULL, NULL);
}
