/// Live: a chain that an audio callback runs block by block, on a GPU by a resident kernel or a captured graph, or on
/// the CPU in the callback's own thread.
///
///     wt_live_create(&(wt_live_config){.rate_hz = 48000, .channels = 2, .device = gpu}, &live);
///     wt_live_load(live, desc, NULL);
///     in the callback:  wt_live_process(live, in, out, n_frames);
///
/// The callback side takes no lock, allocates nothing, makes no system call and no CUDA call, and waits no longer than
/// wait_share of the block's own duration. When the GPU's answer is late the block is bypassed (a fade, not a click),
/// the miss is counted with its cause, and the chain is faded back in. When the GPU is lost, or the resident kernel has
/// to leave for a while (arm.h, wt_quiesce), the CPU runs the same chain on from the state the GPU left.
#ifndef WARPTONE_LIVE_H
#define WARPTONE_LIVE_H

#include <warptone/chain.h>
#include <warptone/histogram.h>
#include <warptone/partition.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum wt_live_path {
    WT_LIVE_AUTO,     ///< on a GPU resident; graph when another is resident there; else, or when that fails, CPU
    WT_LIVE_RESIDENT, ///< one kernel that stays and polls a doorbell in mapped memory
    WT_LIVE_GRAPH,    ///< a captured graph, launched for each block by a helper thread on a stream of highest priority
    WT_LIVE_CPU,      ///< the callback's thread
} wt_live_path;

typedef enum wt_live_mode {
    WT_LIVE_IMMEDIATE, ///< the callback waits for its own block: no added latency
    WT_LIVE_PIPELINED, ///< the callback takes the answer of `pipeline_blocks` earlier; on a device only
} wt_live_mode;

// clang-format off
/// Why a block was bypassed: X(code, name, sentence)
#define WT_LIVE_MISS_LIST(X)                                                           \
    X(WT_LIVE_MISS_LATE,    "late",    "the answer did not come within the wait")       \
    X(WT_LIVE_MISS_FULL,    "full",    "earlier blocks had not been taken up")          \
    X(WT_LIVE_MISS_LOST,    "lost",    "the device was lost")                           \
    X(WT_LIVE_MISS_SIZE,    "size",    "the block was longer than max_frames")          \
    X(WT_LIVE_MISS_FORMAT,  "format",  "the host was between two formats")
// clang-format on

typedef enum wt_live_miss {
#define WT_LIVE_ENUM(code, name, sentence) code,
    WT_LIVE_MISS_LIST(WT_LIVE_ENUM)
#undef WT_LIVE_ENUM
        WT_N_LIVE_MISSES
} wt_live_miss;

const char *wt_live_miss_name(wt_live_miss miss); ///< [any]

typedef struct wt_live_config {
    double rate_hz;    ///< of the audio, 1000 .. 768000
    int channels;      ///< of the input, 1 .. 64
    int out_channels;  ///< what the callback wants; 0 = those of the first chain (of the input when blocks come before
                       ///< it). A chain that gives one channel is copied to all, other differences are refused by
                       ///< wt_live_load
    int n_streams;     ///< 0 = 1; so many copies of the chain run side by side, each with its own state and the same
                       ///< parameters. `in` and `out` of wt_live_process then have the channels of each in turn,
                       ///< and out_channels 0 is `channels`
    int max_frames;    ///< longest block, 1 .. 8192; 0 = 1024
    int n_workers;       ///< threads that help the audio thread with the streams of a chain on the CPU, 0 .. 64: each
                         ///< wakes 150 us before a block is due and spins until it comes
    int worker_priority; ///< of SCHED_FIFO where permitted, 1 .. 99, below the audio thread's; 0 = ordinary threads
    wt_device *device;   ///< NULL = the CPU
    wt_partition *partition; ///< of that device; NULL = all of it
    wt_live_path path;
    wt_live_mode mode;
    int pipeline_blocks;  ///< 0 = 1, at most 8; for WT_LIVE_PIPELINED: that many max_frames of latency
    double wait_share;    ///< 0 = 0.8; share of a block's duration that the callback may wait
    double life_s;        ///< 0 = 2; a resident kernel gives way to the next one after that long, at a block boundary
    float fade_ms;        ///< 0 = 5; of bypass, and between an old and a new chain
    float ramp_ms;        ///< 0 = 20; of parameters
    wt_audio_loader load; ///< as in wt_chain_config
    void *load_user;
} wt_live_config;

typedef struct wt_live wt_live;

/// Takes the callback's buffers; starts with no chain (input goes to output). What a chain needs of the device, and its
/// helper thread, come with wt_live_load. Resident and graph also run on a device of the CPU backend, on its threads.
/// Errors: WT_ERR_BAD_ARG, WT_ERR_UNSUPPORTED (resident or graph without a device), WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_live_create(const wt_live_config *config, wt_live **live);
/// The callback must not run any more. Disarms the device. NULL is allowed.  [worker]
void wt_live_destroy(wt_live *live);

/// Replace the chain while audio runs: built and compiled here, then swapped at a block boundary with a crossfade (the
/// GPU's is swapped in a quiesce). Parameters and readings are those of the new chain from the return on. On any error
/// the old chain plays on. Errors: those of wt_chain_create; WT_ERR_BAD_ARG (channels);
/// WT_ERR_STATE (resident, and another is so on that device); those of the device. One caller at a time.  [worker]
WT_CHECKED wt_status wt_live_load(wt_live *live, const wt_chain_desc *desc, wt_chain_fault *fault);

/// Another rate or block length, as hosts ask for: the chain is rebuilt with its parameters' present values and its
/// state starts anew. The callback may run meanwhile and is bypassed (WT_LIVE_MISS_FORMAT). On an error the format and
/// the chain stay as they were. Errors: those of wt_live_create and wt_live_load.  [worker]
WT_CHECKED wt_status wt_live_prepare(wt_live *live, double rate_hz, int max_frames);

/// One block, now. `in` [channels] and `out` [out channels] of n_frames samples each; an output may be an input.
/// Returns WT_OK, or WT_ERR_TIMEOUT / WT_ERR_DEVICE_LOST when it was bypassed; `out` is always filled.  [rt, running]
WT_RT wt_status wt_live_process(wt_live *live, const float *const *in, float *const *out, int n_frames);

/// Input to output, faded; the chain goes on hearing the input. What is heard then, as in a miss, is the input as late
/// as the chain's output would be.  [any]
WT_RT void wt_live_set_bypass(wt_live *live, bool bypass);
/// Offline rendering under a live host (freewheel): waits for every answer, however long, as long as there can be one:
/// not for a device that is lost, or that the chain was moved from, and a chain that only runs on one.  [any]
WT_RT void wt_live_set_freewheel(wt_live *live, bool freewheel);
/// Hand the chain to the CPU and back, state included, without a step in the sound: what a lost GPU and a quiesce do by
/// themselves. Errors: WT_ERR_STATE (no GPU path), WT_ERR_TIMEOUT (no callback runs).  [worker]
WT_CHECKED wt_status wt_live_move(wt_live *live, bool to_cpu);

// ---- the chain that plays: what wt_chain_* say of it. Names are of the description; safe beside wt_live_load, which
// ---- they may find finished or not.

int wt_live_latency_frames(const wt_live *live); ///< input to output, pipelining included  [any]
int wt_live_out_channels(const wt_live *live);   ///< [any]
/// Returns as wt_chain_set; WT_ERR_STATE while there is no chain.  [rt, any]
WT_RT wt_status wt_live_set(wt_live *live, int node, int param, float value);
/// As above, for the chain of this number (chain.h): WT_ERR_STATE, and nothing is set, when another plays by now.
/// [rt, any]
WT_RT wt_status wt_live_set_if(wt_live *live, uint64_t number, int node, int param, float value);
WT_RT float wt_live_get(const wt_live *live, int node, int param);                        ///< [rt, any]
WT_RT int wt_live_readings(const wt_live *live, int node, float *values, int max_values); ///< [rt, any]
/// Errors: WT_ERR_NOT_FOUND with the nearest name, or that no chain is loaded.  [any but rt]
WT_CHECKED wt_status wt_live_find(const wt_live *live, const char *node_id, const char *param, int *node,
                                  int *param_index);
/// The chain itself, for its names and types; borrowed until the next load or prepare.  [the worker that loads]
const wt_chain *wt_live_chain(const wt_live *live);

// ---- taps and inserts: audio out of and into the chain for workers (recording, recognition, synthesis)

typedef struct wt_live_tap_config {
    const char *point; ///< "in", "out" or a node's id: its output
    double seconds;    ///< of the ring; 0 = 2
    bool mono;         ///< channels averaged
    double rate_hz;    ///< 0 = the live rate; else decimated to it (16000 for recognition)
} wt_live_tap_config;
typedef struct wt_live_tap wt_live_tap;

/// At most 8, of up to 64 channels. A tap of a node hears the first stream; when a new chain lacks it, silence. Errors:
/// WT_ERR_NOT_FOUND with the nearest id. [worker]
WT_CHECKED wt_status wt_live_tap_open(wt_live *live, const wt_live_tap_config *config, wt_live_tap **tap);
void wt_live_tap_close(wt_live_tap *tap); ///< [worker]
int wt_live_tap_channels(const wt_live_tap *tap); ///< [any]
/// Take up to n_frames, interleaved; returns the frames taken. What the ring could not hold is counted in `lost`
/// (frames since the last call; NULL = not wanted).  [any but rt, one reader]
int wt_live_tap_read(wt_live_tap *tap, float *frames, int n_frames, uint64_t *lost);

typedef struct wt_live_insert_config {
    const char *point; ///< "in": before the chain; "out": after it; a node's id: added to its output
    int channels;      ///< 1 is added to all
    double seconds;    ///< of the ring; 0 = 2
} wt_live_insert_config;
typedef struct wt_live_insert wt_live_insert;

/// At most 8. Errors: WT_ERR_NOT_FOUND, WT_ERR_BAD_ARG (channels).  [worker]
WT_CHECKED wt_status wt_live_insert_open(wt_live *live, const wt_live_insert_config *config, wt_live_insert **insert);
void wt_live_insert_close(wt_live_insert *insert); ///< [worker]
/// Queue interleaved frames at the live rate; returns the frames that found room. An empty ring is silence.
/// [any but rt, one writer]
int wt_live_insert_write(wt_live_insert *insert, const float *frames, int n_frames);

// ---- figures

typedef struct wt_live_stats {
    wt_live_path path; ///< in use now: a lost GPU or a quiesce shows as WT_LIVE_CPU
    uint64_t n_blocks, n_frames;
    uint64_t misses[WT_N_LIVE_MISSES], n_misses;
    uint64_t n_launches; ///< of the resident kernel
    uint64_t n_moves;    ///< hand-overs between GPU and CPU
    uint64_t n_loads;    ///< chains swapped in
    uint64_t n_helped;   ///< streams' blocks that workers took
    double rate_hz;
    int block_frames; ///< of the last block
    int latency_frames;
    double load;                        ///< smoothed: time in wt_live_process over the block's duration
    wt_histogram_summary process_ns;    ///< time in wt_live_process
    wt_histogram_summary round_trip_ns; ///< from the doorbell to the answer; zero counts on the CPU path
    bool bypass;
    /// Of a thread block of the GPU's kernel, and what the chain wants: with fewer, where registers are short, a block
    /// takes longer. 0 on the CPU path.
    int n_threads, n_threads_wanted;
} wt_live_stats;

void wt_live_get_stats(const wt_live *live, wt_live_stats *stats); ///< [any but rt]
/// What became of the time of a block's round trip. The device's clock counts ns from where it likes, modulo 2^32.
typedef struct wt_live_times {
    int64_t rung_ns, heard_ns; ///< wt_clock_now_ns when the doorbell was rung and when the answer was found
    int64_t round_trip_ns;     ///< between the two
    int64_t device_ns;   ///< of it, from the device's look that brought the doorbell to its answer; -1 = not known
    int64_t away_ns;     ///< of it, the longest between two looks of the audio thread for an answer: it was taken away
    uint32_t n_launches; ///< kernels that had begun until then: one more than before was on the way in between
    // where device_ns is known
    uint32_t seen_ns, sent_ns; ///< by the device's clock
    uint32_t busy_ns;          ///< from its last answer, or the kernel's begin, to its first look for this block
    uint32_t hole_ns;          ///< the longest from one look to the next
    uint32_t n_looks;          ///< how many until it saw the doorbell
    uint32_t age_us;           ///< of the kernel
    uint32_t look_ns;          ///< of device_ns, until that look was back
} wt_live_times;

/// Of the last answer that a device gave; zeros before it.  [rt, the thread that calls wt_live_process]
WT_RT wt_live_times wt_live_last_times(const wt_live *live);
/// Of the answers that came too late for their blocks, found when the next block came at the earliest: the `back`th
/// from the last, 0 .. 3.  [rt, the thread that calls wt_live_process]
WT_RT wt_live_times wt_live_late_times(const wt_live *live, int back);
/// The round trips (GPU) or process times (CPU) themselves, to draw or merge; borrowed.  [any]
const wt_histogram *wt_live_histogram(const wt_live *live);

#ifdef __cplusplus
}
#endif
#endif
