// pitch_shift: a phase vocoder stretches time by the pitch ratio, and the stretched stream is read that much faster.
//
// Stretched time s runs on by the ratio each frame, in units of 2^-24 frames, so that no rounding adds up and blocks
// do not matter. Whenever s passes a multiple of the hop S = n_fft / 4, seen at the end of a quantum, the n_fft frames
// before that moment are transformed, and those S frames earlier; each bin is turned to go on where the output's
// spectrum before left it, together with the bins around its peak, and the result is added to a ring at stretched time.
// It is read by a windowed sinc at s of D frames ago:
//
//     input centred at n_fft / 2 before now  ->  stretched place s  ->  heard when s of D frames ago is there
//
// so the latency is n_fft / 2 + D whatever the pitch. D is so long that at the lowest ratio r all frames over the place
// are there: (n_fft / 2 + half a sinc) / r + a quantum. Above the ratio's Nyquist frequency bins are silent.
// Source: J. Laroche and M. Dolson, Improved phase vocoder time-scale modification of audio, 1999: identity phase
// locking. They choose a peak for each bin, and between two almost equal bins a rounding error chooses: the region
// turns another way, and as phases add up, all that comes after. So here nothing is chosen. A bin takes the turn of its
// neighbours as far as they are higher (SHIFT_CLIMB steps uphill, weights by the 8th power of the power), and where
// power rises steeply the input's own phase is taken up again, which keeps attacks whole and ends what errors there
// are.
#ifndef WT_NODE_PITCH_SHIFT_KERNEL_H
#define WT_NODE_PITCH_SHIFT_KERNEL_H
#include "spectral_node_kernel.h"

#define SHIFT_BITS   24
#define SHIFT_UNIT   (1ll << SHIFT_BITS) // one frame of stretched time
#define SHIFT_MOST   12                  // semitones either way
#define SHIFT_TAPS   32                  // of the sinc
#define SHIFT_PHASES 512                 // of its table, in a frame
#define SHIFT_HOPS   4                   // of n_fft
#define SHIFT_CLIMB  2                   // bins that a turn reaches from its peak: half the main lobe of Hann's window
#define SHIFT_MARGIN 4                   // of rows of power
#define SHIFT_ATTACK 4.0f                // times the power a hop before

#define SHIFT_ROUNDS 8     // of the envelope
#define SHIFT_LIFT   6.64f // most a bin is moved by the envelope, in octaves of amplitude: 40 dB

enum { SHIFT_SEMITONES, SHIFT_N_PARAMS };

// A channel's own floats: the output's spectrum before [2][row], the input's here [2][row], its power [row] and how far
// that is above SHIFT_ATTACK times the power a hop before [row], how far a bin follows the one below and the one above
// [2][row]; where formants are kept the envelope [row]. Rows have room for SHIFT_MARGIN zeros at either end. The base's
// ring of output holds sums at stretched time.
typedef struct node_pitch_shift_plan {
    spectral_plan base;
    int row, delay_quanta; // D
    int ratios;            // of the ring of ratios, a power of two of quanta
    int sinc;              // floats from the plan's start: [SHIFT_PHASES + 1][SHIFT_TAPS]
    float lowest;          // semitones
    int order;             // of the cepstrum that makes the envelope; 0 = formants move with the pitch
} node_pitch_shift_plan;

typedef struct node_pitch_shift_coeffs {
    int step; // stretched time a frame, in units
} node_pitch_shift_coeffs;

// What the channels share. Stretched time is kept less the absolute position, so that it is 0 at rest. The ring of
// ratios lies behind: int [ratios], each quantum's step less one frame.
typedef struct node_pitch_shift_shared {
    long long now, heard; // heard: D frames ago
} node_pitch_shift_shared;

// Steps are multiples of 2^-16 frames, 0.03 cents: so coarse that both backends round a double to the same.
WT_SHARED_FN void node_pitch_shift_design(const node_pitch_shift_plan *p, const float *v0, const float *v1,
                                          node_pitch_shift_coeffs *k)
{
    (void)v0;
    k->step = (int)(exp2((double)wt_max(v1[SHIFT_SEMITONES], p->lowest) / 12) * 65536 + 0.5) * 256;
}

// A piece of a quantum: where stretched time stands, and what becomes due at its end.
typedef struct shift_moment {
    long long now, heard; // at its first frame, in units
    int heard_step;       // of D frames ago
    int due;              // 1: a spectrum is due at its end
    long long end, place; // of that spectrum: last frame of input, middle in stretched time
} shift_moment;

WT_SHARED_FN shift_moment shift_moment_of(const node_pitch_shift_plan *p, const node_pitch_shift_coeffs *k,
                                          const node_pitch_shift_shared *s, long long position, int n)
{
    const int *ratios = (const int *)(s + 1);
    const long long then = position - (long long)p->delay_quanta * WT_QUANTUM, hop = p->base.hop * SHIFT_UNIT;
    shift_moment m;
    m.now = position * SHIFT_UNIT + s->now;
    m.heard = then * SHIFT_UNIT + s->heard;
    m.heard_step = ratios[(position / WT_QUANTUM - p->delay_quanta) & (p->ratios - 1)] + (int)SHIFT_UNIT;
    const long long now = m.now + (long long)n * k->step, begin = now - (long long)WT_QUANTUM * k->step;
    m.place = now & -hop;
    m.due = (position + n) % WT_QUANTUM == 0 && m.place != (begin & -hop);
    m.end = position + n - (now - m.place) / k->step;
    m.place /= SHIFT_UNIT;
    return m;
}

// Stretched time moves on by the piece.
WT_SHARED_FN void shift_move_on(const node_pitch_shift_plan *p, const node_pitch_shift_coeffs *k, const shift_moment *m,
                                node_pitch_shift_shared *s, long long position, int n)
{
    int *ratios = (int *)(s + 1);
    s->now += (long long)n * (k->step - (int)SHIFT_UNIT);
    s->heard += (long long)n * (m->heard_step - (int)SHIFT_UNIT);
    if ((position + n) % WT_QUANTUM == 0) ratios[(position / WT_QUANTUM) & (p->ratios - 1)] = k->step - (int)SHIFT_UNIT;
}

// One sample of the stretched stream at `place` in units; linear between the phases of the table.
WT_SHARED_FN float shift_read(const node_pitch_shift_plan *p, const float *ring, long long place)
{
    const int mask = p->base.out_ring - 1, at = (int)(((place >> SHIFT_BITS) - SHIFT_TAPS / 2 + 1) & mask);
    const int part = (int)(place & (SHIFT_UNIT - 1)), fine = (int)SHIFT_UNIT / SHIFT_PHASES;
    const float *h = spectral_table(&p->base, p->sinc) + part / fine * SHIFT_TAPS;
    const float t = (float)(part % fine) / (float)fine;
    float y = 0.0f;
    for (int j = 0; j < SHIFT_TAPS; j++) y += (h[j] + t * (h[j + SHIFT_TAPS] - h[j])) * ring[(at + j) & mask];
    return y;
}

// How far each bin follows its neighbours: all but wholly the highest of the three, by half and half at a tie.
WT_SHARED_FN void shift_weigh(spectral_team team, const float *power, float *left, float *right, int bins)
{
    (void)team;
    SPECTRAL_EACH(k, bins)
    {
        const float most = wt_max(wt_max(power[k - 1], power[k]), power[k + 1]), safe = most > 0.0f ? most : 1.0f;
        float l = power[k - 1] / safe, m = power[k] / safe, r = power[k + 1] / safe;
        l *= l, l *= l, l *= l, m *= m, m *= m, m *= m, r *= r, r *= r, r *= r; // the 8th power
        const float sum = most > 0.0f ? 1.0f / (l + m + r) : 0.0f;
        left[k] = l * sum, right[k] = r * sum;
    }
}

// What turns the input's spectrum a hop earlier (re, im) to the output's `before`, times their size; and towards 1, the
// input's own phase, as far as the power around the bin has risen.
WT_SHARED_FN void shift_wanted(spectral_team team, const float *before, const float *re, const float *im,
                               const float *rise, float *x, float *y, int row, int bins)
{
    (void)team;
    SPECTRAL_EACH(k, bins)
    {
        const float risen = rise[k - 2] + rise[k - 1] + rise[k] + rise[k + 1] + rise[k + 2];
        x[k] = before[k] * re[k] + before[row + k] * im[k] + wt_max(risen, 0.0f);
        y[k] = before[row + k] * re[k] - before[k] * im[k];
    }
}

// One step uphill: from x, y to u, v.
WT_SHARED_FN void shift_climb(spectral_team team, const float *left, const float *right, const float *x, const float *y,
                              float *u, float *v, int bins)
{
    (void)team;
    SPECTRAL_EACH(k, bins)
    {
        const int a = k > 0 ? k - 1 : 0, b = k + 1 < bins ? k + 1 : k;
        const float l = left[k], r = right[k], m = 1.0f - l - r;
        u[k] = l * x[a] + m * x[k] + r * x[b];
        v[k] = l * y[a] + m * y[k] + r * y[b];
    }
}

// Bins below this stay under half the rate when the pitch is raised.
WT_SHARED_FN int shift_keep(const node_pitch_shift_plan *p, int step)
{
    return step > SHIFT_UNIT ? (int)((p->base.bins - 1) * SHIFT_UNIT / step) : p->base.bins;
}

// ---- formants: bin k will be heard at the ratio times k, so it gets the envelope V there for V here. V is the true
// envelope: the log magnitudes smoothed by their first cepstral coefficients; what lies below the smooth curve is
// lifted to it and smoothed again, SHIFT_ROUNDS times whatever comes out, and no harmonics are looked for: nothing is
// decided.
// Source: S. Imai and Y. Abe, 1979; A. Roebel and X. Rodet, DAFx 2005.

WT_SHARED_FN float *shift_lifted(const node_pitch_shift_plan *p, float *own) { return own + 6 * p->row; }
WT_SHARED_FN float *shift_smooth(const node_pitch_shift_plan *p, float *own) { return own + 8 * p->row; }

// Octaves of amplitude, no deeper than -120 dB of a full-scale sine.
WT_SHARED_FN void shift_measure(spectral_team team, const node_pitch_shift_plan *p, float *own)
{
    (void)team;
    const float *re = own + 2 * p->row, *im = re + p->row, peak = 0.25f * (float)p->base.n_fft;
    float *lifted = shift_lifted(p, own);
    SPECTRAL_EACH(k, p->base.bins) lifted[k] = 0.5f * wt_log2(re[k] * re[k] + im[k] * im[k] + 1e-12f * peak * peak);
}

// What remains of point i of a cepstrum that was made times n_fft.
WT_SHARED_FN float shift_lifter(const node_pitch_shift_plan *p, float x, int i)
{
    const int n = p->base.n_fft;
    return i <= p->order || i >= n - p->order ? x / (float)n : 0.0f;
}

// After a round: `smooth` is kept, and what lies below it is lifted.
WT_SHARED_FN void shift_raise(spectral_team team, const node_pitch_shift_plan *p, float *own, const float *re)
{
    (void)team;
    float *lifted = shift_lifted(p, own), *smooth = shift_smooth(p, own);
    SPECTRAL_EACH(k, p->base.bins)
    {
        smooth[k] = re[k];
        lifted[k] = wt_max(lifted[k], re[k]);
    }
}

WT_SHARED_FN float shift_formant_gain(const node_pitch_shift_plan *p, const float *smooth, int step, int k)
{
    const float at = (float)step / (float)SHIFT_UNIT * (float)k;
    const int low = at < (float)(p->base.bins - 2) ? (int)at : p->base.bins - 2;
    const float there = smooth[low] + wt_min(at - (float)low, 1.0f) * (smooth[low + 1] - smooth[low]);
    return wt_exp2(wt_min(wt_max(there - smooth[k], -SHIFT_LIFT), SHIFT_LIFT));
}

// `here` holds the input's spectrum, re and im the one a hop earlier: they become the output's. Spare holds two planes
// of `plane` floats.
WT_SHARED_FN void shift_turn(spectral_team team, const node_pitch_shift_plan *p, float *own, float *re, float *im,
                             float *spare, int plane, int step)
{
    (void)team;
    const int bins = p->base.bins, row = p->row, keep = shift_keep(p, step);
    float *before = own, *here = own + 2 * row, *power = own + 4 * row + SHIFT_MARGIN;
    float *rise = own + 5 * row + SHIFT_MARGIN, *left = own + 6 * row, *right = own + 7 * row;
    float *x = spare, *y = spare + plane, *u = re, *v = im;
    SPECTRAL_EACH(k, bins)
    {
        power[k] = here[k] * here[k] + here[row + k] * here[row + k];
        rise[k] = power[k] - SHIFT_ATTACK * (re[k] * re[k] + im[k] * im[k]);
    }
    SPECTRAL_SYNC();
    shift_weigh(team, power, left, right, bins);
    shift_wanted(team, before, re, im, rise, x, y, row, bins);
    SPECTRAL_SYNC();
    for (int i = 0; i < SHIFT_CLIMB; i++) {
        shift_climb(team, left, right, x, y, u, v, bins);
        SPECTRAL_SYNC();
        float *t = x;
        x = u, u = t, t = y, y = v, v = t;
    }
    SPECTRAL_EACH(k, bins)
    {
        const float most = wt_max(fabsf(x[k]), fabsf(y[k])), safe = most > 0.0f ? most : 1.0f;
        const float c = x[k] / safe, s = y[k] / safe;
        const float size = 1.0f / sqrtf(wt_max(c * c + s * s, 0.25f)); // of 1 or more, or both are 0
        const float cosine = most > 0.0f ? c * size : 1.0f, sine = s * size;
        const float a = k < keep ? here[k] : 0.0f, b = k < keep ? here[row + k] : 0.0f;
        const float gain = p->order ? shift_formant_gain(p, shift_smooth(p, own), step, k) : 1.0f;
        before[k] = a * cosine - b * sine;
        before[row + k] = a * sine + b * cosine;
        re[k] = gain * before[k], im[k] = gain * before[row + k];
    }
}
#endif
