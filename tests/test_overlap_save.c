#include "support/failing_alloc.h"
#include "support/realtime.h"
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

static void destroy_filter(void *user)
{
    wt_overlap_save_destroy(*(wt_overlap_save **)user);
}

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
        cmocka_unit_test(refuses_bad_sizes),
        cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(filters_in_the_audio_thread),
    };
    return cmocka_run_group_tests_name("overlap save", tests, NULL, NULL);
}
