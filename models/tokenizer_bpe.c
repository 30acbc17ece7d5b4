// The vocabulary's tables and byte-pair encoding: characters are joined, best rank first and leftmost among equals,
// until no neighbours make a token. Neighbours are a linked list and candidates a heap, so n characters cost
// O(n log n). Sennrich, Haddow, Birch, "Neural Machine Translation of Rare Words with Subword Units", 2016.
// Judge: the `tokenizers` package (models/bpe/word.rs).
#include "tokenizer_internal.h"
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- Tables ---------------------------------------------------------------------------------------------------------

wt_status wt__tok_add_token(wt_tokenizer *t, int32_t id, const char *text, size_t size)
{
    if (id < 0 || id >= WT__MAX_TOKENS)
        return wt_fail(WT_ERR_FORMAT, "tokenizer: token id %d, want 0 .. %d", (int)id, WT__MAX_TOKENS - 1);
    if (memchr(text, 0, size)) return wt_fail(WT_ERR_FORMAT, "tokenizer: token %d holds a zero byte", (int)id);
    if (!wt__tok_grow((void **)&t->name, &t->name_room, (size_t)id + 1, sizeof *t->name)) return wt__tok_no_memory();
    for (; t->n_tokens <= id; t->n_tokens++) t->name[t->n_tokens] = -1;
    t->name[id] = (int64_t)t->names.size;
    return wt__tok_bytes_add(&t->names, text, size) && wt__tok_bytes_add(&t->names, "", 1) ? WT_OK
                                                                                           : wt__tok_no_memory();
}

// FNV-1a (Fowler, Noll, Vo), with the high half folded in for tables of a power of two.
static size_t hash_text(const char *text, size_t size)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
    return (size_t)(h ^ h >> 32);
}

// The slot of a text: its own, or the free one where it belongs.
static size_t slot_of(const wt_tokenizer *t, const char *text, size_t size)
{
    size_t slot = hash_text(text, size) & (t->n_slots - 1);
    for (; t->slots[slot] >= 0; slot = (slot + 1) & (t->n_slots - 1)) {
        const char *name = t->names.at + t->name[t->slots[slot]];
        if (!strncmp(name, text, size) && !name[size]) break;
    }
    return slot;
}

int32_t wt__tok_find_token(const wt_tokenizer *t, const char *text, size_t size)
{
    return memchr(text, 0, size) ? -1 : t->slots[slot_of(t, text, size)];
}

static size_t table_size(size_t n)
{
    size_t size = 16;
    while (size < 2 * n) size *= 2;
    return size;
}

wt_status wt__tok_index_tokens(wt_tokenizer *t)
{
    char text[8];
    free(t->slots);
    free((void *)t->whole);
    t->n_slots = table_size((size_t)t->n_tokens);
    t->slots = malloc(t->n_slots * sizeof *t->slots);
    t->whole = calloc((size_t)t->n_tokens + 1, 1);
    if (!t->slots || !t->whole) return wt__tok_no_memory();
    memset(t->slots, 0xff, t->n_slots * sizeof *t->slots);
    for (int32_t id = 0; id < t->n_tokens; id++) {
        if (t->name[id] < 0) continue;
        const char *name = t->names.at + t->name[id];
        size_t slot = slot_of(t, name, strlen(name));
        if (t->slots[slot] < 0) t->slots[slot] = id;
    }
    for (uint32_t c = 0; c < 512; c++) t->low[c] = wt__tok_find_token(t, text, wt__utf8_put(c, text));
    for (unsigned i = 0; i < 256; i++) {
        snprintf(text, sizeof text, "<0x%02X>", i);
        t->byte_token[i] = wt__tok_find_token(t, text, 6);
    }
    return WT_OK;
}

static size_t hash_pair(uint64_t pair)
{
    pair *= 0x9e3779b97f4a7c15u; // 2^64 / golden ratio (Knuth, TAOCP 3, 6.4)
    return (size_t)(pair ^ pair >> 32);
}

static wt__tok_merge *merge_slot(const wt_tokenizer *t, uint64_t pair)
{
    size_t slot = hash_pair(pair) & (t->n_merge_slots - 1);
    while (t->merges[slot].pair != pair && t->merges[slot].pair != UINT64_MAX)
        slot = (slot + 1) & (t->n_merge_slots - 1);
    return &t->merges[slot];
}

static uint64_t pair_of(int32_t left, int32_t right) { return (uint64_t)(uint32_t)left << 32 | (uint32_t)right; }

wt_status wt__tok_reserve_merges(wt_tokenizer *t, size_t n)
{
    t->n_merge_slots = table_size(n);
    t->merges = malloc(t->n_merge_slots * sizeof *t->merges);
    if (!t->merges) return wt__tok_no_memory();
    for (size_t i = 0; i < t->n_merge_slots; i++) t->merges[i].pair = UINT64_MAX;
    return WT_OK;
}

void wt__tok_set_merge(wt_tokenizer *t, int32_t left, int32_t right, uint32_t rank, int32_t id)
{
    *merge_slot(t, pair_of(left, right)) = (wt__tok_merge){pair_of(left, right), rank, id};
}

wt_status wt__tok_try_merge(wt_tokenizer *t, wt__tok_bytes *joined, const char *left, size_t left_size,
                            const char *right, size_t right_size, uint32_t rank, bool *set)
{
    joined->size = 0;
    if (!wt__tok_bytes_add(joined, left, left_size) || !wt__tok_bytes_add(joined, right, right_size))
        return wt__tok_no_memory();
    int32_t left_id = wt__tok_find_token(t, left, left_size), right_id = wt__tok_find_token(t, right, right_size);
    int32_t id = wt__tok_find_token(t, joined->at, joined->size);
    *set = left_id >= 0 && right_id >= 0 && id >= 0;
    if (*set) wt__tok_set_merge(t, left_id, right_id, rank, id);
    return WT_OK;
}

// A few published files have tokens with spaces.
wt_status wt__tok_read_merge_line(wt_tokenizer *t, wt__tok_bytes *joined, const char *line, uint32_t rank, bool *set)
{
    wt_status status = WT_OK;
    *set = false;
    for (const char *gap = strchr(line, ' '); gap && !*set && !status; gap = strchr(gap + 1, ' '))
        status = wt__tok_try_merge(t, joined, line, (size_t)(gap - line), gap + 1, strlen(gap + 1), rank, set);
    return status;
}

// The halves of a token's text at `cut`, when both are tokens.
static bool halves(const wt_tokenizer *t, const char *name, size_t size, size_t cut, int32_t *left, int32_t *right)
{
    if (((unsigned char)name[cut] & 0xc0) == 0x80) return false; // within a character
    *left = wt__tok_find_token(t, name, cut);
    *right = *left < 0 ? -1 : wt__tok_find_token(t, name + cut, size - cut);
    return *right >= 0;
}

wt_status wt__tok_merges_of_ranks(wt_tokenizer *t, const uint32_t *rank)
{
    int32_t left, right;
    size_t n = 0;
    for (int pass = 0; pass < 2; pass++) {
        wt_status status = pass ? wt__tok_reserve_merges(t, n) : WT_OK;
        if (status) return status;
        for (int32_t id = 0; id < t->n_tokens; id++) {
            if (t->name[id] < 0 || rank[id] == UINT32_MAX) continue;
            const char *name = t->names.at + t->name[id];
            size_t size = strlen(name);
            for (size_t cut = 1; cut < size && size < 1024; cut++) {
                if (!halves(t, name, size, cut, &left, &right)) continue;
                if (pass) wt__tok_set_merge(t, left, right, rank[id], id);
                n++;
            }
        }
    }
    return WT_OK;
}

// --- The merge loop -------------------------------------------------------------------------------------------------

typedef struct symbol {
    int32_t id;         // -1 = merged into its left neighbour
    int32_t prev, next; // -1 = none
} symbol;

typedef struct candidate {
    uint32_t rank;
    int32_t at, id; // symbol on the left, and what the two become
} candidate;

static bool before(candidate a, candidate b) { return a.rank != b.rank ? a.rank < b.rank : a.at < b.at; }

static void heap_push(candidate *heap, size_t *n, candidate c)
{
    size_t i = (*n)++;
    for (; i > 0 && before(c, heap[(i - 1) / 2]); i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = c;
}

static candidate heap_pop(candidate *heap, size_t *n)
{
    candidate top = heap[0], last = heap[--*n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < *n; i = child) {
        if (child + 1 < *n && before(heap[child + 1], heap[child])) child++;
        if (!before(heap[child], last)) break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return top;
}

static void consider(const wt_tokenizer *t, const symbol *symbols, int32_t left, candidate *heap, size_t *n)
{
    if (left < 0 || symbols[left].next < 0 || !t->n_merge_slots) return;
    uint64_t pair = pair_of(symbols[left].id, symbols[symbols[left].next].id);
    const wt__tok_merge *merge = merge_slot(t, pair);
    if (merge->pair == pair) heap_push(heap, n, (candidate){merge->rank, left, merge->id});
}

// The heap never holds more than 3 n candidates: n - 1 at first, and two for each of n - 1 merges.
static void merge_all(const wt_tokenizer *t, symbol *symbols, int32_t n, candidate *heap)
{
    size_t n_heap = 0;
    for (int32_t i = 0; i + 1 < n; i++) consider(t, symbols, i, heap, &n_heap);
    while (n_heap) {
        candidate best = heap_pop(heap, &n_heap);
        symbol *left = &symbols[best.at];
        if (left->id < 0 || left->next < 0) continue;
        symbol *right = &symbols[left->next];
        uint64_t pair = pair_of(left->id, right->id);
        const wt__tok_merge *merge = merge_slot(t, pair);
        if (merge->pair != pair || merge->id != best.id) continue; // a neighbour has changed since
        left->id = best.id;
        left->next = right->next;
        right->id = -1;
        if (left->next >= 0) symbols[left->next].prev = best.at;
        consider(t, symbols, left->prev, heap, &n_heap);
        consider(t, symbols, best.at, heap, &n_heap);
    }
}

// --- A piece --------------------------------------------------------------------------------------------------------

void wt__tok_put_id(wt__tok_work *work, int32_t id)
{
    if (work->n_ids < work->max_ids) work->ids[work->n_ids] = id;
    work->n_ids++;
}

// The characters' ids: the vocabulary's, else those of their bytes, else the unknown token (one for a run of unknown
// characters where the file says so), else nothing.
static int32_t first_symbols(const wt_tokenizer *t, const char *piece, size_t size, symbol *symbols)
{
    int32_t n = 0;
    bool in_unknown = false;
    for (size_t i = 0, length; i < size; i += length) {
        uint32_t c;
        length = wt__utf8_next(piece + i, size - i, &c, NULL);
        int32_t id = c < 512 ? t->low[c] : wt__tok_find_token(t, piece + i, length);
        bool bytes = id < 0 && t->byte_fallback;
        for (size_t k = 0; k < length && bytes; k++) bytes = t->byte_token[(unsigned char)piece[i + k]] >= 0;
        for (size_t k = 0; k < length && bytes; k++) symbols[n++].id = t->byte_token[(unsigned char)piece[i + k]];
        bool unknown = id < 0 && !bytes && t->unknown >= 0;
        if (id >= 0) symbols[n++].id = id;
        if (unknown && !(in_unknown && t->fuse_unknown)) symbols[n++].id = t->unknown;
        in_unknown = unknown;
    }
    for (int32_t k = 0; k < n; k++) {
        symbols[k].prev = k - 1;
        symbols[k].next = k + 1 < n ? k + 1 : -1;
    }
    return n;
}

wt_status wt__tok_bpe(wt__tok_work *work, const char *piece, size_t size)
{
    const wt_tokenizer *t = work->t;
    // most words are one token: the tables say so once the merge loop has shown it
    int32_t whole = size < 256 ? wt__tok_find_token(t, piece, size) : -1;
    if (whole >= 0 &&
        (t->ignore_merges || atomic_load_explicit(&t->whole[whole], memory_order_relaxed) == 1)) { // any order: a memo
        wt__tok_put_id(work, whole);
        return WT_OK;
    }
    if (!wt__tok_grow(&work->symbols, &work->symbol_room, size, sizeof(symbol))) return wt__tok_no_memory();
    if (!wt__tok_grow(&work->heap, &work->heap_room, 3 * size, sizeof(candidate))) return wt__tok_no_memory();
    symbol *symbols = work->symbols;
    int32_t n = first_symbols(t, piece, size, symbols);
    merge_all(t, symbols, n, work->heap);
    for (int32_t i = n ? 0 : -1; i >= 0; i = symbols[i].next) wt__tok_put_id(work, symbols[i].id);
    if (whole >= 0 && n)
        atomic_store_explicit(&t->whole[whole], symbols[0].id == whole && symbols[0].next < 0 ? 1 : 2,
                              memory_order_relaxed);
    return WT_OK;
}
