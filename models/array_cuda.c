// Operations on arrays on a GPU: kernels/nn/array.cu.
#include "array_internal.h"

#include <stdlib.h>

enum { THREADS = 256, BLOCKS_AN_SM = 8, SHORT = 64, MAX_PIECES = 1024, FEWEST_A_PIECE = 4096 };

struct array_cuda {
    wt_module *module;
    wt_kernel *map, *reduce_short, *reduce, *reduce_finish, *lines[ARRAY_N_LINE_OPS], *index;
    wt_buffer *workspace;
};

wt_status wt__array_cuda_create(wt_device *device, array_cuda **cuda)
{
    array_cuda *c = *cuda = calloc(1, sizeof *c);
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "arrays: CUDA state");
    const struct {
        const char *name;
        wt_kernel **kernel;
    } kernels[] = {{"array_map", &c->map},
                   {"array_reduce_short", &c->reduce_short},
                   {"array_reduce", &c->reduce},
                   {"array_reduce_finish", &c->reduce_finish},
                   {"array_softmax", &c->lines[ARRAY_SOFTMAX]},
                   {"array_cumsum", &c->lines[ARRAY_CUMSUM]},
                   {"array_topk", &c->lines[ARRAY_TOPK]},
                   {"array_index", &c->index}};
    wt_status status = wt_module_create(device, &(wt_module_config){.name = "kernels/nn/array.cu"}, &c->module);
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels && !status; k++)
        status = wt_module_get_kernel(c->module, kernels[k].name, kernels[k].kernel);
    return status ? status : wt_buffer_create(device, WT_MEMORY_DEVICE, ARRAY_WORKSPACE_BYTES, &c->workspace);
}

void wt__array_cuda_destroy(array_cuda *cuda)
{
    if (!cuda) return;
    wt_buffer_destroy(cuda->workspace);
    wt_module_destroy(cuda->module);
    free(cuda);
}

/// Blocks for n threads that step through the rest.
static int blocks_of(const wt_arrays *arrays, long long n)
{
    const long long all = (n + THREADS - 1) / THREADS, most = (long long)arrays->n_sms * BLOCKS_AN_SM;
    return (int)(all < most ? all : most);
}

wt_status wt__array_cuda_map(const wt_arrays *arrays, wt_stream *stream, const array_map_args *args)
{
    const wt_launch launch = {.grid = {blocks_of(arrays, args->n)}, .block = {THREADS}};
    return wt_kernel_launch(arrays->cuda->map, stream, &launch, &WT_ARG(*args), 1);
}

/// Pieces of a result: enough blocks for all SMs, none with too little to do, and no more than the workspace holds.
static int pieces_of(const wt_arrays *arrays, const array_reduce_args *a)
{
    const long long blocks = (long long)arrays->n_sms * BLOCKS_AN_SM;
    const long long room = ARRAY_WORKSPACE_BYTES / (long long)sizeof(array_partial) / a->n_out;
    long long n = (blocks + a->n_out - 1) / a->n_out;
    if (n > a->n_in / FEWEST_A_PIECE) n = a->n_in / FEWEST_A_PIECE;
    if (n > room) n = room;
    return (int)(n < 1 ? 1 : n > MAX_PIECES ? MAX_PIECES : n);
}

wt_status wt__array_cuda_reduce(const wt_arrays *arrays, wt_stream *stream, const array_reduce_args *args)
{
    const array_cuda *c = arrays->cuda;
    array_reduce_args a = *args;
    const wt_launch each = {.grid = {(int)((a.n_out + THREADS - 1) / THREADS)}, .block = {THREADS}};
    a.n_pieces = 1;
    if (a.n_in <= SHORT) return wt_kernel_launch(c->reduce_short, stream, &each, &WT_ARG(a), 1);
    a.n_pieces = pieces_of(arrays, &a);
    a.piece = (a.n_in + a.n_pieces - 1) / a.n_pieces;
    a.partials = (void *)wt_buffer_address(c->workspace);
    const wt_launch pieces = {.grid = {(int)a.n_out, a.n_pieces}, .block = {THREADS}};
    wt_status status = wt_kernel_launch(c->reduce, stream, &pieces, &WT_ARG(a), 1);
    if (status || a.n_pieces == 1) return status;
    return wt_kernel_launch(c->reduce_finish, stream, &each, &WT_ARG(a), 1);
}

wt_status wt__array_cuda_line(const wt_arrays *arrays, wt_stream *stream, array_line_op op, const array_line_args *args)
{
    const wt_launch launch = {.grid = {(int)args->n_lines}, .block = {THREADS}};
    return wt_kernel_launch(arrays->cuda->lines[op], stream, &launch, &WT_ARG(*args), 1);
}

wt_status wt__array_cuda_index(const wt_arrays *arrays, wt_stream *stream, const array_index_args *args)
{
    const wt_launch launch = {.grid = {blocks_of(arrays, args->scatter ? args->n_lines : args->n_lines * args->n)},
                              .block = {THREADS}};
    return wt_kernel_launch(arrays->cuda->index, stream, &launch, &WT_ARG(*args), 1);
}
