// The attacks, the walk that chooses where pieces are taken, and the sum: all signals at once, since a walk fills one
// processor and keeps no spectra.

#include "spectrum_cuda.h"
#include "transients_cuda.h"
#include "wsola_kernel.h"

#include <stdlib.h>

struct wt__wsola_cuda {
    wt__transients_cuda transients;
    wt_module *module;
    wt_kernel *walk, *add;
    wt_buffer *window, *chosen, *work;
    wt_wsola_args args;
    wt_launch walk_launch, add_launch;
};

// The walk's work in shared memory, or what that does not hold in memory.
static wt_status take_work(wt_device *device, int n_lines, wt__wsola_cuda *c)
{
    const size_t doubles = (size_t)wt__wsola_doubles(c->args.n_fft, c->args.reach),
                 parts = (size_t)wt__wsola_parts() * sizeof(double), whole = parts + doubles * sizeof(double);
    c->walk_launch = (wt_launch){.grid = {n_lines}, .block = {WT_WSOLA_THREADS}, .shared_bytes = whole};
    if (whole <= wt_device_get_info(device)->shared_bytes) return WT_OK;
    c->walk_launch.shared_bytes = parts;
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, (size_t)n_lines * doubles * sizeof(double), &c->work);
    if (!status) c->args.work = (double *)wt_buffer_address(c->work);
    return status;
}

static wt_status make_window(wt_device *device, const wt__stretch_shape *s, wt__wsola_cuda *c)
{
    float *window = malloc((size_t)s->n_fft * sizeof *window);
    if (!window) return wt_fail(WT_ERR_NO_MEMORY, "stretch: window of %d", s->n_fft);
    for (int i = 0; i < s->n_fft; i++) window[i] = (float)s->window[i];
    wt_status status = wt__op_upload(device, window, (size_t)s->n_fft * sizeof *window, &c->window);
    free(window);
    if (!status) c->args.window = (const float *)wt_buffer_address(c->window);
    return status;
}

static wt_status prepare(wt_device *device, const wt__stretch_shape *s, wt__wsola_cuda *c)
{
    wt_wsola_args *a = &c->args;
    a->n_samples = s->n_samples, a->n_out = s->n_out, a->n_fft = s->n_fft, a->hop = s->hop;
    a->n_pieces = (s->n_out + s->hop - 1) / s->hop + 1;
    a->reach = s->n_fft / 4;
    c->add_launch = (wt_launch){.block = {256}};
    wt_status status = take_work(device, s->n_signals, c);
    if (!status) status = wt__spectrum_cuda_grid("stretch", s->n_signals, s->n_out, 256, &c->add_launch.grid[0]);
    if (!status) status = wt__transients_cuda_create(device, s, s->n_signals, a->n_pieces, &c->transients);
    if (!status) status = wt__op_module(device, "kernels/stretch/wsola.cu", NULL, 0, &c->module);
    if (!status) status = wt_module_get_kernel(c->module, a->work ? "wsola_walk_long" : "wsola_walk", &c->walk);
    if (!status) status = wt_module_get_kernel(c->module, "wsola_add", &c->add);
    if (!status) status = make_window(device, s, c);
    const size_t bytes = (size_t)s->n_signals * (size_t)a->n_pieces * sizeof(long long);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &c->chosen);
    if (status) return status;
    a->chosen = (long long *)wt_buffer_address(c->chosen);
    a->places = c->transients.args.places;
    return WT_OK;
}

wt_status wt__wsola_cuda_create(wt_device *device, const wt__stretch_shape *shape, wt__wsola_cuda **cuda)
{
    *cuda = NULL;
    wt__wsola_cuda *c = calloc(1, sizeof *c);
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "stretch: CUDA plan");
    wt_status status = shape->n_out ? prepare(device, shape, c) : WT_OK;
    if (status)
        wt__wsola_cuda_destroy(c);
    else
        *cuda = c;
    return status;
}

void wt__wsola_cuda_destroy(wt__wsola_cuda *cuda)
{
    if (!cuda) return;
    wt__transients_cuda_release(&cuda->transients);
    wt_module_destroy(cuda->module);
    wt_buffer_destroy(cuda->window);
    wt_buffer_destroy(cuda->chosen);
    wt_buffer_destroy(cuda->work);
    free(cuda);
}

wt_status wt__wsola_cuda_enqueue(const wt__wsola_cuda *cuda, wt_stream *stream, const float *pcm, float *out)
{
    wt_wsola_args args = cuda->args;
    args.pcm = pcm, args.out = out;
    if (!args.n_out) return WT_OK;
    wt_status status = wt__transients_cuda_enqueue(&cuda->transients, stream, pcm);
    if (!status) status = wt_kernel_launch(cuda->walk, stream, &cuda->walk_launch, &WT_ARG(args), 1);
    return status ? status : wt_kernel_launch(cuda->add, stream, &cuda->add_launch, &WT_ARG(args), 1);
}
