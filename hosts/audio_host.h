/// Audio hosts: JACK and PortAudio behind one row of functions, so that the live session knows neither.
#ifndef WT_AUDIO_HOST_H
#define WT_AUDIO_HOST_H

#include "live_processor.h"

#include <stdbool.h>
#include <stdint.h>
#include <warptone/status.h>

typedef struct audio_transport {
    bool rolling;
    double bpm; ///< 0 = not known
    double beats_per_bar, beat_unit;
    int64_t frame; ///< of the transport at the block's first frame
} audio_transport;

/// What a host calls. All pointers but process may be NULL.
typedef struct audio_callbacks {
    void *user;
    /// Planar blocks of any length, 0 and more.  [rt]
    void (*process)(void *user, const float *const *in, float *const *out, int n_frames);
    /// One MIDI message of the block that comes next, at `frame` in it.  [rt]
    void (*midi)(void *user, int frame, const uint8_t *bytes, int n_bytes);
    void (*transport)(void *user, const audio_transport *transport); ///< before process  [rt]
    void (*format)(void *user, double rate_hz, int max_frames);      ///< a new rate or block length  [a host thread]
    void (*xrun)(void *user);                                        ///< the server's count went up  [any]
    void (*freewheel)(void *user, bool on);                          ///< [a host thread]
    /// Server or device gone; close follows, but not from here. `why` is borrowed until close.  [any, as a signal
    /// handler]
    void (*lost)(void *user, const char *why);
    int (*latency)(void *user); ///< frames that the process adds, for the host's own latency figures  [a host thread]
} audio_callbacks;

typedef struct audio_host_config {
    const char *client_name;    ///< NULL = "warptone"
    const char *device;         ///< JACK: server name; PortAudio: name or number; NULL = default
    const char *input_device;   ///< PortAudio: another device for the input
    const char *const *connect; ///< JACK: port patterns; n_connect of them
    int n_connect;
    bool auto_connect;                  ///< JACK: to the physical ports
    int channels;                       ///< of the input; 0 = 2
    int out_channels;                   ///< 0 = as the input
    const char *in_prefix, *out_prefix; ///< of port names; NULL = "in", "out"
    double rate_hz;                     ///< wanted; 0 = the device's
    int block_frames;                   ///< wanted; 0 = the server's, of PortAudio 64
    bool no_adapter;                    ///< PortAudio: blocks as the device cuts them, block_frames says nothing
    double latency_ms;                  ///< PortAudio: suggested; 0 = the device's low latency
    bool midi;                          ///< JACK: a MIDI input port
    live_processor processor;           ///< of the callback's thread; {0} = wherever the system puts it
    audio_callbacks callbacks;
} audio_host_config;

typedef struct audio_host_stats {
    double rate_hz;
    int block_frames;         ///< 0 = changes from call to call
    int block_latency_frames; ///< PortAudio: what cutting the device's blocks to block_frames adds, to the frame
    uint64_t n_xruns;         ///< the server's
    uint64_t n_in_overflow, n_in_underflow, n_out_overflow, n_out_underflow; ///< PortAudio's stream flags
    double in_latency_ms, out_latency_ms;                                    ///< of the device
    double cpu_load;                                                         ///< 0 .. 1, the server's figure
    bool running, freewheel, realtime;
} audio_host_stats;

typedef struct audio_host audio_host;

/// A kind of host. open connects to the server and knows rate and block length (stats); start begins callbacks.
typedef struct audio_host_type {
    const char *name;                                                      ///< "jack", "portaudio"
    wt_status (*open)(const audio_host_config *config, audio_host **host); ///< config is copied
    wt_status (*start)(audio_host *host);
    void (*stop)(audio_host *host);  ///< no callback after its return
    void (*close)(audio_host *host); ///< NULL is allowed
    void (*stats)(const audio_host *host, audio_host_stats *stats);
    /// The process has another latency now: tell the server, which may call `latency` and `format` before the return.
    void (*latency_changed)(audio_host *host); ///< [any but rt, no callback of this host]
    /// Name the ports for people after what plays now; NULL where ports have no names.  [likewise]
    void (*label)(audio_host *host, const char *text);
} audio_host_type;

/// Each starts with this row; the rest is the type's own.
struct audio_host {
    const audio_host_type *type;
};

#ifdef WT_HAVE_JACK
extern const audio_host_type jack_host_type;
#endif
#ifdef WT_HAVE_PORTAUDIO
extern const audio_host_type portaudio_host_type;
#endif

/// The type of that name; NULL when the build lacks it (WT_HAVE_JACK, WT_HAVE_PORTAUDIO).
const audio_host_type *audio_host_find(const char *name);
extern const audio_host_type *const audio_host_types[]; ///< ends with NULL

#endif
