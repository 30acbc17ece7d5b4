// Each harmonic of each bin lies between two bins: the plan holds the lower one, and both weights.

#include <warptone/salience.h>

#include "op.h"
#include "salience_kernel.h"
#include "spectrum_cuda.h"

#include <stdlib.h>

struct wt_salience {
    int n_bins, n_harmonics;
    bool all_bins;
    float fill;
    wt_salience_tap *taps; // [n_bins][n_harmonics]
    wt_device *device;
    wt_module *module; // NULL on a CPU
    wt_kernel *kernel;
    wt_buffer *device_taps; // [n_harmonics][n_bins]
};

static wt_status check(const wt_salience_config *c)
{
    if (c->n_bins < 2 || c->n_harmonics < 1)
        return wt_fail(WT_ERR_BAD_ARG, "salience: %d bins, %d harmonics, want 2 and 1 or more", c->n_bins,
                       c->n_harmonics);
    for (int k = 1; k < c->n_bins; k++)
        if (!(c->frequencies[k] > c->frequencies[k - 1]))
            return wt_fail(WT_ERR_BAD_ARG, "salience: frequency %d is %g, want more than %g", k, c->frequencies[k],
                           c->frequencies[k - 1]);
    return WT_OK;
}

static wt_salience_tap between(const wt_salience_config *c, double frequency, double weight)
{
    const double *f = c->frequencies;
    if (!(frequency >= f[0]) || frequency > f[c->n_bins - 1]) return (wt_salience_tap){0, 0, 0};
    int low = 0, high = c->n_bins - 1; // f[low] <= frequency <= f[high]
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (f[middle] <= frequency)
            low = middle;
        else
            high = middle;
    }
    const double part = (frequency - f[low]) / (f[high] - f[low]);
    return (wt_salience_tap){low, (float)(weight * (1 - part)), (float)(weight * part)};
}

static wt_status create_cuda(wt_salience *p)
{
    const size_t bins = (size_t)p->n_bins, harmonics = (size_t)p->n_harmonics;
    wt_salience_tap *turned = malloc(bins * harmonics * sizeof *turned);
    if (!turned) return wt_fail(WT_ERR_NO_MEMORY, "salience: %d bins", p->n_bins);
    for (size_t k = 0; k < bins; k++)
        for (size_t h = 0; h < harmonics; h++) turned[h * bins + k] = p->taps[k * harmonics + h];
    wt_status status = wt__op_upload(p->device, turned, bins * harmonics * sizeof *turned, &p->device_taps);
    free(turned);
    if (!status) status = wt__op_exact_module(p->device, "kernels/pitch/salience.cu", &p->module);
    return status ? status : wt_module_get_kernel(p->module, "salience", &p->kernel);
}

wt_status wt_salience_create(wt_device *device, const wt_salience_config *config, wt_salience **plan)
{
    *plan = NULL;
    wt_status status = check(config);
    if (status) return status;
    double sum = 0;
    for (int h = 0; h < config->n_harmonics; h++) sum += config->weights ? config->weights[h] : 1;
    if (sum == 0) return wt_fail(WT_ERR_BAD_ARG, "salience: weights add up to 0");
    wt_salience *p = calloc(1, sizeof *p);
    wt_salience_tap *taps = p ? malloc((size_t)config->n_bins * (size_t)config->n_harmonics * sizeof *taps) : NULL;
    if (!taps) {
        free(p);
        return wt_fail(WT_ERR_NO_MEMORY, "salience: %d bins", config->n_bins);
    }
    *p = (wt_salience){.n_bins = config->n_bins,
                       .n_harmonics = config->n_harmonics,
                       .all_bins = config->all_bins,
                       .fill = config->fill,
                       .taps = taps,
                       .device = device};
    for (int k = 0; k < config->n_bins; k++)
        for (int h = 0; h < config->n_harmonics; h++)
            *taps++ = between(config, config->frequencies[k] * config->harmonics[h],
                              (config->weights ? config->weights[h] : 1) / sum);
    if (wt__op_on_gpu(device)) status = create_cuda(p);
    if (status)
        wt_salience_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_salience_destroy(wt_salience *plan)
{
    if (!plan) return;
    wt_module_destroy(plan->module);
    wt_buffer_destroy(plan->device_taps);
    free(plan->taps);
    free(plan);
}

WT_RT void wt_salience_run(const wt_salience *p, const float *in, int64_t n_frames, float *out)
{
    for (int64_t t = 0; t < n_frames; t++, in += p->n_bins, out += p->n_bins)
        for (int k = 0; k < p->n_bins; k++) {
            const bool peak = k > 0 && k + 1 < p->n_bins && in[k] > in[k - 1] && in[k] > in[k + 1];
            float sum = 0;
            for (const wt_salience_tap *a = p->taps + k * p->n_harmonics, *end = a + p->n_harmonics; a < end; a++)
                sum += a->at_lower * in[a->lower] + a->at_upper * in[a->lower + 1];
            out[k] = peak || p->all_bins ? sum : p->fill;
        }
}

// ---- on a stream

typedef struct call {
    const wt_salience *plan;
    const float *in;
    float *out;
    int64_t n_frames;
    int n_slots;
} call;

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const int64_t begin = wt__op_begin(c->n_frames, slot, c->n_slots), bins = c->plan->n_bins;
    const int64_t n = wt__op_begin(c->n_frames, slot + 1, c->n_slots) - begin;
    wt_salience_run(c->plan, c->in + begin * bins, n, c->out + begin * bins);
}

static wt_status launch(const wt_salience *p, wt_stream *stream, const call *c)
{
    const wt_salience_args args = {.in = c->in,
                                   .out = c->out,
                                   .taps = (const wt_salience_tap *)wt_buffer_address(p->device_taps),
                                   .n_frames = c->n_frames,
                                   .n_bins = p->n_bins,
                                   .n_harmonics = p->n_harmonics,
                                   .all_bins = p->all_bins,
                                   .fill = p->fill};
    wt_launch shape = {.grid = {0, (p->n_bins + 255) / 256}, .block = {256}};
    wt_status status = wt__spectrum_cuda_grid("salience", 1, c->n_frames, WT_SALIENCE_TILE, &shape.grid[0]);
    return status ? status : wt_kernel_launch(p->kernel, stream, &shape, &WT_ARG(args), 1);
}

wt_status wt_salience_enqueue(const wt_salience *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                              int64_t n_frames, wt_buffer *out, size_t out_offset)
{
    if (n_frames < 1) return wt_fail(WT_ERR_BAD_ARG, "salience: %lld frames, want 1 or more", (long long)n_frames);
    const size_t floats = (size_t)n_frames * (size_t)plan->n_bins;
    wt_status status = wt__op_stream("salience", plan->device, stream);
    if (!status) status = wt__op_range("salience", "in", in, in_offset, floats);
    if (!status) status = wt__op_range("salience", "out", out, out_offset, floats);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(in) + in_offset),
                    (float *)(wt_buffer_address(out) + out_offset), n_frames, wt__op_slots(plan->device, n_frames)};
    if (plan->module) return launch(plan, stream, &c);
    return wt_stream_run(stream, run_slot, &c, sizeof c, c.n_slots);
}
