// Weights made smaller: fp8 with a scale for blocks of 128 x 128, int8 with one a row, int4 with scale and zero for
// groups of 32, 64 or 128 columns, each the nearest of its type. One arithmetic for the CPU (models/llm/quantize.c) and
// CUDA (weight_quantize.cu), to the bit: extremes, correctly rounded quotients and products, nearest integers.
#ifndef WT_WEIGHT_KERNEL_H
#define WT_WEIGHT_KERNEL_H
#include "array_kernel.h"

#define WT_WEIGHT_SIDE 128 // of a block of fp8

enum { WT_WEIGHT_FP8 = 1, WT_WEIGHT_INT8, WT_WEIGHT_INT4 }; // as wt_llm_quantization

// A strip of rows, the first a multiple of WT_WEIGHT_SIDE of its matrix; what is written lies at the strip's own
// places.
typedef struct wt_weight_args {
    const void *in;       ///< [rows][columns] of `type`
    unsigned char *q;     ///< [rows][columns], int4: two neighbours a byte, the first in the low bits
    float *scales;        ///< fp8 [rows / 128][across], int8 [rows], int4 [rows][across]
    unsigned char *zeros; ///< int4 [rows][across]
    unsigned *both;       ///< int4 [rows][words]: scales as F16, zeros above; rows end with zeros
    float *padded;        ///< fp8 [rows / 128][words]: the scales once more; or NULL
    int *odd;             ///< int4: 1 where F16 has not a scale
    int type;             ///< ARRAY_F32, ARRAY_F16, ARRAY_BF16
    int kind, rows, columns, group, across, words;
} wt_weight_args;

// The nearest number of F16 or E4M3, the even one of two; what is too large becomes the largest.
WT_SHARED_FN unsigned wt_weight_half(float x)
{
    const unsigned n = array_narrow(x, 10, 15);
    return (n < 0x7bff ? n : 0x7bff) | ((unsigned)wt_bits(x) >> 31) << 15;
}

// Without branches, so that loops over it vectorise: below 2^-6 by the sum with a number whose last bit is 2^-9.
WT_SHARED_FN unsigned wt_weight_e4m3(float x)
{
    const int bits = wt_bits(x), m = bits & 0x7fffffff;
    const int normal = ((m + 0x7ffff + (m >> 20 & 1)) >> 20) - (120 << 3);
    const int small = wt_bits(wt_from_bits(m) + 16384.0f) - wt_bits(16384.0f);
    const int below = (m - 0x3c800000) >> 31, n = (small & below) | (normal & ~below);
    return (unsigned)((n < 0x7e ? n : 0x7e) | (bits >> 24 & 0x80));
}

// The nearest integer, the even one of two.
WT_SHARED_FN int wt_weight_nearest(float x)
{
#ifdef __CUDACC__
    return __float2int_rn(x);
#elif defined __GNUC__ && !defined __clang__
    return __builtin_irintf(x); // which GCC vectorises
#else
    return (int)lrintf(x);
#endif
}

// The largest magnitude becomes 448.
WT_SHARED_FN float wt_weight_fp8_scale(float most) { return most > 0 ? most / 448 : 1; }

WT_SHARED_FN float wt_weight_int8_by(float scale) { return scale > 0 ? 1 / scale : 0; }
WT_SHARED_FN signed char wt_weight_int8(float x, float by) { return (signed char)wt_weight_nearest(x * by); }

// 16 steps from the smallest to the largest, zero among them, of a size that F16 has where it can be: a GPU has it
// beside its zero in one word.
WT_SHARED_FN float wt_weight_int4_scale(float low, float high)
{
    if (!(high > low)) return 1;
    const float x = (high - low) / 15, near = array_read_small(ARRAY_F16, wt_weight_half(x));
    return near > 6.103515625e-05f && near < 32768.0f ? near : x;
}

WT_SHARED_FN int wt_weight_int4_zero(float low, float scale) { return wt_weight_nearest(-low / scale); }

WT_SHARED_FN int wt_weight_int4(float x, float scale, int zero)
{
    const int step = wt_weight_nearest(x / scale) + zero;
    return step < 0 ? 0 : step > 15 ? 15 : step;
}

#endif
