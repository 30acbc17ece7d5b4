#include "op.h"
#include "rows_kernel.h"
#include "spectrum_cuda.h"

#include <math.h>
#include <stdlib.h>
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

// Largest of max_size rows around `row`; beyond the ends they are mirrored (d c b a | a b c d).
static double largest(const wt_pcen_config *c, const float *in, int64_t n_rows, int64_t n_frames, int64_t row,
                      int64_t t)
{
    double most = -HUGE_VAL;
    for (int i = 0; i < c->max_size; i++) {
        int64_t at = (row + i - c->max_size / 2) % (2 * n_rows);
        if (at < 0) at += 2 * n_rows;
        if (at >= n_rows) at = 2 * n_rows - 1 - at;
        most = fmax(most, in[at * n_frames + t]);
    }
    return most;
}

wt_status wt_pcen_run(const wt_pcen_config *config, const float *in, int64_t n_rows, int64_t n_frames, double *state,
                      bool continued, float *out)
{
    wt_pcen_config c = *config;
    wt_status status = resolve(&c);
    if (status) return status;
    for (int64_t row = 0; row < n_rows; row++) {
        double memory = state && continued ? state[row] : 1 - c.b; // scipy's lfilter_zi of a unit step
        for (int64_t t = 0; t < n_frames; t++) {
            const double x = in[row * n_frames + t], smooth = memory + c.b * largest(&c, in, n_rows, n_frames, row, t);
            memory = (1 - c.b) * smooth;
            const double level = x * exp(-c.gain * (log(c.eps) + log1p(smooth / c.eps)));
            double y = c.power == 0 ? log1p(level)
                       : c.bias == 0 ? pow(level, c.power)
                                     : pow(c.bias, c.power) * expm1(c.power * log1p(level / c.bias));
            out[row * n_frames + t] = (float)y;
        }
        if (state) state[row] = memory;
    }
    return WT_OK;
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
} call;

static void run_signal(const void *args, int signal)
{
    const call *c = args;
    const wt_pcen *p = c->plan;
    const int64_t area = p->n_rows * p->n_frames;
    (void)!wt_pcen_run(&p->config, c->in + signal * area, p->n_rows, p->n_frames, NULL, false,
                       c->out + signal * area); // checked by create
}

wt_status wt_pcen_enqueue(wt_pcen *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                          size_t out_offset)
{
    const wt_pcen_config *f = &plan->config;
    const size_t rows = (size_t)plan->n_signals * (size_t)plan->n_rows, count = rows * (size_t)plan->n_frames;
    wt_status status = wt__op_stream("pcen", plan->device, stream);
    if (!status) status = wt__op_range("pcen", "input", in, in_offset, count);
    if (!status) status = wt__op_range("pcen", "out", out, out_offset, count);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(in) + in_offset),
                    (float *)(wt_buffer_address(out) + out_offset)};
    if (!plan->kernel) return wt_stream_run(stream, run_signal, &c, sizeof c, plan->n_signals);
    const wt_pcen_args args = {.in = c.in, .out = c.out, .n_rows = (long long)rows, .n_frames = plan->n_frames,
                               .bands = plan->n_rows, .max_size = f->max_size, .gain = f->gain, .bias = f->bias,
                               .power = f->power, .eps = f->eps, .b = f->b};
    return wt_kernel_launch(plan->kernel, stream, &plan->launch, &WT_ARG(args), 1);
}
