// Device side of a block ring. An 8-byte access is one access in PTX's memory model (a vector of two would be two), so
// data and turn come together. Words lie in host memory: relaxed at system scope goes past the caches.
#pragma once
#include "block_ring_kernel.h"

static __device__ __forceinline__ wt_block_word block_load(const wt_block_word *at)
{
    wt_block_word word;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(at) : "memory");
    return word;
}

static __device__ __forceinline__ wt_block_word block_load_acquire(const wt_block_word *at)
{
    wt_block_word word;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(at) : "memory");
    return word;
}

static __device__ __forceinline__ void block_store(wt_block_word *at, unsigned int data, unsigned int turn)
{
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" : : "l"(at), "l"(wt_block_pack(data, turn)) : "memory");
}

static __device__ __forceinline__ void block_store_release(wt_block_word *at, unsigned int data, unsigned int turn)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" : : "l"(at), "l"(wt_block_pack(data, turn)) : "memory");
}

// The data of this turn, from `word` when it was loaded before, else from memory; it is there or on its way.
static __device__ __forceinline__ unsigned int block_take(const wt_block_word *at, unsigned int turn,
                                                          wt_block_word word)
{
    while (wt_block_turn(word) != turn) word = block_load(at);
    return wt_block_data(word);
}
