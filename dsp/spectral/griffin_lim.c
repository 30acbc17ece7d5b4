// Per iteration: A to a signal y, y to spectra R, A = S (R - c R_before) / |R - c R_before|, c = m / (1 + m).
//
// In float a frame goes all the way while it is in the cache: transformed, given its phases, transformed back and added
// to the next y. No spectrum is kept: the transform is linear, so R - c R_before is that of y - c y_before, and two
// signals are what an iteration needs of those before. And several iterations run at once, each `lag` frames behind the
// one before, whose samples are finished there: they and the magnitudes of a frame stay in the second-level cache for
// all of them. The order of every sum is as if one ran after the other. On eight lanes frames of 2048 samples go all
// the way in fft_whole.h. In double sixteen frames are transformed at once (fft_double.c), and spectra, R_before among
// them, lie in tiles [bins][16]. Overlapped sums go to one padded signal, whose sums of squared windows are a table.

#include "griffin_lim_cuda.h"
#include "op.h"
#include "stft_internal.h"

#include <warptone/griffin_lim.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/simd.h>

enum { F = WT__FFT64_FRAMES, AT_ONCE = 8, HOPS = 16 }; // iterations at once; hops between moves of their samples

// The padded signal of one iteration, or of the phases it begins with, as far as it is needed.
typedef struct stage {
    float *samples; // [room] sums of frames, and then y
    float *next;    // [room] y - c y_before, of which the next iteration makes spectra
    int64_t origin; // of both in the padded signal, whole hops
} stage;

// What one thread needs. R and A in double [tiles][2][bins][16].
typedef struct slot {
    wt_stft *stft;
    uint64_t *seeds; // [bins]
    wt_fft *inverse;
    float *re, *im, *frame;
    float *next, *own; // [length] y - c y_before where one run of stages ended; NULL or the same
    stage stages[AT_ONCE + 1];                  // the last ones' source first
    double *a64, *before64, *padded, *x, *work; // padded [n_padded], x and work [n_fft][2][8]
} slot;

struct wt_griffin_lim {
    wt_griffin_lim_config config; // defaults resolved
    wt_device *device;
    int bins, n_slots, n_fft, hop, margin;
    float c;    // m / (1 + m)
    size_t row; // floats of bins
    int64_t n_lines, n_tiles, length, used, n_padded; // used: frames that count for the length
    int64_t lag, room;                                // frames between two iterations, samples of a stage
    int64_t head, tail; // samples of the padded signal before `head` and from `tail` on are in the tables; else they
                        // repeat: so do the squares where all frames are there that can reach a sample
    slot *slots;
    wt__fft64 *fft;
    double *window;  // [n_fft]
    double *squares; // [n_squares] reciprocals of the windows' squares
    float *squares32;
    wt__griffin_lim_cuda *cuda;
};

// ---- creating

static wt_status resolve(wt_griffin_lim *g, const wt_stft *stft)
{
    wt_griffin_lim_config *c = &g->config;
    const wt_stft_config *s = wt__stft_config(stft);
    if (!c->n_signals) c->n_signals = 1;
    if (!c->n_iter) c->n_iter = 32;
    if (!c->momentum) c->momentum = 0.99;
    if (c->no_momentum) c->momentum = 0;
    if (c->n_frames < 1 || c->n_signals < 1 || c->n_iter < 1)
        return wt_fail(WT_ERR_BAD_ARG, "griffin-lim: %lld frames, %d signals, %d iterations, want 1 or more",
                       (long long)c->n_frames, c->n_signals, c->n_iter);
    if (!(c->momentum >= 0)) return wt_fail(WT_ERR_BAD_ARG, "griffin-lim: momentum %g, want 0 or more", c->momentum);
    if (c->work && g->device)
        return wt_fail(WT_ERR_BAD_ARG, "griffin-lim: work of a plan with a device, want a plan of immediate calls");
    g->length = c->length ? c->length : wt_stft_samples(stft, c->n_frames);
    if (wt_stft_frames(stft, g->length) != c->n_frames)
        return wt_fail(WT_ERR_BAD_ARG, "griffin-lim: length %lld has %lld frames, want the %lld given",
                       (long long)g->length, (long long)wt_stft_frames(stft, g->length), (long long)c->n_frames);
    g->bins = wt_stft_bins(stft);
    g->row = wt__fft_padded((size_t)g->bins);
    g->c = (float)(c->momentum / (1 + c->momentum));
    g->n_fft = s->n_fft, g->hop = s->hop, g->margin = s->no_center ? 0 : s->n_fft / 2;
    g->n_lines = (int64_t)c->n_signals * s->channels;
    g->n_tiles = (c->n_frames + F - 1) / F;
    g->used = wt__stft_used_frames(stft, c->n_frames, g->length);
    g->n_padded = g->length + 2 * g->margin + g->n_fft + g->hop * (g->n_tiles * F - c->n_frames);
    g->lag = g->n_fft / g->hop;
    g->room = 2 * (int64_t)g->n_fft + (HOPS + 3) * (int64_t)g->hop;
    g->head = g->tail = g->n_padded;
    if (g->length > 2 * (int64_t)g->n_fft && g->room < g->n_padded) {
        if (s->precise) return WT_OK;
        g->head = (g->lag + 1) * g->hop;
        g->tail = (c->n_frames - 1 < g->used ? c->n_frames - 1 : g->used) * g->hop;
        return WT_OK;
    }
    g->lag = c->n_frames; // so short that padding may reach for any sample
    g->room = g->n_padded + g->hop;
    return WT_OK;
}

// One over what the squared windows of all frames add up to at a sample of the padded signal.
static double reciprocal_at(const wt_griffin_lim *g, int64_t at)
{
    double sum = 0;
    for (int64_t t = at < g->n_fft ? 0 : (at - g->n_fft) / g->hop + 1; t < g->used && t * g->hop <= at; t++)
        sum += g->window[at - t * g->hop] * g->window[at - t * g->hop];
    return sum > DBL_MIN ? 1 / sum : 1;
}

// The samples in the tables.
static int64_t n_squares(const wt_griffin_lim *g) { return g->head + g->n_padded - g->tail; }

static wt_status make_windows(wt_griffin_lim *g)
{
    wt_window_config window = g->config.stft.window;
    const int win_length = g->config.stft.win_length ? g->config.stft.win_length : g->n_fft;
    window.n = win_length;
    g->window = calloc((size_t)g->n_fft, sizeof(double));
    g->squares = calloc((size_t)n_squares(g), sizeof(double));
    g->squares32 = calloc((size_t)n_squares(g), sizeof(float));
    if (!g->window || !g->squares || !g->squares32)
        return wt_fail(WT_ERR_NO_MEMORY, "griffin-lim: tables of %lld doubles", (long long)n_squares(g));
    wt_status status = wt_window_fill_double(&window, g->window + (g->n_fft - win_length) / 2);
    if (!status && g->config.stft.precise) status = wt__fft64_create(g->n_fft, &g->fft);
    for (int64_t i = 0; i < n_squares(g) && !status; i++) {
        const double by = g->squares[i] = reciprocal_at(g, i < g->head ? i : g->tail + i - g->head);
        g->squares32[i] = (float)(by < FLT_MAX ? by : 1);
    }
    return status;
}

static void *take(size_t count, size_t width) { return aligned_alloc(64, (count * width + 63) / 64 * 64); }

static wt_status make_slot(wt_griffin_lim *g, slot *s)
{
    const size_t bins = (size_t)g->bins;
    wt_status status = s->stft ? WT_OK : wt_stft_create(&g->config.stft, &s->stft);
    if (status) return status;
    s->seeds = take(bins, sizeof *s->seeds);
    bool whole = s->seeds != NULL;
    if (g->config.stft.precise) {
        const size_t doubles = (size_t)g->n_tiles * 2 * bins * F, points = wt__fft64_doubles(g->n_fft);
        s->a64 = take(doubles, sizeof(double)), s->before64 = take(doubles, sizeof(double));
        s->padded = take((size_t)g->n_padded, sizeof(double));
        s->x = take(points, sizeof(double)), s->work = take(points, sizeof(double));
        whole = whole && s->a64 && s->before64 && s->padded && s->x && s->work;
    } else {
        const wt_fft_config back = {.n = g->n_fft, .kind = WT_FFT_COMPLEX_TO_REAL};
        s->own = g->config.work ? NULL : take((size_t)g->length, sizeof(float));
        s->next = g->config.work ? g->config.work : s->own;
        s->re = take(g->row, sizeof(float)), s->im = take(g->row, sizeof(float));
        s->frame = take((size_t)g->n_fft, sizeof(float));
        whole = whole && s->next && s->re && s->im && s->frame;
        for (int i = 0; i <= AT_ONCE; i++) {
            s->stages[i].samples = take((size_t)g->room, sizeof(float));
            s->stages[i].next = take((size_t)g->room, sizeof(float));
            whole = whole && s->stages[i].samples && s->stages[i].next;
        }
        if (whole && (status = wt_fft_create(NULL, &back, &s->inverse))) return status;
    }
    return whole ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "griffin-lim: %lld frames", (long long)g->config.n_frames);
}

// ---- first phases

static const uint64_t FACTOR = 6364136223846793005u, TERM = 1442695040888963407u; // Knuth, MMIX

// The generator runs bin after bin: each bin's begins n_frames steps behind the one before.
static void seed_bins(const wt_griffin_lim *g, uint64_t *seeds)
{
    uint64_t factor = 1, term = 0, seed = g->config.seed;
    for (int64_t t = 0; t < g->config.n_frames; t++) factor *= FACTOR, term = term * FACTOR + TERM;
    for (int k = 0; k < g->bins; k++, seed = seed * factor + term) seeds[k] = seed;
}

static wt_status make_cuda(wt_griffin_lim *g)
{
    uint64_t *seeds = calloc((size_t)g->bins, sizeof *seeds), *jumps = calloc((size_t)g->used * 2, sizeof *jumps);
    wt_status status = seeds && jumps ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "griffin-lim: seeds");
    if (!status) {
        seed_bins(g, seeds);
        uint64_t factor = 1, term = 0;
        for (int64_t t = 0; t < g->used; t++) {
            factor *= FACTOR, term = term * FACTOR + TERM;
            jumps[2 * t] = factor, jumps[2 * t + 1] = term;
        }
        const wt__griffin_lim_shape shape = {.stft = g->slots[0].stft,
                                             .n_lines = g->n_lines,
                                             .n_frames = g->config.n_frames,
                                             .n_used = g->used,
                                             .length = g->length,
                                             .n_padded = g->n_padded,
                                             .head = g->head,
                                             .tail = g->tail,
                                             .squares = g->squares,
                                             .seeds = seeds,
                                             .jumps = jumps,
                                             .n_iter = g->config.n_iter,
                                             .momentum = g->config.momentum / (1 + g->config.momentum),
                                             .zero_phase = g->config.zero_phase};
        status = wt__griffin_lim_cuda_create(g->device, &shape, &g->cuda);
    }
    free(seeds);
    free(jumps);
    return status;
}

wt_status wt_griffin_lim_create(wt_device *device, const wt_griffin_lim_config *config, wt_griffin_lim **plan)
{
    *plan = NULL;
    wt_griffin_lim *g = calloc(1, sizeof *g);
    if (!g) return wt_fail(WT_ERR_NO_MEMORY, "griffin-lim: handle");
    g->config = *config;
    g->config.stft.precise = !config->in_float;
    g->device = device;
    g->n_slots = wt__op_slots(device, (int64_t)(config->n_signals > 0 ? config->n_signals : 1) *
                                          (config->stft.channels > 0 ? config->stft.channels : 1));
    g->slots = calloc((size_t)g->n_slots, sizeof *g->slots);
    wt_status status = g->slots ? wt_stft_create(&g->config.stft, &g->slots[0].stft)
                                : wt_fail(WT_ERR_NO_MEMORY, "griffin-lim: %d threads", g->n_slots);
    if (!status) status = resolve(g, g->slots[0].stft);
    if (!status) status = make_windows(g);
    for (int i = 0; i < g->n_slots && !status; i++) status = make_slot(g, &g->slots[i]);
    if (!status && wt__op_on_gpu(device)) status = make_cuda(g);
    g->config.stft.window.samples = NULL; // copied
    if (status)
        wt_griffin_lim_destroy(g);
    else
        *plan = g;
    return status;
}

void wt_griffin_lim_destroy(wt_griffin_lim *plan)
{
    if (!plan) return;
    for (int i = 0; plan->slots && i < plan->n_slots; i++) {
        slot *s = &plan->slots[i];
        wt_stft_destroy(s->stft);
        wt_fft_destroy(s->inverse);
        void *const arrays[] = {s->own,      s->re,     s->im, s->frame, s->a64,
                                s->before64, s->padded, s->x,  s->work,  s->seeds};
        for (int k = 0; k < 10; k++) free(arrays[k]);
        for (int k = 0; k <= AT_ONCE; k++) free(s->stages[k].samples), free(s->stages[k].next);
    }
    free(plan->slots);
    wt__griffin_lim_cuda_destroy(plan->cuda);
    wt__fft64_destroy(plan->fft);
    free(plan->window);
    free(plan->squares);
    free(plan->squares32);
    free(plan);
}

int64_t wt_griffin_lim_length(const wt_griffin_lim *plan) { return plan->length; }

// ---- phases

static double next_angle(const wt_griffin_lim *g, uint64_t *seed)
{
    *seed = *seed * FACTOR + TERM;
    if (g->config.zero_phase) return 0;
    return 3.14159265358979323846 * ((double)(float)(int32_t)(*seed >> 32) * 0x1p-31 + 1);
}

// Give spectra in double their first phases.
static void begin64(const wt_griffin_lim *g, slot *s, const float *magnitude)
{
    seed_bins(g, s->seeds);
    memset(s->a64, 0, (size_t)g->n_tiles * 2 * (size_t)g->bins * F * sizeof(double));
    for (int64_t t = 0; t < g->config.n_frames; t++)
        for (int64_t k = 0; k < g->bins; k++) {
            const double angle = next_angle(g, &s->seeds[k]), m = magnitude[t * g->bins + k];
            double *tile = s->a64 + t / F * 2 * g->bins * F;
            tile[k * F + t % F] = m * cos(angle), tile[(g->bins + k) * F + t % F] = m * sin(angle);
        }
}

// cos and sin of pi (u + 1), -1 <= u < 1: Taylor's series about the nearest quarter turn, below an ulp.
WT_INLINE void unit_vector(float u, float *re, float *im)
{
    const int quarter = (int)(2 * u + 2.5f) - 2;
    const float r = u - 0.5f * (float)quarter, q = r * r;
    const float sine =
        r * (3.14159265f + q * (-5.16771278f + q * (2.55016404f + q * (-0.599264529f + q * 0.0821458866f))));
    const float cosine =
        1 + q * (-4.93480220f + q * (4.05871213f + q * (-1.33526277f + q * (0.235330630f - q * 0.0258068913f))));
    const float x = quarter & 1 ? -sine : cosine, y = quarter & 1 ? cosine : sine;
    *re = quarter & 2 ? x : -x, *im = quarter & 2 ? y : -y; // half a turn more
}

WT_CLONES static void first_phases(uint64_t *seeds, const float *magnitude, float *re, float *im, int bins)
{
    for (int k = 0; k < bins; k++) {
        seeds[k] = seeds[k] * FACTOR + TERM;
        float x, y;
        unit_vector((float)(int32_t)(seeds[k] >> 32) * 0x1p-31f, &x, &y);
        re[k] = magnitude[k] * x, im[k] = magnitude[k] * y;
    }
}

// 1 / sqrt(x) of what is not negative, of the least normal number where it is less: a first guess from its bits (C.
// Lomont, Fast inverse square root, 2003), and Newton steps to the last bits: on vectors it takes a third of a root and
// a division. Bits are compared, not numbers: GCC 12 takes a choice of floats for a branch on AVX2, and leaves the loop
// around it scalar.
WT_INLINE float inverse_root(float x)
{
    enum { LEAST = 1 << 23 }; // FLT_MIN
    union {
        float number;
        int32_t bits;
    } normal = {x}, guess;
    normal.bits = normal.bits > LEAST ? normal.bits : LEAST;
    guess.bits = 0x5f375a86 - (normal.bits >> 1);
    float y = guess.number;
    for (int i = 0; i < 3; i++) y = y * (1.5f - 0.5f * normal.number * y * y);
    return y;
}

// R - c R_before of one frame to A, in place: below its magnitude where the power would be a denormal number.
WT_CLONES static void update(float *re, float *im, const float *magnitude, int bins)
{
    for (int k = 0; k < bins; k++) {
        const float by = magnitude[k] * inverse_root(re[k] * re[k] + im[k] * im[k]);
        re[k] *= by, im[k] *= by;
    }
}

WT_CLONES static void add_windowed(const float *frame, const float *window, float *sums, int n)
{
    for (int i = 0; i < n; i++) sums[i] += frame[i] * window[i];
}

// Sums to y and y - c y_before.
WT_CLONES static void finish_sums(float *y, const float *by, const float *before, float c, float *next, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] *= by[i];
        next[i] = y[i] - c * before[i];
    }
}

// ---- in float, several iterations at once

// Room for frame t and a hop behind it, zeros where no frame before it reached: that hop is the next frame's, or
// between the two where hops are longer than frames, or behind the last frame, where the signal and its padding may go
// on.
static void make_room(const wt_griffin_lim *g, stage *s, int64_t t)
{
    const int64_t end = (t + 1) * g->hop + g->n_fft, keep = t > g->lag ? (t - g->lag) * g->hop : 0;
    if (end - s->origin > g->room) {
        memmove(s->samples, s->samples + (keep - s->origin), (size_t)(end - g->hop - keep) * sizeof(float));
        memmove(s->next, s->next + (keep - s->origin), (size_t)(t * g->hop - keep) * sizeof(float));
        s->origin = keep;
    }
    const int64_t fresh = t ? g->hop : g->n_fft + g->hop;
    memset(s->samples + (end - fresh - s->origin), 0, (size_t)fresh * sizeof(float));
}

// A of frame t, in re and im, to the sums.
WT_RT static void add_frame(const wt_griffin_lim *g, slot *s, stage *to, int64_t t)
{
    if (t >= g->used) return;
    wt__fft_real_inverse(s->inverse, s->re, s->im, s->frame);
    add_windowed(s->frame, wt__stft_window(s->stft), to->samples + (t * g->hop - to->origin), g->n_fft);
}

// What the edges of `next` are continued by: the front once frame t has made it, the end behind the last frame. A
// margin of samples and one more decide it.
static void pad(const wt_griffin_lim *g, stage *s, int64_t t)
{
    const wt_stft_pad rule = g->config.stft.pad;
    const int64_t before = s->origin > g->margin ? s->origin - g->margin : 0, n = g->length - before;
    const float *signal = s->next + (g->margin + before - s->origin);
    if (!s->origin && (t == g->lag || t == g->config.n_frames - 1))
        for (int64_t i = 1; i <= g->margin; i++)
            s->next[g->margin - i] = wt__stft_padded(signal, n, -i, g->margin, rule);
    if (t < g->config.n_frames - 1) return;
    for (int64_t i = 0; i < g->margin; i++)
        s->next[g->margin + g->length + i - s->origin] = wt__stft_padded(signal, n, n + i, g->margin, rule);
}

// Samples begin .. end - 1 of the padded signal, which frame t is the first to begin with, or the last.
static void hop_of(const wt_griffin_lim *g, int64_t t, int64_t *begin, int64_t *end)
{
    const bool last = t == g->config.n_frames - 1;
    const int64_t most = g->margin + g->length;
    *begin = t * g->hop, *end = last || *begin + g->hop > most ? most : *begin + g->hop;
}

// Those of the hop that the signal has, from the stage to where it is kept whole, or back.
static void copy_hop(const wt_griffin_lim *g, const stage *s, int64_t t, float *samples, float *whole, bool back)
{
    int64_t begin, end;
    hop_of(g, t, &begin, &end);
    const int64_t first = begin > g->margin ? begin : g->margin;
    float *here = samples + (first - s->origin), *there = whole + (first - g->margin);
    if (end > first) memcpy(back ? here : there, back ? there : here, (size_t)(end - first) * sizeof(float));
}

// Samples that no later frame than t reaches become the signal; `before`: the stage of y_before, NULL = 0.
WT_RT static void finish(const wt_griffin_lim *g, stage *s, const stage *before, int64_t t)
{
    int64_t begin, end;
    hop_of(g, t, &begin, &end);
    if (end <= begin) return;
    const int64_t all = g->n_fft / g->hop * g->hop; // where all frames that can reach a sample do, squares repeat
    const bool steady = t < g->config.n_frames - 1 && begin >= all && t < g->used;
    const int64_t at = steady ? all : begin < g->head ? begin : g->head + begin - g->tail;
    float *y = s->samples + (begin - s->origin), *next = s->next + (begin - s->origin);
    finish_sums(y, g->squares32 + at, before ? before->samples + (begin - before->origin) : y, before ? g->c : 0, next,
                end - begin);
}

// Frame t of the stage before, with its new phases, to the sums.
WT_RT static void iterate(const wt_griffin_lim *g, slot *s, stage *to, int64_t t, const float *magnitude)
{
    const float *x = to[-1].next + (t * g->hop - to[-1].origin);
    const int64_t next = t > g->lag ? t - g->lag : 0; // of the stage behind
    if (t >= g->used) return;
    if (wt__stft_turns(s->stft)) {
        wt__stft_turn(s->stft, &(wt__fft_turn){.x = x,
                                               .magnitude = magnitude,
                                               .sums = to->samples + (t * g->hop - to->origin),
                                               .next_magnitude = magnitude - (t - next) * g->bins,
                                               .next_x = to->next + (next * g->hop - to->origin)});
        return;
    }
    wt__stft_frame(s->stft, x, s->re, s->im);
    update(s->re, s->im, magnitude, g->bins);
    add_frame(g, s, to, t);
}

static void begin_phases(const wt_griffin_lim *g, slot *s, const float *magnitude)
{
    if (!g->config.zero_phase) {
        first_phases(s->seeds, magnitude, s->re, s->im, g->bins);
        return;
    }
    memcpy(s->re, magnitude, (size_t)g->bins * sizeof(float));
    memset(s->im, 0, (size_t)g->bins * sizeof(float));
}

// Frame t of stage i; `done` iterations were made before the first.
WT_RT static void step_stage(const wt_griffin_lim *g, slot *s, int i, int done, int64_t t, const float *magnitude,
                             float *out)
{
    stage *to = &s->stages[i];
    make_room(g, to, t);
    if (!i && done) {
        copy_hop(g, to, t, to->samples, out, true);
        copy_hop(g, to, t, to->next, s->next, true);
        return;
    }
    if (i) {
        iterate(g, s, to, t, magnitude + t * g->bins);
    } else {
        begin_phases(g, s, magnitude + t * g->bins);
        add_frame(g, s, to, t);
    }
    finish(g, to, i ? to - 1 : NULL, t);
}

// Iterations done .. done + count - 1, each a stage behind the one before; stage 0 is what they begin with.
WT_RT static void run_stages(const wt_griffin_lim *g, slot *s, int done, int count, const float *magnitude, float *out)
{
    const int64_t n_frames = g->config.n_frames;
    for (int i = 0; i <= count; i++) s->stages[i].origin = 0;
    for (int64_t step = 0; step < n_frames + count * g->lag; step++)
        for (int i = 0; i <= count; i++) {
            const int64_t t = step - i * g->lag;
            stage *to = &s->stages[i];
            if (t < 0 || t >= n_frames) continue;
            step_stage(g, s, i, done, t, magnitude, out);
            if (i == count) copy_hop(g, to, t, to->samples, out, false);
            if (i == count) copy_hop(g, to, t, to->next, s->next, false);
            pad(g, to, t);
        }
}

WT_RT static void run_float(const wt_griffin_lim *g, slot *s, const float *magnitude, float *out)
{
    seed_bins(g, s->seeds);
    for (int done = 0; done < g->config.n_iter; done += AT_ONCE) {
        const int left = g->config.n_iter - done;
        run_stages(g, s, done, left < AT_ONCE ? left : AT_ONCE, magnitude, out);
    }
}

// ---- in double

// The same of a tile: a holds R, and then A.
WT_CLONES static void update64(double *a, double *before, const float *magnitude, int64_t stride, int count, double c,
                               int bins)
{
    for (int k = 0; k < bins; k++) {
        double *a_re = a + k * F, *a_im = a_re + bins * F, *b_re = before + k * F, *b_im = b_re + bins * F;
        double m[F];
        for (int f = 0; f < F; f++) m[f] = f < count ? magnitude[f * stride + k] : 0;
        for (int f = 0; f < F; f++) {
            const double re = a_re[f], im = a_im[f], x = re - c * b_re[f], y = im - c * b_im[f];
            const double by = m[f] / (sqrt(x * x + y * y) + DBL_MIN);
            b_re[f] = re, b_im[f] = im;
            a_re[f] = x * by, a_im[f] = y * by;
        }
    }
}

// A to the padded signal, the windows' squares divided out, ends set as the padding says.
WT_RT static void synthesise64(const wt_griffin_lim *g, slot *s)
{
    const double by = 1.0 / g->n_fft;
    memset(s->padded, 0, (size_t)g->n_padded * sizeof(double));
    for (int64_t tile = 0; tile < g->n_tiles; tile++) {
        const double *a = s->a64 + tile * 2 * g->bins * F;
        wt__fft64_fold(a, a + g->bins * F, g->n_fft, s->x);
        const double *z = wt__fft64_run(g->fft, s->x, s->work);
        for (int f = 0; f < F && tile * F + f < g->used; f++) {
            double *to = s->padded + (tile * F + f) * g->hop;
            const double *from = z + (f < F / 2 ? f + F / 2 : f - F / 2); // parts exchanged: the inverse
            for (int i = 0; i < g->n_fft; i++) to[i] += from[i * F] * g->window[i] * by;
        }
    }
    for (int64_t i = 0; i < g->n_padded; i++) s->padded[i] *= g->squares[i];
}

// Outside the signal the padding rules; zeros are librosa's for Griffin-Lim.
static void pad64(const wt_griffin_lim *g, double *padded)
{
    const wt_stft_pad rule = g->config.stft.pad;
    const int64_t n = g->length, end = n + g->margin;
    double *signal = padded + g->margin;
    for (int64_t i = 1; i <= g->margin; i++) signal[-i] = wt__stft_padded64(signal, n, -i, g->margin, rule);
    for (int64_t i = n; i < end; i++) signal[i] = wt__stft_padded64(signal, n, i, g->margin, rule);
    memset(signal + end, 0, (size_t)(g->n_padded - g->margin - end) * sizeof(double));
}

WT_RT static void analyse64(const wt_griffin_lim *g, slot *s, const float *magnitude, int64_t tile, double c)
{
    const int64_t n_frames = g->config.n_frames, t = tile * F, offset = tile * 2 * g->bins * F;
    const int count = n_frames - t < F ? (int)(n_frames - t) : F;
    for (int i = 0; i < g->n_fft; i++)
        for (int f = 0; f < F; f++) s->x[i * F + f] = f < count ? s->padded[(t + f) * g->hop + i] * g->window[i] : 0;
    double *re = s->a64 + offset, *im = re + g->bins * F; // A was used: R takes its place
    wt__fft64_bins(wt__fft64_run(g->fft, s->x, s->work), g->n_fft, re, im);
    update64(re, s->before64 + offset, magnitude + t * g->bins, g->bins, count, c, g->bins);
}

WT_RT static void run_double(const wt_griffin_lim *g, slot *s, const float *magnitude, float *out)
{
    const double c = g->config.momentum / (1 + g->config.momentum);
    begin64(g, s, magnitude);
    memset(s->before64, 0, (size_t)g->n_tiles * 2 * (size_t)g->bins * F * sizeof(double));
    for (int i = 0; i < g->config.n_iter; i++) {
        synthesise64(g, s);
        pad64(g, s->padded);
        for (int64_t tile = 0; tile < g->n_tiles; tile++) analyse64(g, s, magnitude, tile, c);
    }
    synthesise64(g, s);
    for (int64_t n = 0; n < g->length; n++) out[n] = (float)s->padded[g->margin + n];
}

// ---- all signals

typedef struct call {
    const wt_griffin_lim *plan;
    const float *magnitude;
    float *out;
    int n_slots;
} call;

WT_RT static void run_slot(const void *args, int number)
{
    const call *c = args;
    const wt_griffin_lim *g = c->plan;
    slot *s = &g->slots[number];
    const int64_t end = wt__op_begin(g->n_lines, number + 1, c->n_slots);
    for (int64_t line = wt__op_begin(g->n_lines, number, c->n_slots); line < end; line++) {
        const float *magnitude = c->magnitude + line * g->config.n_frames * g->bins;
        (g->fft ? run_double : run_float)(g, s, magnitude, c->out + line * g->length);
    }
}

WT_RT void wt_griffin_lim_run(wt_griffin_lim *plan, const float *magnitude, float *out)
{
    const call c = {plan, magnitude, out, 1};
    run_slot(&c, 0);
}

wt_status wt_griffin_lim_enqueue(wt_griffin_lim *plan, wt_stream *stream, const wt_buffer *magnitude,
                                 size_t magnitude_offset, wt_buffer *out, size_t out_offset)
{
    const size_t n_in = (size_t)(plan->n_lines * plan->config.n_frames * plan->bins);
    wt_status status = wt__op_stream("griffin-lim", plan->device, stream);
    if (!status) status = wt__op_range("griffin-lim", "magnitude", magnitude, magnitude_offset, n_in);
    if (!status) status = wt__op_range("griffin-lim", "out", out, out_offset, (size_t)(plan->n_lines * plan->length));
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(magnitude) + magnitude_offset),
                    (float *)(wt_buffer_address(out) + out_offset), plan->n_slots};
    if (plan->cuda) return wt__griffin_lim_cuda_enqueue(plan->cuda, stream, c.magnitude, c.out);
    return wt_stream_run(stream, run_slot, &c, sizeof c, c.n_slots);
}
