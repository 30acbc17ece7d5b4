/// Operations on arrays: the plans that array.c makes and the backends carry out.
#ifndef WT_ARRAY_INTERNAL_H
#define WT_ARRAY_INTERNAL_H

#include <warptone/array.h>
#include <warptone/kernel.h>
#include "array_kernel.h"

enum { ARRAY_WORKSPACE_BYTES = 1 << 20 };

typedef enum array_line_op { ARRAY_SOFTMAX, ARRAY_CUMSUM, ARRAY_TOPK, ARRAY_N_LINE_OPS } array_line_op;

typedef struct array_cuda array_cuda;

struct wt_arrays {
    wt_device *device;
    int n_sms;
    array_cuda *cuda; ///< NULL on the CPU
};

wt_status wt__array_cpu_map(wt_stream *stream, const array_map_args *args);
wt_status wt__array_cpu_reduce(wt_stream *stream, const array_reduce_args *args);
wt_status wt__array_cpu_line(wt_stream *stream, array_line_op op, const array_line_args *args);
wt_status wt__array_cpu_index(wt_stream *stream, const array_index_args *args);

/// `cuda` can be destroyed whatever is returned.
WT_CHECKED wt_status wt__array_cuda_create(wt_device *device, array_cuda **cuda);
void wt__array_cuda_destroy(array_cuda *cuda);
wt_status wt__array_cuda_map(const wt_arrays *arrays, wt_stream *stream, const array_map_args *args);
wt_status wt__array_cuda_reduce(const wt_arrays *arrays, wt_stream *stream, const array_reduce_args *args);
wt_status wt__array_cuda_line(const wt_arrays *arrays, wt_stream *stream, array_line_op op,
                              const array_line_args *args);
wt_status wt__array_cuda_index(const wt_arrays *arrays, wt_stream *stream, const array_index_args *args);

#endif
