#include "meter_kernel.h"
#include "node_types.h"
#include "true_peak.h"


static const char *const readings[METER_N_READINGS] = {
    "peak_db", "rms_db", "true_peak_db", "momentary_lufs", "short_term_lufs", "integrated_lufs",
};

// The Recommendation's sections in the realisation of biquad_kernel.h: with z^-1 = (1 - u) / (1 + u) both polynomials
// become ones in u, and u = g s makes the lower one s^2 + damping s + 1.
static void design_weighting(meter_plan *p, double rate_hz)
{
    loudness_weighting w;
    wt__loudness_weighting(rate_hz, &w);
    biquad_coeffs *const to[2] = {&p->shelf, &p->highpass};
    for (int i = 0; i < 2; i++) {
        const double *a = w.a[i], *b = w.b[i];
        double a2 = 1 - a[1] + a[2], a1 = 2 * (1 - a[2]), a0 = 1 + a[1] + a[2]; // of u^2, u, 1
        double b2 = b[0] - b[1] + b[2], b1 = 2 * (b[0] - b[2]), b0 = b[0] + b[1] + b[2];
        double g = sqrt(a0 / a2), damping = a1 * g / a0;
        double m0 = b2 / a2, m1 = b1 * g / a0 - m0 * damping, m2 = b0 / a0 - m0;
        biquad_realise((float)g, (float)damping, (float)m0, (float)m1, (float)m2, to[i]);
    }
}

// BS.1770-4 table 3 for the usual layouts of 4, 5 and 6 channels, else 1 each.
static float channel_weight(int c, int channels)
{
    if (channels == 6 && c == 3) return 0; // LFE
    if (channels >= 4 && channels <= 6 && c >= channels - 2) return 1.41f;
    return 1;
}

wt_status wt__meter_weighting(meter_plan *p, double rate_hz, int channels)
{
    if (rate_hz < LOUDNESS_MIN_RATE_HZ)
        return wt_fail(WT_ERR_BAD_ARG, "rate %g Hz, want %d or more", rate_hz, LOUDNESS_MIN_RATE_HZ);
    p->channels = channels;
    p->step_frames = (int)(rate_hz * 0.1 + 0.5);
    design_weighting(p, rate_hz);
    for (int c = 0; c < channels; c++) p->weight[c] = channel_weight(c, channels);
    return WT_OK;
}

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    wt_status status = wt__plan_alloc(out, sizeof(meter_plan));
    if (!status) status = wt__meter_weighting(out->plan, wt_setup_rate_hz(setup), wt_setup_channels(setup, 0));
    if (status) return status;
    out->out_channels = wt_setup_channels(setup, 0);
    out->state_bytes = sizeof(meter_state);
    out->scratch_floats = 16 * WT_CHAIN_BLOCK; // a line a warp, of a block of up to 512 threads
    return WT_OK;
}

// One channel of a piece: what it adds to the sums, and its peaks.
WT_CLONES static void measure(const meter_plan *p, meter_state *s, int c, const float *x, const float *y, int n_frames)
{
    float line[TRUE_PEAK_LINE], weight = p->weight[c];
    true_peak_points points;
    long long weighted = 0, plain = 0;
    float peak = 0, between = 0;
    memcpy(line, s->history[c], sizeof s->history[c]);
    memcpy(line + LOUDNESS_TAPS, x, sizeof *x * (size_t)n_frames);
    memset(line + LOUDNESS_TAPS + n_frames, 0, sizeof *line * (2 * TRUE_PEAK_LANES));
    memcpy(s->history[c], line + n_frames, sizeof s->history[c]);
    for (int n = 0; n < n_frames; n++) weighted += meter_power(y[n], weight);
    for (int n = 0; n < n_frames; n++) plain += meter_power(x[n], 1);
    for (int n = 0; n < n_frames; n++) peak = wt_max(fabsf(x[n]), peak);
    wt__true_peak_points(&loudness_interpolator[0][0], LOUDNESS_TAPS, line, n_frames, &points);
    for (int row = 0; row < 3; row++)
        for (int n = 0; n < n_frames; n++) between = wt_max(fabsf(points.p[row][TRUE_PEAK_LANES + n]), between);
    s->weighted += (unsigned long long)weighted;
    s->plain += (unsigned long long)plain;
    peak = wt_max(peak, wt_from_bits(s->peak));
    s->peak = wt_bits(peak);
    s->true_peak = wt_bits(wt_max(wt_max(between, peak), wt_from_bits(s->true_peak)));
}

static void integrate(const meter_plan *p, const meter_state *s, float *shown)
{
    unsigned long long power, count;
    meter_above(s, 0, 0, 1, &power, &count);
    meter_above(s, meter_gate_bin(p, s, meter_mean_lufs(p, power, count)), 0, 1, &power, &count);
    shown[METER_INTEGRATED_LUFS] = meter_mean_lufs(p, power, count);
}

static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    (void)coeffs;
    const meter_plan *p = plan;
    meter_state *s = state;
    float weighted[2][WT_CHAIN_BLOCK]; // filters run fastest on two channels at a time
    for (int done = 0, n; done < io->n_frames; done += n) {
        const int left = p->step_frames - (int)((io->position + done) % p->step_frames);
        n = io->n_frames - done < left ? io->n_frames - done : left;
        for (int c = 0; c < io->out_channels; c += 2) {
            const float *x = io->in[0] + c * io->stride + done;
            const int both = c + 1 < io->out_channels ? 2 : 1;
            for (int i = 0; i < both; i++) memcpy(weighted[i], x + i * io->stride, sizeof *x * (size_t)n);
            wt__biquad_run(weighted[0], weighted[0], WT_CHAIN_BLOCK, both, n, &p->shelf, &s->shelf[c]);
            wt__biquad_run(weighted[0], weighted[0], WT_CHAIN_BLOCK, both, n, &p->highpass, &s->highpass[c]);
            for (int i = 0; i < both; i++) measure(p, s, c + i, x + i * io->stride, weighted[i], n);
        }
        if (n < left) continue;
        meter_end_step(p, s, io->readings);
        integrate(p, s, io->readings);
    }
    meter_show_peaks(s, io->readings);
    for (int c = 0; c < io->out_channels && io->out != io->in[0]; c++)
        memcpy(io->out + c * io->stride, io->in[0] + c * io->stride, sizeof(float) * (size_t)io->n_frames);
}

const wt_node_type wt__node_meter = {
    .name = "meter",
    .summary = "shows peak, RMS, true peak and loudness (BS.1770-4); audio passes unchanged",
    .readings = readings,
    .n_readings = METER_N_READINGS,
    .plan = plan,
    .process = process,
};
