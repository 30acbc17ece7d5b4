#include "support/failing_alloc.h"
#include "support/testing.h"
#include "support/golden.h"

#include <stdlib.h>
#include <string.h>
#include <warptone/decompose.h>

static float *copy_of(const float *x, size_t n)
{
    float *y = malloc(n * sizeof *y);
    assert_non_null(y);
    memcpy(y, x, n * sizeof *y);
    return y;
}

static void components_equal_scikit_learns(void **state)
{
    (void)state;
    int n_checked = 0;
    for (const golden_case *g = NULL; (g = golden_next("decompose", g)); n_checked++) {
        size_t shape[2], n, n_w, n_h;
        const float *v = golden_input(g, 0, &n);
        golden_input_shape(g, 0, shape);
        const float *w_begin = golden_input(g, 1, &n_w), *h_begin = golden_input(g, 2, &n_h);
        float *w = copy_of(w_begin, n_w), *h = copy_of(h_begin, n_h);
        const int k = (int)(n_w / shape[0]), cd = !strcmp(golden_text(g, "solver", ""), "cd");
        const int kl = !strcmp(golden_text(g, "loss", ""), "kullback-leibler");
        wt_nmf *nmf;
        assert_ok(wt_nmf_create(&(wt_nmf_config){.rows = (int)shape[0], .columns = (int)shape[1], .n_components = k,
                                                 .n_iter = golden_int(g, "n_iter", 0),
                                                 .solver = cd   ? WT_NMF_CD
                                                           : kl ? WT_NMF_MULTIPLICATIVE_KL
                                                                : WT_NMF_MULTIPLICATIVE}, &nmf));
        wt_nmf_run(nmf, v, w, h);
        if (strstr(g->name, "_w"))
            golden_check(g, w, shape[0], (size_t)k);
        else
            golden_check(g, h, (size_t)k, shape[1]);
        wt_nmf_destroy(nmf);
        free(w), free(h);
    }
    assert_true(n_checked >= 6);
}

static void neighbours_equal_librosas(void **state)
{
    (void)state;
    for (const golden_case *g = NULL; (g = golden_next("nn_filter", g));) {
        size_t shape[2], n;
        const float *x = golden_input(g, 0, &n);
        golden_input_shape(g, 0, shape);
        float *y = copy_of(x, n);
        assert_ok(wt_nn_filter(&(wt_nn_filter_config){.rows = (int)shape[0], .columns = (int)shape[1],
                                                      .k = golden_int(g, "k", 0), .width = golden_int(g, "width", 1),
                                                      .cosine = !strcmp(golden_text(g, "metric", ""), "cosine"),
                                                      .symmetric = golden_int(g, "sym", 0),
                                                      .median = !strcmp(golden_text(g, "aggregate", ""), "median")},
                               x, y));
        golden_check(g, y, shape[0], shape[1]);
        free(y);
    }
}

static void silence_stays_and_is_no_nan(void **state)
{
    (void)state;
    for (int solver = 0; solver < 3; solver++) {
        float v[12] = {0}, w[6] = {1, 1, 1, 1, 1, 1}, h[8] = {1, 1, 1, 1, 1, 1, 1, 1};
        wt_nmf *nmf;
        assert_ok(wt_nmf_create(&(wt_nmf_config){3, 4, 2, 20, (wt_nmf_solver)solver}, &nmf));
        wt_nmf_run(nmf, v, w, h);
        for (int r = 0; r < 3; r++)
            for (int c = 0; c < 4; c++) assert_true(w[2 * r] * h[c] + w[2 * r + 1] * h[4 + c] == 0);
        wt_nmf_destroy(nmf);
    }
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    wt_nmf *nmf = NULL;
    float x[9] = {0}, y[9];
    assert_fails(wt_nmf_create(&(wt_nmf_config){.rows = 0, .columns = 4}, &nmf), WT_ERR_BAD_ARG,
                 "nmf: matrix of 0 x 4, want 1..16777216 each");
    assert_fails(wt_nmf_create(&(wt_nmf_config){.rows = 3, .columns = 4}, &nmf), WT_ERR_BAD_ARG,
                 "nmf: 0 components, 200 iterations, want 1..65536, 1 or more");
    assert_null(nmf);
    assert_fails(wt_nn_filter(&(wt_nn_filter_config){.rows = 1, .columns = 9, .width = 4}, x, y), WT_ERR_BAD_ARG,
                 "nn_filter: width 4 of 9 frames, want 1..3");
    wt_nmf_destroy(NULL);
}

static wt_status create_nmf(void *user)
{
    return wt_nmf_create(&(wt_nmf_config){.rows = 3, .columns = 4, .n_components = 2}, (wt_nmf **)user);
}

static void destroy_nmf(void *user)
{
    wt_nmf_destroy(*(wt_nmf **)user);
}

static void survives_failing_allocations(void **state)
{
    (void)state;
    wt_nmf *nmf;
    assert_true(assert_survives_failing_alloc(create_nmf, destroy_nmf, &nmf) >= 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(components_equal_scikit_learns),
        cmocka_unit_test(neighbours_equal_librosas),
        cmocka_unit_test(silence_stays_and_is_no_nan),
        cmocka_unit_test(bad_input_gets_a_sentence),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests_name("decompose", tests, NULL, NULL);
}
