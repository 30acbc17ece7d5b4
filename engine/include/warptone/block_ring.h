/// Block ring: blocks of 32-bit words from one side to another, each word carrying the number of its block.
///
/// A slot holds a block. A word's data and its block's turn are one 8-byte store, so a reader that finds the turn it
/// waits for has the data: no flag, no order between words, one trip over the bus. One side may be a kernel that polls
/// the ring in host memory (kernels/chain/block_ring.cuh). Turns count from 1 and leave out 0; turn t lies in slot t
/// modulo n_slots. A writer keeps at most n_slots - 1 blocks that it has no answer to: then a slot's last block was
/// read before the slot is used again, also across the wrap of turns, where the left-out 0 brings two turns one slot
/// closer. The protocol and the model that checks it: docs/live.md.
#ifndef WARPTONE_BLOCK_RING_H
#define WARPTONE_BLOCK_RING_H

#include <stdbool.h>
#include <stdint.h>
#include <warptone/device.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_block_ring wt_block_ring;
typedef unsigned long long wt_block_slot; ///< a word of a slot; read and written by the functions below only

typedef struct wt_block_ring_config {
    wt_device *device; ///< whose kernels reach it; borrowed
    uint32_t n_slots;  ///< a power of two
    size_t slot_words;
} wt_block_ring_config;

/// All memory is page-locked, mapped and zeroed. Errors: WT_ERR_BAD_ARG (slots, words), WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_block_ring_create(const wt_block_ring_config *config, wt_block_ring **ring);
/// NULL is allowed; on an armed device the memory is put aside (arm.h).  [worker]
void wt_block_ring_destroy(wt_block_ring *ring);
uintptr_t wt_block_ring_address(const wt_block_ring *ring); ///< of slot 0, for kernels  [any]

/// The words of a turn's slot.  [rt]
WT_RT wt_block_slot *wt_block_ring_slot(const wt_block_ring *ring, uint32_t turn);
/// The turn after this one.  [rt]
WT_RT uint32_t wt_block_turn_after(uint32_t turn);

/// Have the lines of `n` words brought here to be written, all at once; stores alone would wait for one after the other
/// where a device looks at them.  [rt, the writer]
WT_RT void wt_block_claim(wt_block_slot *words, int n);
/// Write `n` words of a turn.  [rt, the writer]
WT_RT void wt_block_put(wt_block_slot *words, const float *x, int n, uint32_t turn);
/// Write one, after all that was written before: the doorbell.  [rt, the writer]
WT_RT void wt_block_ring_bell(wt_block_slot *word, uint32_t data, uint32_t turn);
/// Whether a word of this turn is there, and its data. What was written before a doorbell is there with it.
/// [rt, the reader]
WT_RT bool wt_block_here(const wt_block_slot *word, uint32_t turn, uint32_t *data);
/// Read up to `n` words of a turn, as far as they are there; returns how many.  [rt, the reader]
WT_RT int wt_block_get(const wt_block_slot *words, float *x, int n, uint32_t turn);

#ifdef __cplusplus
}
#endif
#endif
