// Ellis's beat tracker: each frame's score is its smoothed onset strength plus the best predecessor's score, less a
// penalty for beats that are not one period apart. All in double, in librosa's order of sums and comparisons.

#include "tempo_cuda.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/simd.h>
#include <warptone/tempo.h>

struct wt_beat {
    wt_beat_config config;
    double frames_per_minute;
    wt_tempo *tempo;
    double *score, *sum;      // [max_frames] local, cumulative
    double *envelope;         // [max_frames] divided by its deviation
    double *window, *penalty; // [2 max_period + 2]
    int *link;                // [max_frames]
    int max_period;
    wt_device *device;
    wt_beat **workers; // [n_slots], the first is the plan itself
    int n_slots;
    wt__beat_cuda *cuda; // NULL on a CPU
};

enum { SIDE = 8 }; // frames side by side

static double period_of(const wt_beat *p, double bpm) { return rint(p->frames_per_minute / bpm); }

static wt_status take_device(wt_beat *p, wt_device *device)
{
    const wt_beat_config *c = &p->config;
    p->device = device;
    p->n_slots = wt__op_slots(device, c->n_signals);
    p->workers = calloc((size_t)p->n_slots, sizeof *p->workers);
    if (!p->workers) return wt_fail(WT_ERR_NO_MEMORY, "beat: %d threads", p->n_slots);
    p->workers[0] = p;
    const wt_beat_args args = {.known_bpm = c->bpm,
                               .frames_per_minute = p->frames_per_minute,
                               .tightness = c->tightness,
                               .n_frames = c->max_frames,
                               .max_period = p->max_period,
                               .no_trim = c->no_trim};
    wt_status status = wt__op_on_gpu(device)
                           ? wt__beat_cuda_create(device, &args, c->n_signals, wt__tempo_on_gpu(p->tempo), &p->cuda)
                           : WT_OK;
    for (int slot = 1; slot < p->n_slots && !status; slot++) status = wt_beat_create(NULL, c, &p->workers[slot]);
    return status;
}

wt_status wt_beat_create(wt_device *device, const wt_beat_config *config, wt_beat **plan)
{
    *plan = NULL;
    wt_beat *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "beat: plan");
    wt_beat_config *c = &p->config;
    *c = *config;
    if (!c->n_signals) c->n_signals = 1;
    c->tempo.n_frames = c->max_frames, c->tempo.n_signals = c->n_signals;
    wt_status status = wt_tempo_create(c->bpm > 0 || !wt__op_on_gpu(device) ? NULL : device, &c->tempo, &p->tempo);
    if (status) goto fail;
    if (c->tightness == 0) c->tightness = 100;
    const double rate = c->tempo.rate_hz != 0 ? c->tempo.rate_hz : 22050, hop = c->tempo.hop ? c->tempo.hop : 512;
    const double window = c->tempo.ac_size_s != 0 ? c->tempo.ac_size_s : 8;
    p->frames_per_minute = rate / hop * 60;
    if (!(c->bpm >= 0) || !(c->tightness > 0) || c->max_frames < 1) {
        status = wt_fail(WT_ERR_BAD_ARG, "beat: bpm %g, tightness %g, max_frames %lld, want 0, above 0, 1 or more",
                         c->bpm, c->tightness, (long long)c->max_frames);
        goto fail;
    }
    const double longest = c->bpm > 0 ? period_of(p, c->bpm) : window * rate / hop + 1;
    if (!(longest >= 1) || longest > 1 << 24) {
        status = wt_fail(WT_ERR_BAD_ARG, "beat: bpm %g is %g frames a beat, want 1 or more", c->bpm, longest);
        goto fail;
    }
    p->max_period = (int)longest;
    const size_t n = (size_t)c->max_frames, taps = 2 * (size_t)p->max_period + 2;
    p->score = malloc(n * sizeof(double));
    p->sum = malloc(n * sizeof(double));
    p->envelope = malloc(n * sizeof(double));
    p->link = malloc(n * sizeof(int));
    p->window = malloc(taps * sizeof(double));
    p->penalty = malloc(taps * sizeof(double));
    if (!p->score || !p->sum || !p->envelope || !p->link || !p->window || !p->penalty)
        status = wt_fail(WT_ERR_NO_MEMORY, "beat: %lld frames", (long long)c->max_frames);
    else if (device)
        status = take_device(p, device);
    if (status) goto fail;
    *plan = p;
    return WT_OK;

fail:
    wt_beat_destroy(p);
    return status;
}

void wt_beat_destroy(wt_beat *plan)
{
    if (!plan) return;
    for (int slot = 1; plan->workers && slot < plan->n_slots; slot++) wt_beat_destroy(plan->workers[slot]);
    free(plan->workers);
    wt__beat_cuda_destroy(plan->cuda);
    wt_tempo_destroy(plan->tempo);
    free(plan->score);
    free(plan->sum);
    free(plan->envelope);
    free(plan->link);
    free(plan->window);
    free(plan->penalty);
    free(plan);
}

// ---- local score

static void normalise(const float *x, int64_t n, double *out)
{
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) mean += x[i];
    mean /= (double)n;
    for (int64_t i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
    const double scale = n > 1 ? sqrt(squares / (double)(n - 1)) + DBL_MIN : 1;
    for (int64_t i = 0; i < n; i++) out[i] = x[i] / scale;
}

// Scores of frames begin .. end - 1, each a sum from its last tap to its first, all inside 1 .. n - 1.
WT_CLONES static void smooth_inside(const double *restrict window, const double *restrict x, int64_t begin, int64_t end,
                                    int period, double *restrict score)
{
    for (int64_t i = begin; i < end; i += SIDE) {
        if (i + SIDE > end) i = end - SIDE; // again a few
        double sum[SIDE] = {0};
        for (int k = period; k >= -period; k--)
            for (int lane = 0; lane < SIDE; lane++) sum[lane] += window[k < 0 ? -k : k] * x[i + k + lane];
        for (int lane = 0; lane < SIDE; lane++) score[i + lane] = sum[lane];
    }
}

// librosa's loop leaves out the envelope's first frame.
static void smooth(wt_beat *p, int64_t n, int period)
{
    for (int k = 0; k <= period; k++) p->window[k] = wt__beat_bump(k, period);
    int64_t begin = period + 1, end = n - period;
    if (end - begin >= SIDE)
        smooth_inside(p->window, p->envelope, begin, end, period, p->score);
    else
        begin = end = n;
    for (int64_t i = 0; i < n; i++) {
        if (i == begin) i = end;
        double sum = 0;
        const int64_t last = i + period < n ? i + period : n - 1;
        for (int64_t at = last; at >= i - period && at > 0; at--)
            sum += p->window[at > i ? at - i : i - at] * p->envelope[at];
        if (i < n) p->score[i] = sum;
    }
}

// ---- dynamic programming

typedef struct best {
    double value;
    int64_t at; // -1 = none
} best;

// The largest of x[k] - penalty[k], 0 <= k < n, and the last that is: eight strands, the last numbers on the first.
WT_CLONES static best find_best(const double *x, const double *penalty, int64_t n)
{
    double value[SIDE];
    int64_t at[SIDE], k = 0;
    for (int lane = 0; lane < SIDE; lane++) value[lane] = -INFINITY, at[lane] = -1;
    for (; k + SIDE <= n; k += SIDE)
        for (int lane = 0; lane < SIDE; lane++) {
            const double here = x[k + lane] - penalty[k + lane];
            at[lane] = here >= value[lane] ? k + lane : at[lane];
            value[lane] = here >= value[lane] ? here : value[lane];
        }
    best b = {-INFINITY, -1};
    for (int lane = 0; lane < SIDE; lane++)
        if (at[lane] >= 0 && (value[lane] > b.value || (value[lane] == b.value && at[lane] > b.at)))
            b = (best){value[lane], at[lane]};
    for (; k < n; k++)
        if (x[k] - penalty[k] >= b.value) b = (best){x[k] - penalty[k], k};
    return b;
}

static void link_beats(wt_beat *p, int64_t n, int period)
{
    int nearest = (int)rint(period / 2.0);
    if (nearest < 1) nearest = 1;
    const int farthest = 2 * period;
    double most = p->score[0];
    for (int64_t i = 1; i < n; i++) most = p->score[i] > most ? p->score[i] : most;
    for (int away = nearest; away <= farthest; away++) { // the farthest first, as the sums lie
        const double octaves = log(away) - log(period);
        p->penalty[farthest - away] = p->config.tightness * (octaves * octaves);
    }
    bool first = true;
    for (int64_t i = 0; i < n; i++) {
        const int64_t begin = i > farthest ? i - farthest : 0, skipped = begin + farthest - i;
        const best b = find_best(p->sum + begin, p->penalty + skipped, i - nearest + 1 - begin);
        const int64_t from = b.at >= 0 && b.value > -INFINITY ? begin + b.at : -1;
        p->sum[i] = from >= 0 ? p->score[i] + b.value : p->score[i];
        p->link[i] = first && p->score[i] < 0.01 * most ? -1 : (int)from;
        if (!(first && p->score[i] < 0.01 * most)) first = false;
    }
}

// The k-th smallest of n numbers, in place (C. A. R. Hoare's Find; qsort may take memory).
static double nth(double *x, int64_t n, int64_t k)
{
    for (int64_t low = 0, high = n - 1; low < high;) {
        const double pivot = x[k];
        int64_t i = low, j = high;
        while (i <= j) {
            while (x[i] < pivot) i++;
            while (pivot < x[j]) j--;
            if (i > j) break;
            const double t = x[i];
            x[i++] = x[j];
            x[j--] = t;
        }
        if (j < k) low = i;
        if (k < i) high = j;
    }
    return x[k];
}

static bool is_peak(const double *x, int64_t i, int64_t n)
{
    return i > 0 && x[i] > x[i - 1] && (i + 1 == n || x[i] >= x[i + 1]);
}

// The last peak of the sums not under half the median of all peaks. The envelope is done with: its room is taken.
static int64_t last_beat(wt_beat *p, int64_t n)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        if (is_peak(p->sum, i, n)) p->envelope[count++] = p->sum[i];
    double least = 0; // half the median
    if (count) least = (nth(p->envelope, count, (count - 1) / 2) + nth(p->envelope, count, count / 2)) / 4;
    for (int64_t i = n - 1; i >= 0; i--)
        if (is_peak(p->sum, i, n) && p->sum[i] >= least) return i;
    return n - 1;
}

// Half the root mean square of the beats' scores under a Hann window of five, of which three are not zero. As librosa
// cuts its convolution: from the first beat's middle on, two behind the last, and not more than there are frames.
static double trim_level(const wt_beat *p, int64_t n, const int *frames, int64_t count)
{
    double sum = 0;
    const int64_t n_sums = count + 2 < n ? count + 2 : n;
    for (int64_t k = 0; k < n_sums; k++) {
        double y = 0;
        for (int64_t j = k - 1; j <= k + 1; j++)
            if (j >= 0 && j < count) y += (j == k ? 1 : 0.5) * p->score[frames[j]];
        sum += y * y;
    }
    return 0.5 * sqrt(sum / (double)n_sums);
}

static int64_t trim(const wt_beat *p, int64_t n, int *frames, int64_t count)
{
    const double level = p->config.no_trim || !count ? 0 : trim_level(p, n, frames, count);
    int64_t begin = 0, end = n, first = 0;
    while (begin < n && p->score[begin] <= level) begin++;
    while (end > 0 && p->score[end - 1] <= level) end--;
    while (first < count && frames[first] < begin) first++;
    while (count > first && frames[count - 1] >= end) count--;
    memmove(frames, frames + first, (size_t)(count - first) * sizeof *frames);
    return count - first;
}

WT_RT int64_t wt_beat_run(wt_beat *p, const float *envelope, int64_t n, int *frames, double *bpm)
{
    if (n > p->config.max_frames) n = p->config.max_frames;
    bool any = false;
    for (int64_t i = 0; i < n; i++) any |= envelope[i] != 0;
    *bpm = 0;
    if (!any) return 0;
    *bpm = p->config.bpm > 0 ? p->config.bpm : wt_tempo_run(p->tempo, envelope, n);
    int period = (int)period_of(p, *bpm);
    if (period > p->max_period) period = p->max_period;
    if (period < 1) period = 1;
    normalise(envelope, n, p->envelope);
    smooth(p, n, period);
    link_beats(p, n, period);
    int64_t count = 0;
    for (int64_t at = last_beat(p, n); at >= 0; at = p->link[at]) frames[count++] = (int)at;
    for (int64_t i = 0, j = count - 1; i < j; i++, j--) {
        const int t = frames[i];
        frames[i] = frames[j];
        frames[j] = t;
    }
    return trim(p, n, frames, count);
}

// ---- on a stream

typedef struct call {
    const wt_beat *plan;
    const float *envelope;
    int *frames;
    wt_beats *found;
} call;

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const int64_t n = c->plan->config.max_frames;
    for (int s = slot; s < c->plan->config.n_signals; s += c->plan->n_slots) {
        wt_beats *found = c->found + s;
        found->n_beats = wt_beat_run(c->plan->workers[slot], c->envelope + s * n, n, c->frames + s * n, &found->bpm);
    }
}

wt_status wt_beat_enqueue(wt_beat *plan, wt_stream *stream, const wt_buffer *envelope, size_t envelope_offset,
                          wt_buffer *frames, size_t frames_offset, wt_buffer *found, size_t found_offset)
{
    const size_t n = (size_t)plan->config.n_signals, area = n * (size_t)plan->config.max_frames;
    wt_status status = wt__op_stream("beat", plan->device, stream);
    if (!status) status = wt__op_range("beat", "envelope", envelope, envelope_offset, area);
    if (!status) status = wt__op_range("beat", "frames", frames, frames_offset, area);
    if (!status) status = wt__op_range("beat", "found", found, found_offset, n * sizeof(wt_beats) / sizeof(float));
    if (!status && found_offset % sizeof(double))
        status = wt_fail(WT_ERR_BAD_ARG, "beat: found offset %zu, want a multiple of 8", found_offset);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(envelope) + envelope_offset),
                    (int *)(wt_buffer_address(frames) + frames_offset),
                    (wt_beats *)(wt_buffer_address(found) + found_offset)};
    if (plan->cuda) return wt__beat_cuda_enqueue(plan->cuda, stream, c.envelope, c.frames, c.found);
    return wt_stream_run(stream, run_slot, &c, sizeof c, plan->n_slots);
}
