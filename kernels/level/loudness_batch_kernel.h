/// Arguments of the loudness kernels, and the rules that meters on both sides follow.
#ifndef WT_LOUDNESS_BATCH_KERNEL_H
#define WT_LOUDNESS_BATCH_KERNEL_H
#include "loudness_kernel.h"

#ifdef __CUDACC__
#    define LOUDNESS_FN      static __device__ inline
#    define LOUDNESS_NOTHING __longlong_as_double(0xfff0000000000000ll)
#else
#    include <math.h>
#    define LOUDNESS_FN      static inline
#    define LOUDNESS_NOTHING -INFINITY
#endif

#define LOUDNESS_STEPS_PER_S 100
#define LOUDNESS_MOMENTARY   40 ///< steps of a window
#define LOUDNESS_SHORT_TERM  300
#define LOUDNESS_GATE        -70.0 ///< LUFS
#define LOUDNESS_BIN_PER_LU  100
#define LOUDNESS_N_BINS      (85 * LOUDNESS_BIN_PER_LU) ///< -70 .. +15 LUFS; louder blocks share the last bin

#define LOUDNESS_MAX_CHANNELS 64

/// Warm-up of the weighting before a second that a GPU begins with: what came earlier has decayed to 1e-24 of its
/// level, below the last digit of a double. The slowest poles are the high-pass's, 240 / s, nearly double.
#define LOUDNESS_WARM_STEPS 25

/// wt_loudness_values of warptone/loudness.h.
typedef struct loudness_values {
    double momentary_lufs, short_term_lufs, max_momentary_lufs, max_short_term_lufs;
    double integrated_lufs, range_lu, sample_peak_db, true_peak_db;
    long long n_frames, n_bad;
} loudness_values;

/// What is counted of one programme; zeros to begin with.
typedef struct loudness_facts {
    unsigned long long n_bad, max_momentary, max_short_term; ///< the maxima are bits of powers
    double momentary, short_term;
    int sample_peak, true_peak; ///< bits
} loudness_facts;

/// A gating block, or a value of the loudness range.
typedef struct loudness_block {
    double power;
    int bin; ///< -1: not above the gate
} loudness_block;

/// Blocks of one bin, or of several.
typedef struct loudness_sum {
    double power;
    long long count;
} loudness_sum;

typedef struct loudness_args {
    const float *pcm;        ///< [n_signals][channels][n_frames]
    double *steps;           ///< [n_signals][channels][n_steps] weighted energy
    loudness_facts *facts;   ///< [n_signals]
    loudness_block *blocks;  ///< [n_signals][n_blocks]
    loudness_block *ranges;  ///< [n_signals][n_ranges]
    loudness_values *values; ///< [n_signals]
    long long n_frames, n_steps, n_blocks, n_ranges, n_signals;
    int channels, rate_hz, oversampling;
    loudness_weighting weighting;
    double weights[LOUDNESS_MAX_CHANNELS];
} loudness_args;

/// The frame at which that many steps have ended.
LOUDNESS_FN long long loudness_end_of_step(int rate_hz, long long step)
{
    return (step * rate_hz + LOUDNESS_STEPS_PER_S / 2) / LOUDNESS_STEPS_PER_S;
}

LOUDNESS_FN double loudness_lufs(double power) { return power > 0 ? -0.691 + 10 * log10(power) : LOUDNESS_NOTHING; }

LOUDNESS_FN double loudness_decibels(double peak) { return peak > 0 ? 20 * log10(peak) : LOUDNESS_NOTHING; }

/// The bin that holds a level; -1 when it is not above the gate.
LOUDNESS_FN int loudness_bin(double lufs)
{
    if (!(lufs > LOUDNESS_GATE)) return -1;
    const double bin = (lufs - LOUDNESS_GATE) * LOUDNESS_BIN_PER_LU;
    return bin < LOUDNESS_N_BINS - 1 ? (int)bin : LOUDNESS_N_BINS - 1;
}

#endif
