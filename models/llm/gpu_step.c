// A step of one token in one launch (kernels/llm_step.cu). What it does is collected from the steps themselves
// (ops_cuda.c): their launches become phases. A model with a launch that has no phase, or with matrices that the kernel
// does not read, keeps the launches: it is decided here, once.
#include "gpu.h"

#include <matmul_kernel.h>
#include <stdio.h>
#include <string.h>

enum {
    WORKERS = 32 * WT_LLM_STEP_WARPS,
    THREADS = WORKERS + 32,
    TEAM_ROWS = 4,
    MOST_ROWS = 64,
    FEWEST_STAGES = 2,
    ALIGN = 128,
    PHASES_A_LAYER = 7,
    OPTION_BYTES = 32
};

size_t wt__gpu_step_bytes(const wt_llm *llm)
{
    return sizeof(wt_llm_phase) * (size_t)(PHASES_A_LAYER * llm->config.n_layers + 1);
}

// ---- phases

/// Which of the two forms; -1 = there is no room for a third, or the kernel has none of the kind.
static int form_of(wt__phases *phases, wt__llm_quant kind)
{
    for (int k = 0; k < phases->n_forms; k++)
        if (!memcmp(&phases->forms[k], &kind, sizeof kind)) return k;
    if (phases->n_forms == WT__LLM_STEP_FORMS || kind.weight == WT_MM_Q4_K) return -1;
    phases->forms[phases->n_forms] = kind;
    return phases->n_forms++;
}

/// Columns of 16 bytes.
static int chunk_of(int weight)
{
    switch (weight) {
    case WT_MM_F32:
        return 4;
    case WT_MM_F16:
    case WT_MM_BF16:
        return 8;
    case WT_MM_U4:
        return 32;
    default:
        return 16;
    }
}

/// The most warps that share a row and have at most one lane of eight idle, or more where these could not hold the
/// vector; 0 = none could.
static int warps_of(int n_chunks, int chunk)
{
    for (int warps = WT_LLM_STEP_WARPS, most = 0; warps; warps /= 2) {
        const int lanes = 32 * warps, strips = (n_chunks + lanes - 1) / lanes;
        if (strips > WT_LLM_STEP_STRIPS(chunk)) return most;
        if (8 * n_chunks >= 7 * lanes * strips || warps == 1) return warps;
        most = warps;
    }
    return 0;
}

/// How the rows of a product are dealt to n_sms blocks: whole ones, as many as fit into a stage as long as each block
/// has some; long ones in pieces.
static void deal(wt_llm_phase *p, int n_sms)
{
    enum { TEAM_ROWS = WT_LLM_STEP_TEAM_ROWS, WARPS = WT_LLM_STEP_WARPS };
    wt_llm_matvec_args *a = &p->product;
    while (a->warps < WARPS && TEAM_ROWS * WARPS / a->warps * p->row_bytes > WT_LLM_STEP_STAGE) a->warps *= 2;
    int unit = TEAM_ROWS * WARPS / a->warps;
    p->in_pieces = unit * p->row_bytes > WT_LLM_STEP_STAGE;
    const int n_rows = a->gated ? 2 * a->parts[0].rows : a->parts[0].rows + a->parts[1].rows + a->parts[2].rows;
    while (2 * unit <= MOST_ROWS && 2 * unit * p->row_bytes <= WT_LLM_STEP_STAGE && n_rows / (2 * unit) >= n_sms)
        unit *= 2;
    const int results = a->gated ? unit / 2 : unit;
    while (1 << p->unit_shift < results) p->unit_shift++;
    while (1 << p->team_shift < a->warps) p->team_shift++;
    for (int k = 0; k < (a->gated ? 1 : a->n_parts); k++) p->n_units += (a->parts[k].rows + results - 1) / results;
}

/// Where the scales lie that are copied with rows: behind them. Returns the bytes of a stage.
static int place_scales(wt_llm_phase *p)
{
    const int rows = (p->product.gated ? 2 : 1) << p->unit_shift;
    const int rows_bytes = p->in_pieces ? WT_LLM_STEP_STAGE : rows * (int)p->row_bytes;
    p->scale_pitch = p->scale_bytes;
    if (p->in_pieces)
        p->scale_pitch = (int)(p->scale_bytes * (WT_LLM_STEP_STAGE / WT_LLM_STEP_TEAM_ROWS) / p->row_bytes);
    p->scales_at = rows_bytes;
    return rows_bytes + (p->scale_rows > 1 ? 2 : rows) * p->scale_pitch;
}

static void add_product(wt__phases *phases, wt__llm_quant kind, wt_llm_phase p)
{
    p.form = form_of(phases, kind);
    p.product.warps = warps_of((int)(p.row_bytes / 16), chunk_of(kind.weight));
    if (p.form < 0 || !p.product.warps || phases->n == phases->most) {
        phases->misfits = true;
        return;
    }
    deal(&p, phases->n_sms);
    const int bytes = place_scales(&p);
    if (bytes > phases->stage_bytes) phases->stage_bytes = bytes;
    if (p.scale_pitch % 16) phases->misfits = true;
    phases->all[phases->n++] = p;
}

void wt__gpu_collect(wt__phases *phases, wt__llm_kernel kernel, const void *args)
{
    if (kernel >= WT__LLM_MATVEC) {
        const wt__llm_quant kind = {.weight = (int)(kernel - WT__LLM_MATVEC), .scale = WT_MM_F32};
        const wt_llm_matvec_args *a = args;
        add_product(phases, kind,
                    (wt_llm_phase){.kind = WT_LLM_PRODUCT,
                                   .scale_rows = 1,
                                   .row_bytes = a->columns * 16ll / chunk_of(kind.weight),
                                   .product = *a});
    } else if (kernel == WT__LLM_ATTEND && phases->n < phases->most) {
        phases->all[phases->n++] = (wt_llm_phase){.kind = WT_LLM_ATTEND, .attend = *(const wt_llm_attend_args *)args};
    } else if (kernel != WT__LLM_EMBED) { // which is launched before
        phases->misfits = true;
    }
}

void wt__gpu_collect_quant(wt__phases *phases, wt__llm_quant kind, const wt_llm_quant_args *a)
{
    add_product(phases, kind,
                (wt_llm_phase){.kind = WT_LLM_PRODUCT,
                               .scale_rows = a->scale_rows,
                               .scale_bytes = kind.group ? 4 * a->scale_words : 0,
                               .row_bytes = a->row_bytes,
                               .product = a->m});
}

static bool fits_16(const void *p) { return (uintptr_t)p % 16 == 0; }

/// Rows and scales that lie at 16 bytes.
static bool is_whole(const wt_llm_phase *p)
{
    const wt_llm_matvec_args *a = &p->product;
    bool fits = p->row_bytes % 16 == 0 && fits_16(a->x) && fits_16(a->norm_weight);
    for (int k = 0; k < a->n_parts; k++)
        fits = fits && fits_16(a->parts[k].weight) && (!p->scale_bytes || fits_16(a->parts[k].scales));
    return fits;
}

static bool has_phases(const wt__phases *phases)
{
    const int n = phases->n;
    const wt_llm_phase *all = phases->all;
    bool fits = !phases->misfits && n && all[0].kind == WT_LLM_PRODUCT && all[n - 1].kind == WT_LLM_PRODUCT;
    for (int k = 0; k < n && fits; k++)
        fits = all[k].kind == WT_LLM_PRODUCT ? is_whole(&all[k]) : all[k + 1].kind == WT_LLM_PRODUCT;
    return fits;
}

// ---- shared memory

/// Bytes of the widest vector, or of attention.
static size_t vector_bytes(const wt__gpu *g, const wt_model_config *c)
{
    const int columns[] = {c->d_model, c->d_ff, c->n_heads * c->d_head};
    const int teams = WORKERS / WT_LLM_ATTEND_TEAM(c->d_head, g->kv_type);
    size_t bytes = (size_t)wt_llm_attend_shared(c->d_head, g->heads_at_once, teams);
    for (size_t k = 0; k < sizeof columns / sizeof *columns; k++)
        if (sizeof(float) * (size_t)columns[k] > bytes) bytes = sizeof(float) * (size_t)columns[k];
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static bool has_room(wt__gpu_stepper *step, const wt__gpu *g, const wt_model_config *c, int stage_bytes)
{
    const size_t there = wt_device_get_info(g->device)->shared_bytes, vector = vector_bytes(g, c);
    const size_t stages = vector + WT_LLM_STEP_FIXED < there ? there - vector - WT_LLM_STEP_FIXED : 0;
    const int n = (int)(stages / (size_t)stage_bytes);
    step->vector_bytes = (int)vector;
    step->stage_bytes = stage_bytes;
    step->n_stages = n < WT_LLM_STEP_MAX_STAGES ? n : WT_LLM_STEP_MAX_STAGES;
    return step->n_stages >= FEWEST_STAGES;
}

// ---- create

static wt_status load(wt__gpu_stepper *step, const wt__gpu *g, const wt_model_config *c, const wt__phases *phases)
{
    enum { N = 3 + 3 * WT__LLM_STEP_FORMS };
    char text[N][OPTION_BYTES];
    const char *options[N];
    snprintf(text[0], OPTION_BYTES, "-DD_HEAD=%d", c->d_head);
    snprintf(text[1], OPTION_BYTES, "-DGROUP=%d", c->n_heads / c->n_kv_heads);
    snprintf(text[2], OPTION_BYTES, "-DKV=%d", g->kv_type);
    for (int k = 0; k < WT__LLM_STEP_FORMS; k++) {
        const wt__llm_quant *form = &phases->forms[k < phases->n_forms ? k : 0];
        snprintf(text[3 + 3 * k], OPTION_BYTES, "-DTYPE_%d=%d", k, form->weight);
        snprintf(text[4 + 3 * k], OPTION_BYTES, "-DGROUP_%d=%d", k, form->group);
        snprintf(text[5 + 3 * k], OPTION_BYTES, "-DSCALE_%d=%d", k, form->scale);
    }
    for (int k = 0; k < N; k++) options[k] = text[k];
    wt_status status = wt_module_create(
        g->device, &(wt_module_config){.name = "kernels/llm_step.cu", .options = options, .n_options = N},
        &step->module);
    return status ? status : wt_module_get_kernel(step->module, "llm_step", &step->kernel);
}

wt_status wt__gpu_step_open(wt_llm_session *s)
{
    wt__gpu *g = s->gpu;
    wt__gpu_stepper *step = &g->step;
    const wt_model_config *c = &s->llm->config;
    wt__phases phases = {.all = wt__gpu_host(g, step->phases_at),
                         .most = PHASES_A_LAYER * c->n_layers + 1,
                         .stage_bytes = WT_LLM_STEP_STAGE,
                         .n_sms = wt_device_get_info(g->device)->n_sms};
    if (wt_device_get_info(g->device)->compute_major < 9) return WT_OK;
    const int n_tokens = s->n_tokens;
    s->n_tokens = 1;
    wt_status status = wt__llm_collect(s, (float *)(g->io_address + g->logits_at), &phases);
    s->n_tokens = n_tokens;
    if (status || !has_phases(&phases) || !has_room(step, g, c, phases.stage_bytes)) return status;
    status = load(step, g, c, &phases);
    if (!status) status = wt__gpu_push(s, step->phases_at, sizeof *phases.all * (size_t)phases.n);
    if (!status) status = wt_stream_synchronize(s->stream);
    if (!status) step->n_phases = phases.n;
    return status;
}

void wt__gpu_step_close(wt__gpu *g) { wt_module_destroy(g->step.module); }

// ---- a launch

/// Blocks that share the positions of a head's group.
static int n_splits_of(const wt_llm_session *s)
{
    const int groups = s->llm->config.n_heads / s->gpu->heads_at_once, n = s->gpu->n_sms / groups;
    const int most = 2 * s->n_pages < WT_LLM_MAX_PARTS ? 2 * s->n_pages : WT_LLM_MAX_PARTS;
    return n < 1 ? 1 : n < most ? n : most;
}

wt_status wt__gpu_launch_step(const wt_llm_session *s)
{
    const wt__gpu *g = s->gpu;
    const wt__gpu_stepper *step = &g->step;
    const wt_llm_step_args a = {.phases = (const wt_llm_phase *)(g->io_address + step->phases_at),
                                .tokens = (const wt_llm_token *)(g->io_address + g->tokens_at),
                                .arrived = (unsigned *)(g->io_address + step->arrived_at),
                                .n_phases = step->n_phases,
                                .n_splits = n_splits_of(s),
                                .vector_bytes = step->vector_bytes,
                                .n_stages = step->n_stages,
                                .stage_bytes = step->stage_bytes};
    const size_t stages = (size_t)(step->n_stages * step->stage_bytes);
    return wt_kernel_launch(step->kernel, s->stream,
                            &(wt_launch){.grid = {g->n_sms},
                                         .block = {THREADS},
                                         .shared_bytes = (size_t)step->vector_bytes + stages,
                                         .cooperative = true},
                            &WT_ARG(a), 1);
}
