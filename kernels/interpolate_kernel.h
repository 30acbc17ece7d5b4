// Reading a delay line between its samples: Lagrange's polynomial through six neighbours (fifth order).
#ifndef WT_INTERPOLATE_KERNEL_H
#define WT_INTERPOLATE_KERNEL_H
#include "chain_kernel.h"

#define LAGRANGE_TAPS 6
#define LAGRANGE_BEFORE 2 // taps nearer than the whole part of the delay: the shortest delay that reads no future

// Weights of the samples at whole - 2 .. whole + 3 frames ago, for a delay of whole + fraction.
WT_SHARED_FN void wt_lagrange(float fraction, float *h)
{
    float a = fraction + 2, b = fraction + 1, c = fraction, d = fraction - 1, e = fraction - 2, f = fraction - 3;
    h[0] = b * c * d * e * f * (-1.0f / 120);
    h[1] = a * c * d * e * f * (1.0f / 24);
    h[2] = a * b * d * e * f * (-1.0f / 12);
    h[3] = a * b * c * e * f * (1.0f / 12);
    h[4] = a * b * c * d * f * (-1.0f / 24);
    h[5] = a * b * c * d * e * (1.0f / 120);
}

// The sample `whole` + `fraction` frames before `position` (2 or more); `mask` + 1 is the ring's size, a power of two.
WT_SHARED_FN float wt_ring_tap(const float *ring, int mask, long long position, int whole, float fraction)
{
    float h[LAGRANGE_TAPS];
    const int at = (int)((unsigned int)position - (unsigned int)whole); // of the position the ring needs no more bits
    wt_lagrange(fraction, h);
    return h[0] * ring[(at + 2) & mask] + h[1] * ring[(at + 1) & mask] + h[2] * ring[at & mask] +
           h[3] * ring[(at - 1) & mask] + h[4] * ring[(at - 2) & mask] + h[5] * ring[(at - 3) & mask];
}

WT_SHARED_FN float wt_ring_read(const float *ring, int mask, long long position, float delay)
{
    int whole = (int)delay;
    return wt_ring_tap(ring, mask, position, whole, delay - (float)whole);
}

// Smallest power of two that holds a delay of `frames` beside a block and the interpolator.
WT_SHARED_FN int wt_ring_size(double frames)
{
    int size = 1024;
    while (size < frames + WT_CHAIN_BLOCK + 8) size *= 2;
    return size;
}
#endif
