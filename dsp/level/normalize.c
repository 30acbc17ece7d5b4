// A signal's level is measured, then all of it multiplied: by a thread a signal, or kernels/level/normalize.cu.
// Loudness is that of wt_loudness_batch.

#include "normalize_kernel.h"
#include "op.h"
#include "spectrum_cuda.h"

#include <math.h>
#include <stdlib.h>
#include <warptone/loudness.h>
#include <warptone/normalize.h>

struct wt_normalize {
    wt_normalize_config config; // defaults resolved
    wt_device *device;
    normalize_args args;
    wt_loudness_batch *loudness; // NULL = by facts
    wt_loudness_values *own;     // [n_signals] of immediate calls, and what was fetched; by facts:
    normalize_facts *own_facts;  // [n_signals][n_parts]
    int64_t n_parts;             // that a signal's facts are measured in: 1 on a CPU
    wt_buffer *values, *facts, *gains;
    wt_module *module; // NULL on a CPU
    wt_kernel *measure, *find, *apply;
};

_Static_assert(sizeof(loudness_values) == sizeof(wt_loudness_values), "the kernel's values are the header's");

static double target_of(const wt_normalize_config *c)
{
    static const double targets[] = {-23, -20, 0};
    return c->target_db == 0 ? targets[c->kind] : c->target_db;
}

static wt_status check(wt_normalize_config *c)
{
    if (!c->channels) c->channels = 1;
    if (!c->n_signals) c->n_signals = 1;
    if ((unsigned)c->kind > WT_NORMALIZE_PEAK)
        return wt_fail(WT_ERR_BAD_ARG, "normalize: kind %d, want 0..%d", (int)c->kind, WT_NORMALIZE_PEAK);
    c->target_db = target_of(c);
    if (!(fabs(c->target_db) <= 100 && fabs(c->ceiling_db) <= 100))
        return wt_fail(WT_ERR_BAD_ARG, "normalize: target %g dB, ceiling %g dB, want -100..100", c->target_db,
                       c->ceiling_db);
    if (c->channels < 1 || c->n_signals < 1 || c->n_frames < 1)
        return wt_fail(WT_ERR_BAD_ARG, "normalize: %d signals of %d channels of %lld frames, want 1 or more",
                       c->n_signals, c->channels, (long long)c->n_frames);
    return WT_OK;
}

// ---- creating

static wt_status take(wt_device *device, int64_t count, size_t size, wt_buffer **buffer, void *address)
{
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, (size_t)count * size, buffer);
    if (!status) *(void **)address = (void *)wt_buffer_address(*buffer);
    return status;
}

static wt_status create_cuda(wt_normalize *p)
{
    normalize_args *a = &p->args;
    wt_status status = take(p->device, a->n_signals, sizeof *a->gains, &p->gains, &a->gains);
    if (!status && !p->loudness)
        status = take(p->device, a->n_signals * a->n_chunks, sizeof *a->facts, &p->facts, &a->facts);
    if (!status) status = wt__op_module(p->device, "kernels/level/normalize.cu", NULL, 0, &p->module);
    if (!status) status = wt_module_get_kernel(p->module, "normalize_measure", &p->measure);
    if (!status) status = wt_module_get_kernel(p->module, "normalize_find", &p->find);
    return status ? status : wt_module_get_kernel(p->module, "normalize_apply", &p->apply);
}

static wt_status create_loudness(wt_normalize *p)
{
    const wt_normalize_config *c = &p->config;
    const wt_loudness_batch_config config = {.meter = {.rate_hz = c->rate_hz,
                                                       .channels = c->channels,
                                                       .dual_mono = c->dual_mono,
                                                       .no_true_peak = c->no_true_peak},
                                             .n_frames = c->n_frames,
                                             .n_signals = c->n_signals};
    wt_status status = wt_loudness_batch_create(p->device, &config, &p->loudness);
    if (status) return status;
    p->own = malloc(sizeof *p->own * (size_t)c->n_signals);
    if (!p->own) return wt_fail(WT_ERR_NO_MEMORY, "normalize: %d loudnesses", c->n_signals);
    return p->device ? take(p->device, c->n_signals, sizeof *p->own, &p->values, &p->args.values) : WT_OK;
}

static wt_status create_facts(wt_normalize *p)
{
    const size_t count = (size_t)(p->args.n_signals * p->n_parts);
    p->own_facts = p->args.facts = calloc(count, sizeof *p->own_facts);
    return p->own_facts ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "normalize: %zu facts", count);
}

wt_status wt_normalize_create(wt_device *device, const wt_normalize_config *config, wt_normalize **plan)
{
    *plan = NULL;
    wt_normalize_config c = *config;
    wt_status status = check(&c);
    if (status) return status;
    wt_normalize *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "normalize: plan");
    p->config = c, p->device = device;
    p->args = (normalize_args){.area = c.channels * c.n_frames,
                               .n_signals = c.n_signals,
                               .target_db = c.target_db,
                               .ceiling_db = c.kind == WT_NORMALIZE_PEAK ? INFINITY : c.ceiling_db,
                               .by_peak = c.kind == WT_NORMALIZE_PEAK,
                               .channels = c.channels};
    p->args.n_chunks = (p->args.area + NORMALIZE_CHUNK - 1) / NORMALIZE_CHUNK;
    p->n_parts = wt__op_on_gpu(device) ? p->args.n_chunks : 1;
    status = c.kind == WT_NORMALIZE_LOUDNESS ? create_loudness(p) : create_facts(p);
    if (!status && wt__op_on_gpu(device)) status = create_cuda(p);
    if (status)
        wt_normalize_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_normalize_destroy(wt_normalize *plan)
{
    if (!plan) return;
    wt_loudness_batch_destroy(plan->loudness);
    wt_module_destroy(plan->module);
    wt_buffer_destroy(plan->values);
    wt_buffer_destroy(plan->facts);
    wt_buffer_destroy(plan->gains);
    free(plan->own), free(plan->own_facts);
    free(plan);
}

// ---- running

WT_RT static void bring_signal(const void *args, int signal)
{
    const normalize_args *a = args;
    const float *in = a->in + signal * a->area;
    float *out = a->out + signal * a->area, gain;
    normalize_facts f = {0};
    const int64_t n = a->area / a->channels;
    for (int c = 0; c < a->channels && !a->values; c++) { // each summed by itself, as a signal in parts can be too
        normalize_facts own = {0};
        for (int64_t i = 0; i < n; i++) normalize_count(&own, in[c * n + i]);
        normalize_add(&f, &own);
    }
    if (!a->values) a->facts[signal] = f;
    gain = a->values ? normalize_by_loudness(a, a->values + signal) : normalize_by_facts(a, &f);
    for (int64_t i = 0; i < a->area; i++) out[i] = in[i] * gain;
}

WT_RT void wt_normalize_run(wt_normalize *plan, const float *in, float *out)
{
    normalize_args args = plan->args;
    args.in = in, args.out = out, args.facts = plan->own_facts;
    if (plan->loudness) {
        wt_loudness_batch_run(plan->loudness, in, plan->own);
        args.values = (const loudness_values *)plan->own;
    }
    for (int signal = 0; signal < args.n_signals; signal++) bring_signal(&args, signal);
}

WT_RT wt_normalize_result wt_normalize_find(const wt_normalize_config *config, double level_db, double peak_db)
{
    wt_normalize_result r = {.level_db = level_db};
    if (!(level_db > -1000)) return r; // as the kernel has it
    const double to_target = target_of(config) - level_db;
    const double to_ceiling = config->kind == WT_NORMALIZE_PEAK ? INFINITY : config->ceiling_db - peak_db;
    r.gain_db = to_target < to_ceiling ? to_target : to_ceiling;
    r.missed_db = to_target - r.gain_db;
    return r;
}

/// What each signal's parts, `n_parts` of them, were measured to be.
WT_RT static void tell(const wt_normalize *p, int64_t n_parts, wt_normalize_result *results)
{
    for (int s = 0; s < p->config.n_signals; s++) {
        normalize_facts f = {0};
        for (int64_t k = 0; k < n_parts && !p->loudness; k++) normalize_add(&f, &p->own_facts[s * n_parts + k]);
        const double peak_db = p->loudness ? p->own[s].true_peak_db : 20 * log10((double)f.peak);
        const double level_db = p->loudness       ? p->own[s].integrated_lufs
                                : p->args.by_peak ? peak_db
                                                  : 10 * log10(f.squares / f.count);
        results[s] = wt_normalize_find(&p->config, level_db, peak_db);
    }
}

WT_RT void wt_normalize_query(const wt_normalize *plan, wt_normalize_result *results) { tell(plan, 1, results); }

wt_status wt_normalize_fetch(wt_normalize *plan, wt_stream *stream, wt_normalize_result *results)
{
    const size_t n = (size_t)plan->config.n_signals;
    wt_status status = wt__op_stream("normalize", plan->device, stream);
    if (!status && plan->loudness)
        status = wt_stream_download(stream, plan->own, plan->values, 0, n * sizeof *plan->own);
    else if (!status && plan->facts)
        status = wt_stream_download(stream, plan->own_facts, plan->facts, 0,
                                    n * (size_t)plan->n_parts * sizeof *plan->own_facts);
    if (!status) status = wt_stream_synchronize(stream);
    if (!status) tell(plan, plan->n_parts, results);
    return status;
}

static wt_status launch(const wt_normalize *p, wt_stream *stream, const normalize_args *args)
{
    wt_launch measure = {.block = {256}}, apply = {.block = {256}};
    const wt_launch find = {.grid = {(int)args->n_signals}, .block = {32}};
    wt_status status = wt__spectrum_cuda_grid("normalize", args->n_signals, args->n_chunks, 1, &measure.grid[0]);
    if (!status) status = wt__spectrum_cuda_grid("normalize", 1, args->n_signals * args->area, 1024, &apply.grid[0]);
    if (!status && !args->values) status = wt_kernel_launch(p->measure, stream, &measure, &WT_ARG(*args), 1);
    if (!status) status = wt_kernel_launch(p->find, stream, &find, &WT_ARG(*args), 1);
    return status ? status : wt_kernel_launch(p->apply, stream, &apply, &WT_ARG(*args), 1);
}

wt_status wt_normalize_enqueue(wt_normalize *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                               wt_buffer *out, size_t out_offset)
{
    normalize_args args = plan->args;
    const size_t count = (size_t)(args.n_signals * args.area);
    wt_status status = wt__op_stream("normalize", plan->device, stream);
    if (!status) status = wt__op_range("normalize", "input", in, in_offset, count);
    if (!status) status = wt__op_range("normalize", "out", out, out_offset, count);
    if (!status && plan->loudness)
        status = wt_loudness_batch_enqueue(plan->loudness, stream, in, in_offset, plan->values, 0);
    if (status) return status;
    args.in = (const float *)(wt_buffer_address(in) + in_offset);
    args.out = (float *)(wt_buffer_address(out) + out_offset);
    return plan->module ? launch(plan, stream, &args)
                        : wt_stream_run(stream, bring_signal, &args, sizeof args, (int)args.n_signals);
}
