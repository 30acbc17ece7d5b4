// Attributes, items, operators, and the methods of strings, lists and dicts, as Python has them.
#include "chat_internal.h"
#include "utf8.h"

#include <math.h>
#include <string.h>
#include <utf8proc.h>

const wt__chat_value *wt__chat_arg(const wt__chat_args *args, size_t i, const char *name)
{
    if (i < args->n_positional) return &args->at[i];
    for (size_t k = args->n_positional; k < args->n && name; k++)
        if (!strcmp(args->names[k], name)) return &args->at[k];
    return NULL;
}

// --- Attributes and items -------------------------------------------------------------------------------------------

static wt__chat_value loop_attribute(wt__chat_render *r, wt__chat_value v, const char *name)
{
    const wt__chat_loop *loop = v.loop;
    if (!loop->list) wt__chat_raise(r, "loop.%.32s behind its loop", name);
    int64_t i = (int64_t)loop->index, n = (int64_t)loop->list->n;
    if (!strcmp(name, "index")) return wt__chat_int(i + 1);
    if (!strcmp(name, "index0")) return wt__chat_int(i);
    if (!strcmp(name, "revindex")) return wt__chat_int(n - i);
    if (!strcmp(name, "revindex0")) return wt__chat_int(n - i - 1);
    if (!strcmp(name, "first")) return wt__chat_bool(i == 0);
    if (!strcmp(name, "last")) return wt__chat_bool(i == n - 1);
    if (!strcmp(name, "length")) return wt__chat_int(n);
    if (!strcmp(name, "depth")) return wt__chat_int(1); // counts recursion, which there is none of
    if (!strcmp(name, "depth0")) return wt__chat_int(0);
    if (!strcmp(name, "previtem")) return i ? loop->list->at[i - 1] : wt__chat_undefined("loop.previtem");
    if (!strcmp(name, "nextitem")) return i + 1 < n ? loop->list->at[i + 1] : wt__chat_undefined("loop.nextitem");
    return wt__chat_undefined(name);
}

static wt__chat_value bound_method(wt__chat_render *r, wt__chat_value self, const char *name)
{
    wt__chat_callable *call = wt__chat_heap_take(&r->heap, sizeof *call);
    call->name = name;
    call->self = self;
    return (wt__chat_value){WT__CALLABLE, 0, {.call = call}};
}

wt__chat_value wt__chat_attribute(wt__chat_render *r, wt__chat_value v, const char *name, bool item_first)
{
    if (v.kind == WT__UNDEFINED) wt__chat_raise(r, "'%.64s' is undefined, and asked for '%.64s'", v.s ? v.s : "", name);
    const wt__chat_value *there = v.kind == WT__MAP ? wt__chat_map_get(r, v.map, wt__chat_key(name)) : NULL;
    bool space = v.kind == WT__MAP && v.size;
    if (there && (item_first || space)) return *there;
    if (!space && wt__chat_has_method(v, name)) return bound_method(r, v, name);
    if (there) return *there;
    return v.kind == WT__LOOP ? loop_attribute(r, v, name) : wt__chat_undefined(name);
}

// Where character `k` of a string begins; its size for the one behind the last.
static uint32_t character(wt__chat_render *r, wt__chat_value v, int64_t k)
{
    uint32_t i = 0;
    wt__chat_step(r, v.size / 64);
    for (; i < v.size; i++)
        if (((unsigned char)v.s[i] & 0xc0) != 0x80 && k-- == 0) break;
    return i;
}

// Does it have places in an order: a text, a list, a tuple?
static bool is_sequence(wt__chat_value v)
{
    return v.kind == WT__STRING || (v.kind == WT__LIST && !wt__chat_is_view(v));
}

wt__chat_value wt__chat_item(wt__chat_render *r, wt__chat_value v, wt__chat_value key)
{
    if (v.kind == WT__MAP && key.kind != WT__STRING) {
        const wt__chat_value *there = wt__chat_map_get(r, v.map, key);
        return there ? *there : wt__chat_undefined("an item of a dict");
    }
    if (key.kind == WT__STRING) return wt__chat_attribute(r, v, wt__chat_string(r, key.s, key.size).s, true);
    if (v.kind == WT__UNDEFINED) wt__chat_raise(r, "'%.64s' is undefined, and indexed", v.s ? v.s : "");
    if (!is_sequence(v) || (key.kind != WT__INT && key.kind != WT__BOOL)) return wt__chat_undefined("an item");
    int64_t n = (int64_t)wt__chat_length(r, v), i = key.i < 0 ? key.i + n : key.i;
    if (i < 0 || i >= n) return wt__chat_undefined("an item outside of its list");
    if (v.kind == WT__LIST) return v.list->at[i];
    uint32_t begin = character(r, v, i), end = character(r, v, i + 1);
    return wt__chat_mark_like((wt__chat_value){WT__STRING, end - begin, {.s = v.s + begin}}, v);
}

// An end of a slice: negative ones count from behind, all are held within low .. high (CPython, slice.indices).
static int64_t slice_end(wt__chat_render *r, wt__chat_value v, int64_t n, int64_t otherwise, int64_t low, int64_t high)
{
    if (v.kind == WT__NONE) return otherwise;
    if (v.kind != WT__INT && v.kind != WT__BOOL)
        wt__chat_raise(r, "a slice with %s, want integers", wt__chat_kind_name(v));
    int64_t i = v.i < 0 ? v.i + n : v.i;
    return i < low ? low : i > high ? high : i;
}

wt__chat_value wt__chat_slice(wt__chat_render *r, wt__chat_value v, wt__chat_value begin, wt__chat_value end,
                              wt__chat_value step)
{
    if (v.kind == WT__UNDEFINED) wt__chat_raise(r, "'%.64s' is undefined, and sliced", v.s ? v.s : "");
    if (!is_sequence(v)) wt__chat_raise(r, "a slice of %s", wt__chat_kind_name(v));
    int64_t by = step.kind == WT__INT ? step.i : 1;
    if (by == 0 || by == INT64_MIN) wt__chat_raise(r, "a slice with step 0");
    wt__chat_value all = wt__chat_elements(r, v), list = wt__chat_new_list(r);
    int64_t n = (int64_t)all.list->n;
    int64_t from = by > 0 ? slice_end(r, begin, n, 0, 0, n) : slice_end(r, begin, n, n - 1, -1, n - 1);
    int64_t to = by > 0 ? slice_end(r, end, n, n, 0, n) : slice_end(r, end, n, -1, -1, n - 1);
    wt__chat_builder text = {0};
    list.size = v.kind == WT__LIST ? v.size : 0;
    for (int64_t i = from; by > 0 ? i < to : i > to;) {
        wt__chat_step(r, 1);
        if (v.kind == WT__LIST)
            wt__chat_list_add(r, list.list, all.list->at[i]);
        else
            wt__chat_append(r, &text, all.list->at[i].s, all.list->at[i].size);
        if (by > 0 ? by > to - i : by < to - i) break;
        i += by;
    }
    return v.kind == WT__LIST ? list : wt__chat_mark_like(wt__chat_built(&text), v);
}

// --- Operators ------------------------------------------------------------------------------------------------------

static wt__chat_value repeat(wt__chat_render *r, wt__chat_value v, int64_t times)
{
    wt__chat_builder text = {0};
    wt__chat_value list = wt__chat_new_list(r);
    list.size = v.kind == WT__LIST ? v.size : WT__PLAIN_LIST;
    for (int64_t i = 0; i < times; i++) {
        wt__chat_step(r, 1 + (v.kind == WT__LIST ? v.list->n : 0));
        if (v.kind == WT__STRING) wt__chat_append(r, &text, v.s, v.size);
        for (size_t k = 0; v.kind == WT__LIST && k < v.list->n; k++) wt__chat_list_add(r, list.list, v.list->at[k]);
    }
    return v.kind == WT__STRING ? wt__chat_mark_like(wt__chat_built(&text), v) : list;
}

static wt__chat_value join(wt__chat_render *r, wt__chat_value a, wt__chat_value b)
{
    if (a.kind == WT__LIST) {
        wt__chat_value list = wt__chat_new_list(r);
        list.size = a.size;
        wt__chat_step(r, a.list->n + b.list->n);
        for (size_t i = 0; i < a.list->n; i++) wt__chat_list_add(r, list.list, a.list->at[i]);
        for (size_t i = 0; i < b.list->n; i++) wt__chat_list_add(r, list.list, b.list->at[i]);
        return list;
    }
    wt__chat_builder text = {0};
    wt__chat_step(r, ((size_t)a.size + b.size) / 64);
    wt__chat_append(r, &text, a.s, a.size);
    wt__chat_append(r, &text, b.s, b.size);
    return wt__chat_built(&text);
}

static wt__chat_value power(wt__chat_render *r, int64_t a, int64_t b)
{
    int64_t result = 1;
    for (; b > 0; b--) {
        wt__chat_step(r, 1);
        if (__builtin_mul_overflow(result, a, &result)) wt__chat_raise(r, "an integer of more than 64 bits");
    }
    return wt__chat_int(result);
}

static wt__chat_value integers(wt__chat_render *r, const char *op, int64_t a, int64_t b)
{
    int64_t result = 0;
    bool over = false;
    switch (op[0]) {
    case '+':
        over = __builtin_add_overflow(a, b, &result);
        break;
    case '-':
        over = __builtin_sub_overflow(a, b, &result);
        break;
    case '*':
        if (op[1]) return power(r, a, b);
        over = __builtin_mul_overflow(a, b, &result);
        break;
    default: // rounded down, the remainder has the divisor's sign
        if (b == 0 || (a == INT64_MIN && b == -1)) wt__chat_raise(r, "a division by zero");
        result = op[0] == '/' ? a / b - ((a % b != 0) && ((a < 0) != (b < 0)))
                              : a % b + ((a % b != 0) && ((a < 0) != (b < 0)) ? b : 0);
    }
    if (over) wt__chat_raise(r, "an integer of more than 64 bits");
    return wt__chat_int(result);
}

static wt__chat_value floats(wt__chat_render *r, const char *op, double a, double b)
{
    double result = 0;
    if (strchr("/%", op[0]) && b == 0) wt__chat_raise(r, "a division by zero");
    switch (op[0]) {
    case '+':
        result = a + b;
        break;
    case '-':
        result = a - b;
        break;
    case '*':
        result = op[1] ? pow(a, b) : a * b;
        break;
    case '/':
        result = op[1] ? floor(a / b) : a / b;
        break;
    default:
        result = a - b * floor(a / b);
    }
    return (wt__chat_value){WT__FLOAT, 0, {.f = result}};
}

wt__chat_value wt__chat_binary(wt__chat_render *r, const char *op, wt__chat_value a, wt__chat_value b)
{
    if (op[0] == '~') return join(r, wt__chat_to_string(r, a), wt__chat_to_string(r, b));
    if (op[0] == '+' && a.kind == WT__STRING && b.kind == WT__STRING && (a.marked || b.marked))
        return wt__chat_mark_like(join(r, wt__chat_escape(r, a), wt__chat_escape(r, b)), a.marked ? a : b);
    if (op[0] == '+' && a.kind == b.kind && is_sequence(a) && (a.kind == WT__STRING || a.size == b.size))
        return join(r, a, b);
    if (!strcmp(op, "*") && is_sequence(a) && (b.kind == WT__INT || b.kind == WT__BOOL)) return repeat(r, a, b.i);
    if (!strcmp(op, "*") && is_sequence(b) && (a.kind == WT__INT || a.kind == WT__BOOL)) return repeat(r, b, a.i);
    if (!wt__chat_is_number(a) || !wt__chat_is_number(b)) {
        const wt__chat_value *lost = a.kind == WT__UNDEFINED ? &a : b.kind == WT__UNDEFINED ? &b : NULL;
        if (lost) wt__chat_raise(r, "'%.64s' is undefined, at %s", lost->s ? lost->s : "", op);
        wt__chat_raise(r, "%s %s %s", wt__chat_kind_name(a), op, wt__chat_kind_name(b));
    }
    bool real = a.kind == WT__FLOAT || b.kind == WT__FLOAT || !strcmp(op, "/") || (!strcmp(op, "**") && b.i < 0);
    if (!real) return integers(r, op, a.i, b.i);
    return floats(r, op, a.kind == WT__FLOAT ? a.f : (double)a.i, b.kind == WT__FLOAT ? b.f : (double)b.i);
}

// --- Strings --------------------------------------------------------------------------------------------------------

static const wt__chat_value *text_arg(wt__chat_render *r, const wt__chat_args *args, size_t i, const char *name)
{
    const wt__chat_value *v = wt__chat_arg(args, i, name);
    if (!v || v->kind == WT__NONE) return NULL;
    if (v->kind != WT__STRING) wt__chat_raise(r, "%s, want a string", wt__chat_kind_name(*v));
    return v;
}

static wt__chat_value want_text(wt__chat_render *r, const wt__chat_args *args, size_t i, const char *name)
{
    const wt__chat_value *v = text_arg(r, args, i, name);
    if (!v) wt__chat_raise(r, "argument %zu is missing, want a string", i + 1);
    return *v;
}

static int64_t count_arg(wt__chat_render *r, const wt__chat_args *args, size_t i, const char *name)
{
    const wt__chat_value *v = wt__chat_arg(args, i, name);
    if (!v || v->kind == WT__NONE) return -1;
    if (v->kind != WT__INT) wt__chat_raise(r, "%s, want an integer", wt__chat_kind_name(*v));
    return v->i;
}

// Python's str.isspace()
static bool is_space(uint32_t c) { return wt__is_space(c) || (c >= 0x1c && c <= 0x1f); }

static bool strips(const char *s, uint32_t n, const wt__chat_value *chars)
{
    uint32_t c;
    wt__utf8_next(s, n, &c, NULL);
    return chars ? chars->size >= n && memmem(chars->s, chars->size, s, n) != NULL : is_space(c);
}

wt__chat_value wt__chat_strip(wt__chat_render *r, wt__chat_value v, const wt__chat_value *chars, bool left, bool right)
{
    wt__chat_step(r, v.size / 16);
    while (left && v.size) {
        uint32_t n = 1;
        while (n < v.size && ((unsigned char)v.s[n] & 0xc0) == 0x80) n++;
        if (!strips(v.s, n, chars)) break;
        v.s += n;
        v.size -= n;
    }
    while (right && v.size) {
        uint32_t n = 1;
        while (n < v.size && ((unsigned char)v.s[v.size - n] & 0xc0) == 0x80) n++;
        if (!strips(v.s + v.size - n, n, chars)) break;
        v.size -= n;
    }
    return v;
}

wt__chat_value wt__chat_replace_text(wt__chat_render *r, wt__chat_value v, wt__chat_value old, wt__chat_value fresh,
                                     int64_t count)
{
    wt__chat_builder out = {0};
    const char *s = v.s, *end = v.s + v.size;
    wt__chat_step(r, v.size / 16);
    for (; count != 0; count--) {
        const char *at = old.size ? memmem(s, (size_t)(end - s), old.s, old.size) : s;
        if (!at) break;
        wt__chat_append(r, &out, s, (size_t)(at - s));
        wt__chat_append(r, &out, fresh.s, fresh.size);
        s = at + old.size;
        if (old.size) continue;
        if (s == end) break; // an empty text stands before, between and behind all characters
        uint32_t c;
        size_t n = wt__utf8_next(s, (size_t)(end - s), &c, NULL);
        wt__chat_append(r, &out, s, n);
        s += n;
    }
    wt__chat_append(r, &out, s, (size_t)(end - s));
    return wt__chat_built(&out);
}

wt__chat_value wt__chat_map_case(wt__chat_render *r, wt__chat_value v, char how)
{
    wt__chat_builder out = {0};
    bool begins = true;
    wt__chat_step(r, v.size / 4);
    for (uint32_t i = 0, n; i < v.size; i += n) {
        uint32_t c;
        char text[4];
        n = (uint32_t)wt__utf8_next(v.s + i, v.size - i, &c, NULL);
        bool up = how == 'u' || (how != 'l' && begins);
        utf8proc_int32_t mapped = up ? utf8proc_toupper((utf8proc_int32_t)c) : utf8proc_tolower((utf8proc_int32_t)c);
        if (c == 0xdf && up)
            wt__chat_append(r, &out, how == 'u' ? "SS" : "Ss", 2); // SpecialCasing.txt
        else
            wt__chat_append(r, &out, text, wt__utf8_put((uint32_t)mapped, text));
        bool letter =
            utf8proc_category((utf8proc_int32_t)c) <= UTF8PROC_CATEGORY_LT && utf8proc_category((utf8proc_int32_t)c);
        // str.title() begins a word behind what has no case, jinja's filter behind these signs
        begins = how == 't' ? !letter : how == 'f' ? is_space(c) || (c < 128 && c && strchr("-({[<", (int)c)) : false;
    }
    return wt__chat_built(&out);
}

static wt__chat_value split_spaces(wt__chat_render *r, wt__chat_value v, int64_t most)
{
    wt__chat_value list = wt__chat_new_list(r);
    for (v = wt__chat_strip(r, v, NULL, true, false); v.size; v = wt__chat_strip(r, v, NULL, true, false)) {
        uint32_t end = 0;
        if (most-- == 0) {
            wt__chat_list_add(r, list.list, wt__chat_strip(r, v, NULL, false, true));
            break;
        }
        for (uint32_t n; end < v.size; end += n) {
            uint32_t c;
            n = (uint32_t)wt__utf8_next(v.s + end, v.size - end, &c, NULL);
            if (is_space(c)) break;
        }
        wt__chat_list_add(r, list.list, (wt__chat_value){WT__STRING, end, {.s = v.s}});
        v.s += end;
        v.size -= end;
    }
    return list;
}

static wt__chat_value split(wt__chat_render *r, wt__chat_value v, const wt__chat_value *by, int64_t most)
{
    if (!by) return split_spaces(r, v, most);
    if (!by->size) wt__chat_raise(r, "split by an empty string");
    wt__chat_value list = wt__chat_new_list(r);
    wt__chat_step(r, v.size / 16);
    for (const char *at; most-- != 0 && (at = memmem(v.s, v.size, by->s, by->size));) {
        uint32_t n = (uint32_t)(at - v.s);
        wt__chat_list_add(r, list.list, (wt__chat_value){WT__STRING, n, {.s = v.s}});
        v.s += n + by->size;
        v.size -= n + by->size;
    }
    wt__chat_list_add(r, list.list, v);
    return list;
}

static wt__chat_value rsplit(wt__chat_render *r, wt__chat_value v, wt__chat_value by, int64_t most)
{
    wt__chat_value all = split(r, v, &by, -1), list = wt__chat_new_list(r);
    size_t n = all.list->n, joined = most >= 0 && (size_t)most < n - 1 ? n - (size_t)most : 1;
    const wt__chat_value *last = &all.list->at[joined - 1];
    wt__chat_list_add(r, list.list, (wt__chat_value){WT__STRING, (uint32_t)(last->s + last->size - v.s), {.s = v.s}});
    for (size_t i = joined; i < n; i++) wt__chat_list_add(r, list.list, all.list->at[i]);
    return list;
}

static wt__chat_value split_lines(wt__chat_render *r, wt__chat_value v)
{
    wt__chat_value list = wt__chat_new_list(r);
    uint32_t begin = 0;
    wt__chat_step(r, v.size / 16);
    for (uint32_t i = 0; i < v.size; i++) {
        if (v.s[i] != '\n' && v.s[i] != '\r') continue;
        wt__chat_list_add(r, list.list, (wt__chat_value){WT__STRING, i - begin, {.s = v.s + begin}});
        if (v.s[i] == '\r' && i + 1 < v.size && v.s[i + 1] == '\n') i++;
        begin = i + 1;
    }
    if (begin < v.size)
        wt__chat_list_add(r, list.list, (wt__chat_value){WT__STRING, v.size - begin, {.s = v.s + begin}});
    return list;
}

// Does the text begin (end) with one, or one of a tuple?
static bool has_end(wt__chat_render *r, wt__chat_value v, wt__chat_value what, bool at_end)
{
    if (what.kind == WT__LIST) {
        for (size_t i = 0; i < what.list->n; i++)
            if (what.list->at[i].kind == WT__STRING && has_end(r, v, what.list->at[i], at_end)) return true;
        return false;
    }
    if (what.kind != WT__STRING) wt__chat_raise(r, "%s, want a string", wt__chat_kind_name(what));
    return what.size <= v.size && !memcmp(v.s + (at_end ? v.size - what.size : 0), what.s, what.size);
}

static wt__chat_value find_text(wt__chat_render *r, wt__chat_value v, wt__chat_value part, bool last)
{
    int64_t found = -1;
    wt__chat_step(r, v.size / 16);
    for (const char *s = v.s, *at; (at = memmem(s, (size_t)(v.s + v.size - s), part.s, part.size)); s = at + 1) {
        found = (int64_t)wt__chat_length(r, (wt__chat_value){WT__STRING, (uint32_t)(at - v.s), {.s = v.s}});
        if (!last || at == v.s + v.size) break;
    }
    return wt__chat_int(found);
}

static wt__chat_value join_all(wt__chat_render *r, wt__chat_value between, wt__chat_value list)
{
    wt__chat_builder out = {0};
    list = wt__chat_elements(r, list);
    for (size_t i = 0; i < list.list->n; i++) {
        if (list.list->at[i].kind != WT__STRING && !between.marked)
            wt__chat_raise(r, "join of %s, want strings", wt__chat_kind_name(list.list->at[i]));
        if (i) wt__chat_append(r, &out, between.s, between.size);
        wt__chat_write(r, &out, between.marked ? wt__chat_escape(r, list.list->at[i]) : list.list->at[i]);
    }
    return wt__chat_built(&out);
}

static bool all_digits(wt__chat_value v)
{
    for (uint32_t i = 0, n; i < v.size; i += n) {
        uint32_t c;
        n = (uint32_t)wt__utf8_next(v.s + i, v.size - i, &c, NULL);
        if (utf8proc_category((utf8proc_int32_t)c) != UTF8PROC_CATEGORY_ND) return false;
    }
    return v.size > 0;
}

static wt__chat_value replace(wt__chat_render *r, wt__chat_value v, wt__chat_value old, wt__chat_value fresh,
                              int64_t count)
{
    return wt__chat_replace_text(r, v, old, v.marked ? wt__chat_escape(r, fresh) : fresh, count);
}

static wt__chat_value string_method(wt__chat_render *r, wt__chat_value v, const char *name, const wt__chat_args *args)
{
    if (!strcmp(name, "strip")) return wt__chat_strip(r, v, text_arg(r, args, 0, "chars"), true, true);
    if (!strcmp(name, "lstrip")) return wt__chat_strip(r, v, text_arg(r, args, 0, "chars"), true, false);
    if (!strcmp(name, "rstrip")) return wt__chat_strip(r, v, text_arg(r, args, 0, "chars"), false, true);
    if (!strcmp(name, "split")) return split(r, v, text_arg(r, args, 0, "sep"), count_arg(r, args, 1, "maxsplit"));
    if (!strcmp(name, "rsplit")) return rsplit(r, v, want_text(r, args, 0, "sep"), count_arg(r, args, 1, "maxsplit"));
    if (!strcmp(name, "splitlines")) return split_lines(r, v);
    if (!strcmp(name, "upper")) return wt__chat_map_case(r, v, 'u');
    if (!strcmp(name, "lower")) return wt__chat_map_case(r, v, 'l');
    if (!strcmp(name, "title")) return wt__chat_map_case(r, v, 't');
    if (!strcmp(name, "capitalize")) return wt__chat_map_case(r, v, 'c');
    if (!strcmp(name, "format")) return wt__chat_format(r, v, args);
    if (!strcmp(name, "isdigit")) return wt__chat_bool(all_digits(v));
    if (!strcmp(name, "replace"))
        return replace(r, v, want_text(r, args, 0, "old"), want_text(r, args, 1, "new"),
                       count_arg(r, args, 2, "count"));
    if (!strcmp(name, "find")) return find_text(r, v, want_text(r, args, 0, NULL), false);
    if (!strcmp(name, "rfind")) return find_text(r, v, want_text(r, args, 0, NULL), true);
    if (!strcmp(name, "count")) {
        wt__chat_value by = want_text(r, args, 0, NULL);
        return wt__chat_int((int64_t)split(r, v, &by, -1).list->n - 1);
    }
    const wt__chat_value *what = wt__chat_arg(args, 0, NULL);
    if (!what) wt__chat_raise(r, "%s() without an argument", name);
    if (!strcmp(name, "join")) return join_all(r, v, *what);
    bool end = !strcmp(name, "endswith") || !strcmp(name, "removesuffix"), there = has_end(r, v, *what, end);
    if (!strcmp(name, "startswith") || !strcmp(name, "endswith")) return wt__chat_bool(there);
    if (there && what->kind == WT__STRING) { // removeprefix, removesuffix
        v.s += end ? 0 : what->size;
        v.size -= what->size;
    }
    return v;
}

// --- Lists and dicts ------------------------------------------------------------------------------------------------

static wt__chat_value list_method(wt__chat_render *r, wt__chat_value v, const char *name, const wt__chat_args *args)
{
    const wt__chat_value *what = wt__chat_arg(args, 0, NULL);
    int64_t count = 0;
    if (!what) wt__chat_raise(r, "%s() without an argument", name);
    if (!strcmp(name, "append")) {
        wt__chat_list_add(r, v.list, *what);
        return (wt__chat_value){.kind = WT__NONE};
    }
    for (size_t i = 0; i < v.list->n; i++) {
        if (!wt__chat_equal(r, v.list->at[i], *what)) continue;
        if (!strcmp(name, "index")) return wt__chat_int((int64_t)i);
        count++;
    }
    if (!strcmp(name, "index")) wt__chat_raise(r, "index() of what is not in the list");
    return wt__chat_int(count);
}

static wt__chat_value map_method(wt__chat_render *r, wt__chat_value v, const char *name, const wt__chat_args *args)
{
    if (!strcmp(name, "get")) {
        const wt__chat_value *key = wt__chat_arg(args, 0, NULL), *otherwise = wt__chat_arg(args, 1, "default");
        if (!key) wt__chat_raise(r, "get() without a key");
        const wt__chat_value *there = wt__chat_map_get(r, v.map, *key);
        return there ? *there : otherwise ? *otherwise : (wt__chat_value){.kind = WT__NONE};
    }
    wt__chat_value list = wt__chat_new_list(r);
    list.size = name[0] == 'i' ? WT__ITEMS : name[0] == 'k' ? WT__KEYS : WT__VALUES;
    for (size_t i = 0; i < v.map->n; i++) {
        const wt__chat_entry *entry = &v.map->at[i];
        wt__chat_value pair = wt__chat_new_list(r);
        pair.size = WT__TUPLE;
        wt__chat_list_add(r, pair.list, entry->key);
        wt__chat_list_add(r, pair.list, entry->value);
        wt__chat_list_add(r, list.list, name[0] == 'i' ? pair : name[0] == 'k' ? entry->key : entry->value);
    }
    return list;
}

static wt__chat_value loop_method(wt__chat_render *r, wt__chat_value v, const char *name, const wt__chat_args *args)
{
    if (!strcmp(name, "cycle")) {
        if (!args->n) wt__chat_raise(r, "loop.cycle() without values");
        return args->at[v.loop->index % args->n];
    }
    if (args->n != 1) wt__chat_raise(r, "loop.changed() of %zu values, want 1", args->n);
    bool changed = !v.loop->changed || !wt__chat_equal(r, *v.loop->changed, args->at[0]);
    if (!v.loop->changed) v.loop->changed = wt__chat_heap_take(&r->heap, sizeof *v.loop->changed);
    *v.loop->changed = args->at[0];
    return wt__chat_bool(changed);
}

bool wt__chat_has_method(wt__chat_value v, const char *name)
{
    static const char *const strings[] = {
        "strip",      "lstrip",     "rstrip",       "split",        "rsplit", "splitlines", "upper", "lower",
        "title",      "capitalize", "isdigit",      "replace",      "find",   "rfind",      "count", "join",
        "startswith", "endswith",   "removeprefix", "removesuffix", "format", NULL};
    static const char *const lists[] = {"append", "index", "count", NULL}, *const maps[] = {"get", "items", "keys",
                                                                                            "values", NULL};
    static const char *const loops[] = {"cycle", "changed", NULL}, *const none[] = {NULL};
    const char *const *names = v.kind == WT__STRING ? strings
                               : v.kind == WT__LIST ? wt__chat_is_view(v) ? none : lists
                               : v.kind == WT__MAP  ? maps
                               : v.kind == WT__LOOP ? loops
                                                    : none;
    for (; *names; names++)
        if (!strcmp(*names, name)) return true;
    return false;
}

wt__chat_value wt__chat_method(wt__chat_render *r, wt__chat_value self, const char *name, const wt__chat_args *args)
{
    if (self.kind == WT__STRING) return wt__chat_mark_like(string_method(r, self, name, args), self);
    if (self.kind == WT__LIST) return list_method(r, self, name, args);
    return self.kind == WT__MAP ? map_method(r, self, name, args) : loop_method(r, self, name, args);
}
