/// For tests of operations on arrays: dense arrays on a device, filled from doubles and read back as doubles.
#ifndef WT_ARRAY_CHECK_H
#define WT_ARRAY_CHECK_H

#include "device_check.h"

#include <warptone/array.h>

enum { ARRAY_MAX_BUFFERS = 64 };

typedef struct array_rig {
    wt_device *device;
    wt_stream *stream;
    wt_arrays *arrays;
    wt_buffer *buffers[ARRAY_MAX_BUFFERS];
    int n_buffers;
} array_rig;

/// A rig on the device in `state`, one at a time, until array_rig_end. Skipped without the device.
array_rig *array_rig_of(void **state);
void array_rig_end(array_rig *r);

#define SHAPE(...)                                                                                                     \
    (int)(sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
#define TAKE(r, t, ...) array_take(r, t, SHAPE(__VA_ARGS__))

/// A dense array in a buffer of its own, which lives as long as the rig.
wt_array array_take(array_rig *r, wt_dtype dtype, int rank, const int64_t *shape);
wt_buffer *array_buffer(const array_rig *r, const wt_array *a);

/// Values that a type holds, dense arrays: F64, F32 and integers.
void array_put(array_rig *r, const wt_array *a, const double *x);
void array_get(array_rig *r, const wt_array *a, double *x);

double random_uniform(double low, double high);
/// [n] uniform numbers that `dtype` holds; caller frees.
double *random_values(int64_t n, double low, double high, wt_dtype dtype);

/// |got - want| <= bound |want|, or both NaN.
void assert_close(const char *what, int64_t at, double got, double want, double bound);

#endif
