// align: a fixed delay that evens out the latency of parallel paths; placed by the chain itself.
#ifndef WT_ALIGN_KERNEL_H
#define WT_ALIGN_KERNEL_H
#include "chain_kernel.h"

typedef struct align_plan {
    int delay_frames, ring_frames; // ring: delay + WT_CHAIN_BLOCK, so that a block is written before it is read
} align_plan;

typedef struct align_state {
    int unused[4];
    float ring[1]; // [channels][ring_frames]
} align_state;
#endif
