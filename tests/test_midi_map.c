#include "support/failing_alloc.h"
#include "support/testing.h"
#include "support/realtime.h"
#include "../hosts/midi_map.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

// ---- bytes to events

/// What a stream of bytes says, one event a line: kind channel number value.
static const char *events_of(const uint8_t *bytes, int n)
{
    static const char names[] = "-+cpPb"; // by midi_kind
    static char text[1024];
    midi_parser parser = {.status = 0};
    midi_event e;
    int at = 0;
    text[0] = 0;
    for (int k = 0; k < n; k++)
        if (midi_parse(&parser, bytes[k], &e))
            at += snprintf(text + at, sizeof text - (size_t)at, "%c %d %d %d\n", names[e.kind], e.channel, e.number,
                           e.value);
    return text;
}

#define EVENTS(...) events_of((const uint8_t[]){__VA_ARGS__}, (int)sizeof((const uint8_t[]){__VA_ARGS__}))

static void bytes_become_events(void **state)
{
    (void)state;
    assert_string_equal(EVENTS(0x90, 60, 100, 0x80, 60, 64, 0x9f, 61, 0), "+ 1 60 100\n- 1 60 64\n- 16 61 0\n");
    assert_string_equal(EVENTS(0xb2, 7, 127, 0xc3, 5, 0xd4, 90, 0xe0, 0, 64, 0xe0, 127, 127),
                        "c 3 7 127\np 4 5 5\nP 5 0 90\nb 1 0 8192\nb 1 0 16383\n");
}

static void running_status_is_kept(void **state)
{
    (void)state;
    assert_string_equal(EVENTS(0xb0, 7, 1, 7, 2, 10, 3, 0xc0, 1, 2, 3),
                        "c 1 7 1\nc 1 7 2\nc 1 10 3\np 1 1 1\np 1 2 2\np 1 3 3\n");
    assert_string_equal(EVENTS(0xa0, 60, 1, 61, 2, 0xb0, 7, 1), "c 1 7 1\n"); // key pressure is passed over whole
}

static void real_time_bytes_may_stand_anywhere(void **state)
{
    (void)state;
    assert_string_equal(EVENTS(0xf8, 0xb0, 0xfe, 7, 0xf8, 99, 0xfa, 8, 0xff, 98), "c 1 7 99\nc 1 8 98\n");
}

static void system_messages_are_skipped_and_end_the_running_status(void **state)
{
    (void)state;
    assert_string_equal(EVENTS(0xb0, 7, 1, 0xf0, 1, 2, 3, 0xf8, 4, 0xf7, 7, 2, 0xb0, 7, 3), "c 1 7 1\nc 1 7 3\n");
    assert_string_equal(EVENTS(0xf0, 1, 2, 0xb0, 7, 3), "c 1 7 3\n"); // never ended
    assert_string_equal(EVENTS(0xf2, 7, 2, 0xf1, 3, 0xf6, 9), "");
}

static void what_is_cut_short_says_nothing(void **state)
{
    (void)state;
    assert_string_equal(EVENTS(7, 100, 64), "");
    assert_string_equal(EVENTS(0xb0, 7, 0xb0, 8, 5, 0x90), "c 1 8 5\n");
    assert_string_equal(EVENTS(0xb0, 7), "");
}

// ---- the map

typedef struct rig {
    wt_chain *chain;
    midi_map *map;
} rig;

static void chain_set(void *user, uint64_t number, int node, int param, float value)
{
    assert_true(number == wt_chain_number(((rig *)user)->chain));
    (void)!wt_chain_set(((rig *)user)->chain, node, param, value);
}

static float chain_get(void *user, int node, int param) { return wt_chain_get(((rig *)user)->chain, node, param); }

static rig *rig_of(const wt_midi_row *rows, int n_rows)
{
    static rig r;
    const wt_node_desc nodes[] = {
        {.type = "gain", .id = "level"},
        {.type = "biquad",
         .id = "cut",
         .settings = (const wt_setting[]){{"shape", "lowpass", 0}, {"frequency_hz", NULL, 1000}},
         .n_settings = 2},
    };
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = 48000, .channels = 1},
                              &(wt_chain_desc){.nodes = nodes, .n_nodes = 2}, &r.chain));
    assert_ok(midi_map_create(&(midi_sink){&r, chain_set, chain_get}, &r.map));
    assert_ok(midi_map_load(r.map, r.chain, rows, n_rows));
    midi_map_drain(r.map);
    return &r;
}

static void end(rig *r)
{
    midi_map_destroy(r->map);
    wt_chain_destroy(r->chain);
}

static float gain_db(rig *r) { return wt_chain_get(r->chain, 0, 0); }

static float cut_hz(rig *r)
{
    int node, param;
    assert_ok(wt_chain_find(r->chain, "cut", "frequency_hz", &node, &param));
    return wt_chain_get(r->chain, node, param);
}

static void send(rig *r, int status, int first, int second)
{
    const uint8_t bytes[3] = {(uint8_t)status, (uint8_t)first, (uint8_t)second};
    RT_SECTION { midi_map_message(r->map, bytes, 3); }
}

#define GAIN .param = "level/gain_db"
#define CUT  .param = "cut/frequency_hz"
#define OWN  .min = NAN, .max = NAN

static void controllers_move_parameters_along_their_curves(void **state)
{
    (void)state;
    rig *r = rig_of((wt_midi_row[]){{WT_MIDI_CC, 7, 1, GAIN, .min = -40, .max = 6, .curve = WT_MIDI_LINEAR},
                                    {WT_MIDI_CC, 74, 0, CUT, .min = 100, .max = 6400},
                                    {WT_MIDI_CC, 75, 0, CUT, .min = 6400, .max = 100, .curve = WT_MIDI_LINEAR},
                                    {WT_MIDI_CC, 76, 0, GAIN, .min = 1, .max = 16, .curve = WT_MIDI_LOG},
                                    {WT_MIDI_CC, 80, 0, GAIN, .min = -60, .max = 0, .curve = WT_MIDI_TOGGLE}},
                    5);
    send(r, 0xb0, 7, 0), assert_true(gain_db(r) == -40);
    send(r, 0xb0, 7, 127), assert_true(gain_db(r) == 6);
    send(r, 0xb1, 7, 0), assert_true(gain_db(r) == 6); // another channel
    send(r, 0xb0, 8, 0), assert_true(gain_db(r) == 6); // another controller
    send(r, 0xb9, 74, 0), assert_float_equal(cut_hz(r), 100, 1e-3);
    send(r, 0xb9, 74, 127), assert_float_equal(cut_hz(r), 6400, 1e-1);
    // a frequency moves by octaves: from 100 Hz six octaves up, a third of the way is two
    send(r, 0xb9, 74, 42), assert_float_equal(cut_hz(r), 100 * exp2f(6 * 42 / 127.0f), 1e-2);
    send(r, 0xb0, 75, 0), assert_float_equal(cut_hz(r), 6400, 1e-2);
    send(r, 0xb0, 75, 127), assert_float_equal(cut_hz(r), 100, 1e-2);
    send(r, 0xb0, 76, 127), assert_float_equal(gain_db(r), 16, 1e-4);
    send(r, 0xb0, 76, 0), assert_true(gain_db(r) == 1);
    send(r, 0xb0, 80, 63), assert_true(gain_db(r) == -60);
    send(r, 0xb0, 80, 64), assert_true(gain_db(r) == 0);
    end(r);
}

static void pairs_and_numbered_parameters_have_14_bits(void **state)
{
    (void)state;
    rig *r = rig_of((wt_midi_row[]){{WT_MIDI_CC14, 1, 0, GAIN, .min = 0, .max = 16.383f},
                                    {WT_MIDI_NRPN, 259, 2, CUT, .min = 100, .max = 16483, .curve = WT_MIDI_LINEAR}},
                    2);
    send(r, 0xb0, 1, 64), assert_float_equal(gain_db(r), 8.192, 1e-4);
    send(r, 0xb0, 33, 3), assert_float_equal(gain_db(r), 8.195, 1e-4);
    send(r, 0xb1, 33, 127), assert_float_equal(gain_db(r), 0.127, 1e-4); // that channel's high part is still 0
    send(r, 0xb0, 1, 127);
    send(r, 0xb0, 33, 127), assert_float_equal(gain_db(r), 16.383, 1e-4);

    send(r, 0xb1, 6, 100), assert_float_equal(cut_hz(r), 1000, 1e-2); // none is chosen
    send(r, 0xb1, 99, 2), send(r, 0xb1, 98, 3);                       // 2 * 128 + 3
    send(r, 0xb1, 6, 1), assert_float_equal(cut_hz(r), 228, 1e-2);
    send(r, 0xb1, 38, 5), assert_float_equal(cut_hz(r), 233, 1e-2);
    send(r, 0xb0, 6, 0), assert_float_equal(cut_hz(r), 233, 1e-2);       // another channel
    send(r, 0xb1, 101, 0), send(r, 0xb1, 100, 0), send(r, 0xb1, 6, 100); // a registered parameter's value
    assert_float_equal(cut_hz(r), 233, 1e-2);
    send(r, 0xb1, 99, 127), send(r, 0xb1, 98, 127), send(r, 0xb1, 6, 100); // the null parameter
    assert_float_equal(cut_hz(r), 233, 1e-2);
    end(r);
}

static void keys_give_pitch_velocity_and_switches(void **state)
{
    (void)state;
    rig *r = rig_of((wt_midi_row[]){{WT_MIDI_NOTE, WT_MIDI_ANY, 1, CUT, OWN},
                                    {WT_MIDI_NOTE, 36, 10, GAIN, .min = -60, .max = 0, .curve = WT_MIDI_TOGGLE},
                                    {WT_MIDI_NOTE, 38, 10, GAIN, .min = -12, .max = 0},
                                    {WT_MIDI_VELOCITY, WT_MIDI_ANY, 2, GAIN, .min = -12.7f, .max = 0}},
                    4);
    send(r, 0x90, 69, 1), assert_float_equal(cut_hz(r), 440, 1e-3);
    send(r, 0x80, 69, 1), assert_float_equal(cut_hz(r), 440, 1e-3); // stays
    send(r, 0x90, 81, 1), assert_float_equal(cut_hz(r), 880, 1e-2);
    send(r, 0x90, 60, 1), assert_float_equal(cut_hz(r), 261.6256, 1e-3);
    send(r, 0x99, 36, 9), assert_true(gain_db(r) == -60); // from 0: changes over
    send(r, 0x89, 36, 9), assert_true(gain_db(r) == -60);
    send(r, 0x99, 36, 9), assert_true(gain_db(r) == 0);
    send(r, 0x99, 38, 127), assert_true(gain_db(r) == 0); // as long as it is held
    send(r, 0x99, 38, 0), assert_true(gain_db(r) == -12);
    send(r, 0x91, 5, 27), assert_float_equal(gain_db(r), -10, 1e-4);
    send(r, 0x81, 5, 27), assert_float_equal(gain_db(r), -10, 1e-4);
    end(r);
}

static void the_wheel_rests_exactly_in_the_middle(void **state)
{
    (void)state;
    rig *r = rig_of((wt_midi_row[]){{WT_MIDI_BEND, WT_MIDI_ANY, 0, GAIN, .min = -12, .max = 12},
                                    {WT_MIDI_PRESSURE, WT_MIDI_ANY, 0, CUT, .min = 200, .max = 8000}},
                    2);
    send(r, 0xe0, 0, 64), assert_true(gain_db(r) == 0);
    send(r, 0xe0, 0, 0), assert_true(gain_db(r) == -12);
    send(r, 0xe0, 127, 127), assert_true(gain_db(r) == 12);
    send(r, 0xd3, 127, 0x80), assert_float_equal(cut_hz(r), 8000, 1e-1);
    end(r);
}

static void a_picked_up_parameter_does_not_jump(void **state)
{
    (void)state;
    // one decibel a step: the controller at n stands for n - 67
    rig *r = rig_of((wt_midi_row[]){{WT_MIDI_CC, 7, 0, GAIN, .min = -67, .max = 60, .curve = WT_MIDI_PICK_UP}}, 1);
    assert_true(wt_chain_set(r->chain, 0, 0, 33) == WT_OK);
    send(r, 0xb0, 7, 10), assert_true(gain_db(r) == 33);
    send(r, 0xb0, 7, 90), assert_true(gain_db(r) == 33);
    send(r, 0xb0, 7, 105), assert_float_equal(gain_db(r), 38, 1e-4); // passed it
    send(r, 0xb0, 7, 20), assert_float_equal(gain_db(r), -47, 1e-4); // follows from now on
    assert_true(wt_chain_set(r->chain, 0, 0, 0.5f) == WT_OK);        // somebody else
    send(r, 0xb0, 7, 21), assert_true(gain_db(r) == 0.5f);
    send(r, 0xb0, 7, 66), assert_true(gain_db(r) == 0.5f);
    send(r, 0xb0, 7, 67), assert_float_equal(gain_db(r), 0, 1e-4); // within a step of it
    end(r);
}

static void a_controller_is_learned(void **state)
{
    (void)state;
    rig *r = rig_of((wt_midi_row[]){{WT_MIDI_CC, 7, 0, GAIN, .min = -40, .max = 0}}, 1);
    wt_midi_row row;
    int n;
    assert_false(midi_map_learned(r->map, &row));
    midi_map_learn(r->map, true);
    send(r, 0x90, 60, 100), send(r, 0xb0, 123, 0); // keys and channel modes are no controllers
    assert_false(midi_map_learned(r->map, &row));
    send(r, 0xb4, 7, 20);
    assert_true(gain_db(r) == 0); // what is learned moves nothing
    assert_true(midi_map_learned(r->map, &row));
    assert_false(midi_map_learned(r->map, &row));
    assert_int_equal(row.source, WT_MIDI_CC);
    assert_int_equal(row.number, 7);
    assert_int_equal(row.channel, 5);
    row.param = "cut/frequency_hz";
    assert_ok(midi_map_add(r->map, r->chain, &row));
    row.number = 8; // learned again: the other goes
    assert_ok(midi_map_add(r->map, r->chain, &row));
    const wt_midi_row *rows = midi_map_rows(r->map, &n);
    assert_int_equal(n, 2);
    assert_string_equal(rows[0].param, "level/gain_db");
    assert_int_equal(rows[1].number, 8);
    send(r, 0xb4, 8, 0), assert_float_equal(cut_hz(r), 1000, 1e-2); // before the audio thread took the table up
    midi_map_drain(r->map);
    send(r, 0xb4, 8, 0), assert_float_not_equal(cut_hz(r), 1000, 1);
    midi_map_learn(r->map, true);
    send(r, 0xe1, 0, 0);
    assert_true(midi_map_learned(r->map, &row));
    assert_int_equal(row.source, WT_MIDI_BEND);
    assert_int_equal(row.number, WT_MIDI_ANY);
    assert_int_equal(row.channel, 2);
    midi_map_learn(r->map, true), midi_map_learn(r->map, false);
    send(r, 0xb4, 9, 20);
    assert_false(midi_map_learned(r->map, &row));
    end(r);
}

static void a_program_asks_for_a_preset(void **state)
{
    (void)state;
    rig *r = rig_of((wt_midi_row[]){{WT_MIDI_PROGRAM, 3, 0, .preset = "hall", OWN},
                                    {WT_MIDI_PROGRAM, 4, 2, .preset = "guitar", OWN}},
                    2);
    assert_null(midi_map_program(r->map));
    send(r, 0xc5, 3, 0x80);
    assert_string_equal(midi_map_program(r->map), "hall");
    assert_null(midi_map_program(r->map));
    send(r, 0xc0, 4, 0x80);
    assert_null(midi_map_program(r->map)); // another channel
    send(r, 0xc1, 4, 0x80);
    assert_string_equal(midi_map_program(r->map), "guitar");
    end(r);
}

static void messages_of_ports_wait_for_the_block(void **state)
{
    (void)state;
    rig *r = rig_of((wt_midi_row[]){{WT_MIDI_CC, 7, 0, GAIN, .min = -100, .max = 27}}, 1);
    assert_true(midi_map_push(r->map, (const uint8_t[]){0xb0, 7, 27, 7, 67}, 5));
    assert_true(gain_db(r) == 0);
    RT_SECTION { midi_map_drain(r->map); }
    assert_float_equal(gain_db(r), -33, 1e-4);
    int n_taken = 0;
    while (n_taken < 100000 && midi_map_push(r->map, (const uint8_t[]){0xb0, 7, 127}, 3)) n_taken++;
    assert_int_equal(n_taken, 1024); // full is told, not waited for
    midi_map_drain(r->map);
    assert_float_equal(gain_db(r), 27, 1e-4);
    end(r);
}

static void what_does_not_fit_is_refused_and_the_old_rows_stay(void **state)
{
    (void)state;
    rig *r = rig_of((wt_midi_row[]){{WT_MIDI_CC, 7, 0, GAIN, .min = -40, .max = 0}}, 1);
    static wt_midi_row many[257];
    assert_fails(midi_map_load(r->map, r->chain, &(wt_midi_row){WT_MIDI_CC, 1, 0, .param = "levle/gain_db", OWN}, 1),
                 WT_ERR_NOT_FOUND, "chain: no node 'levle'; the nearest is 'level'");
    assert_fails(midi_map_add(r->map, r->chain, &(wt_midi_row){WT_MIDI_CC, 1, 0, GAIN, .min = NAN, .max = 99}),
                 WT_ERR_BAD_ARG, "max is 99, want -120..60 dB of gain_db");
    assert_fails(midi_map_load(r->map, r->chain, many, 257), WT_ERR_FULL, "midi: 257 rows, want at most 256");
    midi_map_drain(r->map);
    send(r, 0xb0, 7, 0), assert_true(gain_db(r) == -40);
    end(r);
}

/// A map with a row in it; a failure on the way leaves nothing behind.
static wt_status create(void *user)
{
    rig *r = user;
    wt_status status = midi_map_create(&(midi_sink){r, chain_set, chain_get}, &r->map);
    if (!status)
        status = midi_map_load(r->map, r->chain, &(wt_midi_row){WT_MIDI_CC, 7, 0, GAIN, .min = -40, .max = 0}, 1);
    if (status) {
        midi_map_destroy(r->map);
        r->map = NULL;
    }
    return status;
}

static void destroy(void *user) { midi_map_destroy(((rig *)user)->map); }

static void it_survives_failing_allocations(void **state)
{
    (void)state;
    rig r = *rig_of(NULL, 0);
    midi_map_destroy(r.map);
    assert_true(assert_survives_failing_alloc(create, destroy, &r) >= 6); // map, ring, and two tables twice
    wt_chain_destroy(r.chain);
}

// The audio thread's part on a thread of its own, beside a worker that loads and a port that pushes: under the
// sanitizers this finds a table that is freed while it is read.
typedef struct storm {
    rig *rig;
    atomic_bool stop;
    const char *offence;
} storm;

static void *audio(void *user)
{
    storm *s = user;
    realtime_begin();
    while (!atomic_load(&s->stop)) {
        midi_map_drain(s->rig->map);
        midi_map_message(s->rig->map, (const uint8_t[]){0xb0, 7, 64, 0xe0, 1, 2}, 6);
    }
    s->offence = realtime_end();
    return NULL;
}

static void tables_are_swapped_while_audio_runs(void **state)
{
    (void)state;
    const wt_midi_row rows[] = {{WT_MIDI_CC, 7, 0, GAIN, .min = -40, .max = 0},
                                {WT_MIDI_BEND, WT_MIDI_ANY, 0, CUT, OWN, .curve = WT_MIDI_PICK_UP}};
    storm s = {.rig = rig_of(rows, 2)};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, audio, &s), 0);
    for (int k = 0; k < 2000; k++) {
        assert_ok(midi_map_load(s.rig->map, s.rig->chain, rows, k % 3));
        (void)midi_map_push(s.rig->map, (const uint8_t[]){0xb0, 7, 100}, 3);
    }
    atomic_store(&s.stop, true);
    pthread_join(thread, NULL);
    assert_null(s.offence);
    assert_ok(midi_map_load(s.rig->map, s.rig->chain, rows, 2));
    midi_map_drain(s.rig->map);
    midi_map_drain(s.rig->map);
    send(s.rig, 0xb0, 7, 127), assert_true(gain_db(s.rig) == 0);
    end(s.rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_become_events),
        cmocka_unit_test(running_status_is_kept),
        cmocka_unit_test(real_time_bytes_may_stand_anywhere),
        cmocka_unit_test(system_messages_are_skipped_and_end_the_running_status),
        cmocka_unit_test(what_is_cut_short_says_nothing),
        cmocka_unit_test(controllers_move_parameters_along_their_curves),
        cmocka_unit_test(pairs_and_numbered_parameters_have_14_bits),
        cmocka_unit_test(keys_give_pitch_velocity_and_switches),
        cmocka_unit_test(the_wheel_rests_exactly_in_the_middle),
        cmocka_unit_test(a_picked_up_parameter_does_not_jump),
        cmocka_unit_test(a_controller_is_learned),
        cmocka_unit_test(a_program_asks_for_a_preset),
        cmocka_unit_test(messages_of_ports_wait_for_the_block),
        cmocka_unit_test(what_does_not_fit_is_refused_and_the_old_rows_stay),
        cmocka_unit_test(it_survives_failing_allocations),
        cmocka_unit_test(tables_are_swapped_while_audio_runs),
    };
    return cmocka_run_group_tests_name("midi_map", tests, NULL, NULL);
}
