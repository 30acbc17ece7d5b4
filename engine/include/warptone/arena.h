/// Arena: memory for objects that live and die together, handed out from one block that is taken at the start.
#ifndef WARPTONE_ARENA_H
#define WARPTONE_ARENA_H

#include <stddef.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_arena wt_arena;

#define WT_ARENA_MAX_ALIGN 4096 ///< largest alignment an arena gives, and that of its first byte

/// Take `capacity_bytes` (1 or more) at once and touch every page, so that later use meets no page fault. An arena has
/// one owner: its calls are not to run at the same time.
/// Errors: WT_ERR_BAD_ARG (0 bytes, or 2^48 and more), WT_ERR_NO_MEMORY.  [any but rt]
WT_CHECKED wt_status wt_arena_create(size_t capacity_bytes, wt_arena **arena);
void wt_arena_destroy(wt_arena *arena); ///< With all it has handed out. NULL is allowed.  [any but rt]

/// Hand out `size_bytes` of zeroed memory aligned to `align_bytes` (a power of two up to WT_ARENA_MAX_ALIGN; 0 = 64,
/// a cache line). `*memory` is borrowed until a release below it, or destroy; it is NULL after an error. 0 bytes are
/// allowed and give an address that is not to be read.
/// Errors: WT_ERR_BAD_ARG (alignment), WT_ERR_NO_MEMORY when the rest of the arena is too small.  [the owner, not rt]
WT_CHECKED wt_status wt_arena_alloc(wt_arena *arena, size_t size_bytes, size_t align_bytes, void **memory);

/// Bytes handed out so far, padding included; also the mark that release takes.  [the owner]
size_t wt_arena_mark(const wt_arena *arena);
size_t wt_arena_capacity_bytes(const wt_arena *arena); ///< As created.  [any]

/// Take back all that was handed out since `mark`; 0 empties the arena.
/// Errors: WT_ERR_BAD_ARG when the mark lies above what is handed out, as after a release below it.  [the owner]
wt_status wt_arena_release(wt_arena *arena, size_t mark);

#ifdef __cplusplus
}
#endif
#endif
