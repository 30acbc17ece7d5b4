#include "support/live_session_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What a live session plays: parameters, presets that are loaded, watched and saved, MIDI, recording.

#ifdef WT_HAVE_JACK

static void parameters_are_set_and_heard_by_name(void **state)
{
    need_server();
    heard h = {.n = 0};
    const char *path = write_preset(state, "two.yaml", "  - {node: gain, id: first}\n  - {node: limiter}\n");
    const live_session_config config = config_of(path);
    live_session *session = started(&config);
    jack_wire *wire = jack_wire_open(&live_server);
    float value, peak[4], rms[4];
    jack_wire_through(wire, "session");
    assert_ok(live_session_listen(session, listen_to, &h));
    assert_ok(live_session_set(session, "first/gain_db", -20));
    assert_string_equal(h.name, "first/gain_db");
    assert_true(h.value == -20 && h.n == 1);
    assert_float_equal(gain_of(wire), 0.1, 3e-3); // the limiter's delay, over which the signal fades by 1.5 %
    assert_ok(live_session_set(session, "first.gain_db", 1e9f)); // clamped
    assert_ok(live_session_get(session, "first.gain_db", &value));
    live_param p;
    assert_true(live_session_n_params(session) > 1);
    assert_ok(live_session_param(session, 0, &p));
    assert_true(p.value == p.max && value == p.max && h.value == p.max);
    assert_string_equal(p.node, "first");
    assert_string_equal(p.unit, "dB");
    assert_fails(live_session_set(session, "frist/gain_db", 0), WT_ERR_NOT_FOUND,
                 "live: no parameter 'frist/gain_db'; the nearest is 'first/gain_db'");
    assert_fails(live_session_set(session, "first/gain_db", NAN), WT_ERR_BAD_ARG,
                 "live: first/gain_db is nan, want a finite number");
    assert_fails(live_session_reading(session, "first/gain_reduction_db", &value), WT_ERR_NOT_FOUND,
                 "live: no reading 'first/gain_reduction_db'; the nearest is 'limiter/gain_reduction_db'");
    assert_ok(live_session_reading(session, "limiter/gain_reduction_db", &value));
    live_session_set_bypass(session, true);
    assert_string_equal(h.name, "bypass");
    assert_float_equal(gain_of(wire), 1, 3e-2); // as above, and the peaks are not held
    assert_int_equal(live_session_levels(session, true, peak, rms, 4), 2);
    assert_true(peak[0] > 0 && rms[0] > 0 && rms[0] < peak[0]);
    assert_ok(live_session_listen(session, NULL, &h));
    live_session_set_bypass(session, false);
    assert_int_equal(h.n, 3);
    jack_wire_close(wire);
    live_session_close(session);
}

static void a_preset_is_loaded_or_the_old_one_plays_on(void **state)
{
    need_server();
    const char *half = write_preset(state, "half.yaml", "  - {node: gain, gain_db: -6.0205999}\n");
    const char *tenth = write_preset(state, "tenth.yaml", "  - {node: gain, gain_db: -20}\n");
    const char *wrong = write_preset(state, "wrong.yaml", "  - {node: gain, gain_bd: -20}\n");
    const live_session_config config = config_of(half);
    live_session *session = started(&config);
    jack_wire *wire = jack_wire_open(&live_server);
    jack_wire_through(wire, "session");
    assert_float_equal(gain_of(wire), 0.5, 1e-4);
    assert_ok(live_session_load(session, tenth));
    assert_float_equal(gain_of(wire), 0.1, 1e-4);
    assert_int_equal(live_session_load(session, wrong), WT_ERR_FORMAT);
    assert_non_null(strstr(wt_last_error(), "wrong.yaml:3: unknown key 'gain_bd'; the nearest is 'gain_db'"));
    assert_float_equal(gain_of(wire), 0.1, 1e-4);
    assert_string_equal(stats_of(session).preset, tenth);
    jack_wire_close(wire);
    live_session_close(session);
}

static void a_file_that_changes_is_played_and_one_that_is_wrong_is_told(void **state)
{
    need_server();
    const char *path = write_preset(state, "watched.yaml", "  - {node: gain, gain_db: -6.0205999}\n");
    live_session_config config = config_of(path);
    config.watch = true;
    live_session *session = started(&config);
    jack_wire *wire = jack_wire_open(&live_server);
    jack_wire_through(wire, "session");
    assert_float_equal(gain_of(wire), 0.5, 1e-4);
    write_preset(state, "watched.yaml", "  - {node: gain, gain_db: -20.0}\n");
    await(session, s.n_reloads == 1);
    assert_float_equal(gain_of(wire), 0.1, 1e-4);
    write_preset(state, "watched.yaml", "  - {node: gian, gain_db: -20.0}\n");
    await(session, s.n_reload_errors == 1);
    assert_non_null(strstr(stats_of(session).last_error, "watched.yaml:3: "));
    assert_float_equal(gain_of(wire), 0.1, 1e-4);
    write_preset(state, "watched.yaml", "  - {node: gain, gain_db: 0}\n");
    await(session, s.n_reloads == 2);
    assert_string_equal(stats_of(session).last_error, "");
    assert_float_equal(gain_of(wire), 1, 1e-4);
    jack_wire_close(wire);
    live_session_close(session);
}

static void write_kernel(void **state, const char *factor)
{
    char text[512], path[512];
    const int length = snprintf(text, sizeof text,
                                "__device__ void process(const wt_node_io *io, const float *, float *)\n"
                                "{\n"
                                "    for_each_sample(io, [&](int c, int n) {\n"
                                "        io->out[c * io->stride + n] = %s * io->in[0][c * io->stride + n];\n"
                                "    });\n"
                                "}\n",
                                factor);
    snprintf(path, sizeof path, "%s", test_path(state, "mine.cu"));
    char beside[sizeof path + 8];
    snprintf(beside, sizeof beside, "%s.new", path);
    test_spill(beside, text, (size_t)length);
    assert_int_equal(rename(beside, path), 0);
}

// Compiled while blocks go through the resident kernel, then swapped. No CPU can play such a chain meanwhile: blocks
// wait for the new kernel, 4.3 ms at most, and none is missed. With a mistake in the text the old one plays on.
static void a_users_kernel_is_edited_while_it_plays(void **state)
{
    wt_device_info gpu;
    if (wt_device_query(0, &gpu)) {
        print_message("skipped: %s\n", wt_last_error());
        skip();
    }
    need_server();
    write_kernel(state, "0.5f");
    live_session_config config = config_of(write_preset(state, "mine.yaml", "  - {node: cuda, file: mine.cu}\n"));
    config.backend = "cuda";
    config.watch = true;
    live_session *session = started(&config);
    jack_wire *wire = jack_wire_open(&live_server);
    jack_wire_through(wire, "session");
    assert_float_equal(gain_of(wire), 0.5, 1e-4);
    const uint64_t n_before = stats_of(session).live.n_misses;
    write_kernel(state, "0.25f");
    await(session, s.n_reloads == 1);
    assert_float_equal(gain_of(wire), 0.25, 1e-4);
    const uint64_t n_changed = stats_of(session).live.n_misses;
    assert_int_equal(n_changed - n_before, 0);
    write_kernel(state, "nonsense");
    await(session, s.n_reload_errors == 1);
    assert_non_null(strstr(stats_of(session).last_error, "nonsense"));
    assert_float_equal(gain_of(wire), 0.25, 1e-4);
    assert_int_equal(stats_of(session).live.n_misses - n_changed, 0);
    write_kernel(state, "1.0f");
    await(session, s.n_reloads == 2);
    assert_float_equal(gain_of(wire), 1, 1e-4);
    jack_wire_close(wire);
    live_session_close(session);
}

static void a_preset_is_saved_as_it_stands_and_not_read_again(void **state)
{
    need_server();
    const char *path =
        write_preset(state, "saved.yaml", "  - {node: gain, gain_db: 0} # loudness\n  - {node: limiter}\n");
    live_session_config config = config_of(path);
    config.watch = true;
    live_session *session = started(&config);
    assert_ok(live_session_set(session, "gain/gain_db", -3.5f));
    assert_ok(live_session_set(session, "limiter/ceiling_db", -2));
    assert_ok(live_session_save(session, NULL));
    char *text = read_text(path);
    assert_string_equal(text, "name: test   # kept\nnodes:\n  - {node: gain, gain_db: -3.5} # loudness\n"
                              "  - {node: limiter, ceiling_db: -2}\n");
    free(text);
    wt_preset *preset;
    assert_ok(wt_preset_load(path, &preset));
    wt_preset_destroy(preset);
    pause_ms(400); // time enough for the watch, were it to take our own file for news
    assert_int_equal(stats_of(session).n_reloads, 0);
    const char *copy = test_path(state, "copy.yaml");
    assert_ok(live_session_save(session, copy));
    assert_ok(wt_preset_load(copy, &preset));
    wt_preset_destroy(preset);
    write_preset(state, "saved.yaml", "  - {node: gain, gain_db: -20.0}\n"); // somebody else's is news
    await(session, s.n_reloads == 1);
    live_session_close(session);
}

// Controller 7 at full makes the gain 0 dB, at its lowest -60 dB: the signal is steady, so that the place where it
// rises is where the message was heard. A parameter moves at control points, 32 frames apart, and glides over 20 ms.
static void a_controller_moves_a_gain_in_the_block_it_comes_in(void **state)
{
    enum { FRAMES = 32768, AT = 64 * BLOCK + 100, GLIDE = RATE / 50 };
    need_server();
    heard h = {.n = 0};
    const char *path = write_preset(state, "midi.yaml",
                                    "  - {node: gain, gain_db: -60}\n"
                                    "midi:\n  - {cc: 7, param: gain/gain_db, min: -60, max: 0}\n");
    const live_session_config config = config_of(path);
    live_session *session = started(&config);
    assert_ok(live_session_listen(session, listen_to, &h));
    jack_wire *wire = jack_wire_open(&live_server);
    float *x = malloc(sizeof *x * 4 * FRAMES), *y = x + 2 * FRAMES;
    for (int n = 0; n < 2 * FRAMES; n++) x[n] = 0.5f;
    jack_wire_through(wire, "session");
    jack_wire_run(wire, true, x, &(wire_event){AT, {0xb0, 7, 127}}, 1, y, FRAMES);
    const int block = AT / BLOCK * BLOCK;
    for (int n = 0; n < block; n++) assert_true(y[n] < 0.001f);
    assert_true(y[block + BLOCK] > y[block - 1]); // it has begun to rise
    for (int n = block + GLIDE + 64; n < FRAMES; n++) assert_float_equal(y[n], 0.5, 1e-5);
    float value;
    assert_ok(live_session_get(session, "gain/gain_db", &value));
    assert_true(value == 0);
    await(session, h.n > 0 && s.live.n_blocks); // listeners hear of it from the session's thread
    assert_string_equal(h.name, "gain/gain_db");
    free(x);
    jack_wire_close(wire);
    live_session_close(session);
}

static void a_controller_is_learned_kept_and_forgotten(void **state)
{
    need_server();
    const char *path = write_preset(state, "learn.yaml", "  - {node: gain, gain_db: -60} # start\n");
    const live_session_config config = config_of(path);
    live_session *session = started(&config);
    const uint8_t full[] = {0xb2, 21, 127}, none[] = {0xb2, 21, 0};
    float value = -60;
    assert_ok(live_session_midi_learn(session, "gain.gain_db", -60, 3));
    live_session_midi(session, full, 3); // is learned, and moves nothing yet
    for (int k = 0; k < 3000 && value == -60; k++) {
        pause_ms(10);
        live_session_midi(session, none, 3);
        live_session_midi(session, full, 3);
        assert_ok(live_session_get(session, "gain/gain_db", &value));
    }
    assert_true(value > -60 && value <= 3);
    assert_ok(live_session_midi_map(session, "gain/bypass", 0, 9, 0, 1, "toggle"));
    const uint8_t bypass[] = {0xb0, 9, 127};
    for (int k = 0; k < 3000 && value != 1; k++) {
        pause_ms(10);
        live_session_midi(session, bypass, 3);
        assert_ok(live_session_get(session, "gain/bypass", &value));
    }
    assert_true(value == 1);
    assert_ok(live_session_save(session, NULL));
    char *text = read_text(path);
    assert_non_null(strstr(text, "cc: 21"));
    assert_non_null(strstr(text, "# start"));
    assert_non_null(strstr(text, "bypass: 1"));
    assert_non_null(strstr(text, "param: gain/bypass"));
    free(text);
    assert_ok(live_session_midi_unmap(session, "gain/gain_db"));
    assert_ok(live_session_midi_map(session, "gain/gain_db", 0, 7, -12, 0, "linear"));
    assert_fails(live_session_midi_map(session, "gain/gain_db", 0, 120, -12, 0, NULL), WT_ERR_BAD_ARG,
                 "midi: controller 120, want 0..119, or 131 for the pitch wheel");
    assert_fails(live_session_midi_map(session, "gain/gain_db", 17, 7, -12, 0, NULL), WT_ERR_BAD_ARG,
                 "midi: channel 17, want 1..16, or 0 for any");
    assert_fails(live_session_midi_map(session, "gain/gain_db", 0, 7, -12, 0, "linaer"), WT_ERR_BAD_ARG,
                 "midi: curve is 'linaer'; the nearest is 'linear'");
    assert_fails(live_session_midi_learn(session, "gian/gain_db", NAN, NAN), WT_ERR_NOT_FOUND,
                 "live: no parameter 'gian/gain_db'; the nearest is 'gain/gain_db'");
    live_session_close(session);
}

static void a_program_change_loads_its_preset(void **state)
{
    need_server();
    const char *tenth = write_preset(state, "tenth.yaml", "  - {node: gain, gain_db: -20}\n");
    char nodes[512];
    snprintf(nodes, sizeof nodes, "  - {node: gain}\nmidi:\n  - {program: 3, preset: %s}\n", tenth);
    const live_session_config config = config_of(write_preset(state, "programs.yaml", nodes));
    live_session *session = started(&config);
    jack_wire *wire = jack_wire_open(&live_server);
    jack_wire_through(wire, "session");
    live_session_midi(session, (const uint8_t[]){0xc0, 3}, 2);
    await(session, !strcmp(s.preset, tenth));
    assert_float_equal(gain_of(wire), 0.1, 1e-4);
    jack_wire_close(wire);
    live_session_close(session);
}

static void what_is_recorded_is_what_was_heard(void **state)
{
    enum { FRAMES = 32768 };
    need_server();
    const char *half = write_preset(state, "half.yaml", "  - {node: gain, gain_db: -6.0205999}\n");
    const char *in_path = test_path(state, "in.wav"), *out_path = test_path(state, "out.wav");
    live_session_config config = config_of(half);
    config.record_in = in_path, config.record_out = out_path;
    live_session *session = started(&config);
    jack_wire *wire = jack_wire_open(&live_server);
    float *x = signal_of(100, FRAMES), *y = malloc(sizeof *y * 2 * FRAMES);
    jack_wire_through(wire, "session");
    jack_wire_run(wire, true, x, NULL, 0, y, FRAMES);
    await(session, s.n_recorded_frames >= 2 * FRAMES);
    assert_int_equal(stats_of(session).n_record_lost, 0);
    jack_wire_close(wire);
    live_session_close(session);
    for (int k = 0; k < 2; k++) {
        int64_t n;
        float *got = test_read(k ? out_path : in_path, NULL, 4096, &n);
        int64_t at = 0;
        while (at < n && fabsf(got[at]) < 1e-3f) at++; // dither lies below
        assert_true(at + FRAMES - 100 <= n);
        assert_snr_db((k ? y : x) + 100, got + at, FRAMES - 100, 100); // 24 bits
        free(got);
    }
    free(x), free(y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_set_and_heard_by_name),
        cmocka_unit_test(a_preset_is_loaded_or_the_old_one_plays_on),
        cmocka_unit_test(a_file_that_changes_is_played_and_one_that_is_wrong_is_told),
        cmocka_unit_test(a_users_kernel_is_edited_while_it_plays),
        cmocka_unit_test(a_preset_is_saved_as_it_stands_and_not_read_again),
        cmocka_unit_test(a_controller_moves_a_gain_in_the_block_it_comes_in),
        cmocka_unit_test(a_controller_is_learned_kept_and_forgotten),
        cmocka_unit_test(a_program_change_loads_its_preset),
        cmocka_unit_test(what_is_recorded_is_what_was_heard),
    };
    return cmocka_run_group_tests_name("live_preset", tests, live_check_begin, live_check_end);
}

#else

int main(void)
{
    print_message("skipped: this build has no JACK\n");
    return 0;
}

#endif
