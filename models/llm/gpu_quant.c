// Products of one vector with quantised weights: which variant of llm_quant.cu a matrix takes, and its launch.
#include "ops_cuda.h"
#include "matrix.h"
#include "quant.h"

#include <stdio.h>
#include <string.h>

enum {
    OPTION_BYTES = 24,
    BLOCK_BYTES = 1024,  ///< of a block's shared memory that the driver keeps
    STATIC_BYTES = 512,  ///< and that it has besides
    BOX_ALIGNMENT = 128, ///< of boxes in it
    MOST_BOX = 256,      ///< elements along a side
    MOST_STAGES = 8,     ///< of a team of all warps
    SHARED_STAGES = 4,   ///< the same of a cluster
    LONG_COLUMNS = 8192, ///< and more are shared by a cluster
};

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
        *kind = (wt__llm_quant){.weight = WT_MM_Q4_K, .group = 32, .scale = WT_MM_F32};
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
    return a.weight == b.weight && a.group == b.group && a.scale == b.scale && a.experts == b.experts;
}

static const wt__llm_quant_kernel *find(const wt__gpu *g, wt__llm_quant kind)
{
    for (int k = 0; k < g->n_quants; k++)
        if (same(g->quants[k].kind, kind)) return &g->quants[k];
    return NULL;
}

/// Columns and bytes of a piece of a row.
static int columns_of(wt__llm_quant kind) { return kind.weight == WT_MM_U4 || kind.weight == WT_MM_Q4_K ? 256 : 128; }
static int piece_of(wt__llm_quant kind) { return kind.weight == WT_MM_Q4_K ? 144 : 128; }
static wt_status load(wt__gpu *g, const wt__linear *w, bool experts)
{
    wt__llm_quant kind;
    if (!wt__llm_is_quant(w, &kind)) return WT_OK;
    kind.experts = experts;
    if (find(g, kind)) return WT_OK;
    if (g->n_quants == WT__LLM_MAX_QUANTS)
        return wt_fail(WT_ERR_UNSUPPORTED, "llm: matrices of more than %d quantised types", WT__LLM_MAX_QUANTS);
    wt__llm_quant_kernel *q = &g->quants[g->n_quants++];
    char text[4][OPTION_BYTES];
    const char *const options[] = {text[0], text[1], text[2], text[3]};
    snprintf(text[0], OPTION_BYTES, "-DWEIGHT=%d", kind.weight);
    snprintf(text[1], OPTION_BYTES, "-DGROUP=%d", kind.group);
    snprintf(text[2], OPTION_BYTES, "-DSCALE=%d", kind.scale);
    snprintf(text[3], OPTION_BYTES, "-DEXPERTS=%d", kind.experts);
    q->kind = kind;
    wt_status status = wt_module_create(
        g->device, &(wt_module_config){.name = "kernels/llm/llm_quant.cu", .options = options, .n_options = 4},
        &q->module);
    if (!status) status = wt_module_get_kernel(q->module, "llm_quant", &q->kernels[0]);
    return status ? status : wt_module_get_kernel(q->module, "llm_quant_2", &q->kernels[1]);
}

wt_status wt__gpu_load_quants(wt__gpu *g, const wt_llm *llm)
{
    wt_status status = load(g, &llm->head, false);
    for (int l = 0; l < llm->config.n_layers && !status; l++) {
        const wt__layer *w = &llm->layers[l];
        const wt__linear *all[] = {&w->q, &w->k, &w->v, &w->o, &w->gate, &w->up, &w->down, &w->router};
        for (size_t k = 0; k < sizeof all / sizeof *all && !status; k++) status = load(g, all[k], false);
        if (w->experts && !status) status = load(g, &w->experts->up, true);
        if (w->experts && !status) status = load(g, &w->experts->down, true);
    }
    return status;
}

void wt__gpu_unload_quants(wt__gpu *g)
{
    for (int k = 0; k < g->n_quants; k++) wt_module_destroy(g->quants[k].module);
}

// ---- a launch

typedef struct shape {
    int team, teams, turns; ///< warps that share a row, how many such, and how often a warp has a piece of it
    int stages, blocks;     ///< blocks a processor
    int cluster;            ///< blocks that share a row
    size_t shared_bytes;
} shape;

/// Does the vector become whole numbers?
static bool has_digits(wt__llm_quant kind)
{
    return kind.weight != WT_MM_E4M3 && !(kind.weight == WT_MM_I8 && kind.group == 16);
}

/// Bytes of the scales of a row, of groups, that come with a stage for a team of warps.
static int scales_of(wt__llm_quant kind, int team)
{
    if (!kind.group || kind.weight == WT_MM_Q4_K) return 0;
    return team * columns_of(kind) / kind.group * (kind.scale == WT_MM_F16 ? 2 : 4);
}

/// Room for those of 8 rows.
static int scale_room(wt__llm_quant kind, int team)
{
    return (8 * scales_of(kind, team) + BOX_ALIGNMENT - 1) / BOX_ALIGNMENT * BOX_ALIGNMENT;
}

static size_t shared_of(wt__llm_quant kind, shape s)
{
    const int columns = WT_LLM_QUANT_WARPS * s.turns * columns_of(kind);
    return (size_t)wt_llm_quant_shared(columns, s.stages, 16 * s.team * piece_of(kind) + 2 * scale_room(kind, s.team),
                                       has_digits(kind));
}

/// As many warps share a row as it has columns for, with as many stages as there is room for in half a processor; where
/// that is too small for two, in a whole one. Two blocks a processor of one launch: 563 tok/s of the 8B shape in int4,
/// one of each of two launches 502 (H200). A long vector is shared by two blocks, each of which makes a half of it
/// ready. Beside attention a little more than half of a processor's memory: two of the launch do not fit.
static shape shape_of(const wt__gpu *g, int columns, wt__llm_quant kind, bool has_norm, bool beside)
{
    const wt_device_info *info = wt_device_get_info(g->device);
    const size_t there = info->shared_bytes;
    shape s = {.team = WT_LLM_QUANT_WARPS,
               .cluster = !has_norm && columns >= LONG_COLUMNS && info->compute_major >= 9 ? 2 : 1};
    const int n = (columns + s.cluster * columns_of(kind) - 1) / (s.cluster * columns_of(kind));
    while (s.team > 1 && s.team / 2 >= n) s.team /= 2;
    s.teams = WT_LLM_QUANT_WARPS / s.team;
    s.turns = (n + s.team - 1) / s.team;
    for (s.blocks = WT_LLM_QUANT_BLOCKS;; s.blocks--) {
        const size_t room = (there + BLOCK_BYTES) / (size_t)s.blocks - BLOCK_BYTES - STATIC_BYTES;
        s.stages = (s.cluster > 1 ? SHARED_STAGES : MOST_STAGES) * s.teams;
        while (s.stages > s.teams && shared_of(kind, s) > room) s.stages -= s.teams;
        if (s.stages > 1 || s.blocks == 1) break;
    }
    s.shared_bytes = shared_of(kind, s);
    if (beside && s.blocks > 1) {
        s.blocks = 1;
        s.shared_bytes = (there + BLOCK_BYTES) / 2;
    }
    return s;
}

/// Boxes of 8 rows of a part and of its scales, or of those of all experts, the first of which it is then. What does
/// not lie in whole pieces is left to lanes that copy.
static bool map_of(const wt__gpu *g, const wt_llm_part *part, const wt_llm_quant_args *a, wt__llm_quant kind, int which,
                   int n_others, wt_mm_map *weights, wt_mm_map *scales)
{
    const int piece = piece_of(kind), of_scales = scales_of(kind, a->team);
    const int rows_apart = n_others ? a->next_rows[which] : 0, scales_apart = n_others ? a->next_scale_rows[which] : 0;
    const int rows_of_scales = (part->rows + a->scale_rows - 1) / a->scale_rows + n_others * scales_apart;
    const wt_tensor_map_config config = {.data = (uintptr_t)part->weight,
                                         .element_bytes = 1,
                                         .columns = piece,
                                         .rows = part->rows + n_others * rows_apart,
                                         .n_matrices = (int)(a->row_bytes / piece),
                                         .row_bytes = a->row_bytes,
                                         .matrix_bytes = piece,
                                         .box_rows = 8,
                                         .box_matrices = a->team,
                                         .box_bytes = piece == 128 ? 0 : piece};
    const wt_tensor_map_config of_scale = {.data = (uintptr_t)part->scales,
                                           .element_bytes = 1,
                                           .columns = 4 * a->scale_words,
                                           .rows = rows_of_scales,
                                           .n_matrices = 1,
                                           .row_bytes = 4 * a->scale_words,
                                           .matrix_bytes = 4ll * a->scale_words * rows_of_scales,
                                           .box_rows = a->scale_pitch ? 8 : 1,
                                           .box_bytes = of_scales};
    wt_tensor_map map;
    if (a->row_bytes % piece || wt_tensor_map_create(g->device, &config, &map)) return false;
    memcpy(weights, &map, sizeof map);
    if (!of_scales) return true;
    if (of_scales % 16 || of_scales > MOST_BOX || a->scale_words % 4 || (a->scale_rows > 1 && a->scale_pitch) ||
        wt_tensor_map_create(g->device, &of_scale, &map))
        return false;
    memcpy(scales, &map, sizeof map);
    return true;
}

/// Where the experts' matrices lie. Returns whether they lie whole rows apart, as boxes want it.
static bool place_experts(const wt_llm *llm, const wt__llm_chosen *of, wt__llm_quant kind, wt_llm_quant_args *a)
{
    const int of_scales = kind.group ? 4 * a->scale_words : 1;
    bool whole = true;
    for (int k = 0; k < a->m.n_parts; k++) {
        const wt__linear *first = of->first[k], *second = of->second[k];
        a->next[k] = wt__llm_expert_stride(llm, first->weight.data, second->weight.data);
        a->next_scales[k] = wt__llm_expert_stride(llm, wt__llm_scales_read(first), wt__llm_scales_read(second));
        a->next_rows[k] = (int)(a->next[k] / a->row_bytes);
        a->next_scale_rows[k] = of_scales ? (int)(a->next_scales[k] / of_scales) : 0;
        whole &= a->next[k] % a->row_bytes == 0 && (!of_scales || a->next_scales[k] % of_scales == 0);
    }
    return whole;
}

/// What a launch is told of matrices like `w`, but where its blocks copy from.
static wt_llm_quant_args args_for(const wt__linear *w, wt__llm_quant kind, shape s, const wt_llm_matvec_args *args)
{
    const int columns = (int)w->weight.shape[1], across = kind.group ? columns / kind.group : 0;
    wt_llm_quant_args a = {.m = *args,
                           .row_bytes = (long long)wt__row_bytes(w),
                           .scale_rows = w->scale_rows ? w->scale_rows : 1,
                           .scale_words = kind.scale == WT_MM_F16 ? across / 2 : across};
    if (kind.weight == WT_MM_E4M3 && kind.group) a.scale_words = (columns + kind.group - 1) / kind.group;
    if (w->both || w->padded) a.scale_words = wt__quant_words(w);
    for (int k = 0; k < (args->gated ? 1 : args->n_parts); k++)
        a.n_tiles += args->gated ? (args->parts[k].rows + 7) / 8 : (args->parts[k].rows + 15) / 16;
    a.team = s.team;
    a.n_teams = s.teams;
    a.n_turns = s.turns;
    a.scale_pitch = a.scale_rows % 8 ? scales_of(kind, s.team) : 0; // else 8 rows share them
    a.scale_bytes = scale_room(kind, s.team);
    a.scale_expected = 2 * (a.scale_pitch ? 8 : 1) * scales_of(kind, s.team);
    a.n_stages = s.stages;
    a.pace = s.cluster > 1 ? 1 : 2;
    while (a.scale_rows > 1 << a.scale_shift) a.scale_shift++;
    a.has_boxes = !kind.group || a.scale_rows == 1 << a.scale_shift;
    return a;
}

static wt_status multiply(const wt_llm_session *session, const wt__linear *w, const wt_llm_matvec_args *args,
                          bool beside, const wt__llm_chosen *chosen, const wt_llm_choose_args *choose)
{
    const wt__gpu *g = session->gpu;
    wt__llm_quant kind = {0};
    const bool is_quant = wt__llm_is_quant(w, &kind);
    kind.experts = chosen;
    const wt__llm_quant_kernel *q = is_quant ? find(g, kind) : NULL;
    if (!q)
        return wt_fail(WT_ERR_UNSUPPORTED, "llm: no kernel for a matrix of type %s", wt_dtype_name(w->weight.dtype));
    const shape s = shape_of(g, (int)w->weight.shape[1], kind, args->norm_weight, beside);
    wt_llm_quant_args a = args_for(w, kind, s, args);
    int n_used = 1, n_others = 0;
    if (chosen) {
        const wt_model_config *c = &session->llm->config;
        n_used = c->n_experts_used;
        n_others = c->n_experts - 1;
        a.choose = *choose;
        a.have_vectors = chosen->have_vectors;
        a.has_boxes &= place_experts(session->llm, chosen, kind, &a);
    }
    for (int k = 0; k < args->n_parts; k++)
        a.has_boxes &= map_of(g, &args->parts[k], &a, kind, k, n_others, &a.w[k], &a.s[k]);
    const int room = g->n_sms * s.blocks / s.cluster / n_used, there = room ? room : 1; // of one expert
    return wt_kernel_launch(q->kernels[s.cluster - 1], session->stream,
                            &(wt_launch){.grid = {s.cluster * n_used * (a.n_tiles < there ? a.n_tiles : there)},
                                         .block = {32 * (WT_LLM_QUANT_WARPS + WT_LLM_QUANT_HELPERS)},
                                         .shared_bytes = s.shared_bytes,
                                         .overlap = true},
                            &WT_ARG(a), 1);
}

wt_status wt__gpu_multiply_quant(const wt_llm_session *s, const wt__linear *w, const wt_llm_matvec_args *args,
                                 bool beside)
{
    return multiply(s, w, args, beside, NULL, NULL);
}

wt_status wt__gpu_multiply_chosen(const wt__pass *p, const wt__llm_chosen *chosen, const wt_llm_matvec_args *args)
{
    const wt_llm_choose_args choose = wt__gpu_choice(p);
    return multiply(p->s, chosen->first[0], args, false, chosen, &choose);
}
