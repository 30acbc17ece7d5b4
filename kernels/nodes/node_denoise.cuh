// denoise: a thread a bin. Judge: the CPU's, 90 dB (smooth gains of powers that differ in their last bits).
#pragma once
#include "node_denoise_kernel.h"
#include "spectral_node.cuh"

static __device__ void node_denoise_process(const wt_node_io *io, const node_denoise_plan *p,
                                            const node_denoise_coeffs *k, float *state)
{
    spectral_process(
        io, &p->base, state,
        [&](const spectral_team &team, int, float *own, const spectral_bins &x, long long) {
            node_denoise_frame(team, p, k, own, x.re, x.im, x.spare, x.partials);
        },
        [](long long) {});
}
