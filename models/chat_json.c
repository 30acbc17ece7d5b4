// Values of chat templates to JSON and from it.
// Judge: json.dumps of CPython 3.11, as transformers calls it.
#include "chat_internal.h"
#include "json.h"
#include "utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_json_string(wt__chat_render *r, wt__chat_builder *b, wt__chat_value v, bool ascii)
{
    static const char plain[] = "\"\\\n\r\t\b\f", letter[] = "\"\\nrtbf";
    wt__chat_append_text(r, b, "\"");
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
        wt__chat_append_text(r, b, text);
    }
    wt__chat_append_text(r, b, "\"");
}

static void new_line(wt__chat_render *r, wt__chat_builder *b, const wt__chat_json_style *style, int level)
{
    if (style->indent < 0) return;
    wt__chat_append_text(r, b, "\n");
    for (int i = 0; i < style->indent * level; i++) wt__chat_append_text(r, b, " ");
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
        wt__chat_append_text(r, b, otherwise);
}

static void write_json_map(wt__chat_render *r, wt__chat_builder *b, const wt__chat_map *map,
                           const wt__chat_json_style *style, int level)
{
    wt__chat_entry *at = wt__chat_heap_take(&r->heap, (map->n + 1) * sizeof *at);
    if (map->n) memcpy(at, map->at, map->n * sizeof *at);
    for (size_t i = 0; i < map->n; i++) at[i].key = wt__chat_to_string(r, at[i].key);
    if (style->sort_keys) qsort(at, map->n, sizeof *at, by_key);
    wt__chat_append_text(r, b, "{");
    for (size_t i = 0; i < map->n; i++) {
        if (i) write_separator(r, b, style->item_separator, style->indent < 0 ? ", " : ",");
        new_line(r, b, style, level + 1);
        write_json_string(r, b, at[i].key, style->ascii);
        write_separator(r, b, style->key_separator, ": ");
        wt__chat_write_json(r, b, at[i].value, style, level + 1);
    }
    if (map->n) new_line(r, b, style, level);
    wt__chat_append_text(r, b, "}");
}

void wt__chat_write_json(wt__chat_render *r, wt__chat_builder *b, wt__chat_value v, const wt__chat_json_style *style,
                         int level)
{
    wt__chat_enter(r);
    switch (v.kind) {
    case WT__NONE:
        wt__chat_append_text(r, b, "null");
        break;
    case WT__BOOL:
        wt__chat_append_text(r, b, v.i ? "true" : "false");
        break;
    case WT__FLOAT:
        if (isfinite(v.f))
            wt__chat_write(r, b, v);
        else
            wt__chat_append_text(r, b, isnan(v.f) ? "NaN" : v.f > 0 ? "Infinity" : "-Infinity");
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
        if (wt__chat_is_view(v)) wt__chat_raise(r, "tojson of %s", wt__chat_kind_name(v));
        wt__chat_append_text(r, b, "[");
        for (size_t i = 0; i < v.list->n; i++) {
            if (i) write_separator(r, b, style->item_separator, style->indent < 0 ? ", " : ",");
            new_line(r, b, style, level + 1);
            wt__chat_write_json(r, b, v.list->at[i], style, level + 1);
        }
        if (v.list->n) new_line(r, b, style, level);
        wt__chat_append_text(r, b, "]");
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
