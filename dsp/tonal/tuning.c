#include "tuning_internal.h"
#include "op.h"
#include "spectrum_cuda.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/fft.h>

static wt_status resolve(wt_piptrack_config *c, int64_t n_frames)
{
    if (c->rate_hz == 0) c->rate_hz = 22050;
    if (!c->n_fft) c->n_fft = 2048;
    if (c->fmin_hz == 0) c->fmin_hz = 150;
    if (c->fmax_hz == 0) c->fmax_hz = 4000;
    if (c->threshold == 0) c->threshold = 0.1;
    if (!(c->rate_hz > 0)) return wt_fail(WT_ERR_BAD_ARG, "piptrack: rate %g Hz, want above 0", c->rate_hz);
    if (c->n_fft < 2 || c->n_fft > WT_FFT_MAX_N)
        return wt_fail(WT_ERR_BAD_ARG, "piptrack: n_fft %d, want 2..%d", c->n_fft, WT_FFT_MAX_N);
    if (!(c->threshold > 0)) return wt_fail(WT_ERR_BAD_ARG, "piptrack: threshold %g, want above 0", c->threshold);
    if (n_frames < 0) return wt_fail(WT_ERR_BAD_ARG, "piptrack: %lld frames, want 0 or more", (long long)n_frames);
    if (c->fmax_hz > c->rate_hz / 2) c->fmax_hz = c->rate_hz / 2;
    return WT_OK;
}

static double centre_of(const wt_piptrack_config *c, int k) { return k * c->rate_hz / c->n_fft; }

void wt__tuning_track(const wt_piptrack_config *c, const float *s, float *hz, float *height)
{
    const int bins = c->n_fft / 2 + 1;
    float most = s[0];
    for (int k = 1; k < bins; k++) most = s[k] > most ? s[k] : most;
    for (int k = 0; k < bins; k++) {
        const double centre = centre_of(c, k);
        hz[k] = height[k] = 0;
        if (!(centre >= c->fmin_hz && centre < c->fmax_hz) || !wt__peak_is(s, k, bins, c->threshold * most)) continue;
        double shift, top;
        wt__peak_refine(s, k, bins, &shift, &top);
        hz[k] = (float)((k + shift) * c->rate_hz / c->n_fft), height[k] = (float)top;
    }
}

wt_status wt_piptrack(const wt_piptrack_config *config, const float *spectrum, int64_t n_frames, float *hz,
                      float *height)
{
    wt_piptrack_config c = *config;
    wt_status status = resolve(&c, n_frames);
    const int64_t bins = c.n_fft / 2 + 1;
    for (int64_t t = 0; t < n_frames && !status; t++)
        wt__tuning_track(&c, spectrum + t * bins, hz + t * bins, height + t * bins);
    return status;
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

// Peaks by height: the median of the heights, two middle ones averaged.
static float median_of(const float *height, size_t n, float *sorted)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (height[i] > 0) sorted[count++] = height[i];
    if (!count) return 0;
    qsort(sorted, count, sizeof *sorted, ascending);
    return count % 2 ? sorted[count / 2] : 0.5f * (sorted[count / 2 - 1] + sorted[count / 2]);
}

// Scratch of an estimate: peaks' frequencies, heights, heights in order, and how many each step has.
typedef struct scratch {
    float *floats; // [3 n + 1]
    int *counts;   // [n_steps]
} scratch;

static wt_status scratch_create(int64_t n_frames, int bins, int n_steps, scratch *w)
{
    const size_t n = (size_t)n_frames * (size_t)bins;
    w->floats = malloc((3 * n + 1) * sizeof *w->floats);
    w->counts = malloc((size_t)n_steps * sizeof *w->counts);
    if (w->floats && w->counts) return WT_OK;
    return wt_fail(WT_ERR_NO_MEMORY, "tuning: peaks of %lld frames", (long long)n_frames);
}

static void scratch_destroy(scratch *w)
{
    free(w->floats);
    free(w->counts);
}

// All defaults resolved.
static double estimate(const wt_tuning_config *c, const float *spectrum, scratch *w)
{
    const int n_steps = (int)ceil(1 / c->resolution), bins = c->peaks.n_fft / 2 + 1;
    const size_t n = (size_t)c->n_frames * (size_t)bins;
    float *hz = w->floats, *height = w->floats + n;
    int best = 0, found = 0;
    for (size_t t = 0; t < n; t += (size_t)bins) wt__tuning_track(&c->peaks, spectrum + t, hz + t, height + t);
    const float least = median_of(height, n, w->floats + 2 * n);
    memset(w->counts, 0, (size_t)n_steps * sizeof *w->counts);
    for (size_t i = 0; i < n; i++) {
        if (!(hz[i] > 0 && height[i] >= least)) continue;
        w->counts[wt__tuning_step(hz[i], c->bins_per_octave, n_steps)]++;
        found++;
    }
    for (int i = 1; i < n_steps; i++)
        if (w->counts[i] > w->counts[best]) best = i;
    return found ? -0.5 + best * (1.0 / n_steps) : 0;
}

wt_status wt__tuning_resolve(wt_tuning_config *c)
{
    if (!c->bins_per_octave) c->bins_per_octave = 12;
    if (c->resolution == 0) c->resolution = 0.01;
    if (!c->n_signals) c->n_signals = 1;
    wt_status status = resolve(&c->peaks, c->n_frames);
    if (status) return status;
    if (c->bins_per_octave >= 1 && c->resolution >= 1e-6 && c->resolution <= 1) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG, "tuning: %d bins an octave in steps of %g, want 1 or more, and 1e-6..1",
                   c->bins_per_octave, c->resolution);
}

wt_status wt_tuning_estimate(const wt_piptrack_config *config, const float *spectrum, int64_t n_frames,
                             int bins_per_octave, double resolution, double *tuning)
{
    scratch w = {NULL, NULL};
    wt_tuning_config c = {
        .peaks = *config, .n_frames = n_frames, .bins_per_octave = bins_per_octave, .resolution = resolution};
    *tuning = 0;
    wt_status status = wt__tuning_resolve(&c);
    if (!status) status = scratch_create(n_frames, c.peaks.n_fft / 2 + 1, (int)ceil(1 / c.resolution), &w);
    if (!status) *tuning = estimate(&c, spectrum, &w);
    scratch_destroy(&w);
    return status;
}

// ---- on a stream

#define WORK_BYTES (1LL << 30)

struct wt_tuning {
    wt_tuning_config config; // defaults resolved
    wt_device *device;
    int bins, n_steps;
    scratch *slots; // [n_slots] on a CPU
    int n_slots;
    wt_module *module; // NULL on a CPU
    wt_kernel *peaks, *choose;
    wt_buffer *lists, *n_peaks, *counts;
    wt_tuning_args args;
    int at_once; // signals
};

static wt_status take_work(wt_tuning *p)
{
    const int64_t most = p->config.n_frames * ((p->args.end - p->args.first) / 2 + 1); // no two neighbours are peaks
    const int64_t room = WORK_BYTES / (most * (int64_t)sizeof(wt_tuning_peak));
    if (most > INT_MAX)
        return wt_fail(WT_ERR_UNSUPPORTED,
                       "tuning: %lld frames on a GPU may have %lld peaks, whose list wants fewer than 2^31 (17 GB)",
                       (long long)p->config.n_frames, (long long)most);
    p->at_once = room < 1 ? 1 : room < p->config.n_signals ? (int)room : p->config.n_signals;
    const size_t n = (size_t)p->at_once;
    wt_status status =
        wt_buffer_create(p->device, WT_MEMORY_DEVICE, n * (size_t)most * sizeof(wt_tuning_peak), &p->lists);
    if (!status) status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, n * sizeof(int), &p->n_peaks);
    if (!status)
        status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, n * (size_t)p->n_steps * sizeof(int), &p->counts);
    if (status) return status;
    p->args.most = most;
    p->args.peaks = (wt_tuning_peak *)wt_buffer_address(p->lists);
    p->args.n_peaks = (int *)wt_buffer_address(p->n_peaks);
    p->args.counts = (int *)wt_buffer_address(p->counts);
    return WT_OK;
}

static wt_status create_cuda(wt_tuning *p)
{
    const wt_tuning_config *c = &p->config;
    p->args = (wt_tuning_args){.n_frames = c->n_frames,
                               .bins = p->bins,
                               .n_fft = c->peaks.n_fft,
                               .bins_per_octave = c->bins_per_octave,
                               .n_steps = p->n_steps,
                               .rate_hz = c->peaks.rate_hz,
                               .threshold = c->peaks.threshold};
    while (p->args.first < p->bins && centre_of(&c->peaks, p->args.first) < c->peaks.fmin_hz) p->args.first++;
    p->args.end = p->args.first;
    while (p->args.end < p->bins && centre_of(&c->peaks, p->args.end) < c->peaks.fmax_hz) p->args.end++;
    wt_status status = take_work(p);
    if (!status) status = wt__op_exact_module(p->device, "kernels/tonal/tuning.cu", &p->module);
    if (!status) status = wt_module_get_kernel(p->module, "tuning_peaks", &p->peaks);
    return status ? status : wt_module_get_kernel(p->module, "tuning_choose", &p->choose);
}

static wt_status create_slots(wt_tuning *p)
{
    p->n_slots = wt__op_slots(p->device, p->config.n_signals);
    p->slots = calloc((size_t)p->n_slots, sizeof *p->slots);
    wt_status status = p->slots ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "tuning: %d threads", p->n_slots);
    for (int slot = 0; slot < p->n_slots && !status; slot++)
        status = scratch_create(p->config.n_frames, p->bins, p->n_steps, &p->slots[slot]);
    return status;
}

wt_status wt_tuning_create(wt_device *device, const wt_tuning_config *config, wt_tuning **plan)
{
    *plan = NULL;
    wt_tuning *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "tuning: plan");
    p->config = *config;
    p->device = device;
    wt_status status = wt__tuning_resolve(&p->config);
    if (!status && (p->config.n_frames < 1 || p->config.n_signals < 1))
        status = wt_fail(WT_ERR_BAD_ARG, "tuning: %d signals of %lld frames, want 1 or more", p->config.n_signals,
                         (long long)p->config.n_frames);
    p->bins = p->config.peaks.n_fft / 2 + 1;
    if (!status) p->n_steps = (int)ceil(1 / p->config.resolution);
    if (!status) status = wt__op_on_gpu(device) ? create_cuda(p) : create_slots(p);
    if (status)
        wt_tuning_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_tuning_destroy(wt_tuning *plan)
{
    if (!plan) return;
    for (int slot = 0; plan->slots && slot < plan->n_slots; slot++) scratch_destroy(&plan->slots[slot]);
    free(plan->slots);
    wt_module_destroy(plan->module);
    wt_buffer_destroy(plan->lists);
    wt_buffer_destroy(plan->n_peaks);
    wt_buffer_destroy(plan->counts);
    free(plan);
}

typedef struct call {
    const wt_tuning *plan;
    const float *spectrum;
    float *hz, *height;
    double *tuning;
} call;

static void estimate_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_tuning *p = c->plan;
    for (int s = slot; s < p->config.n_signals; s += p->n_slots)
        c->tuning[s] = estimate(&p->config, c->spectrum + s * p->config.n_frames * p->bins, &p->slots[slot]);
}

static void track_signal(const void *args, int signal)
{
    const call *c = args;
    const wt_tuning *p = c->plan;
    const int64_t area = p->config.n_frames * p->bins;
    for (int64_t at = signal * area; at < (signal + 1) * area; at += p->bins)
        wt__tuning_track(&p->config.peaks, c->spectrum + at, c->hz + at, c->height + at);
}

static wt_status launch_peaks(const wt_tuning *p, wt_stream *stream, const wt_tuning_args *args)
{
    enum { WARPS = 8 }; // as kernels/tonal/tuning.cu says
    wt_launch launch = {.block = {32 * WARPS}};
    wt_status status = wt__spectrum_cuda_grid("tuning", 1, args->n_signals * args->n_frames, WARPS, &launch.grid[0]);
    return status ? status : wt_kernel_launch(p->peaks, stream, &launch, &WT_ARG(*args), 1);
}

static wt_status launch_estimates(const wt_tuning *p, wt_stream *stream, const call *c)
{
    wt_tuning_args args = p->args;
    wt_status status = WT_OK;
    for (int first = 0; first < p->config.n_signals && !status; first += p->at_once) {
        const int rest = p->config.n_signals - first;
        args.n_signals = rest < p->at_once ? rest : p->at_once;
        args.spectrum = c->spectrum + first * args.n_frames * args.bins;
        args.tuning = c->tuning + first;
        const wt_launch choose = {.grid = {args.n_signals}, .block = {1024}};
        status = wt_stream_fill(stream, p->n_peaks, 0, 0, wt_buffer_size_bytes(p->n_peaks));
        if (!status) status = launch_peaks(p, stream, &args);
        if (!status) status = wt_kernel_launch(p->choose, stream, &choose, &WT_ARG(args), 1);
    }
    return status;
}

wt_status wt_tuning_enqueue(wt_tuning *plan, wt_stream *stream, const wt_buffer *spectrum, size_t spectrum_offset,
                            wt_buffer *tuning, size_t tuning_offset)
{
    const size_t n = (size_t)plan->config.n_signals, area = (size_t)plan->config.n_frames * (size_t)plan->bins;
    wt_status status = wt__op_stream("tuning", plan->device, stream);
    if (!status) status = wt__op_range("tuning", "spectrum", spectrum, spectrum_offset, n * area);
    if (!status) status = wt__op_range("tuning", "tuning", tuning, tuning_offset, 2 * n);
    if (!status && tuning_offset % sizeof(double))
        status = wt_fail(WT_ERR_BAD_ARG, "tuning: tuning offset %zu, want a multiple of 8", tuning_offset);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(spectrum) + spectrum_offset), NULL, NULL,
                    (double *)(wt_buffer_address(tuning) + tuning_offset)};
    if (plan->module) return launch_estimates(plan, stream, &c);
    return wt_stream_run(stream, estimate_slot, &c, sizeof c, plan->n_slots);
}

wt_status wt_tuning_enqueue_peaks(wt_tuning *plan, wt_stream *stream, const wt_buffer *spectrum, size_t spectrum_offset,
                                  wt_buffer *hz, size_t hz_offset, wt_buffer *height, size_t height_offset)
{
    const size_t floats = (size_t)plan->config.n_signals * (size_t)plan->config.n_frames * (size_t)plan->bins;
    wt_status status = wt__op_stream("tuning", plan->device, stream);
    if (!status) status = wt__op_range("tuning", "spectrum", spectrum, spectrum_offset, floats);
    if (!status) status = wt__op_range("tuning", "hz", hz, hz_offset, floats);
    if (!status) status = wt__op_range("tuning", "height", height, height_offset, floats);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(spectrum) + spectrum_offset),
                    (float *)(wt_buffer_address(hz) + hz_offset), (float *)(wt_buffer_address(height) + height_offset),
                    NULL};
    if (!plan->module) return wt_stream_run(stream, track_signal, &c, sizeof c, plan->config.n_signals);
    wt_tuning_args args = plan->args;
    args.spectrum = c.spectrum, args.hz = c.hz, args.height = c.height, args.n_signals = plan->config.n_signals;
    return launch_peaks(plan, stream, &args);
}
