// What a chain of nodes shares between the CPU and the GPU: memory layout, parameter ramps, the arguments of a node.
//
// A chain has one read-only part, the plans (a struct and tables a node), and one memory block an instance (a stream of
// audio): for every node its ramps, coefficients and state. Both parts hold offsets, never pointers, and have the same
// bytes on both backends, so an instance can move between them. State of all zero bytes is a node's reset state.
//
// Control runs in quanta: at each multiple of WT_QUANTUM frames of the absolute position, moving parameters take a step
// and their node's coefficients are designed anew; within a quantum coefficients hold still (or move linearly, when
// they carry a slope). So results do not depend on how the host cuts its blocks.
#ifndef WT_CHAIN_KERNEL_H
#define WT_CHAIN_KERNEL_H

#ifdef __CUDACC__
#define WT_SHARED_FN static __device__ __forceinline__
#else
#include <math.h>
#define WT_SHARED_FN static inline
#endif
#ifdef __cplusplus
#define WT_ALIGNED(n) alignas(n)
#else
#define WT_ALIGNED(n) _Alignas(n)
#endif

#define WT_QUANTUM 32          // frames between control points
#define WT_CHAIN_BLOCK 256     // most frames a node sees in one call
#define WT_MAX_NODE_PARAMS 16
#define WT_MAX_NODE_INPUTS 8
#define WT_MAX_CHANNELS 64
#define WT_PI 3.14159265358979323846

// One smoothed parameter; `value` and `target` are in its own unit, or its natural logarithm where `logarithmic`.
typedef struct wt_ramp {
    float value, target, step;
    int left; // quanta until the target; -1 = just arrived; 0 = at rest
} wt_ramp;

// A node's bypass. Its ramp goes from 0 (the node is heard) to 1 (its first input is, as late as the node's output).
// Behind it, for a node that delays, lies the line of that input, [input channels][latency + WT_CHAIN_BLOCK], which is
// kept while the ramp is not at rest at 0; so the ramp begins when the line is full.
typedef struct wt_bypass {
    wt_ramp ramp;
    float from, to; // shares at both ends of the quantum
    float wanted;   // what the ramp will aim at when it rests: one that turned half-way would be heard
    int kept;       // quanta in the line, as far as they are needed
} wt_bypass;

// A node's place in the plans and in an instance's memory (byte offsets), and its audio buffers.
typedef struct wt_node_place {
    unsigned long long plan, coeffs, state, ramps, readings, bypass;
    int n_params, n_readings;
    unsigned int logarithmic; // bit p: parameter p moves in log space
    int n_inputs;
    int input[WT_MAX_NODE_INPUTS]; // buffer indices
    int input_channels[WT_MAX_NODE_INPUTS];
    int side, side_channels; // -1 = none
    int output, output_channels;
    int first_reading; // among the readings of all nodes
    int latency;       // frames that a bypass delays by
    int unused[2];     // up to a multiple of 16 bytes, for what follows in shared memory
} wt_node_place;

// Of a node, in the list of all targets: its parameters', and behind them its bypass's.
WT_SHARED_FN int wt_place_targets(const wt_node_place *p) { return p->n_params + 1; }

// The start of an instance's memory.
typedef struct wt_instance {
    long long position; // frames since reset
    int moving;         // nodes with a ramp on its way
    unsigned int sequence; // last parameter set taken over
    int bypassed;          // nodes whose bypass is not at rest at 0
    int unused[3];
} wt_instance;

// What a node's process function gets. Buffers are planar: channel c, frame n at [c * stride + n]. `out` may be
// `in[0]`.
typedef struct wt_node_io {
    const float *in[WT_MAX_NODE_INPUTS];
    int channels[WT_MAX_NODE_INPUTS];
    int n_inputs;
    const float *side; // 0 when the node has no side chain input
    int side_channels;
    float *out;
    int out_channels;
    int stride;
    int n_frames;       // 1 .. WT_CHAIN_BLOCK, never across a control point while a parameter moves
    long long position; // absolute frame of the first one
    float *scratch;     // the node's scratch floats; shared memory on the GPU
    float *readings;    // [n_readings] values the node shows to the world
    const void *tables; // GPU only: the whole plan; what process() gets may be its head (wt_node_type)
    void *host;         // CPU only: what the type's plan() made for its process()
} wt_node_io;

// One instance's share of a batch call.
typedef struct wt_chain_span {
    unsigned long long in, out; // addresses of planar float audio, [channels][stride]
    long long in_stride, out_stride;
    int n_frames;
    int instance;
    int reset; // 1: start the instance anew first
    int pad;
} wt_chain_span;

typedef struct chain_args {
    const unsigned char *plans;
    unsigned char *memory; // [n_instances][instance_bytes]
    unsigned long long instance_bytes;
    const wt_node_place *places;
    const wt_chain_span *spans; // one thread block each
    const float *targets;       // each node's parameters and its bypass, in node order, in ramp space
    float *readings;            // all readings of instance 0 in node order, for the host
    unsigned long long *faults; // counts instances reset because their output was not finite
    unsigned int sequence;      // of the targets; an instance that has another takes them over
    int n_nodes, channels, out_channels, n_buffers, buffer_channels, output;
    int block_frames;   // stride of a buffer
    int scratch_floats; // behind the buffers
    int ramp_quanta;
} chain_args;

// Aim a ramp; `quanta` 0 jumps.
WT_SHARED_FN void wt_ramp_aim(wt_ramp *r, float target, int quanta)
{
    r->target = target;
    r->left = quanta > 0 ? quanta : 0;
    r->step = quanta > 0 ? (target - r->value) / (float)quanta : 0.0f;
    if (quanta <= 0) r->value = target;
}

// One step at a control point: `v0` and `v1` get the parameter at both ends of the quantum. Returns 1 while the
// coefficients change, and once more after the last step (left = -1), when a slope has to end.
WT_SHARED_FN int wt_ramp_step(wt_ramp *r, int logarithmic, float *v0, float *v1)
{
    float begin = r->value;
    int moving = r->left != 0;
    if (r->left > 1) r->value = begin + r->step;
    if (r->left == 1) r->value = r->target;
    r->left = r->left > 1 ? r->left - 1 : r->left == 1 ? -1 : 0;
    *v0 = logarithmic ? expf(begin) : begin;
    *v1 = logarithmic ? expf(r->value) : r->value;
    return moving;
}

// A bypass at rest where it is to be, with a line of silence.
WT_SHARED_FN void wt_bypass_rest(wt_bypass *b, float target, int latency)
{
    wt_ramp_aim(&b->ramp, target, 0);
    b->from = b->to = b->wanted = target;
    b->kept = target > 0.0f ? (latency + WT_QUANTUM - 1) / WT_QUANTUM : 0;
}

// Ask for a bypass or its end; returns 1 when there is something to do at the control points.
WT_SHARED_FN int wt_bypass_aim(wt_bypass *b, float target)
{
    b->wanted = target;
    return b->wanted != b->ramp.target || b->ramp.left != 0;
}

// Whether its input is kept, and something else heard than the node alone.
WT_SHARED_FN int wt_bypass_on(const wt_bypass *b)
{
    return b->from != 0.0f || b->to != 0.0f || b->kept > 0 || b->ramp.left > 0;
}

// A bypass at a control point; returns 1 while its line fills, it moves, or is about to. A way takes `quanta`.
WT_SHARED_FN int wt_bypass_step(wt_bypass *b, int latency, int quanta)
{
    const int needed = (latency + WT_QUANTUM - 1) / WT_QUANTUM;
    if (b->wanted != b->ramp.target && (b->ramp.left == 0 || (b->ramp.left > 0 && b->kept < needed)))
        wt_ramp_aim(&b->ramp, b->wanted, b->wanted != b->ramp.value ? quanta : 0);
    if (b->ramp.left > 0 && b->kept < needed) {
        b->kept++;
        return 1;
    }
    const int moving = wt_ramp_step(&b->ramp, 0, &b->from, &b->to);
    if (b->ramp.left == 0 && b->to == 0.0f) b->kept = 0;
    return moving || b->wanted != b->ramp.target;
}

// Share of the bypass at a frame of the quantum: smooth at both ends of its way, so that nothing clicks.
WT_SHARED_FN float wt_bypass_share(const wt_bypass *b, int phase)
{
    const float t = b->from + (b->to - b->from) * (float)(phase + 1) * (1.0f / WT_QUANTUM);
    return t * t * (3.0f - 2.0f * t);
}

// All ramps of a node at a control point; returns 1 when its coefficients must be designed.
WT_SHARED_FN int wt_ramps_step(wt_ramp *ramps, int n, unsigned int logarithmic, float *v0, float *v1)
{
    int moving = 0;
    for (int p = 0; p < n; p++) moving |= wt_ramp_step(&ramps[p], (int)(logarithmic >> p) & 1, &v0[p], &v1[p]);
    return moving;
}

#endif
