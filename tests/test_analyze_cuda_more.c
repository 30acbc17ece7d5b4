// `warptone analyze` on a GPU, what takes spectra further: within 2e-6 of the peak of the CPU's. Griffin-Lim of short
// signals is in double, so that rounding does not grow from iteration to iteration (docs/dsp-ops.md).
#include "support/analyze_check.h"
#include "support/audio_files.h"
#include "support/testing.h"

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
        {"pseudo_cqt", 2e-6, "in"},
        {"hybrid_cqt", 2e-6, "in"},
    };
    analyze_compare(state, cases, sizeof cases / sizeof *cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_from_a_gpu_is_the_cpus),
    };
    if (!find_program(analyze_program, sizeof analyze_program)) return 1;
    return cmocka_run_group_tests_name("analyze: more on a GPU", tests, test_folder_create, test_folder_remove);
}
