/// MIDI ports of the machine's own, through RtMidi: for hosts that bring no MIDI, and for devices beside them.
#ifndef WT_MIDI_PORT_H
#define WT_MIDI_PORT_H

#include <stdint.h>
#include <warptone/status.h>

typedef struct midi_port midi_port;

/// A port that can be heard, as `warptone info --midi` lists it; its number is its place in the list.
typedef struct midi_port_info {
    char name[128];
    char api[32]; ///< "alsa", "jack"
} midi_port_info;

/// All ports of all interfaces; caller frees with free(). An interface that is not there has none.
/// Errors: WT_ERR_NO_LIBRARY, WT_ERR_UNSUPPORTED (not built in), WT_ERR_NO_MEMORY.  [any but rt]
WT_CHECKED wt_status midi_ports(midi_port_info **ports, int *n_ports);

typedef struct midi_port_config {
    const char *client_name;  ///< NULL = "warptone"
    const char *port;         ///< number or part of the name of a port to hear; NULL = a virtual port
    const char *virtual_name; ///< of the virtual port; NULL = "midi_in"
    const char *api;          ///< "alsa", "jack"; NULL = the first that can
    void *user;
    /// One message of at most three bytes; longer ones (system exclusive) do not come.  [a thread of the port]
    void (*message)(void *user, const uint8_t *bytes, int n_bytes);
} midi_port_config;

/// Open and begin to hear; `config` is copied but for `user`. Errors: as above; WT_ERR_NOT_FOUND with the nearest name.
/// [any but rt]
WT_CHECKED wt_status midi_port_open(const midi_port_config *config, midi_port **port);
void midi_port_close(midi_port *port); ///< No message after its return. NULL is allowed.  [any but rt]

const char *midi_port_name(const midi_port *port); ///< of the port heard, or of the virtual one  [any]
uint64_t midi_port_n_lost(const midi_port *port);  ///< messages that found the queue full  [any]

#endif
