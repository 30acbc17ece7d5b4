/// A product as its kernels see it, and the two backends.
#ifndef WT_MATMUL_INTERNAL_H
#define WT_MATMUL_INTERNAL_H

#include "matmul_kernel.h"

#include <warptone/kernel.h>
#include <warptone/matmul.h>
#include <warptone/pool.h>

typedef struct wt__mm_cuda wt__mm_cuda;

struct wt_matmul {
    wt_matmul_config config;
    int n_sms;
    wt__mm_cuda *cuda; ///< NULL on the CPU
};

/// Number the tiles of `rows` rows over the parts; returns how many there are. A gated product has part 0's.
int wt__mm_number_tiles(wt_mm_args *args, int rows);

/// Weights and activations in I8, summed in whole numbers.
static inline bool wt__mm_is_exact(const wt_mm_args *a) { return a->x_type == WT_MM_I8; }

static inline bool wt__mm_has_norm(const wt_mm_args *a) { return a->norm_weight || a->x_squares; }

/// The CPU: matmul_cpu.c.
WT_CHECKED wt_status wt__mm_cpu_enqueue(wt_stream *stream, const wt_mm_args *args);
WT_CHECKED wt_status wt__mm_cpu_quantize(wt_stream *stream, const wt_mm_quantize_args *args);
WT_CHECKED wt_status wt__mm_cpu_repack(wt_stream *stream, const wt_mm_repack_args *args);

/// Has the partition room for clusters of blocks? In one that was cut fine those of cuBLASLt fail when they are
/// launched (H200).
bool wt__mm_has_clusters(const wt_matmul_config *config);

/// CUDA: matmul_cuda.c. Without a stream: make ready.
WT_CHECKED wt_status wt__mm_cuda_create(const wt_matmul_config *config, int n_sms, wt__mm_cuda **cuda);
void wt__mm_cuda_destroy(wt__mm_cuda *cuda);
WT_CHECKED wt_status wt__mm_cuda_enqueue(wt__mm_cuda *cuda, wt_stream *stream, const wt_mm_args *args);
WT_CHECKED wt_status wt__mm_cuda_quantize(wt__mm_cuda *cuda, wt_stream *stream, const wt_mm_quantize_args *args);
WT_CHECKED wt_status wt__mm_cuda_repack(wt__mm_cuda *cuda, wt_stream *stream, const wt_mm_repack_args *args);
int wt__mm_cuda_norms(const wt__mm_cuda *cuda, const wt_mm_args *args);
const char *wt__mm_cuda_kernel(wt__mm_cuda *cuda, const wt_mm_args *args);

/// How matmul_wgmma.cu is compiled and launched for a product: matmul_wgmma.c.
typedef struct wt__mm_wgmma_shape {
    int columns, rows, stages; ///< rows of W and of x a block, stages of shared memory
    int64_t n_tiles;
    int n_slices, n_blocks;
    bool meets; ///< slices, two, are the blocks' of a cluster
    size_t shared_bytes;
} wt__mm_wgmma_shape;
/// Is it a product whose tiles have 64 rows of x? F32 there is multiplied as tf32.
bool wt__mm_wgmma_is_few(const wt_matmul_config *config, const wt_mm_args *args);
/// Do sums of its slices meet in memory?
static inline bool wt__mm_wgmma_has_partial(const wt__mm_wgmma_shape *s) { return s->n_slices > 1 && !s->meets; }
/// `args` gets the numbers of its tiles.
wt__mm_wgmma_shape wt__mm_wgmma_shape_of(const wt_matmul_config *config, int n_sms, wt_mm_args *args);
/// Bytes of memory, zeros at first, in which the sums of slices meet: of any product.
size_t wt__mm_wgmma_partial_bytes(int n_sms);
WT_CHECKED wt_status wt__mm_wgmma_fill(wt_device *device, const wt_mm_args *args, const wt__mm_wgmma_shape *shape,
                                       uintptr_t partial, wt_mm_wgmma_args *filled);

/// How matmul_slices.cu is compiled and launched for a product of F32 by F32, and how many slices the tiles of
/// matmul_tiles.cu have: matmul_slices.c.
typedef struct wt__mm_slices_shape {
    int x_rows, stages, threads; ///< rows of x a block, stages of shared memory
    int64_t n_tiles;
    int n_slices;
    size_t shared_bytes;
} wt__mm_slices_shape;
/// Has it as many rows of x as matmul_slices is for?
bool wt__mm_slices_takes(const wt_mm_args *args);
/// `args` gets the numbers of its tiles.
wt__mm_slices_shape wt__mm_slices_shape_of(wt_mm_args *args);
/// Slices of tiles of WT_MM_SLICED_ROWS rows of W; 1: of any, or none. `args` gets the numbers of those tiles.
int wt__mm_tiles_slices(wt_mm_args *args);
/// Bytes of memory, zeros at first, in which the sums of slices meet: of any product.
size_t wt__mm_slices_partial_bytes(void);
void wt__mm_slices_fill(const wt_mm_args *args, int n_slices, uintptr_t partial, wt_mm_slices_args *filled);

/// Memory of the partition's quota, from a pool that the first call creates.
WT_CHECKED wt_status wt__mm_take_memory(const wt_matmul_config *config, size_t bytes, wt_pool **pool,
                                        wt_pool_arena **arena, uintptr_t *address);

/// What is queued through the library: matmul_library.c, with two kernels of ours (matmul_finish.cu, matmul_widen.cu).
typedef struct wt__mm_library wt__mm_library;
typedef struct wt__mm_helpers {
    wt_kernel *finish, *widen;
} wt__mm_helpers;
WT_CHECKED wt_status wt__mm_library_create(const wt_matmul_config *config, wt__mm_library **library);
void wt__mm_library_destroy(wt__mm_library *library);
/// Is it a product that the library computes?
bool wt__mm_library_takes(const wt_mm_args *args);
/// y needs nothing but the sums.
bool wt__mm_library_is_direct(const wt_mm_args *args);
/// Errors: WT_ERR_UNSUPPORTED when it has no algorithm for one that it should take.
WT_CHECKED wt_status wt__mm_library_prepare(wt__mm_library *library, const wt_mm_args *args);
WT_CHECKED wt_status wt__mm_library_enqueue(wt__mm_library *library, const wt__mm_helpers *helpers, wt_stream *stream,
                                            const wt_mm_args *args);

#endif
