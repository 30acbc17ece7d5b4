// pitch: the fundamental frequency of the mean of all channels by YIN; audio passes unchanged.
//
// At each multiple of the hop, over the last frame: d(k) = sum over `width` of (x[n] - x[n + k])^2, divided by the mean
// of d(1) .. d(k). The period is the first trough below the threshold, else the lowest trough, which is what keeps YIN
// from octaves; a parabola through d around it gives its fraction. Source: A. de Cheveigne and H. Kawahara, JASA
// 111(4), 2002.
#ifndef WT_NODE_PITCH_KERNEL_H
#define WT_NODE_PITCH_KERNEL_H
#include "fastmath_kernel.h"
#include "yin_kernel.h"

#define PITCH_MAX_FRAME 8192
#define PITCH_STEP      4 // lags a GPU thread takes at once

enum { PITCH_MIN_CONFIDENCE, PITCH_A4, PITCH_N_PARAMS };
enum { PITCH_F0_HZ, PITCH_CONFIDENCE, PITCH_NOTE, PITCH_N_READINGS };

typedef struct node_pitch_plan {
    int channels, hop, ring;       // ring: frames, a power of two
    int first, last, width, frame; // lags that are looked at; frame = width + last + 1
    int lags;                      // last + 2 rounded up to 64
    float threshold, rate_hz;
} node_pitch_plan;

typedef struct node_pitch_coeffs {
    float min_confidence, a4_hz;
} node_pitch_coeffs;

// Before the ring: the end of the last frame that was looked at; 0 = none.
typedef struct node_pitch_state {
    WT_ALIGNED(16) long long shown;
} node_pitch_state;

WT_SHARED_FN void node_pitch_design(const node_pitch_plan *p, const float *v0, const float *v1, node_pitch_coeffs *k)
{
    (void)p, (void)v0;
    k->min_confidence = v1[PITCH_MIN_CONFIDENCE];
    k->a4_hz = v1[PITCH_A4];
}

// d(k) over the mean of d(1) .. d(k), whose sum is `total`; 1 in silence.
WT_SHARED_FN float pitch_normal(float d, float total, int lag)
{
    return total > 1e-12f ? d * (float)lag / total : 1.0f;
}

WT_SHARED_FN int pitch_is_trough(const float *normal, int lag)
{
    return normal[lag] < normal[lag - 1] && normal[lag] <= normal[lag + 1];
}

// Readings from the lag that was picked; 0 = none.
WT_SHARED_FN void pitch_show(const node_pitch_plan *p, const node_pitch_coeffs *k, const float *d, const float *normal,
                             int lag, float *readings)
{
    const float confidence = lag > 0 ? wt_min(wt_max(1.0f - normal[lag], 0.0f), 1.0f) : 0.0f;
    readings[PITCH_CONFIDENCE] = confidence;
    readings[PITCH_F0_HZ] = readings[PITCH_NOTE] = 0.0f;
    if (!(lag > 0 && confidence >= k->min_confidence)) return;
    const float period = (float)lag + (float)wt__yin_shift(d[lag - 1], d[lag], d[lag + 1]);
    readings[PITCH_F0_HZ] = p->rate_hz / period;
    readings[PITCH_NOTE] = 69.0f + 12.0f * wt_log2(p->rate_hz / period / k->a4_hz);
}
#endif
