// Jinja's filters, tests and functions, and those that transformers adds.
// Source: jinja2 3.1, filters.py and tests.py; transformers, chat_template_utils.py.
#include "chat_internal.h"
#include "utf8.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <warptone/number.h>

static bool flag(wt__chat_render *r, const wt__chat_args *args, size_t i, const char *name, bool otherwise)
{
    const wt__chat_value *v = wt__chat_arg(args, i, name);
    return v ? wt__chat_truth(r, *v) : otherwise;
}

static wt__chat_value want(wt__chat_render *r, const wt__chat_args *args, size_t i, const char *name)
{
    const wt__chat_value *v = wt__chat_arg(args, i, name);
    if (!v) wt__chat_raise(r, "argument %zu is missing", i + 1);
    return *v;
}

static const char *want_name(wt__chat_render *r, const wt__chat_args *args, size_t i)
{
    wt__chat_value v = want(r, args, i, NULL);
    if (v.kind != WT__STRING) wt__chat_raise(r, "argument %zu is %s, want a string", i + 1, wt__chat_kind_name(v));
    return wt__chat_string(r, v.s, v.size).s;
}

static wt__chat_args behind(const wt__chat_args *args, size_t n)
{
    return (wt__chat_args){args->at + n, args->names + n, args->n - n,
                           args->n_positional > n ? args->n_positional - n : 0};
}

// "a.b.0" of a value
static wt__chat_value path(wt__chat_render *r, wt__chat_value v, wt__chat_value name)
{
    if (name.kind != WT__STRING) return wt__chat_item(r, v, name);
    const char *s = wt__chat_string(r, name.s, name.size).s;
    for (const char *dot; *s; s = *dot ? dot + 1 : dot) {
        dot = strchr(s, '.');
        if (!dot) dot = s + strlen(s);
        bool index = s[strspn(s, "0123456789")] == '.' || !s[strspn(s, "0123456789")];
        v = index ? wt__chat_item(r, v, wt__chat_int(atoll(s)))
                  : wt__chat_item(r, v, wt__chat_string(r, s, (size_t)(dot - s)));
    }
    return v;
}

// --- Filters of lists -----------------------------------------------------------------------------------------------

static wt__chat_value join(wt__chat_render *r, wt__chat_value v, const wt__chat_args *args)
{
    const wt__chat_value *between = wt__chat_arg(args, 0, "d"), *attribute = wt__chat_arg(args, 1, "attribute");
    wt__chat_builder out = {0};
    v = wt__chat_elements(r, v);
    for (size_t i = 0; i < v.list->n; i++) {
        if (i && between) wt__chat_write(r, &out, *between);
        wt__chat_write(r, &out, attribute ? path(r, v.list->at[i], *attribute) : v.list->at[i]);
    }
    return wt__chat_built(&out);
}

/// What map, select and their kin go through: of what is false nothing, be it none or 0.
static wt__chat_value passed(wt__chat_render *r, wt__chat_value v)
{
    return wt__chat_truth(r, v) ? wt__chat_elements(r, v) : wt__chat_new_list(r);
}

static wt__chat_value map(wt__chat_render *r, wt__chat_value v, const wt__chat_args *args)
{
    wt__chat_value list = wt__chat_new_list(r);
    const wt__chat_value *attribute = args->n_positional ? NULL : wt__chat_arg(args, 0, "attribute"),
                         *otherwise = wt__chat_arg(args, 1, "default");
    const char *filter = attribute ? NULL : want_name(r, args, 0);
    v = passed(r, v);
    for (size_t i = 0; i < v.list->n; i++) {
        wt__chat_args rest = attribute ? *args : behind(args, 1);
        wt__chat_value mapped =
            attribute ? path(r, v.list->at[i], *attribute) : wt__chat_filter(r, filter, v.list->at[i], &rest);
        if (attribute && otherwise && mapped.kind == WT__UNDEFINED) mapped = *otherwise;
        wt__chat_list_add(r, list.list, mapped);
    }
    return list;
}

// select, reject, selectattr, rejectattr
static wt__chat_value select_(wt__chat_render *r, wt__chat_value v, const wt__chat_args *args, bool attribute,
                              bool keep)
{
    wt__chat_value list = wt__chat_new_list(r), name = attribute ? want(r, args, 0, NULL) : wt__chat_bool(false);
    size_t first = attribute;
    const char *test = args->n_positional > first ? want_name(r, args, first) : NULL;
    wt__chat_args rest = test ? behind(args, first + 1) : *args;
    v = passed(r, v);
    for (size_t i = 0; i < v.list->n; i++) {
        wt__chat_value tested = attribute ? path(r, v.list->at[i], name) : v.list->at[i];
        if ((test ? wt__chat_test(r, test, tested, &rest) : wt__chat_truth(r, tested)) == keep)
            wt__chat_list_add(r, list.list, v.list->at[i]);
    }
    return list;
}

// What is compared: the value, an attribute of it, letters' case left out unless asked for.
static wt__chat_value sort_key(wt__chat_render *r, wt__chat_value v, const wt__chat_value *attribute, bool cased)
{
    if (attribute && attribute->kind != WT__NONE) v = path(r, v, *attribute);
    return v.kind == WT__STRING && !cased ? wt__chat_map_case(r, v, 'l') : v;
}

// By merging, so that equal ones keep their order.
static void sort_entries(wt__chat_render *r, wt__chat_entry *at, wt__chat_entry *spare, size_t n, bool reverse)
{
    if (n < 2) return;
    size_t half = n / 2, a = 0, b = half;
    sort_entries(r, at, spare, half, reverse);
    sort_entries(r, at + half, spare, n - half, reverse);
    for (size_t i = 0; i < n; i++) {
        int order = a == half ? 1 : b == n ? -1 : wt__chat_compare(r, at[a].key, at[b].key);
        bool left = a < half && (b == n || (reverse ? order >= 0 : order <= 0));
        spare[i] = left ? at[a++] : at[b++];
    }
    memcpy(at, spare, n * sizeof *at);
}

static wt__chat_value sorted(wt__chat_render *r, wt__chat_value v, bool reverse, bool cased,
                             const wt__chat_value *attribute)
{
    wt__chat_value list = wt__chat_new_list(r);
    v = wt__chat_elements(r, v);
    size_t n = v.list->n;
    wt__chat_entry *at = wt__chat_heap_take(&r->heap, 2 * (n + 1) * sizeof *at);
    for (size_t i = 0; i < n; i++)
        at[i] = (wt__chat_entry){sort_key(r, v.list->at[i], attribute, cased), v.list->at[i]};
    sort_entries(r, at, at + n, n, reverse);
    for (size_t i = 0; i < n; i++) wt__chat_list_add(r, list.list, at[i].value);
    return list;
}

static wt__chat_value unique(wt__chat_render *r, wt__chat_value v, const wt__chat_args *args)
{
    wt__chat_value list = wt__chat_new_list(r), seen = wt__chat_new_list(r);
    bool cased = flag(r, args, 0, "case_sensitive", false);
    v = wt__chat_elements(r, v);
    for (size_t i = 0; i < v.list->n; i++) {
        wt__chat_value key = sort_key(r, v.list->at[i], wt__chat_arg(args, 1, "attribute"), cased);
        if (wt__chat_contains(r, seen, key)) continue;
        wt__chat_list_add(r, seen.list, key);
        wt__chat_list_add(r, list.list, v.list->at[i]);
    }
    return list;
}

// Its elements in a plain list of their own, by steps of 1 or -1.
static wt__chat_value listed(wt__chat_render *r, wt__chat_value v, int step)
{
    wt__chat_value none = {.kind = WT__NONE};
    v = wt__chat_elements(r, v);
    v.size = WT__PLAIN_LIST;
    return wt__chat_slice(r, v, none, none, wt__chat_int(step));
}

static wt__chat_value reverse(wt__chat_render *r, wt__chat_value v)
{
    wt__chat_value none = {.kind = WT__NONE};
    return v.kind == WT__STRING ? wt__chat_slice(r, v, none, none, wt__chat_int(-1)) : listed(r, v, -1);
}

static wt__chat_value extreme(wt__chat_render *r, wt__chat_value v, const wt__chat_args *args, bool largest)
{
    wt__chat_value list =
        sorted(r, v, largest, flag(r, args, 0, "case_sensitive", false), wt__chat_arg(args, 1, "attribute"));
    return list.list->n ? list.list->at[0] : wt__chat_undefined("the extreme of nothing");
}

static wt__chat_value sum(wt__chat_render *r, wt__chat_value v, const wt__chat_args *args)
{
    const wt__chat_value *attribute = wt__chat_arg(args, 0, "attribute"), *start = wt__chat_arg(args, 1, "start");
    wt__chat_value total = start ? *start : wt__chat_int(0);
    v = wt__chat_elements(r, v);
    for (size_t i = 0; i < v.list->n; i++)
        total = wt__chat_binary(r, "+", total, attribute ? path(r, v.list->at[i], *attribute) : v.list->at[i]);
    return total;
}

// --- Filters of single values ---------------------------------------------------------------------------------------

static wt__chat_value to_json(wt__chat_render *r, wt__chat_value v, const wt__chat_args *args)
{
    const wt__chat_value *indent = wt__chat_arg(args, 1, "indent"), *separators = wt__chat_arg(args, 2, "separators");
    wt__chat_json_style style = {.indent = -1,
                                 .ascii = flag(r, args, 0, "ensure_ascii", false),
                                 .sort_keys = flag(r, args, 3, "sort_keys", false)};
    wt__chat_builder out = {0};
    if (indent && indent->kind == WT__INT) style.indent = indent->i < 0 ? 0 : indent->i > 64 ? 64 : (int)indent->i;
    if (separators && separators->kind == WT__LIST && separators->list->n == 2) {
        style.item_separator = separators->list->at[0];
        style.key_separator = separators->list->at[1];
    }
    wt__chat_write_json(r, &out, v, &style, 0);
    return wt__chat_built(&out);
}

static wt__chat_value to_int(wt__chat_render *r, wt__chat_value v, const wt__chat_args *args)
{
    const wt__chat_value *otherwise = wt__chat_arg(args, 0, "default");
    if (v.kind == WT__INT || v.kind == WT__BOOL) return wt__chat_int(v.i);
    if (v.kind == WT__STRING) {
        const char *s = wt__chat_string(r, v.s, v.size).s;
        char *end;
        double f = wt_number_read(s, &end);
        while (*end == ' ') end++;
        if (end != s && !*end) {
            char *whole;
            int64_t i = strtoll(s, &whole, 10);
            if (whole == end || fabs(f) >= 9e18) return wt__chat_int(i);
            return wt__chat_int((int64_t)f);
        }
    }
    if (v.kind == WT__FLOAT && fabs(v.f) < 9e18) return wt__chat_int((int64_t)v.f);
    return otherwise ? *otherwise : wt__chat_int(0);
}

static wt__chat_value to_float(wt__chat_render *r, wt__chat_value v, const wt__chat_args *args)
{
    const wt__chat_value *otherwise = wt__chat_arg(args, 0, "default");
    wt__chat_value f = {WT__FLOAT, 0, {.f = 0}};
    if (v.kind == WT__FLOAT) return v;
    if (v.kind == WT__INT || v.kind == WT__BOOL)
        f.f = (double)v.i;
    else {
        const char *s = v.kind == WT__STRING ? wt__chat_string(r, v.s, v.size).s : "";
        char *end;
        f.f = wt_number_read(s, &end);
        if (end == s || *end) return otherwise ? *otherwise : (wt__chat_value){WT__FLOAT, 0, {.f = 0}};
    }
    return f;
}

// Python's round(): to the nearest, of the number as it is stored, ties to even.
static double nearest(double f, int64_t digits)
{
    enum { MOST_DIGITS = 30 }; // behind the point: a double that has more is below 1e-13
    char text[DBL_MAX_10_EXP + MOST_DIGITS + 4];
    if (digits > MOST_DIGITS || !isfinite(f)) return f;
    if (digits < 0) return nearbyint(f / pow(10, (double)-digits)) * pow(10, (double)-digits);
    snprintf(text, sizeof text, "%.*f", (int)digits, f); // printf and strtod agree about the point's sign
    return strtod(text, NULL);
}

static wt__chat_value round_(wt__chat_render *r, wt__chat_value v, const wt__chat_args *args)
{
    const wt__chat_value *given = wt__chat_arg(args, 0, "precision"), *method = wt__chat_arg(args, 1, "method");
    const int64_t digits = given ? given->i : 0;
    const bool up = method && wt__chat_is(*method, "ceil"), down = method && wt__chat_is(*method, "floor");
    const double f = to_float(r, v, &(wt__chat_args){0}).f, scale = pow(10, (double)digits);
    if (v.kind == WT__INT && !up && !down) return digits < 0 ? wt__chat_int((int64_t)nearest(f, digits)) : v;
    const double rounded = up ? ceil(f * scale) / scale : down ? floor(f * scale) / scale : nearest(f, digits);
    return (wt__chat_value){WT__FLOAT, 0, {.f = rounded}};
}

static wt__chat_value indent(wt__chat_render *r, wt__chat_value v, const wt__chat_args *args)
{
    const wt__chat_value *width = wt__chat_arg(args, 0, "width");
    bool first = flag(r, args, 1, "first", false), blank = flag(r, args, 2, "blank", false);
    wt__chat_value by = width && width->kind == WT__STRING
                            ? *width
                            : wt__chat_binary(r, "*", wt__chat_key(" "), width ? *width : wt__chat_int(4));
    wt__chat_builder out = {0};
    v = wt__chat_to_string(r, v);
    for (uint32_t i = 0, end; i <= v.size; i = end + 1) {
        const char *stop = memchr(v.s + i, '\n', v.size - i);
        end = stop ? (uint32_t)(stop - v.s) : v.size;
        if (i == 0 ? first : blank || end > i) wt__chat_append(r, &out, by.s, by.size);
        wt__chat_append(r, &out, v.s + i, end - i + (stop != NULL));
    }
    return wt__chat_built(&out);
}

static wt__chat_value safe(wt__chat_render *r, wt__chat_value v, bool is_safe)
{
    v = wt__chat_to_string(r, v);
    v.marked = is_safe;
    return v;
}

static wt__chat_value absolute(wt__chat_render *r, wt__chat_value v)
{
    return wt__chat_compare(r, v, wt__chat_int(0)) < 0 ? wt__chat_binary(r, "*", v, wt__chat_int(-1)) : v;
}

static wt__chat_value first_or_last(wt__chat_render *r, wt__chat_value v, bool last)
{
    wt__chat_value list = wt__chat_elements(r, v);
    if (!list.list->n) return wt__chat_undefined("an element of nothing");
    if (last) return wt__chat_mark_like(list.list->at[list.list->n - 1], v); // by index, and the first by iterating
    return list.list->at[0];
}

static wt__chat_value otherwise(wt__chat_render *r, wt__chat_value v, const wt__chat_args *args)
{
    const wt__chat_value *fallback = wt__chat_arg(args, 0, "default_value");
    bool take = v.kind == WT__UNDEFINED || (flag(r, args, 1, "boolean", false) && !wt__chat_truth(r, v));
    return !take ? v : fallback ? *fallback : wt__chat_key("");
}

static wt__chat_value items(wt__chat_render *r, wt__chat_value v)
{
    if (v.kind == WT__UNDEFINED) return wt__chat_new_list(r);
    if (v.kind != WT__MAP) wt__chat_raise(r, "items of %s, want a dict", wt__chat_kind_name(v));
    return listed(r, wt__chat_method(r, v, "items", &(wt__chat_args){0}), 1);
}

static wt__chat_value dict_sort(wt__chat_render *r, wt__chat_value v, const wt__chat_args *args)
{
    const wt__chat_value *by = wt__chat_arg(args, 1, "by");
    wt__chat_value index = wt__chat_int(by && wt__chat_is(*by, "value"));
    return sorted(r, items(r, v), flag(r, args, 2, "reverse", false), flag(r, args, 0, "case_sensitive", false),
                  &index);
}

static wt__chat_value trim(wt__chat_render *r, wt__chat_value v, const wt__chat_args *args)
{
    const wt__chat_value *chars = wt__chat_arg(args, 0, "chars");
    return wt__chat_strip(r, wt__chat_to_string(r, v), chars && chars->kind == WT__STRING ? chars : NULL, true, true);
}

static wt__chat_value replace(wt__chat_render *r, wt__chat_value v, const wt__chat_args *args)
{
    const wt__chat_value *count = wt__chat_arg(args, 2, "count");
    return wt__chat_replace_text(r, wt__chat_to_string(r, v), wt__chat_to_string(r, want(r, args, 0, "old")),
                                 wt__chat_to_string(r, want(r, args, 1, "new")),
                                 count && count->kind == WT__INT ? count->i : -1);
}

wt__chat_value wt__chat_filter(wt__chat_render *r, const char *name, wt__chat_value v, const wt__chat_args *args)
{
    wt__chat_step(r, 1);
    if (!strcmp(name, "trim")) return trim(r, v, args);
    if (!strcmp(name, "tojson")) return to_json(r, v, args);
    if (!strcmp(name, "length") || !strcmp(name, "count")) return wt__chat_int((int64_t)wt__chat_length(r, v));
    if (!strcmp(name, "string")) return wt__chat_to_string(r, v);
    if (!strcmp(name, "safe")) return safe(r, v, true);
    if (!strcmp(name, "default") || !strcmp(name, "d")) return otherwise(r, v, args);
    if (!strcmp(name, "join")) return join(r, v, args);
    if (!strcmp(name, "first") || !strcmp(name, "last")) return first_or_last(r, v, name[0] == 'l');
    if (!strcmp(name, "list")) return listed(r, v, 1);
    if (!strcmp(name, "map")) return map(r, v, args);
    if (!strcmp(name, "select") || !strcmp(name, "reject")) return select_(r, v, args, false, name[0] == 's');
    if (!strcmp(name, "selectattr") || !strcmp(name, "rejectattr")) return select_(r, v, args, true, name[0] == 's');
    if (!strcmp(name, "replace")) return replace(r, v, args);
    if (!strcmp(name, "upper") || !strcmp(name, "lower") || !strcmp(name, "capitalize"))
        return wt__chat_mark_like(wt__chat_map_case(r, wt__chat_to_string(r, v), name[0]), v);
    if (!strcmp(name, "title")) return wt__chat_map_case(r, wt__chat_to_string(r, v), 'f');
    if (!strcmp(name, "int")) return to_int(r, v, args);
    if (!strcmp(name, "float")) return to_float(r, v, args);
    if (!strcmp(name, "abs")) return absolute(r, v);
    if (!strcmp(name, "round")) return round_(r, v, args);
    if (!strcmp(name, "items")) return items(r, v);
    if (!strcmp(name, "dictsort")) return dict_sort(r, v, args);
    if (!strcmp(name, "reverse")) return reverse(r, v);
    if (!strcmp(name, "sort"))
        return sorted(r, v, flag(r, args, 0, "reverse", false), flag(r, args, 1, "case_sensitive", false),
                      wt__chat_arg(args, 2, "attribute"));
    if (!strcmp(name, "unique")) return unique(r, v, args);
    if (!strcmp(name, "min") || !strcmp(name, "max")) return extreme(r, v, args, name[1] == 'a');
    if (!strcmp(name, "sum")) return sum(r, v, args);
    if (!strcmp(name, "indent")) return wt__chat_mark_like(indent(r, v, args), v);
    if (!strcmp(name, "escape") || !strcmp(name, "e")) return wt__chat_escape(r, v);
    if (!strcmp(name, "forceescape")) return wt__chat_escape(r, safe(r, v, false));
    if (!strcmp(name, "attr")) return wt__chat_attribute(r, v, want_name(r, args, 0), false);
    wt__chat_raise(r, "filter '%.64s' is not known", name);
}

// --- Tests ----------------------------------------------------------------------------------------------------------

static bool is_cased(wt__chat_render *r, wt__chat_value v, char how)
{
    v = wt__chat_to_string(r, v);
    return wt__chat_equal(r, v, wt__chat_map_case(r, v, how)) &&
           !wt__chat_equal(r, v, wt__chat_map_case(r, v, how == 'l' ? 'u' : 'l'));
}

// Does a division of v by that leave so much?
static bool leaves(wt__chat_render *r, wt__chat_value v, wt__chat_value by, int rest)
{
    return wt__chat_equal(r, wt__chat_binary(r, "%", v, by), wt__chat_int(rest));
}

bool wt__chat_test(wt__chat_render *r, const char *name, wt__chat_value v, const wt__chat_args *args)
{
    static const char *const comparisons[][4] = {{"equalto", "eq", "==", "=="},   {"ne", "!=", "!=", "!="},
                                                 {"greaterthan", "gt", ">", ">"}, {"ge", ">=", ">=", ">="},
                                                 {"lessthan", "lt", "<", "<"},    {"le", "<=", "<=", "<="}};
    for (size_t i = 0; i < 6; i++) {
        const char *const *c = comparisons[i];
        if (strcmp(name, c[0]) && strcmp(name, c[1]) && strcmp(name, c[2])) continue;
        wt__chat_value other = want(r, args, 0, NULL);
        if (i < 2) return wt__chat_equal(r, v, other) == (i == 0);
        int order = wt__chat_compare(r, v, other);
        return i == 2 ? order > 0 : i == 3 ? order >= 0 : i == 4 ? order < 0 : order <= 0;
    }
    if (!strcmp(name, "defined")) return v.kind != WT__UNDEFINED;
    if (!strcmp(name, "undefined")) return v.kind == WT__UNDEFINED;
    if (!strcmp(name, "none")) return v.kind == WT__NONE;
    if (!strcmp(name, "string")) return v.kind == WT__STRING;
    if (!strcmp(name, "escaped")) return v.kind == WT__STRING && v.marked;
    if (!strcmp(name, "mapping")) return v.kind == WT__MAP && !v.size;
    if (!strcmp(name, "sequence"))
        return (v.kind == WT__LIST && !wt__chat_is_view(v)) || v.kind == WT__STRING || v.kind == WT__MAP ||
               v.kind == WT__UNDEFINED;
    if (!strcmp(name, "iterable"))
        return v.kind == WT__LIST || v.kind == WT__STRING || (v.kind == WT__MAP && !v.size) || v.kind == WT__UNDEFINED;
    if (!strcmp(name, "number")) return v.kind == WT__INT || v.kind == WT__FLOAT || v.kind == WT__BOOL;
    if (!strcmp(name, "integer")) return v.kind == WT__INT;
    if (!strcmp(name, "float")) return v.kind == WT__FLOAT;
    if (!strcmp(name, "boolean")) return v.kind == WT__BOOL;
    if (!strcmp(name, "true") || !strcmp(name, "false")) return v.kind == WT__BOOL && v.i == (name[0] == 't');
    if (!strcmp(name, "callable")) return v.kind == WT__CALLABLE;
    if (!strcmp(name, "in")) return wt__chat_contains(r, want(r, args, 0, "seq"), v);
    if (!strcmp(name, "odd") || !strcmp(name, "even")) return leaves(r, v, wt__chat_int(2), name[0] == 'o');
    if (!strcmp(name, "divisibleby")) return leaves(r, v, want(r, args, 0, "num"), 0);
    if (!strcmp(name, "lower") || !strcmp(name, "upper")) return is_cased(r, v, name[0]);
    if (!strcmp(name, "sameas")) {
        wt__chat_value other = want(r, args, 0, "other");
        return v.kind == other.kind && wt__chat_equal(r, v, other);
    }
    wt__chat_raise(r, "test '%.64s' is not known", name);
}

// --- Functions ------------------------------------------------------------------------------------------------------

// The present time, or that of options->date.
static void date_of(wt__chat_render *r, struct tm *date)
{
    time_t now = time(NULL);
    *date = (struct tm){.tm_isdst = -1};
    if (!r->date) {
        localtime_r(&now, date);
        return;
    }
    if (sscanf(r->date, "%d-%d-%dT%d:%d:%d", &date->tm_year, &date->tm_mon, &date->tm_mday, &date->tm_hour,
               &date->tm_min, &date->tm_sec) < 3)
        wt__chat_raise(r, "date \"%.40s\", want one like 2026-01-31T12:00:00", r->date);
    date->tm_year -= 1900;
    date->tm_mon -= 1;
    timegm(date); // fills in the day of the week and of the year
}

static wt__chat_value format_date(wt__chat_render *r, const wt__chat_args *args)
{
    char text[512];
    struct tm date;
    const char *format = want_name(r, args, 0);
    date_of(r, &date);
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain) wt__chat_heap_fail(&r->heap, WT_ERR_NO_MEMORY, "chat: memory is out");
    size_t n = strftime_l(text, sizeof text, format, &date, plain);
    freelocale(plain);
    return wt__chat_string(r, text, n);
}

static wt__chat_value range(wt__chat_render *r, const wt__chat_args *args)
{
    int64_t at[3] = {0, 0, 1};
    wt__chat_value list = wt__chat_new_list(r);
    if (args->n < 1 || args->n > 3) wt__chat_raise(r, "range() of %zu numbers, want 1 .. 3", args->n);
    for (size_t i = 0; i < args->n; i++) {
        if (args->at[i].kind != WT__INT)
            wt__chat_raise(r, "range() of %s, want integers", wt__chat_kind_name(args->at[i]));
        at[args->n == 1 ? 1 : i] = args->at[i].i;
    }
    if (!at[2]) wt__chat_raise(r, "range() with step 0");
    for (int64_t i = at[0]; at[2] > 0 ? i < at[1] : i > at[1];) {
        if (list.list->n >= 100000)
            wt__chat_raise(r, "range() of more than 100000 numbers"); // jinja2, sandbox.py, MAX_RANGE
        wt__chat_list_add(r, list.list, wt__chat_int(i));
        if (__builtin_add_overflow(i, at[2], &i)) break;
    }
    return list;
}

static wt__chat_value new_space(wt__chat_render *r, const wt__chat_args *args, bool space)
{
    wt__chat_value v = wt__chat_new_map(r);
    v.size = space;
    for (size_t i = 0; i < args->n; i++) {
        const wt__chat_value *given = &args->at[i];
        if (args->names[i])
            wt__chat_map_set(r, v.map, wt__chat_key(args->names[i]), *given);
        else if (given->kind != WT__MAP)
            wt__chat_raise(r, "%s, want a dict", wt__chat_kind_name(*given));
        for (size_t k = 0; !args->names[i] && k < given->map->n; k++)
            wt__chat_map_set(r, v.map, given->map->at[k].key, given->map->at[k].value);
    }
    return v;
}

bool wt__chat_is_function(const char *name)
{
    static const char *const names[] = {"raise_exception", "strftime_now", "range", "namespace", "dict"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], name)) return true;
    return false;
}

wt__chat_value wt__chat_function(wt__chat_render *r, const char *name, const wt__chat_args *args)
{
    if (!strcmp(name, "strftime_now")) return format_date(r, args);
    if (!strcmp(name, "range")) return range(r, args);
    if (!strcmp(name, "raise_exception")) {
        wt__chat_value message = wt__chat_to_string(r, want(r, args, 0, "message"));
        message = wt__chat_string(r, message.s, message.size); // ended by a zero
        wt__chat_heap_fail(&r->heap, WT_ERR_BAD_ARG, "chat template: %.512s", message.s);
    }
    return new_space(r, args, !strcmp(name, "namespace"));
}
