/// The voice of the live benches: high-pass, four bands, compressor, convolution, limiter.
#ifndef WT_BENCH_LIVE_VOICE_H
#define WT_BENCH_LIVE_VOICE_H

#include <warptone/chain.h>

extern const wt_chain_desc bench_voice;      ///< 512 taps
extern const wt_chain_desc bench_voice_long; ///< a second

#endif
