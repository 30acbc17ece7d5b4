/// Delay rings of nodes: a power of two of frames, addressed by the absolute position, whatever the blocks.
#ifndef WT_RING_H
#define WT_RING_H

#include <string.h>
#include <warptone/simd.h>
#include "chain_kernel.h"

/// Smallest power of two that holds `delay_frames` behind a block.
static inline int wt__ring_size(int delay_frames)
{
    int size = WT_CHAIN_BLOCK;
    while (size < delay_frames + WT_CHAIN_BLOCK) size *= 2;
    return size;
}

WT_INLINE void wt__ring_write(float *ring, int size, long long position, const float *x, int n)
{
    int at = (int)(position & (size - 1)), first = n < size - at ? n : size - at;
    memcpy(ring + at, x, sizeof *x * (size_t)first);
    memcpy(ring, x + first, sizeof *x * (size_t)(n - first));
}

/// `position` may lie before the start: zeros are read there until the ring has come round.
WT_INLINE void wt__ring_read(const float *ring, int size, long long position, float *y, int n)
{
    int at = (int)(position & (size - 1)), first = n < size - at ? n : size - at;
    memcpy(y, ring + at, sizeof *y * (size_t)first);
    memcpy(y + first, ring, sizeof *y * (size_t)(n - first));
}

#endif
