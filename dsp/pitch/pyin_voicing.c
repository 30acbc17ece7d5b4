// Calibrated voicing. pYIN's frames are long, so it holds on into pauses, and a threshold's prior takes noise and what
// is left of a decay for voiced. Of the frames that its path calls voiced those stay whose centre is voiced itself:
//
// - periodicity: the normalised correlation of a quarter of a frame, at least two periods, with what lies a period
//   further. 0.5 is a voice as loud as the noise; noise alone has a deviation of 0.044 over 512 samples.
// - level: the power of a period, at least 64 samples, against the mean of the signal's surely voiced frames, whose
//   correlation is 0.8 and more.

#include "pyin_internal.h"

#include <math.h>

static double power_at(const wt_yin_args *a, const float *pcm, int64_t t, double period)
{
    const int64_t n = period > 64 ? (int64_t)period : 64;
    const wt_pyin_span s = wt__pyin_centred(a, t, n);
    double sum = 0;
    for (int64_t i = s.begin; i < s.end; i++) sum += (double)pcm[i] * pcm[i];
    return sum / (double)n;
}

static double correlation(const float *x, int64_t n, int64_t lag)
{
    double xy = 0, xx = 0, yy = 0;
    for (int64_t i = 0; i + lag < n; i++) {
        xy += (double)x[i] * x[i + lag];
        xx += (double)x[i] * x[i];
        yy += (double)x[i + lag] * x[i + lag];
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : 0;
}

// The best of three lags: a period is rarely a whole number.
static double periodicity_at(const wt_yin_args *a, const float *pcm, int64_t t, double period)
{
    const int64_t lag = llrint(period), quarter = a->frame / 4, n = quarter > 2 * lag ? quarter : 2 * lag;
    const wt_pyin_span s = wt__pyin_centred(a, t, n + lag);
    double best = 0;
    for (int64_t k = lag - 1; k <= lag + 1; k++) {
        const double here = correlation(pcm + s.begin, s.end - s.begin, k);
        if (here > best) best = here;
    }
    return best;
}

WT_RT void wt__pyin_calibrate(const wt_yin_args *a, const float *pcm, float *f0, float *voiced, bool keep_unvoiced)
{
    double sum = 0;
    int64_t sure = 0;
    for (int64_t t = 0; t < a->n_frames; t++) {
        if (voiced[t] == 0) continue;
        const double period = a->rate_hz / (double)f0[t];
        if (!(periodicity_at(a, pcm, t, period) >= WT_PYIN_SURE_PERIODICITY)) continue;
        sum += power_at(a, pcm, t, period);
        sure++;
    }
    const double least = sure ? WT_PYIN_LEAST_LEVEL * sum / (double)sure : 0;
    for (int64_t t = 0; t < a->n_frames; t++) {
        if (voiced[t] == 0) continue;
        const double period = a->rate_hz / (double)f0[t];
        if (periodicity_at(a, pcm, t, period) >= WT_PYIN_LEAST_PERIODICITY && power_at(a, pcm, t, period) >= least)
            continue;
        voiced[t] = 0;
        if (!keep_unvoiced) f0[t] = NAN;
    }
}
