// meter: audio passes unchanged; peak, RMS, true peak and loudness by ITU-R BS.1770-4 are shown.
//
// Time is cut into steps of 100 ms. Power is summed in integers (units of 2^-34, a sample's at most +21 dB), so that
// neither the blocks nor the order of threads change a bit. Four steps are a momentary value and a gating block, thirty
// a short-term value. Gating blocks go into a histogram of 0.1 LU with their exact power: the relative threshold is
// applied to whole bins, the means are exact.
//
// K weighting is the filter of loudness_kernel.h in the realisation of biquad_kernel.h, whose states stay accurate in
// float at the 38 Hz of its high-pass.
#ifndef WT_METER_KERNEL_H
#define WT_METER_KERNEL_H
#include "biquad_kernel.h"
#include "true_peak_kernel.h"

#define METER_STEPS 30      // of the ring: short-term
#define METER_MOMENTARY 4
#define METER_RMS_STEPS 3
#define METER_FLOOR_DB (-120.0f) // shown for silence and for what is not known yet
#define METER_GATE_LUFS (-70.0f)
#define METER_BINS 850           // -70 .. +15 LUFS
#define METER_BINS_PER_LU 10.0f
#define METER_UNIT 17179869184.0f // 2^34
#define METER_MOST 128.0f

enum { METER_PEAK, METER_RMS, METER_TRUE_PEAK, METER_MOMENTARY_LUFS, METER_SHORT_TERM_LUFS, METER_INTEGRATED_LUFS,
       METER_N_READINGS };

typedef struct meter_plan {
    int channels, step_frames;
    biquad_coeffs shelf, highpass;
    float weight[WT_MAX_CHANNELS];
} meter_plan;

typedef struct meter_state {
    unsigned long long weighted, plain; // power of the step so far
    unsigned long long weighted_ring[METER_STEPS], plain_ring[METER_RMS_STEPS];
    unsigned long long bin_power[METER_BINS];
    int bin_count[METER_BINS];
    int n_steps;
    int peak, true_peak; // bits of floats >= 0
    int unused;
    float shelf[WT_MAX_CHANNELS][2], highpass[WT_MAX_CHANNELS][2];
    float history[WT_MAX_CHANNELS][LOUDNESS_TAPS];
} meter_state;

// Power of one sample in units; 0 for what is not a number.
WT_SHARED_FN long long meter_power(float y, float weight)
{
    float power = wt_min(weight * (y * y), METER_MOST);
    return (long long)((power > 0.0f ? power : 0.0f) * METER_UNIT + 0.5f);
}

WT_SHARED_FN float meter_db(float power)
{
    return power > 1e-12f ? 10.0f * log10f(power) : METER_FLOOR_DB;
}

WT_SHARED_FN float meter_lufs(float power)
{
    return wt_max(meter_db(power) - 0.691f, METER_FLOOR_DB);
}

WT_SHARED_FN int meter_bin(float lufs)
{
    float bin = (lufs - METER_GATE_LUFS) * METER_BINS_PER_LU;
    return bin < (float)(METER_BINS - 1) ? (int)bin : METER_BINS - 1;
}

// Mean power of the last n steps; silence before the start.
WT_SHARED_FN float meter_mean(const unsigned long long *ring, int size, int at, int n, double frames)
{
    unsigned long long sum = 0;
    for (int k = 0; k < n; k++) sum += ring[(at + 2 * size - 1 - k) % size];
    return (float)((double)sum / ((double)METER_UNIT * frames * n));
}

// A step has ended: rings, windows, histogram. One thread.
WT_SHARED_FN void meter_end_step(const meter_plan *p, meter_state *s, float *readings)
{
    const double frames = p->step_frames;
    s->weighted_ring[s->n_steps % METER_STEPS] = s->weighted;
    s->plain_ring[s->n_steps % METER_RMS_STEPS] = s->plain;
    s->weighted = 0, s->plain = 0;
    s->n_steps++;
    int at = s->n_steps % METER_STEPS;
    float momentary = meter_lufs(meter_mean(s->weighted_ring, METER_STEPS, at, METER_MOMENTARY, frames));
    readings[METER_MOMENTARY_LUFS] = momentary;
    readings[METER_SHORT_TERM_LUFS] = meter_lufs(meter_mean(s->weighted_ring, METER_STEPS, at, METER_STEPS, frames));
    readings[METER_RMS] = meter_db(meter_mean(s->plain_ring, METER_RMS_STEPS, s->n_steps % METER_RMS_STEPS,
                                              METER_RMS_STEPS, frames * p->channels));
    if (s->n_steps < METER_MOMENTARY || !(momentary > METER_GATE_LUFS)) return;
    int bin = meter_bin(momentary);
    for (int k = 0; k < METER_MOMENTARY; k++)
        s->bin_power[bin] += s->weighted_ring[(at + METER_STEPS - 1 - k) % METER_STEPS] / METER_MOMENTARY;
    s->bin_count[bin]++;
}

// Power and count of the bins from `first` up that `lane` of `n_lanes` looks at.
WT_SHARED_FN void meter_above(const meter_state *s, int first, int lane, int n_lanes, unsigned long long *power,
                              unsigned long long *count)
{
    *power = 0, *count = 0;
    for (int k = first + lane; k < METER_BINS; k += n_lanes) {
        *power += s->bin_power[k];
        *count += (unsigned int)s->bin_count[k];
    }
}

WT_SHARED_FN float meter_mean_lufs(const meter_plan *p, unsigned long long power, unsigned long long count)
{
    if (!count) return METER_FLOOR_DB;
    return meter_lufs((float)((double)power / ((double)METER_UNIT * (double)count * p->step_frames)));
}

// First bin above the relative gate; the bin that holds the gate counts when its own mean is above.
WT_SHARED_FN int meter_gate_bin(const meter_plan *p, const meter_state *s, float ungated_lufs)
{
    float gate = ungated_lufs - 10.0f;
    if (!(gate > METER_GATE_LUFS)) return 0;
    int bin = meter_bin(gate);
    return meter_mean_lufs(p, s->bin_power[bin], (unsigned int)s->bin_count[bin]) >= gate ? bin : bin + 1;
}

WT_SHARED_FN void meter_show_peaks(const meter_state *s, float *readings)
{
    float peak = wt_from_bits(s->peak), true_peak = wt_from_bits(s->true_peak);
    readings[METER_PEAK] = meter_db(peak * peak);
    readings[METER_TRUE_PEAK] = meter_db(true_peak * true_peak);
    if (s->n_steps >= 1) return;
    readings[METER_RMS] = readings[METER_MOMENTARY_LUFS] = readings[METER_SHORT_TERM_LUFS] = METER_FLOOR_DB;
    readings[METER_INTEGRATED_LUFS] = METER_FLOOR_DB;
}
#endif
