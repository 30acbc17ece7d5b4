#include "support/failing_alloc.h"
#include "support/spectral_check.h"

#include <stdlib.h>
#include <warptone/icqt.h>

static void silence_gives_silence(void **state)
{
    (void)state;
    static const float z[20 * 84 * 2];
    wt_icqt *icqt;
    assert_ok(wt_icqt_create(NULL, &(wt_cqt_config){0}, 20, &icqt));
    const int64_t n = wt_icqt_samples(icqt, 20);
    float *y = floats((size_t)n + 7);
    assert_int_equal(n, 19 * 512);
    assert_int_equal(wt_icqt_run(icqt, z, 20, n + 7, y), WT_OK);
    for (int64_t i = 0; i < n + 7; i++) assert_true(y[i] == 0);
    wt_icqt_destroy(icqt);
    free(y);
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    wt_icqt *icqt = NULL;
    float x[168] = {0};
    assert_fails(wt_icqt_create(NULL, &(wt_cqt_config){.kind = WT_CQT_PSEUDO}, 5, &icqt), WT_ERR_BAD_ARG,
                 "icqt: pseudo, hybrid, variable-Q and magnitude transforms have no inverse");
    assert_fails(wt_icqt_create(NULL, &(wt_cqt_config){0}, 0, &icqt), WT_ERR_BAD_ARG,
                 "icqt: max_frames 0, want 1..2147483647");
    assert_null(icqt);
    assert_ok(wt_icqt_create(NULL, &(wt_cqt_config){0}, 5, &icqt));
    assert_int_equal(wt_icqt_run(icqt, x, 6, 0, x), WT_ERR_BAD_ARG);
    assert_int_equal(wt_icqt_run(icqt, x, 0, 0, x), WT_ERR_BAD_ARG);
    wt_icqt_destroy(icqt);
    wt_icqt_destroy(NULL);
}

static void inverses_equal_librosas(void **state)
{
    (void)state;
    int n_checked = 0;
    for (const golden_case *g = NULL; (g = golden_next("icqt", g)); n_checked++) {
        size_t n;
        const float *x = golden_input(g, 0, &n);
        const wt_cqt_config c = {.rate_hz = golden_double(g, "sr", 22050),
                                 .hop = golden_int(g, "hop_length", 512),
                                 .fmin_hz = golden_double(g, "fmin", 0),
                                 .n_bins = golden_int(g, "n_bins", 84),
                                 .bins_per_octave = golden_int(g, "bins_per_octave", 12),
                                 .no_scale = !golden_int(g, "scale", 1)};
        wt_cqt *cqt;
        wt_icqt *icqt;
        assert_ok(wt_cqt_create(NULL, &c, 0, &cqt));
        const int64_t frames = wt_cqt_frames(cqt, (int64_t)n);
        assert_ok(wt_icqt_create(NULL, &c, frames, &icqt));
        const int64_t asked = golden_int(g, "length", 0), length = asked ? asked : wt_icqt_samples(icqt, frames);
        float *z = floats((size_t)(frames * c.n_bins * 2)), *y = floats((size_t)length);
        assert_int_equal(wt_cqt_run(cqt, x, (int64_t)n, z), WT_OK);
        assert_int_equal(wt_icqt_run(icqt, z, frames, asked, y), WT_OK);
        golden_check(g, y, 1, (size_t)length);
        wt_cqt_destroy(cqt), wt_icqt_destroy(icqt);
        free(z), free(y);
    }
    assert_true(n_checked >= 3);
}

// ---- on streams

typedef struct icqt_call {
    wt_icqt *icqt;
    int64_t n_frames, length;
} icqt_call;

static wt_status enqueue_icqt(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                              size_t out_offset)
{
    const icqt_call *c = op;
    return wt_icqt_enqueue(c->icqt, stream, in, in_offset, c->n_frames, c->length, out, out_offset);
}

// Each case on a device as `run` gives it; one channel alone gives the bits that it has in a batch, every time.
static void check_streams(wt_device *device, wt_cqt_config c, icqt_call call, double bound)
{
    enum { CHANNELS = 3 };
    wt_icqt *many, *one;
    assert_ok(wt_icqt_create(device, &c, 61, &one));
    c.channels = CHANNELS;
    assert_ok(wt_icqt_create(device, &c, 61, &many));
    const size_t n_in = (size_t)(call.n_frames * (c.n_bins ? c.n_bins : 84)) * 2,
                 n_out = (size_t)(call.length ? call.length : wt_icqt_samples(one, call.n_frames));
    float *in = noise_floats(CHANNELS * n_in, 11), *want = floats(CHANNELS * n_out), *got = floats(CHANNELS * n_out),
          *alone = floats(n_out);
    assert_int_equal(wt_icqt_run(many, in, call.n_frames, call.length, want), WT_OK);
    call.icqt = many;
    run_on_stream(&(stream_call){device, enqueue_icqt, &call}, in, CHANNELS * n_in, got, CHANNELS * n_out);
    assert_near_peak(want, got, CHANNELS * n_out, bound, "inverse constant-Q");
    call.icqt = one;
    for (int i = 0; i < 2; i++) {
        run_on_stream(&(stream_call){device, enqueue_icqt, &call}, in + n_in, n_in, alone, n_out);
        assert_memory_equal(got + n_out, alone, n_out * sizeof *alone);
    }
    wt_icqt_destroy(many), wt_icqt_destroy(one);
    free(in), free(want), free(got), free(alone);
}

static void check_device(wt_device *device, double bound)
{
    check_streams(device, (wt_cqt_config){0}, (icqt_call){NULL, 61, 0}, bound);
    check_streams(device, (wt_cqt_config){0}, (icqt_call){NULL, 50, 9001}, bound); // fewer than there are
    check_streams(device, (wt_cqt_config){0}, (icqt_call){NULL, 9, 12000}, bound); // silence behind the end
    check_streams(device, (wt_cqt_config){.hop = 3, .n_bins = 24, .fmin_hz = 440}, (icqt_call){NULL, 60, 0}, bound);
    check_streams(device, (wt_cqt_config){.hop = 100, .n_bins = 30, .bins_per_octave = 12, .no_scale = true},
                  (icqt_call){NULL, 1, 700}, bound);
    check_streams(device, (wt_cqt_config){.hop = 256, .n_bins = 72, .bins_per_octave = 24, .fmin_hz = 65.4},
                  (icqt_call){NULL, 40, 0}, bound);
}

// Octaves whose spectra no thread block transforms, or whose frames lie too far apart for its sums.
static void check_wide(wt_device *device, double bound)
{
    const wt_cqt_config long_filters = {.fmin_hz = 30, .filter_scale = 2, .n_bins = 24}; // 16384
    check_streams(device, long_filters, (icqt_call){NULL, 40, 0}, bound);
    check_streams(device, long_filters, (icqt_call){NULL, 9, 12001}, bound);
    check_streams(device, (wt_cqt_config){.hop = 441, .fmin_hz = 8, .filter_scale = 2, .n_bins = 3},
                  (icqt_call){NULL, 17, 0}, bound); // 131072
    check_streams(device, (wt_cqt_config){.hop = 40000, .fmin_hz = 250, .n_bins = 36}, (icqt_call){NULL, 4, 90000},
                  bound);
}

static void a_stream_gives_the_same_bits(void **state)
{
    (void)state;
    wt_device *cpu = cpu_device();
    check_device(cpu, 0);
    wt_icqt *icqt;
    wt_stream *stream;
    assert_ok(wt_icqt_create(cpu, &(wt_cqt_config){0}, 5, &icqt));
    assert_ok(wt_stream_create(cpu, NULL, &stream));
    assert_fails(wt_icqt_enqueue(icqt, stream, NULL, 0, 6, 0, NULL, 0), WT_ERR_BAD_ARG,
                 "icqt: 6 frames to 0 samples, want 1..5 and 0 or more");
    assert_fails(wt_icqt_enqueue(icqt, stream, NULL, 0, 5, 0, NULL, 0), WT_ERR_BAD_ARG, "icqt: no in buffer");
    wt_stream_destroy(stream);
    wt_icqt_destroy(icqt);
    wt_device_close(cpu);
}

static void a_gpu_inverts_as_the_cpu_does(void **state)
{
    (void)state;
    wt_device *gpu = gpu_device();
    check_device(gpu, 2e-6);
    check_wide(gpu, 2e-6);
    wt_device_close(gpu);
}

static wt_status create_icqt(void *user)
{
    return wt_icqt_create(NULL, &(wt_cqt_config){.n_bins = 24}, 9, (wt_icqt **)user);
}

static void destroy_icqt(void *user) { wt_icqt_destroy(*(wt_icqt **)user); }

static void survives_failing_allocations(void **state)
{
    (void)state;
    wt_icqt *icqt;
    assert_true(assert_survives_failing_alloc(create_icqt, destroy_icqt, &icqt) >= 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inverses_equal_librosas),      cmocka_unit_test(silence_gives_silence),
        cmocka_unit_test(a_stream_gives_the_same_bits), cmocka_unit_test(a_gpu_inverts_as_the_cpu_does),
        cmocka_unit_test(bad_input_gets_a_sentence),    cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests_name("icqt", tests, NULL, NULL);
}
