#include "support/failing_alloc.h"
#include "support/testing.h"
#include "support/golden.h"
#include "support/spectral_check.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/hpss.h>
#include <warptone/median.h>
#include <warptone/stft.h>

typedef struct spectrum {
    wt_stft *stft;
    float *z; // [n_frames][bins][2]
    int64_t n, n_frames;
    int bins;
} spectrum;

static spectrum spectrum_of(const golden_case *g)
{
    spectrum s;
    size_t n;
    const float *x = golden_input(g, 0, &n);
    assert_ok(wt_stft_create(
        &(wt_stft_config){.n_fft = golden_int(g, "n_fft", 2048), .hop = golden_int(g, "hop_length", 512)}, &s.stft));
    s.n = (int64_t)n;
    s.n_frames = wt_stft_frames(s.stft, s.n), s.bins = wt_stft_bins(s.stft);
    s.z = floats(2 * (size_t)s.n_frames * (size_t)s.bins);
    assert_int_equal(wt_stft_forward(s.stft, x, s.n, s.z), WT_OK);
    return s;
}

// In place, n a power of two.
static void transform(double complex *x, int n)
{
    if (n == 1) return;
    double complex *half = malloc((size_t)n * sizeof *half);
    for (int i = 0; i < n; i++) half[i % 2 * (n / 2) + i / 2] = x[i];
    transform(half, n / 2), transform(half + n / 2, n / 2);
    for (int k = 0; k < n / 2; k++) {
        const double complex odd = cexp(-2 * I * 3.14159265358979323846 * k / n) * half[n / 2 + k];
        x[k] = half[k] + odd, x[k + n / 2] = half[k] - odd;
    }
    free(half);
}

// Magnitudes as librosa has them, which transforms in double even what is float: masks judge bins by each other however
// weak they are, and those 140 dB under their frame's peak are noise in a transform of floats.
static float *magnitudes_of(const golden_case *g, const spectrum *s)
{
    size_t n;
    const float *x = golden_input(g, 0, &n);
    const int n_fft = 2 * (s->bins - 1), hop = golden_int(g, "hop_length", 512);
    double complex *frame = malloc((size_t)n_fft * sizeof *frame);
    float *magnitude = floats((size_t)s->n_frames * (size_t)s->bins);
    for (int64_t t = 0; t < s->n_frames; t++) {
        for (int i = 0; i < n_fft; i++) {
            const int64_t at = t * hop - n_fft / 2 + i;
            const double window = 0.5 - 0.5 * cos(2 * 3.14159265358979323846 * i / n_fft);
            frame[i] = at >= 0 && at < (int64_t)n ? window * x[at] : 0;
        }
        transform(frame, n_fft);
        for (int k = 0; k < s->bins; k++) magnitude[t * s->bins + k] = (float)cabs(frame[k]);
    }
    free(frame);
    return magnitude;
}

static wt_hpss_config config_of(const golden_case *g, int bins)
{
    double kernel[2], margin[2];
    int n_kernels = golden_list(g, "kernel_size", kernel, 2), n_margins = golden_list(g, "margin", margin, 2);
    return (wt_hpss_config){.bins = bins,
                            .kernel_harmonic = (int)kernel[0],
                            .kernel_percussive = (int)kernel[n_kernels - 1],
                            .power = (float)golden_double(g, "power", 2),
                            .margin_harmonic = (float)margin[0],
                            .margin_percussive = (float)margin[n_margins - 1],
                            .give_masks = golden_int(g, "mask", 0)};
}

static bool is_harmonic(const golden_case *g) { return !strcmp(g->name + strlen(g->name) - 5, "_harm"); }

static void check_part(const golden_case *g, const float *part, int64_t n_frames, int bins)
{
    float *y = turned(part, (size_t)n_frames, (size_t)bins, 1);
    if (g->kind == 'i') {
        int *flags = malloc((size_t)n_frames * (size_t)bins * sizeof *flags);
        for (int64_t i = 0; i < n_frames * bins; i++) flags[i] = (int)y[i];
        golden_check_int(g, flags, (size_t)bins, (size_t)n_frames);
        free(flags);
    } else {
        golden_check(g, y, (size_t)bins, (size_t)n_frames);
    }
    free(y);
}

static void parts_and_masks_equal_librosas(void **state)
{
    (void)state;
    int n_checked = 0;
    for (const golden_case *g = NULL; (g = golden_next("hpss", g)); n_checked++) {
        spectrum s = spectrum_of(g);
        const size_t area = (size_t)s.n_frames * (size_t)s.bins;
        float *magnitude = magnitudes_of(g, &s), *part[2] = {floats(area), floats(area)};
        wt_hpss *hpss;
        const wt_hpss_config config = config_of(g, s.bins);
        assert_ok(wt_hpss_create(NULL, &config, &hpss));
        assert_int_equal(wt_hpss_run(hpss, magnitude, s.n_frames, part[0], part[1]), WT_OK);
        check_part(g, part[is_harmonic(g) ? 0 : 1], s.n_frames, s.bins);
        wt_hpss_destroy(hpss), wt_stft_destroy(s.stft);
        free(s.z), free(magnitude), free(part[0]), free(part[1]);
    }
    assert_true(n_checked >= 12);
}

static void audio_comes_apart_as_librosas(void **state)
{
    (void)state;
    for (const golden_case *g = NULL; (g = golden_next("effects_hpss", g));) {
        spectrum s = spectrum_of(g);
        const size_t n_floats = 2 * (size_t)s.n_frames * (size_t)s.bins;
        float *part[2] = {floats(n_floats), floats(n_floats)}, *y = floats((size_t)s.n);
        wt_hpss_config config = config_of(g, s.bins);
        config.complex_in = true;
        wt_hpss *hpss;
        assert_ok(wt_hpss_create(NULL, &config, &hpss));
        assert_int_equal(wt_hpss_run(hpss, s.z, s.n_frames, part[0], part[1]), WT_OK);
        assert_int_equal(wt_stft_inverse(s.stft, part[is_harmonic(g) ? 0 : 1], s.n_frames, s.n, y), WT_OK);
        golden_check(g, y, 1, (size_t)s.n);
        wt_hpss_destroy(hpss), wt_stft_destroy(s.stft);
        free(s.z), free(part[0]), free(part[1]), free(y);
    }
}

static void medians_and_masks_equal_scipys_and_librosas(void **state)
{
    (void)state;
    for (const golden_case *g = NULL; (g = golden_next("median_filter", g));) {
        size_t shape[2], n;
        const float *x = golden_input(g, 0, &n);
        golden_input_shape(g, 0, shape);
        float *y = floats(n);
        wt_median *median;
        assert_ok(wt_median_create(&(wt_median_config){.rows = (int)shape[0],
                                                       .columns = (int)shape[1],
                                                       .kernel_rows = golden_int(g, "rows", 1),
                                                       .kernel_columns = golden_int(g, "columns", 1)},
                                   &median));
        wt_median_run(median, x, y);
        golden_check(g, y, shape[0], shape[1]);
        wt_median_destroy(median);
        free(y);
    }
    for (const golden_case *g = NULL; (g = golden_next("softmask", g));) {
        size_t n;
        const float *x = golden_input(g, 0, &n), *reference = golden_input(g, 1, &n);
        float *y = floats(n);
        assert_ok(
            wt_softmask(x, reference, n, (float)golden_double(g, "power", 1), golden_int(g, "split_zeros", 0), y));
        int *flags = malloc(n * sizeof *flags);
        for (size_t i = 0; i < n; i++) flags[i] = (int)y[i];
        if (g->kind == 'i')
            golden_check_int(g, flags, g->rows, g->columns);
        else
            golden_check(g, y, g->rows, g->columns);
        free(y), free(flags);
    }
}

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static int mirror(int at, int n)
{
    while (at < 0 || at >= n) at = at < 0 ? -1 - at : 2 * n - 1 - at;
    return at;
}

// Exactly, for kernels longer than the image, even ones, and negative numbers.
static void medians_equal_a_sort(void **state)
{
    (void)state;
    static const int shapes[][4] = {{1, 1, 1, 1},     {3, 17, 9, 1},  {40, 5, 31, 1},  {7, 9, 2, 4},
                                    {33, 16, 1, 16},  {20, 3, 64, 1}, {5, 40, 3, 101}, {3, 50, 1, 1024},
                                    {60, 2, 2001, 1}, {9, 30, 33, 70}};
    uint64_t seed = 5;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int *s = shapes[i], k = s[2] * s[3];
        const size_t n_floats = (size_t)(2 * s[0] * s[1]);
        float *x = floats(n_floats), *y = floats(n_floats), *window = floats((size_t)k);
        for (int j = 0; j < 2 * s[0] * s[1]; j++) x[j] = roundf(8 * noise(&seed));
        wt_median *median;
        assert_ok(wt_median_create(&(wt_median_config){s[0], s[1], s[2], s[3], 2}, &median));
        wt_median_run(median, x, y);
        for (int j = 0; j < 2 * s[0] * s[1]; j++) {
            const int r = j / s[1] % s[0], c = j % s[1];
            const float *image = x + j / (s[0] * s[1]) * s[0] * s[1];
            for (int w = 0; w < k; w++)
                window[w] = image[mirror(r - s[2] / 2 + w / s[3], s[0]) * s[1] + mirror(c - s[3] / 2 + w % s[3], s[1])];
            qsort(window, (size_t)k, sizeof *window, ascending);
            assert_true(y[j] == window[k / 2]);
        }
        wt_median_destroy(median);
        free(x), free(y), free(window);
    }
}

static wt_status enqueue_median(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                                size_t out_offset)
{
    return wt_median_plan_enqueue(op, stream, in, in_offset, out, out_offset);
}

// Images alone, among others and twice; kernels of one value to 1640, and of two dimensions, also longer than the
// image.
static void check_medians(wt_device *device)
{
    enum { LINES = 3 };
    static const int shapes[][4] = {{1, 1, 1, 1},     {3, 17, 9, 1},    {40, 50, 31, 1},   {37, 70, 1, 31},
                                    {7, 9, 2, 4},     {20, 33, 64, 1},  {9, 40, 5, 101},   {6, 5, 1, 1023},
                                    {70, 3, 1023, 1}, {3, 90, 1, 1024}, {120, 3, 1501, 1}, {9, 17, 40, 41},
                                    {12, 20, 2, 600}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int *s = shapes[i];
        const size_t area = (size_t)(s[0] * s[1]);
        float *x = noise_floats(LINES * area, 6), *got = floats(LINES * area), *want = floats(LINES * area);
        for (size_t j = 0; j < LINES * area; j++) x[j] = j % 5 ? x[j] : roundf(8 * x[j]); // some that are equal
        wt_median *median;
        assert_ok(wt_median_create(&(wt_median_config){s[0], s[1], s[2], s[3], LINES}, &median));
        wt_median_run(median, x, want);
        wt_median_destroy(median);
        for (int lines = LINES; lines > 0; lines -= LINES - 1) {
            wt_median_plan *plan;
            assert_ok(wt_median_plan_create(device, &(wt_median_config){s[0], s[1], s[2], s[3], lines}, &plan));
            for (int twice = 0; twice < 2; twice++) {
                const size_t n = (size_t)lines * area;
                run_on_stream(&(stream_call){device, enqueue_median, plan}, x, n, got, n);
                for (size_t j = 0; j < n; j++)
                    if (got[j] != want[j])
                        fail_msg("median %d x %d of %d x %d: %g at %zu, want %g", s[2], s[3], s[0], s[1], got[j], j,
                                 want[j]);
            }
            wt_median_plan_destroy(plan);
        }
        free(x), free(got), free(want);
    }
    wt_device_close(device);
}

static void medians_of_batches_are_those_of_each_image(void **state)
{
    (void)state;
    check_medians(cpu_device());
}

static void medians_on_a_gpu_are_the_cpus(void **state)
{
    (void)state;
    check_medians(gpu_device());
}

static void silence_goes_to_both_parts_and_is_no_nan(void **state)
{
    (void)state;
    enum { BINS = 65, FRAMES = 20 };
    float x[BINS * FRAMES] = {0}, h[BINS * FRAMES], p[BINS * FRAMES];
    for (int margin = 1; margin <= 2; margin++) {
        wt_hpss *hpss;
        assert_ok(wt_hpss_create(
            NULL, &(wt_hpss_config){.bins = BINS, .margin_harmonic = (float)margin, .give_masks = true}, &hpss));
        assert_int_equal(wt_hpss_run(hpss, x, FRAMES, h, p), WT_OK);
        for (int i = 0; i < BINS * FRAMES; i++) assert_true(h[i] == p[i] && h[i] == (margin == 1 ? 0.5f : 0));
        wt_hpss_destroy(hpss);
    }
}

// What a stream of `device` gives, against the immediate call.
static void compare_enqueued(wt_device *device, wt_hpss_config config, int n_frames, float bound)
{
    const size_t width = config.complex_in ? 2 : 1, lines = (size_t)(config.lines ? config.lines : 1);
    const size_t n_floats = lines * (size_t)n_frames * (size_t)config.bins * width, bytes = n_floats * sizeof(float);
    float *x = floats(n_floats), *y = floats(4 * n_floats);
    uint64_t seed = 9;
    for (size_t i = 0; i < n_floats; i++) x[i] = config.complex_in ? noise(&seed) : fabsf(noise(&seed));
    wt_hpss *hpss;
    wt_buffer *in, *out;
    wt_stream *stream;
    assert_ok(wt_hpss_create(device, &config, &hpss));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &in));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, 2 * bytes, &out));
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_stream_upload(stream, in, 0, x, bytes));
    assert_ok(wt_hpss_enqueue(hpss, stream, in, 0, n_frames, out, 0, out, bytes));
    assert_ok(wt_stream_download(stream, y, out, 0, 2 * bytes));
    assert_ok(wt_stream_synchronize(stream));
    memset(y + 2 * n_floats, 0, 2 * bytes);
    assert_int_equal(wt_hpss_run(hpss, x, n_frames, y + 2 * n_floats, y + 3 * n_floats), WT_OK);
    const size_t used = config.give_masks ? n_floats / width : n_floats;
    for (size_t part = 0; part < 2; part++)
        for (size_t i = 0; i < used; i++)
            if (!(fabsf(y[part * n_floats + i] - y[(part + 2) * n_floats + i]) <= bound))
                fail_msg("%d bins, %d frames, part %zu: [%zu] is %g, want %g", config.bins, n_frames, part, i,
                         (double)y[part * n_floats + i], (double)y[(part + 2) * n_floats + i]);
    wt_stream_destroy(stream), wt_buffer_destroy(in), wt_buffer_destroy(out);
    wt_hpss_destroy(hpss);
    free(x), free(y);
}

static void compare_all(wt_device *device, float bound)
{
    compare_enqueued(device, (wt_hpss_config){.bins = 1025, .lines = 2}, 77, bound);
    compare_enqueued(device, (wt_hpss_config){.bins = 129, .complex_in = true, .margin_harmonic = 2}, 1, bound);
    compare_enqueued(
        device,
        (wt_hpss_config){
            .bins = 200, .kernel_harmonic = 8, .kernel_percussive = 13, .power = INFINITY, .give_masks = true},
        65, 0);
    compare_enqueued(device,
                     (wt_hpss_config){.bins = 65,
                                      .lines = 3,
                                      .kernel_harmonic = 101,
                                      .kernel_percussive = 64,
                                      .complex_in = true,
                                      .give_masks = true,
                                      .power = 0.7f},
                     40, 2 * bound);
    compare_enqueued(device, (wt_hpss_config){.bins = 65, .kernel_harmonic = 1023, .kernel_percussive = 700}, 40,
                     bound);
}

static void workers_give_the_same_bits(void **state)
{
    (void)state;
    wt_device *cpu = cpu_device();
    compare_all(cpu, 0);
    wt_device_close(cpu);
}

// 2e-7: the same medians; the masks' divisions and one product, each to half a unit of the last place.
static void a_gpu_gives_what_the_cpu_gives(void **state)
{
    (void)state;
    wt_device *gpu = gpu_device();
    compare_all(gpu, 2e-7f);
    wt_device_close(gpu);
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    wt_hpss *hpss = NULL;
    wt_median *median = NULL;
    float x = 0;
    assert_fails(wt_hpss_create(NULL, &(wt_hpss_config){0}, &hpss), WT_ERR_BAD_ARG, "hpss: 0 bins, want 1..16777216");
    assert_fails(wt_hpss_create(NULL, &(wt_hpss_config){.bins = 5, .lines = -1}, &hpss), WT_ERR_BAD_ARG,
                 "hpss: -1 lines, want 1..65535");
    assert_fails(wt_hpss_create(NULL, &(wt_hpss_config){.bins = 5, .kernel_harmonic = 1024}, &hpss), WT_ERR_BAD_ARG,
                 "hpss: kernels 1024 and 31, want 1..1023");
    assert_fails(wt_hpss_create(NULL, &(wt_hpss_config){.bins = 5, .power = -1}, &hpss), WT_ERR_BAD_ARG,
                 "hpss: power -1, want above 0");
    assert_fails(wt_hpss_create(NULL, &(wt_hpss_config){.bins = 5, .margin_percussive = 0.5f}, &hpss), WT_ERR_BAD_ARG,
                 "hpss: margins 1 and 0.5, want 1 or more");
    assert_fails(wt_median_create(&(wt_median_config){.rows = 0, .columns = 5}, &median), WT_ERR_BAD_ARG,
                 "median: image of 0 x 5, want 1..16777216 each");
    assert_fails(
        wt_median_create(
            &(wt_median_config){.rows = 5, .columns = 5, .kernel_rows = 1 << 15, .kernel_columns = 1 << 16}, &median),
        WT_ERR_BAD_ARG, "median: kernel 32768 x 65536, want 1..1073741824 values");
    assert_fails(wt_softmask(&x, &x, 1, 0, false, &x), WT_ERR_BAD_ARG, "softmask: power 0, want above 0");
    assert_null(hpss);
    assert_null(median);
    assert_ok(wt_hpss_create(NULL, &(wt_hpss_config){.bins = 5}, &hpss));
    assert_int_equal(wt_hpss_run(hpss, &x, 0, &x, &x), WT_ERR_BAD_ARG);
    wt_hpss_destroy(hpss);
    wt_hpss_destroy(NULL);
    wt_median_destroy(NULL);
}

static wt_status create_hpss(void *user)
{
    return wt_hpss_create(NULL, &(wt_hpss_config){.bins = 65}, (wt_hpss **)user);
}

static void destroy_hpss(void *user) { wt_hpss_destroy(*(wt_hpss **)user); }

static void survives_failing_allocations(void **state)
{
    (void)state;
    wt_hpss *hpss;
    assert_true(assert_survives_failing_alloc(create_hpss, destroy_hpss, &hpss) >= 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_and_masks_equal_librosas),
        cmocka_unit_test(audio_comes_apart_as_librosas),
        cmocka_unit_test(medians_and_masks_equal_scipys_and_librosas),
        cmocka_unit_test(medians_equal_a_sort),
        cmocka_unit_test(medians_of_batches_are_those_of_each_image),
        cmocka_unit_test(medians_on_a_gpu_are_the_cpus),
        cmocka_unit_test(silence_goes_to_both_parts_and_is_no_nan),
        cmocka_unit_test(workers_give_the_same_bits),
        cmocka_unit_test(a_gpu_gives_what_the_cpu_gives),
        cmocka_unit_test(bad_input_gets_a_sentence),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests_name("hpss", tests, NULL, NULL);
}
