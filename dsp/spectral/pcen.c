#include "double_math.h"
#include "op.h"
#include "rows_kernel.h"
#include "spectrum_cuda.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/pcen.h>

wt_pcen_config wt_pcen_defaults(void)
{
    return (wt_pcen_config){.gain = 0.98, .bias = 2, .power = 0.5};
}

static wt_status resolve(wt_pcen_config *c)
{
    if (!c->rate_hz) c->rate_hz = 22050;
    if (!c->hop) c->hop = 512;
    if (!c->time_constant_s) c->time_constant_s = 0.4;
    if (!c->eps) c->eps = 1e-6;
    if (!c->max_size) c->max_size = 1;
    if (c->rate_hz < 1 || c->hop < 1)
        return wt_fail(WT_ERR_BAD_ARG, "pcen: rate %d Hz, hop %d, want 1 or more", c->rate_hz, c->hop);
    if (!(c->gain >= 0 && c->bias >= 0 && c->power >= 0))
        return wt_fail(WT_ERR_BAD_ARG, "pcen: gain %g, bias %g, power %g, want 0 or more", c->gain, c->bias, c->power);
    if (!(c->eps > 0 && c->time_constant_s > 0))
        return wt_fail(WT_ERR_BAD_ARG, "pcen: eps %g, time constant %g s, want more than 0", c->eps,
                       c->time_constant_s);
    const double frames = c->time_constant_s * c->rate_hz / c->hop;
    if (!c->b) c->b = (sqrt(1 + 4 * frames * frames) - 1) / (2 * frames * frames);
    if (!(c->b > 0 && c->b <= 1)) return wt_fail(WT_ERR_BAD_ARG, "pcen: b %g, want 0..1", c->b);
    if (c->max_size < 1) return wt_fail(WT_ERR_BAD_ARG, "pcen: max_size %d, want 1 or more", c->max_size);
    return WT_OK;
}

// Rows `pitch` apart.
typedef struct bands {
    const float *in;
    float *out;
    int64_t n_rows, n_frames, pitch;
} bands;

// Frames of a row at once, and of vectors: these are whole, so that every cut into blocks gives the same bits.
enum { BLOCK = 256, VECTOR = 16 };

// Largest of max_size rows around `row`, frames t on; beyond the ends they are mirrored (d c b a | a b c d).
WT_CLONES static void largest(const wt_pcen_config *c, const bands *b, int64_t row, int64_t t, int count, float *most)
{
    for (int k = 0; k < count; k++) most[k] = -HUGE_VALF;
    for (int i = 0; i < c->max_size; i++) {
        int64_t at = (row + i - c->max_size / 2) % (2 * b->n_rows);
        if (at < 0) at += 2 * b->n_rows;
        if (at >= b->n_rows) at = 2 * b->n_rows - 1 - at;
        const float *x = b->in + at * b->pitch + t;
        for (int k = 0; k < count; k++) most[k] = x[k] > most[k] ? x[k] : most[k];
    }
}

// smooth[k] = b x[k] + (1 - b) smooth[k - 1]; gives back (1 - b) of the last.
static double smoothed(double b, double memory, const float *x, int count, double *smooth)
{
    for (int k = 0; k < count; k++) {
        smooth[k] = memory + b * x[k];
        memory = (1 - b) * smooth[k];
    }
    return memory;
}

// The gain each frame gets, then what compresses: log(1 + level), a power, or (level + bias)^power - bias^power.
WT_CLONES static void compress(const wt_pcen_config *c, const float *x, int count, double *level, float *y)
{
    count = (count + VECTOR - 1) / VECTOR * VECTOR;
    const double gain = -c->gain, eps = c->eps, bias = c->bias, power = c->power;
    for (int k = 0; k < count; k++) level[k] = x[k] * wt__exp64(gain * wt__log64(eps + level[k]));
    if (power == 0) {
        for (int k = 0; k < count; k++) y[k] = (float)wt__log1p64(level[k]);
    } else if (bias == 0) {
        for (int k = 0; k < count; k++) y[k] = (float)pow(level[k], power);
    } else {
        const double scale = pow(bias, power), inverse = 1 / bias;
        for (int k = 0; k < count; k++)
            y[k] = (float)(scale * wt__expm1_64(power * wt__log1p64(level[k] * inverse)));
    }
}

static void normalise(const wt_pcen_config *c, const bands *b, double *state, bool continued)
{
    float x[BLOCK] = {0}, most[BLOCK], y[BLOCK];
    double level[BLOCK] = {0};
    for (int64_t row = 0; row < b->n_rows; row++) {
        double memory = state && continued ? state[row] : 1 - c->b; // scipy's lfilter_zi of a unit step
        for (int64_t t = 0; t < b->n_frames; t += BLOCK) {
            const int count = b->n_frames - t < BLOCK ? (int)(b->n_frames - t) : BLOCK;
            const size_t bytes = (size_t)count * sizeof(float);
            memcpy(x, b->in + row * b->pitch + t, bytes);
            if (c->max_size > 1) largest(c, b, row, t, count, most);
            memory = smoothed(c->b, memory, c->max_size > 1 ? most : x, count, level);
            compress(c, x, count, level, y);
            memcpy(b->out + row * b->pitch + t, y, bytes);
        }
        if (state) state[row] = memory;
    }
}

wt_status wt_pcen_run(const wt_pcen_config *config, const float *in, int64_t n_rows, int64_t n_frames, double *state,
                      bool continued, float *out)
{
    wt_pcen_config c = *config;
    wt_status status = resolve(&c);
    if (!status) normalise(&c, &(bands){in, out, n_rows, n_frames, n_frames}, state, continued);
    return status;
}

// ---- on a stream

struct wt_pcen {
    wt_pcen_config config; // defaults resolved
    wt_device *device;
    int n_signals, n_rows;
    int64_t n_frames;
    wt_module *module;
    wt_kernel *kernel; // NULL on a CPU
    wt_launch launch;
};

enum { WARPS = 8 }; // as kernels/rows.cu says

static wt_status create_cuda(wt_pcen *p)
{
    wt_status status = wt__op_module(p->device, "kernels/rows.cu", NULL, 0, &p->module);
    if (!status) status = wt_module_get_kernel(p->module, "rows_pcen", &p->kernel);
    p->launch.block[0] = 32 * WARPS;
    const int64_t rows = (int64_t)p->n_signals * p->n_rows;
    return status ? status : wt__spectrum_cuda_grid("pcen", 1, rows, WARPS, &p->launch.grid[0]);
}

wt_status wt_pcen_create(wt_device *device, const wt_pcen_config *config, int n_signals, int n_rows, int64_t n_frames,
                         wt_pcen **plan)
{
    *plan = NULL;
    wt_pcen_config c = *config;
    wt_status status = resolve(&c);
    if (!status && (n_signals < 1 || n_rows < 1 || n_frames < 1))
        status = wt_fail(WT_ERR_BAD_ARG, "pcen: %d signals of %d * %lld, want 1 or more", n_signals, n_rows,
                         (long long)n_frames);
    if (status) return status;
    wt_pcen *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "pcen: plan");
    p->config = c, p->device = device, p->n_signals = n_signals, p->n_rows = n_rows, p->n_frames = n_frames;
    if (wt__op_on_gpu(device)) status = create_cuda(p);
    if (status)
        wt_pcen_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_pcen_destroy(wt_pcen *plan)
{
    if (!plan) return;
    wt_module_destroy(plan->module);
    free(plan);
}

typedef struct call {
    const wt_pcen *plan;
    const float *in;
    float *out;
    double *state; // NULL = none
    wt_pcen_part part;
} call;

static void run_signal(const void *args, int signal)
{
    const call *c = args;
    const wt_pcen *p = c->plan;
    const int64_t begin = signal * p->n_rows * p->n_frames + c->part.from;
    const bands b = {c->in + begin, c->out + begin, p->n_rows, c->part.n_frames, p->n_frames};
    normalise(&p->config, &b, c->state ? c->state + (int64_t)signal * p->n_rows : NULL, c->part.continued);
}

static wt_status enqueue(const call *c, wt_stream *stream)
{
    const wt_pcen *p = c->plan;
    const wt_pcen_config *f = &p->config;
    if (!p->kernel) return wt_stream_run(stream, run_signal, c, sizeof *c, p->n_signals);
    const wt_pcen_args args = {.in = c->in,
                               .out = c->out,
                               .state = c->state,
                               .continued = c->part.continued,
                               .n_rows = (long long)p->n_signals * p->n_rows,
                               .pitch = p->n_frames,
                               .from = c->part.from,
                               .n_frames = c->part.n_frames,
                               .bands = p->n_rows,
                               .max_size = f->max_size,
                               .gain = f->gain,
                               .bias = f->bias,
                               .power = f->power,
                               .eps = f->eps,
                               .b = f->b};
    return wt_kernel_launch(p->kernel, stream, &p->launch, &WT_ARG(args), 1);
}

static wt_status check(const wt_pcen *p, const wt_stream *stream, const wt_buffer *in, size_t in_offset,
                       const wt_buffer *out, size_t out_offset)
{
    const size_t count = (size_t)p->n_signals * (size_t)p->n_rows * (size_t)p->n_frames;
    wt_status status = wt__op_stream("pcen", p->device, stream);
    if (!status) status = wt__op_range("pcen", "input", in, in_offset, count);
    return status ? status : wt__op_range("pcen", "out", out, out_offset, count);
}

wt_status wt_pcen_enqueue(wt_pcen *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                          size_t out_offset)
{
    wt_status status = check(plan, stream, in, in_offset, out, out_offset);
    if (status) return status;
    const call c = {.plan = plan,
                    .part = {.n_frames = plan->n_frames},
                    .in = (const float *)(wt_buffer_address(in) + in_offset),
                    .out = (float *)(wt_buffer_address(out) + out_offset)};
    return enqueue(&c, stream);
}

wt_status wt_pcen_enqueue_part(wt_pcen *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                               const wt_pcen_part *part, wt_buffer *state, size_t state_offset, wt_buffer *out,
                               size_t out_offset)
{
    const size_t rows = (size_t)plan->n_signals * (size_t)plan->n_rows;
    wt_status status = check(plan, stream, in, in_offset, out, out_offset);
    if (!status) status = wt__op_range("pcen", "state", state, state_offset, rows * sizeof(double) / sizeof(float));
    if (status) return status;
    if (state_offset % sizeof(double))
        return wt_fail(WT_ERR_BAD_ARG, "pcen: state offset %zu, want a multiple of 8", state_offset);
    if (part->from < 0 || part->n_frames < 0 || part->n_frames > plan->n_frames - part->from)
        return wt_fail(WT_ERR_BAD_ARG, "pcen: %lld frames from %lld, want them within %lld", (long long)part->n_frames,
                       (long long)part->from, (long long)plan->n_frames);
    const call c = {.plan = plan,
                    .part = *part,
                    .state = (double *)(wt_buffer_address(state) + state_offset),
                    .in = (const float *)(wt_buffer_address(in) + in_offset),
                    .out = (float *)(wt_buffer_address(out) + out_offset)};
    return enqueue(&c, stream);
}
