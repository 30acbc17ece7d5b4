// Products of one vector with quantised weights: which variant of llm_quant.cu a matrix takes, and its launch.
#include "gpu.h"
#include "matrix.h"

#include <stdio.h>
#include <string.h>

enum { OPTION_BYTES = 24, BLOCK_BYTES = 1024 }; // BLOCK_BYTES: of shared memory that the driver keeps

/// Groups that the kernel has: four lanes read 4, 8 or 16 bytes each of a group.
static bool has_group(int weight, int group)
{
    if (weight == WT_MM_U4) return group == 32 || group == 64 || group == 128;
    return weight == WT_MM_I8 ? group == 16 || group == 32 || group == 64 || group == 128 : group == 128;
}

bool wt__llm_is_quant(const wt__linear *w, wt__llm_quant *kind)
{
    const bool grouped = w->scales && (w->nibbles || w->scale_columns < w->weight.shape[1]);
    if (!w->weight.data || wt__row_bytes(w) % 16) return false;
    *kind = (wt__llm_quant){.group = grouped ? w->scale_columns : 0, .scale = WT_MM_F32};
    switch (w->weight.dtype) {
    case WT_DTYPE_Q4_K:
        *kind = (wt__llm_quant){WT_MM_Q4_K, 32, WT_MM_F32};
        return true;
    case WT_DTYPE_F8_E4M3:
        kind->weight = WT_MM_E4M3;
        break;
    case WT_DTYPE_I8:
        kind->weight = WT_MM_I8;
        break;
    case WT_DTYPE_U8:
        kind->weight = WT_MM_U4;
        if (!w->nibbles || !grouped || (!w->both && !w->half_scales)) return false;
        break;
    default:
        return false;
    }
    if (w->both) kind->scale = WT_LLM_SCALE_ZERO;
    if (w->half_scales) kind->scale = WT_MM_F16;
    if (w->half_scales && w->weight.shape[1] / w->scale_columns % 2) return false; // words of two
    return !grouped || has_group(kind->weight, kind->group);
}

// ---- kernels

static bool same(wt__llm_quant a, wt__llm_quant b)
{
    return a.weight == b.weight && a.group == b.group && a.scale == b.scale;
}

static const wt__llm_quant_kernel *find(const wt__gpu *g, wt__llm_quant kind)
{
    for (int k = 0; k < g->n_quants; k++)
        if (same(g->quants[k].kind, kind)) return &g->quants[k];
    return NULL;
}

static wt_status load(wt__gpu *g, const wt__linear *w)
{
    wt__llm_quant kind;
    if (!wt__llm_is_quant(w, &kind) || find(g, kind)) return WT_OK;
    if (g->n_quants == WT__LLM_MAX_QUANTS)
        return wt_fail(WT_ERR_UNSUPPORTED, "llm: matrices of more than %d quantised types", WT__LLM_MAX_QUANTS);
    wt__llm_quant_kernel *q = &g->quants[g->n_quants++];
    char text[3][OPTION_BYTES];
    const char *const options[] = {text[0], text[1], text[2]};
    snprintf(text[0], OPTION_BYTES, "-DWEIGHT=%d", kind.weight);
    snprintf(text[1], OPTION_BYTES, "-DGROUP=%d", kind.group);
    snprintf(text[2], OPTION_BYTES, "-DSCALE=%d", kind.scale);
    q->kind = kind;
    wt_status status = wt_module_create(
        g->device, &(wt_module_config){.name = "kernels/llm/llm_quant.cu", .options = options, .n_options = 3},
        &q->module);
    return status ? status : wt_module_get_kernel(q->module, "llm_quant", &q->kernel);
}

wt_status wt__gpu_load_quants(wt__gpu *g, const wt_llm *llm)
{
    wt_status status = load(g, &llm->head);
    for (int l = 0; l < llm->config.n_layers && !status; l++) {
        const wt__layer *w = &llm->layers[l];
        const wt__linear *all[] = {&w->q, &w->k, &w->v, &w->o, &w->gate, &w->up, &w->down, &w->router};
        for (size_t k = 0; k < sizeof all / sizeof *all && !status; k++) status = load(g, all[k]);
    }
    return status;
}

void wt__gpu_unload_quants(wt__gpu *g)
{
    for (int k = 0; k < g->n_quants; k++) wt_module_destroy(g->quants[k].module);
}

// ---- a launch

typedef struct shape {
    int warps, stages, blocks; ///< of a block that multiply; blocks a processor
    size_t shared_bytes;
} shape;

/// Columns and bytes of a row that a warp multiplies at a time.
static int columns_of(wt__llm_quant kind) { return kind.weight == WT_MM_U4 || kind.weight == WT_MM_Q4_K ? 256 : 128; }
static int piece_of(wt__llm_quant kind) { return kind.weight == WT_MM_Q4_K ? 144 : 128; }

static size_t shared_of(int columns, wt__llm_quant kind, int warps, int stages)
{
    return (size_t)wt_llm_quant_shared(columns, warps, stages, columns_of(kind), piece_of(kind));
}

/// Blocks as small as the pieces of a row are few, with as many stages as there is room for. Two blocks of 8 warps and
/// three stages a processor were faster with int4 and fp8 (378 tok/s of the 8B shape) than one of 16 and four (361),
/// the other way round with Q4_K (a layer 45.6 us, 48.4; H200).
static shape shape_of(const wt__gpu *g, int columns, wt__llm_quant kind)
{
    const size_t there = wt_device_get_info(g->device)->shared_bytes;
    const int n_pieces = (columns + columns_of(kind) - 1) / columns_of(kind);
    const bool is_large = kind.weight == WT_MM_Q4_K;
    shape s = {.warps = is_large ? WT_LLM_QUANT_WARPS : WT_LLM_QUANT_WARPS / 2, .stages = is_large ? 4 : 3};
    while (s.warps > 2 && s.warps / 2 >= n_pieces) s.warps /= 2;
    for (s.blocks = 16 / s.warps; s.blocks > 1; s.blocks--)
        if (shared_of(columns, kind, s.warps, 2) <= (there + BLOCK_BYTES) / (size_t)s.blocks - BLOCK_BYTES) break;
    const size_t room = (there + BLOCK_BYTES) / (size_t)s.blocks - BLOCK_BYTES;
    while (s.stages > 2 && shared_of(columns, kind, s.warps, s.stages) > room) s.stages--;
    while (s.warps > 1 && shared_of(columns, kind, s.warps, s.stages) > room) s.warps /= 2;
    s.shared_bytes = shared_of(columns, kind, s.warps, s.stages);
    return s;
}

/// Boxes of 8 rows of `warps` pieces of a part. Rows of part pieces are left to a warp that copies.
static bool map_of(const wt__gpu *g, const wt_llm_part *part, int64_t row_bytes, wt__llm_quant kind, int warps,
                   wt_mm_map *filled)
{
    const int piece = piece_of(kind);
    const wt_tensor_map_config config = {.data = (uintptr_t)part->weight,
                                         .element_bytes = 1,
                                         .columns = piece,
                                         .rows = part->rows,
                                         .n_matrices = (int)(row_bytes / piece),
                                         .row_bytes = row_bytes,
                                         .matrix_bytes = piece,
                                         .box_rows = 8,
                                         .box_matrices = warps,
                                         .box_bytes = piece == 128 ? 0 : piece};
    wt_tensor_map map;
    if (row_bytes % piece || wt_tensor_map_create(g->device, &config, &map)) return false;
    memcpy(filled, &map, sizeof map);
    return true;
}

wt_status wt__gpu_multiply_quant(const wt__gpu *g, wt_stream *stream, const wt__linear *w,
                                 const wt_llm_matvec_args *args)
{
    wt__llm_quant kind = {0};
    const bool is_quant = wt__llm_is_quant(w, &kind);
    const wt__llm_quant_kernel *q = is_quant ? find(g, kind) : NULL;
    if (!q)
        return wt_fail(WT_ERR_UNSUPPORTED, "llm: no kernel for a matrix of type %s", wt_dtype_name(w->weight.dtype));
    const int columns = (int)w->weight.shape[1], across = kind.group ? columns / kind.group : 0;
    wt_llm_quant_args a = {.m = *args,
                           .row_bytes = (long long)wt__row_bytes(w),
                           .scale_rows = w->scale_rows ? w->scale_rows : 1,
                           .scale_words = kind.scale == WT_MM_F16 ? across / 2 : across};
    if (kind.weight == WT_MM_E4M3 && kind.group) a.scale_words = (columns + kind.group - 1) / kind.group;
    for (int k = 0; k < (args->gated ? 1 : args->n_parts); k++)
        a.n_tiles += args->gated ? (args->parts[k].rows + 7) / 8 : (args->parts[k].rows + 15) / 16;
    const shape s = shape_of(g, columns, kind);
    a.n_stages = s.stages;
    a.has_boxes = true;
    for (int k = 0; k < args->n_parts; k++)
        a.has_boxes &= map_of(g, &args->parts[k], a.row_bytes, kind, s.warps, &a.w[k]);
    const int there = g->n_sms * s.blocks;
    return wt_kernel_launch(q->kernel, stream,
                            &(wt_launch){.grid = {a.n_tiles < there ? a.n_tiles : there},
                                         .block = {32 * (s.warps + WT_LLM_QUANT_HELPERS)},
                                         .shared_bytes = s.shared_bytes,
                                         .overlap = true},
                            &WT_ARG(a), 1);
}
