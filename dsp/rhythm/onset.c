// Onset strength: mel spectra in decibels, differences in time, positive parts, mean or median over the bands.
//
// Sixteen frames lie side by side in a vector. The median sorts the bands of sixteen frames by Batcher's network of
// comparisons, whose order does not depend on the data; halves of them, where both halves have as many.
//
// With a maximum filter, spectra are precise: what rises above the largest of neighbours is little beside the decibels
// of weak bands. On AVX2 a trumpet's strength was 1.2e-6 of its peak away from librosa's, a glide's 1.1e-5, nearly all
// of it the float transforms' rounding in bands 100 dB below the loudest. Decibels are in double then too: a float's
// are off by 4e-6 dB at 80, and a median of rises may be 0.5 at its peak.

#include "db_internal.h"
#include "lanes.h"
#include "onset_cuda.h"

#include <stdlib.h>
#include <string.h>
#include <warptone/mel.h>
#include <warptone/onset.h>
#include <warptone/simd.h>

enum { LANES = WT__LANES, MOST_LAG = 1 << 24 };

typedef struct worker {
    wt_mel *mel;
    float *spectra; // [n_frames][n_mels] of one signal: decibels, or powers of precise ones
    double *levels; // [2][n_mels] decibels of two precise frames
    float *rows;    // [LANES][n_mels]
    float *rises;   // [n_mels][LANES]
} worker;

struct wt_onset {
    wt_onset_config config;
    int64_t n_frames;
    int shift; // frames by which the envelope is late
    wt_device *device;
    int n_slots;
    worker *workers;
    wt__onset_cuda *cuda; // NULL on a CPU
};

static wt_status resolve(wt_onset_config *c)
{
    if (!c->rate_hz) c->rate_hz = 22050;
    if (!c->n_fft) c->n_fft = 2048;
    if (!c->hop) c->hop = 512;
    if (!c->n_mels) c->n_mels = 128;
    if (!c->lag) c->lag = 1;
    if (!c->max_size) c->max_size = 1;
    if (!c->n_signals) c->n_signals = 1;
    if (c->max_size > 1) c->precise = true;
    if (c->lag < 1 || c->lag > MOST_LAG)
        return wt_fail(WT_ERR_BAD_ARG, "onset: lag %d, want 1..%d", c->lag, MOST_LAG);
    if (c->max_size < 1) return wt_fail(WT_ERR_BAD_ARG, "onset: max_size %d, want 1 or more", c->max_size);
    if (c->n_signals < 1) return wt_fail(WT_ERR_BAD_ARG, "onset: %d signals, want 1 or more", c->n_signals);
    return WT_OK;
}

static wt_status create_worker(wt_onset *p, worker *w)
{
    const wt_onset_config *c = &p->config;
    const wt_mel_config mel = {.n_samples = c->n_samples,
                               .stft = {.n_fft = c->n_fft, .hop = c->hop, .precise = c->precise},
                               .bank = {.rate_hz = c->rate_hz, .n_mels = c->n_mels},
                               .scale = c->precise ? WT_MEL_LINEAR : WT_MEL_DB,
                               .db = {.no_top = c->has_floor},
                               .frames_first = true};
    wt_status status = wt_mel_create(NULL, &mel, &w->mel);
    if (status) return status;
    p->n_frames = wt_mel_frames(w->mel);
    w->spectra = malloc((size_t)c->n_mels * (size_t)p->n_frames * sizeof(float));
    w->rows = malloc(LANES * (size_t)c->n_mels * sizeof(float));
    w->rises = malloc(LANES * (size_t)c->n_mels * sizeof(float));
    w->levels = malloc(2 * (size_t)c->n_mels * sizeof(double));
    const bool taken = w->spectra && w->rows && w->rises && w->levels;
    return taken ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "onset: %d bands", c->n_mels);
}

wt_status wt_onset_create(wt_device *device, const wt_onset_config *config, wt_onset **plan)
{
    *plan = NULL;
    wt_onset *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "onset: plan");
    wt_onset_config *c = &p->config;
    *c = *config;
    wt_status status = resolve(c);
    if (status) goto fail;
    p->device = device;
    p->n_slots = wt__op_slots(device, c->n_signals);
    p->workers = calloc((size_t)p->n_slots, sizeof *p->workers);
    status = p->workers ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "onset: %d threads", p->n_slots);
    for (int slot = 0; slot < p->n_slots && !status; slot++) status = create_worker(p, &p->workers[slot]);
    if (!status) p->shift = c->lag + (c->no_center ? 0 : c->n_fft / (2 * c->hop)); // the plans of mel refuse bad ones
    if (!status && wt__op_on_gpu(device))
        status = wt__onset_cuda_create(device, c, p->shift, &p->n_frames, &p->cuda);
    if (status) goto fail;
    *plan = p;
    return WT_OK;

fail:
    wt_onset_destroy(p);
    return status;
}

void wt_onset_destroy(wt_onset *plan)
{
    if (!plan) return;
    for (int slot = 0; plan->workers && slot < plan->n_slots; slot++) {
        wt_mel_destroy(plan->workers[slot].mel);
        free(plan->workers[slot].spectra);
        free(plan->workers[slot].rows);
        free(plan->workers[slot].rises);
        free(plan->workers[slot].levels);
    }
    free(plan->workers);
    wt__onset_cuda_destroy(plan->cuda);
    free(plan);
}

int64_t wt_onset_n_frames(const wt_onset *plan)
{
    return plan->n_frames;
}

// ---- sixteen frames

// Largest of max_size bands around each; the mirrored ends add no larger value.
WT_INLINE void most_of(const float *restrict bands, int n_bands, int max_size, float *restrict most)
{
    for (int band = 0; band < n_bands; band++) most[band] = -1e30f;
    for (int k = -(max_size / 2); k < max_size - max_size / 2; k++) {
        const int begin = k < 0 ? -k : 0, end = k < 0 ? n_bands : n_bands - k;
        for (int band = begin; band < end; band++)
            most[band] = bands[band + k] > most[band] ? bands[band + k] : most[band];
    }
}

// max(0, after[band] - max of before[] over max_size bands).
WT_INLINE void rises_of(const float *restrict before, const float *restrict after, int n_bands, int max_size,
                        float *restrict rises)
{
    most_of(before, n_bands, max_size, rises);
    for (int band = 0; band < n_bands; band++) {
        const float rise = after[band] - rises[band];
        rises[band] = rise < 0 ? 0 : rise;
    }
}

// Rises of the `count` frames from `spectra` on, [LANES][n_bands].
WT_CLONES static void take_rises(const float *spectra, int count, int n_bands, int lag, int max_size, float *rows)
{
    for (int i = 0; i < count; i++) {
        const float *before = spectra + (ptrdiff_t)i * n_bands;
        rises_of(before, before + (ptrdiff_t)lag * n_bands, n_bands, max_size, rows + i * n_bands);
    }
}

WT_CLONES static void take_levels(const float *powers, double floor_db, double *levels, int n_bands)
{
    for (int band = 0; band < n_bands; band++) {
        const double level = wt__onset_db(powers[band]);
        levels[band] = level < floor_db ? floor_db : level;
    }
}

WT_CLONES static void take_differences(const double *before, const double *after, int n_bands, float *rises)
{
    for (int band = 0; band < n_bands; band++) {
        const float rise = (float)(after[band] - before[band]);
        rises[band] = rise < 0 ? 0 : rise;
    }
}

// The same of powers. Between frames of lag 1 without a maximum filter, one's levels are the next one's.
static void take_precise_rises(const wt_onset *p, worker *w, int64_t t, int count, double floor_db)
{
    const wt_onset_config *c = &p->config;
    const int n = c->n_mels;
    const bool next = c->lag == 1 && c->max_size == 1;
    double *before = w->levels, *after = before + n;
    for (int i = 0; i < count; i++) {
        const float *frame = w->spectra + (t + i) * n;
        float *row = w->rows + i * n;
        if (i && next) {
            double *other = before;
            before = after, after = other;
        } else {
            most_of(frame, n, c->max_size, row);
            take_levels(row, floor_db, before, n);
        }
        take_levels(frame + (int64_t)c->lag * n, floor_db, after, n);
        take_differences(before, after, n, row);
    }
}

WT_CLONES static void take_mean(const float *rises, int n_bands, float *out)
{
    double sum[LANES] = {0};
    for (int band = 0; band < n_bands; band++)
        for (int i = 0; i < LANES; i++) sum[i] += rises[band * LANES + i];
    for (int i = 0; i < LANES; i++) out[i] = (float)(sum[i] / n_bands);
}

// Of two sorted halves a and b of h rows the lower half is all min(a[k], b[h - 1 - k]), the upper all max of these: the
// largest of the one and the smallest of the other go to a[0] and b[h - 1].
WT_CLONES static void meet(float *rows, int h)
{
    wt__bits *a = (wt__bits *)rows, *b = a + h * LANES, *last = b + (h - 1) * LANES;
    wt__lanes_order(a, last);
    for (int k = 1; k < h; k++)
        for (int i = 0; i < LANES; i++) {
            const wt__bits x = a[k * LANES + i], y = b[(h - 1 - k) * LANES + i];
            a[i] = wt__most(a[i], wt__least(x, y)), last[i] = wt__least(last[i], wt__most(x, y));
        }
}

static void take_median(float *rises, int n_bands, float *out)
{
    const int half = n_bands / 2;
    const float *low = rises, *high = rises + (n_bands - 1) * LANES;
    if (n_bands % 2) {
        wt__lanes_sort(rises, n_bands);
        low = high = rises + half * LANES;
    } else {
        wt__lanes_sort(rises, half);
        wt__lanes_sort(rises + half * LANES, half);
        meet(rises, half);
    }
    for (int i = 0; i < LANES; i++) out[i] = (float)(((double)low[i] + high[i]) / 2);
}

// ---- running

static void run_signal(const wt_onset *p, worker *w, const float *pcm, float *out)
{
    const wt_onset_config *c = &p->config;
    wt_mel_run(w->mel, pcm, w->spectra);
    const int64_t all = c->n_mels * p->n_frames;
    const float floor = (float)c->floor_db;
    for (int64_t k = 0; c->has_floor && !c->precise && k < all; k++)
        if (w->spectra[k] < floor) w->spectra[k] = floor;
    double floor_db = c->floor_db;
    if (c->precise && !c->has_floor) floor_db = wt__onset_db(wt__db_peak(w->spectra, all)) - 80;
    memset(out, 0, (size_t)(p->shift < p->n_frames ? p->shift : p->n_frames) * sizeof *out);
    for (int64_t t = 0; t + c->lag < p->n_frames && t + p->shift < p->n_frames; t += LANES) {
        float lanes[LANES];
        const int64_t rest = p->n_frames - c->lag - t, room = p->n_frames - p->shift - t;
        const int count = rest < LANES ? (int)rest : LANES;
        if (c->precise)
            take_precise_rises(p, w, t, count, floor_db);
        else
            take_rises(w->spectra + t * c->n_mels, count, c->n_mels, c->lag, c->max_size, w->rows);
        wt__lanes_turn(w->rows, c->n_mels, count, c->n_mels, w->rises);
        if (c->median)
            take_median(w->rises, c->n_mels, lanes);
        else
            take_mean(w->rises, c->n_mels, lanes);
        memcpy(out + p->shift + t, lanes, (size_t)(room < count ? room : count) * sizeof *out);
    }
    double before = 0, slow = 0;
    for (int64_t t = 0; t < p->n_frames && c->detrend; t++) {
        slow = out[t] - before + 0.99 * slow;
        before = out[t];
        out[t] = (float)slow;
    }
}

typedef struct call {
    const wt_onset *plan;
    const float *pcm;
    float *envelope;
} call;

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_onset *p = c->plan;
    for (int s = slot; s < p->config.n_signals; s += p->n_slots)
        run_signal(p, &p->workers[slot], c->pcm + s * p->config.n_samples, c->envelope + s * p->n_frames);
}

WT_RT void wt_onset_run(wt_onset *plan, const float *pcm, float *envelope)
{
    const call c = {plan, pcm, envelope};
    for (int slot = 0; slot < plan->n_slots; slot++) run_slot(&c, slot);
}

wt_status wt_onset_enqueue(wt_onset *plan, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset,
                           wt_buffer *envelope, size_t envelope_offset)
{
    const size_t n = (size_t)plan->config.n_signals;
    wt_status status = wt__op_stream("onset", plan->device, stream);
    if (!status) status = wt__op_range("onset", "pcm", pcm, pcm_offset, n * (size_t)plan->config.n_samples);
    if (!status) status = wt__op_range("onset", "envelope", envelope, envelope_offset, n * (size_t)plan->n_frames);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(pcm) + pcm_offset),
                    (float *)(wt_buffer_address(envelope) + envelope_offset)};
    if (plan->cuda) return wt__onset_cuda_enqueue(plan->cuda, stream, pcm, pcm_offset, c.envelope);
    return wt_stream_run(stream, run_slot, &c, sizeof c, plan->n_slots);
}
