/// Products of matrices against sums in double: what test_matmul*.c make, run and check.
///
/// An element may differ from the double result by a share of the sum of its magnitudes, sum |w x|, which is what
/// rounding of float sums and of the inputs moves, and by half a step of its own type.
#ifndef WT_TEST_MATMUL_CHECK_H
#define WT_TEST_MATMUL_CHECK_H

#include "device_check.h"
#include "testing.h"

#include <warptone/matmul.h>

/// What is multiplied; zeros are the plain choice.
typedef struct problem {
    wt_dtype w;
    wt_packing packing;
    wt_scaling scaling;
    wt_dtype scale_dtype;
    int group;
    bool zeros, tensor_scale;
    wt_dtype x, y;
    bool x_scales;
    bool two_parts;       ///< x, and y of 16 bits
    int rows, columns, m; ///< rows of part 0; further parts have 5 more each, of a gated product as many
    int n_parts;          ///< 0 = 1
    bool gated, bias, add, strides;
    wt_activation activation;
    int n_batches;
    int n_experts; ///< with `chosen`: a matrix a row of y; else offsets
    bool chosen;
    int x_repeat;
} problem;

/// One array on the device and its copy here.
typedef struct array {
    wt_buffer *buffer;
    unsigned char *host;
    size_t bytes;
} array;

typedef struct bench {
    wt_device *device;
    wt_stream *stream;
    problem p;
    array w[4], scales[4], zeros[4], bias[4], y[4], tensor_scale, x, x_scales, x_groups, experts;
    float *plain[4], *plain_x; ///< elements of w that are not packed, and of x with the scales of their groups
    int64_t n_stack, x_rows, y_rows, x_stride, y_stride[4];
    wt_matmul_args args;
} bench;

/// Element k of an array of `dtype`, blocks of GGUF included.
double element_of(wt_dtype dtype, const void *data, int64_t k);
array new_array(bench *b, size_t bytes);
void send_array(bench *b, const array *a);
void free_array(array *a);
uintptr_t address_of(const array *a); ///< 0 for none

/// The problem with random contents on a device, and its results there.
void make_bench(bench *b, wt_device *device, const problem *p);
void unmake_bench(bench *b);
void fetch(bench *b, int part);
/// Weight k of row r of a matrix of the stack, with its scale.
double weight_of(const bench *b, int part, int64_t stack, int64_t r, int64_t k);
/// All of small results, some of large ones; what lies between rows, and rows of no expert, stay as they were.
void check_results(const bench *b, int part, const unsigned char *before);

/// Every element of part 0 of a bare I8 product against whole numbers.
void assert_bare_sums(const bench *b);

/// What a product does without: of a GPU, each is another kernel.
enum { WITHOUT_NOTHING, WITHOUT_LIBRARY, WITHOUT_WGMMA, N_WITHOUT };

/// The problem through prepare and enqueue, twice (not when it adds) and from a graph: the same bits, and right.
void solve(wt_device *device, const problem *p, int without);

#define SOLVE_ALL(device, problems)                                                                                    \
    for (size_t solve_k = 0; solve_k < sizeof(problems) / sizeof *(problems); solve_k++)                               \
        for (int without = 0; without < (wt_device_get_info(device)->backend == WT_BACKEND_CPU ? 1 : N_WITHOUT);       \
             without++)                                                                                                \
        solve(device, &(problems)[solve_k], without)

#define F32  WT_DTYPE_F32
#define F16  WT_DTYPE_F16
#define BF16 WT_DTYPE_BF16
#define E4M3 WT_DTYPE_F8_E4M3
#define E5M2 WT_DTYPE_F8_E5M2
#define I8   WT_DTYPE_I8

#endif
