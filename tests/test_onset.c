#include "support/failing_alloc.h"
#include "support/golden.h"
#include "support/realtime.h"
#include "support/testing.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/mel.h>
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

enum { WHOLE = 34, BANDS = 45, HOP = 128 };

// The mean rise from frame t to the next above the largest of three bands of `db` [BANDS][n_frames].
static double rise_of(const float *db, int n_frames, int t)
{
    double sum = 0;
    for (int b = 0; b < BANDS; b++) {
        double most = -HUGE_VAL;
        for (int k = b - 1; k <= b + 1; k++)
            if (k >= 0 && k < BANDS) most = fmax(most, db[k * n_frames + t]);
        sum += fmax(0, db[b * n_frames + t + 1] - most);
    }
    return sum / BANDS;
}

// Of 1 to WHOLE frames, so that the last tile of spectra has each number of frames that it may have.
static void a_maximum_filter_is_of_precise_spectra(void **state)
{
    (void)state;
    static float pcm[WHOLE * HOP], db[BANDS * WHOLE], envelope[WHOLE];
    for (int i = 0; i < WHOLE * HOP; i++) pcm[i] = (float)sin(1e-5 * i * i); // weak bands far from the tone
    for (int n_frames = 1; n_frames <= WHOLE; n_frames++) {
        const int64_t n_samples = (n_frames - 1) * HOP + 1;
        wt_onset *onset;
        wt_mel *mel;
        assert_ok(wt_onset_create(NULL,
                                  &(wt_onset_config){.n_fft = 512, .hop = HOP, .n_mels = BANDS, .max_size = 3,
                                                     .no_center = true, .n_samples = n_samples},
                                  &onset));
        assert_ok(wt_mel_create(NULL,
                                &(wt_mel_config){.n_samples = n_samples,
                                                 .stft = {.n_fft = 512, .hop = HOP, .precise = true},
                                                 .bank = {.rate_hz = 22050, .n_mels = BANDS},
                                                 .scale = WT_MEL_DB},
                                &mel));
        assert_int_equal(wt_onset_n_frames(onset), n_frames);
        assert_int_equal(wt_mel_frames(mel), n_frames);
        wt_onset_run(onset, pcm, envelope);
        wt_mel_run(mel, pcm, db);
        assert_float_equal(envelope[0], 0, 0);
        for (int t = 1; t < n_frames; t++) // the same decibels: rounding of floats of 37
            if (!(fabs(envelope[t] - rise_of(db, n_frames, t - 1)) <= 4e-6))
                fail_msg("frame %d of %d: %.9g, want %.9g", t, n_frames, envelope[t], rise_of(db, n_frames, t - 1));
        wt_onset_destroy(onset), wt_mel_destroy(mel);
    }
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
                 "onset: lag -1, want 1..16777216");
    assert_fails(wt_onset_create(NULL, &(wt_onset_config){.n_samples = 100, .lag = INT_MAX}, &plan), WT_ERR_BAD_ARG,
                 "onset: lag 2147483647, want 1..16777216");
    assert_fails(wt_onset_create(NULL, &(wt_onset_config){.n_samples = 100, .hop = INT_MIN}, &plan), WT_ERR_BAD_ARG,
                 "stft: hop -2147483648, want 1..16777216");
    assert_fails(wt_onset_create(NULL, &(wt_onset_config){.n_samples = 9, .max_size = -2}, &plan), WT_ERR_BAD_ARG,
                 "onset: max_size -2, want 1 or more");
    assert_int_equal(wt_onset_create(NULL, &(wt_onset_config){.n_samples = 0}, &plan), WT_ERR_BAD_ARG);
    assert_null(plan);
    wt_onset_destroy(NULL);
}

// ---- many signals on a stream

enum { BATCH = 3, SAMPLES = 20011, EVENTS = 900 };

static wt_buffer *buffer_of(wt_device *device, size_t bytes)
{
    wt_buffer *buffer;
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &buffer));
    return buffer;
}

static void check_strength(wt_device *device, wt_stream *stream, const wt_onset_config *config)
{
    static float pcm[BATCH * SAMPLES];
    uint64_t seed = 3;
    for (int i = 0; i < (BATCH - 1) * SAMPLES; i++) // the last signal is silent
        pcm[i] = noise(&seed) * (float)exp(-(i % 3001) / (200.0 + 300 * (i / SAMPLES)));
    wt_onset_config c = *config;
    c.n_samples = SAMPLES, c.hop = 128, c.n_fft = c.n_mels ? 8192 : 512;
    if (!c.n_mels) c.n_mels = 45;
    wt_onset *one, *many;
    assert_ok(wt_onset_create(NULL, &c, &one));
    c.n_signals = BATCH;
    assert_ok(wt_onset_create(device, &c, &many));
    const size_t n = (size_t)wt_onset_n_frames(one);
    assert_int_equal(wt_onset_n_frames(many), n);
    float *want = malloc(n * sizeof *want), *got = malloc(BATCH * n * sizeof *got);
    assert_true(want && got);
    wt_buffer *in = buffer_of(device, sizeof pcm), *out = buffer_of(device, BATCH * n * sizeof *got);
    assert_ok(wt_stream_upload(stream, in, 0, pcm, sizeof pcm));
    assert_ok(wt_onset_enqueue(many, stream, in, 0, out, 0));
    assert_ok(wt_stream_download(stream, got, out, 0, BATCH * n * sizeof *got));
    assert_ok(wt_stream_synchronize(stream));
    for (size_t s = 0; s < BATCH; s++) {
        wt_onset_run(one, pcm + s * SAMPLES, want);
        double peak = 0;
        for (size_t t = 0; t < n; t++) peak = fmax(peak, want[t]);
        for (size_t t = 0; t < n; t++) // 1e-5 dB: a float's digits of 80 dB, where an envelope hardly moves
            if (!(fabs((double)got[s * n + t] - want[t]) <= fmax(2e-6 * peak, 1e-5)))
                fail_msg("signal %zu, frame %zu of %zu: %.9g, want %.9g", s, t, n, (double)got[s * n + t],
                         (double)want[t]);
    }
    wt_buffer_destroy(in), wt_buffer_destroy(out);
    wt_onset_destroy(one), wt_onset_destroy(many);
    free(want), free(got);
}

static void check_onsets(wt_device *device, wt_stream *stream, bool backtrack, bool plain)
{
    static float x[BATCH * EVENTS];
    static int got[BATCH * EVENTS], want[EVENTS];
    uint64_t seed = 5;
    for (int i = 0; i < BATCH * EVENTS; i++) // coarse steps: many equal neighbours; the last signal is constant
        x[i] = i / EVENTS == BATCH - 1 ? 1 : floorf(8 * noise(&seed) * noise(&seed)) / 8;
    x[EVENTS - 1] = 5;
    if (plain) x[EVENTS + 50] = NAN, x[EVENTS + 90] = INFINITY; // these have onsets all the same
    const wt_onsets_config c = {.peaks = wt_onset_peaks(22050, 256),
                                .n_frames = EVENTS,
                                .n_signals = BATCH,
                                .backtrack = backtrack,
                                .plain = plain};
    wt_onsets *plan;
    assert_ok(wt_onsets_create(device, &c, &plan));
    wt_buffer *in = buffer_of(device, sizeof x), *out = buffer_of(device, sizeof got),
              *n = buffer_of(device, 4 * BATCH);
    int counts[BATCH];
    assert_ok(wt_stream_upload(stream, in, 0, x, sizeof x));
    assert_ok(wt_onsets_enqueue(plan, stream, in, 0, out, 0, n, 0));
    assert_ok(wt_stream_download(stream, got, out, 0, sizeof got));
    assert_ok(wt_stream_download(stream, counts, n, 0, sizeof counts));
    assert_ok(wt_stream_synchronize(stream));
    for (int s = 0; s < BATCH; s++) {
        const int64_t count = plain ? wt_peak_pick(&c.peaks, x + s * EVENTS, EVENTS, want)
                                    : wt_onset_detect(&c.peaks, x + s * EVENTS, EVENTS, want);
        if (backtrack) wt_onset_backtrack(x + s * EVENTS, EVENTS, want, count, want);
        if (counts[s] != count) fail_msg("signal %d: %d onsets, want %lld", s, counts[s], (long long)count);
        assert_true(count > 20 || s == BATCH - 1);
        for (int64_t k = 0; k < count; k++)
            if (got[s * EVENTS + k] != want[k])
                fail_msg("signal %d, onset %lld: frame %d, want %d", s, (long long)k, got[s * EVENTS + k], want[k]);
    }
    wt_buffer_destroy(in), wt_buffer_destroy(out), wt_buffer_destroy(n);
    wt_onsets_destroy(plan);
}

static void check_device(wt_backend backend)
{
    wt_device *device;
    wt_stream *stream;
    assert_ok(wt_device_open(&(wt_device_config){.backend = backend, .n_threads = 2}, &device));
    assert_ok(wt_stream_create(device, NULL, &stream));
    check_strength(device, stream, &(wt_onset_config){.lag = 1});
    check_strength(device, stream, &(wt_onset_config){.median = true, .no_center = true});
    check_strength(device, stream, &(wt_onset_config){.lag = 2, .max_size = 3, .detrend = true});
    check_strength(device, stream, &(wt_onset_config){.has_floor = true, .floor_db = -20}); // above what decays
    check_strength(device, stream, &(wt_onset_config){.has_floor = true, .floor_db = -200, .median = true});
    check_strength(device, stream, &(wt_onset_config){.precise = true});
    check_strength(device, stream, &(wt_onset_config){.precise = true, .median = true, .lag = 3});
    check_strength(device, stream, &(wt_onset_config){.precise = true, .has_floor = true, .floor_db = -20});
    check_strength(device, stream, &(wt_onset_config){.n_mels = 1800, .median = true}); // a GPU's in memory
    check_strength(device, stream, &(wt_onset_config){.n_mels = 4096, .max_size = 3});
    check_onsets(device, stream, false, false);
    check_onsets(device, stream, true, false);
    check_onsets(device, stream, true, true);
    wt_stream_destroy(stream);
    wt_device_close(device);
}

static void batches_on_a_cpu_give_what_each_signal_gives(void **state)
{
    (void)state;
    check_device(WT_BACKEND_CPU);
}

static void cuda_gives_what_the_cpu_gives(void **state)
{
    (void)state;
    if (wt_device_count() < 1) {
        print_message("skipped: no CUDA device\n");
        skip();
    }
    check_device(WT_BACKEND_CUDA);
}

static wt_status create(void *user) { return wt_onset_create(NULL, &(wt_onset_config){.n_samples = 5000}, user); }

static void destroy(void *user) { wt_onset_destroy(*(wt_onset **)user); }

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
        cmocka_unit_test(a_maximum_filter_is_of_precise_spectra),
        cmocka_unit_test(onsets_are_librosas),
        cmocka_unit_test(peaks_are_librosas),
        cmocka_unit_test(backtracking_follows_another_energy),
        cmocka_unit_test(silence_and_nan_have_no_onsets),
        cmocka_unit_test(batches_on_a_cpu_give_what_each_signal_gives),
        cmocka_unit_test(cuda_gives_what_the_cpu_gives),
        cmocka_unit_test(bad_input_gets_a_sentence),
        cmocka_unit_test(running_out_of_memory_is_survived),
    };
    return cmocka_run_group_tests_name("onset", tests, NULL, NULL);
}
