#include "support/failing_alloc.h"
#include "support/spectral_check.h"

#include <math.h>
#include <stdio.h>
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

// Three times librosa's own float32 error in float; 1e-6 in double, whatever the number of iterations. From phases 0,
// 32 iterations in float are 4.5 times librosa's error away: bins of rounding alone take any phase.
static void signals_equal_librosas(void **state)
{
    (void)state;
    for (const golden_case *g = NULL; (g = golden_next("griffinlim", g));) {
        size_t n, shape[2];
        const float *s = golden_input(g, 0, &n);
        golden_input_shape(g, 0, shape);
        float *magnitude = turned(s, shape[0], shape[1], 1);
        wt_griffin_lim_config c = case_config(g, (int64_t)shape[1]);
        for (int precise = !strcmp(g->name, "griffinlim_32_zero"); precise < 2; precise++) {
            c.stft.precise = precise;
            wt_griffin_lim *plan;
            assert_ok(wt_griffin_lim_create(NULL, &c, &plan));
            const size_t length = (size_t)wt_griffin_lim_length(plan);
            float *out = floats(length);
            wt_griffin_lim_run(plan, magnitude, out);
            const double error = golden_error(g, out, 1, length), bound = precise ? 1e-6 : g->bound;
            if (!(error <= bound)) fail_msg("%s: error %.2g of the peak, want %.2g", g->name, error, bound);
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

// Iterations run several at once; here they run one after the other, through the transform as anybody sees it. Eleven
// of them bring what rounding does to weak bins to 1e-4 of the peak at most.
static void check_iterations(int n_fft, int hop, int frames, wt_stft_pad pad)
{
    enum { ITERATIONS = 11 };
    const int bins = n_fft / 2 + 1;
    const float c = 0.99f / 1.99f;
    const wt_stft_config stft = {
        .n_fft = n_fft, .hop = hop, .pad = pad, .window.kind = hop > n_fft ? WT_WINDOW_RECTANGULAR : WT_WINDOW_HANN};
    const int64_t length = hop * (frames - 1) + 13, n = (int64_t)frames * bins;
    float *m = noise_magnitudes(frames, bins), *a = floats((size_t)n * 2), *r = floats((size_t)n * 2);
    float *before = floats((size_t)n * 2), *want = floats((size_t)length), *got = floats((size_t)length);
    wt_griffin_lim *plan;
    wt_stft *transform;
    assert_ok(wt_griffin_lim_create(
        NULL,
        &(wt_griffin_lim_config){
            .stft = stft, .n_frames = frames, .length = length, .n_iter = ITERATIONS, .zero_phase = true},
        &plan));
    assert_ok(wt_stft_create(&stft, &transform));
    for (int64_t k = 0; k < n; k++) a[2 * k] = m[k], a[2 * k + 1] = 0, before[2 * k] = before[2 * k + 1] = 0;
    for (int i = 0; i <= ITERATIONS; i++) {
        assert_ok(wt_stft_inverse(transform, a, frames, length, want));
        assert_ok(wt_stft_forward(transform, want, length, r));
        for (int64_t k = 0; k < n; k++) {
            const float x = r[2 * k] - c * before[2 * k], y = r[2 * k + 1] - c * before[2 * k + 1];
            const float size = sqrtf(x * x + y * y);
            a[2 * k] = size > 0 ? m[k] * x / size : 0, a[2 * k + 1] = size > 0 ? m[k] * y / size : 0;
        }
        memcpy(before, r, (size_t)n * 2 * sizeof *r);
    }
    wt_griffin_lim_run(plan, m, got);
    char what[80];
    snprintf(what, sizeof what, "n_fft %d, %d frames, hop %d, pad %d", n_fft, frames, hop, (int)pad);
    assert_near_peak(want, got, (size_t)length, 1e-4, what);
    wt_griffin_lim_destroy(plan);
    wt_stft_destroy(transform);
    free(before), free(want), free(got), free(m), free(a), free(r);
}

static void iterations_are_those_of_the_transform(void **state)
{
    (void)state;
    static const int frames[] = {5, 23, 90}; // 5: shorter than two transforms; 23: the last fills its memory
    for (size_t i = 0; i < 3; i++)
        for (int pad = WT_STFT_PAD_ZERO; pad <= WT_STFT_PAD_RAMP; pad++)
            check_iterations(256, 64, frames[i], (wt_stft_pad)pad);
    for (size_t i = 0; i < 3; i++) { // samples that no frame reaches, and frames that turn in one go
        check_iterations(256, 300, frames[i], WT_STFT_PAD_ZERO);
        check_iterations(2048, 512, frames[i], WT_STFT_PAD_ZERO);
    }
    check_iterations(2048, 2300, 23, WT_STFT_PAD_ZERO);
}

// In float an iteration brings every bin to its magnitude, so what rounding does to a weak one counts as if it were
// strong: 5e-6 after one or two, 2e-5 after four; of 2048 points 1e-5 was met after two. In double 32 of them leave
// less than the output's rounding. Frames that no thread block holds go in double on the GPU: what is left is the CPU's
// float.
static void a_gpu_finds_what_the_cpu_finds(void **state)
{
    (void)state;
    enum { LINES = 5 };
    static const struct {
        wt_griffin_lim_config c;
        double bound;
    } cases[] = {
        {{.stft = {.n_fft = 256}, .n_frames = 40, .n_iter = 1, .seed = 9}, 5e-6},
        {{.stft = {.n_fft = 256}, .n_frames = 41, .n_iter = 4, .momentum = 0.5}, 2e-5},
        {{.stft = {.n_fft = 2048}, .n_frames = 70, .n_iter = 1, .seed = 3, .length = 35500}, 5e-6},
        {{.stft = {.n_fft = 2048, .pad = WT_STFT_PAD_REFLECT}, .n_frames = 45, .n_iter = 2, .seed = 8}, 2e-5},
        {{.stft = {.n_fft = 2048, .hop = 300}, .n_frames = 20, .n_iter = 2, .seed = 8}, 5e-6},
        {{.stft = {.n_fft = 400, .hop = 160, .pad = WT_STFT_PAD_REFLECT}, .n_frames = 33, .n_iter = 2}, 5e-6},
        {{.stft = {.n_fft = 64, .hop = 8, .win_length = 48}, .n_frames = 30, .n_iter = 2, .no_momentum = true}, 5e-6},
        {{.stft = {.n_fft = 8192, .hop = 2048}, .n_frames = 6, .n_iter = 1, .zero_phase = true}, 5e-6},
        {{.stft = {.n_fft = 401, .hop = 100}, .n_frames = 21, .n_iter = 1, .seed = 5}, 5e-6},
        {{.stft = {.n_fft = 10240, .pad = WT_STFT_PAD_EDGE}, .n_frames = 7, .n_iter = 1, .seed = 5}, 5e-6},
        {{.stft = {.n_fft = 256, .precise = true}, .n_frames = 41, .n_iter = 32, .seed = 4}, 2e-6},
        {{.stft = {.n_fft = 400, .hop = 160, .precise = true}, .n_frames = 20, .n_iter = 32, .momentum = 0.5}, 2e-6},
        {{.stft = {.n_fft = 1009, .hop = 200, .precise = true}, .n_frames = 12, .n_iter = 32, .no_momentum = true},
         2e-6},
        {{.stft = {.n_fft = 65536, .precise = true}, .n_frames = 9, .n_iter = 2, .seed = 6}, 2e-6},
    };
    wt_device *gpu = gpu_device();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wt_griffin_lim_config c = cases[i].c;
        const size_t bins = (size_t)c.stft.n_fft / 2 + 1, n = (size_t)c.n_frames * bins;
        float *m = noise_magnitudes(LINES * c.n_frames, (int)bins);
        char what[64];
        wt_griffin_lim *plan;
        snprintf(what, sizeof what, "n_fft %d, %d iterations%s", c.stft.n_fft, c.n_iter,
                 c.stft.precise ? ", double" : "");
        assert_ok(wt_griffin_lim_create(gpu, &c, &plan));
        const size_t length = (size_t)wt_griffin_lim_length(plan);
        float *want = floats(LINES * length), *one = floats(LINES * length), *all = floats(LINES * length);
        for (size_t k = 0; k < LINES; k++) {
            wt_griffin_lim_run(plan, m + k * n, want + k * length);
            run_on_stream(&(stream_call){gpu, enqueue, plan}, m + k * n, n, one + k * length, length);
        }
        wt_griffin_lim_destroy(plan);
        assert_near_peak(want, one, LINES * length, cases[i].bound, what);
        c.n_signals = LINES;
        assert_ok(wt_griffin_lim_create(gpu, &c, &plan));
        for (int again = 0; again < 2; again++) {
            run_on_stream(&(stream_call){gpu, enqueue, plan}, m, LINES * n, all, LINES * length);
            assert_memory_equal(one, all, LINES * length * sizeof *all); // whatever the batch, and every time
        }
        wt_griffin_lim_destroy(plan);
        free(m), free(want), free(one), free(all);
    }
    wt_device_close(gpu);
}

// Eleven iterations: eight, and three from what was kept there.
static void memory_may_be_lent(void **state)
{
    (void)state;
    wt_device *device = cpu_device();
    float *m = noise_magnitudes(90, 129);
    wt_griffin_lim_config c = {.stft = {.n_fft = 256}, .n_frames = 90, .n_iter = 11, .seed = 3};
    wt_griffin_lim *plan;
    assert_ok(wt_griffin_lim_create(NULL, &c, &plan));
    const size_t length = (size_t)wt_griffin_lim_length(plan);
    float *want = floats(length), *got = floats(length), *work = floats(length);
    wt_griffin_lim_run(plan, m, want);
    wt_griffin_lim_destroy(plan);
    c.work = work;
    assert_ok(wt_griffin_lim_create(NULL, &c, &plan));
    wt_griffin_lim_run(plan, m, got);
    wt_griffin_lim_destroy(plan);
    assert_memory_equal(want, got, length * sizeof *got);
    size_t used = 0;
    for (size_t i = 0; i < length; i++) used += work[i] != 0;
    assert_true(used > length / 2);
    plan = NULL;
    assert_fails(wt_griffin_lim_create(device, &c, &plan), WT_ERR_BAD_ARG,
                 "griffin-lim: work of a plan with a device, want a plan of immediate calls");
    assert_null(plan);
    free(m), free(want), free(got), free(work);
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
                 WT_ERR_BAD_ARG, "stft: hop -1, want 1..16777216");
    assert_null(plan);
    wt_griffin_lim_destroy(NULL);
}

static wt_status create_one(void *plan)
{
    return wt_griffin_lim_create(NULL, &(wt_griffin_lim_config){.n_frames = 9, .stft = {.n_fft = 64, .precise = true}},
                                 plan);
}

static void destroy_one(void *plan) { wt_griffin_lim_destroy(*(wt_griffin_lim **)plan); }

static void create_survives_failing_memory(void **state)
{
    (void)state;
    wt_griffin_lim *plan = NULL;
    assert_survives_failing_alloc(create_one, destroy_one, &plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_equal_librosas),     cmocka_unit_test(iterations_are_those_of_the_transform),
        cmocka_unit_test(threads_give_the_same_bits), cmocka_unit_test(a_gpu_finds_what_the_cpu_finds),
        cmocka_unit_test(memory_may_be_lent),         cmocka_unit_test(silence_gives_silence),
        cmocka_unit_test(bad_input_gets_a_sentence),  cmocka_unit_test(create_survives_failing_memory),
    };
    return cmocka_run_group_tests_name("griffin_lim", tests, NULL, NULL);
}
