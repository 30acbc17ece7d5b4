/// The inside of the live session, by file:
///
///   live_session.c   open, start, close; the host's callbacks; figures
///   live_playing.c   what plays: parameters and readings by name, listeners
///   live_preset.c    load and save
///   live_keeper.c    the session's own thread
///   live_watch.c     files that changed
///   live_record.c    taps to files
///   live_telemetry.c figures for other processes
///   live_midi.c      controllers to parameters
///   live_tempo.c     the host's tempo to delays
///
/// Locks: `change` is held through a load, a save or a new format; `table` for the moment in which what plays is looked
/// up or exchanged; `host_lock` while the host is asked. They nest in this order, and no callback of a host takes
/// `host_lock`, because the host's calls may wait for its callbacks. The audio thread takes none.
#ifndef WT_LIVE_SESSION_INTERNAL_H
#define WT_LIVE_SESSION_INTERNAL_H

#include "live_record.h"
#include "live_session.h"
#include "live_telemetry.h"
#include "live_watch.h"
#include "midi_map.h"
#include "preset_yaml.h"

#include <pthread.h>
#include <stdatomic.h>
#include <warptone/ring.h>

enum { LIVE_MAX_CHANNELS = 64, LIVE_MAX_LISTENERS = 8, LIVE_NAME_BYTES = 160 };

typedef struct live_name {
    char name[LIVE_NAME_BYTES]; ///< "node/param" or "node/reading"
    int node, index;
} live_name;

/// What plays: made when a preset is loaded, and never changed but for `saved`.
typedef struct live_playing {
    wt_preset *preset;
    char *asked;     ///< name or path that was asked for
    uint64_t number; ///< of its chain
    int n_params, n_readings;
    live_name *params, *readings;
    live_param *infos; ///< [n_params]
    float *saved;      ///< [n_params] values as they stand in the preset's file
} live_playing;

typedef struct live_listening {
    live_listener function;
    void *user;
} live_listening;

typedef struct live_levels {
    _Atomic float peak[LIVE_MAX_CHANNELS], square[LIVE_MAX_CHANNELS];
} live_levels;

struct live_session {
    live_session_config config;
    char *texts[16]; ///< copies of the configuration's strings
    int n_texts;
    const char **patterns;
    wt_device *device;
    wt_layout *layout;
    wt_live *live;
    int channels, out_channels; ///< of all streams

    pthread_mutex_t change;
    double rate_hz; ///< of `live`, and its longest block
    int max_frames;
    pthread_mutex_t table;
    live_playing *playing, *retired,
        *failed; ///< failed: a preset that was read but did not load; its files are watched
    pthread_mutex_t host_lock;
    audio_host *host;
    uint64_t n_xruns_before; ///< of hosts that are gone
    pthread_mutex_t listen;
    live_listening listening[LIVE_MAX_LISTENERS];
    char last_error[256]; ///< under `table`

    // callbacks to the keeper
    int wake_fd;
    _Atomic double wanted_rate_hz;
    atomic_int wanted_frames;
    const char *_Atomic lost;
    atomic_bool latency_changed, playing_changed; ///< told to the host, and to the watch, by the keeper
    _Atomic double bpm, beats_per_bar, beat_unit;
    atomic_llong transport_frame;
    atomic_bool rolling;
    double followed_ms; ///< whole note of the tempo that delays were turned for, 0 = none yet; under `change`
    live_levels in_levels, out_levels;

    midi_map *midi;
    wt_ring *moved;                 ///< parameters that MIDI moved, from the audio thread to the keeper
    char learning[LIVE_NAME_BYTES]; ///< parameter that waits for a controller, "" = none; under `change`
    float learn_min, learn_max;     ///< its ends, likewise

    int awake_fd; ///< keeps processors awake, -1 = nothing does
    pthread_t keeper;
    bool keeper_runs;
    atomic_bool closing;
    live_watch *watch;
    live_record *record;
    live_telemetry *telemetry;
    int64_t start_ns;
    atomic_ullong n_reloads, n_reload_errors, n_reconnects;
    atomic_int end_state; ///< 0, 1 = the reason is being written, 2 = it stands
    char end_why[256];
    bool end_failed;
};

// ---- live_session.c

/// Connect to the host by the configuration.  [main, keeper]
wt_status live__open_host(live_session *session, audio_host **host);
/// Rebuild for the format the host asked for last, when the present one does not do.  [any but rt]
void live__apply_format(live_session *session);
void live__wake(live_session *session);                  ///< the keeper looks around at once  [any]
void live__fail(live_session *session, const char *why); ///< ends it: audio cannot go on  [any]
void live__keep_error(live_session *session, const char *sentence);

// ---- live_playing.c

/// Names and values of the chain that was just loaded. `preset` and nothing else is taken.  [`change` held]
wt_status live__playing_create(live_session *session, wt_preset *preset, const char *asked, live_playing **playing);
void live__playing_destroy(live_playing *playing);
void live__notify(live_session *session, const char *name, float value);

/// "node/param" of a name as people write it. Errors: WT_ERR_NOT_FOUND with the nearest.  [any but rt]
wt_status live__full_name(live_session *session, const char *name, char full[LIVE_NAME_BYTES]);

// ---- live_midi.c

wt_status live__midi_open(live_session *session);
void live__midi_close(live_session *session);
wt_status live__midi_load(live_session *session, const wt_preset *preset); ///< its map, for the chain that plays
void live__midi_message(void *session, int frame, const uint8_t *bytes, int n_bytes); ///< [rt]
void live__midi_round(live_session *session);                                         ///< [keeper]

// ---- live_tempo.c

void live__tempo_round(live_session *session); ///< [keeper]

// ---- live_preset.c

wt_status live__load(live_session *session, const char *preset);

// ---- live_keeper.c

wt_status live__keeper_start(live_session *session);
void live__keeper_stop(live_session *session);

#endif
