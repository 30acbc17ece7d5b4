// Taps and inserts of the resident kernel: all threads call chain_visit after each node and its barrier when the
// block has points.
#pragma once
#include "block_ring.cuh"
#include "chain.cuh"
#include "resident_kernel.h"

enum { CHAIN_HEARD = 1, CHAIN_BYPASSED = 2 };

// The block at hand: what all threads know of it, and what nodes' points need.
struct resident_message {
    const wt_block_word *inserts;
    wt_block_word *taps;
    unsigned int turn, sequence; // `sequence`: of the targets, when they came with the block
    int points; // bits: CHAIN_HEARD when points of stream 0 are to be heard, CHAIN_BYPASSED when a node is
    int plane;  // words from one point to the next
    int frames; // of the block
    int done;   // of them, before the piece that is being processed
    int tap[WT_MAX_POINTS], insert[WT_MAX_POINTS];
};
static __shared__ resident_message message;

static __device__ __noinline__ void chain_visit(const chain_args &a, int n, int node)
{
    const wt_node_place &p = a.places[node];
    float *out = shared + p.output * a.buffer_channels * a.block_frames;
    for (int k = 0; k < WT_MAX_POINTS; k++) {
        const int channels = message.insert[k] >> 16;
#pragma unroll 1
        for (int i = threadIdx.x; (message.insert[k] & 0xffff) == node + 1 && i < p.output_channels * n;
             i += blockDim.x) {
            const int c = i / n, f = i - c * n, from = channels == 1 ? 0 : c;
            const wt_block_word *at = message.inserts + k * message.plane + from * message.frames + message.done + f;
            if (from < channels)
                out[c * a.block_frames + f] += __uint_as_float(block_take(at, message.turn, block_load(at)));
        }
    }
    __syncthreads();
    for (int k = 0; k < WT_MAX_POINTS; k++)
#pragma unroll 1
        for (int i = threadIdx.x; message.tap[k] == node + 1 && i < p.output_channels * n; i += blockDim.x) {
            const int c = i / n, f = i - c * n;
            block_store(message.taps + k * message.plane + c * message.frames + message.done + f,
                        __float_as_uint(out[c * a.block_frames + f]), message.turn);
        }
    __syncthreads();
}
