// Many streams that change their rate, in step: a resampler a line on the CPU, kernels/filter/resample_stream.cu on a
// GPU. Time is walked here too, so that the frames of every block are known when it is queued.

#include "op.h"
#include "resample_stream_kernel.h"
#include "resample_table.h"
#include "spectrum_cuda.h"

#include <limits.h>
#include <stdlib.h>

enum { MAX_LINES = 65535 };

typedef struct on_gpu {
    wt_module *module; // NULL on a CPU
    wt_kernel *give, *keep;
    wt_buffer *taps, *start, *held[2]; // of held the first is read next
} on_gpu;

struct wt_resample_stream {
    wt_device *device;
    wt__resample_table table;
    int n_lines, max_in, n_slots;
    wt_resample_time time; // of the next output
    int64_t n_in, n_out;   // frames queued so far
    bool drained;
    wt_resample **lines; // CPU
    on_gpu gpu;
};

// ---- time

static wt_resample_time time_0(const wt__resample_table *t)
{
    return (wt_resample_time){.denominator = t->denominator, .step = t->numerator, .target = t->numerator};
}

// Outputs before input frame `limit`; `most` at most.
static int64_t outputs_before(wt_resample_time t, int64_t limit, int64_t most)
{
    int64_t count = 0;
    for (wt_resample_time next; count < most; count += WT_RESAMPLE_STRIDE, t = next) {
        next = wt__resample_later(&t, WT_RESAMPLE_STRIDE);
        if (next.frame >= limit) break;
    }
    int64_t low = 0, high = WT_RESAMPLE_STRIDE; // the first output that is not before it
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (wt__resample_later(&t, middle).frame < limit)
            low = middle + 1;
        else
            high = middle;
    }
    return count + low < most ? count + low : most;
}

int wt_resample_stream_frames(const wt_resample_stream *s, int n_in)
{
    return s->drained ? 0 : (int)outputs_before(s->time, s->n_in + n_in - s->table.after, INT_MAX);
}

int wt_resample_stream_rest(const wt_resample_stream *s)
{
    return s->drained ? 0 : (int)outputs_before(s->time, s->n_in, INT_MAX);
}

// ---- life

static wt_status prepare_cpu(wt_resample_stream *s)
{
    s->n_slots = wt__op_slots(s->device, s->n_lines);
    s->lines = calloc((size_t)s->n_lines, sizeof *s->lines);
    wt_status status = s->lines ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "resample: %d lines", s->n_lines);
    for (int i = 0; i < s->n_lines && !status; i++) status = wt__resample_create_sharing(&s->table, 1, &s->lines[i]);
    return status;
}

static wt_status prepare_gpu(wt_resample_stream *s)
{
    on_gpu *g = &s->gpu;
    const wt__resample_table *t = &s->table;
    const size_t n_taps = (size_t)t->n_taps, rows = (size_t)t->n_phases + (t->interpolated ? 3 : 0);
    const size_t held = (size_t)s->n_lines * (n_taps - 1) * sizeof(float);
    wt_stream *stream = NULL;
    wt_status status = t->wide ? wt__op_upload(s->device, t->taps, rows * n_taps * sizeof *t->taps, &g->taps)
                               : wt__op_upload(s->device, t->taps_f32, rows * n_taps * sizeof *t->taps_f32, &g->taps);
    if (!status && t->n_start)
        status = wt__op_upload(s->device, t->start, (size_t)t->n_start * n_taps * sizeof *t->start, &g->start);
    for (int i = 0; i < 2 && !status; i++) status = wt_buffer_create(s->device, WT_MEMORY_DEVICE, held, &g->held[i]);
    if (!status) status = wt__op_module(s->device, "kernels/filter/resample_stream.cu", NULL, 0, &g->module);
    if (!status)
        status = wt_module_get_kernel(g->module, t->wide ? "resample_stream_wide" : "resample_stream", &g->give);
    if (!status) status = wt_module_get_kernel(g->module, "resample_keep", &g->keep);
    if (!status) status = wt_stream_create(s->device, NULL, &stream);
    if (!status) status = wt_resample_stream_reset(s, stream);
    if (!status) status = wt_stream_synchronize(stream);
    wt_stream_destroy(stream);
    return status;
}

wt_status wt_resample_stream_create(wt_device *device, const wt_resample_stream_config *config,
                                    wt_resample_stream **plan)
{
    *plan = NULL;
    const int64_t channels = config->resample.channels ? config->resample.channels : 2;
    const int64_t signals = config->n_signals ? config->n_signals : 1;
    if (!device) return wt_fail(WT_ERR_BAD_ARG, "resample: streams without a device");
    if (channels < 1 || signals < 1 || channels * signals > MAX_LINES)
        return wt_fail(WT_ERR_BAD_ARG, "resample: %d signals of %d channels, want 1..%d lines", config->n_signals,
                       config->resample.channels, MAX_LINES);
    if (config->max_in < 1 || config->max_in > INT_MAX / 512)
        return wt_fail(WT_ERR_BAD_ARG, "resample: max_in %d, want 1..%d", config->max_in, INT_MAX / 512);
    wt_resample_stream *s = calloc(1, sizeof *s);
    if (!s) return wt_fail(WT_ERR_NO_MEMORY, "resample: streams");
    s->device = device, s->n_lines = (int)(channels * signals), s->max_in = config->max_in;
    wt_resample_config one = config->resample;
    one.channels = 1;
    wt_status status = wt__resample_table_create(&one, &s->table);
    if (!status) s->time = time_0(&s->table);
    if (!status) status = wt__op_on_gpu(device) ? prepare_gpu(s) : prepare_cpu(s);
    if (status)
        wt_resample_stream_destroy(s);
    else
        *plan = s;
    return status;
}

void wt_resample_stream_destroy(wt_resample_stream *s)
{
    if (!s) return;
    for (int i = 0; s->lines && i < s->n_lines; i++) wt_resample_destroy(s->lines[i]);
    free(s->lines);
    wt_module_destroy(s->gpu.module);
    wt_buffer *const buffers[] = {s->gpu.taps, s->gpu.start, s->gpu.held[0], s->gpu.held[1]};
    for (int i = 0; i < 4; i++) wt_buffer_destroy(buffers[i]);
    wt__resample_table_destroy(&s->table);
    free(s);
}

// ---- on the CPU

typedef struct call {
    const wt_resample_stream *plan;
    const float *in; // NULL: drain
    float *out;
    int n_in, n_out, ramp_frames;
    double speed;
} call;

static void reset_slot(const void *args, int slot)
{
    const call *c = args;
    for (int i = slot; i < c->plan->n_lines; i += c->plan->n_slots) wt_resample_reset(c->plan->lines[i]);
}

static void steer_slot(const void *args, int slot)
{
    const call *c = args;
    for (int i = slot; i < c->plan->n_lines; i += c->plan->n_slots)
        (void)!wt_resample_steer(c->plan->lines[i], c->speed, c->ramp_frames); // checked before
}

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    for (int64_t i = slot; i < c->plan->n_lines; i += c->plan->n_slots) {
        float *out = c->out + i * c->n_out;
        int used, made;
        if (c->in) {
            const float *in = c->in + i * c->n_in;
            // with room for one more it takes all of its input; there is no more to come
            wt_resample_process(c->plan->lines[i], &in, c->n_in, &used, &out, c->n_out + 1, &made);
        } else {
            wt_resample_drain(c->plan->lines[i], &out, c->n_out, &made);
        }
    }
}

// ---- on a GPU

// Outputs of `count` from `t` on that lie before the end that soxr's rounded length has.
static int heard_of(const wt_resample_stream *s, const wt_resample_time *t, int count)
{
    for (; count; count--) {
        const wt_resample_time last = wt__resample_later(t, count - 1);
        if (!wt__resample_rounded_away(&s->table, last.frame - s->n_in, last.phase)) break;
    }
    return count;
}

// Outputs that a launch may count to: products of time and of a variable ratio stay below 2^63.
static int at_once(const wt_resample_stream *s) { return s->table.variable ? WT_RESAMPLE_STRIDE : INT_MAX; }

static wt_status give(const wt_resample_stream *s, wt_stream *stream, const call *c, wt_resample_stream_args a)
{
    wt_launch launch = {.grid = {0, (s->n_lines + WT_RESAMPLE_STREAM_LINES - 1) / WT_RESAMPLE_STREAM_LINES},
                        .block = {32 * WT_RESAMPLE_STREAM_WARPS}};
    wt_status status = WT_OK;
    for (int64_t done = 0; done < c->n_out && !status; done += a.n_out) {
        const int64_t starts = s->table.n_start - s->n_out - done;
        a.out = c->out + done;
        a.n_out = c->n_out - done < at_once(s) ? (int)(c->n_out - done) : at_once(s);
        a.n_start = starts < 0 ? 0 : starts < a.n_out ? (int)starts : a.n_out;
        if (a.n_start)
            a.start = (const float *)wt_buffer_address(s->gpu.start) + (s->n_out + done) * (int64_t)s->table.n_taps;
        a.n_heard = c->in ? a.n_out : heard_of(s, &a.time, a.n_out);
        launch.grid[0] = (a.n_out + WT_RESAMPLE_STREAM_WARPS - 1) / WT_RESAMPLE_STREAM_WARPS;
        status = wt_kernel_launch(s->gpu.give, stream, &launch, &WT_ARG(a), 1);
        a.time = wt__resample_later(&a.time, a.n_out);
    }
    return status;
}

static wt_status enqueue_gpu(wt_resample_stream *s, wt_stream *stream, const call *c)
{
    on_gpu *g = &s->gpu;
    const wt__resample_table *t = &s->table;
    const wt_resample_stream_args args = {.in = c->in,
                                          .old = (const float *)wt_buffer_address(g->held[0]),
                                          .state = (float *)wt_buffer_address(g->held[1]),
                                          .taps = (const void *)wt_buffer_address(g->taps),
                                          .time = s->time,
                                          .begin = s->n_in,
                                          .pitch = c->n_out,
                                          .n_in = c->n_in,
                                          .n_lines = s->n_lines,
                                          .n_taps = t->n_taps,
                                          .before = t->before,
                                          .n_phases = t->n_phases,
                                          .order = t->order,
                                          .interpolated = t->interpolated};
    wt_launch keep = {.block = {128}};
    wt_status status = give(s, stream, c, args);
    if (status || !c->in) return status;
    wt_buffer *const read = g->held[0];
    g->held[0] = g->held[1], g->held[1] = read;
    status = wt__spectrum_cuda_grid("resample", 1, s->n_lines * ((int64_t)t->n_taps - 1), 128, &keep.grid[0]);
    return status ? status : wt_kernel_launch(g->keep, stream, &keep, &WT_ARG(args), 1);
}

// ---- queueing

wt_status wt_resample_stream_reset(wt_resample_stream *s, wt_stream *stream)
{
    wt_status status = wt__op_stream("resample", s->device, stream);
    if (status) return status;
    s->time = time_0(&s->table), s->n_in = s->n_out = 0, s->drained = false;
    if (s->gpu.module) return wt_stream_fill(stream, s->gpu.held[0], 0, 0, wt_buffer_size_bytes(s->gpu.held[0]));
    return wt_stream_run(stream, reset_slot, &(call){.plan = s}, sizeof(call), s->n_slots);
}

wt_status wt_resample_stream_steer(wt_resample_stream *s, wt_stream *stream, double speed, int ramp_frames)
{
    wt_status status = wt__op_stream("resample", s->device, stream);
    if (!status && !s->table.variable)
        status = wt_fail(WT_ERR_STATE, "resample: steered, but its ratio is not variable");
    if (!status && (!(speed >= 0.9 && speed <= 1.1) || ramp_frames < 0))
        status = wt_fail(WT_ERR_BAD_ARG, "resample: a speed of %g in %d frames, want 0.9..1.1 in 0 or more", speed,
                         ramp_frames);
    if (status) return status;
    wt_resample_time *t = &s->time;
    int64_t change;
    t->target = wt__resample_aim(&s->table, speed, ramp_frames, t->step, &change);
    t->change = change, t->bend = change ? (t->target - t->step) / change + 1 : 0;
    if (!change) t->step = t->target;
    if (s->gpu.module) return WT_OK;
    const call c = {.plan = s, .speed = speed, .ramp_frames = ramp_frames};
    return wt_stream_run(stream, steer_slot, &c, sizeof c, s->n_slots);
}

static wt_status queue(wt_resample_stream *s, wt_stream *stream, const call *c)
{
    wt_status status =
        s->gpu.module ? enqueue_gpu(s, stream, c) : wt_stream_run(stream, run_slot, c, sizeof *c, s->n_slots);
    for (int left = c->n_out, n; left; left -= n) {
        n = left < WT_RESAMPLE_STRIDE ? left : WT_RESAMPLE_STRIDE;
        s->time = wt__resample_later(&s->time, n);
    }
    s->n_in += c->n_in, s->n_out += c->n_out;
    return status;
}

wt_status wt_resample_stream_enqueue(wt_resample_stream *s, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                     int n_in, wt_buffer *out, size_t out_offset)
{
    if (n_in < 1 || n_in > s->max_in)
        return wt_fail(WT_ERR_BAD_ARG, "resample: a block of %d frames, want 1..%d", n_in, s->max_in);
    if (s->drained) return wt_fail(WT_ERR_STATE, "resample: a block behind the end, want a reset before it");
    call c = {.plan = s, .n_in = n_in, .n_out = wt_resample_stream_frames(s, n_in)};
    const size_t n_lines = (size_t)s->n_lines;
    wt_status status = wt__op_stream("resample", s->device, stream);
    if (!status) status = wt__op_range("resample", "input", in, in_offset, n_lines * (size_t)n_in);
    if (!status && c.n_out) status = wt__op_range("resample", "out", out, out_offset, n_lines * (size_t)c.n_out);
    if (status) return status;
    c.in = (const float *)(wt_buffer_address(in) + in_offset);
    if (c.n_out) c.out = (float *)(wt_buffer_address(out) + out_offset);
    return queue(s, stream, &c);
}

wt_status wt_resample_stream_drain(wt_resample_stream *s, wt_stream *stream, wt_buffer *out, size_t out_offset)
{
    if (s->drained) return wt_fail(WT_ERR_STATE, "resample: drained twice, want a reset between");
    call c = {.plan = s, .n_out = wt_resample_stream_rest(s)};
    wt_status status = wt__op_stream("resample", s->device, stream);
    if (!status && c.n_out)
        status = wt__op_range("resample", "out", out, out_offset, (size_t)s->n_lines * (size_t)c.n_out);
    if (status) return status;
    if (c.n_out) c.out = (float *)(wt_buffer_address(out) + out_offset);
    status = queue(s, stream, &c);
    s->drained = true;
    return status;
}
