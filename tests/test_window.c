#include "support/golden.h"
#include "support/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/window.h>

typedef struct window_case {
    wt_window_kind kind;
    int n, symmetric;
    double parameter, values[16];
} window_case;

typedef struct overlap_case {
    wt_window_kind kind;
    int n, hop;
    double parameter;
    int cola, nola;
} overlap_case;

#include "golden/window_golden.h"

static void windows_equal_scipys(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof window_cases / sizeof *window_cases; i++) {
        const window_case *w = &window_cases[i];
        wt_window_config config = {w->kind, w->n, w->symmetric, w->parameter, NULL};
        double got[16];
        float narrow[16];
        assert_ok(wt_window_fill_double(&config, got));
        assert_ok(wt_window_fill(&config, narrow));
        for (int k = 0; k < w->n; k++) {
            if (fabs(got[k] - w->values[k]) > 1e-14) // both in double, cosines of angles rounded differently
                fail_msg("kind %d n %d sample %d: %.17g, want %.17g", w->kind, w->n, k, got[k], w->values[k]);
            assert_true(narrow[k] == (float)got[k]);
        }
    }
}

static void the_golden_windows(void **state)
{
    static const char *const names[] = {"hann",   "hamming",  "blackman", "blackmanharris",
                                        "kaiser", "gaussian", "flattop",  "boxcar"}; // as wt_window_kind has them
    (void)state;
    int n_cases = 0;
    for (const golden_case *g = NULL; (g = golden_next("window", g)); n_cases++) {
        const char *name = golden_text(g, "window", ""), *comma = strchr(name, ',');
        wt_window_config config = {.parameter = comma ? atof(comma + 1) : 0};
        const size_t length = comma ? (size_t)(comma - name) : strlen(name);
        while (strlen(names[config.kind]) != length || strncmp(names[config.kind], name, length)) config.kind++;
        config.n = golden_int(g, "n", 0), config.symmetric = !golden_int(g, "periodic", 1);
        double got[64];
        assert_in_range(config.n, 1, 64);
        assert_ok(wt_window_fill_double(&config, got));
        golden_check_within(g, got, 1, (size_t)config.n, 1e-14); // as above
    }
    assert_int_equal(n_cases, 16);
}

static void overlap_checks_equal_scipys(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof overlap_cases / sizeof *overlap_cases; i++) {
        const overlap_case *w = &overlap_cases[i];
        wt_window_config config = {.kind = w->kind, .n = w->n, .parameter = w->parameter};
        bool cola, nola;
        assert_ok(wt_window_check_cola(&config, w->hop, 0, &cola));
        assert_ok(wt_window_check_nola(&config, w->hop, 0, &nola));
        if (cola != w->cola || nola != w->nola) fail_msg("kind %d n %d hop %d", w->kind, w->n, w->hop);
    }
}

static void a_custom_window_is_what_it_was_given(void **state)
{
    (void)state;
    const float samples[4] = {0, 1, 2, 1};
    float out[4];
    bool holds;
    wt_window_config config = {.kind = WT_WINDOW_CUSTOM, .n = 4, .samples = samples};
    assert_ok(wt_window_fill(&config, out));
    assert_memory_equal(samples, out, sizeof out);
    assert_ok(wt_window_check_cola(&config, 2, 0, &holds));
    assert_true(holds);
    assert_ok(wt_window_check_nola(&config, 4, 0, &holds));
    assert_false(holds);
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    float out[4];
    bool holds;
    assert_fails(wt_window_fill(&(wt_window_config){.n = 0}, out), WT_ERR_BAD_ARG,
                 "window: 0 samples, want 1..16777216");
    assert_fails(wt_window_fill(&(wt_window_config){.n = 4, .kind = 9}, out), WT_ERR_BAD_ARG,
                 "window: kind 9, want 0..8");
    assert_fails(wt_window_fill(&(wt_window_config){.n = 4, .kind = WT_WINDOW_KAISER, .parameter = NAN}, out),
                 WT_ERR_BAD_ARG, "window: Kaiser beta nan, want 0..700");
    assert_fails(wt_window_fill(&(wt_window_config){.n = 4, .kind = WT_WINDOW_GAUSSIAN}, out), WT_ERR_BAD_ARG,
                 "window: Gaussian deviation 0, want more than 0");
    assert_fails(wt_window_fill(&(wt_window_config){.n = 4, .kind = WT_WINDOW_CUSTOM}, out), WT_ERR_BAD_ARG,
                 "window: custom without samples");
    assert_fails(wt_window_check_cola(&(wt_window_config){.n = 4}, 5, 0, &holds), WT_ERR_BAD_ARG,
                 "window: hop 5, want 1..4");
    assert_fails(wt_window_check_nola(&(wt_window_config){.n = 4}, 0, 0, &holds), WT_ERR_BAD_ARG,
                 "window: hop 0, want 1..4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_equal_scipys),        cmocka_unit_test(the_golden_windows),
        cmocka_unit_test(overlap_checks_equal_scipys), cmocka_unit_test(a_custom_window_is_what_it_was_given),
        cmocka_unit_test(bad_input_gets_a_sentence),
    };
    return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
