#include "support/failing_alloc.h"
#include "support/spectral_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/autocorrelate.h>
#include <warptone/salience.h>

static void autocorrelations_equal_librosas(void **state)
{
    (void)state;
    int n_cases = 0;
    for (const golden_case *g = NULL; (g = golden_next("autocorrelate", g)); n_cases++) {
        size_t n;
        const float *x = golden_input(g, 0, &n);
        wt_autocorrelate *plan;
        assert_ok(wt_autocorrelate_create(
            NULL, &(wt_autocorrelate_config){.n = (int)n, .max_lags = golden_int(g, "max_size", 0), .n_signals = 2},
            &plan));
        const size_t lags = (size_t)wt_autocorrelate_lags(plan);
        float *twice = malloc(2 * n * sizeof *twice), *out = malloc(2 * lags * sizeof *out);
        assert_true(twice && out);
        memcpy(twice, x, n * sizeof *x);
        memcpy(twice + n, x, n * sizeof *x);
        wt_autocorrelate_run(plan, twice, out);
        golden_check(g, out, 1, lags);
        assert_memory_equal(out, out + lags, lags * sizeof *out);
        wt_autocorrelate_destroy(plan);
        free(twice), free(out);
    }
    assert_int_equal(n_cases, 2);
}

static void saliences_equal_librosas(void **state)
{
    (void)state;
    int n_cases = 0;
    for (const golden_case *g = NULL; (g = golden_next("salience", g)); n_cases++) {
        size_t n, shape[2];
        const float *s = golden_input(g, 0, &n);
        golden_input_shape(g, 0, shape);
        double frequencies[512], harmonics[8], weights[8];
        for (size_t k = 0; k < shape[0]; k++)
            frequencies[k] = (double)k * golden_int(g, "sr", 22050) / golden_int(g, "n_fft", 1024);
        const wt_salience_config config = {.n_bins = (int)shape[0],
                                           .frequencies = frequencies,
                                           .n_harmonics = golden_list(g, "harmonics", harmonics, 8),
                                           .harmonics = harmonics,
                                           .weights = golden_has(g, "weights") ? weights : NULL,
                                           .all_bins = !golden_int(g, "filter_peaks", 1)};
        if (config.weights) assert_int_equal(golden_list(g, "weights", weights, 8), config.n_harmonics);
        wt_salience *plan;
        assert_ok(wt_salience_create(NULL, &config, &plan));
        float *in = turned(s, shape[0], shape[1], 1), *out = malloc(n * sizeof *out);
        assert_non_null(out);
        wt_salience_run(plan, in, (int64_t)shape[1], out);
        float *back = turned(out, shape[1], shape[0], 1);
        golden_check(g, back, shape[0], shape[1]);
        wt_salience_destroy(plan);
        free(in), free(out), free(back);
    }
    assert_int_equal(n_cases, 2);
}

// ---- many signals on a stream

static wt_status enqueue_autocorrelate(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                       wt_buffer *out, size_t out_offset)
{
    return wt_autocorrelate_enqueue(op, stream, in, in_offset, out, out_offset);
}

// Signals of unlike loudness, one silent: each is judged by its own lag 0.
static void check_autocorrelations(wt_device *device, int n, int max_lags, int n_signals)
{
    const wt_autocorrelate_config c = {.n = n, .max_lags = max_lags, .n_signals = n_signals};
    wt_autocorrelate *one, *many;
    assert_ok(wt_autocorrelate_create(NULL, &c, &one));
    assert_ok(wt_autocorrelate_create(device, &c, &many));
    const size_t lags = (size_t)wt_autocorrelate_lags(many), n_in = (size_t)n * (size_t)n_signals;
    const size_t n_out = lags * (size_t)n_signals;
    float *x = noise_floats(n_in, 5), *want = floats(n_out), *got = floats(n_out), *again = floats(n_out);
    for (size_t i = 0; i < n_in; i++) x[i] *= i / (size_t)n == 1 ? 0 : exp10f((float)(i / (size_t)n) - 2);
    wt_autocorrelate_run(one, x, want);
    run_on_stream(&(stream_call){device, enqueue_autocorrelate, many}, x, n_in, got, n_out);
    run_on_stream(&(stream_call){device, enqueue_autocorrelate, many}, x, n_in, again, n_out);
    assert_memory_equal(got, again, n_out * sizeof *got);
    for (size_t s = 0; s < (size_t)n_signals; s++) {
        char what[64];
        snprintf(what, sizeof what, "autocorrelation of %d samples, signal %zu", n, s);
        assert_near_peak(want + s * lags, got + s * lags, lags, 2e-6, what);
    }
    wt_autocorrelate_destroy(one), wt_autocorrelate_destroy(many);
    free(x), free(want), free(got), free(again);
}

enum { N_BINS = 301, N_FRAMES = 37 };

static wt_status enqueue_salience(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                                  size_t out_offset)
{
    return wt_salience_enqueue(op, stream, in, in_offset, N_FRAMES, out, out_offset);
}

static void check_saliences(wt_device *device, bool all_bins)
{
    double frequencies[N_BINS];
    const double harmonics[] = {0.5, 1, 2, 3.3}, weights[] = {0.2, 1, 0.5, 0.3};
    for (int k = 0; k < N_BINS; k++) frequencies[k] = 20 * k + 0.01 * k * k;
    const wt_salience_config c = {.n_bins = N_BINS,
                                  .frequencies = frequencies,
                                  .n_harmonics = 4,
                                  .harmonics = harmonics,
                                  .weights = weights,
                                  .all_bins = all_bins,
                                  .fill = -1};
    wt_salience *one, *many;
    assert_ok(wt_salience_create(NULL, &c, &one));
    assert_ok(wt_salience_create(device, &c, &many));
    enum { COUNT = N_BINS * N_FRAMES };
    float *x = noise_floats(COUNT, 8), *want = floats(COUNT), *got = floats(COUNT);
    x[5 * N_BINS + 70] = NAN;
    wt_salience_run(one, x, N_FRAMES, want);
    run_on_stream(&(stream_call){device, enqueue_salience, many}, x, COUNT, got, COUNT);
    assert_near_peak(want, got, COUNT, 0, "salience");
    wt_salience_destroy(one), wt_salience_destroy(many);
    free(x), free(want), free(got);
}

// Ranges that do not fit their buffers, and frames that are none.
static void check_refusals(wt_device *device)
{
    const double pair[] = {1, 2};
    wt_autocorrelate *autocorrelate;
    wt_salience *salience;
    wt_stream *stream;
    wt_buffer *buffer;
    assert_ok(wt_autocorrelate_create(device, &(wt_autocorrelate_config){.n = 8, .n_signals = 2}, &autocorrelate));
    assert_ok(wt_salience_create(device, &(wt_salience_config){2, pair, 1, pair, NULL, false, 0}, &salience));
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, 64, &buffer));
    assert_fails(wt_autocorrelate_enqueue(autocorrelate, stream, buffer, 4, buffer, 0), WT_ERR_BAD_ARG,
                 "autocorrelate: in takes 64 bytes at 4, the buffer has 64");
    assert_fails(wt_salience_enqueue(salience, stream, buffer, 0, 9, buffer, 0), WT_ERR_BAD_ARG,
                 "salience: in takes 72 bytes at 0, the buffer has 64");
    assert_fails(wt_salience_enqueue(salience, stream, buffer, 0, 8, buffer, 2), WT_ERR_BAD_ARG,
                 "salience: out offset 2, want a multiple of 4");
    assert_fails(wt_salience_enqueue(salience, stream, buffer, 0, 0, buffer, 0), WT_ERR_BAD_ARG,
                 "salience: 0 frames, want 1 or more");
    wt_autocorrelate_destroy(autocorrelate), wt_salience_destroy(salience);
    wt_stream_destroy(stream), wt_buffer_destroy(buffer);
}

static void check_device(wt_device *device)
{
    check_autocorrelations(device, 1, 0, 3);
    check_autocorrelations(device, 1000, 0, 5);
    check_autocorrelations(device, 1531, 77, 4); // a prime
    check_autocorrelations(device, 40000, 3000, 3); // a transform of several passes
    check_saliences(device, false);
    check_saliences(device, true);
    check_refusals(device);
    wt_device_close(device);
}

static void batches_on_a_cpu_give_what_each_signal_gives(void **state)
{
    (void)state;
    check_device(cpu_device());
}

static void cuda_gives_what_the_cpu_gives(void **state)
{
    (void)state;
    check_device(gpu_device());
}

static wt_status create(void *user)
{
    return wt_autocorrelate_create(NULL, &(wt_autocorrelate_config){.n = 100}, user);
}

static void destroy(void *user)
{
    wt_autocorrelate_destroy(*(wt_autocorrelate **)user);
}

static void running_out_of_memory_is_survived(void **state)
{
    (void)state;
    wt_autocorrelate *plan = NULL;
    assert_survives_failing_alloc(create, destroy, &plan);
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    wt_autocorrelate *autocorrelate = NULL;
    wt_salience *salience = NULL;
    const double frequencies[] = {1, 1}, harmonic = 1, nothing = 0;
    assert_fails(wt_autocorrelate_create(NULL, &(wt_autocorrelate_config){.n = 0}, &autocorrelate), WT_ERR_BAD_ARG,
                 "autocorrelate: 0 samples, want 1..2097152");
    assert_fails(wt_salience_create(NULL, &(wt_salience_config){.n_bins = 1, .n_harmonics = 1}, &salience),
                 WT_ERR_BAD_ARG, "salience: 1 bins, 1 harmonics, want 2 and 1 or more");
    wt_salience_config config = {2, frequencies, 1, &harmonic, NULL, false, 0};
    assert_fails(wt_salience_create(NULL, &config, &salience), WT_ERR_BAD_ARG,
                 "salience: frequency 1 is 1, want more than 1");
    const double rising[] = {1, 2};
    config.frequencies = rising;
    config.weights = &nothing;
    assert_fails(wt_salience_create(NULL, &config, &salience), WT_ERR_BAD_ARG, "salience: weights add up to 0");
    assert_true(!autocorrelate && !salience);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(autocorrelations_equal_librosas),
        cmocka_unit_test(saliences_equal_librosas),
        cmocka_unit_test(batches_on_a_cpu_give_what_each_signal_gives),
        cmocka_unit_test(cuda_gives_what_the_cpu_gives),
        cmocka_unit_test(running_out_of_memory_is_survived),
        cmocka_unit_test(bad_input_gets_a_sentence),
    };
    return cmocka_run_group_tests_name("salience", tests, NULL, NULL);
}
