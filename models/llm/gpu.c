// A session's memory, kernels and exchange with the host on a GPU.
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOGITS_ROWS = 16,
    ALIGN = 256,
    MAX_EXPERTS = 1024,
    MAX_FLASH_HEAD = 256,
    ATTEND_BESIDE = 4 ///< heads of a block of llm_attend_one beside which there is room for a product's
};

// ---- kernels

static const struct {
    const char *file;
    int first, n;
} modules[WT__N_LLM_MODULES] = {{"kernels/llm/llm_token.cu", WT__LLM_EMBED, WT__LLM_PLACE},
                                {"kernels/llm/llm_place.cu", WT__LLM_PLACE, 1},
                                {"kernels/llm/llm_attend.cu", WT__LLM_ATTEND, 1},
                                {"kernels/llm/llm_pages.cu", WT__LLM_COPY_PAGE, 2},
                                {"kernels/llm/llm_flash.cu", WT__LLM_FLASH, 1},
                                {"kernels/llm/llm_attend_16.cu", WT__LLM_ATTEND_16, 4},
                                {"kernels/llm/llm_attend_one.cu", WT__LLM_ATTEND_ONE, 4},
                                {"kernels/llm/llm_matvec.cu", WT__LLM_MATVEC, 3},
                                {"kernels/llm/llm_stream.cu", WT__LLM_STREAM, 8},
                                {"kernels/llm/llm_experts.cu", WT__LLM_EXPERTS, 6}};

static const char *const names[WT__N_LLM_KERNELS] = {[WT__LLM_EMBED] = "llm_embed",
                                                     [WT__LLM_NORM] = "llm_norm",
                                                     [WT__LLM_NORM_MANY] = "llm_norm_many",
                                                     [WT__LLM_CHOOSE] = "llm_choose",
                                                     [WT__LLM_ROUTE] = "llm_route",
                                                     [WT__LLM_GROUP] = "llm_group",
                                                     [WT__LLM_GATHER] = "llm_gather",
                                                     [WT__LLM_MIX] = "llm_mix",
                                                     [WT__LLM_PICK] = "llm_pick",
                                                     [WT__LLM_PLACE] = "llm_place",
                                                     [WT__LLM_ATTEND] = "llm_attend",
                                                     [WT__LLM_COPY_PAGE] = "llm_copy_page",
                                                     [WT__LLM_SHIFT] = "llm_shift",
                                                     [WT__LLM_FLASH] = "llm_flash",
                                                     [WT__LLM_ATTEND_16] = "llm_attend_16_1",
                                                     [WT__LLM_ATTEND_16 + 1] = "llm_attend_16_2",
                                                     [WT__LLM_ATTEND_16 + 2] = "llm_attend_16_4",
                                                     [WT__LLM_ATTEND_16 + 3] = "llm_attend_16_8",
                                                     [WT__LLM_ATTEND_ONE] = "llm_attend_one_1",
                                                     [WT__LLM_ATTEND_ONE + 1] = "llm_attend_one_2",
                                                     [WT__LLM_ATTEND_ONE + 2] = "llm_attend_one_4",
                                                     [WT__LLM_ATTEND_ONE + 3] = "llm_attend_one_8",
                                                     [WT__LLM_MATVEC] = "llm_matvec_f32",
                                                     [WT__LLM_MATVEC + 1] = "llm_matvec_f16",
                                                     [WT__LLM_MATVEC + 2] = "llm_matvec_bf16",
                                                     [WT__LLM_STREAM] = "llm_stream_f16",
                                                     [WT__LLM_STREAM + 1] = "llm_stream_bf16",
                                                     [WT__LLM_STREAM + 2] = "llm_stream_short_f16",
                                                     [WT__LLM_STREAM + 3] = "llm_stream_short_bf16",
                                                     [WT__LLM_STREAM + 4] = "llm_stream_awaited_f16",
                                                     [WT__LLM_STREAM + 5] = "llm_stream_awaited_bf16",
                                                     [WT__LLM_STREAM + 6] = "llm_stream_half_f16",
                                                     [WT__LLM_STREAM + 7] = "llm_stream_half_bf16",
                                                     [WT__LLM_EXPERTS] = "llm_gates_f16",
                                                     [WT__LLM_EXPERTS + 1] = "llm_gates_bf16",
                                                     [WT__LLM_EXPERTS + 2] = "llm_downs_f16",
                                                     [WT__LLM_EXPERTS + 3] = "llm_downs_bf16",
                                                     [WT__LLM_EXPERTS + 4] = "llm_gates_half_f16",
                                                     [WT__LLM_EXPERTS + 5] = "llm_gates_half_bf16"};

/// As llm_attend.cu: the largest divisor of the heads that share keys and values, up to 8.
static int heads_at_once(int group)
{
    int n = group < 8 ? group : 8;
    while (group % n) n--;
    return n;
}

/// Of few tokens, by llm_attend_16.cu.
static bool attends_on_tensor_cores(const wt__gpu *g, const wt_model_config *c)
{
    return wt_device_get_info(g->device)->compute_major >= 9 && g->kv_type != WT_LLM_F32 &&
           (c->d_head == 64 || c->d_head == 128) && c->n_heads / c->n_kv_heads <= WT_LLM_ATTEND_ROWS;
}

static wt_status load_kernels(wt__gpu *g, const wt_model_config *c)
{
    const wt_device_info *info = wt_device_get_info(g->device);
    g->flash_by_wgmma = info->compute_major == 9 && !info->compute_minor && (c->d_head == 64 || c->d_head == 128) &&
                        (g->kv_type == WT_LLM_F16 || g->kv_type == WT_LLM_BF16);
    char head[32], group[32], type[32];
    snprintf(head, sizeof head, "-DD_HEAD=%d", c->d_head);
    snprintf(group, sizeof group, "-DGROUP=%d", c->n_heads / c->n_kv_heads);
    snprintf(type, sizeof type, "-DKV=%d", g->kv_type);
    const char *const cache[] = {head, group, type};
    wt_status status = WT_OK;
    for (int m = 0; m < WT__N_LLM_MODULES && !status; m++) {
        const bool attend = modules[m].first >= WT__LLM_PLACE && modules[m].first < WT__LLM_MATVEC;
        const char *file = modules[m].file;
        if (modules[m].first == WT__LLM_FLASH) {
            if (!g->kv_type || c->d_head % 16 || c->d_head > MAX_FLASH_HEAD) continue;
            if (g->flash_by_wgmma) file = "kernels/llm/llm_flash_wgmma.cu";
        }
        const bool on_tensor_cores = modules[m].first == WT__LLM_ATTEND_16 || modules[m].first == WT__LLM_ATTEND_ONE;
        if (on_tensor_cores && !attends_on_tensor_cores(g, c)) continue;
        if (modules[m].first == WT__LLM_EXPERTS && !c->n_experts) continue;
        status = wt_module_create(g->device,
                                  &(wt_module_config){.name = file, .options = cache, .n_options = attend ? 3 : 0},
                                  &g->modules[m]);
        for (int k = modules[m].first; k < modules[m].first + modules[m].n && !status; k++)
            status = wt_module_get_kernel(g->modules[m], names[k], &g->kernels[k]);
    }
    return status;
}

// ---- memory

static void *lay(uintptr_t base, size_t *at, size_t bytes)
{
    void *here = base ? (void *)(base + *at) : NULL;
    *at += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return here;
}

/// What stays on the device, at `base`, or with 0 how many bytes it takes.
static size_t lay_out(wt_llm_session *s, uintptr_t base)
{
    const wt_model_config *c = &s->llm->config;
    const size_t n = sizeof(float) * (size_t)s->n_batch, q = (size_t)c->n_heads * (size_t)c->d_head;
    const size_t kv = (size_t)c->n_kv_heads * (size_t)c->d_head, half = (size_t)c->rope.n_dims / 2;
    const size_t used = (size_t)c->n_experts_used, experts = used * (size_t)c->d_ff_expert;
    const size_t ff = (size_t)c->d_ff > experts ? (size_t)c->d_ff : experts;
    const size_t cache = wt__cache_bytes(s, s->pool.n);
    size_t at = 0;
    s->x = lay(base, &at, n * (size_t)c->d_model);
    s->n = lay(base, &at, n * (size_t)c->d_model);
    s->q = lay(base, &at, n * q);
    s->k = lay(base, &at, n * kv);
    s->v = lay(base, &at, n * kv);
    s->a = lay(base, &at, n * q);
    s->up = lay(base, &at, n * ff);
    s->routes = lay(base, &at, n * (size_t)c->n_experts);
    s->chosen = lay(base, &at, n * used);
    s->shares = lay(base, &at, n * used);
    s->cosines = lay(base, &at, n * half);
    s->sines = lay(base, &at, n * half);
    s->gpu->offsets = lay(base, &at, sizeof(int) * (size_t)(c->n_experts + 1));
    s->gpu->slots = lay(base, &at, n * used);
    s->gpu->grouped = lay(base, &at, n * used * (size_t)c->d_model);
    s->gpu->mixed = lay(base, &at, n * used * (size_t)c->d_model);
    s->gpu->squares = lay(base, &at, n * (size_t)(c->d_model / 16 + 1));
    s->keys = lay(base, &at, cache);
    s->values = lay(base, &at, cache);
    return at;
}

static size_t next_at(wt__gpu *g, size_t bytes)
{
    const size_t at = g->io_bytes;
    g->io_bytes += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return at;
}

static void lay_out_io(wt_llm_session *s)
{
    const wt_model_config *c = &s->llm->config;
    wt__gpu *g = s->gpu;
    const size_t n_sms = (size_t)wt_device_get_info(g->device)->n_sms;
    const size_t pieces = (size_t)(g->heads_at_once * c->d_head / WT_LLM_PIECE(c->d_head));
    g->n_logits = s->n_batch < LOGITS_ROWS ? s->n_batch : LOGITS_ROWS;
    if (g->n_logits < s->n_sequences) g->n_logits = s->n_sequences;
    g->io_bytes = 0;
    g->tokens_at = next_at(g, sizeof(wt_llm_token) * (size_t)s->n_batch);
    g->frequencies_at = next_at(g, sizeof(float) * (size_t)s->n_sequences * (size_t)c->rope.n_dims / 2);
    g->pages_at = next_at(g, sizeof(int32_t) * (size_t)s->n_pages * (size_t)s->n_sequences);
    g->arrived_at = next_at(g, sizeof(int) * (size_t)s->n_batch * (size_t)c->n_heads);
    g->step_at = next_at(g, sizeof(int));
    g->best_at = next_at(g, sizeof(float) * 4 * WT_LLM_PICK_BLOCKS * (size_t)g->n_logits);
    g->chosen_at = next_at(g, sizeof(int32_t) * WT_LLM_MAX_CHOSEN);
    g->draws_at = next_at(g, sizeof(wt_llm_draw) * (size_t)g->n_logits);
    g->odds_at = next_at(g, sizeof(wt_llm_odds) * (size_t)g->n_logits);
    g->messages_at =
        next_at(g, sizeof(float) * WT_LLM_MESSAGE * pieces * n_sms * WT_LLM_ATTEND_BLOCKS(g->heads_at_once, c->d_head));
    g->logits_at = next_at(g, sizeof(float) * (size_t)g->n_logits * (size_t)c->vocab_size);
}

wt_status wt__gpu_push(wt_llm_session *s, size_t at, size_t size_bytes)
{
    if (!size_bytes) return WT_OK;
    return wt_pool_upload(s->gpu->pool, s->gpu->io, s->stream, at, wt__gpu_host(s->gpu, at), size_bytes);
}

wt_status wt__gpu_push_tables(wt_llm_session *s)
{
    return wt__gpu_push(s, s->gpu->frequencies_at, s->gpu->arrived_at - s->gpu->frequencies_at);
}

/// Counters zero.
static wt_status prepare_io(wt_llm_session *s)
{
    wt__gpu *g = s->gpu;
    memset(wt__gpu_host(g, 0), 0, g->io_bytes);
    s->tokens = wt__gpu_host(g, g->tokens_at);
    s->frequencies = wt__gpu_host(g, g->frequencies_at);
    s->logits = wt__gpu_host(g, g->logits_at);
    s->pages = wt__gpu_host(g, g->pages_at);
    g->arrived = (int *)(g->io_address + g->arrived_at);
    wt_status status = wt__gpu_push(s, 0, g->logits_at);
    return status ? status : wt_stream_synchronize(s->stream);
}

static wt_status take_memory(wt_llm_session *s)
{
    wt__gpu *g = s->gpu;
    uintptr_t base;
    lay_out_io(s);
    const size_t bytes = lay_out(s, 0);
    g->pool = s->memory_pool;
    wt_status status = wt__llm_fits(g->pool, "logits", g->io_bytes);
    if (!status) status = wt__llm_arena(g->pool, "keys, values and activations", bytes, &g->arena, &base);
    if (status) return status;
    lay_out(s, base);
    const wt_pool_request request = {.size_bytes = g->io_bytes, .no_evict = true};
    status = wt_pool_allocate(g->pool, &request, s->stream, &g->io);
    if (!status) status = wt_pool_access(g->pool, g->io, s->stream, &g->io_address);
    if (!status) status = wt_buffer_create(g->device, WT_MEMORY_PINNED, g->io_bytes, &g->host);
    if (!status) status = wt_buffer_create(g->device, WT_MEMORY_MAPPED, sizeof(wt_llm_choice) * WT_LLM_RING, &g->ring);
    if (!status) status = prepare_io(s);
    return status ? status : wt__gpu_draw_open(s);
}

// ---- create

static int type_of(wt_dtype dtype)
{
    return dtype == WT_DTYPE_F16       ? WT_LLM_F16
           : dtype == WT_DTYPE_BF16    ? WT_LLM_BF16
           : dtype == WT_DTYPE_F8_E4M3 ? WT_LLM_E4M3
                                       : WT_LLM_F32;
}

static wt_status check(const wt_llm_session_config *config)
{
    if (config->partition && wt_partition_device(config->partition) != config->device)
        return wt_fail(WT_ERR_BAD_ARG, "llm: the partition belongs to another device");
    if (config->resident && config->resident->device != config->device)
        return wt_fail(WT_ERR_BAD_ARG, "llm: the weights lie on another device");
    return WT_OK;
}

/// Vectors lie in shared memory as floats, and a thread has an expert.
static wt_status check_widths(const wt_model_config *c, const wt_device_info *info)
{
    const int q = c->n_heads * c->d_head;
    const int widest = c->d_ff > q ? c->d_ff > c->d_model ? c->d_ff : c->d_model : q > c->d_model ? q : c->d_model;
    const int most = (int)((info->shared_bytes - 1024) / sizeof(float));
    if (widest > most)
        return wt_fail(WT_ERR_UNSUPPORTED, "llm: rows of %d, want at most %d on %s", widest, most, info->name);
    if (c->n_experts > MAX_EXPERTS)
        return wt_fail(WT_ERR_UNSUPPORTED, "llm: %d experts, want at most %d", c->n_experts, MAX_EXPERTS);
    return WT_OK;
}

/// One distance leads from an expert's matrices to the next one's.
static wt_status check_experts(const wt_llm *llm, int l)
{
    const wt__expert *all = llm->layers[l].experts;
    for (int e = 1; all && e < llm->config.n_experts; e++)
        if (!wt__llm_alike(&all[e].gate, &all->gate) || !wt__llm_alike(&all[e].up, &all->up) ||
            !wt__llm_alike(&all[e].down, &all->down))
            return wt_fail(WT_ERR_UNSUPPORTED, "llm: layer %d has experts of two types", l);
    return WT_OK;
}

static wt_status check_matrices(const wt_llm *llm)
{
    for (int l = 0; l < llm->config.n_layers; l++) {
        const wt__layer *w = &llm->layers[l];
        const wt__linear *gate = w->experts ? &w->experts->gate : &w->gate, *up = w->experts ? &w->experts->up : &w->up;
        const wt__linear *all[] = {&w->q, &w->k, &w->v, &w->o, up, w->experts ? &w->experts->down : &w->down};
        if (gate->weight.data && !wt__llm_alike(gate, up))
            return wt_fail(WT_ERR_UNSUPPORTED, "llm: layer %d has gate and up of two types", l);
        const wt_status status = check_experts(llm, l);
        if (status) return status;
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            if (wt__llm_scaling(all[k]) == WT_SCALING_BLOCK &&
                (all[k]->scale_rows != 128 ||
                 (all[k]->scale_columns != 128 && all[k]->scale_columns < all[k]->weight.shape[1])))
                return wt_fail(WT_ERR_UNSUPPORTED, "llm: layer %d has scales of blocks of %d x %d, want 128 x 128", l,
                               all[k]->scale_rows, all[k]->scale_columns);
    }
    return WT_OK;
}

wt_status wt__gpu_create(wt_llm_session *s, const wt_llm *llm, const wt_llm_session_config *config)
{
    wt_status status = check(config);
    if (!status) status = check_widths(&llm->config, wt_device_get_info(config->device));
    if (!status) status = check_matrices(llm);
    if (status) return status;
    wt__gpu *g = s->gpu = calloc(1, sizeof *g);
    if (!g) return wt_fail(WT_ERR_NO_MEMORY, "llm: session");
    wt_partition_info info = {.n_sms = wt_device_get_info(config->device)->n_sms};
    if (config->partition) wt_partition_get_info(config->partition, &info);
    g->device = config->device;
    g->n_sms = g->own_sms = info.n_sms;
    g->generation = info.generation;
    g->kv_type = type_of(config->kv_type);
    const int group = llm->config.n_heads / llm->config.n_kv_heads;
    g->heads_at_once = heads_at_once(group);
    g->heads_of_one = group % ATTEND_BESIDE ? g->heads_at_once : ATTEND_BESIDE;
    g->resident = config->resident;
    g->owns_resident = !config->resident;
    if (g->owns_resident)
        status = wt_llm_resident_create(
            llm, &(wt_llm_resident_config){.device = config->device, .partition = config->partition}, &g->resident);
    if (status) return status;
    s->llm = &g->resident->llm;
    status = load_kernels(g, &llm->config);
    if (!status) status = wt__gpu_load_quants(g, s->llm);
    if (!status)
        status =
            wt_matmul_create(&(wt_matmul_config){.device = config->device, .partition = config->partition}, &g->matmul);
    return status ? status : take_memory(s);
}

void wt__gpu_destroy(wt_llm_session *s)
{
    wt__gpu *g = s->gpu;
    if (!g) return;
    wt_status status = s->stream ? wt_stream_synchronize(s->stream) : WT_OK;
    wt__gpu_forget(g);
    wt__gpu_draw_close(s);
    if (g->io_address) status = wt_pool_release_access(g->pool, g->io, s->stream);
    if (g->io.slot || g->io.generation) status = wt_pool_free(g->pool, g->io, s->stream);
    wt_pool_arena_destroy(g->arena, NULL);
    (void)status; // nothing of it is left in any case
    wt_buffer_destroy(g->host);
    wt_buffer_destroy(g->ring);
    wt_matmul_destroy(g->matmul);
    for (int m = 0; m < WT__N_LLM_MODULES; m++) wt_module_destroy(g->modules[m]);
    wt__gpu_unload_quants(g);
    if (g->owns_resident) wt_llm_resident_destroy(g->resident);
    free(g);
}

int wt__gpu_n_splits(const wt_llm_session *s, int n_tokens)
{
    const wt_model_config *c = &s->llm->config;
    const bool alike = s->exact_guesses && n_tokens <= WT__LLM_ALIKE; // whichever processors a step borrows
    const int n_sms = alike ? s->gpu->own_sms : s->gpu->n_sms, heads = s->gpu->heads_at_once;
    const int there = n_sms * WT_LLM_ATTEND_BLOCKS(heads, c->d_head);
    const int n = there / (c->n_heads / heads * (alike ? WT__LLM_ALIKE : n_tokens));
    const int most = 2 * s->n_pages < WT_LLM_MAX_PARTS ? 2 * s->n_pages : WT_LLM_MAX_PARTS;
    return n < 1 ? 1 : n < most ? n : most;
}

wt_status wt__gpu_run(wt_llm_session *s, int n_layers, float *logits, int n_logits, bool leads)
{
    wt__gpu *g = s->gpu;
    const size_t bytes = sizeof(float) * (size_t)n_logits * (size_t)s->llm->config.vocab_size;
    wt_status status = wt__gpu_push(s, g->tokens_at, sizeof(wt_llm_token) * (size_t)s->n_tokens);
    if (!status) status = wt__gpu_push_tables(s);
    if (!status)
        status = n_layers == s->llm->config.n_layers && n_logits == s->n_tokens
                     ? wt__gpu_queue_batch(s, WT__STEP_LOGITS)
                     : wt__llm_forward(s, n_layers, (float *)(g->io_address + g->logits_at), n_logits);
    g->logits_away = false;
    if (!status && n_logits) status = wt_pool_download(g->pool, g->io, s->stream, g->logits_at, logits, bytes);
    if (!status && leads && s->llm->config.n_experts)
        status = wt_pool_download(g->pool, g->io, s->stream, g->tokens_at, s->tokens,
                                  sizeof(wt_llm_token) * (size_t)s->n_tokens);
    return status;
}

/// What else the step's end reads is there; the chosen tokens come back.
static wt_status verify(wt_llm_session *s, wt__step_kind kind)
{
    wt__gpu *g = s->gpu;
    const size_t bytes = sizeof(wt_llm_token) * (size_t)s->n_tokens;
    wt_status status = wt__gpu_push(s, g->tokens_at, bytes);
    if (!status) status = wt__gpu_push_tables(s);
    if (!status) status = wt__gpu_queue_batch(s, kind);
    return status ? status : wt_pool_download(g->pool, g->io, s->stream, g->tokens_at, s->tokens, bytes);
}

wt_status wt__gpu_verify_greedy(wt_llm_session *s) { return verify(s, WT__STEP_GREEDY); }

wt_status wt__gpu_verify_drawn(wt_llm_session *s, const wt_sampler *sampler, const int32_t *ids, int first)
{
    wt_status status = wt__gpu_draw_guesses(s, sampler, ids, first);
    if (!status) status = verify(s, WT__STEP_DRAWN);
    if (status) s->gpu->serials[s->sequence] = 0; // what was counted there is not known
    return status;
}

wt_status wt__gpu_fetch_logits(const wt_llm_session *s)
{
    wt__gpu *g = s->gpu;
    if (!g->logits_away) return WT_OK;
    wt_status status = wt_pool_download(g->pool, g->io, s->stream, g->logits_at, s->logits,
                                        sizeof(float) * (size_t)s->llm->config.vocab_size);
    if (!status) status = wt_stream_synchronize(s->stream);
    g->logits_away = status != WT_OK;
    return status;
}

/// How each row chooses; not *drawn when all want the most probable token and no more.
static wt_status prepare_rows(wt_llm_session *s, const wt_llm_turn *turns, bool *drawn)
{
    wt_status status = WT_OK;
    *drawn = false;
    for (int k = 0; k < s->n_tokens; k++) *drawn |= turns[k].sampler || turns[k].pick;
    for (int k = 0; *drawn && k < s->n_tokens && !status; k++)
        status = wt__gpu_draw_by(s, k, turns[k].sequence, turns[k].sampler, turns[k].pick,
                                 turns[k].pick ? turns[k].n_top : 0);
    return status || !*drawn ? status : wt__gpu_push_draws(s, s->n_tokens);
}

void wt__gpu_step_choices(wt_llm_session *s, const wt_llm_turn *turns, int32_t *next)
{
    const wt_llm_odds *odds = wt__gpu_host(s->gpu, s->gpu->odds_at);
    for (int k = 0; k < s->n_tokens; k++) {
        next[k] = s->tokens[k].id;
        if (next[k] >= 0) wt__gpu_drawn(s, turns[k].sequence, turns[k].sampler, next[k]);
        if (!turns[k].pick) continue;
        wt__gpu_odds(&odds[k], turns[k].pick);
        turns[k].pick->id = next[k];
    }
}

wt_status wt__gpu_step(wt_llm_session *s, const wt_llm_turn *turns, float *logits)
{
    wt__gpu *g = s->gpu;
    const size_t vocab = (size_t)s->llm->config.vocab_size, n = (size_t)s->n_tokens;
    bool drawn;
    wt_status status = prepare_rows(s, turns, &drawn);
    if (!status) status = wt__gpu_push(s, g->tokens_at, sizeof(wt_llm_token) * n);
    if (!status) status = wt__gpu_push_tables(s);
    if (!status) status = wt__gpu_queue_batch(s, drawn ? WT__STEP_DRAWN : WT__STEP_GREEDY);
    if (!status)
        status = wt_pool_download(g->pool, g->io, s->stream, g->tokens_at, s->tokens, sizeof(wt_llm_token) * n);
    if (!status && drawn)
        status = wt_pool_download(g->pool, g->io, s->stream, g->odds_at, wt__gpu_host(g, g->odds_at),
                                  sizeof(wt_llm_odds) * n);
    if (!status && logits)
        status = wt_pool_download(g->pool, g->io, s->stream, g->logits_at, logits, sizeof *logits * vocab * n);
    return status;
}
