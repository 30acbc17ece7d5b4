// `warptone analyze`: features that are ops of the library as they are, each beside the call of the library.
#include "support/audio_files.h"
#include "support/npy.h"
#include "support/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <warptone/cqt.h>

enum { RATE_HZ = 22050, N = RATE_HZ, HOP = 512, FRAMES = N / HOP + 1 };

static char program[4096], out[1 << 16], input[4096];
static float *tones; // [N], in the file that is analysed

static int run(const char *options, const char *to)
{
    char command[16384];
    if (access(program, X_OK)) {
        print_message("skipped: %s is not built\n", program);
        skip();
    }
    snprintf(command, sizeof command, "'%s' analyze --backend cpu %s '%s' '%s' 2>&1", program, options, input, to);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    out[fread(out, 1, sizeof out - 1, pipe)] = 0;
    const int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/// Two tones, the upper one beginning anew every quarter of a second.
static int make_input(void **state)
{
    if (test_folder_create(state)) return -1;
    tones = malloc(sizeof *tones * N);
    for (int t = 0; t < N; t++) {
        const double s = (double)t / RATE_HZ, late = fmod(s, 0.25);
        tones[t] = (float)(0.2 * sin(2 * M_PI * 220 * s) + 0.4 * exp(-late * 15) * sin(2 * M_PI * 1320 * s));
    }
    snprintf(input, sizeof input, "%s", test_path(state, "in.wav"));
    test_write(input, &(wt_audio_writer_config){.rate_hz = RATE_HZ, .channels = 1, .sample = WT_SAMPLE_F32}, tones, N,
               1000);
    return 0;
}

static int remove_input(void **state)
{
    free(tones);
    return test_folder_remove(state);
}

/// Array k of what the options make.
static npy array_of(void **state, const char *options, int k)
{
    npy a;
    const char *path = test_path(state, "out.npz");
    if (run(options, path)) fail_msg("%s", out);
    assert_ok(npz_read(path, k, &a));
    return a;
}

/// [rows][columns], to the bit the transpose of `want` [columns][rows]. Frees the array.
static void assert_turned(npy a, const float *want, size_t rows, size_t columns)
{
    assert_int_equal(a.n_dims, 2);
    assert_int_equal(a.shape[0], rows);
    assert_int_equal(a.shape[1], columns);
    const size_t item = a.kind == 'c' ? 2 : 1;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            if (memcmp((float *)a.data + item * (r * columns + c), want + item * (c * rows + r), item * sizeof *want))
                fail_msg("row %zu, column %zu: %.9g, want %.9g", r, c, (double)((float *)a.data)[item * (r * columns + c)],
                         (double)want[item * (c * rows + r)]);
    npy_free(&a);
}

static void constant_q_goes_by_one_spectrogram(void **state)
{
    static const char *const options[] = {"-f pseudo_cqt --fmin 110 --n-bins 48", "-f hybrid_cqt --fmin 110 --n-bins 48"};
    static float want[FRAMES * 48];
    for (int k = 0; k < 2; k++) {
        wt_cqt *cqt;
        const wt_cqt_config config = {
            .kind = k ? WT_CQT_HYBRID : WT_CQT_PSEUDO, .fmin_hz = 110, .n_bins = 48, .magnitude = true};
        assert_ok(wt_cqt_create(NULL, &config, N, &cqt));
        assert_int_equal(wt_cqt_frames(cqt, N), FRAMES);
        assert_int_equal(wt_cqt_run(cqt, tones, N, want), WT_OK);
        assert_turned(array_of(state, options[k], 0), want, 48, FRAMES);
        wt_cqt_destroy(cqt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_q_goes_by_one_spectrogram),
    };
    if (!find_program(program, sizeof program)) return 1;
    return cmocka_run_group_tests_name("analyze: more", tests, make_input, remove_input);
}
