// vad: one warp a channel listens, in pieces that end with a window; the high-pass is a scan over the lanes, in double
// as the CPU's, so that decisions agree. Judge: the CPU's, the same decisions, gains to 100 dB.
#pragma once
#include "chain.cuh"
#include "node_vad_kernel.h"

// y[n] = a (y[n-1] + x[n] - x[n-1]), and the sum of y^2.
static __device__ void vad_listen(vad_voice *s, double a, const float *x, int n)
{
    const int lane = threadIdx.x & 31;
    double power[5], high = s->high, before = s->in_before, sum = 0;
    power[0] = a;
    for (int d = 1; d < 5; d++) power[d] = power[d - 1] * power[d - 1];
    for (int first = 0; first < n; first += 32) {
        const int last = min(31, n - 1 - first);
        const double here = first + lane < n ? x[first + lane] : 0.0, earlier = __shfl_up_sync(~0u, here, 1);
        double y = a * (here - (lane ? earlier : before)) + (lane ? 0.0 : a * high);
        for (int d = 0; d < 5; d++) {
            const double y_before = __shfl_up_sync(~0u, y, 1 << d);
            if (lane >= 1 << d) y += power[d] * y_before;
        }
        if (lane <= last) sum += y * y;
        high = __shfl_sync(~0u, y, last), before = __shfl_sync(~0u, here, last);
    }
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (lane == 0) s->high = high, s->in_before = before, s->sum += sum;
}

static __device__ void node_vad_process(const wt_node_io *io, const node_vad_plan *p, const node_vad_coeffs *k,
                                        node_vad_state *s)
{
    const int mask = p->ring_frames - 1;
    for (int done = 0, n; done < io->n_frames; done += n) {
        const long long position = io->position + done;
        const int at = (int)(position % p->window);
        n = min(io->n_frames - done, p->window - at);
        for_each_channel_warp(p->channels, [&](int c) {
            const float *x = io->in[0] + c * io->stride + done;
            float *ring = s->ring + c * p->ring_frames, *y = io->out + c * io->stride + done;
            vad_listen(&s->voices[c], p->high_pole, x, n);
            if (p->lookahead)
                for (int i = threadIdx.x & 31; i < n; i += 32) ring[(position + i) & mask] = x[i];
            __syncwarp();
            for (int i = threadIdx.x & 31; i < n; i += 32) {
                const float heard = p->lookahead ? ring[(position + i - p->lookahead) & mask] : x[i];
                y[i] = heard * node_vad_gain(p, k, s, position + i, at + i);
            }
        });
        __syncthreads();
        if (at + n < p->window) continue;
        for (int c = threadIdx.x; c < p->channels; c += blockDim.x)
            vad_end_window(&k->rules, &s->count, &s->voices[c], p->window);
        __syncthreads();
        if (threadIdx.x == 0) node_vad_end_window(p, k, s, io->readings);
        __syncthreads();
    }
}
