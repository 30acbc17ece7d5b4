// hpss: a thread a bin; medians in registers. Judge: the CPU's, 100 dB; medians identical but for rounded magnitudes.
#pragma once
#include "node_hpss_kernel.h"
#include "median.cuh"
#include "spectral_node.cuh"

static __device__ void node_hpss_frame(const spectral_team &team, const node_hpss_plan *p, const node_hpss_coeffs *k,
                                       float *own, const spectral_bins &x, long long t)
{
    const int bins = p->base.bins, row = p->row;
    int *keys = (int *)own;
    float *wait = own + HPSS_LIVE_TIME * row, *put = wait + hpss_wait_slot(p, t) * 2 * row;
    const float *heard = wait + hpss_wait_slot(p, t - p->lookahead) * 2 * row;
    for (int i = team.rank; i < bins; i += team.size) {
        put[i] = x.re[i], put[row + i] = x.im[i];
        keys[hpss_time_slot(t) * row + i] = hpss_key(x.re[i], x.im[i]);
    }
    team.sync();
    const int *now = keys + hpss_time_slot(t - p->lookahead) * row;
    for (int i = team.rank; i < bins; i += team.size) {
        const int along_time = median_of<HPSS_LIVE_TIME>([&](int j) { return keys[j * row + i]; });
        const int along_bins =
            median_of<HPSS_LIVE_BINS>([&](int j) { return now[hpss_mirror(i + j - HPSS_LIVE_EDGE, bins)]; });
        const float gain = hpss_gain(k, __int_as_float(along_time), __int_as_float(along_bins));
        x.re[i] = heard[i] * gain, x.im[i] = heard[row + i] * gain;
    }
}

static __device__ void node_hpss_process(const wt_node_io *io, const node_hpss_plan *p, const node_hpss_coeffs *k,
                                         float *state)
{
    spectral_process(
        io, &p->base, state,
        [&](const spectral_team &team, int, float *own, const spectral_bins &x, long long end) {
            node_hpss_frame(team, p, k, own, x, end / p->base.hop);
        },
        [](long long) {});
}
