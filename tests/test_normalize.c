// Signals at their level: what comes out is measured by other means than went in.
#include "support/failing_alloc.h"
#include "support/realtime.h"
#include "support/spectral_check.h"

#include <math.h>
#include <stdlib.h>
#include <warptone/loudness.h>
#include <warptone/normalize.h>

enum { RATE = 48000, CHANNELS = 2, FRAMES = 2 * RATE + 77, AREA = CHANNELS * FRAMES, SIGNALS = 3 };

/// Tones in noise, each signal its own, quieter than the one before; the last is silent.
static float *signals(void)
{
    float *x = noise_floats(SIGNALS * AREA, 8);
    for (int i = 0; i < SIGNALS * AREA; i++) {
        const int s = i / AREA;
        x[i] = 0.02f * x[i] + 0.4f * sinf(0.07f * (float)(1 + s) * (float)(i % FRAMES));
        x[i] *= s == 2 ? 0 : s ? 0.05f : 1;
    }
    return x;
}

static double db_of(const float *x, bool peak)
{
    double power = 0, most = 0;
    for (int i = 0; i < AREA; i++) power += (double)x[i] * x[i], most = fmax(most, fabs(x[i]));
    return peak ? 20 * log10(most) : 10 * log10(power / AREA);
}

static wt_loudness_values loudness_of(const float *x)
{
    wt_loudness *meter;
    wt_loudness_values v;
    assert_ok(wt_loudness_create(&(wt_loudness_config){.rate_hz = RATE, .channels = CHANNELS}, &meter));
    wt_loudness_process(meter, (const float *[]){x, x + FRAMES}, FRAMES);
    wt_loudness_query(meter, &v);
    wt_loudness_destroy(meter);
    return v;
}

static double level_of(const float *x, wt_normalize_kind kind)
{
    return kind == WT_NORMALIZE_LOUDNESS ? loudness_of(x).integrated_lufs : db_of(x, kind == WT_NORMALIZE_PEAK);
}

static wt_normalize_config config_of(wt_normalize_kind kind, double target_db)
{
    return (wt_normalize_config){
        .kind = kind, .target_db = target_db, .channels = CHANNELS, .n_frames = FRAMES, .n_signals = SIGNALS};
}

static void every_kind_meets_its_target(void **state)
{
    (void)state;
    static const double defaults[] = {-23, -20, 0};
    float *x = signals(), *y = floats(SIGNALS * AREA);
    for (int kind = 0; kind < 3; kind++)
        for (int given = 0; given < 2; given++) {
            wt_normalize *plan;
            const wt_normalize_config config = config_of((wt_normalize_kind)kind, given ? -31.5 : 0);
            assert_ok(wt_normalize_create(NULL, &config, &plan));
            RT_SECTION wt_normalize_run(plan, x, y);
            for (int s = 0; s < 2; s++) { // 1e-4 dB: the gain's rounding; loudness gates may let another block pass
                const double got = level_of(y + s * AREA, config.kind), want = given ? -31.5 : defaults[kind];
                if (!(fabs(got - want) <= 1e-4)) fail_msg("kind %d, signal %d: %.6f dB, want %g", kind, s, got, want);
                const float by = y[s * AREA + 1000] / x[s * AREA + 1000]; // one gain for all channels
                assert_true(fabsf(y[s * AREA + FRAMES + 5] - by * x[s * AREA + FRAMES + 5]) <= 1e-6f);
            }
            assert_memory_equal(x + 2 * AREA, y + 2 * AREA, AREA * sizeof *x); // silence
            RT_SECTION wt_normalize_run(plan, y, y);                           // in place, and there already
            assert_true(fabs(level_of(y, config.kind) - (given ? -31.5 : defaults[kind])) <= 1e-4);
            wt_normalize_destroy(plan);
        }
    free(x), free(y);
}

/// What a plan tells of what a stream of its device did.
static void fetch(wt_device *device, wt_normalize *plan, const float *x, wt_normalize_result *results)
{
    const size_t bytes = sizeof *x * SIGNALS * AREA;
    wt_stream *stream;
    wt_buffer *buffer;
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &buffer));
    assert_ok(wt_stream_upload(stream, buffer, 0, x, bytes));
    assert_ok(wt_normalize_enqueue(plan, stream, buffer, 0, buffer, 0));
    assert_ok(wt_normalize_fetch(plan, stream, results));
    wt_buffer_destroy(buffer);
    wt_stream_destroy(stream);
}

static void no_peak_passes_the_ceiling(void **state)
{
    (void)state;
    float *x = signals(), *y = floats(SIGNALS * AREA);
    for (int kind = 0; kind < 2; kind++)
        for (int given = 0; given < 2; given++) {
            wt_normalize *plan;
            wt_normalize_config config = config_of((wt_normalize_kind)kind, -0.01);
            config.ceiling_db = given ? -6 : 0;
            assert_ok(wt_normalize_create(NULL, &config, &plan));
            wt_normalize_run(plan, x, y);
            for (int s = 0; s < 2; s++) {
                const double peak = kind ? db_of(y + s * AREA, true) : loudness_of(y + s * AREA).true_peak_db;
                if (!(fabs(peak - config.ceiling_db) <= 1e-4))
                    fail_msg("kind %d, signal %d: %.6f dB, want %g", kind, s, peak, config.ceiling_db);
            }
            wt_normalize_destroy(plan);
        }
    free(x), free(y);
}

/// The level that a signal came with, its gain, and how far the ceiling leaves it below the target.
static void assert_told(const wt_normalize_result *r, const float *x, const float *y, wt_normalize_kind kind,
                        double target_db, bool silent)
{
    if (silent) {
        assert_true(r->gain_db == 0 && r->missed_db == 0 && !(r->level_db > -1000));
        return;
    }
    const double was = level_of(x, kind), is = level_of(y, kind); // 1e-4 dB: the gain's rounding
    assert_true(fabs(r->level_db - was) <= 1e-4 && fabs(r->level_db + r->gain_db - is) <= 1e-4);
    assert_true(r->missed_db >= 0 && fabs(is + r->missed_db - target_db) <= 1e-4);
}

static void what_the_ceiling_leaves_is_told(void **state)
{
    (void)state;
    static const double targets[] = {-23, -0.01};
    float *x = signals(), *y = floats(SIGNALS * AREA);
    wt_device *device = cpu_device();
    for (int k = 0; k < 6; k++) {
        wt_normalize *plan;
        wt_normalize_result now[SIGNALS], later[SIGNALS];
        const wt_normalize_kind kind = (wt_normalize_kind)(k / 2);
        const wt_normalize_config config = config_of(kind, targets[k % 2]);
        assert_ok(wt_normalize_create(device, &config, &plan));
        RT_SECTION wt_normalize_run(plan, x, y);
        RT_SECTION wt_normalize_query(plan, now);
        for (int s = 0; s < SIGNALS; s++)
            assert_told(&now[s], x + s * AREA, y + s * AREA, kind, targets[k % 2], s == 2);
        // near full scale no signal stays below a ceiling of 0 dB, but by its peak
        assert_true((now[0].missed_db > 1) == (k % 2 && kind != WT_NORMALIZE_PEAK));
        fetch(device, plan, x, later);
        assert_memory_equal(now, later, sizeof now);
        wt_normalize_destroy(plan);
    }
    free(x), free(y);
    wt_device_close(device);
}

static void meters_of_loudness_have_their_settings(void **state)
{
    (void)state;
    float *x = signals(), *y = floats(SIGNALS * AREA);
    wt_normalize_config c = {.n_frames = FRAMES, .channels = 1};
    for (int k = 0; k < 2; k++) {
        wt_normalize *plan;
        wt_loudness_values v;
        wt_loudness *meter;
        c.dual_mono = !k, c.no_true_peak = k, c.target_db = k ? -0.01 : 0; // that goes to the ceiling
        assert_ok(wt_normalize_create(NULL, &c, &plan));
        wt_normalize_run(plan, x, y);
        wt_normalize_destroy(plan);
        assert_ok(wt_loudness_create(&(wt_loudness_config){.channels = 1, .dual_mono = !k}, &meter));
        wt_loudness_process(meter, (const float *[]){y}, FRAMES);
        wt_loudness_query(meter, &v);
        wt_loudness_destroy(meter);
        if (k)
            assert_true(fabs(v.sample_peak_db) <= 1e-4 && v.true_peak_db > 1e-3);
        else
            assert_true(fabs(v.integrated_lufs + 23) <= 1e-4);
    }
    c.dual_mono = true, c.channels = 2;
    wt_normalize *plan;
    assert_fails(wt_normalize_create(NULL, &c, &plan), WT_ERR_BAD_ARG,
                 "loudness: dual mono with 2 channels, want 1");
    free(x), free(y);
}

static void what_is_not_finite_is_not_measured(void **state)
{
    (void)state;
    const float x[6] = {0.25f, NAN, -0.5f, INFINITY, 0, -INFINITY};
    float y[6];
    for (int kind = WT_NORMALIZE_RMS; kind <= WT_NORMALIZE_PEAK; kind++) {
        wt_normalize *plan;
        assert_ok(wt_normalize_create(
            NULL, &(wt_normalize_config){.kind = (wt_normalize_kind)kind, .target_db = -12, .n_frames = 6}, &plan));
        wt_normalize_run(plan, x, y);
        const double level = kind == WT_NORMALIZE_PEAK ? 0.5 : sqrt((0.0625 + 0.25) / 3);
        assert_float_equal(y[2], -0.5 * pow(10, -12 / 20.0) / level, 1e-6);
        assert_true(isnan(y[1]) && y[3] == INFINITY && y[5] == -INFINITY && y[4] == 0);
        wt_normalize_destroy(plan);
    }
}

static wt_status enqueue(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                         size_t out_offset)
{
    return wt_normalize_enqueue(op, stream, in, in_offset, out, out_offset);
}

static void check_device(wt_device *device, double bound)
{
    float *x = signals(), *want = floats(SIGNALS * AREA), *got = floats(SIGNALS * AREA);
    x[AREA + 5] = NAN, x[AREA + 6] = INFINITY;
    for (int kind = 0; kind < 3; kind++) {
        wt_normalize *plan;
        const wt_normalize_config config = config_of((wt_normalize_kind)kind, -27);
        assert_ok(wt_normalize_create(device, &config, &plan));
        wt_normalize_run(plan, x, want);
        run_on_stream(&(stream_call){device, enqueue, plan}, x, SIGNALS * AREA, got, SIGNALS * AREA);
        wt_normalize_result here[SIGNALS], there[SIGNALS];
        wt_normalize_query(plan, here);
        fetch(device, plan, x, there);
        for (int s = 0; s < SIGNALS; s++) // what is silent has no level
            assert_true(s == 2 || (fabs(here[s].level_db - there[s].level_db) <= 1e-4 &&
                                   fabs(here[s].gain_db - there[s].gain_db) <= 1e-4 &&
                                   fabs(here[s].missed_db - there[s].missed_db) <= 1e-4));
        for (int s = 0; s < SIGNALS; s++) {
            assert_true(isnan(got[AREA + 5]) && got[AREA + 6] == INFINITY);
            got[AREA + 5] = want[AREA + 5] = got[AREA + 6] = want[AREA + 6] = 0;
            assert_near_peak(want + s * AREA, got + s * AREA, AREA, bound, "normalize");
            got[AREA + 5] = NAN, got[AREA + 6] = INFINITY;
        }
        wt_normalize_destroy(plan);
    }
    free(x), free(want), free(got);
    wt_device_close(device);
}

static void streams_of_a_cpu_give_the_same_bits(void **state)
{
    (void)state;
    check_device(cpu_device(), 0);
}

static void cuda_gives_what_the_cpu_gives(void **state)
{
    (void)state;
    check_device(gpu_device(), 2e-6);
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    static const struct {
        wt_normalize_config config;
        const char *sentence;
    } cases[] = {
        {{.n_frames = 0}, "normalize: 1 signals of 1 channels of 0 frames, want 1 or more"},
        {{.n_frames = 9, .n_signals = -1}, "normalize: -1 signals of 1 channels of 9 frames, want 1 or more"},
        {{.n_frames = 9, .channels = -2}, "normalize: 1 signals of -2 channels of 9 frames, want 1 or more"},
        {{.n_frames = 9, .kind = 3}, "normalize: kind 3, want 0..2"},
        {{.n_frames = 9, .target_db = -101}, "normalize: target -101 dB, ceiling 0 dB, want -100..100"},
        {{.n_frames = 9, .ceiling_db = NAN}, "normalize: target -23 dB, ceiling nan dB, want -100..100"},
        {{.n_frames = 9, .rate_hz = 3}, "loudness: rate 3 Hz, want 4000..1536000"},
    };
    wt_normalize *plan = NULL;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        assert_fails(wt_normalize_create(NULL, &cases[k].config, &plan), WT_ERR_BAD_ARG, cases[k].sentence);
        assert_null(plan);
    }
    assert_ok(wt_normalize_create(NULL, &(wt_normalize_config){.n_frames = 9}, &plan));
    assert_fails(wt_normalize_enqueue(plan, NULL, NULL, 0, NULL, 0), WT_ERR_BAD_ARG,
                 "normalize: the plan has no device");
    wt_normalize_destroy(plan);
    wt_normalize_destroy(NULL);
}

static wt_status create_one(void *plan)
{
    return wt_normalize_create(NULL, &(wt_normalize_config){.n_frames = 9}, plan);
}

static void destroy_one(void *plan) { wt_normalize_destroy(*(wt_normalize **)plan); }

static void running_out_of_memory_is_survived(void **state)
{
    (void)state;
    wt_normalize *plan = NULL;
    assert_survives_failing_alloc(create_one, destroy_one, &plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_meets_its_target),        cmocka_unit_test(no_peak_passes_the_ceiling),
        cmocka_unit_test(what_the_ceiling_leaves_is_told),
        cmocka_unit_test(meters_of_loudness_have_their_settings),
        cmocka_unit_test(what_is_not_finite_is_not_measured), cmocka_unit_test(streams_of_a_cpu_give_the_same_bits),
        cmocka_unit_test(cuda_gives_what_the_cpu_gives),      cmocka_unit_test(bad_input_gets_a_sentence),
        cmocka_unit_test(running_out_of_memory_is_survived),
    };
    return cmocka_run_group_tests_name("normalize", tests, NULL, NULL);
}
