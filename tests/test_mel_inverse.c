// The ways back from mel bands, and reassigned spectrograms.
#include "support/failing_alloc.h"
#include "support/spectral_check.h"

#include <math.h>
#include <stdlib.h>
#include <warptone/mel_inverse.h>

static void least_squares_equal_scipys(void **state)
{
    (void)state;
    const golden_case *g = golden_find("nnls_overdetermined");
    size_t n, shape[2], right[2];
    const float *a32 = golden_input(g, 0, &n), *b;
    golden_input_shape(g, 0, shape);
    double a[40 * 12];
    assert_true(n <= 480);
    for (size_t i = 0; i < n; i++) a[i] = a32[i];
    b = golden_input(g, 1, &n);
    golden_input_shape(g, 1, right);
    float *x = floats(shape[1] * right[1]);
    assert_ok(wt_nnls_run(a, (int)shape[0], (int)shape[1], b, (int64_t)right[1], false, 0, x));
    golden_check(g, x, shape[1], right[1]);
    free(x);
}

// The bank has more bins than bands: of the many answers ours must fit the bands no worse than librosa's.
static void spectra_fit_the_bands(void **state)
{
    (void)state;
    const golden_case *g = golden_find("mel_to_stft_residual"), *magnitude = golden_find("mel_to_stft_mag");
    size_t n, shape[2];
    const float *mel = golden_input(g, 0, &n);
    golden_input_shape(g, 0, shape);
    wt_mel_bank_config c = {
        .rate_hz = golden_int(g, "sr", 0), .n_fft = golden_int(g, "n_fft", 0), .n_mels = (int)shape[0]};
    const size_t bins = (size_t)c.n_fft / 2 + 1;
    float *x = floats(bins * shape[1]);
    double *bank = malloc(shape[0] * bins * sizeof *bank), off = 0, all = 0;
    assert_int_equal(magnitude->rows, bins);
    assert_ok(wt_mel_to_stft(&c, golden_double(g, "power", 0), mel, (int64_t)shape[1], x));
    assert_ok(wt_mel_bank_fill(&c, bank));
    for (size_t m = 0; m < shape[0]; m++)
        for (size_t t = 0; t < shape[1]; t++) {
            double sum = 0, want = mel[m * shape[1] + t];
            for (size_t k = 0; k < bins; k++) {
                const double value = x[k * shape[1] + t];
                assert_true(value >= 0);
                sum += bank[m * bins + k] * value * value;
            }
            off += (sum - want) * (sum - want), all += want * want;
        }
    print_message("residual %.3g, librosa's %.3g\n", sqrt(off / all), golden_values(g)[0]);
    assert_true(sqrt(off / all) <= golden_values(g)[0]);
    free(x), free(bank);
}

static void silence_and_bad_input(void **state)
{
    (void)state;
    float mel[128 * 2] = {0}, out[1025 * 2];
    assert_ok(wt_mel_to_stft(&(wt_mel_bank_config){.n_mels = 0}, 0, mel, 2, out));
    for (int i = 0; i < 1025 * 2; i++) assert_true(out[i] == 0);
    assert_fails(wt_mel_to_stft(&(wt_mel_bank_config){.fmax_hz = 20000}, 0, mel, 2, out), WT_ERR_BAD_ARG,
                 "mel: fmax 20000 Hz, want at most 11025 (half the rate)");
    assert_fails(wt_nnls_run(NULL, 0, 1, NULL, 1, false, 0, NULL), WT_ERR_BAD_ARG,
                 "nnls: 0 rows, 1 columns, 1 right sides, want 1 or more");
}

static wt_status enqueue(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                         size_t out_offset)
{
    return wt_mel_inverse_enqueue(op, stream, in, in_offset, out, out_offset);
}

// What the plan's own batch gives on a device, against signal after signal on the CPU; both compute in double.
static void compare_plans(wt_device *device, double bound)
{
    enum { SIGNALS = 3 };
    static const wt_mel_inverse_config cases[] = {
        {.bank = {.n_fft = 512, .n_mels = 40}, .n_frames = 67},
        {.bank = {.n_fft = 256, .n_mels = 20, .htk = true, .norm = WT_MEL_NORM_NONE}, .power = 1, .n_frames = 5},
        {.bank = {.n_fft = 400, .n_mels = 128, .rate_hz = 16000}, .power = 1.5, .n_frames = 33},
    };
    for (int i = 0; i < 3; i++) {
        wt_mel_inverse_config c = cases[i];
        const size_t n_in = (size_t)c.bank.n_mels * (size_t)c.n_frames;
        const size_t n_out = (size_t)(c.bank.n_fft / 2 + 1) * (size_t)c.n_frames;
        float *mel = noise_floats(SIGNALS * n_in, 11), *want = floats(SIGNALS * n_out), *got = floats(SIGNALS * n_out);
        for (size_t k = 0; k < SIGNALS * n_in; k++) mel[k] *= mel[k];
        wt_mel_inverse *plan;
        c.n_signals = SIGNALS;
        assert_ok(wt_mel_inverse_create(device, &c, &plan));
        for (size_t s = 0; s < SIGNALS; s++)
            assert_ok(wt_mel_to_stft(&c.bank, c.power, mel + s * n_in, c.n_frames, want + s * n_out));
        run_on_stream(&(stream_call){device, enqueue, plan}, mel, SIGNALS * n_in, got, SIGNALS * n_out);
        assert_near_peak(want, got, SIGNALS * n_out, bound, "mel inverse");
        wt_mel_inverse_destroy(plan);
        free(mel), free(want), free(got);
    }
}

static void threads_give_the_same_bits(void **state)
{
    (void)state;
    wt_device *cpu = cpu_device();
    compare_plans(cpu, 0);
    wt_device_close(cpu);
}

// Frames end their sweeps one by one on a GPU, eight at a time on the CPU; a root near 0 magnifies what that leaves.
static void a_gpu_gives_what_the_cpu_gives(void **state)
{
    (void)state;
    wt_device *gpu = gpu_device();
    compare_plans(gpu, 2e-6);
    wt_device_close(gpu);
}

static wt_status create_plan(void *user)
{
    const wt_mel_inverse_config config = {.bank = {.n_fft = 64, .n_mels = 4}, .n_frames = 3};
    return wt_mel_inverse_create(NULL, &config, user);
}

static void destroy_plan(void *user) { wt_mel_inverse_destroy(*(wt_mel_inverse **)user); }

static void plans_survive_failing_memory(void **state)
{
    (void)state;
    wt_mel_inverse *plan = NULL;
    assert_survives_failing_alloc(create_plan, destroy_plan, &plan);
}

// ---- least squares of many signals

static wt_status enqueue_nnls(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                              size_t out_offset)
{
    wt_status status = wt_stream_fill(stream, out, out_offset, 0, wt_buffer_size_bytes(out) - out_offset);
    return status ? status : wt_nnls_enqueue(op, stream, in, in_offset, out, out_offset);
}

// More rows than columns, so that one x is the best; a column and a right side of zeros; 1100 rows are more than a
// GPU's shared memory has room for.
static void check_nnls(wt_device *device)
{
    enum { SIGNALS = 3 };
    static const int shapes[][3] = {{24, 12, 37}, {7, 3, 1}, {1100, 5, 9}};
    for (int k = 0; k < 6; k++) {
        const size_t rows = (size_t)shapes[k / 2][0], columns = (size_t)shapes[k / 2][1], n = (size_t)shapes[k / 2][2];
        float *numbers = noise_floats(rows * columns, 8), *b = noise_floats(SIGNALS * rows * n, 9);
        float *want = floats(SIGNALS * columns * n), *got = floats(SIGNALS * columns * n), *alone = floats(columns * n);
        double *a = calloc(rows * columns, sizeof *a);
        assert_non_null(a);
        for (size_t i = 0; i < rows * columns; i++) a[i] = i % columns == 1 ? 0 : numbers[i] + 0.3;
        for (size_t i = 0; i < rows && n > 4; i++) b[i * n + 4] = 0;
        for (size_t s = 0; s < SIGNALS; s++)
            assert_ok(
                wt_nnls_run(a, (int)rows, (int)columns, b + s * rows * n, (int64_t)n, true, 0, want + s * columns * n));
        wt_nnls_config config = {a, (int)rows, (int)columns, (int64_t)n, SIGNALS, k % 2, 0};
        wt_nnls *many, *one;
        assert_ok(wt_nnls_create(device, &config, &many));
        config.n_signals = 1;
        assert_ok(wt_nnls_create(device, &config, &one));
        run_on_stream(&(stream_call){device, enqueue_nnls, many}, b, SIGNALS * rows * n, got, SIGNALS * columns * n);
        run_on_stream(&(stream_call){device, enqueue_nnls, one}, b + rows * n, rows * n, alone, columns * n);
        assert_near_peak(want, got, SIGNALS * columns * n, 2e-6, "nnls");
        assert_memory_equal(alone, got + columns * n, columns * n * sizeof *got);
        wt_nnls_destroy(many), wt_nnls_destroy(one);
        free(numbers), free(b), free(want), free(got), free(alone), free(a);
    }
    wt_nnls *plan = NULL;
    assert_fails(wt_nnls_create(device, &(wt_nnls_config){.n_rows = 1, .n_columns = -1, .n = 1}, &plan), WT_ERR_BAD_ARG,
                 "nnls: 1 rows, -1 columns, 1 right sides, want 1 or more");
    assert_fails(wt_nnls_create(NULL, &(wt_nnls_config){.n_rows = 1, .n_columns = 1, .n = 1}, &plan), WT_ERR_BAD_ARG,
                 "nnls: a plan without a device");
    assert_null(plan);
    wt_device_close(device);
}

static void least_squares_on_a_cpu_are_each_signals(void **state)
{
    (void)state;
    check_nnls(cpu_device());
}

static void least_squares_on_a_gpu_are_the_cpus(void **state)
{
    (void)state;
    check_nnls(gpu_device());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(least_squares_equal_scipys),
        cmocka_unit_test(spectra_fit_the_bands),
        cmocka_unit_test(threads_give_the_same_bits),
        cmocka_unit_test(a_gpu_gives_what_the_cpu_gives),
        cmocka_unit_test(plans_survive_failing_memory),
        cmocka_unit_test(silence_and_bad_input),
        cmocka_unit_test(least_squares_on_a_cpu_are_each_signals),
        cmocka_unit_test(least_squares_on_a_gpu_are_the_cpus),
    };
    return cmocka_run_group_tests_name("mel_inverse", tests, NULL, NULL);
}
