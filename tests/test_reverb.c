#include "support/testing.h"
#include "support/chain_check.h"

#include <math.h>
#include <stdlib.h>

#define RATE 48000.0

static wt_chain *build(const wt_setting *settings, int n, int channels)
{
    const wt_node_desc node = {.type = "reverb", .settings = settings, .n_settings = n};
    const wt_chain_desc desc = {.nodes = &node, .n_nodes = 1};
    wt_chain *chain;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = channels}, &desc, &chain));
    return chain;
}

// [n_frames] impulse response of a mono chain; caller frees.
static float *response(const wt_setting *settings, int n, int n_frames)
{
    wt_chain *chain = build(settings, n, 1);
    float *x = calloc((size_t)n_frames, sizeof *x), *y = calloc((size_t)n_frames, sizeof *y);
    x[0] = 1;
    process_blocks(chain, x, y, n_frames, 1000, n_frames);
    wt_chain_destroy(chain);
    free(x);
    return y;
}

// `h` through a band-pass (two-pole, by the cookbook) around centre_hz, in place.
static void band_pass(float *h, int n_frames, double centre_hz, double q)
{
    double w = 2 * M_PI * centre_hz / RATE, alpha = sin(w) / (2 * q), x1 = 0, x2 = 0, y1 = 0, y2 = 0;
    for (int n = 0; n < n_frames; n++) {
        double y = (alpha * (h[n] - x2) + 2 * cos(w) * y1 - (1 - alpha) * y2) / (1 + alpha);
        x2 = x1, x1 = (double)h[n], y2 = y1, y1 = y;
        h[n] = (float)y;
    }
}

// T60 from the slope of Schroeder's backward integral between -5 and -35 dB (ISO 3382-1, T30), by the two crossings.
static double t60(const float *h, int n_frames)
{
    double *left = malloc(sizeof *left * (size_t)n_frames), sum = 0;
    int at5 = 0, at35 = 0;
    for (int n = n_frames; n--;) left[n] = sum += (double)h[n] * h[n];
    while (left[at5] > sum * pow(10, -0.5)) at5++;
    while (left[at35] > sum * pow(10, -3.5)) at35++;
    free(left);
    return (at35 - at5) / RATE * 2;
}

static void check_decay(double decay_s, double damping_hz, double size, double modulation, double band_hz, double want)
{
    const wt_setting settings[] = {{"decay_s", NULL, decay_s}, {"damping_hz", NULL, damping_hz}, {"mix", NULL, 1},
                                   {"size_m", NULL, size}, {"modulation", NULL, modulation},
                                   {"low_cut_hz", NULL, 10}};
    int n_frames = (int)(1.5 * decay_s * RATE);
    float *h = response(settings, 6, n_frames);
    double q = band_hz < 1000 ? 1.4 : 8; // where the decay changes with frequency a wide band shows its slowest part
    band_pass(h, n_frames, band_hz, q), band_pass(h, n_frames, band_hz, q);
    double got = t60(h, n_frames);
    if (fabs(got / want - 1) > 0.1)
        fail_msg("decay %g s, damping %g Hz, size %g m: T60 at %g Hz is %.3f s, want %.3f", decay_s, damping_hz, size,
                 band_hz, got, want);
    free(h);
}

// Within 10 %: the lines' filters are exact at 0 Hz and at damping_hz; the rest is the slope's own scatter.
static void it_decays_as_told_at_both_ends(void **state)
{
    (void)state;
    check_decay(1.6, 5000, 12, 0, 125, 1.6);
    check_decay(1.6, 5000, 12, 1, 125, 1.6); // modulation takes no energy away
    check_decay(1.6, 5000, 12, 0.3, 5000, 0.8);
    check_decay(0.4, 3000, 4, 0.3, 125, 0.4);
    check_decay(0.8, 3000, 4, 0.3, 3000, 0.4);
    check_decay(4, 6000, 40, 0.3, 125, 4);
}

// J. Abel, P. Huang, "A simple, robust measure of reverberation echo density", AES 121, 2006: the share of samples
// beyond one standard deviation in a window, over that of Gaussian noise, 0.3173. Above 0.9 the ear hears noise.
static double echo_density(const float *h, int n)
{
    double power = 0;
    int beyond = 0;
    for (int k = 0; k < n; k++) power += (double)h[k] * h[k];
    for (int k = 0; k < n; k++) beyond += (double)h[k] * h[k] > power / n;
    return beyond / 0.3173 / n;
}

static void echoes_become_dense(void **state)
{
    (void)state;
    const wt_setting settings[] = {{"mix", NULL, 1}, {"damping_hz", NULL, 20000}, {"decay_s", NULL, 3}};
    float *h = response(settings, 3, 24000);
    assert_true(echo_density(h + 7200, 2400) > 0.9);  // after 150 ms
    assert_true(echo_density(h + 19200, 2400) > 0.95); // after 400 ms
    free(h);
}

static void nothing_comes_before_pre_delay_and_shortest_line(void **state)
{
    (void)state;
    const wt_setting settings[] = {{"mix", NULL, 1}, {"pre_delay_ms", NULL, 50}};
    float *h = response(settings, 2, 9600);
    int first = 0;
    while (fabsf(h[first]) < 1e-5f) first++;
    // 12 m: 0.6 * 8 m / 343 m/s = 671.7 frames; 673 is prime
    assert_true(first >= 2400 + 671 - 2 && first < 2400 + 671 + 3);
    free(h);
}

// 250 ms are 48000 frames, more than 16 signed bits; 3 frames: the interpolator's reach.
static void a_long_pre_delay_at_a_high_rate_is_kept(void **state)
{
    (void)state;
    enum { FRAMES = 60000 };
    const wt_setting settings[] = {{"mix", NULL, 1}, {"pre_delay_ms", NULL, 250}, {"size_m", NULL, 1}};
    const wt_node_desc node = {.type = "reverb", .settings = settings, .n_settings = 3};
    wt_chain *chain;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = 192000, .channels = 1},
                              &(wt_chain_desc){.nodes = &node, .n_nodes = 1}, &chain));
    float *x = calloc(FRAMES, sizeof *x), *y = calloc(FRAMES, sizeof *y);
    int first = 0;
    x[0] = 1;
    process_blocks(chain, x, y, FRAMES, 1000, FRAMES);
    while (first < FRAMES && fabsf(y[first]) < 1e-5f) first++;
    assert_true(abs(first - 48000 - 223) <= 3); // 1 m: 0.6 * 0.667 m / 343 m/s = 223.9 frames, 223 is prime
    wt_chain_destroy(chain);
    free(x), free(y);
}

static double power(const float *x, int n)
{
    double sum = 0;
    for (int k = 0; k < n; k++) sum += (double)x[k] * x[k];
    return sum / n;
}

// Noise around 500 Hz, where nothing is damped or cut, comes out as loud as it went in; 2 dB: narrow noise of two
// seconds has some 700 degrees of freedom (0.2 dB) but few modes of a small room.
static void the_level_stays_for_every_decay_and_size(void **state)
{
    (void)state;
    const double cases[][2] = {{0.5, 3}, {2, 12}, {2, 60}, {5, 12}};
    for (int k = 0; k < 4; k++) {
        enum { FRAMES = 480000, TAIL = 96000 };
        const wt_setting settings[] = {{"mix", NULL, 1}, {"damping_hz", NULL, 96000}, {"decay_s", NULL, cases[k][0]},
                                       {"size_m", NULL, cases[k][1]}};
        wt_chain *chain = build(settings, 4, 2);
        float *x = noise_signal(2 * FRAMES, 5), *y = calloc(2 * FRAMES, sizeof *y);
        for (int c = 0; c < 2; c++) band_pass(x + c * FRAMES, FRAMES, 500, 1.4);
        process_blocks(chain, x, y, FRAMES, 4800, FRAMES);
        for (int c = 0; c < 2; c++) {
            double db = 10 * log10(power(y + c * FRAMES + FRAMES - TAIL, TAIL) / power(x + c * FRAMES, FRAMES));
            if (fabs(db) > 2) fail_msg("decay %g s, size %g m: %.1f dB", cases[k][0], cases[k][1], db);
        }
        free(x), free(y);
        wt_chain_destroy(chain);
    }
}

static void dc_does_not_build_up(void **state)
{
    (void)state;
    enum { FRAMES = 96000 };
    const wt_setting settings[] = {{"mix", NULL, 1}, {"decay_s", NULL, 20}};
    float *x = malloc(sizeof *x * FRAMES), *y = malloc(sizeof *y * FRAMES), sum = 0;
    for (int n = 0; n < FRAMES; n++) x[n] = 0.5f;
    wt_chain *chain = build(settings, 2, 1);
    process_blocks(chain, x, y, FRAMES, 4800, FRAMES);
    for (int n = FRAMES / 2; n < FRAMES; n++) sum += y[n] / (FRAMES / 2);
    assert_true(fabsf(sum) < 2e-3f); // the low cut lets no constant in; what is left is the tail of the step itself
    wt_chain_destroy(chain);
    free(x), free(y);
}

static void it_stays_finite_at_its_extremes(void **state)
{
    (void)state;
    enum { FRAMES = 96000 };
    const double size_m[] = {1, 100}, decay_s[] = {0.1, 60}, damping_hz[] = {200, 96000};
    float *x = noise_signal(FRAMES, 5), *y = malloc(sizeof *y * FRAMES);
    for (int n = FRAMES / 8; n < FRAMES; n++) x[n] = 0;
    for (int k = 0; k < 8; k++) {
        const wt_setting settings[] = {{"mix", NULL, 1}, {"size_m", NULL, size_m[k & 1]}, {"diffusion", NULL, 0.8},
                                       {"decay_s", NULL, decay_s[k / 2 & 1]}, {"modulation", NULL, 1},
                                       {"damping_hz", NULL, damping_hz[k / 4]}};
        wt_chain *chain = build(settings, 6, 1);
        process_blocks(chain, x, y, FRAMES, 4800, FRAMES);
        for (int n = 0; n < FRAMES; n++) assert_true(fabsf(y[n]) < 4); // 8 times the input's peak
        // the input has stopped at 0.25 s: the sound of the third second is weaker than that of the first
        assert_true(power(y + FRAMES * 3 / 4, FRAMES / 4) <= power(y + FRAMES / 8, FRAMES / 4));
        assert_int_equal(wt_chain_faults(chain), 0);
        wt_chain_destroy(chain);
    }
    free(x), free(y);
}

static void width_spreads_a_mono_input(void **state)
{
    (void)state;
    for (int wide = 0; wide <= 1; wide++) {
        enum { FRAMES = 96000 };
        const wt_setting settings[] = {{"mix", NULL, 1}, {"output", "stereo", 0}, {"width", NULL, wide}};
        wt_chain *chain = build(settings, 3, 1);
        assert_int_equal(wt_chain_out_channels(chain), 2);
        float *x = noise_signal(FRAMES, 5), *y = malloc(sizeof *y * 2 * FRAMES);
        process_blocks(chain, x, y, FRAMES, 4800, FRAMES);
        double both = 0;
        for (int n = 0; n < FRAMES; n++) both += (double)y[n] * y[FRAMES + n] / FRAMES;
        both /= sqrt(power(y, FRAMES) * power(y + FRAMES, FRAMES));
        if (wide) assert_true(fabs(both) < 0.15); // unrelated rows; 2 s of low-passed noise scatter by some 0.05
        else assert_true(both > 0.9999);
        wt_chain_destroy(chain);
        free(x), free(y);
    }
}

static const wt_setting small[] = {{"size_m", NULL, 3}, {"pre_delay_ms", NULL, 2}, {"mix", NULL, 0.6}};
static const wt_node_desc small_node = {.type = "reverb", .settings = small, .n_settings = 3};
static const wt_chain_desc small_chain = {.nodes = &small_node, .n_nodes = 1};
static const wt_setting spread[] = {{"size_m", NULL, 1}, {"output", "stereo", 0}, {"modulation", NULL, 1}};
static const wt_node_desc spread_node = {.type = "reverb", .settings = spread, .n_settings = 3};
static const wt_chain_desc spread_chain = {.nodes = &spread_node, .n_nodes = 1};

static void blocks_change_nothing(void **state)
{
    (void)state;
    check_block_sizes(&small_chain, 1, RATE);
    check_block_sizes(&small_chain, 2, RATE);
    check_block_sizes(&small_chain, 5, RATE);
    check_block_sizes(&spread_chain, 1, RATE);
}

// 100 dB: coefficients within 2 ulp, sums in another order, some ten rounds through the network.
static void gpu_agrees_while_the_decay_moves(void **state)
{
    (void)state;
    check_cuda(&small_chain, 2, RATE, 0, 0, 0.4f, 100);
}

static void gpu_agrees_while_the_pre_delay_moves(void **state)
{
    (void)state;
    check_cuda(&small_chain, 5, RATE, 0, 2, 9, 100);
}

static void gpu_agrees_from_mono_to_stereo(void **state)
{
    (void)state;
    check_cuda(&spread_chain, 1, RATE, 0, 7, 0.9f, 100);
}

static void bad_settings_are_refused(void **state)
{
    (void)state;
    const struct {
        wt_setting setting;
        const char *sentence;
    } cases[] = {
        {{"size_m", NULL, 300}, "chain: reverb: size_m is 300, want 1..100"},
        {{"output", "stereo", 0}, "chain: reverb: output is 'stereo' and the input has 3 channels, want 1 or 2"},
        {{"decay_s", NULL, 90}, "chain: reverb: decay_s is 90, want 0.1..60 s"},
    };
    for (int k = 0; k < 3; k++) {
        const wt_node_desc node = {.type = "reverb", .settings = &cases[k].setting, .n_settings = 1};
        wt_chain *chain;
        assert_fails(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 3},
                                     &(wt_chain_desc){.nodes = &node, .n_nodes = 1}, &chain),
                     WT_ERR_BAD_ARG, cases[k].sentence);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_decays_as_told_at_both_ends),
        cmocka_unit_test(echoes_become_dense),
        cmocka_unit_test(nothing_comes_before_pre_delay_and_shortest_line),
        cmocka_unit_test(a_long_pre_delay_at_a_high_rate_is_kept),
        cmocka_unit_test(the_level_stays_for_every_decay_and_size),
        cmocka_unit_test(dc_does_not_build_up),
        cmocka_unit_test(it_stays_finite_at_its_extremes),
        cmocka_unit_test(width_spreads_a_mono_input),
        cmocka_unit_test(blocks_change_nothing),
        cmocka_unit_test(gpu_agrees_while_the_decay_moves),
        cmocka_unit_test(gpu_agrees_while_the_pre_delay_moves),
        cmocka_unit_test(gpu_agrees_from_mono_to_stereo),
        cmocka_unit_test(bad_settings_are_refused),
    };
    return cmocka_run_group_tests_name("reverb", tests, NULL, NULL);
}
