#include <warptone/arena.h>

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_ALIGN = 64 };

static const size_t max_bytes = (size_t)1 << 48; // above the user address space of x86-64, far from overflow

struct wt_arena {
    unsigned char *memory; // [capacity], aligned to WT_ARENA_MAX_ALIGN, so that offsets align as addresses do
    size_t capacity, used;
};

static size_t align_up(size_t value, size_t align) { return (value + align - 1) & ~(align - 1); }

wt_status wt_arena_create(size_t capacity_bytes, wt_arena **arena)
{
    *arena = NULL;
    if (capacity_bytes < 1 || capacity_bytes >= max_bytes)
        return wt_fail(WT_ERR_BAD_ARG, "arena: %zu bytes, want 1 .. 2^48 - 1", capacity_bytes);
    wt_arena *a = calloc(1, sizeof *a);
    if (!a) return wt_fail(WT_ERR_NO_MEMORY, "arena: handle");
    a->capacity = capacity_bytes;
    a->memory = aligned_alloc(WT_ARENA_MAX_ALIGN, align_up(capacity_bytes, WT_ARENA_MAX_ALIGN));
    if (!a->memory) {
        wt_arena_destroy(a);
        return wt_fail(WT_ERR_NO_MEMORY, "arena: %zu bytes", capacity_bytes);
    }
    memset(a->memory, 0, capacity_bytes);
    *arena = a;
    return WT_OK;
}

void wt_arena_destroy(wt_arena *arena)
{
    if (!arena) return;
    free(arena->memory);
    free(arena);
}

wt_status wt_arena_alloc(wt_arena *arena, size_t size_bytes, size_t align_bytes, void **memory)
{
    *memory = NULL;
    size_t align = align_bytes ? align_bytes : DEFAULT_ALIGN;
    if (align > WT_ARENA_MAX_ALIGN || (align & (align - 1)))
        return wt_fail(WT_ERR_BAD_ARG, "arena: alignment %zu, want a power of two up to %d", align, WT_ARENA_MAX_ALIGN);
    size_t begin = align_up(arena->used, align);
    if (begin > arena->capacity || size_bytes > arena->capacity - begin)
        return wt_fail(WT_ERR_NO_MEMORY, "arena: %zu bytes aligned to %zu, %zu of %zu are left", size_bytes, align,
                       arena->capacity - arena->used, arena->capacity);
    *memory = memset(arena->memory + begin, 0, size_bytes);
    arena->used = begin + size_bytes;
    return WT_OK;
}

size_t wt_arena_mark(const wt_arena *arena) { return arena->used; }

size_t wt_arena_capacity_bytes(const wt_arena *arena) { return arena->capacity; }

wt_status wt_arena_release(wt_arena *arena, size_t mark)
{
    if (mark > arena->used)
        return wt_fail(WT_ERR_BAD_ARG, "arena: mark %zu, want at most the %zu bytes in use", mark, arena->used);
    arena->used = mark;
    return WT_OK;
}
