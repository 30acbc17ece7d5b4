// Products of one vector with matrices of 16 bits and quantised ones: which variant of llm_stream.cu or llm_quant.cu a
// matrix takes, and its launch.
#include "gpu.h"
#include "matrix.h"

#include <matmul_kernel.h>
#include <stdio.h>

enum {
    STAGES = 3,
    STREAM_STAGES = 5,
    STREAM_WARPS = 8,
    STREAM_COLUMNS = 4096, ///< of a pass
    STREAM_GROUP = 128,
    OPTION_BYTES = 24,
    BLOCK_BYTES = 1024 ///< of shared memory that the driver keeps
};

/// Groups that llm_quant.cu has: four lanes read 4, 8 or 16 bytes each of a group.
static bool has_group(int weight, int group)
{
    if (weight == WT_MM_U4) return group == 32 || group == 64 || group == 128;
    return weight == WT_MM_I8 ? group == 16 || group == 32 || group == 64 || group == 128 : group == 128;
}

/// How a matrix's weights and scales lie, if it has a kernel for one vector.
static bool kind_of(const wt__linear *w, wt__llm_quant *kind)
{
    const bool grouped = w->scales && (w->nibbles || w->scale_columns < w->weight.shape[1]);
    if (!w->weight.data || wt__row_bytes(w) % 16) return false;
    *kind = (wt__llm_quant){.group = grouped ? w->scale_columns : 0, .scale = WT_MM_F32};
    switch (w->weight.dtype) {
    case WT_DTYPE_F16:
        kind->weight = WT_MM_F16;
        return true;
    case WT_DTYPE_BF16:
        kind->weight = WT_MM_BF16;
        return true;
    case WT_DTYPE_Q4_K:
        *kind = (wt__llm_quant){WT_MM_Q4_K, 32, WT_MM_F32, false};
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

static bool is_plain(wt__llm_quant kind) { return kind.weight == WT_MM_F16 || kind.weight == WT_MM_BF16; }

bool wt__llm_is_quant(const wt__linear *w)
{
    wt__llm_quant kind;
    return kind_of(w, &kind) && !is_plain(kind);
}

static int bits_of(wt__llm_quant kind) { return is_plain(kind) ? 16 : kind.weight == WT_MM_U4 ? 4 : 8; }

/// Columns go through llm_stream.cu in passes, of which all but the last are the same.
static void divide(wt__llm_quant kind, int columns, int *each, int *n_passes)
{
    const int of_stage = 2048 / bits_of(kind), n = (columns + of_stage - 1) / of_stage;
    const int of_pass = STREAM_COLUMNS / of_stage > STREAM_WARPS ? STREAM_COLUMNS / of_stage : STREAM_WARPS;
    *n_passes = (n + of_pass - 1) / of_pass;
    *each = (n + STREAM_WARPS * *n_passes - 1) / (STREAM_WARPS * *n_passes) * of_stage;
}

static size_t stream_shared(wt__llm_quant kind, int each)
{
    const int of_part = is_plain(kind) || kind.weight == WT_MM_E4M3 ? 2 : 1;
    return (size_t)wt_llm_stream_shared(bits_of(kind), of_part, kind.group, each, STREAM_WARPS, STREAM_STAGES);
}

/// Does llm_stream.cu take it? Nibbles with a zero, scales of a row or of 128 columns.
static bool streams(wt__llm_quant kind)
{
    if (kind.weight == WT_MM_Q4_K || kind.scale == WT_MM_F16) return false;
    if (kind.weight == WT_MM_U4) return kind.group == STREAM_GROUP && kind.scale == WT_LLM_SCALE_ZERO;
    return !kind.group || kind.group == STREAM_GROUP;
}

/// The kernel's kind; `centred`: with a LayerNorm before.
static bool choose(const wt__linear *w, bool centred, wt__llm_quant *kind)
{
    if (!kind_of(w, kind)) return false;
    kind->streams = !centred && streams(*kind);
    return kind->streams || !is_plain(*kind);
}

bool wt__llm_has_quant(const wt__linear *w, bool centred)
{
    wt__llm_quant kind;
    return choose(w, centred, &kind);
}

// ---- kernels

static bool same(wt__llm_quant a, wt__llm_quant b)
{
    return a.weight == b.weight && a.group == b.group && a.scale == b.scale && a.streams == b.streams;
}

static const wt__llm_quant_kernel *find(const wt__gpu *g, wt__llm_quant kind)
{
    for (int k = 0; k < g->n_quants; k++)
        if (same(g->quants[k].kind, kind)) return &g->quants[k];
    return NULL;
}

static wt_status load(wt__gpu *g, const wt__linear *w, bool centred)
{
    wt__llm_quant kind;
    if (!choose(w, centred, &kind) || find(g, kind)) return WT_OK;
    if (g->n_quants == WT__LLM_MAX_QUANTS)
        return wt_fail(WT_ERR_UNSUPPORTED, "llm: matrices of more than %d types", WT__LLM_MAX_QUANTS);
    wt__llm_quant_kernel *q = &g->quants[g->n_quants++];
    char text[4][OPTION_BYTES];
    const char *const options[] = {text[0], text[1], text[2], text[3]};
    snprintf(text[0], OPTION_BYTES, "-DWEIGHT=%d", kind.weight);
    snprintf(text[1], OPTION_BYTES, "-DGROUP=%d", kind.group);
    snprintf(text[2], OPTION_BYTES, "-DSCALE=%d", kind.scale);
    snprintf(text[3], OPTION_BYTES, "-DSTAGES=%d", kind.streams ? STREAM_STAGES : STAGES);
    q->kind = kind;
    wt_status status =
        wt_module_create(g->device,
                         &(wt_module_config){.name = kind.streams ? "kernels/llm_stream.cu" : "kernels/llm_quant.cu",
                                             .options = options,
                                             .n_options = 4},
                         &q->module);
    return status ? status : wt_module_get_kernel(q->module, kind.streams ? "llm_stream" : "llm_quant", &q->kernel);
}

wt_status wt__gpu_load_quants(wt__gpu *g, const wt_llm *llm)
{
    const bool centred = llm->norm.bias;
    wt_status status = load(g, &llm->head, centred);
    for (int l = 0; l < llm->config.n_layers && !status; l++) {
        const wt__layer *w = &llm->layers[l];
        const wt__linear *all[] = {&w->q, &w->k, &w->v, &w->o, &w->gate, &w->up, &w->down, &w->router};
        for (size_t k = 0; k < sizeof all / sizeof *all && !status; k++) {
            status = load(g, all[k], false);
            if (!status && centred) status = load(g, all[k], true);
        }
    }
    return status;
}

void wt__gpu_unload_quants(wt__gpu *g)
{
    for (int k = 0; k < g->n_quants; k++) wt_module_destroy(g->quants[k].module);
}

// ---- a launch

/// Words of scales of a row of 128 bytes, as llm_quant.cu's WORDS; -1 of Q4_K.
static int words_of(wt__llm_quant kind)
{
    const int columns = kind.weight == WT_MM_U4 ? 256 : 128;
    if (kind.weight == WT_MM_Q4_K) return -1;
    return !kind.group ? 0 : columns / kind.group / (kind.scale == WT_MM_F16 ? 2 : 1);
}

typedef struct shape {
    int warps, blocks; ///< of a block, of a processor
} shape;

/// 16 warps on a processor, in blocks as small as the pieces of a row are few, or less where the vector leaves no room.
static shape shape_of(const wt__gpu *g, int columns, wt__llm_quant kind, size_t *shared)
{
    static const shape shapes[] = {{2, 8}, {4, 4}, {8, 2}, {16, 1}, {8, 1}, {4, 1}, {2, 1}};
    const int piece = kind.weight == WT_MM_U4 || kind.weight == WT_MM_Q4_K ? 256 : 128;
    const size_t there = wt_device_get_info(g->device)->shared_bytes;
    const int n_pieces = (columns + piece - 1) / piece, wanted = n_pieces < 4 ? 2 : n_pieces < 8 ? 4 : 8;
    shape s = {0, 0};
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        s = shapes[k];
        *shared = (size_t)wt_llm_quant_shared(columns, s.warps, STAGES, piece, words_of(kind));
        if (k < 4 && s.warps < wanted) continue;
        if (*shared <= (there + BLOCK_BYTES) / (size_t)s.blocks - BLOCK_BYTES) break;
    }
    return s;
}

/// Tiles of n_rows of the parts' rows, of each part by itself.
static int tiles_of(const wt_llm_matvec_args *a, int n_rows)
{
    int n = 0;
    for (int k = 0; k < (a->gated ? 1 : a->n_parts); k++) n += (a->parts[k].rows + n_rows - 1) / n_rows;
    return n;
}

static wt_launch launch_of(const wt__gpu *g, wt__llm_quant kind, wt_llm_quant_args *a)
{
    if (kind.streams) {
        const int n = tiles_of(&a->m, WT_LLM_STREAM_TILE);
        divide(kind, a->m.columns, &a->each, &a->n_passes);
        return (wt_launch){.grid = {n < g->n_sms ? n : g->n_sms},
                           .block = {32 * STREAM_WARPS},
                           .shared_bytes = stream_shared(kind, a->each),
                           .overlap = true};
    }
    size_t shared;
    const shape s = shape_of(g, a->m.columns, kind, &shared);
    const int there = g->n_sms * s.blocks;
    a->n_tiles = tiles_of(&a->m, a->m.gated ? 8 : 16);
    return (wt_launch){.grid = {a->n_tiles < there ? a->n_tiles : there},
                       .block = {32 * s.warps},
                       .shared_bytes = shared,
                       .overlap = true};
}

wt_status wt__gpu_multiply_quant(const wt__gpu *g, wt_stream *stream, const wt__linear *w,
                                 const wt_llm_matvec_args *args)
{
    wt__llm_quant kind = {0};
    const bool is_quant = choose(w, args->norm_bias, &kind);
    const wt__llm_quant_kernel *q = is_quant ? find(g, kind) : NULL;
    if (!q)
        return wt_fail(WT_ERR_UNSUPPORTED, "llm: no kernel for a matrix of type %s", wt_dtype_name(w->weight.dtype));
    const int columns = (int)w->weight.shape[1], across = kind.group ? columns / kind.group : 0;
    wt_llm_quant_args a = {.m = *args,
                           .row_bytes = (long long)wt__row_bytes(w),
                           .scale_rows = w->scale_rows ? w->scale_rows : 1,
                           .scale_words = kind.scale == WT_MM_F16 ? across / 2 : across};
    if (kind.weight == WT_MM_E4M3 && kind.group) a.scale_words = (columns + kind.group - 1) / kind.group;
    const wt_launch shape = launch_of(g, kind, &a);
    return wt_kernel_launch(q->kernel, stream, &shape, &WT_ARG(a), 1);
}
