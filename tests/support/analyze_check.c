#include "analyze_check.h"

#include "audio_files.h"
#include "npy.h"
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warptone/device.h>

char analyze_program[4096], analyze_out[1 << 18];

int analyze_run(const char *arguments, bool with_errors)
{
    if (access(analyze_program, X_OK)) {
        print_message("skipped: %s is not built\n", analyze_program);
        skip();
    }
    return run_command(analyze_out, sizeof analyze_out, "WARPTONE_BACKEND=cpu '%s' analyze %s 2>%s", analyze_program,
                       arguments, with_errors ? "&1" : "/dev/null");
}

int analyze_runf(const char *format, const char *a, const char *b)
{
    char arguments[6000];
    snprintf(arguments, sizeof arguments, format, a, b);
    return analyze_run(arguments, true);
}

void assert_analyze(const char *format, const char *a, const char *b)
{
    if (analyze_runf(format, a, b)) fail_msg("%s", analyze_out);
}

float *analyze_tones(void)
{
    float *x = test_sine(1, ANALYZE_FRAMES, ANALYZE_RATE_HZ, 440, 0.3f);
    for (int t = 0; t < ANALYZE_FRAMES; t++) x[t] *= expf(-(float)(t % (ANALYZE_RATE_HZ / 2)) / 3000);
    return x;
}

const char *analyze_tones_file(void **state, const char *name)
{
    float *x = analyze_tones();
    test_write(test_path(state, name),
               &(wt_audio_writer_config){.rate_hz = ANALYZE_RATE_HZ, .channels = 1, .sample = WT_SAMPLE_F32}, x,
               ANALYZE_FRAMES, 1000);
    free(x);
    return test_path(state, name);
}

npy analyze_array_of(void **state, const char *options, const char *input, int k)
{
    npy a;
    char arguments[8000];
    const char *path = test_path(state, "out.npz");
    snprintf(arguments, sizeof arguments, "--backend cpu %s '%s' '%s'", options, input, path);
    if (analyze_run(arguments, true)) fail_msg("%s", analyze_out);
    assert_ok(npz_read(path, k, &a));
    return a;
}

void analyze_assert_turned(npy a, const float *want, size_t rows, size_t columns)
{
    assert_int_equal(a.n_dims, 2);
    assert_int_equal(a.shape[0], rows);
    assert_int_equal(a.shape[1], columns);
    const size_t item = a.kind == 'c' ? 2 : 1;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            if (memcmp((float *)a.data + item * (r * columns + c), want + item * (c * rows + r), item * sizeof *want))
                fail_msg("row %zu, column %zu: %.9g, want %.9g", r, c,
                         (double)((float *)a.data)[item * (r * columns + c)], (double)want[item * (c * rows + r)]);
    npy_free(&a);
}

void analyze_assert_refused(void **state, const char *input, int code, const analyze_refusal *cases, int n_cases)
{
    char source[4096]; // of test_path's paths there are few
    snprintf(source, sizeof source, "%s", input);
    for (int k = 0; k < n_cases; k++) {
        char arguments[512];
        snprintf(arguments, sizeof arguments, "--backend cpu %s '%%s' '%%s'", cases[k].options);
        const int got = analyze_runf(arguments, source, test_path(state, "refused.npz"));
        if (got != code) fail_msg("%s: exit code %d, want %d: %s", cases[k].options, got, code, analyze_out);
        if (!strstr(analyze_out, cases[k].sentence))
            fail_msg("%s: \"%s\", want \"%s\"", cases[k].options, analyze_out, cases[k].sentence);
        assert_int_equal(test_folder_count(state, "refused.npz"), 0);
    }
}

// A beat of 120 a minute, clicks that ring, over noise 40 dB below: every bin has something that is no rounding.
static void clicks_file(void **state, const char *name)
{
    enum { N = 6 * ANALYZE_RATE_HZ };
    float *x = test_noise(1, N, 0.01f);
    for (int i = 0; i < N; i++) {
        const float t = (float)(i % (ANALYZE_RATE_HZ / 2)) / ANALYZE_RATE_HZ;
        x[i] += 0.7f * expf(-30 * t) * sinf(6.2831853f * 300 * t);
    }
    test_write(test_path(state, name),
               &(wt_audio_writer_config){.rate_hz = ANALYZE_RATE_HZ, .channels = 1, .sample = WT_SAMPLE_F32}, x, N,
               1000);
    free(x);
}

// What is no number, or without end, must be the same on both sides. Returns whether all is near.
static bool is_near(const char *what, const npy *want, const npy *got, double bound)
{
    bool all = true;
    assert_true(want->kind == got->kind && want->n_dims == got->n_dims && want->count == got->count);
    for (int d = 0; d < want->n_dims; d++) assert_int_equal(want->shape[d], got->shape[d]);
    double *w = npy_doubles(want), *g = npy_doubles(got), peak = 0;
    const size_t count = want->count * (want->kind == 'c' ? 2 : 1);
    for (size_t i = 0; i < count; i++)
        if (isfinite(w[i])) peak = fmax(peak, fabs(w[i]));
    for (size_t i = 0; i < count; i++) {
        const bool same = isfinite(w[i]) ? fabs(w[i] - g[i]) <= bound * peak : isnan(w[i]) ? isnan(g[i]) : w[i] == g[i];
        if (!same && all)
            print_error("%s, value %zu of %zu: %.9g, want %.9g, peak %.9g\n", what, i, count, g[i], w[i], peak);
        all = all && same;
    }
    free(w), free(g);
    return all;
}

void analyze_compare(void **state, const analyze_case *cases, int n_cases)
{
    if (wt_device_count() < 1) {
        print_message("skipped: no CUDA device\n");
        skip();
    }
    int n_off = 0;
    analyze_tones_file(state, "in.wav");
    clicks_file(state, "clicks.wav");
    setenv("TEST_FOLDER", test_path(state, "."), 1);
    for (int k = 0; k < n_cases; k++) {
        char arguments[256], input[64], on_cpu[4096], on_gpu[4096];
        npy want, got;
        int n_arrays = 0;
        snprintf(input, sizeof input, "%s.wav", cases[k].input);
        snprintf(on_cpu, sizeof on_cpu, "%s", test_path(state, "cpu.npz"));
        snprintf(on_gpu, sizeof on_gpu, "%s", test_path(state, "gpu.npz"));
        snprintf(arguments, sizeof arguments, "-f %s --backend cpu %%s %%s", cases[k].feature);
        assert_analyze(arguments, test_path(state, input), on_cpu);
        snprintf(arguments, sizeof arguments, "-f %s --backend cuda %%s %%s", cases[k].feature);
        assert_analyze(arguments, test_path(state, input), on_gpu);
        for (; !npz_read(on_cpu, n_arrays, &want); n_arrays++) {
            assert_ok(npz_read(on_gpu, n_arrays, &got));
            n_off += !is_near(cases[k].feature, &want, &got, cases[k].bound);
            npy_free(&want), npy_free(&got);
        }
        assert_true(n_arrays > 0);
    }
    if (n_off) fail_msg("%d arrays", n_off);
}
