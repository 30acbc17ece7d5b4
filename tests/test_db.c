#include "support/spectral_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/db.h>

static wt_db_config case_config(const golden_case *g)
{
    const char *ref = golden_text(g, "ref", "1.0");
    wt_db_config c = {.amin = golden_double(g, "amin", 0), .top_db = golden_double(g, "top_db", 0)};
    c.no_top = strstr(g->params, "top_db=none") != NULL;
    if (!strcmp(ref, "max"))
        c.reference = WT_DB_REF_MAX;
    else if (!strcmp(ref, "median"))
        c.reference = WT_DB_REF_MEDIAN;
    else
        c.ref = atof(ref);
    return c;
}

static void decibels_equal_librosas(void **state)
{
    (void)state;
    static const char *const ops[] = {"power_to_db", "amplitude_to_db"};
    for (int k = 0; k < 2; k++)
        for (const golden_case *g = NULL; (g = golden_next(ops[k], g));) {
            size_t n;
            const float *s = golden_input(g, 0, &n);
            float *out = floats(n);
            wt_db_config c = case_config(g);
            assert_ok((k ? wt_db_from_amplitude : wt_db_from_power)(&c, s, (int64_t)n, out));
            golden_check(g, out, g->rows, g->columns);
            assert_true(golden_error(g, out, g->rows, g->columns) <= g->goal);
            free(out);
        }
}

static void and_back(void **state)
{
    (void)state;
    static const char *const names[] = {"db_to_power_20", "db_to_amplitude_20"};
    for (int k = 0; k < 2; k++) {
        const golden_case *g = golden_find(names[k]);
        size_t n;
        const float *y = golden_input(g, 0, &n);
        const int count = golden_int(g, "count", 0);
        float *x = floats((size_t)count);
        for (int i = 0; i < count; i++) x[i] = y[i] * (float)golden_double(g, "scale", 1);
        (k ? wt_db_to_amplitude : wt_db_to_power)(golden_double(g, "ref", 1), x, count, x);
        golden_check(g, x, 1, (size_t)count);
        free(x);
    }
}

static void silence_and_nan_have_defined_results(void **state)
{
    (void)state;
    float x[] = {0, NAN, 1, 1e-20f, INFINITY}, out[5];
    assert_ok(wt_db_from_power(NULL, x, 1, out));
    assert_float_equal(out[0], -100, 1e-4);
    assert_ok(wt_db_from_power(NULL, x, 4, out));
    assert_float_equal(out[0], -80, 1e-4);
    assert_true(isnan(out[1]));
    assert_float_equal(out[2], 0, 1e-5);
    assert_float_equal(out[3], -80, 1e-4);
    assert_ok(wt_db_from_power(NULL, x, 0, out));
}

static wt_status enqueue(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                         size_t out_offset)
{
    return wt_db_enqueue(op, stream, in, in_offset, out, out_offset);
}

// Signals of different loudness, longer than the 4096 values that a block takes.
static void check_device(wt_device *device)
{
    enum { SIGNALS = 3, COUNT = 9001 };
    const wt_db_config configs[] = {
        {.ref = 0}, {.reference = WT_DB_REF_MAX}, {.ref = 3, .no_top = true}, {.top_db = 20}};
    float *x = noise_floats(SIGNALS * COUNT, 2), *want = floats(COUNT), *got = floats(SIGNALS * COUNT);
    for (int i = 0; i < SIGNALS * COUNT; i++) x[i] = i % 7 ? x[i] * x[i] * powf(10, (float)(i / COUNT)) : 0;
    for (int k = 0; k < 8; k++) {
        wt_db *plan;
        assert_ok(wt_db_create(device, &configs[k / 2], k % 2, SIGNALS, COUNT, &plan));
        run_on_stream(&(stream_call){device, enqueue, plan}, x, SIGNALS * COUNT, got, SIGNALS * COUNT);
        for (int s = 0; s < SIGNALS; s++) {
            assert_ok((k % 2 ? wt_db_from_amplitude : wt_db_from_power)(&configs[k / 2], x + s * COUNT, COUNT, want));
            assert_near_peak(want, got + s * COUNT, COUNT, 2e-6, k % 2 ? "amplitudes" : "powers");
        }
        wt_db_destroy(plan);
    }
    free(x), free(want), free(got);
    wt_device_close(device);
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    if (x != x || y != y) return (x != x) - (y != y);
    return (x > y) - (x < y);
}

// Decibels over the middle of the sorted values; a NaN comes behind all, and as a reference it is amin, as is what lies
// below 0.
static void over_the_median(const float *x, size_t n, float *out)
{
    float *sorted = floats(n);
    memcpy(sorted, x, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, ascending);
    const double middle = ((double)sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
    const wt_db_config config = {.ref = middle > 1e-10 ? middle : 1e-10, .no_top = true};
    assert_ok(wt_db_from_power(&config, x, (int64_t)n, out));
    free(sorted);
}

// An odd and an even number of values, many alike, below 0, with NaNs; all NaN or all alike.
static void check_medians(wt_device *device)
{
    enum { SIGNALS = 5, MOST = 8193 };
    static const int counts[] = {3, 2, 4097, MOST - 1, MOST};
    const wt_db_config config = {.reference = WT_DB_REF_MEDIAN, .no_top = true};
    for (int k = 0; k < 5; k++) {
        const size_t n = (size_t)counts[k];
        float *x = noise_floats(SIGNALS * n, 3), *want = floats(n), *got = floats(SIGNALS * n);
        for (size_t i = 0; i < n; i++) {
            x[i] = x[i] * x[i];
            x[n + i] = i % 3 ? 0.25f : 4 * fabsf(x[n + i]);
            x[2 * n + i] = i % 5 ? 1000 * x[2 * n + i] : NAN;
            x[3 * n + i] = i % 2 ? 7 : 3;
            x[4 * n + i] = k % 2 ? NAN : -x[4 * n + i];
        }
        wt_db *plan;
        assert_ok(wt_db_create(device, &config, false, SIGNALS, (int64_t)n, &plan));
        run_on_stream(&(stream_call){device, enqueue, plan}, x, SIGNALS * n, got, SIGNALS * n);
        for (size_t s = 0; s < SIGNALS; s++) {
            assert_ok(wt_db_from_power(&config, x + s * n, (int64_t)n, want));
            for (size_t i = 0; i < n; i++) assert_int_equal(isnan(want[i]), isnan(got[s * n + i]));
            assert_near_peak(want, got + s * n, n, 2e-6, "over the median");
            over_the_median(x + s * n, n, want);
            assert_near_peak(want, got + s * n, n, 2e-6, "over the middle of the sorted");
        }
        wt_db_destroy(plan);
        free(x), free(want), free(got);
    }
    wt_device_close(device);
}

static void medians_on_a_cpu_are_each_signals(void **state)
{
    (void)state;
    check_medians(cpu_device());
}

static void medians_on_a_gpu_are_the_cpus(void **state)
{
    (void)state;
    check_medians(gpu_device());
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

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    float x = 1;
    assert_fails(wt_db_from_power(&(wt_db_config){.amin = -1}, &x, 1, &x), WT_ERR_BAD_ARG,
                 "db: amin -1, want 1e-37 or more");
    assert_fails(wt_db_from_power(&(wt_db_config){.ref = NAN}, &x, 1, &x), WT_ERR_BAD_ARG,
                 "db: ref nan, want a finite number");
    assert_fails(wt_db_from_amplitude(&(wt_db_config){.top_db = -3}, &x, 1, &x), WT_ERR_BAD_ARG,
                 "db: top_db -3, want more than 0");
    assert_fails(wt_db_from_power(&(wt_db_config){.reference = 7}, &x, 1, &x), WT_ERR_BAD_ARG,
                 "db: reference 7, want 0..2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decibels_equal_librosas),
        cmocka_unit_test(and_back),
        cmocka_unit_test(silence_and_nan_have_defined_results),
        cmocka_unit_test(batches_on_a_cpu_give_what_each_signal_gives),
        cmocka_unit_test(cuda_gives_what_the_cpu_gives),
        cmocka_unit_test(medians_on_a_cpu_are_each_signals),
        cmocka_unit_test(medians_on_a_gpu_are_the_cpus),
        cmocka_unit_test(bad_input_gets_a_sentence),
    };
    return cmocka_run_group_tests_name("db", tests, NULL, NULL);
}
