// Values of chat templates: how they are made, compared and looked into.
// Judge: jinja2 3.1 on CPython 3.11.
#include "chat_internal.h"
#include "utf8.h"

#include <string.h>

// --- Making values ---------------------------------------------------------------------------------------------------

void wt__chat_append(wt__chat_render *r, wt__chat_builder *b, const char *s, size_t n)
{
    if (b->size + n + 1 > b->room) {
        size_t room = b->room * 2 > b->size + n + 1 ? b->room * 2 : b->size + n + 64;
        char *grown = wt__chat_heap_take(&r->heap, room);
        if (b->size) memcpy(grown, b->at, b->size);
        b->at = grown;
        b->room = room;
    }
    if (n) memcpy(b->at + b->size, s, n);
    b->size += n;
    b->at[b->size] = 0;
}

void wt__chat_append_text(wt__chat_render *r, wt__chat_builder *b, const char *s)
{
    wt__chat_append(r, b, s, strlen(s));
}

wt__chat_value wt__chat_built(const wt__chat_builder *b)
{
    return (wt__chat_value){WT__STRING, (uint32_t)b->size, {.s = b->at ? b->at : ""}};
}

wt__chat_value wt__chat_string(wt__chat_render *r, const char *s, size_t n)
{
    char *kept = wt__chat_heap_take(&r->heap, n + 1);
    if (n) memcpy(kept, s, n);
    return (wt__chat_value){WT__STRING, (uint32_t)n, {.s = kept}};
}

wt__chat_value wt__chat_key(const char *name)
{
    return (wt__chat_value){WT__STRING, (uint32_t)strlen(name), {.s = name}};
}
wt__chat_value wt__chat_bool(bool b) { return (wt__chat_value){WT__BOOL, 0, {b}}; }
wt__chat_value wt__chat_int(int64_t i) { return (wt__chat_value){WT__INT, 0, {i}}; }
wt__chat_value wt__chat_undefined(const char *name) { return (wt__chat_value){WT__UNDEFINED, 0, {.s = name}}; }

wt__chat_value wt__chat_new_list(wt__chat_render *r)
{
    return (wt__chat_value){WT__LIST, 0, {.list = wt__chat_heap_take(&r->heap, sizeof(wt__chat_list))}};
}

wt__chat_value wt__chat_new_map(wt__chat_render *r)
{
    return (wt__chat_value){WT__MAP, 0, {.map = wt__chat_heap_take(&r->heap, sizeof(wt__chat_map))}};
}

void wt__chat_list_add(wt__chat_render *r, wt__chat_list *list, wt__chat_value v)
{
    wt__chat_heap_grow(&r->heap, (void **)&list->at, &list->room, list->n, sizeof *list->at);
    list->at[list->n++] = v;
}

const wt__chat_value *wt__chat_map_get(wt__chat_render *r, const wt__chat_map *map, wt__chat_value key)
{
    wt__chat_step(r, map->n / 8);
    for (size_t i = 0; i < map->n; i++)
        if (wt__chat_equal(r, map->at[i].key, key)) return &map->at[i].value;
    return NULL;
}

void wt__chat_map_set(wt__chat_render *r, wt__chat_map *map, wt__chat_value key, wt__chat_value v)
{
    wt__chat_value *there = (wt__chat_value *)wt__chat_map_get(r, map, key);
    if (there) {
        *there = v;
        return;
    }
    wt__chat_heap_grow(&r->heap, (void **)&map->at, &map->room, map->n, sizeof *map->at);
    map->at[map->n++] = (wt__chat_entry){key, v};
}

// --- Questions -------------------------------------------------------------------------------------------------------

bool wt__chat_is(wt__chat_value v, const char *text)
{
    return v.kind == WT__STRING && v.size == strlen(text) && !memcmp(v.s, text, v.size);
}

bool wt__chat_is_view(wt__chat_value v) { return v.kind == WT__LIST && v.size > WT__TUPLE; }

const char *wt__chat_kind_name(wt__chat_value v)
{
    static const char *const names[] = {"undefined", "None",   "a bool", "an int", "a float",
                                        "a string",  "a list", "a dict", "a loop", "a function"};
    return v.kind != WT__LIST || !v.size ? names[v.kind] : v.size == WT__TUPLE ? "a tuple" : "a view of a dict";
}

size_t wt__chat_length(wt__chat_render *r, wt__chat_value v)
{
    size_t n = 0;
    switch (v.kind) {
    case WT__UNDEFINED:
        return 0;
    case WT__LIST:
        return v.list->n;
    case WT__MAP:
        return v.map->n;
    case WT__STRING:
        wt__chat_step(r, v.size / 64);
        for (uint32_t i = 0; i < v.size; i++) n += ((unsigned char)v.s[i] & 0xc0) != 0x80;
        return n;
    default:
        wt__chat_raise(r, "%s has no length", wt__chat_kind_name(v));
    }
}

bool wt__chat_truth(wt__chat_render *r, wt__chat_value v)
{
    (void)r;
    switch (v.kind) {
    case WT__UNDEFINED:
    case WT__NONE:
        return false;
    case WT__BOOL:
    case WT__INT:
        return v.i != 0;
    case WT__FLOAT:
        return v.f != 0;
    case WT__STRING:
        return v.size > 0;
    case WT__LIST:
        return v.list->n > 0;
    case WT__MAP:
        return v.size || v.map->n > 0;
    default:
        return true;
    }
}

bool wt__chat_is_number(wt__chat_value v)
{
    return v.kind == WT__BOOL || v.kind == WT__INT || v.kind == WT__FLOAT;
}

static double number_of(wt__chat_value v) { return v.kind == WT__FLOAT ? v.f : (double)v.i; }

static bool equal_maps(wt__chat_render *r, const wt__chat_map *a, const wt__chat_map *b)
{
    for (size_t i = 0; i < a->n; i++) {
        const wt__chat_value *other = wt__chat_map_get(r, b, a->at[i].key);
        if (!other || !wt__chat_equal(r, a->at[i].value, *other)) return false;
    }
    return a->n == b->n;
}

bool wt__chat_equal(wt__chat_render *r, wt__chat_value a, wt__chat_value b)
{
    if (wt__chat_is_number(a) && wt__chat_is_number(b))
        return a.kind == WT__FLOAT || b.kind == WT__FLOAT ? number_of(a) == number_of(b) : a.i == b.i;
    if (a.kind != b.kind) return false;
    switch (a.kind) {
    case WT__UNDEFINED:
    case WT__NONE:
        return true;
    case WT__STRING:
        return a.size == b.size && !memcmp(a.s, b.s, a.size);
    case WT__LIST: {
        bool same = a.size == b.size && a.list->n == b.list->n;
        wt__chat_enter(r);
        for (size_t i = 0; same && i < a.list->n; i++) same = wt__chat_equal(r, a.list->at[i], b.list->at[i]);
        wt__chat_leave(r);
        return same;
    }
    case WT__MAP: {
        wt__chat_enter(r);
        bool same = a.map == b.map || equal_maps(r, a.map, b.map);
        wt__chat_leave(r);
        return same;
    }
    default:
        return a.s == b.s;
    }
}

int wt__chat_compare(wt__chat_render *r, wt__chat_value a, wt__chat_value b)
{
    wt__chat_step(r, 1);
    if (wt__chat_is_number(a) && wt__chat_is_number(b)) {
        if (a.kind != WT__FLOAT && b.kind != WT__FLOAT) return (a.i > b.i) - (a.i < b.i);
        return (number_of(a) > number_of(b)) - (number_of(a) < number_of(b));
    }
    if (a.kind == WT__STRING && b.kind == WT__STRING) { // the order of UTF-8's bytes is that of its characters
        int order = memcmp(a.s, b.s, a.size < b.size ? a.size : b.size);
        return order ? order : (a.size > b.size) - (a.size < b.size);
    }
    if (a.kind != WT__LIST || b.kind != WT__LIST)
        wt__chat_raise(r, "%s and %s have no order", wt__chat_kind_name(a), wt__chat_kind_name(b));
    for (size_t i = 0; i < a.list->n && i < b.list->n; i++) {
        wt__chat_enter(r);
        bool same = wt__chat_equal(r, a.list->at[i], b.list->at[i]);
        int order = same ? 0 : wt__chat_compare(r, a.list->at[i], b.list->at[i]);
        wt__chat_leave(r);
        if (!same) return order;
    }
    return (a.list->n > b.list->n) - (a.list->n < b.list->n);
}

bool wt__chat_contains(wt__chat_render *r, wt__chat_value whole, wt__chat_value part)
{
    switch (whole.kind) {
    case WT__UNDEFINED:
        return false;
    case WT__STRING:
        if (part.kind != WT__STRING) wt__chat_raise(r, "%s in a string, want a string", wt__chat_kind_name(part));
        wt__chat_step(r, whole.size / 64);
        return memmem(whole.s, whole.size, part.s, part.size) != NULL;
    case WT__MAP:
        return wt__chat_map_get(r, whole.map, part) != NULL;
    case WT__LIST:
        wt__chat_step(r, whole.list->n);
        for (size_t i = 0; i < whole.list->n; i++)
            if (wt__chat_equal(r, whole.list->at[i], part)) return true;
        return false;
    default:
        wt__chat_raise(r, "\"in\" %s, want a list, a dict or a string", wt__chat_kind_name(whole));
    }
}

wt__chat_value wt__chat_elements(wt__chat_render *r, wt__chat_value v)
{
    if (v.kind == WT__LIST) return v;
    wt__chat_value list = wt__chat_new_list(r);
    wt__chat_step(r, v.kind == WT__STRING ? v.size : v.kind == WT__MAP ? v.map->n : 1);
    switch (v.kind) {
    case WT__UNDEFINED:
        break;
    case WT__MAP:
        for (size_t i = 0; i < v.map->n; i++) wt__chat_list_add(r, list.list, v.map->at[i].key);
        break;
    case WT__STRING:
        for (uint32_t i = 0, n; i < v.size; i += n) {
            uint32_t c;
            n = (uint32_t)wt__utf8_next(v.s + i, v.size - i, &c, NULL);
            wt__chat_list_add(r, list.list, (wt__chat_value){WT__STRING, n, {.s = v.s + i}});
        }
        break;
    default:
        wt__chat_raise(r, "%s cannot be iterated", wt__chat_kind_name(v));
    }
    return list;
}
