// `warptone analyze` on a GPU, spectra: the arrays of the CPU, within 2e-6 of the peak, also where the tones have
// faded: transforms in double show what is 80 dB under a frame's loudest bin. Contrast is of the clicks: of steady
// tones valleys are rounding noise.
#include "support/analyze_check.h"
#include "support/audio_files.h"
#include "support/npy.h"
#include "support/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <warptone/device.h>

/// One worker, plans and buffers that were made for files before.
static void cuda_keeps_its_plans_for_files_of_several_lengths(void **state)
{
    static const int lengths[] = {30000, 9001, 30500, 500, 12288};
    char folder[4096], command[9000], path[4200];
    if (wt_device_count() < 1) {
        print_message("skipped: no CUDA device\n");
        skip();
    }
    snprintf(folder, sizeof folder, "%s", test_path(state, "lengths"));
    assert_int_equal(mkdir(folder, 0777), 0);
    float *x = test_noise(1, 30500, 0.3f);
    for (int k = 0; k < 5; k++) {
        snprintf(path, sizeof path, "%s/%d.wav", folder, k);
        test_write(path, &(wt_audio_writer_config){.rate_hz = ANALYZE_RATE_HZ, .channels = 1, .sample = WT_SAMPLE_F32},
                   x, lengths[k], 1000);
    }
    free(x);
    for (int pass = 0; pass < 2; pass++) {
        const char *const feature[] = {"mfcc", "spectrogram"};
        snprintf(command, sizeof command, "-f %s --format npy -j 1 --backend %%s '%s' %%s", feature[pass], folder);
        assert_analyze(command, "cpu", test_path(state, "lengths_cpu"));
        assert_analyze(command, "cuda", test_path(state, "lengths_cuda"));
        for (int k = 0; k < 5; k++) {
            npy want, got;
            snprintf(path, sizeof path, "%s_cpu/%d.npy", folder, k);
            assert_ok(npy_read(path, &want));
            snprintf(path, sizeof path, "%s_cuda/%d.npy", folder, k);
            assert_ok(npy_read(path, &got));
            assert_true(want.count == got.count && want.shape[1] == got.shape[1]);
            const float *w = want.data, *g = got.data;
            float peak = 0;
            for (size_t i = 0; i < want.count; i++) peak = fmaxf(peak, fabsf(w[i]));
            for (size_t i = 0; i < want.count; i++)
                if (!(fabsf(w[i] - g[i]) <= 2e-6f * peak))
                    fail_msg("%s of %d samples, value %zu: %.9g, want %.9g", feature[pass], lengths[k], i, (double)g[i],
                             (double)w[i]);
            npy_free(&want), npy_free(&got);
        }
    }
}

static void spectra_from_a_gpu_are_the_cpus(void **state)
{
    static const analyze_case cases[] = {
        {"stft", 2e-6, "in"},         {"spectrogram", 2e-6, "in"},
        {"logmel", 2e-6, "in"},       {"mfcc", 2e-6, "in"},
        {"pcen", 2e-6, "in"},         {"cqt", 2e-6, "in"},
        {"chroma", 2e-6, "clicks"},   {"chroma_cqt", 2e-6, "clicks"},
        {"tonnetz", 2e-6, "clicks"},  {"chroma_cens", 2e-6, "clicks"},
        {"centroid", 2e-6, "in"},     {"bandwidth", 2e-6, "in"},
        {"flatness", 2e-6, "clicks"}, {"hpss", 2e-6, "in"},
        {"vqt", 2e-6, "in"},          {"whisper --rate 16000 --n-fft 400 --hop 160", 2e-6, "in"},
        {"poly", 2e-6, "in"},         {"tuning", 0, "in"},
        {"flux", 2e-6, "in"},         {"rolloff", 1e-9, "in"},
        {"contrast", 2e-6, "clicks"},
    };
    analyze_compare(state, cases, sizeof cases / sizeof *cases);
}

static int remove_folders(void **state)
{
    char command[9000];
    snprintf(command, sizeof command, "cd '%s' && rm -rf lengths*", test_path(state, "."));
    return system(command) || test_folder_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spectra_from_a_gpu_are_the_cpus),
        cmocka_unit_test(cuda_keeps_its_plans_for_files_of_several_lengths),
    };
    if (!find_program(analyze_program, sizeof analyze_program)) return 1;
    return cmocka_run_group_tests_name("analyze: spectra on a GPU", tests, test_folder_create, remove_folders);
}
