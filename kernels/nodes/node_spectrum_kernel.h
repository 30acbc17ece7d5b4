// spectrum: levels of third-octave bands; audio passes unchanged.
//
// A bin counts towards a band by the part of its width that lies in it, so bands narrower than a bin show what a
// spectrum of this length can tell. Levels are mean squares, as the meter's RMS is: a full-scale sine has -3.01 dB.
#ifndef WT_NODE_SPECTRUM_KERNEL_H
#define WT_NODE_SPECTRUM_KERNEL_H
#include "spectral_node_kernel.h"

#define SPECTRUM_BANDS 31

enum { SPECTRUM_TIME, SPECTRUM_N_PARAMS };

typedef struct node_spectrum_plan {
    spectral_plan base;
    float hop_ms;
    float low[SPECTRUM_BANDS], high[SPECTRUM_BANDS]; // edges, in bins
} node_spectrum_plan;

typedef struct node_spectrum_coeffs {
    float keep; // of the smoothed power, a hop
} node_spectrum_coeffs;

// What the channels share: the smoothed power, and where the last transform ended; 0 = none has been made.
typedef struct node_spectrum_shared {
    WT_ALIGNED(16) long long shown;
    float power[SPECTRUM_BANDS];
} node_spectrum_shared;

WT_SHARED_FN void node_spectrum_design(const node_spectrum_plan *p, const float *v0, const float *v1,
                                       node_spectrum_coeffs *k)
{
    (void)v0;
    k->keep = v1[SPECTRUM_TIME] > 0.0f ? expf(-p->hop_ms / v1[SPECTRUM_TIME]) : 0.0f;
}

// First and last bin of a band.
WT_SHARED_FN int spectrum_first(const node_spectrum_plan *p, int band) { return (int)(p->low[band] + 0.5f); }
WT_SHARED_FN int spectrum_last(const node_spectrum_plan *p, int band)
{
    const int last = (int)(p->high[band] + 0.5f);
    return last < p->base.bins ? last : p->base.bins - 1;
}

// What a bin adds to a band; every bin but the outermost stands for two of the transform.
WT_SHARED_FN float spectrum_part(const node_spectrum_plan *p, int band, int k, float re, float im)
{
    const float width = wt_min(p->high[band], (float)k + 0.5f) - wt_max(p->low[band], (float)k - 0.5f);
    const float sides = k > 0 && k < p->base.bins - 1 ? 2.0f : 1.0f;
    return sides * wt_max(width, 0.0f) * (re * re + im * im);
}

// All channels are through: one band's power over them, smoothed, and its reading. What is not finite counts as 0.
WT_SHARED_FN void spectrum_show(const node_spectrum_plan *p, const node_spectrum_coeffs *k, float *state, int band,
                                float *readings)
{
    node_spectrum_shared *s = (node_spectrum_shared *)(state + p->base.shared);
    float sum = 0.0f;
    for (int c = 0; c < p->base.channels; c++) sum += spectral_channel(&p->base, state, c)[p->base.own + band];
    sum *= p->base.scale / (float)p->base.channels;
    sum = sum < 1e30f ? sum : 0.0f;
    s->power[band] = sum + k->keep * (s->power[band] - sum);
    readings[band] = spectral_db(s->power[band]);
}
#endif
