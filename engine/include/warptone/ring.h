/// Ring: a first-in first-out queue between exactly two threads, one that pushes and one that pops.
///
/// It holds elements of one size: float samples that move in batches, or structs that move one by one. No call waits,
/// locks or allocates after create. The protocol and the model that checks it: docs/real-time.md.
#ifndef WARPTONE_RING_H
#define WARPTONE_RING_H

#include <stddef.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_ring wt_ring;

typedef struct wt_ring_config {
    size_t element_bytes; ///< size of one element, 0 = sizeof(float)
    size_t capacity;      ///< elements it holds when full, 1 or more, not only powers of two
} wt_ring_config;

/// Create an empty ring. All memory is taken, and touched, here; elements are 64-byte aligned as a whole.
/// Errors: WT_ERR_BAD_ARG (capacity 0, or more than 2^48 bytes in all), WT_ERR_NO_MEMORY.  [any but rt]
WT_CHECKED wt_status wt_ring_create(const wt_ring_config *config, wt_ring **ring);
void wt_ring_destroy(wt_ring *ring); ///< Neither thread may be inside a call. NULL is allowed.  [any but rt]

size_t wt_ring_capacity(const wt_ring *ring); ///< As configured.  [any]

/// Elements that can be popped: exact or less for the consumer, whose next pop gets at least these; a value of the
/// recent past, in 0 .. capacity, for anyone else.  [rt]
WT_RT size_t wt_ring_ready(const wt_ring *ring);

/// Elements that can be pushed: exact or less for the producer, whose next push takes at least these; a value of the
/// recent past for anyone else.  [rt]
WT_RT size_t wt_ring_space(const wt_ring *ring);

/// Push the first min(n, space) of `elements` [n], which become ready together; returns how many. All or nothing is:
/// `if (wt_ring_space(ring) >= n) wt_ring_push(ring, elements, n)`.  [rt, the producer]
WT_RT size_t wt_ring_push(wt_ring *ring, const void *elements, size_t n);

/// Pop min(n, ready) elements in the order they were pushed into `elements` [n]; returns how many.  [rt, the consumer]
WT_RT size_t wt_ring_pop(wt_ring *ring, void *elements, size_t n);

/// Push without a copy: `*elements` is set to room for the returned number of elements, at most n, which lie in one
/// piece (a piece ends at the end of the ring, so a second call may follow a commit). Borrowed until commit.
/// Write there, then commit as many as were written, at most what reserve returned.  [rt, the producer]
WT_RT size_t wt_ring_reserve(wt_ring *ring, size_t n, void **elements);
WT_RT void wt_ring_commit(wt_ring *ring, size_t n); ///< Make the first n reserved elements ready.  [rt, the producer]

/// Pop without a copy: `*elements` is set to the returned number of ready elements, at most n, in one piece. Borrowed
/// until release, which gives back the first n of them, at most what peek returned.  [rt, the consumer]
WT_RT size_t wt_ring_peek(wt_ring *ring, size_t n, const void **elements);
WT_RT void wt_ring_release(wt_ring *ring, size_t n); ///< Pop the first n peeked elements.  [rt, the consumer]

#ifdef __cplusplus
}
#endif
#endif
