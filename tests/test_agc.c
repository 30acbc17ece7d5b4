#include "support/failing_alloc.h"
#include "support/realtime.h"
#include "support/spectral_check.h"

#include <warptone/agc.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RATE = 48000 };

static wt_agc *agc_of(const wt_agc_config *config)
{
    wt_agc *agc = NULL;
    assert_ok(wt_agc_create(config, &agc));
    return agc;
}

// One second of a 1 kHz sine whose RMS is `level_db`, in place through the AGC; the level of its last 0.1 s.
static double second_of_sine_db(wt_agc *agc, double level_db)
{
    static float x[RATE];
    double power = 0;
    for (int n = 0; n < RATE; n++) x[n] = (float)(M_SQRT2 * pow(10, level_db / 20) * sin(2 * M_PI * (n % 48) / 48));
    wt_agc_process(agc, (const float *[]){x}, (float *[]){x}, RATE);
    for (int n = RATE - 4800; n < RATE; n++) power += (double)x[n] * x[n] / 4800;
    return 10 * log10(power);
}

static void quiet_and_loud_speech_reach_the_target_at_their_rates(void **state)
{
    (void)state;
    wt_agc *agc = agc_of(&(wt_agc_config){.channels = 1});
    assert_true(fabs(second_of_sine_db(agc, -30) - (-30 + 6 * 0.95)) < 0.5); // 6 dB in a second, its end averaged
    assert_true(fabs(second_of_sine_db(agc, -30) - -20) < 0.5);
    second_of_sine_db(agc, -6); // 24 dB down at 24 dB a second
    assert_true(fabs(second_of_sine_db(agc, -6) - -20) < 0.1);
    for (int k = 0; k < 9; k++) second_of_sine_db(agc, -48);
    assert_true(fabs(second_of_sine_db(agc, -48) - -24) < 0.1); // the gain ends at 24 dB
    wt_agc_destroy(agc);
}

static void pauses_leave_the_gain_alone(void **state)
{
    (void)state;
    wt_agc *agc = agc_of(&(wt_agc_config){.channels = 1});
    for (int k = 0; k < 3; k++) second_of_sine_db(agc, -30);
    second_of_sine_db(agc, -80); // the smoothed level falls through the gate within 0.2 s
    const double gain_db = wt_agc_gain_db(agc);
    for (int k = 0; k < 5; k++) second_of_sine_db(agc, -80);
    assert_true(wt_agc_gain_db(agc) == gain_db);
    assert_true(fabs(gain_db - 10) < 2);
    wt_agc_destroy(agc);
}

static void gain_moves_without_steps_and_blocks_do_not_matter(void **state)
{
    (void)state;
    enum { N = 20000 };
    static float ones[N], whole[N], parts[N];
    const int sizes[] = {1, 63, 64, 65, 253};
    for (int n = 0; n < N; n++) ones[n] = 0.01f;
    wt_agc *agc = agc_of(&(wt_agc_config){.channels = 1, .rise_db_per_s = 100});
    wt_agc_process(agc, (const float *[]){ones}, (float *[]){whole}, N);
    for (int n = 1; n < N; n++) // 100 dB/s is 0.00024 a frame
        assert_true(fabsf(whole[n] / whole[n - 1] - 1) < 0.0003f);
    wt_agc_reset(agc);
    for (int at = 0, turn = 0; at < N; turn++) {
        const int n = sizes[turn % 5] < N - at ? sizes[turn % 5] : N - at;
        wt_agc_process(agc, (const float *[]){ones + at}, (float *[]){parts + at}, n);
        at += n;
    }
    assert_memory_equal(whole, parts, sizeof whole);
    wt_agc_destroy(agc);
}

static void bad_samples_do_not_move_the_gain(void **state)
{
    (void)state;
    float x[128] = {0};
    wt_agc *agc = agc_of(&(wt_agc_config){.channels = 1});
    x[3] = NAN;
    x[70] = INFINITY;
    RT_SECTION { wt_agc_process(agc, (const float *[]){x}, (float *[]){x}, 128); }
    assert_true(wt_agc_gain_db(agc) == 0);
    wt_agc_destroy(agc);
}

static wt_status create_agc(void *user) { return wt_agc_create(&(wt_agc_config){0}, user); }

static void destroy_agc(void *user) { wt_agc_destroy(*(wt_agc **)user); }

static void survives_failing_allocations(void **state)
{
    (void)state;
    wt_agc *agc = NULL;
    assert_true(assert_survives_failing_alloc(create_agc, destroy_agc, &agc) >= 1);
}

static void refuses_bad_settings(void **state)
{
    (void)state;
    wt_agc *agc = NULL;
    assert_fails(wt_agc_create(&(wt_agc_config){.rate_hz = 1}, &agc), WT_ERR_BAD_ARG,
                 "agc: rate 1 Hz, want 8000..384000");
    assert_fails(wt_agc_create(&(wt_agc_config){.channels = 65}, &agc), WT_ERR_BAD_ARG, "agc: 65 channels, want 1..64");
    assert_fails(wt_agc_create(&(wt_agc_config){.target_db = 3}, &agc), WT_ERR_BAD_ARG,
                 "agc: target 3 dB, want -100..0");
    assert_fails(wt_agc_create(&(wt_agc_config){.max_gain_db = 61}, &agc), WT_ERR_BAD_ARG,
                 "agc: gain of 0 to 61 dB, want -60..0 to 0..60");
    assert_null(agc);
}

// ---- many signals on a stream

static wt_status reset_plan(void *op, wt_stream *stream) { return wt_agc_plan_reset(op, stream); }

static wt_status enqueue_plan(void *op, wt_stream *stream, const wt_buffer *in, int n, wt_buffer *out)
{
    return wt_agc_plan_enqueue(op, stream, in, 0, n, out, 0);
}

// Voices that swell, pause and jump; in the second signal a NaN, an infinity and silence.
static float *voices(size_t signals, size_t channels, size_t n)
{
    float *x = floats(signals * channels * n);
    uint64_t seed = 11;
    for (size_t row = 0; row < signals * channels; row++)
        for (size_t f = 0; f < n; f++) {
            const float swell = sinf((float)f * (0.0004f + 0.0001f * (float)row)), level = f < n / 2 ? 0.01f : 0.3f;
            x[row * n + f] = level * (swell > 0 ? swell : 0) * noise(&seed) + 1e-5f * noise(&seed);
        }
    if (signals < 2) return x;
    float *second = x + channels * n;
    second[n / 3] = NAN, second[n / 3 + 200] = INFINITY;
    memset(second + n / 2, 0, n / 4 * sizeof *x);
    return x;
}

static void drop_what_is_not_finite(float *x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(x[i])) x[i] = 0;
}

static void check_plan(wt_device *device, const wt_agc_config *config, size_t signals, size_t n)
{
    static const int cuts[][5] = {
        {1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20}, {1, 63, 64, 65, 253}, {5000, 1, 1, 7, 1}};
    const size_t channels = (size_t)config->channels, rows = signals * channels;
    float *x = voices(signals, channels, n), *want = floats(rows * n), *got = floats(rows * n), *cut = floats(rows * n);
    wt_agc *agc = agc_of(config);
    for (size_t i = 0; i < signals; i++) {
        const float *in[64];
        float *out[64];
        for (size_t c = 0; c < channels; c++)
            in[c] = x + (i * channels + c) * n, out[c] = want + (i * channels + c) * n;
        wt_agc_reset(agc);
        wt_agc_process(agc, in, out, (int)n);
    }
    wt_agc_plan *many, *one;
    assert_ok(wt_agc_plan_create(device, config, (int)signals, &many));
    assert_ok(wt_agc_plan_create(device, config, 1, &one));
    const block_op all = {device, many, rows, rows, reset_plan, enqueue_plan};
    const block_op last = {device, one, channels, channels, reset_plan, enqueue_plan};
    run_in_blocks(&all, x, n, cuts[0], 5, got);
    for (size_t i = 0; i < rows * n; i++) assert_int_equal(isfinite(want[i]), isfinite(got[i]));
    drop_what_is_not_finite(want, rows * n), drop_what_is_not_finite(got, rows * n);
    assert_near_peak(want, got, rows * n, 2e-6, "agc");
    for (int k = 0; k < 3; k++) {
        run_in_blocks(&all, x, n, cuts[k], 5, cut);
        drop_what_is_not_finite(cut, rows * n);
        assert_memory_equal(got, cut, rows * n * sizeof *got);
    }
    run_in_blocks(&last, x + (rows - channels) * n, n, cuts[1], 5, cut);
    drop_what_is_not_finite(cut, channels * n);
    assert_memory_equal(got + (rows - channels) * n, cut, channels * n * sizeof *got);
    wt_agc_plan_destroy(many), wt_agc_plan_destroy(one), wt_agc_destroy(agc);
    free(x), free(want), free(got), free(cut);
}

static void check_plans(wt_device *device)
{
    check_plan(device, &(wt_agc_config){.channels = 2}, 3, 40011);
    check_plan(device, &(wt_agc_config){.channels = 1, .rate_hz = 8000, .rise_db_per_s = 500}, 4, 17001);
    check_plan(device, &(wt_agc_config){.channels = 64, .fall_db_per_s = 900, .target_db = -12}, 2, 4100);
    wt_agc_plan *plan = NULL;
    assert_fails(wt_agc_plan_create(device, &(wt_agc_config){.channels = 65}, 1, &plan), WT_ERR_BAD_ARG,
                 "agc: 65 channels, want 1..64");
    assert_fails(wt_agc_plan_create(device, &(wt_agc_config){0}, 0, &plan), WT_ERR_BAD_ARG,
                 "agc: 0 signals, want 1 or more");
    assert_fails(wt_agc_plan_create(NULL, &(wt_agc_config){0}, 1, &plan), WT_ERR_BAD_ARG,
                 "agc: a plan without a device");
    assert_null(plan);
    wt_device_close(device);
}

static void plans_on_a_cpu_are_each_signals(void **state)
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
        cmocka_unit_test(quiet_and_loud_speech_reach_the_target_at_their_rates),
        cmocka_unit_test(pauses_leave_the_gain_alone),
        cmocka_unit_test(gain_moves_without_steps_and_blocks_do_not_matter),
        cmocka_unit_test(bad_samples_do_not_move_the_gain),
        cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(refuses_bad_settings),
        cmocka_unit_test(plans_on_a_cpu_are_each_signals),
        cmocka_unit_test(plans_on_a_gpu_are_the_cpus),
    };
    return cmocka_run_group_tests_name("agc", tests, NULL, NULL);
}
