/// What tests of a live session share: a server, presets in the scratch folder, and a signal through the whole.
#ifndef WT_LIVE_SESSION_CHECK_H
#define WT_LIVE_SESSION_CHECK_H

#include "audio_files.h"
#include "jack_server.h"
#include "jack_wire.h"
#include "testing.h"
#include "../../hosts/live_session.h"

enum { RATE = 48000, BLOCK = 256 };

/// The group's server, started when it is first needed; else the test is skipped, saying why.
extern jack_server live_server;
void need_server(void);
int live_check_begin(void **state); ///< group fixtures: scratch folder, preset folder, end of the server
int live_check_end(void **state);

/// On that server, as client "session", on the CPU.
live_session_config config_of(const char *preset);
live_session *started(const live_session_config *config);
live_session_stats stats_of(live_session *session);
void pause_ms(int ms);

/// Wait up to half a minute until `condition`, which looks at `session` and `s`, its figures.
#define await(session, condition)                                                                                      \
    do {                                                                                                               \
        live_session_stats s = stats_of(session);                                                                      \
        for (int tries = 0; tries < 3000 && !(condition); tries++) {                                                   \
            pause_ms(10);                                                                                              \
            s = stats_of(session);                                                                                     \
        }                                                                                                              \
        if (!(condition)) fail_msg("never: %s (%s)", #condition, s.last_error);                                        \
    } while (0)

/// A preset of these nodes, written beside and renamed, as editors do; its path.
const char *write_preset(void **state, const char *name, const char *nodes);
/// A file as text; free().
char *read_text(const char *path);
/// [2][n_frames]: silence for the first `silence` frames, then a loud burst that fades.
float *signal_of(int silence, int n_frames);
/// The same through the preset's chain, offline.
float *offline(const char *preset, const float *signal, int n_frames);
/// Play noise through `wire`; what comes out over what went in, in the second half.
float gain_of(jack_wire *wire);

/// A listener's memory.
typedef struct heard {
    char name[64];
    float value;
    int n;
} heard;
void listen_to(void *user, const char *name, float value);

#endif
