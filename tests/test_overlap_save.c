#include "support/failing_alloc.h"
#include "support/realtime.h"
#include "support/spectral_check.h"
#include "support/testing.h"

#include <warptone/overlap_save.h>

#include <stdlib.h>
#include <string.h>

static void fill(float *x, int n, uint64_t seed)
{
    for (int k = 0; k < n; k++) x[k] = noise(&seed);
}

static void convolve_ref(const float *in, int n_in, const float *taps, int n_taps, float *out)
{
    for (int n = 0; n < n_in + n_taps - 1; n++) {
        double sum = 0;
        for (int k = n < n_in ? 0 : n - n_in + 1; k < n_taps && k <= n; k++) sum += (double)taps[k] * in[n - k];
        out[n] = (float)sum;
    }
}

// 120 dB: two float transforms of at most 16384 points and a product, each good for 130 dB or so.
static void convolution_is_the_sum_of_products(void **state)
{
    (void)state;
    const int sizes[][2] = {{1, 1}, {1, 300}, {300, 1}, {63, 64}, {1000, 253}, {5000, 256}, {3001, 2500}};
    static float in[5000], taps[2500], want[8000], got[8000];
    fill(in, 5000, 1);
    fill(taps, 2500, 2);
    for (int k = 0; k < 7; k++) {
        const int n_in = sizes[k][0], n_taps = sizes[k][1];
        convolve_ref(in, n_in, taps, n_taps, want);
        assert_ok(wt_fft_convolve(in, n_in, taps, n_taps, got));
        assert_snr_db(want, got, (size_t)(n_in + n_taps - 1), 120);
    }
}

static void streaming_lags_by_its_latency_and_any_cut_gives_the_same_bits(void **state)
{
    (void)state;
    enum { N = 9000, TAPS = 300, CHANNELS = 3 };
    static float in[CHANNELS][N], whole[CHANNELS][N], parts[CHANNELS][N], taps[TAPS], want[N + TAPS];
    const int sizes[] = {1, 63, 64, 65, 253, 2000, 0};
    wt_overlap_save *filter = NULL;
    const float *from[CHANNELS];
    float *to[CHANNELS];
    fill(taps, TAPS, 3);
    assert_ok(wt_overlap_save_create(&(wt_overlap_save_config){taps, TAPS, CHANNELS}, &filter));
    for (int c = 0; c < CHANNELS; c++) {
        fill(in[c], N, 4 + (uint64_t)c);
        memcpy(whole[c], in[c], sizeof in[c]);
        to[c] = whole[c];
    }
    wt_overlap_save_process(filter, (const float *const *)to, to, N); // in place
    wt_overlap_save_reset(filter);
    for (int at = 0, turn = 0; at < N; turn++) {
        const int n = sizes[turn % 7] < N - at ? sizes[turn % 7] : N - at;
        for (int c = 0; c < CHANNELS; c++) from[c] = in[c] + at, to[c] = parts[c] + at;
        wt_overlap_save_process(filter, from, to, n);
        at += n;
    }
    assert_memory_equal(whole, parts, sizeof whole);
    const int latency = wt_overlap_save_latency_frames(filter);
    for (int c = 0; c < CHANNELS; c++) {
        convolve_ref(in[c], N, taps, TAPS, want);
        for (int n = 0; n < latency; n++) assert_true(whole[c][n] == 0);
        assert_snr_db(want, whole[c] + latency, (size_t)(N - latency), 120);
    }
    wt_overlap_save_destroy(filter);
}

static wt_status enqueue_rows(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                              size_t out_offset)
{
    return wt_convolve_enqueue(op, stream, in, in_offset, out, out_offset);
}

// One transform of each length, and taps in three parts; rows alone, among others, and twice give the same bits.
static void check_rows(wt_device *device)
{
    enum { ROWS = 3 };
    static const int sizes[][2] = {{1, 1}, {5000, 7}, {9001, 513}, {700, 3000}, {20011, 9000}};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const int n_in = sizes[k][0], n_taps = sizes[k][1];
        const size_t n_out = (size_t)(n_in + n_taps - 1);
        float *x = noise_floats((size_t)(ROWS * n_in), 3), *taps = noise_floats((size_t)n_taps, 4);
        float *want = floats(n_out), *got = floats(ROWS * n_out), *alone = floats(n_out);
        const wt_overlap_save_config config = {.taps = taps, .n_taps = n_taps};
        wt_convolve *plan, *one;
        assert_ok(wt_convolve_create(device, &config, ROWS, n_in, &plan));
        assert_ok(wt_convolve_create(device, &config, 1, n_in, &one));
        run_on_stream(&(stream_call){device, enqueue_rows, plan}, x, (size_t)(ROWS * n_in), got, ROWS * n_out);
        run_on_stream(&(stream_call){device, enqueue_rows, plan}, x, (size_t)(ROWS * n_in), got, ROWS * n_out);
        for (size_t row = 0; row < ROWS; row++) {
            const float *in = x + row * (size_t)n_in;
            run_on_stream(&(stream_call){device, enqueue_rows, one}, in, (size_t)n_in, alone, n_out);
            assert_memory_equal(alone, got + row * n_out, n_out * sizeof *alone);
            assert_ok(wt_fft_convolve(in, n_in, taps, n_taps, want));
            assert_near_peak(want, got + row * n_out, n_out, 2e-6, "convolve");
        }
        wt_convolve_destroy(plan), wt_convolve_destroy(one);
        free(x), free(taps), free(want), free(got), free(alone);
    }
    wt_convolve *plan = NULL;
    assert_fails(wt_convolve_create(device, &(wt_overlap_save_config){.n_taps = 0}, 1, 1, &plan), WT_ERR_BAD_ARG,
                 "convolve: 0 taps, want 1..1048576");
    assert_fails(wt_convolve_create(device, &(wt_overlap_save_config){.n_taps = 1}, 1, 0, &plan), WT_ERR_BAD_ARG,
                 "convolve: 1 rows of 0 frames, want 1 or more");
    assert_null(plan);
    wt_device_close(device);
}

static void rows_on_a_cpu_give_what_each_row_gives(void **state)
{
    (void)state;
    check_rows(cpu_device());
}

static void rows_on_a_gpu_give_what_the_cpu_gives(void **state)
{
    (void)state;
    check_rows(gpu_device());
}

// ---- many signals on a stream, from block to block

typedef struct plan_case {
    int n_taps, signals, channels, n;
} plan_case;

static wt_status reset_plan(void *op, wt_stream *stream) { return wt_overlap_save_plan_reset(op, stream); }

// In place.
static size_t n_rows;
static wt_status enqueue_plan(void *op, wt_stream *stream, const wt_buffer *in, int n, wt_buffer *out)
{
    wt_buffer *both = (wt_buffer *)in;
    wt_status status = wt_overlap_save_plan_enqueue(op, stream, both, 0, n, both, 0);
    return status ? status : wt_stream_copy(stream, out, 0, both, 0, n_rows * (size_t)n * sizeof(float));
}

static void run_plan(wt_device *device, const plan_case *k, const float *taps, const float *x, const int *sizes,
                     int n_sizes, float *out)
{
    wt_overlap_save_plan *plan;
    const wt_overlap_save_plan_config config = {{taps, k->n_taps, k->channels}, k->signals, k->n};
    assert_ok(wt_overlap_save_plan_create(device, &config, &plan));
    n_rows = (size_t)(k->signals * k->channels);
    const block_op op = {device, plan, n_rows, n_rows, reset_plan, enqueue_plan};
    run_in_blocks(&op, x, (size_t)k->n, sizes, n_sizes, out);
    wt_overlap_save_plan_destroy(plan);
}

// What wt_overlap_save makes of each signal.
static void filter_alone(const plan_case *k, const float *taps, const float *x, float *out)
{
    wt_overlap_save *one = NULL;
    assert_ok(wt_overlap_save_create(&(wt_overlap_save_config){taps, k->n_taps, k->channels}, &one));
    for (int s = 0; s < k->signals; s++) {
        const float *in[2];
        float *to[2];
        for (int c = 0; c < k->channels; c++) {
            in[c] = x + (size_t)(s * k->channels + c) * (size_t)k->n;
            to[c] = out + (size_t)(s * k->channels + c) * (size_t)k->n;
        }
        wt_overlap_save_reset(one);
        wt_overlap_save_process(one, in, to, k->n);
    }
    wt_overlap_save_destroy(one);
}

// A transform of each length, of 512 to 8192 points, and taps in three parts.
static const plan_case cases[] = {{1, 1, 1, 4000},     {200, 3, 2, 6000},   {300, 2, 2, 9000},   {700, 2, 1, 9000},
                                  {1500, 2, 1, 20000}, {4000, 1, 2, 40000}, {9000, 2, 1, 120000}};

static void check_plans(wt_device *device, const plan_case *some, size_t n_some, double bound)
{
    static const int cuts[][6] = {{1, 63, 64, 65, 253, 2999}, {4096, 1000, 97, 5000, 512, 3}};
    for (size_t c = 0; c < n_some; c++) {
        const plan_case *k = &some[c];
        plan_case last = *k;
        const size_t count = (size_t)(k->signals * k->channels * k->n), one = (size_t)(k->channels * k->n);
        float *x = noise_floats(count, 6), *taps = noise_floats((size_t)k->n_taps, 7);
        float *want = floats(count), *got = floats(count), *cut = floats(count);
        filter_alone(k, taps, x, want);
        run_plan(device, k, taps, x, &k->n, 1, got);
        assert_near_peak(want, got, count, bound, "overlap save");
        for (int i = 0; i < 2; i++) {
            run_plan(device, k, taps, x, cuts[i], 6, cut);
            assert_memory_equal(got, cut, count * sizeof *got);
        }
        last.signals = 1;
        run_plan(device, &last, taps, x + count - one, cuts[1], 6, cut);
        assert_memory_equal(got + count - one, cut, one * sizeof *got);
        free(x), free(taps), free(want), free(got), free(cut);
    }
}

// So many rows that a GPU takes a block in two parts.
static void check_parts(wt_device *device, double bound)
{
    const plan_case k = {64, 64, 2, 33000};
    const size_t count = (size_t)(k.signals * k.channels * k.n);
    float *x = noise_floats(count, 6), *taps = noise_floats((size_t)k.n_taps, 7);
    float *want = floats(count), *got = floats(count);
    filter_alone(&k, taps, x, want);
    run_plan(device, &k, taps, x, &k.n, 1, got);
    assert_near_peak(want, got, count, bound, "overlap save in parts");
    free(x), free(taps), free(want), free(got);
}

static void check_bad_plans(wt_device *device)
{
    const float taps[1] = {1};
    wt_overlap_save_plan *plan = NULL;
    assert_fails(wt_overlap_save_plan_create(NULL, &(wt_overlap_save_plan_config){{taps, 1, 1}, 1, 1}, &plan),
                 WT_ERR_BAD_ARG, "overlap save: a plan without a device");
    assert_fails(wt_overlap_save_plan_create(device, &(wt_overlap_save_plan_config){{taps, 0, 1}, 1, 1}, &plan),
                 WT_ERR_BAD_ARG, "overlap save: 0 taps, want 1..1048576");
    assert_fails(wt_overlap_save_plan_create(device, &(wt_overlap_save_plan_config){{taps, 1, 2}, -1, 1}, &plan),
                 WT_ERR_BAD_ARG, "overlap save: -1 signals, want 1..1073741823");
    assert_fails(wt_overlap_save_plan_create(device, &(wt_overlap_save_plan_config){{taps, 1, 1}, 1, 0}, &plan),
                 WT_ERR_BAD_ARG, "overlap save: max_frames 0, want 1..536870911");
    assert_null(plan);
    wt_buffer *some;
    wt_stream *stream;
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, 64, &some));
    assert_ok(wt_overlap_save_plan_create(device, &(wt_overlap_save_plan_config){{taps, 1, 1}, 1, 20}, &plan));
    assert_int_equal(wt_overlap_save_plan_latency_frames(plan), 1024);
    assert_fails(wt_overlap_save_plan_enqueue(plan, stream, some, 0, 21, some, 0), WT_ERR_BAD_ARG,
                 "overlap save: a block of 21 frames, want 1..20");
    assert_int_equal(wt_overlap_save_plan_enqueue(plan, stream, some, 0, 17, some, 0), WT_ERR_BAD_ARG);
    wt_overlap_save_plan_destroy(plan), wt_buffer_destroy(some), wt_stream_destroy(stream);
}

static void check_streams(wt_device *device, double bound)
{
    check_plans(device, cases, sizeof cases / sizeof *cases, bound);
    check_parts(device, bound);
    check_bad_plans(device);
    wt_device_close(device);
}

static void plans_on_a_cpu_are_each_signals(void **state)
{
    (void)state;
    check_streams(cpu_device(), 0);
}

static void plans_on_a_gpu_are_the_cpus(void **state)
{
    (void)state;
    check_streams(gpu_device(), 2e-6);
}

// What a checker of races gets through.
static void short_plans_on_a_gpu(void **state)
{
    static const plan_case few[] = {{200, 1, 2, 1500}, {700, 1, 1, 4000}};
    (void)state;
    wt_device *device = gpu_device();
    check_plans(device, few, 2, 2e-6);
    wt_device_close(device);
}

static void refuses_bad_sizes(void **state)
{
    (void)state;
    wt_overlap_save *filter = NULL;
    float x[1] = {0}, y[1];
    assert_fails(wt_overlap_save_create(&(wt_overlap_save_config){.taps = x}, &filter), WT_ERR_BAD_ARG,
                 "overlap save: 0 taps, want 1..1048576");
    assert_fails(wt_overlap_save_create(&(wt_overlap_save_config){x, 1, 1025}, &filter), WT_ERR_BAD_ARG,
                 "overlap save: 1025 channels, want 1..1024");
    assert_null(filter);
    assert_fails(wt_fft_convolve(x, 0, x, 1, y), WT_ERR_BAD_ARG, "overlap save: 0 frames, want 1 or more");
}

static const float some_taps[3] = {1, 2, 1};

static wt_status create_filter(void *user)
{
    return wt_overlap_save_create(&(wt_overlap_save_config){some_taps, 3, 1}, user);
}

static void destroy_filter(void *user) { wt_overlap_save_destroy(*(wt_overlap_save **)user); }

static void survives_failing_allocations(void **state)
{
    (void)state;
    wt_overlap_save *filter = NULL;
    assert_true(assert_survives_failing_alloc(create_filter, destroy_filter, &filter) >= 6);
}

static void filters_in_the_audio_thread(void **state)
{
    (void)state;
    static float x[3000];
    wt_overlap_save *filter = NULL;
    assert_ok(create_filter(&filter));
    RT_SECTION
    {
        wt_overlap_save_process(filter, (const float *[]){x}, (float *[]){x}, 3000);
        wt_overlap_save_reset(filter);
    }
    wt_overlap_save_destroy(filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolution_is_the_sum_of_products),
        cmocka_unit_test(streaming_lags_by_its_latency_and_any_cut_gives_the_same_bits),
        cmocka_unit_test(rows_on_a_cpu_give_what_each_row_gives),
        cmocka_unit_test(rows_on_a_gpu_give_what_the_cpu_gives),
        cmocka_unit_test(plans_on_a_cpu_are_each_signals),
        cmocka_unit_test(plans_on_a_gpu_are_the_cpus),
        cmocka_unit_test(short_plans_on_a_gpu),
        cmocka_unit_test(refuses_bad_sizes),
        cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(filters_in_the_audio_thread),
    };
    return cmocka_run_group_tests_name("overlap save", tests, NULL, NULL);
}
