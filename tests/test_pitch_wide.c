// YIN and pYIN whose frames, lags or pitch bins no thread block's shared memory holds, on a GPU against the CPU.
#include "support/spectral_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <warptone/pitch.h>

enum { SIGNALS = 2 };

// Glides with noise and a pause; the second has a sample that is no number.
static float *glides(int64_t n)
{
    float *x = floats((size_t)(SIGNALS * n));
    uint64_t seed = 3;
    for (int s = 0; s < SIGNALS; s++) {
        double phase = 0;
        for (int64_t i = 0; i < n; i++) {
            const double at = (double)i / (double)n, hz = 90 + 60 * s + 100 * at;
            phase += 2 * 3.14159265358979323846 * hz / 22050;
            const double voice = at > 0.4 && at < 0.6 ? 0 : sin(phase) + 0.5 * sin(2 * phase) + 0.3 * sin(3 * phase);
            x[s * n + i] = (float)(0.3 * voice) + 0.01f * noise(&seed);
        }
    }
    x[2 * n - 5] = NAN;
    return x;
}

static wt_status enqueue_yin(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                             size_t out_offset)
{
    return wt_yin_enqueue(op, stream, in, in_offset, out, out_offset);
}

static wt_status enqueue_pyin(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                              size_t out_offset)
{
    return wt_pyin_enqueue(op, stream, in, in_offset, out, out_offset);
}

// No numbers in the same places; the others `bound` apart at most, of the value.
static void compare(const float *want, const float *got, int64_t count, double bound, const char *what)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - want[i]) <= bound * fabs((double)want[i])) && !(isnan(got[i]) && isnan(want[i])))
            fail_msg("%s, value %lld of %lld: %.9g, want %.9g", what, (long long)i, (long long)count, (double)got[i],
                     (double)want[i]);
}

static void check_yin(wt_pitch_frames frames)
{
    wt_device *device = gpu_device();
    wt_yin *one, *many;
    frames.n_signals = SIGNALS;
    assert_ok(wt_yin_create(NULL, &(wt_yin_config){.frames = frames}, &one));
    assert_ok(wt_yin_create(device, &(wt_yin_config){.frames = frames}, &many));
    const int64_t n = SIGNALS * frames.n_samples, count = SIGNALS * wt_yin_n_frames(one);
    float *x = glides(frames.n_samples), *want = floats((size_t)count), *got = floats((size_t)count);
    wt_yin_run(one, x, want);
    run_on_stream(&(stream_call){device, enqueue_yin, many}, x, (size_t)n, got, (size_t)count);
    char what[60];
    snprintf(what, sizeof what, "frames of %d, hop %d", frames.frame_length, frames.hop);
    compare(want, got, count, 1e-6, what);
    free(x), free(want), free(got);
    wt_yin_destroy(one), wt_yin_destroy(many);
    wt_device_close(device);
}

static void long_frames_have_the_cpus_pitch(void **state)
{
    (void)state;
    check_yin((wt_pitch_frames){.fmin_hz = 50, .fmax_hz = 500, .frame_length = 16384, .n_samples = 60001});
    check_yin((wt_pitch_frames){.fmin_hz = 5, .fmax_hz = 500, .frame_length = 20001, .hop = 6007, .n_samples = 40000});
    check_yin((wt_pitch_frames){.fmin_hz = 50, .fmax_hz = 500, .hop = 1, .n_samples = 1500, .pad = WT_STFT_PAD_RAMP});
    check_yin((wt_pitch_frames){
        .fmin_hz = 2, .fmax_hz = 500, .frame_length = 65536, .n_samples = 70000, .pad = WT_STFT_PAD_REFLECT});
    check_yin((wt_pitch_frames){.fmin_hz = 20,
                                .fmax_hz = 500,
                                .frame_length = 12000,
                                .hop = 2,
                                .n_samples = 12040,
                                .no_center = true}); // products of one hop would not fit
}

static void check_pyin(wt_pyin_config c)
{
    wt_device *device = gpu_device();
    wt_pyin *one, *many;
    c.frames.n_signals = SIGNALS;
    assert_ok(wt_pyin_create(NULL, &c, &one));
    assert_ok(wt_pyin_create(device, &c, &many));
    const int64_t n = SIGNALS * c.frames.n_samples, count = SIGNALS * wt_pyin_n_frames(one);
    float *x = glides(c.frames.n_samples), *want = floats(3 * (size_t)count), *got = floats(3 * (size_t)count);
    wt_pyin_run(one, x, want);
    run_on_stream(&(stream_call){device, enqueue_pyin, many}, x, (size_t)n, got, 3 * (size_t)count);
    char what[60];
    snprintf(what, sizeof what, "frames of %d, %d bins", c.frames.frame_length, wt_pyin_n_bins(one));
    compare(want, got, 2 * count, 0, what); // pitches of bins, flags
    compare(want + 2 * count, got + 2 * count, count, 2e-6, what);
    free(x), free(want), free(got);
    wt_pyin_destroy(one), wt_pyin_destroy(many);
    wt_device_close(device);
}

static void long_frames_and_fine_bins_have_the_cpus_path(void **state)
{
    (void)state;
    const wt_pitch_frames usual = {.fmin_hz = 65, .fmax_hz = 600, .n_samples = 30000};
    wt_pyin_config c = {.frames = usual, .resolution = 0.01}; // 3848 bins
    check_pyin(c);
    c.resolution = 0.005, c.calibrated = true;
    check_pyin(c);
    c = (wt_pyin_config){.frames = usual, .max_transition_rate = 5};
    c.frames.frame_length = 16384;
    check_pyin(c);
    c.frames = (wt_pitch_frames){
        .fmin_hz = 8, .fmax_hz = 2000, .frame_length = 8000, .hop = 2003, .n_samples = 20000}; // 1373 troughs
    check_pyin(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_frames_have_the_cpus_pitch),
        cmocka_unit_test(long_frames_and_fine_bins_have_the_cpus_path),
    };
    return cmocka_run_group_tests_name("pitch_wide", tests, NULL, NULL);
}
