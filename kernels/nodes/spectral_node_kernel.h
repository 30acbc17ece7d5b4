// What the nodes that work in a short-time spectrum share: a ring of input a channel; whenever the absolute position is
// a multiple of the hop the last n_fft frames are windowed and transformed, the node works on the bins, and (in nodes
// that change the sound) the result is transformed back, windowed and added to a ring of output. A frame of the stream
// is whole once the last window over it has come, so the latency is the length of the synthesis window, out_frames.
//
// On a GPU the block is split into teams of warps that take a channel each and meet at barriers of their own. The text
// that works on bins is the same on both sides: SPECTRAL_EACH gives a CPU thread all bins and a GPU thread its share.
#ifndef WT_SPECTRAL_NODE_KERNEL_H
#define WT_SPECTRAL_NODE_KERNEL_H
#include "fastmath_kernel.h"

#define SPECTRAL_MIN_FFT   128
#define SPECTRAL_MAX_FFT   4096
#define SPECTRAL_MAX_TEAMS 8
#define SPECTRAL_SCRATCH   16768 // floats that all teams together may take
#define SPECTRAL_PARTIALS  32    // of a team's scratch: one a warp

// First member of a node's plan; its tables lie behind the plan's struct.
typedef struct spectral_plan {
    int n_fft, hop, channels, bins;
    int out_frames;               // of the synthesis window; 0 = the sound passes unchanged
    int in_ring, out_ring;        // frames, powers of two
    int n_teams;                  // most that the scratch holds
    int channel_floats;           // of the state, a channel: rings, then the node's own
    int own, own_floats;          // where the node's own begins
    int shared;                   // floats from the state's start: what the channels share
    int window, synthesis, roots; // floats from the plan's start: [n_fft], [out_frames], [n_fft][2] e^(-2 pi i k / n)
    float scale;                  // 1 / (n_fft * sum of squared windows): squared bins to mean squares, both sides
} spectral_plan;

#ifdef __CUDACC__
#    include "fft_block.cuh"
typedef fft_team spectral_team;
#    define SPECTRAL_EACH(k, n) for (int k = team.rank; k < (n); k += team.size)
#    define SPECTRAL_SYNC()     team.sync()
#else
typedef struct spectral_team {
    int rank;
} spectral_team;
#    define SPECTRAL_EACH(k, n) for (int k = 0; k < (n); k++)
#    define SPECTRAL_SYNC()     ((void)0)
#endif

// Floats of one plane of bins, and of a team's scratch: two pairs of planes and the partial sums.
WT_SHARED_FN int spectral_plane(int n_fft) { return n_fft / 2 + 4; }
WT_SHARED_FN int spectral_team_floats(int n_fft) { return 4 * spectral_plane(n_fft) + SPECTRAL_PARTIALS; }

WT_SHARED_FN float *spectral_channel(const spectral_plan *p, float *state, int c)
{
    return state + (long long)c * p->channel_floats;
}
WT_SHARED_FN const float *spectral_table(const spectral_plan *p, int at) { return (const float *)p + at; }

// Sum of each thread's x over the team, the same for all. On a GPU `partials` is the team's.
WT_SHARED_FN float spectral_sum(spectral_team team, float x, float *partials)
{
#ifdef __CUDACC__
    for (int d = 16; d; d /= 2) x += __shfl_xor_sync(~0u, x, d);
    if (team.rank % 32 == 0) partials[team.rank / 32] = x;
    team.sync();
    x = 0.0f;
    for (int w = 0; w < team.size / 32; w++) x += partials[w];
    team.sync();
#else
    (void)team, (void)partials;
#endif
    return x;
}

WT_SHARED_FN float spectral_db(float power) { return power > 1e-12f ? 10.0f * log10f(power) : -120.0f; }
#endif
