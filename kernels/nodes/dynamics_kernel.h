// What compressor, expander, gate and de-esser share: level, static curve, smoothing, gain.
//
// After D. Giannoulis, M. Massberg, J. Reiss, "Digital dynamic range compressor design - a tutorial and analysis",
// J. Audio Eng. Soc. 60(6), 2012: level in dB, soft knee (their equation 4), then the smooth decoupled detector
// (equation 17) on v, which rises with an attack:
//   y1[n] = max(v, r y1[n-1] + (1 - r) v),   y[n] = a y[n-1] + (1 - a) y1[n].
// Both are associative scans: compositions of max(c, a y + b) are of that form again.
//   compressor, de-esser: v = reduction in dB, gain_db = -y
//   expander, gate:       v = openness in 0 .. 1, gain_db = -range_db * (1 - y)
// A group is what shares one gain: all channels (linked), or one.
#ifndef WT_DYNAMICS_KERNEL_H
#define WT_DYNAMICS_KERNEL_H
#include "fastmath_kernel.h"

#define DYNAMICS_FLOOR 1e-10f  // lowest level looked at, -200 dB
#define DYNAMICS_RMS_MS 10.0f  // time constant of the RMS detector

typedef struct dynamics_plan {
    float rate_hz;
    int rms, gate; // detector; gate: two thresholds instead of a curve
    int n_groups;
    int lookahead_frames, ring_frames; // ring: a power of two, at least lookahead + WT_CHAIN_BLOCK; 0 = none
} dynamics_plan;

typedef struct dynamics_coeffs {
    float threshold_db, sign, half_knee_db, per_knee; // sign: +1 acts above the threshold, -1 below
    float v_base, v_slope, v_most; // v = v_base + v_slope * dB beyond the threshold, held in 0 .. v_most
    float attack, release, rms;                       // one-pole factors
    float open, close;                                // gate: levels (amplitude or power)
    int hold_frames;
    float base_db, base_slope, span_db, span_slope, makeup_db, makeup_slope, mix, mix_slope;
    // gain_db = base + makeup + span * y; slopes a frame of the quantum
} dynamics_coeffs;

typedef struct dynamics_group {
    float y1, y, power;
    int open;
    long long last_open; // frame after the last one that was open; 0 = none
    long long unused;
} dynamics_group;

typedef struct dynamics_state {
    dynamics_group group[WT_MAX_CHANNELS];
    float ring[16]; // [channels][ring_frames] when there is look-ahead
} dynamics_state;

// One-pole factor that reaches 1 - 1/e after `ms`; 0 ms = at once.
WT_SHARED_FN float dynamics_pole(float ms, float rate_hz) { return ms > 0.0f ? expf(-1000.0f / (ms * rate_hz)) : 0.0f; }

WT_SHARED_FN float dynamics_slope(float v0, float v1) { return (v1 - v0) / WT_QUANTUM; }

WT_SHARED_FN void dynamics_knee(dynamics_coeffs *k, float threshold_db, float knee_db, float sign)
{
    k->threshold_db = threshold_db;
    k->sign = sign;
    k->half_knee_db = 0.5f * knee_db;
    k->per_knee = knee_db > 0.0f ? 0.5f / knee_db : 0.0f;
}

WT_SHARED_FN void dynamics_times(const dynamics_plan *p, dynamics_coeffs *k, float attack_ms, float release_ms)
{
    k->attack = dynamics_pole(attack_ms, p->rate_hz);
    k->release = dynamics_pole(release_ms, p->rate_hz);
    k->rms = dynamics_pole(DYNAMICS_RMS_MS, p->rate_hz);
    k->mix = 1.0f;
}

// gain_db = -range * (1 - y)
WT_SHARED_FN void dynamics_range(dynamics_coeffs *k, float range0_db, float range1_db)
{
    k->base_db = -range0_db;
    k->base_slope = -dynamics_slope(range0_db, range1_db);
    k->span_db = range0_db;
    k->span_slope = -k->base_slope;
}

// Level in dB of an amplitude, or of a power when `rms`.
WT_SHARED_FN float dynamics_level_db(float level, int rms)
{
    float octaves = wt_log2(wt_max(level, DYNAMICS_FLOOR * (rms ? DYNAMICS_FLOOR : 1.0f)));
    return octaves * (rms ? 0.5f * WT_DB_PER_OCTAVE : WT_DB_PER_OCTAVE);
}

// Static curve: v of a level.
WT_SHARED_FN float dynamics_curve(const dynamics_coeffs *k, float level_db)
{
    float beyond = k->sign * (level_db - k->threshold_db);
    float in_knee = wt_min(wt_max(beyond + k->half_knee_db, 0.0f), 2.0f * k->half_knee_db);
    float past = wt_max(beyond - k->half_knee_db, 0.0f);
    float v = k->v_base + k->v_slope * (in_knee * in_knee * k->per_knee + past);
    return wt_min(wt_max(v, 0.0f), k->v_most);
}

// Linear gain of y at frame `t` of the quantum, mix included; exactly 1 for no reduction and no make-up.
WT_SHARED_FN float dynamics_gain(const dynamics_coeffs *k, float y, float t)
{
    float gain_db = k->base_db + k->base_slope * t + (k->span_db + k->span_slope * t) * y +
                    (k->makeup_db + k->makeup_slope * t);
    float mix = k->mix + k->mix_slope * t;
    return 1.0f + mix * (wt_exp2(gain_db * WT_OCTAVES_PER_DB) - 1.0f);
}
#endif
