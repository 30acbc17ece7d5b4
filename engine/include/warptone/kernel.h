/// Kernels: CUDA C text compiled by NVRTC when first used and kept in a disk cache; plain C functions on the CPU.
#ifndef WARPTONE_KERNEL_H
#define WARPTONE_KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include <warptone/device.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_module wt_module;
typedef struct wt_kernel wt_kernel;

/// CUDA text to compile. It may `#include "file"` any file embedded from kernels/, by its name without the folder.
typedef struct wt_module_config {
    const char *name;           ///< stands in compiler messages, for example "kernels/fft/fft.cu"; copied
    const char *source;         ///< NULL = the embedded file of that name; copied
    const char *const *options; ///< [n_options] such as "-DN_FFT=2048"; the engine adds architecture and defaults
    int n_options;
    bool fast_math; ///< default false: IEEE division and square root, no flush to zero
    bool no_cache;  ///< compile always, keep nothing
} wt_module_config;

/// Compile or fetch from the cache, and load into the device (which must be a GPU).
/// Errors: WT_ERR_UNSUPPORTED (CPU device), WT_ERR_NO_NVRTC, WT_ERR_COMPILE with NVRTC's log in the sentence,
/// WT_ERR_NOT_FOUND (no embedded text of that name), WT_ERR_ARMED, WT_ERR_CUDA; WT_ERR_UNSUPPORTED also for an embedded
/// text of another architecture (matmul_wgmma.cu is for 9.0 alone).  [worker]
WT_CHECKED wt_status wt_module_create(wt_device *device, const wt_module_config *config, wt_module **module);
/// Its two halves, for a module that is to be loaded in a short quiesce. Prepare compiles or fetches, and calls the
/// driver for nothing; load makes the kernels usable. Errors: those of wt_module_create, each its own half's.  [worker]
WT_CHECKED wt_status wt_module_prepare(wt_device *device, const wt_module_config *config, wt_module **module);
WT_CHECKED wt_status wt_module_load(wt_module *module);
void wt_module_destroy(wt_module *module); ///< NULL is allowed. Armed: put aside (arm.h).  [worker]

/// One `extern "C" __global__` function of a module that is loaded; lives as long as the module.
/// Errors: WT_ERR_NOT_FOUND naming the module, WT_ERR_STATE (not loaded), WT_ERR_ARMED (its first time).  [worker]
WT_CHECKED wt_status wt_module_get_kernel(wt_module *module, const char *function, wt_kernel **kernel);

typedef struct wt_launch {
    int grid[3];         ///< blocks; 0 = 1
    int block[3];        ///< threads; 0 = 1
    size_t shared_bytes; ///< dynamic shared memory; above 48 KB the engine opts in
    bool cooperative;    ///< all blocks run at once, or it is an error: they may wait for each other
    /// The kernel may begin while the one before it in the stream still runs: it waits itself (griddepcontrol.wait, in
    /// every block) before it reads what earlier ones write or writes what they read. Plain order where the device
    /// (before 9.0) or the driver (before 12.3) does not know it.
    bool overlap;
    /// For a kernel that runs beside others for long: their ends and fences do not wait for what it has under way to
    /// the host, nor its for theirs (a memory synchronisation domain of its own). With kernels outside such launches it
    /// must not share memory but by stream order and fences of the system's scope. Nothing where the device (before
    /// 9.0) or the driver (before 12.0) has one domain.
    bool apart;
} wt_launch;

typedef struct wt_arg {
    const void *data;  ///< the argument's value; copied during the call
    size_t size_bytes; ///< checked against the kernel where the driver tells (12.4 and newer); 4 KB in all
} wt_arg;

/// `WT_ARG(x)`: the variable `x`, of any C type, as one kernel argument.
#define WT_ARG(variable) ((wt_arg){&(variable), sizeof(variable)})

/// Launch on a stream of the module's device. Returns after queueing.
/// Errors: WT_ERR_BAD_ARG (sizes), WT_ERR_CUDA naming the kernel.  [worker]
WT_CHECKED wt_status wt_kernel_launch(wt_kernel *kernel, wt_stream *stream, const wt_launch *launch,
                                      const wt_arg *args, int n_args);

/// Whether the stream's processors have room for a cluster of such a launch, of a kernel with __cluster_dims__. A
/// partition that was cut `fine` has none for large ones, and a launch of them there fails. True where the driver does
/// not tell.
/// Errors: WT_ERR_BAD_ARG (sizes), WT_ERR_CUDA.  [worker]
WT_CHECKED wt_status wt_kernel_has_room(wt_kernel *kernel, wt_stream *stream, const wt_launch *launch, bool *has_room);

/// Facts the compiler knows: registers a thread, static shared and local bytes, largest block.
typedef struct wt_kernel_info {
    int n_registers, shared_bytes, local_bytes, max_threads;
} wt_kernel_info;
wt_kernel_info wt_kernel_get_info(const wt_kernel *kernel); ///< [any]

/// Matrices [n_matrices][rows][columns] of which a kernel copies boxes to shared memory in the background
/// (cp.async.bulk.tensor): 128 bytes of `box_rows` rows of `box_matrices` matrices, their 16-byte pieces swizzled over
/// eight rows. What lies beyond the sides reads as zeros. The matrices may be parts of the columns of one.
typedef struct wt_tensor_map_config {
    uintptr_t data;                  ///< aligned to 16 bytes
    int element_bytes;               ///< 1, 2, or 4: floats that the copy rounds to tf32
    int columns, rows, n_matrices;   ///< 1 or more
    int64_t row_bytes, matrix_bytes; ///< to the next row or matrix; multiples of 16
    int box_rows;                    ///< 1 .. 256
    int box_matrices;                ///< likewise; 0 = 1
    int box_bytes;                   ///< of a row in place of 128, then not swizzled: a multiple of 16; 0 = 128
} wt_tensor_map_config;

typedef struct wt_tensor_map {
    uint64_t opaque[16];
} __attribute__((aligned(64))) wt_tensor_map;

/// What such a kernel is told of the matrices, as a part of its arguments. Nothing is taken or queued.
/// Errors: WT_ERR_UNSUPPORTED (a device older than compute capability 9.0, a driver older than 12.0), WT_ERR_CUDA (the
/// driver refuses the sizes).  [any but rt]
WT_CHECKED wt_status wt_tensor_map_create(wt_device *device, const wt_tensor_map_config *config,
                                          wt_tensor_map *map);

typedef void (*wt_cpu_function)(const void *args, int item);
/// Run a C function on a CPU stream, in order with its copies: `function(args, k)` for k in 0 .. n_items - 1, spread
/// over the device's threads and one that synchronises. `args` is copied during the call (at most 4 KB). This is how
/// ops run on the CPU backend. The function must not synchronise its own stream, nor destroy buffers. It waits while
/// the stream's queue (64 KB) is full.
/// Errors: WT_ERR_UNSUPPORTED (a GPU's stream), WT_ERR_BAD_ARG.  [worker]
WT_CHECKED wt_status wt_stream_run(wt_stream *stream, wt_cpu_function function, const void *args, size_t args_bytes,
                                   int n_items);

// ---- the cache

typedef struct wt_compiled {
    void *image;       ///< cubin; caller frees with free()
    size_t size_bytes;
    bool from_cache;
} wt_compiled;

/// Compile for one architecture (for example 90) with no GPU at all, through the cache.
/// Errors as wt_module_create.  [any but rt]
WT_CHECKED wt_status wt_kernel_compile(const wt_module_config *config, int architecture, wt_compiled *compiled);

/// NVRTC's version as 13000, or 0 with a sentence in `wt_last_error()`; cuBLASLt's likewise.  [any but rt]
int wt_nvrtc_version(void);
int wt_cublaslt_version(void);

typedef struct wt_kernel_cache_info {
    char folder[1024];    ///< WARPTONE_CACHE, else $XDG_CACHE_HOME/warptone, else ~/.cache/warptone
    int n_entries;
    uint64_t size_bytes, limit_bytes; ///< WARPTONE_CACHE_LIMIT_MB, else 512 MB
    uint64_t hits, misses, evictions, corrupt; ///< of this process
} wt_kernel_cache_info;
/// What is in the cache; and remove it all.
/// Errors: WT_ERR_FILE, WT_ERR_BAD_ARG (WARPTONE_CACHE_LIMIT_MB), WT_ERR_NO_MEMORY.  [any but rt]
WT_CHECKED wt_status wt_kernel_cache_query(wt_kernel_cache_info *info);
WT_CHECKED wt_status wt_kernel_cache_clear(int *n_removed);
/// Copy every entry into `folder`, or take every entry of it; how a machine without NVRTC gets its kernels.
/// Errors: likewise.  [any but rt]
WT_CHECKED wt_status wt_kernel_cache_export(const char *folder, int *n_entries);
WT_CHECKED wt_status wt_kernel_cache_import(const char *folder, int *n_entries);

#ifdef __cplusplus
}
#endif
#endif
