/// What the rows of compressor, expander, gate and de-esser share; see dynamics_kernel.h.
#ifndef WT_DYNAMICS_H
#define WT_DYNAMICS_H

#include "dynamics_kernel.h"
#include "node_types.h"

// Options of a node without and with look-ahead.
#define DYNAMICS_DETECTOR                                                            \
    {"detector", "peak|rms", "peak", "what the level is: peak, or RMS over 10 ms"},  \
    {"link", "channels|none", "channels", "one gain for all channels, or one each"}
#define DYNAMICS_OPTIONS \
    DYNAMICS_DETECTOR, {"lookahead_ms", NULL, "0", "the level is known this much before; adds latency, 0..20"}
enum { DYNAMICS_N_OPTIONS = 3 };

extern const char *const wt__dynamics_readings[1];

/// Plan of a node with DYNAMICS_OPTIONS. Errors: WT_ERR_BAD_ARG, WT_ERR_NO_MEMORY.
WT_CHECKED wt_status wt__dynamics_plan(const wt_node_setup *setup, wt_node_plan *out, int gate);

/// Plan of `plan_bytes` that begins with a dynamics_plan, for a node with DYNAMICS_DETECTOR.
WT_CHECKED wt_status wt__dynamics_fill(const wt_node_setup *setup, wt_node_plan *out, size_t plan_bytes, int gate,
                                       double lookahead_ms);

/// Gains of one block, [n_groups][WT_CHAIN_BLOCK], from the detector's signal `key`, [key_channels][io->stride]; shows
/// the largest reduction at its last frame.  [rt]
WT_RT void wt__dynamics_gains(const wt_node_io *io, const dynamics_plan *p, const dynamics_coeffs *k,
                              dynamics_state *s, const float *key, int key_channels, float *gains);

/// Process function of compressor, expander and gate.  [rt]
WT_RT void wt__dynamics_process(const wt_node_io *io, const void *plan, const void *coeffs, void *state);

#endif
