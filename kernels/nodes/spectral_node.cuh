// The short-time transforms of spectral nodes, by teams of warps. Scratch of a team: bins [2][plane], spare [2][plane],
// partial sums. Judge: the CPU's (dsp/nodes/spectral_node.c), 100 dB.
#pragma once
#include "chain.cuh"
#include "spectral_node_kernel.h"

// What a team works on: bins 0 .. n_fft / 2 of a channel in re and im; `spare` holds two planes more.
struct spectral_bins {
    float *re, *im, *spare, *partials;
};

static __device__ __forceinline__ fft_planes spectral_planes(float *at, int n_fft)
{
    fft_planes planes = {at, at + spectral_plane(n_fft)};
    return planes;
}

static __device__ __forceinline__ spectral_bins spectral_bins_of(fft_planes z, float *scratch, int n_fft)
{
    float *other = scratch + 2 * spectral_plane(n_fft);
    spectral_bins b = {z.re, z.im, z.re == scratch ? other : scratch, scratch + 4 * spectral_plane(n_fft)};
    return b;
}

// In place: the packed transform of n / 2 points to the bins of n real ones. A thread reads and writes a pair of bins.
static __device__ void spectral_unpack(const spectral_team &team, fft_planes z, int half, const float2 *roots)
{
    for (int k = team.rank; k <= half / 2; k += team.size) {
        const int mirror = (half - k) & (half - 1);
        const float2 w = roots[k];
        const float e_re = 0.5f * (z.re[k] + z.re[mirror]), e_im = 0.5f * (z.im[k] - z.im[mirror]);
        const float o_re = 0.5f * (z.im[k] + z.im[mirror]), o_im = 0.5f * (z.re[mirror] - z.re[k]);
        const float t_re = o_re * w.x - o_im * w.y, t_im = o_re * w.y + o_im * w.x;
        z.re[k] = e_re + t_re, z.im[k] = e_im + t_im;
        z.re[half - k] = e_re - t_re, z.im[half - k] = t_im - e_im;
    }
    team.sync();
}

// n_fft frames before `end` in a ring, windowed, to their bins.
static __device__ spectral_bins spectral_forward(const spectral_team &team, const spectral_plan *p, const float *ring,
                                                 long long end, float *scratch)
{
    const int half = p->n_fft / 2, mask = p->in_ring - 1, begin = (int)((end - p->n_fft) & mask);
    const float2 *roots = (const float2 *)spectral_table(p, p->roots);
    const float *window = spectral_table(p, p->window);
    fft_planes x = spectral_planes(scratch, p->n_fft);
    for (int k = team.rank; k < half; k += team.size) {
        x.re[k] = ring[(begin + 2 * k) & mask] * window[2 * k];
        x.im[k] = ring[(begin + 2 * k + 1) & mask] * window[2 * k + 1];
    }
    team.sync();
    fft_planes y = spectral_planes(scratch + 2 * spectral_plane(p->n_fft), p->n_fft);
    fft_planes z = fft_block(team, x, y, half, roots, p->n_fft);
    spectral_unpack(team, z, half, roots);
    return spectral_bins_of(z, scratch, p->n_fft);
}

// The bins to n_fft real points times n_fft: point i is `i & 1 ? re : im` at i / 2 of the planes returned.
static __device__ fft_planes spectral_inverse(const spectral_team &team, const spectral_plan *p, const spectral_bins &b)
{
    const int half = p->n_fft / 2;
    const float2 *roots = (const float2 *)spectral_table(p, p->roots);
    fft_planes x = {b.re, b.im}, y = spectral_planes(b.spare, p->n_fft);
    team.sync();
    for (int k = team.rank; k <= half / 2; k += team.size) {
        const int mirror = half - k;
        const float a_re = b.re[k], b_re = b.re[mirror], a_im = k ? b.im[k] : 0.0f, b_im = k ? b.im[mirror] : 0.0f;
        const float2 w = roots[k];
        const float e_re = a_re + b_re, e_im = a_im - b_im, d_re = a_re - b_re, d_im = a_im + b_im;
        const float o_re = d_re * w.x + d_im * w.y, o_im = d_im * w.x - d_re * w.y;
        x.im[k] = e_re - o_im, x.re[k] = e_im + o_re; // exchanged: the inverse
        if (k) x.im[mirror] = e_re + o_im, x.re[mirror] = o_re - e_im;
    }
    team.sync();
    return fft_block(team, x, y, half, roots, p->n_fft);
}

static __device__ __forceinline__ float spectral_point(fft_planes z, int i, float scale)
{
    return (i & 1 ? z.re[i / 2] : z.im[i / 2]) * scale;
}

// The points that spectral_inverse left in z, each replaced by f(point, its index), to their bins.
template <class F>
static __device__ spectral_bins spectral_again(const spectral_team &team, const spectral_plan *p, fft_planes z,
                                               float *scratch, F f)
{
    const int half = p->n_fft / 2;
    const float2 *roots = (const float2 *)spectral_table(p, p->roots);
    for (int k = team.rank; k < half; k += team.size) {
        const float even = z.im[k], odd = z.re[k];
        z.re[k] = f(even, 2 * k), z.im[k] = f(odd, 2 * k + 1);
    }
    team.sync();
    const fft_planes other = spectral_planes(spectral_bins_of(z, scratch, p->n_fft).spare, p->n_fft);
    z = fft_block(team, z, other, half, roots, p->n_fft);
    spectral_unpack(team, z, half, roots);
    return spectral_bins_of(z, scratch, p->n_fft);
}

// Call f(team, team's scratch, channel) for every channel; all threads of the block come here and meet again.
template <class F> static __device__ void for_each_channel_team(const spectral_plan *p, float *scratch, F f)
{
    const int warps = blockDim.x / 32;
    int teams = p->n_teams;
    while (teams > warps) teams /= 2;
    spectral_team team;
    team.size = warps / teams * 32;
    team.warp = team.size == 32;
    const int mine = threadIdx.x / team.size;
    team.rank = threadIdx.x - mine * team.size;
    team.barrier = 1 + mine;
    for (int c = mine; mine < teams && c < p->channels; c += teams) {
        f(team, scratch + mine * spectral_team_floats(p->n_fft), c);
        team.sync();
    }
    __syncthreads();
}

// Add what comes out of a channel's bins to its ring of output, in which `end` is the next frame to be heard.
static __device__ void spectral_add(const spectral_team &team, const spectral_plan *p, float *ring, fft_planes z,
                                    long long end)
{
    const int mask = p->out_ring - 1, tail = p->n_fft - p->out_frames;
    const float *synthesis = spectral_table(p, p->synthesis);
    for (int i = team.rank; i < p->out_frames; i += team.size) {
        const float y = spectral_point(z, tail + i, synthesis[i]);
        float *sum = &ring[(end + i) & mask];
        *sum = i < p->out_frames - p->hop ? *sum + y : y;
    }
}

// Frames at .. at + n - 1 of a block into the rings of input, and the sound that goes on: the rings' of output, or the
// input.
static __device__ void spectral_pass(const wt_node_io *io, const spectral_plan *p, float *state, int at, int n)
{
    const long long position = io->position + at;
    for (int i = threadIdx.x; i < p->channels * n; i += blockDim.x) {
        const int c = i / n, k = i - c * n;
        float *ring = spectral_channel(p, state, c);
        const float x = io->in[0][c * io->stride + at + k];
        ring[(position + k) & (p->in_ring - 1)] = x;
        io->out[c * io->stride + at + k] = p->out_frames ? ring[p->in_ring + ((position + k) & (p->out_ring - 1))] : x;
    }
}

// The process of a node that changes the sound: f(team, c, own, bins, end) for each channel's transform that ends at
// position `end`, then, by the whole block, done(end).
template <class Frame, class Done>
static __device__ void spectral_process(const wt_node_io *io, const spectral_plan *p, float *state, Frame f, Done done)
{
    for (int at = 0, n; at < io->n_frames; at += n) {
        const long long position = io->position + at;
        const int left = p->hop - (int)(position % p->hop);
        n = min(io->n_frames - at, left);
        spectral_pass(io, p, state, at, n);
        __syncthreads();
        if (n < left) continue;
        const long long end = position + n;
        for_each_channel_team(p, io->scratch, [&](const spectral_team &team, float *scratch, int c) {
            float *channel = spectral_channel(p, state, c);
            spectral_bins bins = spectral_forward(team, p, channel, end, scratch);
            f(team, c, channel + p->own, bins, end);
            spectral_add(team, p, channel + p->in_ring, spectral_inverse(team, p, bins), end);
        });
        done(end);
        __syncthreads();
    }
}

// What a node that only looks does after the answer, whose process is spectral_pass: as above for all transforms that
// ended behind `shown`. Rings keep a block more than a transform.
template <class Frame, class Done>
static __device__ void spectral_look(const wt_node_io *io, const spectral_plan *p, float *state, long long shown,
                                     Frame f, Done done)
{
    const long long from = max(shown, io->position - WT_CHAIN_BLOCK);
#pragma unroll 1
    for (long long end = (from / p->hop + 1) * p->hop; end <= io->position; end += p->hop) {
        for_each_channel_team(p, io->scratch, [&](const spectral_team &team, float *scratch, int c) {
            float *channel = spectral_channel(p, state, c);
            f(team, c, channel + p->own, spectral_forward(team, p, channel, end, scratch), end);
        });
        done(end);
        __syncthreads();
    }
}
