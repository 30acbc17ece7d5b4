#include "support/failing_alloc.h"
#include "support/golden.h"
#include "support/realtime.h"
#include "support/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/onset.h>

static float *envelope_of(const golden_case *g, bool median, size_t *n_frames)
{
    size_t n;
    const float *pcm = golden_input(g, 0, &n);
    const wt_onset_config config = {.rate_hz = golden_int(g, "sr", 0),
                                    .n_fft = golden_int(g, "n_fft", 0),
                                    .hop = golden_int(g, "hop_length", 0),
                                    .n_mels = golden_int(g, "n_mels", 0),
                                    .lag = golden_int(g, "lag", 0),
                                    .max_size = golden_int(g, "max_size", 0),
                                    .median = median,
                                    .detrend = golden_int(g, "detrend", 0) != 0,
                                    .no_center = !golden_int(g, "center", 1),
                                    .n_samples = (int64_t)n};
    wt_onset *plan;
    assert_ok(wt_onset_create(NULL, &config, &plan));
    *n_frames = (size_t)wt_onset_n_frames(plan);
    float *envelope = malloc(*n_frames * sizeof *envelope);
    assert_non_null(envelope);
    RT_SECTION wt_onset_run(plan, pcm, envelope);
    wt_onset_destroy(plan);
    return envelope;
}

static void strengths_equal_librosas(void **state)
{
    (void)state;
    int n_cases = 0;
    for (const golden_case *g = NULL; (g = golden_next("onset_strength", g)); n_cases++) {
        size_t n;
        float *envelope = envelope_of(g, !strcmp(golden_text(g, "aggregate", "mean"), "median"), &n);
        golden_check(g, envelope, 1, n);
        free(envelope);
    }
    assert_int_equal(n_cases, 4);
}

static void onsets_are_librosas(void **state)
{
    (void)state;
    int n_cases = 0;
    for (const golden_case *g = NULL; (g = golden_next("onset_detect", g)); n_cases++) {
        size_t n;
        float *envelope = envelope_of(g, false, &n);
        int *frames = malloc(n * sizeof *frames);
        assert_non_null(frames);
        const int hop = golden_int(g, "hop_length", 512);
        const wt_peak_config peaks = wt_onset_peaks(golden_double(g, "sr", 22050), hop);
        const int64_t count = wt_onset_detect(&peaks, envelope, (int64_t)n, frames);
        if (golden_int(g, "backtrack", 0)) wt_onset_backtrack(envelope, (int64_t)n, frames, count, frames);
        for (int64_t i = 0; i < count && !strcmp(golden_text(g, "units", "frames"), "samples"); i++) frames[i] *= hop;
        golden_check_int(g, frames, 1, (size_t)count);
        free(envelope), free(frames);
    }
    assert_int_equal(n_cases, 9);
}

static void peaks_are_librosas(void **state)
{
    (void)state;
    const golden_case *g = golden_find("peak_pick");
    size_t n;
    const float *x = golden_input(g, 0, &n);
    const wt_peak_config config = {golden_int(g, "pre_max", 0), golden_int(g, "post_max", 0),
                                   golden_int(g, "pre_avg", 0), golden_int(g, "post_avg", 0),
                                   golden_int(g, "wait", 0),    golden_double(g, "delta", 0)};
    int *peaks = malloc(n * sizeof *peaks);
    assert_non_null(peaks);
    golden_check_int(g, peaks, 1, (size_t)wt_peak_pick(&config, x, (int64_t)n, peaks));
    free(peaks);
}

// Root mean square of centred frames, in double: what the case was made with.
static void backtracking_follows_another_energy(void **state)
{
    (void)state;
    const golden_case *g = golden_find("onset_backtrack_rms");
    size_t n, n_frames;
    const float *pcm = golden_input(g, 0, &n);
    float *envelope = envelope_of(g, false, &n_frames), *energy = malloc(n_frames * sizeof *energy);
    int *frames = malloc(n_frames * sizeof *frames);
    assert_true(energy && frames);
    for (size_t t = 0; t < n_frames; t++) {
        double sum = 0;
        for (int64_t i = (int64_t)t * 512 - 1024; i < (int64_t)t * 512 + 1024; i++)
            if (i >= 0 && i < (int64_t)n) sum += (double)pcm[i] * pcm[i];
        energy[t] = (float)sqrt(sum / 2048);
    }
    const wt_peak_config peaks = wt_onset_peaks(22050, 512);
    const int64_t count = wt_onset_detect(&peaks, envelope, (int64_t)n_frames, frames);
    wt_onset_backtrack(energy, (int64_t)n_frames, frames, count, frames);
    golden_check_int(g, frames, 1, (size_t)count);
    free(envelope), free(energy), free(frames);
}

static void silence_and_nan_have_no_onsets(void **state)
{
    (void)state;
    float envelope[50] = {0};
    int frames[50];
    const wt_peak_config peaks = wt_onset_peaks(22050, 512);
    assert_int_equal(wt_onset_detect(&peaks, envelope, 50, frames), 0);
    envelope[20] = 1;
    assert_int_equal(wt_onset_detect(&peaks, envelope, 50, frames), 1);
    assert_int_equal(frames[0], 20);
    envelope[30] = NAN;
    assert_int_equal(wt_onset_detect(&peaks, envelope, 50, frames), 0);
    assert_int_equal(wt_onset_detect(&peaks, envelope, 0, frames), 0);
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    wt_onset *plan = NULL;
    assert_fails(wt_onset_create(NULL, &(wt_onset_config){.n_samples = 9, .lag = -1}, &plan), WT_ERR_BAD_ARG,
                 "onset: lag -1, want 1 or more");
    assert_fails(wt_onset_create(NULL, &(wt_onset_config){.n_samples = 9, .max_size = -2}, &plan), WT_ERR_BAD_ARG,
                 "onset: max_size -2, want 1 or more");
    assert_int_equal(wt_onset_create(NULL, &(wt_onset_config){.n_samples = 0}, &plan), WT_ERR_BAD_ARG);
    assert_null(plan);
    wt_onset_destroy(NULL);
}

static wt_status create(void *user)
{
    return wt_onset_create(NULL, &(wt_onset_config){.n_samples = 5000}, user);
}

static void destroy(void *user)
{
    wt_onset_destroy(*(wt_onset **)user);
}

static void running_out_of_memory_is_survived(void **state)
{
    (void)state;
    wt_onset *plan = NULL;
    assert_survives_failing_alloc(create, destroy, &plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strengths_equal_librosas),
        cmocka_unit_test(onsets_are_librosas),
        cmocka_unit_test(peaks_are_librosas),
        cmocka_unit_test(backtracking_follows_another_energy),
        cmocka_unit_test(silence_and_nan_have_no_onsets),
        cmocka_unit_test(bad_input_gets_a_sentence),
        cmocka_unit_test(running_out_of_memory_is_survived),
    };
    return cmocka_run_group_tests_name("onset", tests, NULL, NULL);
}
