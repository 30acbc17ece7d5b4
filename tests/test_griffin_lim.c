#include "support/failing_alloc.h"
#include "support/spectral_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/griffin_lim.h>

static wt_griffin_lim_config case_config(const golden_case *g, int64_t n_frames)
{
    wt_griffin_lim_config c = {.stft = golden_stft_config(g), .n_frames = n_frames};
    c.length = golden_int(g, "length", 0);
    c.n_iter = golden_int(g, "n_iter", 0);
    c.momentum = golden_double(g, "momentum", 0);
    c.no_momentum = c.momentum == 0;
    c.seed = (uint64_t)golden_int(g, "seed", 0);
    c.zero_phase = !strcmp(golden_text(g, "init", "random"), "zero");
    return c;
}

// In double all; in float what librosa's own float32 is near (its floor is a fifth of the bound): 4 iterations.
static void signals_equal_librosas(void **state)
{
    (void)state;
    for (const golden_case *g = NULL; (g = golden_next("griffinlim", g));) {
        size_t n, shape[2];
        const float *s = golden_input(g, 0, &n);
        golden_input_shape(g, 0, shape);
        float *magnitude = turned(s, shape[0], shape[1], 1);
        wt_griffin_lim_config c = case_config(g, (int64_t)shape[1]);
        for (int precise = c.n_iter > 4; precise < 2; precise++) {
            c.stft.precise = precise;
            wt_griffin_lim *plan;
            assert_ok(wt_griffin_lim_create(NULL, &c, &plan));
            const size_t length = (size_t)wt_griffin_lim_length(plan);
            float *out = floats(length);
            wt_griffin_lim_run(plan, magnitude, out);
            golden_check(g, out, 1, length);
            wt_griffin_lim_destroy(plan);
            free(out);
        }
        free(magnitude);
    }
}

static float *noise_magnitudes(int64_t frames, int bins)
{
    float *m = noise_floats((size_t)(frames * bins), 3);
    for (int64_t i = 0; i < frames * bins; i++) m[i] = fabsf(m[i]);
    return m;
}

static wt_status enqueue(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                         size_t out_offset)
{
    return wt_griffin_lim_enqueue(op, stream, in, in_offset, out, out_offset);
}

static void threads_give_the_same_bits(void **state)
{
    (void)state;
    wt_device *device = cpu_device();
    float *m = noise_magnitudes(3 * 20, 129);
    for (int precise = 0; precise < 2; precise++) {
        wt_griffin_lim_config c = {.stft = {.n_fft = 256, .precise = precise}, .n_frames = 20, .n_iter = 3};
        wt_griffin_lim *plan;
        assert_ok(wt_griffin_lim_create(NULL, &c, &plan));
        const size_t length = (size_t)wt_griffin_lim_length(plan);
        float *want = floats(3 * length), *got = floats(3 * length);
        for (int i = 0; i < 3; i++) wt_griffin_lim_run(plan, m + i * 20 * 129, want + (size_t)i * length);
        wt_griffin_lim_destroy(plan);
        c.n_signals = 3;
        assert_ok(wt_griffin_lim_create(device, &c, &plan));
        run_on_stream(&(stream_call){device, enqueue, plan}, m, 3 * 20 * 129, got, 3 * length);
        assert_memory_equal(want, got, 3 * length * sizeof *got);
        wt_griffin_lim_destroy(plan);
        free(want), free(got);
    }
    free(m);
    wt_device_close(device);
}

static void silence_gives_silence(void **state)
{
    (void)state;
    for (int precise = 0; precise < 2; precise++) {
        float m[10 * 33] = {0}, out[16 * 9];
        wt_griffin_lim *plan;
        assert_ok(wt_griffin_lim_create(
            NULL, &(wt_griffin_lim_config){.stft = {.n_fft = 64, .precise = precise}, .n_frames = 10}, &plan));
        assert_int_equal(wt_griffin_lim_length(plan), 144);
        wt_griffin_lim_run(plan, m, out);
        for (int i = 0; i < 144; i++) assert_true(out[i] == 0);
        wt_griffin_lim_destroy(plan);
    }
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    wt_griffin_lim *plan = NULL;
    assert_fails(wt_griffin_lim_create(NULL, &(wt_griffin_lim_config){.n_frames = 0}, &plan), WT_ERR_BAD_ARG,
                 "griffin-lim: 0 frames, 1 signals, 32 iterations, want 1 or more");
    assert_fails(wt_griffin_lim_create(NULL, &(wt_griffin_lim_config){.n_frames = 9, .length = 99}, &plan),
                 WT_ERR_BAD_ARG, "griffin-lim: length 99 has 1 frames, want the 9 given");
    assert_fails(wt_griffin_lim_create(NULL, &(wt_griffin_lim_config){.n_frames = 9, .momentum = -1}, &plan),
                 WT_ERR_BAD_ARG, "griffin-lim: momentum -1, want 0 or more");
    assert_fails(wt_griffin_lim_create(NULL, &(wt_griffin_lim_config){.n_frames = 9, .stft = {.hop = -1}}, &plan),
                 WT_ERR_BAD_ARG, "stft: hop -1, want 1 or more");
    assert_null(plan);
    wt_griffin_lim_destroy(NULL);
}

static wt_status create_one(void *plan)
{
    return wt_griffin_lim_create(
        NULL, &(wt_griffin_lim_config){.n_frames = 9, .stft = {.n_fft = 64, .precise = true}}, plan);
}

static void destroy_one(void *plan)
{
    wt_griffin_lim_destroy(*(wt_griffin_lim **)plan);
}

static void create_survives_failing_memory(void **state)
{
    (void)state;
    wt_griffin_lim *plan = NULL;
    assert_survives_failing_alloc(create_one, destroy_one, &plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_equal_librosas),
        cmocka_unit_test(threads_give_the_same_bits),
        cmocka_unit_test(silence_gives_silence),
        cmocka_unit_test(bad_input_gets_a_sentence),
        cmocka_unit_test(create_survives_failing_memory),
    };
    return cmocka_run_group_tests_name("griffin_lim", tests, NULL, NULL);
}
