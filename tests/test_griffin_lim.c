#include "support/failing_alloc.h"
#include "support/spectral_check.h"

#include <complex.h>
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
        for (int in_float = 0; in_float < (strcmp(g->name, "griffinlim_32_zero") ? 2 : 1); in_float++) {
            c.in_float = in_float;
            wt_griffin_lim *plan;
            assert_ok(wt_griffin_lim_create(NULL, &c, &plan));
            const size_t length = (size_t)wt_griffin_lim_length(plan);
            float *out = floats(length);
            wt_griffin_lim_run(plan, magnitude, out);
            const double error = golden_error(g, out, 1, length), bound = in_float ? g->bound : 1e-6;
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
    for (int in_float = 0; in_float < 2; in_float++) {
        wt_griffin_lim_config c = {.stft = {.n_fft = 256}, .n_frames = 20, .n_iter = 3, .in_float = in_float};
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

// In float iterations run several at once; here they run one after the other, through the transform as anybody sees
// it. Eleven of them bring what rounding does to weak bins to 1e-4 of the peak at most.
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
            .stft = stft, .n_frames = frames, .length = length, .n_iter = ITERATIONS, .in_float = true,
            .zero_phase = true},
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

// ---- paddings in double, by the definition

// numpy's pad of n samples by `margin` on both sides.
static double padded(const double *x, int n, int at, int margin, wt_stft_pad pad)
{
    if (at >= 0 && at < n) return x[at];
    const int outside = at < 0 ? -at : at - n + 1;
    if (pad == WT_STFT_PAD_ZERO) return 0;
    if (pad == WT_STFT_PAD_EDGE) return x[at < 0 ? 0 : n - 1];
    if (pad == WT_STFT_PAD_RAMP) return x[at < 0 ? 0 : n - 1] * (margin - outside) / margin;
    const int turn = pad == WT_STFT_PAD_SYMMETRIC;
    while (at < 0 || at >= n) at = at < 0 ? -at - turn : 2 * (n - 1) - at + turn;
    return x[at];
}

// One transform of n real numbers by its sum, or the real numbers of n / 2 + 1 bins.
static void transform(const double *x, int n, double complex *bins)
{
    for (int k = 0; k <= n / 2; k++) {
        bins[k] = 0;
        for (int i = 0; i < n; i++) bins[k] += x[i] * cexp(-2 * M_PI * I * (k * i % n) / n);
    }
}

static double sample_of(const double complex *bins, int n, int i)
{
    double sum = creal(bins[0]) + (i % 2 ? -1 : 1) * creal(bins[n / 2]);
    for (int k = 1; k < n / 2; k++) sum += 2 * creal(bins[k] * cexp(2 * M_PI * I * (k * i % n) / n));
    return sum / n;
}

enum { PAD_FFT = 32, PAD_HOP = 8, PAD_BINS = PAD_FFT / 2 + 1, PAD_FRAMES = 19 };

static void signal_of(double complex (*a)[PAD_BINS], int frames, double *signal, int length)
{
    static double sum[PAD_FFT + PAD_HOP * PAD_FRAMES], squares[PAD_FFT + PAD_HOP * PAD_FRAMES];
    memset(sum, 0, sizeof sum), memset(squares, 0, sizeof squares);
    for (int t = 0; t < frames; t++)
        for (int i = 0; i < PAD_FFT; i++) {
            const double w = 0.5 - 0.5 * cos(2 * M_PI * i / PAD_FFT);
            sum[t * PAD_HOP + i] += w * sample_of(a[t], PAD_FFT, i), squares[t * PAD_HOP + i] += w * w;
        }
    for (int i = 0; i < length; i++) signal[i] = sum[PAD_FFT / 2 + i] / squares[PAD_FFT / 2 + i];
}

static void check_padding(wt_stft_pad pad, int frames)
{
    enum { ITERATIONS = 9 };
    static double complex a[PAD_FRAMES][PAD_BINS], before[PAD_FRAMES][PAD_BINS];
    double signal[PAD_HOP * PAD_FRAMES], x[PAD_FFT];
    float want[PAD_HOP * PAD_FRAMES], got[PAD_HOP * PAD_FRAMES];
    const int length = PAD_HOP * (frames - 1);
    float *m = noise_magnitudes(frames, PAD_BINS);
    for (int t = 0; t < frames; t++)
        for (int k = 0; k < PAD_BINS; k++) a[t][k] = m[t * PAD_BINS + k], before[t][k] = 0;
    for (int pass = 0; pass < ITERATIONS; pass++) {
        signal_of(a, frames, signal, length);
        for (int t = 0; t < frames; t++) {
            for (int i = 0; i < PAD_FFT; i++)
                x[i] = (0.5 - 0.5 * cos(2 * M_PI * i / PAD_FFT)) *
                       padded(signal, length, t * PAD_HOP + i - PAD_FFT / 2, PAD_FFT / 2, pad);
            double complex r[PAD_BINS];
            transform(x, PAD_FFT, r);
            for (int k = 0; k < PAD_BINS; k++) {
                const double complex step = r[k] - 0.99 / 1.99 * before[t][k];
                a[t][k] = cabs(step) > 0 ? m[t * PAD_BINS + k] * step / cabs(step) : 0, before[t][k] = r[k];
            }
        }
    }
    signal_of(a, frames, signal, length);
    for (int i = 0; i < length; i++) want[i] = (float)signal[i];
    wt_griffin_lim *plan;
    assert_ok(wt_griffin_lim_create(NULL,
                                    &(wt_griffin_lim_config){.stft = {.n_fft = PAD_FFT, .hop = PAD_HOP, .pad = pad},
                                                             .n_frames = frames, .n_iter = ITERATIONS,
                                                             .zero_phase = true},
                                    &plan));
    assert_int_equal(wt_griffin_lim_length(plan), length);
    wt_griffin_lim_run(plan, m, got);
    char what[60];
    snprintf(what, sizeof what, "pad %d, %d frames", (int)pad, frames);
    assert_near_peak(want, got, (size_t)length, 1e-6, what);
    wt_griffin_lim_destroy(plan);
    free(m);
}

static void paddings_are_those_of_the_definition(void **state)
{
    (void)state;
    for (int pad = WT_STFT_PAD_ZERO; pad <= WT_STFT_PAD_RAMP; pad++)
        check_padding((wt_stft_pad)pad, 3), check_padding((wt_stft_pad)pad, PAD_FRAMES);
}

// In float an iteration brings every bin to its magnitude, so what rounding does to a weak one counts as if it were
// strong: 5e-6 after one or two, 2e-5 after four; of 2048 points 1e-5 was met after two. In double 32 of them leave
// less than the output's rounding. Frames that no thread block holds go in double on the GPU: what is left is the CPU's
// float.
static void a_gpu_finds_what_the_cpu_finds(void **state)
{
    (void)state;
    enum { LINES = 5 };
#define F .in_float = true,
    static const struct {
        wt_griffin_lim_config c;
        double bound;
    } cases[] = {
        {{F .stft = {.n_fft = 256}, .n_frames = 40, .n_iter = 1, .seed = 9}, 5e-6},
        {{F .stft = {.n_fft = 256}, .n_frames = 41, .n_iter = 4, .momentum = 0.5}, 2e-5},
        {{F .stft = {.n_fft = 2048}, .n_frames = 70, .n_iter = 1, .seed = 3, .length = 35500}, 5e-6},
        {{F .stft = {.n_fft = 2048, .pad = WT_STFT_PAD_REFLECT}, .n_frames = 45, .n_iter = 2, .seed = 8}, 2e-5},
        {{F .stft = {.n_fft = 2048, .hop = 300}, .n_frames = 20, .n_iter = 2, .seed = 8}, 5e-6},
        {{F .stft = {.n_fft = 400, .hop = 160, .pad = WT_STFT_PAD_REFLECT}, .n_frames = 33, .n_iter = 2}, 5e-6},
        {{F .stft = {.n_fft = 64, .hop = 8, .win_length = 48}, .n_frames = 30, .n_iter = 2, .no_momentum = true}, 5e-6},
        {{F .stft = {.n_fft = 8192, .hop = 2048}, .n_frames = 6, .n_iter = 1, .zero_phase = true}, 5e-6},
        {{F .stft = {.n_fft = 401, .hop = 100}, .n_frames = 21, .n_iter = 1, .seed = 5}, 5e-6},
        {{F .stft = {.n_fft = 10240, .pad = WT_STFT_PAD_EDGE}, .n_frames = 7, .n_iter = 1, .seed = 5}, 5e-6},
        {{.stft = {.n_fft = 256}, .n_frames = 41, .n_iter = 32, .seed = 4}, 2e-6},
        {{.stft = {.n_fft = 400, .hop = 160}, .n_frames = 20, .n_iter = 32, .momentum = 0.5}, 2e-6},
        {{.stft = {.n_fft = 1009, .hop = 200}, .n_frames = 12, .n_iter = 32, .no_momentum = true}, 2e-6},
        {{.stft = {.n_fft = 256, .pad = WT_STFT_PAD_REFLECT}, .n_frames = 23, .n_iter = 32, .seed = 4}, 2e-6},
        {{.stft = {.n_fft = 65536}, .n_frames = 9, .n_iter = 2, .seed = 6}, 2e-6},
    };
#undef F
    wt_device *gpu = gpu_device();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wt_griffin_lim_config c = cases[i].c;
        const size_t bins = (size_t)c.stft.n_fft / 2 + 1, n = (size_t)c.n_frames * bins;
        float *m = noise_magnitudes(LINES * c.n_frames, (int)bins);
        char what[64];
        wt_griffin_lim *plan;
        snprintf(what, sizeof what, "n_fft %d, %d iterations%s", c.stft.n_fft, c.n_iter,
                 c.in_float ? ", float" : "");
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
    wt_griffin_lim_config c = {.stft = {.n_fft = 256}, .n_frames = 90, .n_iter = 11, .seed = 3, .in_float = true};
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
    for (int in_float = 0; in_float < 2; in_float++) {
        float m[10 * 33] = {0}, out[16 * 9];
        wt_griffin_lim *plan;
        assert_ok(wt_griffin_lim_create(
            NULL, &(wt_griffin_lim_config){.stft = {.n_fft = 64}, .n_frames = 10, .in_float = in_float}, &plan));
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
    return wt_griffin_lim_create(NULL, &(wt_griffin_lim_config){.n_frames = 9, .stft = {.n_fft = 64}},
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
        cmocka_unit_test(signals_equal_librosas),
        cmocka_unit_test(iterations_are_those_of_the_transform),
        cmocka_unit_test(paddings_are_those_of_the_definition),
        cmocka_unit_test(threads_give_the_same_bits),
        cmocka_unit_test(a_gpu_finds_what_the_cpu_finds),
        cmocka_unit_test(memory_may_be_lent),
        cmocka_unit_test(silence_gives_silence),
        cmocka_unit_test(bad_input_gets_a_sentence),
        cmocka_unit_test(create_survives_failing_memory),
    };
    return cmocka_run_group_tests_name("griffin_lim", tests, NULL, NULL);
}
