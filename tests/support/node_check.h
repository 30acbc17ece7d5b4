/// Tests of one node: build a chain of it, feed it levels and sines, read what comes out in decibels.
#ifndef WT_NODE_CHECK_H
#define WT_NODE_CHECK_H

#include <warptone/chain.h>

/// A description of one node; `node` keeps it and is borrowed with it.
wt_chain_desc node_desc(wt_node_desc *node, const char *type, const wt_setting *settings, int n_settings);

/// The setting that a type requires, or NULL.
const wt_setting *node_required(const char *type);

/// A chain of one node on the CPU; the test fails with the chain's sentence when it is refused.
wt_chain *node_chain(const char *type, const wt_setting *settings, int n_settings, int channels, double rate_hz);

/// The refusal of a one-node chain: status and sentence.
void check_refusal(const char *type, const wt_setting *settings, int n_settings, wt_status status,
                   const char *sentence);

/// CPU blocks to the bit with 1, 2 and 11 channels, and check_node_runs.
void check_node(const char *type, const wt_setting *settings, int n_settings);

/// Processing and turning parameters of two channels reach nothing that the audio thread must not; creation survives
/// each failing allocation.
void check_node_runs(const char *type, const wt_setting *settings, int n_settings);

/// CUDA against the CPU with 2 and 11 channels, `param` turned to `value` half-way.
void check_node_cuda(const char *type, const wt_setting *settings, int n_settings, int param, float value,
                     double bound_db);

/// The readings of a GPU after noise against the CPU's, one by one within `bound`, with 1, 2 and 11 channels.
void check_node_cuda_readings(const char *type, const wt_setting *settings, int n_settings, float bound);

void sine_signal(float *x, int n_frames, double frequency_hz, double rate_hz, double amplitude, double phase);
float to_db(float amplitude);
float from_db(float db);
float reading(const wt_chain *chain, int node, int which);

#endif
