// Values of chat templates as Python's str() and repr() write them.
// Judge: CPython 3.11.
#include "chat_internal.h"
#include "utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

// repr(float): the fewest digits that read back the same; an exponent below 1e-4 and from 1e16 on.
static void write_float(wt__chat_render *r, wt__chat_builder *b, double f)
{
    char digits[40], out[64];
    int precision = 0, exponent, n = 0;
    if (!isfinite(f)) {
        wt__chat_append_text(r, b, isnan(f) ? "nan" : f > 0 ? "inf" : "-inf");
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
    wt__chat_append_text(r, b, out);
}

// str.isprintable of one character: neither a control, a format character, unassigned or private, nor a space but ' '.
static bool printable(uint32_t c)
{
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    case UTF8PROC_CATEGORY_ZS: return c == ' ';
    default: return true;
    }
}

// repr(str), for lists and dicts that are written whole.
static void write_repr(wt__chat_render *r, wt__chat_builder *b, wt__chat_value v)
{
    if (v.kind != WT__STRING) {
        if (v.kind == WT__UNDEFINED)
            wt__chat_append_text(r, b, "Undefined");
        else
            wt__chat_write(r, b, v);
        return;
    }
    if (v.marked) wt__chat_append_text(r, b, "Markup(");
    const char quote = memchr(v.s, '\'', v.size) && !memchr(v.s, '"', v.size) ? '"' : '\'';
    wt__chat_append(r, b, &quote, 1);
    for (uint32_t i = 0, n; i < v.size; i += n) {
        uint32_t c;
        char text[16];
        n = (uint32_t)wt__utf8_next(v.s + i, v.size - i, &c, NULL);
        if (c == (uint32_t)quote || c == '\\')
            snprintf(text, sizeof text, "\\%c", (int)c);
        else if (c == '\n' || c == '\r' || c == '\t')
            snprintf(text, sizeof text, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
        else if (printable(c)) {
            wt__chat_append(r, b, v.s + i, n);
            continue;
        } else
            snprintf(text, sizeof text, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)c);
        wt__chat_append_text(r, b, text);
    }
    wt__chat_append(r, b, &quote, 1);
    if (v.marked) wt__chat_append_text(r, b, ")");
}

static void write_list(wt__chat_render *r, wt__chat_builder *b, wt__chat_value v)
{
    static const char *const begins[] = {"[", "(", "dict_items([", "dict_keys([", "dict_values(["};
    wt__chat_append_text(r, b, begins[v.size]);
    for (size_t i = 0; i < v.list->n; i++) {
        if (i) wt__chat_append_text(r, b, ", ");
        write_repr(r, b, v.list->at[i]);
    }
    wt__chat_append_text(r, b, wt__chat_is_view(v) ? "])" : !v.size ? "]" : v.list->n == 1 ? ",)" : ")");
}

void wt__chat_write(wt__chat_render *r, wt__chat_builder *b, wt__chat_value v)
{
    char text[32];
    wt__chat_enter(r);
    switch (v.kind) {
    case WT__UNDEFINED:
        break;
    case WT__NONE:
        wt__chat_append_text(r, b, "None");
        break;
    case WT__BOOL:
        wt__chat_append_text(r, b, v.i ? "True" : "False");
        break;
    case WT__INT:
        snprintf(text, sizeof text, "%lld", (long long)v.i);
        wt__chat_append_text(r, b, text);
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
        wt__chat_append_text(r, b, "{");
        for (size_t i = 0; i < v.map->n; i++) {
            if (i) wt__chat_append_text(r, b, ", ");
            write_repr(r, b, v.map->at[i].key);
            wt__chat_append_text(r, b, ": ");
            write_repr(r, b, v.map->at[i].value);
        }
        wt__chat_append_text(r, b, "}");
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

// A field: {}, {0}, {name}, {name.part}, {0[key]}.
static wt__chat_value format_field(wt__chat_render *r, const char *field, const wt__chat_args *args, size_t *next)
{
    const size_t n = strcspn(field, ".[");
    const char *name = wt__chat_string(r, field, n).s;
    const wt__chat_value *given = NULL;
    if (strpbrk(field, "!:{")) wt__chat_raise(r, "format() of a field {%.64s}, want one without ! and :", field);
    if (strspn(name, "0123456789") == n) {
        const size_t at = n ? (size_t)strtoul(name, NULL, 10) : (*next)++;
        if (at < args->n_positional) given = &args->at[at];
    } else
        given = wt__chat_arg(args, SIZE_MAX, name);
    if (!given) wt__chat_raise(r, "format() has no argument for {%.64s}", field);
    wt__chat_value v = *given;
    for (const char *s = field + n; *s;) {
        const bool item = *s++ == '[';
        const size_t size = strcspn(s, item ? "]" : ".["), digits = strspn(s, "0123456789");
        const char *key = wt__chat_string(r, s, size).s;
        if (!size) wt__chat_raise(r, "format() of a field {%.64s}", field);
        v = !item            ? wt__chat_attribute(r, v, key, false)
            : digits == size ? wt__chat_item(r, v, wt__chat_int(atoll(key)))
                             : wt__chat_item(r, v, wt__chat_key(key));
        s += size + (item && s[size] == ']');
    }
    return v;
}

wt__chat_value wt__chat_format(wt__chat_render *r, wt__chat_value v, const wt__chat_args *args)
{
    wt__chat_builder out = {0};
    size_t next = 0;
    const char *s = wt__chat_string(r, v.s, v.size).s;
    wt__chat_step(r, v.size / 16);
    for (size_t n; *s; s += n) {
        if ((n = strcspn(s, "{}"))) {
            wt__chat_append(r, &out, s, n);
        } else if (s[0] == s[1]) {
            wt__chat_append(r, &out, s, 1);
            n = 2;
        } else {
            n = strcspn(s, "}");
            if (*s != '{' || !s[n]) wt__chat_raise(r, "format() of a text with a single brace");
            wt__chat_value field = format_field(r, wt__chat_string(r, s + 1, n - 1).s, args, &next);
            wt__chat_write(r, &out, v.marked ? wt__chat_escape(r, field) : field);
            n++;
        }
    }
    return wt__chat_built(&out);
}
