// Weights on their way to a GPU, in pieces of CHUNK bytes. While one is on its way from page-locked memory, threads
// copy the next out of the mapped file; pages that are not in memory yet are read by all of them at once. What is
// quantised goes to a place of its own on the GPU, and from there by kernels/matmul/weight_quantize.cu to the arena.
#include "resident.h"

#include <string.h>

enum { CHUNK = 32 << 20, ITEM = 1 << 20, SLOTS = 3, MAX_THREADS = 16, THREADS = 256, WARPS = THREADS / 32 };

typedef struct sender {
    const wt__loader *loader;
    wt_device *cpu;
    wt_stream *copying, *sending;
    size_t slot_bytes;
    wt_buffer *slots[SLOTS];
    wt_event *sent[SLOTS];
    int slot; ///< the next
    wt_module *module;
    wt_kernel *kernels[WT_LLM_INT4 + 1]; ///< by kind
    wt_pool_arena *staging;              ///< a slot's bytes on the GPU
    uintptr_t staging_address;
    wt_buffer *odd; ///< [strips.n] int, mapped: scales that F16 has not
} sender;

typedef struct filling {
    const wt__pieces *pieces;
    size_t begin, end; ///< of the list
    unsigned char *to;
} filling;

static void fill_piece(const wt__piece *p, size_t begin, size_t end, unsigned char *to)
{
    if (p->form)
        p->form(p->other, begin, end, to);
    else if (p->tensor.data)
        wt_tensor_to_f32(&p->tensor, (int64_t)(begin / sizeof(float)), (int64_t)((end - begin) / sizeof(float)),
                         (float *)(void *)to);
    else
        memcpy(to, (const unsigned char *)p->from + begin, end - begin);
}

/// ITEM bytes of a list, from the pieces that lie there.
static void fill_item(const void *args, int item)
{
    const filling *f = args;
    const size_t begin = f->begin + (size_t)item * ITEM, end = begin + ITEM < f->end ? begin + ITEM : f->end;
    int low = 0, high = f->pieces->n; // the last piece that begins at or before `begin`
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (f->pieces->at[middle].at <= begin)
            low = middle;
        else
            high = middle;
    }
    for (const wt__piece *p = f->pieces->at + low; p < f->pieces->at + f->pieces->n && p->at < end; p++) {
        const size_t from = p->at > begin ? p->at : begin, to = p->at + p->bytes < end ? p->at + p->bytes : end;
        if (from < to) fill_piece(p, from - p->at, to - p->at, f->to + (from - f->begin));
    }
}

/// The largest strip may be larger than a chunk.
static size_t slot_bytes(const wt__loader *l)
{
    size_t most = l->plain.size > l->strips.size ? l->plain.size : l->strips.size;
    most = most < CHUNK ? most : CHUNK;
    for (int k = 0; k < l->strips.n; k++) most = l->strips.at[k].bytes > most ? l->strips.at[k].bytes : most;
    return most;
}

static wt_status open_quantiser(sender *s)
{
    static const char *const names[] = {
        [WT_LLM_FP8] = "weight_to_fp8", [WT_LLM_INT8] = "weight_to_int8", [WT_LLM_INT4] = "weight_to_int4"};
    wt_llm_resident *r = s->loader->resident;
    const size_t odd_bytes = sizeof(int) * (size_t)s->loader->strips.n;
    if (!odd_bytes) return WT_OK;
    wt_status status =
        wt_module_create(r->device, &(wt_module_config){.name = "kernels/matmul/weight_quantize.cu"}, &s->module);
    for (int k = WT_LLM_FP8; k <= WT_LLM_INT4 && !status; k++)
        status = wt_module_get_kernel(s->module, names[k], &s->kernels[k]);
    if (!status) status = wt__llm_arena(r->pool, "weights", s->slot_bytes, &s->staging, &s->staging_address);
    if (!status) status = wt_buffer_create(r->device, WT_MEMORY_MAPPED, odd_bytes, &s->odd);
    if (!status) memset(wt_buffer_host(s->odd), 0, odd_bytes);
    return status;
}

static wt_status open_sender(sender *s, wt_partition *partition)
{
    wt_device *device = s->loader->resident->device;
    wt_status status =
        wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = MAX_THREADS}, &s->cpu);
    if (!status) status = wt_stream_create(s->cpu, NULL, &s->copying);
    if (!status)
        status = partition ? wt_partition_stream_create(partition, NULL, &s->sending)
                           : wt_stream_create(device, NULL, &s->sending);
    s->slot_bytes = slot_bytes(s->loader);
    for (int k = 0; k < SLOTS && !status; k++) {
        status = wt_buffer_create(device, WT_MEMORY_PINNED, s->slot_bytes, &s->slots[k]);
        if (!status) status = wt_event_create(device, &s->sent[k]);
    }
    return status ? status : open_quantiser(s);
}

static void close_sender(sender *s)
{
    if (s->sending) {
        wt_status status = wt_stream_synchronize(s->sending); // after an error: what was queued
        status = wt_pool_detach_stream(s->loader->resident->pool, s->sending);
        (void)status;
    }
    wt_pool_arena_destroy(s->staging, NULL);
    wt_buffer_destroy(s->odd);
    wt_module_destroy(s->module);
    wt_stream_destroy(s->copying);
    wt_stream_destroy(s->sending);
    for (int k = 0; k < SLOTS; k++) {
        wt_event_destroy(s->sent[k]);
        wt_buffer_destroy(s->slots[k]);
    }
    wt_device_close(s->cpu);
}

/// Bytes begin .. end - 1 of a list, by the next slot.
static wt_status send_bytes(sender *s, const wt__pieces *pieces, size_t begin, size_t end, wt_pool_arena *arena,
                            uintptr_t address)
{
    const int slot = s->slot;
    const filling f = {pieces, begin, end, wt_buffer_host(s->slots[slot])};
    s->slot = (slot + 1) % SLOTS;
    wt_status status = wt_event_synchronize(s->sent[slot]);
    if (!status) status = wt_stream_run(s->copying, fill_item, &f, sizeof f, (int)((end - begin + ITEM - 1) / ITEM));
    if (!status) status = wt_stream_synchronize(s->copying);
    if (!status) status = wt_pool_arena_upload(arena, s->sending, address, f.to, end - begin);
    return status ? status : wt_event_record(s->sent[slot], s->sending);
}

/// Strip k, which lies on the GPU at `address`, becomes its rows of the matrix.
static wt_status quantise_strip(sender *s, int k, uintptr_t address)
{
    const wt__piece *p = &s->loader->strips.at[k];
    const wt__linear *m = p->matrix;
    const int64_t columns = m->weight.shape[1], before = p->row * columns, skipped = wt__quant_scales(m, p->row);
    const int64_t padded = p->row / m->scale_rows * wt__quant_words(m);
    wt_weight_args a = {.in = (const void *)address,
                        .q = (unsigned char *)(uintptr_t)m->weight.data + before / (m->nibbles ? 2 : 1),
                        .scales = (float *)(uintptr_t)m->scales + skipped,
                        .type = (int)p->type,
                        .rows = (int)p->n_rows,
                        .columns = (int)columns,
                        .group = m->scale_columns,
                        .across = (int)((columns + m->scale_columns - 1) / m->scale_columns),
                        .words = wt__quant_words(m)};
    int x = a.rows, y = 1, kind = WT_LLM_INT8;
    if (m->nibbles) {
        a.zeros = (unsigned char *)(uintptr_t)m->zeros + skipped;
        a.both = (unsigned *)(uintptr_t)m->both + padded;
        a.odd = (int *)wt_buffer_address(s->odd) + k;
        x = (int)((p->n_rows * a.across + WARPS - 1) / WARPS);
        kind = WT_LLM_INT4;
    } else if (m->weight.dtype == WT_DTYPE_F8_E4M3) {
        x = a.across;
        y = (a.rows + WT_WEIGHT_SIDE - 1) / WT_WEIGHT_SIDE;
        if (m->padded) a.padded = (float *)(uintptr_t)m->padded + padded;
        kind = WT_LLM_FP8;
    }
    const wt_launch launch = {.grid = {x, y}, .block = {THREADS}};
    return wt_kernel_launch(s->kernels[kind], s->sending, &launch, &WT_ARG(a), 1);
}

/// As many strips as a slot holds, from `first` on; the next after them.
static wt_status send_strips(sender *s, int first, int *next)
{
    const wt__pieces *strips = &s->loader->strips;
    const size_t begin = strips->at[first].at;
    int k = first;
    while (k < strips->n && strips->at[k].at + strips->at[k].bytes - begin <= s->slot_bytes) k++;
    *next = k;
    const size_t end = strips->at[k - 1].at + strips->at[k - 1].bytes;
    wt_status status = send_bytes(s, strips, begin, end, s->staging, s->staging_address);
    for (k = first; k < *next && !status; k++)
        status = quantise_strip(s, k, s->staging_address + strips->at[k].at - begin);
    return status;
}

/// Matrices with a scale that F16 has not do without the words that hold both.
static void drop_odd(const sender *s)
{
    const int *odd = s->odd ? wt_buffer_host(s->odd) : NULL;
    for (int k = 0; odd && k < s->loader->strips.n; k++)
        if (odd[k]) s->loader->strips.at[k].matrix->both = NULL;
}

static wt_status send_all(sender *s, const wt_llm_resident_config *config, uintptr_t base)
{
    const wt__pieces *plain = &s->loader->plain, *strips = &s->loader->strips;
    const size_t all = plain->size + strips->size;
    wt_status status = WT_OK;
    for (size_t at = 0, end; at < plain->size && !status; at = end) {
        end = at + s->slot_bytes < plain->size ? at + s->slot_bytes : plain->size;
        status = send_bytes(s, plain, at, end, s->loader->resident->arena, base + at);
        if (config->progress) config->progress(config->user, end, all);
    }
    for (int k = 0; k < strips->n && !status;) {
        status = send_strips(s, k, &k);
        if (config->progress)
            config->progress(config->user, plain->size + (k < strips->n ? strips->at[k].at : strips->size), all);
    }
    if (!status) status = wt_stream_synchronize(s->sending);
    if (!status) drop_odd(s);
    return status;
}

static void place(const wt__pieces *pieces, uintptr_t base)
{
    for (int k = 0; k < pieces->n; k++) *pieces->at[k].address = (const void *)(base + pieces->at[k].at);
}

wt_status wt__loader_send(wt__loader *loader, const wt_llm_resident_config *config)
{
    wt_llm_resident *r = loader->resident;
    uintptr_t base;
    wt_status status = wt__llm_arena(r->pool, "weights", loader->plain.size + loader->made.size, &r->arena, &base);
    if (status) return status;
    place(&loader->plain, base);
    place(&loader->made, base + loader->plain.size);
    sender s = {.loader = loader};
    status = open_sender(&s, config->partition);
    if (!status) status = send_all(&s, config, base);
    close_sender(&s);
    if (!status) wt_pool_arena_seal(r->arena);
    return status;
}
