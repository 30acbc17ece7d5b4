// Three transforms by the window h, its derivative dh and t h: a bin's frequency is moved by -Im(dh / h), its time by
// Re(th / h). In double: the quotients are of bins down to 1e-5 of the loudest.

#include "op.h"
#include "spectrum_cuda.h"
#include "wide_cuda.h"

#include "reassigned_wide_kernel.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/reassigned.h>

enum { F = WT__FFT64_FRAMES };

typedef struct worker {
    wt_stft *stft[3]; // h, dh, th
} worker;

struct wt_reassigned {
    wt_device *device;
    wt_reassigned_config config;
    int bins, n_slots;
    int64_t n_frames;
    worker *workers;
    wt_reassigned_args args;
    wt_module *module; // on a GPU
    wt_kernel *kernel;
    wt_buffer *tables;
    wt_launch launch;
    wt__wide wide; // of lengths that no block transforms
    bool is_wide;
};

// ---- life

// h, dh and th, one behind the other.
static void make_windows(const wt_stft *stft, double *windows)
{
    const int n = wt__stft_config(stft)->n_fft;
    const double *h = wt__stft_window64(stft);
    memcpy(windows, h, (size_t)n * sizeof *h);
    for (int i = 0; i < n; i++) {
        windows[n + i] = (h[(i + 1) % n] - h[(i + n - 1) % n]) / 2;
        windows[2 * n + i] = h[i] * (i - n / 2 + (n % 2 ? 0 : 0.5));
    }
}

static wt_status make_worker(const wt_reassigned *p, worker *w)
{
    wt_status status = WT_OK;
    for (int i = 0; i < 3 && !status; i++) status = wt_stft_create(&p->config.stft, &w->stft[i]);
    if (status) return status;
    const size_t n = (size_t)wt__stft_config(w->stft[0])->n_fft;
    double *windows = malloc(3 * n * sizeof *windows);
    if (!windows) return wt_fail(WT_ERR_NO_MEMORY, "reassigned: windows of %zu", n);
    make_windows(w->stft[0], windows);
    for (int i = 1; i < 3; i++) wt__stft_set_window64(w->stft[i], windows + (size_t)i * n);
    free(windows);
    return WT_OK;
}

static wt_status make_tables(wt_reassigned *p)
{
    const size_t n = (size_t)p->args.n_fft, factors = wt__spectrum_twiddles(p->args.n_fft, NULL);
    const size_t begin = (3 * n + 1) / 2 * 2; // pairs lie at even places
    double *table = calloc(begin + factors + 2, sizeof *table);
    if (!table) return wt_fail(WT_ERR_NO_MEMORY, "reassigned: tables of %zu doubles", begin + factors + 2);
    make_windows(p->workers[0].stft[0], table);
    wt__spectrum_twiddles(p->args.n_fft, table + begin);
    wt_status status = wt__op_upload(p->device, table, (begin + factors + 2) * sizeof *table, &p->tables);
    free(table);
    if (status) return status;
    p->args.windows = (const double *)wt_buffer_address(p->tables);
    p->args.twiddles = p->args.windows + begin;
    return WT_OK;
}

static wt_status prepare_fused(wt_reassigned *p)
{
    const int n = p->args.n_fft, sequences = wt__spectrum_sequences(n);
    const size_t bytes = 2 * (size_t)sequences * (size_t)wt__spectrum_points(n) * 2 * sizeof(double),
                 room = wt_device_get_info(p->device)->shared_bytes;
    wt_status status = wt__spectrum_cuda_check("reassigned", n);
    if (!status && bytes > room)
        status = wt_fail(WT_ERR_UNSUPPORTED, "reassigned: n_fft %d takes %zu bytes of shared memory, the GPU has %zu",
                         n, bytes, room);
    p->launch = (wt_launch){.block = {wt__spectrum_threads(n) * sequences}, .shared_bytes = bytes};
    if (!status)
        status = wt__spectrum_cuda_grid("reassigned", p->config.n_signals, (p->n_frames + 1) / 2, sequences,
                                        &p->launch.grid[0]);
    char options[1][48];
    snprintf(options[0], sizeof options[0], "-DSPECTRUM_N=%d", n);
    if (!status) status = wt__op_module(p->device, "kernels/spectral/reassigned.cu", options, 1, &p->module);
    if (!status) status = wt_module_get_kernel(p->module, "reassigned", &p->kernel);
    return status ? status : make_tables(p);
}

static wt_status prepare_wide(wt_reassigned *p)
{
    const size_t n = (size_t)p->args.n_fft;
    double *windows = malloc(3 * n * sizeof *windows);
    if (!windows) return wt_fail(WT_ERR_NO_MEMORY, "reassigned: windows of %zu", n);
    make_windows(p->workers[0].stft[0], windows);
    p->is_wide = true;
    wt_status status =
        wt__wide_create("reassigned", p->device, p->args.n_fft, p->config.n_signals, p->n_frames, 3, windows, &p->wide);
    free(windows);
    wt_wide_fill_args *fill = &p->wide.fill_args;
    fill->n_samples = p->config.n_samples;
    fill->hop = p->args.frames.hop, fill->margin = p->args.frames.margin, fill->pad = p->args.frames.pad;
    if (!status) status = wt__wide_level(p->device, &p->wide);
    if (!status) status = wt__op_module(p->device, "kernels/spectral/reassigned_wide.cu", NULL, 0, &p->module);
    return status ? status : wt_module_get_kernel(p->module, "reassigned_wide", &p->kernel);
}

static wt_status prepare_gpu(wt_reassigned *p)
{
    wt_status status = prepare_fused(p);
    return status == WT_ERR_UNSUPPORTED ? prepare_wide(p) : status;
}

static wt_status resolve(wt_reassigned *p)
{
    wt_reassigned_config *c = &p->config;
    if (!c->rate_hz) c->rate_hz = 22050;
    if (!c->ref_power) c->ref_power = 1e-6;
    if (!c->n_signals) c->n_signals = 1;
    c->stft.precise = true;
    if (c->rate_hz < 1 || !(c->ref_power > 0))
        return wt_fail(WT_ERR_BAD_ARG, "reassigned: rate %d Hz, ref_power %g, want 1 or more, above 0", c->rate_hz,
                       c->ref_power);
    if (c->n_signals < 1) return wt_fail(WT_ERR_BAD_ARG, "reassigned: %d signals, want 1 or more", c->n_signals);
    return WT_OK;
}

// When the first worker is there.
static wt_status measure(wt_reassigned *p)
{
    const wt_stft_config *s = wt__stft_config(p->workers[0].stft[0]);
    const wt_reassigned_config *c = &p->config;
    p->bins = wt_stft_bins(p->workers[0].stft[0]);
    p->n_frames = wt_stft_frames(p->workers[0].stft[0], c->n_samples);
    if (p->n_frames < 1 || p->n_frames > INT32_MAX / 2)
        return wt_fail(p->n_frames < 1 ? WT_ERR_LENGTH : WT_ERR_BAD_ARG,
                       "reassigned: %lld frames of %d in %lld samples, want 1..%d", (long long)p->n_frames, s->n_fft,
                       (long long)c->n_samples, INT32_MAX / 2);
    p->args = (wt_reassigned_args){.frames = {.n_samples = c->n_samples,
                                              .n_frames = (int)p->n_frames,
                                              .hop = s->hop,
                                              .margin = s->no_center ? 0 : s->n_fft / 2,
                                              .pad = (int)s->pad},
                                   .rate_hz = c->rate_hz,
                                   .n_all = c->n_samples,
                                   .least = sqrt(c->ref_power),
                                   .n_fft = s->n_fft,
                                   .centre = s->no_center ? s->n_fft / 2 : 0,
                                   .keep_all = c->keep_all,
                                   .fill_nan = c->fill_nan,
                                   .no_clip = c->no_clip};
    return WT_OK;
}

wt_status wt_reassigned_create(wt_device *device, const wt_reassigned_config *config, wt_reassigned **plan)
{
    *plan = NULL;
    wt_reassigned *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "reassigned: plan");
    p->device = device, p->config = *config;
    p->n_slots = wt__op_slots(device, INT64_MAX);
    p->workers = calloc((size_t)p->n_slots, sizeof *p->workers);
    wt_status status = p->workers ? resolve(p) : wt_fail(WT_ERR_NO_MEMORY, "reassigned: %d threads", p->n_slots);
    for (int i = 0; i < p->n_slots && !status; i++) status = make_worker(p, &p->workers[i]);
    if (!status) status = measure(p);
    if (!status && wt__op_on_gpu(device)) status = prepare_gpu(p);
    p->config.stft.window.samples = NULL; // copied
    if (status)
        wt_reassigned_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_reassigned_destroy(wt_reassigned *plan)
{
    if (!plan) return;
    for (int slot = 0; plan->workers && slot < plan->n_slots; slot++)
        for (int i = 0; i < 3; i++) wt_stft_destroy(plan->workers[slot].stft[i]);
    free(plan->workers);
    wt_module_destroy(plan->module);
    wt_buffer_destroy(plan->tables);
    wt__wide_release(&plan->wide);
    free(plan);
}

int64_t wt_reassigned_frames(const wt_reassigned *plan) { return plan->n_frames; }

int wt_reassigned_bins(const wt_reassigned *plan) { return plan->bins; }

void wt_reassigned_place(wt_reassigned *plan, int64_t begin, int64_t n_all)
{
    plan->args.begin = begin, plan->args.n_all = n_all;
}

// ---- running

typedef struct call {
    const wt_reassigned *plan;
    const float *pcm;
    float *out;
    int n_slots;
} call;

static void run_tile(const wt_reassigned *p, const worker *w, const float *pcm, int64_t t, float *out)
{
    const int count = p->n_frames - t < F ? (int)(p->n_frames - t) : F;
    const double *re[3], *im[3];
    for (int i = 0; i < 3; i++) wt__stft_precise(w->stft[i], pcm, p->config.n_samples, t, count, &re[i], &im[i]);
    for (int k = 0; k < p->bins; k++)
        for (int f = 0; f < count; f++) {
            double x[3][2];
            for (int i = 0; i < 3; i++) x[i][0] = re[i][k * F + f], x[i][1] = im[i][k * F + f];
            wt__reassign(&p->args, t + f, k, x[0], x[1], x[2], out + (t + f) * p->bins + k, p->n_frames * p->bins);
        }
}

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_reassigned *p = c->plan;
    const int64_t tiles = (p->n_frames + F - 1) / F, all = tiles * p->config.n_signals;
    const int64_t end = wt__op_begin(all, slot + 1, c->n_slots);
    for (int64_t i = wt__op_begin(all, slot, c->n_slots); i < end; i++)
        run_tile(p, &p->workers[slot], c->pcm + i / tiles * p->config.n_samples, i % tiles * F,
                 c->out + i / tiles * 3 * p->n_frames * p->bins);
}

WT_RT void wt_reassigned_run(wt_reassigned *plan, const float *pcm, float *out)
{
    const call c = {plan, pcm, out, 1};
    run_slot(&c, 0);
}

// A tile of pairs: the three spectra, then all bins.
static wt_status run_wide(const wt_reassigned *p, wt_stream *stream, const wt_reassigned_args *args)
{
    const wt__wide *w = &p->wide;
    wt_status status = WT_OK;
    for (int64_t first = 0; first < w->n_pairs && !status; first += w->at_once) {
        const wt_reassigned_wide_args bins = {.pairs = wt__wide_tile(w, first), .reassigned = *args};
        wt_wide_fill_args fill = w->fill_args;
        fill.pairs = bins.pairs, fill.pcm = args->frames.pcm;
        status = wt__wide_launch(w, w->level, stream, &fill.pairs, 64, WT_ARG(fill));
        for (int set = 0; set < 3 && !status; set++) {
            status = wt__wide_launch(w, w->fill, stream, &fill.pairs, fill.pairs.n_fft, WT_ARG(fill));
            fill.window += fill.pairs.n_fft;
            fill.pairs.in += 2 * (int64_t)fill.pairs.n_pairs * fill.pairs.pitch;
        }
        if (!status) status = wt__fft64_cuda_run(&w->fft, stream, 3 * (int64_t)bins.pairs.n_pairs);
        if (!status) status = wt__wide_launch(w, p->kernel, stream, &bins.pairs, p->bins, WT_ARG(bins));
    }
    return status;
}

wt_status wt_reassigned_enqueue(wt_reassigned *plan, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset,
                                wt_buffer *out, size_t out_offset)
{
    const size_t n = (size_t)plan->config.n_signals, items = 3 * (size_t)(plan->n_frames * plan->bins);
    wt_status status = wt__op_stream("reassigned", plan->device, stream);
    if (!status) status = wt__op_range("reassigned", "pcm", pcm, pcm_offset, n * (size_t)plan->config.n_samples);
    if (!status) status = wt__op_range("reassigned", "out", out, out_offset, n * items);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(pcm) + pcm_offset),
                    (float *)(wt_buffer_address(out) + out_offset), plan->n_slots};
    if (!plan->kernel) return wt_stream_run(stream, run_slot, &c, sizeof c, plan->n_slots);
    wt_reassigned_args args = plan->args;
    args.frames.pcm = c.pcm, args.out = c.out;
    if (plan->is_wide) return run_wide(plan, stream, &args);
    return wt_kernel_launch(plan->kernel, stream, &plan->launch, &WT_ARG(args), 1);
}
