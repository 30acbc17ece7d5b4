// fir: the block joins the ring, then one thread a sample; the taps of one channel stand in shared memory at a time,
// all channels share them when there is one set.
#pragma once
#include "fir_kernel.h"

static __device__ void fir_channels(const wt_node_io *io, const fir_plan *p, const fir_state *s, int c0, int c1)
{
    const int mask = FIR_RING_FRAMES - 1;
    for (int i = threadIdx.x; i < (c1 - c0) * io->n_frames; i += blockDim.x) {
        const int c = c0 + i / io->n_frames, n = i % io->n_frames;
        const float *ring = s->ring + c * FIR_RING_FRAMES;
        float even = 0.0f, odd = 0.0f;
        for (int k = 0; k + 1 < p->n_taps; k += 2) {
            even = fmaf(io->scratch[k], ring[(io->position + n - k) & mask], even);
            odd = fmaf(io->scratch[k + 1], ring[(io->position + n - k - 1) & mask], odd);
        }
        if (p->n_taps & 1)
            even = fmaf(io->scratch[p->n_taps - 1], ring[(io->position + n - p->n_taps + 1) & mask], even);
        io->out[c * io->stride + n] = even + odd;
    }
}

static __device__ void fir_process(const wt_node_io *io, const fir_plan *p, const void *, fir_state *s)
{
    for_each_sample(io, [&](int c, int n) {
        s->ring[c * FIR_RING_FRAMES + (int)((io->position + n) & (FIR_RING_FRAMES - 1))] =
            io->in[0][c * io->stride + n];
    });
    const int together = p->n_responses == 1 ? io->out_channels : 1;
    for (int c = 0; c < io->out_channels; c += together) {
        __syncthreads();
        for (int k = threadIdx.x; k < p->n_taps; k += blockDim.x)
            io->scratch[k] = p->taps[(p->n_responses == 1 ? 0 : c * p->n_taps) + k];
        __syncthreads();
        fir_channels(io, p, s, c, c + together);
    }
}
