#include "support/golden.h"
#include "support/testing.h"

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
            &(wt_autocorrelate_config){.n = (int)n, .max_lags = golden_int(g, "max_size", 0), .n_signals = 2}, &plan));
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

// The golden input is [bins][frames].
static float *turned(const float *x, size_t rows, size_t columns)
{
    float *y = malloc(rows * columns * sizeof *y);
    assert_non_null(y);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) y[c * rows + r] = x[r * columns + c];
    return y;
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
        assert_ok(wt_salience_create(&config, &plan));
        float *in = turned(s, shape[0], shape[1]), *out = malloc(n * sizeof *out);
        assert_non_null(out);
        wt_salience_run(plan, in, (int64_t)shape[1], out);
        float *back = turned(out, shape[1], shape[0]);
        golden_check(g, back, shape[0], shape[1]);
        wt_salience_destroy(plan);
        free(in), free(out), free(back);
    }
    assert_int_equal(n_cases, 2);
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    wt_autocorrelate *autocorrelate = NULL;
    wt_salience *salience = NULL;
    const double frequencies[] = {1, 1}, harmonic = 1, nothing = 0;
    assert_fails(wt_autocorrelate_create(&(wt_autocorrelate_config){.n = 0}, &autocorrelate), WT_ERR_BAD_ARG,
                 "autocorrelate: 0 samples, want 1..2097152");
    assert_fails(wt_salience_create(&(wt_salience_config){.n_bins = 1, .n_harmonics = 1}, &salience), WT_ERR_BAD_ARG,
                 "salience: 1 bins, 1 harmonics, want 2 and 1 or more");
    wt_salience_config config = {2, frequencies, 1, &harmonic, NULL, false, 0};
    assert_fails(wt_salience_create(&config, &salience), WT_ERR_BAD_ARG,
                 "salience: frequency 1 is 1, want more than 1");
    const double rising[] = {1, 2};
    config.frequencies = rising;
    config.weights = &nothing;
    assert_fails(wt_salience_create(&config, &salience), WT_ERR_BAD_ARG, "salience: weights add up to 0");
    assert_true(!autocorrelate && !salience);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(autocorrelations_equal_librosas),
        cmocka_unit_test(saliences_equal_librosas),
        cmocka_unit_test(bad_input_gets_a_sentence),
    };
    return cmocka_run_group_tests_name("salience", tests, NULL, NULL);
}
