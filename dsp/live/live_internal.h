/// The inside of wt_live, by thread: live_run.c is the audio thread, live_load.c the workers that bring chains,
/// live_create.c those that make and end it, live_safe_point.c those that quiesce, live_points.c taps and inserts,
/// live_params.c what any thread may ask.
///
/// Memory order, once. The audio thread counts `epoch` up when it enters and when it leaves wt_live_process, so it is
/// odd inside. Who takes something away stores NULL (or closes the gate) and then looks at `epoch`, both sequentially
/// consistent, as are the audio thread's count and its look: either it sees what was stored, or it is seen inside and
/// waited for. A chain comes in by an exchange of `next` and goes out through `left`; in between it is the audio
/// thread's alone. Threads that set parameters count themselves into `readers` around their use of `shown`.
#ifndef WT_LIVE_INTERNAL_H
#define WT_LIVE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <warptone/arm.h>
#include <warptone/live.h>
#include <warptone/ring.h>
#include "../chain/chain_internal.h"
#include "live_workers.h"

enum {
    LIVE_LATE = 4, // late answers that are remembered, a power of two
    LIVE_MAX_POINTS = 8,
    LIVE_MAX_FRAMES = 8192,
    LIVE_MAX_LINES = 4096,     ///< channels of all streams
    LIVE_DRY_FRAMES = 1 << 16, ///< the longest latency that the dry signal is delayed by
};

/// What a block carries to and from chosen nodes of stream 0, planar with stride `stride`.
typedef struct live_visit {
    int tap_node[LIVE_MAX_POINTS], insert_node[LIVE_MAX_POINTS]; // -1 = none
    int insert_channels[LIVE_MAX_POINTS], tap_channels[LIVE_MAX_POINTS];
    float *tap[LIVE_MAX_POINTS], *insert[LIVE_MAX_POINTS];
    int stride;
} live_visit;

typedef struct live_far live_far;

/// One chain as it plays.
typedef struct live_player {
    wt_chain *chain;
    live_far *far; // its device end; NULL = the audio thread runs it
    int latency_frames;
    atomic_int tap_node[LIVE_MAX_POINTS], insert_node[LIVE_MAX_POINTS]; // indices into chain->nodes, -1 = none
} live_player;

typedef enum live_place { LIVE_AT_IN, LIVE_AT_OUT, LIVE_AT_NODE } live_place;

/// What taps and inserts have in common.
typedef struct live_point {
    wt_live *live;
    int slot;
    live_place place;
    char *node;    // its id
    int channels;  // of the ring
    wt_ring *ring; // interleaved frames
    float *planes; // [channels][max_frames], of the audio thread
} live_point;

struct wt_live_tap {
    live_point point;
    int source_channels; // of what it hears, before `mono`
    double rate_hz;      // wanted; 0 = as it comes
    atomic_ullong lost;
    // the reader's
    uint64_t lost_told;
    double resampled_hz; // what `resampler` was made for
    struct wt_resample *resampler;
    float *frames; // [READ_FRAMES][channels], then [channels][READ_FRAMES] twice
    int n_waiting; // frames that the resampler has not taken
};

struct wt_live_insert {
    live_point point;
};

struct wt_live {
    wt_live_config config;   // defaults resolved
    int lines;               // input channels of all streams
    atomic_int out_channels; // of a stream; 0 = not known yet

    // format, changed behind the gate
    _Atomic double rate_hz;
    int max_frames, fade_frames;
    void *memory;                           // all of the audio thread's buffers
    float **wet, **wet_old, **dry, **heard; // [lines or out lines] of max_frames
    const float **in_at;                    // [lines], and [out lines]: a part of a block
    float **out_at;
    float *dry_line; // [lines][LIVE_DRY_FRAMES]

    // hand-over
    atomic_uint epoch;
    atomic_int closed; // the gate, by so many workers; 0 = open
    live_player *_Atomic next, *_Atomic left, *_Atomic shown;
    atomic_bool fading; // a chain that was taken up fades in; the audio thread's, and looked at by is_settled
    atomic_uint reader_turn;
    atomic_int readers[2];

    live_workers *workers; // NULL = none

    // the audio thread's
    live_player *current, *leaving;
    bool was_closed;
    int fade;           // frames since `current` came in, while fading
    int wet_frames;     // 0 .. fade_frames: how far the chain is faded in
    int jump_left;      // frames that a jump is still being faded out
    float *jump, *last; // [out lines]
    int64_t dry_at;
    wt_live_times times, late_times[LIVE_LATE]; // late ones by n_late
    unsigned n_late;
    live_visit visit;

    // from any thread to the audio thread
    atomic_bool bypass, freewheel;
    wt_live_tap *_Atomic taps[LIVE_MAX_POINTS];
    wt_live_insert *_Atomic inserts[LIVE_MAX_POINTS];

    // figures: one writer, the audio thread, but for n_loads; n_played are blocks that chains were asked for
    atomic_ullong n_blocks, n_played, n_frames, misses[WT_N_LIVE_MISSES], n_loads, n_moves, n_launches;
    atomic_int block_frames;
    _Atomic double load;
    wt_histogram *process_ns, *round_trip_ns;

    // workers
    pthread_mutex_t mutex;     // load, prepare, move, opening and closing of points
    struct live_desc *desc;    // of the chain that plays; NULL = none
    pthread_mutex_t far_mutex; // what follows; taken inside of `mutex` and of a quiesce
    live_far *far;             // of the chain that plays
    live_far *far_leaving;     // of the one that fades out beside it; NULL = none
    live_far *far_coming;      // `far` as long as the audio thread has not heard of it; NULL = it has
    bool armed, quiesced;      // by us; between the safe point's stop and restart
    atomic_bool parked;        // moved to the CPU by wt_live_move; the audio thread looks at it, too
    wt_safe_point safe_point;
};

/// A description that owns all it names; free() it. NULL without memory.
typedef struct live_desc {
    wt_chain_desc desc;
} live_desc;
live_desc *wt__live_desc_copy(const wt_chain_desc *desc);

// ---- workers

/// Wait until the audio thread has left the block it may be in.  [worker]
void wt__live_settle(const wt_live *live);
/// Shut the audio thread out: blocks are bypassed until all who closed the gate have opened it.  [worker]
void wt__live_close_gate(wt_live *live);
void wt__live_open_gate(wt_live *live);
/// Wait until `done`, as long as blocks are played and for five seconds at most. Returns what it says in the end.
/// [worker]
bool wt__live_wait(wt_live *live, bool (*done)(void *user), void *user);
/// Wait until no thread uses a player that is `shown` no more.  [worker]
void wt__live_settle_readers(wt_live *live);
void wt__live_player_destroy(live_player *player);
/// Make `player` the only one, and destroy the others.  [worker, gate closed]
void wt__live_replace(wt_live *live, live_player *player);
WT_CHECKED wt_status wt__live_check_format(double rate_hz, int max_frames);
/// Buffers of the audio thread for a format; nothing is changed on an error.  [worker, gate closed]
WT_CHECKED wt_status wt__live_take_buffers(wt_live *live, double rate_hz, int max_frames);
/// A resident kernel may stay only where the calls that would hang beside it are refused. Who has armed has the device
/// for a resident kernel: nobody else has. Errors: WT_ERR_STATE (another has).  [worker]
WT_CHECKED wt_status wt__live_arm(wt_live *live);
void wt__live_disarm(wt_live *live);
/// Begin what plays on the device. Outside of quiesces; what another's has stopped begins when that one ends.  [worker]
WT_CHECKED wt_status wt__live_begin_far(wt_live *live);
/// Point every tap and insert of a node at its place in `player`'s chain.  [worker]
void wt__live_find_points(wt_live *live, live_player *player);
/// Planes of all points for the present max_frames.  [worker, gate closed]
WT_CHECKED wt_status wt__live_resize_points(wt_live *live, int max_frames);
void wt__live_close_points(wt_live *live);

/// Whether chains are given to the device: always on a GPU, on the CPU backend when asked for.
static inline bool wt__live_uses_device(const wt_live *live)
{
    const wt_live_config *c = &live->config;
    return c->device && (c->path == WT_LIVE_RESIDENT || c->path == WT_LIVE_GRAPH ||
                         wt_device_get_info(c->device)->backend == WT_BACKEND_CUDA);
}

static inline int wt__live_out_channels(const wt_live *live)
{
    int channels = atomic_load_explicit(&live->out_channels, memory_order_acquire);
    return channels ? channels : live->config.channels;
}

// ---- the audio thread

/// The visitor of chains (chain_internal.h); `user` is a live_visit.  [rt]
void wt__live_visit(void *user, int node, int at, const wt_node_io *io);
/// Inserts of this block: popped into their planes, those "in" added to the input. Returns the input to use.  [rt]
const float *const *wt__live_take_inserts(wt_live *live, const float *const *in, int n_frames);
/// Add the inserts at "out" to `lines` of audio.  [rt]
void wt__live_add_out(wt_live *live, float *const *out, int n_frames);
/// Push this block into the taps: of the input (before `out` is written) and of nodes, or of the output.  [rt]
void wt__live_push_taps(wt_live *live, live_place place, const float *const *lines, int n_lines, int n_frames);
/// Push what tap k, if it is one of a node, heard.  [rt]
void wt__live_push_node_tap(wt_live *live, int k, const float *const *lines, int n_lines, int n_frames);

#endif
