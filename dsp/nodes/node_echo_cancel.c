#include "node_echo_cancel_kernel.h"
#include "echo_rules.h"
#include "ring.h"
#include "spectral_node.h"

#include <math.h>
#include <stdlib.h>

static const wt_param_info params[ECHO_N_PARAMS] = {
    {"amount", "", 0, 1, 1, 0, "of the echo that is taken off; 0 = the microphone, delayed"},
};

static const wt_option_info options[] = {
    {"tail_ms", NULL, "256", "longest echo, from playback to microphone, device delays included, 10 to 2000"},
    {"block", NULL, "0", "frames of a part of the filter, a power of two from 64 to 2048: the latency; 0 = near 10 ms"},
};

static const char *const readings[ECHO_N_READINGS] = {"down_db", "playback_db"};

static wt_status choose_block(const wt_node_setup *setup, int *block)
{
    double asked;
    wt_status status = wt_setup_number(setup, "block", 0, SPECTRAL_MAX_FFT / 2, &asked);
    if (status) return status;
    if (asked > 0) return wt__spectral_fft_size(setup, "block", SPECTRAL_MIN_FFT / 2, SPECTRAL_MAX_FFT / 2, block);
    *block = SPECTRAL_MIN_FFT / 2;
    while (*block < SPECTRAL_MAX_FFT / 2 && *block * 1.5 < 0.01 * wt_setup_rate_hz(setup)) *block *= 2;
    return WT_OK;
}

// Transforms of 2 blocks under no window.
static wt_status plan_transforms(const wt_node_setup *setup, int mics, int block, int own_floats, int shared_floats,
                                 wt_node_plan *out)
{
    int table;
    double *ones = malloc(sizeof *ones * (size_t)(2 * block));
    if (!ones) return wt_fail(WT_ERR_NO_MEMORY, "no memory for a window of %d frames", 2 * block);
    for (int k = 0; k < 2 * block; k++) ones[k] = 1;
    wt_status status = wt__spectral_plan(setup,
                                         &(wt__spectral_config){.n_fft = 2 * block,
                                                                .hop = block,
                                                                .channels = mics,
                                                                .window = ones,
                                                                .plan_bytes = sizeof(node_echo_cancel_plan),
                                                                .own_floats = own_floats,
                                                                .shared_floats = shared_floats},
                                         out, &table);
    free(ones);
    return status;
}

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    const int side = wt_setup_side_channels(setup), mics = wt_setup_channels(setup, 0) - (side ? 0 : 1);
    const double rate_hz = wt_setup_rate_hz(setup);
    int block;
    double tail_ms;
    wt_status status = choose_block(setup, &block);
    if (!status) status = wt_setup_number(setup, "tail_ms", 10, 2000, &tail_ms);
    if (status) return status;
    if (mics < 1)
        return wt_fail(WT_ERR_BAD_ARG, "1 channel and no side chain, want a side chain or playback in the last of 2 or "
                                       "more channels");
    const int row = (block + 1 + 15) / 16 * 16, parts = (int)ceil(tail_ms * 1e-3 * rate_hz / block);
    const int own_floats = (int)(sizeof(echo_voice) / sizeof(float)) + block + (4 + 3 * parts) * row;
    const int shared_floats = (int)(sizeof(echo_common) / sizeof(float)) + 2 * block + 3 * parts * row;
    status = plan_transforms(setup, mics, block, own_floats, shared_floats, out);
    if (status) return status;
    node_echo_cancel_plan *p = out->plan;
    p->rules = wt__echo_rules(block / rate_hz);
    p->n_parts = parts, p->row = row, p->part_teams = p->base.n_teams;
    while (p->part_teams < mics * parts && p->part_teams < SPECTRAL_MAX_TEAMS &&
           2 * p->part_teams * spectral_team_floats(2 * block) <= SPECTRAL_SCRATCH)
        p->part_teams *= 2;
    out->scratch_floats = p->part_teams * spectral_team_floats(2 * block);
    out->coeffs_bytes = sizeof(node_echo_cancel_coeffs);
    out->latency_frames = block;
    return WT_OK;
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    node_echo_cancel_design(plan, v0, v1, coeffs);
}

// ---- the loops over bins, for each set of vector instructions

WT_CLONES static void hear(const node_echo_cancel_plan *p, float *x, const float *re, const float *im)
{
    echo_hear((spectral_team){0}, p, x, re, im);
}

WT_CLONES static void imagine(const node_echo_cancel_plan *p, echo_common *s, echo_voice *v, long long t,
                              wt__spectral_work *work)
{
    echo_imagine((spectral_team){0}, p, s, v, t, work->re, work->im);
}

WT_CLONES static void keep_error(const node_echo_cancel_plan *p, echo_voice *v, const wt__spectral_work *work)
{
    echo_listen((spectral_team){0}, p, v, work->re, work->im);
}

WT_CLONES static void gradient(const node_echo_cancel_plan *p, echo_common *s, echo_voice *v, long long t, int part,
                               wt__spectral_work *work)
{
    echo_gradient((spectral_team){0}, p, s, v, t, part, work->re, work->im);
}

WT_CLONES static void move(const node_echo_cancel_plan *p, echo_common *s, echo_voice *v, long long t, int part,
                           const wt__spectral_work *work)
{
    echo_move((spectral_team){0}, p, s, v, t, part, work->re, work->im);
}

// ---- the end of a block

static void take_playback(const node_echo_cancel_plan *p, const wt__real_core *fft, echo_common *s, long long end,
                          long long t, wt__spectral_work *work)
{
    const float *playback = echo_playback(s);
    float sum = 0;
    for (int k = 0; k < p->base.n_fft; k++) {
        const float x = playback[(end - p->base.n_fft + k) & (p->base.in_ring - 1)];
        sum += x * x;
    }
    s->power = sum / (float)p->base.n_fft;
    wt__spectral_forward(&p->base, fft, playback, end, work);
    hear(p, echo_spectrum(p, s, t, 0), work->re, work->im);
}

// Leaves zeros and the error in work->z.
static void take_off(const node_echo_cancel_plan *p, echo_voice *v, const float *ring, long long end, float *z)
{
    const int block = p->base.hop, mask = p->base.in_ring - 1;
    const float scale = 1.0f / (float)p->base.n_fft;
    float mic_power = 0, error_power = 0, *ready = echo_ready(v);
    for (int i = 0; i < block; i++) {
        const float mic = ring[(end - block + i) & mask], error = mic - z[block + i] * scale;
        mic_power += mic * mic, error_power += error * error;
    }
    const float before = v->worth.trust;
    v->worth = echo_judge(&p->rules, v->worth, mic_power / (float)block, error_power / (float)block);
    for (int i = 0; i < block; i++) {
        const float echo = z[block + i] * scale;
        ready[i] = (before + (v->worth.trust - before) * (float)i / (float)block) * echo;
        z[block + i] = ring[(end - block + i) & mask] - echo;
        z[i] = 0;
    }
}

static void learn(const node_echo_cancel_plan *p, const wt__real_core *fft, echo_common *s, echo_voice *v, long long t,
                  int part, wt__spectral_work *work)
{
    const int block = p->base.hop;
    gradient(p, s, v, t, part, work);
    wt__spectral_inverse(&p->base, fft, work);
    for (int i = 0; i < block; i++) work->z[i] *= 1.0f / (float)p->base.n_fft, work->z[block + i] = 0;
    wt__spectral_bins(&p->base, fft, work);
    move(p, s, v, t, part, work);
}

static void end_block(const wt_node_io *io, const node_echo_cancel_plan *p, float *state, long long end)
{
    const wt__real_core *fft = io->host;
    const spectral_team team = {0};
    const long long t = end / p->base.hop;
    echo_common *s = echo_common_of(p, state);
    wt__spectral_work work;
    take_playback(p, fft, s, end, t, &work);
    for (int c = 0; c < p->base.channels; c++) {
        echo_voice *v = echo_voice_of(p, state, c);
        if (s->started == 0) echo_doubt_all(team, p, v), v->worth.trust = 1;
        imagine(p, s, v, t, &work);
        wt__spectral_inverse(&p->base, fft, &work);
        take_off(p, v, spectral_channel(&p->base, state, c), end, work.z);
        wt__spectral_bins(&p->base, fft, &work);
        keep_error(p, v, &work);
        if (v->worth.error_power > ECHO_WORSE * v->worth.mic_power) echo_doubt_all(team, p, v);
        for (int part = 0; part < p->n_parts && s->power > ECHO_SILENT; part++) learn(p, fft, s, v, t, part, &work);
    }
    s->started = 1;
    echo_show(p, state, io->readings);
}

// ---- a block of the chain

static void take_in(const wt_node_io *io, const node_echo_cancel_plan *p, float *state, int at, int n)
{
    const int mics = p->base.channels, n_heard = io->side ? io->side_channels : 1;
    const float *heard = (io->side ? io->side : io->in[0] + mics * io->stride) + at;
    float tame[WT_CHAIN_BLOCK];
    for (int f = 0; f < n; f++) {
        float sum = 0;
        for (int h = 0; h < n_heard; h++) sum += heard[h * io->stride + f];
        tame[f] = echo_tame(sum / (float)n_heard);
    }
    wt__ring_write(echo_playback(echo_common_of(p, state)), p->base.in_ring, io->position + at, tame, n);
    for (int c = 0; c < mics; c++) {
        const float *in = io->in[0] + c * io->stride + at;
        for (int f = 0; f < n; f++) tame[f] = echo_tame(in[f]);
        wt__ring_write(spectral_channel(&p->base, state, c), p->base.in_ring, io->position + at, tame, n);
    }
}

static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    const node_echo_cancel_plan *p = plan;
    const node_echo_cancel_coeffs *k = coeffs;
    const int block = p->base.hop;
    for (int at = 0, n; at < io->n_frames; at += n) {
        const long long position = io->position + at;
        const int phase = (int)(position % block);
        n = io->n_frames - at < block - phase ? io->n_frames - at : block - phase;
        take_in(io, p, state, at, n);
        for (int c = 0; c < p->base.channels; c++) {
            float *out = io->out + c * io->stride + at;
            const float *ready = echo_ready(echo_voice_of(p, state, c)) + phase;
            wt__ring_read(spectral_channel(&p->base, state, c), p->base.in_ring, position - block, out, n);
            for (int f = 0; f < n; f++) out[f] -= echo_amount(k, position + f) * ready[f];
        }
        if (n == block - phase) end_block(io, p, state, position + n);
    }
}

const wt_node_type wt__node_echo_cancel = {
    .name = "echo_cancel",
    .summary = "takes what the loudspeaker plays out of what microphones hear; playback is the side chain, or the last "
               "channel, which ends here",
    .params = params,
    .n_params = ECHO_N_PARAMS,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .readings = readings,
    .n_readings = ECHO_N_READINGS,
    .flags = WT_NODE_SIDE_CHAIN,
    .plan = plan,
    .design = design,
    .process = process,
    .release = wt__spectral_release,
    .kernel = "node_echo_cancel",
};
