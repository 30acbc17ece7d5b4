/// Chains: an ordered graph of nodes that processes blocks of audio, on the CPU or on a GPU.
///
/// Build from a description (presets fill the same structs), then either
///   wt_chain_process  one block, now, in the calling thread (CPU; this is what an audio callback calls), or
///   wt_chain_enqueue  many instances at once on a stream, on either backend (offline, batches).
/// Latency differences of parallel paths are evened out: the builder delays the earlier inputs of a node.
#ifndef WARPTONE_CHAIN_H
#define WARPTONE_CHAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <warptone/device.h>
#include <warptone/node.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A parameter's or option's value: `text` as in a preset, or NULL and `value`.
typedef struct wt_setting {
    const char *name;
    const char *text;
    double value;
} wt_setting;

typedef struct wt_node_desc {
    const char *type;          ///< "biquad"
    const char *id;            ///< unique; NULL = the type, with a number appended when taken
    const char *const *inputs; ///< ids, or "in"; none = the node before, "in" for the first
    int n_inputs;
    const char *side;           ///< id of the side chain input; NULL = none
    const wt_setting *settings; ///< parameters and options
    int n_settings;
} wt_node_desc;

typedef struct wt_chain_desc {
    const char *name; ///< for messages; NULL = "chain"
    const wt_node_desc *nodes;
    int n_nodes;        ///< 1 .. 256
    const char *output; ///< id of the node that is heard; NULL = the last
} wt_chain_desc;

/// Where a description is wrong, for the program that knows its lines.
typedef struct wt_chain_fault {
    int node;            ///< index, -1 = the chain as a whole
    const char *setting; ///< the offending setting's name as given, "inputs", "side", "type", or NULL
} wt_chain_fault;

/// Loads a file's audio at `rate_hz` into malloc'ed planar memory.
typedef wt_status (*wt_audio_loader)(void *user, const char *path, double rate_hz, float **audio, int *channels,
                                     int *n_frames);

typedef struct wt_chain_config {
    double rate_hz;         ///< 1000 .. 768000
    int channels;           ///< of the input, 1 .. 64
    wt_device *device;      ///< NULL = the CPU, for wt_chain_process only
    int n_instances;        ///< 0 = 1; streams processed by one chain, each with its own state
    float ramp_ms;          ///< 0 = 20; how long a parameter takes to its new value
    int stagger;            ///< give chains that run together consecutive numbers: spreads their heavy moments
    wt_audio_loader load;   ///< NULL = nodes that read files are refused
    void *load_user;
    wt_chain_fault *fault;  ///< NULL, or where to say which part of the description was refused
} wt_chain_config;

typedef struct wt_chain wt_chain;

/// Build a chain; the description is copied.
/// Errors: WT_ERR_BAD_ARG and WT_ERR_NOT_FOUND, naming node, setting, what was met, what was wanted and the nearest
/// valid name; WT_ERR_UNSUPPORTED (a CUDA-only node on the CPU); WT_ERR_NO_MEMORY; those of wt_module_create.  [worker]
WT_CHECKED wt_status wt_chain_create(const wt_chain_config *config, const wt_chain_desc *desc, wt_chain **chain);
void wt_chain_destroy(wt_chain *chain); ///< NULL is allowed.  [worker]

int wt_chain_out_channels(const wt_chain *chain); ///< of the node that is heard  [any]
/// Tells chains of this process apart, from 1; a chain that wt_live_prepare made anew keeps its number.  [any]
uint64_t wt_chain_number(const wt_chain *chain);
int wt_chain_latency_frames(const wt_chain *chain); ///< exact, input to output  [any]
int wt_chain_tail_frames(const wt_chain *chain);    ///< latency included  [any]
int wt_chain_n_nodes(const wt_chain *chain);        ///< those of the description  [any]
/// Of a node of 0 .. n_nodes - 1: its id, borrowed until the chain is destroyed, and its type.  [any]
const char *wt_chain_node_id(const wt_chain *chain, int node);
const wt_node_type *wt_chain_node_type(const wt_chain *chain, int node);

/// Process one block with instance 0. `in` [channels] and `out` [out channels] point to n_frames samples each (0 or
/// more, any number); an output may be an input. Not-a-number and infinity come out of no node's state: an instance
/// whose output is not finite is reset, counted, and gives silence for those (at most 256) frames.
/// Returns WT_ERR_STATE of a chain on a GPU (wt_chain_enqueue), WT_ERR_BAD_ARG when n_frames is below 0; nothing is
/// done then.  [rt, running]
WT_RT wt_status wt_chain_process(wt_chain *chain, const float *const *in, float *const *out, int n_frames);

/// Start an instance anew: position 0, zero state, parameters at their targets. Errors: WT_ERR_BAD_ARG (no such
/// instance), on a GPU WT_ERR_CUDA.  [worker, that instance not running]
WT_CHECKED wt_status wt_chain_reset(wt_chain *chain, int instance);

/// Aim a parameter: from the next control point it moves to `value` (clamped to its range) within ramp_ms. Lock-free,
/// may be called while another thread processes. Errors: WT_ERR_BAD_ARG (no such node or parameter).  [rt, any]
WT_RT wt_status wt_chain_set(wt_chain *chain, int node, int param, float value);
/// The present target of a parameter.  [rt, any]
WT_RT float wt_chain_get(const wt_chain *chain, int node, int param);
/// Indices from names: "low_cut", "frequency_hz". Errors: WT_ERR_NOT_FOUND with the nearest name.  [any but rt]
WT_CHECKED wt_status wt_chain_find(const wt_chain *chain, const char *node_id, const char *param, int *node,
                                   int *param_index);
/// Latest values that a node shows (wt_node_type.readings), of instance 0; on a GPU those of the last finished launch.
/// Returns the count copied.  [rt, any]
WT_RT int wt_chain_readings(const wt_chain *chain, int node, float *values, int max_values);

/// One instance's part of a batch: planar float audio in device buffers, [channels][stride].
typedef struct wt_chain_job {
    int instance;
    const wt_buffer *in;
    size_t in_offset;    ///< bytes; a multiple of 4
    int64_t in_stride;   ///< frames between channels
    wt_buffer *out;      ///< may be the same memory when strides and offsets agree
    size_t out_offset;
    int64_t out_stride;
    int n_frames;
    bool reset;          ///< start the instance anew before this span, as wt_chain_reset does
} wt_chain_job;

/// Process a span of each named instance (each at most once), in order with the stream's other work. Needs
/// config.device. Returns after queueing. Errors: WT_ERR_BAD_ARG, WT_ERR_STATE (no device), WT_ERR_CUDA.  [worker]
WT_CHECKED wt_status wt_chain_enqueue(wt_chain *chain, wt_stream *stream, const wt_chain_job *jobs, int n_jobs);

/// How often an instance was reset because its output was not finite.  [any]
uint64_t wt_chain_faults(const wt_chain *chain);

#ifdef __cplusplus
}
#endif
#endif
