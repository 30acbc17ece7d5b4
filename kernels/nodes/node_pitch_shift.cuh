// pitch_shift: quantum by quantum; a thread a sample reads the stretched stream, teams of warps make the spectra.
// Judge: the CPU's, 80 dB on noise (rounding errors grow where the weights of neighbours cancel).
#pragma once
#include "node_pitch_shift_kernel.h"
#include "spectral_node.cuh"

// The envelope of the spectrum `here`; takes the whole scratch.
static __device__ void shift_envelope(const spectral_team &team, const node_pitch_shift_plan *p, float *own,
                                      float *scratch)
{
    const int n = p->base.n_fft;
    const spectral_bins x = spectral_bins_of(spectral_planes(scratch, n), scratch, n);
    const float *lifted = shift_lifted(p, own);
    shift_measure(team, p, own);
    for (int round = 0; round < SHIFT_ROUNDS; round++) {
        for (int k = team.rank; k < p->base.bins; k += team.size) x.re[k] = lifted[k], x.im[k] = 0.0f;
        const fft_planes z = spectral_inverse(team, &p->base, x);
        const spectral_bins y = spectral_again(team, &p->base, z, scratch,
                                               [&](float point, int i) { return shift_lifter(p, point, i); });
        shift_raise(team, p, own, y.re);
        team.sync();
    }
}

static __device__ void shift_frame(const spectral_team &team, const node_pitch_shift_plan *p, float *channel,
                                   float *scratch, const shift_moment &m, int step)
{
    const int row = p->row;
    float *own = channel + p->base.own, *here = own + 2 * row;
    spectral_bins x = spectral_forward(team, &p->base, channel, m.end, scratch);
    for (int k = team.rank; k < p->base.bins; k += team.size) here[k] = x.re[k], here[row + k] = x.im[k];
    team.sync();
    if (p->order) shift_envelope(team, p, own, scratch);
    x = spectral_forward(team, &p->base, channel, m.end - p->base.hop, scratch);
    shift_turn(team, p, own, x.re, x.im, x.spare, spectral_plane(p->base.n_fft), step);
    spectral_add(team, &p->base, channel + p->base.in_ring, spectral_inverse(team, &p->base, x),
                 m.place - p->base.n_fft / 2);
}

static __device__ void node_pitch_shift_process(const wt_node_io *io, const node_pitch_shift_plan *p,
                                                const node_pitch_shift_coeffs *k, float *state)
{
    const spectral_plan *b = &p->base;
    node_pitch_shift_shared *s = (node_pitch_shift_shared *)(state + b->shared);
    for (int at = 0, n; at < io->n_frames; at += n) {
        const long long position = io->position + at;
        n = min(io->n_frames - at, WT_QUANTUM - (int)(position & (WT_QUANTUM - 1)));
        const shift_moment m = shift_moment_of(p, k, s, position, n);
        for (int i = threadIdx.x; i < b->channels * n; i += blockDim.x) {
            const int c = i / n, f = i - c * n;
            float *ring = spectral_channel(b, state, c);
            ring[(position + f) & (b->in_ring - 1)] = io->in[0][c * io->stride + at + f];
            io->out[c * io->stride + at + f] = shift_read(p, ring + b->in_ring, m.heard + (long long)f * m.heard_step);
        }
        __syncthreads();
        if (threadIdx.x == 0) shift_move_on(p, k, &m, s, position, n);
        if (m.due)
            for_each_channel_team(b, io->scratch, [&](const spectral_team &team, float *scratch, int c) {
                shift_frame(team, p, spectral_channel(b, state, c), scratch, m, k->step);
            });
        __syncthreads();
    }
}
