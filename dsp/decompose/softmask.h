/// The soft mask of one value, for wt_softmask and wt_hpss.
#ifndef WT_DSP_SOFTMASK_H
#define WT_DSP_SOFTMASK_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <warptone/simd.h>

/// A choice by bits: of a quotient and a constant GCC makes a branch, and then no vectors.
WT_INLINE float wt__mask_choose(bool first, float a, float b)
{
    int a_bits, b_bits;
    memcpy(&a_bits, &a, sizeof a);
    memcpy(&b_bits, &b, sizeof b);
    const int bits = (a_bits & -first) | (b_bits & (first - 1));
    memcpy(&a, &bits, sizeof a);
    return a;
}

/// x^2 / (x^2 + r^2) and the like: both divided by the larger one first. Below FLT_MIN nothing is heard.
WT_INLINE float wt__softmask(float x, float reference, float power, float silent)
{
    const float z = x > reference ? x : reference;
    if (power == INFINITY) return x > reference ? 1.0f : 0.0f;
    const float safe = wt__mask_choose(z < FLT_MIN, 1.0f, z);
    float a = x / safe, b = reference / safe;
    if (power == 2.0f) {
        a *= a, b *= b;
    } else if (power != 1.0f) {
        a = powf(a, power), b = powf(b, power);
    }
    const float sum = a + b;
    return wt__mask_choose(z < FLT_MIN, silent, a / wt__mask_choose(sum > 0, sum, 1.0f));
}

#endif
