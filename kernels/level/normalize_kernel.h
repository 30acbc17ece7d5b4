/// Arguments of the kernels that bring signals to a level, and the gain that both sides find.
#ifndef WT_NORMALIZE_KERNEL_H
#define WT_NORMALIZE_KERNEL_H
#include "loudness_batch_kernel.h"

#define NORMALIZE_CHUNK 8192 ///< samples that a block measures

/// Of the samples that are finite.
typedef struct normalize_facts {
    double squares, count;
    float peak;
} normalize_facts;

typedef struct normalize_args {
    const float *in; ///< [n_signals][area]
    float *out;
    normalize_facts *facts;        ///< [n_signals][n_chunks]
    const loudness_values *values; ///< [n_signals]; NULL = by facts
    float *gains;                  ///< [n_signals]
    long long area, n_chunks, n_signals;
    double target_db, ceiling_db;
    int by_peak, channels; ///< that an area is made of
} normalize_args;

/// 1 where there is nothing to measure.
LOUDNESS_FN float normalize_gain(const normalize_args *a, double level_db, double peak_db)
{
    const double to_target = a->target_db - level_db, to_ceiling = a->ceiling_db - peak_db;
    if (!(level_db > -1000)) return 1;
    return (float)pow(10.0, (to_target < to_ceiling ? to_target : to_ceiling) / 20);
}

LOUDNESS_FN float normalize_by_facts(const normalize_args *a, const normalize_facts *f)
{
    const double peak_db = 20 * log10((double)f->peak);
    return normalize_gain(a, a->by_peak ? peak_db : 10 * log10(f->squares / f->count), peak_db);
}

LOUDNESS_FN float normalize_by_loudness(const normalize_args *a, const loudness_values *v)
{
    return normalize_gain(a, v->integrated_lufs, v->true_peak_db);
}

LOUDNESS_FN void normalize_count(normalize_facts *f, float x)
{
    const float size = x < 0 ? -x : x;
    if (!(size <= 3.402823466e38f)) return;
    f->squares += (double)x * x;
    f->count += 1;
    f->peak = size > f->peak ? size : f->peak;
}

LOUDNESS_FN void normalize_add(normalize_facts *f, const normalize_facts *more)
{
    f->squares += more->squares;
    f->count += more->count;
    f->peak = more->peak > f->peak ? more->peak : f->peak;
}

#endif
