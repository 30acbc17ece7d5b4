// A model's weights on a GPU: what is copied, in which form, and where it lies in one arena. What is quantised on the
// way is made there from strips of the host's rows (resident_send.c); its place is behind the rest.
#include "resident.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 1024, STRIP = 4 << 20 };

// ---- what there is

static void add_to(wt__loader *l, wt__pieces *list, wt__piece p)
{
    if (l->status) return;
    if (list->n == list->capacity) {
        const int capacity = 2 * list->capacity + 64;
        wt__piece *more = realloc(list->at, sizeof *more * (size_t)capacity);
        if (!more) {
            l->status = wt_fail(WT_ERR_NO_MEMORY, "llm: a list of %d tensors", capacity);
            return;
        }
        list->at = more;
        list->capacity = capacity;
    }
    p.at = list->size;
    list->size += (p.bytes + ALIGN - 1) / ALIGN * ALIGN;
    list->at[list->n++] = p;
}

static void add(wt__loader *l, wt__piece p) { add_to(l, &l->plain, p); }

static bool is_plain(wt_dtype t) { return t == WT_DTYPE_F32 || t == WT_DTYPE_F16 || t == WT_DTYPE_BF16; }

static void add_bytes(wt__loader *l, const void **data, size_t bytes)
{
    if (*data && bytes) add(l, (wt__piece){.from = *data, .bytes = bytes, .address = data});
}

/// A table whose rows are looked up: plain types stay, others become floats.
static void add_table(wt__loader *l, wt_tensor *t)
{
    if (!t->data) return;
    wt__piece p = {.from = t->data, .bytes = wt_tensor_bytes(t), .address = &t->data};
    if (!is_plain(t->dtype)) {
        p.tensor = *t;
        p.bytes = sizeof(float) * (size_t)wt_tensor_elements(t);
        t->dtype = WT_DTYPE_F32;
    }
    add(l, p);
}

static void add_vector(wt__loader *l, const float **v, int64_t n)
{
    if (*v) add(l, (wt__piece){.from = *v, .bytes = sizeof(float) * (size_t)n, .address = (const void **)v});
}

static void add_norm(wt__loader *l, wt__norm *norm, int width)
{
    add_vector(l, &norm->weight, width);
    add_vector(l, &norm->bias, width);
}

static void add_formed(wt__loader *l, const wt__linear *from, wt__llm_form form, size_t bytes, const void **address)
{
    *address = from->weight.data; // until it has its own
    add(l, (wt__piece){.other = from, .form = form, .bytes = bytes, .address = address});
}

/// Blocks of GGUF as elements and scales apart, which are read at multiples of 16 bytes; the host's matrix is `from`.
static void add_repacked(wt__loader *l, const wt__linear *from, wt__linear *w)
{
    const wt_dtype type = from->weight.dtype;
    const size_t n = (size_t)wt_tensor_elements(&from->weight);
    w->weight.dtype = type == WT_DTYPE_Q4_0 ? WT_DTYPE_U8 : WT_DTYPE_I8;
    w->nibbles = type == WT_DTYPE_Q4_0;
    w->half_scales = type != WT_DTYPE_Q6_K;
    w->scale_rows = 1;
    w->scale_columns = type == WT_DTYPE_Q6_K ? 16 : 32;
    add_formed(l, from, wt__llm_elements, w->nibbles ? n / 2 : n, &w->weight.data);
    add_formed(l, from, wt__llm_block_scales, type == WT_DTYPE_Q6_K ? n / 4 : n / 16, (const void **)&w->scales);
}

/// Room for a part of what is made on the GPU.
static void add_made(wt__loader *l, const void **address, size_t bytes)
{
    add_to(l, &l->made, (wt__piece){.bytes = bytes, .address = address});
}

/// Scales of blocks, or words of scales and zeros, in rows of whole 16 bytes.
static size_t padded_bytes(const wt__linear *w)
{
    const int64_t rows = (w->weight.shape[0] + w->scale_rows - 1) / w->scale_rows;
    return 4 * (size_t)(rows * wt__quant_words(w));
}

/// Are its scales those of blocks, and their rows no whole 16 bytes?
static bool needs_padding(const wt__linear *w)
{
    return w->weight.dtype == WT_DTYPE_F8_E4M3 && w->scale_columns && w->scale_columns < w->weight.shape[1] &&
           wt__quant_scales(w, 1) < wt__quant_words(w);
}

/// A quantised matrix: its rows go in strips, of whole blocks.
static void add_quantised(wt__loader *l, const wt__linear *from, wt__linear *w)
{
    const wt_tensor *t = &from->weight;
    const int64_t rows = t->shape[0], columns = t->shape[1];
    const size_t n = (size_t)(rows * columns), n_scales = (size_t)wt__quant_scales(w, rows);
    const size_t row = (t->dtype == WT_DTYPE_F64 ? sizeof(float) : wt_dtype_bytes(t->dtype, 1)) * (size_t)columns;
    const int64_t fit = (int64_t)(STRIP / row), n_rows = fit < WT_WEIGHT_SIDE ? WT_WEIGHT_SIDE : fit & -WT_WEIGHT_SIDE;
    add_made(l, &w->weight.data, w->nibbles ? n / 2 : n);
    add_made(l, (const void **)&w->scales, sizeof *w->scales * n_scales);
    if (needs_padding(w)) add_made(l, (const void **)&w->padded, padded_bytes(w));
    if (w->nibbles) {
        add_made(l, (const void **)&w->zeros, n_scales);
        add_made(l, (const void **)&w->both, padded_bytes(w));
    }
    for (int64_t r = 0; r < rows; r += n_rows) {
        const int64_t left = rows - r, own = left < n_rows ? left : n_rows;
        wt__piece p = {.bytes = row * (size_t)own, .matrix = w, .type = t->dtype, .row = r, .n_rows = own};
        p.from = (const unsigned char *)t->data + wt_dtype_bytes(t->dtype, r * columns);
        if (t->dtype == WT_DTYPE_F64) {
            p.tensor = (wt_tensor){p.from, t->dtype, 2, {own, columns}};
            p.type = WT_DTYPE_F32;
        }
        add_to(l, &l->strips, p);
    }
}

/// Matrices stay as they are, but for F64 and some of GGUF's types, and those that are to be quantised.
static void add_matrix(wt__loader *l, wt_llm_quantization kind, const wt__linear *from, wt__linear *w)
{
    wt__linear quantised;
    add_vector(l, &w->bias, w->weight.shape[0]);
    if (!w->weight.data) return;
    if (kind && wt__quant_plan(from, kind, &quantised)) {
        *w = quantised;
        add_quantised(l, from, w);
        return;
    }
    if (wt__llm_is_repacked(w)) {
        add_repacked(l, from, w);
        return;
    }
    if (w->weight.dtype == WT_DTYPE_F64) {
        add_table(l, &w->weight);
        return;
    }
    const size_t bytes = wt_tensor_bytes(&w->weight) / (w->nibbles ? 2 : 1);
    add_bytes(l, &w->weight.data, bytes);
    if (!w->scales) return;
    const int64_t n = wt__quant_scales(w, w->weight.shape[0]);
    add_vector(l, &w->scales, n);
    add_bytes(l, (const void **)&w->zeros, (size_t)n);
    if (needs_padding(from)) add_formed(l, from, wt__llm_padded_scales, padded_bytes(from), (const void **)&w->padded);
}

/// Does a matrix that stays as it is get words of its scales and zeros?
static bool has_words(const wt__linear *from)
{
    return from->weight.data && from->nibbles && from->scales &&
           wt__llm_are_halves(from->scales, wt__quant_scales(from, from->weight.shape[0]));
}

static void add_words(wt__loader *l, const wt__linear *from, wt__linear *w)
{
    add_formed(l, from, wt__llm_scales_and_zeros, padded_bytes(from), (const void **)&w->both);
}

static void add_linear(wt__loader *l, wt_llm_quantization kind, const wt__linear *from, wt__linear *w)
{
    add_matrix(l, kind, from, w);
    if (has_words(from)) add_words(l, from, w);
}

/// What was added for each of n experts from piece `first` on, at `begin`: all their weights, then all their scales
/// and so on, so that an expert's are whole rows from another's, as boxes want it.
static void stand_together(wt__loader *l, wt__pieces *list, int first, size_t begin, int n)
{
    const int all = list->n - first, each = all / n;
    if (l->status || each < 2 || all % n) return;
    wt__piece *old = malloc(sizeof *old * (size_t)all);
    if (!old) {
        l->status = wt_fail(WT_ERR_NO_MEMORY, "llm: a list of %d tensors", all);
        return;
    }
    memcpy(old, list->at + first, sizeof *old * (size_t)all);
    list->n = first;
    list->size = begin;
    for (int k = 0; k < each; k++)
        for (int e = 0; e < n; e++) add_to(l, list, old[e * each + k]);
    free(old);
}

/// Equal matrices of all experts lie one after the other, equally far apart: all have words, or none.
static void add_experts(wt__loader *l, const wt__expert *from, wt__expert *experts)
{
    const int n = l->resident->llm.config.n_experts;
    for (int role = 0; role < 3; role++) {
        const int first[] = {l->plain.n, l->made.n};
        const size_t begin[] = {l->plain.size, l->made.size};
        bool words = true;
        for (int e = 0; e < n && words; e++) {
            const wt__linear *const all[] = {&from[e].gate, &from[e].up, &from[e].down};
            words = has_words(all[role]);
        }
        for (int e = 0; e < n; e++) {
            const wt__linear *const all[] = {&from[e].gate, &from[e].up, &from[e].down};
            wt__linear *const to[] = {&experts[e].gate, &experts[e].up, &experts[e].down};
            add_matrix(l, l->kind, all[role], to[role]);
            if (words) add_words(l, all[role], to[role]);
        }
        stand_together(l, &l->plain, first[0], begin[0], n);
        stand_together(l, &l->made, first[1], begin[1], n);
    }
}

static void add_layer(wt__loader *l, const wt__layer *from, wt__layer *w)
{
    const wt_model_config *c = &l->resident->llm.config;
    add_norm(l, &w->attention_norm, c->d_model);
    add_norm(l, &w->ffn_norm, c->d_model);
    add_norm(l, &w->q_norm, c->d_head);
    add_norm(l, &w->k_norm, c->d_head);
    wt__linear *all[] = {&w->q, &w->k, &w->v, &w->o, &w->gate, &w->up, &w->down};
    const wt__linear *host[] = {&from->q, &from->k, &from->v, &from->o, &from->gate, &from->up, &from->down};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) add_linear(l, l->kind, host[k], all[k]);
    add_linear(l, WT_LLM_AS_STORED, &from->router, &w->router);
    if (w->experts) add_experts(l, from->experts, w->experts);
}

static void add_all(wt__loader *l, const wt_llm *from)
{
    wt_llm *m = &l->resident->llm;
    wt__linear quantised;
    const bool tied = m->head.weight.data == m->embedding.data;
    const bool apart = !tied || (l->kind && wt__quant_plan(&from->head, l->kind, &quantised));
    add_table(l, &m->embedding);
    add_table(l, &m->positions);
    add_norm(l, &m->norm, m->config.d_model);
    if (apart) add_linear(l, wt__quant_of_head(l->kind), &from->head, &m->head);
    for (int k = 0; k < m->config.n_layers; k++) add_layer(l, &from->layers[k], &m->layers[k]);
    l->head_is_embedding = !apart;
}

/// Gate and up go to one launch, which reads the same of both, and the same of all experts: words of all, or of none.
static void agree_on_words(wt_llm *m)
{
    for (int k = 0; k < m->config.n_layers; k++) {
        wt__layer *w = &m->layers[k];
        if (w->gate.weight.data && (!w->gate.both || !w->up.both)) w->gate.both = w->up.both = NULL;
        bool gates = true, downs = true;
        for (int e = 0; w->experts && e < m->config.n_experts; e++) {
            gates = gates && w->experts[e].gate.both && w->experts[e].up.both;
            downs = downs && w->experts[e].down.both;
        }
        for (int e = 0; w->experts && e < m->config.n_experts; e++) {
            if (!gates) w->experts[e].gate.both = w->experts[e].up.both = NULL;
            if (!downs) w->experts[e].down.both = NULL;
        }
    }
}

/// The layers of the host's model, to be given other addresses.
static wt_status copy_layers(const wt_llm *from, wt_llm *to)
{
    const int n = from->config.n_layers;
    to->layers = calloc((size_t)n, sizeof *to->layers);
    if (!to->layers) return wt_fail(WT_ERR_NO_MEMORY, "llm: %d layers", n);
    memcpy(to->layers, from->layers, sizeof *to->layers * (size_t)n);
    for (int k = 0; k < n; k++) to->layers[k].experts = NULL;
    for (int k = 0; k < n; k++) {
        if (!from->layers[k].experts) continue;
        const size_t bytes = sizeof(wt__expert) * (size_t)from->config.n_experts;
        to->layers[k].experts = malloc(bytes);
        if (!to->layers[k].experts) return wt_fail(WT_ERR_NO_MEMORY, "llm: %d experts", from->config.n_experts);
        memcpy(to->layers[k].experts, from->layers[k].experts, bytes);
    }
    return WT_OK;
}

wt_status wt_llm_resident_create(const wt_llm *llm, const wt_llm_resident_config *config, wt_llm_resident **resident)
{
    wt_llm_resident *r = *resident = NULL;
    if (wt_device_get_info(config->device)->backend != WT_BACKEND_CUDA)
        return wt_fail(WT_ERR_UNSUPPORTED, "llm: weights are copied to a GPU, the device is %s",
                       wt_device_get_info(config->device)->name);
    if ((unsigned)config->quantization > WT_LLM_INT4) return wt__quant_refuse(config->quantization);
    if (!(r = calloc(1, sizeof *r))) return wt_fail(WT_ERR_NO_MEMORY, "llm: handle");
    r->llm = *llm;
    r->llm.taken = NULL;
    r->llm.layers = NULL;
    r->device = config->device;
    wt__loader l = {.resident = r, .kind = config->quantization};
    l.status = copy_layers(llm, &r->llm);
    if (!l.status) add_all(&l, llm);
    if (!l.status) l.status = wt__llm_pool(config->device, config->partition, "llm weights", &r->pool);
    if (!l.status) l.status = wt__loader_send(&l, config);
    if (!l.status) agree_on_words(&r->llm);
    if (l.head_is_embedding) r->llm.head = (wt__linear){.weight = r->llm.embedding};
    free(l.plain.at);
    free(l.made.at);
    free(l.strips.at);
    if (!l.status) {
        *resident = r;
        return WT_OK;
    }
    wt_llm_resident_destroy(r);
    return l.status;
}

const wt_llm *wt_llm_resident_model(const wt_llm_resident *resident) { return &resident->llm; }

void wt_llm_resident_destroy(wt_llm_resident *resident)
{
    if (!resident) return;
    wt_pool_arena_destroy(resident->arena, NULL);
    wt_pool_destroy(resident->pool);
    for (int k = 0; resident->llm.layers && k < resident->llm.config.n_layers; k++)
        free(resident->llm.layers[k].experts);
    free(resident->llm.layers);
    free(resident);
}

int64_t wt__llm_expert_stride(const wt_llm *llm, const void *first, const void *second)
{
    return llm->config.n_experts > 1 ? (const unsigned char *)second - (const unsigned char *)first : 0;
}
