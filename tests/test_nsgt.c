#include "support/spectral_check.h"
#include "support/testing.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <warptone/nsgt.h>

static const double pi = 3.14159265358979323846;

static float *signal_of(int64_t n, int channels)
{
    float *x = malloc((size_t)n * (size_t)channels * sizeof *x);
    uint64_t seed = 11;
    for (int64_t i = 0; i < n * channels; i++) x[i] = noise(&seed);
    return x;
}

static float *take(int64_t n)
{
    float *x = calloc((size_t)n, sizeof *x);
    assert_non_null(x);
    return x;
}

// Forth and back of a whole signal: how many dB the difference lies below it.
static void check_round_trip(wt_nsgt_config c, int64_t n)
{
    wt_nsgt *s;
    assert_ok(wt_nsgt_create(NULL, &c, &s)); // once for the number of slices
    c.n_slices = (int)wt_nsgt_slices(s, n);
    wt_nsgt_destroy(s);
    assert_ok(wt_nsgt_create(NULL, &c, &s));
    const int channels = c.channels ? c.channels : 1;
    float *x = signal_of(n, channels), *points = take(2 * wt_nsgt_coefficients(s)), *back = take(n * channels);
    assert_int_equal(wt_nsgt_forward(s, x, n, 0, points), WT_OK);
    assert_int_equal(wt_nsgt_inverse(s, points, n, 0, back), WT_OK);
    assert_snr_db(x, back, (size_t)(n * channels), 120);
    wt_nsgt_destroy(s);
    free(x), free(points), free(back);
}

static void forward_and_back_is_the_signal(void **state)
{
    (void)state;
    check_round_trip((wt_nsgt_config){0}, 100000);
    check_round_trip((wt_nsgt_config){.slice = 4096, .channels = 3}, 20001);
    check_round_trip((wt_nsgt_config){.slice = 256, .bins_per_octave = 48}, 1000);
    check_round_trip((wt_nsgt_config){.slice = 30000, .fmin_hz = 100, .n_bins = 5, .rate_hz = 48000}, 1);
    check_round_trip((wt_nsgt_config){.slice = 8192, .fmin_hz = 0.5, .bins_per_octave = 24}, 8192);
}

// Every point of some rows against the definition, with its own reading of it, in double.
static void points_are_the_filtered_signal(void **state)
{
    (void)state;
    enum { SLICE = 1024, N = 700 };
    const wt_nsgt_config c = {.slice = SLICE, .fmin_hz = 200, .n_slices = 3};
    wt_nsgt *s;
    assert_ok(wt_nsgt_create(NULL, &c, &s));
    float *x = signal_of(N, 1), *points = take(2 * wt_nsgt_coefficients(s));
    assert_int_equal(wt_nsgt_forward(s, x, N, 0, points), WT_OK);
    double worst = 0, peak = 0;
    for (int slice = 0; slice < 3; slice++)
        for (int row = 20; row < 40; row += 7) {
            const wt_nsgt_row r = wt_nsgt_get_row(s, row);
            const double middle = 200 * pow(2, (row - 1) / 12.0) * SLICE / 22050;
            const double low = fmin(middle / pow(2, 1 / 12.0), middle - 2),
                         high = fmax(middle * pow(2, 1 / 12.0), middle + 2);
            for (int m = 0; m < r.n_points; m++) {
                double complex want = 0;
                for (int f = (int)floor(low) + 1; f < high; f++) {
                    double complex spectrum = 0;
                    for (int i = 0; i < SLICE; i++) {
                        const int at = (slice - 1) * SLICE / 2 + i;
                        const double u = fabs(i - SLICE / 2.0) / (SLICE / 2.0);
                        const double w = u <= 0.25 ? 1 : u >= 0.75 ? 0 : pow(cos(pi / 2 * (u - 0.25) / 0.5), 2);
                        if (at >= 0 && at < N) spectrum += w * x[at] * cexp(-2 * pi * I * f * i / SLICE);
                    }
                    const double side = f < middle ? middle - low : high - middle;
                    want += spectrum * (0.5 + 0.5 * cos(pi * (f - middle) / side)) *
                            cexp(2 * pi * I * f * (double)m / r.n_points) * 2 / SLICE;
                }
                const float *got = points + 2 * (r.offset + slice * r.stride + m);
                peak = fmax(peak, cabs(want));
                worst = fmax(worst, cabs(want - (got[0] + I * got[1])));
            }
        }
    if (!(worst <= 1e-6 * peak)) fail_msg("off by %g of the peak, want 1e-6", worst / peak);
    wt_nsgt_destroy(s);
    free(x), free(points);
}

static void a_sine_has_its_amplitude_in_its_row(void **state)
{
    (void)state;
    enum { N = 65536 };
    wt_nsgt *s;
    assert_ok(wt_nsgt_create(NULL, &(wt_nsgt_config){.slice = 32768, .n_slices = 5}, &s));
    const wt_nsgt_row a4 = wt_nsgt_get_row(s, 1 + 45);
    assert_true(fabs(a4.hz - 440) < 1e-9);
    float *x = take(N), *points = take(2 * wt_nsgt_coefficients(s));
    for (int i = 0; i < N; i++) x[i] = (float)(0.5 * sin(2 * pi * 440 * i / 22050.0));
    assert_int_equal(wt_nsgt_forward(s, x, N, 0, points), WT_OK);
    const float *middle = points + 2 * (a4.offset + 2 * a4.stride + a4.n_points / 2);
    assert_true(fabs(hypot(middle[0], middle[1]) - 0.5) < 1e-4);
    const wt_nsgt_row far = wt_nsgt_get_row(s, 1 + 60);
    middle = points + 2 * (far.offset + 2 * far.stride + far.n_points / 2);
    assert_true(hypot(middle[0], middle[1]) < 1e-6);
    wt_nsgt_destroy(s);
    free(x), free(points);
}

static void tiles_give_the_same_bits(void **state)
{
    (void)state;
    enum { N = 10000, SLICE = 2048 };
    wt_nsgt *whole, *tile;
    assert_ok(wt_nsgt_create(NULL, &(wt_nsgt_config){.slice = SLICE, .n_slices = 11}, &whole));
    assert_ok(wt_nsgt_create(NULL, &(wt_nsgt_config){.slice = SLICE, .n_slices = 3}, &tile));
    assert_int_equal(wt_nsgt_slices(whole, N), 11);
    float *x = signal_of(N, 1), *points = take(2 * wt_nsgt_coefficients(whole)), *want = take(N), *got = take(N);
    float *part = take(2 * wt_nsgt_coefficients(tile));
    assert_int_equal(wt_nsgt_forward(whole, x, N, 0, points), WT_OK);
    assert_int_equal(wt_nsgt_inverse(whole, points, N, 0, want), WT_OK);
    for (int first = 0; first < 11; first += 2) {
        assert_int_equal(wt_nsgt_forward(tile, x, N, first, part), WT_OK);
        assert_int_equal(wt_nsgt_inverse(tile, part, N, first, got), WT_OK);
    }
    assert_memory_equal(want, got, N * sizeof(float));
    wt_nsgt_destroy(whole), wt_nsgt_destroy(tile);
    free(x), free(points), free(want), free(got), free(part);
}

// Both directions on a stream of `device` against the immediate calls, relative to the peak.
static void compare_enqueued(wt_device *device, wt_nsgt_config c, int64_t n, float bound)
{
    wt_nsgt *s;
    wt_buffer *pcm, *points, *back;
    wt_stream *stream;
    assert_ok(wt_nsgt_create(device, &c, &s));
    const int64_t all = n * c.channels, floats = 2 * wt_nsgt_coefficients(s);
    float *x = signal_of(n, c.channels), *want = take(floats), *got = take(floats), *signal = take(all),
          *there = take(all);
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, (size_t)all * sizeof(float), &pcm));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, (size_t)all * sizeof(float), &back));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, (size_t)floats * sizeof(float), &points));
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_stream_upload(stream, pcm, 0, x, (size_t)all * sizeof(float)));
    assert_ok(wt_nsgt_enqueue_forward(s, stream, pcm, 0, n, 0, points, 0));
    assert_ok(wt_nsgt_enqueue_inverse(s, stream, points, 0, n, 0, back, 0));
    assert_ok(wt_stream_download(stream, got, points, 0, (size_t)floats * sizeof(float)));
    assert_ok(wt_stream_download(stream, there, back, 0, (size_t)all * sizeof(float)));
    assert_ok(wt_stream_synchronize(stream));
    assert_int_equal(wt_nsgt_forward(s, x, n, 0, want), WT_OK);
    assert_int_equal(wt_nsgt_inverse(s, want, n, 0, signal), WT_OK);
    float peak = 0;
    for (int64_t i = 0; i < floats; i++) peak = fmaxf(peak, fabsf(want[i]));
    for (int64_t i = 0; i < floats; i++)
        if (!(fabsf(got[i] - want[i]) <= bound * peak))
            fail_msg("points [%lld] is %g, want %g", (long long)i, (double)got[i], (double)want[i]);
    for (int64_t i = 0; i < all; i++)
        if (!(fabsf(there[i] - signal[i]) <= bound))
            fail_msg("signal [%lld] is %g, want %g", (long long)i, (double)there[i], (double)signal[i]);
    wt_stream_destroy(stream), wt_buffer_destroy(pcm), wt_buffer_destroy(points), wt_buffer_destroy(back);
    wt_nsgt_destroy(s);
    free(x), free(want), free(got), free(signal), free(there);
}

static void compare_all(wt_device *device, float bound)
{
    compare_enqueued(device, (wt_nsgt_config){.slice = 4096, .n_slices = 11, .channels = 2}, 20001, bound);
    compare_enqueued(device, (wt_nsgt_config){.slice = 65536, .n_slices = 4, .channels = 1}, 98304, bound);
    compare_enqueued(device, (wt_nsgt_config){.slice = 1000, .n_slices = 3, .channels = 1, .bins_per_octave = 36}, 1000,
                     bound);
}

static void workers_give_the_same_bits(void **state)
{
    (void)state;
    wt_device *cpu = cpu_device();
    compare_all(cpu, 0);
    wt_device_close(cpu);
}

// 2e-6: the transforms' sums come in another order.
static void a_gpu_gives_what_the_cpu_gives(void **state)
{
    (void)state;
    wt_device *gpu = gpu_device();
    compare_all(gpu, 2e-6f);
    wt_device_close(gpu);
}

static void silence_and_nan_stay_where_they_are(void **state)
{
    (void)state;
    enum { SLICE = 1024, N = 8192 };
    wt_nsgt *s;
    assert_ok(wt_nsgt_create(NULL, &(wt_nsgt_config){.slice = SLICE, .n_slices = 17}, &s));
    float *x = take(N), *points = take(2 * wt_nsgt_coefficients(s)), *back = take(N);
    wt_nsgt_forward(s, x, N, 0, points);
    for (int64_t i = 0; i < 2 * wt_nsgt_coefficients(s); i++) assert_true(points[i] == 0);
    x[N - 1] = NAN;
    wt_nsgt_forward(s, x, N, 0, points);
    wt_nsgt_inverse(s, points, N, 0, back);
    for (int i = 0; i < N - SLICE; i++) assert_true(back[i] == 0);
    wt_nsgt_destroy(s);
    free(x), free(points), free(back);
}

static void mistakes_get_one_sentence(void **state)
{
    (void)state;
    wt_nsgt *s;
    assert_fails(wt_nsgt_create(NULL, &(wt_nsgt_config){.slice = 1001}, &s), WT_ERR_BAD_ARG,
                 "nsgt: slice 1001, want an even 256..4194304");
    assert_null(s);
    assert_fails(wt_nsgt_create(NULL, &(wt_nsgt_config){.n_bins = 200}, &s), WT_ERR_BAD_ARG,
                 "nsgt: n_bins 200, want 1..100, below half the rate");
    assert_fails(wt_nsgt_create(NULL, &(wt_nsgt_config){.fmin_hz = 20000}, &s), WT_ERR_BAD_ARG,
                 "nsgt: fmin_hz 20000, want above 0 and below 11025");
    assert_fails(wt_nsgt_create(NULL, &(wt_nsgt_config){.bins_per_octave = 500}, &s), WT_ERR_BAD_ARG,
                 "nsgt: bins_per_octave 500, want 1..192");
    assert_ok(wt_nsgt_create(NULL, &(wt_nsgt_config){.slice = 256}, &s));
    float x[1];
    assert_int_equal(wt_nsgt_forward(s, x, 0, 0, x), WT_ERR_BAD_ARG);
    assert_fails(wt_nsgt_enqueue_forward(s, NULL, NULL, 0, 1, 0, NULL, 0), WT_ERR_BAD_ARG,
                 "nsgt: made without a device, want one for streams");
    wt_nsgt_destroy(s);
    wt_nsgt_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_and_back_is_the_signal),      cmocka_unit_test(points_are_the_filtered_signal),
        cmocka_unit_test(a_sine_has_its_amplitude_in_its_row), cmocka_unit_test(tiles_give_the_same_bits),
        cmocka_unit_test(workers_give_the_same_bits),          cmocka_unit_test(a_gpu_gives_what_the_cpu_gives),
        cmocka_unit_test(silence_and_nan_stay_where_they_are), cmocka_unit_test(mistakes_get_one_sentence),
    };
    return cmocka_run_group_tests_name("nsgt", tests, NULL, NULL);
}
