#include "support/failing_alloc.h"
#include "support/realtime.h"
#include "support/spectral_check.h"

#include <math.h>
#include <stdlib.h>
#include <warptone/reassigned.h>

static void spectra_equal_librosas(void **state)
{
    (void)state;
    static const char *const names[2][3] = {
        {"reassigned_plucks_freqs", "reassigned_plucks_times", "reassigned_plucks_mags"},
        {"reassigned_chirp_freqs", "reassigned_chirp_times", "reassigned_chirp_mags"}};
    for (int k = 0; k < 2; k++) {
        const golden_case *g = golden_find(names[k][0]);
        size_t n;
        const float *x = golden_input(g, 0, &n);
        const wt_reassigned_config c = {.stft = golden_stft_config(g),
                                        .rate_hz = golden_int(g, "sr", 0),
                                        .ref_power = golden_double(g, "ref_power", 0),
                                        .fill_nan = golden_int(g, "fill_nan", 0),
                                        .no_clip = !golden_int(g, "clip", 1),
                                        .n_samples = (int64_t)n};
        wt_reassigned *plan;
        float *out = floats(3 * g->rows * g->columns);
        assert_ok(wt_reassigned_create(NULL, &c, &plan));
        assert_int_equal(wt_reassigned_bins(plan), g->rows);
        assert_int_equal(wt_reassigned_frames(plan), g->columns);
        RT_SECTION { wt_reassigned_run(plan, x, out); }
        for (size_t i = 0; i < 3; i++) {
            float *rows = turned(out + i * g->rows * g->columns, g->columns, g->rows, 1);
            golden_check(golden_find(names[k][i]), rows, g->rows, g->columns);
            free(rows);
        }
        wt_reassigned_destroy(plan);
        free(out);
    }
}

static void silence_gives_numbers(void **state)
{
    (void)state;
    static float x[1000], out[3][2 * 1025];
    wt_reassigned *plan;
    assert_ok(wt_reassigned_create(NULL, &(wt_reassigned_config){.fill_nan = true, .n_samples = 1000}, &plan));
    wt_reassigned_run(plan, x, out[0]);
    for (int i = 0; i < 2 * 1025; i++) assert_true(isfinite(out[0][i]) && isfinite(out[1][i]) && out[2][i] == 0);
    wt_reassigned_destroy(plan);
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    wt_reassigned *plan = NULL;
    assert_fails(wt_reassigned_create(NULL, &(wt_reassigned_config){.rate_hz = -1, .n_samples = 9}, &plan),
                 WT_ERR_BAD_ARG, "reassigned: rate -1 Hz, ref_power 1e-06, want 1 or more, above 0");
    assert_fails(wt_reassigned_create(NULL, &(wt_reassigned_config){.n_signals = -1, .n_samples = 9}, &plan),
                 WT_ERR_BAD_ARG, "reassigned: -1 signals, want 1 or more");
    assert_fails(wt_reassigned_create(NULL, &(wt_reassigned_config){.n_samples = 0}, &plan), WT_ERR_LENGTH,
                 "reassigned: 0 frames of 2048 in 0 samples, want 1..1073741823");
    assert_null(plan);
    wt_reassigned_destroy(NULL);
}

static wt_status create(void *user)
{
    return wt_reassigned_create(NULL, &(wt_reassigned_config){.stft = {.n_fft = 64}, .n_samples = 99}, user);
}

static void destroy(void *user) { wt_reassigned_destroy(*(wt_reassigned **)user); }

static void running_out_of_memory_is_survived(void **state)
{
    (void)state;
    wt_reassigned *plan = NULL;
    assert_survives_failing_alloc(create, destroy, &plan);
}

// ---- on streams

static wt_status enqueue(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                         size_t out_offset)
{
    return wt_reassigned_enqueue(op, stream, in, in_offset, out, out_offset);
}

// What is NaN on one side is so on the other, and each part within `bound` of its peak.
static void compare(float *want, float *got, size_t count, double bound, const char *what)
{
    for (size_t i = 0; i < count; i++) {
        if (isnan(want[i]) != isnan(got[i]))
            fail_msg("%s: value %zu is %g, want %g", what, i, (double)got[i], (double)want[i]);
        if (isnan(want[i])) want[i] = got[i] = 0;
    }
    assert_near_peak(want, got, count, bound, what);
}

static void check_streams(wt_device *device, wt_reassigned_config c, double bound)
{
    enum { SIGNALS = 3 };
    wt_reassigned *many, *one;
    assert_ok(wt_reassigned_create(device, &c, &one));
    c.n_signals = SIGNALS;
    assert_ok(wt_reassigned_create(device, &c, &many));
    const size_t n = (size_t)c.n_samples, part = (size_t)(wt_reassigned_frames(one) * wt_reassigned_bins(one));
    float *pcm = noise_floats(SIGNALS * n, 5), *want = floats(SIGNALS * 3 * part), *got = floats(SIGNALS * 3 * part),
          *alone = floats(3 * part);
    for (size_t i = 0; i < SIGNALS * n; i++) // a glide above the noise
        pcm[i] = (float)(0.01 * pcm[i] + 0.5 * sin((0.05 + 1e-6 * (double)(i % n)) * (double)(i % n)));
    wt_reassigned_run(many, pcm, want);
    run_on_stream(&(stream_call){device, enqueue, many}, pcm, SIGNALS * n, got, SIGNALS * 3 * part);
    for (int i = 0; i < 2; i++) {
        run_on_stream(&(stream_call){device, enqueue, one}, pcm + n, n, alone, 3 * part);
        assert_memory_equal(got + 3 * part, alone, 3 * part * sizeof *alone); // whatever the batch, and every time
    }
    static const char *const names[] = {"frequencies", "times", "magnitudes"};
    for (size_t i = 0; i < SIGNALS * 3; i++) compare(want + i * part, got + i * part, part, bound, names[i % 3]);
    wt_reassigned_destroy(many), wt_reassigned_destroy(one);
    free(pcm), free(want), free(got), free(alone);
}

static void check_device(wt_device *device, double bound)
{
    check_streams(device, (wt_reassigned_config){.n_samples = 22050}, bound);
    check_streams(device,
                  (wt_reassigned_config){.stft = {.n_fft = 400, .hop = 160, .pad = WT_STFT_PAD_REFLECT},
                                         .rate_hz = 16000,
                                         .fill_nan = true,
                                         .n_samples = 5000},
                  bound);
    check_streams(device,
                  (wt_reassigned_config){
                      .stft = {.n_fft = 256, .hop = 100, .no_center = true}, .no_clip = true, .n_samples = 999},
                  bound);
    check_streams(device, (wt_reassigned_config){.stft = {.n_fft = 65, .hop = 30}, .ref_power = 1e-3, .n_samples = 200},
                  bound);
    // what no thread block holds
    check_streams(device, (wt_reassigned_config){.stft = {.n_fft = 401, .hop = 100}, .n_samples = 3000}, bound);
    check_streams(device, (wt_reassigned_config){.stft = {.n_fft = 10240, .hop = 4000}, .n_samples = 20000}, bound);
}

static void threads_give_the_same_bits(void **state)
{
    (void)state;
    wt_device *cpu = cpu_device();
    check_device(cpu, 0);
    wt_device_close(cpu);
}

static void a_gpu_reassigns_as_the_cpu_does(void **state)
{
    (void)state;
    wt_device *gpu = gpu_device();
    check_device(gpu, 2e-6);
    wt_device_close(gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spectra_equal_librosas),     cmocka_unit_test(silence_gives_numbers),
        cmocka_unit_test(threads_give_the_same_bits), cmocka_unit_test(a_gpu_reassigns_as_the_cpu_does),
        cmocka_unit_test(bad_input_gets_a_sentence),  cmocka_unit_test(running_out_of_memory_is_survived),
    };
    return cmocka_run_group_tests_name("reassigned", tests, NULL, NULL);
}
