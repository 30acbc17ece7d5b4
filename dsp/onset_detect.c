// Peaks of onset envelopes.

#include <float.h>
#include <math.h>
#include <warptone/onset.h>

// (x - offset) / scale, as librosa normalises before it picks; the comparison of two values needs neither.
typedef struct series {
    const float *x;
    int64_t n;
    double offset, scale;
} series;

static bool is_largest(const series *s, int64_t at, int64_t begin, int64_t end)
{
    for (int64_t i = begin < 0 ? 0 : begin; i < end && i < s->n; i++)
        if (s->x[i] > s->x[at]) return false;
    return true;
}

static bool stands_out(const series *s, int64_t at, int64_t begin, int64_t end, double delta)
{
    double sum = 0;
    if (begin < 0) begin = 0;
    if (end > s->n) end = s->n;
    for (int64_t i = begin; i < end; i++) sum += (s->x[i] - s->offset) / s->scale;
    return (s->x[at] - s->offset) / s->scale >= sum / (double)(end - begin) + delta;
}

static int64_t pick(const wt_peak_config *c, const series *s, int *peaks)
{
    int64_t count = 0;
    if (c->pre_max < 0 || c->pre_avg < 0 || c->wait < 0 || !(c->delta >= 0) || c->post_max < 1 || c->post_avg < 1)
        return 0;
    for (int64_t at = 0; at < s->n; at++) {
        // the first frame's windows begin at itself: there is nothing before it
        if (!is_largest(s, at, at - c->pre_max, at + c->post_max)) continue;
        if (!stands_out(s, at, at - c->pre_avg, at + c->post_avg, c->delta)) continue;
        peaks[count++] = (int)at;
        at += c->wait;
    }
    return count;
}

WT_RT int64_t wt_peak_pick(const wt_peak_config *config, const float *x, int64_t n, int *peaks)
{
    return pick(config, &(series){x, n, 0, 1}, peaks);
}

wt_peak_config wt_onset_peaks(double rate_hz, int hop)
{
    const int around = (int)floor(0.03 * rate_hz / hop), mean = (int)floor(0.1 * rate_hz / hop);
    return (wt_peak_config){
        .pre_max = around, .post_max = 1, .pre_avg = mean, .post_avg = mean + 1, .wait = around, .delta = 0.07};
}

WT_RT int64_t wt_onset_detect(const wt_peak_config *config, const float *envelope, int64_t n, int *frames)
{
    float least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(envelope[i])) return 0;
        if (envelope[i] < least) least = envelope[i];
        if (envelope[i] > most) most = envelope[i];
    }
    if (!(most > least)) return 0;
    return pick(config, &(series){envelope, n, least, (double)most - least + DBL_MIN}, frames);
}

WT_RT void wt_onset_backtrack(const float *energy, int64_t n, const int *events, int64_t n_events, int *moved)
{
    for (int64_t k = 0; k < n_events; k++) {
        int64_t at = events[k] < n - 2 ? events[k] : n - 2; // the ends are no minima
        while (at > 0 && !(energy[at] <= energy[at - 1] && energy[at] < energy[at + 1])) at--;
        moved[k] = at > 0 ? (int)at : 0;
    }
}
