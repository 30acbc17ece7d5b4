/// Two clients of a test around the one under test: a player before it, a recorder behind it. Both count the server's
/// frames, so what is recorded lies at exactly the frame at which it was played, however cycles came.
#ifndef WT_JACK_WIRE_H
#define WT_JACK_WIRE_H

#include "jack_server.h"
#include <stdatomic.h>
#include <stdint.h>

enum { WIRE_CHANNELS = 2, WIRE_EVENTS = 16 };

typedef struct wire_event {
    int frame; ///< of the signal
    uint8_t bytes[3];
} wire_event;

typedef struct jack_wire jack_wire;

jack_wire *jack_wire_open(const jack_server *server);
void jack_wire_close(jack_wire *wire); ///< NULL is allowed
/// Connect player -> CLIENT:in_1, in_2 (and midi_in when it is there) and CLIENT:out_1, out_2 -> recorder.
void jack_wire_through(jack_wire *wire, const char *client);
/// One step of it: a client's outputs to another's inputs; "player" and "recorder" are the wire's own.
void jack_wire_between(jack_wire *wire, const char *from, const char *to);

/// Play `signal` [WIRE_CHANNELS][n_frames] and the events, and record as many frames of the same cycles into `recorded`
/// of the same shape. In freewheel mode nothing is lost on the way and no time passes.
void jack_wire_run(jack_wire *wire, bool freewheel, const float *signal, const wire_event *events, int n_events,
                   float *recorded, int n_frames);
/// Times since the last run began that cycles were skipped, as the clients saw, or that the server said it was late (a
/// little after): what was to be played then may not have been. A server that is starved does that.
int jack_wire_n_skips(const jack_wire *wire);
/// Change the server's block length.
void jack_wire_set_block(jack_wire *wire, int block_frames);
/// Let the player sleep in its next cycle, as a client that does not keep up.
void jack_wire_oversleep(jack_wire *wire, int ms);
void jack_wire_oversleep_in_run(jack_wire *wire, int ms); ///< in the second cycle of the next jack_wire_run
/// What the server says of the way from the player to the recorder's port: frames between the two, min and max.
void jack_wire_latency(jack_wire *wire, int *min, int *max);
/// The same against the stream, at the player's port.
void jack_wire_playback_latency(jack_wire *wire, int *min, int *max);
/// Does a port of that full name (or alias) exist?
bool jack_wire_has_port(jack_wire *wire, const char *name);
/// Was there a connection? It is there afterwards.
bool jack_wire_connect(jack_wire *wire, const char *from, const char *to);
void jack_wire_transport(jack_wire *wire, double bpm); ///< lead the time at this tempo and roll; 0 = stop

#endif
