// saturation: channel after channel, one thread a sample of the higher rate, lines with their history in shared memory.
#pragma once
#include "saturation_kernel.h"

static __device__ void saturation_channel(const wt_node_io *io, const saturation_plan *p, const saturation_coeffs *k,
                                          float (*history)[SATURATION_TAPS], int c)
{
    const int n = io->n_frames, phase = (int)(io->position & (WT_QUANTUM - 1));
    const float *x = io->in[0] + c * io->stride;
    float *line = io->scratch;
    for (int i = threadIdx.x; i < (1 + p->factor) * SATURATION_TAPS; i += blockDim.x)
        line[i / SATURATION_TAPS * SATURATION_LINE + i % SATURATION_TAPS] = history[0][i];
    for (int i = threadIdx.x; i < n; i += blockDim.x) line[SATURATION_TAPS + i] = x[i];
    __syncthreads();
    for (int i = threadIdx.x; i < p->factor * n; i += blockDim.x) {
        int branch = i / n, frame = i - branch * n;
        float sum = 0.0f;
        for (int t = 0; t < SATURATION_TAPS; t++) sum += p->up[branch][t] * line[SATURATION_TAPS + frame - t];
        line[(1 + branch) * SATURATION_LINE + SATURATION_TAPS + frame] =
            saturation_sample(p->shape, k, sum, (float)(phase + frame));
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        float wet = 0.0f;
        for (int branch = 0; branch < p->factor; branch++)
            for (int t = 0; t < SATURATION_TAPS; t++)
                wet += p->down[branch][t] * line[(1 + branch) * SATURATION_LINE + SATURATION_TAPS + i - t];
        io->out[c * io->stride + i] =
            saturation_mix(k, line[SATURATION_TAPS + i - SATURATION_LATENCY], wet, (float)(phase + i));
    }
    for (int i = threadIdx.x; i < (1 + p->factor) * SATURATION_TAPS; i += blockDim.x)
        history[0][i] = line[i / SATURATION_TAPS * SATURATION_LINE + n + i % SATURATION_TAPS];
    __syncthreads();
}

static __device__ void saturation_process(const wt_node_io *io, const saturation_plan *p, const saturation_coeffs *k,
                                          saturation_state *s)
{
    const int phase = (int)(io->position & (WT_QUANTUM - 1));
    if (p->factor > 1)
        for (int c = 0; c < io->out_channels; c++) saturation_channel(io, p, k, s->line[c], c);
    else
        for_each_sample(io, [&](int c, int n) {
            float x = io->in[0][c * io->stride + n], t = (float)(phase + n);
            io->out[c * io->stride + n] = saturation_mix(k, x, saturation_sample(p->shape, k, x, t), t);
        });
}
