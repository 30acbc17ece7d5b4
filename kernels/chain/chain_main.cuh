// The kernel of a composed chain. The text before this file defines, for the chain at hand,
//   chain_design(node, plan, v0, v1, coeffs)                     coefficients of one node
//   chain_process(args, memory, n, position)                     all nodes in order, a barrier after each
//   chain_after(args, memory, end)                               what the block up to `end` leaves to be done
#pragma once
#include "chain_control.cuh"

// Copy a result out; when a sample is not finite, write silence instead and start the instance anew.
static __device__ void chain_store(const chain_args &a, unsigned char *memory, const float *result, float *out,
                                   long long stride, int n)
{
    int finite = 1;
    for (int i = threadIdx.x; i < a.out_channels * n; i += blockDim.x) {
        int c = i / n, f = i - c * n;
        float y = result[c * a.block_frames + f];
        out[c * stride + f] = y;
        finite &= (__float_as_uint(y) & 0x7f800000u) != 0x7f800000u;
    }
    if (__syncthreads_and(finite)) return;
    for (int i = threadIdx.x; i < a.out_channels * n; i += blockDim.x) out[i / n * stride + i % n] = 0.0f;
    if (threadIdx.x == 0) atomicAdd_system(a.faults, 1ull);
    chain_rest(a, memory);
}

// Show the host what instance 0's nodes read.
static __device__ void chain_publish(const chain_args &a, const unsigned char *memory)
{
    int first = 0;
    for (int k = 0; k < a.n_nodes; first += a.places[k++].n_readings)
        for (int r = threadIdx.x; r < a.places[k].n_readings; r += blockDim.x)
            ((volatile float *)a.readings)[first + r] = ((const float *)(memory + a.places[k].readings))[r];
}

extern "C" __global__ void chain_run(const __grid_constant__ chain_args a)
{
    const wt_chain_span span = a.spans[blockIdx.x];
    unsigned char *memory = a.memory + (unsigned long long)span.instance * a.instance_bytes;
    wt_instance *instance = (wt_instance *)memory;
    if (span.reset) chain_rest(a, memory);
    const float *in = (const float *)span.in;
    float *out = (float *)span.out;
    const int buffer_floats = a.buffer_channels * a.block_frames;
    long long position = instance->position;
    int moving = instance->moving;
    if (!span.reset && instance->sequence != a.sequence) moving = chain_aim(a, memory, a.ramp_quanta);
    __syncthreads();

    for (int done = 0, n; done < span.n_frames; done += n, position += n) {
        int phase = (int)(position & (WT_QUANTUM - 1));
        if (moving && phase == 0) moving = chain_control(a, memory, false);
        n = min(span.n_frames - done, moving ? WT_QUANTUM - phase : a.block_frames);
        for (int i = threadIdx.x; i < a.channels * n; i += blockDim.x) {
            int c = i / n, f = i - c * n;
            shared[c * a.block_frames + f] = in[c * span.in_stride + done + f];
        }
        __syncthreads();
        chain_process(a, memory, n, position);
        chain_store(a, memory, shared + a.output * buffer_floats, out + done, span.out_stride, n);
        __syncthreads();
        chain_after(a, memory, position + n);
    }
    if (span.instance == 0) chain_publish(a, memory);
    if (threadIdx.x == 0) {
        instance->position = position;
        instance->moving = moving;
        instance->sequence = a.sequence;
    }
}
