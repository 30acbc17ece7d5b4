// Text of each level (simd_levels.inc): the resampler's sums of taps with frames, in one fixed order at each.
#ifndef WT_LEVEL
#    define WT_LEVEL_TEXT "resample_level.h"
#    include <warptone/simd_levels.inc>
#else

#    define F64S       (WT_LEVEL_BYTES / 8)
#    define F32S       (WT_LEVEL_BYTES / 4)
#    define HALVE_SUMS (WT_LEVEL_BYTES == 64 ? 4 : 8) // vectors of outputs at once
#    define VEC64      WT_LEVEL(f64s)
#    define VEC32      WT_LEVEL(f32s)

typedef double VEC64 __attribute__((vector_size(WT_LEVEL_BYTES), aligned(8), may_alias));
typedef float VEC32 __attribute__((vector_size(WT_LEVEL_BYTES), aligned(4), may_alias));

// Four sums of eight lanes.
static float WT_LEVEL(sum_f64)(const double *taps, const double *x, int n)
{
    VEC64 sum[4][8 / F64S] = {{{0}}};
    int k = 0;
    for (; k + 4 * 8 <= n; k += 4 * 8)
        for (int i = 0; i < 4; i++)
            for (int p = 0; p < 8 / F64S; p++) {
                const int at = k + 8 * i + F64S * p;
                sum[i][p] += *(const VEC64 *)(taps + at) * *(const VEC64 *)(x + at);
            }
    for (; k < n; k += 8)
        for (int p = 0; p < 8 / F64S; p++)
            sum[0][p] += *(const VEC64 *)(taps + k + F64S * p) * *(const VEC64 *)(x + k + F64S * p);
    double total = 0, lanes[8];
    for (int p = 0; p < 8 / F64S; p++) *(VEC64 *)(lanes + F64S * p) = (sum[0][p] + sum[1][p]) + (sum[2][p] + sum[3][p]);
    for (int i = 0; i < 8; i++) total += lanes[i];
    return (float)total;
}

// Four sums of sixteen lanes.
static float WT_LEVEL(sum_f32)(const float *taps, const float *x, int n)
{
    VEC32 sum[4][16 / F32S] = {{{0}}}, whole[16 / F32S];
    int k = 0;
    for (; k + 4 * 16 <= n; k += 4 * 16)
        for (int i = 0; i < 4; i++)
            for (int p = 0; p < 16 / F32S; p++) {
                const int at = k + 16 * i + F32S * p;
                sum[i][p] += *(const VEC32 *)(taps + at) * *(const VEC32 *)(x + at);
            }
    for (; k < n; k += 16)
        for (int p = 0; p < 16 / F32S; p++)
            sum[0][p] += *(const VEC32 *)(taps + k + F32S * p) * *(const VEC32 *)(x + k + F32S * p);
    for (int p = 0; p < 16 / F32S; p++) whole[p] = (sum[0][p] + sum[1][p]) + (sum[2][p] + sum[3][p]);
    wt_f32x8 low, high;
    memcpy(&low, whole, sizeof low);
    memcpy(&high, (const char *)whole + sizeof low, sizeof high);
    low += high;
    return ((low[0] + low[1]) + (low[2] + low[3])) + ((low[4] + low[5]) + (low[6] + low[7]));
}

// y[i] = h0 e[i + 100] + sum over j of h[2j] (e[i + 100 - j] + e[i + 100 + j]) + h[2j - 1] (o[i + 100 - j] + o[i + 99 +
// j]) with e and o the even and odd frames: side by side over outputs, from the outermost taps, the smallest, to the
// centre.
WT_INLINE void WT_LEVEL(halve_tile)(const float *h, const float *even, const float *odd, VEC32 *sum)
{
    for (int i = 0; i < HALVE_SUMS; i++) sum[i] = (VEC32){0};
    for (int j = REACH; j > 0; j--)
        for (int i = 0; i < HALVE_SUMS; i++) {
            const float *e = even + F32S * i + REACH, *o = odd + F32S * i + REACH;
            sum[i] += h[2 * j] * (*(const VEC32 *)(e - j) + *(const VEC32 *)(e + j));
            sum[i] += h[2 * j - 1] * (*(const VEC32 *)(o - j) + *(const VEC32 *)(o - 1 + j));
        }
    for (int i = 0; i < HALVE_SUMS; i++) sum[i] += h[0] * *(const VEC32 *)(even + F32S * i + REACH);
}

// `x` is the frame 200 before that of the first output; n outputs, HALVES at most.
static void WT_LEVEL(halve)(const float *h, const float *x, float *out, int n)
{
    enum { TILE = HALVE_SUMS * F32S };
    float even[HALVES + 2 * REACH + TILE] = {0}, odd[HALVES + 2 * REACH + TILE] = {0};
    VEC32 sum[HALVE_SUMS];
    for (int i = 0; i < n + 2 * REACH - 1; i++) {
        even[i] = x[2 * i];
        odd[i] = x[2 * i + 1];
    }
    even[n + 2 * REACH - 1] = x[2 * (n + 2 * REACH - 1)];
    for (int at = 0; at < n; at += TILE) {
        const int left = n - at < TILE ? n - at : TILE;
        WT_LEVEL(halve_tile)(h, even + at, odd + at, sum);
        memcpy(out + at, sum, sizeof(float) * (size_t)left);
    }
}

#    undef F64S
#    undef F32S
#    undef HALVE_SUMS
#    undef VEC64
#    undef VEC32
#endif
