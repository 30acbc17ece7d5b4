// leveler: a slow gain that steers the loudness towards a target. Every 100 ms the loudness of the last 400 ms (K
// weighting, units and gates of meter_kernel.h) goes into a mean that forgets over window_s; the gain moves towards
// target - mean by at most speed_db_s. With look-ahead the gain is already right when the first sound comes out.
#ifndef WT_LEVELER_KERNEL_H
#define WT_LEVELER_KERNEL_H
#include "meter_kernel.h"

#define LEVELER_STEP_S 0.1f
#define LEVELER_GATE_LU 10.0f // quieter than the mean by this much does not count
#define LEVELER_STALE 0.5f    // blocks left in the mean when the gate opens for whatever there is
enum { LEVELER_GAIN, LEVELER_LOUDNESS, LEVELER_N_READINGS };

typedef struct leveler_plan {
    meter_plan meter;
    int lookahead, mask; // frames, ring size - 1
} leveler_plan;

typedef struct leveler_coeffs {
    float target_lufs, max_gain_db, most_db, kept; // a step
} leveler_coeffs;

typedef struct leveler_state {
    unsigned long long weighted;              // power of the step so far
    unsigned long long ring[METER_MOMENTARY]; // of the last steps
    float power, blocks;                      // sums of the mean
    float gain_db;
    float begin, end; // gain - 1 at both ends of the present step
    int n_steps;
    float shelf[WT_MAX_CHANNELS][2], highpass[WT_MAX_CHANNELS][2];
    float delay[1]; // [channels][mask + 1]
} leveler_state;

// v: target_lufs, max_gain_db, speed_db_s, window_s
WT_SHARED_FN void leveler_design(const leveler_plan *p, const float *v0, const float *v1, leveler_coeffs *k)
{
    (void)p, (void)v0;
    k->target_lufs = v1[0], k->max_gain_db = v1[1], k->most_db = v1[2] * LEVELER_STEP_S;
    k->kept = expf(-LEVELER_STEP_S / v1[3]);
}

// A step has ended. One thread.
WT_SHARED_FN void leveler_end_step(const leveler_plan *p, const leveler_coeffs *k, leveler_state *s, float *readings)
{
    s->ring[s->n_steps % METER_MOMENTARY] = s->weighted;
    s->weighted = 0;
    s->n_steps++;
    float power = meter_mean(s->ring, METER_MOMENTARY, s->n_steps % METER_MOMENTARY, METER_MOMENTARY,
                             (double)p->meter.step_frames);
    float mean = s->blocks > 0.0f ? meter_lufs(s->power / s->blocks) : METER_FLOOR_DB;
    float gate = s->blocks > LEVELER_STALE ? wt_max(mean - LEVELER_GATE_LU, METER_GATE_LUFS) : METER_GATE_LUFS;
    s->power *= k->kept, s->blocks *= k->kept;
    if (s->n_steps >= METER_MOMENTARY && meter_lufs(power) > gate) s->power += power, s->blocks += 1.0f;
    if (s->blocks > 0.0f) {
        mean = meter_lufs(s->power / s->blocks);
        float wanted = wt_min(wt_max(k->target_lufs - mean, -k->max_gain_db), k->max_gain_db);
        int unheard = (long long)s->n_steps * p->meter.step_frames <= p->lookahead;
        float most = unheard ? 2 * k->max_gain_db : k->most_db;
        s->gain_db += wt_min(wt_max(wanted - s->gain_db, -most), most);
    }
    s->begin = s->end;
    s->end = expf(s->gain_db * 0.11512925464970229f) - 1.0f;
    readings[LEVELER_GAIN] = s->gain_db, readings[LEVELER_LOUDNESS] = mean;
}

// Gain at frame `at` of the step.
WT_SHARED_FN float leveler_gain(const leveler_plan *p, const leveler_state *s, int at)
{
    return 1.0f + s->begin + (s->end - s->begin) * ((float)at / (float)p->meter.step_frames);
}
#endif
