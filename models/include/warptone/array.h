/// Arrays: numbers of any type in a device's memory, seen through shapes and strides, and the operations on them, on a
/// GPU or the CPU.
///
///     wt_arrays_create(&(wt_arrays_config){.device = device}, &arrays);
///     wt_array x = wt_array_of(address, WT_DTYPE_F32, 2, (const int64_t[]){64, 512});
///     wt_array_reduce(arrays, stream, WT_REDUCE_MEAN, &x, 1 << 1, &means);    // over axis 1
///     wt_array_binary(arrays, stream, WT_BINARY_SUB, &x, &means, &x);         // broadcast
///
/// Rules, once. An operand is broadcast to the result's shape as in NumPy. Views cost nothing and own nothing.
/// Everything is queued: nothing allocates, waits or reads back, so all of it may be recorded into a graph. Where all
/// operands and the result are integers, arithmetic is in int64 (of functions that make fractions of them, such as
/// WT_UNARY_SQRT, in double), otherwise in float, with an F64 among them in double; sums that are not of int64 are in
/// double. Results are rounded to nearest, to fp8 with saturation, to integers towards zero with saturation (not a
/// number: 0); integers to smaller ones keep their low bits. The result may be an operand where both are seen through
/// the same strides. Types: WT_DTYPE_F32 .. WT_DTYPE_BOOL, and two a byte WT_DTYPE_I4, U4 and F4 (E2M1, not a number:
/// 0), whose strides count numbers: read through any strides from an even element on; written by elementwise
/// operations and concat alone, in lines of even length without gaps.
#ifndef WARPTONE_ARRAY_H
#define WARPTONE_ARRAY_H

#include <warptone/partition.h>
#include <warptone/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_array {
    uintptr_t data; ///< address on the device, of the first element; 0 = the constant `value`, of rank 0
    wt_dtype dtype;
    int rank;                            ///< 0 .. WT_TENSOR_MAX_RANK
    int64_t shape[WT_TENSOR_MAX_RANK];   ///< 0 is allowed: nothing is done
    int64_t strides[WT_TENSOR_MAX_RANK]; ///< in elements; 0 repeats, negative goes backwards
    double value;                        ///< of a constant: as it is, not rounded to the type
} wt_array;

// ---- views  [any]

wt_array wt_array_of(uintptr_t data, wt_dtype dtype, int rank, const int64_t *shape); ///< row-major, dense
wt_array wt_array_constant(wt_dtype dtype, double value);                             ///< of rank 0
int64_t wt_array_elements(const wt_array *array);                                     ///< the product of its shape
/// Elements begin, begin + step .. before end of an axis; with a step below 0 those of the same range from its other
/// end, end - 1, end - 1 + step .. not below begin. Negative begin and end count from the axis's end.
/// Errors: WT_ERR_BAD_ARG (axis, step 0, range; of 4 bits, a first element within a byte).
WT_CHECKED wt_status wt_array_slice(const wt_array *array, int axis, int64_t begin, int64_t end, int64_t step,
                                    wt_array *view);
/// Axis k of the view is axis order[k]. Errors: WT_ERR_BAD_ARG (no permutation).
WT_CHECKED wt_status wt_array_transpose(const wt_array *array, const int *order, wt_array *view);
/// One extent may be -1: what is left. Errors: WT_ERR_BAD_ARG (another number of elements, or strides that no view of
/// that shape has: copy first).
WT_CHECKED wt_status wt_array_reshape(const wt_array *array, int rank, const int64_t *shape, wt_array *view);
/// Errors: WT_ERR_BAD_ARG naming both shapes.
WT_CHECKED wt_status wt_array_broadcast(const wt_array *array, int rank, const int64_t *shape, wt_array *view);

// ---- operations

typedef struct wt_arrays wt_arrays;

typedef struct wt_arrays_config {
    wt_device *device;       ///< borrowed until destroy
    wt_partition *partition; ///< whose streams it will run on, for the number of SMs; NULL = the whole device
} wt_arrays_config;

/// For one stream at a time: its workspace (1 MiB) is shared by what it queues. Errors: WT_ERR_NO_MEMORY,
/// WT_ERR_ARMED, WT_ERR_NO_NVRTC, WT_ERR_COMPILE, WT_ERR_CUDA.  [worker]
WT_CHECKED wt_status wt_arrays_create(const wt_arrays_config *config, wt_arrays **arrays);
void wt_arrays_destroy(wt_arrays *arrays); ///< What it queued must have run. NULL is allowed.  [worker]

// All that follow: errors are WT_ERR_BAD_ARG (shapes that do not go together, an axis, a missing address),
// WT_ERR_UNSUPPORTED (types), WT_ERR_CUDA.  [worker]

typedef enum wt_unary {
    WT_UNARY_COPY, ///< also casts
    WT_UNARY_NEG,
    WT_UNARY_ABS,
    WT_UNARY_SIGN,
    WT_UNARY_SQUARE,
    WT_UNARY_RECIPROCAL,
    WT_UNARY_SQRT,
    WT_UNARY_RSQRT,
    WT_UNARY_EXP,
    WT_UNARY_EXPM1,
    WT_UNARY_LOG,
    WT_UNARY_LOG1P,
    WT_UNARY_SIN,
    WT_UNARY_COS,
    WT_UNARY_TANH,
    WT_UNARY_ERF,
    WT_UNARY_SIGMOID,
    WT_UNARY_RELU,
    WT_UNARY_RELU2, ///< its square
    WT_UNARY_SILU,
    WT_UNARY_GELU,
    WT_UNARY_GELU_TANH,
    WT_UNARY_FLOOR,
    WT_UNARY_CEIL,
    WT_UNARY_RINT, ///< to the nearest, halves to even
    WT_UNARY_IS_NAN,
    WT_UNARY_NOT, ///< 1 where x is 0
    WT_N_UNARY
} wt_unary;
WT_CHECKED wt_status wt_array_unary(wt_arrays *arrays, wt_stream *stream, wt_unary op, const wt_array *x,
                                    const wt_array *out);

typedef enum wt_binary {
    WT_BINARY_ADD,
    WT_BINARY_SUB,
    WT_BINARY_MUL,
    WT_BINARY_DIV, ///< of integers: towards zero, by 0: 0
    WT_BINARY_MOD, ///< the sign of b, as in NumPy; by 0: not a number, of integers 0
    WT_BINARY_POW,
    WT_BINARY_MIN, ///< not a number when one is
    WT_BINARY_MAX,
    WT_BINARY_ATAN2,
    WT_BINARY_EQ, ///< 1 or 0
    WT_BINARY_NE,
    WT_BINARY_LT,
    WT_BINARY_LE,
    WT_BINARY_GT,
    WT_BINARY_GE,
    WT_BINARY_AND, ///< bit by bit; integers only
    WT_BINARY_OR,
    WT_BINARY_XOR,
    WT_N_BINARY
} wt_binary;
WT_CHECKED wt_status wt_array_binary(wt_arrays *arrays, wt_stream *stream, wt_binary op, const wt_array *a,
                                     const wt_array *b, const wt_array *out);

/// a where `condition` is not 0, else b.
WT_CHECKED wt_status wt_array_where(wt_arrays *arrays, wt_stream *stream, const wt_array *condition, const wt_array *a,
                                    const wt_array *b, const wt_array *out);
/// min(max(x, low), high); a NaN stays.
WT_CHECKED wt_status wt_array_clamp(wt_arrays *arrays, wt_stream *stream, const wt_array *x, const wt_array *low,
                                    const wt_array *high, const wt_array *out);
/// first, first + step ... in row-major order.
WT_CHECKED wt_status wt_array_arange(wt_arrays *arrays, wt_stream *stream, double first, double step,
                                     const wt_array *out);

typedef enum wt_random {
    WT_RANDOM_UNIFORM, ///< 0 <= x < 1, 53 bits (24 in arithmetic of float; as many as a smaller type has below 1)
    WT_RANDOM_NORMAL,  ///< mean 0, variance 1, by Box and Muller (1958)
    WT_RANDOM_BITS,    ///< integers of 63 bits, then as the result's type keeps them
} wt_random;
/// Element k takes number first + k of Philox 4x32-10 with the seed as its key (Salmon et al., 2011): the same for
/// every shape, device and run.
WT_CHECKED wt_status wt_array_random(wt_arrays *arrays, wt_stream *stream, wt_random kind, uint64_t seed,
                                     uint64_t first, const wt_array *out);

typedef enum wt_reduce {
    WT_REDUCE_SUM,
    WT_REDUCE_MEAN,
    WT_REDUCE_PROD,
    WT_REDUCE_MAX, ///< not a number when one is
    WT_REDUCE_MIN,
    WT_REDUCE_ARGMAX, ///< the first of equals, in row-major order of the reduced axes; a NaN is the largest
    WT_REDUCE_ARGMIN, ///< likewise, a NaN is the smallest
    WT_REDUCE_ANY,
    WT_REDUCE_ALL,
    WT_N_REDUCE
} wt_reduce;
/// Over the axes whose bits are set (0 = all); out has the others' extents, with or without ones for the reduced.
/// Nothing to reduce: sum, any 0; prod, all 1; mean not a number; the others WT_ERR_BAD_ARG.
WT_CHECKED wt_status wt_array_reduce(wt_arrays *arrays, wt_stream *stream, wt_reduce op, const wt_array *x,
                                     unsigned axes, const wt_array *out);

/// exp(x) / sum exp(x) along an axis, or its logarithm; a line of -infinity alone gives NaN, as in NumPy.
WT_CHECKED wt_status wt_array_softmax(wt_arrays *arrays, wt_stream *stream, const wt_array *x, int axis, bool logarithm,
                                      const wt_array *out);
/// Sums along an axis, each element's own included.
WT_CHECKED wt_status wt_array_cumsum(wt_arrays *arrays, wt_stream *stream, const wt_array *x, int axis,
                                     const wt_array *out);
/// The k largest along the last axis, largest first, the first of equals first; no NaN. Their places in `indices`
/// (I32 or I64, shaped as `values`); either may be NULL.
WT_CHECKED wt_status wt_array_topk(wt_arrays *arrays, wt_stream *stream, const wt_array *x, int k,
                                   const wt_array *values, const wt_array *indices);

/// out[.., j, ..] = x[.., indices[j], ..]: `indices` of rank 1, or of x's rank and out's shape (along the axis).
/// An index below 0 or past the end gives 0: the host cannot see it.
WT_CHECKED wt_status wt_array_gather(wt_arrays *arrays, wt_stream *stream, const wt_array *x, int axis,
                                     const wt_array *indices, const wt_array *out);
/// out[.., indices[j], ..] = x[.., j, ..], or += when `add`, in the order of j; likewise, and such an index is passed
/// over.
WT_CHECKED wt_status wt_array_scatter(wt_arrays *arrays, wt_stream *stream, const wt_array *x, int axis,
                                      const wt_array *indices, bool add, const wt_array *out);
/// One after the other along an axis. (Splitting is slicing.)
WT_CHECKED wt_status wt_array_concat(wt_arrays *arrays, wt_stream *stream, const wt_array *xs, int n_xs, int axis,
                                     const wt_array *out);

#ifdef __cplusplus
}
#endif
#endif
