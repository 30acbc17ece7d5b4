#include "straight.h"

enum { WORKSPACE_BYTES = 32 << 20, TRANSPOSED = 1 };

static wt_status ask(straight *s)
{
    const wt__cublaslt *lt = s->lt;
    const size_t workspace_bytes = WORKSPACE_BYTES;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t result = {.workspaceSize = 0};
    int n_results = 0;
    if (lt->MatmulPreferenceCreate(&preference)) return wt_fail(WT_ERR_CUDA, "straight: no preference");
    int bad = lt->MatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                                               sizeof workspace_bytes);
    bad |=
        lt->MatmulAlgoGetHeuristic(s->handle, s->desc, s->w, s->x, s->y, s->y, preference, 1, &result, &n_results) != 0;
    lt->MatmulPreferenceDestroy(preference);
    s->algo = result.algo;
    return bad || !n_results ? wt_fail(WT_ERR_UNSUPPORTED, "straight: no algorithm") : WT_OK;
}

wt_status straight_create(wt_device *device, int w, int y, int rows, int columns, int m, uintptr_t scale, straight *s)
{
    const int transposed = TRANSPOSED;
    *s = (straight){.device = device, .whole = y == CUDA_R_32I};
    wt_status status = wt__cublaslt_open(&s->lt);
    if (!status) status = wt__cuda_enter(wt__cuda_device_of(device));
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, WORKSPACE_BYTES, &s->workspace);
    if (status) return status;
    const wt__cublaslt *lt = s->lt;
    int bad = lt->Create(&s->handle);
    if (!bad)
        bad = lt->MatmulDescCreate(&s->desc, s->whole ? CUBLAS_COMPUTE_32I : CUBLAS_COMPUTE_32F,
                                   s->whole ? CUDA_R_32I : CUDA_R_32F);
    if (!bad) bad = lt->MatmulDescSetAttribute(s->desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
    if (!bad && scale)
        bad = lt->MatmulDescSetAttribute(s->desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &scale, sizeof scale);
    if (!bad) bad = lt->MatrixLayoutCreate(&s->w, w, (uint64_t)columns, (uint64_t)rows, columns);
    if (!bad) bad = lt->MatrixLayoutCreate(&s->x, w, (uint64_t)columns, (uint64_t)m, columns);
    if (!bad) bad = lt->MatrixLayoutCreate(&s->y, y, (uint64_t)rows, (uint64_t)m, rows);
    return bad ? wt_fail(WT_ERR_CUDA, "straight: cuBLASLt gives status %d", bad) : ask(s);
}

void straight_destroy(straight *s)
{
    if (s->y) s->lt->MatrixLayoutDestroy(s->y);
    if (s->x) s->lt->MatrixLayoutDestroy(s->x);
    if (s->w) s->lt->MatrixLayoutDestroy(s->w);
    if (s->desc) s->lt->MatmulDescDestroy(s->desc);
    if (s->handle) s->lt->Destroy(s->handle);
    wt_buffer_destroy(s->workspace);
}

wt_status straight_enqueue(const straight *s, wt_stream *stream, uintptr_t w, uintptr_t x, uintptr_t y)
{
    const float one = 1, zero = 0;
    const int32_t whole_one = 1, whole_zero = 0;
    const void *alpha = s->whole ? (const void *)&whole_one : &one,
               *beta = s->whole ? (const void *)&whole_zero : &zero;
    const int result = s->lt->Matmul(
        s->handle, s->desc, alpha, (const void *)w, s->w, (const void *)x, s->x, beta, (const void *)y, s->y, (void *)y,
        s->y, &s->algo, (void *)wt_buffer_address(s->workspace), WORKSPACE_BYTES, wt__cuda_stream_of(stream));
    return result ? wt_fail(WT_ERR_CUDA, "straight: cuBLASLt gives status %d", result) : WT_OK;
}
