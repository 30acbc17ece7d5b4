#include "support/testing.h"
#include "support/jack_server.h"
#include "support/jack_wire.h"
#include "../hosts/midi_port.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// RtMidi through its JACK interface on jackd's dummy driver. What is compared is which messages come, never when.

#if defined(WT_HAVE_JACK) && defined(WT_HAVE_RTMIDI)

enum { FRAMES = 4096, MAX_TRIES = 8 };

static jack_server server;

typedef struct probe {
    atomic_int n, try; ///< the try whose messages are kept: their last byte is 16 try + number
    uint8_t bytes[64][3];
} probe;

static void on_message(void *user, const uint8_t *bytes, int n_bytes)
{
    probe *p = user;
    const int n = atomic_load(&p->n);
    if (n == 64 || bytes[2] / WIRE_EVENTS != atomic_load(&p->try)) return;
    memcpy(p->bytes[n], bytes, (size_t)n_bytes);
    atomic_store(&p->n, n + 1);
}

static void need_server(void)
{
    if (server.pid) return;
    jack_server_start(&server, 256);
    setenv("JACK_DEFAULT_SERVER", server.name, 1);
    midi_port_info *ports;
    int n;
    if (midi_ports(&ports, &n) == WT_ERR_NO_LIBRARY) {
        print_message("skipped: %s\n", wt_last_error());
        jack_server_stop(&server);
        skip();
    }
    free(ports);
}

/// Play 15 controllers and a note; true when all of them came. Else the server has skipped cycles.
static bool try_messages(jack_wire *wire, probe *p, bool freewheel, int try)
{
    static float silence[2 * FRAMES], got[2 * FRAMES];
    wire_event events[WIRE_EVENTS];
    for (int k = 0; k < WIRE_EVENTS; k++)
        events[k] = (wire_event){100 + 200 * k, {0xb2, 7, (uint8_t)(WIRE_EVENTS * try + k)}};
    events[WIRE_EVENTS - 1].frame = FRAMES - 1;
    events[WIRE_EVENTS - 1].bytes[0] = 0x91;
    atomic_store(&p->n, 0);
    atomic_store(&p->try, try);
    jack_wire_run(wire, freewheel, silence, events, WIRE_EVENTS, got, FRAMES);
    for (int ms = 0; ms < (jack_wire_n_skips(wire) ? 1000 : 30000) && atomic_load(&p->n) < WIRE_EVENTS; ms++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    const int n = atomic_load(&p->n);
    for (int k = 0; k < WIRE_EVENTS && n == WIRE_EVENTS; k++) assert_memory_equal(p->bytes[k], events[k].bytes, 3);
    if (n == WIRE_EVENTS) return true;
    if (!jack_wire_n_skips(wire)) fail_msg("%d of %d messages came, and the server skipped nothing", n, WIRE_EVENTS);
    print_message("the server skipped cycles: %d of %d messages came\n", n, WIRE_EVENTS);
    return false;
}

static void check_messages(jack_wire *wire, probe *p)
{
    for (int try = 0; try < MAX_TRIES; try++)
        if (try_messages(wire, p, true, try)) return;
    fail_msg("the server skipped cycles in %d tries", MAX_TRIES);
}

static void ports_of_clients_are_listed_with_their_interface(void **state)
{
    (void)state;
    need_server();
    jack_wire *wire = jack_wire_open(&server);
    midi_port_info *ports;
    int n, n_found = 0;
    assert_ok(midi_ports(&ports, &n));
    for (int k = 0; k < n; k++) n_found += !strcmp(ports[k].name, "player:midi") && !strcmp(ports[k].api, "jack");
    assert_int_equal(n_found, 1);
    free(ports);
    jack_wire_close(wire);
}

static void a_port_is_heard_by_part_of_its_name_or_number(void **state)
{
    (void)state;
    need_server();
    jack_wire *wire = jack_wire_open(&server);
    midi_port_info *ports;
    int n;
    char number[16] = "";
    assert_ok(midi_ports(&ports, &n));
    for (int k = 0; k < n; k++)
        if (!strcmp(ports[k].name, "player:midi")) snprintf(number, sizeof number, "%d", k);
    free(ports);
    const char *const names[] = {"player:midi", "PLAYER", number};
    for (int k = 0; k < 3; k++) {
        probe p = {.n = 0};
        midi_port *port;
        assert_ok(midi_port_open(
            &(midi_port_config){.client_name = "hears", .port = names[k], .user = &p, .message = on_message}, &port));
        assert_string_equal(midi_port_name(port), "player:midi");
        check_messages(wire, &p);
        assert_int_equal(midi_port_n_lost(port), 0);
        midi_port_close(port);
        assert_false(jack_wire_has_port(wire, "hears:midi_in"));
    }
    jack_wire_close(wire);
}

static void a_virtual_port_takes_connections(void **state)
{
    (void)state;
    need_server();
    jack_wire *wire = jack_wire_open(&server);
    probe p = {.n = 0};
    midi_port *port;
    assert_ok(midi_port_open(
        &(midi_port_config){
            .client_name = "hears", .virtual_name = "pedals", .api = "jack", .user = &p, .message = on_message},
        &port));
    assert_string_equal(midi_port_name(port), "pedals");
    assert_true(jack_wire_has_port(wire, "hears:pedals"));
    (void)jack_wire_connect(wire, "player:midi", "hears:pedals");
    check_messages(wire, &p);
    midi_port_close(port);
    jack_wire_close(wire);
}

// A server that is late may skip what was to be played. The checks above try again when it says so; it does.
static void a_server_that_was_late_says_so_and_is_tried_again(void **state)
{
    (void)state;
    need_server();
    jack_wire *wire = jack_wire_open(&server);
    probe p = {.n = 0};
    midi_port *port;
    assert_ok(midi_port_open(
        &(midi_port_config){.client_name = "hears", .port = "player:midi", .user = &p, .message = on_message}, &port));
    jack_wire_oversleep_in_run(wire, 500); // longer than all that is played
    (void)try_messages(wire, &p, false, 0);
    for (int ms = 0; ms < 30000 && !jack_wire_n_skips(wire); ms++) nanosleep(&(struct timespec){0, 1000000}, NULL);
    assert_true(jack_wire_n_skips(wire) > 0);
    check_messages(wire, &p);
    midi_port_close(port);
    jack_wire_close(wire);
}

static void refusals_name_the_nearest_port(void **state)
{
    (void)state;
    need_server();
    jack_wire *wire = jack_wire_open(&server);
    midi_port *port;
    assert_fails(midi_port_open(&(midi_port_config){.port = "plaier:midi", .api = "jack"}, &port), WT_ERR_NOT_FOUND,
                 "midi: no port 'plaier:midi'; the nearest is 'player:midi' (`warptone info --midi` lists all)");
    assert_null(port);
    assert_int_equal(midi_port_open(&(midi_port_config){.port = "999"}, &port), WT_ERR_NOT_FOUND);
    assert_non_null(strstr(wt_last_error(), "midi: no port 999, there are "));
    assert_fails(midi_port_open(&(midi_port_config){.api = "carrier pigeon"}, &port), WT_ERR_UNSUPPORTED,
                 "midi: no interface carrier pigeon takes a virtual port");
    midi_port_close(NULL);
    jack_wire_close(wire);
}

// The server may die first.
static void a_port_without_its_server_is_closed(void **state)
{
    (void)state;
    need_server();
    midi_port *port;
    midi_port_info *ports;
    int n;
    assert_ok(midi_port_open(&(midi_port_config){.api = "jack", .message = on_message}, &port));
    jack_server_kill(&server);
    midi_port_close(port);
    assert_ok(midi_ports(&ports, &n)); // no server, no ports, no error and no abort
    for (int k = 0; k < n; k++) assert_string_not_equal(ports[k].api, "jack");
    free(ports);
}

static int end_server(void **state)
{
    (void)state;
    jack_server_stop(&server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ports_of_clients_are_listed_with_their_interface),
        cmocka_unit_test(a_port_is_heard_by_part_of_its_name_or_number),
        cmocka_unit_test(a_virtual_port_takes_connections),
        cmocka_unit_test(a_server_that_was_late_says_so_and_is_tried_again),
        cmocka_unit_test(refusals_name_the_nearest_port),
        cmocka_unit_test(a_port_without_its_server_is_closed),
    };
    return cmocka_run_group_tests_name("midi_port", tests, NULL, end_server);
}

#else

int main(void)
{
    print_message("skipped: this build lacks JACK or RtMidi\n");
    return 0;
}

#endif
