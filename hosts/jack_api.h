/// libjack, opened when it is first needed: the program runs where JACK is not installed, and takes the library of
/// whichever server is there (JACK2, or PipeWire's beside it).
#ifndef WT_JACK_API_H
#define WT_JACK_API_H

#ifdef WT_HAVE_JACK
#    include <jack/jack.h>
#    include <jack/midiport.h>
#    include <jack/thread.h>
#    include <jack/transport.h>

// clang-format off
#    define JACK_API_LIST(X)                                                                                     \
        X(client_open) X(client_close) X(get_client_name) X(activate) X(deactivate) X(is_realtime) X(client_thread_id) \
        X(on_info_shutdown) X(set_process_callback) X(set_freewheel_callback) X(set_buffer_size_callback)        \
        X(set_sample_rate_callback) X(set_xrun_callback) X(set_latency_callback)                                 \
        X(set_freewheel) X(set_buffer_size) X(get_sample_rate) X(get_buffer_size) X(cpu_load)                    \
        X(port_register) X(port_get_buffer) X(port_name) X(port_is_mine) X(port_connected)                       \
        X(port_set_alias) X(port_unset_alias) X(port_get_latency_range) X(port_set_latency_range)                \
        X(recompute_total_latencies) X(connect) X(get_ports) X(port_by_name) X(free)                             \
        X(set_error_function) X(set_info_function) X(last_frame_time)                                            \
        X(midi_get_event_count) X(midi_event_get) X(midi_clear_buffer) X(midi_event_write)                       \
        X(transport_query) X(transport_start) X(transport_stop) X(transport_locate) X(set_timebase_callback)
// clang-format on

typedef struct jack_api {
#    define JACK_API_FIELD(name) __typeof__(jack_##name) *name;
    JACK_API_LIST(JACK_API_FIELD)
#    undef JACK_API_FIELD
} jack_api;

#    include <warptone/status.h>

/// The table, filled once; libjack's own messages are silenced. Errors: WT_ERR_NO_LIBRARY with the loader's words.
/// [any but rt]
WT_CHECKED wt_status jack_api_open(const jack_api **api);

#endif
#endif
