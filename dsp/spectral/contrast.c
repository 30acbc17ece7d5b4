// Spectral contrast: sixteen frames side by side, of each band the share of lowest and highest bins.

#include "lanes.h"
#include "spectral_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/db.h>

enum { LISTED = 16 }; // bins of a share that lists find sooner than a sorting network

wt_status wt__contrast_resolve(wt_spectral_contrast_config *c)
{
    if (!c->fmin_hz) c->fmin_hz = 200;
    if (!c->n_bands) c->n_bands = 6;
    if (!c->quantile) c->quantile = 0.02;
    if (c->fmin_hz > 0 && c->n_bands >= 1 && c->n_bands <= WT__CONTRAST_BANDS && c->quantile > 0 && c->quantile < 1)
        return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG, "spectral: contrast from %g Hz, %d bands, quantile %g, want > 0, 1..32, 0..1",
                   c->fmin_hz, c->n_bands, c->quantile);
}

// Bins first .. last of band b: octave edges, with the bin before, and the rest of the spectrum for the highest.
static wt_status find_band(const wt_spectral_shape *s, const wt_spectral_contrast_config *c, int b, int *first,
                           int *last)
{
    const int bins = s->n_fft / 2 + 1;
    const double low = b ? c->fmin_hz * exp2(b - 1) : 0, high = c->fmin_hz * exp2(b);
    if (low >= s->rate_hz / 2.0)
        return wt_fail(WT_ERR_BAD_ARG, "spectral: contrast band from %g Hz, want all below %g", low, s->rate_hz / 2.0);
    for (*first = 0; *first < bins && wt__spectral_hz(s, *first) < low;) ++*first;
    for (*last = bins - 1; *last >= 0 && wt__spectral_hz(s, *last) > high;) --*last;
    if (*first > *last)
        return wt_fail(WT_ERR_BAD_ARG, "spectral: no bin between %g and %g Hz, want a longer n_fft than %d", low, high,
                       s->n_fft);
    if (b) --*first;
    if (b == c->n_bands) *last = bins - 1;
    return WT_OK;
}

wt_status wt__contrast_bands(const wt_spectral_shape *s, const wt_spectral_contrast_config *c, wt_spectral_band *bands)
{
    wt_status status = WT_OK;
    for (int b = 0; b <= c->n_bands && !status; b++) {
        int first = 0, last = 0;
        status = find_band(s, c, b, &first, &last);
        // the bin at the upper edge counts for the share alone
        const int all = last - first + 1, used = b < c->n_bands && all > 1 ? all - 1 : all;
        const int share = (int)nearbyint(c->quantile * all);
        bands[b] = (wt_spectral_band){first, used, share < 1 ? 1 : share > used ? used : share};
    }
    return status;
}

// A band's share of its lowest and highest bins, in sixteen frames: a few go into lists, for more the band is sorted.
static void find_ends(const float *bins, const wt_spectral_band *band, float *sorted, const float **low,
                      const float **high, ptrdiff_t *step)
{
    const float *from = bins + band->first * WT__LANES;
    if (band->share <= LISTED) {
        wt__lanes_select(from, band->used, band->share, sorted, sorted + band->share * WT__LANES);
        *low = sorted, *high = sorted + band->share * WT__LANES, *step = WT__LANES;
        return;
    }
    memcpy(sorted, from, (size_t)band->used * WT__LANES * sizeof *sorted);
    wt__lanes_sort(sorted, band->used);
    *low = sorted, *high = sorted + (band->used - 1) * WT__LANES, *step = -WT__LANES;
}

WT_CLONES static void take_means(const float *rows, ptrdiff_t step, int share, float *means)
{
    double sum[WT__LANES] = {0};
    for (int k = 0; k < share; k++, rows += step)
        for (int i = 0; i < WT__LANES; i++) sum[i] += rows[i];
    for (int i = 0; i < WT__LANES; i++) means[i] = (float)(sum[i] / share);
}

// Means of the lowest and highest bins of `count` frames, [2][WT__LANES].
static void contrast_of(const float *bins, const wt_spectral_band *band, float *sorted, float means[2][WT__LANES])
{
    const float *low, *high;
    ptrdiff_t step;
    find_ends(bins, band, sorted, &low, &high, &step);
    take_means(low, WT__LANES, band->share, means[0]);
    take_means(high, step, band->share, means[1]);
}

wt_status wt_spectral_contrast_parts(const wt_spectral_shape *shape, const float *magnitude,
                                     const wt_spectral_contrast_config *config, float *peaks, float *valleys)
{
    wt_spectral_shape s;
    wt_spectral_band bands[WT__CONTRAST_BANDS + 1];
    wt_spectral_contrast_config c = config ? *config : (wt_spectral_contrast_config){.n_bands = 0};
    wt_status status = wt__spectral_resolve(shape, &s);
    if (!status) status = wt__contrast_resolve(&c);
    if (!status) status = wt__contrast_bands(&s, &c, bands);
    if (status) return status;
    const int bins = s.n_fft / 2 + 1;
    float *turned = malloc(sizeof *turned * WT__LANES * (2 * (size_t)bins + 2 * LISTED)), means[2][WT__LANES];
    if (!turned) return wt_fail(WT_ERR_NO_MEMORY, "spectral: %d bins of contrast", bins);
    for (int64_t t = 0; t < s.n_frames; t += WT__LANES) {
        const int count = s.n_frames - t < WT__LANES ? (int)(s.n_frames - t) : WT__LANES;
        wt__lanes_turn(magnitude + t * bins, bins, count, bins, turned);
        for (int b = 0; b <= c.n_bands; b++) {
            contrast_of(turned, &bands[b], turned + bins * WT__LANES, means);
            memcpy(valleys + b * s.n_frames + t, means[0], (size_t)count * sizeof *valleys);
            memcpy(peaks + b * s.n_frames + t, means[1], (size_t)count * sizeof *peaks);
        }
    }
    free(turned);
    return WT_OK;
}

wt_status wt_spectral_contrast(const wt_spectral_shape *shape, const float *magnitude,
                               const wt_spectral_contrast_config *config, float *out)
{
    wt_spectral_shape s;
    wt_spectral_contrast_config c = config ? *config : (wt_spectral_contrast_config){.n_bands = 0};
    wt_status status = wt__spectral_resolve(shape, &s);
    if (!status) status = wt__contrast_resolve(&c);
    if (status) return status;
    const int64_t count = (c.n_bands + 1) * s.n_frames;
    float *valleys = malloc(sizeof *valleys * (size_t)count);
    if (!valleys) return wt_fail(WT_ERR_NO_MEMORY, "spectral: %lld floats of contrast", (long long)count);
    status = wt_spectral_contrast_parts(&s, magnitude, &c, out, valleys);
    if (!status && !c.linear) status = wt_db_from_power(NULL, out, count, out);
    if (!status && !c.linear) status = wt_db_from_power(NULL, valleys, count, valleys);
    for (int64_t i = 0; i < count && !status; i++) out[i] -= valleys[i];
    free(valleys);
    return status;
}
