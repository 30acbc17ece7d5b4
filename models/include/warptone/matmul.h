/// Products of weight matrices with activations, y = x W^T, on a GPU or the CPU: from one vector to a long prompt, with
/// dense, quantised, batched and expert weights, and what usually follows (bias, activation, gate, residual).
///
///     wt_matmul_create(&(wt_matmul_config){.device = device}, &matmul);
///     wt_matmul_args qkv = {.n_parts = 3, .parts = {{q, .y = ...}, {k, .y = ...}, {v, .y = ...}}, .x = ..., .m = 1};
///     wt_matmul_prepare(matmul, &qkv);          // compiles kernels, asks the library: before arming and capture
///     wt_matmul_enqueue(matmul, stream, &qkv);  // as often as wanted, also into a graph
///
/// Addresses are those of wt_buffer_address plus an offset. Results are the same to the bit in every run, in a graph or
/// not. With x in 16 bits and m of 1 .. 8, a row of y does not depend on m nor on the other rows of x; likewise with m
/// of 9 .. WT_MATMUL_SKINNY.
/// docs/matmul.md tells which kernel computes what, and where it ran.
#ifndef WARPTONE_MATMUL_H
#define WARPTONE_MATMUL_H

#include <stdbool.h>
#include <stdint.h>
#include <warptone/activation.h>
#include <warptone/partition.h>
#include <warptone/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WT_MATMUL_MAX_PARTS = 4,
    WT_MATMUL_SKINNY = 16, ///< most rows of x that cost about as much as one: the reading of the weights
};

/// 4-bit elements, two a byte, the low nibble first.
typedef enum wt_packing {
    WT_PACKING_NONE, ///< elements of `dtype`
    WT_PACKING_U4,   ///< unsigned; the value is nibble - zero, or nibble - 8 without zeros
    WT_PACKING_E2M1, ///< OCP FP4: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives (NVFP4, MXFP4)
} wt_packing;

/// What a weight is multiplied with: scales[r / rows a scale][k / columns a scale].
typedef enum wt_scaling {
    WT_SCALING_NONE,
    WT_SCALING_TENSOR, ///< [1]
    WT_SCALING_ROW,    ///< [rows]: a channel of the output
    WT_SCALING_BLOCK,  ///< [ceil(rows / 128)][ceil(columns / 128)]
    WT_SCALING_GROUP,  ///< [rows][columns / group]
} wt_scaling;

/// A weight matrix, or a stack of equal ones (experts, batches), one after the other at `next` bytes.
typedef struct wt_matrix {
    uintptr_t data;         ///< [rows][columns], row-major, dense; aligned to 16 bytes for the fast kernels
    int rows, columns;      ///< of the output and the input
    wt_dtype dtype;         ///< F32 F16 BF16 F8_E4M3 F8_E5M2 I8 Q8_0 Q4_0 Q4_K Q6_K; U8 where packed. fp8: no NaN
    wt_packing packing;     ///< columns are even then
    wt_scaling scaling;     ///< NONE for GGUF's blocks, which hold their scales
    wt_dtype scale_dtype;   ///< F32 (0) F16 BF16; F8_E4M3 too with GROUP
    int group;              ///< columns a group: a multiple of 16 that divides `columns`
    uintptr_t scales;       ///< as `scaling` tells
    uintptr_t zeros;        ///< u8 [rows][columns / group], with U4 and GROUP; 0 = none
    uintptr_t tensor_scale; ///< f32 [1], a further factor (NVFP4's second level), with GROUP; 0 = none
    int64_t next, scales_next, zeros_next; ///< bytes to the next of a stack; 0 = dense
} wt_matrix;

/// One matrix of a product and where its result goes.
typedef struct wt_matmul_part {
    wt_matrix weight;
    uintptr_t y;      ///< [m][rows] of y_dtype; not used by part 1 of a gated product
    int64_t y_stride; ///< elements between rows of y; 0 = rows
    uintptr_t bias;   ///< f32 [rows], of a stack [n][rows]; 0 = none
} wt_matmul_part;

/// An RMSNorm between two products without a launch of its own, where wt_matmul_norms tells that it can be: the product
/// that adds to the rows of y also writes them times the norm's weights, and the sums of their squares; the next takes
/// those rows as x and divides its sums by the root of the mean square.
typedef struct wt_matmul_norm {
    uintptr_t weight;  ///< f32 [rows]; of the first product
    uintptr_t out;     ///< BF16 [m][rows], the next one's x; of the first
    uintptr_t squares; ///< f32 [m][rows / s] of the first, [m][columns / s] of the next, s as wt_matmul_norms tells
    float eps;         ///< of the next
} wt_matmul_norm;

/// y[i] = activation(x[i] W^T + bias) for each part, or y[i] = activation(x[i] W0^T + b0) * (x[i] W1^T + b1).
typedef struct wt_matmul_args {
    int n_parts; ///< 1 .. WT_MATMUL_MAX_PARTS matrices of the same input, type and scaling (Q, K, V; gate, up)
    wt_matmul_part parts[WT_MATMUL_MAX_PARTS];
    uintptr_t x;        ///< [m][columns]
    wt_dtype x_dtype;   ///< F32 F16 BF16; I8 (exact, weights I8), F8_E4M3 (weights F8_E4M3) and F4 (weights NVFP4: E2M1
                        ///< in groups of 16 with F8_E4M3 scales) with x_scales
    int64_t x_stride;   ///< elements between rows of x; 0 = columns, as F4 wants it
    uintptr_t x_scales; ///< f32 [m] of x in I8, F8_E4M3 and F4: x[i][k] stands for x_scales[i] times it; 0 = none
    uintptr_t x_groups; ///< F8_E4M3 [m][columns / 16] of x in F4: further factors of 16 columns each, none below 0
    int m;              ///< rows of x and y, 0 = nothing is done; with `experts` rows of y
    wt_dtype y_dtype;   ///< F32 F16 BF16; I32: the exact sums of an I8 product, with neither scales nor epilogue
    wt_activation activation;
    bool gated;   ///< two parts of equal shape: see above
    bool add;     ///< y += instead of y =
    /// What 16 bits left of x lies behind its m rows (with experts m / x_repeat) as as many more, and belongs to it; y
    /// of 16 bits and norm_after.out are written so. For up to 8 rows, or experts, of 16 bits; not with `add` to them.
    bool two_parts;
    bool overlap; ///< what is queued before does not write the matrices: few rows of x may begin to read them early

    int n_batches;                          ///< as many products with the matrices of a stack; 0 = one
    int64_t x_batch_stride, y_batch_stride; ///< elements between batches; 0 = dense, m times the row stride

    wt_matmul_norm norm_after;  ///< of y; all 0 = none
    wt_matmul_norm norm_before; ///< of x; all 0 = none

    /// Experts of a stack, chosen on the device. Decode: `experts` i32 [m] names the matrix of each row of y, whose row
    /// of x is i / x_repeat. Prefill: rows offsets[e] .. offsets[e + 1] - 1 of x and y belong to expert e, `offsets`
    /// i32 [n_experts + 1] from 0 to m. An expert below 0 or from n_experts on gives rows that are not written.
    uintptr_t experts, offsets; ///< at most one of them; 0 = no experts
    int n_experts;
    int x_repeat; ///< rows of y in a row that share a row of x, with `experts`; 0 = 1
} wt_matmul_args;

typedef struct wt_matmul wt_matmul;

typedef struct wt_matmul_config {
    wt_device *device;       ///< borrowed until destroy
    wt_partition *partition; ///< whose streams it will run on, for the number of SMs; NULL = the whole device
    int skinny_warps, skinny_steps, skinny_stages,
        skinny_blocks; ///< of the kernels for few rows of x, to try others than are chosen; 0 = chosen. Steps are tiles
                       ///< at a time of matmul_few; gated products have half the warps in the other
    int wgmma_columns, wgmma_stages; ///< likewise of the kernel for many rows of x on compute capability 9.0
    int wgmma_least; ///< rows of x in 16 bits from which that kernel takes products of up to 64; 0 = chosen
    bool no_library; ///< own kernels only, also where cuBLASLt is there
    bool no_wgmma;   ///< without that kernel
    bool tf32;       ///< f32 products of many rows may round their inputs to tf32 (10 bits); default exact f32
} wt_matmul_config;

/// For one partition and one stream at a time: its workspace (32 MiB on a GPU) is shared by what it queues.
/// Errors: WT_ERR_BAD_ARG, WT_ERR_NO_MEMORY, WT_ERR_ARMED, WT_ERR_CUDA. Without cuBLASLt it works with its own kernels.
/// [worker]
WT_CHECKED wt_status wt_matmul_create(const wt_matmul_config *config, wt_matmul **matmul);
void wt_matmul_destroy(wt_matmul *matmul); ///< What it queued must have run. NULL is allowed.  [worker]

/// Make ready for products of this form: kernels compiled and loaded, the library's algorithm chosen and loaded (which
/// runs it once, on memory of its own). Addresses need not be valid yet, but have the alignment of the real ones.
/// Errors: those of enqueue; WT_ERR_ARMED, WT_ERR_NO_NVRTC, WT_ERR_COMPILE, WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_matmul_prepare(wt_matmul *matmul, const wt_matmul_args *args);

/// Queue the product. `args` is copied, what it points to is borrowed until it has run. Takes no memory and waits for
/// nothing once a product of this form was prepared (else it prepares now).
/// Errors: WT_ERR_BAD_ARG (what was met, what is wanted), WT_ERR_UNSUPPORTED (types that do not go together),
/// WT_ERR_CUDA.  [worker]
WT_CHECKED wt_status wt_matmul_enqueue(wt_matmul *matmul, wt_stream *stream, const wt_matmul_args *args);

/// The kernel that computes such a product, as docs/matmul.md names it, for benches and reports; "" for wrong
/// arguments. Borrowed until destroy.  [worker]
const char *wt_matmul_kernel(wt_matmul *matmul, const wt_matmul_args *args);

/// Are norm_after and norm_before there for a product of this form? Returns how many neighbours' squares are added
/// first, 16 or 64, and both products must tell the same; 0 = not there: enqueue tells WT_ERR_UNSUPPORTED. They are
/// there for x in BF16 and m up to WT_MATMUL_SKINNY on a GPU, on compute capability 9.0 with weights of BF16 up to 64;
/// norm_after: of a single part with y in F32, rows in multiples of those neighbours.  [worker]
int wt_matmul_norms(wt_matmul *matmul, const wt_matmul_args *args);

/// A matrix of GGUF's blocks in a form that few rows of x read at full speed, with the same values: Q8_0 as I8 with f16
/// scales of groups of 32, Q4_0 as U4 likewise, Q6_K as I8 with f32 scales of groups of 16. `to` becomes that matrix,
/// at `memory` (aligned to 64 bytes; 0 = to learn the size). Returns the bytes it takes; 0 for other types, Q4_K too,
/// which are best as they are.  [any]
size_t wt_matrix_repacked(const wt_matrix *from, uintptr_t memory, wt_matrix *to);
/// Queue the change from `from` to `to`, which came from wt_matrix_repacked; a single matrix, no stack.
/// Errors: WT_ERR_BAD_ARG, WT_ERR_CUDA.  [worker]
WT_CHECKED wt_status wt_matmul_repack(wt_matmul *matmul, wt_stream *stream, const wt_matrix *from, const wt_matrix *to);

/// Rows of activations to I8 or F8_E4M3 with a scale a row: out = round(x / scale), scale = max |x| / 127 (or 448), 1
/// for a row of zeros; or to F4 with another for 16 columns: scale = max |x| / (6 448), group = round(max |x of 16| /
/// (6 scale)), out = round(x / (group scale)).
typedef struct wt_quantize_args {
    uintptr_t x;      ///< [m][columns]
    wt_dtype x_dtype; ///< F32 F16 BF16
    int64_t x_stride; ///< elements; 0 = columns
    int m, columns;
    uintptr_t out;      ///< [m][columns] of out_dtype, dense
    wt_dtype out_dtype; ///< I8, F8_E4M3 or F4
    uintptr_t scales;   ///< f32 [m]
    uintptr_t groups;   ///< F8_E4M3 [m][columns / 16], of F4, whose columns are a multiple of 16
} wt_quantize_args;
/// Errors: WT_ERR_BAD_ARG, WT_ERR_UNSUPPORTED, WT_ERR_CUDA.  [worker]
WT_CHECKED wt_status wt_matmul_quantize(wt_matmul *matmul, wt_stream *stream, const wt_quantize_args *args);

#ifdef __cplusplus
}
#endif
#endif
