// echo_cancel: a team of warps a microphone makes its echo and its error, then teams take parts of the filters, whose
// constraints are what costs. Judge: the CPU's, 80 dB (a filter that learns from its own rounding errors).
#pragma once
#include "node_echo_cancel_kernel.h"
#include "spectral_node.cuh"

// Call f(team, scratch, job) for each of n jobs by `teams` teams.
template <class F>
static __device__ __forceinline__ void echo_jobs(const node_echo_cancel_plan *p, float *scratch, int n, int teams, F f)
{
    spectral_plan jobs = p->base;
    jobs.channels = n, jobs.n_teams = teams;
    for_each_channel_team(&jobs, scratch, f);
}

// The end of block t, whose last frame is `end` - 1: spectrum and power of the playback.
static __device__ void echo_take_playback(const spectral_team &team, const node_echo_cancel_plan *p, echo_common *s,
                                          float *scratch, long long end, long long t)
{
    const int n = p->base.n_fft, mask = p->base.in_ring - 1;
    const float *playback = echo_playback(s);
    float sum = 0.0f;
    for (int k = team.rank; k < n; k += team.size) {
        const float x = playback[(end - n + k) & mask];
        sum += x * x;
    }
    const spectral_bins x = spectral_forward(team, &p->base, playback, end, scratch);
    echo_hear(team, p, echo_spectrum(p, s, t, 0), x.re, x.im);
    sum = spectral_sum(team, sum, x.partials);
    if (team.rank == 0) s->power = sum / (float)n;
}

// One microphone: what goes out in the next block, the error's spectrum and the steps.
static __device__ void echo_cancel(const spectral_team &team, const node_echo_cancel_plan *p, echo_common *s,
                                   echo_voice *v, const float *ring, float *scratch, long long end, long long t)
{
    const int n = p->base.n_fft, block = p->base.hop, mask = p->base.in_ring - 1;
    const float scale = 1.0f / (float)n;
    const echo_worth before = v->worth;
    const spectral_bins x = spectral_bins_of(spectral_planes(scratch, n), scratch, n);
    echo_imagine(team, p, s, v, t, x.re, x.im);
    const fft_planes z = spectral_inverse(team, &p->base, x);
    float mic_power = 0.0f, error_power = 0.0f;
    for (int i = team.rank; i < block; i += team.size) {
        const float mic = ring[(end - block + i) & mask], error = mic - spectral_point(z, block + i, scale);
        mic_power += mic * mic, error_power += error * error;
    }
    mic_power = spectral_sum(team, mic_power, x.partials) / (float)block;
    error_power = spectral_sum(team, error_power, x.partials) / (float)block;
    const echo_worth worth = echo_judge(&p->rules, before, mic_power, error_power);
    float *ready = echo_ready(v);
    const spectral_bins e = spectral_again(team, &p->base, z, scratch, [&](float point, int i) {
        if (i < block) return 0.0f;
        i -= block;
        const float echo = point * scale, mic = ring[(end - block + i) & mask];
        const float trust = before.trust + (worth.trust - before.trust) * (float)i / (float)block;
        ready[i] = trust * echo;
        return mic - echo;
    });
    echo_listen(team, p, v, e.re, e.im);
    if (worth.error_power > ECHO_WORSE * worth.mic_power) echo_doubt_all(team, p, v);
    if (team.rank == 0) v->worth = worth;
}

// One part of one microphone's filter learns, and stays `block` taps long.
static __device__ void echo_learn(const spectral_team &team, const node_echo_cancel_plan *p, echo_common *s,
                                  echo_voice *v, float *scratch, long long t, int part)
{
    const int n = p->base.n_fft, block = p->base.hop;
    const float scale = 1.0f / (float)n;
    const spectral_bins x = spectral_bins_of(spectral_planes(scratch, n), scratch, n);
    echo_gradient(team, p, s, v, t, part, x.re, x.im);
    const fft_planes z = spectral_inverse(team, &p->base, x);
    const spectral_bins g = spectral_again(team, &p->base, z, scratch,
                                           [&](float point, int i) { return i < block ? point * scale : 0.0f; });
    echo_move(team, p, s, v, t, part, g.re, g.im);
}

static __device__ void echo_end_block(const wt_node_io *io, const node_echo_cancel_plan *p, float *state, long long end)
{
    echo_common *s = echo_common_of(p, state);
    const int mics = p->base.channels;
    const long long t = end / p->base.hop;
    const bool first = s->started == 0.0f;
    echo_jobs(p, io->scratch, 1, 1, [&](const spectral_team &team, float *scratch, int) {
        echo_take_playback(team, p, s, scratch, end, t);
    });
    if (threadIdx.x == 0) s->started = 1.0f;
    echo_jobs(p, io->scratch, mics, p->base.n_teams, [&](const spectral_team &team, float *scratch, int c) {
        echo_voice *v = echo_voice_of(p, state, c);
        if (first) {
            echo_doubt_all(team, p, v);
            if (team.rank == 0) v->worth.trust = 1.0f;
            team.sync();
        }
        echo_cancel(team, p, s, v, spectral_channel(&p->base, state, c), scratch, end, t);
    });
    if (s->power > ECHO_SILENT)
        echo_jobs(p, io->scratch, mics * p->n_parts, p->part_teams,
                  [&](const spectral_team &team, float *scratch, int job) {
                      const int c = job / p->n_parts;
                      echo_learn(team, p, s, echo_voice_of(p, state, c), scratch, t, job - c * p->n_parts);
                  });
    if (threadIdx.x == 0) echo_show(p, state, io->readings);
    __syncthreads();
}

static __device__ void node_echo_cancel_process(const wt_node_io *io, const node_echo_cancel_plan *p,
                                                const node_echo_cancel_coeffs *k, float *state)
{
    const int mics = p->base.channels, block = p->base.hop, mask = p->base.in_ring - 1;
    const float *heard = io->side ? io->side : io->in[0] + mics * io->stride;
    const int n_heard = io->side ? io->side_channels : 1;
    float *playback = echo_playback(echo_common_of(p, state));
    for (int at = 0, n; at < io->n_frames; at += n) {
        const long long position = io->position + at;
        const int phase = (int)(position % block);
        n = min(io->n_frames - at, block - phase);
        for (int i = threadIdx.x; i < (mics + 1) * n; i += blockDim.x) {
            const int c = i / n, f = i - c * n, frame = at + f;
            const int slot = (int)((position + f) & mask);
            if (c == mics) {
                float sum = 0.0f;
                for (int h = 0; h < n_heard; h++) sum += heard[h * io->stride + frame];
                playback[slot] = echo_tame(sum / (float)n_heard);
                continue;
            }
            float *ring = spectral_channel(&p->base, state, c);
            const float *ready = echo_ready(echo_voice_of(p, state, c));
            ring[slot] = echo_tame(io->in[0][c * io->stride + frame]);
            io->out[c * io->stride + frame] =
                ring[(position + f - block) & mask] - echo_amount(k, position + f) * ready[phase + f];
        }
        __syncthreads();
        if (n == block - phase) echo_end_block(io, p, state, position + n);
    }
}
