// chorus: up to four voices, each the input behind a delay that swings, spread over the LFO's turn; the channels stand
// between the voices of their neighbour, which makes the sound wide.
//   y = (1 - mix) x + mix / sqrt(voices) sum over v of x(n - D_v(n)),   D_v = delay + depth sin(phase + v / voices)
#ifndef WT_CHORUS_KERNEL_H
#define WT_CHORUS_KERNEL_H
#include "lfo_kernel.h"

typedef struct chorus_plan {
    float rate_hz;
    int voices, mask;
    float scale; // 1 / sqrt(voices)
    unsigned int voice_step, channel_step; // of the phase
} chorus_plan;

typedef struct chorus_coeffs {
    lfo_delay delay;
    float mix, mix_slope;
} chorus_coeffs;

typedef struct chorus_state {
    unsigned int phase; // at the next frame
    int unused[3];
    float ring[1]; // [channels][mask + 1]
} chorus_state;

// v: rate_hz, depth_ms, delay_ms, mix
WT_SHARED_FN void chorus_design(const chorus_plan *p, const float *v0, const float *v1, chorus_coeffs *k)
{
    const float frames = p->rate_hz * 1e-3f;
    const float centre[2] = {v0[2] * frames, v1[2] * frames}, depth[2] = {v0[1] * frames, v1[1] * frames};
    lfo_delay_design(centre, depth, lfo_increment(v1[0], p->rate_hz), &k->delay);
    k->mix = v0[3], k->mix_slope = (v1[3] - v0[3]) / WT_QUANTUM;
}

// The swinging delays of one channel at frame n of a block whose first frame has `phase` and stands at `position`.
WT_SHARED_FN float chorus_voice(const chorus_plan *p, const lfo_delay *k, const float *ring, long long position,
                                unsigned int phase, int n)
{
    int at = ((int)position & (WT_QUANTUM - 1)) + n; // a block ends with its quantum while a parameter moves
    return lfo_read(k, ring, p->mask, position + n, at, phase + (unsigned int)n * k->increment);
}

WT_SHARED_FN float chorus_blend(const chorus_plan *p, const chorus_coeffs *k, long long position, int n, float x,
                                float voices)
{
    float mix = k->mix + k->mix_slope * (float)(((int)position & (WT_QUANTUM - 1)) + n);
    return x + mix * (p->scale * voices - x);
}
#endif
