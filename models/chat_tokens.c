// Tokens of a template: jinja2 3.1, lexer.py. One is read at a time.
#include "chat_parse.h"
#include "utf8.h"

#include <ctype.h>
#include <string.h>

_Noreturn void wt__chat_bad(wt__chat_parser *p, const char *wanted)
{
    wt__chat_heap_fail(p->heap, WT_ERR_FORMAT, "chat template line %d: \"%.40s\", want %s", p->line,
                       p->now.text ? p->now.text : "the end", wanted);
}

const char *wt__chat_keep(wt__chat_parser *p, const char *s, size_t n)
{
    char *kept = wt__chat_heap_take(p->heap, n + 1);
    memcpy(kept, s, n);
    return kept;
}

void wt__chat_deeper(wt__chat_parser *p)
{
    if (++p->nesting > WT__CHAT_MAX_NESTING)
        wt__chat_heap_fail(p->heap, WT_ERR_FORMAT, "chat template line %d: nested more than %d deep", p->line,
                           WT__CHAT_MAX_NESTING);
}

wt__chat_node *wt__chat_new_node(wt__chat_parser *p, wt__chat_node_kind kind)
{
    wt__chat_node *node = wt__chat_heap_take(p->heap, sizeof *node);
    node->kind = kind;
    node->line = p->line;
    return node;
}

wt__chat_node *wt__chat_add_node(wt__chat_parser *p, wt__chat_nodes *list, wt__chat_node *node)
{
    wt__chat_heap_grow(p->heap, (void **)&list->at, &list->room, list->n, sizeof *list->at);
    return list->at[list->n++] = node;
}

bool wt__chat_starts(const wt__chat_parser *p, size_t at, const char *s)
{
    size_t n = strlen(s);
    return p->size - at >= n && !memcmp(p->text + at, s, n);
}

void wt__chat_advance(wt__chat_parser *p, size_t n)
{
    for (; n; n--) p->line += p->text[p->at++] == '\n';
}

size_t wt__chat_space_at(const wt__chat_parser *p, size_t at)
{
    uint32_t c = 0;
    size_t n = at < p->size ? wt__utf8_next(p->text + at, p->size - at, &c, NULL) : 0;
    return n && (wt__is_space(c) || (c >= 0x1c && c <= 0x1f)) ? n : 0;
}

void wt__chat_skip_spaces(wt__chat_parser *p)
{
    for (size_t n; (n = wt__chat_space_at(p, p->at));) wt__chat_advance(p, n);
}

// Does a tag end here, with its sign? Then behind it: "-" takes all white space, a block without sign one line end.
bool wt__chat_end_of_tag(wt__chat_parser *p, const char *end, bool trims)
{
    char sign = p->text[p->at];
    size_t skip = sign == '-' || (sign == '+' && trims) ? 1 : 0;
    if (p->at >= p->size || !wt__chat_starts(p, p->at + skip, end)) return false;
    wt__chat_advance(p, skip + 2);
    if (skip && sign == '-')
        wt__chat_skip_spaces(p);
    else if (!skip && trims && p->at < p->size && p->text[p->at] == '\n')
        wt__chat_advance(p, 1);
    p->line_starts = p->text[p->at - 1] == '\n';
    return true;
}

static unsigned hex(wt__chat_parser *p, const char *s, const char *end, int digits)
{
    unsigned value = 0;
    for (int i = 0; i < digits; i++) {
        if (s + i >= end || !isxdigit((unsigned char)s[i])) wt__chat_bad(p, "digits behind \\x or \\u in a string");
        value = value * 16 +
                (unsigned)(isdigit((unsigned char)s[i]) ? s[i] - '0' : tolower((unsigned char)s[i]) - 'a' + 10);
    }
    return value;
}

// A string literal without its quotes: Python's escapes; an unknown one stays as it is.
static wt__chat_token unescape(wt__chat_parser *p, const char *s, size_t n)
{
    static const char from[] = "abfnrtv\\'\"", to[] = "\a\b\f\n\r\t\v\\'\"";
    char *out = wt__chat_heap_take(p->heap, n + 1);
    size_t size = 0;
    for (const char *end = s + n; s < end; s++) {
        if (*s != '\\' || s + 1 >= end) {
            out[size++] = *s;
            continue;
        }
        const char *known = strchr(from, *++s);
        int digits = *s == 'x' ? 2 : *s == 'u' ? 4 : *s == 'U' ? 8 : 0;
        if (known && *known)
            out[size++] = to[known - from];
        else if (digits) {
            uint32_t c = hex(p, s + 1, end, digits);
            if (!c || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) wt__chat_bad(p, "a character behind \\u");
            size += wt__utf8_put(c, out + size);
            s += digits;
        } else if (*s != '\n') {
            out[size++] = '\\';
            out[size++] = *s;
        }
    }
    return (wt__chat_token){WT__TOKEN_STRING, out, size};
}

static wt__chat_token read_string(wt__chat_parser *p)
{
    char quote = p->text[p->at];
    size_t end = p->at + 1;
    while (end < p->size && p->text[end] != quote) end += p->text[end] == '\\' ? 2 : 1;
    if (end >= p->size) wt__chat_bad(p, "the end of a string");
    p->now = (wt__chat_token){WT__TOKEN_STRING, "a string", 8};
    wt__chat_token t = unescape(p, p->text + p->at + 1, end - p->at - 1);
    wt__chat_advance(p, end + 1 - p->at);
    return t;
}

static wt__chat_token read_number(wt__chat_parser *p)
{
    char digits[64];
    size_t n = 0, at = p->at;
    bool real = false;
    for (; at < p->size && n + 1 < sizeof digits; at++) {
        char c = p->text[at];
        bool digit_follows = at + 1 < p->size && isdigit((unsigned char)p->text[at + 1]);
        bool exponent =
            (c == 'e' || c == 'E') && (digit_follows || (at + 2 < p->size && strchr("+-", p->text[at + 1]) &&
                                                         isdigit((unsigned char)p->text[at + 2])));
        if (c == '_' && digit_follows) continue;
        if ((c == '.' && digit_follows && !real) || exponent)
            real = true;
        else if (!isdigit((unsigned char)c))
            break;
        digits[n++] = c;
        if (exponent) digits[n++] = p->text[++at];
    }
    wt__chat_token t = {real ? WT__TOKEN_FLOAT : WT__TOKEN_INT, wt__chat_keep(p, digits, n), n};
    wt__chat_advance(p, at - p->at);
    return t;
}

static wt__chat_token read_operator(wt__chat_parser *p)
{
    static const char *const operators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "[",
                                            "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (!wt__chat_starts(p, p->at, operators[i])) continue;
        char c = *operators[i];
        if (strchr("([{", c)) p->balance++;
        if (strchr(")]}", c) && --p->balance < 0)
            wt__chat_heap_fail(p->heap, WT_ERR_FORMAT, "chat template line %d: \"%c\" without its beginning", p->line,
                               c);
        wt__chat_advance(p, strlen(operators[i]));
        return (wt__chat_token){WT__TOKEN_OPERATOR, operators[i], strlen(operators[i])};
    }
    wt__chat_heap_fail(p->heap, WT_ERR_FORMAT, "chat template line %d: the character \"%c\" has no meaning", p->line,
                       isprint((unsigned char)p->text[p->at]) ? p->text[p->at] : '?');
}

void wt__chat_next(wt__chat_parser *p)
{
    wt__chat_skip_spaces(p);
    if (p->at >= p->size) {
        p->now = (wt__chat_token){0};
        wt__chat_bad(p, "the end of a tag");
    }
    if (!p->balance && wt__chat_end_of_tag(p, "%}", true)) {
        p->now = (wt__chat_token){WT__TOKEN_END_BLOCK, "%}", 2};
    } else if (!p->balance && wt__chat_end_of_tag(p, "}}", false)) {
        p->now = (wt__chat_token){WT__TOKEN_END_OUTPUT, "}}", 2};
    } else if (isalpha((unsigned char)p->text[p->at]) || p->text[p->at] == '_') {
        size_t n = 1;
        while (p->at + n < p->size && (isalnum((unsigned char)p->text[p->at + n]) || p->text[p->at + n] == '_')) n++;
        p->now = (wt__chat_token){WT__TOKEN_NAME, wt__chat_keep(p, p->text + p->at, n), n};
        wt__chat_advance(p, n);
    } else if (isdigit((unsigned char)p->text[p->at])) {
        p->now = read_number(p);
    } else if (strchr("\"'", p->text[p->at]) && p->text[p->at]) {
        p->now = read_string(p);
    } else {
        p->now = read_operator(p);
    }
}

bool wt__chat_is_operator(const wt__chat_parser *p, const char *s)
{
    return p->now.kind == WT__TOKEN_OPERATOR && !strcmp(p->now.text, s);
}
bool wt__chat_is_name(const wt__chat_parser *p, const char *s)
{
    return p->now.kind == WT__TOKEN_NAME && !strcmp(p->now.text, s);
}

bool wt__chat_skip_operator(wt__chat_parser *p, const char *s)
{
    if (!wt__chat_is_operator(p, s)) return false;
    wt__chat_next(p);
    return true;
}

bool wt__chat_skip_name(wt__chat_parser *p, const char *s)
{
    if (!wt__chat_is_name(p, s)) return false;
    wt__chat_next(p);
    return true;
}

void wt__chat_want_operator(wt__chat_parser *p, const char *s)
{
    if (!wt__chat_is_operator(p, s)) wt__chat_bad(p, s);
    wt__chat_next(p);
}

const char *wt__chat_want_name(wt__chat_parser *p)
{
    if (p->now.kind != WT__TOKEN_NAME) wt__chat_bad(p, "a name");
    const char *name = p->now.text;
    wt__chat_next(p);
    return name;
}
