#include "support/testing.h"

#include "../dsp/tonal/halve.h"

#include "cqt_kernel.h"
#include <math.h>
#include <stdlib.h>
#include <warptone/resample.h>

// The same taps, summed one by one (tests/test_resample.c judges them).
static float *summed(const float *x, int n, int *n_out)
{
    wt_resample *r;
    assert_ok(wt_resample_create(&(wt_resample_config){2, 1, 1, WT_RESAMPLE_SOXR_HQ, false}, &r));
    float *y = calloc((size_t)n / 2 + 2, sizeof *y), *rest;
    int used, more;
    wt_resample_process(r, &x, n, &used, &y, n / 2 + 2, n_out);
    assert_int_equal(used, n);
    rest = y + *n_out;
    wt_resample_drain(r, &rest, n / 2 + 2 - *n_out, &more);
    *n_out += more;
    wt_resample_destroy(r);
    return y;
}

static void gives_what_the_resampler_gives(void **state)
{
    (void)state;
    const int lengths[] = {1, 2, 199, 3695, 3696, 3697, 4096, 20001};
    wt__halver *h;
    assert_ok(wt__halver_create(1, 0, false, &h));
    for (int i = 0; i < 8; i++) {
        const int n = lengths[i];
        float *x = malloc((size_t)n * sizeof *x), *got = calloc((size_t)n / 2 + WT_CQT_HALVE_N, sizeof *got);
        uint64_t seed = 5;
        for (int k = 0; k < n; k++) x[k] = noise(&seed);
        int n_want, made;
        float *want = summed(x, n, &n_want);
        wt__halver_reset(h, 0);
        made = wt__halver_process(h, x, n, got);
        made += wt__halver_drain(h, got + made);
        assert_int_equal(made, n_want);
        for (int k = 0; k < made; k++)
            if (!(fabsf(got[k] - want[k]) <= 1e-6f))
                fail_msg("%d samples: [%d] is %g, want %g", n, k, (double)got[k], (double)want[k]);
        free(x), free(got), free(want);
    }
    wt__halver_destroy(h);
}

static void cuts_do_not_matter(void **state)
{
    (void)state;
    enum { LENGTH = 9000 };
    static float x[LENGTH], whole[LENGTH], cut[LENGTH];
    uint64_t seed = 7;
    for (int k = 0; k < LENGTH; k++) x[k] = noise(&seed);
    wt__halver *h;
    assert_ok(wt__halver_create(1, 0, false, &h));
    int made = wt__halver_process(h, x, LENGTH, whole), parts = 0;
    made += wt__halver_drain(h, whole + made);
    wt__halver_reset(h, 0);
    for (int at = 0, n = 1; at < LENGTH; at += n, n = n * 3 % 1021 + 1)
        parts += wt__halver_process(h, x + at, n < LENGTH - at ? n : LENGTH - at, cut + parts);
    parts += wt__halver_drain(h, cut + parts);
    assert_int_equal(parts, made);
    assert_memory_equal(whole, cut, (size_t)made * sizeof *cut);
    wt__halver_destroy(h);
    wt__halver_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gives_what_the_resampler_gives),
                                       cmocka_unit_test(cuts_do_not_matter)};
    return cmocka_run_group_tests_name("halve", tests, NULL, NULL);
}
