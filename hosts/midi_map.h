/// MIDI to parameters: bytes become events, events move the parameters that the rows of a map name.
///
/// The audio callback calls midi_map_drain at the begin of a block and midi_map_message for messages of its own host;
/// workers load tables, and threads of MIDI ports push messages that the next drain applies. A new table is taken up by
/// the audio thread at its next drain; the old one is given back to the workers, so nothing waits for anything.
#ifndef WT_MIDI_MAP_H
#define WT_MIDI_MAP_H

#include <stdbool.h>
#include <stdint.h>
#include <warptone/chain.h>
#include <warptone/preset.h>

// ---- events

typedef enum midi_kind {
    MIDI_NOTE_OFF, ///< as well: note on of velocity 0
    MIDI_NOTE_ON,
    MIDI_CONTROL,
    MIDI_PROGRAM,
    MIDI_PRESSURE,
    MIDI_BEND
} midi_kind;

typedef struct midi_event {
    midi_kind kind;
    int channel; ///< 1 .. 16
    int number;  ///< key, controller or program; 0 for pressure and bend
    int value;   ///< 0 .. 127; of a bend 0 .. 16383, middle 8192
} midi_event;

/// A stream of bytes under reading; start from zero.
typedef struct midi_parser {
    uint8_t status; ///< the running status, 0 = none
    uint8_t data;   ///< the first of two data bytes
    bool has_data;
} midi_parser;

/// Take a byte; true when it completes an event of those above. Running status is kept, real-time bytes (248 ..) may
/// stand anywhere, system exclusive and common messages are skipped, as are data bytes without a status and messages
/// that another status cuts short.  [rt]
WT_RT bool midi_parse(midi_parser *parser, uint8_t byte, midi_event *event);

// ---- the map

typedef struct midi_map midi_map;

/// Where parameters are set: wt_live_set_if and wt_live_get, or a chain's. Number and indices are those of the chain
/// loaded with.
typedef struct midi_sink {
    void *user;
    void (*set)(void *user, uint64_t number, int node, int param, float value); ///< [rt]
    float (*get)(void *user, int node, int param);                              ///< present target  [rt]
} midi_sink;

/// An empty map. Errors: WT_ERR_NO_MEMORY.  [any but rt]
WT_CHECKED wt_status midi_map_create(const midi_sink *sink, midi_map **map);
/// The audio callback must not run any more. NULL is allowed.  [any but rt]
void midi_map_destroy(midi_map *map);

// The following five are for one worker at a time.

/// Replace all rows; they are copied. `chain` resolves their parameters and is borrowed for the call. The old
/// rows are heard until the next block; the chain's number keeps them off another's parameters.
/// Errors: WT_ERR_NOT_FOUND, WT_ERR_BAD_ARG, WT_ERR_FULL (more than 256), WT_ERR_NO_MEMORY; the old rows stay. [worker]
WT_CHECKED wt_status midi_map_load(midi_map *map, const wt_chain *chain, const wt_midi_row *rows, int n_rows);
/// Add a row to those there; rows of the same parameter from the same kind of source give way. Errors: as
/// above.  [worker]
WT_CHECKED wt_status midi_map_add(midi_map *map, const wt_chain *chain, const wt_midi_row *row);
/// The rows, as preset_edit_midi takes them; borrowed until the next load or add.  [worker]
const wt_midi_row *midi_map_rows(const midi_map *map, int *n_rows);
/// The preset that a program change asked for since the last call, or NULL; borrowed likewise.  [worker]
const char *midi_map_program(midi_map *map);
/// What moved since midi_map_learn(map, true): source, number and channel of `row` are set, its other fields are those
/// of a row without range. False while nothing has moved.  [worker]
bool midi_map_learned(midi_map *map, wt_midi_row *row);

/// Listen for the next controller or pitch wheel that moves, or stop. While it listens the map moves nothing.  [any]
WT_RT void midi_map_learn(midi_map *map, bool listen);

/// One whole message (a port never splits them), now.  [rt, the audio thread]
WT_RT void midi_map_message(midi_map *map, const uint8_t *bytes, int n_bytes);
/// Queue messages of a port for the next drain; false when the queue had no room for all.  [any but rt]
bool midi_map_push(midi_map *map, const uint8_t *bytes, int n_bytes);
/// Take up a new table, and apply what was queued.  [rt, the audio thread]
WT_RT void midi_map_drain(midi_map *map);

#endif
