// Time stretch: short-time transform, phase vocoder, and back, a few frames at a time. Each thread works on one signal.
//
// The forward transform runs in double and is rounded once. A weak bin's phase decides how the bin sounds when it has
// become strong; a transform in float leaves bins below 1e-7 of the peak with phases of noise, and costs 5e-3 of the
// peak on a glide where this costs 2e-7.

#include "op.h"
#include "phase_vocoder.h"
#include "stft_internal.h"
#include "stretch_cuda.h"
#include "stretch_internal.h"
#include "stretch_locked.h"
#include "stretch_wsola.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES = WT__FFT64_FRAMES, PAIRS = FRAMES / 2 };

typedef struct worker {
    wt_stft *stft; // for the way back
    wt__fft64 *fft;
    double *x, *work;     // [n_fft][2][8]
    float *padded;        // [FRAMES + 1][n_fft] frames over an end of the signal; the last one is silence
    const float **frames; // [FRAMES] of the next transform
    wt_phase_vocoder *vocoder;
    float *in, *out; // spectra of FRAMES frames before, and of n_held after
    wt__stft_walk walk;
    int64_t first;              // of the frames before: librosa's mode
    int64_t held[PAIRS], known; // attacks that the pairs before go with; the one in `attack`
    wt__locked locked;
    wt__transients transients;
    float *attack; // [2][bins][2] spectra at an attack, and before it
    wt__wsola wsola;
} worker;

struct wt_stretch {
    wt_device *device;
    wt_stretch_mode mode;
    double rate;
    int64_t n_samples, n_out, n_frames, n_made; // frames of the input (librosa's mode), of the output
    int n_signals, n_slots, n_fft, hop, n_held; // n_held: frames of the output at once
    double *window; // [n_fft]
    worker *workers;
    wt__stretch_cuda *cuda; // on a GPU one of these
    wt__wsola_cuda *wsola;
};

static wt_status check(const wt_stretch_config *c)
{
    if (!(c->rate >= 1.0 / 256) || c->rate > 256)
        return wt_fail(WT_ERR_BAD_ARG, "stretch: rate %g, want 1/256..256", c->rate);
    if (c->n_samples < 1)
        return wt_fail(WT_ERR_BAD_ARG, "stretch: signals of %lld samples, want 1 or more", (long long)c->n_samples);
    if (c->n_fft < 1 || c->n_fft > 1 << 20)
        return wt_fail(WT_ERR_BAD_ARG, "stretch: n_fft %d, want 1..%d", c->n_fft, 1 << 20);
    if (c->hop < 1) return wt_fail(WT_ERR_BAD_ARG, "stretch: hop %d, want 1 or more", c->hop);
    if ((unsigned)c->mode > WT_STRETCH_WSOLA)
        return wt_fail(WT_ERR_BAD_ARG, "stretch: mode %d, want 0..%d", (int)c->mode, WT_STRETCH_WSOLA);
    if (c->n_signals < 1) return wt_fail(WT_ERR_BAD_ARG, "stretch: %d signals, want 1 or more", c->n_signals);
    if (c->frames_at_once < 0)
        return wt_fail(WT_ERR_BAD_ARG, "stretch: %d frames at once, want 0 or more", c->frames_at_once);
    return WT_OK;
}

static int64_t smallest(int64_t a, int64_t b) { return a < b ? a : b; }

static bool keeps_attacks(wt_stretch_mode mode) { return mode == WT_STRETCH_TRANSIENT || mode == WT_STRETCH_WSOLA; }

static wt_status prepare_attacks(wt_stretch *p, worker *w)
{
    w->transients = (wt__transients){.n_samples = p->n_samples, .n_out = p->n_out, .n_fft = p->n_fft, .rate = p->rate};
    const wt_status status = wt__transients_create(&w->transients);
    if (status || p->mode == WT_STRETCH_TRANSIENT) return status;
    w->wsola = (wt__wsola){.n_fft = p->n_fft, .hop = p->hop, .window = p->window};
    return wt__wsola_create(&w->wsola);
}

static wt_status create_worker(wt_stretch *p, const wt_stretch_config *c, worker *w)
{
    wt_status status = keeps_attacks(c->mode) ? prepare_attacks(p, w) : WT_OK;
    if (status || c->mode == WT_STRETCH_WSOLA) return status;
    status = wt_stft_create(&(wt_stft_config){.n_fft = c->n_fft, .hop = c->hop}, &w->stft);
    if (status) return status;
    const int bins = wt_stft_bins(w->stft);
    status = wt_phase_vocoder_create(NULL, &(wt_phase_vocoder_config){bins, c->rate}, &w->vocoder);
    if (status) return status;
    p->n_frames = wt_stft_frames(w->stft, c->n_samples);
    p->n_made = wt_phase_vocoder_frames(w->vocoder, p->n_frames);
    if (c->mode != WT_STRETCH_LIBROSA) p->n_made = 1 + p->n_out / c->hop;
    p->n_held = (int)smallest(p->n_made, c->frames_at_once ? c->frames_at_once : FRAMES);
    status = wt__fft64_create(c->n_fft, &w->fft);
    if (status) return status;
    const size_t points = wt__fft64_doubles(c->n_fft) * sizeof(double);
    w->x = aligned_alloc(64, points), w->work = aligned_alloc(64, points);
    w->padded = calloc((FRAMES + 1) * (size_t)c->n_fft, sizeof(float));
    w->frames = calloc(FRAMES, sizeof *w->frames);
    const size_t frame = 2 * (size_t)bins * sizeof(float);
    w->in = malloc(FRAMES * frame);
    w->out = malloc((size_t)p->n_held * frame);
    w->locked.power = malloc((size_t)bins * sizeof(float));
    w->locked.peaks = malloc((size_t)bins * sizeof(int));
    w->locked.before = malloc(2 * (size_t)bins * sizeof(double));
    w->attack = malloc(2 * frame);
    const bool transform = w->x && w->work && w->padded && w->frames;
    const bool locked = w->locked.power && w->locked.peaks && w->locked.before && w->attack;
    if (transform && w->in && w->out && locked) return WT_OK;
    return wt_fail(WT_ERR_NO_MEMORY, "stretch: spectra of %d frames of %d samples", p->n_held, c->n_fft);
}

static wt_status make_cuda(wt_stretch *p, int frames_at_once)
{
    const wt__stretch_shape shape = {.mode = p->mode,
                                     .rate = p->rate,
                                     .n_samples = p->n_samples,
                                     .n_out = p->n_out,
                                     .n_frames = p->n_frames,
                                     .n_made = p->n_made,
                                     .n_signals = p->n_signals,
                                     .n_fft = p->n_fft,
                                     .hop = p->hop,
                                     .frames_at_once = frames_at_once,
                                     .window = p->window};
    if (p->mode == WT_STRETCH_WSOLA) return wt__wsola_cuda_create(p->device, &shape, &p->wsola);
    return wt__stretch_cuda_create(p->device, &shape, &p->cuda);
}

wt_status wt_stretch_create(wt_device *device, const wt_stretch_config *config, wt_stretch **plan)
{
    *plan = NULL;
    wt_stretch_config c = *config;
    if (c.rate == 0) c.rate = 1;
    const bool pieces = c.mode == WT_STRETCH_WSOLA;
    if (!c.n_fft) c.n_fft = pieces ? 1024 : 2048;
    if (!c.hop) c.hop = pieces ? c.n_fft / 2 : c.n_fft / 4;
    if (!c.n_signals) c.n_signals = 1;
    wt_status status = check(&c);
    if (status) return status;
    wt_stretch *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "stretch: plan");
    p->device = device;
    p->n_samples = c.n_samples;
    p->n_out = llrint((double)c.n_samples / c.rate);
    p->n_signals = c.n_signals;
    p->mode = c.mode;
    p->rate = c.rate;
    p->n_fft = c.n_fft;
    p->hop = c.hop;
    p->n_slots = wt__op_slots(device, c.n_signals);
    p->workers = calloc((size_t)p->n_slots, sizeof *p->workers);
    p->window = malloc((size_t)c.n_fft * sizeof *p->window);
    status = p->workers && p->window ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "stretch: %d threads", p->n_slots);
    if (!status) status = wt_window_fill_double(&(wt_window_config){.n = c.n_fft}, p->window);
    for (int slot = 0; slot < p->n_slots && !status; slot++) status = create_worker(p, &c, &p->workers[slot]);
    if (!status && wt__op_on_gpu(device)) status = make_cuda(p, c.frames_at_once);
    if (status)
        wt_stretch_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_stretch_destroy(wt_stretch *plan)
{
    if (!plan) return;
    for (int slot = 0; plan->workers && slot < plan->n_slots; slot++) {
        wt_stft_destroy(plan->workers[slot].stft);
        wt_phase_vocoder_destroy(plan->workers[slot].vocoder);
        wt__fft64_destroy(plan->workers[slot].fft);
        free(plan->workers[slot].x);
        free(plan->workers[slot].work);
        free(plan->workers[slot].padded);
        free(plan->workers[slot].frames);
        free(plan->workers[slot].in);
        free(plan->workers[slot].out);
        free(plan->workers[slot].locked.power);
        free(plan->workers[slot].locked.peaks);
        free(plan->workers[slot].locked.before);
        free(plan->workers[slot].attack);
        wt__transients_destroy(&plan->workers[slot].transients);
        wt__wsola_destroy(&plan->workers[slot].wsola);
    }
    wt__stretch_cuda_destroy(plan->cuda);
    wt__wsola_cuda_destroy(plan->wsola);
    free(plan->workers);
    free(plan->window);
    free(plan);
}

int64_t wt_stretch_n_out(const wt_stretch *plan) { return plan->n_out; }

// ---- frames

// The frame centred on a sample, zeros outside the signal, to be transformed as number f.
static void put_frame(const wt_stretch *p, const worker *w, const float *pcm, int64_t centre, int f)
{
    const int64_t begin = centre - p->n_fft / 2;
    int first = begin < 0 ? begin + p->n_fft < 0 ? p->n_fft : (int)-begin : 0, end = p->n_fft;
    if (end > p->n_samples - begin) end = p->n_samples > begin ? (int)(p->n_samples - begin) : 0;
    float *padded = w->padded + (size_t)f * (size_t)p->n_fft;
    w->frames[f] = first >= end              ? w->padded + FRAMES * (size_t)p->n_fft
                   : first || end < p->n_fft ? padded
                                             : pcm + begin;
    if (w->frames[f] != padded) return;
    memset(padded, 0, (size_t)p->n_fft * sizeof(float));
    memcpy(padded + first, pcm + begin + first, (size_t)(end - first) * sizeof(float));
}

// Spectra of the frames put.
static void transform(const wt_stretch *p, const worker *w, float *const *spectra, int count)
{
    wt__fft64_frames(w->frames, p->window, p->n_fft, NULL, w->x);
    wt__fft64_pairs(wt__fft64_run(w->fft, w->x, w->work), p->n_fft, spectra, count);
}

typedef struct input {
    const wt_stretch *p;
    worker *w;
    const float *pcm;
} input;

// Frame k of the input, for librosa's vocoder; the frames are transformed in the same groups however many are asked
// for.
static const float *frame_of(const void *user, int64_t k)
{
    const input *in = user;
    worker *w = in->w;
    const int64_t frame = 2 * wt_stft_bins(w->stft), first = k / FRAMES * FRAMES;
    float *spectra[FRAMES];
    if (k >= in->p->n_frames) return NULL;
    if (first != w->first) {
        for (int f = 0; f < FRAMES; f++) {
            spectra[f] = w->in + f * frame;
            put_frame(in->p, w, in->pcm, (first + f) * in->p->hop, f);
        }
        transform(in->p, w, spectra, FRAMES);
        w->first = first;
    }
    return w->in + (k - first) * frame;
}

// Spectra at an attack and just before its window, for the bins that it rules: A. Roebel, A new approach to transient
// processing in the phase vocoder, 2003, which tells them by their energies' centres in time. It rules all when the
// attack before lies in that window too.
static void analyse_attack(const wt_stretch *p, const worker *w, const float *pcm, int64_t i)
{
    float *spectra[2] = {w->attack, w->attack + 2 * wt_stft_bins(w->stft)};
    const wt_transient *attack = &w->transients.at[i];
    const int64_t quiet = attack->in - p->n_fft / 2 - p->n_fft / 32;
    const bool alone = !i || attack[-1].in < quiet - p->n_fft / 2;
    put_frame(p, w, pcm, attack->in, 0);
    for (int f = 1; f < FRAMES; f++) put_frame(p, w, pcm, f == 1 && alone ? quiet : -p->n_fft, f);
    transform(p, w, spectra, 2);
}

// The pairs of frames, here and a hop earlier, that output frames t and those behind it are made of, eight a transform.
static void put_pairs(const wt_stretch *p, worker *w, const float *pcm, int64_t t)
{
    const int64_t frame = 2 * wt_stft_bins(w->stft);
    float *spectra[FRAMES];
    for (int s = 0; s < FRAMES; s++) spectra[s] = w->in + s * frame;
    for (int s = 0; s < PAIRS; s++) {
        const int64_t to = (t + s) * p->hop;
        wt_stretch_place place = {.centre = llrint((double)to * p->rate), .held = -1};
        if (p->mode == WT_STRETCH_TRANSIENT) place = wt__transients_place(&w->transients, to);
        put_frame(p, w, pcm, place.centre, 2 * s);
        put_frame(p, w, pcm, place.centre - p->hop, 2 * s + 1);
        w->held[s] = place.held;
    }
    transform(p, w, spectra, FRAMES);
}

// Output frame t, phase-locked.
static void lock_frame(const wt_stretch *p, worker *w, const float *pcm, int64_t t, float *out)
{
    const int bins = wt_stft_bins(w->stft), pair = (int)(t % PAIRS);
    const float *here = w->in + (int64_t)pair * 4 * bins;
    const int64_t held = w->held[pair];
    wt__stretch_lock(&w->locked, bins, here, t ? here + 2 * bins : NULL, out);
    if (held < 0) return;
    if (held != w->known) analyse_attack(p, w, pcm, held);
    w->known = held;
    wt__stretch_attack(&w->locked, bins, w->attack, w->attack + 2 * bins, here, out);
}

// The next `count` frames of the output.
static void make_frames(const wt_stretch *p, worker *w, const float *pcm, int64_t count)
{
    const int64_t frame = 2 * wt_stft_bins(w->stft);
    const input in = {p, w, pcm};
    for (int64_t i = 0, t = w->walk.t; i < count; i++, t++) {
        float *out = w->out + i * frame;
        if (p->mode == WT_STRETCH_LIBROSA) {
            wt__phase_vocoder_next(w->vocoder, frame_of, &in, out);
            continue;
        }
        if (t % PAIRS == 0) put_pairs(p, w, pcm, t);
        lock_frame(p, w, pcm, t, out);
    }
}

// ---- a signal, some samples after the others

static void begin(const wt_stretch *p, worker *w, const float *pcm)
{
    if (keeps_attacks(p->mode)) wt__transients_find(&w->transients, pcm);
    if (p->mode == WT_STRETCH_WSOLA) {
        wt__wsola_begin(&w->wsola);
        return;
    }
    wt__stft_walk_begin(w->stft, p->n_made, p->n_out, &w->walk);
    wt__phase_vocoder_begin(w->vocoder);
    w->first = w->known = -1;
}

// The next samples, perhaps none; there are n_out.
static int64_t go_on(const wt_stretch *p, worker *w, const float *pcm, float *out)
{
    if (p->mode == WT_STRETCH_WSOLA) return wt__wsola_next(&w->wsola, &w->transients, pcm, out);
    const int64_t left = w->walk.n_frames - w->walk.t;
    make_frames(p, w, pcm, smallest(left, p->n_held));
    return wt__stft_walk_on(w->stft, &w->walk, w->out, p->n_held, out);
}

WT_RT void wt__stretch_begin(wt_stretch *plan, const float *pcm) { begin(plan, plan->workers, pcm); }

WT_RT int64_t wt__stretch_next(wt_stretch *plan, const float *pcm, float *out)
{
    return go_on(plan, plan->workers, pcm, out);
}

int64_t wt__stretch_room(const wt_stretch *plan)
{
    return smallest((plan->mode == WT_STRETCH_WSOLA ? 1 : (int64_t)plan->n_held) * plan->hop, plan->n_out);
}

// ---- running

typedef struct call {
    const wt_stretch *plan;
    const float *pcm;
    float *out;
} call;

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_stretch *p = c->plan;
    worker *w = &p->workers[slot];
    for (int signal = slot; signal < p->n_signals && p->n_out; signal += p->n_slots) {
        const float *pcm = c->pcm + signal * p->n_samples;
        float *out = c->out + signal * p->n_out;
        begin(p, w, pcm);
        for (int64_t done = 0; done < p->n_out;) done += go_on(p, w, pcm, out + done);
    }
}

WT_RT void wt_stretch_run(wt_stretch *plan, const float *pcm, float *out)
{
    const call c = {plan, pcm, out};
    for (int slot = 0; slot < plan->n_slots; slot++) run_slot(&c, slot);
}

wt_status wt_stretch_enqueue(wt_stretch *plan, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset,
                             wt_buffer *out, size_t out_offset)
{
    const size_t n = (size_t)plan->n_signals;
    wt_status status = wt__op_stream("stretch", plan->device, stream);
    if (!status) status = wt__op_range("stretch", "pcm", pcm, pcm_offset, n * (size_t)plan->n_samples);
    if (!status) status = wt__op_range("stretch", "out", out, out_offset, n * (size_t)plan->n_out);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(pcm) + pcm_offset),
                    (float *)(wt_buffer_address(out) + out_offset)};
    if (plan->wsola) return wt__wsola_cuda_enqueue(plan->wsola, stream, c.pcm, c.out);
    if (plan->cuda) return wt__stretch_cuda_enqueue(plan->cuda, stream, c.pcm, out, out_offset);
    return wt_stream_run(stream, run_slot, &c, sizeof c, plan->n_slots);
}
