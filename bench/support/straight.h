/// Products through cuBLASLt called straight, as any program would, to compare what goes through us with: descriptions
/// and layouts of its own, the first algorithm of the library's choice for the whole device, 32 MiB of workspace.
#ifndef WT_BENCH_STRAIGHT_H
#define WT_BENCH_STRAIGHT_H

#include "../../engine/cuda_libs.h"
#include "../../engine/device_cuda.h"

typedef struct straight {
    wt_device *device;
    const wt__cublaslt *lt;
    cublasLtHandle_t handle;
    wt_buffer *workspace;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t w, x, y;
    cublasLtMatmulAlgo_t algo;
    bool whole; ///< I8 to I32
} straight;

/// y [m][rows] = x [m][columns] W^T [rows][columns], dense; `w` and `y` are cudaDataType_t, x has w's. With `scale`,
/// the address of an f32 factor of W. Errors: WT_ERR_UNSUPPORTED, WT_ERR_CUDA; destroy it then too.
WT_CHECKED wt_status straight_create(wt_device *device, int w, int y, int rows, int columns, int m, uintptr_t scale,
                                     straight *s);
void straight_destroy(straight *s);
WT_CHECKED wt_status straight_enqueue(const straight *s, wt_stream *stream, uintptr_t w, uintptr_t x, uintptr_t y);

#endif
