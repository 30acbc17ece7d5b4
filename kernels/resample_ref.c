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
    const double w = at - row, weights[4] = {-w * (w - 1) * (w - 2) / 6, (w + 1) * (w - 1) * (w - 2) / 2,
                                             -(w + 1) * w * (w - 2) / 2, (w + 1) * w * (w - 1) / 6};
    double sum = 0;
    for (int k = 0; k < a->n_taps; k++) {
        const long long from = frame - a->before + k;
        if (from < 0 || from >= a->n_in) continue;
        double tap = 0;
        if (!interpolated) tap = tap_at(a, wide, k, n % a->denominator);
        for (int i = 0; interpolated && i < 4; i++) tap += weights[i] * tap_at(a, wide, k, row + i);
        sum += tap * a->in[(long long)line * a->n_in + from];
    }
    return sum;
}
