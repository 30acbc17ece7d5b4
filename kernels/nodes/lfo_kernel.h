// A sine that moves a delay, the same to the bit on both backends, however long it has run: its phase counts in 2^-32
// of a turn and its delay in 2^-16 of a frame, both integers, and the few float steps in between leave the compiler no
// choice of rounding. (A delay of 1000 frames as a float would err by 6e-5 frames, -80 dB at half the Nyquist rate.)
#ifndef WT_LFO_KERNEL_H
#define WT_LFO_KERNEL_H
#include "interpolate_kernel.h"

#define LFO_UNITS 65536.0f // of delay, a frame
#define LFO_SHORTEST ((LAGRANGE_BEFORE + 1) << 16)
#define LFO_MOST 1000.0f // frames that a centre may move within a quantum; with twice a depth of 15360 it fits
#define LFO_TURN 4294967296.0

// a * b + c, rounded once.
WT_SHARED_FN float wt_fma(float a, float b, float c)
{
#ifdef __CUDACC__
    return __fmaf_rn(a, b, c);
#else
    return __builtin_fmaf(a, b, c);
#endif
}

// Phase steps a frame; to 1e-5 Hz at 48 kHz.
WT_SHARED_FN unsigned int lfo_increment(float lfo_hz, float rate_hz)
{
    return (unsigned int)((double)lfo_hz / (double)rate_hz * LFO_TURN + 0.5);
}

// sin(2 pi phase / 2^32): folded into the quarter turns around 0, then Taylor's series to x^9, within 4e-6.
WT_SHARED_FN float lfo_sine(unsigned int phase)
{
    unsigned int outer = 0u - ((phase + 0x40000000u) >> 31); // all ones beyond a quarter turn: sin(x) = sin(pi - x)
    float x = (float)(int)((phase ^ outer) + (outer & 0x80000001u)) * 4.656612873e-10f, x2 = x * x;
    float p = wt_fma(x2, 0.0821458866f, -0.599264529f);
    p = wt_fma(x2, p, 2.55016404f);
    p = wt_fma(x2, p, -5.16771278f);
    return x * wt_fma(x2, p, 3.14159265f);
}

// A delay of `base` frames, and on top of it in units a centre and depth with their change a frame within the quantum:
// 31 bits of units alone would end at 32767 frames, 43 ms at 768 kHz.
typedef struct lfo_delay {
    int base, centre;
    float centre_slope, depth, depth_slope;
    unsigned int increment;
} lfo_delay;

// Delay beyond `base` in units at frame `at` of the quantum.
WT_SHARED_FN int lfo_delay_at(const lfo_delay *k, int at, unsigned int phase)
{
    float depth = wt_fma(k->depth_slope, (float)at, k->depth);
    int delay = k->centre + (int)(k->centre_slope * (float)at) + (int)(depth * lfo_sine(phase));
    return delay > LFO_SHORTEST ? delay : LFO_SHORTEST; // the sine may pass 1 by 4e-6
}

// From the centre and depth in frames at both ends of a quantum; the swing ends at the interpolator's shortest delay.
WT_SHARED_FN void lfo_delay_design(const float *centre, const float *depth, unsigned int increment, lfo_delay *k)
{
    const float shortest = LAGRANGE_BEFORE + 1;
    float c0 = fmaxf(centre[0], shortest);
    float c1 = fmaxf(fminf(fmaxf(centre[1], c0 - LFO_MOST), c0 + LFO_MOST), shortest);
    float d0 = fminf(depth[0], c0 - shortest), d1 = fminf(depth[1], c1 - shortest);
    k->base = (int)(fminf(c0 - d0, c1 - d1) - shortest);
    k->centre = (int)((c0 - (float)k->base) * LFO_UNITS);
    k->centre_slope = (c1 - c0) * (LFO_UNITS / WT_QUANTUM);
    k->depth = d0 * LFO_UNITS;
    k->depth_slope = (d1 - d0) * (LFO_UNITS / WT_QUANTUM);
    k->increment = increment;
}

// What the ring held at frame `at` of the quantum, the delay before `position`.
WT_SHARED_FN float lfo_read(const lfo_delay *k, const float *ring, int mask, long long position, int at,
                            unsigned int phase)
{
    int delay = lfo_delay_at(k, at, phase);
    return wt_ring_tap(ring, mask, position, k->base + (delay >> 16), (float)(delay & 0xffff) * (1.0f / LFO_UNITS));
}
#endif
