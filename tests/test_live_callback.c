#include "support/testing.h"
#include "support/audio_files.h"
#include "support/realtime.h"
#include "../hosts/live_session.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// The session's callbacks, called by a host of the test's own: no server, no thread, so every block is the test's.

typedef struct hand_host {
    audio_host base;
    audio_callbacks call;
    atomic_int n_latency_changed, n_opens, refuse_opens;
} hand_host;

static hand_host hand;

static wt_status hand_open(const audio_host_config *config, audio_host **host)
{
    hand.n_opens++;
    *host = NULL;
    if (hand.refuse_opens > 0 && hand.refuse_opens--) return wt_fail(WT_ERR_UNSUPPORTED, "hand: not yet");
    hand.call = config->callbacks;
    *host = &hand.base;
    return WT_OK;
}

static wt_status hand_start(audio_host *host) { return host == &hand.base ? WT_OK : WT_ERR_STATE; }
static void hand_stop(audio_host *host) { (void)host; }
static void hand_latency_changed(audio_host *host) { ((hand_host *)host)->n_latency_changed++; }

static void hand_stats(const audio_host *host, audio_host_stats *stats)
{
    (void)host;
    *stats = (audio_host_stats){.rate_hz = 48000, .block_frames = 64, .running = true};
}

static const audio_host_type hand_type = {
    .name = "hand",
    .open = hand_open,
    .start = hand_start,
    .stop = hand_stop,
    .close = hand_stop,
    .stats = hand_stats,
    .latency_changed = hand_latency_changed,
};

static char waited_for[256];
static int n_waited;

static void waits(const char *why)
{
    snprintf(waited_for, sizeof waited_for, "%s", why);
    n_waited++;
}

static live_session *started(void **state, const char *nodes, bool wait)
{
    char text[1024];
    const char *path = test_path(state, "played.yaml");
    live_session *session;
    test_spill(path, text, (size_t)snprintf(text, sizeof text, "name: played\nnodes:\n%s", nodes));
    hand = (hand_host){.base.type = &hand_type, .refuse_opens = hand.refuse_opens};
    const live_session_config config = {
        .preset = path, .host_type = &hand_type, .backend = "cpu", .wait = wait, .waiting = waits};
    assert_ok(live_session_open(&config, &session));
    assert_ok(live_session_start(session));
    return session;
}

/// One block of a constant through the session; returns the last frame of the first channel.
static float block_of(float value, int n_frames)
{
    float *audio = calloc((size_t)(4 * n_frames + 4), sizeof *audio), last = 0;
    const float *in[2] = {audio, audio + n_frames};
    float *out[2] = {audio + 2 * n_frames, audio + 3 * n_frames};
    for (int n = 0; n < 2 * n_frames; n++) audio[n] = value;
    RT_SECTION { hand.call.process(hand.call.user, in, out, n_frames); }
    if (n_frames) last = out[0][n_frames - 1];
    free(audio);
    return last;
}

static void the_callback_neither_allocates_nor_locks(void **state)
{
    live_session *session = started(
        state, "  - {node: gain}\n  - {node: limiter}\nmidi:\n  - {cc: 7, param: gain/gain_db, min: -60, max: 0}\n",
        false);
    const uint8_t control[] = {0xb0, 7, 64}, program[] = {0xc0, 5};
    for (int k = 0; k < 200; k++) {
        RT_SECTION
        {
            hand.call.midi(hand.call.user, k % 64, control, 3);
            hand.call.midi(hand.call.user, k % 64, program, 2);
            hand.call.transport(hand.call.user, &(audio_transport){.rolling = true, .bpm = 120, .frame = 64 * k});
        }
        live_session_midi(session, control, 3); // from another port, taken up in the next block
        block_of(0.1f, 64);
    }
    live_session_stats s;
    live_session_get_stats(session, &s);
    assert_true(s.transport.rolling && s.transport.bpm == 120 && s.transport.frame == 64 * 199);
    assert_int_equal(s.live.n_misses, 0);
    live_session_close(session);
}

/// Wait until the delay's time is `ms`.
static void await_time(live_session *session, float ms)
{
    float value = 0;
    for (int k = 0; k < 3000; k++) {
        assert_ok(live_session_get(session, "echo/time_ms", &value));
        if (fabsf(value - ms) < 1e-3f * ms) return;
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    fail_msg("time_ms is %g, want %g", (double)value, (double)ms);
}

static void a_synced_delay_follows_the_tempo(void **state)
{
    live_session *session =
        started(state, "  - {node: delay, id: echo, sync: 1/8., time_ms: 300}\n  - {node: delay, id: other}\n", false);
    float value;
    await_time(session, 300); // nobody has told a tempo
    hand.call.transport(hand.call.user, &(audio_transport){.bpm = 120});
    await_time(session, 375);
    hand.call.transport(hand.call.user, &(audio_transport){.bpm = 90, .beats_per_bar = 3, .beat_unit = 4});
    await_time(session, 500);
    hand.call.transport(hand.call.user, &(audio_transport){.bpm = 240, .beats_per_bar = 6, .beat_unit = 8});
    await_time(session, 375); // 240 eighths a minute
    live_session_stats s;
    live_session_get_stats(session, &s);
    assert_ok(live_session_load(session, s.preset)); // begins at 300 again, and follows
    await_time(session, 375);
    hand.call.transport(hand.call.user, &(audio_transport){.rolling = true}); // a tempo no more: it stays
    await_time(session, 375);
    assert_ok(live_session_get(session, "other/time_ms", &value));
    assert_true(fabsf(value - 300) < 0.1f);
    live_session_close(session);
}

static void blocks_of_any_length_are_played(void **state)
{
    static const int lengths[] = {0, 1, 63, 64, 65, 253, 0, 1024, 17};
    live_session *session = started(state, "  - {node: gain, gain_db: -6.0205999}\n", false);
    live_session_stats s;
    uint64_t n_frames = 0;
    for (int k = 0; k < (int)(sizeof lengths / sizeof *lengths); k++) {
        const float last = block_of(0.5f, lengths[k]);
        if (lengths[k]) assert_float_equal(last, 0.25, 1e-6);
        n_frames += (uint64_t)lengths[k];
    }
    live_session_get_stats(session, &s);
    assert_int_equal(s.live.n_frames, n_frames);
    assert_int_equal(s.live.n_misses, 0);
    hand.call.format(hand.call.user, 48000, 4096); // a longer one is announced
    assert_float_equal(block_of(0.5f, 4096), 0.25, 1e-6);
    hand.call.format(hand.call.user, 44100, 4096); // and another rate
    live_session_get_stats(session, &s);
    assert_true(s.live.rate_hz == 44100);
    live_session_close(session);
}

static void a_block_that_was_not_announced_is_bypassed_and_counted(void **state)
{
    live_session *session = started(state, "  - {node: gain, gain_db: -6.0205999}\n", false);
    live_session_stats s;
    block_of(0.5f, 64);
    assert_float_equal(block_of(0.5f, 5000), 0.5, 1e-6);
    live_session_get_stats(session, &s);
    assert_int_equal(s.live.misses[WT_LIVE_MISS_SIZE], 1);
    live_session_close(session);
}

static void levels_rise_at_once_and_fall_slowly(void **state)
{
    float peak[2], rms[2];
    live_session *session = started(state, "  - {node: gain, gain_db: -6.0205999}\n", false);
    for (int k = 0; k < 3 * 750; k++) block_of(0.5f, 64); // 3 s: ten times the RMS's own
    assert_int_equal(live_session_levels(session, false, peak, rms, 2), 2);
    assert_float_equal(peak[1], 0.5, 1e-6);
    assert_float_equal(rms[1], 0.5, 1e-3);
    assert_int_equal(live_session_levels(session, true, peak, rms, 1), 1);
    assert_float_equal(rms[0], 0.25, 1e-3);
    for (int k = 0; k < 1275; k++) block_of(0, 64); // 1.7 s: 20 dB
    live_session_levels(session, false, peak, rms, 2);
    assert_float_equal(peak[0], 0.05, 1e-3);
    assert_true(rms[0] < peak[0]);
    live_session_close(session);
}

/// The figures once `error` is the last one and a reconnection, which clears it, has been counted.
static live_session_stats await_stats(live_session *session, const char *error)
{
    live_session_stats s = {.n_reconnects = 0};
    for (int k = 0; k < 3000; k++) {
        nanosleep(&(struct timespec){0, 10000000}, NULL);
        live_session_get_stats(session, &s);
        if (!strcmp(s.last_error, error) && (*error || s.n_reconnects)) return s;
    }
    fail_msg("\"%s\" stands, want \"%s\"", s.last_error, error);
    return s;
}

static void an_offline_host_is_waited_for_and_told_of_latency(void **state)
{
    hand.refuse_opens = 2;
    live_session *session = started(state, "  - {node: limiter}\n", true);
    assert_int_equal(hand.n_opens, 3);
    assert_string_equal(waited_for, "hand: not yet");
    assert_int_equal(n_waited, 1);
    atomic_store(&hand.refuse_opens, 1000000); // it stays away, until we have seen what is said of that
    hand.call.lost(hand.call.user, "hand: gone");
    live_session_stats s = await_stats(session, "hand: gone");
    assert_int_equal(s.n_reconnects, 0);
    atomic_store(&hand.refuse_opens, 0);
    s = await_stats(session, "");
    assert_int_equal(s.n_reconnects, 1);
    assert_int_equal(hand.call.latency(hand.call.user), s.live.latency_frames);
    assert_true(s.live.latency_frames > 0);
    block_of(0.5f, 64);
    live_session_close(session);
    assert_true(hand.n_latency_changed > 0);
}

// From infinity a meter that multiplies would never come down, and what is no number would be silence.
static void a_meter_falls_again_after_what_is_no_number(void **state)
{
    live_session *session = started(state, "  - {node: gain}\n", false);
    float peak[2], rms[2];
    static const float bad[] = {INFINITY, -INFINITY, NAN};
    for (int k = 0; k < 3; k++) {
        block_of(bad[k], 64);
        assert_int_equal(live_session_levels(session, false, peak, rms, 2), 2);
        assert_true(peak[0] > 1 && isfinite(peak[0]) && isfinite(rms[0]));
        for (int n = 0; n < 16 * 750; n++) block_of(0, 64); // 16 s
        live_session_levels(session, false, peak, rms, 2);
        assert_true(peak[0] < 1 && rms[0] < 1);
    }
    live_session_close(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_callback_neither_allocates_nor_locks),
        cmocka_unit_test(a_synced_delay_follows_the_tempo),
        cmocka_unit_test(blocks_of_any_length_are_played),
        cmocka_unit_test(a_block_that_was_not_announced_is_bypassed_and_counted),
        cmocka_unit_test(levels_rise_at_once_and_fall_slowly),
        cmocka_unit_test(a_meter_falls_again_after_what_is_no_number),
        cmocka_unit_test(an_offline_host_is_waited_for_and_told_of_latency),
    };
    return cmocka_run_group_tests_name("live_callback", tests, test_folder_create, test_folder_remove);
}
