// `warptone analyze` on a GPU, signals made of signals: within 2e-6 of the peak of the CPU's, as their ops are;
// there and back are two of them.
#include "support/analyze_check.h"
#include "support/audio_files.h"
#include "support/testing.h"

static void effects_from_a_gpu_are_the_cpus(void **state)
{
    static const analyze_case cases[] = {
        {"resample --rate 16000", 2e-6, "clicks"},
        {"resample --rate 16000 --quality soxr_hq", 2e-6, "clicks"},
        {"filter --edges 300,3400 --band pass --family elliptic", 2e-6, "clicks"},
        {"filtfilt --edges 1000", 2e-6, "clicks"},
        {"fir --edges 2000", 2e-6, "clicks"},
        {"convolve --impulse \"$TEST_FOLDER/in.wav\"", 2e-6, "clicks"},
        {"echo_cancel --playback \"$TEST_FOLDER/in.wav\"", 2e-6, "clicks"},
        {"savgol --taps 21", 2e-6, "clicks"},
        {"preemphasis", 2e-6, "clicks"},
        {"deemphasis", 2e-6, "clicks"},
        {"normalize", 2e-6, "clicks"},
        {"normalize --by rms", 2e-6, "clicks"},
        {"agc", 2e-6, "clicks"},
        {"denoise", 2e-6, "clicks"},
        {"denoise --denoiser wiener --noise 0.3,0.5", 2e-6, "clicks"},
        {"denoise --denoiser gate", 2e-6, "clicks"},
        {"istft", 2e-6, "clicks"},
        {"icqt", 2e-6, "clicks"},
        {"insgt", 2e-6, "clicks"},
        {"rms_delta,chroma_delta", 2e-6, "clicks"},
    };
    analyze_compare(state, cases, sizeof cases / sizeof *cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(effects_from_a_gpu_are_the_cpus),
    };
    if (!find_program(analyze_program, sizeof analyze_program)) return 1;
    return cmocka_run_group_tests_name("analyze: effects on a GPU", tests, test_folder_create, test_folder_remove);
}
