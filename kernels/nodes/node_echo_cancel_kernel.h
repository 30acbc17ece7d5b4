// echo_cancel: the partitioned filter of dsp/voice/echo.c as a node, with blocks of a power of two. Whenever the
// absolute position is a multiple of the block the last 2 blocks of playback are transformed, each microphone's echo is
// made of the last n_parts spectra and taken off, and its filter learns from the error.
//
// Playback is the mean of the side chain's channels, or, without one, the input's last channel, which ends here.
#ifndef WT_NODE_ECHO_CANCEL_KERNEL_H
#define WT_NODE_ECHO_CANCEL_KERNEL_H
#include "echo_kernel.h"
#include "spectral_node_kernel.h"

enum { ECHO_AMOUNT, ECHO_N_PARAMS };
enum { ECHO_DOWN_DB, ECHO_PLAYBACK_DB, ECHO_N_READINGS };

// base: transforms of 2 blocks, a channel a microphone. A microphone's ring holds its input. Its own floats:
// echo_voice, what goes out [block], the error's spectrum and the steps [3][row], the smoothed power of the error
// [row], weights and doubts [3][n_parts][row]. Shared: echo_common, the ring of playback [in_ring], its spectra and
// their powers [3][n_parts][row].
typedef struct node_echo_cancel_plan {
    spectral_plan base;
    echo_rules rules;
    int n_parts, row, part_teams; // teams of warps that take parts
} node_echo_cancel_plan;

typedef struct node_echo_cancel_coeffs {
    float amount, slope;
} node_echo_cancel_coeffs;

typedef struct echo_voice {
    echo_worth worth;
    float unused[13];
} echo_voice;

typedef struct echo_common {
    float started; // 0 = nothing learnt, not even doubt
    float power;   // mean square of the last two blocks of playback
    float unused[14];
} echo_common;

WT_SHARED_FN void node_echo_cancel_design(const node_echo_cancel_plan *p, const float *v0, const float *v1,
                                          node_echo_cancel_coeffs *k)
{
    (void)p;
    k->amount = v0[ECHO_AMOUNT];
    k->slope = (v1[ECHO_AMOUNT] - v0[ECHO_AMOUNT]) / WT_QUANTUM;
}

WT_SHARED_FN float echo_amount(const node_echo_cancel_coeffs *k, long long position)
{
    return k->amount + k->slope * (float)(position & (WT_QUANTUM - 1));
}

// ---- where things lie

WT_SHARED_FN echo_voice *echo_voice_of(const node_echo_cancel_plan *p, float *state, int c)
{
    return (echo_voice *)(spectral_channel(&p->base, state, c) + p->base.own);
}
WT_SHARED_FN float *echo_ready(echo_voice *v) { return (float *)(v + 1); }
WT_SHARED_FN float *echo_error(const node_echo_cancel_plan *p, echo_voice *v) { return echo_ready(v) + p->base.hop; }
WT_SHARED_FN float *echo_steps(const node_echo_cancel_plan *p, echo_voice *v) { return echo_error(p, v) + 2 * p->row; }
WT_SHARED_FN float *echo_near(const node_echo_cancel_plan *p, echo_voice *v) { return echo_error(p, v) + 3 * p->row; }
// re, im and doubt of a part, each `echo_parts` after the one before.
WT_SHARED_FN float *echo_weights(const node_echo_cancel_plan *p, echo_voice *v, int part)
{
    return echo_error(p, v) + (4 + part) * p->row;
}
WT_SHARED_FN int echo_parts(const node_echo_cancel_plan *p) { return p->n_parts * p->row; }

WT_SHARED_FN echo_common *echo_common_of(const node_echo_cancel_plan *p, float *state)
{
    return (echo_common *)(state + p->base.shared);
}
WT_SHARED_FN float *echo_playback(echo_common *s) { return (float *)(s + 1); }
// re, im and power of the playback's spectrum of `part` blocks before block t.
WT_SHARED_FN float *echo_spectrum(const node_echo_cancel_plan *p, echo_common *s, long long t, int part)
{
    const int slot = (int)((t - part + p->n_parts) % p->n_parts);
    return echo_playback(s) + p->base.in_ring + slot * p->row;
}

// ---- what happens to bins; re and im are a transform's

// The newest spectrum of the playback.
WT_SHARED_FN void echo_hear(spectral_team team, const node_echo_cancel_plan *p, float *x, const float *re,
                            const float *im)
{
    (void)team;
    const int parts = echo_parts(p);
    SPECTRAL_EACH(k, p->base.bins)
    {
        x[k] = re[k], x[parts + k] = im[k];
        x[2 * parts + k] = re[k] * re[k] + im[k] * im[k];
    }
}

// The echo's spectrum, and what of D is the echo's.
WT_SHARED_FN void echo_imagine(spectral_team team, const node_echo_cancel_plan *p, echo_common *s, echo_voice *v,
                               long long t, float *re, float *im)
{
    (void)team;
    const int parts = echo_parts(p);
    float *expected = echo_steps(p, v);
    SPECTRAL_EACH(k, p->base.bins) re[k] = im[k] = expected[k] = 0.0f;
    for (int part = 0; part < p->n_parts; part++) {
        const float *x = echo_spectrum(p, s, t, part), *w = echo_weights(p, v, part);
        SPECTRAL_EACH(k, p->base.bins)
        {
            re[k] += w[k] * x[k] - w[parts + k] * x[parts + k];
            im[k] += w[k] * x[parts + k] + w[parts + k] * x[k];
            expected[k] += 0.5f * x[2 * parts + k] * w[2 * parts + k];
        }
    }
}

// The error's spectrum is kept, and the steps made of it.
WT_SHARED_FN void echo_listen(spectral_team team, const node_echo_cancel_plan *p, echo_voice *v, const float *re,
                              const float *im)
{
    (void)team;
    float *error = echo_error(p, v), *near = echo_near(p, v), *step = echo_steps(p, v);
    SPECTRAL_EACH(k, p->base.bins)
    {
        error[k] = re[k], error[p->row + k] = im[k];
        step[k] = echo_step(&p->rules, &near[k], step[k], re[k], im[k]);
    }
}

// All weights of a microphone are doubted at least so much.
WT_SHARED_FN void echo_doubt_all(spectral_team team, const node_echo_cancel_plan *p, echo_voice *v)
{
    (void)team;
    float *doubt = echo_weights(p, v, 0) + 2 * echo_parts(p);
    SPECTRAL_EACH(k, echo_parts(p)) doubt[k] = wt_max(doubt[k], ECHO_FIRST_DOUBT);
}

// re, im = doubt X* E / D of a part
WT_SHARED_FN void echo_gradient(spectral_team team, const node_echo_cancel_plan *p, echo_common *s, echo_voice *v,
                                long long t, int part, float *re, float *im)
{
    (void)team;
    const int parts = echo_parts(p), row = p->row;
    const float *x = echo_spectrum(p, s, t, part), *doubt = echo_weights(p, v, part) + 2 * parts;
    const float *error = echo_error(p, v), *step = echo_steps(p, v);
    SPECTRAL_EACH(k, p->base.bins)
    {
        const float gain = doubt[k] * step[k];
        re[k] = gain * (x[k] * error[k] + x[parts + k] * error[row + k]);
        im[k] = gain * (x[k] * error[row + k] - x[parts + k] * error[k]);
    }
}

WT_SHARED_FN void echo_move(spectral_team team, const node_echo_cancel_plan *p, echo_common *s, echo_voice *v,
                            long long t, int part, const float *re, const float *im)
{
    (void)team;
    const int parts = echo_parts(p);
    const float *x_power = echo_spectrum(p, s, t, part) + 2 * parts, *step = echo_steps(p, v);
    float *w = echo_weights(p, v, part);
    SPECTRAL_EACH(k, p->base.bins)
    {
        w[k] += re[k], w[parts + k] += im[k];
        w[2 * parts + k] = echo_doubt(&p->rules, w[2 * parts + k], step[k], x_power[k], w[k], w[parts + k]);
    }
}

// How much quieter the output is than the microphones, which the filters' errors tell, and how loud the playback.
WT_SHARED_FN void echo_show(const node_echo_cancel_plan *p, float *state, float *readings)
{
    float mics = 0.0f, out = 0.0f;
    for (int c = 0; c < p->base.channels; c++) {
        const echo_worth w = echo_voice_of(p, state, c)->worth;
        mics += w.mic_power, out += w.trust > 0.0f ? w.error_power : w.mic_power;
    }
    readings[ECHO_DOWN_DB] = spectral_db(mics) - spectral_db(out);
    readings[ECHO_PLAYBACK_DB] = spectral_db(echo_common_of(p, state)->power);
}
#endif
