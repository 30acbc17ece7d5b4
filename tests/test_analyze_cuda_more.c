// `warptone analyze` on a GPU, what takes spectra further: within 2e-6 of the peak of the CPU's. Griffin-Lim of short
// signals is in double, so that rounding does not grow from iteration to iteration (docs/dsp-ops.md).
#include "support/analyze_check.h"
#include "support/audio_files.h"
#include "support/npy.h"
#include "support/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/device.h>

static void more_from_a_gpu_is_the_cpus(void **state)
{
    static const analyze_case cases[] = {
        {"piptrack", 2e-6, "clicks"},
        {"salience", 2e-6, "clicks"},
        {"reassigned", 2e-6, "clicks"},
        {"fourier_tempogram", 2e-6, "clicks"},
        {"tempo_ratios", 2e-6, "clicks"},
        {"nsgt", 2e-6, "clicks"},
        {"nmf --iterations 20", 2e-6, "clicks"},
        {"griffin_lim --iterations 32", 2e-6, "clicks"},
        {"mel_to_audio --iterations 32", 2e-6, "clicks"},
        {"mel_to_stft --n-mels 40", 2e-6, "clicks"},
        {"mfcc_to_mel", 2e-6, "clicks"},
        {"mfcc_to_audio --iterations 32", 2e-6, "clicks"},
        {"pseudo_cqt", 2e-6, "in"},
        {"hybrid_cqt", 2e-6, "in"},
        {"stft --window kaiser --window-parameter 8.6 --padding reflect", 2e-6, "clicks"},
        {"logmel --window hamming --padding edge --mel-norm none", 2e-6, "clicks"},
        {"mfcc --dct-type 3 --lifter 22", 2e-6, "clicks"},
        {"istft --window blackman --padding symmetric", 2e-6, "clicks"},
        {"pyin --calibrated", 1e-6, "in"},
        {"tempo --fine", 1e-6, "clicks"},
        {"nmf --iterations 20 --solver multiplicative", 2e-6, "clicks"},
        {"nmf --iterations 20 --solver multiplicative_kl", 2e-6, "clicks"},
        {"power", 2e-6, "clicks"},
        {"spectrogram_db", 2e-6, "clicks"},
        {"fft", 2e-6, "clicks"},
        {"autocorrelation --max-lags 5000", 2e-6, "clicks"},
        {"median --kernel 9", 0, "clicks"},
        {"median --kernel 1201", 0, "clicks"},
        {"median_spectrogram", 2e-6, "clicks"},
        {"median_spectrogram --kernel 4 --kernel-bins 7", 2e-6, "clicks"},
        {"nn_filter", 2e-6, "clicks"},
        {"nn_filter --distance cosine --aggregate median --mutual --apart 3", 2e-6, "clicks"},
        {"hpss --kernel 17 --kernel-bins 9 --margin 2", 2e-6, "clicks"},
        {"hpss_masks", 2e-6, "clicks"},
        {"residual --margin 3", 2e-6, "clicks"},
        {"tempos", 0, "clicks"},
        {"loudness_curve", 0, "clicks"},
    };
    analyze_compare(state, cases, sizeof cases / sizeof *cases);
}

/// Noise, and nothing behind it.
static void half_file(void **state)
{
    enum { N = ANALYZE_RATE_HZ };
    float *x = test_noise(1, N, 0.3f);
    memset(x + N / 2, 0, sizeof *x * (N / 2));
    test_write(test_path(state, "half.wav"),
               &(wt_audio_writer_config){.rate_hz = N, .channels = 1, .sample = WT_SAMPLE_F32}, x, N, 1000);
    free(x);
}

/// What rounding leaves of silence beside sound is no mask, and nobody's neighbour.
static void silence_from_a_gpu_is_the_cpus(void **state)
{
    static const analyze_case cases[] = {
        {"hpss_masks", 2e-6, "half"},
        {"hpss_masks --margin 2", 2e-6, "half"},
        {"nn_filter", 2e-6, "half"},
        {"nn_filter --distance cosine --aggregate median --mutual", 2e-6, "half"},
        {"spectrogram_db", 2e-6, "half"},
    };
    half_file(state);
    analyze_compare(state, cases, sizeof cases / sizeof *cases);
}

/// The same but for whole turns. Of silence, which is half of it, both say 0.
static void phases_from_a_gpu_are_the_cpus(void **state)
{
    npy want, got;
    if (wt_device_count() < 1) {
        print_message("skipped: no CUDA device\n");
        skip();
    }
    half_file(state);
    assert_analyze("--backend cpu -f phase '%s' '%s'", test_path(state, "half.wav"), test_path(state, "cpu.npy"));
    assert_analyze("--backend cuda -f phase '%s' '%s'", test_path(state, "half.wav"), test_path(state, "cuda.npy"));
    assert_ok(npy_read(test_path(state, "cpu.npy"), &want));
    assert_ok(npy_read(test_path(state, "cuda.npy"), &got));
    assert_int_equal(want.count, got.count);
    const float *w = want.data, *g = got.data;
    size_t n_silent = 0;
    for (size_t i = 0; i < want.count; i++) {
        n_silent += w[i] == 0;
        if (!(fabs(remainder((double)w[i] - g[i], 2 * M_PI)) <= 2e-6 * M_PI))
            fail_msg("phase, value %zu: %.9g, want %.9g", i, (double)g[i], (double)w[i]);
    }
    assert_true(n_silent > want.count / 3);
    npy_free(&want), npy_free(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_from_a_gpu_is_the_cpus),
        cmocka_unit_test(silence_from_a_gpu_is_the_cpus),
        cmocka_unit_test(phases_from_a_gpu_are_the_cpus),
    };
    if (!find_program(analyze_program, sizeof analyze_program)) return 1;
    return cmocka_run_group_tests_name("analyze: more on a GPU", tests, test_folder_create, test_folder_remove);
}
