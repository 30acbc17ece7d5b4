#include "node_vad_kernel.h"
#include "node_types.h"
#include "ring.h"

#include <math.h>

static const wt_param_info params[VAD_N_PARAMS] = {
    {"enter_db", "dB", 0.1f, 60, 8, 0, "above the floor, two windows of 10 ms running: speech begins"},
    {"leave_db", "dB", 0.1f, 60, 4, 0, "above the floor: speech goes on; at most enter_db"},
    {"min_db", "dB", -120, 0, -60, 0, "a quieter window is never speech"},
    {"hangover_ms", "ms", 0, 10000, 200, 0, "speech goes on so long after the last window that was loud enough"},
    {"mute_db", "dB", 0, 120, 0, 0, "how far what is not speech is turned down; 0 = it is only shown"},
    {"release_ms", "ms", 10, 2000, 100, 1, "time to turn it down; it opens within 10 ms"},
};

static const wt_option_info options[] = {
    {"lookahead_ms", NULL, "0", "the latency, 0 to 200; with 30 the first sound of speech passes whole"},
};

static const char *const readings[VAD_N_READINGS] = {"speech", "level_db", "floor_db"};

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    const double rate_hz = wt_setup_rate_hz(setup);
    double lookahead_ms;
    if (rate_hz < 8000) return wt_fail(WT_ERR_BAD_ARG, "rate %g Hz, want 8000 or more", rate_hz);
    wt_status status = wt_setup_number(setup, "lookahead_ms", 0, 200, &lookahead_ms);
    if (!status) status = wt__plan_alloc(out, sizeof(node_vad_plan));
    if (status) return status;
    node_vad_plan *p = out->plan;
    p->high_pole = exp(-2 * M_PI * VAD_HIGH_HZ / rate_hz);
    p->window = (int)lround(rate_hz / 100);
    p->channels = out->out_channels = wt_setup_channels(setup, 0);
    p->lookahead = (int)lround(lookahead_ms * 1e-3 * rate_hz);
    p->ring_frames = p->lookahead ? wt__ring_size(p->lookahead) : 0;
    out->coeffs_bytes = sizeof(node_vad_coeffs);
    out->state_bytes = sizeof(node_vad_state) + sizeof(float) * (size_t)p->channels * (size_t)p->ring_frames;
    out->latency_frames = out->tail_frames = p->lookahead;
    return WT_OK;
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    node_vad_design(plan, v0, v1, coeffs);
}

static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    const node_vad_plan *p = plan;
    const node_vad_coeffs *k = coeffs;
    node_vad_state *s = state;
    for (int done = 0, n; done < io->n_frames; done += n) {
        const long long position = io->position + done;
        const int at = (int)(position % p->window);
        n = io->n_frames - done < p->window - at ? io->n_frames - done : p->window - at;
        for (int c = 0; c < p->channels; c++) {
            const float *in = io->in[0] + c * io->stride + done;
            float *out = io->out + c * io->stride + done, *ring = s->ring + c * p->ring_frames;
            vad_hear(&s->voices[c], p->high_pole, in, n);
            if (p->lookahead) {
                wt__ring_write(ring, p->ring_frames, position, in, n);
                wt__ring_read(ring, p->ring_frames, position - p->lookahead, out, n);
                in = out;
            }
            for (int f = 0; f < n; f++) out[f] = in[f] * node_vad_gain(p, k, s, position + f, at + f);
        }
        if (at + n < p->window) continue;
        for (int c = 0; c < p->channels; c++) vad_end_window(&k->rules, &s->count, &s->voices[c], p->window);
        node_vad_end_window(p, k, s, io->readings);
    }
}

const wt_node_type wt__node_vad = {
    .name = "vad",
    .summary = "shows when somebody speaks, by energy above an adaptive floor, and mutes the rest where asked",
    .params = params,
    .n_params = VAD_N_PARAMS,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .readings = readings,
    .n_readings = VAD_N_READINGS,
    .plan = plan,
    .design = design,
    .process = process,
    .kernel = "node_vad",
};
