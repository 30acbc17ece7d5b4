// `warptone analyze` beside librosa, option by option: tests/golden/make_analyze.py made the values. Each case runs for
// the whole signal and in tiles.
#include "support/analyze_check.h"
#include "support/audio_files.h"
#include "support/npy.h"
#include "support/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *golden_path(char path[4096], const char *name)
{
    const char *folder = getenv("WARPTONE_TEST_GOLDEN"); // of the ops, beside which those of analyze lie
    snprintf(path, 4096, "%s/../analyze/%s", folder ? folder : "tests/golden/dsp", name);
    return path;
}

/// What is no number in one is none in the other, and integers are the same.
static bool is_same(const npy *want, const npy *got, double bound, const char *options)
{
    if (want->kind != got->kind || want->count != got->count || want->n_dims != got->n_dims ||
        memcmp(want->shape, got->shape, sizeof *want->shape * (size_t)want->n_dims) != 0)
        fail_msg("%s: %c, %zu values, want %c, %zu", options, got->kind, got->count, want->kind, want->count);
    double *w = npy_doubles(want), *g = npy_doubles(got), peak = 0;
    const bool exact = want->kind == 'i' || want->kind == 'b';
    const size_t count = want->count * (want->kind == 'c' ? 2 : 1);
    bool same = true;
    for (size_t i = 0; i < count; i++)
        if (isfinite(w[i])) peak = fmax(peak, fabs(w[i]));
    for (size_t i = 0; i < count && same; i++) {
        same = isnan(w[i]) ? isnan(g[i]) : fabs(w[i] - g[i]) <= (exact ? 0 : bound * peak);
        if (!same)
            print_error("%s, value %zu of %zu: %.9g, want %.9g, peak %.9g\n", options, i, count, g[i], w[i], peak);
    }
    free(w), free(g);
    return same;
}

static int compare(void **state, const char *options, int first, int n_arrays, double bound, const char *more)
{
    char arguments[1024], input[4096], values[4096];
    int n_off = 0;
    snprintf(arguments, sizeof arguments, "--backend cpu -f %s %s '%%s' '%%s'", options, more);
    assert_analyze(arguments, golden_path(input, "in.wav"), test_path(state, "out.npz"));
    for (int k = 0; k < n_arrays; k++) {
        npy want, got;
        assert_ok(npz_read(golden_path(values, "values.npz"), first + k, &want));
        assert_ok(npz_read(test_path(state, "out.npz"), k, &got));
        n_off += !is_same(&want, &got, bound, arguments);
        npy_free(&want), npy_free(&got);
    }
    return n_off;
}

static void every_option_means_what_librosa_means(void **state)
{
    char path[4096], line[512], options[400];
    int n_arrays, n_cases = 0, n_off = 0;
    double bound;
    FILE *cases = fopen(golden_path(path, "cases.txt"), "r");
    if (!cases) fail_msg("%s: cannot be opened (run from the repository root, or set WARPTONE_TEST_GOLDEN)", path);
    for (int first = 0; fgets(line, sizeof line, cases); first += n_arrays, n_cases++) {
        if (sscanf(line, "%d %lf %399[^\n]", &n_arrays, &bound, options) != 3) fail_msg("%s", line);
        n_off += compare(state, options, first, n_arrays, bound, "");
        if (!strstr(options, "--delta-mode wrap")) // refused there
            n_off += compare(state, options, first, n_arrays, bound, "--tile 400");
    }
    fclose(cases);
    assert_true(n_cases > 100);
    if (n_off) fail_msg("%d arrays", n_off);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_option_means_what_librosa_means)};
    if (!find_program(analyze_program, sizeof analyze_program)) return 1;
    return cmocka_run_group_tests_name("analyze: golden", tests, test_folder_create, test_folder_remove);
}
