// Vectors across time for everything but the release (one multiply-add and one maximum a frame) and the integer sums.
#include "limiter_kernel.h"
#include "node_types.h"
#include "ring.h"
#include "true_peak.h"

static const wt_param_info params[LIMITER_N_PARAMS] = {
    {"ceiling_db", "dBTP", -60, 0, -1, 0, "highest true peak that comes out"},
    {"release_ms", "ms", 1, 5000, 80, 1, "time constant of letting go, in dB"},
};

static const wt_option_info options[] = {
    {"lookahead_ms", NULL, "1.5",
     "how long before a peak the gain begins to fall; the latency, 0.4..40, and 17 frames at least"},
};

static const char *const readings[] = {"gain_reduction_db"};

// Scratch: peaks or gains of the block, then two lines of a window and a block for the sliding maximum.
static int line_frames(const limiter_plan *p) { return p->window + WT_CHAIN_BLOCK; }

static unsigned int take(size_t *bytes, size_t more)
{
    unsigned int at = (unsigned int)*bytes;
    *bytes += more;
    return at;
}

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    double lookahead_ms, rate_hz = wt_setup_rate_hz(setup);
    const int least = LIMITER_AHEAD + LIMITER_MARGIN + 2, channels = wt_setup_channels(setup, 0);
    wt_status status = wt_setup_number(setup, "lookahead_ms", 0.4, 40, &lookahead_ms);
    if (status) return status;
    int latency = (int)(lookahead_ms * 0.001 * rate_hz + 0.5);
    if (latency > LIMITER_MAX_LATENCY)
        return wt_fail(WT_ERR_BAD_ARG, "lookahead_ms is %g, want at most %g at %g Hz", lookahead_ms,
                       LIMITER_MAX_LATENCY * 1000.0 / rate_hz, rate_hz);
    if (latency < least) latency = least; // below 11.3 kHz, of the standard 1.5 ms: a telephone's rates
    if ((status = wt__plan_alloc(out, sizeof(limiter_plan)))) return status;
    limiter_plan *p = out->plan;
    int both = latency - LIMITER_AHEAD - LIMITER_MARGIN + 2; // box1 + box2
    p->rate_hz = (float)rate_hz;
    p->latency = latency;
    p->box1 = both / 2;
    p->box2 = both - p->box1;
    p->window = both - 1 + 2 * LIMITER_MARGIN;
    p->ring_frames = wt__ring_size(latency + LIMITER_MARGIN);
    p->scale = (float)(1.0 / ((double)p->box1 * p->box2 * (double)LIMITER_ONE));
    size_t ring = (size_t)p->ring_frames, bytes = sizeof(limiter_state) + sizeof(float) * ring;
    p->sums1 = take(&bytes, sizeof(unsigned long long) * ring);
    p->sums2 = take(&bytes, sizeof(unsigned long long) * ring);
    p->attenuation = take(&bytes, sizeof(unsigned int) * ring);
    p->audio = take(&bytes, sizeof(float) * ring * (size_t)channels);
    for (int row = 0; row < 3; row++)
        for (int d = 0; d < TRUE_PEAK_TAPS; d++)
            p->points[row][4 + d] = true_peak_interpolator[row][TRUE_PEAK_TAPS - 1 - d];
    p->n_weights = both - 1 <= LIMITER_WEIGHTS ? both - 1 : 0;
    for (int d = 0; d < p->n_weights; d++) { // box1 is the shorter one
        const int rising = d + 1, falling = both - 1 - d, lower = rising < falling ? rising : falling;
        p->weights[4 + d] = (unsigned int)(lower < p->box1 ? lower : p->box1);
    }
    out->out_channels = channels;
    out->coeffs_bytes = sizeof(limiter_coeffs);
    out->state_bytes = bytes;
    out->scratch_floats = WT_CHAIN_BLOCK + 2 * line_frames(p);
    out->latency_frames = latency;
    return WT_OK;
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    limiter_design(plan, v0, v1, coeffs);
}

static float *audio_ring(const limiter_plan *p, limiter_state *s, int c)
{
    return (float *)((char *)s + p->audio) + (size_t)c * (size_t)p->ring_frames;
}

// Keep the block and find the octaves of reduction that its true peaks need.
WT_CLONES static void find_need(const wt_node_io *io, const limiter_plan *p, const limiter_coeffs *k, limiter_state *s,
                                float *need)
{
    const int n_frames = io->n_frames;
    float line[TRUE_PEAK_LINE];
    true_peak_points points;
    memset(need, 0, sizeof *need * (size_t)n_frames);
    memset(line + TRUE_PEAK_TAPS + n_frames, 0, sizeof *line * (2 * TRUE_PEAK_LANES));
    for (int c = 0; c < io->out_channels; c++) {
        float *ring = audio_ring(p, s, c);
        wt__ring_read(ring, p->ring_frames, io->position - TRUE_PEAK_TAPS, line, TRUE_PEAK_TAPS);
        memcpy(line + TRUE_PEAK_TAPS, io->in[0] + c * io->stride, sizeof *line * (size_t)n_frames);
        wt__ring_write(ring, p->ring_frames, io->position, line + TRUE_PEAK_TAPS, n_frames);
        wt__true_peak_points(&true_peak_interpolator[0][0], TRUE_PEAK_TAPS, line, n_frames, &points);
        wt__true_peak_tops(line + TRUE_PEAK_TAPS / 2, &points, n_frames, need);
    }
    const limiter_coeffs own = *k;
    for (int n = 0; n < n_frames; n++) need[n] = limiter_need(&own, need[n]);
}

WT_INLINE void pair_maxima(const float *restrict from, float *restrict to, int n, int apart)
{
    for (int i = 0; i < n; i++) to[i] = wt_max(from[i], from[i + apart]);
}

// highest[n] = max over `window` of the line from n on: maxima over 1, 2, 4 ... frames, then two that overlap.
WT_CLONES static void sliding_maximum(float *line, float *other, int window, int n_frames, float *highest)
{
    int reach = 1;
    for (; 2 * reach <= window; reach *= 2) {
        pair_maxima(line, other, n_frames + window - 2 * reach, reach);
        float *swap = line;
        line = other, other = swap;
    }
    pair_maxima(line, highest, n_frames, window - reach);
}

// Running sums of both boxes, kept as prefix sums modulo 2^64: a box is the difference of two of them.
WT_INLINE void smooth(const limiter_plan *p, limiter_state *s, long long position, const unsigned int *attenuation,
                      int n_frames, unsigned long long *boxed)
{
    unsigned long long *ring1 = (unsigned long long *)((char *)s + p->sums1),
                       *ring2 = (unsigned long long *)((char *)s + p->sums2), sum1 = s->sum1, sum2 = s->sum2;
    const int mask = p->ring_frames - 1, at = (int)(position & mask), box1 = p->box1, box2 = p->box2;
    for (int n = 0; n < n_frames; n++) {
        ring1[(at + n) & mask] = sum1 += attenuation[n];
        ring2[(at + n) & mask] = sum2 += sum1 - ring1[(at + n - box1) & mask];
        boxed[n] = sum2 - ring2[(at + n - box2) & mask];
    }
    s->sum1 = sum1, s->sum2 = sum2;
}

// From the highest needs to gains, in place.
WT_CLONES static void find_gain(const limiter_plan *p, limiter_state *s, float release, long long position,
                                float *gain, int n_frames)
{
    unsigned int attenuation[WT_CHAIN_BLOCK];
    unsigned long long boxed[WT_CHAIN_BLOCK];
    float y = s->y, rest[WT_CHAIN_BLOCK];
    for (int n = 0; n < n_frames; n++) rest[n] = (1.0f - release) * gain[n];
    for (int n = 0; n < n_frames; n++) gain[n] = y = wt_max(gain[n], rest[n] + release * y);
    s->y = y;
    unsigned int *ring = (unsigned int *)((char *)s + p->attenuation);
    for (int n = 0; n < n_frames; n++) attenuation[n] = limiter_attenuation(gain[n]);
    for (int n = 0; n < n_frames; n++) ring[(position + n) & (p->ring_frames - 1)] = attenuation[n];
    smooth(p, s, position, attenuation, n_frames, boxed);
    for (int n = 0; n < n_frames; n++) gain[n] = 1.0f - (float)(long long)boxed[n] * p->scale;
}

WT_CLONES static void apply(float *y, const float *gain, int n_frames)
{
    for (int n = 0; n < n_frames; n++) y[n] *= gain[n];
}

static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    const limiter_plan *p = plan;
    const limiter_coeffs *k = coeffs;
    limiter_state *s = state;
    const int n_frames = io->n_frames, before = p->window - 1;
    float *gain = io->scratch, *line = gain + WT_CHAIN_BLOCK, *other = line + line_frames(p);
    wt__ring_read(s->need, p->ring_frames, io->position - before, line, before);
    find_need(io, p, k, s, line + before);
    wt__ring_write(s->need, p->ring_frames, io->position, line + before, n_frames);
    sliding_maximum(line, other, p->window, n_frames, gain);
    find_gain(p, s, k->release, io->position, gain, n_frames);
    for (int c = 0; c < io->out_channels; c++) {
        float *y = io->out + c * io->stride;
        wt__ring_read(audio_ring(p, s, c), p->ring_frames, io->position - p->latency, y, n_frames);
        apply(y, gain, n_frames);
    }
    io->readings[0] = -WT_DB_PER_OCTAVE * wt_log2(gain[n_frames - 1]);
}

const wt_node_type wt__node_limiter = {
    .name = "limiter",
    .summary = "true-peak limiter with look-ahead, all channels linked",
    .params = params,
    .n_params = LIMITER_N_PARAMS,
    .options = options,
    .n_options = 1,
    .readings = readings,
    .n_readings = 1,
    .flags = WT_NODE_CUDA_AFTER | WT_NODE_CUDA_QUICK,
    .plan_head_bytes = offsetof(limiter_plan, points),
    .plan = plan,
    .design = design,
    .process = process,
};
