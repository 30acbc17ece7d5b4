// Tuning of spectra that come in parts. The estimate counts the peaks that are as high as the median peak or higher;
// the median of floats, exact, from two histograms: of the upper 16 bits of all heights, which say where the two middle
// ones lie, and of the lower 16 there. Positive floats have their bits' order.

#include "tuning_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HALF = 1 << 16 };

struct wt_tuning_walk {
    wt_tuning_config config; // defaults resolved
    int pass, n_steps;
    float *hz, *height;     // [bins] of a frame
    int64_t *high, *low[2]; // [HALF] each; low of the two middle heights
    int64_t *counts;        // [n_steps]
    int64_t n_peaks, rest[2];
    int upper[2]; // bits of the two middle heights
    float least;
};

wt_status wt_tuning_walk_create(const wt_piptrack_config *config, int bins_per_octave, double resolution,
                                wt_tuning_walk **walk)
{
    *walk = NULL;
    wt_tuning_walk *w = calloc(1, sizeof *w);
    if (!w) return wt_fail(WT_ERR_NO_MEMORY, "tuning: a walk");
    w->config = (wt_tuning_config){.peaks = *config, .bins_per_octave = bins_per_octave, .resolution = resolution};
    wt_status status = wt__tuning_resolve(&w->config);
    const size_t bins = (size_t)w->config.peaks.n_fft / 2 + 1;
    w->n_steps = status ? 0 : (int)ceil(1 / w->config.resolution);
    w->hz = malloc(2 * bins * sizeof *w->hz);
    w->height = w->hz + bins;
    w->high = calloc((size_t)(3 * HALF + w->n_steps), sizeof *w->high);
    if (!status && (!w->hz || !w->high)) status = wt_fail(WT_ERR_NO_MEMORY, "tuning: a walk");
    if (status) {
        wt_tuning_walk_destroy(w);
        return status;
    }
    w->low[0] = w->high + HALF, w->low[1] = w->low[0] + HALF, w->counts = w->low[1] + HALF;
    *walk = w;
    return WT_OK;
}

void wt_tuning_walk_destroy(wt_tuning_walk *walk)
{
    if (!walk) return;
    free(walk->hz);
    free(walk->high);
    free(walk);
}

static void add_peak(wt_tuning_walk *w, float hz, float height)
{
    int bits;
    memcpy(&bits, &height, sizeof bits);
    if (w->pass == 0 && height > 0) w->high[bits >> 16]++, w->n_peaks++;
    for (int k = 0; k < 2 && w->pass == 1 && height > 0; k++)
        if (bits >> 16 == w->upper[k]) w->low[k][bits & (HALF - 1)]++;
    if (w->pass == 2 && hz > 0 && height >= w->least)
        w->counts[wt__tuning_step(hz, w->config.bins_per_octave, w->n_steps)]++;
}

void wt_tuning_walk_add(wt_tuning_walk *w, const float *spectrum, int64_t n_frames)
{
    const int bins = w->config.peaks.n_fft / 2 + 1;
    for (int64_t t = 0; t < n_frames; t++) {
        wt__tuning_track(&w->config.peaks, spectrum + t * bins, w->hz, w->height);
        for (int k = 0; k < bins; k++) add_peak(w, w->hz[k], w->height[k]);
    }
}

// Where in a histogram number `rank` lies, and how many of its place come before it.
static int place_of(const int64_t *counts, int64_t rank, int64_t *rest)
{
    int at = 0;
    while (at < HALF - 1 && rank >= counts[at]) rank -= counts[at++];
    *rest = rank;
    return at;
}

double wt_tuning_walk_end_pass(wt_tuning_walk *w)
{
    const int64_t n = w->n_peaks;
    float middle[2];
    int best = 0;
    w->pass++;
    if (!n) return 0;
    for (int k = 0; k < 2 && w->pass == 1; k++) w->upper[k] = place_of(w->high, (n - 1 + k) / 2, &w->rest[k]);
    for (int k = 0; k < 2 && w->pass == 2; k++) {
        int64_t rest;
        const int bits = w->upper[k] << 16 | place_of(w->low[k], w->rest[k], &rest);
        memcpy(&middle[k], &bits, sizeof bits);
    }
    if (w->pass == 2) w->least = n % 2 ? middle[0] : 0.5f * (middle[0] + middle[1]);
    if (w->pass < WT_TUNING_PASSES) return 0;
    for (int i = 1; i < w->n_steps; i++)
        if (w->counts[i] > w->counts[best]) best = i;
    return w->counts[best] ? -0.5 + best * (1.0 / w->n_steps) : 0;
}
