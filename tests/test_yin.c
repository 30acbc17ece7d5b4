#include "support/failing_alloc.h"
#include "support/golden.h"
#include "support/realtime.h"
#include "support/spectral_check.h"
#include "support/testing.h"

#include <math.h>
#include <stdlib.h>
#include <warptone/pitch.h>

static void every_golden_case_holds(void **state)
{
    (void)state;
    int n_cases = 0;
    for (const golden_case *g = NULL; (g = golden_next("yin", g)); n_cases++) {
        size_t n;
        const float *pcm = golden_input(g, 0, &n);
        const wt_yin_config config = {.frames = golden_pitch_frames(g, n),
                                      .trough_threshold = golden_double(g, "trough_threshold", 0)};
        wt_yin *plan;
        assert_ok(wt_yin_create(NULL, &config, &plan));
        float *f0 = floats((size_t)wt_yin_n_frames(plan));
        RT_SECTION wt_yin_run(plan, pcm, f0);
        golden_check(g, f0, 1, (size_t)wt_yin_n_frames(plan));
        wt_yin_destroy(plan);
        free(f0);
    }
    assert_int_equal(n_cases, 5);
}

static wt_status enqueue_yin(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                             size_t out_offset)
{
    return wt_yin_enqueue(op, stream, in, in_offset, out, out_offset);
}

// A batch of signals of awkward length on a device, against one signal at a time. On the CPU the chunks are the same,
// so are the bits; a GPU sums in another order, in double, and rounds once.
static void check_device(wt_device *device, double bound)
{
    enum { N = 20011, SIGNALS = 5 };
    const int hops[] = {512, 220, 375, 2048};
    for (size_t k = 0; k < sizeof hops / sizeof *hops; k++) {
        wt_yin_config config = {.frames = {.fmin_hz = 65, .fmax_hz = 2093, .hop = hops[k], .n_samples = N}};
        wt_yin *one, *many;
        assert_ok(wt_yin_create(NULL, &config, &one));
        config.frames.n_signals = SIGNALS;
        assert_ok(wt_yin_create(device, &config, &many));
        const size_t frames = (size_t)wt_yin_n_frames(one);
        float *pcm = floats(N * SIGNALS), *want = floats(frames * SIGNALS), *got = floats(frames * SIGNALS);
        uint64_t seed = 5;
        for (int i = 0; i < N * SIGNALS; i++)
            pcm[i] = sinf((float)(i % N) * (0.02f + 0.01f * (float)(i / N))) + 0.1f * noise(&seed);
        for (int s = 0; s < SIGNALS; s++) wt_yin_run(one, pcm + s * N, want + (size_t)s * frames);
        run_on_stream(&(stream_call){device, enqueue_yin, many}, pcm, N * SIGNALS, got, frames * SIGNALS);
        for (size_t i = 0; i < frames * SIGNALS; i++)
            if (!(fabs((double)got[i] - want[i]) <= bound * 11025))
                fail_msg("hop %d, frame %zu: %g, want %g", hops[k], i, (double)got[i], (double)want[i]);
        wt_yin_destroy(one), wt_yin_destroy(many);
        free(pcm), free(want), free(got);
    }
    wt_device_close(device);
}

static void a_batch_gives_what_each_signal_gives(void **state)
{
    (void)state;
    check_device(cpu_device(), 0);
}

static void cuda_gives_what_the_cpu_gives(void **state)
{
    (void)state;
    check_device(gpu_device(), 1e-6);
}

static void samples_that_do_not_fit_get_a_sentence(void **state)
{
    (void)state;
    wt_device *device = cpu_device();
    wt_yin *plan;
    wt_stream *stream;
    wt_buffer *in, *out;
    assert_ok(wt_yin_create(device, &(wt_yin_config){.frames = {.fmin_hz = 65, .fmax_hz = 2093, .n_samples = 1000}},
                            &plan));
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, 4000, &in));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, 4000, &out));
    assert_fails(wt_yin_enqueue(plan, stream, in, 4, out, 0), WT_ERR_BAD_ARG,
                 "yin: pcm takes 4000 bytes at 4, the buffer has 4000");
    wt_buffer_destroy(in), wt_buffer_destroy(out), wt_stream_destroy(stream);
    wt_yin_destroy(plan);
    wt_device_close(device);
}

static void silence_and_nan_are_told_apart(void **state)
{
    (void)state;
    enum { N = 8192 };
    float pcm[N] = {0}, f0[17];
    wt_yin *plan;
    assert_ok(wt_yin_create(NULL, &(wt_yin_config){.frames = {.fmin_hz = 65, .fmax_hz = 2093, .n_samples = N}}, &plan));
    assert_int_equal(wt_yin_n_frames(plan), 17);
    wt_yin_run(plan, pcm, f0);
    for (int t = 0; t < 17; t++) assert_true(f0[t] == 2205); // 22050 / floor(22050 / 2093), as librosa says
    pcm[4000] = NAN;
    wt_yin_run(plan, pcm, f0);
    for (int t = 0; t < 17; t++) {
        const int begin = t * 512 - 1024, holds = begin <= 4000 && 4000 < begin + 2048;
        assert_true(holds ? isnan(f0[t]) : f0[t] == 2205);
    }
    wt_yin_destroy(plan);
}

static void one_sample_is_enough(void **state)
{
    (void)state;
    float pcm = 1, f0 = 0;
    wt_yin *plan;
    assert_ok(wt_yin_create(NULL, &(wt_yin_config){.frames = {.fmin_hz = 65, .fmax_hz = 2093, .n_samples = 1}}, &plan));
    assert_int_equal(wt_yin_n_frames(plan), 1);
    wt_yin_run(plan, &pcm, &f0);
    assert_true(f0 > 0 && isfinite(f0));
    wt_yin_destroy(plan);
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    static const struct {
        wt_yin_config config;
        const char *sentence;
    } cases[] = {
        {{.frames = {.fmax_hz = 500, .n_samples = 9}}, "yin: fmin 0 Hz, want above 0"},
        {{.frames = {.fmin_hz = 500, .fmax_hz = 400, .n_samples = 9}}, "yin: fmax 400 Hz, want above fmin 500 Hz"},
        {{.frames = {.fmin_hz = 65, .fmax_hz = 12000, .n_samples = 9}},
         "yin: fmax 12000 Hz, want at most 11025 Hz, half the rate"},
        {{.frames = {.fmin_hz = 10, .fmax_hz = 400, .n_samples = 9}},
         "yin: frame_length 2048 is too short for fmin 10 Hz, want 2207 or more"},
        {{.frames = {.fmin_hz = 65, .fmax_hz = 400, .n_samples = 9, .hop = -1}}, "yin: hop -1, want 1..1048576"},
        {{.frames = {.fmin_hz = 65, .fmax_hz = 400, .n_samples = 9, .frame_length = 2}},
         "yin: frame_length 2, want 3..1048576"},
        {{.frames = {.fmin_hz = 65, .fmax_hz = 400}}, "yin: signals of 0 samples, want 1 or more"},
        {{.frames = {.rate_hz = -1, .fmin_hz = 65, .fmax_hz = 400, .n_samples = 9}}, "yin: rate -1 Hz, want above 0"},
        {{.frames = {.fmin_hz = 65, .fmax_hz = 400, .n_samples = 9}, .trough_threshold = -1},
         "yin: trough_threshold -1, want above 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wt_yin *plan = NULL;
        assert_fails(wt_yin_create(NULL, &cases[i].config, &plan), WT_ERR_BAD_ARG, cases[i].sentence);
        assert_null(plan);
    }
    const wt_yin_config shorter = {.frames = {.fmin_hz = 65, .fmax_hz = 400, .n_samples = 2047, .no_center = true}};
    wt_yin *plan = NULL;
    assert_fails(wt_yin_create(NULL, &shorter, &plan), WT_ERR_LENGTH,
                 "yin: signals of 2047 samples, want a frame of 2048 or centring");
    assert_null(plan);
    wt_yin_destroy(NULL);
}

static wt_status create(void *user)
{
    return wt_yin_create(NULL, &(wt_yin_config){.frames = {.fmin_hz = 65, .fmax_hz = 400, .n_samples = 9}}, user);
}

static void destroy(void *user)
{
    wt_yin_destroy(*(wt_yin **)user);
}

static void running_out_of_memory_is_survived(void **state)
{
    (void)state;
    wt_yin *plan = NULL;
    assert_survives_failing_alloc(create, destroy, &plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_golden_case_holds),
        cmocka_unit_test(a_batch_gives_what_each_signal_gives),
        cmocka_unit_test(cuda_gives_what_the_cpu_gives),
        cmocka_unit_test(samples_that_do_not_fit_get_a_sentence),
        cmocka_unit_test(silence_and_nan_are_told_apart),
        cmocka_unit_test(one_sample_is_enough),
        cmocka_unit_test(bad_input_gets_a_sentence),
        cmocka_unit_test(running_out_of_memory_is_survived),
    };
    return cmocka_run_group_tests_name("yin", tests, NULL, NULL);
}
