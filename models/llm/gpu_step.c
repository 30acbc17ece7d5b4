// A step of one token in one launch (kernels/llm_step.cu). What it does is collected from the steps themselves
// (ops_cuda.c): their launches become phases. A model with a launch that has no phase, or with matrices that the kernel
// does not read, keeps the launches: it is decided here, once.
#include "gpu.h"

#include <stdio.h>
#include <string.h>

enum {
    WORKERS = 32 * WT_LLM_STEP_WARPS,
    THREADS = WORKERS + 32,
    TEAM_ROWS = 4,
    FEWEST_STAGES = 3,
    ALIGN = 128,
    PHASES_A_LAYER = 7,
    OPTION_BYTES = 32
};

size_t wt__gpu_step_bytes(const wt_llm *llm)
{
    return sizeof(wt_llm_phase) * (size_t)(PHASES_A_LAYER * llm->config.n_layers + 1);
}

// ---- phases

/// How the rows of a product are dealt. Whole rows where two of them or more are a stage, so many that each team has up
/// to TEAM_ROWS.
static void deal(wt_llm_phase *p)
{
    wt_llm_matvec_args *a = &p->product;
    const long long most = WT_LLM_STEP_STAGE / p->row_bytes; // rows
    p->in_pieces = most < 2;
    if (p->in_pieces && a->warps < WT_LLM_STEP_WARPS / 2) a->warps = WT_LLM_STEP_WARPS / 2;
    while (!p->in_pieces && WT_LLM_STEP_WARPS / a->warps > most) a->warps *= 2;
    p->unit_rows = 2;
    while (!p->in_pieces && 2 * p->unit_rows <= most && 2 * p->unit_rows <= TEAM_ROWS * WT_LLM_STEP_WARPS / a->warps)
        p->unit_rows *= 2;
    const int results = a->gated ? p->unit_rows / 2 : p->unit_rows;
    for (int k = 0; k < (a->gated ? 1 : a->n_parts); k++) p->n_units += (a->parts[k].rows + results - 1) / results;
}

void wt__gpu_collect(wt__phases *phases, wt__llm_kernel kernel, const void *args)
{
    if (kernel == WT__LLM_EMBED) return; // launched before
    wt_llm_phase *phase = &phases->all[phases->n];
    const bool is_product = kernel >= WT__LLM_MATVEC;
    const int type = is_product ? (int)(kernel - WT__LLM_MATVEC) : phases->type;
    if (!phases->n) phases->type = type;
    if ((!is_product && kernel != WT__LLM_ATTEND) || type != phases->type || phases->n == phases->most)
        phases->misfits = true;
    if (phases->misfits) return;
    phases->n++;
    *phase = (wt_llm_phase){.kind = is_product ? WT_LLM_PRODUCT : WT_LLM_ATTEND};
    if (is_product) {
        memcpy(&phase->product, args, sizeof phase->product);
        phase->row_bytes = phase->product.columns * (type == WT_LLM_F32 ? 4ll : 2ll);
        deal(phase);
    } else {
        memcpy(&phase->attend, args, sizeof phase->attend);
    }
}

static bool fits_16(const void *p) { return (uintptr_t)p % 16 == 0; }

/// Rows that lie at 16 bytes.
static bool is_whole(const wt_llm_phase *p)
{
    const wt_llm_matvec_args *a = &p->product;
    bool fits = p->row_bytes % 16 == 0 && fits_16(a->x) && fits_16(a->norm_weight);
    for (int k = 0; k < a->n_parts; k++) fits = fits && fits_16(a->parts[k].weight);
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

static bool has_room(wt__gpu_stepper *step, const wt__gpu *g, const wt_model_config *c)
{
    const size_t there = wt_device_get_info(g->device)->shared_bytes, vector = vector_bytes(g, c);
    const size_t stages =
        vector + WT_LLM_STEP_FIXED < there ? (there - vector - WT_LLM_STEP_FIXED) / WT_LLM_STEP_STAGE : 0;
    step->vector_bytes = (int)vector;
    step->n_stages = stages < WT_LLM_STEP_MAX_STAGES ? (int)stages : WT_LLM_STEP_MAX_STAGES;
    return step->n_stages >= FEWEST_STAGES;
}

// ---- create

static wt_status load(wt__gpu_stepper *step, const wt__gpu *g, const wt_model_config *c, int type)
{
    char text[4][OPTION_BYTES];
    const char *const options[] = {text[0], text[1], text[2], text[3]};
    snprintf(text[0], OPTION_BYTES, "-DD_HEAD=%d", c->d_head);
    snprintf(text[1], OPTION_BYTES, "-DGROUP=%d", c->n_heads / c->n_kv_heads);
    snprintf(text[2], OPTION_BYTES, "-DKV=%d", g->kv_type);
    snprintf(text[3], OPTION_BYTES, "-DWEIGHT_TYPE=%d", type);
    wt_status status = wt_module_create(
        g->device, &(wt_module_config){.name = "kernels/llm_step.cu", .options = options, .n_options = 4},
        &step->module);
    return status ? status : wt_module_get_kernel(step->module, "llm_step", &step->kernel);
}

wt_status wt__gpu_step_open(wt_llm_session *s)
{
    wt__gpu *g = s->gpu;
    wt__gpu_stepper *step = &g->step;
    const wt_model_config *c = &s->llm->config;
    wt__phases phases = {.all = wt__gpu_host(g, step->phases_at), .most = PHASES_A_LAYER * c->n_layers + 1};
    if (wt_device_get_info(g->device)->compute_major < 9 || !has_room(step, g, c)) return WT_OK;
    const int n_tokens = s->n_tokens;
    s->n_tokens = 1;
    wt_status status = wt__llm_collect(s, (float *)(g->io_address + g->logits_at), &phases);
    s->n_tokens = n_tokens;
    if (status || !has_phases(&phases)) return status;
    status = load(step, g, c, phases.type);
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
                                .n_stages = step->n_stages};
    const size_t stages = (size_t)(step->n_stages * WT_LLM_STEP_STAGE);
    return wt_kernel_launch(step->kernel, s->stream,
                            &(wt_launch){.grid = {g->n_sms},
                                         .block = {THREADS},
                                         .shared_bytes = (size_t)step->vector_bytes + stages,
                                         .cooperative = true},
                            &WT_ARG(a), 1);
}
