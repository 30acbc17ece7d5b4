#include "support/spectral_check.h"

#include <warptone/fir_design.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden/filters/fir.h"

static void assert_taps(const double *got, const double *want, int n, double bound)
{
    for (int k = 0; k < n; k++)
        if (!(fabs(got[k] - want[k]) <= bound)) fail_msg("tap %d is %.12g, want %.12g +-%g", k, got[k], want[k], bound);
}

static void window_designs_are_scipys(void **state)
{
    (void)state;
    double taps[64];
    const double one[] = {0.3}, two[] = {0.2, 0.5}, three[] = {0.1, 0.4, 0.7};
    assert_ok(wt_fir_design_window(&(wt_fir_window_config){.n_taps = 31, .cutoffs = one, .n_cutoffs = 1}, taps));
    assert_taps(taps, golden_low_pass, 31, 1e-12);
    const wt_fir_window_config band = {40, two, 2, true, WT_FIR_KAISER, 7.5, false};
    assert_ok(wt_fir_design_window(&band, taps));
    assert_taps(taps, golden_band_pass, 40, 1e-12);
    const wt_fir_window_config multi = {33, three, 3, true, WT_FIR_BLACKMAN, 0, true};
    assert_ok(wt_fir_design_window(&multi, taps));
    assert_taps(taps, golden_multi_band, 33, 1e-12);
}

static void least_squares_designs_are_scipys(void **state)
{
    (void)state;
    double taps[64];
    const double edges[] = {0, 0.3, 0.4, 1}, desired[] = {1, 1, 0, 0}, weights[] = {1, 10};
    assert_ok(wt_fir_design_least_squares(&(wt_fir_bands_config){41, 2, edges, desired, weights}, taps));
    assert_taps(taps, golden_least_squares, 41, 1e-9);
    const double sloping[] = {0, 1, 0.5, 0}, other_edges[] = {0, 0.5, 0.6, 1};
    assert_ok(wt_fir_design_least_squares(&(wt_fir_bands_config){25, 2, other_edges, sloping, NULL}, taps));
    assert_taps(taps, golden_slopes, 25, 1e-9);
}

// Largest weighted error of symmetric taps over the bands, on a grid of its own.
static double largest_error(const double *taps, const wt_fir_bands_config *c)
{
    double largest = 0;
    for (int band = 0; band < c->n_bands; band++)
        for (int k = 0; k <= 2000; k++) {
            const double f = c->edges[2 * band] + (c->edges[2 * band + 1] - c->edges[2 * band]) * k / 2000;
            double response = 0;
            for (int n = 0; n < c->n_taps; n++) response += taps[n] * cos(M_PI * f * (n - 0.5 * (c->n_taps - 1)));
            largest = fmax(largest, fabs(response - c->desired[2 * band]) * (c->weights ? c->weights[band] : 1));
        }
    return largest;
}

static void equiripple_designs_ripple_no_more_than_scipys(void **state)
{
    (void)state;
    double taps[64];
    const double edges[] = {0, 0.3, 0.4, 1}, desired[] = {1, 1, 0, 0}, weights[] = {1, 20};
    const wt_fir_bands_config odd = {51, 2, edges, desired, weights};
    assert_ok(wt_fir_design_equiripple(&odd, taps));
    if (!(largest_error(taps, &odd) <= 1.001 * largest_error(golden_equiripple, &odd)))
        fail_msg("ripple %g, scipy %g", largest_error(taps, &odd), largest_error(golden_equiripple, &odd));
    assert_taps(taps, golden_equiripple, 51, 1e-4);
    const double even_edges[] = {0, 0.2, 0.28, 0.6, 0.66, 1}, even_desired[] = {0, 0, 1, 1, 0, 0};
    const wt_fir_bands_config even = {60, 3, even_edges, even_desired, NULL};
    assert_ok(wt_fir_design_equiripple(&even, taps));
    assert_true(largest_error(taps, &even) <= 1.001 * largest_error(golden_equiripple_even, &even));
    for (int k = 0; k < 60; k++) assert_true(fabs(taps[k] - taps[59 - k]) < 1e-12);
}

static void long_equiripple_designs_converge(void **state)
{
    (void)state;
    double taps[401];
    const double edges[] = {0, 0.48, 0.50, 1}, desired[] = {1, 1, 0, 0};
    const wt_fir_bands_config config = {401, 2, edges, desired, NULL};
    assert_ok(wt_fir_design_equiripple(&config, taps));
    // Kaiser's estimate: -20 log10(ripple) = 14.6 * 400 * (0.02 / 2) + 13 = 71 dB
    assert_true(largest_error(taps, &config) < pow(10, -70.0 / 20));
}

static void savitzky_golay_is_scipys(void **state)
{
    (void)state;
    float x[40], y[40];
    uint64_t seed = 1;
    for (int n = 0; n < 40; n++) x[n] = noise(&seed);
    assert_ok(wt_savgol_filter(&(wt_savgol_config){.n_taps = 9, .order = 3}, x, y, 40));
    for (int n = 0; n < 40; n++) assert_true(fabs(y[n] - golden_savgol[n]) < 1e-7);
    assert_ok(wt_savgol_filter(&(wt_savgol_config){11, 4, 2, 0.5}, x, y, 40));
    for (int n = 0; n < 40; n++) assert_true(fabs(y[n] - golden_savgol_slope[n]) < 1e-6 * (1 + fabs(y[n])));
}

static void savitzky_golay_reads_a_polynomial_exactly(void **state)
{
    (void)state;
    double taps[21];
    for (int position = 0; position < 21; position++) { // d/dt of t^3 - t at t = position / 10
        const double t = position / 10.0;
        double sum = 0;
        assert_ok(wt_savgol_taps(&(wt_savgol_config){21, 5, 1, 0.1}, position, taps));
        for (int k = 0; k < 21; k++) sum += taps[k] * (pow(k / 10.0, 3) - k / 10.0);
        assert_true(fabs(sum - (3 * t * t - 1)) < 1e-10);
    }
}

static wt_status enqueue_savgol(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                                size_t out_offset)
{
    return wt_savgol_rows_enqueue(op, stream, in, in_offset, out, out_offset);
}

// Rows in batches of one and five, smoothed and differentiated; a row is as long as the window, and longer.
static void check_savgol_rows(wt_device *device)
{
    static const struct {
        wt_savgol_config config;
        int n;
    } cases[] = {{{9, 3, 0, 0}, 1501},
                 {{101, 4, 2, 0.5}, 1501},
                 {{31, 2, 1, 0}, 31},
                 {{1, 0, 0, 0}, 3},
                 {{1023, 5, 0, 0}, 1500}};
    enum { ROWS = 5 };
    for (int k = 0; k < 5; k++) {
        const size_t n = (size_t)cases[k].n;
        float *x = noise_floats(ROWS * n, 7), *want = floats(ROWS * n), *got = floats(ROWS * n), *alone = floats(n);
        wt_savgol_rows *many, *one;
        x[n + n / 3] = NAN;
        memset(x + 3 * n, 0, n * sizeof *x);
        for (size_t row = 0; row < ROWS; row++)
            assert_ok(wt_savgol_filter(&cases[k].config, x + row * n, want + row * n, (int)n));
        assert_ok(wt_savgol_rows_create(device, &cases[k].config, ROWS, (int)n, &many));
        assert_ok(wt_savgol_rows_create(device, &cases[k].config, 1, (int)n, &one));
        run_on_stream(&(stream_call){device, enqueue_savgol, many}, x, ROWS * n, got, ROWS * n);
        run_on_stream(&(stream_call){device, enqueue_savgol, one}, x + 2 * n, n, alone, n);
        assert_near_peak(want, got, ROWS * n, 2e-6, "savgol");
        assert_memory_equal(alone, got + 2 * n, n * sizeof *got);
        for (size_t i = 0; i < ROWS * n; i++) assert_int_equal(isnan(want[i]), isnan(got[i]));
        wt_savgol_rows_destroy(many), wt_savgol_rows_destroy(one);
        free(x), free(want), free(got), free(alone);
    }
    wt_savgol_rows *plan = NULL;
    assert_fails(wt_savgol_rows_create(device, &cases[0].config, 0, 9, &plan), WT_ERR_BAD_ARG,
                 "savgol: 0 rows, want 1 or more");
    assert_fails(wt_savgol_rows_create(device, &cases[0].config, 1, 8, &plan), WT_ERR_LENGTH,
                 "savgol: 8 frames, want the window's 9 or more");
    assert_fails(wt_savgol_rows_create(device, &(wt_savgol_config){.n_taps = -3}, 1, 8, &plan), WT_ERR_BAD_ARG,
                 "savgol: window of -3 frames, want an odd number up to 1023");
    assert_null(plan);
    wt_device_close(device);
}

static void savitzky_golay_rows_on_a_cpu_are_each_rows(void **state)
{
    (void)state;
    check_savgol_rows(cpu_device());
}

static void savitzky_golay_rows_on_a_gpu_are_the_cpus(void **state)
{
    (void)state;
    check_savgol_rows(gpu_device());
}

static void refuses_bad_designs(void **state)
{
    (void)state;
    double taps[64];
    float x[4] = {0};
    const double falling[] = {0.5, 0.2}, edges[] = {0, 0.3, 0.2, 1}, desired[] = {1, 1, 0, 0};
    const double good[] = {0, 0.3, 0.4, 1}, weights[] = {1, 0};
    assert_fails(wt_fir_design_window(&(wt_fir_window_config){.cutoffs = falling, .n_cutoffs = 1}, taps),
                 WT_ERR_BAD_ARG, "fir design: 0 taps, want 1..65535");
    assert_fails(wt_fir_design_window(&(wt_fir_window_config){.n_taps = 9, .cutoffs = falling, .n_cutoffs = 2}, taps),
                 WT_ERR_BAD_ARG, "fir design: cutoff 1 is 0.2, want above 0.5 and below 1");
    const wt_fir_window_config high = {.n_taps = 8, .cutoffs = falling, .n_cutoffs = 1, .stop_zero = true};
    assert_fails(wt_fir_design_window(&high, taps), WT_ERR_BAD_ARG,
                 "fir design: 8 taps with a pass band at the Nyquist frequency, want odd");
    assert_fails(wt_fir_design_least_squares(&(wt_fir_bands_config){9, 2, edges, desired, NULL}, taps), WT_ERR_BAD_ARG,
                 "fir design: edge 2 is 0.2, want ascending edges in 0..1");
    assert_fails(wt_fir_design_least_squares(&(wt_fir_bands_config){8, 2, good, desired, NULL}, taps), WT_ERR_BAD_ARG,
                 "fir design: 8 taps for least squares, want an odd number");
    assert_fails(wt_fir_design_equiripple(&(wt_fir_bands_config){9, 2, good, desired, weights}, taps), WT_ERR_BAD_ARG,
                 "fir design: weight 0, want above 0");
    assert_fails(wt_fir_design_equiripple(&(wt_fir_bands_config){9, 0, good, desired, NULL}, taps), WT_ERR_BAD_ARG,
                 "fir design: 0 bands, want 1..32");
    assert_fails(wt_savgol_filter(&(wt_savgol_config){.n_taps = 4}, x, x, 4), WT_ERR_BAD_ARG,
                 "savgol: window of 4 frames, want an odd number up to 1023");
    assert_fails(wt_savgol_filter(&(wt_savgol_config){.n_taps = 5, .order = 5}, x, x, 4), WT_ERR_BAD_ARG,
                 "savgol: order 5, want 0..4");
    assert_fails(wt_savgol_filter(&(wt_savgol_config){.n_taps = 5, .order = 2}, x, x, 4), WT_ERR_LENGTH,
                 "savgol: 4 frames, want the window's 5 or more");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(window_designs_are_scipys),
        cmocka_unit_test(least_squares_designs_are_scipys),
        cmocka_unit_test(equiripple_designs_ripple_no_more_than_scipys),
        cmocka_unit_test(long_equiripple_designs_converge),
        cmocka_unit_test(savitzky_golay_is_scipys),
        cmocka_unit_test(savitzky_golay_reads_a_polynomial_exactly),
        cmocka_unit_test(savitzky_golay_rows_on_a_cpu_are_each_rows),
        cmocka_unit_test(savitzky_golay_rows_on_a_gpu_are_the_cpus),
        cmocka_unit_test(refuses_bad_designs),
    };
    return cmocka_run_group_tests_name("fir design", tests, NULL, NULL);
}
