// The memory of a rendering, and what ends one that takes too much of it, of work or of depth.
#include "chat_internal.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct wt__chat_chunk {
    struct wt__chat_chunk *next;
    size_t size, used;
    max_align_t memory[];
} wt__chat_chunk;

enum { CHUNK_BYTES = 32 << 10 };

_Noreturn void wt__chat_heap_fail(wt__chat_heap *heap, wt_status status, const char *format, ...)
{
    char text[768];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    heap->status = wt_fail(status, "%s", text);
    longjmp(heap->out, 1);
}

void *wt__chat_heap_take(wt__chat_heap *heap, size_t size)
{
    wt__chat_chunk *c = heap->chunks;
    size = (size + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
    if (!c || c->size - c->used < size) {
        size_t bytes = size > CHUNK_BYTES ? size : CHUNK_BYTES;
        if (bytes > WT__CHAT_MAX_BYTES - heap->used)
            wt__chat_heap_fail(heap, WT_ERR_NO_MEMORY, "chat template: more than %d bytes", WT__CHAT_MAX_BYTES);
        c = malloc(sizeof *c + bytes);
        if (!c) wt__chat_heap_fail(heap, WT_ERR_NO_MEMORY, "chat template: memory is out");
        *c = (wt__chat_chunk){heap->chunks, bytes, 0};
        heap->chunks = c;
        heap->used += bytes;
    }
    void *memory = (char *)c->memory + c->used;
    c->used += size;
    return memset(memory, 0, size);
}

void wt__chat_heap_free(wt__chat_heap *heap)
{
    for (wt__chat_chunk *c = heap->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
}

void wt__chat_heap_grow(wt__chat_heap *heap, void **at, size_t *room, size_t n, size_t size)
{
    if (n < *room) return;
    size_t next = *room ? *room * 2 : 8;
    void *grown = wt__chat_heap_take(heap, next * size);
    if (n) memcpy(grown, *at, n * size);
    *at = grown;
    *room = next;
}

_Noreturn void wt__chat_raise(wt__chat_render *r, const char *format, ...)
{
    char text[640];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    wt__chat_heap_fail(&r->heap, WT_ERR_BAD_ARG, "chat template line %d: %s", r->line, text);
}

void wt__chat_step(wt__chat_render *r, size_t n)
{
    r->steps += (int64_t)n;
    if (r->steps > WT__CHAT_MAX_STEPS) wt__chat_raise(r, "more than %d steps", WT__CHAT_MAX_STEPS);
}

void wt__chat_enter(wt__chat_render *r)
{
    wt__chat_step(r, 1);
    if (++r->depth > WT__CHAT_MAX_DEPTH) wt__chat_raise(r, "nested more than %d deep", WT__CHAT_MAX_DEPTH);
}

void wt__chat_leave(wt__chat_render *r) { r->depth--; }
