#include "db_internal.h"

#include <math.h>
#include <string.h>
#include <warptone/simd.h>

#define DB_PER_OCTAVE 3.0102999566398120 // 10 log10(2)

wt_status wt__db_resolve(const char *op, double amin, wt_db_config *c)
{
    if (!c->ref) c->ref = 1;
    if (!c->amin) c->amin = amin;
    if (!c->top_db) c->top_db = 80;
    if ((unsigned)c->reference > WT_DB_REF_MEDIAN)
        return wt_fail(WT_ERR_BAD_ARG, "%s: reference %d, want 0..%d", op, (int)c->reference, WT_DB_REF_MEDIAN);
    if (!(c->amin >= 1e-37)) return wt_fail(WT_ERR_BAD_ARG, "%s: amin %g, want 1e-37 or more", op, c->amin);
    if (!isfinite(c->ref)) return wt_fail(WT_ERR_BAD_ARG, "%s: ref %g, want a finite number", op, c->ref);
    if (!(c->top_db > 0)) return wt_fail(WT_ERR_BAD_ARG, "%s: top_db %g, want more than 0", op, c->top_db);
    return WT_OK;
}

WT_CLONES void wt__db_log(const float *in, int64_t count, float amin, float scale, float offset, float *out)
{
#pragma GCC ivdep // in place, or apart
    for (int64_t i = 0; i < count; i++) out[i] = wt__spectrum_log(in[i], amin, scale, offset);
}

WT_CLONES float wt__db_peak(const float *x, int64_t count)
{
    float lanes[64], peak = -HUGE_VALF;
    for (int k = 0; k < 64; k++) lanes[k] = -HUGE_VALF;
    int64_t i = 0;
    for (; i + 64 <= count; i += 64)
        for (int k = 0; k < 64; k++) lanes[k] = x[i + k] > lanes[k] ? x[i + k] : lanes[k];
    for (; i < count; i++) peak = x[i] > peak ? x[i] : peak;
    for (int k = 0; k < 64; k++) peak = lanes[k] > peak ? lanes[k] : peak;
    return peak;
}

WT_CLONES void wt__db_limit(float *x, int64_t count, float floor, float gain, float offset)
{
    for (int64_t i = 0; i < count; i++) x[i] = (x[i] < floor ? floor : x[i]) * gain + offset;
}

// ---- whole arrays

// Unsigned numbers in the order of floats, whose sign turns the others; a NaN comes behind all.
WT_INLINE uint32_t key_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return x != x ? UINT32_MAX : bits & 0x80000000 ? ~bits : bits | 0x80000000;
}

static float value_of(uint32_t key)
{
    const uint32_t bits = key & 0x80000000 ? key & 0x7fffffff : ~key;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

enum { DIGIT = 11, DIGITS = 1 << DIGIT };

// The least key above `key`; UINT32_MAX when there is none.
WT_CLONES static uint32_t next_key(const float *x, int64_t count, uint32_t key)
{
    uint32_t least = UINT32_MAX;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t other = key_of(x[i]), above = other > key ? other : UINT32_MAX;
        least = above < least ? above : least;
    }
    return least;
}

// The middle key's digits from the highest on, each found by counting keys that begin alike.
static double median_of(const float *x, int64_t count)
{
    static const int shifts[] = {21, 10, 0};
    uint32_t key = 0, known = 0;
    int64_t rank = (count - 1) / 2, counts[2048];
    for (int k = 0; k < 3; k++) {
        memset(counts, 0, sizeof counts);
        for (int64_t i = 0; i < count; i++) {
            const uint32_t other = key_of(x[i]);
            if ((other & known) == key) counts[other >> shifts[k] & 2047]++;
        }
        uint32_t digit = 0;
        while (rank >= counts[digit]) rank -= counts[digit++];
        key |= digit << shifts[k], known |= 2047u << shifts[k];
    }
    const bool alone = rank + 1 == counts[key & 2047]; // the next in order is another number
    return ((double)value_of(key) + value_of(count % 2 || !alone ? key : next_key(x, count, key))) / 2;
}

// `factor` 1: powers; 2: amplitudes, whose decibels count twice.
static wt_status from(const wt_db_config *config, double amin, int factor, const float *in, int64_t count, float *out)
{
    wt_db_config c = config ? *config : (wt_db_config){.ref = 0};
    wt_status status = wt__db_resolve("db", amin, &c);
    if (status || count < 1) return status;
    double ref = fabs(c.ref);
    if (c.reference == WT_DB_REF_MAX) ref = fabs((double)wt__db_peak(in, count));
    if (c.reference == WT_DB_REF_MEDIAN) ref = median_of(in, count);
    const double scale = factor * DB_PER_OCTAVE;
    wt__db_log(in, count, (float)c.amin, (float)scale, (float)(-scale * log2(ref > c.amin ? ref : c.amin)), out);
    if (!c.no_top) wt__db_limit(out, count, wt__db_peak(out, count) - (float)c.top_db, 1, 0);
    return WT_OK;
}

wt_status wt_db_from_power(const wt_db_config *config, const float *in, int64_t count, float *out)
{
    return from(config, 1e-10, 1, in, count, out);
}

wt_status wt_db_from_amplitude(const wt_db_config *config, const float *in, int64_t count, float *out)
{
    return from(config, 1e-5, 2, in, count, out);
}

// In double: 2^x of a float x near 20 would magnify its rounding.
static void to(double ref, double per_db, const float *in, int64_t count, float *out)
{
    for (int64_t i = 0; i < count; i++) out[i] = (float)(ref * exp2(per_db * in[i]));
}

void wt_db_to_power(double ref, const float *in, int64_t count, float *out)
{
    to(ref, 1 / DB_PER_OCTAVE, in, count, out);
}

void wt_db_to_amplitude(double ref, const float *in, int64_t count, float *out)
{
    to(ref, 0.5 / DB_PER_OCTAVE, in, count, out);
}
