// Products of many rows of x through cuBLASLt. What it can write as it is wanted goes straight to y; the rest as bare
// sums to scratch memory, some rows of x at a time, and a kernel of ours makes y of them.
#include "matmul_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <warptone/cublaslt.h>

enum {
    SCRATCH_BYTES = 64 << 20,
    CHUNK_UNIT = 128,
    WIDE_BYTES = 256 << 20,
    LEAST_ROWS_F32 = 9,
    LEAST_ROWS_WIDENED = 64,
    LEAST_ROWS_OF_NIBBLES = 33
};
enum { FINISH_COLUMNS = 1024, WIDEN_COLUMNS = 2048 }; // of a block

struct wt__mm_library {
    wt_matmul_config config;
    wt_cublaslt *cublaslt;
    wt_pool *pool; ///< of what follows
    wt_pool_arena *memory[2];
    uintptr_t scratch, wide; ///< taken by the first prepare that needs them
    bool tf32;
};

static const wt_cublaslt_type library_types[] = {
    [WT_MM_F32] = WT_CUBLASLT_F32,      [WT_MM_F16] = WT_CUBLASLT_F16, [WT_MM_BF16] = WT_CUBLASLT_BF16,
    [WT_MM_E4M3] = WT_CUBLASLT_F8_E4M3, [WT_MM_I8] = WT_CUBLASLT_I8,   [WT_MM_I32] = WT_CUBLASLT_I32,
};

static int size_of(int type)
{
    return type == WT_MM_F32 || type == WT_MM_I32 ? 4 : type == WT_MM_F16 || type == WT_MM_BF16 ? 2 : 1;
}

wt_status wt__mm_library_create(const wt_matmul_config *config, wt__mm_library **library)
{
    *library = NULL;
    wt__mm_library *l = calloc(1, sizeof *l);
    if (!l) return wt_fail(WT_ERR_NO_MEMORY, "matmul: no memory for the library's handle");
    l->config = *config;
    wt_status status = wt_cublaslt_create(config->device, config->partition, &l->cublaslt);
    if (status) {
        free(l);
        return status;
    }
    *library = l;
    return WT_OK;
}

void wt__mm_library_destroy(wt__mm_library *library)
{
    if (!library) return;
    wt_cublaslt_destroy(library->cublaslt);
    for (int k = 0; k < 2; k++) wt_pool_arena_destroy(library->memory[k], NULL);
    wt_pool_destroy(library->pool);
    free(library);
}

// ---- which

/// Weights to be made those of a 16-bit x, which fit the memory for that: both of a gated product, else one at a time.
/// From as many rows as it was quicker than the kernels for few (steps of 8B, H200).
static bool is_widened(const wt_mm_args *a)
{
    const int least = a->w_type >= WT_MM_Q8_0 ? WT_MATMUL_SKINNY + 1
                      : a->w_type == WT_MM_U4 ? LEAST_ROWS_OF_NIBBLES
                                              : LEAST_ROWS_WIDENED;
    int most = 0;
    for (int k = 0; k < a->n_parts; k++) most = a->parts[k].rows > most ? a->parts[k].rows : most;
    return (a->x_type == WT_MM_F16 || a->x_type == WT_MM_BF16) && a->w_type != a->x_type && a->m >= least &&
           a->n_batches == 1 && a->columns % 8 == 0 &&
           (int64_t)most * a->columns * 2 * (a->gated ? 2 : 1) <= WIDE_BYTES;
}

/// The same product with part `part`'s weights widened at `wide`, the next part's behind them.
static wt_mm_args widened(const wt_mm_args *a, uintptr_t wide, int part)
{
    wt_mm_args b = *a;
    b.w_type = a->x_type;
    b.row_bytes = 2 * (int64_t)a->columns;
    for (int k = 0; k < a->n_parts; k++) {
        b.parts[k].w_next = b.row_bytes * b.parts[k].rows;
        b.parts[k].w = (const unsigned char *)wide + (k > part ? b.parts[part].rows * b.row_bytes : 0);
        b.parts[k].scales = NULL;
        b.parts[k].tensor_scale = NULL;
    }
    return b;
}

static bool types_fit(const wt_mm_args *a)
{
    const bool f8 = a->x_type == WT_MM_E4M3, i8 = a->x_type == WT_MM_I8;
    if (a->w_type != a->x_type || a->x_type > WT_MM_I8 || a->x_type == WT_MM_E5M2) return false;
    if (!f8 && !i8) return !a->parts[0].scales && (a->y_type == WT_MM_F32 || a->y_type == a->x_type);
    return !a->parts[0].scales || a->scale_columns > a->columns;
}

static bool is_aligned(const wt_mm_args *a)
{
    const int x = size_of(a->x_type), y = size_of(a->y_type);
    bool aligned = (uintptr_t)a->x % 16 == 0 && a->row_bytes % 16 == 0 && a->x_stride * x % 16 == 0;
    aligned &= a->x_batch * x % 16 == 0;
    for (int k = 0; k < a->n_parts; k++) {
        const wt_mm_part *p = &a->parts[k];
        aligned &= (uintptr_t)p->w % 16 == 0 && p->w_next % 16 == 0;
        if (k == 0 || !a->gated)
            aligned &= (uintptr_t)p->y % 16 == 0 && p->y_stride * y % 16 == 0 && p->y_batch * y % 16 == 0;
    }
    return aligned;
}

bool wt__mm_library_takes(const wt_mm_args *a)
{
    if (a->experts || a->offsets || a->m < (a->x_type == WT_MM_F32 ? LEAST_ROWS_F32 : WT_MATMUL_SKINNY + 1))
        return false;
    if (!is_widened(a)) return types_fit(a) && is_aligned(a);
    const wt_mm_args wide = widened(a, 16, 0); // any aligned address
    return types_fit(&wide) && is_aligned(&wide);
}

// ---- how

/// One f32 factor for all of W, which the library applies to fp8 products.
static bool is_scaled_by_library(const wt_mm_args *a)
{
    return a->x_type == WT_MM_E4M3 && a->parts[0].scales && a->scale_rows == INT_MAX && a->scale_type == WT_MM_F32 &&
           a->n_batches == 1;
}

bool wt__mm_library_is_direct(const wt_mm_args *a)
{
    bool direct = !a->activation && !a->gated && !a->x_scales && (a->x_type != WT_MM_I8 || a->y_type == WT_MM_I32);
    for (int k = 0; k < a->n_parts; k++)
        direct &= !a->parts[k].bias && (!a->parts[k].scales || is_scaled_by_library(a));
    return direct;
}

/// Of a gated product in 16 bits both sums are rounded to them, which halves what is written and read again.
static int sum_type(const wt_mm_args *a)
{
    return a->x_type == WT_MM_I8 ? WT_MM_I32 : a->gated && a->y_type == a->x_type ? a->y_type : WT_MM_F32;
}

static int pitch_of(const wt_mm_part *p) { return (p->rows + 7) / 8 * 8; }

/// Rows of x whose sums fit the scratch memory, about as many each time.
static int chunk_of(const wt_mm_args *a, const wt_mm_part *p)
{
    const int64_t row_bytes = (int64_t)pitch_of(p) * size_of(sum_type(a)) * (a->gated ? 2 : 1);
    const int64_t most = SCRATCH_BYTES / row_bytes;
    if (most >= a->m) return a->m;
    if (most < 1) return 1;
    const int n_chunks = (int)((a->m + most - 1) / most), even = (a->m + n_chunks - 1) / n_chunks;
    const int whole = (even + CHUNK_UNIT - 1) / CHUNK_UNIT * CHUNK_UNIT;
    return whole < most ? whole : (int)most;
}

static wt_cublaslt_form form_of(const wt__mm_library *l, const wt_mm_args *a, const wt_mm_part *p, int m)
{
    const bool direct = wt__mm_library_is_direct(a);
    return (wt_cublaslt_form){
        .w = library_types[a->w_type],
        .x = library_types[a->x_type],
        .y = library_types[direct ? a->y_type : sum_type(a)],
        .rows = p->rows,
        .columns = a->columns,
        .m = m,
        .n_batches = direct ? a->n_batches : 1,
        .x_stride = a->x_stride,
        .y_stride = direct ? p->y_stride : pitch_of(p),
        .w_batch = direct ? p->w_next / size_of(a->w_type) : 0,
        .x_batch = direct ? a->x_batch : 0,
        .y_batch = direct ? p->y_batch : 0,
        .add = direct && a->add,
        .tf32 = l->config.tf32 && a->x_type == WT_MM_F32,
        .scaled = direct && is_scaled_by_library(a),
    };
}

static wt_status prepare_part(wt__mm_library *l, const wt_mm_args *a, const wt_mm_part *p)
{
    const int chunk = wt__mm_library_is_direct(a) ? a->m : chunk_of(a, p), rest = a->m % chunk;
    wt_cublaslt_form form = form_of(l, a, p, chunk);
    wt_status status = wt_cublaslt_prepare(l->cublaslt, &form);
    if (status || !rest) return status;
    form = form_of(l, a, p, rest);
    return wt_cublaslt_prepare(l->cublaslt, &form);
}

wt_status wt__mm_library_prepare(wt__mm_library *l, const wt_mm_args *a)
{
    wt_status status = WT_OK;
    if (is_widened(a)) {
        if (!l->wide) status = wt__mm_take_memory(&l->config, WIDE_BYTES, &l->pool, &l->memory[0], &l->wide);
        if (status) return status;
        const wt_mm_args wide = widened(a, l->wide, 0);
        return wt__mm_library_prepare(l, &wide);
    }
    if (!wt__mm_library_is_direct(a) && !l->scratch)
        status = wt__mm_take_memory(&l->config, SCRATCH_BYTES, &l->pool, &l->memory[1], &l->scratch);
    for (int k = 0; k < a->n_parts && !status; k++) status = prepare_part(l, a, &a->parts[k]);
    return status;
}

/// The sums of some rows of a batch, from row `first` on, of a part to scratch memory at `to`.
static wt_status queue_sums(wt__mm_library *l, wt_stream *stream, const wt_mm_args *a, const wt_mm_part *p, int batch,
                            int first, int n, uintptr_t to)
{
    const wt_cublaslt_form form = form_of(l, a, p, n);
    const int64_t x = batch * a->x_batch + first * a->x_stride;
    return wt_cublaslt_enqueue(l->cublaslt, stream, &form, (uintptr_t)p->w + (uintptr_t)(batch * p->w_next),
                               (uintptr_t)a->x + (uintptr_t)(x * size_of(a->x_type)), to, 0);
}

static wt_status queue_chunk(wt__mm_library *l, wt_kernel *finish, wt_stream *stream, const wt_mm_args *a, int part,
                             int batch, int first, int n)
{
    const wt_mm_part *p = &a->parts[part];
    const uintptr_t sums = l->scratch;
    wt_mm_finish_args f = {.args = *a,
                           .sums = (const void *)sums,
                           .sum_type = sum_type(a),
                           .pitch = pitch_of(p),
                           .part = part,
                           .batch = batch,
                           .first = first,
                           .count = n,
                           .whole = p->rows % 8 == 0};
    const uintptr_t second = sums + (uintptr_t)n * (uintptr_t)f.pitch * (uintptr_t)size_of(f.sum_type);
    f.sums1 = (const void *)second;
    wt_status status = queue_sums(l, stream, a, p, batch, first, n, sums);
    if (!status && a->gated) status = queue_sums(l, stream, a, &a->parts[1], batch, first, n, second);
    const wt_launch launch = {
        .grid = {(p->rows + FINISH_COLUMNS - 1) / FINISH_COLUMNS, (n + WT_MM_FINISH_ROWS - 1) / WT_MM_FINISH_ROWS},
        .block = {FINISH_COLUMNS / 8},
        .overlap = true};
    return status ? status : wt_kernel_launch(finish, stream, &launch, &WT_ARG(f), 1);
}

static wt_status queue_part(wt__mm_library *l, wt_kernel *finish, wt_stream *stream, const wt_mm_args *a, int part)
{
    const wt_mm_part *p = &a->parts[part];
    if (wt__mm_library_is_direct(a)) {
        const wt_cublaslt_form form = form_of(l, a, p, a->m);
        return wt_cublaslt_enqueue(l->cublaslt, stream, &form, (uintptr_t)p->w, (uintptr_t)a->x, (uintptr_t)p->y,
                                   (uintptr_t)p->scales);
    }
    wt_status status = WT_OK;
    const int chunk = chunk_of(a, p);
    for (int b = 0; b < a->n_batches; b++)
        for (int i = 0; i < a->m && !status; i += chunk)
            status = queue_chunk(l, finish, stream, a, part, b, i, a->m - i < chunk ? a->m - i : chunk);
    return status;
}

static wt_status queue_widening(wt_kernel *widen, wt_stream *stream, const wt_mm_args *a, const wt_mm_args *wide,
                                int part)
{
    const wt_mm_widen_args f = {.args = *a, .out = (unsigned short *)wide->parts[part].w, .part = part};
    const wt_launch launch = {.grid = {(a->parts[part].rows + WT_MM_WIDEN_ROWS - 1) / WT_MM_WIDEN_ROWS,
                                       (a->columns + WIDEN_COLUMNS - 1) / WIDEN_COLUMNS},
                              .block = {WIDEN_COLUMNS / 8}};
    return wt_kernel_launch(widen, stream, &launch, &WT_ARG(f), 1);
}

/// Part by part in the same memory, both of a gated product behind each other.
static wt_status queue_widened(wt__mm_library *l, const wt__mm_helpers *helpers, wt_stream *stream, const wt_mm_args *a)
{
    wt_status status = WT_OK;
    for (int k = 0; k < (a->gated ? 1 : a->n_parts) && !status; k++) {
        const wt_mm_args wide = widened(a, l->wide, k);
        status = queue_widening(helpers->widen, stream, a, &wide, k);
        if (!status && a->gated) status = queue_widening(helpers->widen, stream, a, &wide, 1);
        if (!status) status = queue_part(l, helpers->finish, stream, &wide, k);
    }
    return status;
}

wt_status wt__mm_library_enqueue(wt__mm_library *l, const wt__mm_helpers *helpers, wt_stream *stream,
                                 const wt_mm_args *a)
{
    if (is_widened(a)) return queue_widened(l, helpers, stream, a);
    wt_status status = WT_OK;
    for (int k = 0; k < (a->gated ? 1 : a->n_parts) && !status; k++)
        status = queue_part(l, helpers->finish, stream, a, k);
    return status;
}
