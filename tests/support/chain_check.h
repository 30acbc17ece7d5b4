/// What every node's test does: run chains in blocks, compare block sizes to the bit, compare the CPU with the GPU.
#ifndef WT_CHAIN_CHECK_H
#define WT_CHAIN_CHECK_H

#include <warptone/chain.h>

/// [count] deterministic noise in [-0.5, 0.5); caller frees with free().
float *noise_signal(int count, uint64_t seed);

/// Process n_frames of planar audio ([channels][stride]) with instance 0 in blocks of `block` frames.
void process_blocks(wt_chain *chain, const float *in, float *out, int n_frames, int block, int stride);

/// The chain gives the same bits for blocks of 1, 31, 32, 33, 64, 65, 253, 256 and 1000 frames and all at once.
void check_block_sizes(const wt_chain_desc *desc, int channels, double rate_hz);

/// An impulse at frame 0 comes out of a chain (a pure delay) at its latency_frames, and nothing before.
void check_latency(const wt_chain_desc *desc, double rate_hz);

/// The first usable GPU, or NULL after printing why; close with wt_device_close.
wt_device *test_gpu(void);

/// CPU and CUDA agree to `bound_db` on noise with a step in level, in several launches of odd lengths with two
/// instances, and a parameter change in between (param -1 = none). Skips without a GPU.
void check_cuda(const wt_chain_desc *desc, int channels, double rate_hz, int node, int param, float value,
                double bound_db);

/// Every reading of the first node after the same noise is within `bound` of the CPU's. Skips without a GPU.
void check_cuda_readings(const wt_chain_desc *desc, int channels, double rate_hz, float bound);

#endif
