/// The far end of a live chain: a device that runs it, behind two block rings.
///
/// Blocks go down one ring and answers come up the other (resident_kernel.h). Who serves them is `owner`: the device;
/// or the audio thread itself, which then answers pending blocks on the CPU from where the device left; or nobody for
/// the moments in which the state is carried over. So a hand-over in either direction loses no block and moves none.
/// On a device of the CPU backend the far end is a C function on a stream, with the same protocol.
#ifndef WT_LIVE_FAR_H
#define WT_LIVE_FAR_H

#include <warptone/block_ring.h>
#include <warptone/graph.h>
#include <warptone/kernel.h>
#include "live_internal.h"
#include "resident_kernel.h"

enum { FAR_SLOTS = 16, FAR_QUEUED = 2 }; ///< FAR_QUEUED: kernels of a term on the stream, one running and one behind

typedef enum far_owner { FAR_CPU, FAR_DEVICE, FAR_MOVING } far_owner;

/// What the audio thread remembers of a posted block.
typedef struct far_block {
    int n_frames;
    int64_t position, rung_ns, until_ns; // until when its answer is waited for
    int tap_channels[LIVE_MAX_POINTS];   // 0 = the tap was not asked for
} far_block;

struct live_far {
    wt_live *live;
    wt_chain *chain;
    wt_live_path path; // WT_LIVE_RESIDENT or WT_LIVE_GRAPH
    bool on_gpu, runs_on_cpu;

    // the device
    wt_device *device;
    wt_stream *stream;
    wt_module *module;
    wt_kernel *kernel;
    wt_graph *graph;
    wt_block_ring *down, *up;
    wt_buffer *plans, *memory, *node_places, *places, *relay, *rehearsal, *targets; // of the device
    wt_buffer *control, *left, *exported, *faults;                                  // mapped
    resident_args args;
    wt_launch launch;
    resident_place cpu_place; // CPU backend: as `places`

    // the keeper: launches what is to follow, notices what ended
    pthread_t keeper;
    bool has_keeper;
    pthread_mutex_t mutex; // launching, beginning and ending terms
    wt_event *events[FAR_QUEUED];
    bool queued[FAR_QUEUED];
    bool in_term, begun; // begun: it has been the device's
    uint32_t term;
    uint32_t launched; // graph: the turn that was launched for last; the helper's
    atomic_bool quit;

    // hand-over
    atomic_int owner;
    atomic_bool give_back;
    atomic_bool lost;     // no kernel runs that should: nobody answers for a chain that only a device can play
    atomic_bool recover;  // stored before `owner`: start from what was heard, nothing is known of the device's state
    atomic_llong away_ns; // since when the device is away in good order; 0 = never
    uint32_t *served;     // [n_streams] the last turn, while the owner is not the device
    float *serve_in, *serve_out; // [channels], [out_channels] of max_frames: of whoever serves on the CPU
    live_visit visit;            // likewise
    float *visit_planes;

    // the audio thread's
    atomic_uint posted;
    uint32_t turn, heard, sent_sequence;
    int n_fetched;    // streams of the turn after `heard`
    int miss;         // of the block at hand: why it was not posted, -1 = it was
    int64_t until_ns; // it is waited for
    far_block blocks[FAR_SLOTS];
    int64_t looked_ns, hole_ns; // last look for an answer; the longest between two since the last block was posted
    int64_t position;           // of the next input frame
    int64_t fifo_end, hole_begin, hole_end;
    int delay_frames; // of pipelining
    float **fifo;     // [out lines][fifo_frames], by position
    int64_t fifo_mask;
    float *tap_planes; // [point_channels][max_frames]
};

// ---- audio thread (live_far_run.c)

/// Send a block to the device. wt__live_far_take, then, waits for the block that is to be heard now and returns the
/// miss, -1 = none.  [rt]
void wt__live_far_post(live_far *far, const float *const *in, int n_frames);
int wt__live_far_take(live_far *far, float *const *wet, int out_channels, int n_frames);

/// Answer all posted blocks on the CPU, which owns the chain.  [rt, or a worker behind the gate]
void wt__live_far_serve_pending(live_far *far);

// ---- serving on the CPU (live_far_serve.c)

/// Answer stream s's turns after far->served[s] up to `turn`.  [rt, the owner]
void wt__live_far_serve(live_far *far, uint32_t turn);
/// The far end on a CPU stream: `args` points to a live_far pointer.
void wt__live_far_reside(const void *args, int item);

// ---- workers (live_far_build.c, live_far_term.c)

/// Make the device's side of a chain but for its kernel, which is compiled and not loaded: beside a resident kernel
/// this is allowed. max_frames is the longest block. Errors: those of modules and buffers.
WT_CHECKED wt_status wt__live_far_create(wt_live *live, wt_chain *chain, wt_live_path path, int max_frames,
                                         live_far **far);
/// Load the kernel, once, in a quiesce where the device is armed.
WT_CHECKED wt_status wt__live_far_load(live_far *far);
/// The term must have ended. NULL is allowed.
void wt__live_far_destroy(live_far *far);

/// Queue one run of the far end.
WT_CHECKED wt_status wt__live_far_launch(live_far *far);
/// Hand the chain to the device. Errors: WT_ERR_TIMEOUT, WT_ERR_CUDA, WT_ERR_DEVICE_LOST.
WT_CHECKED wt_status wt__live_far_begin(live_far *far);
/// Take it back; it plays on by the CPU. Errors: WT_ERR_TIMEOUT, and the term goes on.
WT_CHECKED wt_status wt__live_far_end(live_far *far, int64_t timeout_us);
/// Stop the device at once, without its state: what a lost device looks like.
void wt__live_far_kill(live_far *far);
/// Kill, and see that nothing is on the stream any more.
void wt__live_far_abandon(live_far *far);

wt_live_path wt__live_far_path(const live_far *far);
uint64_t wt__live_far_launches(const live_far *far);

static inline resident_control *far_control(const live_far *far) { return wt_buffer_host(far->control); }

#endif
