#include "node_pitch_kernel.h"
#include "node_types.h"
#include "ring.h"

#include <math.h>

static const wt_param_info params[PITCH_N_PARAMS] = {
    {"min_confidence", "", 0, 1, 0.7f, 0, "below it f0_hz and note show 0"},
    {"a4_hz", "Hz", 400, 480, 440, 0, "what note 69 is tuned to"},
};

static const wt_option_info options[] = {
    {"fmin_hz", NULL, "60", "lowest pitch that is found; frames are 2.5 periods of it"},
    {"fmax_hz", NULL, "1200", "highest pitch"},
    {"hop", NULL, "512", "frames between readings, 64 to 8192"},
    {"threshold", NULL, "0.1", "a period is taken as soon as its difference is below this part of the mean"},
};

// Frequency, periodicity 0 to 1, and MIDI number with its fraction.
static const char *const readings[PITCH_N_READINGS] = {"f0_hz", "confidence", "note"};

static wt_status get_options(const wt_node_setup *setup, node_pitch_plan *p)
{
    const double rate_hz = wt_setup_rate_hz(setup);
    double fmin, fmax, hop, threshold;
    wt_status status = wt_setup_number(setup, "fmin_hz", 20, rate_hz / 8, &fmin);
    if (!status) status = wt_setup_number(setup, "fmax_hz", fmin, rate_hz / 4, &fmax);
    if (!status) status = wt_setup_number(setup, "hop", 64, 8192, &hop);
    if (!status) status = wt_setup_number(setup, "threshold", 0.01, 1, &threshold);
    if (status) return status;
    p->rate_hz = (float)rate_hz, p->threshold = (float)threshold, p->hop = (int)hop;
    p->first = (int)(rate_hz / fmax), p->last = (int)ceil(rate_hz / fmin);
    p->width = (p->last * 3 / 2 + 15) / 16 * 16;
    p->frame = p->width + p->last + 1;
    p->lags = (p->last + 2 + 63) / 64 * 64;
    if (p->frame <= PITCH_MAX_FRAME) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG, "fmin_hz %g takes frames of %d at %g Hz, want at most %d", fmin, p->frame, rate_hz,
                   PITCH_MAX_FRAME);
}

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    node_pitch_plan p = {.channels = wt_setup_channels(setup, 0)};
    wt_status status = get_options(setup, &p);
    if (!status) status = wt__plan_alloc(out, sizeof p);
    if (status) return status;
    p.ring = wt__ring_size(p.frame);
    *(node_pitch_plan *)out->plan = p;
    out->out_channels = p.channels;
    out->coeffs_bytes = sizeof(node_pitch_coeffs);
    out->state_bytes = sizeof(node_pitch_state) + sizeof(float) * (size_t)p.ring;
    out->scratch_floats = (p.frame + p.lags) * 33 / 32 + 2 + 2 * p.lags;
    return WT_OK;
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    node_pitch_design(plan, v0, v1, coeffs);
}

#include "node_pitch_level.h"

static int pick(const node_pitch_plan *p, const float *normal)
{
    int lowest = 0;
    for (int lag = p->first; lag <= p->last; lag++) {
        if (!pitch_is_trough(normal, lag)) continue;
        if (normal[lag] < p->threshold) return lag;
        if (!lowest || normal[lag] < normal[lowest]) lowest = lag;
    }
    return lowest;
}

// scratch: the frame with a margin of zeros, d, d normalised
static void find_pitch(const wt_node_io *io, const node_pitch_plan *p, const node_pitch_coeffs *k, const float *ring,
                       long long end)
{
    float *x = io->scratch, *d = x + p->frame + p->lags, *normal = d + p->lags, total = 0;
    wt__ring_read(ring, p->ring, end - p->frame, x, p->frame);
    memset(x + p->frame, 0, sizeof *x * (size_t)p->lags);
    for (int lag = 0; lag < p->lags; lag += 64) WT_LEVEL_CALL(differences, x, lag, p->width, d + lag);
    for (int lag = 1; lag < p->last + 2; lag++) {
        total += d[lag];
        normal[lag] = pitch_normal(d[lag], total, lag);
    }
    pitch_show(p, k, d, normal, pick(p, normal), io->readings);
}

static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    const node_pitch_plan *p = plan;
    node_pitch_state *s = state;
    float *ring = (float *)(s + 1), mono[WT_CHAIN_BLOCK];
    for (int at = 0, n; at < io->n_frames; at += n) {
        const long long position = io->position + at;
        const int left = p->hop - (int)(position % p->hop);
        n = io->n_frames - at < left ? io->n_frames - at : left;
        memset(mono, 0, sizeof mono);
        for (int c = 0; c < p->channels; c++)
            for (int f = 0; f < n; f++) mono[f] += io->in[0][c * io->stride + at + f];
        for (int f = 0; f < n; f++) mono[f] /= (float)p->channels;
        wt__ring_write(ring, p->ring, position, mono, n);
        if (n < left) continue;
        find_pitch(io, p, coeffs, ring, position + n);
        s->shown = position + n;
    }
    for (int c = 0; c < p->channels && io->out != io->in[0]; c++)
        memcpy(io->out + c * io->stride, io->in[0] + c * io->stride, sizeof(float) * (size_t)io->n_frames);
}

const wt_node_type wt__node_pitch = {
    .name = "pitch",
    .summary = "shows the pitch: frequency, confidence and note; audio passes unchanged",
    .params = params,
    .n_params = PITCH_N_PARAMS,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .readings = readings,
    .n_readings = PITCH_N_READINGS,
    .plan = plan,
    .design = design,
    .process = process,
    .kernel = "node_pitch",
    .flags = WT_NODE_CUDA_AFTER,
};
