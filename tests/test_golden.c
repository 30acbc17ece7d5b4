/// The golden set itself: the reader of .npy, the manifest against its files, and that a wrong result is noticed.
#include "support/golden.h"
#include "support/npy.h"
#include "support/testing.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/// Every op of the set; a case lost from the manifest shows here.
static const char *const ops[] = {
    "rfft", "fft", "window", "stft", "istft", "reassigned_spectrogram", "mel", "melspectrogram", "logmel",
    "power_to_db", "amplitude_to_db", "db_to_power", "db_to_amplitude", "mfcc", "delta", "pcen", "griffinlim",
    "mel_to_stft", "nnls", "mfcc_to_mel", "whisper_logmel", "cqt", "vqt", "hybrid_cqt", "pseudo_cqt", "icqt",
    "cqt_lengths", "estimate_tuning", "piptrack", "chroma_filter", "chroma_stft", "chroma_cqt", "chroma_cens",
    "tonnetz", "hpss", "effects_hpss", "softmask", "median_filter", "nn_filter", "decompose", "yin", "pyin",
    "autocorrelate", "salience", "onset_strength", "onset_detect", "onset_backtrack", "peak_pick", "tempo",
    "tempogram", "fourier_tempogram", "tempogram_ratio", "beat_track", "plp", "phase_vocoder", "time_stretch",
    "pitch_shift", "spectral_centroid", "spectral_bandwidth", "spectral_rolloff", "spectral_flatness",
    "spectral_contrast", "poly_features", "zero_crossing_rate", "rms", "trim", "split", "preemphasis", "deemphasis",
    "resample", "butter", "cheby1", "cheby2", "ellip", "bessel", "firwin", "firls", "remez",
    "savgol_coeffs", "savgol_filter", "sosfilt", "sosfiltfilt", "lfilter", "convolve", "k_weighting", "loudness",
    "true_peak",
};

static char scratch[64];

/// Write a file of `version` with this header text and these bytes; its path.
static const char *npy_file(int version, const char *header, const void *data, size_t size)
{
    snprintf(scratch, sizeof scratch, "/tmp/wt_npy_XXXXXX");
    int fd = mkstemp(scratch);
    assert_true(fd >= 0);
    FILE  *file = fdopen(fd, "wb");
    size_t length = strlen(header);
    fwrite("\x93NUMPY", 1, 6, file);
    fwrite((unsigned char[]){(unsigned char)version, 0, length & 255, length >> 8 & 255, 0, 0}, 1, version == 2 ? 6 : 4,
           file);
    fwrite(header, 1, length, file);
    fwrite(data, 1, size, file);
    assert_int_equal(fclose(file), 0);
    return scratch;
}

#define HEADER(type, order, shape) "{'descr': '" type "', 'fortran_order': " order ", 'shape': " shape ", }\n"

static void assert_reads(int version, const char *header, const void *data, size_t size, const double *want, int count)
{
    npy a;
    assert_ok(npy_read(npy_file(version, header, data, size), &a));
    unlink(scratch);
    double *doubles = npy_doubles(&a);
    float  *floats = npy_floats(&a);
    assert_int_equal(a.count * (a.kind == 'c' ? 2 : 1), count);
    for (int k = 0; k < count; k++) {
        assert_true(doubles[k] == want[k]);
        assert_true(floats[k] == (float)want[k]);
    }
    free(doubles);
    free(floats);
    npy_free(&a);
    assert_null(a.data);
}

static void every_type_is_read(void **state)
{
    (void)state;
    float         f4[] = {1.5f, -2, 3, 0.25f};
    double        f8[] = {1e300, -2, 3, 0.1};
    int32_t       i4[] = {1, -2, INT32_MAX, 4};
    int64_t       i8[] = {1, -2, 1ll << 40, 4};
    unsigned char b1[] = {0, 1, 1, 0};
    double        from_f4[] = {1.5, -2, 3, 0.25}, from_f8[] = {1e20, -2, 3, 0.1};
    f8[0] = 1e20;
    assert_reads(1, HEADER("<f4", "False", "(2, 2)"), f4, sizeof f4, from_f4, 4);
    assert_reads(2, HEADER("<f8", "False", "(4,)"), f8, sizeof f8, from_f8, 4);
    assert_reads(1, HEADER("<c8", "False", "(2,)"), f4, sizeof f4, from_f4, 4);
    assert_reads(1, HEADER("<c16", "False", "(1, 2)"), f8, sizeof f8, from_f8, 4);
    assert_reads(1, HEADER("<i4", "False", "(4, 1)"), i4, sizeof i4, (double[]){1, -2, INT32_MAX, 4}, 4);
    assert_reads(2, HEADER("<i8", "False", "(2, 2)"), i8, sizeof i8, (double[]){1, -2, 1099511627776.0, 4}, 4);
    assert_reads(1, HEADER("|b1", "False", "(4,)"), b1, sizeof b1, (double[]){0, 1, 1, 0}, 4);
    assert_reads(1, HEADER("<f4", "False", "()"), f4, sizeof *f4, from_f4, 1);
    assert_reads(1, HEADER("<f4", "False", "(0, 3)"), f4, 0, from_f4, 0);
}

static void assert_refused(int version, const char *header, size_t size, const char *sentence)
{
    static const char zeros[64];
    npy               a;
    char              want[256];
    assert_int_equal(npy_read(npy_file(version, header, zeros, size), &a), WT_ERR_FORMAT);
    unlink(scratch);
    snprintf(want, sizeof want, "%s: %s", scratch, sentence);
    assert_string_equal(wt_last_error(), want);
    assert_null(a.data);
}

static void other_files_are_refused(void **state)
{
    (void)state;
    npy a;
    assert_fails(npy_read("/nowhere.npy", &a), WT_ERR_FILE, "/nowhere.npy: cannot open");
    assert_refused(1, HEADER(">f4", "False", "(2,)"), 8,
                   "npy type >f4, want <f4 <f8 <c8 <c16 <i4 <i8 or |b1");
    assert_refused(1, HEADER("<f4", "True", "(2, 1)"), 8, "npy order is Fortran, want C");
    assert_refused(1, HEADER("<f4", "False", "(3,)"), 8, "8 bytes of elements, want 12");
    assert_refused(1, HEADER("<f4", "False", "(1,)"), 8, "8 bytes of elements, want 4");
    assert_refused(3, HEADER("<f4", "False", "(2,)"), 8, "npy version 3, want 1 or 2");
    assert_refused(1, HEADER("<f4", "False", "(x,)"), 8, "npy shape is not a list of numbers");
    assert_refused(1, HEADER("<f4", "False", "(1,1,1,1,1,1,1,1,1)"), 4, "more than 8 dimensions");
    assert_refused(1, HEADER("<f8", "False", "(4294967296, 4294967296)"), 8, "npy shape too large");
    assert_refused(1, "{}", 8, "npy header without a type");
    assert_refused(1, "{'descr': '<f4', 'fortran_order': False}", 8, "npy header without a shape");
}

static size_t kept(size_t count, size_t step)
{
    return (count + step - 1) / step;
}

static void every_case_has_its_files_and_shapes(void **state)
{
    (void)state;
    assert_true(golden_count() >= 140);
    for (int k = 0; k < golden_count(); k++) {
        const golden_case *g = golden_at(k);
        assert_ptr_equal(golden_find(g->name), g); // so no name stands twice
        size_t rows = kept(g->rows, g->row_step), columns = kept(g->columns, g->column_step);
        if (golden_error_double(g, golden_values(g), g->rows, g->columns + 1) != HUGE_VAL)
            fail_msg("%s: a wrong shape is accepted", g->name);
        if (golden_stored_count(g) != rows * columns)
            fail_msg("%s: %zu values stored, want %zu", g->name, golden_stored_count(g), rows * columns);
        if (!(g->peak > 0) || !(g->bound >= 0) || !(g->goal <= g->bound)) fail_msg("%s: peak, bound, goal", g->name);
        if ((g->kind == 'i') != (g->bound == 0)) fail_msg("%s: bound %g of kind %c", g->name, g->bound, g->kind);
        if ((g->sums == NULL) != (g->row_step * g->column_step == 1)) fail_msg("%s: sums", g->name);
        for (int i = 0; i < GOLDEN_MAX_INPUTS && g->inputs[i]; i++) {
            size_t       count, shape[2];
            const float *x = golden_input(g, i, &count);
            golden_input_shape(g, i, shape);
            if (count == 0 || count != shape[0] * shape[1]) fail_msg("%s: input %s is empty", g->name, g->inputs[i]);
            for (size_t n = 0; n < count; n++)
                if (!isfinite(x[n])) fail_msg("%s: input %s is not finite at %zu", g->name, g->inputs[i], n);
        }
    }
}

static void every_op_has_a_case(void **state)
{
    (void)state;
    const int n_ops = (int)(sizeof ops / sizeof *ops);
    int       seen = 0;
    for (int k = 0; k < n_ops; k++)
        for (const golden_case *g = NULL; (g = golden_next(ops[k], g));) seen++;
    assert_int_equal(seen, golden_count()); // so no case has an op that is not listed
}

static void parameters_are_found(void **state)
{
    (void)state;
    const golden_case *g = golden_find("stft_512_128_reflect");
    assert_int_equal(golden_int(g, "n_fft", 2048), 512);
    assert_int_equal(golden_int(g, "win_length", 77), 77);
    assert_string_equal(golden_text(g, "pad_mode", "constant"), "reflect");
    assert_false(golden_has(golden_find("istft_2048_512"), "length"));
    assert_true(golden_double(golden_find("mel_slaney_64_norminf"), "norm", 0) == HUGE_VAL);
    double margin[2];
    assert_int_equal(golden_list(golden_find("hpss_margin_harm"), "margin", margin, 2), 2);
    assert_true(margin[0] == 1.5 && margin[1] == 3.0);
}

static void a_whole_result_passes_and_one_wrong_number_does_not(void **state)
{
    (void)state;
    const golden_case *g = golden_find("mel_htk_40_nonorm"), *small = golden_find("window_hann_periodic");
    assert_null(small->sums);
    double *copy = malloc(sizeof *copy * small->columns);
    memcpy(copy, golden_values(small), sizeof *copy * small->columns);
    golden_check_double(small, copy, 1, small->columns);
    copy[small->columns - 1] += 1e-6 * small->peak;
    assert_true(golden_error_double(small, copy, 1, small->columns) > 9e-7);
    copy[3] = NAN;
    assert_true(golden_error_double(small, copy, 1, small->columns) == HUGE_VAL);
    free(copy);
    assert_non_null(g->sums);
}

/// The Fourier transform by its definition, as a judge that owes nothing to the script: whole and selected results.
static void a_dft_by_definition_meets_the_stored_ones(void **state)
{
    (void)state;
    for (const golden_case *g = NULL; (g = golden_next("rfft", g));) {
        int          n = golden_int(g, "n", 0), bins = n / 2 + 1;
        size_t       count;
        const float *y = golden_input(g, 0, &count);
        double      *out = calloc((size_t)bins * 2, sizeof *out);
        for (int b = 0; b < bins; b++)
            for (int k = 0; k < n; k++) {
                double angle = -2 * acos(-1.0) * (double)((long)b * k % n) / n;
                out[2 * b] += y[k] * cos(angle);
                out[2 * b + 1] += y[k] * sin(angle);
            }
        golden_check_within(g, out, 1, (size_t)bins, 1e-12);
        if (g->sums) { // bin 1 is not stored: only its sum can tell
            out[2] += 100 * g->peak;
            assert_true(golden_error_double(g, out, 1, (size_t)bins) > 0.1);
        }
        free(out);
    }
}

static void the_noise_input_is_the_generator_of_the_tests(void **state)
{
    (void)state;
    size_t       count;
    const float *y = golden_input(golden_find("rfft_2048"), 0, &count);
    uint64_t     seed = 1;
    for (size_t n = 0; n < count; n++) assert_true(y[n] == noise(&seed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_read),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(every_case_has_its_files_and_shapes),
        cmocka_unit_test(every_op_has_a_case),
        cmocka_unit_test(parameters_are_found),
        cmocka_unit_test(a_whole_result_passes_and_one_wrong_number_does_not),
        cmocka_unit_test(a_dft_by_definition_meets_the_stored_ones),
        cmocka_unit_test(the_noise_input_is_the_generator_of_the_tests),
    };
    return cmocka_run_group_tests_name("golden", tests, NULL, NULL);
}
