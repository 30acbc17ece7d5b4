#include "support/testing.h"
#include "support/chain_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define RATE 48000.0

// "taps=N channels=C": noise, another one a channel.
static float tap_at(int c, int k)
{
    uint64_t seed = (uint64_t)(c * 1000003 + k) * 2654435761u + 12345;
    noise(&seed);
    return noise(&seed);
}

static wt_status load_made_up(void *user, const char *path, double rate_hz, float **audio, int *channels, int *n_frames)
{
    (void)user, (void)rate_hz;
    *audio = NULL;
    if (sscanf(path, "taps=%d channels=%d", n_frames, channels) < 2)
        return wt_fail(WT_ERR_FILE, "file '%s' cannot be opened", path);
    *audio = malloc(sizeof(float) * (size_t)(*channels * *n_frames + 1));
    for (int i = 0; i < *channels * *n_frames; i++) (*audio)[i] = tap_at(i / *n_frames, i % *n_frames);
    return WT_OK;
}

static wt_status try_build(const wt_setting *settings, int n_settings, int channels, wt_chain **chain)
{
    const wt_node_desc node = {.type = "fir", .settings = settings, .n_settings = n_settings};
    return wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = channels, .load = load_made_up},
                           &(wt_chain_desc){.nodes = &node, .n_nodes = 1}, chain);
}

// 110 dB: at most 1024 float products a sample, summed in two runs of 512, lose some 20 of 144 dB.
static void taps_match_direct_sums(void **state)
{
    (void)state;
    enum { FRAMES = 3000 };
    const int lengths[] = {1, 2, 63, 64, 65, 253, 1023, 1024};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int own = 1; own <= 3; own += 2) {
            char file[64];
            snprintf(file, sizeof file, "taps=%d channels=%d", lengths[i], own);
            const wt_setting setting = {"file", file, 0};
            wt_chain *chain;
            assert_ok(try_build(&setting, 1, 3, &chain));
            float *x = noise_signal(3 * FRAMES, 5), *y = malloc(sizeof *y * 3 * FRAMES),
                  *expected = malloc(sizeof *y * 3 * FRAMES);
            process_blocks(chain, x, y, FRAMES, 253, FRAMES);
            for (int c = 0; c < 3; c++)
                for (int n = 0; n < FRAMES; n++) {
                    double sum = 0;
                    for (int k = 0; k < lengths[i] && k <= n; k++)
                        sum += (double)tap_at(own == 1 ? 0 : c, k) * (double)x[c * FRAMES + n - k];
                    expected[c * FRAMES + n] = (float)sum;
                }
            assert_snr_db(expected, y, 3 * FRAMES, 110);
            assert_int_equal(wt_chain_latency_frames(chain), 0);
            free(x), free(y), free(expected);
            wt_chain_destroy(chain);
        }
}

// Gain of the chain's impulse response at a frequency.
static double gain_at(const float *h, int n, double frequency_hz)
{
    double re = 0, im = 0;
    for (int k = 0; k < n; k++) {
        re += (double)h[k] * cos(2 * 3.14159265358979324 * frequency_hz / RATE * k);
        im += (double)h[k] * sin(2 * 3.14159265358979324 * frequency_hz / RATE * k);
    }
    return sqrt(re * re + im * im);
}

// A Hamming window's stop band lies at -53 dB, its transition here within 3.3 / 255 of the rate, 620 Hz, each side
// half.
static void designs_pass_and_stop(void **state)
{
    (void)state;
    const struct {
        const char *shape;
        double pass[2], stop[2];
    } cases[] = {
        {"lowpass", {0, 2500}, {3500, 23000}},
        {"highpass", {3500, 24000}, {0, 2500}},
        {"bandpass", {3500, 8500}, {2500, 9500}},
        {"bandstop", {2500, 9500}, {3500, 8500}},
    };
    for (size_t i = 0; i < 4; i++) {
        const wt_setting settings[] = {{"design", cases[i].shape, 0}, {"frequency_hz", NULL, 3000},
                                       {"high_hz", NULL, 9000}};
        wt_chain *chain;
        assert_ok(try_build(settings, 3, 1, &chain));
        float x[300] = {1}, h[300];
        process_blocks(chain, x, h, 300, 64, 300);
        for (int k = 0; k < 2; k++) {
            assert_true(fabs(gain_at(h, 300, cases[i].pass[k]) - 1) < 0.005);
            assert_true(gain_at(h, 300, cases[i].stop[k]) < 0.0025);
        }
        for (int k = 0; k < 127; k++) assert_true(fabsf(h[k] - h[254 - k]) < 1e-7f);
        assert_int_equal(wt_chain_latency_frames(chain), 127); // symmetric about it
        wt_chain_destroy(chain);
    }
}

// The closed form of scipy.signal.firwin(7, 6000, fs=48000, window="hamming").
static void design_is_scipys_window_method(void **state)
{
    (void)state;
    const wt_setting settings[] = {{"design", "lowpass", 0}, {"frequency_hz", NULL, 6000}, {"n_taps", NULL, 7},
                                   {"latency", "none", 0}};
    wt_chain *chain;
    assert_ok(try_build(settings, 4, 1, &chain));
    assert_int_equal(wt_chain_latency_frames(chain), 0);
    float x[8] = {1}, h[8];
    process_blocks(chain, x, h, 8, 8, 8);
    double want[7], sum = 0;
    for (int k = -3; k <= 3; k++) {
        double ideal = k ? sin(0.25 * 3.14159265358979324 * k) / (3.14159265358979324 * k) : 0.25;
        sum += want[k + 3] = ideal * (0.54 + 0.46 * cos(3.14159265358979324 * k / 3));
    }
    for (int k = 0; k < 7; k++) assert_true(fabs((double)h[k] - want[k] / sum) < 1e-7);
    assert_true(h[7] == 0);
    wt_chain_destroy(chain);
}

static void block_sizes_change_no_bit(void **state)
{
    (void)state;
    const int n_taps[] = {3, 65, 255, 1023};
    for (int i = 0; i < 4; i++) {
        const wt_setting settings[] = {{"design", "highpass", 0}, {"n_taps", NULL, n_taps[i]}};
        const wt_node_desc node = {.type = "fir", .settings = settings, .n_settings = 2};
        check_block_sizes(&(wt_chain_desc){.nodes = &node, .n_nodes = 1}, 3, RATE);
    }
}

// Beside a dry path the filter's latency is evened out: low + high of the same length add up to a pure delay.
static void split_bands_add_up_to_a_delay(void **state)
{
    (void)state;
    const wt_setting low[] = {{"design", "lowpass", 0}}, high[] = {{"design", "highpass", 0}};
    const char *const from[] = {"in"}, *const both[] = {"low", "high"};
    const wt_node_desc nodes[] = {
        {.type = "fir", .id = "low", .inputs = from, .n_inputs = 1, .settings = low, .n_settings = 1},
        {.type = "fir", .id = "high", .inputs = from, .n_inputs = 1, .settings = high, .n_settings = 1},
        {.type = "mix", .inputs = both, .n_inputs = 2},
    };
    wt_chain *chain;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 1},
                              &(wt_chain_desc){.nodes = nodes, .n_nodes = 3}, &chain));
    float x[300] = {1}, y[300];
    process_blocks(chain, x, y, 300, 64, 300);
    assert_int_equal(wt_chain_latency_frames(chain), 127);
    // each band is scaled to gain 1 in its own middle, some 1e-4 from exact complements
    for (int n = 0; n < 300; n++) assert_true(fabsf(y[n] - (n == 127 ? 1.0f : 0.0f)) < 1e-3f);
    wt_chain_destroy(chain);
}

static void refusals_say_what_is_wanted(void **state)
{
    (void)state;
    const struct {
        wt_setting settings[3];
        int n;
        wt_status status;
        const char *sentence;
    } cases[] = {
        {{{"latency", "none", 0}}, 1, WT_ERR_BAD_ARG, "chain: fir: has neither, want either file or design"},
        {{{"file", "a.wav", 0}}, 1, WT_ERR_FILE, "chain: fir: file 'a.wav' cannot be opened"},
        {{{"file", "taps=1025 channels=1", 0}},
         1,
         WT_ERR_BAD_ARG,
         "chain: fir: file 'taps=1025 channels=1' has 1025 taps at this rate, want 1..1024; longer ones are for a"
         " convolution"},
        {{{"file", "taps=0 channels=1", 0}},
         1,
         WT_ERR_BAD_ARG,
         "chain: fir: file 'taps=0 channels=1' has 0 taps at this rate, want 1..1024; longer ones are for a "
         "convolution"},
        {{{"file", "taps=10 channels=3", 0}},
         1,
         WT_ERR_BAD_ARG,
         "chain: fir: file 'taps=10 channels=3' has 3 channels for an input of 2, want 1 or as many"},
        {{{"design", "lowpass", 0}, {"n_taps", NULL, 64}},
         2,
         WT_ERR_BAD_ARG,
         "chain: fir: n_taps is 64, want an odd number, so that the latency is whole frames"},
        {{{"design", "bandpass", 0}, {"frequency_hz", NULL, 5000}},
         2,
         WT_ERR_BAD_ARG,
         "chain: fir: frequency_hz is 5000 and high_hz is 4000, want rising corners"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        wt_chain *chain;
        assert_fails(try_build(cases[k].settings, cases[k].n, 2, &chain), cases[k].status, cases[k].sentence);
        assert_null(chain);
    }
}

static void gpu_agrees(void **state)
{
    (void)state;
    const wt_setting settings[] = {{"design", "bandpass", 0}, {"n_taps", NULL, 513}};
    const wt_node_desc node = {.type = "fir", .settings = settings, .n_settings = 2};
    check_cuda(&(wt_chain_desc){.nodes = &node, .n_nodes = 1}, 3, RATE, 0, -1, 0, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taps_match_direct_sums),
        cmocka_unit_test(designs_pass_and_stop),
        cmocka_unit_test(design_is_scipys_window_method),
        cmocka_unit_test(block_sizes_change_no_bit),
        cmocka_unit_test(split_bands_add_up_to_a_delay),
        cmocka_unit_test(refusals_say_what_is_wanted),
        cmocka_unit_test(gpu_agrees),
    };
    return cmocka_run_group_tests_name("fir", tests, NULL, NULL);
}
