// Every stage is a loop over one block: those without memory vectorise, the recursions run on their own with the
// shortest possible path from one frame to the next.
#include "dynamics.h"
#include "ring.h"

#include <math.h>

const char *const wt__dynamics_readings[1] = {"gain_reduction_db"};

wt_status wt__dynamics_plan(const wt_node_setup *setup, wt_node_plan *out, int gate)
{
    double lookahead_ms;
    wt_status status = wt_setup_number(setup, "lookahead_ms", 0, 20, &lookahead_ms);
    return status ? status : wt__dynamics_fill(setup, out, sizeof(dynamics_plan), gate, lookahead_ms);
}

wt_status wt__dynamics_fill(const wt_node_setup *setup, wt_node_plan *out, size_t plan_bytes, int gate,
                            double lookahead_ms)
{
    wt_status status = wt__plan_alloc(out, plan_bytes);
    if (status) return status;
    dynamics_plan *p = out->plan;
    int channels = wt_setup_channels(setup, 0), side = wt_setup_side_channels(setup);
    p->rate_hz = (float)wt_setup_rate_hz(setup);
    p->rms = wt_setup_choice(setup, "detector");
    p->gate = gate;
    p->n_groups = wt_setup_choice(setup, "link") && (!side || side == channels) ? channels : 1;
    p->lookahead_frames = (int)(lookahead_ms * 0.001 * wt_setup_rate_hz(setup) + 0.5);
    p->ring_frames = p->lookahead_frames ? wt__ring_size(p->lookahead_frames) : 0;
    out->out_channels = channels;
    out->coeffs_bytes = sizeof(dynamics_coeffs);
    out->state_bytes = sizeof(dynamics_state) + sizeof(float) * (size_t)p->ring_frames * (size_t)channels;
    out->scratch_floats = p->n_groups * WT_CHAIN_BLOCK;
    out->latency_frames = p->lookahead_frames;
    return WT_OK;
}

WT_INLINE void find_level(const float *key, int stride, int channels, int n_frames, float *level)
{
    for (int n = 0; n < n_frames; n++) level[n] = fabsf(key[n]);
    for (int c = 1; c < channels; c++)
        for (int n = 0; n < n_frames; n++) level[n] = wt_max(fabsf(key[c * stride + n]), level[n]);
}

WT_INLINE void to_power(float *level, int n_frames, float pole, float *power)
{
    float mean = *power;
    for (int n = 0; n < n_frames; n++) level[n] = (1.0f - pole) * (level[n] * level[n]);
    for (int n = 0; n < n_frames; n++) level[n] = mean = level[n] + pole * mean;
    *power = mean;
}

WT_INLINE void open_gate(const float *level, int n_frames, long long position, const dynamics_coeffs *k,
                         dynamics_group *g, float *v)
{
    for (int n = 0; n < n_frames; n++) {
        g->open = level[n] >= k->open ? 1 : level[n] < k->close ? 0 : g->open;
        if (g->open) g->last_open = position + n + 1;
        v[n] = g->last_open && position + n + 1 - g->last_open <= k->hold_frames ? 1.0f : 0.0f;
    }
}

WT_INLINE void smooth(float *v, int n_frames, const dynamics_coeffs *k, dynamics_group *g)
{
    float a = k->attack, r = k->release, y1 = g->y1, y = g->y, rest[WT_CHAIN_BLOCK];
    for (int n = 0; n < n_frames; n++) rest[n] = (1.0f - r) * v[n];
    for (int n = 0; n < n_frames; n++) {
        y1 = wt_max(v[n], rest[n] + r * y1);
        v[n] = y = (1.0f - a) * y1 + a * y;
    }
    g->y1 = y1, g->y = y;
}

WT_CLONES static void group_gains(const wt_node_io *io, const dynamics_plan *p, const dynamics_coeffs *coeffs,
                                  dynamics_group *g, const float *key, int key_channels, float *gains)
{
    float level[WT_CHAIN_BLOCK], v[WT_CHAIN_BLOCK];
    const dynamics_coeffs k = *coeffs; // a copy, so that no store is taken for a change of it
    const int n_frames = io->n_frames, phase = (int)(io->position & (WT_QUANTUM - 1)), rms = p->rms;
    find_level(key, io->stride, key_channels, n_frames, level);
    if (rms) to_power(level, n_frames, k.rms, &g->power);
    if (p->gate) open_gate(level, n_frames, io->position, &k, g, v);
    else
        for (int n = 0; n < n_frames; n++) v[n] = dynamics_curve(&k, dynamics_level_db(level[n], rms));
    smooth(v, n_frames, &k, g);
    for (int n = 0; n < n_frames; n++) gains[n] = dynamics_gain(&k, v[n], (float)(phase + n));
}

WT_RT void wt__dynamics_gains(const wt_node_io *io, const dynamics_plan *p, const dynamics_coeffs *k,
                              dynamics_state *s, const float *key, int key_channels, float *gains)
{
    const int each = p->n_groups > 1 ? 1 : key_channels;
    float most = 0;
    for (int g = 0; g < p->n_groups; g++) {
        group_gains(io, p, k, &s->group[g], key + g * io->stride, each, gains + g * WT_CHAIN_BLOCK);
        most = wt_max(-(k->base_db + k->span_db * s->group[g].y), most);
    }
    io->readings[0] = most;
}

WT_CLONES static void apply(const float *x, const float *gain, float *y, int n_frames)
{
    for (int n = 0; n < n_frames; n++) y[n] = x[n] * gain[n];
}

WT_RT void wt__dynamics_process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    const dynamics_plan *p = plan;
    dynamics_state *s = state;
    const float *key = io->side ? io->side : io->in[0];
    wt__dynamics_gains(io, p, coeffs, s, key, io->side ? io->side_channels : io->channels[0], io->scratch);
    for (int c = 0; c < io->out_channels; c++) {
        const float *x = io->in[0] + c * io->stride;
        float delayed[WT_CHAIN_BLOCK];
        if (p->lookahead_frames) {
            float *ring = s->ring + (size_t)c * (size_t)p->ring_frames;
            wt__ring_write(ring, p->ring_frames, io->position, x, io->n_frames);
            wt__ring_read(ring, p->ring_frames, io->position - p->lookahead_frames, delayed, io->n_frames);
            x = delayed;
        }
        apply(x, io->scratch + (p->n_groups > 1 ? c : 0) * WT_CHAIN_BLOCK, io->out + c * io->stride, io->n_frames);
    }
}
