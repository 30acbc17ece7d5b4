#include "leveler_kernel.h"
#include "node_types.h"
#include "ring.h"

static const wt_param_info params[] = {
    {"target_lufs", "LUFS", -60, 0, -16, 0, "loudness to steer to"},
    {"max_gain_db", "dB", 0, 40, 12, 0, "most it lifts or lowers"},
    {"speed_db_s", "dB/s", 0.1f, 40, 2, 1, "fastest change of the gain"},
    {"window_s", "s", 1, 60, 10, 1, "how far back the mean loudness remembers"},
};

static const wt_option_info options[] = {
    {"lookahead_ms", NULL, "0", "the latency, up to 10000; with 500 or more a beginning has the right level"},
};

static const char *const readings[LEVELER_N_READINGS] = {"gain_db", "loudness_lufs"};

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    double lookahead_ms, rate_hz = wt_setup_rate_hz(setup);
    wt_status status = wt_setup_number(setup, "lookahead_ms", 0, 10000, &lookahead_ms);
    if (!status) status = wt__plan_alloc(out, sizeof(leveler_plan));
    if (status) return status;
    leveler_plan *p = out->plan;
    out->out_channels = wt_setup_channels(setup, 0);
    status = wt__meter_weighting(&p->meter, rate_hz, out->out_channels);
    if (status) return status;
    p->lookahead = (int)(lookahead_ms * 1e-3 * rate_hz + 0.5);
    p->mask = wt__ring_size(p->lookahead) - 1;
    out->coeffs_bytes = sizeof(leveler_coeffs);
    out->state_bytes = sizeof(leveler_state) + sizeof(float) * (size_t)(p->mask + 1) * (size_t)out->out_channels;
    out->scratch_floats = 16 * WT_CHAIN_BLOCK; // a line a warp, of a block of up to 512 threads
    out->latency_frames = out->tail_frames = p->lookahead;
    return WT_OK;
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    leveler_design(plan, v0, v1, coeffs);
}

WT_CLONES static unsigned long long weighted_power(const float *y, int n_frames, float weight)
{
    long long sum = 0;
    for (int n = 0; n < n_frames; n++) sum += meter_power(y[n], weight);
    return (unsigned long long)sum;
}

// Add a piece's loudness; filters run fastest on two channels at a time.
static void weigh(const leveler_plan *p, leveler_state *s, const float *x, int stride, int channels, int n)
{
    float y[2][WT_CHAIN_BLOCK];
    for (int c = 0; c < channels; c += 2) {
        int both = c + 1 < channels ? 2 : 1;
        for (int i = 0; i < both; i++) memcpy(y[i], x + (c + i) * stride, sizeof *x * (size_t)n);
        wt__biquad_run(y[0], y[0], WT_CHAIN_BLOCK, both, n, &p->meter.shelf, &s->shelf[c]);
        wt__biquad_run(y[0], y[0], WT_CHAIN_BLOCK, both, n, &p->meter.highpass, &s->highpass[c]);
        for (int i = 0; i < both; i++) s->weighted += weighted_power(y[i], n, p->meter.weight[c + i]);
    }
}

static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    const leveler_plan *p = plan;
    leveler_state *s = state;
    for (int done = 0, n; done < io->n_frames; done += n) {
        const long long position = io->position + done;
        const int at = (int)(position % p->meter.step_frames), left = p->meter.step_frames - at;
        n = io->n_frames - done < left ? io->n_frames - done : left;
        weigh(p, s, io->in[0] + done, io->stride, io->out_channels, n);
        for (int c = 0; c < io->out_channels; c++) {
            float *ring = s->delay + (size_t)c * (size_t)(p->mask + 1), *y = io->out + c * io->stride + done;
            wt__ring_write(ring, p->mask + 1, position, io->in[0] + c * io->stride + done, n);
            wt__ring_read(ring, p->mask + 1, position - p->lookahead, y, n);
            for (int i = 0; i < n; i++) y[i] *= leveler_gain(p, s, at + i);
        }
        if (n == left) leveler_end_step(p, coeffs, s, io->readings);
    }
}

const wt_node_type wt__node_leveler = {
    .name = "leveler",
    .summary = "slow gated gain that steers the loudness (BS.1770-4) towards a target",
    .params = params,
    .n_params = 4,
    .options = options,
    .n_options = 1,
    .readings = readings,
    .n_readings = LEVELER_N_READINGS,
    .plan = plan,
    .design = design,
    .process = process,
};
