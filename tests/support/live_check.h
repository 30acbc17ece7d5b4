/// What the tests of the live engine share: a chain that is live in one call, blocks, steps in a sine.
#ifndef WT_LIVE_CHECK_H
#define WT_LIVE_CHECK_H

#include <warptone/live.h>

/// A live chain of the config with `desc` loaded (NULL = none); the test fails with the sentence when it is refused.
wt_live *live_of(const wt_live_config *config, const wt_chain_desc *desc);

/// Process n_frames of planar audio ([lines][stride]) in blocks of `block` frames; each must be WT_OK. A `block` of 0
/// changes from call to call: 1, 64, 16, 256, 31 ... frames.
void live_blocks(wt_live *live, const float *in, float *out, int n_frames, int block, int stride);
int live_block_size(int block, int turn);

/// The largest step in a signal that is otherwise a slow sine, relative to full scale, in dB: the fourth difference,
/// in which a step of s shows as 3 s, a sine of 200 Hz and amplitude 0.5 at 48 kHz as -133 dB and a fade of 5 ms as
/// -90 dB or less.
double largest_step_db(const float *x, int n_frames);

/// Voice chains for all: high-pass, presence, gain; and the one of the benches, with a compressor, a limiter and 512
/// taps of convolution.
extern const wt_chain_desc live_voice, live_full_voice;

#endif
