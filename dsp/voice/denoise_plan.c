// Noise reduction of many lines that go on from block to block: wt_denoise a line on the CPU; on a GPU
// kernels/voice/denoise.cu around wt_fft, in parts whose spectra the work space holds. What a part leaves to the next
// lies in two copies, used in turn.

#include "denoise_batch_kernel.h"
#include "denoise_gain.h"
#include "op.h"
#include "spectrum_cuda.h"

#include <warptone/fft.h>

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORK_BYTES (1LL << 30)

enum { THREADS = 128 };

typedef struct on_gpu {
    wt_module *module; // NULL on a CPU
    wt_kernel *reset, *frames, *keep, *hear, *gains, *add;
    wt_fft *forward, *inverse;
    wt_buffer *tables, *frames_work, *spectra_work, *heard, *state;
    denoise_batch_args args; // old: what the last part left
    int at_once;             // spectra of each line
} on_gpu;

struct wt_denoise_plan {
    wt_device *device;
    int n_lines, max_frames, n_slots;
    double strength;
    wt_denoise **lines; // on a GPU one, for its rules and to learn
    on_gpu gpu;
};

// ---- life

static float *share(float **free_at, size_t floats)
{
    float *at = *free_at;
    *free_at += floats;
    return at;
}

static denoise_lines lines_at(float *free_at, size_t n_lines, size_t frame, size_t hop)
{
    const size_t bins = n_lines * (frame / 2 + 1);
    denoise_lines l;
    l.past = share(&free_at, n_lines * frame);
    l.ready = share(&free_at, n_lines * hop), l.sum = share(&free_at, n_lines * hop);
    l.noise = share(&free_at, bins), l.presence = share(&free_at, bins), l.clean = share(&free_at, bins);
    l.n_heard = (int *)share(&free_at, n_lines);
    return l;
}

static wt_status take_state(wt_denoise_plan *p)
{
    on_gpu *g = &p->gpu;
    const size_t n_lines = (size_t)p->n_lines, frame = (size_t)g->args.frame, hop = (size_t)g->args.hop;
    const size_t count = n_lines * (frame + 2 * hop + 3 * (frame / 2 + 1) + 1);
    wt_stream *stream = NULL;
    wt_status status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, 2 * count * sizeof(float), &g->state);
    if (status) return status;
    g->args.old = lines_at((float *)wt_buffer_address(g->state), n_lines, frame, hop);
    g->args.now = lines_at((float *)wt_buffer_address(g->state) + count, n_lines, frame, hop);
    status = wt_stream_create(p->device, NULL, &stream);
    if (!status) status = wt_denoise_plan_reset(p, stream);
    if (!status) status = wt_stream_synchronize(stream);
    wt_stream_destroy(stream);
    return status;
}

static wt_status make_tables(wt_denoise_plan *p)
{
    on_gpu *g = &p->gpu;
    const size_t frame = (size_t)g->args.frame, hop = (size_t)g->args.hop, count = frame + 2 * hop;
    float *tables = malloc(count * sizeof *tables);
    if (!tables) return wt_fail(WT_ERR_NO_MEMORY, "denoise: windows of %zu frames", count);
    for (size_t k = 0; k < frame; k++) tables[k] = (float)wt__denoise_analysis((int)frame, (int)hop, (int)k);
    for (size_t k = 0; k < 2 * hop; k++) tables[frame + k] = (float)wt__denoise_synthesis((int)frame, (int)hop, (int)k);
    wt_status status = wt__op_upload(p->device, tables, count * sizeof *tables, &g->tables);
    free(tables);
    if (status) return status;
    g->args.analysis = (const float *)wt_buffer_address(g->tables);
    g->args.synthesis = g->args.analysis + frame;
    return WT_OK;
}

// Frames and spectra change places between two buffers.
static wt_status take_work(wt_denoise_plan *p)
{
    on_gpu *g = &p->gpu;
    const int64_t each = (int64_t)p->n_lines * (g->args.frame + 2) * (int64_t)sizeof(float);
    const int64_t most = ((int64_t)p->max_frames + g->args.hop - 1) / g->args.hop;
    int64_t room = WORK_BYTES / (2 * each);
    if (room < 1) room = 1;
    const int64_t parts = (most + room - 1) / room; // of nearly equal length
    g->at_once = (int)((most + parts - 1) / parts);
    const int64_t batch = (int64_t)g->at_once * p->n_lines;
    if (batch > WT_FFT_MAX_BATCH)
        return wt_fail(WT_ERR_BAD_ARG, "denoise: %d lines, want %d at most on a GPU", p->n_lines, WT_FFT_MAX_BATCH);
    wt_fft_config config = {.n = g->args.frame, .batch = (int)batch, .kind = WT_FFT_REAL_TO_COMPLEX};
    wt_status status = wt_fft_create(p->device, &config, &g->forward);
    config.kind = WT_FFT_COMPLEX_TO_REAL;
    if (!status) status = wt_fft_create(p->device, &config, &g->inverse);
    const size_t bytes = (size_t)(each * g->at_once);
    if (!status) status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, bytes, &g->frames_work);
    if (!status) status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, bytes, &g->spectra_work);
    if (!status) status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, (size_t)batch * sizeof(int), &g->heard);
    if (status) return status;
    g->args.windowed = g->args.turned = (float *)wt_buffer_address(g->frames_work);
    g->args.spectra = g->args.back = (const float *)wt_buffer_address(g->spectra_work);
    g->args.heard = (int *)wt_buffer_address(g->heard);
    return WT_OK;
}

static wt_status load(wt_denoise_plan *p)
{
    on_gpu *g = &p->gpu;
    const struct {
        const char *name;
        wt_kernel **kernel;
    } kernels[] = {{"denoise_reset", &g->reset}, {"denoise_frames", &g->frames}, {"denoise_keep", &g->keep},
                   {"denoise_hear", &g->hear},   {"denoise_gains", &g->gains},   {"denoise_add", &g->add}};
    wt_status status = wt__op_module(p->device, "kernels/voice/denoise.cu", NULL, 0, &g->module);
    for (int k = 0; k < 6 && !status; k++) status = wt_module_get_kernel(g->module, kernels[k].name, kernels[k].kernel);
    return status;
}

static wt_status prepare_gpu(wt_denoise_plan *p)
{
    const wt_denoise *one = p->lines[0];
    denoise_batch_args *a = &p->gpu.args;
    a->n_lines = p->n_lines;
    a->hop = wt_denoise_latency_frames(one) / 2, a->frame = wt_denoise_window_frames(one);
    a->rules = *wt__denoise_rules_of(one);
    a->gains = a->rules.tracked;
    wt_status status = load(p);
    if (!status) status = make_tables(p);
    if (!status) status = take_work(p);
    return status ? status : take_state(p);
}

wt_status wt_denoise_plan_create(wt_device *device, const wt_denoise_plan_config *config, wt_denoise_plan **plan)
{
    *plan = NULL;
    wt_denoise_config one = config->denoise;
    const int64_t channels = one.channels ? one.channels : 2, signals = config->n_signals ? config->n_signals : 1;
    const bool gpu = wt__op_on_gpu(device);
    if (!device) return wt_fail(WT_ERR_BAD_ARG, "denoise: a plan without a device");
    if (channels < 1 || signals < 1 || channels * signals > INT_MAX)
        return wt_fail(WT_ERR_BAD_ARG, "denoise: %d signals of %d channels, want 1..%d lines", config->n_signals,
                       one.channels, INT_MAX);
    if (config->max_frames < 1 || config->max_frames > INT_MAX / 4)
        return wt_fail(WT_ERR_BAD_ARG, "denoise: max_frames %d, want 1..%d", config->max_frames, INT_MAX / 4);
    wt_denoise_plan *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "denoise: plan");
    *p = (wt_denoise_plan){.device = device, .n_lines = (int)(channels * signals), .max_frames = config->max_frames};
    p->strength = 1, p->n_slots = wt__op_slots(device, p->n_lines);
    p->lines = calloc(gpu ? 1 : (size_t)p->n_lines, sizeof *p->lines);
    wt_status status = p->lines ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "denoise: %d lines", p->n_lines);
    one.channels = 1;
    for (int i = 0; i < (gpu ? 1 : p->n_lines) && !status; i++) status = wt_denoise_create(&one, &p->lines[i]);
    if (!status && gpu) status = prepare_gpu(p);
    if (status)
        wt_denoise_plan_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_denoise_plan_destroy(wt_denoise_plan *plan)
{
    if (!plan) return;
    on_gpu *g = &plan->gpu;
    for (int i = 0; plan->lines && i < (wt__op_on_gpu(plan->device) ? 1 : plan->n_lines); i++)
        wt_denoise_destroy(plan->lines[i]);
    free(plan->lines);
    wt_fft_destroy(g->forward), wt_fft_destroy(g->inverse);
    wt_module_destroy(g->module);
    wt_buffer *const buffers[] = {g->tables, g->frames_work, g->spectra_work, g->heard, g->state};
    for (int i = 0; i < 5; i++) wt_buffer_destroy(buffers[i]);
    free(plan);
}

int wt_denoise_plan_latency_frames(const wt_denoise_plan *plan) { return wt_denoise_latency_frames(plan->lines[0]); }

int wt_denoise_plan_window_frames(const wt_denoise_plan *plan) { return wt_denoise_window_frames(plan->lines[0]); }

void wt_denoise_plan_set_strength(wt_denoise_plan *plan, double strength)
{
    plan->strength = fmin(fmax(strength, 0), 1);
}

// ---- on the CPU

typedef struct call {
    const wt_denoise_plan *plan;
    const float *in;
    float *out;
    int n_frames;
    double strength;
} call;

static void reset_slot(const void *args, int slot)
{
    const call *c = args;
    for (int64_t i = slot; i < c->plan->n_lines; i += c->plan->n_slots) wt_denoise_reset(c->plan->lines[i]);
}

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    for (int64_t i = slot; i < c->plan->n_lines; i += c->plan->n_slots) {
        const float *in = c->in + i * c->n_frames;
        float *out = c->out + i * c->n_frames;
        wt_denoise_set_strength(c->plan->lines[i], c->strength);
        wt_denoise_process(c->plan->lines[i], &in, &out, c->n_frames);
    }
}

// ---- on a GPU

static wt_status launch(wt_kernel *kernel, wt_stream *stream, const denoise_batch_args *args, int64_t threads)
{
    wt_launch shape = {.block = {THREADS}};
    if (!threads) return WT_OK;
    wt_status status = wt__spectrum_cuda_grid("denoise", 1, threads, THREADS, &shape.grid[0]);
    return status ? status : wt_kernel_launch(kernel, stream, &shape, &WT_ARG(*args), 1);
}

static wt_status launch_reset(on_gpu *g, wt_stream *stream)
{
    denoise_batch_args a = g->args;
    const denoise_lines left = a.old;
    g->args.at = 0;
    g->args.old = a.now, g->args.now = left;
    return launch(g->reset, stream, &a, (int64_t)a.n_lines * a.frame); // there are fewer bins
}

// A part whose spectra the work space holds.
static wt_status enqueue_part(on_gpu *g, wt_stream *stream, const float *in, float *out, int n, double strength)
{
    denoise_batch_args a = g->args;
    a.in = in, a.out = out, a.n = n, a.n_spectra = (a.at + n) / a.hop, a.strength = (float)strength;
    const int64_t lines = a.n_lines, spectra = lines * a.n_spectra;
    wt_status status = launch(g->frames, stream, &a, spectra * a.frame);
    if (!status) status = launch(g->keep, stream, &a, lines * a.frame);
    if (!status && spectra) status = wt_fft_enqueue(g->forward, stream, g->frames_work, 0, g->spectra_work, 0);
    if (!status) status = launch(g->hear, stream, &a, 32 * spectra);
    if (!status) status = launch(g->gains, stream, &a, lines * a.rules.n_bins);
    if (!status && spectra) status = wt_fft_enqueue(g->inverse, stream, g->frames_work, 0, g->spectra_work, 0);
    if (!status) status = launch(g->add, stream, &a, lines * ((int64_t)n + 2 * a.hop));
    g->args.old = a.now, g->args.now = a.old;
    g->args.at = (a.at + n) % a.hop;
    return status;
}

static wt_status enqueue_cuda(wt_denoise_plan *p, wt_stream *stream, const call *c)
{
    on_gpu *g = &p->gpu;
    const int64_t most = (int64_t)g->at_once * g->args.hop;
    wt_status status = WT_OK;
    g->args.pitch = c->n_frames;
    for (int64_t done = 0, n; done < c->n_frames && !status; done += n) {
        n = c->n_frames - done < most ? c->n_frames - done : most;
        status = enqueue_part(g, stream, c->in + done, c->out + done, (int)n, c->strength);
    }
    return status;
}

// ---- queueing

wt_status wt_denoise_plan_reset(wt_denoise_plan *plan, wt_stream *stream)
{
    wt_status status = wt__op_stream("denoise", plan->device, stream);
    if (status) return status;
    if (plan->gpu.module) return launch_reset(&plan->gpu, stream);
    return wt_stream_run(stream, reset_slot, &(call){.plan = plan}, sizeof(call), plan->n_slots);
}

// On a GPU the noise is learnt here, line by line, and goes there.
static wt_status learn_for_gpu(wt_denoise_plan *p, wt_stream *stream, const float *noise, int n_frames)
{
    on_gpu *g = &p->gpu;
    const size_t n_lines = (size_t)p->n_lines, n_bins = (size_t)g->args.rules.n_bins;
    const uintptr_t base = wt_buffer_address(g->state);
    wt_status status = WT_OK;
    float *spectra = malloc(sizeof *spectra * n_lines * n_bins);
    int *n_heard = malloc(sizeof *n_heard * n_lines);
    if (!spectra || !n_heard) status = wt_fail(WT_ERR_NO_MEMORY, "denoise: noise of %d lines", p->n_lines);
    for (size_t i = 0; i < n_lines && !status; i++) {
        const float *line = noise + i * (size_t)n_frames;
        status = wt_denoise_learn(p->lines[0], &line, n_frames);
        if (status) break;
        memcpy(spectra + i * n_bins, wt__denoise_noise_of(p->lines[0]), n_bins * sizeof *spectra);
        n_heard[i] = g->args.rules.n_start;
    }
    if (!status)
        status = wt_stream_upload(stream, g->state, (uintptr_t)g->args.old.noise - base, spectra,
                                  n_lines * n_bins * sizeof *spectra);
    if (!status)
        status = wt_stream_upload(stream, g->state, (uintptr_t)g->args.old.n_heard - base, n_heard,
                                  n_lines * sizeof *n_heard);
    if (!status) status = wt_stream_synchronize(stream);
    if (!status) g->args.keeps_noise = g->args.gains = 1;
    free(spectra), free(n_heard);
    return status;
}

wt_status wt_denoise_plan_learn(wt_denoise_plan *plan, wt_stream *stream, const float *noise, int n_frames)
{
    const int least = wt_denoise_plan_window_frames(plan);
    wt_status status = wt__op_stream("denoise", plan->device, stream);
    for (int64_t i = 0; i < plan->n_lines && !status; i++)
        status = wt__denoise_check_noise(noise + i * (n_frames > 0 ? n_frames : 0), n_frames, least);
    if (!status) status = wt_stream_synchronize(stream);
    if (status) return status;
    if (plan->gpu.module) return learn_for_gpu(plan, stream, noise, n_frames);
    for (int64_t i = 0; i < plan->n_lines && !status; i++)
        status = wt_denoise_learn(plan->lines[i], &(const float *){noise + i * n_frames}, n_frames);
    return status;
}

wt_status wt_denoise_plan_enqueue(wt_denoise_plan *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                  int n_frames, wt_buffer *out, size_t out_offset)
{
    if (n_frames < 1 || n_frames > plan->max_frames)
        return wt_fail(WT_ERR_BAD_ARG, "denoise: a block of %d frames, want 1..%d", n_frames, plan->max_frames);
    const size_t count = (size_t)plan->n_lines * (size_t)n_frames;
    wt_status status = wt__op_stream("denoise", plan->device, stream);
    if (!status) status = wt__op_range("denoise", "input", in, in_offset, count);
    if (!status) status = wt__op_range("denoise", "out", out, out_offset, count);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(in) + in_offset),
                    (float *)(wt_buffer_address(out) + out_offset), n_frames, plan->strength};
    if (plan->gpu.module) return enqueue_cuda(plan, stream, &c);
    return wt_stream_run(stream, run_slot, &c, sizeof c, plan->n_slots);
}
