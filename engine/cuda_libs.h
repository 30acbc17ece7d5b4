/// NVRTC and cuBLASLt, opened at run time; declared after NVIDIA's public reference (12.x and 13.0).
///
/// Each is searched as the path in WARPTONE_NVRTC or WARPTONE_CUBLASLT (then nowhere else), on the loader's path, in
/// $CUDA_PATH/lib64, $CUDA_HOME/lib64, /usr/local/cuda/lib64 and beside the executable; version 13 before 12, and 12
/// before 13 beside a driver of CUDA 12.
#ifndef WT_CUDA_LIBS_H
#define WT_CUDA_LIBS_H

#include "cuda_api.h"

typedef struct nvrtcProgram_st *nvrtcProgram;

typedef struct wt__nvrtc {
    int (*Version)(int *major, int *minor);
    const char *(*GetErrorString)(int result);
    int (*GetNumSupportedArchs)(int *count);
    int (*GetSupportedArchs)(int *architectures);
    int (*CreateProgram)(nvrtcProgram *program, const char *source, const char *name, int n_headers,
                         const char *const *headers, const char *const *include_names);
    int (*DestroyProgram)(nvrtcProgram *program);
    int (*CompileProgram)(nvrtcProgram program, int n_options, const char *const *options);
    int (*GetCUBINSize)(nvrtcProgram program, size_t *bytes);
    int (*GetCUBIN)(nvrtcProgram program, char *cubin);
    int (*GetProgramLogSize)(nvrtcProgram program, size_t *bytes);
    int (*GetProgramLog)(nvrtcProgram program, char *log);
    int version; ///< 13000 = 13.0
} wt__nvrtc;

enum { NVRTC_ERROR_COMPILATION = 6 };

/// Open it once in a process. Errors: WT_ERR_NO_NVRTC, "NVRTC JIT compiler not available: ...".  [any but rt]
WT_CHECKED wt_status wt__nvrtc_open(const wt__nvrtc **nvrtc);

typedef int cublasStatus_t;
typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct cublasLtMatmulDesc *cublasLtMatmulDesc_t;
typedef struct cublasLtMatrixLayout *cublasLtMatrixLayout_t;
typedef struct cublasLtMatmulPreference *cublasLtMatmulPreference_t;

typedef struct cublasLtMatmulAlgo_t {
    uint64_t data[8];
} cublasLtMatmulAlgo_t;

typedef struct cublasLtMatmulHeuristicResult_t {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;

enum { // cublasLtMatmulDescAttributes_t, cublasLtMatrixLayoutAttribute_t, cublasLtMatmulPreferenceAttributes_t
    CUBLASLT_MATMUL_DESC_TRANSA = 3,
    CUBLASLT_MATMUL_DESC_TRANSB = 4,
    CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
    CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
    CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET = 15,
    CUBLASLT_MATMUL_DESC_A_SCALE_POINTER = 17,
    CUBLASLT_MATMUL_DESC_B_SCALE_POINTER = 18,
    CUBLASLT_MATMUL_DESC_FAST_ACCUM = 25,
    CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26,
    CUBLASLT_MATMUL_DESC_A_SCALE_MODE = 31,
    CUBLASLT_MATMUL_DESC_B_SCALE_MODE = 32,
    CUBLASLT_MATRIX_LAYOUT_ORDER = 1,
    CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,
    CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6,
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5, // and of B, C, D
};

enum { // cublasComputeType_t and cudaDataType_t
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_32I = 72,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
    CUDA_R_32F = 0,
    CUDA_R_16F = 2,
    CUDA_R_8I = 3,
    CUDA_R_32I = 10,
    CUDA_R_16BF = 14,
    CUDA_R_8F_E4M3 = 28,
    CUDA_R_8F_E5M2 = 29,
    CUDA_R_4F_E2M1 = 33,
};

typedef struct wt__cublaslt {
    size_t (*GetVersion)(void);
    cublasStatus_t (*Create)(cublasLtHandle_t *handle);
    cublasStatus_t (*Destroy)(cublasLtHandle_t handle);
    cublasStatus_t (*MatmulDescCreate)(cublasLtMatmulDesc_t *desc, int compute_type, int scale_type);
    cublasStatus_t (*MatmulDescDestroy)(cublasLtMatmulDesc_t desc);
    cublasStatus_t (*MatmulDescSetAttribute)(cublasLtMatmulDesc_t desc, int attribute, const void *value, size_t bytes);
    cublasStatus_t (*MatrixLayoutCreate)(cublasLtMatrixLayout_t *layout, int type, uint64_t rows, uint64_t columns,
                                         int64_t leading);
    cublasStatus_t (*MatrixLayoutDestroy)(cublasLtMatrixLayout_t layout);
    cublasStatus_t (*MatrixLayoutSetAttribute)(cublasLtMatrixLayout_t layout, int attribute, const void *value,
                                               size_t bytes);
    cublasStatus_t (*MatmulPreferenceCreate)(cublasLtMatmulPreference_t *preference);
    cublasStatus_t (*MatmulPreferenceDestroy)(cublasLtMatmulPreference_t preference);
    cublasStatus_t (*MatmulPreferenceSetAttribute)(cublasLtMatmulPreference_t preference, int attribute,
                                                   const void *value, size_t bytes);
    cublasStatus_t (*MatmulAlgoGetHeuristic)(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                             cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                             cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                             cublasLtMatmulPreference_t preference, int n_wanted,
                                             cublasLtMatmulHeuristicResult_t *results, int *n_results);
    cublasStatus_t (*Matmul)(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a,
                             cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
                             const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                             cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo, void *workspace,
                             size_t workspace_bytes, CUstream stream);
    int version; ///< 13000 = 13.0
} wt__cublaslt;

/// Open it once in a process. Errors: WT_ERR_NO_LIBRARY, "cuBLASLt not available: ...".  [any but rt]
WT_CHECKED wt_status wt__cublaslt_open(const wt__cublaslt **cublaslt);

#endif
