/// Loads that saturate a GPU, for benches that measure what an audio task loses beside them.
///
/// `reads`, 64 MB a launch as the layers of a decode step, with neighbouring blocks at neighbouring addresses and 4 x
/// 16 bytes in flight a thread; `gemm`, 8192 x 8192 x 8192 in bf16 through cuBLASLt, its SM count target set to the
/// partition; `prefill`, a product of 2048 rows and eight reads in turn. Without cuBLASLt there are reads alone.
#ifndef WT_BENCH_GPU_LOAD_H
#define WT_BENCH_GPU_LOAD_H

#include "../../engine/cuda_libs.h"
#include "../../engine/device_cuda.h"

#include <pthread.h>
#include <warptone/kernel.h>

enum { GPU_LOAD_DEPTH = 3, GPU_LOAD_THREADS = 4 }; ///< pieces in flight; loads that may run at once

typedef enum gpu_load_kind { GPU_READS, GPU_GEMMS, GPU_PREFILLS, N_GPU_LOADS } gpu_load_kind;
extern const char *const gpu_load_names[];

/// What all loads of a device share.
typedef struct gpu_loads {
    wt_device *device;
    const wt__cublaslt *lt; ///< NULL = not available
    cublasLtHandle_t handle;
    wt_module *module;
    wt_kernel *reads, *noise;
    wt_buffer *data, *a, *b, *d, *workspace;
    int n_started; ///< so that each has its own workspace
} gpu_loads;

typedef struct gpu_gemm {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algo;
} gpu_gemm;

typedef struct gpu_load {
    const gpu_loads *all;
    gpu_load_kind kind;
    wt_stream *stream;
    int n_sms, number;
    gpu_gemm gemm;
    _Atomic double share; ///< of the time that it may take, 1 from the start
    wt_event *events[GPU_LOAD_DEPTH];
    atomic_bool quit;
    atomic_llong n_done; ///< pieces
    wt_status status;
    pthread_t thread;
} gpu_load;

WT_CHECKED wt_status gpu_loads_open(wt_device *device, gpu_loads *loads);
void gpu_loads_close(gpu_loads *loads);
int gpu_loads_count(const gpu_loads *loads); ///< kinds that can run
/// Bits that compress and multiply like weights, bf16 pairs of magnitude 0.5 to 1.
WT_CHECKED wt_status gpu_loads_fill_noise(const gpu_loads *loads, wt_stream *stream, wt_buffer *buffer);

/// Start a thread that keeps `stream` busy. The first start of a kind on so many SMs loads kernels: not while armed.
WT_CHECKED wt_status gpu_load_start(gpu_load *load, gpu_loads *all, gpu_load_kind kind, wt_stream *stream, int n_sms);
WT_CHECKED wt_status gpu_load_stop(gpu_load *load);
/// Pieces a second since `begin_ns`, when `n_before` were done.
double gpu_load_rate(const gpu_load *load, long long n_before, int64_t begin_ns);
void gpu_load_print_rate(gpu_load_kind kind, double rate);
/// The rates of `n` loads together, a kind and a stream each, with nothing beside them, summed by kind: in windows of
/// so many seconds until two agree to 0.5 %, for clocks rise slowly.
WT_CHECKED wt_status gpu_load_alone(gpu_loads *all, const gpu_load_kind *kinds, wt_stream *const *streams, int n,
                                    int n_sms, double seconds, double rates[N_GPU_LOADS]);
/// Rates since `begin_ns`, when each had done `before`, summed by kind.
void gpu_load_rates(const gpu_load *loads, int n, const long long *before, int64_t begin_ns, double rates[N_GPU_LOADS]);

/// Read the clock until then.
void spin_until(int64_t time_ns);

#endif
