// Per iteration: A to a signal y, y to spectra R, A = S (R - c R_before) / |R - c R_before|, c = m / (1 + m).
//
// In float a frame goes all the way while it is in the cache: cut from y, transformed, given its phases, transformed
// back and added to the next y; of spectra only R is kept (with A too it took 1.45 times as long: memory was the
// limit). In double sixteen frames are transformed at once (fft_double.c), and spectra lie in tiles [bins][16].
// Overlapped sums go to one padded signal, whose sums of squared windows are a table.

#include "griffin_lim_cuda.h"
#include "op.h"
#include "stft_internal.h"

#include <warptone/griffin_lim.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/simd.h>

enum { F = WT__FFT64_FRAMES };

// What one thread needs. Spectra R in float [n_frames][2][row]; R and A in double [tiles][2][bins][16].
typedef struct slot {
    wt_stft *stft;
    uint64_t *seeds; // [bins]
    wt_fft *inverse;
    float *before, *re, *im, *frame, *sums; // sums [n_padded]
    double *a64, *before64, *padded, *x, *work; // padded [n_padded], x and work [n_fft][2][8]
} slot;

struct wt_griffin_lim {
    wt_griffin_lim_config config; // defaults resolved
    wt_device *device;
    int bins, n_slots, n_fft, hop, margin;
    size_t row;
    int64_t n_lines, n_tiles, length, used, n_padded; // used: frames that count for the length
    slot *slots;
    wt__fft64 *fft;
    double *window, *squares; // [n_fft], [n_padded] reciprocals
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
    g->length = c->length ? c->length : wt_stft_samples(stft, c->n_frames);
    if (wt_stft_frames(stft, g->length) != c->n_frames)
        return wt_fail(WT_ERR_BAD_ARG, "griffin-lim: length %lld has %lld frames, want the %lld given",
                       (long long)g->length, (long long)wt_stft_frames(stft, g->length), (long long)c->n_frames);
    if (s->precise && !s->no_center && s->pad != WT_STFT_PAD_ZERO)
        return wt_fail(WT_ERR_BAD_ARG, "griffin-lim: precise with pad %d, want 0 (zeros)", (int)s->pad);
    g->bins = wt_stft_bins(stft);
    g->row = wt__fft_padded((size_t)g->bins);
    g->n_fft = s->n_fft, g->hop = s->hop, g->margin = s->no_center ? 0 : s->n_fft / 2;
    g->n_lines = (int64_t)c->n_signals * s->channels;
    g->n_tiles = (c->n_frames + F - 1) / F;
    g->used = wt__stft_used_frames(stft, c->n_frames, g->length);
    g->n_padded = g->length + 2 * g->margin + g->n_fft + g->hop * (g->n_tiles * F - c->n_frames);
    return WT_OK;
}

static wt_status make_windows(wt_griffin_lim *g)
{
    wt_window_config window = g->config.stft.window;
    const int win_length = g->config.stft.win_length ? g->config.stft.win_length : g->n_fft;
    window.n = win_length;
    g->window = calloc((size_t)g->n_fft, sizeof(double));
    g->squares = calloc((size_t)g->n_padded, sizeof(double));
    g->squares32 = calloc((size_t)g->n_padded, sizeof(float));
    if (!g->window || !g->squares || !g->squares32)
        return wt_fail(WT_ERR_NO_MEMORY, "griffin-lim: tables of %lld doubles", (long long)g->n_padded);
    wt_status status = wt_window_fill_double(&window, g->window + (g->n_fft - win_length) / 2);
    if (!status && g->config.stft.precise) status = wt__fft64_create(g->n_fft, &g->fft);
    for (int64_t t = 0; t < g->used && !status; t++)
        for (int i = 0; i < g->n_fft; i++) g->squares[t * g->hop + i] += g->window[i] * g->window[i];
    for (int64_t i = 0; i < g->n_padded; i++) {
        g->squares[i] = g->squares[i] > DBL_MIN ? 1 / g->squares[i] : 1;
        g->squares32[i] = (float)(g->squares[i] < FLT_MAX ? g->squares[i] : 1);
    }
    return status;
}

static void *take(size_t count, size_t width)
{
    return aligned_alloc(64, (count * width + 63) / 64 * 64);
}

static wt_status make_slot(wt_griffin_lim *g, slot *s)
{
    const size_t frames = (size_t)g->config.n_frames, bins = (size_t)g->bins;
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
        s->before = take(frames * g->row * 2, sizeof(float));
        s->re = take(g->row, sizeof(float)), s->im = take(g->row, sizeof(float));
        s->frame = take((size_t)g->n_fft, sizeof(float)), s->sums = take((size_t)g->n_padded, sizeof(float));
        whole = whole && s->before && s->re && s->im && s->frame && s->sums;
        if (whole && (status = wt_fft_create(NULL, &back, &s->inverse))) return status;
    }
    return whole ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "griffin-lim: spectra of %zu frames", frames);
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
                                             .squares = g->squares32,
                                             .seeds = seeds,
                                             .jumps = jumps,
                                             .n_iter = g->config.n_iter,
                                             .momentum = (float)(g->config.momentum / (1 + g->config.momentum)),
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
    if (wt__op_on_gpu(device) && config->stft.precise)
        return wt_fail(WT_ERR_UNSUPPORTED, "griffin-lim: precise on a GPU, want it on the CPU");
    wt_griffin_lim *g = calloc(1, sizeof *g);
    if (!g) return wt_fail(WT_ERR_NO_MEMORY, "griffin-lim: handle");
    g->config = *config;
    g->device = device;
    g->n_slots = wt__op_slots(device, (int64_t)(config->n_signals > 0 ? config->n_signals : 1) *
                                          (config->stft.channels > 0 ? config->stft.channels : 1));
    g->slots = calloc((size_t)g->n_slots, sizeof *g->slots);
    wt_status status = g->slots ? wt_stft_create(&config->stft, &g->slots[0].stft)
                                : wt_fail(WT_ERR_NO_MEMORY, "griffin-lim: %d threads", g->n_slots);
    if (!status) status = resolve(g, g->slots[0].stft);
    if (!status) status = make_windows(g);
    for (int i = 0; i < g->n_slots && !status; i++) status = make_slot(g, &g->slots[i]);
    if (!status && wt__op_on_gpu(device)) status = make_cuda(g);
    g->config.stft.window.samples = NULL; // copied
    if (status) wt_griffin_lim_destroy(g);
    else *plan = g;
    return status;
}

void wt_griffin_lim_destroy(wt_griffin_lim *plan)
{
    if (!plan) return;
    for (int i = 0; plan->slots && i < plan->n_slots; i++) {
        slot *s = &plan->slots[i];
        wt_stft_destroy(s->stft);
        wt_fft_destroy(s->inverse);
        void *const arrays[] = {s->before,   s->re,     s->im, s->frame, s->sums, s->a64,
                                s->before64, s->padded, s->x,  s->work,  s->seeds};
        for (int k = 0; k < 11; k++) free(arrays[k]);
    }
    free(plan->slots);
    wt__griffin_lim_cuda_destroy(plan->cuda);
    wt__fft64_destroy(plan->fft);
    free(plan->window);
    free(plan->squares);
    free(plan->squares32);
    free(plan);
}

int64_t wt_griffin_lim_length(const wt_griffin_lim *plan)
{
    return plan->length;
}

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

// re, im of one frame: the new R; before: the last, replaced. Leaves A in re, im.
WT_CLONES static void update(float *re, float *im, float *before_re, float *before_im, const float *magnitude, float c,
                             int bins)
{
    for (int k = 0; k < bins; k++) {
        const float x = re[k] - c * before_re[k], y = im[k] - c * before_im[k];
        const float by = magnitude[k] / (sqrtf(x * x + y * y) + FLT_MIN);
        before_re[k] = re[k], before_im[k] = im[k];
        re[k] = x * by, im[k] = y * by;
    }
}

WT_CLONES static void add_windowed(const float *frame, const float *window, float *sums, int n)
{
    for (int i = 0; i < n; i++) sums[i] += frame[i] * window[i];
}

// A of frame t, in re and im, to the sums.
WT_RT static void add_frame(const wt_griffin_lim *g, slot *s, int64_t t)
{
    if (t >= g->used) return;
    wt__fft_real_inverse(s->inverse, s->re, s->im, s->frame);
    add_windowed(s->frame, wt__stft_window(s->stft), s->sums + t * g->hop, g->n_fft);
}

// The sums become the signal, and zeros.
WT_RT static void take_sums(const wt_griffin_lim *g, slot *s, float *out)
{
    for (int64_t n = 0; n < g->length; n++) out[n] = s->sums[g->margin + n] * g->squares32[g->margin + n];
    memset(s->sums, 0, (size_t)g->n_padded * sizeof(float));
}

WT_RT static void run_float(const wt_griffin_lim *g, slot *s, const float *magnitude, float *out)
{
    const int64_t n_frames = g->config.n_frames;
    const float c = (float)(g->config.momentum / (1 + g->config.momentum));
    memset(s->before, 0, (size_t)n_frames * g->row * 2 * sizeof(float));
    memset(s->sums, 0, (size_t)g->n_padded * sizeof(float));
    seed_bins(g, s->seeds);
    for (int64_t t = 0; t < n_frames; t++) {
        for (int k = 0; k < g->bins; k++) {
            const float angle = (float)next_angle(g, &s->seeds[k]), m = magnitude[t * g->bins + k];
            s->re[k] = m * cosf(angle), s->im[k] = m * sinf(angle);
        }
        add_frame(g, s, t);
    }
    take_sums(g, s, out);
    for (int i = 0; i < g->config.n_iter; i++) {
        for (int64_t t = 0; t < n_frames; t++) {
            float *before = s->before + (size_t)t * 2 * g->row;
            wt__stft_spectrum(s->stft, out, g->length, t, s->re, s->im);
            update(s->re, s->im, before, before + g->row, magnitude + t * g->bins, c, g->bins);
            add_frame(g, s, t);
        }
        take_sums(g, s, out);
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
    memset(padded, 0, (size_t)g->margin * sizeof(double));
    memset(padded + g->margin + g->length, 0, (size_t)(g->n_padded - g->margin - g->length) * sizeof(double));
}

WT_RT static void analyse64(const wt_griffin_lim *g, slot *s, const float *magnitude, int64_t tile, double c)
{
    const int64_t n_frames = g->config.n_frames, t = tile * F, offset = tile * 2 * g->bins * F;
    const int count = n_frames - t < F ? (int)(n_frames - t) : F;
    for (int i = 0; i < g->n_fft; i++)
        for (int f = 0; f < F; f++)
            s->x[i * F + f] = f < count ? s->padded[(t + f) * g->hop + i] * g->window[i] : 0;
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
