/// For tests of neural operations: arrays of known numbers on a device, results against torch's and of the two backends
/// against each other.
#ifndef WT_NN_CHECK_H
#define WT_NN_CHECK_H

#include <stdarg.h>
#include <warptone/nn.h>

enum { NN_MAX_ARRAYS = 64 };

typedef struct nn_rig {
    wt_device *device;
    wt_stream *stream;
    wt_matmul *matmul;
    wt_nn *nn;
    wt_buffer *buffers[NN_MAX_ARRAYS];
    int n_buffers;
    wt_dtype type;               ///< of the case's arrays
    double *kept[NN_MAX_ARRAYS]; ///< results of the CPU, which the GPU is to give too
    int n_kept;
    bool compares;
} nn_rig;

/// A case makes its arrays, queues its op and calls nn_result for what comes out.
typedef void nn_case(nn_rig *rig);

/// The case in F32, F16 and BF16 on the device in `state`; on a GPU against the CPU where it names no golden file.
/// Skipped without the device.
void nn_run(void **state, nn_case *body);
void nn_run_type(void **state, nn_case *body, wt_dtype type);

#define NN_SHAPE(...)                                                                                                  \
    (int)(sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
/// rint(127 u) / 128 * scale + offset with u of noise() from `seed` (tests/golden/make_nn.py): with scale a power of
/// two and offset 0 or 1 the same in every type.
wt_array nn_input(nn_rig *rig, wt_dtype type, unsigned seed, double scale, double offset, int rank,
                  const int64_t *shape);
wt_array nn_empty(nn_rig *rig, wt_dtype type, int rank, const int64_t *shape); ///< zeros
wt_array nn_integers(nn_rig *rig, const int32_t *x, int rank, const int64_t *shape);
wt_array nn_floats(nn_rig *rig, const float *x, int rank, const int64_t *shape);

/// Dense `array` against golden/nn/NAME.npy, or with NULL against the other backend. `bound` is the error of F32 in
/// parts of the largest magnitude; in 16 bits half a unit in the last place of each value comes on top, times
/// `roundings` of the way.
void nn_result(nn_rig *rig, const char *name, const wt_array *array, double bound, double roundings);
/// The same numbers in both, bit for bit; dense parts of the rig's arrays.
void nn_same(nn_rig *rig, const wt_array *a, const wt_array *b);

#endif
