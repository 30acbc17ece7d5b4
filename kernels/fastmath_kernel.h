// log2, 2^x and tanh in float without branches, so that loops vectorise on the CPU and both backends run the same text.
#ifndef WT_FASTMATH_KERNEL_H
#define WT_FASTMATH_KERNEL_H
#include "chain_kernel.h"

#define WT_DB_PER_OCTAVE 6.0205999132796239f   // 20 log10(2): decibels of amplitude a unit of log2
#define WT_OCTAVES_PER_DB 0.16609640474436812f // log2(10) / 20

WT_SHARED_FN float wt_max(float a, float b) { return a > b ? a : b; }
WT_SHARED_FN float wt_min(float a, float b) { return a < b ? a : b; }

WT_SHARED_FN int wt_bits(float x)
{
#ifdef __CUDACC__
    return __float_as_int(x);
#else
    int bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
#endif
}

WT_SHARED_FN float wt_from_bits(int bits)
{
#ifdef __CUDACC__
    return __int_as_float(bits);
#else
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
#endif
}

// a / b for b in 2^-126 .. 2^126; on a device within 2 units of the last place, without a branch.
WT_SHARED_FN float wt_divide(float a, float b)
{
#ifdef __CUDACC__
    return __fdividef(a, b);
#else
    return a / b;
#endif
}

// log2 of a normal x > 0: exponent, and the series of 2 atanh(s) / ln 2, s = (m - 1) / (m + 1), for the mantissa m in
// [sqrt(1/2), sqrt(2)). The series is cut below 5e-8; with float rounding the error stays below 1.3e-7 + 6e-8 |log2 x|
// (1e-6 dB around full scale). Exactly 0 at 1.
WT_SHARED_FN float wt_log2(float x)
{
    int bits = wt_bits(x), exponent = (bits - 0x3f3504f3) >> 23;
    float m = wt_from_bits(bits - exponent * 0x800000);
    float s = wt_divide(m - 1.0f, m + 1.0f), s2 = s * s;
    float series = s * (2.88539008f + s2 * (0.961796694f + s2 * (0.577078016f + s2 * 0.412198583f)));
    return (float)exponent + series;
}

// Added to a number within 2^22, leaves its nearest whole number in the lowest bits. A conversion to int ends on one
// side of a branch, which GCC then does not vectorise.
#define WT_TO_WHOLE 12582912.0f

// 2^x for |x| <= 126 (clamped there): Taylor series around the nearest integer, cut below 6e-9; relative error 2e-7.
// Exactly 1 at 0.
WT_SHARED_FN float wt_exp2(float x)
{
    x = wt_min(wt_max(x, -126.0f), 126.0f);
    float shifted = x + WT_TO_WHOLE, f = x - (shifted - WT_TO_WHOLE);
    int whole = wt_bits(shifted) - wt_bits(WT_TO_WHOLE);
    float p = 1.54035304e-4f + f * 1.52527338e-5f;
    p = 1.33335581e-3f + f * p;
    p = 9.61812911e-3f + f * p;
    p = 5.55041087e-2f + f * p;
    p = 0.240226507f + f * p;
    p = 0.693147181f + f * p;
    return (1.0f + f * p) * wt_from_bits((whole + 127) * 0x800000);
}

// Of numbers, no NaN: one instruction on a device too.
WT_SHARED_FN float wt_larger(float a, float b)
{
#ifdef __CUDACC__
    return fmaxf(a, b);
#else
    return wt_max(a, b);
#endif
}

WT_SHARED_FN float wt_smaller(float a, float b)
{
#ifdef __CUDACC__
    return fminf(a, b);
#else
    return wt_min(a, b);
#endif
}

// e^x; on the CPU for |x| <= 87 (clamped there), Taylor's series around the nearest multiple of log(2), relative error
// 1.2e-7 as expf's on a device.
WT_SHARED_FN float wt_exp(float x)
{
#ifdef __CUDACC__
    return expf(x);
#else
    x = wt_min(wt_max(x, -87.0f), 87.0f);
    float shifted = x * 1.44269504f + WT_TO_WHOLE, rounded = shifted - WT_TO_WHOLE;
    float f = x - rounded * 0.693359375f + rounded * 2.12194440e-4f; // log(2), nine bits first
    int whole = wt_bits(shifted) - wt_bits(WT_TO_WHOLE);
    float p = 1.38888889e-3f + f * 1.98412698e-4f;
    p = 8.33333333e-3f + f * p;
    p = 4.16666667e-2f + f * p;
    p = 0.166666667f + f * p;
    p = 0.5f + f * p;
    return (1.0f + (f + f * f * p)) * wt_from_bits((whole + 127) * 0x800000);
#endif
}

// tanh: its Taylor series below 0.3 (cut below 6e-8 of the value), 1 - 2 / (e^2x + 1) above; relative error 5e-7.
WT_SHARED_FN float wt_tanh(float x)
{
    float a = x < 0.0f ? -x : x, a2 = a * a;
    float small = a * (1.0f + a2 * (-0.333333333f + a2 * (0.133333333f + a2 * (-0.0539682540f + a2 * 0.0218694885f))));
    float large = 1.0f - 2.0f / (wt_exp2(a * 2.88539008f) + 1.0f);
    float y = a < 0.3f ? small : large;
    return x < 0.0f ? -y : y;
}
#endif
