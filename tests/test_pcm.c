#include "support/testing.h"

#include <warptone/pcm.h>

#include <math.h>
#include <string.h>

static void integers_survive_the_way_there_and_back(void **state)
{
    (void)state;
    static int16_t s16[65536], s16_back[65536];
    static float line[65536];
    wt_pcm_writer writer = {.no_dither = true};
    for (int k = 0; k < 65536; k++) s16[k] = (int16_t)(k - 32768);
    wt_pcm_read(WT_PCM_S16, s16, 1, 65536, (float *[]){line});
    assert_true(line[0] == -1 && line[32768] == 0 && line[65535] == 32767 / 32768.0f);
    wt_pcm_write(&writer, WT_PCM_S16, (const float *[]){line}, 1, 65536, s16_back);
    assert_memory_equal(s16, s16_back, sizeof s16);

    static unsigned char s24[3 * 60000], s24_back[3 * 60000]; // every 277th of 2^24 values, as two channels
    for (int k = 0; k < 60000; k++) {
        const int32_t value = k * 279 - 8388608;
        for (int i = 0; i < 3; i++) s24[3 * k + i] = (unsigned char)(value >> 8 * i);
    }
    float *planes[] = {line, line + 30000};
    wt_pcm_read(WT_PCM_S24, s24, 2, 30000, planes);
    assert_true(line[0] == -1 && line[30000] == (279 - 8388608) / 8388608.0f);
    wt_pcm_write(&writer, WT_PCM_S24, (const float *const *)planes, 2, 30000, s24_back);
    assert_memory_equal(s24, s24_back, sizeof s24);
    assert_int_equal(writer.n_clipped + writer.n_bad, 0);
}

static void floats_and_wide_integers_convert(void **state)
{
    (void)state;
    const int32_t s32[] = {INT32_MIN, 0, 1 << 30, INT32_MAX};
    const double f64[] = {-1, 0.1, 1e-40, 3};
    float line[4], f32[4];
    int32_t s32_back[4];
    double f64_back[4];
    wt_pcm_writer writer = {0};
    wt_pcm_read(WT_PCM_S32, s32, 1, 4, (float *[]){line});
    assert_true(line[0] == -1 && line[1] == 0 && line[2] == 0.5f && line[3] == 1);
    wt_pcm_write(&writer, WT_PCM_S32, (const float *[]){line}, 1, 4, s32_back);
    assert_memory_equal(s32, s32_back, sizeof s32);
    assert_int_equal(writer.n_clipped, 1); // 1.0 is one step beyond full scale
    wt_pcm_read(WT_PCM_F64, f64, 1, 4, (float *[]){line});
    wt_pcm_write(&writer, WT_PCM_F32, (const float *[]){line}, 1, 4, f32);
    wt_pcm_write(&writer, WT_PCM_F64, (const float *[]){line}, 1, 4, f64_back);
    for (int k = 0; k < 4; k++) assert_true(f32[k] == (float)f64[k] && f64_back[k] == (float)f64[k]);
}

static void clipping_and_bad_samples_are_counted(void **state)
{
    (void)state;
    const float line[] = {2, -2, NAN, INFINITY, -INFINITY, 0.5f};
    const int16_t want[] = {32767, -32768, 0, 32767, -32768, 16384};
    int16_t got[6];
    wt_pcm_writer writer = {.no_dither = true};
    wt_pcm_write(&writer, WT_PCM_S16, (const float *[]){line}, 1, 6, got);
    assert_memory_equal(want, got, sizeof want);
    assert_int_equal(writer.n_clipped, 4);
    assert_int_equal(writer.n_bad, 1);
}

// Triangular dither of +-1 step makes the mean error 0 and its power 1/4 step^2 (1/6 dither + 1/12 rounding), whatever
// the level. 4 standard deviations over 65536 draws are 0.008 (mean) and 0.006 (power).
static void dither_decouples_the_error_from_the_signal(void **state)
{
    (void)state;
    static float line[65536];
    static int16_t got[65536];
    for (int level = 0; level <= 4; level++) {
        wt_pcm_writer writer = {0};
        double mean = 0, power = 0;
        for (int k = 0; k < 65536; k++) line[k] = (float)(1000 + level / 4.0) / 32768;
        wt_pcm_write(&writer, WT_PCM_S16, (const float *[]){line}, 1, 65536, got);
        for (int k = 0; k < 65536; k++) {
            const double error = got[k] - (1000 + level / 4.0);
            mean += error / 65536;
            power += error * error / 65536;
        }
        assert_true(fabs(mean) < 0.008);
        assert_true(fabs(power - 0.25) < 0.006);
    }
}

static void every_block_size_gives_the_same_bytes(void **state)
{
    (void)state;
    enum { N = 1000 };
    static float planes[3][N];
    static unsigned char whole[N * 9], parts[N * 9];
    uint64_t seed = 1;
    for (int k = 0; k < 3 * N; k++) planes[k / N][k % N] = noise(&seed);
    wt_pcm_writer one = {0}, many = {0};
    wt_pcm_write(&one, WT_PCM_S24, (const float *[]){planes[0], planes[1], planes[2]}, 3, N, whole);
    for (int at = 0, n = 1; at < N; at += n, n = n * 3 % 101) {
        if (n > N - at) n = N - at;
        wt_pcm_write(&many, WT_PCM_S24, (const float *[]){planes[0] + at, planes[1] + at, planes[2] + at}, 3, n,
                     parts + 9 * at);
    }
    assert_memory_equal(whole, parts, sizeof whole);
}

static void mono_is_the_mean(void **state)
{
    (void)state;
    float left[] = {1, 0.5f, -1}, right[] = {0, 0.5f, 1};
    wt_pcm_to_mono((const float *[]){left, right}, 2, 3, left);
    assert_true(left[0] == 0.5f && left[1] == 0.5f && left[2] == 0);
}

enum { SIGNALS = 3, CHANNELS = 2, PLAN_FRAMES = 1001, SAMPLES = SIGNALS * CHANNELS * PLAN_FRAMES };

// Every format, noise of which a third is far below a step.
static void check_plan(wt_device *device, wt_pcm_format format, bool fold)
{
    static unsigned char in[8 * SAMPLES];
    static float got[SAMPLES], want[SAMPLES];
    const size_t bytes = (size_t)wt_pcm_bytes(format);
    uint64_t seed = 7;
    for (int k = 0; k < SAMPLES; k++) {
        const double f64 = noise(&seed) * (k % 3 ? 1 : 1e-30);
        const float f32 = (float)f64;
        const int32_t s32 = (int32_t)(f64 * 2e9);
        if (format == WT_PCM_F64)
            memcpy(in + 8 * k, &f64, 8);
        else
            memcpy(in + bytes * (size_t)k, format == WT_PCM_F32 ? (const void *)&f32 : &s32, bytes);
    }
    wt_pcm_plan *plan = NULL;
    wt_stream *stream = NULL;
    wt_buffer *from = NULL, *to = NULL;
    const wt_pcm_plan_config config = {format, CHANNELS, PLAN_FRAMES, SIGNALS, fold};
    assert_ok(wt_pcm_plan_create(device, &config, &plan));
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, bytes * SAMPLES, &from));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, sizeof got, &to));
    assert_ok(wt_stream_upload(stream, from, 0, in, bytes * SAMPLES));
    assert_ok(wt_pcm_plan_enqueue(plan, stream, from, 0, to, 0));
    assert_ok(wt_stream_download(stream, got, to, 0, sizeof got));
    assert_ok(wt_stream_synchronize(stream));
    assert_int_equal(wt_pcm_plan_enqueue(plan, stream, from, bytes, to, 0), WT_ERR_BAD_ARG);
    for (int s = 0; s < SIGNALS; s++) {
        float *rows[CHANNELS];
        for (int c = 0; c < CHANNELS; c++) rows[c] = want + (s * CHANNELS + c) * PLAN_FRAMES;
        wt_pcm_read(format, in + (size_t)(s * CHANNELS * PLAN_FRAMES) * bytes, CHANNELS, PLAN_FRAMES, rows);
        if (fold) wt_pcm_to_mono((const float *const *)rows, CHANNELS, PLAN_FRAMES, want + s * PLAN_FRAMES);
    }
    for (int k = 0; k < SAMPLES / (fold ? CHANNELS : 1); k++)
        if (memcmp(&got[k], &want[k], sizeof *got))
            fail_msg("format %d%s, sample %d: %.9g, want %.9g", (int)format, fold ? " folded" : "", k, (double)got[k],
                     (double)want[k]);
    wt_buffer_destroy(from), wt_buffer_destroy(to);
    wt_stream_destroy(stream);
    wt_pcm_plan_destroy(plan);
}

/// Two blocks of each signal, noise with a sample beyond full scale and one that is no number: bytes and counts are
/// those of wt_pcm_write.
static void check_writing(wt_device *device, wt_pcm_format format, bool no_dither)
{
    enum { SAMPLES = SIGNALS * CHANNELS * PLAN_FRAMES };
    static float in[SAMPLES];
    static unsigned char got[8 * SAMPLES], want[8 * SAMPLES];
    const size_t bytes = (size_t)wt_pcm_bytes(format), size = bytes * SAMPLES;
    const wt_pcm_plan_config config = {format, CHANNELS, PLAN_FRAMES, SIGNALS, false};
    wt_pcm_writer writers[SIGNALS] = {{0}}, own[SIGNALS] = {{0}};
    wt_pcm_plan *plan;
    wt_stream *stream;
    wt_buffer *from, *to, *states;
    uint64_t seed = 5;
    for (int s = 0; s < SIGNALS; s++) writers[s].no_dither = own[s].no_dither = no_dither;
    assert_ok(wt_pcm_plan_create(device, &config, &plan));
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, sizeof in, &from));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, size, &to));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, sizeof writers, &states));
    assert_ok(wt_stream_upload(stream, states, 0, writers, sizeof writers));
    for (int block = 0; block < 2; block++) {
        for (int k = 0; k < SAMPLES; k++) in[k] = noise(&seed);
        in[7] = -1.5f, in[SAMPLES - 1] = 1;
        if (format <= WT_PCM_S32) in[PLAN_FRAMES + 300] = NAN; // a float's is copied, and has many forms
        assert_ok(wt_stream_upload(stream, from, 0, in, sizeof in));
        assert_ok(wt_pcm_plan_enqueue_write(plan, stream, from, 0, to, 0, states, 0));
        assert_ok(wt_stream_download(stream, got, to, 0, size));
        assert_ok(wt_stream_download(stream, writers, states, 0, sizeof writers));
        assert_ok(wt_stream_synchronize(stream));
        for (int s = 0; s < SIGNALS; s++) {
            const float *rows[CHANNELS];
            for (int c = 0; c < CHANNELS; c++) rows[c] = in + (s * CHANNELS + c) * PLAN_FRAMES;
            wt_pcm_write(&own[s], format, rows, CHANNELS, PLAN_FRAMES,
                         want + bytes * (size_t)(s * CHANNELS * PLAN_FRAMES));
            assert_int_equal(writers[s].n_samples, own[s].n_samples);
            assert_int_equal(writers[s].n_clipped, own[s].n_clipped);
            assert_int_equal(writers[s].n_bad, own[s].n_bad);
        }
        for (size_t k = 0; k < size; k++)
            if (got[k] != want[k])
                fail_msg("format %d, block %d, byte %zu: %d, want %d", (int)format, block, k, got[k], want[k]);
    }
    assert_int_equal(wt_pcm_plan_enqueue_write(plan, stream, from, 0, to, bytes, states, 0), WT_ERR_BAD_ARG);
    assert_int_equal(wt_pcm_plan_enqueue_write(plan, stream, from, 0, to, 0, states, 8), WT_ERR_BAD_ARG);
    wt_buffer_destroy(from), wt_buffer_destroy(to), wt_buffer_destroy(states);
    wt_stream_destroy(stream);
    wt_pcm_plan_destroy(plan);
}

static void check_plans(wt_backend backend)
{
    wt_device *device = NULL;
    wt_pcm_plan *plan = NULL;
    assert_ok(wt_device_open(&(wt_device_config){.backend = backend}, &device));
    for (int format = 0; format <= WT_PCM_F64; format++)
        check_plan(device, (wt_pcm_format)format, false), check_plan(device, (wt_pcm_format)format, true),
            check_writing(device, (wt_pcm_format)format, false), check_writing(device, (wt_pcm_format)format, true);
    assert_fails(wt_pcm_plan_create(device, &(wt_pcm_plan_config){WT_PCM_S16, 0, 5, 1, false}, &plan), WT_ERR_BAD_ARG,
                 "pcm: 1 signals of 0 channels and 5 frames, want 1..65535, 1..1024, 1..2147483647");
    assert_null(plan);
    assert_fails(wt_pcm_plan_create(device, &(wt_pcm_plan_config){(wt_pcm_format)99, 1, 5, 1, false}, &plan),
                 WT_ERR_BAD_ARG, "pcm: format 99, want 0..4");
    assert_null(plan);
    wt_device_close(device);
}

static void plans_convert_as_the_functions_do(void **state)
{
    (void)state;
    check_plans(WT_BACKEND_CPU);
}

static void plans_on_a_gpu_give_the_same_bits(void **state)
{
    (void)state;
    if (!wt_device_count()) {
        print_message("skipped: no CUDA device\n");
        skip();
    }
    check_plans(WT_BACKEND_CUDA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_survive_the_way_there_and_back),
        cmocka_unit_test(floats_and_wide_integers_convert),
        cmocka_unit_test(clipping_and_bad_samples_are_counted),
        cmocka_unit_test(dither_decouples_the_error_from_the_signal),
        cmocka_unit_test(every_block_size_gives_the_same_bytes),
        cmocka_unit_test(mono_is_the_mean),
        cmocka_unit_test(plans_convert_as_the_functions_do),
        cmocka_unit_test(plans_on_a_gpu_give_the_same_bits),
    };
    return cmocka_run_group_tests_name("pcm", tests, NULL, NULL);
}
