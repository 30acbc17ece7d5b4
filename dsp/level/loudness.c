// Time is cut twice: into steps of 10 ms, whose K-weighted power goes to a ring of 300, and into pieces of at most
// 256 frames that end with a step. Windows are sums over the ring (40 steps = momentary and gating block, 300 =
// short-term), so every figure moves with the frame count alone and never with the caller's blocks. Where 10 ms is no
// whole number of frames, step k ends at round(k * rate / 100).
//
// Gating needs every block twice: once for the relative threshold, once above it. Two histograms of 0.01 LU hold the
// count and the exact power of the blocks in each bin instead, so means are exact, and only blocks within 0.01 LU of
// the relative threshold can fall on its other side.
#include <warptone/simd.h>

#include "fir_across_level.h"
#include "loudness_internal.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE = 256,       // frames filtered at once
    WIDE = 16,         // outputs of a filter at once
    STEPS_PER_S = LOUDNESS_STEPS_PER_S, // ring entries a second
    MOMENTARY = LOUDNESS_MOMENTARY,
    SHORT_TERM = LOUDNESS_SHORT_TERM, // windows, in steps
    N_BINS = LOUDNESS_N_BINS,
    GROUP = 4, // channels filtered side by side
};

typedef struct histogram {
    int64_t count[N_BINS];
    double power[N_BINS];
} histogram;

typedef struct filter_state {
    wt_f64x4 s[2][2]; // [section][delay], transposed direct form II
} filter_state;

struct wt_loudness {
    int rate_hz, channels, n_groups, oversampling;
    double weights[WT_LOUDNESS_MAX_CHANNELS];
    loudness_weighting weighting;

    filter_state filters[WT_LOUDNESS_MAX_CHANNELS / GROUP];
    wt_f64x4 power[WT_LOUDNESS_MAX_CHANNELS / GROUP]; // of the step so far
    float history[WT_LOUDNESS_MAX_CHANNELS][LOUDNESS_TAPS - 1];
    float sample_peaks[WT_LOUDNESS_MAX_CHANNELS], true_peaks[WT_LOUDNESS_MAX_CHANNELS];

    int64_t step, next_at_frame, frame; // steps done; where the present one ends; now
    double ring[SHORT_TERM];
    double momentary, short_term, max_momentary, max_short_term; // mean powers
    int64_t n_merged_frames, n_bad;
    histogram blocks, ranges;

    wt_f64x4 lanes[PIECE];
    float line[LOUDNESS_TAPS - 1 + PIECE + WIDE];
};

// ---- create

// Weight of channel c of n: BS.1770-4 table 3 and Annex 3 (side loudspeakers 60 to 120 degrees off: 1.41).
static double default_weight(int c, int n)
{
    static const float four[] = {1, 1, 1.41f, 1.41f}, five[] = {1, 1, 1, 1.41f, 1.41f},
                       six[] = {1, 1, 1, 0, 1.41f, 1.41f}, eight[] = {1, 1, 1, 0, 1, 1, 1.41f, 1.41f};
    const float *table = n == 4 ? four : n == 5 ? five : n == 6 ? six : n == 8 ? eight : NULL;
    if (!table || table[c] == 1) return 1;
    return table[c] > 0 ? 1.41 : 0;
}

static wt_status check(const wt_loudness_config *config, int rate_hz, int channels)
{
    if (rate_hz < LOUDNESS_MIN_RATE_HZ || rate_hz > 1536000)
        return wt_fail(WT_ERR_BAD_ARG, "loudness: rate %d Hz, want %d..1536000", rate_hz, LOUDNESS_MIN_RATE_HZ);
    if (channels < 1 || channels > WT_LOUDNESS_MAX_CHANNELS)
        return wt_fail(WT_ERR_BAD_ARG, "loudness: %d channels, want 1..%d", channels, WT_LOUDNESS_MAX_CHANNELS);
    if (config->dual_mono && channels != 1)
        return wt_fail(WT_ERR_BAD_ARG, "loudness: dual mono with %d channels, want 1", channels);
    for (int c = 0; config->weights && c < channels; c++)
        if (!(config->weights[c] >= 0 && config->weights[c] <= FLT_MAX))
            return wt_fail(WT_ERR_BAD_ARG, "loudness: weight %g of channel %d, want 0 or more", config->weights[c], c);
    return WT_OK;
}

wt_status wt_loudness_create(const wt_loudness_config *config, wt_loudness **meter)
{
    *meter = NULL;
    const int rate_hz = config->rate_hz ? config->rate_hz : 48000;
    const int channels = config->channels ? config->channels : 2;
    wt_status status = check(config, rate_hz, channels);
    if (status) return status;

    wt_loudness *m = aligned_alloc(64, (sizeof *m + 63) / 64 * 64);
    if (!m) return wt_fail(WT_ERR_NO_MEMORY, "loudness: meter");
    memset(m, 0, sizeof *m);
    m->rate_hz = rate_hz;
    m->channels = channels;
    m->n_groups = (channels + GROUP - 1) / GROUP;
    m->oversampling = config->no_true_peak || rate_hz > 192000 ? 1 : rate_hz > 96000 ? 2 : 4;
    for (int c = 0; c < channels; c++)
        m->weights[c] =
            (config->weights ? config->weights[c] : default_weight(c, channels)) * (config->dual_mono ? 2 : 1);
    wt__loudness_weighting(rate_hz, &m->weighting);
    wt_loudness_reset(m);
    *meter = m;
    return WT_OK;
}

void wt_loudness_destroy(wt_loudness *meter)
{
    free(meter);
}

WT_RT static int64_t end_of_step(const wt_loudness *m, int64_t step)
{
    return loudness_end_of_step(m->rate_hz, step);
}

void wt__loudness_describe(const wt_loudness *m, loudness_args *args)
{
    args->rate_hz = m->rate_hz;
    args->channels = m->channels;
    args->oversampling = m->oversampling;
    args->weighting = m->weighting;
    memcpy(args->weights, m->weights, sizeof args->weights);
}

WT_RT void wt_loudness_reset(wt_loudness *m)
{
    memset(m->filters, 0, sizeof m->filters);
    memset(m->power, 0, sizeof m->power);
    memset(m->history, 0, sizeof m->history);
    memset(m->sample_peaks, 0, sizeof m->sample_peaks);
    memset(m->true_peaks, 0, sizeof m->true_peaks);
    memset(m->ring, 0, sizeof m->ring);
    memset(&m->blocks, 0, sizeof m->blocks);
    memset(&m->ranges, 0, sizeof m->ranges);
    m->step = m->frame = m->n_merged_frames = m->n_bad = 0;
    m->next_at_frame = end_of_step(m, 1);
    m->momentary = m->short_term = m->max_momentary = m->max_short_term = 0;
}

// ---- one piece

// The next `n` samples of a channel behind their history; what is not finite becomes 0.
WT_INLINE float take_channel(wt_loudness *m, int c, const float *in, int n)
{
    float *line = m->line, peak = 0;
    int n_bad = 0;
    memcpy(line, m->history[c], sizeof m->history[c]);
    for (int k = 0; k < n; k++) {
        const float x = in[k], magnitude = fabsf(x);
        const int good = magnitude <= FLT_MAX;
        n_bad += !good;
        line[LOUDNESS_TAPS - 1 + k] = good ? x : 0;
        peak = good && magnitude > peak ? magnitude : peak;
    }
    memcpy(m->history[c], line + n, sizeof m->history[c]);
    m->n_bad += n_bad;
    return peak;
}

// Highest magnitude between the samples. Vectors reach past the piece; only its own lanes are looked at, so where a
// piece ends changes neither a product nor an order of summation.
WT_INLINE float highest_between(float *line, int n, int first_row, int row_step)
{
    const wt_i32x8 lanes = {0, 1, 2, 3, 4, 5, 6, 7};
    wt_i32x8 highest = {0}, magnitude; // as integers, which have the same order
    memset(line + LOUDNESS_TAPS - 1 + n, 0, sizeof(float) * WIDE);
    for (int row = first_row; row < 3; row += row_step) {
        float between[PIECE + WIDE] = {0};
        WT_LEVEL_CALL(fir_across, loudness_interpolator[row], LOUDNESS_TAPS, line, 1, n, between);
        for (int at = 0; at < n; at += 8) {
            memcpy(&magnitude, between + at, sizeof magnitude);
            magnitude &= (lanes < n - at) & 0x7fffffff;
            const wt_i32x8 higher = magnitude > highest;
            highest = (magnitude & higher) | (highest & ~higher);
        }
    }
    int most = 0;
    for (int k = 0; k < 8; k++) most = highest[k] > most ? highest[k] : most;
    float peak;
    memcpy(&peak, &most, sizeof peak);
    return peak;
}

WT_INLINE void filter_group(const loudness_weighting *w, filter_state *state, const wt_f64x4 *lanes, int n,
                            wt_f64x4 *power)
{
    filter_state f = *state;
    wt_f64x4 sum = *power;
    for (int k = 0; k < n; k++) {
        wt_f64x4 x = lanes[k];
        for (int i = 0; i < 2; i++) {
            const wt_f64x4 y = w->b[i][0] * x + f.s[i][0];
            f.s[i][0] = w->b[i][1] * x - w->a[i][1] * y + f.s[i][1];
            f.s[i][1] = w->b[i][2] * x - w->a[i][2] * y;
            x = y;
        }
        sum += x * x;
    }
    *state = f;
    *power = sum;
}

WT_CLONES static void meter_piece(wt_loudness *m, const float *const *in, int64_t at, int n)
{
    for (int g = 0; g < m->n_groups; g++) {
        double(*lanes)[GROUP] = (double(*)[GROUP])m->lanes;
        const int n_lanes = m->channels - g * GROUP < GROUP ? m->channels - g * GROUP : GROUP;
        if (n_lanes < GROUP) memset(lanes, 0, sizeof(wt_f64x4) * (size_t)n);
        for (int lane = 0; lane < n_lanes; lane++) {
            const int c = g * GROUP + lane;
            float peak = take_channel(m, c, in[c] + at, n);
            for (int k = 0; k < n; k++) lanes[k][lane] = m->line[LOUDNESS_TAPS - 1 + k];
            if (peak > m->sample_peaks[c]) m->sample_peaks[c] = peak;
            if (m->oversampling > 1) {
                float between =
                    m->oversampling == 4 ? highest_between(m->line, n, 0, 1) : highest_between(m->line, n, 1, 2);
                if (between > peak) peak = between;
            }
            if (peak > m->true_peaks[c]) m->true_peaks[c] = peak;
        }
        filter_group(&m->weighting, &m->filters[g], m->lanes, n, &m->power[g]);
    }
}

// ---- one step

WT_RT static void histogram_add(histogram *h, double power)
{
    const int k = loudness_bin(loudness_lufs(power));
    if (k < 0) return;
    h->count[k]++;
    h->power[k] += power;
}

// Mean power of the last `n_steps` steps; before the start there was silence.
WT_RT static double window(const wt_loudness *m, int n_steps)
{
    const int64_t first = m->step < n_steps ? 0 : m->step - n_steps;
    double sum = 0;
    for (int64_t k = first; k < m->step; k++) sum += m->ring[k % SHORT_TERM];
    return sum / (double)(end_of_step(m, first + n_steps) - end_of_step(m, first));
}

// A state below 1e-30 cannot be heard again and would soon be denormal, which is slow.
WT_RT static void flush_states(filter_state *f)
{
    for (int i = 0; i < 4; i++)
        for (int lane = 0; lane < GROUP; lane++)
            if (fabs(f->s[i / 2][i % 2][lane]) < 1e-30) f->s[i / 2][i % 2][lane] = 0;
}

WT_RT static void end_step(wt_loudness *m)
{
    double power = 0;
    for (int c = 0; c < m->channels; c++) power += m->weights[c] * m->power[c / GROUP][c % GROUP];
    memset(m->power, 0, sizeof m->power);
    for (int g = 0; g < m->n_groups; g++) flush_states(&m->filters[g]);

    m->ring[m->step % SHORT_TERM] = power;
    m->step++;
    m->next_at_frame = end_of_step(m, m->step + 1);

    m->momentary = window(m, MOMENTARY);
    m->short_term = window(m, SHORT_TERM);
    if (m->momentary > m->max_momentary) m->max_momentary = m->momentary;
    if (m->short_term > m->max_short_term) m->max_short_term = m->short_term;
    if (m->step >= MOMENTARY && m->step % (STEPS_PER_S / 10) == 0) histogram_add(&m->blocks, m->momentary);
    if (m->step >= SHORT_TERM && m->step % STEPS_PER_S == 0) histogram_add(&m->ranges, m->short_term);
}

WT_RT void wt_loudness_process(wt_loudness *m, const float *const *in, int n_frames)
{
    for (int done = 0; done < n_frames;) {
        int64_t n = m->next_at_frame - m->frame;
        if (n > n_frames - done) n = n_frames - done;
        if (n > PIECE) n = PIECE;
        meter_piece(m, in, done, (int)n);
        done += (int)n;
        m->frame += n;
        if (m->frame == m->next_at_frame) end_step(m);
    }
}

// ---- figures

// Mean power of the bins from `first` up; 0 when they are empty. `count` is set to the number of blocks in them.
WT_RT static double mean_above(const histogram *h, int first, int64_t *count)
{
    double power = 0;
    *count = 0;
    for (int k = first; k < N_BINS; k++) {
        power += h->power[k];
        *count += h->count[k];
    }
    return *count ? power / (double)*count : 0;
}

// First bin above a gate `below_lu` under the mean; the bin that holds the gate counts when its own mean is above.
WT_RT static int gated_bin(const histogram *h, double below_lu)
{
    int64_t count;
    const double threshold = loudness_lufs(mean_above(h, 0, &count)) - below_lu;
    const int k = loudness_bin(threshold);
    if (k < 0) return 0;
    const bool above = h->count[k] && loudness_lufs(h->power[k] / (double)h->count[k]) >= threshold;
    return above ? k : k + 1;
}

// Level of the block of rank `rank` (0 = quietest) among those from bin `first` up: the mean of its bin.
WT_RT static double level_of_rank(const histogram *h, int first, int64_t rank)
{
    for (int k = first; k < N_BINS; k++) {
        if (rank < h->count[k]) return loudness_lufs(h->power[k] / (double)h->count[k]);
        rank -= h->count[k];
    }
    return -INFINITY;
}

// Tech 3342, 3: percentiles by the nearest rank, as in its Matlab listing.
WT_RT static double range(const histogram *h)
{
    const int first = gated_bin(h, 20);
    int64_t count;
    mean_above(h, first, &count);
    if (!count) return 0;
    const double last = (double)(count - 1);
    return level_of_rank(h, first, (int64_t)(last * 0.95 + 0.5)) -
           level_of_rank(h, first, (int64_t)(last * 0.10 + 0.5));
}

WT_RT static float highest(const float *peaks, int channels)
{
    float peak = 0;
    for (int c = 0; c < channels; c++) peak = peaks[c] > peak ? peaks[c] : peak;
    return peak;
}

WT_RT void wt_loudness_query(const wt_loudness *m, wt_loudness_values *values)
{
    int64_t count;
    *values = (wt_loudness_values){
        .momentary_lufs = loudness_lufs(m->momentary),
        .short_term_lufs = loudness_lufs(m->short_term),
        .max_momentary_lufs = loudness_lufs(m->max_momentary),
        .max_short_term_lufs = loudness_lufs(m->max_short_term),
        .integrated_lufs = loudness_lufs(mean_above(&m->blocks, gated_bin(&m->blocks, 10), &count)),
        .range_lu = range(&m->ranges),
        .sample_peak_db = loudness_decibels(highest(m->sample_peaks, m->channels)),
        .true_peak_db = loudness_decibels(highest(m->true_peaks, m->channels)),
        .n_frames = m->frame + m->n_merged_frames,
        .n_bad = m->n_bad,
    };
}

WT_RT void wt_loudness_peaks(const wt_loudness *m, float *sample_peaks, float *true_peaks)
{
    if (sample_peaks) memcpy(sample_peaks, m->sample_peaks, sizeof(float) * (size_t)m->channels);
    if (true_peaks) memcpy(true_peaks, m->true_peaks, sizeof(float) * (size_t)m->channels);
}

static void merge_histogram(histogram *into, const histogram *from)
{
    for (int k = 0; k < N_BINS; k++) {
        into->count[k] += from->count[k];
        into->power[k] += from->power[k];
    }
}

void wt_loudness_merge(wt_loudness *into, const wt_loudness *from)
{
    merge_histogram(&into->blocks, &from->blocks);
    merge_histogram(&into->ranges, &from->ranges);
    into->max_momentary = fmax(into->max_momentary, from->max_momentary);
    into->max_short_term = fmax(into->max_short_term, from->max_short_term);
    for (int c = 0; c < from->channels; c++) {
        const int to = c < into->channels ? c : into->channels - 1;
        into->sample_peaks[to] = fmaxf(into->sample_peaks[to], from->sample_peaks[c]);
        into->true_peaks[to] = fmaxf(into->true_peaks[to], from->true_peaks[c]);
    }
    into->n_merged_frames += from->frame + from->n_merged_frames;
    into->n_bad += from->n_bad;
}

double wt_loudness_gain_db(const wt_loudness_values *values, double target_lufs, double ceiling_dbtp)
{
    if (!isfinite(values->integrated_lufs)) return 0;
    const double to_target = target_lufs - values->integrated_lufs, to_ceiling = ceiling_dbtp - values->true_peak_db;
    return to_target < to_ceiling ? to_target : to_ceiling;
}
