/// Running medians of many signals side by side, for wt_median and wt_hpss. Values travel as integer keys in the order
/// of their floats, whose minimum and maximum are exact and total.
#ifndef WT_DSP_MEDIAN_H
#define WT_DSP_MEDIAN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <warptone/median.h>
#include <warptone/simd.h>

enum { WT__MEDIAN_LANES = 16, WT__MEDIAN_RUN = 16, WT__MEDIAN_MAX_K = 1023 };

/// Defaults, and WT_ERR_BAD_ARG naming the field.
WT_CHECKED wt_status wt__median_resolve(wt_median_config *config);

/// Negative floats have their order turned; the map is its own inverse.
WT_INLINE int wt__median_turn(int bits)
{
    return bits ^ ((bits >> 31) & 0x7fffffff);
}

WT_INLINE int wt__median_key(float value)
{
    int bits;
    memcpy(&bits, &value, sizeof bits);
    return wt__median_turn(bits);
}

WT_INLINE float wt__median_value(int key)
{
    float value;
    key = wt__median_turn(key);
    memcpy(&value, &key, sizeof value);
    return value;
}

/// Integers of scratch for kernels of k.
static inline size_t wt__median_scratch(int k)
{
    return 6 * (size_t)WT__MEDIAN_LANES * ((size_t)k + 2);
}

/// WT__MEDIAN_RUN outputs along a line, WT__MEDIAN_LANES lines side by side: output j, lane l is the key of rank k / 2
/// of x[(j + i) * stride + l], i < k. Reads k + 15 rows, writes 16.
void wt__median_run(const int *x, ptrdiff_t stride, int k, int *out, ptrdiff_t out_stride, int *scratch);

/// One output in each lane, the key of rank rows * columns / 2 of x[r * stride + c + l].
void wt__median_box(const int *x, ptrdiff_t stride, int rows, int columns, int *out, int *scratch);

/// Index `at` of a signal of n that is mirrored with its ends repeated (scipy "reflect": d c b a | a b c d | d c b a).
WT_INLINE int64_t wt__median_mirror(int64_t at, int64_t n)
{
    if (at >= 0 && at < n) return at;
    at %= 2 * n;
    if (at < 0) at += 2 * n;
    return at < n ? at : 2 * n - 1 - at;
}

#endif
