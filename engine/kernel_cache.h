/// The disk cache of compiled kernels, as jit.c uses it.
#ifndef WT_KERNEL_CACHE_H
#define WT_KERNEL_CACHE_H

#include "sha256.h"
#include <stdbool.h>
#include <warptone/kernel.h>

/// What an entry is found by: the hash covers source, included texts, options and architecture. The NVRTC version
/// stands beside it, so that a machine without NVRTC can take any version's entry.
typedef struct wt__cache_key {
    unsigned char hash[32];
    int architecture;
    int nvrtc_version; ///< 0 = any, the newest first
} wt__cache_key;

/// Take an entry; false when there is none (counted as a miss). Damaged entries are counted and removed.
bool wt__cache_load(const wt__cache_key *key, wt_compiled *compiled);

/// Keep an entry, and drop the least recently used ones above the limit. A cache that cannot be written is no error.
void wt__cache_store(const wt__cache_key *key, const char *name, const void *image, size_t size_bytes);

#endif
