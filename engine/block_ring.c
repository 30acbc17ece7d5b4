// Memory order, once: every word is complete in itself, so relaxed loads and stores would do. Doorbells are stored with
// release and words loaded with acquire, which costs nothing on x86-64 and lets a reader that saw a doorbell find the
// rest without waiting. tests/models/block_ring.pml fails when a word is torn or a slot is used too early.
#include <warptone/block_ring.h>

#include "block_ring_kernel.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct wt_block_ring {
    wt_buffer *buffer;
    wt_block_slot *words;
    uint32_t mask;
    size_t slot_words;
};

wt_status wt_block_ring_create(const wt_block_ring_config *config, wt_block_ring **ring)
{
    *ring = NULL;
    if (config->n_slots < 1 || config->n_slots & (config->n_slots - 1))
        return wt_fail(WT_ERR_BAD_ARG, "block ring: %u slots, want a power of two", config->n_slots);
    if (config->slot_words < 1 || config->slot_words > ((size_t)1 << 40) / config->n_slots)
        return wt_fail(WT_ERR_BAD_ARG, "block ring: slots of %zu words, want 1..2^40 in all", config->slot_words);
    wt_block_ring *r = calloc(1, sizeof *r);
    if (!r) return wt_fail(WT_ERR_NO_MEMORY, "block ring: handle");
    r->mask = config->n_slots - 1;
    r->slot_words = config->slot_words;
    wt_status status = wt_buffer_create(config->device, WT_MEMORY_MAPPED,
                                        sizeof *r->words * config->n_slots * config->slot_words, &r->buffer);
    if (status) {
        wt_block_ring_destroy(r);
        return status;
    }
    r->words = wt_buffer_host(r->buffer);
    *ring = r;
    return WT_OK;
}

void wt_block_ring_destroy(wt_block_ring *ring)
{
    if (!ring) return;
    wt_buffer_destroy(ring->buffer);
    free(ring);
}

uintptr_t wt_block_ring_address(const wt_block_ring *ring) { return wt_buffer_address(ring->buffer); }

WT_RT wt_block_slot *wt_block_ring_slot(const wt_block_ring *ring, uint32_t turn)
{
    return ring->words + (turn & ring->mask) * ring->slot_words;
}

WT_RT uint32_t wt_block_turn_after(uint32_t turn) { return wt_block_next(turn); }

static void store(wt_block_slot *word, uint32_t data, uint32_t turn, memory_order order)
{
    atomic_store_explicit((_Atomic wt_block_slot *)word, wt_block_pack(data, turn), order);
}

WT_RT void wt_block_claim(wt_block_slot *words, int n)
{
    enum { LINE_WORDS = 8, MOST_LINES = 32 }; // of a processor, which has not many more requests under way
    const int lines = (n + LINE_WORDS - 1) / LINE_WORDS;
    for (int k = 0; k < lines && k < MOST_LINES; k++) {
        wt_block_slot *line = words + k * LINE_WORDS;
#if defined(__x86_64__)
        __asm__ volatile("prefetchw %0" : : "m"(*line));
#else
        __builtin_prefetch(line, 1);
#endif
    }
}

WT_RT void wt_block_put(wt_block_slot *words, const float *x, int n, uint32_t turn)
{
    for (int k = 0; k < n; k++) {
        uint32_t data;
        memcpy(&data, &x[k], sizeof data);
        store(&words[k], data, turn, memory_order_relaxed);
    }
}

WT_RT void wt_block_ring_bell(wt_block_slot *word, uint32_t data, uint32_t turn)
{
    store(word, data, turn, memory_order_release);
}

WT_RT bool wt_block_here(const wt_block_slot *word, uint32_t turn, uint32_t *data)
{
    const wt_block_slot w = atomic_load_explicit((const _Atomic wt_block_slot *)word, memory_order_acquire);
    *data = wt_block_data(w);
    return wt_block_turn(w) == turn;
}

WT_RT int wt_block_get(const wt_block_slot *words, float *x, int n, uint32_t turn)
{
    int k = 0;
    for (uint32_t data; k < n && wt_block_here(&words[k], turn, &data); k++) memcpy(&x[k], &data, sizeof data);
    return k;
}
