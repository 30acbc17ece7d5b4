// fir: y[n] = sum over k of h[k] x[n - k], in the time domain, up to FIR_MAX_TAPS taps.
#ifndef WT_FIR_KERNEL_H
#define WT_FIR_KERNEL_H
#include "chain_kernel.h"

#define FIR_MAX_TAPS 1024
#define FIR_RING_FRAMES 2048 // a power of two that holds the taps and a block

typedef struct fir_plan {
    int n_taps, n_responses; // 1 = shared by all channels
    int unused[2];
    float taps[1]; // [n_responses][n_taps]
} fir_plan;

typedef struct fir_state {
    float ring[1]; // [channels][FIR_RING_FRAMES]
} fir_state;
#endif
