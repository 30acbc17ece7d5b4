// Settings that no signal op can work with: each is refused with a sentence that has the value met and what is wanted.
#include "support/testing.h"

#include <math.h>
#include <string.h>
#include <warptone/autocorrelate.h>
#include <warptone/chroma.h>
#include <warptone/cqt.h>
#include <warptone/griffin_lim.h>
#include <warptone/hpss.h>
#include <warptone/icqt.h>
#include <warptone/loudness.h>
#include <warptone/mel_inverse.h>
#include <warptone/mfcc.h>
#include <warptone/nsgt.h>
#include <warptone/onset.h>
#include <warptone/pcen.h>
#include <warptone/pitch.h>
#include <warptone/reassigned.h>
#include <warptone/resample.h>
#include <warptone/silence.h>
#include <warptone/spectral.h>
#include <warptone/stft_stream.h>
#include <warptone/stretch.h>
#include <warptone/tempo.h>
#include <warptone/tuning.h>

static int n_complaints; // of the test that runs

static void check(wt_status status, const void *plan, const char *call, const char *fragment)
{
    if (status == WT_ERR_BAD_ARG && !plan && strstr(wt_last_error(), fragment) && strstr(wt_last_error(), "want"))
        return;
    print_error("%.100s: status %d, plan %p, \"%s\", want \"%s\"\n", call, (int)status, plan,
                status ? wt_last_error() : "", fragment);
    n_complaints++;
}

/// `type`_create of an op on the calling thread with these settings.
#define REFUSES(noun, fragment, ...)                                                                                   \
    do {                                                                                                               \
        wt_##noun *plan = NULL;                                                                                        \
        wt_status status = wt_##noun##_create(NULL, &(wt_##noun##_config){__VA_ARGS__}, &plan);                        \
        check(status, plan, #noun " " #__VA_ARGS__, fragment);                                                         \
        wt_##noun##_destroy(plan);                                                                                     \
    } while (0)
/// The same where create takes no device.
#define REFUSES_ALONE(noun, type, fragment, ...)                                                                       \
    do {                                                                                                               \
        wt_##noun *plan = NULL;                                                                                        \
        wt_status status = wt_##noun##_create(&(type){__VA_ARGS__}, &plan);                                            \
        check(status, plan, #noun " " #__VA_ARGS__, fragment);                                                         \
        wt_##noun##_destroy(plan);                                                                                     \
    } while (0)
#define FAILS(call, fragment) check((call), NULL, #call, fragment)

static void finish(void)
{
    const int n = n_complaints;
    n_complaints = 0;
    if (n) fail_msg("%d complaints", n);
}

#define CQT_REFUSES(noun, fragment, ...)                                                                               \
    do {                                                                                                               \
        wt_##noun *plan = NULL;                                                                                        \
        wt_status status = wt_##noun##_create(NULL, &(wt_cqt_config){__VA_ARGS__}, 100, &plan);                        \
        check(status, plan, #noun " " #__VA_ARGS__, fragment);                                                         \
        wt_##noun##_destroy(plan);                                                                                     \
    } while (0)

static void hops_below_1_are_refused(void **state)
{
    (void)state;
    REFUSES_ALONE(stft, wt_stft_config, "-1", .hop = -1);
    REFUSES_ALONE(stft_stream, wt_stft_config, "-1", .hop = -1);
    REFUSES(mel, "-1", .n_samples = 10, .stft = {.hop = -1});
    REFUSES(mfcc, "-1", .mel = {.n_samples = 10, .stft = {.hop = -1}});
    REFUSES(griffin_lim, "-1", .n_frames = 10, .stft = {.hop = -1});
    REFUSES(reassigned, "-1", .n_samples = 10, .stft = {.hop = -1});
    CQT_REFUSES(cqt, "-1", .hop = -1);
    CQT_REFUSES(icqt, "-1", .hop = -1);
    REFUSES(yin, "-1", .frames = {.fmin_hz = 100, .fmax_hz = 500, .n_samples = 10, .hop = -1});
    REFUSES(pyin, "-1", .frames = {.fmin_hz = 100, .fmax_hz = 500, .n_samples = 10, .hop = -1});
    REFUSES(onset, "-1", .n_samples = 10, .hop = -1);
    REFUSES(tempo, "-1", .hop = -1);
    REFUSES(beat, "-1", .max_frames = 10, .tempo = {.hop = -1});
    REFUSES(plp, "-1", .max_frames = 10, .hop = -1);
    REFUSES(stretch, "-1", .n_samples = 10, .hop = -1);
    REFUSES(pitch_shift, "-1", .n_samples = 10, .hop = -1);
    float out[8];
    FAILS(wt_level_rms(&(wt_level_config){.hop = -1}, out, 1, out), "-1");
    FAILS(wt_level_zero_crossings(&(wt_level_config){.frame_length = -1}, out, 1, out), "-1");
    const wt_pcen_config pcen = {.hop = -1};
    FAILS(wt_pcen_run(&pcen, out, 1, 1, NULL, false, out), "-1");
    finish();
}

static void windows_longer_than_their_transform_are_refused(void **state)
{
    (void)state;
    REFUSES_ALONE(stft, wt_stft_config, "513", .n_fft = 512, .win_length = 513);
    REFUSES_ALONE(stft_stream, wt_stft_config, "513", .n_fft = 512, .win_length = 513);
    REFUSES(mel, "513", .n_samples = 10, .stft = {.n_fft = 512, .win_length = 513});
    REFUSES(mfcc, "513", .mel = {.n_samples = 10, .stft = {.n_fft = 512, .win_length = 513}});
    REFUSES(griffin_lim, "513", .n_frames = 10, .stft = {.n_fft = 512, .win_length = 513});
    REFUSES(reassigned, "513", .n_samples = 10, .stft = {.n_fft = 512, .win_length = 513});
    REFUSES_ALONE(stft_stream, wt_stft_config, "513", .n_fft = 512, .hop = 513); // samples would be lost
    finish();
}

static void bands_above_half_the_rate_are_refused(void **state)
{
    (void)state;
    REFUSES(mel, "11026", .n_samples = 10, .bank = {.fmax_hz = 11026});
    REFUSES(mfcc, "11026", .mel = {.n_samples = 10, .bank = {.fmax_hz = 11026}});
    REFUSES(mel_inverse, "11026", .n_frames = 1, .bank = {.fmax_hz = 11026});
    REFUSES(mel, "5000", .n_samples = 10, .bank = {.fmin_hz = 5000, .fmax_hz = 5000});
    CQT_REFUSES(cqt, "11025", .fmin_hz = 8000, .n_bins = 12);
    CQT_REFUSES(icqt, "11025", .fmin_hz = 8000, .n_bins = 12);
    REFUSES(nsgt, "12, want 1..5", .fmin_hz = 8000, .n_bins = 12);
    REFUSES(yin, "11026", .frames = {.fmin_hz = 100, .fmax_hz = 11026, .n_samples = 10});
    REFUSES(pyin, "11026", .frames = {.fmin_hz = 100, .fmax_hz = 11026, .n_samples = 10});
    float x[257] = {0}, out[16];
    FAILS(wt_spectral_contrast(&(wt_spectral_shape){.n_fft = 512, .n_frames = 1}, x,
                               &(wt_spectral_contrast_config){.n_bands = 7}, out),
          "11025");
    finish();
}

static void numbers_that_are_none_are_refused(void **state)
{
    (void)state;
    REFUSES(mel, "nan", .n_samples = 10, .bank = {.fmax_hz = NAN});
    REFUSES(mel, "nan", .n_samples = 10, .power = NAN);
    CQT_REFUSES(cqt, "nan", .fmin_hz = NAN);
    CQT_REFUSES(cqt, "nan", .filter_scale = NAN);
    REFUSES(nsgt, "nan", .fmin_hz = NAN);
    REFUSES(chroma, "nan", .tuning = NAN);
    REFUSES(yin, "nan", .frames = {.fmin_hz = NAN, .fmax_hz = 500, .n_samples = 10});
    REFUSES(yin, "nan", .frames = {.fmin_hz = 100, .fmax_hz = 500, .n_samples = 10}, .trough_threshold = NAN);
    REFUSES(hpss, "nan", .bins = 10, .power = NAN);
    REFUSES(hpss, "nan", .bins = 10, .margin_harmonic = NAN);
    REFUSES(stretch, "nan", .n_samples = 10, .rate = NAN);
    REFUSES(pitch_shift, "nan", .n_samples = 10, .n_steps = NAN);
    REFUSES(tempo, "nan", .start_bpm = NAN);
    REFUSES(beat, "nan", .max_frames = 10, .tightness = NAN);
    REFUSES(beat, "nan", .max_frames = 10, .bpm = NAN);
    REFUSES(plp, "nan", .max_frames = 10, .min_bpm = NAN);
    REFUSES(griffin_lim, "nan", .n_frames = 10, .momentum = NAN);
    REFUSES(reassigned, "nan", .n_samples = 10, .ref_power = NAN);
    float x[257] = {0}, out[16];
    const wt_db_config db = {.amin = NAN};
    FAILS(wt_db_from_power(&db, x, 4, out), "nan");
    const wt_spectral_shape shape = {.n_fft = 512, .n_frames = 1};
    FAILS(wt_spectral_rolloff(&shape, x, NAN, out), "nan");
    FAILS(wt_spectral_bandwidth(&shape, x, NAN, false, out), "nan");
    FAILS(wt_spectral_flatness(&shape, x, NAN, 0, out), "nan");
    wt_span span;
    FAILS(wt_silence_trim(NULL, NAN, x, 1, 257, &span), "nan");
    double tuning;
    FAILS(wt_tuning_estimate(&(wt_piptrack_config){.n_fft = 512, .threshold = NAN}, x, 1, 0, 0, &tuning), "nan");
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hops_below_1_are_refused),
        cmocka_unit_test(windows_longer_than_their_transform_are_refused),
        cmocka_unit_test(bands_above_half_the_rate_are_refused),
        cmocka_unit_test(numbers_that_are_none_are_refused),
    };
    return cmocka_run_group_tests_name("settings of signal ops", tests, NULL, NULL);
}
