/// The live session: one wt_live, the preset it plays and the host it plays through, and everything that may be asked
/// of them while audio runs. The view, the control sockets, OSC and MIDI all speak through these functions, so each
/// thing has one place. Calls that load or save are taken one at a time, in the caller's thread; a thread of the
/// session (live_keeper.c) watches files, follows the host's end and return, and tells listeners what MIDI changed.
#ifndef WT_LIVE_SESSION_H
#define WT_LIVE_SESSION_H

#include "audio_host.h"
#include <warptone/live.h>
#include <warptone/preset.h>

typedef struct live_session live_session;

typedef struct live_session_config {
    const char *preset; ///< name or path
    const audio_host_type *host_type;
    audio_host_config host; ///< callbacks are filled in by the session; channels, of a stream: 0 = the preset's, else 2
    int n_streams;          ///< copies of the chain side by side, each with channels of its own, 64 in all; 0 = 1
    int n_workers;          ///< threads that help the audio thread with them on the CPU
    const char *backend;    ///< "auto", "cpu", "cuda"; NULL = auto
    wt_live_path path;
    wt_live_mode mode;
    int audio_sms;                      ///< SMs of the audio partition; 0 = 8
    bool watch;                         ///< reload the preset and the files it names when they change
    bool awake;                         ///< let no processor sleep while the session lives (live_rights_awake)
    bool wait;                          ///< when no server is there, or it dies, wait for it and go on
    void (*waiting)(const char *why);   ///< told once that live_session_open waits; NULL = nobody
    const char *record_in, *record_out; ///< files; NULL = none
} live_session_config;

/// Check the preset, connect to the host, take all memory. `config` is copied. Errors: those of the preset, the host,
/// the device and wt_live_create; WT_ERR_CANCELLED (a signal came while it waited for a server).  [main]
WT_CHECKED wt_status live_session_open(const live_session_config *config, live_session **session);
/// Audio runs from here on. Errors: those of the host and of the files to record to.  [main]
WT_CHECKED wt_status live_session_start(live_session *session);
/// Ends audio, then the recordings; all is given back in any case. Errors: WT_ERR_FILE (a recording is not whole). NULL
/// is allowed.  [main]
wt_status live_session_close(live_session *session);

/// Play another preset (name or path). On error the old one plays on.  [any but rt]
WT_CHECKED wt_status live_session_load(live_session *session, const char *preset);
/// Write the preset with the present values of its parameters and its MIDI map; NULL = where it was read. Comments and
/// layout stay as they are. Errors: WT_ERR_FILE (also when a file that the preset names is not found from its new
/// place), WT_ERR_FORMAT, WT_ERR_NO_MEMORY.  [any but rt]
WT_CHECKED wt_status live_session_save(live_session *session, const char *path);

typedef struct live_param {
    char node[64], name[64], unit[16];
    float value, min, max, standard;
    bool logarithmic;
} live_param;

/// The GPU's partitions, "audio" and "llm"; NULL on the CPU and on a GPU that cannot be cut. Borrowed.  [any but rt]
wt_layout *live_session_layout(live_session *session);
int live_session_n_params(live_session *session);                                  ///< [any but rt]
wt_status live_session_param(live_session *session, int index, live_param *param); ///< [any but rt]
/// `name` is "node/param" or "node.param". Values are clamped to their range. WT_ERR_NOT_FOUND with the nearest.
wt_status live_session_set(live_session *session, const char *name, float value);  ///< [any but rt]
wt_status live_session_get(live_session *session, const char *name, float *value); ///< [any but rt]
void live_session_set_bypass(live_session *session, bool bypass);                  ///< [any]
/// Called after each change of a parameter ("node/param"), "bypass" or "preset", from the thread that changed it (for
/// MIDI: a thread of the session, some 20 times a second). At most 8 listeners; a function of NULL removes those of the
/// same user, which are not called after the return. A listener may call anything here but this.
typedef void (*live_listener)(void *user, const char *name, float value);
wt_status live_session_listen(live_session *session, live_listener function, void *user); ///< [any but rt]

/// Levels now, in full scale, per channel: the peak, falling by 20 dB in 1.7 s, and the RMS over some 300 ms. Returns
/// the channels written.  [any but rt]
int live_session_levels(live_session *session, bool output, float *peak, float *rms, int max_channels);
/// A reading of a node, such as "limiter/gain_reduction_db".  [any but rt]
wt_status live_session_reading(live_session *session, const char *name, float *value);

typedef struct live_session_stats {
    wt_live_stats live;
    audio_host_stats host;
    const char *preset; ///< as it was asked for; borrowed until the load after the next
    const char *host_name;
    double seconds;                      ///< since start
    uint64_t n_reloads, n_reload_errors; ///< of watched files
    uint64_t n_reconnects;
    uint64_t n_recorded_frames, n_record_lost; ///< of both files; lost: the disk was too slow
    audio_transport transport;
    char last_error[256]; ///< of a reload or a recording that failed, or a server that is waited for; "" = none
} live_session_stats;
void live_session_get_stats(live_session *session, live_session_stats *stats); ///< [any but rt]
/// The round trips (GPU) or process times (CPU) so far; borrowed until live_session_close.  [any]
const wt_histogram *live_session_histogram(const live_session *session);

// ---- MIDI and control, from threads of their own

/// One MIDI message from a port outside the audio host (RtMidi). Messages from the host itself come by audio_callbacks.
void live_session_midi(live_session *session, const uint8_t *bytes, int n_bytes); ///< [any but rt]
/// The next controller that moves is mapped to this parameter, from `min` to `max` (NAN = the end of its range), and
/// the mapping is kept in the preset on save.
wt_status live_session_midi_learn(live_session *session, const char *name, float min, float max); ///< [any but rt]
/// Map a controller: channel 0 = any, 1..16. curve "linear", "log", "toggle", "pick-up".
wt_status live_session_midi_map(live_session *session, const char *name, int channel, int controller, float min,
                                float max, const char *curve); ///< [any but rt]
/// Forget every controller of this parameter. WT_ERR_NOT_FOUND as live_session_set.
wt_status live_session_midi_unmap(live_session *session, const char *name); ///< [any but rt]
/// True when the session was asked to end (control protocol's quit, NSM, a lost server without `wait`).
bool live_session_ended(const live_session *session, const char **why); ///< [any]
/// True when it ended because audio could not go on.
bool live_session_failed(const live_session *session);         ///< [any]
void live_session_end(live_session *session, const char *why); ///< [any]

#endif
