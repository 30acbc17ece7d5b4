// A word of a block ring: 32 bits of data and, in the upper half, the turn they belong to, stored and loaded as one.
// A reader that finds its turn has the data with it, so words need no order among each other and a block crosses the
// bus in one trip (the LL protocol of NCCL, src/device/prims_ll.h, does the same).
#ifndef WT_BLOCK_RING_KERNEL_H
#define WT_BLOCK_RING_KERNEL_H
#include "chain_kernel.h"

typedef unsigned long long wt_block_word;

WT_SHARED_FN wt_block_word wt_block_pack(unsigned int data, unsigned int turn)
{
    return (wt_block_word)turn << 32 | data;
}
WT_SHARED_FN unsigned int wt_block_data(wt_block_word word) { return (unsigned int)word; }
WT_SHARED_FN unsigned int wt_block_turn(wt_block_word word) { return (unsigned int)(word >> 32); }
// Turns count from 1 and leave out 0, which is what fresh memory says.
WT_SHARED_FN unsigned int wt_block_next(unsigned int turn) { return turn + 1 ? turn + 1 : 1; }
#endif
