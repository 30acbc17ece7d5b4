#include "support/failing_alloc.h"
#include "support/testing.h"
#include "support/golden.h"
#include "support/spectral_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/cqt.h>

// 5-limit just intonation, as librosa's plimit_intervals(primes=[3, 5], bins_per_octave=12).
static const double just5[12] = {1,        16.0 / 15, 9.0 / 8, 6.0 / 5, 5.0 / 4, 4.0 / 3,
                                 45. / 32, 3.0 / 2,   8.0 / 5, 5.0 / 3, 9.0 / 5, 15.0 / 8};

static wt_cqt_config config_of(const golden_case *g)
{
    wt_cqt_config c = {.rate_hz = golden_double(g, "sr", 22050),
                       .hop = golden_int(g, "hop_length", 512),
                       .fmin_hz = golden_double(g, "fmin", 0),
                       .n_bins = golden_int(g, "n_bins", 84),
                       .bins_per_octave = golden_int(g, "bins_per_octave", 12),
                       .filter_scale = golden_double(g, "filter_scale", 1),
                       .gamma_hz = golden_double(g, "gamma", 0),
                       .tuning = golden_double(g, "tuning", 0),
                       .no_scale = !golden_int(g, "scale", 1)};
    if (golden_double(g, "sparsity", 0.01) == 0) c.sparsity = -1;
    if (!strcmp(g->op, "vqt") && !golden_has(g, "gamma")) c.erb_gamma = true;
    if (golden_double(g, "norm", 1) == 2) c.norm = WT_CQT_NORM_2;
    if (isinf(golden_double(g, "norm", 1))) c.norm = WT_CQT_NORM_MAX;
    if (strstr(g->params, "norm=none")) c.norm = WT_CQT_NORM_NONE;
    if (!strcmp(golden_text(g, "window", "hann"), "hamming")) c.window.kind = WT_WINDOW_HAMMING;
    if (!strcmp(golden_text(g, "pad_mode", "constant"), "reflect")) c.pad = WT_STFT_PAD_REFLECT;
    if (!strcmp(golden_text(g, "pad_mode", "constant"), "edge")) c.pad = WT_STFT_PAD_EDGE;
    if (!strcmp(golden_text(g, "intervals", "equal"), "ji5")) c.intervals = just5;
    if (!strcmp(g->op, "hybrid_cqt")) c.kind = WT_CQT_HYBRID;
    if (!strcmp(g->op, "pseudo_cqt")) c.kind = WT_CQT_PSEUDO;
    return c;
}

static void check_case(const golden_case *g, bool precise)
{
    size_t n;
    const float *x = golden_input(g, 0, &n);
    wt_cqt_config c = config_of(g);
    c.precise = precise;
    if (strstr(g->params, "tuning=none")) return; // tests/test_chroma.c has the estimate
    wt_cqt *cqt;
    assert_ok(wt_cqt_create(NULL, &c, 0, &cqt));
    const size_t frames = (size_t)wt_cqt_frames(cqt, (int64_t)n), bins = (size_t)wt_cqt_bins(cqt);
    const size_t width = c.kind == WT_CQT_FULL ? 2 : 1;
    float *out = floats(frames * bins * width), *turned = floats(frames * bins * width);
    assert_int_equal(wt_cqt_run(cqt, x, (int64_t)n, out), WT_OK);
    for (size_t t = 0; t < frames; t++)
        for (size_t k = 0; k < bins; k++)
            memcpy(turned + (k * frames + t) * width, out + (t * bins + k) * width, width * sizeof(float));
    golden_check(g, turned, bins, frames);
    wt_cqt_destroy(cqt);
    free(out), free(turned);
}

static void transforms_equal_librosas(void **state)
{
    (void)state;
    static const char *const ops[] = {"cqt", "vqt", "hybrid_cqt", "pseudo_cqt"};
    int n_checked = 0;
    for (int i = 0; i < 4; i++)
        for (const golden_case *g = NULL; (g = golden_next(ops[i], g)); n_checked++) {
            check_case(g, false);
            check_case(g, true);
        }
    assert_true(n_checked >= 17);
}

static void lengths_equal_librosas(void **state)
{
    (void)state;
    const golden_case *g = golden_find("cqt_filter_lengths");
    wt_cqt *cqt;
    double lengths[84];
    assert_ok(wt_cqt_create(NULL, &(wt_cqt_config){.erb_gamma = true}, 0, &cqt));
    for (int k = 0; k < 84; k++) lengths[k] = wt_cqt_length_samples(cqt, k);
    golden_check_double(g, lengths, 1, 84);
    wt_cqt_destroy(cqt);
}

static float *signal_of(size_t n)
{
    float *x = floats(n);
    uint64_t seed = 3;
    for (size_t i = 0; i < n; i++) x[i] = noise(&seed);
    return x;
}

// What a stream of `device` gives, against the immediate call, relative to the peak.
static void compare_enqueued(wt_device *device, wt_cqt_config c, int64_t n, float bound)
{
    wt_cqt *cqt;
    wt_buffer *in, *out;
    wt_stream *stream;
    c.channels = 3;
    assert_ok(wt_cqt_create(device, &c, n, &cqt));
    const size_t width = c.kind == WT_CQT_FULL && !c.magnitude ? 2 : 1;
    const size_t n_floats = 3 * (size_t)wt_cqt_frames(cqt, n) * (size_t)wt_cqt_bins(cqt) * width;
    float *x = signal_of(3 * (size_t)n), *want = floats(n_floats), *got = floats(n_floats), peak = 0;
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, 3 * (size_t)n * sizeof(float), &in));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, n_floats * sizeof(float), &out));
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_stream_upload(stream, in, 0, x, 3 * (size_t)n * sizeof(float)));
    assert_ok(wt_cqt_enqueue(cqt, stream, in, 0, n, out, 0));
    assert_ok(wt_stream_download(stream, got, out, 0, n_floats * sizeof(float)));
    assert_ok(wt_stream_synchronize(stream));
    assert_int_equal(wt_cqt_run(cqt, x, n, want), WT_OK);
    for (size_t i = 0; i < n_floats; i++) peak = fmaxf(peak, fabsf(want[i]));
    for (size_t i = 0; i < n_floats; i++)
        if (!(fabsf(got[i] - want[i]) <= bound * peak))
            fail_msg("%d bins of %lld samples: [%zu] is %g, want %g", wt_cqt_bins(cqt), (long long)n, i, (double)got[i],
                     (double)want[i]);
    wt_stream_destroy(stream), wt_buffer_destroy(in), wt_buffer_destroy(out);
    wt_cqt_destroy(cqt);
    free(x), free(want), free(got);
}

// Behind a loud part a weaker one: what divides by a weak frame's largest bin wants its digits, though the frame shares
// a transform with a loud one; silence stays silence.
static void compare_weak_frames(wt_device *device, const wt_cqt_config *c, float weak)
{
    enum { N = 40000, LOUD = 20000 };
    wt_cqt *cqt;
    wt_buffer *in, *out;
    wt_stream *stream;
    assert_ok(wt_cqt_create(device, c, N, &cqt));
    const int n_bins = wt_cqt_bins(cqt);
    const size_t frames = (size_t)wt_cqt_frames(cqt, N), count = frames * (size_t)n_bins, bytes = count * sizeof(float);
    float *x = signal_of(N), *want = floats(count), *got = floats(count);
    for (int i = 0; i < N; i++) x[i] *= i < LOUD ? 1 : weak;
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, N * sizeof(float), &in));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &out));
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_stream_upload(stream, in, 0, x, N * sizeof(float)));
    assert_ok(wt_cqt_enqueue(cqt, stream, in, 0, N, out, 0));
    assert_ok(wt_stream_download(stream, got, out, 0, bytes));
    assert_ok(wt_stream_synchronize(stream));
    assert_int_equal(wt_cqt_run(cqt, x, N, want), WT_OK);
    for (size_t t = 0; t < frames; t++) {
        float peak = 0;
        for (int k = 0; k < n_bins; k++) peak = fmaxf(peak, want[t * n_bins + k]);
        assert_true(weak > 0 || t * 512 < LOUD + 1024 || peak == 0); // frames have 128 samples there
        for (int k = 0; k < n_bins; k++)
            if (!(fabsf(got[t * n_bins + k] - want[t * n_bins + k]) <= 2e-6f * peak))
                fail_msg("frame %zu, bin %d: %g, want %g, peak %g", t, k, (double)got[t * n_bins + k],
                         (double)want[t * n_bins + k], (double)peak);
    }
    wt_stream_destroy(stream), wt_buffer_destroy(in), wt_buffer_destroy(out);
    wt_cqt_destroy(cqt);
    free(x), free(want), free(got);
}

static const wt_cqt_config halved_early = {.magnitude = true, .n_bins = 24, .hop = 1024};

static void compare_all(wt_device *device, float bound)
{
    compare_enqueued(device, (wt_cqt_config){0}, 30001, bound);
    compare_enqueued(device, (wt_cqt_config){.magnitude = true}, 20003, bound);
    compare_enqueued(device, (wt_cqt_config){.kind = WT_CQT_PSEUDO, .n_bins = 60, .no_scale = true}, 5000, bound);
    compare_enqueued(device, halved_early, 20003, bound); // rounded up on the way: the last sample is a zero
    compare_enqueued(device, halved_early, 20000, bound);
    compare_enqueued(device, (wt_cqt_config){.kind = WT_CQT_HYBRID, .fmin_hz = 65}, 12000, bound);
    compare_enqueued(device, (wt_cqt_config){.hop = 100, .n_bins = 24, .fmin_hz = 2000, .erb_gamma = true}, 1, bound);
    wt_cqt_config c = halved_early;
    c.precise = true;
    compare_enqueued(device, c, 20003, bound);
    compare_enqueued(device, (wt_cqt_config){.kind = WT_CQT_HYBRID, .fmin_hz = 65, .precise = true}, 12000, bound);
    compare_weak_frames(device, &(wt_cqt_config){.magnitude = true, .precise = true}, 1e-3f); // the largest 4e-3
    c = (wt_cqt_config){.magnitude = true, .precise = true, .fmin_hz = 4186, .n_bins = 12};
    compare_weak_frames(device, &c, 1e-15f);
    compare_weak_frames(device, &c, 0);
}

// Frames that no thread block transforms, and what lies around a signal, also where it is shorter than a frame.
static void compare_wide(wt_device *device, float bound)
{
    for (wt_stft_pad pad = WT_STFT_PAD_REFLECT; pad <= WT_STFT_PAD_EDGE; pad++) {
        compare_enqueued(device, (wt_cqt_config){.pad = pad, .hop = 256, .fmin_hz = 65, .n_bins = 48}, 9001, bound);
        compare_enqueued(device, (wt_cqt_config){.pad = pad, .n_bins = 12}, 300, bound);
        compare_enqueued(device, (wt_cqt_config){.pad = pad, .n_bins = 12}, 1, bound);
        compare_enqueued(device, (wt_cqt_config){.pad = pad, .kind = WT_CQT_HYBRID, .n_bins = 60}, 5000, bound);
    }
    wt_cqt_config c = {.hop = 441, .fmin_hz = 55, .filter_scale = 3, .n_bins = 3}; // 32768
    compare_enqueued(device, c, 15000, bound);
    c = (wt_cqt_config){.hop = 882, .fmin_hz = 30, .filter_scale = 4, .n_bins = 14, .pad = WT_STFT_PAD_REFLECT};
    compare_enqueued(device, c, 30001, bound); // 65536, then half the rate and 32768
    c = (wt_cqt_config){.hop = 5001, .fmin_hz = 8, .filter_scale = 2, .n_bins = 3, .magnitude = true}; // 131072
    compare_enqueued(device, c, 20000, bound);
    c = (wt_cqt_config){.kind = WT_CQT_PSEUDO, .hop = 20000, .fmin_hz = 200, .n_bins = 4}; // 65536
    compare_enqueued(device, c, 70000, bound);
    c.pad = WT_STFT_PAD_SYMMETRIC;
    compare_enqueued(device, c, 1000, bound);
    c = (wt_cqt_config){.hop = 64, .fmin_hz = 2205, .bins_per_octave = 1, .n_bins = 1, .filter_scale = 0.115}; // two
    compare_enqueued(device, c, 1000, bound);
}

static void workers_give_the_same_bits(void **state)
{
    (void)state;
    wt_device *cpu = cpu_device();
    compare_all(cpu, 0);
    wt_device_close(cpu);
}

// 2e-6: halved by another algorithm, sums in another order; relative to the peak as every bound here.
static void a_gpu_gives_what_the_cpu_gives(void **state)
{
    (void)state;
    wt_device *gpu = gpu_device();
    compare_all(gpu, 2e-6f);
    compare_wide(gpu, 2e-6f);
    wt_device_close(gpu);
}

// The first frames of a long signal are those of its beginning: tiles leave no seams, and the chunks' lines move on.
static void tiles_leave_no_seams(void **state)
{
    (void)state;
    const int64_t n = 200000, n_short = 120000;
    const wt_cqt_config c = {.fmin_hz = 110, .n_bins = 60, .pad = WT_STFT_PAD_REFLECT};
    wt_cqt *cqt;
    assert_ok(wt_cqt_create(NULL, &c, 0, &cqt));
    assert_true(fabs(wt_cqt_frequency_hz(cqt, 0) - 110) < 1e-9 && fabs(wt_cqt_frequency_hz(cqt, 24) - 440) < 1e-9);
    const int64_t frames = wt_cqt_frames(cqt, n), some = wt_cqt_frames(cqt, n_short) - 20;
    float *x = signal_of((size_t)n), *all = floats((size_t)frames * 120), *part = floats((size_t)frames * 120);
    assert_int_equal(wt_cqt_run(cqt, x, n, all), WT_OK);
    assert_int_equal(wt_cqt_run(cqt, x, n_short, part), WT_OK);
    assert_snr_db(all, part, (size_t)some * 120, 120); // the last block of a resampler sums in another order
    wt_cqt_destroy(cqt);
    free(x), free(all), free(part);
}

static void silence_gives_silence(void **state)
{
    (void)state;
    static const float x[5000];
    for (int kind = WT_CQT_FULL; kind <= WT_CQT_HYBRID; kind++) {
        wt_cqt *cqt;
        assert_ok(wt_cqt_create(NULL, &(wt_cqt_config){.kind = (wt_cqt_kind)kind, .magnitude = true}, 0, &cqt));
        float *out = floats((size_t)wt_cqt_frames(cqt, 5000) * 84);
        assert_int_equal(wt_cqt_run(cqt, x, 5000, out), WT_OK);
        for (int64_t i = 0; i < wt_cqt_frames(cqt, 5000) * 84; i++) assert_true(out[i] == 0);
        wt_cqt_destroy(cqt);
        free(out);
    }
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    wt_cqt *cqt = NULL;
    float x = 0;
    const double falling[2] = {1.5, 1.2};
    assert_fails(wt_cqt_create(NULL, &(wt_cqt_config){.n_bins = 120}, 0, &cqt), WT_ERR_BAD_ARG,
                 "cqt: the filters reach 32976.5 Hz, want 11025.0 or less (half the rate): fewer bins or a lower fmin");
    assert_fails(wt_cqt_create(NULL, &(wt_cqt_config){.hop = -1}, 0, &cqt), WT_ERR_BAD_ARG,
                 "cqt: hop -1, want 1..1048576");
    assert_fails(wt_cqt_create(NULL, &(wt_cqt_config){.fmin_hz = -3}, 0, &cqt), WT_ERR_BAD_ARG,
                 "cqt: fmin -3 Hz, want above 0");
    assert_fails(wt_cqt_create(NULL, &(wt_cqt_config){.n_bins = 5000}, 0, &cqt), WT_ERR_BAD_ARG,
                 "cqt: 5000 bins, 12 an octave, want 1..4096");
    assert_fails(wt_cqt_create(NULL, &(wt_cqt_config){.bins_per_octave = 2, .intervals = falling}, 0, &cqt),
                 WT_ERR_BAD_ARG, "cqt: interval 1 is 1.2, want 1 or more, below 2, and ascending");
    assert_fails(wt_cqt_create(NULL, &(wt_cqt_config){.kind = WT_CQT_PSEUDO, .gamma_hz = 5}, 0, &cqt), WT_ERR_BAD_ARG,
                 "cqt: custom windows, and intervals or gamma of pseudo and hybrid transforms, do not exist");
    assert_null(cqt);
    assert_ok(wt_cqt_create(NULL, &(wt_cqt_config){0}, 0, &cqt));
    assert_int_equal(wt_cqt_frames(cqt, 0), 0);
    assert_int_equal(wt_cqt_run(cqt, &x, 0, &x), WT_ERR_BAD_ARG);
    wt_cqt_destroy(cqt);
    wt_cqt_destroy(NULL);
}

static wt_status create_cqt(void *user)
{
    return wt_cqt_create(NULL, &(wt_cqt_config){.kind = WT_CQT_HYBRID, .precise = true}, 0, (wt_cqt **)user);
}

static void destroy_cqt(void *user) { wt_cqt_destroy(*(wt_cqt **)user); }

static void survives_failing_allocations(void **state)
{
    (void)state;
    wt_cqt *cqt;
    assert_true(assert_survives_failing_alloc(create_cqt, destroy_cqt, &cqt) >= 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transforms_equal_librosas),      cmocka_unit_test(lengths_equal_librosas),
        cmocka_unit_test(tiles_leave_no_seams),           cmocka_unit_test(workers_give_the_same_bits),
        cmocka_unit_test(a_gpu_gives_what_the_cpu_gives), cmocka_unit_test(silence_gives_silence),
        cmocka_unit_test(bad_input_gets_a_sentence),      cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests_name("cqt", tests, NULL, NULL);
}
