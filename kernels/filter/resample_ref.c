#include "resample_kernel.h"

static double tap_at(const wt_resample_args *a, int wide, int k, long long column)
{
    const long long at = (long long)k * a->n_columns + column;
    return wide ? ((const double *)a->taps)[at] : ((const float *)a->taps)[at];
}

double wt__resample_ref(const wt_resample_args *a, int wide, int interpolated, int line, int n)
{
    const long long time = n * a->numerator, frame = time / a->denominator, phase = time % a->denominator;
    const double at = (double)phase / (double)a->denominator * a->n_phases;
    const int row = (int)at;
    double weights[4], sum = 0;
    wt__resample_weights(a->order, at - row, weights);
    if (n >= a->n_heard) return 0;
    for (int k = 0; k < a->n_taps; k++) {
        const long long from = frame - a->before + k;
        if (from < 0 || from >= a->n_in) continue;
        const int started = n < a->n_start;
        double tap = started ? a->start[(long long)n * a->n_taps + k] : 0;
        if (!started && !interpolated) tap = tap_at(a, wide, k, n % a->denominator);
        for (int i = 0; !started && interpolated && i < 4; i++) tap += weights[i] * tap_at(a, wide, k, row + i);
        sum += tap * a->in[(long long)line * a->n_in + from];
    }
    return sum;
}
