// Four launches an iteration: each side's sums over the other one, then its rows. All signals at once.

#include "nmf_cuda.h"

#include "nmf_kernel.h"
#include <limits.h>
#include <stdlib.h>

struct wt__nmf_cuda {
    wt_nmf_config config;
    wt_module *module;
    wt_kernel *gram, *side, *load, *store;
    wt_buffer *work;
    wt_nmf_turn_args turn;
    wt_nmf_side_args activations, spectra;
};

static wt_status take_work(wt_device *device, wt__nmf_cuda *c)
{
    const wt_nmf_config *f = &c->config;
    const size_t signals = (size_t)f->n_signals, rows = (size_t)f->rows, columns = (size_t)f->columns;
    const size_t k = (size_t)f->n_components, all = rows * columns;
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE,
                                        signals * (2 * all + (rows + columns + k) * k) * sizeof(double), &c->work);
    if (status) return status;
    double *v = (double *)wt_buffer_address(c->work), *turned = v + signals * all, *w = turned + signals * all;
    double *h = w + signals * rows * k, *gram = h + signals * columns * k;
    const int solver = (int)f->solver, divergence = f->solver == WT_NMF_MULTIPLICATIVE_KL;
    c->turn = (wt_nmf_turn_args){.wide = v,
                                 .turned = turned,
                                 .wide_w = w,
                                 .wide_h = h,
                                 .rows = f->rows,
                                 .columns = f->columns,
                                 .k = f->n_components};
    c->activations = (wt_nmf_side_args){turned, w, h, gram, f->columns, f->rows, f->n_components, solver, 0};
    c->spectra = (wt_nmf_side_args){v, h, w, gram, f->rows, f->columns, f->n_components, solver, divergence};
    return WT_OK;
}

static wt_status prepare(wt_device *device, wt__nmf_cuda *c)
{
    const wt_nmf_config *f = &c->config;
    if (f->n_components > WT_NMF_MOST || f->n_signals > 65535)
        return wt_fail(WT_ERR_UNSUPPORTED, "nmf: %d components of %d signals on a GPU, want at most %d, 65535",
                       f->n_components, f->n_signals, WT_NMF_MOST);
    const int64_t longer = f->rows > f->columns ? f->rows : f->columns;
    if ((int64_t)f->rows * f->columns > INT_MAX * 256LL || longer * f->n_components > INT_MAX * 256LL)
        return wt_fail(WT_ERR_BAD_ARG, "nmf: matrix of %d x %d, want a smaller one on a GPU", f->rows, f->columns);
    wt_status status = take_work(device, c);
    if (!status) status = wt__op_module(device, "kernels/decompose/nmf.cu", NULL, 0, &c->module);
    if (!status) status = wt_module_get_kernel(c->module, "nmf_gram", &c->gram);
    if (!status) status = wt_module_get_kernel(c->module, "nmf_side", &c->side);
    if (!status) status = wt_module_get_kernel(c->module, "nmf_load", &c->load);
    return status ? status : wt_module_get_kernel(c->module, "nmf_store", &c->store);
}

wt_status wt__nmf_cuda_create(wt_device *device, const wt_nmf_config *config, wt__nmf_cuda **cuda)
{
    *cuda = NULL;
    wt__nmf_cuda *c = calloc(1, sizeof *c);
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "nmf: CUDA plan");
    c->config = *config;
    wt_status status = prepare(device, c);
    if (status)
        wt__nmf_cuda_destroy(c);
    else
        *cuda = c;
    return status;
}

void wt__nmf_cuda_destroy(wt__nmf_cuda *cuda)
{
    if (!cuda) return;
    wt_module_destroy(cuda->module);
    wt_buffer_destroy(cuda->work);
    free(cuda);
}

static wt_status update(const wt__nmf_cuda *c, wt_stream *stream, const wt_nmf_side_args *args)
{
    const int sums = args->solver == WT_NMF_MULTIPLICATIVE_KL ? args->k : args->k * args->k;
    const wt_launch gram = {.grid = {sums, c->config.n_signals}, .block = {WT_NMF_TILE}};
    const wt_launch side = {.grid = {args->m, c->config.n_signals}, .block = {WT_NMF_TILE}};
    wt_status status = wt_kernel_launch(c->gram, stream, &gram, &WT_ARG(*args), 1);
    return status ? status : wt_kernel_launch(c->side, stream, &side, &WT_ARG(*args), 1);
}

wt_status wt__nmf_cuda_enqueue(const wt__nmf_cuda *cuda, wt_stream *stream, const float *v, float *w, float *h)
{
    const wt_nmf_config *f = &cuda->config;
    const int64_t longer = f->rows > f->columns ? f->rows : f->columns;
    const int64_t all = (int64_t)f->rows * f->columns, factors = longer * f->n_components;
    wt_nmf_turn_args turn = cuda->turn;
    turn.v = v, turn.w = w, turn.h = h;
    wt_launch each = {.grid = {(int)(((all > factors ? all : factors) + 255) / 256), f->n_signals}, .block = {256}};
    wt_status status = wt_kernel_launch(cuda->load, stream, &each, &WT_ARG(turn), 1);
    for (int i = 0; i < f->n_iter && !status; i++) {
        status = update(cuda, stream, &cuda->activations);
        if (!status) status = update(cuda, stream, &cuda->spectra);
    }
    if (status) return status;
    each.grid[0] = (int)((factors + 255) / 256);
    return wt_kernel_launch(cuda->store, stream, &each, &WT_ARG(turn), 1);
}
