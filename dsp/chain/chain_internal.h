/// The inside of a chain, shared by its builder (chain_build.c), its audio thread (chain_run.c) and its GPU side
/// (chain_cuda.c).
#ifndef WT_CHAIN_INTERNAL_H
#define WT_CHAIN_INTERNAL_H

#include <stdatomic.h>
#include <warptone/chain.h>
#include "chain_kernel.h"

typedef struct chain_node {
    const wt_node_type *type;
    char *id;
    wt_node_plan plan;
    wt_node_place place;
    int first_param;   // in wt_chain.targets
    int first_reading; // in wt_chain.readings
    int latency_frames, tail_frames; // from the chain's input to this node's output
    float start[WT_MAX_NODE_PARAMS]; // parameter values of the description
    bool bypassed;                   // likewise
} chain_node;

typedef struct chain_cuda chain_cuda;

struct wt_chain {
    char *name;
    uint64_t number;
    double rate_hz;
    int channels, out_channels, n_instances, ramp_quanta;
    chain_node *nodes; // in processing order, the builder's own `align` nodes among them
    int n_nodes;
    int *described; // [n_described] the description's nodes, as indices into `nodes`
    int n_described;
    int n_params, n_readings;
    int n_buffers, buffer_channels, output; // `output`: the buffer that is heard
    int scratch_floats;
    int latency_frames, tail_frames;

    unsigned char *plans;
    size_t plans_bytes;
    size_t instance_bytes;
    unsigned char *memory; // CPU: [n_instances][instance_bytes]
    float *buffers;        // CPU: [n_instances][n_buffers][buffer_channels][WT_CHAIN_BLOCK], then scratch
    size_t instance_floats;

    _Atomic float *targets; // [n_params] in ramp space, a node's bypass behind its own; written by wt_chain_set
    atomic_uint sequence;   // counts wt_chain_set
    _Atomic float *readings; // [n_readings] of instance 0
    atomic_ullong faults;

    wt_device *device;
    chain_cuda *cuda; // NULL on the CPU

    // CPU: called after each node of instance 0 with the frames since the block's start; NULL = not wanted.  [rt]
    void (*visit)(void *user, int node, int at, const wt_node_io *io);
    void *visit_user;
};

/// Build a chain whose instances lie in host memory, whatever `config->device` is; nodes that run on a GPU only are
/// accepted when that is one. Errors: those of wt_chain_create.
WT_CHECKED wt_status wt__chain_build(const wt_chain_config *config, const wt_chain_desc *desc, wt_chain **chain);
/// Whether wt__chain_span can run it: no node is for GPUs only.
bool wt__chain_runs_on_cpu(const wt_chain *chain);

/// Start memory of one instance: zero state, ramps at rest on `targets`, coefficients designed.  [rt]
WT_RT void wt__chain_rest(const wt_chain *chain, unsigned char *memory);

/// Denormals off in the calling thread: a decaying filter would otherwise cost a hundred cycles a sample. `restore`
/// takes what `off` returned.  [rt]
WT_RT unsigned wt__denormals_off(void);
WT_RT void wt__denormals_restore(unsigned before);

/// Process a span of one instance on the CPU; `in` and `out` planar with strides.  [rt]
WT_RT void wt__chain_span(wt_chain *chain, int instance, const float *const *in, float *const *out, int n_frames);

WT_CHECKED wt_status wt__chain_cpu_enqueue(wt_chain *chain, wt_stream *stream, const wt_chain_job *jobs, int n_jobs);

/// The CUDA text that a chain's nodes are composed to, for launches (chain_run) or, with the most frames a node gets in
/// a call (a power of two), for the resident kernel (resident_run), `in_shared` with instance and plans in shared
/// memory; caller frees with free(), NULL without memory.
char *wt__chain_cuda_text(const wt_chain *chain, int resident_frames, bool in_shared);
/// Of a resident kernel's thread block, at most: so many where all lies in shared memory.
int wt__chain_cuda_threads(const wt_chain *chain);
int wt__chain_cuda_run_threads(const wt_chain *chain); ///< the same of chain_run
/// Shared memory for buffers of so many frames and the scratch behind them; instance, plans and places follow.
size_t wt__chain_cuda_floats(const wt_chain *chain, int frames);
/// Shared memory that such a text takes for tables of lines.
size_t wt__chain_cuda_table_bytes(const wt_chain *chain, int frames);

WT_CHECKED wt_status wt__chain_cuda_create(wt_chain *chain);
void wt__chain_cuda_destroy(wt_chain *chain);
uint64_t wt__chain_cuda_faults(const wt_chain *chain);
WT_RT float wt__chain_cuda_reading(const wt_chain *chain, int index);
WT_CHECKED wt_status wt__chain_cuda_reset(wt_chain *chain, int instance);
WT_CHECKED wt_status wt__chain_cuda_enqueue(wt_chain *chain, wt_stream *stream, const wt_chain_job *jobs, int n_jobs);

#endif
