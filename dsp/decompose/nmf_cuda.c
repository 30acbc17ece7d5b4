// Four launches an iteration: each side's sums over the other one, then its rows. All signals at once, as far as a grid
// goes; with more components than a block holds, one by one (nmf_wide.h).

#include "nmf_cuda.h"
#include "nmf_wide.h"

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
    wt__nmf_wide *wide; // in place of `side`
};

enum { MOST_SIGNALS = 65535 }; // of a grid

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
    c->activations = (wt_nmf_side_args){turned, w, h, gram, f->columns, f->rows, f->n_components, solver, 0, 0};
    c->spectra = (wt_nmf_side_args){v, h, w, gram, f->rows, f->columns, f->n_components, solver, divergence, 0};
    return WT_OK;
}

static wt_status prepare(wt_device *device, wt__nmf_cuda *c)
{
    const wt_nmf_config *f = &c->config;
    const int64_t longer = f->rows > f->columns ? f->rows : f->columns;
    if ((int64_t)f->rows * f->columns > INT_MAX * 256LL || longer * f->n_components > INT_MAX * 256LL)
        return wt_fail(WT_ERR_BAD_ARG, "nmf: matrix of %d x %d, want a smaller one on a GPU", f->rows, f->columns);
    wt_status status = take_work(device, c);
    if (!status) status = wt__op_module(device, "kernels/decompose/nmf.cu", NULL, 0, &c->module);
    if (!status) status = wt_module_get_kernel(c->module, "nmf_gram", &c->gram);
    if (!status) status = wt_module_get_kernel(c->module, "nmf_side", &c->side);
    if (!status) status = wt_module_get_kernel(c->module, "nmf_load", &c->load);
    if (!status && f->n_components > WT_NMF_MOST)
        status = wt__nmf_wide_create(device, f->rows, f->columns, f->n_components, &c->wide);
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
    wt__nmf_wide_destroy(cuda->wide);
    wt_module_destroy(cuda->module);
    wt_buffer_destroy(cuda->work);
    free(cuda);
}

// As many signals at a time as a grid has.
static wt_status launch_sides(const wt__nmf_cuda *c, wt_stream *stream, wt_kernel *kernel, int blocks,
                              const wt_nmf_side_args *side)
{
    wt_nmf_side_args args = *side;
    wt_status status = WT_OK;
    for (; args.first < c->config.n_signals && !status; args.first += MOST_SIGNALS) {
        const int left = c->config.n_signals - args.first;
        const wt_launch launch = {.grid = {blocks, left < MOST_SIGNALS ? left : MOST_SIGNALS}, .block = {WT_NMF_TILE}};
        status = wt_kernel_launch(kernel, stream, &launch, &WT_ARG(args), 1);
    }
    return status;
}

static wt_status update_wide(const wt__nmf_cuda *c, wt_stream *stream, const wt_nmf_side_args *side)
{
    const int64_t m = side->m, n = side->n, k = side->k;
    wt_status status = WT_OK;
    if (side->solver == WT_NMF_MULTIPLICATIVE_KL) status = launch_sides(c, stream, c->gram, side->k, side);
    for (int64_t i = 0; i < c->config.n_signals && !status; i++) {
        wt_nmf_side_args args = *side;
        args.v += i * m * n, args.b += i * n * k, args.a += i * m * k, args.gram += i * k * k;
        status = wt__nmf_wide_update(c->wide, stream, &args);
    }
    return status;
}

static wt_status update(const wt__nmf_cuda *c, wt_stream *stream, const wt_nmf_side_args *args)
{
    if (c->wide) return update_wide(c, stream, args);
    const int sums = args->solver == WT_NMF_MULTIPLICATIVE_KL ? args->k : args->k * args->k;
    wt_status status = launch_sides(c, stream, c->gram, sums, args);
    return status ? status : launch_sides(c, stream, c->side, args->m, args);
}

// A thread for each of `count` numbers of a signal.
static wt_status launch_turn(const wt__nmf_cuda *c, wt_stream *stream, wt_kernel *kernel, int64_t count,
                             wt_nmf_turn_args turn)
{
    wt_status status = WT_OK;
    for (; turn.first < c->config.n_signals && !status; turn.first += MOST_SIGNALS) {
        const int left = c->config.n_signals - turn.first;
        const wt_launch launch = {.grid = {(int)((count + 255) / 256), left < MOST_SIGNALS ? left : MOST_SIGNALS},
                                  .block = {256}};
        status = wt_kernel_launch(kernel, stream, &launch, &WT_ARG(turn), 1);
    }
    return status;
}

wt_status wt__nmf_cuda_enqueue(const wt__nmf_cuda *cuda, wt_stream *stream, const float *v, float *w, float *h)
{
    const wt_nmf_config *f = &cuda->config;
    const int64_t longer = f->rows > f->columns ? f->rows : f->columns;
    const int64_t all = (int64_t)f->rows * f->columns, factors = longer * f->n_components;
    wt_nmf_turn_args turn = cuda->turn;
    turn.v = v, turn.w = w, turn.h = h;
    wt_status status = launch_turn(cuda, stream, cuda->load, all > factors ? all : factors, turn);
    for (int i = 0; i < f->n_iter && !status; i++) {
        status = update(cuda, stream, &cuda->activations);
        if (!status) status = update(cuda, stream, &cuda->spectra);
    }
    return status ? status : launch_turn(cuda, stream, cuda->store, factors, turn);
}
