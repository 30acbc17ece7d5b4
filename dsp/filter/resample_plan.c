// Whole lines at once. A GPU gets its own copy of the taps, laid out for tiles (kernels/filter/resample.cu) where the
// phases come again soon enough, else turned so that threads side by side read side by side; on the CPU backend each
// line has a streaming resampler, and lines run on the stream's threads.
#include "op.h"
#include "resample_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// How a tile's kernel is compiled.
typedef struct tile_way {
    int repeat, phases, warps, per_sm;
    bool kept; // taps in shared memory
} tile_way;

struct wt_resample_plan {
    wt_device *device;
    wt__resample_table table;
    wt_resample_args args;
    wt_resample **lines;      // CPU: [n_lines]
    wt_module *module;        // GPU
    wt_kernel *kernel, *ends; // ends NULL: none of their own
    wt_buffer *taps, *start;
    wt_resample_tile_args tile; // units 0: no tiles
    tile_way way;
    wt_launch launch;
};

static int columns_of(const wt__resample_table *t) { return t->n_phases + (t->interpolated ? 3 : 0); }

void *wt__resample_turned_taps(const wt__resample_table *t, size_t *size_bytes)
{
    const int n_columns = columns_of(t);
    *size_bytes = (t->wide ? sizeof(double) : sizeof(float)) * (size_t)n_columns * (size_t)t->n_taps;
    void *turned = malloc(*size_bytes);
    for (int column = 0; turned && column < n_columns; column++) {
        const int64_t row = t->interpolated ? column : column * t->numerator % t->denominator;
        for (int k = 0; k < t->n_taps; k++) {
            const size_t to = (size_t)k * (size_t)n_columns + (size_t)column, from = (size_t)row * (size_t)t->n_taps;
            if (t->wide)
                ((double *)turned)[to] = t->taps[from + (size_t)k];
            else
                ((float *)turned)[to] = t->taps_f32[from + (size_t)k];
        }
    }
    return turned;
}

static wt_status upload_taps(wt_resample_plan *plan, void *turned, size_t size_bytes)
{
    if (!turned) return wt_fail(WT_ERR_NO_MEMORY, "resample: %zu bytes of taps", size_bytes);
    wt_status status = wt__op_upload(plan->device, turned, size_bytes, &plan->taps);
    free(turned);
    return status;
}

// ---- tiles

// Input frames that a block of `phases` outputs reads, at most.
static int window_of(const wt__resample_table *t, int units, int phases)
{
    int widest = 0;
    for (int u = 0; u < units; u++) {
        const int64_t last = ((int64_t)u * phases + phases - 1) * t->numerator / t->denominator;
        const int way = (int)last - wt__resample_tile_begin(t->numerator, t->denominator, phases, u);
        if (way > widest) widest = way;
    }
    return t->n_taps + widest;
}

static size_t tile_bytes(const wt_resample_plan *p, int warps)
{
    const tile_way *w = &p->way;
    const wt_resample_tile_args *a = &p->tile;
    const int rows = wt__resample_tile_rows(32 * w->repeat * a->groups, a->step, a->window);
    const size_t taps = w->kept ? (size_t)a->units * (size_t)a->window * WT_RESAMPLE_COLUMNS : 0;
    return taps * (p->table.wide ? sizeof(double) : sizeof(float)) +
           ((size_t)wt__resample_tile_floats(rows, a->step) + (size_t)warps * 32 * (size_t)(w->phases | 1)) *
               sizeof(float);
}

enum { LEAST_WARPS = 6 }; // of an SM, else it waits for memory more than it computes

// A tile of which an SM holds `per_sm`, with as many warps as share its blocks evenly. False when there is none.
static bool shape_tile(wt_resample_plan *p, int phases, int per_sm, int most_warps)
{
    const wt__resample_table *t = &p->table;
    const wt_device_info *gpu = wt_device_get_info(p->device);
    const size_t room = per_sm > 1 ? gpu->shared_bytes / (size_t)per_sm - 1024 : gpu->shared_bytes;
    const int64_t divisor = wt__common_divisor(t->denominator, phases), step = t->numerator * phases / divisor;
    if (step > INT16_MAX) return false;
    p->way.phases = phases;
    p->tile = (wt_resample_tile_args){.numerator = t->numerator,
                                      .denominator = t->denominator,
                                      .units = (int)(t->denominator / divisor),
                                      .step = (int)step,
                                      .before = t->before,
                                      .n_in = p->args.n_in,
                                      .n_out = p->args.n_out,
                                      .n_lines = p->args.n_lines};
    p->tile.window = window_of(t, p->tile.units, phases);
    for (p->tile.groups = 1; p->tile.units * p->tile.groups < most_warps * 3 / 4; p->tile.groups++) continue;
    while (p->tile.groups > 1 && tile_bytes(p, most_warps) > room) p->tile.groups--;
    const int shares = p->tile.units * p->tile.groups, rounds = (shares + most_warps - 1) / most_warps;
    p->way.warps = (shares + rounds - 1) / rounds;
    const int64_t block = (int64_t)32 * p->way.repeat * shares * phases;
    p->tile.n_tiles = (int)((p->args.n_out + block - 1) / block);
    const int64_t all = (int64_t)p->tile.n_tiles * p->args.n_lines, at_once = (int64_t)gpu->n_sms * per_sm;
    p->launch = (wt_launch){.grid = {(int)(all < at_once ? all : at_once)},
                            .block = {32 * p->way.warps},
                            .shared_bytes = tile_bytes(p, p->way.warps)};
    return p->launch.shared_bytes <= room && all <= INT32_MAX / 2 && p->way.warps * per_sm >= LEAST_WARPS;
}

// The more products a read makes the better: kept taps first, then repeats, then phases. Sums of 4 repeats in double
// leave an SM registers for 14 warps.
static bool choose_tile(wt_resample_plan *p)
{
    static const struct {
        bool wide, kept;
        int repeat, per_sm, warps;
    } ways[] = {{false, true, 6, 2, 10},  {false, true, 5, 2, 10},  {false, true, 4, 2, 10},  {false, true, 6, 1, 21},
                {false, true, 5, 1, 21},  {false, true, 4, 1, 21},  {false, true, 3, 1, 21},  {false, false, 4, 2, 10},
                {false, false, 4, 1, 20}, {false, false, 2, 2, 10}, {false, false, 2, 1, 20}, {false, false, 1, 1, 20},
                {true, true, 4, 2, 7},    {true, true, 4, 1, 14},   {true, false, 4, 2, 7},   {true, false, 4, 1, 14},
                {true, false, 2, 2, 10},  {true, false, 2, 1, 20},  {true, false, 1, 1, 20}};
    for (size_t k = 0; k < sizeof ways / sizeof *ways && !p->table.interpolated; k++)
        for (int phases = WT_RESAMPLE_COLUMNS; phases > WT_RESAMPLE_COLUMNS / 2; phases--) {
            p->way = (tile_way){.repeat = ways[k].repeat, .per_sm = ways[k].per_sm, .kept = ways[k].kept};
            if (ways[k].wide == p->table.wide && shape_tile(p, phases, ways[k].per_sm, ways[k].warps)) return true;
        }
    p->tile.units = 0;
    return false;
}

static void *tile_taps(const wt_resample_plan *p, size_t *size_bytes)
{
    const wt__resample_table *t = &p->table;
    const wt_resample_tile_args *a = &p->tile;
    const size_t size = t->wide ? sizeof(double) : sizeof(float);
    const size_t n_taps = (size_t)t->n_taps, of_unit = (size_t)a->window * WT_RESAMPLE_COLUMNS;
    *size_bytes = (size_t)a->units * of_unit * size;
    char *taps = calloc(1, *size_bytes);
    for (int64_t n = 0; taps && n < (int64_t)a->units * p->way.phases; n++) {
        const int64_t frame = n * t->numerator / t->denominator, phase = n * t->numerator % t->denominator;
        const int u = (int)(n / p->way.phases);
        const size_t late = (size_t)(frame - wt__resample_tile_begin(t->numerator, t->denominator, p->way.phases, u));
        for (size_t k = 0; k < n_taps; k++) {
            const size_t to = (size_t)u * of_unit + (late + k) * WT_RESAMPLE_COLUMNS + (size_t)(n % p->way.phases);
            const size_t from = (size_t)phase * n_taps + k;
            memcpy(taps + to * size, t->wide ? (void *)(t->taps + from) : (void *)(t->taps_f32 + from), size);
        }
    }
    return taps;
}

// ---- creating

static wt_status prepare_tile(wt_resample_plan *plan)
{
    char options[5][48];
    size_t size_bytes = 0;
    snprintf(options[0], sizeof options[0], "-DRESAMPLE_PHASES=%d", plan->way.phases);
    snprintf(options[1], sizeof options[1], "-DRESAMPLE_REPEAT=%d", plan->way.repeat);
    snprintf(options[2], sizeof options[2], "-DRESAMPLE_WARPS=%d", plan->way.warps);
    snprintf(options[3], sizeof options[3], "-DRESAMPLE_KEPT=%d", plan->way.kept);
    snprintf(options[4], sizeof options[4], "-DRESAMPLE_RESIDENT=%d", plan->way.per_sm);
    wt_status status = wt__op_module(plan->device, "kernels/filter/resample.cu", options, 5, &plan->module);
    if (!status)
        status = wt_module_get_kernel(plan->module, plan->table.wide ? "resample_tile_wide" : "resample_tile",
                                      &plan->kernel);
    if (status) return status;
    void *taps = tile_taps(plan, &size_bytes);
    status = upload_taps(plan, taps, size_bytes);
    if (!status) plan->tile.taps = (const void *)wt_buffer_address(plan->taps);
    return status;
}

// The first outputs of a chain and its last, silent ones.
static wt_status prepare_ends(wt_resample_plan *plan)
{
    wt_resample_args *a = &plan->args;
    if (!a->n_start && a->n_heard == a->n_out) return WT_OK;
    wt_status status = wt_module_get_kernel(plan->module, "resample_ends", &plan->ends);
    if (!status && a->n_start) {
        const size_t floats = (size_t)a->n_start * (size_t)a->n_taps;
        status = wt__op_upload(plan->device, plan->table.start, floats * sizeof(float), &plan->start);
        if (!status) a->start = (const float *)wt_buffer_address(plan->start);
    }
    return status;
}

static wt_status prepare_any(wt_resample_plan *plan)
{
    static const char *const names[2][2] = {{"resample_exact", "resample_exact_wide"},
                                            {"resample_blend", "resample_blend_wide"}};
    const wt__resample_table *t = &plan->table;
    const wt_resample_args *a = &plan->args;
    size_t size_bytes = 0;
    if (t->interpolated) {
        plan->launch =
            (wt_launch){.grid = {(a->n_out + WT_RESAMPLE_BLEND - 1) / WT_RESAMPLE_BLEND, (a->n_lines + 31) / 32},
                        .block = {32 * WT_RESAMPLE_BLEND_WARPS}};
    } else {
        const int64_t tiles = (a->stride + WT_RESAMPLE_THREADS - 1) / WT_RESAMPLE_THREADS;
        const int64_t group = a->stride * WT_RESAMPLE_REPEAT;
        plan->launch = (wt_launch){.grid = {(int)((a->n_out + group - 1) / group * tiles), a->n_lines},
                                   .block = {WT_RESAMPLE_THREADS}};
    }
    wt_status status = wt__op_module(plan->device, "kernels/filter/resample.cu", NULL, 0, &plan->module);
    if (!status) status = wt_module_get_kernel(plan->module, names[t->interpolated][t->wide], &plan->kernel);
    if (!status && t->interpolated) {
        size_bytes = (t->wide ? sizeof(double) : sizeof(float)) * (size_t)columns_of(t) * (size_t)t->n_taps;
        status = wt__op_upload(plan->device, t->wide ? (void *)t->taps : (void *)t->taps_f32, size_bytes, &plan->taps);
    } else if (!status) {
        void *turned = wt__resample_turned_taps(t, &size_bytes);
        status = upload_taps(plan, turned, size_bytes);
    }
    if (!status) plan->args.taps = (const void *)wt_buffer_address(plan->taps);
    return status;
}

static wt_status prepare_gpu(wt_resample_plan *plan)
{
    const wt__resample_table *t = &plan->table;
    if (plan->args.n_out > INT64_MAX / t->numerator)
        return wt_fail(WT_ERR_BAD_ARG, "resample: %d output frames a line, want %lld at most at this ratio",
                       plan->args.n_out, (long long)(INT64_MAX / t->numerator));
    wt_status status = choose_tile(plan) ? prepare_tile(plan) : prepare_any(plan);
    return status ? status : prepare_ends(plan);
}

static wt_status prepare_cpu(wt_resample_plan *plan)
{
    plan->lines = calloc((size_t)plan->args.n_lines, sizeof *plan->lines);
    if (!plan->lines) return wt_fail(WT_ERR_NO_MEMORY, "resample: %d lines", plan->args.n_lines);
    for (int k = 0; k < plan->args.n_lines; k++) {
        wt_status status = wt__resample_create_sharing(&plan->table, 1, &plan->lines[k]);
        if (status) return status;
    }
    return WT_OK;
}

// Outputs that soxr's rounded length has: librosa adds one silent where that is down.
static int heard_of(const wt__resample_table *t, int64_t n_in, int n_out)
{
    const double outputs = (double)n_in * (double)t->denominator / (double)t->numerator;
    const int rounded = (int)floor(outputs + 0.5);
    return t->rounds && rounded < n_out ? rounded : n_out;
}

wt_resample_args wt__resample_args_of(const wt__resample_table *t, int n_lines, int n_in, int n_out)
{
    return (wt_resample_args){
        .numerator = t->numerator,
        .denominator = t->denominator,
        .stride = (WT_RESAMPLE_THREADS + t->denominator - 1) / t->denominator * t->denominator,
        .start = t->start,
        .n_taps = t->n_taps,
        .before = t->before,
        .order = t->order,
        .n_start = t->n_start,
        .n_heard = heard_of(t, n_in, n_out),
        .n_columns = columns_of(t),
        .n_phases = t->n_phases,
        .n_in = n_in,
        .n_out = n_out,
        .n_lines = n_lines,
    };
}

wt_status wt_resample_plan_create(wt_device *device, const wt_resample_plan_config *config, wt_resample_plan **plan)
{
    *plan = NULL;
    const wt_resample_config table = {config->in_hz, config->out_hz, 1, config->quality, false};
    if (config->n_lines < 0 || config->n_lines > 65535 || config->n_in < 1)
        return wt_fail(WT_ERR_BAD_ARG, "resample: %d lines of %d frames, want 0..65535 of 1 or more", config->n_lines,
                       config->n_in);
    wt_resample_plan *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "resample: plan");
    p->device = device;
    wt_status status = wt__resample_table_create(&table, &p->table);
    if (status) goto fail;
    const int64_t n_out = wt_resample_out_frames(&table, config->n_in);
    if (n_out > INT32_MAX / 2) {
        status = wt_fail(WT_ERR_BAD_ARG, "resample: %lld output frames a line, want %d at most", (long long)n_out,
                         INT32_MAX / 2);
        goto fail;
    }
    p->args = wt__resample_args_of(&p->table, config->n_lines ? config->n_lines : 1, config->n_in, (int)n_out);
    status = wt_device_get_info(device)->backend == WT_BACKEND_CUDA ? prepare_gpu(p) : prepare_cpu(p);
    if (status) goto fail;
    *plan = p;
    return WT_OK;

fail:
    wt_resample_plan_destroy(p);
    return status;
}

void wt_resample_plan_destroy(wt_resample_plan *plan)
{
    if (!plan) return;
    for (int k = 0; plan->lines && k < plan->args.n_lines; k++) wt_resample_destroy(plan->lines[k]);
    free(plan->lines);
    wt_buffer_destroy(plan->taps);
    wt_buffer_destroy(plan->start);
    wt_module_destroy(plan->module);
    wt__resample_table_destroy(&plan->table);
    free(plan);
}

int wt_resample_plan_out_frames(const wt_resample_plan *plan) { return plan->args.n_out; }

// ---- running

typedef struct cpu_call {
    wt_resample **lines;
    const float *in;
    float *out;
    int n_in, n_out;
} cpu_call;

static void run_line(const void *args, int line)
{
    const cpu_call *call = args;
    const float *in = call->in + (size_t)line * (size_t)call->n_in;
    float *out = call->out + (size_t)line * (size_t)call->n_out, *rest;
    int n_used, n_first, n_rest;
    wt_resample_reset(call->lines[line]);
    wt_resample_process(call->lines[line], &in, call->n_in, &n_used, &out, call->n_out, &n_first);
    rest = out + n_first;
    wt_resample_drain(call->lines[line], &rest, call->n_out - n_first, &n_rest);
    // soxr's clock may say one output less than the ratio does: that one is silent
    memset(rest + n_rest, 0, sizeof(float) * (size_t)(call->n_out - n_first - n_rest));
}

static wt_status launch(wt_resample_plan *plan, wt_stream *stream, const wt_resample_args *args)
{
    wt_resample_tile_args tile = plan->tile;
    tile.in = args->in, tile.out = args->out;
    wt_status status =
        wt_kernel_launch(plan->kernel, stream, &plan->launch, plan->tile.units ? &WT_ARG(tile) : &WT_ARG(*args), 1);
    if (status || !plan->ends) return status;
    const int n_ends = args->n_start + args->n_out - args->n_heard;
    const wt_launch ends = {.grid = {(n_ends + WT_RESAMPLE_END_WARPS - 1) / WT_RESAMPLE_END_WARPS, args->n_lines},
                            .block = {32 * WT_RESAMPLE_END_WARPS}};
    return wt_kernel_launch(plan->ends, stream, &ends, &WT_ARG(*args), 1);
}

static wt_status check_range(const char *name, const wt_buffer *buffer, size_t offset, size_t frames)
{
    const size_t size_bytes = frames * sizeof(float), room = wt_buffer_size_bytes(buffer);
    if (offset > room || size_bytes > room - offset || offset % sizeof(float))
        return wt_fail(WT_ERR_BAD_ARG, "resample: %s of %zu bytes at %zu, want it aligned within the buffer's %zu",
                       name, size_bytes, offset, room);
    return WT_OK;
}

wt_status wt_resample_plan_enqueue(wt_resample_plan *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                   wt_buffer *out, size_t out_offset)
{
    wt_resample_args args = plan->args;
    wt_status status = check_range("input", in, in_offset, (size_t)args.n_lines * (size_t)args.n_in);
    if (!status) status = check_range("output", out, out_offset, (size_t)args.n_lines * (size_t)args.n_out);
    if (status) return status;
    args.in = (const float *)(wt_buffer_address(in) + in_offset);
    args.out = (float *)(wt_buffer_address(out) + out_offset);
    if (plan->kernel) return launch(plan, stream, &args);
    const cpu_call call = {plan->lines, args.in, args.out, args.n_in, args.n_out};
    return wt_stream_run(stream, run_line, &call, sizeof call, args.n_lines);
}
