// In place of kernels/chain/block_ring.cuh: the words of a block ring as atomics of the CPU.
#pragma once
#include "block_ring_kernel.h"

static inline wt_block_word block_load(const wt_block_word *at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }
static inline wt_block_word block_load_acquire(const wt_block_word *at)
{
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static inline void block_store(wt_block_word *at, unsigned data, unsigned turn)
{
    __atomic_store_n(at, wt_block_pack(data, turn), __ATOMIC_RELAXED);
}

static inline void block_store_release(wt_block_word *at, unsigned data, unsigned turn)
{
    __atomic_store_n(at, wt_block_pack(data, turn), __ATOMIC_RELEASE);
}

static inline unsigned block_take(const wt_block_word *at, unsigned turn, wt_block_word word)
{
    while (wt_block_turn(word) != turn) word = block_load(at);
    return wt_block_data(word);
}
