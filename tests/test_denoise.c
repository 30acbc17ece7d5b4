#include "support/failing_alloc.h"
#include "support/realtime.h"
#include "support/spectral_check.h"

#include "../dsp/voice/denoise_gain.h"

#include <warptone/audio_file.h>
#include <warptone/denoise.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RATE = 48000 };

static wt_denoise *denoise_of(const wt_denoise_config *config)
{
    wt_denoise *denoise = NULL;
    assert_ok(wt_denoise_create(config, &denoise));
    return denoise;
}

static double power_db(const float *x, int n)
{
    double sum = 0;
    for (int k = 0; k < n; k++) sum += (double)x[k] * x[k];
    return 10 * log10(sum / n + 1e-30);
}

// Scale-invariant signal-to-distortion ratio (J. Le Roux and others, ICASSP 2019).
static double si_sdr_db(const float *clean, const float *x, int n)
{
    double cc = 0, cx = 0, rest = 0;
    for (int k = 0; k < n; k++) cc += (double)clean[k] * clean[k], cx += (double)clean[k] * x[k];
    for (int k = 0; k < n; k++) rest += pow(x[k] - cx / cc * clean[k], 2);
    return 10 * log10(cx * cx / cc / rest);
}

static void strength_0_rebuilds_the_input_at_the_exact_latency(void **state)
{
    (void)state;
    enum { N = 24000 };
    static float x[N], y[N];
    const wt_denoise_config configs[] = {
        {.channels = 1},
        {.channels = 1, .latency_ms = 20, .frame_ms = 20, .mode = WT_DENOISE_GATE},
        {.channels = 1, .rate_hz = 16000, .latency_ms = 5, .frame_ms = 33, .mode = WT_DENOISE_WIENER},
        {.channels = 1, .rate_hz = 44100, .latency_ms = 7.3},
    };
    uint64_t seed = 1;
    for (int n = 0; n < N; n++) x[n] = noise(&seed);
    for (int k = 0; k < 4; k++) {
        wt_denoise *d = denoise_of(&configs[k]);
        const int latency = wt_denoise_latency_frames(d);
        wt_denoise_set_strength(d, 0);
        wt_denoise_process(d, (const float *[]){x}, (float *[]){y}, N);
        for (int n = 0; n < latency; n++) assert_true(fabsf(y[n]) < 1e-6f);
        assert_snr_db(x, y + latency, N - (size_t)latency, 120); // float transforms give 130 to 140
        wt_denoise_destroy(d);
    }
    wt_denoise *d = denoise_of(&(wt_denoise_config){0});
    assert_int_equal(wt_denoise_latency_frames(d), 480);
    assert_int_equal(wt_denoise_window_frames(d), 960);
    wt_denoise_destroy(d);
}

static void silence_stays_silence_and_bad_samples_are_left_behind(void **state)
{
    (void)state;
    enum { N = 24000 };
    static float x[N], y[N];
    for (int mode = 0; mode < 3; mode++) {
        wt_denoise *d = denoise_of(&(wt_denoise_config){.channels = 1, .mode = (wt_denoise_mode)mode});
        memset(x, 0, sizeof x);
        wt_denoise_process(d, (const float *[]){x}, (float *[]){y}, N);
        for (int n = 0; n < N; n++) assert_true(y[n] == 0);
        uint64_t seed = 2;
        for (int n = 0; n < N; n++) x[n] = n < N / 2 ? 1e3f * noise(&seed) : 0;
        x[100] = NAN, x[2000] = INFINITY, x[2001] = -3e38f;
        wt_denoise_process(d, (const float *[]){x}, (float *[]){y}, N);
        for (int n = 0; n < N; n++) assert_true(isfinite(y[n]));
        for (int n = N / 2 + 2000; n < N; n++) assert_true(y[n] == 0);
        wt_denoise_destroy(d);
    }
}

// White noise at -40 dB goes down by 11 to 16 dB, the peaks of its spectrum less; a tone 30 dB above it stays.
static void steady_noise_goes_and_a_tone_stays(void **state)
{
    (void)state;
    enum { N = 4 * RATE, TONE = 3 * RATE };
    static float x[N], y[N];
    uint64_t seed = 3;
    for (int n = 0; n < N; n++) {
        x[n] = 0.0173f * noise(&seed);
        if (n >= TONE) x[n] += (float)(0.447 * sin(2 * M_PI * 1000 * n / RATE));
    }
    for (int mode = 0; mode < 3; mode++)
        for (int learnt = 0; learnt < 2; learnt++) {
            wt_denoise *d =
                denoise_of(&(wt_denoise_config){.channels = 1, .mode = (wt_denoise_mode)mode, .stationary = learnt});
            if (learnt) assert_ok(wt_denoise_learn(d, (const float *[]){x}, RATE));
            wt_denoise_process(d, (const float *[]){x}, (float *[]){y}, N);
            const double cut_db = power_db(x + RATE, RATE) - power_db(y + RATE, RATE);
            const double tone_db = power_db(y + TONE + 9600, RATE - 9600) - power_db(x + TONE + 9600, RATE - 9600);
            if (cut_db < 10 || fabs(tone_db) > 0.1)
                fail_msg("mode %d, learnt %d: noise %.1f dB down, want 10; tone %.2f dB, want 0 within 0.1", mode,
                         learnt, cut_db, tone_db);
            wt_denoise_destroy(d);
        }
}

static void stationary_noise_has_to_be_learnt_and_outlives_a_reset(void **state)
{
    (void)state;
    enum { N = RATE };
    static float x[N], y[N];
    uint64_t seed = 6;
    for (int n = 0; n < N; n++) x[n] = 0.1f * noise(&seed);
    wt_denoise *d = denoise_of(&(wt_denoise_config){.channels = 1, .stationary = true});
    const int latency = wt_denoise_latency_frames(d);
    wt_denoise_process(d, (const float *[]){x}, (float *[]){y}, N);
    assert_snr_db(x, y + latency, (size_t)(N - latency), 120); // as with strength 0
    assert_ok(wt_denoise_learn(d, (const float *[]){x}, N));
    wt_denoise_reset(d);
    wt_denoise_process(d, (const float *[]){x}, (float *[]){y}, N);
    assert_true(power_db(y, N) < power_db(x, N) - 10);
    wt_denoise_destroy(d);
}

static void speech_at_0_db_gains_si_sdr(void **state)
{
    (void)state;
    const char *const files[] = {"audio/noisy/clean_freesound_33711.wav", "audio/noisy/noisy_snr0.wav"};
    wt_audio clean, noisy;
    if (!shared_data(files[0])) {
        printf("skipped: no shared data\n");
        skip();
    }
    assert_ok(wt_audio_load(shared_data(files[0]), 0, &clean));
    assert_ok(wt_audio_load(shared_data(files[1]), 0, &noisy));
    const int n_frames = (int)noisy.n_frames;
    float *y = calloc((size_t)n_frames, sizeof *y);
    const double before_db = si_sdr_db(clean.samples, noisy.samples, n_frames);
    const struct {
        wt_denoise_config config;
        double bound_db; // measured, less 0.1
    } cases[] = {
        {{.mode = WT_DENOISE_LSA}, 6.9},           {{.mode = WT_DENOISE_WIENER}, 6.8},
        {{.mode = WT_DENOISE_GATE}, 6.8},          {{.latency_ms = 5}, 5.3},
        {{.latency_ms = 20, .frame_ms = 32}, 7.5}, {{.latency_ms = 32, .frame_ms = 32}, 7.6},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        wt_denoise_config config = cases[k].config;
        config.channels = 1;
        wt_denoise *d = denoise_of(&config);
        const int latency = wt_denoise_latency_frames(d);
        wt_denoise_process(d, (const float *[]){noisy.samples}, (float *[]){y}, n_frames);
        const double gain_db = si_sdr_db(clean.samples, y + latency, n_frames - latency) - before_db;
        if (!(gain_db >= cases[k].bound_db))
            fail_msg("case %zu: SI-SDR gain %.2f dB, want %.2f", k, gain_db, cases[k].bound_db);
        wt_denoise_destroy(d);
    }
    free(y);
    wt_audio_free(&clean), wt_audio_free(&noisy);
}

static void blocks_and_neighbours_do_not_matter(void **state)
{
    (void)state;
    enum { N = 20000 };
    static float a[N], b[N], whole[2][N], parts[2][N], alone[N];
    const int sizes[] = {1, 63, 64, 65, 253, 1000};
    uint64_t seed = 4;
    for (int n = 0; n < N; n++) a[n] = (n / 7000 % 2 ? 0.3f : 0.01f) * noise(&seed), b[n] = 0.1f * noise(&seed);
    for (int mode = 0; mode < 3; mode++) {
        wt_denoise *d = denoise_of(&(wt_denoise_config){.mode = (wt_denoise_mode)mode});
        wt_denoise *one = denoise_of(&(wt_denoise_config){.mode = (wt_denoise_mode)mode, .channels = 1});
        wt_denoise_process(d, (const float *[]){a, b}, (float *[]){whole[0], whole[1]}, N);
        wt_denoise_process(one, (const float *[]){b}, (float *[]){alone}, N);
        wt_denoise_reset(d);
        memcpy(parts[0], a, sizeof a), memcpy(parts[1], b, sizeof b);
        for (int at = 0, turn = 0; at < N; turn++) {
            const int n = sizes[turn % 6] < N - at ? sizes[turn % 6] : N - at;
            RT_SECTION
            {
                wt_denoise_process(d, (const float *[]){parts[0] + at, parts[1] + at},
                                   (float *[]){parts[0] + at, parts[1] + at}, n);
            }
            at += n;
        }
        assert_memory_equal(whole, parts, sizeof whole);
        assert_memory_equal(whole[1], alone, sizeof alone);
        wt_denoise_destroy(d), wt_denoise_destroy(one);
    }
}

// E1 from M. Abramowitz and I. Stegun, table 5.1; the polynomials promise 2e-7, floats the rest.
static void lsa_factor_follows_the_exponential_integral(void **state)
{
    (void)state;
    const double table[][2] = {{0.1, 1.822923958}, {0.5, 0.559773595}, {0.99, 0.223099826},
                               {1, 0.219383934},   {2, 0.048900511},   {10, 4.15697e-6}};
    for (int k = 0; k < 6; k++)
        assert_true(fabs(wt__denoise_lsa_factor((float)table[k][0]) / exp(table[k][1] / 2) - 1) < 1e-6);
}

static wt_status create_denoise(void *user) { return wt_denoise_create(&(wt_denoise_config){0}, user); }

static void destroy_denoise(void *user) { wt_denoise_destroy(*(wt_denoise **)user); }

static void survives_failing_allocations(void **state)
{
    (void)state;
    wt_denoise *d = NULL;
    assert_true(assert_survives_failing_alloc(create_denoise, destroy_denoise, &d) >= 6);
}

static void refuses_bad_settings(void **state)
{
    (void)state;
    wt_denoise *d = NULL;
    assert_fails(wt_denoise_create(&(wt_denoise_config){.rate_hz = 1}, &d), WT_ERR_BAD_ARG,
                 "denoise: rate 1 Hz, want 8000..384000");
    assert_fails(wt_denoise_create(&(wt_denoise_config){.channels = -1}, &d), WT_ERR_BAD_ARG,
                 "denoise: -1 channels, want 1..64");
    assert_fails(wt_denoise_create(&(wt_denoise_config){.mode = 3}, &d), WT_ERR_BAD_ARG, "denoise: mode 3, want 0..2");
    assert_fails(wt_denoise_create(&(wt_denoise_config){.latency_ms = 1}, &d), WT_ERR_BAD_ARG,
                 "denoise: latency 1 ms, want 2..100");
    assert_fails(wt_denoise_create(&(wt_denoise_config){.frame_ms = 5}, &d), WT_ERR_BAD_ARG,
                 "denoise: frame 5 ms, want 10..200");
    assert_fails(wt_denoise_create(&(wt_denoise_config){.max_cut_db = NAN}, &d), WT_ERR_BAD_ARG,
                 "denoise: cut of nan dB, want 1..100");
    assert_fails(wt_denoise_create(&(wt_denoise_config){.gate_db = -1}, &d), WT_ERR_BAD_ARG,
                 "denoise: gate at -1 dB, want above 0, up to 40");
    assert_fails(wt_denoise_create(&(wt_denoise_config){.low_cut_hz = 30000}, &d), WT_ERR_BAD_ARG,
                 "denoise: low cut 30000 Hz, want 24000 or less");
    assert_null(d);
    float x[959] = {0}, bad[960] = {[7] = NAN};
    d = denoise_of(&(wt_denoise_config){.channels = 1});
    assert_fails(wt_denoise_learn(d, (const float *[]){x}, 959), WT_ERR_LENGTH,
                 "denoise: 959 frames of noise, want 960 or more");
    assert_fails(wt_denoise_learn(d, (const float *[]){bad}, 960), WT_ERR_BAD_ARG,
                 "denoise: frame 7 of the noise is not finite or beyond 1e9");
    wt_denoise_destroy(d);
}

// ---- many signals on a stream

static wt_status reset_plan(void *op, wt_stream *stream) { return wt_denoise_plan_reset(op, stream); }

static wt_status enqueue_plan(void *op, wt_stream *stream, const wt_buffer *in, int n, wt_buffer *out)
{
    return wt_denoise_plan_enqueue(op, stream, in, 0, n, out, 0);
}

// Lines of swelling tones in noise at levels of their own; in the second a NaN, an infinity and silence.
static float *many_voices(size_t lines, size_t n)
{
    float *x = floats(lines * n);
    uint64_t seed = 21;
    for (size_t line = 0; line < lines; line++)
        for (size_t f = 0; f < n; f++) {
            const float swell = sinf((float)f * 0.0003f + (float)line);
            x[line * n + f] = 0.01f * (float)(1 + line) * noise(&seed) +
                              (swell > 0 ? 0.3f * swell * sinf((float)f * (0.05f + 0.02f * (float)line)) : 0);
        }
    if (lines < 2) return x;
    x[n + n / 3] = NAN, x[n + n / 3 + 200] = INFINITY;
    memset(x + n + n / 2, 0, n / 4 * sizeof *x);
    return x;
}

typedef struct plan_case {
    wt_denoise_config config;
    int signals, max_frames;
    double strength;
    bool learns;
} plan_case;

// What each line gives by itself.
static void reduce_lines(const plan_case *k, const float *x, const float *noise_lines, int n_noise, size_t n,
                         float *out)
{
    wt_denoise_config one = k->config;
    one.channels = 1;
    for (size_t line = 0; line < (size_t)(k->signals * k->config.channels); line++) {
        wt_denoise *d = denoise_of(&one);
        wt_denoise_set_strength(d, k->strength);
        const float *learnt = noise_lines + line * (size_t)n_noise;
        if (k->learns) assert_ok(wt_denoise_learn(d, &learnt, n_noise));
        wt_denoise_process(d, (const float *[]){x + line * n}, (float *[]){out + line * n}, (int)n);
        wt_denoise_destroy(d);
    }
}

// A plan of `signals`, whole or in blocks.
static void run_plan(wt_device *device, const plan_case *k, int signals, const float *x, const float *noise_lines,
                     int n_noise, size_t n, bool in_blocks, float *out)
{
    static const int sizes[] = {1, 63, 64, 65, 253, 2999};
    const size_t rows = (size_t)(signals * k->config.channels);
    wt_denoise_plan *plan;
    wt_stream *stream;
    const wt_denoise_plan_config config = {k->config, signals, k->max_frames};
    assert_ok(wt_denoise_plan_create(device, &config, &plan));
    wt_denoise_plan_set_strength(plan, k->strength);
    assert_ok(wt_stream_create(device, NULL, &stream));
    if (k->learns) assert_ok(wt_denoise_plan_learn(plan, stream, noise_lines, n_noise));
    wt_stream_destroy(stream);
    const block_op op = {device, plan, rows, rows, reset_plan, enqueue_plan};
    run_in_blocks(&op, x, n, in_blocks ? sizes : &k->max_frames, in_blocks ? 6 : 1, out);
    wt_denoise_plan_destroy(plan);
}

static void check_plan(wt_device *device, const plan_case *k, size_t n)
{
    const size_t channels = (size_t)k->config.channels, rows = (size_t)k->signals * channels;
    const int n_noise = 9001;
    float *x = many_voices(rows, n), *quiet = noise_floats(rows * (size_t)n_noise, 5), *want = floats(rows * n);
    float *got = floats(rows * n), *cut = floats(rows * n);
    for (size_t i = 0; i < rows * (size_t)n_noise; i++) quiet[i] *= 0.01f;
    reduce_lines(k, x, quiet, n_noise, n, want);
    run_plan(device, k, k->signals, x, quiet, n_noise, n, false, got);
    assert_near_peak(want, got, rows * n, 2e-6, "denoise");
    run_plan(device, k, k->signals, x, quiet, n_noise, n, true, cut);
    assert_memory_equal(got, cut, rows * n * sizeof *got);
    run_plan(device, k, 1, x, quiet, n_noise, n, true, cut);
    assert_memory_equal(got, cut, channels * n * sizeof *got);
    free(x), free(quiet), free(want), free(got), free(cut);
}

// A reset after other sound gives the same again; the last is shorter than a window.
static void check_plan_reset(wt_device *device)
{
    enum { N = 3000 };
    const wt_denoise_plan_config config = {{.rate_hz = 8000, .channels = 1}, 1, N};
    float *x = many_voices(1, N), *first = floats(N), *again = floats(N);
    wt_denoise_plan *plan;
    assert_ok(wt_denoise_plan_create(device, &config, &plan));
    const block_op op = {device, plan, 1, 1, reset_plan, enqueue_plan};
    for (int n = N; n > 0; n -= N - 50) {
        run_in_blocks(&op, x, (size_t)n, (int[]){N}, 1, first);
        run_in_blocks(&op, x, (size_t)n, (int[]){N}, 1, again);
        assert_memory_equal(first, again, (size_t)n * sizeof *first);
    }
    wt_denoise_plan_destroy(plan);
    free(x), free(first), free(again);
}

static void plans_refuse(wt_device *device)
{
    wt_denoise_plan *plan = NULL;
    wt_stream *stream;
    wt_buffer *buffer;
    float bad[200] = {[170] = NAN};
    assert_fails(wt_denoise_plan_create(NULL, &(wt_denoise_plan_config){.max_frames = 1}, &plan), WT_ERR_BAD_ARG,
                 "denoise: a plan without a device");
    assert_fails(wt_denoise_plan_create(device, &(wt_denoise_plan_config){.n_signals = -1, .max_frames = 1}, &plan),
                 WT_ERR_BAD_ARG, "denoise: -1 signals of 0 channels, want 1..2147483647 lines");
    assert_fails(wt_denoise_plan_create(device, &(wt_denoise_plan_config){.n_signals = 1}, &plan), WT_ERR_BAD_ARG,
                 "denoise: max_frames 0, want 1..536870911");
    assert_null(plan);
    const wt_denoise_plan_config config = {{.rate_hz = 8000, .channels = 1}, 1, 9};
    assert_ok(wt_denoise_plan_create(device, &config, &plan));
    assert_int_equal(wt_denoise_plan_window_frames(plan), 160);
    assert_int_equal(wt_denoise_plan_latency_frames(plan), 80);
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, 16, &buffer));
    assert_fails(wt_denoise_plan_enqueue(plan, stream, buffer, 0, 10, buffer, 0), WT_ERR_BAD_ARG,
                 "denoise: a block of 10 frames, want 1..9");
    assert_fails(wt_denoise_plan_enqueue(plan, stream, buffer, 0, 5, buffer, 0), WT_ERR_BAD_ARG,
                 "denoise: input takes 20 bytes at 0, the buffer has 16");
    assert_fails(wt_denoise_plan_learn(plan, stream, bad, 159), WT_ERR_LENGTH,
                 "denoise: 159 frames of noise, want 160 or more");
    assert_fails(wt_denoise_plan_learn(plan, stream, bad, 200), WT_ERR_BAD_ARG,
                 "denoise: frame 170 of the noise is not finite or beyond 1e9");
    wt_buffer_destroy(buffer), wt_stream_destroy(stream);
    wt_denoise_plan_destroy(plan), wt_denoise_plan_destroy(NULL);
}

static void check_plans(wt_device *device)
{
    static const plan_case cases[] = {
        {{.channels = 2}, 2, 30000, 1, false},
        {{.channels = 1, .mode = WT_DENOISE_WIENER, .rate_hz = 22050, .latency_ms = 7}, 3, 4000, 0.7, true},
        {{.channels = 1, .mode = WT_DENOISE_GATE, .rate_hz = 16000}, 3, 20011, 1, false},
        {{.channels = 2, .mode = WT_DENOISE_GATE, .rate_hz = 8000, .stationary = true}, 1, 20011, 1, true},
        {{.channels = 1, .stationary = true, .rate_hz = 8000}, 2, 9000, 1, false}, // learns nothing: the input, late
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) check_plan(device, &cases[k], 20011);
    check_plan_reset(device);
    plans_refuse(device);
    wt_device_close(device);
}

static void plans_on_a_cpu_are_each_lines(void **state)
{
    (void)state;
    check_plans(cpu_device());
}

static void plans_on_a_gpu_are_the_cpus(void **state)
{
    (void)state;
    check_plans(gpu_device());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strength_0_rebuilds_the_input_at_the_exact_latency),
        cmocka_unit_test(silence_stays_silence_and_bad_samples_are_left_behind),
        cmocka_unit_test(steady_noise_goes_and_a_tone_stays),
        cmocka_unit_test(stationary_noise_has_to_be_learnt_and_outlives_a_reset),
        cmocka_unit_test(lsa_factor_follows_the_exponential_integral),
        cmocka_unit_test(speech_at_0_db_gains_si_sdr),
        cmocka_unit_test(blocks_and_neighbours_do_not_matter),
        cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(refuses_bad_settings),
        cmocka_unit_test(plans_on_a_cpu_are_each_lines),
        cmocka_unit_test(plans_on_a_gpu_are_the_cpus),
    };
    return cmocka_run_group_tests_name("denoise", tests, NULL, NULL);
}
