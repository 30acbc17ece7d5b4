// The plan of Griffin-Lim: its tables, scratch and first phases. The iteration is in griffin_lim_float.c,
// griffin_lim_double.c and, on a GPU, griffin_lim_cuda.c.

#include "griffin_lim_internal.h"
#include "op.h"

#include <float.h>
#include <stdlib.h>

enum { F = WT__FFT64_FRAMES, HOPS = 16 }; // hops between moves of a stage's samples

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

static wt_status make_slot(wt_griffin_lim *g, wt__griffin_lim_slot *s)
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
        for (int i = 0; i <= WT__GRIFFIN_LIM_AT_ONCE; i++) {
            s->stages[i].samples = take((size_t)g->room, sizeof(float));
            s->stages[i].next = take((size_t)g->room, sizeof(float));
            whole = whole && s->stages[i].samples && s->stages[i].next;
        }
        if (whole && (status = wt_fft_create(NULL, &back, &s->inverse))) return status;
    }
    return whole ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "griffin-lim: %lld frames", (long long)g->config.n_frames);
}

// ---- first phases

void wt__griffin_lim_seed(const wt_griffin_lim *g, uint64_t *seeds)
{
    uint64_t factor = 1, term = 0, seed = g->config.seed;
    for (int64_t t = 0; t < g->config.n_frames; t++)
        factor *= WT__GRIFFIN_LIM_FACTOR, term = term * WT__GRIFFIN_LIM_FACTOR + WT__GRIFFIN_LIM_TERM;
    for (int k = 0; k < g->bins; k++, seed = seed * factor + term) seeds[k] = seed;
}

static wt_status make_cuda(wt_griffin_lim *g)
{
    uint64_t *seeds = calloc((size_t)g->bins, sizeof *seeds), *jumps = calloc((size_t)g->used * 2, sizeof *jumps);
    wt_status status = seeds && jumps ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "griffin-lim: seeds");
    if (!status) {
        wt__griffin_lim_seed(g, seeds);
        uint64_t factor = 1, term = 0;
        for (int64_t t = 0; t < g->used; t++) {
            factor *= WT__GRIFFIN_LIM_FACTOR, term = term * WT__GRIFFIN_LIM_FACTOR + WT__GRIFFIN_LIM_TERM;
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
        wt__griffin_lim_slot *s = &plan->slots[i];
        wt_stft_destroy(s->stft);
        wt_fft_destroy(s->inverse);
        void *const arrays[] = {s->own,      s->re,     s->im, s->frame, s->a64,
                                s->before64, s->padded, s->x,  s->work,  s->seeds};
        for (int k = 0; k < 10; k++) free(arrays[k]);
        for (int k = 0; k <= WT__GRIFFIN_LIM_AT_ONCE; k++) free(s->stages[k].samples), free(s->stages[k].next);
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
    wt__griffin_lim_slot *s = &g->slots[number];
    const int64_t end = wt__op_begin(g->n_lines, number + 1, c->n_slots);
    for (int64_t line = wt__op_begin(g->n_lines, number, c->n_slots); line < end; line++) {
        const float *magnitude = c->magnitude + line * g->config.n_frames * g->bins;
        (g->fft ? wt__griffin_lim_run_double : wt__griffin_lim_run_float)(g, s, magnitude, c->out + line * g->length);
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
