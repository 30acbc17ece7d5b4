// A model's weights on a GPU: one arena, filled in pieces of CHUNK bytes. While one piece is on its way from
// page-locked memory, threads copy the next out of the mapped file; pages that are not in memory yet are read by all of
// them at once.
#include "gpu.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 32 << 20, ITEM = 1 << 20, SLOTS = 3, ALIGN = 1024, MAX_THREADS = 16 };

typedef struct piece {
    const void *from;
    wt_tensor tensor;        ///< to be widened to floats; data NULL = bytes as they are
    const wt__linear *other; ///< the host's matrix that `form` makes bytes of
    wt__llm_form form;
    size_t at, bytes; ///< in the arena
    const void **address;
} piece;

typedef struct loader {
    wt_llm_resident *resident;
    piece *pieces; ///< in the order of the arena
    int n_pieces, capacity;
    size_t size;
    wt_status status; ///< the first error; nothing is done after it
    wt_device *cpu;
    wt_stream *copying, *sending;
    wt_buffer *slots[SLOTS];
    wt_event *sent[SLOTS];
} loader;

// ---- what there is

static void add(loader *l, piece p)
{
    if (l->status) return;
    if (l->n_pieces == l->capacity) {
        const int capacity = 2 * l->capacity + 64;
        piece *more = realloc(l->pieces, sizeof *more * (size_t)capacity);
        if (!more) {
            l->status = wt_fail(WT_ERR_NO_MEMORY, "llm: a list of %d tensors", capacity);
            return;
        }
        l->pieces = more;
        l->capacity = capacity;
    }
    p.at = l->size;
    l->size += (p.bytes + ALIGN - 1) / ALIGN * ALIGN;
    l->pieces[l->n_pieces++] = p;
}

static bool is_plain(wt_dtype t) { return t == WT_DTYPE_F32 || t == WT_DTYPE_F16 || t == WT_DTYPE_BF16; }

static void add_bytes(loader *l, const void **data, size_t bytes)
{
    if (*data && bytes) add(l, (piece){.from = *data, .bytes = bytes, .address = data});
}

/// A table whose rows are looked up: plain types stay, others become floats.
static void add_table(loader *l, wt_tensor *t)
{
    if (!t->data) return;
    piece p = {.from = t->data, .bytes = wt_tensor_bytes(t), .address = &t->data};
    if (!is_plain(t->dtype)) {
        p.tensor = *t;
        p.bytes = sizeof(float) * (size_t)wt_tensor_elements(t);
        t->dtype = WT_DTYPE_F32;
    }
    add(l, p);
}

static void add_vector(loader *l, const float **v, int64_t n)
{
    if (*v) add(l, (piece){.from = *v, .bytes = sizeof(float) * (size_t)n, .address = (const void **)v});
}

static void add_norm(loader *l, wt__norm *norm, int width)
{
    add_vector(l, &norm->weight, width);
    add_vector(l, &norm->bias, width);
}

static void add_formed(loader *l, const wt__linear *from, wt__llm_form form, size_t bytes, const void **address)
{
    *address = from->weight.data; // until it has its own
    add(l, (piece){.other = from, .form = form, .bytes = bytes, .address = address});
}

/// Blocks of GGUF as elements and scales apart, which are read at multiples of 16 bytes; the host's matrix is `from`.
static void add_repacked(loader *l, const wt__linear *from, wt__linear *w)
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

/// Matrices stay as they are, but for F64 and some of GGUF's types.
static void add_linear(loader *l, const wt__linear *from, wt__linear *w)
{
    add_vector(l, &w->bias, w->weight.shape[0]);
    if (!w->weight.data) return;
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
    const int64_t across = (w->weight.shape[1] + w->scale_columns - 1) / w->scale_columns;
    const int64_t n = (w->weight.shape[0] + w->scale_rows - 1) / w->scale_rows * across;
    add_vector(l, &w->scales, n);
    add_bytes(l, (const void **)&w->zeros, (size_t)n);
    if (w->nibbles && wt__llm_are_halves(from->scales, n))
        add_formed(l, from, wt__llm_scales_and_zeros, 4 * (size_t)n, (const void **)&w->both);
}

/// Equal matrices of all experts lie one after the other.
static void add_experts(loader *l, const wt__expert *from, wt__expert *experts)
{
    const int n = l->resident->llm.config.n_experts;
    for (int e = 0; e < n; e++) add_linear(l, &from[e].gate, &experts[e].gate);
    for (int e = 0; e < n; e++) add_linear(l, &from[e].up, &experts[e].up);
    for (int e = 0; e < n; e++) add_linear(l, &from[e].down, &experts[e].down);
}

static void add_layer(loader *l, const wt__layer *from, wt__layer *w)
{
    const wt_model_config *c = &l->resident->llm.config;
    add_norm(l, &w->attention_norm, c->d_model);
    add_norm(l, &w->ffn_norm, c->d_model);
    add_norm(l, &w->q_norm, c->d_head);
    add_norm(l, &w->k_norm, c->d_head);
    wt__linear *all[] = {&w->q, &w->k, &w->v, &w->o, &w->gate, &w->up, &w->down, &w->router};
    const wt__linear *host[] = {&from->q,    &from->k,  &from->v,    &from->o,
                                &from->gate, &from->up, &from->down, &from->router};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) add_linear(l, host[k], all[k]);
    if (w->experts) add_experts(l, from->experts, w->experts);
}

static void add_all(loader *l, const wt_llm *from)
{
    wt_llm *m = &l->resident->llm;
    const bool tied = m->head.weight.data == m->embedding.data;
    add_table(l, &m->embedding);
    add_table(l, &m->positions);
    add_norm(l, &m->norm, m->config.d_model);
    if (!tied) add_linear(l, &from->head, &m->head);
    for (int k = 0; k < m->config.n_layers; k++) add_layer(l, &from->layers[k], &m->layers[k]);
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

// ---- the way there

typedef struct filling {
    const loader *loader;
    size_t begin, end; ///< of the arena
    unsigned char *to;
} filling;

static void fill_piece(const piece *p, size_t begin, size_t end, unsigned char *to)
{
    if (p->form)
        p->form(p->other, begin, end, to);
    else if (p->tensor.data)
        wt_tensor_to_f32(&p->tensor, (int64_t)(begin / sizeof(float)), (int64_t)((end - begin) / sizeof(float)),
                         (float *)(void *)to);
    else
        memcpy(to, (const unsigned char *)p->from + begin, end - begin);
}

/// ITEM bytes of the arena, from the pieces that lie there.
static void fill_item(const void *args, int item)
{
    const filling *f = args;
    const size_t begin = f->begin + (size_t)item * ITEM, end = begin + ITEM < f->end ? begin + ITEM : f->end;
    int low = 0, high = f->loader->n_pieces; // the last piece that begins at or before `begin`
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (f->loader->pieces[middle].at <= begin)
            low = middle;
        else
            high = middle;
    }
    for (const piece *p = f->loader->pieces + low; p < f->loader->pieces + f->loader->n_pieces && p->at < end; p++) {
        const size_t from = p->at > begin ? p->at : begin, to = p->at + p->bytes < end ? p->at + p->bytes : end;
        if (from < to) fill_piece(p, from - p->at, to - p->at, f->to + (from - f->begin));
    }
}

static wt_status open_loader(loader *l, wt_partition *partition)
{
    wt_status status =
        wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = MAX_THREADS}, &l->cpu);
    if (!status) status = wt_stream_create(l->cpu, NULL, &l->copying);
    if (!status)
        status = partition ? wt_partition_stream_create(partition, NULL, &l->sending)
                           : wt_stream_create(l->resident->device, NULL, &l->sending);
    const size_t bytes = l->size < CHUNK ? l->size : CHUNK;
    for (int k = 0; k < SLOTS && !status; k++) {
        status = wt_buffer_create(l->resident->device, WT_MEMORY_PINNED, bytes, &l->slots[k]);
        if (!status) status = wt_event_create(l->resident->device, &l->sent[k]);
    }
    return status;
}

static void close_loader(loader *l)
{
    if (l->sending) {
        const wt_status status = wt_pool_detach_stream(l->resident->pool, l->sending);
        (void)status;
    }
    wt_stream_destroy(l->copying);
    wt_stream_destroy(l->sending);
    for (int k = 0; k < SLOTS; k++) {
        wt_event_destroy(l->sent[k]);
        wt_buffer_destroy(l->slots[k]);
    }
    wt_device_close(l->cpu);
    free(l->pieces);
}

static wt_status send_chunk(loader *l, uintptr_t base, size_t begin, int slot)
{
    const size_t end = begin + CHUNK < l->size ? begin + CHUNK : l->size;
    const filling f = {l, begin, end, wt_buffer_host(l->slots[slot])};
    wt_status status = wt_event_synchronize(l->sent[slot]);
    if (!status) status = wt_stream_run(l->copying, fill_item, &f, sizeof f, (int)((end - begin + ITEM - 1) / ITEM));
    if (!status) status = wt_stream_synchronize(l->copying);
    if (!status) status = wt_pool_arena_upload(l->resident->arena, l->sending, base + begin, f.to, end - begin);
    return status ? status : wt_event_record(l->sent[slot], l->sending);
}

static wt_status send_all(loader *l, const wt_llm_resident_config *config)
{
    uintptr_t base;
    wt_status status = wt__llm_arena(l->resident->pool, "weights", l->size, &l->resident->arena, &base);
    if (!status) status = open_loader(l, config->partition);
    int slot = 0;
    for (size_t at = 0; at < l->size && !status; at += CHUNK, slot = (slot + 1) % SLOTS) {
        status = send_chunk(l, base, at, slot);
        if (config->progress) config->progress(config->user, at + CHUNK < l->size ? at + CHUNK : l->size, l->size);
    }
    if (!status) status = wt_stream_synchronize(l->sending);
    if (status) return status;
    wt_pool_arena_seal(l->resident->arena);
    for (int k = 0; k < l->n_pieces; k++) *l->pieces[k].address = (const void *)(base + l->pieces[k].at);
    return WT_OK;
}

wt_status wt_llm_resident_create(const wt_llm *llm, const wt_llm_resident_config *config, wt_llm_resident **resident)
{
    wt_llm_resident *r = *resident = NULL;
    if (wt_device_get_info(config->device)->backend != WT_BACKEND_CUDA)
        return wt_fail(WT_ERR_UNSUPPORTED, "llm: weights are copied to a GPU, the device is %s",
                       wt_device_get_info(config->device)->name);
    if (!(r = calloc(1, sizeof *r))) return wt_fail(WT_ERR_NO_MEMORY, "llm: handle");
    r->llm = *llm;
    r->llm.taken = NULL;
    r->llm.layers = NULL;
    r->device = config->device;
    loader l = {.resident = r};
    l.status = copy_layers(llm, &r->llm);
    if (!l.status) add_all(&l, llm);
    if (!l.status) l.status = wt__llm_pool(config->device, config->partition, "llm weights", &r->pool);
    if (!l.status) l.status = send_all(&l, config);
    if (llm->head.weight.data == llm->embedding.data) r->llm.head = (wt__linear){.weight = r->llm.embedding};
    close_loader(&l);
    if (!l.status) {
        *resident = r;
        return WT_OK;
    }
    wt_llm_resident_destroy(r);
    return l.status;
}

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
