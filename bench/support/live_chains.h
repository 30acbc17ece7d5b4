/// The chains of the live benches.
#ifndef WT_BENCH_LIVE_CHAINS_H
#define WT_BENCH_LIVE_CHAINS_H

#include <warptone/chain.h>

extern const wt_chain_desc bench_voice;      ///< high-pass, four bands, compressor, 512 taps of convolution, limiter
extern const wt_chain_desc bench_voice_long; ///< the same with a second of convolution
extern const wt_chain_desc bench_analysis;   ///< spectrum of 1024 every 64 frames, HPSS, constant-Q, pitch

#endif
