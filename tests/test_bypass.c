// A node's bypass: its first input in its place, as late as its output; no click on the way; the node's state goes on.
#include "support/testing.h"
#include "support/chain_check.h"
#include "support/live_check.h"
#include "support/node_check.h"
#include "support/realtime.h"

#include <stdlib.h>
#include <string.h>

#define RATE 48000.0
enum { CHANNELS = 2, N = 24000 };

// A setting that each type takes, and room for a bypass behind it.
static int settings_of(const wt_node_type *type, wt_setting settings[2])
{
    const wt_setting *required = node_required(type->name);
    if (required) settings[0] = *required;
    return required != NULL;
}

static bool on_cpu(const wt_node_type *type) { return !(type->flags & (WT_NODE_INTERNAL | WT_NODE_CUDA_ONLY)); }

static int bypass_of(const wt_chain *chain, int node)
{
    int found, param;
    assert_ok(wt_chain_find(chain, wt_chain_node_id(chain, node), "bypass", &found, &param));
    assert_int_equal(found, node);
    assert_int_equal(param, wt_chain_node_type(chain, node)->n_params);
    return param;
}

static void at_rest_it_is_the_input_as_late_as_the_node(void **state)
{
    (void)state;
    static float y[CHANNELS * N];
    float *x = noise_signal(CHANNELS * N, 1);
    for (int t = 0; t < wt_n_node_types; t++) {
        const wt_node_type *type = wt_node_types[t];
        wt_setting settings[2];
        int n = settings_of(type, settings);
        if (!on_cpu(type)) continue;
        settings[n++] = (wt_setting){"bypass", "true", 0};
        wt_chain *chain = node_chain(type->name, settings, n, CHANNELS, RATE);
        const int latency = wt_chain_latency_frames(chain);
        process_blocks(chain, x, y, N, 253, N);
        for (int c = 0; c < wt_chain_out_channels(chain); c++)
            for (int k = 0; k < N; k++) {
                const float want = k < latency ? 0 : x[c * N + k - latency];
                if (y[c * N + k] != want)
                    fail_msg("%s: channel %d frame %d is %g, want %g", type->name, c, k, (double)y[c * N + k],
                             (double)want);
            }
        wt_chain_destroy(chain);
    }
    free(x);
}

// On and off while it plays: afterwards the chain is what it had been without.
static void coming_back_is_seamless(void **state)
{
    (void)state;
    static float y[CHANNELS * N], want[CHANNELS * N];
    float *x = noise_signal(CHANNELS * N, 2);
    for (int t = 0; t < wt_n_node_types; t++) {
        const wt_node_type *type = wt_node_types[t];
        wt_setting settings[2];
        const int n = settings_of(type, settings);
        if (!on_cpu(type)) continue;
        wt_chain *chain = node_chain(type->name, settings, n, CHANNELS, RATE),
                 *plain = node_chain(type->name, settings, n, CHANNELS, RATE);
        const int bypass = bypass_of(chain, 0), latency = wt_chain_latency_frames(chain);
        const int on = 3000, off = on + latency + 3000, back = off + 2000;
        process_blocks(plain, x, want, N, 64, N);
        process_blocks(chain, x, y, on, 64, N);
        assert_int_equal(wt_chain_set(chain, 0, bypass, 1), WT_OK);
        process_blocks(chain, x + on, y + on, off - on, 64, N);
        const float heard = y[off - 1], dry = x[off - 1 - latency];
        assert_int_equal(wt_chain_set(chain, 0, bypass, 0), WT_OK);
        process_blocks(chain, x + off, y + off, N - off, 64, N);
        if (heard != dry) fail_msg("%s: %g is heard, want %g", type->name, (double)heard, (double)dry);
        for (int c = 0; c < wt_chain_out_channels(chain); c++)
            if (memcmp(y + c * N + back, want + c * N + back, sizeof *y * (size_t)(N - back)))
                fail_msg("%s: channel %d is not what it was", type->name, c);
        wt_chain_destroy(chain), wt_chain_destroy(plain);
    }
    free(x);
}

// Nodes that change a sine's level or phase; of those with a latency the limiter's is short and the denoiser's long.
static void a_sine_has_no_step(void **state)
{
    (void)state;
    static float x[N], y[N];
    const wt_setting down[] = {{"gain_db", NULL, -12}}, peak[] = {{"shape", "peak", 0}, {"gain_db", NULL, 12}},
                     deep[] = {{"threshold_db", NULL, -40}};
    const struct {
        const char *type;
        const wt_setting *settings;
        int n;
    } nodes[] = {
        {"gain", down, 1}, {"biquad", peak, 2}, {"compressor", deep, 1}, {"limiter", NULL, 0}, {"denoise", NULL, 0}};
    sine_signal(x, N, 200, RATE, 0.5, 0);
    for (size_t k = 0; k < sizeof nodes / sizeof *nodes; k++) {
        wt_chain *chain = node_chain(nodes[k].type, nodes[k].settings, nodes[k].n, 1, RATE);
        const int bypass = bypass_of(chain, 0), begin = 9000, each = 37;
        for (int done = 0, n, turn = 0; done < N; done += n, turn++) {
            n = done < begin ? begin : N - done < each ? N - done : each;
            // for 150 ms on and 150 ms off, then to and fro before it has arrived
            const bool on = done < 9000 ? false : done < 16200 ? true : done < 20000 ? false : turn % 3 == 0;
            assert_int_equal(wt_chain_set(chain, 0, bypass, on), WT_OK);
            process_blocks(chain, x + done, y + done, n, n, N);
        }
        const double step = largest_step_db(y + 6000, N - 6000);
        if (step > -80) fail_msg("%s: a step of %.1f dB, want none above -80", nodes[k].type, step);
        wt_chain_destroy(chain);
    }
}

static void blocks_of_any_size_are_the_same_to_the_bit(void **state)
{
    (void)state;
    static float y[2][CHANNELS * N];
    const int sizes[] = {1, 64, 253};
    const wt_node_desc nodes[] = {{.type = "gain"}, {.type = "limiter"}, {.type = "mono"}, {.type = "compressor"}};
    const wt_chain_desc desc = {.nodes = nodes, .n_nodes = 4};
    float *x = noise_signal(CHANNELS * N, 3);
    for (int k = 0; k < 3; k++) {
        wt_chain *chain;
        assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = CHANNELS}, &desc, &chain));
        for (int done = 0, turn = 0; done < N; done += 1500, turn++) {
            for (int node = 0; node < 4; node++)
                assert_int_equal(wt_chain_set(chain, node, bypass_of(chain, node), (float)(turn >> node & 1)), WT_OK);
            process_blocks(chain, x + done, y[k > 0] + done, 1500, sizes[k], N);
        }
        for (int n = 0; k && n < N; n++)
            if (y[0][n] != y[1][n])
                fail_msg("blocks of %d: frame %d is %g, want %g", sizes[k], n, (double)y[1][n], (double)y[0][n]);
        wt_chain_destroy(chain);
    }
    free(x);
}

static void it_is_on_or_off_and_checked_like_a_parameter(void **state)
{
    (void)state;
    const wt_setting half[] = {{"bypass", NULL, 0.5}}, wrong[] = {{"bypass", "on", 0}}, far[] = {{"bypass", NULL, 2}};
    float x[512], y[512];
    const float *const in[] = {x};
    float *const out[] = {y};
    wt_chain *chain = node_chain("gain", half, 1, 1, RATE);
    const int bypass = bypass_of(chain, 0);
    assert_true(wt_chain_get(chain, 0, bypass) == 1);
    assert_int_equal(wt_chain_set(chain, 0, bypass, 0.4f), WT_OK);
    assert_true(wt_chain_get(chain, 0, bypass) == 0);
    assert_int_equal(wt_chain_set(chain, 0, bypass, 7), WT_OK);
    assert_true(wt_chain_get(chain, 0, bypass) == 1);
    assert_int_equal(wt_chain_set(chain, 0, bypass + 1, 1), WT_ERR_BAD_ARG);
    for (int n = 0; n < 512; n++) x[n] = 0.1f;
    RT_SECTION { assert_int_equal(wt_chain_process(chain, in, out, 512), WT_OK); }
    wt_chain_destroy(chain);
    check_refusal("gain", wrong, 1, WT_ERR_BAD_ARG, "chain: gain: bypass is 'on', want a number");
    check_refusal("gain", far, 1, WT_ERR_BAD_ARG, "chain: gain: bypass is 2, want 0..1");
}

// A bypassed node's faults are not heard, and its state stays what it is.
static void the_reset_of_a_chain_keeps_it(void **state)
{
    (void)state;
    const wt_setting on[] = {{"bypass", NULL, 1}};
    float x[300], y[300];
    const float *const in[] = {x};
    float *const out[] = {y};
    wt_chain *chain = node_chain("limiter", on, 1, 1, RATE);
    const int latency = wt_chain_latency_frames(chain);
    for (int n = 0; n < 300; n++) x[n] = (float)n;
    assert_ok(wt_chain_process(chain, in, out, 300));
    assert_ok(wt_chain_reset(chain, 0));
    assert_ok(wt_chain_process(chain, in, out, 300));
    for (int n = 0; n < 300; n++) assert_true(y[n] == (n < latency ? 0 : x[n - latency]));
    wt_chain_destroy(chain);
}

static void cuda_equals_the_cpu(void **state)
{
    (void)state;
    for (int t = 0; t < wt_n_node_types; t++) {
        const wt_node_type *type = wt_node_types[t];
        wt_setting settings[2];
        const int n = settings_of(type, settings);
        if (!strcmp(type->name, "gain") || !strcmp(type->name, "biquad") || !strcmp(type->name, "limiter") ||
            !strcmp(type->name, "mono") || !strcmp(type->name, "pitch_shift"))
            check_node_cuda(type->name, settings, n, type->n_params, 1, 90);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_rest_it_is_the_input_as_late_as_the_node),
        cmocka_unit_test(coming_back_is_seamless),
        cmocka_unit_test(a_sine_has_no_step),
        cmocka_unit_test(blocks_of_any_size_are_the_same_to_the_bit),
        cmocka_unit_test(it_is_on_or_off_and_checked_like_a_parameter),
        cmocka_unit_test(the_reset_of_a_chain_keeps_it),
        cmocka_unit_test(cuda_equals_the_cpu),
    };
    return cmocka_run_group_tests_name("bypass", tests, NULL, NULL);
}
