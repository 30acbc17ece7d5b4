// hpss: harmonic and percussive parts by medians of the magnitudes along time and along frequency, each with a level.
//
// The median along time takes HPSS_LIVE_TIME spectra, of which `lookahead` are later than the one that is heard; with
// none of them a tone counts as percussive until it has lasted for half the median. Masks are those of
// dsp/decompose/hpss.c with power 2; with a margin above 1 what neither part takes is the residual, which keeps its
// level. Source: D. Fitzgerald, DAFx 2010; margins: J. Driedger and others, ISMIR 2014.
#ifndef WT_NODE_HPSS_KERNEL_H
#define WT_NODE_HPSS_KERNEL_H
#include "gain_kernel.h"
#include "spectral_node_kernel.h"

#define HPSS_LIVE_TIME       17 // spectra
#define HPSS_LIVE_BINS       17
#define HPSS_LIVE_EDGE       (HPSS_LIVE_BINS / 2)
#define HPSS_LIVE_MOST_AHEAD (HPSS_LIVE_TIME / 2)

enum { HPSS_HARMONIC_DB, HPSS_PERCUSSIVE_DB, HPSS_MARGIN, HPSS_N_PARAMS };

// A channel's own floats: keys of magnitudes [HPSS_LIVE_TIME][row], then spectra [lookahead + 1][2][row].
typedef struct node_hpss_plan {
    spectral_plan base;
    int lookahead, row;
} node_hpss_plan;

typedef struct node_hpss_coeffs {
    float harmonic, percussive, margin;
} node_hpss_coeffs;

WT_SHARED_FN void node_hpss_design(const node_hpss_plan *p, const float *v0, const float *v1, node_hpss_coeffs *k)
{
    (void)p, (void)v0;
    k->harmonic = wt_db_to_gain(v1[HPSS_HARMONIC_DB]);
    k->percussive = wt_db_to_gain(v1[HPSS_PERCUSSIVE_DB]);
    k->margin = v1[HPSS_MARGIN];
}

// The share of x that stands above the reference; 0 where both are silent.
WT_SHARED_FN float hpss_mask(float x, float reference)
{
    const float most = wt_max(x, reference), safe = most > 1e-30f ? most : 1.0f;
    const float a = x / safe, b = reference / safe;
    return a * a / wt_max(a * a + b * b, 1e-30f);
}

// Gain of a bin with these medians.
WT_SHARED_FN float hpss_gain(const node_hpss_coeffs *k, float harmonic, float percussive)
{
    const float h = hpss_mask(harmonic, percussive * k->margin), q = hpss_mask(percussive, harmonic * k->margin);
    return 1.0f + h * (k->harmonic - 1.0f) + q * (k->percussive - 1.0f);
}

// Magnitudes are above 0 or 0, so the order of their bits is theirs.
WT_SHARED_FN int hpss_key(float re, float im) { return wt_bits(sqrtf(re * re + im * im)); }

// Slot of the keys of transform t, and of its spectrum.
WT_SHARED_FN int hpss_time_slot(long long t) { return (int)((t + HPSS_LIVE_TIME) % HPSS_LIVE_TIME); }
WT_SHARED_FN int hpss_wait_slot(const node_hpss_plan *p, long long t)
{
    return (int)((t + p->lookahead + 1) % (p->lookahead + 1));
}

// Bin of a median's window, mirrored with the ends repeated.
WT_SHARED_FN int hpss_mirror(int k, int bins) { return k < 0 ? -1 - k : k < bins ? k : 2 * bins - 1 - k; }
#endif
