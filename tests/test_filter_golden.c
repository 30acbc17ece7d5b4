// Filters, resampling and loudness against the golden set (SciPy and librosa in float64).
#include "support/golden.h"
#include "support/testing.h"

#include <warptone/filter.h>
#include <warptone/fir_design.h>
#include <warptone/loudness.h>
#include <warptone/overlap_save.h>
#include <warptone/resample.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loudness_kernel.h"

static int index_of(const char *name, const char *const *names, int n)
{
    for (int k = 0; k < n; k++)
        if (!strcmp(name, names[k])) return k;
    fail_msg("unknown name '%s'", name);
    return -1;
}

// The sections that a case's parameters describe.
static int design(const golden_case *g, const char *family, double *sos)
{
    static const char *const families[] = {"butter", "cheby1", "cheby2", "ellip", "bessel"};
    static const char *const bands[] = {"lowpass", "highpass", "bandpass", "bandstop"};
    wt_sos_design_config config = {.family = index_of(family, families, 5),
                                   .order = golden_int(g, "n", 0),
                                   .rate_hz = golden_double(g, "fs", 0),
                                   .ripple_db = golden_double(g, "rp", 0),
                                   .attenuation_db = golden_double(g, "rs", 0)};
    int n_sections = 0;
    config.band = index_of(golden_text(g, "kind", ""), bands, 4);
    golden_list(g, "wn", config.edge_hz, 2);
    assert_ok(wt_sos_design(&config, sos, &n_sections));
    return n_sections;
}

static void sections_and_responses(void **state)
{
    (void)state;
    const char *const ops[] = {"butter", "cheby1", "cheby2", "ellip", "bessel"};
    for (int op = 0; op < 5; op++)
        for (const golden_case *g = NULL; (g = golden_next(ops[op], g));) {
            double sos[6 * WT_SOS_MAX_SECTIONS], response[2 * 33];
            const int n_sections = design(g, ops[op], sos);
            if (g->kind != 'c') {
                golden_check_double(g, sos, (size_t)n_sections, 6);
                continue;
            }
            for (int k = 0; k < 33; k++)
                wt_sos_response(sos, n_sections, k / 64.0, &response[2 * k], &response[2 * k + 1]);
            golden_check_double(g, response, 1, 33);
        }
}

static void filtering_forward_and_both_ways(void **state)
{
    (void)state;
    const char *const ops[] = {"sosfilt", "sosfiltfilt"};
    for (int op = 0; op < 2; op++)
        for (const golden_case *g = NULL; (g = golden_next(ops[op], g));) {
            double sos[6 * WT_SOS_MAX_SECTIONS];
            size_t n;
            const float *in = golden_input(g, 0, &n);
            float *out = malloc(n * sizeof *out);
            char family[16] = "";
            strncat(family, golden_text(g, "design", ""), sizeof family - 1);
            const int n_sections = design(g, family, sos);
            wt_sos *filter = NULL;
            assert_ok(wt_sos_create(&(wt_sos_config){.sos = sos, .n_sections = n_sections, .channels = 1}, &filter));
            if (op)
                assert_ok(wt_sos_filtfilt(sos, n_sections, in, out, (int)n, 0));
            else
                wt_sos_process(filter, &in, &out, (int)n);
            golden_check(g, out, 1, n);
            wt_sos_destroy(filter);
            free(out);
        }
}

static void recursions_and_taps(void **state)
{
    (void)state;
    for (const golden_case *g = NULL; (g = golden_next("lfilter", g));) {
        double sos[6] = {0}, b[8];
        float taps[8];
        size_t n;
        const float *in = golden_input(g, 0, &n);
        float *out = malloc((n + 8) * sizeof *out);
        const int n_b = golden_list(g, "b", b, 8), n_a = golden_list(g, "a", sos + 3, 3);
        if (n_a == 3) {
            wt_sos *filter = NULL;
            memcpy(sos, b, 3 * sizeof *sos);
            assert_ok(wt_sos_create(&(wt_sos_config){.sos = sos, .n_sections = 1, .channels = 1}, &filter));
            wt_sos_process(filter, &in, &out, (int)n);
            wt_sos_destroy(filter);
        } else {
            for (int k = 0; k < n_b; k++) taps[k] = (float)b[k];
            assert_ok(wt_fft_convolve(in, (int)n, taps, n_b, out));
        }
        golden_check(g, out, 1, n);
        free(out);
    }
}

static void emphasis(void **state)
{
    (void)state;
    for (int back = 0; back < 2; back++)
        for (const golden_case *g = NULL; (g = golden_next(back ? "deemphasis" : "preemphasis", g));) {
            size_t n;
            const double coefficient = golden_double(g, "coef", 0.97);
            const float *in = golden_input(g, 0, &n);
            float *out = malloc(n * sizeof *out);
            // librosa's zi is what the past adds to the first frame: -coefficient x[-1], or coefficient y[-1]
            double past = golden_double(g, "zi", 0) / (back ? coefficient : -coefficient);
            double *given = golden_has(g, "zi") ? &past : NULL;
            if (back)
                wt_deemphasis(in, out, (int)n, coefficient, given);
            else
                wt_preemphasis(in, out, (int)n, coefficient, given);
            golden_check(g, out, 1, n);
            free(out);
        }
}

static void windowed_designs(void **state)
{
    (void)state;
    for (const golden_case *g = NULL; (g = golden_next("firwin", g));) {
        static const char *const windows[] = {"hamming", "hann", "blackman", "kaiser"};
        double taps[256], cutoffs[4];
        const double nyquist_hz = golden_double(g, "fs", 2) / 2;
        wt_fir_window_config config = {.n_taps = golden_int(g, "n_taps", 0), .cutoffs = cutoffs};
        char window[16] = "";
        strncat(window, golden_text(g, "window", "hamming"), sizeof window - 1);
        char *comma = strchr(window, ',');
        if (comma) {
            config.kaiser_beta = atof(comma + 1);
            *comma = 0;
        }
        config.window = index_of(window, windows, 4);
        config.stop_zero = strcmp(golden_text(g, "kind", "lowpass"), "lowpass") != 0;
        config.n_cutoffs = golden_list(g, "cutoff", cutoffs, 4);
        for (int k = 0; k < config.n_cutoffs; k++) cutoffs[k] /= nyquist_hz;
        assert_ok(wt_fir_design_window(&config, taps));
        golden_check_double(g, taps, 1, (size_t)config.n_taps);
    }
}

static void designs_over_bands(void **state)
{
    (void)state;
    for (int exchange = 0; exchange < 2; exchange++)
        for (const golden_case *g = NULL; (g = golden_next(exchange ? "remez" : "firls", g));) {
            double taps[256], edges[16], desired[16], both[16], weights[8];
            wt_fir_bands_config config = {golden_int(g, "n_taps", 0), 0, edges, both, weights};
            config.n_bands = golden_list(g, "bands", edges, 16) / 2;
            golden_list(g, "desired", desired, 16);
            golden_list(g, "weight", weights, 8);
            for (int k = 0; k < 2 * config.n_bands; k++) {
                edges[k] /= golden_double(g, "fs", 2) / 2;
                both[k] = exchange ? desired[k / 2] : desired[k];
            }
            if (exchange)
                assert_ok(wt_fir_design_equiripple(&config, taps));
            else
                assert_ok(wt_fir_design_least_squares(&config, taps));
            golden_check_double(g, taps, 1, (size_t)config.n_taps);
        }
}

static void savitzky_golay(void **state)
{
    (void)state;
    for (const golden_case *g = NULL; (g = golden_next("savgol_coeffs", g));) {
        double taps[64], turned[64];
        const wt_savgol_config config = {golden_int(g, "width", 0), golden_int(g, "order", 0),
                                         golden_int(g, "derivative", 0), 0};
        assert_ok(wt_savgol_taps(&config, config.n_taps / 2, taps));
        for (int k = 0; k < config.n_taps; k++) turned[k] = taps[config.n_taps - 1 - k]; // SciPy's use='conv'
        golden_check_double(g, turned, 1, (size_t)config.n_taps);
    }
    for (const golden_case *g = NULL; (g = golden_next("savgol_filter", g));) {
        size_t n;
        const wt_savgol_config config = {golden_int(g, "width", 0), golden_int(g, "order", 0),
                                         golden_int(g, "derivative", 0), 0};
        const float *in = golden_input(g, 0, &n);
        float *out = malloc(n * sizeof *out);
        assert_ok(wt_savgol_filter(&config, in, out, (int)n));
        golden_check(g, out, 1, n);
        free(out);
    }
}

static void convolution(void **state)
{
    (void)state;
    const golden_case *g = golden_find("fftconvolve_full");
    size_t n_in, n_taps;
    const float *in = golden_input(g, 0, &n_in), *taps = golden_input(g, 1, &n_taps);
    float *out = malloc((n_in + n_taps) * sizeof *out);
    assert_ok(wt_fft_convolve(in, (int)n_in, taps, (int)n_taps, out));
    golden_check(g, out, 1, n_in + n_taps - 1);
    free(out);
}

static void check_resampled(const golden_case *g, wt_resample_quality quality)
{
    size_t n;
    int n_used, n_first, n_rest;
    const float *in = golden_input(g, 0, &n);
    const wt_resample_config config = {golden_int(g, "orig_sr", 0), golden_int(g, "target_sr", 0), 1, quality, false};
    const int room = (int)wt_resample_out_frames(&config, (int64_t)n) + 2;
    float *out = calloc((size_t)room, sizeof *out), *rest; // 44100 to 48000: librosa's own length is one zero more
    wt_resample *resampler = NULL;
    assert_ok(wt_resample_create(&config, &resampler));
    wt_resample_process(resampler, &in, (int)n, &n_used, &out, room, &n_first);
    rest = out + n_first;
    wt_resample_drain(resampler, &rest, room - n_first, &n_rest);
    for (int i = 0; i < n_first + n_rest && golden_int(g, "scale", 0); i++) out[i] *= sqrtf(2);
    assert_in_range(g->columns, n_first + n_rest, n_first + n_rest + 1);
    golden_check(g, out, 1, g->columns);
    wt_resample_destroy(resampler);
    free(out);
}

static void resampling(void **state)
{
    (void)state;
    int n_checked = 0;
    for (const golden_case *g = NULL; (g = golden_next("resample", g)); n_checked++)
        check_resampled(g, strcmp(golden_text(g, "res_type", ""), "polyphase") ? WT_RESAMPLE_SOXR_HQ
                                                                               : WT_RESAMPLE_POLYPHASE);
    assert_int_equal(n_checked, 25);
}

static void weighting_and_integrated_loudness(void **state)
{
    (void)state;
    for (const golden_case *g = NULL; (g = golden_next("k_weighting", g));) {
        loudness_weighting w;
        double sos[12];
        wt__loudness_weighting(golden_int(g, "sr", 48000), &w);
        for (int k = 0; k < 12; k++) sos[k] = k % 6 < 3 ? w.b[k / 6][k % 3] : w.a[k / 6][k % 3];
        golden_check_double(g, sos, 2, 6);
    }
    for (const golden_case *g = NULL; (g = golden_next("loudness", g));) {
        size_t n;
        const float *in = golden_input(g, 0, &n);
        wt_loudness *meter = NULL;
        wt_loudness_values values;
        assert_ok(wt_loudness_create(&(wt_loudness_config){golden_int(g, "sr", 48000), 1, NULL, false, true}, &meter));
        wt_loudness_process(meter, &in, (int)n);
        wt_loudness_query(meter, &values);
        golden_check_double(g, &values.integrated_lufs, 1, 1);
        wt_loudness_destroy(meter);
    }
}

static void true_peaks(void **state)
{
    (void)state;
    for (const golden_case *g = NULL; (g = golden_next("true_peak", g));) {
        size_t n;
        const float *in = golden_input(g, 0, &n);
        float peak;
        wt_loudness *meter = NULL;
        assert_ok(wt_loudness_create(&(wt_loudness_config){.channels = 1}, &meter));
        wt_loudness_process(meter, &in, (int)n);
        wt_loudness_peaks(meter, NULL, &peak);
        golden_check(g, &peak, 1, 1);
        wt_loudness_destroy(meter);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sections_and_responses),
        cmocka_unit_test(filtering_forward_and_both_ways),
        cmocka_unit_test(recursions_and_taps),
        cmocka_unit_test(emphasis),
        cmocka_unit_test(windowed_designs),
        cmocka_unit_test(designs_over_bands),
        cmocka_unit_test(savitzky_golay),
        cmocka_unit_test(convolution),
        cmocka_unit_test(resampling),
        cmocka_unit_test(weighting_and_integrated_loudness),
        cmocka_unit_test(true_peaks),
    };
    return cmocka_run_group_tests_name("filter golden", tests, NULL, NULL);
}
