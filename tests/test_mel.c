#include "support/failing_alloc.h"
#include "support/realtime.h"
#include "support/spectral_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void banks_equal_librosas(void **state)
{
    (void)state;
    for (const golden_case *g = NULL; (g = golden_next("mel", g));) {
        wt_mel_bank_config c = golden_bank_config(g);
        double *bank = malloc((size_t)c.n_mels * (size_t)(c.n_fft / 2 + 1) * sizeof *bank);
        assert_ok(wt_mel_bank_fill(&c, bank));
        golden_check_within(g, bank, (size_t)c.n_mels, (size_t)c.n_fft / 2 + 1, 1e-12); // double against double
        free(bank);
    }
}

// What every golden mel case is made of; `scale` and `drop_last` by its op.
static wt_mel_config case_config(const golden_case *g)
{
    wt_mel_config c = {.stft = golden_stft_config(g), .bank = golden_bank_config(g)};
    c.power = golden_double(g, "power", 0);
    if (!strcmp(g->op, "logmel")) c.scale = WT_MEL_DB, c.stft.precise = true;
    if (!strcmp(g->op, "whisper_logmel")) c = wt_mel_whisper(golden_int(g, "n_mels", 80), 0);
    return c;
}

static float *case_signal(const golden_case *g, size_t *n)
{
    const float *y = golden_input(g, 0, n);
    const size_t padding = (size_t)golden_int(g, "padding", 0);
    float *x = floats(*n + padding);
    memcpy(x, y, *n * sizeof *x);
    *n += padding;
    return x;
}

static void spectrograms_equal_librosas(void **state)
{
    (void)state;
    static const char *const ops[] = {"melspectrogram", "logmel", "whisper_logmel"};
    for (int k = 0; k < 3; k++)
        for (const golden_case *g = NULL; (g = golden_next(ops[k], g));) {
            size_t n;
            float *x = case_signal(g, &n);
            wt_mel_config c = case_config(g);
            c.n_samples = (int64_t)n;
            wt_mel *mel;
            assert_ok(wt_mel_create(NULL, &c, &mel));
            const size_t rows = (size_t)wt_mel_bands(mel), columns = (size_t)wt_mel_frames(mel);
            float *out = floats(rows * columns);
            wt_mel_run(mel, x, out);
            golden_check(g, out, rows, columns);
            wt_mel_destroy(mel);
            free(x), free(out);
        }
}

static wt_status enqueue_mel(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                             size_t out_offset)
{
    return wt_mel_enqueue(op, stream, in, in_offset, out, out_offset);
}

enum { N = 9001, SIGNALS = 3, CHANNELS = 2 };

static const wt_mel_config shapes[] = {
    {.stft = {.n_fft = 2048}},
    {.stft = {.n_fft = 2048}, .scale = WT_MEL_DB},
    {.stft = {.n_fft = 400, .hop = 160, .pad = WT_STFT_PAD_REFLECT}, .bank = {.n_mels = 80}, .scale = WT_MEL_WHISPER},
    {.stft = {.n_fft = 400, .hop = 160}, .bank = {.n_mels = 80, .htk = true}, .scale = WT_MEL_DB, .frames_first = true},
    {.stft = {.n_fft = 512, .hop = 100, .win_length = 401, .pad = WT_STFT_PAD_EDGE}, .power = 1},
    {.stft = {.n_fft = 1000, .hop = 250, .no_center = true}, .power = 1.5},
    {.stft = {.n_fft = 4096, .pad = WT_STFT_PAD_SYMMETRIC},
     .scale = WT_MEL_DB,
     .db = {.reference = WT_DB_REF_MAX, .no_top = true}},
    {.stft = {.n_fft = 63, .hop = 9, .pad = WT_STFT_PAD_RAMP}, .bank = {.n_mels = 5}, .scale = WT_MEL_DB},
    {.stft = {.n_fft = 512, .precise = true}, .scale = WT_MEL_DB},
    {.stft = {.n_fft = 400, .hop = 160, .pad = WT_STFT_PAD_REFLECT, .precise = true},
     .bank = {.n_mels = 80},
     .scale = WT_MEL_WHISPER,
     .drop_last = true},
    // what no thread block holds: primes, and what is long
    {.stft = {.n_fft = 401, .hop = 100, .precise = true}, .bank = {.n_mels = 40}, .scale = WT_MEL_DB},
    {.stft = {.n_fft = 4099, .hop = 1000, .pad = WT_STFT_PAD_REFLECT}, .scale = WT_MEL_WHISPER, .frames_first = true},
    {.stft = {.n_fft = 10240, .win_length = 6000, .pad = WT_STFT_PAD_EDGE}, .power = 1},
    {.stft = {.n_fft = 16384}, .scale = WT_MEL_DB},
    {.stft = {.n_fft = 20011, .hop = 1000}, .bank = {.n_mels = 30}, .power = 1.5},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

// The same by immediate calls, one signal after the other: every signal has its own maximum, every channel not.
static float *one_by_one(const wt_mel_config *config, const float *x, size_t *count)
{
    wt_mel_config c = *config;
    c.n_signals = 1;
    wt_mel *mel;
    assert_ok(wt_mel_create(NULL, &c, &mel));
    *count = (size_t)(CHANNELS * wt_mel_frames(mel) * wt_mel_bands(mel));
    float *out = floats(SIGNALS * *count);
    for (size_t s = 0; s < SIGNALS; s++) wt_mel_run(mel, x + s * CHANNELS * N, out + s * *count);
    wt_mel_destroy(mel);
    *count *= SIGNALS;
    return out;
}

static float *batch_signals(void)
{
    float *x = noise_floats(SIGNALS * CHANNELS * N, 5);
    for (int i = 0; i < CHANNELS * N; i++) x[i] *= 1e-3f; // another maximum for the first
    memset(x + 4 * N, 0, N * sizeof *x);                  // and a silent channel
    return x;
}

static wt_mel_config batch_config(int shape)
{
    wt_mel_config c = shapes[shape];
    c.n_samples = N, c.n_signals = SIGNALS, c.stft.channels = CHANNELS;
    return c;
}

static void batches_and_threads_give_the_same_bits(void **state)
{
    (void)state;
    wt_device *device = cpu_device();
    float *x = batch_signals();
    for (int k = 0; k < N_SHAPES; k++) {
        wt_mel_config c = batch_config(k);
        size_t count;
        float *want = one_by_one(&c, x, &count), *got = floats(count);
        wt_mel *mel;
        assert_ok(wt_mel_create(device, &c, &mel));
        run_on_stream(&(stream_call){device, enqueue_mel, mel}, x, SIGNALS * CHANNELS * N, got, count);
        assert_memory_equal(want, got, count * sizeof *got);
        wt_mel_destroy(mel);
        free(want), free(got);
    }
    free(x);
    wt_device_close(device);
}

static void cuda_equals_the_cpu(void **state)
{
    (void)state;
    wt_device *device = gpu_device();
    float *x = batch_signals();
    for (int k = 0; k < N_SHAPES; k++) {
        wt_mel_config c = batch_config(k);
        wt_mel *mel;
        size_t count;
        float *want = one_by_one(&c, x, &count), *got = floats(count);
        assert_ok(wt_mel_create(device, &c, &mel));
        run_on_stream(&(stream_call){device, enqueue_mel, mel}, x, SIGNALS * CHANNELS * N, got, count);
        assert_near_peak(want, got, count, 2e-6, "mel on CUDA");
        wt_mel_destroy(mel);
        free(want), free(got);
    }
    free(x);
    wt_device_close(device);
}

static void bands_first_and_frames_first_hold_the_same(void **state)
{
    (void)state;
    wt_mel_config c = {.n_samples = N, .scale = WT_MEL_DB};
    float *x = noise_floats(N, 2), *out[2];
    size_t rows = 0, columns = 0;
    for (int k = 0; k < 2; k++) {
        wt_mel *mel;
        c.frames_first = k;
        assert_ok(wt_mel_create(NULL, &c, &mel));
        rows = (size_t)wt_mel_bands(mel), columns = (size_t)wt_mel_frames(mel);
        out[k] = floats(rows * columns);
        wt_mel_run(mel, x, out[k]);
        wt_mel_destroy(mel);
    }
    float *same = turned(out[0], rows, columns, 1);
    assert_memory_equal(same, out[1], rows * columns * sizeof *same);
    free(x), free(out[0]), free(out[1]), free(same);
}

static void silence_one_sample_and_nan_have_defined_results(void **state)
{
    (void)state;
    float x[4000] = {0}, out[128 * 8];
    wt_mel *mel;
    assert_ok(wt_mel_create(NULL, &(wt_mel_config){.n_samples = 4000, .scale = WT_MEL_DB}, &mel));
    assert_int_equal(wt_mel_frames(mel), 8);
    wt_mel_run(mel, x, out);
    for (int i = 0; i < 128 * 8; i++) assert_float_equal(out[i], -100, 1e-4); // 10 log10(amin)
    x[0] = NAN; // in frames 0, 1 and 2, which begin at -1024, -512 and 0
    wt_mel_run(mel, x, out);
    for (int i = 0; i < 128 * 8; i++) assert_true(isnan(out[i]) == (i % 8 < 3));
    wt_mel_destroy(mel);
    x[0] = 1;
    assert_ok(wt_mel_create(NULL, &(wt_mel_config){.n_samples = 1}, &mel));
    assert_int_equal(wt_mel_frames(mel), 1);
    wt_mel_run(mel, x, out);
    for (int i = 0; i < 128; i++) assert_true(out[i] > 0 && isfinite(out[i]));
    wt_mel_destroy(mel);
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    static const struct {
        wt_mel_config config;
        const char *sentence;
    } cases[] = {
        {{.n_samples = 0}, "mel: a signal of 0 samples, want 1 or more"},
        {{.n_samples = 9, .n_signals = -1}, "mel: -1 signals, want 1 or more"},
        {{.n_samples = 9, .stft = {.hop = -1}}, "stft: hop -1, want 1..16777216"},
        {{.n_samples = 9, .stft = {.n_fft = 64, .win_length = 65}}, "stft: win_length 65, want 1..64 (n_fft)"},
        {{.n_samples = 9, .bank = {.fmax_hz = 12000}}, "mel: fmax 12000 Hz, want at most 11025 (half the rate)"},
        {{.n_samples = 9, .bank = {.fmin_hz = 12000}}, "mel: fmin 12000 Hz, want 0 or more and below 11025"},
        {{.n_samples = 9, .bank = {.n_mels = 5000}}, "mel: 5000 bands, want 1..4096"},
        {{.n_samples = 9, .bank = {.rate_hz = -5}}, "mel: rate -5 Hz, want 1 or more"},
        {{.n_samples = 9, .bank = {.norm = 9}}, "mel: norm 9, want 0..4"},
        {{.n_samples = 9, .power = -1}, "mel: power -1, want more than 0"},
        {{.n_samples = 9, .scale = 3}, "mel: scale 3, want 0..2"},
        {{.n_samples = 9, .scale = WT_MEL_DB, .db = {.amin = -1}}, "mel: amin -1, want 1e-37 or more"},
        {{.n_samples = 9, .scale = WT_MEL_DB, .db = {.top_db = -1}}, "mel: top_db -1, want more than 0"},
        {{.n_samples = 9, .scale = WT_MEL_DB, .db = {.reference = WT_DB_REF_MEDIAN}},
         "mel: decibels of the median, want a value or the maximum"},
    };
    wt_mel *mel = NULL;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        assert_fails(wt_mel_create(NULL, &cases[k].config, &mel), WT_ERR_BAD_ARG, cases[k].sentence);
        assert_null(mel);
    }
    assert_fails(wt_mel_create(NULL, &(wt_mel_config){.n_samples = 9, .stft = {.no_center = true}}, &mel),
                 WT_ERR_LENGTH, "mel: 0 frames of 9 samples, want 1..1073741823");
    assert_null(mel);
    assert_ok(wt_mel_create(NULL, &(wt_mel_config){.n_samples = 9}, &mel));
    assert_fails(wt_mel_enqueue(mel, NULL, NULL, 0, NULL, 0), WT_ERR_BAD_ARG, "mel: the plan has no device");
    wt_mel_destroy(mel);
    wt_mel_destroy(NULL);
}

static void running_takes_no_memory(void **state)
{
    (void)state;
    float *x = noise_floats(N, 2), *out = floats(128 * 100);
    wt_mel *mel;
    assert_ok(wt_mel_create(NULL, &(wt_mel_config){.n_samples = N, .scale = WT_MEL_DB}, &mel));
    RT_SECTION { wt_mel_run(mel, x, out); }
    wt_mel_destroy(mel);
    free(x), free(out);
}

static wt_status create_one(void *mel)
{
    return wt_mel_create(NULL, &(wt_mel_config){.n_samples = 999, .scale = WT_MEL_DB}, mel);
}

static void destroy_one(void *mel) { wt_mel_destroy(*(wt_mel **)mel); }

static void create_survives_failing_memory(void **state)
{
    (void)state;
    wt_mel *mel = NULL;
    assert_survives_failing_alloc(create_one, destroy_one, &mel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(banks_equal_librosas),
        cmocka_unit_test(spectrograms_equal_librosas),
        cmocka_unit_test(batches_and_threads_give_the_same_bits),
        cmocka_unit_test(cuda_equals_the_cpu),
        cmocka_unit_test(bands_first_and_frames_first_hold_the_same),
        cmocka_unit_test(silence_one_sample_and_nan_have_defined_results),
        cmocka_unit_test(bad_input_gets_a_sentence),
        cmocka_unit_test(running_takes_no_memory),
        cmocka_unit_test(create_survives_failing_memory),
    };
    return cmocka_run_group_tests_name("mel", tests, NULL, NULL);
}
