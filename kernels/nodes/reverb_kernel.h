// reverb: a feedback delay network of 16 lines for each pair of channels (J.-M. Jot, A. Chaigne, "Digital delay
// networks for designing artificial reverberators", AES 90, 1991):
//
//   in -> low cut -> pre-delay -> 4 all-passes -> +-> lines, prime lengths -> damping -> rotation -> Hadamard -+-> out
//                                                 ^------------------------------------------------------------+
//
// Everything in the loop but the damping keeps energy, so the damping alone sets the decay: each line's one-pole filter
//   s = gain d + pole s',   gain / (1 - pole) = g = 10^(-3 length / (decay rate)),
// loses 60 dB in decay_s at low frequencies and in decay_s / 2 at damping_hz, whatever the line's length. The rotation
// turns neighbouring lines into each other by a slowly swinging angle (S. Schlecht, E. Habets, "Time-varying feedback
// matrices in feedback delay networks", JASA 138, 2015): modes move, nothing is interpolated, no energy is lost.
// The wet level does not depend on decay or size: white noise comes out as loud as it went in, damping aside.
#ifndef WT_REVERB_KERNEL_H
#define WT_REVERB_KERNEL_H
#include "biquad_kernel.h"
#include "lfo_kernel.h"

#define REVERB_LINES 16
#define REVERB_CHUNK 64 // frames worked on at once: no line, no all-pass is shorter
#define REVERB_DIFFUSERS 4
#define REVERB_STRIDE (REVERB_CHUNK + 1) // of a line's chunk in the GPU's shared memory, against bank conflicts
#define REVERB_LEFT 5   // the matrix rows that are heard
#define REVERB_RIGHT 10
#define REVERB_PAIR_PHASE 0x20000000u // of the rotation, an eighth of a turn between pairs of lines
#define REVERB_TWIST 0.5f // sine of the largest angle

// Signs of the two inputs into the lines, bit set = minus. Line numbers as bits abcd: ab + cd and ac + bd + a, two bent
// functions (each excites all matrix rows alike) that are orthogonal.
#define REVERB_SIGNS_LEFT 0x7888u
#define REVERB_SIGNS_RIGHT 0xc60au

typedef struct reverb_plan {
    float rate_hz;
    int channels_in; // channels_out is the node's
    int length[REVERB_LINES], diffuser_length[2][REVERB_DIFFUSERS];
    int line_mask, line_stride, pre_mask, diffuser_mask;
    int pair_floats; // rings of a pair: pre-delays, all-passes, lines
    float mean_length;
    unsigned int increment; // of the rotation's phase
} reverb_plan;

typedef struct reverb_coeffs {
    biquad_coeffs low_cut;
    float gain[REVERB_LINES], pole[REVERB_LINES];
    float power[REVERB_LINES][5]; // pole^1, ^2, ^4, ^8, ^16
    lfo_delay pre; // stands still
    float mix, mix_slope, wet, wet_slope, side, side_slope;
    float diffusion, twist;
} reverb_coeffs;

typedef struct reverb_state {
    float low_cut[WT_MAX_CHANNELS][2];
    float damping[WT_MAX_CHANNELS / 2][REVERB_LINES];
    float rings[1]; // [pairs][pair_floats]
} reverb_state;

// A pair's rings: channel c's pre-delay, its all-pass k, line i.
WT_SHARED_FN float *reverb_pre_ring(const reverb_plan *p, float *rings, int c) { return rings + c * (p->pre_mask + 1); }

WT_SHARED_FN float *reverb_diffuser_ring(const reverb_plan *p, float *rings, int c, int k)
{
    return rings + 2 * (p->pre_mask + 1) + (c * REVERB_DIFFUSERS + k) * (p->diffuser_mask + 1);
}

WT_SHARED_FN float *reverb_line_ring(const reverb_plan *p, float *rings, int i)
{
    return rings + 2 * (p->pre_mask + 1) + 2 * REVERB_DIFFUSERS * (p->diffuser_mask + 1) + i * p->line_stride;
}

WT_SHARED_FN float reverb_sign(unsigned int signs, int i) { return (signs >> i) & 1 ? -0.25f : 0.25f; }

// Damping of a line: with e = g^2 the pole solves |H(damping_hz)| = g^2, a quadratic whose roots multiply to one.
WT_SHARED_FN void reverb_damping(float length_s, float decay_s, float half_sine2, float *gain, float *pole)
{
    float g = expf(-6.9077553f * length_s / decay_s), lost = -expm1f(-13.815511f * length_s / decay_s);
    float e = g * g, bend = 2 * e * half_sine2; // e (1 - cos w)
    *pole = lost / (lost + bend + sqrtf(bend * (2 * lost + bend)));
    *gain = g * (1 - *pole);
}

// The wet signal's gain: of an impulse all lines together give g^2 + g^4 + ... = g^2 / (1 - g^2), of which a row takes
// 1/16. Rooms so large and dry that hardly anything comes round (g^2 below 0.1) are left weak.
WT_SHARED_FN float reverb_level(const reverb_plan *p, float decay_s)
{
    float rounds = fminf(13.815511f * p->mean_length / (p->rate_hz * decay_s), 2.3025851f);
    return sqrtf(REVERB_LINES * expm1f(rounds) / (float)(p->channels_in > 1 ? 2 : 1));
}

// v: decay_s, damping_hz, pre_delay_ms, low_cut_hz, diffusion, modulation, width, mix
WT_SHARED_FN void reverb_design(const reverb_plan *p, const float *v0, const float *v1, reverb_coeffs *k)
{
    float half = sinf((float)WT_PI * fminf(v0[1] / p->rate_hz, 0.49f));
    biquad_section(BIQUAD_HIGHPASS, p->rate_hz, v0[3], 0.70710678f, 0, &k->low_cut);
    for (int i = 0; i < REVERB_LINES; i++) {
        reverb_damping((float)p->length[i] / p->rate_hz, v0[0], half * half, &k->gain[i], &k->pole[i]);
        k->power[i][0] = k->pole[i];
        for (int d = 1; d < 5; d++) k->power[i][d] = k->power[i][d - 1] * k->power[i][d - 1];
    }
    const float frames = p->rate_hz * 1e-3f, pre[2] = {v0[2] * frames, v1[2] * frames}, depth[2] = {0.0f, 0.0f};
    lfo_delay_design(pre, depth, 0, &k->pre);
    float wet0 = v0[7] * reverb_level(p, v0[0]), wet1 = v1[7] * reverb_level(p, v1[0]);
    k->wet = wet0, k->wet_slope = (wet1 - wet0) / WT_QUANTUM;
    k->mix = v0[7], k->mix_slope = (v1[7] - v0[7]) / WT_QUANTUM;
    k->side = v0[6], k->side_slope = (v1[6] - v0[6]) / WT_QUANTUM;
    k->diffusion = v0[4], k->twist = REVERB_TWIST * v0[5];
}

// The pre-delay's output at one frame; the input already stands in its ring.
WT_SHARED_FN float reverb_pre(const reverb_plan *p, const reverb_coeffs *k, const float *ring, long long position)
{
    return lfo_read(&k->pre, ring, p->pre_mask, position, (int)position & (WT_QUANTUM - 1), 0);
}

// Dry and wet of one frame; `out` gets one or two channels.
WT_SHARED_FN void reverb_blend(const reverb_coeffs *k, long long position, const float *dry, float left, float right,
                               int n_out, float *out)
{
    float at = (float)((int)position & (WT_QUANTUM - 1));
    float mix = k->mix + k->mix_slope * at, wet = k->wet + k->wet_slope * at, side = k->side + k->side_slope * at;
    float middle = 0.5f * (left + right), half = 0.5f * side * (left - right);
    out[0] = dry[0] - mix * dry[0] + wet * (n_out > 1 ? middle + half : left);
    if (n_out > 1) out[1] = dry[1] - mix * dry[1] + wet * (middle - half);
}
#endif
