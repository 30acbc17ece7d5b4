#include "db_internal.h"

#include <math.h>
#include <stdlib.h>
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

// A NaN comes behind all numbers.
static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    if (x != x || y != y) return (x != x) - (y != y);
    return (x > y) - (x < y);
}

static wt_status median_of(const float *x, int64_t count, double *median)
{
    float *sorted = malloc((size_t)count * sizeof *sorted);
    if (!sorted) return wt_fail(WT_ERR_NO_MEMORY, "db: median of %lld values", (long long)count);
    memcpy(sorted, x, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, ascending);
    *median = ((double)sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
    free(sorted);
    return WT_OK;
}

// `factor` 1: powers; 2: amplitudes, whose decibels count twice.
static wt_status from(const wt_db_config *config, double amin, int factor, const float *in, int64_t count, float *out)
{
    wt_db_config c = config ? *config : (wt_db_config){.ref = 0};
    wt_status status = wt__db_resolve("db", amin, &c);
    if (status || count < 1) return status;
    double ref = fabs(c.ref);
    if (c.reference == WT_DB_REF_MAX) ref = fabs((double)wt__db_peak(in, count));
    if (c.reference == WT_DB_REF_MEDIAN) status = median_of(in, count, &ref);
    if (status) return status;
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
