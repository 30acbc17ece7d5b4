// cqt: a thread a note walks over the frames, with its resonators in registers; they do not wait for each other.
// Judge: the CPU's, 0.01 dB.
#pragma once
#include "chain.cuh"
#include "node_cqt_kernel.h"

static __device__ void cqt_run(const node_cqt_plan *p, node_cqt_state *s, long long begin, int n, int note)
{
    const float a = p->pole_re[note], b = p->pole_im[note], gain = p->gain[note];
    float re[CQT_STAGES], im[CQT_STAGES];
#pragma unroll
    for (int k = 0; k < CQT_STAGES; k++) re[k] = s->re[k][note], im[k] = s->im[k][note];
    for (int i = 0; i < n; i++) {
#pragma unroll
        for (int k = CQT_STAGES - 1; k >= 0; k--) {
            const float r = re[k], in_re = k ? re[k ? k - 1 : 0] : gain * s->x[(begin + i) & (WT_CHAIN_BLOCK - 1)],
                        in_im = k ? im[k ? k - 1 : 0] : 0.0f;
            re[k] = fmaf(a, r, fmaf(-b, im[k], in_re));
            im[k] = fmaf(a, im[k], fmaf(b, r, in_im));
        }
    }
#pragma unroll
    for (int k = 0; k < CQT_STAGES; k++) s->re[k][note] = re[k], s->im[k][note] = im[k];
}

// The sound, and its mean of all channels kept.
static __device__ void node_cqt_process(const wt_node_io *io, const node_cqt_plan *p, const void *, node_cqt_state *s)
{
    for (int f = threadIdx.x; f < io->n_frames; f += blockDim.x) {
        float sum = 0.0f;
        for (int c = 0; c < p->channels; c++) {
            const float y = io->in[0][c * io->stride + f];
            io->out[c * io->stride + f] = y;
            sum += y;
        }
        s->x[(io->position + f) & (WT_CHAIN_BLOCK - 1)] = sum / (float)p->channels;
    }
}

// The frames that came since, with the levels at each hop between them.
static __device__ void node_cqt_after(const wt_node_io *io, const node_cqt_plan *p, const void *, node_cqt_state *s)
{
    const long long begin = max(s->heard, io->position - WT_CHAIN_BLOCK);
    for (long long at = begin; at < io->position;) {
        const int left = p->hop - (int)(at % p->hop), n = (int)min(io->position - at, (long long)left);
        for (int note = threadIdx.x; note < CQT_NOTES; note += blockDim.x) cqt_run(p, s, at, n, note);
        at += n;
        __syncthreads();
        if (n < left && s->known) continue;
        for (int r = threadIdx.x; r < CQT_N_READINGS; r += blockDim.x)
            io->readings[r] = n < left ? -120.0f : cqt_level(s, r);
        __syncthreads();
        if (threadIdx.x == 0 && n == left) s->known = 1;
        __syncthreads();
    }
    if (threadIdx.x == 0) s->heard = io->position;
}
