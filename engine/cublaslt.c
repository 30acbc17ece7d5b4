// The library is column-major: to it y is [rows][m], W transposed, x as it is. So a form is always "TN", which is also
// the only one of its 8-bit products. Source: NVIDIA, cuBLAS documentation, "Using the cuBLASLt API".
#include "cuda_libs.h"
#include "device_cuda.h"

#include <stdlib.h>
#include <warptone/cublaslt.h>

enum { WORKSPACE_BYTES = 32 << 20, ALIGN_BYTES = 16, TRANSPOSED = 1 };

/// A form and what the library keeps of it.
typedef struct plan {
    struct plan *next;
    wt_cublaslt_form form;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t w, x, y;
    cublasLtMatmulAlgo_t algo;
    bool usable; ///< false: the library has no algorithm for the form
} plan;

struct wt_cublaslt {
    wt_device *device;
    const wt__cublaslt *library;
    cublasLtHandle_t handle;
    wt_partition *partition;
    wt_buffer *workspace;
    size_t taken_bytes; ///< of the partition's quota
    int n_sms;
    plan *plans;
};

static const struct {
    int cuda, bytes;
} types[WT_CUBLASLT_N_TYPES] = {
    [WT_CUBLASLT_F32] = {CUDA_R_32F, 4},   [WT_CUBLASLT_F16] = {CUDA_R_16F, 2},
    [WT_CUBLASLT_BF16] = {CUDA_R_16BF, 2}, [WT_CUBLASLT_F8_E4M3] = {CUDA_R_8F_E4M3, 1},
    [WT_CUBLASLT_I8] = {CUDA_R_8I, 1},     [WT_CUBLASLT_I32] = {CUDA_R_32I, 4},
};

static wt_status check(cublasStatus_t result, const char *what)
{
    return result ? wt_fail(WT_ERR_CUDA, "cublaslt: %s gives status %d", what, result) : WT_OK;
}

/// Of the partition's quota, given back by destroy.
static wt_status take_workspace(wt_cublaslt *c)
{
    if (!wt__partition_take(c->partition, WT__USE_MEMORY, WORKSPACE_BYTES))
        return wt_fail(WT_ERR_QUOTA, "cublaslt: a workspace of %d bytes, partition %s has %zu left", WORKSPACE_BYTES,
                       wt__partition_name(c->partition), wt__partition_left(c->partition, WT__USE_MEMORY));
    c->taken_bytes = WORKSPACE_BYTES;
    return wt_buffer_create(c->device, WT_MEMORY_DEVICE, WORKSPACE_BYTES, &c->workspace);
}

wt_status wt_cublaslt_create(wt_device *device, wt_partition *partition, wt_cublaslt **cublaslt)
{
    *cublaslt = NULL;
    if (device->info.backend != WT_BACKEND_CUDA) return wt_fail(WT_ERR_UNSUPPORTED, "cublaslt: it needs a GPU");
    const wt__cublaslt *library;
    wt_status status = wt__cublaslt_open(&library);
    if (!status) status = wt__cuda_enter(wt__cuda_device_of(device));
    if (status) return status;
    wt_cublaslt *c = calloc(1, sizeof *c);
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "cublaslt: no memory for a handle");
    c->device = device;
    c->library = library;
    c->n_sms = device->info.n_sms;
    c->partition = partition;
    if (partition) {
        wt_partition_info info;
        wt_partition_get_info(partition, &info);
        c->n_sms = info.n_sms;
    }
    status = take_workspace(c);
    if (!status) status = check(library->Create(&c->handle), "cublasLtCreate");
    if (status) {
        wt_cublaslt_destroy(c);
        return status;
    }
    *cublaslt = c;
    return WT_OK;
}

static void free_plan(const wt__cublaslt *library, plan *p)
{
    if (p->desc) library->MatmulDescDestroy(p->desc);
    if (p->w) library->MatrixLayoutDestroy(p->w);
    if (p->x) library->MatrixLayoutDestroy(p->x);
    if (p->y) library->MatrixLayoutDestroy(p->y);
    free(p);
}

void wt_cublaslt_destroy(wt_cublaslt *cublaslt)
{
    if (!cublaslt) return;
    const bool entered = wt__cuda_enter_to_free(wt__cuda_device_of(cublaslt->device));
    while (cublaslt->plans) {
        plan *next = cublaslt->plans->next;
        free_plan(cublaslt->library, cublaslt->plans);
        cublaslt->plans = next;
    }
    if (cublaslt->handle && entered) cublaslt->library->Destroy(cublaslt->handle);
    wt_buffer_destroy(cublaslt->workspace);
    wt__partition_give(cublaslt->partition, WT__USE_MEMORY, cublaslt->taken_bytes);
    free(cublaslt);
}

// ---- plans

static bool equal(const wt_cublaslt_form *a, const wt_cublaslt_form *b)
{
    return a->w == b->w && a->x == b->x && a->y == b->y && a->rows == b->rows && a->columns == b->columns &&
           a->m == b->m && a->n_batches == b->n_batches && a->x_stride == b->x_stride && a->y_stride == b->y_stride &&
           a->w_batch == b->w_batch && a->x_batch == b->x_batch && a->y_batch == b->y_batch && a->add == b->add &&
           a->tf32 == b->tf32 && a->scaled == b->scaled;
}

static plan *find(const wt_cublaslt *c, const wt_cublaslt_form *form)
{
    plan *p = c->plans;
    while (p && !equal(&p->form, form)) p = p->next;
    return p;
}

/// A matrix [n][width] in rows of `stride` elements, which to the library is [width][n] in columns.
static wt_status describe_matrix(const wt_cublaslt *c, wt_cublaslt_type type, int width, int n, int64_t stride,
                                 int n_batches, int64_t batch, cublasLtMatrixLayout_t *layout)
{
    const wt__cublaslt *l = c->library;
    wt_status status =
        check(l->MatrixLayoutCreate(layout, types[type].cuda, (uint64_t)width, (uint64_t)n, stride), "a layout");
    if (status || n_batches == 1) return status;
    status =
        check(l->MatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &n_batches, sizeof n_batches),
              "a number of batches");
    if (status) return status;
    return check(
        l->MatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &batch, sizeof batch),
        "a distance of batches");
}

static wt_status describe(const wt_cublaslt *c, plan *p)
{
    const wt__cublaslt *l = c->library;
    const wt_cublaslt_form *f = &p->form;
    const bool whole = f->y == WT_CUBLASLT_I32;
    const int compute = whole ? CUBLAS_COMPUTE_32I : f->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const int transposed = TRANSPOSED;
    wt_status status = check(l->MatmulDescCreate(&p->desc, compute, whole ? CUDA_R_32I : CUDA_R_32F), "a description");
    if (!status)
        status = check(l->MatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
                       "the transposition");
    if (!status)
        status =
            check(l->MatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &c->n_sms, sizeof c->n_sms),
                  "the number of SMs");
    if (!status) status = describe_matrix(c, f->w, f->columns, f->rows, f->columns, f->n_batches, f->w_batch, &p->w);
    if (!status) status = describe_matrix(c, f->x, f->columns, f->m, f->x_stride, f->n_batches, f->x_batch, &p->x);
    return status ? status : describe_matrix(c, f->y, f->rows, f->m, f->y_stride, f->n_batches, f->y_batch, &p->y);
}

/// The library's first choice among algorithms that are satisfied with the workspace and 16-byte alignment.
static wt_status choose(const wt_cublaslt *c, plan *p)
{
    const wt__cublaslt *l = c->library;
    const size_t workspace_bytes = WORKSPACE_BYTES;
    const uint32_t align_bytes = ALIGN_BYTES;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t result = {.workspaceSize = 0};
    int n_results = 0;
    wt_status status = check(l->MatmulPreferenceCreate(&preference), "a preference");
    if (status) return status;
    status = check(l->MatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                   &workspace_bytes, sizeof workspace_bytes),
                   "the size of the workspace");
    for (int k = 0; k < 4 && !status; k++)
        status = check(l->MatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + k,
                                                       &align_bytes, sizeof align_bytes),
                       "the alignment");
    if (!status) {
        const cublasStatus_t got =
            l->MatmulAlgoGetHeuristic(c->handle, p->desc, p->w, p->x, p->y, p->y, preference, 1, &result, &n_results);
        p->usable = !got && n_results && !result.state;
    }
    l->MatmulPreferenceDestroy(preference);
    p->algo = result.algo;
    return status;
}

/// Of a product: kernels that were chosen for whole units of SMs want clusters for which a finer cut has no room.
static wt_status check_product(const wt_cublaslt *c, cublasStatus_t result)
{
    wt_partition_info info = {.fine = false};
    if (result && c->partition) wt_partition_get_info(c->partition, &info);
    if (!info.fine) return check(result, "cublasLtMatmul");
    return wt_fail(WT_ERR_CUDA,
                   "cublaslt: cublasLtMatmul gives status %d, since partition %s is cut fine: make its products anew "
                   "after a resize",
                   result, info.name);
}

static wt_status run(const wt_cublaslt *c, const plan *p, wt_stream *stream, const wt_buffer *workspace, uintptr_t w,
                     uintptr_t x, uintptr_t y, uintptr_t scale)
{
    const wt__cublaslt *l = c->library;
    const float one = 1, zero = 0;
    const int32_t whole_one = 1, whole_zero = 0;
    const bool whole = p->form.y == WT_CUBLASLT_I32;
    const void *alpha = whole ? (const void *)&whole_one : &one;
    const void *beta = whole ? p->form.add ? (const void *)&whole_one : &whole_zero : p->form.add ? &one : &zero;
    wt_status status = wt__cuda_enter(wt__cuda_device_of(c->device));
    if (!status && p->form.scaled)
        status = check(l->MatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &scale, sizeof scale),
                       "the factor of W");
    if (status) return status;
    return check_product(c,
                         l->Matmul(c->handle, p->desc, alpha, (const void *)w, p->w, (const void *)x, p->x, beta,
                                   (const void *)y, p->y, (void *)y, p->y, &p->algo,
                                   (void *)wt_buffer_address(workspace), WORKSPACE_BYTES, wt__cuda_stream_of(stream)));
}

static size_t span_bytes(wt_cublaslt_type type, int n, int64_t stride, int n_batches, int64_t batch)
{
    return (size_t)types[type].bytes * (size_t)(n * stride + (n_batches - 1) * batch);
}

/// Once, on zeros, with everything in memory of its own: products before it may be at work in the workspace.
static wt_status warm(const wt_cublaslt *c, const plan *p)
{
    const wt_cublaslt_form *f = &p->form;
    const size_t w = span_bytes(f->w, f->rows, f->columns, f->n_batches, f->w_batch) + ALIGN_BYTES;
    const size_t x = span_bytes(f->x, f->m, f->x_stride, f->n_batches, f->x_batch) + ALIGN_BYTES;
    const size_t y = span_bytes(f->y, f->m, f->y_stride, f->n_batches, f->y_batch) + ALIGN_BYTES;
    wt_buffer *in = NULL, *out = NULL, *workspace = NULL;
    wt_stream *stream = NULL;
    wt_status status = wt_buffer_create(c->device, WT_MEMORY_DEVICE, w > x ? w : x, &in);
    if (!status) status = wt_buffer_create(c->device, WT_MEMORY_DEVICE, y, &out);
    if (!status) status = wt_buffer_create(c->device, WT_MEMORY_DEVICE, WORKSPACE_BYTES, &workspace);
    if (!status)
        status = c->partition ? wt_partition_stream_create(c->partition, NULL, &stream)
                              : wt_stream_create(c->device, NULL, &stream);
    if (!status)
        status = run(c, p, stream, workspace, wt_buffer_address(in), wt_buffer_address(in), wt_buffer_address(out),
                     f->scaled ? wt_buffer_address(in) : 0);
    if (!status) status = wt_stream_synchronize(stream);
    wt_stream_destroy(stream);
    wt_buffer_destroy(in);
    wt_buffer_destroy(out);
    wt_buffer_destroy(workspace);
    return status;
}

static wt_status make(wt_cublaslt *c, const wt_cublaslt_form *form, plan **made)
{
    wt_status status = wt__guard_check(c->device->guard, WT_ARM_MODULE_LOAD, "cublaslt");
    if (status) return status;
    wt__guard_leave(c->device->guard); // the calls that follow hold it themselves
    plan *p = *made = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "cublaslt: no memory for a form");
    p->form = *form;
    status = wt__cuda_enter(wt__cuda_device_of(c->device));
    if (!status) status = describe(c, p);
    if (!status) status = choose(c, p);
    return !status && p->usable ? warm(c, p) : status;
}

wt_status wt_cublaslt_prepare(wt_cublaslt *cublaslt, const wt_cublaslt_form *form)
{
    plan *p = find(cublaslt, form);
    if (!p) {
        wt_status status = make(cublaslt, form, &p);
        if (status) {
            if (p) free_plan(cublaslt->library, p);
            return status;
        }
        p->next = cublaslt->plans;
        cublaslt->plans = p;
    }
    if (p->usable) return WT_OK;
    return wt_fail(WT_ERR_UNSUPPORTED, "cublaslt: no algorithm for %d x %d by %d", form->rows, form->columns, form->m);
}

wt_status wt_cublaslt_enqueue(wt_cublaslt *cublaslt, wt_stream *stream, const wt_cublaslt_form *form, uintptr_t w,
                              uintptr_t x, uintptr_t y, uintptr_t scale)
{
    const plan *p = find(cublaslt, form);
    if (!p || !p->usable) return wt_fail(WT_ERR_STATE, "cublaslt: a form that was not prepared");
    return run(cublaslt, p, stream, cublaslt->workspace, w, x, y, scale);
}
