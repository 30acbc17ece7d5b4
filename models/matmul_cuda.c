// Products on a GPU: kernels compiled for their types and shape when first wanted, and their launches. Which takes
// which: matmul_plan.c.
#include "matmul_plan.h"

#include <stdlib.h>
#include <string.h>

enum { GATED_ROWS = 1024 };       ///< from which matmul_wgmma is not slower than the library and matmul_finish
enum { WGMMA, SLICES, N_SLICED }; ///< kernels whose blocks have slices of columns

/// A kernel compiled with some options.
typedef struct variant {
    struct variant *next;
    const char *file, *function;
    char options[WT__MM_MAX_OPTIONS][WT__MM_OPTION_BYTES];
    wt_module *module;
    wt_kernel *kernel;
} variant;

struct wt__mm_cuda {
    wt__mm_site site;
    variant *variants;
    wt__mm_library *library; ///< NULL: not there, or not wanted
    wt_pool *pool;           ///< of what follows
    wt_pool_arena *memory[N_SLICED];
    uintptr_t partial[N_SLICED]; ///< where sums of slices meet, taken by the first prepare that needs it
};

bool wt__mm_has_clusters(const wt_matmul_config *config)
{
    wt_partition_info info = {.fine = false};
    if (config->partition) wt_partition_get_info(config->partition, &info);
    return !info.fine;
}

wt_status wt__mm_cuda_create(const wt_matmul_config *config, int n_sms, wt__mm_cuda **cuda)
{
    wt__mm_cuda *c = calloc(1, sizeof *c);
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "matmul: no memory for a handle");
    c->site = (wt__mm_site){*config, n_sms};
    *cuda = c;
    if (config->no_library || !wt_cublaslt_version() || !wt__mm_has_clusters(config)) return WT_OK;
    return wt__mm_library_create(config, &c->library);
}

void wt__mm_cuda_destroy(wt__mm_cuda *cuda)
{
    if (!cuda) return;
    while (cuda->variants) {
        variant *next = cuda->variants->next;
        wt_module_destroy(cuda->variants->module);
        free(cuda->variants);
        cuda->variants = next;
    }
    wt__mm_library_destroy(cuda->library);
    for (int k = 0; k < N_SLICED; k++) wt_pool_arena_destroy(cuda->memory[k], NULL);
    wt_pool_destroy(cuda->pool);
    free(cuda);
}

// ---- memory

wt_status wt__mm_take_memory(const wt_matmul_config *config, size_t bytes, wt_pool **pool, wt_pool_arena **arena,
                             uintptr_t *address)
{
    wt_partition_info info = {.memory_quota_bytes = 0};
    if (config->partition) wt_partition_get_info(config->partition, &info);
    if (info.memory_quota_bytes && bytes > info.memory_quota_bytes)
        return wt_fail(WT_ERR_QUOTA, "matmul: %zu bytes of scratch memory, the quota of partition %s is %zu", bytes,
                       info.name, info.memory_quota_bytes);
    const size_t all = wt_device_get_info(config->device)->memory_bytes;
    const wt_pool_config of_quota = {.name = "matmul",
                                     .quota_bytes = info.memory_quota_bytes ? 0 : all,
                                     .soft = true,
                                     .partition = config->partition,
                                     .no_eviction = true};
    wt_status status = *pool ? WT_OK : wt_pool_create(config->device, &of_quota, pool);
    if (!status) status = wt_pool_arena_create(*pool, bytes, arena);
    return status ? status : wt_pool_arena_take(*arena, bytes, 0, address);
}

/// Where the sums of slices meet: zeros.
static wt_status take_partial(wt__mm_cuda *c, int of)
{
    const size_t bytes = of == WGMMA ? wt__mm_wgmma_partial_bytes(c->site.n_sms) : wt__mm_slices_partial_bytes();
    void *zeros = calloc(1, bytes);
    wt_stream *stream = NULL;
    if (!zeros) return wt_fail(WT_ERR_NO_MEMORY, "matmul: %zu bytes", bytes);
    wt_status status = wt__mm_take_memory(&c->site.config, bytes, &c->pool, &c->memory[of], &c->partial[of]);
    if (!status) status = wt_stream_create(c->site.config.device, NULL, &stream);
    if (!status) status = wt_pool_arena_upload(c->memory[of], stream, c->partial[of], zeros, bytes);
    if (!status) status = wt_stream_synchronize(stream);
    wt_stream_destroy(stream);
    free(zeros);
    if (!status) return WT_OK;
    wt_pool_arena_destroy(c->memory[of], NULL);
    c->memory[of] = NULL;
    c->partial[of] = 0;
    return status;
}

// ---- kernels, compiled once

static wt_status compile(wt__mm_cuda *cuda, variant *v)
{
    const char *options[WT__MM_MAX_OPTIONS];
    int n = 0;
    while (n < WT__MM_MAX_OPTIONS && v->options[n][0]) {
        options[n] = v->options[n];
        n++;
    }
    const wt_module_config config = {.name = v->file, .options = options, .n_options = n};
    wt_status status = wt_module_create(cuda->site.config.device, &config, &v->module);
    return status ? status : wt_module_get_kernel(v->module, v->function, &v->kernel);
}

static wt_status kernel_of(wt__mm_cuda *cuda, const wt__mm_plan *p, wt_kernel **kernel)
{
    for (const variant *v = cuda->variants; v; v = v->next)
        if (!strcmp(v->file, p->file) && !strcmp(v->function, p->function) &&
            !memcmp(v->options, p->options, sizeof p->options)) {
            *kernel = v->kernel;
            return WT_OK;
        }
    variant *v = calloc(1, sizeof *v);
    if (!v) return wt_fail(WT_ERR_NO_MEMORY, "matmul: no memory for a kernel");
    v->file = p->file;
    v->function = p->function;
    memcpy(v->options, p->options, sizeof p->options);
    wt_status status = compile(cuda, v);
    if (status) {
        wt_module_destroy(v->module);
        free(v);
        return status;
    }
    v->next = cuda->variants;
    cuda->variants = v;
    *kernel = v->kernel;
    return WT_OK;
}

/// Several parts of up to 64 rows of 16 bits are left to matmul_wgmma, which
/// reads them in one launch, and so are norms.
///
/// I8 that needs more than sums too, which finishes them where they are: 48
/// against 60 us for 1024 rows by 4096 x 4096 with scales on both sides
/// (bench_matmul_forms ends, H200); and large gated products of 16 bits.
static bool is_for_library(const wt__mm_cuda *cuda, wt_mm_args *a)
{
    wt__mm_plan p;
    if (!cuda->library || a->two_parts || !wt__mm_library_takes(a)) return false;
    const bool together = a->n_parts > 1 || wt__mm_has_norm(a),
               is_16 = a->w_type == WT_MM_F16 || a->w_type == WT_MM_BF16,
               finishes = a->gated && is_16 && a->m >= GATED_ROWS;
    if (together && is_16 && wt__mm_wgmma_is_few(&cuda->site.config, a)) return !wt__mm_plan_wgmma(&cuda->site, a, &p);
    return (!wt__mm_is_exact(a) && !finishes) || wt__mm_library_is_direct(a) || !wt__mm_plan_wgmma(&cuda->site, a, &p);
}

/// Through the library. Errors: WT_ERR_UNSUPPORTED when it has nothing for a
/// product of that form.
static wt_status enqueue_library(wt__mm_cuda *cuda, wt_stream *stream, const wt_mm_args *a)
{
    static const wt__mm_plan finish = {.file = "kernels/matmul/matmul_finish.cu", .function = "matmul_finish"};
    wt__mm_plan widen;
    wt__mm_plan_widen(a, &widen);
    wt__mm_helpers helpers;
    wt_status status = wt__mm_library_prepare(cuda->library, a);
    if (!status) status = kernel_of(cuda, &finish, &helpers.finish);
    if (!status) status = kernel_of(cuda, &widen, &helpers.widen);
    if (status || !stream) return status;
    return wt__mm_library_enqueue(cuda->library, &helpers, stream, a);
}

/// Boxes of 8 of `n_rows` rows, 128 bytes of each in as many pieces.
static wt_status fill_map(wt_device *device, const void *data, int n_rows, int64_t row_bytes, int64_t bytes,
                          int box_pieces, wt_mm_map *map)
{
    const wt_tensor_map_config config = {.data = (uintptr_t)data,
                                         .element_bytes = 1,
                                         .columns = 128,
                                         .rows = n_rows,
                                         .n_matrices = (int)(bytes / 128),
                                         .row_bytes = row_bytes,
                                         .matrix_bytes = 128,
                                         .box_rows = 8,
                                         .box_matrices = box_pieces};
    wt_tensor_map created;
    wt_status status = wt_tensor_map_create(device, &config, &created);
    if (!status) memcpy(map, &created, sizeof created);
    return status;
}

/// The maps of boxes of W and x.
static wt_status fill_few(wt_device *device, const wt_mm_args *a, int warps, wt_mm_few_args *filled)
{
    memset(filled, 0, sizeof *filled);
    filled->args = *a;
    wt_status status = WT_OK;
    for (int k = 0; k < a->n_parts && !status; k++)
        status = fill_map(device, a->parts[k].w, a->parts[k].rows, a->row_bytes, a->row_bytes, warps, &filled->w[k]);
    const int64_t x_bytes = 2 * (int64_t)a->columns;
    if (status) return status;
    return fill_map(device, a->x, a->two_parts ? 2 * a->m : a->m, 2 * a->x_stride, x_bytes,
                    (int)(warps * x_bytes / a->row_bytes), &filled->x);
}

static wt_status launch(wt__mm_cuda *cuda, wt_stream *stream, wt_kernel *kernel, const wt__mm_plan *p,
                        const wt_mm_args *a)
{
    if (p->few_warps) {
        wt_mm_few_args f;
        wt_status status = fill_few(cuda->site.config.device, a, p->few_warps, &f);
        return status ? status : wt_kernel_launch(kernel, stream, &p->launch, &WT_ARG(f), 1);
    }
    if (p->n_slices) {
        wt_mm_slices_args s;
        wt__mm_slices_fill(a, p->n_slices, cuda->partial[SLICES], &s);
        return wt_kernel_launch(kernel, stream, &p->launch, &WT_ARG(s), 1);
    }
    if (!p->wgmma.columns) return wt_kernel_launch(kernel, stream, &p->launch, &WT_ARG(*a), 1);
    wt_mm_wgmma_args w;
    wt_status status = wt__mm_wgmma_fill(cuda->site.config.device, a, &p->wgmma, cuda->partial[WGMMA], &w);
    return status ? status : wt_kernel_launch(kernel, stream, &p->launch, &WT_ARG(w), 1);
}

int wt__mm_cuda_norms(const wt__mm_cuda *cuda, const wt_mm_args *args)
{
    wt_mm_args a = *args;
    const int squares = wt__mm_squares_of(&cuda->site, &a);
    const wt_mm_part *y = &a.parts[0];
    if (!squares || (a.x_squares && a.columns % squares)) return 0;
    const bool fits = a.n_parts == 1 && a.y_type == WT_MM_F32 && y->rows % squares == 0 && y->y_stride % 4 == 0 &&
                      ((uintptr_t)y->y | (uintptr_t)a.norm_weight | (uintptr_t)a.normed) % 16 == 0;
    return a.norm_weight && !fits ? 0 : squares;
}

wt_status wt__mm_cuda_enqueue(wt__mm_cuda *cuda, wt_stream *stream, const wt_mm_args *args)
{
    wt_mm_args a = *args;
    wt__mm_plan p;
    wt_kernel *kernel;
    if (wt__mm_has_norm(&a) && !wt__mm_cuda_norms(cuda, &a))
        return wt_fail(WT_ERR_UNSUPPORTED, "matmul: a norm beside a product that has none (wt_matmul_norms)");
    if (is_for_library(cuda, &a)) {
        wt_status status = enqueue_library(cuda, stream, &a);
        if (status != WT_ERR_UNSUPPORTED) return status;
    }
    wt__mm_choose(&cuda->site, &a, &p);
    wt_status status = kernel_of(cuda, &p, &kernel);
    if (!status && wt__mm_wgmma_has_partial(&p.wgmma) && !cuda->partial[WGMMA]) status = take_partial(cuda, WGMMA);
    if (!status && p.n_slices > 1 && !cuda->partial[SLICES]) status = take_partial(cuda, SLICES);
    return status || !stream ? status : launch(cuda, stream, kernel, &p, &a);
}

wt_status wt__mm_cuda_quantize(wt__mm_cuda *cuda, wt_stream *stream, const wt_mm_quantize_args *args)
{
    const wt__mm_plan p = {.file = "kernels/matmul/matmul_quantize.cu",
                           .function = args->out_type == WT_MM_E2M1 ? "matmul_quantize_e2m1" : "matmul_quantize",
                           .launch = {.grid = {args->m}, .block = {256}}};
    wt_kernel *kernel;
    wt_status status = kernel_of(cuda, &p, &kernel);
    return status ? status : wt_kernel_launch(kernel, stream, &p.launch, &WT_ARG(*args), 1);
}

wt_status wt__mm_cuda_repack(wt__mm_cuda *cuda, wt_stream *stream, const wt_mm_repack_args *args)
{
    const int64_t n_blocks = ((int64_t)args->rows * args->columns / 16 + 255) / 256;
    const wt__mm_plan p = {.file = "kernels/matmul/matmul_repack.cu",
                           .function = "matmul_repack",
                           .launch = {.grid = {n_blocks < 1 << 16 ? (int)n_blocks : 1 << 16}, .block = {256}}};
    wt_kernel *kernel;
    wt_status status = kernel_of(cuda, &p, &kernel);
    return status ? status : wt_kernel_launch(kernel, stream, &p.launch, &WT_ARG(*args), 1);
}

const char *wt__mm_cuda_kernel(wt__mm_cuda *cuda, const wt_mm_args *args)
{
    wt_mm_args a = *args;
    wt__mm_plan p;
    if (is_for_library(cuda, &a) && !wt__mm_library_prepare(cuda->library, &a)) return "library";
    wt__mm_choose(&cuda->site, &a, &p);
    return p.function;
}
