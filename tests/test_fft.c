#include "support/golden.h"
#include "support/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/fft.h>
#include <warptone/kernel.h>
#include "../dsp/fft/fft_plan.h"
#include "../kernels/fft/fft_kernel.h"

static const int sizes[] = {1,    2,    3,    4,   5,   6,   7,   8,   9,    10,   11,   12,   13,   15,   16,   17,
                            20,   25,   26,   30,  31,  32,  37,  49,  60,   61,   62,   64,   67,   72,   81,   96,
                            97,   100,  121,  122, 127, 128, 143, 169, 183,  200,  240,  243,  256,  271,  375,  400,
                            441,  480,  500,  512, 625, 672, 767, 800, 1000, 1023, 1024, 1200, 1331, 1536, 2003, 2048,
                            2197, 2310, 4096};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

static float *noise_block(size_t count, uint64_t seed)
{
    float *x = malloc((count ? count : 1) * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < count; i++) x[i] = noise(&seed);
    return x;
}

static double *widened(const float *x, size_t count)
{
    double *y = malloc(count * sizeof *y);
    assert_non_null(y);
    for (size_t i = 0; i < count; i++) y[i] = x[i];
    return y;
}

static double snr_of_doubles(const double *reference, const float *got, size_t count)
{
    double signal = 0, error = 0;
    for (size_t i = 0; i < count; i++) {
        signal += reference[i] * reference[i];
        error += (got[i] - reference[i]) * (got[i] - reference[i]);
    }
    return isfinite(error) ? error > 0 ? 10 * log10(signal / error) : 300 : -300;
}

// What the definition makes of n pairs of noise, which takes most of this program's time: once for all that is compared
// with it. The inverse, by n, is the same from its last bin to its second; bins of the pairs' first numbers alone are
// the half sum of a bin and of its mirror's conjugate.
typedef struct definition {
    int n;
    float *x;     // [n][2]
    double *bins; // [n][2]
} definition;

static definition define(int n)
{
    definition d = {n, noise_block(2 * (size_t)n, (uint64_t)n), malloc(2 * (size_t)n * sizeof *d.bins)};
    double *wide = widened(d.x, 2 * (size_t)n);
    assert_non_null(d.bins);
    wt__dft_ref(wide, n, d.bins);
    free(wide);
    return d;
}

static double *bins_of(const definition *d, bool inverse)
{
    double *bins = malloc(2 * (size_t)d->n * sizeof *bins);
    assert_non_null(bins);
    for (int k = 0; k < d->n; k++) {
        const double *from = d->bins + 2 * (inverse ? (d->n - k) % d->n : k);
        for (int part = 0; part < 2; part++) bins[2 * k + part] = inverse ? from[part] / d->n : from[part];
    }
    return bins;
}

static double *bins_of_first(const definition *d)
{
    double *bins = malloc((2 * ((size_t)d->n / 2) + 2) * sizeof *bins);
    assert_non_null(bins);
    for (int k = 0; k <= d->n / 2; k++) {
        const double *a = d->bins + 2 * (k % d->n), *b = d->bins + 2 * ((d->n - k) % d->n);
        bins[2 * k] = (a[0] + b[0]) / 2, bins[2 * k + 1] = (a[1] - b[1]) / 2;
    }
    return bins;
}

static void check_complex(const definition *d, bool inverse, int lanes)
{
    const int n = d->n;
    float *x = noise_block(2 * (size_t)n, 4), *y = noise_block(2 * (size_t)n, 5);
    double *reference = bins_of(d, inverse);
    wt_fft *plan;
    memcpy(x, d->x, 2 * (size_t)n * sizeof *x);
    assert_ok(wt__fft_create_lanes(NULL, &(wt_fft_config){.n = n, .inverse = inverse}, lanes, &plan));
    assert_int_equal(wt_fft_run(plan, x, y), WT_OK);
    double snr = snr_of_doubles(reference, y, 2 * (size_t)n);
    if (snr < 130) fail_msg("n %d inverse %d lanes %d: %.1f dB", n, inverse, lanes, snr);
    assert_int_equal(wt_fft_run(plan, x, x), WT_OK);
    assert_memory_equal(x, y, 2 * (size_t)n * sizeof *x);
    wt_fft_destroy(plan);
    free(x), free(y), free(reference);
}

// Two transforms; by Bluestein's algorithm each is two of more than twice the length and three products: 3 dB.
static double round_trip_db(int n)
{
    int rest = n;
    for (int prime = 2; prime <= 61; prime++)
        while (rest % prime == 0) rest /= prime;
    return rest == 1 ? 130 : 127;
}

static void check_real(const definition *d, int lanes)
{
    const int n = d->n;
    const size_t bins = (size_t)n / 2 + 1;
    float *x = noise_block((size_t)n, 4), *y = noise_block(2 * bins, 5), *back = noise_block((size_t)n, 6);
    double *reference = bins_of_first(d);
    for (int i = 0; i < n; i++) x[i] = d->x[2 * i];
    wt_fft *forward, *inverse;
    assert_ok(wt__fft_create_lanes(NULL, &(wt_fft_config){.n = n, .kind = WT_FFT_REAL_TO_COMPLEX}, lanes, &forward));
    assert_ok(wt__fft_create_lanes(NULL, &(wt_fft_config){.n = n, .kind = WT_FFT_COMPLEX_TO_REAL}, lanes, &inverse));
    assert_int_equal(wt_fft_run(forward, x, y), WT_OK);
    double snr = snr_of_doubles(reference, y, 2 * bins);
    if (snr < 130) fail_msg("n %d lanes %d: %.1f dB", n, lanes, snr);
    y[1] = 5; // not read
    if (n % 2 == 0) y[n + 1] = -3;
    assert_int_equal(wt_fft_run(inverse, y, back), WT_OK);
    snr = snr_db(x, back, (size_t)n);
    if (snr < round_trip_db(n)) fail_msg("n %d lanes %d: %.1f dB back", n, lanes, snr);
    float *re = y, *im = y + bins;
    wt__fft_real_forward(forward, x, re, im);
    double power = 0, error = 0;
    for (size_t k = 0; k < bins; k++) {
        power += reference[2 * k] * reference[2 * k] + reference[2 * k + 1] * reference[2 * k + 1];
        error += pow(re[k] - reference[2 * k], 2) + pow(im[k] - reference[2 * k + 1], 2);
    }
    assert_true(error <= power * 1e-13);
    memset(back, 0, (size_t)n * sizeof *back);
    wt__fft_real_inverse(forward, re, im, back);
    snr = snr_db(x, back, (size_t)n);
    if (snr < round_trip_db(n)) fail_msg("n %d lanes %d: %.1f dB split back", n, lanes, snr);
    wt_fft_destroy(forward), wt_fft_destroy(inverse);
    free(x), free(y), free(back), free(reference);
}

static void transforms_equal_the_definition_and_come_back(void **state)
{
    (void)state;
    for (int i = 0; i < N_SIZES; i++) {
        const definition d = define(sizes[i]);
        for (int lanes = 4; lanes <= 16; lanes *= 2) {
            for (int inverse = 0; inverse < 2; inverse++) check_complex(&d, inverse, lanes);
            check_real(&d, lanes);
        }
        free(d.x), free(d.bins);
    }
}

// Powers in double of x by a window.
static void powers_ref(const float *x, const float *window, int n, double *powers)
{
    double *wide = calloc(2 * (size_t)n, sizeof *wide), *bins = malloc(2 * (size_t)n * sizeof *bins);
    for (int i = 0; i < n; i++) wide[2 * i] = (double)x[i] * window[i];
    wt__dft_ref(wide, n, bins);
    for (size_t k = 0; k <= (size_t)n / 2; k++)
        powers[k] = bins[2 * k] * bins[2 * k] + bins[2 * k + 1] * bins[2 * k + 1];
    free(wide), free(bins);
}

// A square's relative error is twice its number's: 6 dB less than a transform has.
enum { POWERS_DB = 124 };

static void check_weighted(int n, int lanes, const float *x, const float *window, const double *reference)
{
    const size_t bins = (size_t)n / 2 + 1;
    float *weights = noise_block((size_t)n, 5);
    float *powers = noise_block(bins, 6), *pairs = noise_block(2 * bins, 7), *re = noise_block(bins, 8),
          *im = noise_block(bins, 9);
    wt_fft *plan;
    assert_ok(wt__fft_create_lanes(NULL, &(wt_fft_config){.n = n, .kind = WT_FFT_REAL_TO_COMPLEX}, lanes, &plan));
    assert_true(wt__fft_weighs(plan));
    for (int i = 0; i < n; i++) weights[i] = window[i] / 2;
    wt__fft_real_weighted(plan, x, weights, WT__FFT_POWERS, powers, NULL);
    wt__fft_real_weighted(plan, x, weights, WT__FFT_PAIRS, pairs, NULL);
    wt__fft_real_weighted(plan, x, weights, WT__FFT_SPLIT, re, im);
    const double snr = snr_of_doubles(reference, powers, bins);
    if (snr < POWERS_DB) fail_msg("n %d lanes %d: %.1f dB", n, lanes, snr);
    for (size_t k = 0; k < bins; k++)
        if (re[k] != pairs[2 * k] || im[k] != pairs[2 * k + 1])
            fail_msg("n %d lanes %d bin %zu: %g %g split, %g %g pairs", n, lanes, k, re[k], im[k], pairs[2 * k],
                     pairs[2 * k + 1]);
    wt_fft_destroy(plan);
    free(weights), free(powers), free(pairs), free(re), free(im);
}

static void weighted_transforms_give_powers_and_pairs(void **state)
{
    (void)state;
    static const int lengths[] = {400, 1024, 2048};
    for (int i = 0; i < 3; i++) {
        const int n = lengths[i];
        float *x = noise_block((size_t)n, 3), *window = noise_block((size_t)n, 4);
        double *reference = malloc(((size_t)n / 2 + 1) * sizeof *reference);
        assert_non_null(reference);
        powers_ref(x, window, n, reference);
        for (int lanes = 4; lanes <= 16; lanes *= 2) check_weighted(n, lanes, x, window, reference);
        free(x), free(window), free(reference);
    }
}

static void check_frames(int n, int hop, int most_lanes)
{
    wt_fft *plan;
    wt__fft_frames *frames;
    assert_ok(wt__fft_create_lanes(NULL, &(wt_fft_config){.n = n, .kind = WT_FFT_REAL_TO_COMPLEX}, most_lanes, &plan));
    const wt__fft_kernels *k = wt__fft_core_kernels(plan->core);
    const size_t lanes = (size_t)k->lanes, bins = (size_t)n / 2 + 1;
    float *window = noise_block((size_t)n, 1);
    assert_ok(wt__fft_frames_create(n, hop, k->lanes, window, &frames));
    assert_non_null(frames);
    const size_t samples = (size_t)frames->columns * (size_t)hop;
    const size_t floats = (wt__fft_frames_floats(frames, k->lanes) + 15) / 16 * 16;
    float *x = noise_block(samples, 2), *powers = noise_block(bins * lanes, 3);
    float *scratch = aligned_alloc(64, floats * sizeof *scratch);
    float *one = noise_block(bins, 4);
    double *reference = malloc(bins * sizeof *reference);
    assert_non_null(scratch), assert_non_null(reference);
    k->frames_powers(frames, x, x, scratch, powers);
    for (size_t f = 0; f < lanes; f += lanes - 1) { // the first and the last
        powers_ref(x + f * (size_t)hop, window, n, reference);
        for (size_t b = 0; b < bins; b++) one[b] = powers[b * lanes + f];
        const double snr = snr_of_doubles(reference, one, bins);
        if (snr < POWERS_DB) fail_msg("n %d hop %d frame %zu of %zu: %.1f dB", n, hop, f, lanes, snr);
    }
    for (size_t b = 0; b < bins * lanes; b++) assert_true(isfinite(powers[b]));
    wt_fft_destroy(plan);
    free(frames), free(window), free(x), free(powers), free(one), free(scratch), free(reference);
}

static void frames_at_once_equal_the_definition(void **state)
{
    (void)state;
    wt__fft_frames *none;
    for (int lanes = 4; lanes <= 16; lanes *= 2) {
        check_frames(512, 16, lanes); // many hops a frame
        check_frames(512, 160, lanes);
        check_frames(1024, 2048, lanes); // apart
        check_frames(2048, 512, lanes);
    }
    assert_ok(wt__fft_frames_create(2048, 500, 16, NULL, &none));
    assert_null(none);
    assert_ok(wt__fft_frames_create(400, 100, 16, NULL, &none));
    assert_null(none);
}

// NumPy's transforms in double of the same float samples.
static void the_golden_transforms(void **state)
{
    (void)state;
    for (int real = 0; real < 2; real++)
        for (const golden_case *g = NULL; (g = golden_next(real ? "rfft" : "fft", g));) {
            size_t count;
            const float *x = golden_input(g, 0, &count);
            const int n = golden_int(g, "n", 0);
            float *y = malloc((2 * (size_t)n + 2) * sizeof *y);
            wt_fft *plan;
            assert_ok(wt_fft_create(
                NULL, &(wt_fft_config){.n = n, .kind = real ? WT_FFT_REAL_TO_COMPLEX : WT_FFT_COMPLEX}, &plan));
            assert_int_equal(wt_fft_run(plan, x, y), WT_OK);
            golden_check(g, y, 1, g->columns);
            wt_fft_destroy(plan);
            free(y);
        }
}

// ---- layouts

// Element i of transform b through any layout equals the same transform alone.
static void check_layout(const wt_fft_config *config)
{
    const int n = config->n, bins = n / 2 + 1, batch = config->batch;
    const int in_width = config->kind == WT_FFT_REAL_TO_COMPLEX ? 1 : 2;
    const int out_width = config->kind == WT_FFT_COMPLEX_TO_REAL ? 1 : 2;
    const int in_count = config->kind == WT_FFT_COMPLEX_TO_REAL ? bins : n;
    const int out_count = config->kind == WT_FFT_REAL_TO_COMPLEX ? bins : n;
    size_t in_floats =
        ((size_t)(batch - 1) * config->in_distance + (size_t)(in_count - 1) * config->in_stride + 1) * in_width;
    size_t out_floats =
        ((size_t)(batch - 1) * config->out_distance + (size_t)(out_count - 1) * config->out_stride + 1) * out_width;
    float *x = noise_block(in_floats, 3), *y = noise_block(out_floats, 4), *before = malloc(out_floats * sizeof *y);
    float *one = malloc(2 * (size_t)n * sizeof *one + 16), *result = malloc(2 * (size_t)n * sizeof *result + 16);
    memcpy(before, y, out_floats * sizeof *y);
    wt_fft *plan, *alone;
    assert_ok(wt_fft_create(NULL, config, &plan));
    assert_ok(wt_fft_create(NULL, &(wt_fft_config){.n = n, .kind = config->kind, .inverse = config->inverse}, &alone));
    assert_int_equal(wt_fft_run(plan, x, y), WT_OK);
    for (int b = 0; b < batch; b++) {
        for (int i = 0; i < in_count * in_width; i++)
            one[i] = x[((size_t)b * config->in_distance + (size_t)(i / in_width) * config->in_stride) * in_width +
                       i % in_width];
        assert_int_equal(wt_fft_run(alone, one, result), WT_OK);
        for (int i = 0; i < out_count * out_width; i++) {
            size_t at = ((size_t)b * config->out_distance + (size_t)(i / out_width) * config->out_stride) * out_width +
                        i % out_width;
            if (y[at] != result[i]) fail_msg("n %d kind %d transform %d element %d", n, config->kind, b, i);
            before[at] = y[at];
        }
    }
    assert_memory_equal(before, y, out_floats * sizeof *y); // nothing beside the layout was written
    wt_fft_destroy(plan), wt_fft_destroy(alone);
    free(x), free(y), free(before), free(one), free(result);
}

static void any_batch_and_layout_gives_bit_for_bit_the_same(void **state)
{
    (void)state;
    static const int lengths[] = {1,  2,  3,  4,  5,   8,   10,  12,  16,  20,  30,  31,   32,  36,
                                  45, 60, 62, 64, 67,  75,  100, 128, 183, 256, 375, 400, 1000, 1024};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int kind = 0; kind < 3; kind++)
            for (int batch = 1; batch <= 35; batch += 17) {
                const int n = lengths[i];
                check_layout(&(wt_fft_config){.n = n,
                                              .batch = batch,
                                              .kind = kind,
                                              .in_stride = 1,
                                              .out_stride = 1,
                                              .in_distance = n + 1,
                                              .out_distance = n + 3});
                if (batch > 1) continue;
                check_layout(&(wt_fft_config){.n = n,
                                              .batch = 18,
                                              .kind = kind,
                                              .in_stride = 20,
                                              .out_stride = 3,
                                              .in_distance = 1,
                                              .out_distance = 3 * n,
                                              .inverse = kind == 0});
            }
}

static void transforms_of_overlapping_frames_are_a_spectrogram(void **state)
{
    (void)state;
    check_layout(&(wt_fft_config){.n = 400,
                                  .batch = 21,
                                  .kind = WT_FFT_REAL_TO_COMPLEX,
                                  .in_stride = 1,
                                  .out_stride = 1,
                                  .in_distance = 160,
                                  .out_distance = 201});
}

static void real_transforms_work_in_place(void **state)
{
    (void)state;
    static const int lengths[] = {2, 9, 16, 64, 67, 400, 2048};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const int n = lengths[i], bins = n / 2 + 1, batch = 19;
        float *x = noise_block((size_t)batch * 2 * bins, 8), *y = malloc((size_t)batch * 2 * bins * sizeof *y);
        float *back = malloc((size_t)batch * 2 * bins * sizeof *y);
        wt_fft *forward, *inverse;
        wt_fft_config config = {.n = n, .batch = batch, .kind = WT_FFT_REAL_TO_COMPLEX, .in_distance = 2 * bins};
        assert_ok(wt_fft_create(NULL, &config, &forward));
        config = (wt_fft_config){.n = n, .batch = batch, .kind = WT_FFT_COMPLEX_TO_REAL, .out_distance = 2 * bins};
        assert_ok(wt_fft_create(NULL, &config, &inverse));
        assert_int_equal(wt_fft_run(forward, x, y), WT_OK);
        memcpy(back, x, (size_t)batch * 2 * bins * sizeof *y);
        assert_int_equal(wt_fft_run(forward, back, back), WT_OK);
        assert_memory_equal(y, back, (size_t)batch * 2 * bins * sizeof *y);
        assert_int_equal(wt_fft_run(inverse, back, back), WT_OK);
        for (int b = 0; b < batch; b++)
            assert_snr_db(x + b * 2 * bins, back + b * 2 * bins, (size_t)n, round_trip_db(n));
        wt_fft_destroy(forward), wt_fft_destroy(inverse);
        free(x), free(y), free(back);
    }
}

static void long_transforms_find_their_sines_and_come_back(void **state)
{
    (void)state;
    static const int lengths[] = {8192, 16384, 44100, 65536, 48000 * 3, 65537, 1 << 20, 1 << 22};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const int n = lengths[i], bin = n / 3 + 1;
        float *x = noise_block(2 * (size_t)n, 9), *y = malloc(2 * (size_t)n * sizeof *y);
        double turn = 2 * 3.14159265358979323846 / n, re = 0, im = 0, power = 0;
        for (int k = 0; k < n; k++) { // one bin by the definition
            double angle = turn * (double)((int64_t)k * bin % n), c = cos(angle), s = sin(angle);
            re += x[2 * k] * c + x[2 * k + 1] * s;
            im += x[2 * k + 1] * c - x[2 * k] * s;
            power += (double)x[2 * k] * x[2 * k] + (double)x[2 * k + 1] * x[2 * k + 1];
        }
        wt_fft *forward, *inverse;
        assert_ok(wt_fft_create(NULL, &(wt_fft_config){.n = n}, &forward));
        assert_ok(wt_fft_create(NULL, &(wt_fft_config){.n = n, .inverse = true}, &inverse));
        assert_int_equal(wt_fft_run(forward, x, y), WT_OK);
        double error = pow(y[2 * bin] - re, 2) + pow(y[2 * bin + 1] - im, 2); // of a bin's mean power, `power`
        double bound_db = 130 - fmax(0, log2(n / 4096.0)) - (round_trip_db(n) < 130 ? 3 : 0);
        if (!(error <= power * pow(10, -bound_db / 10 + 1))) // one bin, not the mean of all: 10 dB of luck
            fail_msg("n %d: bin off by %.1f dB", n, 10 * log10(power / error));
        assert_int_equal(wt_fft_run(inverse, y, y), WT_OK);
        assert_snr_db(x, y, 2 * (size_t)n, bound_db - 1);
        wt_fft_destroy(forward), wt_fft_destroy(inverse);
        free(x), free(y);
    }
}

// ---- devices

static void check_device(wt_device *device, const wt_fft_config *config)
{
    const size_t floats = 2 * ((size_t)config->n + 2) * (size_t)(config->batch ? config->batch : 1), bytes = floats * 4;
    float *x = noise_block(floats, 11), *y = calloc(floats, 4), *got = malloc(bytes);
    wt_fft *plan;
    wt_buffer *in, *out;
    wt_stream *stream;
    assert_ok(wt_fft_create(device, config, &plan));
    assert_int_equal(wt_fft_run(plan, x, y), WT_OK);
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &in));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &out));
    assert_ok(wt_stream_upload(stream, in, 0, x, bytes));
    assert_ok(wt_stream_fill(stream, out, 0, 0, bytes));
    assert_ok(wt_fft_enqueue(plan, stream, in, 0, out, 0));
    assert_ok(wt_stream_download(stream, got, out, 0, bytes));
    assert_ok(wt_stream_synchronize(stream));
    double peak = 0, worst = 0;
    for (size_t i = 0; i < floats; i++) {
        peak = fmax(peak, fabs((double)y[i]));
        double off = fabs((double)got[i] - y[i]);
        if (!(off <= worst)) worst = off; // also when it is not a number
    }
    // Two transforms in float sum in other orders: 2e-6 of the peak, the engine's bound for CPU against CUDA.
    if (!(worst <= 2e-6 * peak))
        fail_msg("n %d batch %d kind %d: %.2g of the peak", config->n, config->batch, config->kind, worst / peak);
    wt_buffer_destroy(in), wt_buffer_destroy(out), wt_stream_destroy(stream), wt_fft_destroy(plan);
    free(x), free(y), free(got);
}

static void check_lengths(wt_device *device, const int *lengths, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (int kind = 0; kind < 3; kind++) {
            const int n = lengths[i], batch = n > 100000 ? 1 : n > 8192 ? 3 : 37;
            check_device(device,
                         &(wt_fft_config){.n = n, .batch = batch, .kind = kind, .inverse = kind == 0 && n % 3 == 0});
        }
}

static void a_cpu_device_runs_plans_on_its_streams(void **state)
{
    (void)state;
    static const int lengths[] = {1, 16, 60, 67, 400, 1024, 16384};
    wt_device *device;
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = 3}, &device));
    check_lengths(device, lengths, sizeof lengths / sizeof *lengths);
    wt_device_close(device);
}

static void cuda_equals_the_cpu(void **state)
{
    (void)state;
    static const int lengths[] = {1,    2,    3,     4,     8,     11,    13,    15,     16,      17,
                                  20,   32,   49,    60,    67,    128,   169,   256,    400,     480,
                                  512,  640,  1000,  1021,  1023,  1024,  2048,  2310,   4096,    4099,
                                  8192, 9261, 16384, 20011, 32768, 44100, 65536, 131072, 1 << 20, 1 << 22};
    wt_device *device;
    if (wt_device_count() < 1) {
        print_message("skipped: no CUDA device\n");
        skip();
    }
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &device));
    check_lengths(device, lengths, sizeof lengths / sizeof *lengths);
    check_device(device, &(wt_fft_config){.n = 400, .batch = 100, .kind = WT_FFT_REAL_TO_COMPLEX, .in_distance = 160});
    check_device(device, &(wt_fft_config){.n = 256,
                                          .batch = 9,
                                          .in_stride = 9,
                                          .in_distance = 1,
                                          .out_stride = 9,
                                          .out_distance = 1,
                                          .inverse = true});
    wt_device_close(device);
}

static void every_way_of_the_kernels_compiles(void **state)
{
    (void)state;
    static const char *const ways[][5] = {
        {"-DFFT_POINTS=1", "-DFFT_KIND=0", "-DFFT_INVERSE=1", "-DFFT_HALVED=0", "-DFFT_BLUESTEIN=0"},
        {"-DFFT_POINTS=8192", "-DFFT_KIND=1", "-DFFT_INVERSE=0", "-DFFT_HALVED=1", "-DFFT_BLUESTEIN=1"},
        {"-DFFT_POINTS=2310", "-DFFT_KIND=1", "-DFFT_INVERSE=0", "-DFFT_HALVED=0", "-DFFT_BLUESTEIN=0"},
        {"-DFFT_POINTS=1001", "-DFFT_KIND=2", "-DFFT_INVERSE=0", "-DFFT_HALVED=1", "-DFFT_BLUESTEIN=0"},
        {"-DFFT_POINTS=64", "-DFFT_KIND=2", "-DFFT_INVERSE=0", "-DFFT_HALVED=0", "-DFFT_BLUESTEIN=1"},
        {"-DFFT_POINTS=0", "-DFFT_KIND=1", "-DFFT_INVERSE=0", "-DFFT_HALVED=1", "-DFFT_BLUESTEIN=1"},
        {"-DFFT_POINTS=0", "-DFFT_KIND=0", "-DFFT_INVERSE=1", "-DFFT_HALVED=0", "-DFFT_BLUESTEIN=0"},
    };
    if (!wt_nvrtc_version()) {
        print_message("skipped: %s\n", wt_last_error());
        skip();
    }
    static const int architectures[] = {80, 90, 100, 120};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        wt_compiled compiled;
        const wt_module_config config = {.name = "kernels/fft/fft.cu", .options = ways[i], .n_options = 5};
        assert_ok(wt_kernel_compile(&config, architectures[i % 4], &compiled));
        free(compiled.image);
    }
}

// ---- refusals

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    wt_fft *plan = NULL;
#define REFUSES(sentence, ...)                                                                                         \
    do {                                                                                                               \
        assert_fails(wt_fft_create(NULL, &(wt_fft_config){__VA_ARGS__}, &plan), WT_ERR_BAD_ARG, sentence);             \
        assert_null(plan);                                                                                             \
    } while (0)
    REFUSES("fft: length 0, want 1..4194304", .n = 0);
    REFUSES("fft: length 4194305, want 1..4194304", .n = 4194305);
    REFUSES("fft: batch -1, want 0..16777216", .n = 8, .batch = -1);
    REFUSES("fft: kind 3, want 0..2", .n = 8, .kind = 3);
    REFUSES("fft: in_stride -2, want 0 or more", .n = 8, .in_stride = -2);
    REFUSES("fft: in_stride 600, want at most 511 for length 4194304", .n = 4194304, .in_stride = 600);
    REFUSES("fft: out_distance -8, want 0 or more", .n = 8, .out_distance = -8);
    REFUSES("fft: an inverse transform from real to complex does not exist", .n = 8, .kind = WT_FFT_REAL_TO_COMPLEX,
            .inverse = true);
    assert_ok(wt_fft_create(NULL, &(wt_fft_config){.n = 8}, &plan));
    assert_fails(wt_fft_enqueue(plan, NULL, NULL, 0, NULL, 0), WT_ERR_BAD_ARG, "fft: the plan has no device");
    wt_fft_destroy(plan);
    wt_fft_destroy(NULL);
}

static void ranges_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    wt_device *device;
    wt_stream *stream;
    wt_buffer *small, *large;
    wt_fft *plan;
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = 1}, &device));
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, 2 * 16 * 8 - 8, &small));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, 2 * 16 * 8, &large));
    assert_ok(wt_fft_create(device, &(wt_fft_config){.n = 16, .batch = 2}, &plan));
    assert_fails(wt_fft_enqueue(plan, stream, small, 0, large, 0), WT_ERR_BAD_ARG,
                 "fft: in takes 256 bytes at 0, the buffer has 248");
    assert_fails(wt_fft_enqueue(plan, stream, large, 0, large, 8), WT_ERR_BAD_ARG,
                 "fft: out takes 256 bytes at 8, the buffer has 256");
    assert_fails(wt_fft_enqueue(plan, stream, large, 4, large, 0), WT_ERR_BAD_ARG,
                 "fft: in offset 4, want a multiple of 8");
    assert_fails(wt_fft_enqueue(plan, stream, large, 0, NULL, 0), WT_ERR_BAD_ARG, "fft: no out buffer");
    wt_fft_destroy(plan), wt_buffer_destroy(small), wt_buffer_destroy(large);
    wt_stream_destroy(stream), wt_device_close(device);
}

static void good_sizes_have_small_factors(void **state)
{
    (void)state;
    assert_int_equal(wt_fft_good_size(-3), 1);
    assert_int_equal(wt_fft_good_size(7), 8);
    assert_int_equal(wt_fft_good_size(400), 400);
    assert_int_equal(wt_fft_good_size(1021), 1024);
    assert_int_equal(wt_fft_good_size(1025), 1080);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transforms_equal_the_definition_and_come_back),
        cmocka_unit_test(weighted_transforms_give_powers_and_pairs),
        cmocka_unit_test(frames_at_once_equal_the_definition),
        cmocka_unit_test(the_golden_transforms),
        cmocka_unit_test(any_batch_and_layout_gives_bit_for_bit_the_same),
        cmocka_unit_test(transforms_of_overlapping_frames_are_a_spectrogram),
        cmocka_unit_test(real_transforms_work_in_place),
        cmocka_unit_test(long_transforms_find_their_sines_and_come_back),
        cmocka_unit_test(a_cpu_device_runs_plans_on_its_streams),
        cmocka_unit_test(cuda_equals_the_cpu),
        cmocka_unit_test(every_way_of_the_kernels_compiles),
        cmocka_unit_test(bad_input_gets_a_sentence),
        cmocka_unit_test(ranges_that_do_not_fit_are_refused),
        cmocka_unit_test(good_sizes_have_small_factors),
    };
    return cmocka_run_group_tests_name("fft", tests, NULL, NULL);
}
