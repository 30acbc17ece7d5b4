/// Node types: what a chain can be built of. Each type is one row of functions and facts; `wt_node_types` lists them
/// all.
///
/// To add a type `foo`: kernels/nodes/foo_kernel.h (structs foo_plan, foo_coeffs, foo_state and the design function,
/// read by both compilers), dsp/nodes/foo.c (its row and the CPU process), kernels/nodes/foo.cuh (`foo_process` for a
/// GPU thread block), one line in node_table.c, and tests/test_foo.c.
#ifndef WARPTONE_NODE_H
#define WARPTONE_NODE_H

#include <stddef.h>
#include <stdint.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// One number that can be turned while audio runs; changes are smoothed.
typedef struct wt_param_info {
    const char *name; ///< "frequency_hz": the unit stands in the name
    const char *unit; ///< "Hz", "dB", "ms", "frames", "" for plain numbers
    float min, max, standard;
    int logarithmic; ///< moves in log space; min is above 0 then
    const char *help;
} wt_param_info;

/// One setting that is fixed when the chain is built.
typedef struct wt_option_info {
    const char *name;
    const char *choices;  ///< "lowpass|highpass|peak", or NULL for any text or number
    const char *standard; ///< used when absent; NULL = required
    const char *help;
} wt_option_info;

typedef struct wt_node_setup wt_node_setup;
struct wt_node_io;

/// What a type's plan() answers. Sizes are per instance. The plan's bytes hold offsets, no pointers.
typedef struct wt_node_plan {
    void *plan; ///< malloc'ed by plan(), taken by the chain
    size_t plan_bytes, coeffs_bytes, state_bytes;
    int scratch_floats;
    int out_channels;
    int latency_frames; ///< exact
    int tail_frames;    ///< until the output of a finished input is below -120 dB, an estimate from above
    void *host;         ///< what the CPU process needs beside the plan; freed by the type's release()
    char *cuda_text;    ///< malloc'ed CUDA text of the node's `process`, taken by the chain; NULL = the type's
} wt_node_plan;

enum {
    WT_NODE_SIDE_CHAIN = 1,   ///< takes an optional `side` input
    WT_NODE_MANY_INPUTS = 2,  ///< takes 1 .. WT_MAX_NODE_INPUTS inputs, else exactly one
    WT_NODE_CUDA_ONLY = 4,
    WT_NODE_INTERNAL = 8,     ///< placed by the chain itself, not by presets
    WT_NODE_CUDA_AFTER = 16,  ///< kernels/nodes/foo.cuh has `foo_after` too: what this block's output does not need
    WT_NODE_CUDA_QUICK = 64,  ///< and `foo_quick`: what `foo_process` does, for short blocks; false: not for this one
    WT_NODE_CUDA_LINE = 32,   ///< it has `foo_line`, for neighbours in place, instead of `foo_process`
};

typedef struct wt_node_type {
    const char *name;
    const char *summary;
    const wt_param_info *params;
    int n_params;
    const wt_option_info *options;
    int n_options;
    const char *const *readings; ///< names of the values it shows, such as "gain_reduction_db"
    int n_readings;
    unsigned flags;
    /// Check the setup and answer sizes and the plan. Errors: a sentence without the node's name (the chain adds it).
    wt_status (*plan)(const wt_node_setup *setup, wt_node_plan *plan);
    /// Coefficients from the parameters at both ends of a quantum. Pure; the same text runs on the GPU.
    void (*design)(const void *plan, const float *v0, const float *v1, void *coeffs);
    /// One block on the CPU: split-invariant to the bit.  [rt]
    void (*process)(const struct wt_node_io *io, const void *plan, const void *coeffs, void *state);
    void (*release)(void *host); ///< may be NULL
    /// The state was last run by the other backend, up to `position`: put right what it keeps otherwise. NULL = nothing
    /// is. Called on the CPU.  [worker]
    void (*adopt)(const void *plan, void *state, int64_t position, int from_gpu);
    size_t plan_head_bytes; ///< of a plan whose tables follow its numbers: the numbers. A resident kernel's text may
                            ///< hold them as constants; the CUDA functions find the tables by io->tables. 0 = no tables
    const char *kernel; ///< name of its CUDA text and functions where that is not the type's; NULL = the type's
} wt_node_type;

/// All types, sorted by name; internal ones last.  [any]
extern const wt_node_type *const wt_node_types[];
extern const int wt_n_node_types;

/// The type of that name, or NULL.  [any]
const wt_node_type *wt_node_type_find(const char *name);

/// What can be turned of a node: its type's own parameters, and behind them `bypass`, which every node of a chain has.
/// At 1 its first input is heard instead of it, as late as its output is; it goes on working meanwhile.  [any]
int wt_node_type_n_params(const wt_node_type *type);
/// One of them by its number, or NULL.  [any]
const wt_param_info *wt_node_type_param(const wt_node_type *type, int param);

// ---- for plan() functions, within the call  [worker]

double wt_setup_rate_hz(const wt_node_setup *setup);          ///< of the chain
int wt_setup_n_inputs(const wt_node_setup *setup);            ///< without the side chain
int wt_setup_channels(const wt_node_setup *setup, int input); ///< channels of one input
int wt_setup_side_channels(const wt_node_setup *setup);       ///< 0 = no side chain
/// A number for spreading work: instances and nodes with different values peak at different times.
int wt_setup_stagger(const wt_node_setup *setup);
/// An option's text, its standard when absent. For choices the text is one of them.
const char *wt_setup_text(const wt_node_setup *setup, const char *option);
/// Index of the option's text in its choices.
int wt_setup_choice(const wt_node_setup *setup, const char *option);
/// An option as a number within [min, max]. Errors: WT_ERR_BAD_ARG with what was met and wanted.
WT_CHECKED wt_status wt_setup_number(const wt_node_setup *setup, const char *option, double min, double max,
                                     double *value);
/// The built-time value of a parameter (what the preset says, or its standard).
float wt_setup_param(const wt_node_setup *setup, const char *param);
/// Audio of a file at the chain's rate, planar [channels][n_frames]; caller frees with free().
/// Errors: WT_ERR_UNSUPPORTED when the chain was built without a loader, WT_ERR_FILE ....
WT_CHECKED wt_status wt_setup_load_audio(const wt_node_setup *setup, const char *path, float **audio, int *channels,
                                         int *n_frames);

#ifdef __cplusplus
}
#endif
#endif
