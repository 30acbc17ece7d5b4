// `warptone analyze` on a GPU, what changes with time: pitch, onsets, beats, level. Integers are the CPU's. The pulse
// is of the clicks: of steady tones rounding decides which tempo it has.
#include "support/analyze_check.h"
#include "support/audio_files.h"
#include "support/testing.h"

static void times_from_a_gpu_are_the_cpus(void **state)
{
    static const analyze_case cases[] = {
        {"pyin", 1e-6, "in"},
        {"onset_strength", 2e-6, "in"},
        {"onsets", 0, "clicks"},
        {"tempogram", 2e-6, "clicks"},
        {"yin", 2e-6, "in"},
        {"energy", 2e-6, "in"},
        {"time_stretch --speed 1.25", 2e-6, "clicks"},
        {"pitch_shift --steps 4", 2e-6, "in"},
        {"tempo", 1e-9, "in"},
        {"tempo", 1e-9, "clicks"},
        {"beats", 0, "in"},
        {"beats", 0, "clicks"},
        {"rms", 2e-6, "in"},
        {"zcr", 0, "in"},
        {"trim", 0, "in"},
        {"split", 0, "in"},
        {"vad", 0, "clicks"},
        {"plp", 2e-6, "clicks"},
        {"loudness", 1e-6, "in"},
    };
    analyze_compare(state, cases, sizeof cases / sizeof *cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_from_a_gpu_are_the_cpus),
    };
    if (!find_program(analyze_program, sizeof analyze_program)) return 1;
    return cmocka_run_group_tests_name("analyze: time on a GPU", tests, test_folder_create, test_folder_remove);
}
