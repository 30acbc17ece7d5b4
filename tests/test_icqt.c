#include "support/failing_alloc.h"
#include "support/testing.h"
#include "support/golden.h"

#include <math.h>
#include <stdlib.h>
#include <warptone/icqt.h>

static float *take(size_t floats)
{
    float *x = calloc(floats ? floats : 1, sizeof *x);
    assert_non_null(x);
    return x;
}

// librosa's resampler, soxr, doubles eight times and more in one go with other filters, alike where octaves lie; how
// these begin and end shows in the first and last samples.
static void check_samples(const golden_case *g, const float *y, int64_t length)
{
    enum { START = 4096, END = 2048 };
    const double *values = golden_values(g);
    double *wide = malloc((size_t)length * sizeof *wide);
    assert_non_null(wide);
    for (int64_t i = 0; i < length; i++) wide[i] = y[i];
    golden_check_within(g, wide, 1, (size_t)length, 2e-4);
    for (int64_t i = 0; i < length; i += (int64_t)g->column_step) {
        const double off = fabs(values[i / (int64_t)g->column_step] - y[i]) / g->peak;
        if (i >= START && i < length - END && off > g->bound)
            fail_msg("%s: sample %lld is %.2g of the peak off, want %.2g", g->name, (long long)i, off, g->bound);
    }
    free(wide);
}

static void silence_gives_silence(void **state)
{
    (void)state;
    static const float z[20 * 84 * 2];
    wt_icqt *icqt;
    assert_ok(wt_icqt_create(&(wt_cqt_config){0}, 20, &icqt));
    const int64_t n = wt_icqt_samples(icqt, 20);
    float *y = take((size_t)n + 7);
    assert_int_equal(n, 19 * 512);
    assert_int_equal(wt_icqt_run(icqt, z, 20, n + 7, y), WT_OK);
    for (int64_t i = 0; i < n + 7; i++) assert_true(y[i] == 0);
    wt_icqt_destroy(icqt);
    free(y);
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    wt_icqt *icqt = NULL;
    float x[168] = {0};
    assert_fails(wt_icqt_create(&(wt_cqt_config){.kind = WT_CQT_PSEUDO}, 5, &icqt), WT_ERR_BAD_ARG,
                 "icqt: pseudo, hybrid, variable-Q and magnitude transforms have no inverse");
    assert_fails(wt_icqt_create(&(wt_cqt_config){0}, 0, &icqt), WT_ERR_BAD_ARG,
                 "icqt: max_frames 0, want 1..2147483647");
    assert_null(icqt);
    assert_ok(wt_icqt_create(&(wt_cqt_config){0}, 5, &icqt));
    assert_int_equal(wt_icqt_run(icqt, x, 6, 0, x), WT_ERR_BAD_ARG);
    assert_int_equal(wt_icqt_run(icqt, x, 0, 0, x), WT_ERR_BAD_ARG);
    wt_icqt_destroy(icqt);
    wt_icqt_destroy(NULL);
}

static void inverses_equal_librosas(void **state)
{
    (void)state;
    int n_checked = 0;
    for (const golden_case *g = NULL; (g = golden_next("icqt", g)); n_checked++) {
        size_t n;
        const float *x = golden_input(g, 0, &n);
        const wt_cqt_config c = {.rate_hz = golden_double(g, "sr", 22050),
                                 .hop = golden_int(g, "hop_length", 512),
                                 .fmin_hz = golden_double(g, "fmin", 0),
                                 .n_bins = golden_int(g, "n_bins", 84),
                                 .bins_per_octave = golden_int(g, "bins_per_octave", 12),
                                 .no_scale = !golden_int(g, "scale", 1)};
        wt_cqt *cqt;
        wt_icqt *icqt;
        assert_ok(wt_cqt_create(NULL, &c, 0, &cqt));
        const int64_t frames = wt_cqt_frames(cqt, (int64_t)n);
        assert_ok(wt_icqt_create(&c, frames, &icqt));
        const int64_t asked = golden_int(g, "length", 0), length = asked ? asked : wt_icqt_samples(icqt, frames);
        float *z = take((size_t)(frames * c.n_bins * 2)), *y = take((size_t)length);
        assert_int_equal(wt_cqt_run(cqt, x, (int64_t)n, z), WT_OK);
        assert_int_equal(wt_icqt_run(icqt, z, frames, asked, y), WT_OK);
        check_samples(g, y, length);
        wt_cqt_destroy(cqt), wt_icqt_destroy(icqt);
        free(z), free(y);
    }
    assert_true(n_checked >= 3);
}

static wt_status create_icqt(void *user)
{
    return wt_icqt_create(&(wt_cqt_config){.n_bins = 24}, 9, (wt_icqt **)user);
}

static void destroy_icqt(void *user)
{
    wt_icqt_destroy(*(wt_icqt **)user);
}

static void survives_failing_allocations(void **state)
{
    (void)state;
    wt_icqt *icqt;
    assert_true(assert_survives_failing_alloc(create_icqt, destroy_icqt, &icqt) >= 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inverses_equal_librosas),
        cmocka_unit_test(silence_gives_silence),
        cmocka_unit_test(bad_input_gets_a_sentence),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests_name("icqt", tests, NULL, NULL);
}
