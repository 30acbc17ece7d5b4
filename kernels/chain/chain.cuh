// Device side of a chain: helpers that node kernels use. A thread block runs one instance; audio lies planar in shared
// memory. Every *_process function is called by all threads of the block, between barriers.
#pragma once
#include "chain_kernel.h"

// Most frames of a call, a power of two; the text before this file may have defined it. Nodes leave out what only
// longer blocks need: the instruction cache is small.
#ifndef CHAIN_MOST_FRAMES
#    define CHAIN_MOST_FRAMES WT_CHAIN_BLOCK
#endif

// Threads of a block; a resident text for one chain knows.
static __device__ __forceinline__ int chain_threads()
{
#ifdef CHAIN_THREADS
    return CHAIN_THREADS;
#else
    return blockDim.x;
#endif
}

// Call f(channel, frame) for n frames of each channel, spread over the block's threads: the place comes of shifts.
template <class F> static __device__ __forceinline__ void for_each_frame(int channels, int n, F f)
{
#pragma unroll 1
    for (int i = threadIdx.x; i < channels * CHAIN_MOST_FRAMES; i += chain_threads()) {
        const int frame = i & (CHAIN_MOST_FRAMES - 1);
        if (frame < n) f((int)((unsigned)i / CHAIN_MOST_FRAMES), frame);
    }
}

// Likewise for every output sample of a node.
template <class F> static __device__ __forceinline__ void for_each_sample(const wt_node_io *io, F f)
{
    for_each_frame(io->out_channels, io->n_frames, f);
}

// Call f(channel) in whole warps, one channel a warp at a time; f may use warp-wide operations.
template <class F> static __device__ __forceinline__ void for_each_channel_warp(int channels, F f)
{
#pragma unroll 1
    for (int c = threadIdx.x / 32; c < channels; c += chain_threads() / 32) f(c);
}

// x of the lane so many before, `first` in lanes that have none: scans go on from this without a branch, which would
// keep loads and sums from starting before it.
template <class T> static __device__ __forceinline__ T shift_up(T x, int lanes, T first)
{
    const T before = __shfl_up_sync(~0u, x, lanes);
    return (int)(threadIdx.x & 31) >= lanes ? before : first;
}

// Inclusive scan of y = a * y_before + x over a warp's lanes, `a` a constant: lane l gets sum a^(l-m) x_m. `power`
// holds a^1, a^2, a^4, a^8, a^16 (that is a^(2^d) at d).
static __device__ __forceinline__ float scan_decay(float x, const float *power)
{
    for (int d = 0; d < 5; d++) x = fmaf(power[d], shift_up(x, 1 << d, 0.0f), x);
    return x;
}

// Sums y[f] += sum over m of h[f - m] x[m], four frames and four x at a time: `h` is at the distance between the fours,
// aligned, with four more before it.
static __device__ __forceinline__ void fours_add(float4 *y, float4 x, const float *h)
{
    const float4 lo = *(const float4 *)(h - 4), hi = *(const float4 *)h;
    y->x = fmaf(hi.x, x.x, fmaf(lo.w, x.y, fmaf(lo.z, x.z, fmaf(lo.y, x.w, y->x))));
    y->y = fmaf(hi.y, x.x, fmaf(hi.x, x.y, fmaf(lo.w, x.z, fmaf(lo.z, x.w, y->y))));
    y->z = fmaf(hi.z, x.x, fmaf(hi.y, x.y, fmaf(hi.x, x.z, fmaf(lo.w, x.w, y->z))));
    y->w = fmaf(hi.w, x.x, fmaf(hi.z, x.y, fmaf(hi.y, x.z, fmaf(hi.x, x.w, y->w))));
}

// A channel's samples by the frame: from frame `from` on the block's, before it those that a ring keeps. Fours are
// aligned in both.
struct fours_line {
    const float *block, *ring;
    int begin, mask; // the block's place in the ring
    int from;
    __device__ __forceinline__ const float *place(int n) const
    {
        return n >= from ? block + n : ring + ((begin + n) & mask);
    }
    __device__ __forceinline__ float at(int n) const { return *place(n); }
    __device__ __forceinline__ float4 four(int n) const { return *(const float4 *)place(n); }
};

// So many lanes share four frames: a thread block has 128 threads a channel, up to four channels, and a block waits for
// the warp with most to do.
#define FOURS_LANES (CHAIN_MOST_FRAMES <= 64 ? 8 : 4)

// The lanes' sums of their four frames: each gets the frame of its own place among the four, lane / (LANES / 4). Whole
// warps.
template <int LANES> static __device__ __forceinline__ float fours_own(float4 y)
{
    enum { EACH = LANES / 4 };
    const bool high = threadIdx.x & 2 * EACH, odd = threadIdx.x & EACH;
    float a = high ? y.z : y.x, b = high ? y.w : y.y;
    a += __shfl_xor_sync(~0u, high ? y.x : y.z, 2 * EACH);
    b += __shfl_xor_sync(~0u, high ? y.y : y.w, 2 * EACH);
    a = (odd ? b : a) + __shfl_xor_sync(~0u, odd ? a : b, EACH);
#pragma unroll
    for (int d = EACH / 2; d; d /= 2) a += __shfl_xor_sync(~0u, a, d);
    return a;
}

// The sample of a block that a lane has a share in, where FOURS_LANES share four.
struct fours_place {
    int c, f, lane; // `lane`: among those that share
    bool first;     // of the lanes that have the sample
};

static __device__ __forceinline__ fours_place fours_place_of(int i)
{
    enum { EACH = FOURS_LANES / 4 };
    const fours_place at = {(int)((unsigned)i / (EACH * CHAIN_MOST_FRAMES)), i / EACH & (CHAIN_MOST_FRAMES - 1),
                            i & (FOURS_LANES - 1), (i & (EACH - 1)) == 0};
    return at;
}

// Whether a thread block has lanes for all samples of that many channels at once.
static __device__ __forceinline__ bool fours_fit(int channels)
{
    return channels * CHAIN_MOST_FRAMES * (FOURS_LANES / 4) <= chain_threads();
}

// A thread block's shared memory: the chain's buffers, the scratch behind them, then what chain_room names.
extern __shared__ __align__(16) float shared[];

// Where the instance at hand lies, and what is the same for all. The text before this file defines CHAIN_IN_SHARED when
// all of that is in shared memory, plans and places at CHAIN_PLANS_AT and CHAIN_PLACES_AT (bytes): so the compiler
// takes short addresses and loads.
struct chain_room {
    unsigned char *memory;
    const unsigned char *plans;
    const wt_node_place *places;
};
#ifdef CHAIN_IN_SHARED
// What has happened to the coefficients since chain_refresh made tables of them.
enum { CHAIN_AS_DESIGNED, CHAIN_DESIGNED_ANEW, CHAIN_RESTED };
static __shared__ int chain_changed;
static __shared__ int chain_rehearsed; // 1: the block at hand is of no account
#endif

static __device__ __forceinline__ chain_room chain_room_of(const chain_args &a, unsigned char *memory)
{
#ifdef CHAIN_IN_SHARED
    unsigned char *bytes = (unsigned char *)shared;
    const size_t at = __cvta_generic_to_shared(memory) - __cvta_generic_to_shared(bytes);
    chain_room room = {bytes + (int)at, bytes + CHAIN_PLANS_AT, (wt_node_place *)(bytes + CHAIN_PLACES_AT)};
#else
    chain_room room = {memory, a.plans, a.places};
#endif
    return room;
}

// What the arguments say is known beforehand where all lies in shared memory.
#ifdef CHAIN_IN_SHARED
#    define CHAIN_KNOWN(constant, argument) (constant)
#else
#    define CHAIN_KNOWN(constant, argument) (argument)
#endif

// Of a buffer: floats from a channel to the next, and from a buffer to the next.
static __device__ __forceinline__ int chain_stride(const chain_args &a)
{
    return CHAIN_KNOWN(CHAIN_MOST_FRAMES, a.block_frames);
}

static __device__ __forceinline__ int chain_buffer_floats(const chain_args &a)
{
    return CHAIN_KNOWN(CHAIN_BUFFER_CHANNELS * CHAIN_MOST_FRAMES, a.buffer_channels * a.block_frames);
}

static __device__ __forceinline__ int chain_n_buffers(const chain_args &a)
{
    return CHAIN_KNOWN(CHAIN_N_BUFFERS, a.n_buffers);
}

static __device__ __forceinline__ int chain_channels(const chain_args &a)
{
    return CHAIN_KNOWN(CHAIN_CHANNELS, a.channels);
}

static __device__ __forceinline__ int chain_out_channels(const chain_args &a)
{
    return CHAIN_KNOWN(CHAIN_OUT_CHANNELS, a.out_channels);
}

// What a node's process function gets, from its place.
static __device__ __forceinline__ wt_node_io chain_io(const chain_args &a, const chain_room &room, int n,
                                                      long long position, const wt_node_place &p)
{
    const int buffer_floats = chain_buffer_floats(a);
    wt_node_io io;
    io.n_inputs = p.n_inputs;
#pragma unroll
    for (int i = 0; i < WT_MAX_NODE_INPUTS; i++) { // by constants, so that what a node does not use is left out
        if (i >= p.n_inputs) continue;
        io.in[i] = shared + p.input[i] * buffer_floats;
        io.channels[i] = p.input_channels[i];
    }
    io.side = p.side < 0 ? 0 : shared + p.side * buffer_floats;
    io.side_channels = p.side_channels;
    io.out = shared + p.output * buffer_floats;
    io.out_channels = p.output_channels;
    io.stride = chain_stride(a);
    io.n_frames = n;
    io.position = position;
    io.scratch = shared + chain_n_buffers(a) * buffer_floats;
    io.readings = (float *)(room.memory + p.readings);
    io.tables = room.plans + p.plan;
    io.host = 0;
    return io;
}

// A pointer that becomes what the called function takes.
struct chain_pointer {
    void *p;
    template <class T> __device__ operator T *() const { return (T *)p; }
};
