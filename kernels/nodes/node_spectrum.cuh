// spectrum: a warp a band sums the bins of a channel, then a thread a band smooths over time.
#pragma once
#include "node_spectrum_kernel.h"
#include "spectral_node.cuh"

static __device__ void node_spectrum_process(const wt_node_io *io, const node_spectrum_plan *p,
                                             const node_spectrum_coeffs *, float *state)
{
    const node_spectrum_shared *s = (const node_spectrum_shared *)(state + p->base.shared);
    spectral_pass(io, &p->base, state, 0, io->n_frames);
    for (int band = threadIdx.x; band < SPECTRUM_BANDS && s->shown == 0; band += blockDim.x)
        io->readings[band] = -120.0f;
}

static __device__ void node_spectrum_after(const wt_node_io *io, const node_spectrum_plan *p,
                                           const node_spectrum_coeffs *k, float *state)
{
    node_spectrum_shared *s = (node_spectrum_shared *)(state + p->base.shared);
    spectral_look(
        io, &p->base, state, s->shown,
        [&](const spectral_team &team, int, float *own, const spectral_bins &x, long long) {
            for (int band = team.rank / 32; band < SPECTRUM_BANDS; band += team.size / 32) {
                float sum = 0.0f;
                for (int i = spectrum_first(p, band) + (team.rank & 31); i <= spectrum_last(p, band); i += 32)
                    sum += spectrum_part(p, band, i, x.re[i], x.im[i]);
                for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
                if ((team.rank & 31) == 0) own[band] = sum;
            }
        },
        [&](long long end) {
            for (int band = threadIdx.x; band < SPECTRUM_BANDS; band += blockDim.x)
                spectrum_show(p, k, state, band, io->readings);
            if (threadIdx.x == 0) s->shown = end;
        });
}
