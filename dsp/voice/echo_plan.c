// Echo cancellation of many signals that go on from block to block: wt_echo a signal on the CPU; on a GPU
// kernels/voice/echo.cu: the playback's spectra by wt_fft, then thread blocks that walk along a line each; where a
// block of frames has no transform in a thread block, wt_fft there too, all lines side by side and block after block.

#include "echo_batch_kernel.h"
#include "echo_rules.h"
#include "fft_internal.h"
#include "fft_kernel.h"
#include "op.h"
#include "spectrum_cuda.h"

#include <warptone/echo.h>
#include <warptone/fft.h>

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define WORK_BYTES (256LL << 20) // of what is made of all blocks of a part

enum { THREADS = 128, WIDE = 256, MOST_CHANNELS = 64 };

enum { RESET, WINDOWS, HEAR, KEEP, GIVE, N_ALWAYS };
enum { FILTER = N_ALWAYS, N_FUSED, IMAGINE = N_ALWAYS, CANCEL, STEP, GRADIENT, CONSTRAIN, MOVE, N_KERNELS };

static const char *const always[N_ALWAYS] = {"echo_reset", "echo_windows", "echo_hear", "echo_keep", "echo_give"};
static const char *const fused[] = {"echo_filter"};
static const char *const apart[] = {"echo_imagine",  "echo_cancel",    "echo_step",
                                    "echo_gradient", "echo_constrain", "echo_move"};

// How thread blocks filter by themselves.
typedef struct fused_shape {
    int cluster;       // thread blocks of a line; 0: they do not
    int n_teams, team; // of a block; threads of one, which share the transforms of a part
    bool keeps;        // weights and their doubts in shared memory
    size_t shared_bytes;
} fused_shape;

typedef struct on_gpu {
    wt_module *module; // NULL on a CPU
    wt_kernel *kernels[N_KERNELS];
    fused_shape fused;
    wt_fft *of_windows, *of_lines, *of_parts, *to_lines, *to_parts;
    wt_buffer *state, *tables, *part, *windows, *heard, *spectrum, *wave, *gradient, *taps;
    echo_batch_args args; // old: what the last part left
    int at_once;          // blocks of a part
} on_gpu;

struct wt_echo_plan {
    wt_device *device;
    int n_signals, channels, max_frames, n_slots;
    wt_echo **signals; // CPU
    on_gpu gpu;
};

// ---- life

static float *share(float **free_at, size_t floats)
{
    float *at = *free_at;
    *free_at += floats;
    return at;
}

static wt_status take(wt_device *device, size_t floats, wt_buffer **buffer, float **address)
{
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, floats * sizeof(float), buffer);
    if (!status) *address = (float *)wt_buffer_address(*buffer);
    return status;
}

static wt_status take_state(wt_echo_plan *p)
{
    on_gpu *g = &p->gpu;
    echo_batch_args *a = &g->args;
    const size_t signals = (size_t)p->n_signals, lines = signals * (size_t)p->channels, block = (size_t)a->block;
    const size_t bins = (size_t)a->n_bins, filters = lines * (size_t)a->n_parts * bins;
    const size_t samples = 2 * lines * block + 2 * signals * block, x = (size_t)a->n_ring * signals * bins;
    float *at = NULL;
    wt_status status =
        take(p->device, 2 * x + 3 * filters + 2 * lines * bins + 4 * lines + 2 * samples, &g->state, &at);
    if (status) return status;
    a->x = share(&at, 2 * x), a->w = share(&at, 2 * filters); // pairs first: their addresses are multiples of 8
    a->doubt = share(&at, filters);
    a->near = share(&at, lines * bins), a->step = share(&at, lines * bins);
    for (int i = 0; i < 2; i++) {
        echo_samples *s = i ? &a->now : &a->old;
        s->mic = share(&at, lines * block), s->ready = share(&at, lines * block);
        s->playback = share(&at, 2 * signals * block);
    }
    a->worth = (echo_worth *)share(&at, 3 * lines);
    a->in_doubt = (int *)share(&at, lines);
    return WT_OK;
}

static wt_status take_work(wt_echo_plan *p)
{
    on_gpu *g = &p->gpu;
    echo_batch_args *a = &g->args;
    const size_t signals = (size_t)p->n_signals, lines = signals * (size_t)p->channels, block = (size_t)a->block;
    const size_t bins = (size_t)a->n_bins, parts = lines * (size_t)a->n_parts, blocks = (size_t)g->at_once;
    float *at = NULL;
    wt_status status = take(p->device, blocks * (lines * block + signals), &g->part, &at);
    if (!status) a->ready = share(&at, blocks * lines * block), a->silent = (int *)share(&at, blocks * signals);
    if (!status) status = take(p->device, blocks * signals * 2 * block, &g->windows, &a->windows);
    if (!status) status = take(p->device, blocks * signals * 2 * bins, &g->heard, &a->heard);
    if (status || g->fused.cluster) return status;
    status = take(p->device, lines * 2 * bins, &g->spectrum, &a->spectrum);
    if (!status) status = take(p->device, lines * 2 * block, &g->wave, &a->wave);
    if (status) return status;
    status = take(p->device, parts * 2 * bins, &g->gradient, &a->gradient);
    return status ? status : take(p->device, parts * 2 * block, &g->taps, &a->taps);
}

static wt_status make_transforms(wt_echo_plan *p)
{
    on_gpu *g = &p->gpu;
    const int64_t lines = (int64_t)p->n_signals * p->channels, parts = lines * g->args.n_parts;
    const struct {
        wt_fft **fft;
        int64_t batch;
        wt_fft_kind kind;
    } plans[] = {{&g->of_windows, (int64_t)g->at_once * p->n_signals, WT_FFT_REAL_TO_COMPLEX},
                 {&g->of_lines, lines, WT_FFT_REAL_TO_COMPLEX}, // from here on: not when thread blocks have their own
                 {&g->to_lines, lines, WT_FFT_COMPLEX_TO_REAL},
                 {&g->of_parts, parts, WT_FFT_REAL_TO_COMPLEX},
                 {&g->to_parts, parts, WT_FFT_COMPLEX_TO_REAL}};
    wt_status status = WT_OK;
    if (parts > WT_FFT_MAX_BATCH)
        return wt_fail(WT_ERR_BAD_ARG, "echo: %lld microphones of %d parts, want %d parts at most on a GPU",
                       (long long)lines, g->args.n_parts, WT_FFT_MAX_BATCH);
    for (int k = 0; k < (g->fused.cluster ? 1 : 5) && !status; k++)
        status = wt_fft_create(
            p->device, &(wt_fft_config){.n = 2 * g->args.block, .batch = (int)plans[k].batch, .kind = plans[k].kind},
            plans[k].fft);
    return status;
}

// Clusters while there are fewer lines than multiprocessors.
static int cluster_of(const wt_device_info *info, int64_t lines)
{
    int cluster = 1;
    while (info->compute_major >= 9 && cluster < ECHO_GROUPS && lines * 2 * cluster <= info->n_sms) cluster *= 2;
    return cluster;
}

// Teams of whole warps, sixteen points a thread; eight where that many threads are left.
static int team_of(int block, int parts, int cluster)
{
    const int team = (block + 511) / 512 * 32;
    return cluster == ECHO_GROUPS && 2 * team * parts <= ECHO_MOST_THREADS ? 2 * team : team;
}

// A thread block has that transform, and its memory: with the weights if it can be, by half as many teams if need be.
static void choose_shape(wt_echo_plan *p)
{
    const wt_device_info *info = wt_device_get_info(p->device);
    const echo_batch_args *a = &p->gpu.args;
    const int cluster = cluster_of(info, (int64_t)p->n_signals * p->channels), groups = ECHO_GROUPS / cluster;
    const int each = (a->n_parts + ECHO_GROUPS - 1) / ECHO_GROUPS;
    const int parts = groups * each < a->n_parts ? groups * each : a->n_parts;
    const int team = team_of(a->block, parts, cluster), room = ECHO_MOST_THREADS / team;
    int rest = a->block;
    for (int radix = 1; rest > 1 && radix; rest /= radix ? radix : 1) radix = wt__fft_block_radix(rest);
    if (rest > 1 || room < 2) return;
    const size_t tables = wt__fft_block_twiddles(a->block, NULL) + 2 * (size_t)a->n_bins;
    const int rounds = (parts + room - 1) / room, most = (parts + rounds - 1) / rounds;
    const int least = (ECHO_LINE + team - 1) / team, few = most / 2 > least ? most / 2 : least;
    for (int keeps = 1; keeps >= 0; keeps--)
        for (int teams = most > least ? most : least; teams >= few; teams--) {
            const size_t weights = keeps ? 3 * (size_t)parts * (size_t)a->n_bins : 0;
            const size_t floats = weights + (size_t)wt__echo_work_floats(a->block, teams, groups) +
                                  (size_t)wt__echo_line_floats(a->block) + tables;
            if (floats * sizeof(float) > info->shared_bytes) continue;
            p->gpu.fused = (fused_shape){cluster, teams, team, keeps, floats * sizeof(float)};
            return;
        }
}

static wt_status make_tables(wt_echo_plan *p)
{
    on_gpu *g = &p->gpu;
    const int block = g->args.block;
    const size_t twiddles = wt__fft_block_twiddles(block, NULL), count = twiddles + 2 * ((size_t)block + 1);
    float *tables = malloc(count * sizeof *tables);
    if (!tables) return wt_fail(WT_ERR_NO_MEMORY, "echo: tables of %d frames", block);
    wt__fft_block_twiddles(block, tables);
    for (int k = 0; k <= block; k++) {
        tables[twiddles + 2 * (size_t)k] = (float)cos(M_PI * k / block);
        tables[twiddles + 2 * (size_t)k + 1] = k < block ? (float)-sin(M_PI * k / block) : 0;
    }
    wt_status status = wt__op_upload(p->device, tables, count * sizeof *tables, &g->tables);
    free(tables);
    if (status) return status;
    g->args.twiddles = (const float *)wt_buffer_address(g->tables), g->args.roots = g->args.twiddles + twiddles;
    g->args.n_twiddles = (int)twiddles;
    return WT_OK;
}

static wt_status get_kernels(on_gpu *g, const char *const *names, int first, int n)
{
    wt_status status = WT_OK;
    for (int k = 0; k < n && !status; k++) status = wt_module_get_kernel(g->module, names[k], &g->kernels[first + k]);
    return status;
}

static wt_status load(wt_echo_plan *p)
{
    on_gpu *g = &p->gpu;
    // Sums are written as they are to be made, or plans of one signal and of many, which are compiled apart, might
    // differ.
    char options[6][48] = {[5] = "-fmad=false"};
    snprintf(options[0], sizeof options[0], "-DECHO_POINTS=%d", g->fused.cluster ? g->args.block : 0);
    snprintf(options[1], sizeof options[1], "-DECHO_CLUSTER=%d", g->fused.cluster);
    snprintf(options[2], sizeof options[2], "-DECHO_TEAMS=%d", g->fused.n_teams);
    snprintf(options[3], sizeof options[3], "-DECHO_TEAM=%d", g->fused.team);
    snprintf(options[4], sizeof options[4], "-DECHO_KEEPS=%d", g->fused.keeps);
    wt_status status = wt__op_module(p->device, "kernels/voice/echo.cu", options, g->fused.cluster ? 6 : 1, &g->module);
    if (!status) status = get_kernels(g, always, 0, N_ALWAYS);
    if (status) return status;
    if (!g->fused.cluster) return get_kernels(g, apart, N_ALWAYS, N_KERNELS - N_ALWAYS);
    status = make_tables(p);
    return status ? status : get_kernels(g, fused, N_ALWAYS, N_FUSED - N_ALWAYS);
}

static wt_status prepare_gpu(wt_echo_plan *p, const wt__echo_shape *shape)
{
    on_gpu *g = &p->gpu;
    echo_batch_args *a = &g->args;
    wt_stream *stream = NULL;
    *a = (echo_batch_args){.n_signals = p->n_signals,
                           .channels = p->channels,
                           .block = shape->block,
                           .n_bins = shape->block + 1,
                           .n_parts = shape->n_parts,
                           .rules = shape->rules};
    const int64_t each = (int64_t)p->n_signals * (p->channels + 4) * (shape->block + 1) * (int64_t)sizeof(float);
    const int64_t most = ((int64_t)p->max_frames + shape->block - 1) / shape->block, room = WORK_BYTES / each;
    g->at_once = (int)(room < 1 ? 1 : room < most ? room : most);
    if ((int64_t)g->at_once * p->n_signals > WT_FFT_MAX_BATCH) g->at_once = WT_FFT_MAX_BATCH / p->n_signals;
    a->n_ring = a->n_parts + g->at_once;
    choose_shape(p);
    wt_status status = load(p);
    if (!status) status = make_transforms(p);
    if (!status) status = take_state(p);
    if (!status) status = take_work(p);
    if (!status) status = wt_stream_create(p->device, NULL, &stream);
    if (!status) status = wt_echo_plan_reset(p, stream);
    if (!status) status = wt_stream_synchronize(stream);
    wt_stream_destroy(stream);
    return status;
}

static wt_status create_cpu(wt_echo_plan *p, const wt_echo_config *config)
{
    p->n_slots = wt__op_slots(p->device, p->n_signals);
    p->signals = calloc((size_t)p->n_signals, sizeof *p->signals);
    wt_status status = p->signals ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "echo: %d signals", p->n_signals);
    for (int i = 0; i < p->n_signals && !status; i++) status = wt_echo_create(config, &p->signals[i]);
    return status;
}

wt_status wt_echo_plan_create(wt_device *device, const wt_echo_plan_config *config, wt_echo_plan **plan)
{
    *plan = NULL;
    wt__echo_shape shape;
    wt_status status = wt__echo_resolve(&config->echo, &shape);
    const int n_signals = config->n_signals ? config->n_signals : 1;
    if (!status && !device) status = wt_fail(WT_ERR_BAD_ARG, "echo: a plan without a device");
    if (!status && (n_signals < 1 || n_signals > INT_MAX / MOST_CHANNELS))
        status = wt_fail(WT_ERR_BAD_ARG, "echo: %d signals, want 1..%d", n_signals, INT_MAX / MOST_CHANNELS);
    if (!status && (config->max_frames < 1 || config->max_frames > INT_MAX / 4))
        status = wt_fail(WT_ERR_BAD_ARG, "echo: max_frames %d, want 1..%d", config->max_frames, INT_MAX / 4);
    if (status) return status;
    wt_echo_plan *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "echo: plan");
    *p = (wt_echo_plan){
        .device = device, .n_signals = n_signals, .channels = shape.channels, .max_frames = config->max_frames};
    status = wt__op_on_gpu(device) ? prepare_gpu(p, &shape) : create_cpu(p, &config->echo);
    if (status)
        wt_echo_plan_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_echo_plan_destroy(wt_echo_plan *plan)
{
    if (!plan) return;
    on_gpu *g = &plan->gpu;
    for (int i = 0; plan->signals && i < plan->n_signals; i++) wt_echo_destroy(plan->signals[i]);
    free(plan->signals);
    wt_fft *const transforms[] = {g->of_windows, g->of_lines, g->of_parts, g->to_lines, g->to_parts};
    for (int i = 0; i < 5; i++) wt_fft_destroy(transforms[i]);
    wt_module_destroy(g->module);
    wt_buffer *const buffers[] = {g->state,    g->tables, g->part,     g->windows, g->heard,
                                  g->spectrum, g->wave,   g->gradient, g->taps};
    for (int i = 0; i < 9; i++) wt_buffer_destroy(buffers[i]);
    free(plan);
}

// ---- on the CPU

typedef struct call {
    const wt_echo_plan *plan;
    const float *mic, *playback;
    float *out;
    int n_frames;
} call;

static void reset_slot(const void *args, int slot)
{
    const call *c = args;
    for (int i = slot; i < c->plan->n_signals; i += c->plan->n_slots) wt_echo_reset(c->plan->signals[i]);
}

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_echo_plan *p = c->plan;
    const float *mic[MOST_CHANNELS];
    float *out[MOST_CHANNELS];
    for (int64_t i = slot; i < p->n_signals; i += p->n_slots) {
        wt__op_channels(c->mic, c->out, i, p->channels, c->n_frames, mic, out);
        wt_echo_process(p->signals[i], mic, c->playback + i * c->n_frames, out, c->n_frames);
    }
}

// ---- on a GPU

static wt_status launch(const on_gpu *g, wt_stream *stream, int kernel, const echo_batch_args *args, int64_t threads)
{
    wt_launch shape = {.block = {THREADS}};
    if (!threads) return WT_OK;
    wt_status status = wt__spectrum_cuda_grid("echo", 1, threads, THREADS, &shape.grid[0]);
    return status ? status : wt_kernel_launch(g->kernels[kernel], stream, &shape, &WT_ARG(*args), 1);
}

static wt_status launch_blocks(const on_gpu *g, wt_stream *stream, int kernel, const echo_batch_args *args, int blocks)
{
    return wt_kernel_launch(g->kernels[kernel], stream, &(wt_launch){.grid = {blocks}, .block = {WIDE}}, &WT_ARG(*args),
                            1);
}

static wt_status reset_gpu(on_gpu *g, wt_stream *stream)
{
    const echo_batch_args *a = &g->args;
    const int64_t lines = (int64_t)a->n_signals * a->channels;
    int64_t most = lines * a->n_parts * a->n_bins;
    const int64_t ring = (int64_t)a->n_ring * a->n_signals * a->n_bins, played = 2 * (int64_t)a->n_signals * a->block;
    if (ring > most) most = ring;
    if (played > most) most = played;
    g->args.at = g->args.head = 0;
    return launch(g, stream, RESET, a, most);
}

// All blocks of a part.
static wt_status filter_fused(const on_gpu *g, wt_stream *stream, const echo_batch_args *a)
{
    if (!a->n_blocks) return WT_OK;
    const wt_launch shape = {.grid = {a->n_signals * a->channels * g->fused.cluster},
                             .block = {g->fused.team * g->fused.n_teams},
                             .shared_bytes = g->fused.shared_bytes};
    return wt_kernel_launch(g->kernels[FILTER], stream, &shape, &WT_ARG(*a), 1);
}

static wt_status learn(const on_gpu *g, wt_stream *stream, const echo_batch_args *a)
{
    const int64_t parts = (int64_t)a->n_signals * a->channels * a->n_parts;
    wt_status status = launch(g, stream, GRADIENT, a, parts * a->n_bins);
    if (!status) status = wt_fft_enqueue(g->to_parts, stream, g->gradient, 0, g->taps, 0);
    if (!status) status = launch(g, stream, CONSTRAIN, a, parts * a->block);
    if (!status) status = wt_fft_enqueue(g->of_parts, stream, g->taps, 0, g->gradient, 0);
    return status ? status : launch(g, stream, MOVE, a, parts * a->n_bins);
}

// Block `turn` of a part, in all lines.
static wt_status filter_block(const on_gpu *g, wt_stream *stream, const echo_batch_args *a)
{
    const int lines = a->n_signals * a->channels;
    const int64_t bins = (int64_t)lines * a->n_bins;
    wt_status status = launch(g, stream, IMAGINE, a, bins);
    if (!status) status = wt_fft_enqueue(g->to_lines, stream, g->spectrum, 0, g->wave, 0);
    if (!status) status = launch_blocks(g, stream, CANCEL, a, lines);
    if (!status) status = wt_fft_enqueue(g->of_lines, stream, g->wave, 0, g->spectrum, 0);
    if (!status) status = launch(g, stream, STEP, a, bins);
    return status ? status : learn(g, stream, a);
}

// `n` samples from `done` on, at most as many as at_once blocks have.
static wt_status enqueue_part(on_gpu *g, wt_stream *stream, const call *c, int done, int n)
{
    echo_batch_args a = g->args;
    a.mic = c->mic + done, a.playback = c->playback + done, a.out = c->out + done;
    a.pitch = c->n_frames, a.n = n, a.n_blocks = (a.at + n) / a.block;
    const int64_t lines = (int64_t)a.n_signals * a.channels, windows = (int64_t)a.n_blocks * a.n_signals;
    const int64_t kept = 2 * (int64_t)a.n_signals * a.block;
    wt_status status = launch(g, stream, WINDOWS, &a, windows * 2 * a.block);
    if (!status && a.n_blocks) status = wt_fft_enqueue(g->of_windows, stream, g->windows, 0, g->heard, 0);
    if (!status && a.n_blocks) status = launch_blocks(g, stream, HEAR, &a, (int)windows);
    if (g->fused.cluster && !status) status = filter_fused(g, stream, &a);
    for (a.turn = 0; a.turn < a.n_blocks && !g->fused.cluster && !status; a.turn++)
        status = filter_block(g, stream, &a);
    if (!status) status = launch(g, stream, KEEP, &a, lines * a.block > kept ? lines * a.block : kept);
    if (!status) status = launch(g, stream, GIVE, &a, lines * n);
    g->args.old = a.now, g->args.now = a.old;
    g->args.at = (a.at + n) % a.block;
    g->args.head = (a.head + a.n_blocks) % a.n_ring;
    return status;
}

static wt_status enqueue_cuda(on_gpu *g, wt_stream *stream, const call *c)
{
    const int64_t most = (int64_t)g->at_once * g->args.block;
    wt_status status = WT_OK;
    for (int64_t done = 0, n; done < c->n_frames && !status; done += n) {
        n = c->n_frames - done < most ? c->n_frames - done : most;
        status = enqueue_part(g, stream, c, (int)done, (int)n);
    }
    return status;
}

// ---- queueing

wt_status wt_echo_plan_reset(wt_echo_plan *plan, wt_stream *stream)
{
    wt_status status = wt__op_stream("echo", plan->device, stream);
    if (status) return status;
    if (plan->gpu.module) return reset_gpu(&plan->gpu, stream);
    return wt_stream_run(stream, reset_slot, &(call){.plan = plan}, sizeof(call), plan->n_slots);
}

wt_status wt_echo_plan_enqueue(wt_echo_plan *plan, wt_stream *stream, const wt_buffer *mic, size_t mic_offset,
                               const wt_buffer *playback, size_t playback_offset, int n_frames, wt_buffer *out,
                               size_t out_offset)
{
    if (n_frames < 1 || n_frames > plan->max_frames)
        return wt_fail(WT_ERR_BAD_ARG, "echo: a block of %d frames, want 1..%d", n_frames, plan->max_frames);
    const size_t count = (size_t)plan->n_signals * (size_t)n_frames, lines = count * (size_t)plan->channels;
    wt_status status = wt__op_stream("echo", plan->device, stream);
    if (!status) status = wt__op_range("echo", "microphone", mic, mic_offset, lines);
    if (!status) status = wt__op_range("echo", "playback", playback, playback_offset, count);
    if (!status) status = wt__op_range("echo", "out", out, out_offset, lines);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(mic) + mic_offset),
                    (const float *)(wt_buffer_address(playback) + playback_offset),
                    (float *)(wt_buffer_address(out) + out_offset), n_frames};
    if (plan->gpu.module) return enqueue_cuda(&plan->gpu, stream, &c);
    return wt_stream_run(stream, run_slot, &c, sizeof c, plan->n_slots);
}
