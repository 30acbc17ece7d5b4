#include "support/failing_alloc.h"
#include "support/spectral_check.h"

#include <warptone/mfcc.h>

#include <stdlib.h>
#include <string.h>

static void coefficients_equal_librosas(void **state)
{
    (void)state;
    for (const golden_case *g = NULL; (g = golden_next("mfcc", g));) {
        size_t n;
        const float *x = golden_input(g, 0, &n);
        wt_mfcc_config c = {
            .mel = {.n_samples = (int64_t)n, .stft = golden_stft_config(g), .bank = golden_bank_config(g)},
            .n_mfcc = golden_int(g, "n_mfcc", 0),
            .dct_type = golden_int(g, "dct_type", 0),
            .no_norm = strstr(g->params, "norm=none") != NULL,
            .lifter = golden_double(g, "lifter", 0),
        };
        c.mel.stft.precise = true;            // logarithms of bands 80 dB below the loudest
        c.mel.bank.norm = WT_MEL_NORM_SLANEY; // `norm` is the cosine transform's
        wt_mfcc *mfcc;
        assert_ok(wt_mfcc_create(NULL, &c, &mfcc));
        const size_t rows = (size_t)wt_mfcc_coefficients(mfcc), columns = (size_t)wt_mfcc_frames(mfcc);
        float *out = floats(rows * columns);
        wt_mfcc_run(mfcc, x, out);
        golden_check(g, out, rows, columns);
        wt_mfcc_destroy(mfcc);
        free(out);
    }
}

// The golden coefficients are not stored: they are made as in the case before, in float.
static void bands_come_back_as_librosas(void **state)
{
    (void)state;
    const golden_case *g = golden_find("mfcc_to_mel");
    size_t n, shape[2];
    const float *mel = golden_input(g, 0, &n);
    golden_input_shape(g, 0, shape);
    const int n_mfcc = golden_int(g, "n_mfcc", 0), n_mels = golden_int(g, "n_mels", 0);
    float *db = floats(n), *mfcc = floats((size_t)n_mfcc * shape[1]);
    assert_ok(wt_db_from_power(NULL, mel, (int64_t)n, db));
    wt_mfcc_config c = {.n_mfcc = n_mfcc, .mel = {.bank = {.n_mels = n_mels}}};
    assert_ok(wt_mfcc_of_db(&c, db, (int64_t)shape[1], mfcc));
    assert_ok(wt_mfcc_to_mel(&c, mfcc, (int64_t)shape[1], db));
    golden_check(g, db, shape[0], shape[1]);
    free(db), free(mfcc);
}

static void all_coefficients_give_the_bands_back(void **state)
{
    (void)state;
    float db[40 * 70], mfcc[40 * 70], power[40 * 70];
    uint64_t seed = 4;
    for (int i = 0; i < 40 * 70; i++) db[i] = 20 * noise(&seed);
    for (int k = 0; k < 6; k++) {
        wt_mfcc_config c = {.n_mfcc = 40,
                            .dct_type = k / 2 + 1,
                            .no_norm = k % 2,
                            .lifter = 22 * (k % 2),
                            .mel = {.bank = {.n_mels = 40}}};
        assert_ok(wt_mfcc_of_db(&c, db, 70, mfcc));
        assert_ok(wt_mfcc_to_mel(&c, mfcc, 70, power));
        assert_ok(wt_db_from_power(&(wt_db_config){.no_top = true}, power, 40 * 70, power));
        assert_snr_db(db, power, 40 * 70, 110); // sums of 40 floats, twice
    }
}

static wt_status enqueue_mfcc(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                              size_t out_offset)
{
    return wt_mfcc_enqueue(op, stream, in, in_offset, out, out_offset);
}

enum { N = 20000, LINES = 6 };

static const wt_mfcc_config shapes[] = {
    {.mel = {.n_samples = N, .n_signals = 3, .stft = {.channels = 2}}},
    {.mel = {.n_samples = N, .n_signals = 6, .stft = {.n_fft = 400, .hop = 160}, .bank = {.n_mels = 40, .htk = true}},
     .n_mfcc = 13,
     .lifter = 22},
    {.mel = {.n_samples = N,
             .n_signals = 3,
             .stft = {.n_fft = 400, .hop = 160, .channels = 2},
             .bank = {.n_mels = 80},
             .db = {.top_db = 60}},
     .n_mfcc = 40},
    {.mel = {.n_samples = N,
             .n_signals = 6,
             .stft = {.n_fft = 512, .hop = 100},
             .bank = {.n_mels = 41},
             .db = {.no_top = true}},
     .n_mfcc = 41,
     .dct_type = 1},
    // what no thread block holds: a prime, what is long, a tile of more bands
    {.mel = {.n_samples = N, .n_signals = 6, .stft = {.n_fft = 1009, .hop = 400}, .bank = {.n_mels = 60}}},
    {.mel = {.n_samples = N, .n_signals = 3, .stft = {.n_fft = 10240, .channels = 2}}, .n_mfcc = 40, .dct_type = 3},
    {.mel = {.n_samples = N, .n_signals = 3, .stft = {.channels = 2}, .bank = {.n_mels = 500}}, .n_mfcc = 500},
};

static void check_device(wt_device *device, double bound)
{
    float *x = noise_floats(LINES * N, 8);
    for (int i = 0; i < N; i++) x[i] *= 0.01f;
    for (int i = 0; i < LINES * N; i++) // some frames lie below a limit, others do not
        if (i % N > N / 2 && i % N < N * 3 / 4) x[i] *= 1e-4f;
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        wt_mfcc *mfcc;
        assert_ok(wt_mfcc_create(NULL, &shapes[k], &mfcc));
        const size_t count = LINES * (size_t)wt_mfcc_frames(mfcc) * (size_t)wt_mfcc_coefficients(mfcc);
        float *want = floats(count), *got = floats(count);
        wt_mfcc_run(mfcc, x, want);
        wt_mfcc_destroy(mfcc);
        assert_ok(wt_mfcc_create(device, &shapes[k], &mfcc));
        run_on_stream(&(stream_call){device, enqueue_mfcc, mfcc}, x, LINES * N, got, count);
        assert_near_peak(want, got, count, bound, "mfcc on a device");
        wt_mfcc_destroy(mfcc);
        free(want), free(got);
    }
    free(x);
    wt_device_close(device);
}

static void threads_give_the_same_bits(void **state)
{
    (void)state;
    check_device(cpu_device(), 0);
}

static void cuda_equals_the_cpu(void **state)
{
    (void)state;
    check_device(gpu_device(), 2e-6);
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    wt_mfcc *mfcc = NULL;
    const wt_mel_config mel = {.n_samples = 99};
    assert_fails(wt_mfcc_create(NULL, &(wt_mfcc_config){.mel = mel, .n_mfcc = 129}, &mfcc), WT_ERR_BAD_ARG,
                 "mfcc: 129 coefficients, want 1..128 (bands)");
    assert_fails(wt_mfcc_create(NULL, &(wt_mfcc_config){.mel = mel, .dct_type = 4}, &mfcc), WT_ERR_BAD_ARG,
                 "mfcc: DCT type 4, want 1..3");
    assert_fails(wt_mfcc_create(NULL, &(wt_mfcc_config){.mel = mel, .lifter = -1}, &mfcc), WT_ERR_BAD_ARG,
                 "mfcc: lifter -1, want 0 or more");
    assert_fails(wt_mfcc_create(NULL, &(wt_mfcc_config){.mel = {.n_samples = 0}}, &mfcc), WT_ERR_BAD_ARG,
                 "mel: a signal of 0 samples, want 1 or more");
    assert_null(mfcc);
    wt_mfcc_destroy(NULL);
}

static wt_status create_one(void *mfcc)
{
    return wt_mfcc_create(NULL, &(wt_mfcc_config){.mel = {.n_samples = 999}}, mfcc);
}

static void destroy_one(void *mfcc) { wt_mfcc_destroy(*(wt_mfcc **)mfcc); }

static void create_survives_failing_memory(void **state)
{
    (void)state;
    wt_mfcc *mfcc = NULL;
    assert_survives_failing_alloc(create_one, destroy_one, &mfcc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coefficients_equal_librosas),
        cmocka_unit_test(bands_come_back_as_librosas),
        cmocka_unit_test(all_coefficients_give_the_bands_back),
        cmocka_unit_test(threads_give_the_same_bits),
        cmocka_unit_test(cuda_equals_the_cpu),
        cmocka_unit_test(bad_input_gets_a_sentence),
        cmocka_unit_test(create_survives_failing_memory),
    };
    return cmocka_run_group_tests_name("mfcc", tests, NULL, NULL);
}
