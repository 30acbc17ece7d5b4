/// Arguments of the kernel of gain control of whole signals.
#ifndef WT_AGC_BATCH_KERNEL_H
#define WT_AGC_BATCH_KERNEL_H
#include "agc_kernel.h"

#define AGC_MAX_CHANNELS 64

typedef struct agc_batch_state {
    agc_line line;
    agc_ear ears[AGC_MAX_CHANNELS];
} agc_batch_state;

typedef struct agc_batch_args {
    const float *in;        ///< [n_signals][channels][n_frames]
    float *out;             ///< the same, may be in
    agc_batch_state *state; ///< [n_signals], zeros at reset
    long long n_frames;
    int channels, at; ///< at: frames into the step that the block begins in
    agc_rules rules;
} agc_batch_args;

#endif
