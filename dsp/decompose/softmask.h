/// The soft mask of one value, for wt_softmask and wt_hpss.
#ifndef WT_DSP_SOFTMASK_H
#define WT_DSP_SOFTMASK_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <warptone/simd.h>

/// x^2 / (x^2 + r^2) and the like: both divided by the larger one first. Below FLT_MIN nothing is heard.
WT_INLINE float wt__softmask(float x, float reference, float power, float silent)
{
    const float z = x > reference ? x : reference;
    if (power == INFINITY) return x > reference ? 1.0f : 0.0f;
    const float safe = z < FLT_MIN ? 1.0f : z;
    float a = x / safe, b = reference / safe;
    if (power == 2.0f) {
        a *= a, b *= b;
    } else if (power != 1.0f) {
        a = powf(a, power), b = powf(b, power);
    }
    const float sum = a + b;
    return z < FLT_MIN ? silent : a / (sum > 0 ? sum : 1.0f);
}

#endif
