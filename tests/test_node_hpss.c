#include "support/testing.h"
#include "support/chain_check.h"
#include "support/node_check.h"

#include <math.h>
#include <string.h>

#define RATE 48000.0
enum { SECOND = 48000, N = 2 * SECOND };

static float tones[N], clicks[N], mixed[N], out[N];

// Three steady sines, and short bursts of noise four times a second.
static void make_signals(void)
{
    uint64_t seed = 3;
    for (int n = 0; n < N; n++) {
        const int since = n % 12000 - 3000;
        tones[n] = 0;
        for (int k = 0; k < 3; k++) tones[n] += (float)(0.1 * sin(2 * M_PI * 330 * (k + 1) / RATE * n + k));
        clicks[n] = since < 0 ? 0 : noise(&seed) * expf(-(float)since / 150);
        mixed[n] = tones[n] + clicks[n];
    }
}

static double separated_db(double harmonic_db, double percussive_db, double lookahead, const float *want)
{
    const wt_setting settings[] = {
        {"harmonic_db", NULL, harmonic_db}, {"percussive_db", NULL, percussive_db}, {"lookahead", NULL, lookahead}};
    wt_chain *chain = node_chain("hpss", settings, 3, 1, RATE);
    const int latency = wt_chain_latency_frames(chain), from = SECOND / 2;
    assert_int_equal(latency, 1024 + (int)lookahead * 256);
    process_blocks(chain, mixed, out, N, 64, N);
    wt_chain_destroy(chain);
    return snr_db(want + from, out + from + latency, (size_t)(N - from - latency));
}

// Bounds 2 dB below what was met: what masks leave is what both parts have in the same bins.
static void tones_and_clicks_part(void **state)
{
    (void)state;
    make_signals();
    const double tones_db = separated_db(0, -120, 0, tones), ahead_db = separated_db(0, -120, 8, tones);
    const double clicks_db = separated_db(-120, 0, 0, clicks);
    const double before_db = snr_db(tones, mixed, N);
    print_message("tones stand at %.1f dB, alone %.1f, with look-ahead %.1f; clicks from %.1f to %.1f\n", before_db,
                  tones_db, ahead_db, -before_db, clicks_db);
    assert_true(tones_db > 21 && ahead_db > 21 && clicks_db > 12.7);
}

static void both_parts_give_the_sound_back_at_the_latency(void **state)
{
    (void)state;
    make_signals();
    for (int lookahead = 0; lookahead <= 8; lookahead += 4) {
        const wt_setting settings[] = {{"lookahead", NULL, lookahead}, {"margin", NULL, 1 + lookahead}};
        wt_chain *chain = node_chain("hpss", settings, 2, 1, RATE);
        const int latency = wt_chain_latency_frames(chain);
        process_blocks(chain, mixed, out, N, 256, N);
        for (int n = 0; n < latency; n++) assert_true(fabsf(out[n]) < 1e-6f);
        assert_snr_db(mixed, out + latency, (size_t)(N - latency), 120); // float transforms give 130 to 140
        wt_chain_destroy(chain);
    }
}

static void silence_stays_silence_and_what_is_not_a_number_goes(void **state)
{
    (void)state;
    memset(mixed, 0, sizeof mixed);
    wt_chain *chain = node_chain("hpss", NULL, 0, 1, RATE);
    process_blocks(chain, mixed, out, N, 64, N);
    for (int n = 0; n < N; n++) assert_true(out[n] == 0);
    assert_ok(wt_chain_reset(chain, 0));
    sine_signal(mixed, N, 500, RATE, 0.5, 0);
    mixed[SECOND / 2] = NAN;
    process_blocks(chain, mixed, out, N, 64, N);
    assert_true(wt_chain_faults(chain) > 0);
    const int latency = wt_chain_latency_frames(chain);
    assert_snr_db(mixed + SECOND, out + SECOND + latency, (size_t)(SECOND - latency), 120);
    wt_chain_destroy(chain);
}

static const wt_setting busy[] = {{"n_fft", NULL, 256},
                                  {"hop", NULL, 50},
                                  {"lookahead", NULL, 3},
                                  {"percussive_db", NULL, -20},
                                  {"margin", NULL, 1.5}};

static void blocks_change_no_bit_and_processing_is_real_time(void **state)
{
    (void)state;
    check_node("hpss", busy, 5);
    check_node("hpss", NULL, 0);
}

// Transforms differ by 1e-7 of their peak, and masks of faint bins by what that is of them.
static void cuda_agrees(void **state)
{
    (void)state;
    check_node_cuda("hpss", busy, 5, 0, -6, 90);
    check_node_cuda("hpss", NULL, 0, 1, -12, 90);
}

static void refusals_name_what_was_met_and_wanted(void **state)
{
    (void)state;
    const wt_setting wide[] = {{"hop", NULL, 512}}, far[] = {{"lookahead", NULL, 9}};
    check_refusal("hpss", wide, 1, WT_ERR_BAD_ARG, "chain: hpss: hop is 512, want 0..256");
    check_refusal("hpss", far, 1, WT_ERR_BAD_ARG, "chain: hpss: lookahead is 9, want 0..8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tones_and_clicks_part),
        cmocka_unit_test(both_parts_give_the_sound_back_at_the_latency),
        cmocka_unit_test(silence_stays_silence_and_what_is_not_a_number_goes),
        cmocka_unit_test(blocks_change_no_bit_and_processing_is_real_time),
        cmocka_unit_test(cuda_agrees),
        cmocka_unit_test(refusals_name_what_was_met_and_wanted),
    };
    return cmocka_run_group_tests_name("hpss node", tests, NULL, NULL);
}
