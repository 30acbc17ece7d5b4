#include "support/failing_alloc.h"
#include "support/realtime.h"
#include "support/spectral_check.h"

#include <warptone/filter.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "golden/filters/sos.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static wt_sos *filter_of(const double *sos, int n_sections, int channels)
{
    wt_sos *filter = NULL;
    assert_ok(wt_sos_create(&(wt_sos_config){.sos = sos, .n_sections = n_sections, .channels = channels}, &filter));
    return filter;
}

static void butterworth_4(double *sos, int *n_sections)
{
    assert_ok(wt_sos_design(&(wt_sos_design_config){.order = 4, .edge_hz = {0.125}}, sos, n_sections));
}

// 1e-10 of the response's peak, which is 1: sections of 24 poles carry their coefficients' rounding, seen to 1e-11.
static void every_family_and_band_responds_as_scipys(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(golden_sos); i++) {
        double sos[WT_SOS_MAX_SECTIONS * 6];
        int n_sections = 0;
        const wt_sos_design_config config = {golden_sos[i].family,
                                             golden_sos[i].band,
                                             golden_sos[i].order,
                                             44100,
                                             {golden_sos[i].edge_hz[0], golden_sos[i].edge_hz[1]},
                                             0.5,
                                             50};
        assert_ok(wt_sos_design(&config, sos, &n_sections));
        assert_int_equal(n_sections, golden_sos[i].n_sections);
        for (size_t k = 0; k < LENGTH(golden_cycles); k++) {
            double real, imaginary;
            wt_sos_response(sos, n_sections, golden_cycles[k], &real, &imaginary);
            const double error = hypot(real - golden_sos[i].real[k], imaginary - golden_sos[i].imaginary[k]);
            if (!(error <= 1e-10))
                fail_msg("family %d band %d order %d at %g: off by %g", golden_sos[i].family, golden_sos[i].band,
                         golden_sos[i].order, golden_cycles[k], error);
        }
    }
}

// Signals near 1 in float: half a unit in the last place is 6e-8 at most.
static void every_family_and_band_filters_as_scipys(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(golden_sos); i++) {
        double sos[WT_SOS_MAX_SECTIONS * 6];
        int n_sections = 0;
        float x[600];
        uint64_t seed = 1;
        const wt_sos_design_config config = {golden_sos[i].family,
                                             golden_sos[i].band,
                                             golden_sos[i].order,
                                             44100,
                                             {golden_sos[i].edge_hz[0], golden_sos[i].edge_hz[1]},
                                             0.5,
                                             50};
        assert_ok(wt_sos_design(&config, sos, &n_sections));
        for (int n = 0; n < 600; n++) x[n] = noise(&seed);
        wt_sos *filter = filter_of(sos, n_sections, 1);
        wt_sos_process(filter, (const float *[]){x}, (float *[]){x}, 600);
        for (int k = 0; k < 4; k++) assert_true(fabs(x[596 + k] - golden_sos[i].y[k]) < 1.2e-7);
        wt_sos_destroy(filter);
    }
}

static void highest_orders_stay_stable_and_flat(void **state)
{
    (void)state;
    for (int family = WT_BUTTERWORTH; family <= WT_BESSEL; family++)
        for (int order = 1; order <= WT_SOS_MAX_ORDER; order++) {
            double sos[WT_SOS_MAX_SECTIONS * 6], real, imaginary;
            int n_sections = 0;
            assert_ok(wt_sos_design(&(wt_sos_design_config){family, WT_LOW_PASS, order, 48000, {6000, 0}, 1, 80}, sos,
                                    &n_sections));
            for (int k = 0; k < n_sections; k++) assert_true(fabs(sos[6 * k + 5]) < 1); // product of the poles
            wt_sos_response(sos, n_sections, 0, &real, &imaginary);
            const bool rippled = family == WT_CHEBYSHEV_I || family == WT_ELLIPTIC;
            const double dip = rippled && order % 2 == 0 ? pow(10, -0.05) : 1;
            // the roots of Bessel polynomials above degree 20 are ill-conditioned, even in 64-bit mantissas
            const double bound = family == WT_BESSEL ? 1e-7 : 1e-10;
            if (!(fabs(real - dip) < bound)) fail_msg("family %d order %d: %g at 0", family, order, real - dip);
            wt_sos_response(sos, n_sections, 0.125, &real, &imaginary);
            const double edge_db = 20 * log10(hypot(real, imaginary));
            if (family == WT_BUTTERWORTH) assert_true(fabs(edge_db + 3.0103) < 1e-4);
            if (rippled) assert_true(fabs(edge_db + 1) < 1e-6);
            if (family == WT_CHEBYSHEV_II) assert_true(fabs(edge_db + 80) < 1e-4);
        }
}

static void initial_states_are_scipys(void **state)
{
    (void)state;
    double sos[WT_SOS_MAX_SECTIONS * 6], zi[WT_SOS_MAX_SECTIONS * 2], long_zi[5];
    int n_sections = 0;
    butterworth_4(sos, &n_sections);
    assert_ok(wt_sos_zi(sos, n_sections, zi));
    for (int k = 0; k < 4; k++) assert_true(fabs(zi[k] - golden_zi[k]) < 1e-12);
    assert_ok(wt_lfilter_zi(golden_lfilter_b, golden_lfilter_a, 6, long_zi));
    for (int k = 0; k < 5; k++) assert_true(fabs(long_zi[k] - golden_lfilter_zi[k]) < 1e-12);

    float constant[300], level[2] = {0.25f, -3}, *lines[2] = {constant, constant};
    wt_sos *filter = filter_of(sos, n_sections, 2);
    wt_sos_reset_to(filter, level);
    for (int c = 0; c < 2; c++) { // a filter that begins in its steady state does not move
        for (int n = 0; n < 300; n++) constant[n] = level[c];
        wt_sos *one = filter_of(sos, n_sections, 1);
        wt_sos_reset_to(one, level + c);
        wt_sos_process(one, (const float *const *)lines, lines, 300);
        for (int n = 0; n < 300; n++) assert_true(fabsf(constant[n] - level[c]) < 1e-6f);
        wt_sos_destroy(one);
    }
    wt_sos_destroy(filter);
}

static void forward_backward_is_scipys(void **state)
{
    (void)state;
    double sos[WT_SOS_MAX_SECTIONS * 6];
    int n_sections = 0;
    float x[100], y[100];
    uint64_t seed = 1;
    for (int n = 0; n < 100; n++) x[n] = noise(&seed) + 0.5f;
    butterworth_4(sos, &n_sections);
    assert_ok(wt_sos_filtfilt(sos, n_sections, x, y, 100, 0));
    for (int n = 0; n < 100; n++) assert_true(fabs(y[n] - golden_filtfilt[n]) < 1.2e-7);
    assert_ok(wt_sos_filtfilt(sos, n_sections, x, x, 100, -1));
    for (int n = 0; n < 100; n++) assert_true(fabs(x[n] - golden_filtfilt_unpadded[n]) < 1.2e-7);
}

static void emphasis_is_librosas(void **state)
{
    (void)state;
    float x[100], y[100], z[100];
    uint64_t seed = 1;
    for (int n = 0; n < 100; n++) x[n] = noise(&seed) + 0.5f;
    wt_preemphasis(x, y, 100, 0.97, NULL);
    for (int n = 0; n < 100; n++) assert_true(fabs(y[n] - golden_preemphasis[n]) < 2.4e-7); // up to 4.6 in size
    wt_deemphasis(x, z, 100, 0.97, NULL);
    for (int n = 0; n < 100; n++) assert_true(fabs(z[n] - golden_deemphasis[n]) < 1e-6); // up to 15 in size
    wt_deemphasis(y, z, 100, 0.97, NULL);
    assert_snr_db(x, z, 100, 125); // rounding of y, summed by 1 / (1 - 0.97)

    float whole[100], parts[100];
    double before = 0, after = 0, rest = 0;
    wt_preemphasis(x, whole, 100, 0.9, &before);
    before = 0;
    for (int n = 0; n < 100; n += 10) wt_preemphasis(x + n, parts + n, 10, 0.9, &before);
    assert_memory_equal(whole, parts, sizeof whole);
    wt_deemphasis(whole, y, 100, 0.9, &after);
    for (int n = 0; n < 100; n += 20) wt_deemphasis(whole + n, parts + n, 20, 0.9, &rest);
    assert_memory_equal(y, parts, sizeof y);
    assert_snr_db(x, y, 100, 130);
}

static void every_block_size_and_channel_count_gives_the_same_bits(void **state)
{
    (void)state;
    enum { N = 2000, CHANNELS = 11 };
    static float x[CHANNELS][N], whole[CHANNELS][N], parts[CHANNELS][N], alone[N];
    const int sizes[] = {1, 63, 64, 65, 253, 7};
    double sos[WT_SOS_MAX_SECTIONS * 6];
    int n_sections = 0;
    uint64_t seed = 3;
    const float *in[CHANNELS];
    float *out[CHANNELS];
    assert_ok(wt_sos_design(&(wt_sos_design_config){WT_ELLIPTIC, WT_BAND_PASS, 5, 48000, {300, 3000}, 0, 0}, sos,
                            &n_sections));
    for (int c = 0; c < CHANNELS; c++)
        for (int n = 0; n < N; n++) x[c][n] = n < 700 ? noise(&seed) : 0;
    wt_sos *filter = filter_of(sos, n_sections, CHANNELS);
    for (int c = 0; c < CHANNELS; c++) in[c] = x[c], out[c] = whole[c];
    wt_sos_process(filter, in, out, N);
    wt_sos_reset(filter);
    for (int at = 0, turn = 0; at < N; turn++) {
        const int n = sizes[turn % 6] < N - at ? sizes[turn % 6] : N - at;
        for (int c = 0; c < CHANNELS; c++) in[c] = x[c] + at, out[c] = parts[c] + at;
        wt_sos_process(filter, in, out, n);
        at += n;
    }
    assert_memory_equal(whole, parts, sizeof whole);
    wt_sos *one = filter_of(sos, n_sections, 1);
    wt_sos_process(one, (const float *[]){x[10]}, (float *[]){alone}, N);
    assert_memory_equal(whole[10], alone, sizeof alone);
    wt_sos_destroy(filter);
    wt_sos_destroy(one);
}

static void a_bad_sample_is_gone_within_64_frames_and_silence_ends_in_zero(void **state)
{
    (void)state;
    static float x[64 * 400];
    double sos[WT_SOS_MAX_SECTIONS * 6];
    int n_sections = 0;
    butterworth_4(sos, &n_sections);
    wt_sos *filter = filter_of(sos, n_sections, 1);
    x[3] = NAN;
    x[100] = 1;
    wt_sos_process(filter, (const float *[]){x}, (float *[]){x}, 64 * 400);
    for (int n = 64; n < 64 * 400; n++) assert_true(isfinite(x[n]));
    assert_true(x[102] != 0);
    assert_true(x[64 * 400 - 1] == 0);
    wt_sos_destroy(filter);
}

static wt_status enqueue_rows(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                              size_t out_offset)
{
    return wt_sos_rows_enqueue(op, stream, in, in_offset, out, out_offset);
}

// Lengths around the 2048 frames that a GPU takes at a time; a low-pass that rings long, and 12 sections.
static void check_rows(wt_device *device)
{
    enum { ROWS = 3 };
    static const int lengths[] = {1, 9, 2047, 2049, 10007};
    const wt_sos_design_config designs[] = {
        {.order = 4, .rate_hz = 48000, .edge_hz = {30}},
        {.family = WT_ELLIPTIC, .band = WT_BAND_PASS, .order = 12, .rate_hz = 48000, .edge_hz = {2000, 9000}}};
    for (int d = 0; d < 2; d++)
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
            double sos[WT_SOS_MAX_SECTIONS][6];
            int n_sections;
            const size_t n = (size_t)lengths[k];
            assert_ok(wt_sos_design(&designs[d], sos[0], &n_sections));
            wt_sos *one = filter_of(sos[0], n_sections, 1);
            wt_sos_rows *many;
            assert_ok(wt_sos_rows_create(device, &(wt_sos_config){.sos = sos[0], .n_sections = n_sections}, ROWS,
                                         lengths[k], &many));
            float *x = noise_floats(ROWS * n, 8), *want = floats(n), *got = floats(ROWS * n);
            run_on_stream(&(stream_call){device, enqueue_rows, many}, x, ROWS * n, got, ROWS * n);
            for (size_t row = 0; row < ROWS; row++) {
                const float *in = x + row * n;
                wt_sos_reset(one);
                wt_sos_process(one, &in, &(float *){want}, lengths[k]);
                assert_near_peak(want, got + row * n, n, 2e-6, d ? "elliptic" : "butterworth");
            }
            wt_sos_destroy(one), wt_sos_rows_destroy(many);
            free(x), free(want), free(got);
        }
    wt_device_close(device);
}

static void rows_on_a_cpu_give_what_each_row_gives(void **state)
{
    (void)state;
    check_rows(cpu_device());
}

static void cuda_gives_what_the_cpu_gives(void **state)
{
    (void)state;
    check_rows(gpu_device());
}

static wt_status enqueue_filtfilt(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                                  size_t out_offset)
{
    return wt_filtfilt_enqueue(op, stream, in, in_offset, out, out_offset);
}

// Rows alone and together, twice, the second time from a plan of one row more: the same bits.
static void check_filtfilt(wt_device *device)
{
    enum { ROWS = 3, N = 5003 };
    const wt_sos_design_config low = {.order = 5, .rate_hz = 48000, .edge_hz = {100}};
    static const int pads[] = {0, -1, 5000};
    double sos[WT_SOS_MAX_SECTIONS][6];
    int n_sections;
    assert_ok(wt_sos_design(&low, sos[0], &n_sections));
    const wt_sos_config config = {.sos = sos[0], .n_sections = n_sections};
    float *x = noise_floats((ROWS + 1) * N, 9), *want = floats(N), *got = floats(ROWS * N);
    float *more = floats((ROWS + 1) * N);
    for (int k = 0; k < 3; k++) {
        wt_filtfilt *plan;
        for (int one_more = 0; one_more < 2; one_more++) {
            assert_ok(wt_filtfilt_create(device, &config, pads[k], ROWS + one_more, N, &plan));
            const size_t count = (size_t)(ROWS + one_more) * N;
            run_on_stream(&(stream_call){device, enqueue_filtfilt, plan}, x, count, one_more ? more : got, count);
            wt_filtfilt_destroy(plan);
        }
        assert_memory_equal(got, more, ROWS * N * sizeof *got);
        for (int row = 0; row < ROWS; row++) {
            assert_ok(wt_sos_filtfilt(sos[0], n_sections, x + row * N, want, N, pads[k]));
            assert_near_peak(want, got + row * N, N, 2e-6, "filtfilt");
        }
    }
    free(x), free(want), free(got), free(more);
    wt_filtfilt *plan = NULL;
    assert_fails(wt_filtfilt_create(device, &config, 0, 1, 12, &plan), WT_ERR_LENGTH,
                 "sos: 12 frames with a padding of 18, want more frames than padding");
    assert_fails(wt_filtfilt_create(device, &config, 0, 0, 12, &plan), WT_ERR_BAD_ARG, "sos: 0 rows, want 1 or more");
    assert_null(plan);
    wt_device_close(device);
}

static void zero_phase_rows_on_a_cpu_give_what_each_row_gives(void **state)
{
    (void)state;
    check_filtfilt(cpu_device());
}

static void zero_phase_rows_on_a_gpu_give_what_the_cpu_gives(void **state)
{
    (void)state;
    check_filtfilt(gpu_device());
}

static void refuses_bad_designs(void **state)
{
    (void)state;
    double sos[WT_SOS_MAX_SECTIONS * 6];
    int n = 0;
    assert_fails(wt_sos_design(&(wt_sos_design_config){.order = 0, .edge_hz = {0.5}}, sos, &n), WT_ERR_BAD_ARG,
                 "sos: order 0, want 1..24");
    assert_fails(wt_sos_design(&(wt_sos_design_config){.order = 2, .rate_hz = 8000, .edge_hz = {4000}}, sos, &n),
                 WT_ERR_BAD_ARG, "sos: edge 4000 Hz, want above 0 and below 4000");
    const wt_sos_design_config swapped = {.band = WT_BAND_PASS, .order = 2, .edge_hz = {0.5, 0.25}};
    assert_fails(wt_sos_design(&swapped, sos, &n), WT_ERR_BAD_ARG, "sos: edges 0.5 and 0.25 Hz, want the lower first");
    assert_fails(wt_sos_design(&(wt_sos_design_config){.order = 2, .edge_hz = {NAN}}, sos, &n), WT_ERR_BAD_ARG,
                 "sos: edge nan Hz, want above 0 and below 1");
    assert_fails(wt_sos_design(&(wt_sos_design_config){.order = 2, .edge_hz = {0.5}, .ripple_db = -1}, sos, &n),
                 WT_ERR_BAD_ARG, "sos: ripple -1 dB and attenuation 0 dB, want 0..40 and 0..300");
    assert_fails(wt_sos_design(&(wt_sos_design_config){WT_ELLIPTIC, WT_LOW_PASS, 2, 0, {0.5, 0}, 10, 10}, sos, &n),
                 WT_ERR_BAD_ARG, "sos: ripple 10 dB, want below the attenuation of 10 dB");
    assert_int_equal(n, 0);
}

static void refuses_bad_sections(void **state)
{
    (void)state;
    wt_sos *filter = NULL;
    double sos[6] = {1, 0, 0, 0, 0, 0}, integrator[6] = {1, 0, 0, 1, -1, 0}, zi[2];
    float x[8] = {0};
    assert_fails(wt_sos_create(&(wt_sos_config){.sos = sos, .n_sections = 1}, &filter), WT_ERR_BAD_ARG,
                 "sos: coefficient 3 of section 0 is 0, want a finite number but 0");
    assert_fails(wt_sos_create(&(wt_sos_config){.sos = sos, .n_sections = 25}, &filter), WT_ERR_BAD_ARG,
                 "sos: 25 sections, want 1..24");
    sos[3] = 1;
    assert_fails(wt_sos_create(&(wt_sos_config){.sos = sos, .n_sections = 1, .channels = 1025}, &filter),
                 WT_ERR_BAD_ARG, "sos: 1025 channels, want 1..1024");
    assert_null(filter);
    assert_fails(wt_sos_filtfilt(sos, 1, x, x, 8, 8), WT_ERR_LENGTH,
                 "sos: 8 frames with a padding of 8, want more frames than padding");
    assert_fails(wt_sos_zi(integrator, 1, zi), WT_ERR_BAD_ARG, "filter: a[0] = 1, sum of a = 0, want neither to be 0");
    filter = filter_of(integrator, 1, 1); // an integrator still runs
    wt_sos_destroy(filter);
}

static const double pass_through[6] = {1, 0, 0, 1, 0, 0};

static wt_status create_filter(void *user)
{
    return wt_sos_create(&(wt_sos_config){.sos = pass_through, .n_sections = 1}, user);
}

static void destroy_filter(void *user) { wt_sos_destroy(*(wt_sos **)user); }

static wt_status filter_both_ways(void *user) { return wt_sos_filtfilt(pass_through, 1, user, user, 64, 0); }

static void keep(void *user) { (void)user; }

static void survives_failing_allocations(void **state)
{
    (void)state;
    wt_sos *filter = NULL;
    float x[64] = {0};
    assert_true(assert_survives_failing_alloc(create_filter, destroy_filter, &filter) >= 1);
    assert_true(assert_survives_failing_alloc(filter_both_ways, keep, x) >= 1);
}

static void filters_in_the_audio_thread(void **state)
{
    (void)state;
    static float x[2][500];
    const float level[2] = {0};
    double past = 0;
    wt_sos *filter = filter_of(pass_through, 1, 2);
    RT_SECTION
    {
        wt_sos_process(filter, (const float *[]){x[0], x[1]}, (float *[]){x[0], x[1]}, 500);
        wt_sos_reset_to(filter, level);
        wt_preemphasis(x[0], x[0], 500, 0.97, &past);
        wt_deemphasis(x[0], x[0], 500, 0.97, &past);
    }
    wt_sos_destroy(filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_and_band_responds_as_scipys),
        cmocka_unit_test(every_family_and_band_filters_as_scipys),
        cmocka_unit_test(highest_orders_stay_stable_and_flat),
        cmocka_unit_test(initial_states_are_scipys),
        cmocka_unit_test(forward_backward_is_scipys),
        cmocka_unit_test(emphasis_is_librosas),
        cmocka_unit_test(every_block_size_and_channel_count_gives_the_same_bits),
        cmocka_unit_test(a_bad_sample_is_gone_within_64_frames_and_silence_ends_in_zero),
        cmocka_unit_test(rows_on_a_cpu_give_what_each_row_gives),
        cmocka_unit_test(cuda_gives_what_the_cpu_gives),
        cmocka_unit_test(zero_phase_rows_on_a_cpu_give_what_each_row_gives),
        cmocka_unit_test(zero_phase_rows_on_a_gpu_give_what_the_cpu_gives),
        cmocka_unit_test(refuses_bad_designs),
        cmocka_unit_test(refuses_bad_sections),
        cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(filters_in_the_audio_thread),
    };
    return cmocka_run_group_tests_name("filter", tests, NULL, NULL);
}
