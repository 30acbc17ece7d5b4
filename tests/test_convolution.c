#include "support/testing.h"
#include "support/chain_check.h"
#include "support/realtime.h"
#include "../dsp/chain/chain_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATE 48000.0

// ---- responses from a loader that makes them up: "taps=N channels=C"

static float response_at(int c, int k, int n_taps)
{
    uint64_t seed = (uint64_t)(c * 1000003 + k) * 2654435761u + 12345;
    noise(&seed);
    return noise(&seed) * expf(-4.0f * (float)k / (float)n_taps);
}

static wt_status load_made_up(void *user, const char *path, double rate_hz, float **audio, int *channels, int *n_frames)
{
    (void)user;
    int n_taps = 0, at_rate = 0;
    *audio = NULL;
    if (sscanf(path, "taps=%d channels=%d rate=%d", &n_taps, channels, &at_rate) < 2)
        return wt_fail(WT_ERR_FILE, "file '%s' cannot be opened", path);
    if (at_rate) n_taps = (int)(n_taps * rate_hz / at_rate); // the loader resamples
    *n_frames = n_taps;
    *audio = malloc(sizeof(float) * (size_t)(*channels * n_taps + 1));
    for (int c = 0; c < *channels; c++)
        for (int k = 0; k < n_taps; k++)
            (*audio)[c * n_taps + k] =
                at_rate ? expf(-50.0f * (float)k / (float)rate_hz) : response_at(c, k, n_taps);
    return WT_OK;
}

static wt_chain *build(const wt_setting *settings, int n_settings, int channels, double rate_hz)
{
    const wt_node_desc node = {.type = "convolution", .settings = settings, .n_settings = n_settings};
    wt_chain *chain = NULL;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = rate_hz, .channels = channels, .load = load_made_up},
                              &(wt_chain_desc){.nodes = &node, .n_nodes = 1}, &chain));
    return chain;
}

static wt_chain *build_file(const char *file, const char *partitions, int channels)
{
    const wt_setting settings[] = {{"file", file, 0}, {"partitions", partitions, 0}};
    return build(settings, 2, channels, RATE);
}

// y[n] += sum of h[k] x[n - k], in double, for frames first .. last - 1.
static void judge(const float *x, int channel, int n_taps, double *y, int first, int last)
{
    double *h = malloc(sizeof *h * (size_t)n_taps);
    for (int k = 0; k < n_taps; k++) h[k] = (double)response_at(channel, k, n_taps);
    for (int n = first; n < last; n++) {
        double sum = 0;
        for (int k = 0; k < n_taps && k <= n; k++) sum += h[k] * (double)x[n - k];
        y[n - first] += sum;
    }
    free(h);
}

static double snr_of(const double *expected, const float *y, int n)
{
    double signal = 0, error = 0;
    for (int i = 0; i < n; i++)
        signal += expected[i] * expected[i], error += (expected[i] - (double)y[i]) * (expected[i] - (double)y[i]);
    return error > 0 ? 10 * log10(signal / error) : 300;
}

static void check_against_judge(int n_taps, const char *partitions)
{
    enum { CHANNELS = 3, JUDGED = 600 };
    const int frames = n_taps + 10000;
    char file[64];
    snprintf(file, sizeof file, "taps=%d channels=%d", n_taps, CHANNELS);
    wt_chain *chain = build_file(file, partitions, CHANNELS);
    float *x = noise_signal(CHANNELS * frames, 5), *y = calloc((size_t)(CHANNELS * frames), sizeof *y);
    process_blocks(chain, x, y, frames, 253, frames);
    const int from[] = {0, frames - JUDGED};
    for (int c = 0; c < CHANNELS; c++)
        for (int part = 0; part < 2; part++) {
            double expected[JUDGED] = {0};
            judge(x + c * frames, c, n_taps, expected, from[part], from[part] + JUDGED);
            double snr = snr_of(expected, y + c * frames + from[part], JUDGED);
            if (snr < 110) fail_msg("%d taps, '%s', channel %d: %.1f dB, want 110", n_taps, partitions, c, snr);
        }
    assert_int_equal(wt_chain_latency_frames(chain), 0);
    assert_int_equal(wt_chain_tail_frames(chain), n_taps);
    free(x), free(y);
    wt_chain_destroy(chain);
}

// 110 dB: float transforms of up to 8192 points keep 130 dB, the products' sums over 30 partitions some 125.
static void every_length_matches_direct_convolution(void **state)
{
    (void)state;
    const int lengths[] = {1, 2, 63, 64, 65, 127, 128, 129, 1023, 1024, 1025, 1600, 8192, 12288, 12289, 20000};
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) check_against_judge(lengths[k], "64 512 4096");
    check_against_judge(1500, "64");
    check_against_judge(3000, "256");
    check_against_judge(9000, "128 256 1024 2048");
    check_against_judge(30000, "128 1024 8192");
}

// An impulse shows every tap at its place: the stages join without a gap or an overlap.
static void impulse_shows_every_tap_at_its_place(void **state)
{
    (void)state;
    enum { TAPS = 20000, FRAMES = 21000, AT = 37 };
    wt_chain *chain = build_file("taps=20000 channels=1", "64 512 4096", 1);
    float *x = calloc(FRAMES, sizeof *x), *y = malloc(sizeof *y * FRAMES);
    x[AT] = 1;
    process_blocks(chain, x, y, FRAMES, 64, FRAMES);
    for (int n = 0; n < FRAMES; n++) {
        float h = n >= AT && n - AT < TAPS ? response_at(0, n - AT, TAPS) : 0;
        if (!(fabsf(y[n] - h) < 2e-6f)) fail_msg("frame %d is %g, want %g", n, (double)y[n], (double)h);
    }
    free(x), free(y);
    wt_chain_destroy(chain);
}

static void check_blocks(double ms, const char *partitions, int channels, int own)
{
    const wt_setting settings[] = {{"synthetic_ms", NULL, ms}, {"partitions", partitions, 0}, {"mix", NULL, 0.7},
                                   {"synthetic_channels", NULL, own}};
    const wt_node_desc node = {.type = "convolution", .settings = settings, .n_settings = 4};
    check_block_sizes(&(wt_chain_desc){.nodes = &node, .n_nodes = 1}, channels, RATE);
}

static void block_sizes_change_no_bit(void **state)
{
    (void)state;
    const int lengths[] = {1, 63, 64, 65, 1023, 1024, 1025, 8192, 20000};
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) check_blocks(lengths[k] / 48.0, "64 512 4096", 3, 3);
    check_blocks(60, "128", 1, 1);
    check_blocks(200, "64 256 1024", 2, 4);
    check_blocks(200, "64 256 1024", 1, 2);
}

// Channels differ in the phase of their chunks, and in which of them reads the delay line anew.
static void every_channel_of_many_is_convolved(void **state)
{
    (void)state;
    enum { CHANNELS = 64, TAPS = 3000, FRAMES = 6000, JUDGED = 600 };
    wt_chain *chain = build_file("taps=3000 channels=1", "64 256", CHANNELS);
    float *x = calloc((size_t)CHANNELS * FRAMES, sizeof *x), *y = malloc(sizeof *y * CHANNELS * FRAMES);
    float *signal = noise_signal(FRAMES, 5);
    double expected[JUDGED] = {0};
    for (int c = 0; c < CHANNELS; c++) memcpy(x + c * FRAMES, signal, sizeof *x * FRAMES);
    process_blocks(chain, x, y, FRAMES, 64, FRAMES);
    judge(signal, 0, TAPS, expected, FRAMES - JUDGED, FRAMES);
    for (int c = 0; c < CHANNELS; c++) {
        double snr = snr_of(expected, y + c * FRAMES + FRAMES - JUDGED, JUDGED);
        if (snr < 110) fail_msg("channel %d: %.1f dB, want 110", c, snr);
    }
    free(x), free(y), free(signal);
    wt_chain_destroy(chain);
}

static void true_stereo_crosses_over(void **state)
{
    (void)state;
    enum { TAPS = 3000, FRAMES = 4000 };
    wt_chain *chain = build_file("taps=3000 channels=4", "64 256", 2);
    float *x = noise_signal(2 * FRAMES, 5), *y = malloc(sizeof *y * 2 * FRAMES);
    double expected[FRAMES];
    process_blocks(chain, x, y, FRAMES, 64, FRAMES);
    for (int out = 0; out < 2; out++) {
        memset(expected, 0, sizeof expected);
        judge(x, out, TAPS, expected, 0, FRAMES);              // LL, LR
        judge(x + FRAMES, 2 + out, TAPS, expected, 0, FRAMES); // RL, RR
        assert_true(snr_of(expected, y + out * FRAMES, FRAMES) > 110);
    }
    free(x), free(y);
    wt_chain_destroy(chain);
}

static void one_channel_opens_to_two(void **state)
{
    (void)state;
    enum { TAPS = 500, FRAMES = 1000 };
    wt_chain *chain = build_file("taps=500 channels=2", "64", 1);
    assert_int_equal(wt_chain_out_channels(chain), 2);
    float *x = noise_signal(FRAMES, 5), y[2 * FRAMES];
    process_blocks(chain, x, y, FRAMES, 64, FRAMES);
    for (int c = 0; c < 2; c++) {
        double expected[FRAMES] = {0};
        judge(x, c, TAPS, expected, 0, FRAMES);
        assert_true(snr_of(expected, y + c * FRAMES, FRAMES) > 110);
    }
    free(x);
    wt_chain_destroy(chain);
}

// The response is made for the chain's rate, not for its file's.
static void response_of_another_rate_is_resampled(void **state)
{
    (void)state;
    const wt_setting settings[] = {{"file", "taps=4410 channels=1 rate=44100", 0}};
    wt_chain *chain = build(settings, 1, 1, 96000);
    assert_int_equal(wt_chain_tail_frames(chain), 9600);
    float x[64] = {1}, y[64];
    process_blocks(chain, x, y, 64, 64, 64);
    assert_true(fabsf(y[48] - expf(-50.0f * 48 / 96000)) < 1e-6f);
    wt_chain_destroy(chain);
}

static void mix_and_normalize_scale(void **state)
{
    (void)state;
    const wt_setting settings[] = {{"file", "taps=300 channels=1", 0}, {"mix", NULL, 0.25}, {"gain_db", NULL, -6.0206},
                                   {"normalize", "energy", 0}};
    wt_chain *chain = build(settings, 4, 1, RATE);
    float x[400] = {1}, y[400];
    double energy = 0, want = 0;
    process_blocks(chain, x, y, 400, 64, 400);
    y[0] -= 0.75f;
    for (int k = 0; k < 400; k++) energy += (double)y[k] * (double)y[k];
    want = 0.125 * 0.125; // 0.25 of half
    assert_true(fabs(energy / want - 1) < 1e-4);
    wt_chain_destroy(chain);
}

static void processing_neither_allocates_nor_locks(void **state)
{
    (void)state;
    wt_chain *chain = build_file("taps=20000 channels=2", "64 512 4096", 2);
    float left[64] = {1}, right[64] = {0};
    float *both[] = {left, right};
    RT_SECTION
    {
        for (int block = 0; block < 150; block++) // more than two of the largest chunks
            (void)!wt_chain_process(chain, (const float *const *)both, both, 64);
    }
    wt_chain_destroy(chain);
}

static void refusals_say_what_is_wanted(void **state)
{
    (void)state;
    const struct {
        wt_setting settings[2];
        int n, channels;
        wt_status status;
        const char *sentence;
    } cases[] = {
        {{{"mix", NULL, 1}}, 1, 1, WT_ERR_BAD_ARG, "chain: convolution: has neither, want either file or synthetic_ms"},
        {{{"file", "hall.wav", 0}}, 1, 1, WT_ERR_FILE, "chain: convolution: file 'hall.wav' cannot be opened"},
        {{{"file", "taps=0 channels=1", 0}}, 1, 1, WT_ERR_FORMAT,
         "chain: convolution: file 'taps=0 channels=1' holds no samples, want an impulse response"},
        {{{"file", "taps=48000 channels=1", 0}, {"max_ms", NULL, 500}}, 2, 1, WT_ERR_BAD_ARG,
         "chain: convolution: the response lasts 1000 ms, want at most max_ms, which is 500"},
        {{{"file", "taps=10 channels=3", 0}}, 1, 2, WT_ERR_BAD_ARG,
         "chain: convolution: the response has 3 channels for an input of 2, want 1, 2 or 4"},
        {{{"synthetic_ms", NULL, 10}, {"partitions", "64 96", 0}}, 2, 1, WT_ERR_BAD_ARG,
         "chain: convolution: partitions is '64 96', want up to 4 rising powers of two, the first 64..1024, the last at"
         " most 8192"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const wt_node_desc node = {.type = "convolution", .settings = cases[k].settings, .n_settings = cases[k].n};
        wt_chain *chain;
        assert_fails(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = cases[k].channels,
                                                        .load = load_made_up},
                                     &(wt_chain_desc){.nodes = &node, .n_nodes = 1}, &chain),
                     cases[k].status, cases[k].sentence);
        assert_null(chain);
    }
}

static void gpu_agrees(void **state)
{
    (void)state;
    const struct {
        double ms;
        const char *partitions;
        int channels, own;
    } cases[] = {{50, "64 512 4096", 1, 1}, {400, "64 512 4096", 3, 3}, {1, "64", 2, 2}, {100, "64 256 1024", 2, 4},
                 {30, "256", 1, 2}, {90, "64 512", 20, 1}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const wt_setting settings[] = {{"synthetic_ms", NULL, cases[k].ms}, {"partitions", cases[k].partitions, 0},
                                       {"synthetic_channels", NULL, cases[k].own}, {"mix", NULL, 0.8}};
        const wt_node_desc node = {.type = "convolution", .settings = settings, .n_settings = 4};
        check_cuda(&(wt_chain_desc){.nodes = &node, .n_nodes = 1}, cases[k].channels, RATE, 0, 0, 0.3f, 100);
    }
}

// The state goes to the layout of a GPU and back at every point of chunks and turns; what is summed again comes in
// another order, so 110 dB.
static void the_state_survives_another_backend(void **state)
{
    (void)state;
    enum { N = 60000 };
    const struct {
        const char *partitions, *ms, *response_channels;
    } cases[] = {{"64 512 4096", "400", "2"}, {"64", "30", "2"}, {"128 1024", "200", "4"}, {"512", "100", "1"}};
    for (int k = 0; k < 4; k++) {
        const wt_setting settings[] = {{"synthetic_ms", cases[k].ms, 0},
                                       {"synthetic_channels", cases[k].response_channels, 0},
                                       {"partitions", cases[k].partitions, 0}};
        const wt_node_desc node = {.type = "convolution", .settings = settings, .n_settings = 3};
        const wt_chain_desc desc = {.nodes = &node, .n_nodes = 1};
        float *x = noise_signal(2 * N, 21), *want = calloc(2 * N, sizeof *want), *y = calloc(2 * N, sizeof *y);
        wt_chain *chain = NULL;
        assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = 48000, .channels = 2}, &desc, &chain));
        process_blocks(chain, x, want, N, 64, N);
        assert_ok(wt_chain_reset(chain, 0));
        for (int done = 0, n, turn = 0; done < N; done += n, turn++) {
            n = 64 * (1 + turn % 7) + (turn % 3 ? 0 : 13);
            if (n > N - done) n = N - done;
            process_blocks(chain, x + done, y + done, n, 64, N);
            const chain_node *at = &chain->nodes[0];
            for (int from_gpu = 0; from_gpu < 2; from_gpu++)
                at->type->adopt(chain->plans + at->place.plan, chain->memory + at->place.state, done + n, from_gpu);
        }
        for (int c = 0; c < 2; c++) assert_snr_db(want + c * N, y + c * N, N, 110);
        wt_chain_destroy(chain);
        free(x), free(want), free(y);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_matches_direct_convolution),
        cmocka_unit_test(impulse_shows_every_tap_at_its_place),
        cmocka_unit_test(block_sizes_change_no_bit),
        cmocka_unit_test(every_channel_of_many_is_convolved),
        cmocka_unit_test(true_stereo_crosses_over),
        cmocka_unit_test(one_channel_opens_to_two),
        cmocka_unit_test(response_of_another_rate_is_resampled),
        cmocka_unit_test(mix_and_normalize_scale),
        cmocka_unit_test(processing_neither_allocates_nor_locks),
        cmocka_unit_test(refusals_say_what_is_wanted),
        cmocka_unit_test(the_state_survives_another_backend),
        cmocka_unit_test(gpu_agrees),
    };
    return cmocka_run_group_tests_name("convolution", tests, NULL, NULL);
}
