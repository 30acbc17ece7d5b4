// `warptone analyze` refuses what has no meaning with a sentence that names the value met and what was wanted; no value
// that was given stands for its absence.
#include "support/analyze_check.h"
#include "support/audio_files.h"
#include "support/testing.h"

#include <stdio.h>
#include <stdlib.h>

static void zero_is_not_left_out(void **state)
{
    static const analyze_refusal cases[] = {
        {"-f yin --fmin 0", "--fmin 0: yin wants a lowest frequency above 0"},
        {"-f pyin --fmin -0", "--fmin 0: pyin wants"},
        {"-f mel,cqt --fmin 0", "--fmin 0: cqt wants"},
        {"-f vqt --fmin 0.0", "--fmin 0: vqt wants"},
        {"-f pseudo_cqt --fmin 0", "--fmin 0: pseudo_cqt wants"},
        {"-f hybrid_cqt --fmin 0", "--fmin 0: hybrid_cqt wants"},
        {"-f nsgt --fmin 0", "--fmin 0: nsgt wants"},
        {"-f chroma_cqt_delta --fmin 0", "--fmin 0: chroma_cqt_delta wants"},
        {"-f chroma_cens --fmin 0", "--fmin 0: chroma_cens wants"},
        {"-f tonnetz --fmin 0", "--fmin 0: tonnetz wants"},
        {"-f piptrack --fmin 0", "--fmin 0: piptrack wants"},
        {"-f icqt --fmin 0", "--fmin 0: icqt wants"},
        {"-f insgt --fmin 0", "--fmin 0: insgt wants"},
        {"-f pyin --fmin -65", "option --fmin is \"-65\", want a number in 0.."},
        {"-f mel --fmax 0", "option --fmax is \"0\", want a number in 0.001.."},
        {"-f mel --fmax -1", "option --fmax is \"-1\""},
        {"-f mel --n-mels 0", "option --n-mels is \"0\", want an integer in 1.."},
        {"-f mel --n-fft 0", "option --n-fft is \"0\", want an integer in 2.."},
        {"-f mel --n-fft -2048", "option --n-fft is \"-2048\""},
        {"-f mel --hop 0", "option --hop is \"0\", want an integer in 1.."},
        {"-f mel --win-length 0", "option --win-length is \"0\""},
        {"-f mfcc --n-mfcc 0", "option --n-mfcc is \"0\""},
        {"-f cqt --n-bins 0", "option --n-bins is \"0\""},
        {"-f cqt --bins-per-octave 0", "option --bins-per-octave is \"0\""},
        {"-f chroma --n-chroma 0", "option --n-chroma is \"0\""},
        {"-f hpss --margin 0", "option --margin is \"0\", want a number in 1.."},
        {"-f time_stretch --speed 0", "option --speed is \"0\""},
        {"-f time_stretch --speed -1", "option --speed is \"-1\""},
        {"-f nmf --components 0", "option --components is \"0\""},
        {"-f nmf --iterations 0", "option --iterations is \"0\""},
        {"-f nmf --seed -1", "option --seed is \"-1\""},
        {"-f beats --bpm 0", "option --bpm is \"0\""},
        {"-f trim --top-db 0", "option --top-db is \"0\""},
        {"-f rms --width 0", "option --width is \"0\""},
        {"-f rms --height 0", "option --height is \"0\""},
        {"-f rms --jobs 0", "option --jobs is \"0\""},
        {"-f rms --tile 0", "option --tile is \"0\""},
        {"-f rms --rate -1", "option --rate is \"-1\""},
        {"-f filter --edges 100 --order 0", "option --order is \"0\", want an integer in 1..24"},
        {"-f filter --edges 100 --family elliptic --ripple 0", "option --ripple is \"0\""},
        {"-f filter --edges 100 --family elliptic --attenuation 0", "option --attenuation is \"0\""},
        {"-f fir --edges 100 --taps 0", "option --taps is \"0\""},
        {"-f fir --edges 100 --design equiripple --transition 0", "option --transition is \"0\""},
        {"-f savgol --polynomial -1", "option --polynomial is \"-1\""},
        {"-f savgol --derivative -1", "option --derivative is \"-1\""},
        {"-f preemphasis --coefficient 0", "option --coefficient is \"0\""},
        {"-f agc --target 0", "option --target is \"0\""},
        {"-f agc --max-gain 0", "option --max-gain is \"0\""},
        {"-f denoise --max-cut 0", "option --max-cut is \"0\""},
        {"-f echo_cancel --tail 0", "option --tail is \"0\""},
    };
    analyze_assert_refused(state, test_path(state, "in.wav"), 2, cases, sizeof cases / sizeof *cases);
}

static void what_an_effect_lacks_is_told(void **state)
{
    static const analyze_refusal cases[] = {
        {"-f filter", "a filter with --band low wants --edges HZ, 0 are given"},
        {"-f filter --edges 300 --band pass", "a filter with --band pass wants --edges HZ,HZ, 1 are given"},
        {"-f filter --edges 20000", "--edges 20000 Hz at 22050 Hz, want ascending between 0 and 11025"},
        {"-f filtfilt --edges 0", "--edges 0 Hz at 22050 Hz, want"},
        {"-f filter --edges 30,20 --band stop", "--edges 20 Hz at 22050 Hz, want"},
        {"-f filter --edges abc", "--edges is \"abc\", want one frequency in Hz, or two as 300,3400"},
        {"-f filter --edges 1,2,3", "--edges is \"1,2,3\", want"},
        {"-f filter --edges nan", "--edges is \"nan\", want"},
        {"-f filter --edges 100 --family x",
         "--family is \"x\", want butterworth, chebyshev1, chebyshev2, elliptic or bessel"},
        {"-f filter --edges 100 --band x", "--band is \"x\", want low, high, pass or stop"},
        {"-f fir --edges 100 --design x", "--design is \"x\", want window, least_squares or equiripple"},
        {"-f fir --edges 100 --design equiripple", "fir: a transition of 285.353 Hz does not fit"},
        {"-f fir --edges 100 --band high --taps 100", "want odd"},
        {"-f savgol --taps 10", "savgol: window of 10 frames, want an odd number"},
        {"-f savgol --polynomial 11", "savgol: order 11, want 0..10"},
        {"-f convolve", "convolve wants --impulse FILE"},
        {"-f echo_cancel", "echo_cancel wants --playback FILE"},
        {"-f denoise --denoiser x", "--denoiser is \"x\", want lsa, wiener or gate"},
        {"-f denoise --noise 1", "--noise is \"1\", want a begin and an end in seconds, as 0,0.5"},
        {"-f denoise --noise 1,0.5", "--noise is \"1,0.5\", want"},
        {"-f denoise --noise 0,0.001", "--noise is 22 samples long, want 450 or more"},
        {"-f normalize --by x", "--by is \"x\", want loudness, rms or peak"},
        {"-f resample --quality x", "--quality is \"x\", want best, fast, soxr_hq or polyphase"},
        {"-f agc --rate 4000", "agc: rate 4000 Hz, want 8000..384000"},
        {"-f stft_delta", "stft_delta: stft is not one array of real numbers a frame, which slopes are of"},
        {"-f pyin_delta", "pyin_delta: pyin is not one array"},
        {"-f onsets_delta", "onsets_delta: onsets is not one array"},
        {"-f filter_delta --edges 100", "filter_delta: filter is not one array"},
        {"-f rms_delta,rms_delta", "feature \"rms_delta\" is named twice"},
        {"-f filter,agc --edges 100 --format wav", "wav holds audio, want one feature that makes signals"},
    };
    static const analyze_refusal missing[] = {
        {"-f convolve --impulse nowhere.wav", "nowhere.wav: cannot be opened"},
        {"-f echo_cancel --playback nowhere.wav", "nowhere.wav: cannot be opened"},
    };
    static const analyze_refusal lengths[] = {
        {"-f rms_delta --hop 20000", "rms_delta: 2 frames, want 9 or more"},
        {"-f savgol --taps 1023 --n-fft 256 --rate 1000", "savgol: 1000 frames"},
        {"-f denoise --noise 0.5,9", "--noise ends at 9 s, the signal at 1 s"},
    };
    analyze_assert_refused(state, test_path(state, "in.wav"), 2, cases, sizeof cases / sizeof *cases);
    analyze_assert_refused(state, test_path(state, "in.wav"), 1, missing, sizeof missing / sizeof *missing);
    analyze_assert_refused(state, test_path(state, "in.wav"), 3, lengths, sizeof lengths / sizeof *lengths);
}

static void zero_that_means_something_is_taken(void **state)
{
    static const char *const options[] = {"-f mel --fmin 0",          "-f rms --rate 0",
                                          "-f pitch_shift --steps 0", "-f savgol --polynomial 0 --derivative 0",
                                          "-f normalize --ceiling 0", "-f nmf --seed 0 --components 1 --iterations 1"};
    for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
        char arguments[512];
        snprintf(arguments, sizeof arguments, "--backend cpu %s '%%s' '%%s'", options[k]);
        assert_analyze(arguments, test_path(state, "in.wav"), test_path(state, "taken.npz"));
    }
}

static int create(void **state)
{
    enum { N = 22050 };
    if (test_folder_create(state)) return -1;
    float *x = test_sine(1, N, N, 440, 0.3f);
    test_write(test_path(state, "in.wav"), &(wt_audio_writer_config){.rate_hz = N, .channels = 1}, x, N, 1000);
    free(x);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_is_not_left_out),
        cmocka_unit_test(what_an_effect_lacks_is_told),
        cmocka_unit_test(zero_that_means_something_is_taken),
    };
    if (!find_program(analyze_program, sizeof analyze_program)) return 1;
    return cmocka_run_group_tests_name("analyze: options", tests, create, test_folder_remove);
}
