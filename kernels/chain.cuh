// Device side of a chain: helpers that node kernels use. A thread block runs one instance; audio lies planar in shared
// memory. Every *_process function is called by all threads of the block, between barriers.
#pragma once
#include "chain_kernel.h"

// Call f(channel, frame) for every output sample, spread over the block's threads.
template <class F> static __device__ __forceinline__ void for_each_sample(const wt_node_io *io, F f)
{
#pragma unroll 1
    for (int i = threadIdx.x; i < io->out_channels * io->n_frames; i += blockDim.x) {
        int c = i / io->n_frames;
        f(c, i - c * io->n_frames);
    }
}

// Call f(channel) in whole warps, one channel a warp at a time; f may use warp-wide operations.
template <class F> static __device__ __forceinline__ void for_each_channel_warp(int channels, F f)
{
#pragma unroll 1
    for (int c = threadIdx.x / 32; c < channels; c += blockDim.x / 32) f(c);
}

// Inclusive scan of y = a * y_before + x over a warp's lanes, `a` a constant: lane l gets sum a^(l-m) x_m. `power` holds
// a^1, a^2, a^4, a^8, a^16 (that is a^(2^d) at d).
static __device__ __forceinline__ float scan_decay(float x, const float *power)
{
    int lane = threadIdx.x & 31;
    for (int d = 0; d < 5; d++) {
        float before = __shfl_up_sync(~0u, x, 1 << d);
        if (lane >= 1 << d) x = fmaf(power[d], before, x);
    }
    return x;
}

// What a node's process function gets, from its place.
static __device__ __forceinline__ wt_node_io chain_io(const chain_args &a, unsigned char *memory, float *buffers, int n,
                                                      long long position, const wt_node_place &p)
{
    const int buffer_floats = a.buffer_channels * a.block_frames;
    wt_node_io io;
    io.n_inputs = p.n_inputs;
    for (int i = 0; i < p.n_inputs; i++) {
        io.in[i] = buffers + p.input[i] * buffer_floats;
        io.channels[i] = p.input_channels[i];
    }
    io.side = p.side < 0 ? 0 : buffers + p.side * buffer_floats;
    io.side_channels = p.side_channels;
    io.out = buffers + p.output * buffer_floats;
    io.out_channels = p.output_channels;
    io.stride = a.block_frames;
    io.n_frames = n;
    io.position = position;
    io.scratch = buffers + a.n_buffers * buffer_floats;
    io.readings = (float *)(memory + p.readings);
    io.host = 0;
    return io;
}

// A pointer that becomes what the called function takes.
struct chain_pointer {
    void *p;
    template <class T> __device__ operator T *() const { return (T *)p; }
};
