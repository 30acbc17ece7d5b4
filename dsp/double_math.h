/// Private to dsp/: logarithms and powers in double without branches, so that loops over them become vectors.
#ifndef WT_DOUBLE_MATH_H
#define WT_DOUBLE_MATH_H

#include <stdint.h>
#include <string.h>
#include <warptone/simd.h>

WT_INLINE uint64_t wt__bits64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

WT_INLINE double wt__from_bits64(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/// log(x) of a normal x > 0, within 2e-15: exponent, and the series of 2 atanh(s), s = (m - 1) / (m + 1), for the
/// mantissa m in [sqrt(1/2), sqrt(2)). Infinity and NaN stay.
WT_INLINE double wt__log64(double x)
{
    const uint64_t bits = wt__bits64(x), from = bits - 0x3fe6a09e667f3bcd; // sqrt(1/2); modulo 2^64, as of a NaN
    const uint64_t biased = (from + (1023ull << 52)) >> 52;
    const double exponent = wt__from_bits64(biased | 0x4330000000000000) - (0x1p52 + 1023);
    const double m = wt__from_bits64(bits - (from & ~0xfffffffffffffull)), s = (m - 1) / (m + 1), s2 = s * s;
    double series = 2.0 / 15 + s2 * (2.0 / 17);
    series = 2.0 / 13 + s2 * series;
    series = 2.0 / 11 + s2 * series;
    series = 2.0 / 9 + s2 * series;
    series = 2.0 / 7 + s2 * series;
    series = 2.0 / 5 + s2 * series;
    series = 2.0 / 3 + s2 * series;
    series = s * (2 + s2 * series);
    return x <= 0x1.fffffffffffffp1023 ? 0.69314718055994531 * exponent + series : x;
}

/// log(1 + x), x > -1: what the sum has lost of a small x is its own logarithm.
WT_INLINE double wt__log1p64(double x)
{
    const double sum = 1 + x, lost = x - (sum - 1);
    return wt__log64(sum) + (x < 1 ? lost : 0);
}

/// e^x = scale (1 + what is returned) for |x| <= 700 (clamped there): Taylor's series around the nearest multiple of
/// log(2). NaN stays.
WT_INLINE double wt__exp64_parts(double x, double *scale)
{
    x = x > 700 ? 700 : x;
    x = x < -700 ? -700 : x;
    const double shifted = x * 1.4426950408889634 + 0x1.8p52, whole = shifted - 0x1.8p52;
    const double f = x - whole * 0x1.62e42fefa38p-1 - whole * 0x1.ef35793c7673p-45; // log(2), 41 bits first
    double p = 1 / 3628800.0 + f * (1 / 39916800.0);
    p = 1 / 362880.0 + f * p;
    p = 1 / 40320.0 + f * p;
    p = 1 / 5040.0 + f * p;
    p = 1 / 720.0 + f * p;
    p = 1 / 120.0 + f * p;
    p = 1 / 24.0 + f * p;
    p = 1 / 6.0 + f * p;
    p = 0.5 + f * p;
    *scale = wt__from_bits64((wt__bits64(shifted) + 1023) << 52);
    return f + f * f * p;
}

/// e^x and e^x - 1, within 3e-14.
WT_INLINE double wt__exp64(double x)
{
    double scale;
    const double more = wt__exp64_parts(x, &scale);
    return scale + scale * more;
}

WT_INLINE double wt__expm1_64(double x)
{
    double scale;
    const double more = wt__exp64_parts(x, &scale);
    return scale * more + (scale - 1);
}

#endif
