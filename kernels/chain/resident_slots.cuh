// Where the resident kernel finds a block and puts its answer, and what all its parts know of both.
#pragma once
#include "block_ring.cuh"
#include "chain.cuh"
#include "resident_kernel.h"

// The block at hand, as every thread knows it.
struct resident_block {
    unsigned int turn, flags;
    int frames;
    const wt_block_word *down; // its slot
    wt_block_word *up;         // its slot, of the first stream
};

// An answer's head, but for the frames and the time of sending: the last warp keeps it and sends it.
static __shared__ unsigned int resident_told[RESIDENT_HEAD];
static __device__ __forceinline__ int resident_keeper() { return chain_threads() - 32; } // its first thread

// Where all lies in shared memory, one thread block has one stream.
static __device__ __forceinline__ int resident_blocks() { return CHAIN_KNOWN(1, (int)gridDim.x); }
static __device__ __forceinline__ int resident_number() { return CHAIN_KNOWN(0, (int)blockIdx.x); }
static __device__ __forceinline__ int resident_streams(const resident_args &r)
{
    return CHAIN_KNOWN(1, r.layout.n_streams);
}

// The slots of a turn, of which there is a power of two; turn 0 is a rehearsal's, in device memory.
static __device__ __forceinline__ const wt_block_word *resident_slot(const resident_args &r, unsigned int turn)
{
    return turn ? r.down + (turn & (r.layout.slots - 1)) * r.layout.down_words : r.rehearsal;
}

static __device__ __forceinline__ wt_block_word *resident_answer_slot(const resident_args &r, unsigned int turn)
{
    const resident_layout &l = r.layout;
    return turn ? r.up + (long long)(turn & (l.slots - 1)) * resident_streams(r) * l.up_words
                : r.rehearsal + l.down_words;
}

static __device__ __forceinline__ const wt_block_word *resident_input(const resident_args &r, const wt_block_word *slot,
                                                                      int s, int frames)
{
    return slot + r.layout.in_at + (long long)s * chain_channels(r.chain) * frames;
}
