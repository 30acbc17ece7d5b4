// Windows and beats that no thread block holds, on a GPU against the CPU.
#include "support/spectral_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <warptone/tempo.h>

enum { SIGNALS = 3 };

// Pulses at several tempi over noise.
static float *envelopes(int64_t n_frames)
{
    float *x = floats((size_t)(SIGNALS * n_frames));
    uint64_t seed = 5;
    for (int s = 0; s < SIGNALS; s++)
        for (int64_t t = 0; t < n_frames; t++) {
            const double period = 23 + 7.3 * s, away = (double)t - rint((double)t / period) * period;
            x[s * n_frames + t] =
                (float)(exp(-0.5 * away * away) * (1 + 0.3 * sin((double)t * 0.05)) + 0.05 * (1 + noise(&seed)));
        }
    return x;
}

static wt_status enqueue_tempogram(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                                   size_t out_offset)
{
    return wt_tempogram_enqueue(op, stream, in, in_offset, out, out_offset);
}

static void check_tempogram(int win_length, int64_t n_frames, bool no_norm, bool no_center)
{
    wt_device *device = gpu_device();
    wt_tempogram *one, *many;
    const wt_tempogram_config c = {.win_length = win_length,
                                   .n_frames = n_frames,
                                   .n_signals = SIGNALS,
                                   .no_norm = no_norm,
                                   .no_center = no_center};
    assert_ok(wt_tempogram_create(NULL, &c, &one));
    assert_ok(wt_tempogram_create(device, &c, &many));
    const size_t area = (size_t)(wt_tempogram_rows(one, n_frames) * win_length), n_in = (size_t)(SIGNALS * n_frames);
    float *x = envelopes(n_frames), *got = floats(SIGNALS * area + 1), *want = floats(area + 1);
    run_on_stream(&(stream_call){device, enqueue_tempogram, many}, x, n_in, got, SIGNALS * area + 1);
    char what[80];
    for (int s = 0; s < SIGNALS; s++) {
        wt_tempogram_run(one, x + s * n_frames, n_frames, want);
        snprintf(what, sizeof what, "a window of %d, signal %d", win_length, s);
        assert_near_peak(want, got + (size_t)s * area, area, 2e-6, what);
    }
    free(x), free(got), free(want);
    wt_tempogram_destroy(one), wt_tempogram_destroy(many);
    wt_device_close(device);
}

static void tempograms_of_long_windows_are_the_cpus(void **state)
{
    (void)state;
    check_tempogram(4096, 20, false, false); // the last that a block transforms
    check_tempogram(4097, 50, false, false);
    check_tempogram(5000, 5040, true, true);
    check_tempogram(70001, 7, false, false);
    check_tempogram(5000, 40, false, true); // no row
}

static wt_status enqueue_tempo(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                               size_t out_offset)
{
    return wt_tempo_enqueue(op, stream, in, in_offset, out, out_offset);
}

static void check_tempo(double window_frames, int64_t n_frames, bool fine)
{
    wt_device *device = gpu_device();
    wt_tempo *one, *many;
    const wt_tempo_config c = {
        .ac_size_s = (window_frames + 0.5) * 512 / 22050, .fine = fine, .n_frames = n_frames, .n_signals = SIGNALS};
    assert_ok(wt_tempo_create(NULL, &c, &one));
    assert_ok(wt_tempo_create(device, &c, &many));
    float *x = envelopes(n_frames);
    double got[SIGNALS];
    run_on_stream(&(stream_call){device, enqueue_tempo, many}, x, (size_t)(SIGNALS * n_frames), (float *)got,
                  2 * SIGNALS);
    for (int s = 0; s < SIGNALS;
         s++) { // lags are a float transform's on the CPU: their parabola moves with its rounding
        const double want = wt_tempo_run(one, x + s * n_frames, n_frames), bound = fine ? 1e-4 : 0;
        if (!(fabs(got[s] - want) <= bound))
            fail_msg("a window of %g, signal %d: %.17g BPM, want %.17g", window_frames, s, got[s], want);
    }
    free(x);
    wt_tempo_destroy(one), wt_tempo_destroy(many);
    wt_device_close(device);
}

static void tempi_of_long_windows_are_the_cpus(void **state)
{
    (void)state;
    check_tempo(4096, 100, false);
    check_tempo(4097, 300, false);
    check_tempo(4500, 300, true);
    check_tempo(60000, 20, false);
}

// Beats of `period` frames, known or found in a window of so many.
static void check_beats(int period, int64_t n_frames, bool known)
{
    wt_device *device = gpu_device();
    wt_stream *stream;
    wt_beat *one, *many;
    wt_buffer *in, *out, *found;
    const double frames_per_minute = 22050.0 / 512 * 60;
    wt_beat_config c = {.bpm = known ? frames_per_minute / period : 0, .max_frames = n_frames, .n_signals = SIGNALS};
    c.tempo.ac_size_s = (period + 0.5) * 512 / 22050;
    assert_ok(wt_beat_create(NULL, &c, &one));
    assert_ok(wt_beat_create(device, &c, &many));
    const size_t n = (size_t)(SIGNALS * n_frames);
    float *x = envelopes(n_frames);
    int *got = calloc(n, sizeof *got), *want = calloc((size_t)n_frames, sizeof *want);
    wt_beats beats[SIGNALS];
    assert_true(got && want);
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, n * sizeof *x, &in));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, n * sizeof *got, &out));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, sizeof beats, &found));
    assert_ok(wt_stream_upload(stream, in, 0, x, n * sizeof *x));
    assert_ok(wt_beat_enqueue(many, stream, in, 0, out, 0, found, 0));
    assert_ok(wt_stream_download(stream, got, out, 0, n * sizeof *got));
    assert_ok(wt_stream_download(stream, beats, found, 0, sizeof beats));
    assert_ok(wt_stream_synchronize(stream));
    for (int s = 0; s < SIGNALS; s++) {
        double bpm;
        const int64_t count = wt_beat_run(one, x + s * n_frames, n_frames, want, &bpm);
        if (beats[s].bpm != bpm || beats[s].n_beats != count)
            fail_msg("period %d, signal %d: %lld beats at %.17g BPM, want %lld at %.17g", period, s,
                     (long long)beats[s].n_beats, beats[s].bpm, (long long)count, bpm);
        for (int64_t k = 0; k < count; k++)
            if (got[s * n_frames + k] != want[k])
                fail_msg("period %d, signal %d, beat %lld of %lld: frame %d, want %d", period, s, (long long)k,
                         (long long)count, got[s * n_frames + k], want[k]);
    }
    free(x), free(got), free(want);
    wt_buffer_destroy(in), wt_buffer_destroy(out), wt_buffer_destroy(found);
    wt_beat_destroy(one), wt_beat_destroy(many);
    wt_stream_destroy(stream);
    wt_device_close(device);
}

static void slow_beats_are_the_cpus(void **state)
{
    (void)state;
    check_beats(2048, 5000, true);
    check_beats(2049, 5000, true);
    check_beats(30000, 7000, true); // longer than the signal
    check_beats(2100, 1500, false); // of a window of so many frames
    check_beats(4500, 300, false);  // whose rows no block transforms
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tempograms_of_long_windows_are_the_cpus),
        cmocka_unit_test(tempi_of_long_windows_are_the_cpus),
        cmocka_unit_test(slow_beats_are_the_cpus),
    };
    return cmocka_run_group_tests_name("tempo_wide", tests, NULL, NULL);
}
