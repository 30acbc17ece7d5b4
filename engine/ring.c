// Two indices count elements since create: `head` those pushed, `tail` those popped. They never wrap (2^64 elements);
// element i lies in slot i modulo the number of slots, a power of two at or above the capacity.
//
// Memory order, once: each side loads the other's index with acquire, works on the slots, and stores its own index with
// release. So the elements below a head that the consumer has seen are written, and the slots below a tail that the
// producer has seen are no longer read. Each side's own index needs no order, it is its only writer. Both sides keep
// the other's index as last seen and load it again only when that does not suffice, so that in steady state a line
// moves between the cores once a batch. tests/models/ring.pml fails when any of the four orders is relaxed.
#include <warptone/ring.h>

#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

// Two 64-byte lines: x86 cores fetch lines in pairs (Intel optimization manual, "spatial prefetcher").
enum { LINE_BYTES = 128, SLOTS_ALIGN_BYTES = 64 };

static const size_t max_bytes = (size_t)1 << 48; // above the user address space of x86-64, far from overflow

struct wt_ring {
    // constant after create
    size_t element_bytes, capacity, mask;
    unsigned char *slots; // [mask + 1][element_bytes]
    // the producer's line
    alignas(LINE_BYTES) _Atomic size_t head;
    size_t tail_seen;
    // the consumer's line
    alignas(LINE_BYTES) _Atomic size_t tail;
    size_t head_seen;
};

wt_status wt_ring_create(const wt_ring_config *config, wt_ring **ring)
{
    *ring = NULL;
    size_t element_bytes = config->element_bytes ? config->element_bytes : sizeof(float);
    if (config->capacity < 1) return wt_fail(WT_ERR_BAD_ARG, "ring: capacity 0, want 1 or more");
    if (config->capacity > max_bytes / element_bytes)
        return wt_fail(WT_ERR_BAD_ARG, "ring: %zu elements of %zu bytes, want 2^48 bytes or less in all",
                       config->capacity, element_bytes);

    size_t n_slots = 1;
    while (n_slots < config->capacity) n_slots *= 2;
    size_t size_bytes = (n_slots * element_bytes + SLOTS_ALIGN_BYTES - 1) & ~(size_t)(SLOTS_ALIGN_BYTES - 1);

    wt_ring *r = aligned_alloc(LINE_BYTES, sizeof *r);
    if (!r) return wt_fail(WT_ERR_NO_MEMORY, "ring: handle");
    memset(r, 0, sizeof *r);
    r->element_bytes = element_bytes;
    r->capacity = config->capacity;
    r->mask = n_slots - 1;
    atomic_init(&r->head, 0);
    atomic_init(&r->tail, 0);
    r->slots = aligned_alloc(SLOTS_ALIGN_BYTES, size_bytes);
    if (!r->slots) {
        wt_ring_destroy(r);
        return wt_fail(WT_ERR_NO_MEMORY, "ring: %zu bytes for %zu elements", size_bytes, config->capacity);
    }
    memset(r->slots, 0, size_bytes); // the audio thread is not to meet the first touch of a page
    *ring = r;
    return WT_OK;
}

void wt_ring_destroy(wt_ring *ring)
{
    if (!ring) return;
    free(ring->slots);
    free(ring);
}

size_t wt_ring_capacity(const wt_ring *ring) { return ring->capacity; }

WT_RT size_t wt_ring_ready(const wt_ring *ring)
{
    // The tail first: the head is then never behind it. A third thread may see a head that is a lap ahead.
    size_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    size_t ready = atomic_load_explicit(&ring->head, memory_order_acquire) - tail;
    return ready < ring->capacity ? ready : ring->capacity;
}

WT_RT size_t wt_ring_space(const wt_ring *ring) { return ring->capacity - wt_ring_ready(ring); }

// Up to `n` free elements after `head`, for the producer.
static size_t claim_space(wt_ring *ring, size_t head, size_t n)
{
    size_t space = ring->capacity - (head - ring->tail_seen);
    if (space < n) {
        ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
        space = ring->capacity - (head - ring->tail_seen);
    }
    return space < n ? space : n;
}

// Up to `n` ready elements after `tail`, for the consumer.
static size_t claim_ready(wt_ring *ring, size_t tail, size_t n)
{
    size_t ready = ring->head_seen - tail;
    if (ready < n) {
        ring->head_seen = atomic_load_explicit(&ring->head, memory_order_acquire);
        ready = ring->head_seen - tail;
    }
    return ready < n ? ready : n;
}

// Of `n` elements from `index` on, those before the end of the slots.
static size_t in_one_piece(const wt_ring *ring, size_t index, size_t n)
{
    size_t to_end = ring->mask + 1 - (index & ring->mask);
    return n < to_end ? n : to_end;
}

static unsigned char *slot_of(const wt_ring *ring, size_t index)
{
    return ring->slots + (index & ring->mask) * ring->element_bytes;
}

WT_RT size_t wt_ring_push(wt_ring *ring, const void *elements, size_t n)
{
    size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    n = claim_space(ring, head, n);
    if (n == 0) return 0;
    size_t first = in_one_piece(ring, head, n);
    memcpy(slot_of(ring, head), elements, first * ring->element_bytes);
    memcpy(ring->slots, (const unsigned char *)elements + first * ring->element_bytes,
           (n - first) * ring->element_bytes);
    atomic_store_explicit(&ring->head, head + n, memory_order_release);
    return n;
}

WT_RT size_t wt_ring_pop(wt_ring *ring, void *elements, size_t n)
{
    size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    n = claim_ready(ring, tail, n);
    if (n == 0) return 0;
    size_t first = in_one_piece(ring, tail, n);
    memcpy(elements, slot_of(ring, tail), first * ring->element_bytes);
    memcpy((unsigned char *)elements + first * ring->element_bytes, ring->slots, (n - first) * ring->element_bytes);
    atomic_store_explicit(&ring->tail, tail + n, memory_order_release);
    return n;
}

WT_RT size_t wt_ring_reserve(wt_ring *ring, size_t n, void **elements)
{
    size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    *elements = slot_of(ring, head);
    return claim_space(ring, head, in_one_piece(ring, head, n));
}

WT_RT void wt_ring_commit(wt_ring *ring, size_t n)
{
    size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    atomic_store_explicit(&ring->head, head + n, memory_order_release);
}

WT_RT size_t wt_ring_peek(wt_ring *ring, size_t n, const void **elements)
{
    size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    *elements = slot_of(ring, tail);
    return claim_ready(ring, tail, in_one_piece(ring, tail, n));
}

WT_RT void wt_ring_release(wt_ring *ring, size_t n)
{
    size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    atomic_store_explicit(&ring->tail, tail + n, memory_order_release);
}
