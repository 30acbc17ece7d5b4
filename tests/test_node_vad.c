#include "support/testing.h"
#include "support/chain_check.h"
#include "support/node_check.h"

#include <math.h>
#include <string.h>
#include <warptone/vad.h>

#define RATE 48000.0
enum { N = 4 * 48000, WINDOW = 480, BEGIN = 2 * 48000, END = 3 * 48000 };

static float x[N], y[N];

// A tone of a second in noise 25 dB below.
static void make_voice(void)
{
    uint64_t seed = 1;
    for (int n = 0; n < N; n++) {
        x[n] = 0.01f * noise(&seed);
        if (n >= BEGIN && n < END) x[n] += (float)(0.1 * sin(2 * M_PI * 440 * n / RATE));
    }
}

// Window by window, what the node shows is what the detector says.
static void it_is_the_offline_detector(void **state)
{
    (void)state;
    make_voice();
    wt_vad *offline;
    assert_ok(wt_vad_create(&(wt_vad_config){.channels = 1, .hangover_ms = 300}, &offline));
    const wt_setting settings[] = {{"hangover_ms", NULL, 300}};
    wt_chain *chain = node_chain("vad", settings, 1, 1, RATE);
    int n_speech = 0;
    for (int done = 0; done < N; done += WINDOW) {
        bool speech[2];
        assert_int_equal(wt_vad_process(offline, (const float *[]){x + done}, WINDOW, speech), 1);
        assert_int_equal(wt_chain_process(chain, (const float *[]){x + done}, (float *[]){y + done}, WINDOW), WT_OK);
        assert_true(reading(chain, 0, 0) == (float)speech[0]);
        assert_true(fabs(reading(chain, 0, 1) - wt_vad_level_db(offline, 0)) < 0.01);
        assert_true(fabs(reading(chain, 0, 2) - wt_vad_floor_db(offline, 0)) < 0.01);
        n_speech += speech[0];
    }
    assert_true(n_speech > 120 && n_speech < 140); // a second and the hangover
    assert_memory_equal(x, y, sizeof x);           // it only shows
    assert_int_equal(wt_chain_latency_frames(chain), 0);
    wt_vad_destroy(offline);
    wt_chain_destroy(chain);
}

static double power_db(const float *from, int n)
{
    double sum = 0;
    for (int k = 0; k < n; k++) sum += (double)from[k] * from[k];
    return 10 * log10(sum / n + 1e-30);
}

// With a look-ahead of 30 ms the tone passes from its first sample; the noise is 40 dB down, but behind the tone for
// the hangover and the release.
static void it_mutes_where_asked_and_loses_no_beginning(void **state)
{
    (void)state;
    make_voice();
    const wt_setting settings[] = {{"mute_db", NULL, 40}, {"lookahead_ms", NULL, 30}};
    wt_chain *chain = node_chain("vad", settings, 2, 1, RATE);
    const int latency = wt_chain_latency_frames(chain);
    assert_int_equal(latency, 1440);
    process_blocks(chain, x, y, N, 64, N);
    assert_memory_equal(x + BEGIN, y + BEGIN + latency, sizeof *x * (END - BEGIN));
    assert_true(fabs(power_db(y + latency, BEGIN - 4800) - power_db(x, BEGIN - 4800) + 40) < 0.1);
    const int after = END + (int)(0.32 * RATE);
    assert_true(
        fabs(power_db(y + after + latency, N - after - latency) - power_db(x + after, N - after - latency) + 40) < 0.1);
    wt_chain_destroy(chain);
}

// One channel that speaks opens all, and what is not a number is no speech.
static void channels_open_together(void **state)
{
    (void)state;
    static float two[2][N], out[2][N];
    const wt_setting settings[] = {{"mute_db", NULL, 120}};
    make_voice();
    uint64_t seed = 8;
    memcpy(two[0], x, sizeof x);
    for (int n = 0; n < N; n++) two[1][n] = 0.01f * noise(&seed);
    wt_chain *chain = node_chain("vad", settings, 1, 2, RATE);
    process_blocks(chain, two[0], out[0], N, 64, N);
    assert_memory_equal(two[1] + BEGIN + 3 * WINDOW, out[1] + BEGIN + 3 * WINDOW,
                        sizeof *x * (END - BEGIN - 3 * WINDOW));
    for (int n = WINDOW; n < BEGIN; n++) assert_true(out[1][n] == 0);
    wt_chain_destroy(chain);
}

static const wt_setting busy[] = {{"mute_db", NULL, 30}, {"lookahead_ms", NULL, 7}, {"release_ms", NULL, 20},
                                  {"enter_db", NULL, 3}, {"leave_db", NULL, 1},     {"hangover_ms", NULL, 10}};

static void blocks_change_no_bit_and_processing_is_real_time(void **state)
{
    (void)state;
    check_node("vad", busy, 6);
    check_node("vad", NULL, 0);
}

// Powers in double, so that the same windows count; gains by expf of both sides.
static void cuda_agrees(void **state)
{
    (void)state;
    check_node_cuda("vad", busy, 6, 4, 50, 100);
    check_node_cuda_readings("vad", busy, 6, 0.001f);
}

static void refusals_name_what_was_met_and_wanted(void **state)
{
    (void)state;
    const wt_setting late[] = {{"lookahead_ms", NULL, 300}};
    check_refusal("vad", late, 1, WT_ERR_BAD_ARG, "chain: vad: lookahead_ms is 300, want 0..200");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_offline_detector),
        cmocka_unit_test(it_mutes_where_asked_and_loses_no_beginning),
        cmocka_unit_test(channels_open_together),
        cmocka_unit_test(blocks_change_no_bit_and_processing_is_real_time),
        cmocka_unit_test(cuda_agrees),
        cmocka_unit_test(refusals_name_what_was_met_and_wanted),
    };
    return cmocka_run_group_tests_name("vad node", tests, NULL, NULL);
}
