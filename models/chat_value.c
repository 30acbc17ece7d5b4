// Values of chat templates: memory, comparison, and their text as Python and JSON write it.
// Judge: jinja2 3.1 on CPython 3.11 and json.dumps as transformers calls it.
#include "chat_internal.h"
#include "json.h"
#include "utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- Memory ---------------------------------------------------------------------------------------------------------

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

// --- Making values --------------------------------------------------------------------------------------------------

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

static void append(wt__chat_render *r, wt__chat_builder *b, const char *s) { wt__chat_append(r, b, s, strlen(s)); }

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

// --- Questions ------------------------------------------------------------------------------------------------------

bool wt__chat_is(wt__chat_value v, const char *text)
{
    return v.kind == WT__STRING && v.size == strlen(text) && !memcmp(v.s, text, v.size);
}

const char *wt__chat_kind_name(wt__chat_value v)
{
    static const char *const names[] = {"undefined", "None",   "a bool", "an int", "a float",
                                        "a string",  "a list", "a dict", "a loop", "a function"};
    return names[v.kind];
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

static bool is_number(wt__chat_value v) { return v.kind == WT__BOOL || v.kind == WT__INT || v.kind == WT__FLOAT; }
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
    if (is_number(a) && is_number(b))
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
    if (is_number(a) && is_number(b)) {
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

// --- As Python writes it --------------------------------------------------------------------------------------------

// repr(float): the fewest digits that read back the same; an exponent below 1e-4 and from 1e16 on.
static void write_float(wt__chat_render *r, wt__chat_builder *b, double f)
{
    char digits[40], out[64];
    int precision = 0, exponent, n = 0;
    if (!isfinite(f)) {
        append(r, b, isnan(f) ? "nan" : f > 0 ? "inf" : "-inf");
        return;
    }
    do snprintf(digits, sizeof digits, "%.*e", precision, f);
    while (strtod(digits, NULL) != f && ++precision < 17);
    exponent = atoi(strchr(digits, 'e') + 1);
    const char *d = digits + (*digits == '-');
    if (*digits == '-') out[n++] = '-';
    char mantissa[24] = {d[0]};
    if (precision) memcpy(mantissa + 1, d + 2, (size_t)precision); // the point's sign is the locale's
    if (exponent < -4 || exponent >= 16)
        snprintf(out + n, sizeof out - (size_t)n, "%c%s%se%c%02d", mantissa[0], precision ? "." : "", mantissa + 1,
                 exponent < 0 ? '-' : '+', abs(exponent));
    else if (exponent < 0)
        snprintf(out + n, sizeof out - (size_t)n, "0.%.*s%s", -exponent - 1, "0000", mantissa);
    else if (precision > exponent)
        snprintf(out + n, sizeof out - (size_t)n, "%.*s.%s", exponent + 1, mantissa, mantissa + exponent + 1);
    else
        snprintf(out + n, sizeof out - (size_t)n, "%s%.*s.0", mantissa, exponent - precision, "0000000000000000");
    append(r, b, out);
}

// repr(str), for lists and dicts that are written whole.
static void write_repr(wt__chat_render *r, wt__chat_builder *b, wt__chat_value v)
{
    if (v.kind != WT__STRING) {
        if (v.kind == WT__UNDEFINED)
            append(r, b, "Undefined");
        else
            wt__chat_write(r, b, v);
        return;
    }
    char quote = memchr(v.s, '\'', v.size) && !memchr(v.s, '"', v.size) ? '"' : '\'';
    wt__chat_append(r, b, &quote, 1);
    for (uint32_t i = 0; i < v.size; i++) {
        char c = v.s[i], text[8];
        if (c == quote || c == '\\')
            snprintf(text, sizeof text, "\\%c", c);
        else if (c == '\n' || c == '\r' || c == '\t')
            snprintf(text, sizeof text, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
        else if ((unsigned char)c < ' ' || c == 127)
            snprintf(text, sizeof text, "\\x%02x", (unsigned char)c);
        else
            snprintf(text, sizeof text, "%c", c);
        append(r, b, text);
    }
    wt__chat_append(r, b, &quote, 1);
}

static void write_list(wt__chat_render *r, wt__chat_builder *b, wt__chat_value v)
{
    append(r, b, v.size ? "(" : "[");
    for (size_t i = 0; i < v.list->n; i++) {
        if (i) append(r, b, ", ");
        write_repr(r, b, v.list->at[i]);
    }
    append(r, b, v.size ? v.list->n == 1 ? ",)" : ")" : "]");
}

void wt__chat_write(wt__chat_render *r, wt__chat_builder *b, wt__chat_value v)
{
    char text[32];
    wt__chat_enter(r);
    switch (v.kind) {
    case WT__UNDEFINED:
        break;
    case WT__NONE:
        append(r, b, "None");
        break;
    case WT__BOOL:
        append(r, b, v.i ? "True" : "False");
        break;
    case WT__INT:
        snprintf(text, sizeof text, "%lld", (long long)v.i);
        append(r, b, text);
        break;
    case WT__FLOAT:
        write_float(r, b, v.f);
        break;
    case WT__STRING:
        wt__chat_step(r, v.size / 64);
        wt__chat_append(r, b, v.s, v.size);
        break;
    case WT__LIST:
        write_list(r, b, v);
        break;
    case WT__MAP:
        append(r, b, "{");
        for (size_t i = 0; i < v.map->n; i++) {
            if (i) append(r, b, ", ");
            write_repr(r, b, v.map->at[i].key);
            append(r, b, ": ");
            write_repr(r, b, v.map->at[i].value);
        }
        append(r, b, "}");
        break;
    default:
        wt__chat_raise(r, "%s has no text", wt__chat_kind_name(v));
    }
    wt__chat_leave(r);
}

wt__chat_value wt__chat_to_string(wt__chat_render *r, wt__chat_value v)
{
    wt__chat_builder b = {0};
    if (v.kind == WT__STRING) return v;
    wt__chat_write(r, &b, v);
    return wt__chat_built(&b);
}

// --- JSON -----------------------------------------------------------------------------------------------------------

static void write_json_string(wt__chat_render *r, wt__chat_builder *b, wt__chat_value v, bool ascii)
{
    static const char plain[] = "\"\\\n\r\t\b\f", letter[] = "\"\\nrtbf";
    append(r, b, "\"");
    wt__chat_step(r, v.size / 16);
    for (uint32_t i = 0, n; i < v.size; i += n) {
        uint32_t c;
        char text[16];
        n = (uint32_t)wt__utf8_next(v.s + i, v.size - i, &c, NULL);
        const char *escape = c && c < 128 ? strchr(plain, (int)c) : NULL;
        if (escape)
            snprintf(text, sizeof text, "\\%c", letter[escape - plain]);
        else if (c < ' ' || (ascii && c > 126 && c < 0x10000))
            snprintf(text, sizeof text, "\\u%04x", c);
        else if (ascii && c > 0xffff)
            snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
        else {
            wt__chat_append(r, b, v.s + i, n);
            continue;
        }
        append(r, b, text);
    }
    append(r, b, "\"");
}

static void new_line(wt__chat_render *r, wt__chat_builder *b, const wt__chat_json_style *style, int level)
{
    if (style->indent < 0) return;
    append(r, b, "\n");
    for (int i = 0; i < style->indent * level; i++) append(r, b, " ");
}

static int by_key(const void *a, const void *b)
{
    const wt__chat_entry *x = a, *y = b;
    int order = memcmp(x->key.s, y->key.s, x->key.size < y->key.size ? x->key.size : y->key.size);
    return order ? order : (x->key.size > y->key.size) - (x->key.size < y->key.size);
}

static void write_separator(wt__chat_render *r, wt__chat_builder *b, wt__chat_value given, const char *otherwise)
{
    if (given.kind == WT__STRING)
        wt__chat_append(r, b, given.s, given.size);
    else
        append(r, b, otherwise);
}

static void write_json_map(wt__chat_render *r, wt__chat_builder *b, const wt__chat_map *map,
                           const wt__chat_json_style *style, int level)
{
    wt__chat_entry *at = wt__chat_heap_take(&r->heap, (map->n + 1) * sizeof *at);
    if (map->n) memcpy(at, map->at, map->n * sizeof *at);
    for (size_t i = 0; i < map->n; i++) at[i].key = wt__chat_to_string(r, at[i].key);
    if (style->sort_keys) qsort(at, map->n, sizeof *at, by_key);
    append(r, b, "{");
    for (size_t i = 0; i < map->n; i++) {
        if (i) write_separator(r, b, style->item_separator, style->indent < 0 ? ", " : ",");
        new_line(r, b, style, level + 1);
        write_json_string(r, b, at[i].key, style->ascii);
        write_separator(r, b, style->key_separator, ": ");
        wt__chat_write_json(r, b, at[i].value, style, level + 1);
    }
    if (map->n) new_line(r, b, style, level);
    append(r, b, "}");
}

void wt__chat_write_json(wt__chat_render *r, wt__chat_builder *b, wt__chat_value v, const wt__chat_json_style *style,
                         int level)
{
    wt__chat_enter(r);
    switch (v.kind) {
    case WT__NONE:
        append(r, b, "null");
        break;
    case WT__BOOL:
        append(r, b, v.i ? "true" : "false");
        break;
    case WT__FLOAT:
        if (isfinite(v.f))
            write_float(r, b, v.f);
        else
            append(r, b, isnan(v.f) ? "NaN" : v.f > 0 ? "Infinity" : "-Infinity");
        break;
    case WT__INT:
        wt__chat_write(r, b, v);
        break;
    case WT__STRING:
        write_json_string(r, b, v, style->ascii);
        break;
    case WT__MAP:
        write_json_map(r, b, v.map, style, level);
        break;
    case WT__LIST:
        append(r, b, "[");
        for (size_t i = 0; i < v.list->n; i++) {
            if (i) write_separator(r, b, style->item_separator, style->indent < 0 ? ", " : ",");
            new_line(r, b, style, level + 1);
            wt__chat_write_json(r, b, v.list->at[i], style, level + 1);
        }
        if (v.list->n) new_line(r, b, style, level);
        append(r, b, "]");
        break;
    default:
        wt__chat_raise(r, "tojson of %s", wt__chat_kind_name(v));
    }
    wt__chat_leave(r);
}

// Copies of jansson's values.
static wt__chat_value convert(wt__chat_render *r, const json_t *json)
{
    const char *key;
    json_t *element;
    wt__chat_value v;
    switch (json_typeof(json)) {
    case JSON_STRING:
        return wt__chat_string(r, json_string_value(json), json_string_length(json));
    case JSON_INTEGER:
        return wt__chat_int(json_integer_value(json));
    case JSON_REAL:
        return (wt__chat_value){WT__FLOAT, 0, {.f = json_real_value(json)}};
    case JSON_TRUE:
    case JSON_FALSE:
        return wt__chat_bool(json_is_true(json));
    case JSON_NULL:
        return (wt__chat_value){.kind = WT__NONE};
    case JSON_ARRAY:
        v = wt__chat_new_list(r);
        for (size_t i = 0; i < json_array_size(json); i++)
            wt__chat_list_add(r, v.list, convert(r, json_array_get(json, i)));
        return v;
    default:
        v = wt__chat_new_map(r);
        json_object_foreach((json_t *)json, key, element)
        {
            wt__chat_value name = wt__chat_string(r, key, strlen(key)), value = convert(r, element);
            wt__chat_heap_grow(&r->heap, (void **)&v.map->at, &v.map->room, v.map->n, sizeof *v.map->at);
            v.map->at[v.map->n++] = (wt__chat_entry){name, value}; // keys are not twice in a JSON object
        }
        return v;
    }
}

wt__chat_value wt__chat_from_json(wt__chat_render *r, const char *what, const char *text)
{
    json_t *json = NULL;
    wt_status status = wt__json_load(what, text, strlen(text), JSON_DECODE_ANY | JSON_ALLOW_NUL, &json);
    if (status) {
        r->heap.status = status;
        longjmp(r->heap.out, 1);
    }
    jmp_buf out; // jansson's value is no part of the heap: give it back on the way out
    memcpy(&out, &r->heap.out, sizeof out);
    if (setjmp(r->heap.out)) {
        json_decref(json);
        memcpy(&r->heap.out, &out, sizeof out);
        longjmp(r->heap.out, 1);
    }
    wt__chat_value v = convert(r, json);
    memcpy(&r->heap.out, &out, sizeof out);
    json_decref(json);
    return v;
}
