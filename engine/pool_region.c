// Stretches of one piece of memory: the smallest hole that suffices, the lowest among equals; neighbours join.
#include "pool_internal.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };

static size_t round_up(size_t size) { return (size + ALIGN - 1) / ALIGN * ALIGN; }

wt_status wt__region_create(wt__region *region, uintptr_t base, size_t size, int max_holes)
{
    *region = (wt__region){.base = base, .size = size, .n_holes = 1, .max_holes = max_holes};
    region->holes = malloc(sizeof *region->holes * (size_t)max_holes);
    if (!region->holes) return wt_fail(WT_ERR_NO_MEMORY, "pool: no memory for a list of %d holes", max_holes);
    region->holes[0] = (struct wt__hole){0, size / ALIGN * ALIGN};
    return WT_OK;
}

void wt__region_destroy(wt__region *region)
{
    free(region->holes);
    region->holes = NULL;
}

bool wt__region_take(wt__region *region, size_t size, uintptr_t *address)
{
    size = round_up(size);
    int best = WT__NONE;
    for (int k = 0; k < region->n_holes; k++) {
        size_t hole = region->holes[k].size;
        if (hole >= size && (best < 0 || hole < region->holes[best].size)) best = k;
    }
    if (best < 0) return false;
    struct wt__hole *hole = &region->holes[best];
    *address = region->base + hole->begin;
    hole->begin += size;
    hole->size -= size;
    if (!hole->size) {
        region->n_holes--;
        memmove(hole, hole + 1, sizeof *hole * (size_t)(region->n_holes - best));
    }
    return true;
}

/// First hole that begins at or after `begin`.
static int hole_after(const wt__region *region, size_t begin)
{
    int low = 0, high = region->n_holes;
    while (low < high) {
        int middle = (low + high) / 2;
        if (region->holes[middle].begin < begin) low = middle + 1;
        else high = middle;
    }
    return low;
}

void wt__region_give(wt__region *region, uintptr_t address, size_t size)
{
    size_t begin = (size_t)(address - region->base);
    size = round_up(size);
    int k = hole_after(region, begin);
    struct wt__hole *after = k < region->n_holes ? &region->holes[k] : NULL;
    struct wt__hole *before = k > 0 ? &region->holes[k - 1] : NULL;
    bool joins_after = after && begin + size == after->begin;
    bool joins_before = before && before->begin + before->size == begin;
    if (joins_before && joins_after) {
        before->size += size + after->size;
        region->n_holes--;
        memmove(after, after + 1, sizeof *after * (size_t)(region->n_holes - k));
    } else if (joins_before) {
        before->size += size;
    } else if (joins_after) {
        after->begin = begin;
        after->size += size;
    } else {
        memmove(&region->holes[k + 1], &region->holes[k], sizeof *region->holes * (size_t)(region->n_holes - k));
        region->holes[k] = (struct wt__hole){begin, size};
        region->n_holes++;
    }
}
