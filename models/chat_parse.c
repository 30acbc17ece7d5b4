// Templates to trees: Jinja's grammar as jinja2 3.1 has it (lexer.py, parser.py), with trim_blocks and lstrip_blocks,
// which transformers sets. One token is read at a time; text between tags is data.
#include "chat_internal.h"
#include "utf8.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef enum token_kind { T_NAME, T_INT, T_FLOAT, T_STRING, T_OPERATOR, T_END_BLOCK, T_END_OUTPUT } token_kind;

typedef struct token {
    token_kind kind;
    const char *text; // ended by a zero, in the heap
    size_t size;
} token;

typedef struct parser {
    wt__chat_heap *heap;
    const char *text;
    size_t size, at;
    int line, balance, nesting; // balance: open brackets, in which no tag ends
    bool line_starts;
    token now;
} parser;

static _Noreturn void bad(parser *p, const char *wanted)
{
    wt__chat_heap_fail(p->heap, WT_ERR_FORMAT, "chat template line %d: \"%.40s\", want %s", p->line,
                       p->now.text ? p->now.text : "the end", wanted);
}

static const char *keep(parser *p, const char *s, size_t n)
{
    char *kept = wt__chat_heap_take(p->heap, n + 1);
    memcpy(kept, s, n);
    return kept;
}

static void deeper(parser *p)
{
    if (++p->nesting > WT__CHAT_MAX_NESTING)
        wt__chat_heap_fail(p->heap, WT_ERR_FORMAT, "chat template line %d: nested more than %d deep", p->line,
                           WT__CHAT_MAX_NESTING);
}

static wt__chat_node *new_node(parser *p, wt__chat_node_kind kind)
{
    wt__chat_node *node = wt__chat_heap_take(p->heap, sizeof *node);
    node->kind = kind;
    node->line = p->line;
    return node;
}

static wt__chat_node *add_node(parser *p, wt__chat_nodes *list, wt__chat_node *node)
{
    wt__chat_heap_grow(p->heap, (void **)&list->at, &list->room, list->n, sizeof *list->at);
    return list->at[list->n++] = node;
}

// --- Tokens ---------------------------------------------------------------------------------------------------------

static bool starts(const parser *p, size_t at, const char *s)
{
    size_t n = strlen(s);
    return p->size - at >= n && !memcmp(p->text + at, s, n);
}

static void advance(parser *p, size_t n)
{
    for (; n; n--) p->line += p->text[p->at++] == '\n';
}

static size_t space_at(const parser *p, size_t at)
{
    uint32_t c = 0;
    size_t n = at < p->size ? wt__utf8_next(p->text + at, p->size - at, &c, NULL) : 0;
    return n && (wt__is_space(c) || (c >= 0x1c && c <= 0x1f)) ? n : 0;
}

static void skip_spaces(parser *p)
{
    for (size_t n; (n = space_at(p, p->at));) advance(p, n);
}

// Does a tag end here, with its sign? Then behind it: "-" takes all white space, a block without sign one line end.
static bool end_of_tag(parser *p, const char *end, bool trims)
{
    char sign = p->text[p->at];
    size_t skip = sign == '-' || (sign == '+' && trims) ? 1 : 0;
    if (p->at >= p->size || !starts(p, p->at + skip, end)) return false;
    advance(p, skip + 2);
    if (skip && sign == '-')
        skip_spaces(p);
    else if (!skip && trims && p->at < p->size && p->text[p->at] == '\n')
        advance(p, 1);
    p->line_starts = p->text[p->at - 1] == '\n';
    return true;
}

static unsigned hex(parser *p, const char *s, const char *end, int digits)
{
    unsigned value = 0;
    for (int i = 0; i < digits; i++) {
        if (s + i >= end || !isxdigit((unsigned char)s[i])) bad(p, "digits behind \\x or \\u in a string");
        value = value * 16 +
                (unsigned)(isdigit((unsigned char)s[i]) ? s[i] - '0' : tolower((unsigned char)s[i]) - 'a' + 10);
    }
    return value;
}

// A string literal without its quotes: Python's escapes; an unknown one stays as it is.
static token unescape(parser *p, const char *s, size_t n)
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
            if (!c || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) bad(p, "a character behind \\u");
            size += wt__utf8_put(c, out + size);
            s += digits;
        } else if (*s != '\n') {
            out[size++] = '\\';
            out[size++] = *s;
        }
    }
    return (token){T_STRING, out, size};
}

static token read_string(parser *p)
{
    char quote = p->text[p->at];
    size_t end = p->at + 1;
    while (end < p->size && p->text[end] != quote) end += p->text[end] == '\\' ? 2 : 1;
    if (end >= p->size) bad(p, "the end of a string");
    p->now = (token){T_STRING, "a string", 8};
    token t = unescape(p, p->text + p->at + 1, end - p->at - 1);
    advance(p, end + 1 - p->at);
    return t;
}

static token read_number(parser *p)
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
    token t = {real ? T_FLOAT : T_INT, keep(p, digits, n), n};
    advance(p, at - p->at);
    return t;
}

static token read_operator(parser *p)
{
    static const char *const operators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "[",
                                            "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (!starts(p, p->at, operators[i])) continue;
        char c = *operators[i];
        if (strchr("([{", c)) p->balance++;
        if (strchr(")]}", c) && --p->balance < 0)
            wt__chat_heap_fail(p->heap, WT_ERR_FORMAT, "chat template line %d: \"%c\" without its beginning", p->line,
                               c);
        advance(p, strlen(operators[i]));
        return (token){T_OPERATOR, operators[i], strlen(operators[i])};
    }
    wt__chat_heap_fail(p->heap, WT_ERR_FORMAT, "chat template line %d: the character \"%c\" has no meaning", p->line,
                       isprint((unsigned char)p->text[p->at]) ? p->text[p->at] : '?');
}

static void next(parser *p)
{
    skip_spaces(p);
    if (p->at >= p->size) {
        p->now = (token){0};
        bad(p, "the end of a tag");
    }
    if (!p->balance && end_of_tag(p, "%}", true)) {
        p->now = (token){T_END_BLOCK, "%}", 2};
    } else if (!p->balance && end_of_tag(p, "}}", false)) {
        p->now = (token){T_END_OUTPUT, "}}", 2};
    } else if (isalpha((unsigned char)p->text[p->at]) || p->text[p->at] == '_') {
        size_t n = 1;
        while (p->at + n < p->size && (isalnum((unsigned char)p->text[p->at + n]) || p->text[p->at + n] == '_')) n++;
        p->now = (token){T_NAME, keep(p, p->text + p->at, n), n};
        advance(p, n);
    } else if (isdigit((unsigned char)p->text[p->at])) {
        p->now = read_number(p);
    } else if (strchr("\"'", p->text[p->at]) && p->text[p->at]) {
        p->now = read_string(p);
    } else {
        p->now = read_operator(p);
    }
}

static bool is_operator(const parser *p, const char *s) { return p->now.kind == T_OPERATOR && !strcmp(p->now.text, s); }
static bool is_name(const parser *p, const char *s) { return p->now.kind == T_NAME && !strcmp(p->now.text, s); }

static bool skip_operator(parser *p, const char *s)
{
    if (!is_operator(p, s)) return false;
    next(p);
    return true;
}

static bool skip_name(parser *p, const char *s)
{
    if (!is_name(p, s)) return false;
    next(p);
    return true;
}

static void want_operator(parser *p, const char *s)
{
    if (!is_operator(p, s)) bad(p, s);
    next(p);
}

static const char *want_name(parser *p)
{
    if (p->now.kind != T_NAME) bad(p, "a name");
    const char *name = p->now.text;
    next(p);
    return name;
}

// --- Expressions, from loose to tight -------------------------------------------------------------------------------

static wt__chat_node *expression(parser *p);
static wt__chat_node *unary(parser *p, bool with_filters);

static wt__chat_node *pair(parser *p, wt__chat_node_kind kind, wt__chat_node *a, wt__chat_node *b)
{
    wt__chat_node *node = new_node(p, kind);
    node->a = a;
    node->b = b;
    return node;
}

static wt__chat_node *binary(parser *p, wt__chat_node *a, const char *op, wt__chat_node *b)
{
    wt__chat_node *node = pair(p, WT__N_BINARY, a, b);
    memcpy(node->op, op, strlen(op));
    return node;
}

// Elements up to `end`, a comma between.
static void elements(parser *p, wt__chat_nodes *list, const char *end)
{
    while (!is_operator(p, end)) {
        add_node(p, list, expression(p));
        if (!is_operator(p, end)) want_operator(p, ",");
    }
    next(p);
}

static void arguments(parser *p, wt__chat_nodes *list)
{
    bool named = false;
    while (!is_operator(p, ")")) {
        parser before = *p;
        const char *name = p->now.kind == T_NAME ? p->now.text : NULL;
        if (name) next(p);
        if (!name || !skip_operator(p, "=")) {
            *p = before;
            if (named) bad(p, "an argument with a name behind one");
            name = NULL;
        }
        named = named || name;
        wt__chat_node *value = expression(p), *argument = pair(p, WT__N_LITERAL, value, NULL);
        argument->name = name;
        add_node(p, list, argument);
        if (!is_operator(p, ")")) want_operator(p, ",");
    }
    next(p);
}

static wt__chat_node *literal(parser *p, wt__chat_value value)
{
    wt__chat_node *node = new_node(p, WT__N_LITERAL);
    node->value = value;
    next(p);
    return node;
}

static wt__chat_node *string_literal(parser *p)
{
    wt__chat_node *node = new_node(p, WT__N_LITERAL);
    size_t size = p->now.size;
    char *text = (char *)keep(p, p->now.text, size);
    for (next(p); p->now.kind == T_STRING; next(p)) { // neighbours are one
        char *both = wt__chat_heap_take(p->heap, size + p->now.size + 1);
        memcpy(both, text, size);
        memcpy(both + size, p->now.text, p->now.size);
        size += p->now.size;
        text = both;
    }
    node->value = (wt__chat_value){WT__STRING, (uint32_t)size, {.s = text}};
    return node;
}

static wt__chat_node *name_or_constant(parser *p)
{
    static const struct {
        const char *name;
        wt__chat_value value;
    } constants[] = {{"true", {WT__BOOL, 0, {1}}},  {"True", {WT__BOOL, 0, {1}}}, {"false", {WT__BOOL, 0, {0}}},
                     {"False", {WT__BOOL, 0, {0}}}, {"none", {WT__NONE, 0, {0}}}, {"None", {WT__NONE, 0, {0}}}};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (is_name(p, constants[i].name)) return literal(p, constants[i].value);
    wt__chat_node *node = new_node(p, WT__N_NAME);
    node->name = want_name(p);
    return node;
}

static wt__chat_node *number(parser *p)
{
    errno = 0;
    if (p->now.kind == T_FLOAT) return literal(p, (wt__chat_value){WT__FLOAT, 0, {.f = strtod(p->now.text, NULL)}});
    int64_t i = strtoll(p->now.text, NULL, 10);
    if (errno) bad(p, "an integer of 64 bits");
    return literal(p, (wt__chat_value){WT__INT, 0, {i}});
}

static wt__chat_node *map_literal(parser *p)
{
    wt__chat_node *node = new_node(p, WT__N_MAP);
    while (!is_operator(p, "}")) {
        add_node(p, &node->list, expression(p));
        want_operator(p, ":");
        add_node(p, &node->list, expression(p));
        if (!is_operator(p, "}")) want_operator(p, ",");
    }
    next(p);
    return node;
}

static wt__chat_node *in_parentheses(parser *p)
{
    wt__chat_node *tuple = new_node(p, WT__N_TUPLE);
    if (skip_operator(p, ")")) return tuple;
    wt__chat_node *first = expression(p);
    if (skip_operator(p, ")")) return first;
    want_operator(p, ",");
    add_node(p, &tuple->list, first);
    elements(p, &tuple->list, ")");
    return tuple;
}

static wt__chat_node *primary(parser *p)
{
    wt__chat_node *node;
    switch (p->now.kind) {
    case T_NAME:
        return name_or_constant(p);
    case T_STRING:
        return string_literal(p);
    case T_INT:
    case T_FLOAT:
        return number(p);
    default:
        if (skip_operator(p, "(")) return in_parentheses(p);
        if (skip_operator(p, "{")) return map_literal(p);
        if (!is_operator(p, "[")) bad(p, "an expression");
        next(p);
        node = new_node(p, WT__N_LIST);
        elements(p, &node->list, "]");
        return node;
    }
}

// What stands in brackets: an index, or begin:end:step.
static wt__chat_node *subscript(parser *p, wt__chat_node *of)
{
    wt__chat_node *part[3] = {0};
    int n = 0;
    for (bool more = true; more; n++) {
        if (n == 3) bad(p, "begin:end:step at most");
        if (!is_operator(p, ":") && !is_operator(p, "]")) part[n] = expression(p);
        more = skip_operator(p, ":");
    }
    if (!is_operator(p, "]")) bad(p, "]");
    next(p);
    if (n == 1 && !part[0]) bad(p, "an index");
    wt__chat_node *node = pair(p, n == 1 ? WT__N_ITEM : WT__N_SLICE, of, part[0]);
    node->c = part[1];
    if (n == 3 && part[2]) add_node(p, &node->list, part[2]);
    return node;
}

static wt__chat_node *postfix(parser *p, wt__chat_node *node)
{
    for (;;) {
        if (skip_operator(p, ".")) {
            bool index = p->now.kind == T_INT;
            wt__chat_node *of = node;
            node = pair(p, index ? WT__N_ITEM : WT__N_ATTRIBUTE, of, NULL);
            if (index)
                node->b = number(p);
            else
                node->name = want_name(p);
        } else if (skip_operator(p, "[")) {
            node = subscript(p, node);
        } else if (skip_operator(p, "(")) {
            node = pair(p, WT__N_CALL, node, NULL);
            arguments(p, &node->list);
        } else {
            return node;
        }
    }
}

static wt__chat_node *filter(parser *p, wt__chat_node *of)
{
    wt__chat_node *node = pair(p, WT__N_FILTER, of, NULL);
    node->name = want_name(p);
    if (skip_operator(p, "(")) arguments(p, &node->list);
    return node;
}

static wt__chat_node *test(parser *p, wt__chat_node *of)
{
    bool negated = skip_name(p, "not");
    wt__chat_node *node = pair(p, WT__N_TEST, of, NULL);
    node->name = want_name(p);
    bool word = p->now.kind == T_NAME && !is_name(p, "else") && !is_name(p, "or") && !is_name(p, "and") &&
                !is_name(p, "is") && !is_name(p, "if") && !is_name(p, "in") && !is_name(p, "not");
    if (skip_operator(p, "(")) {
        arguments(p, &node->list);
    } else if (word || p->now.kind == T_STRING || p->now.kind == T_INT || p->now.kind == T_FLOAT ||
               is_operator(p, "[") || is_operator(p, "{")) {
        wt__chat_node *argument = pair(p, WT__N_LITERAL, postfix(p, primary(p)), NULL);
        add_node(p, &node->list, argument);
    }
    return negated ? pair(p, WT__N_NOT, node, NULL) : node;
}

static wt__chat_node *filters(parser *p, wt__chat_node *node)
{
    for (;;) {
        if (skip_operator(p, "|"))
            node = filter(p, node);
        else if (skip_name(p, "is"))
            node = test(p, node);
        else if (node->kind == WT__N_FILTER && skip_operator(p, "("))
            bad(p, "no call of a filter's result");
        else
            return node;
    }
}

static wt__chat_node *unary(parser *p, bool with_filters)
{
    wt__chat_node *node;
    deeper(p);
    if (skip_operator(p, "-"))
        node = pair(p, WT__N_NEGATE, unary(p, false), NULL);
    else if (skip_operator(p, "+"))
        node = pair(p, WT__N_PLUS, unary(p, false), NULL);
    else
        node = primary(p);
    node = postfix(p, node);
    p->nesting--;
    return with_filters ? filters(p, node) : node;
}

// Operators of one level, tightest last; the levels of jinja2: + -, ~, * / // %, **.
static wt__chat_node *operators(parser *p, int level)
{
    static const char *const of_level[][5] = {{"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}};
    if (level == 4) return unary(p, true);
    wt__chat_node *node = operators(p, level + 1);
    for (int i = 0; i < 5 && of_level[level][i]; i++) {
        const char *op = of_level[level][i];
        if (!skip_operator(p, op)) continue;
        node = binary(p, node, op, operators(p, level + 1));
        i = -1;
    }
    return node;
}

static bool comparison(parser *p, char op[8])
{
    static const char *const signs[] = {"==", "!=", "<=", ">=", "<", ">"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        if (!skip_operator(p, signs[i])) continue;
        memcpy(op, signs[i], strlen(signs[i]) + 1);
        return true;
    }
    if (skip_name(p, "in")) {
        memcpy(op, "in", 3);
        return true;
    }
    parser before = *p;
    if (skip_name(p, "not") && skip_name(p, "in")) {
        memcpy(op, "not in", 7);
        return true;
    }
    *p = before;
    return false;
}

static wt__chat_node *compare(parser *p)
{
    char op[8];
    wt__chat_node *first = operators(p, 0), *node = NULL;
    while (comparison(p, op)) {
        if (!node) node = pair(p, WT__N_COMPARE, first, NULL);
        wt__chat_node *operand = pair(p, WT__N_LITERAL, operators(p, 0), NULL);
        memcpy(operand->op, op, sizeof op);
        add_node(p, &node->list, operand);
    }
    return node ? node : first;
}

static wt__chat_node *negation(parser *p)
{
    if (!skip_name(p, "not")) return compare(p);
    deeper(p);
    wt__chat_node *node = pair(p, WT__N_NOT, negation(p), NULL);
    p->nesting--;
    return node;
}

static wt__chat_node *conjunction(parser *p)
{
    wt__chat_node *node = negation(p);
    while (skip_name(p, "and")) node = pair(p, WT__N_AND, node, negation(p));
    return node;
}

static wt__chat_node *disjunction(parser *p)
{
    wt__chat_node *node = conjunction(p);
    while (skip_name(p, "or")) node = pair(p, WT__N_OR, node, conjunction(p));
    return node;
}

static wt__chat_node *expression(parser *p)
{
    deeper(p);
    wt__chat_node *node = disjunction(p);
    while (skip_name(p, "if")) {
        wt__chat_node *condition = pair(p, WT__N_CONDITION, disjunction(p), node);
        if (skip_name(p, "else")) condition->c = expression(p);
        node = condition;
    }
    p->nesting--;
    return node;
}

// An expression, or several with commas: a tuple.
static wt__chat_node *tuple(parser *p)
{
    wt__chat_node *first = expression(p), *node = NULL;
    while (skip_operator(p, ",")) {
        if (!node) {
            node = new_node(p, WT__N_TUPLE);
            add_node(p, &node->list, first);
        }
        if (p->now.kind == T_END_BLOCK || p->now.kind == T_END_OUTPUT) break;
        add_node(p, &node->list, expression(p));
    }
    return node ? node : first;
}

// --- Statements -----------------------------------------------------------------------------------------------------

static const char *body(parser *p, wt__chat_nodes *list, const char *const *ends);

static void end_block(parser *p)
{
    if (p->now.kind != T_END_BLOCK) bad(p, "%}");
}

// The rest of a tag, the statements behind it, and the tag that ends them.
static void whole_body(parser *p, wt__chat_nodes *list, const char *end)
{
    end_block(p);
    body(p, list, (const char *const[]){end, NULL});
    end_block(p);
}

static wt__chat_node *if_statement(parser *p)
{
    wt__chat_node *node = new_node(p, WT__N_IF);
    node->a = tuple(p);
    end_block(p);
    const char *end = body(p, &node->body, (const char *const[]){"elif", "else", "endif", NULL});
    if (!strcmp(end, "elif")) {
        deeper(p);
        add_node(p, &node->otherwise, if_statement(p));
        p->nesting--;
        return node;
    }
    if (!strcmp(end, "else")) whole_body(p, &node->otherwise, "endif");
    end_block(p);
    return node;
}

static void targets(parser *p, wt__chat_nodes *list)
{
    bool parentheses = skip_operator(p, "(");
    do {
        wt__chat_node *name = new_node(p, WT__N_NAME);
        name->name = want_name(p);
        add_node(p, list, name);
    } while (skip_operator(p, ","));
    if (parentheses) want_operator(p, ")");
}

static wt__chat_node *for_statement(parser *p)
{
    wt__chat_node *node = new_node(p, WT__N_FOR);
    targets(p, &node->list);
    if (!skip_name(p, "in")) bad(p, "in");
    node->a = disjunction(p);
    if (skip_name(p, "if")) node->b = expression(p);
    if (is_name(p, "recursive")) bad(p, "no recursive loop");
    end_block(p);
    const char *end = body(p, &node->body, (const char *const[]){"endfor", "else", NULL});
    if (!strcmp(end, "else")) whole_body(p, &node->otherwise, "endfor");
    end_block(p);
    return node;
}

static wt__chat_node *set_statement(parser *p)
{
    wt__chat_node *node = new_node(p, WT__N_SET);
    targets(p, &node->list);
    if (node->list.n == 1 && skip_operator(p, ".")) node->name = want_name(p); // of a namespace
    if (skip_operator(p, "=")) {
        node->a = tuple(p);
        end_block(p);
        return node;
    }
    node->kind = WT__N_SET_BLOCK;
    if (skip_operator(p, "|")) node->a = filters(p, filter(p, NULL));
    whole_body(p, &node->body, "endset");
    return node;
}

static void parameters(parser *p, wt__chat_nodes *list)
{
    while (!is_operator(p, ")")) {
        wt__chat_node *parameter = new_node(p, WT__N_NAME);
        parameter->name = want_name(p);
        if (skip_operator(p, "=")) parameter->a = expression(p);
        add_node(p, list, parameter);
        if (!is_operator(p, ")")) want_operator(p, ",");
    }
    next(p);
}

static wt__chat_node *macro_statement(parser *p)
{
    wt__chat_node *node = new_node(p, WT__N_MACRO);
    node->name = want_name(p);
    want_operator(p, "(");
    parameters(p, &node->list);
    whole_body(p, &node->body, "endmacro");
    return node;
}

static wt__chat_node *call_statement(parser *p)
{
    wt__chat_node *node = new_node(p, WT__N_CALL_BLOCK), *caller = new_node(p, WT__N_MACRO);
    caller->name = "caller";
    if (skip_operator(p, "(")) parameters(p, &caller->list);
    node->a = postfix(p, primary(p));
    if (node->a->kind != WT__N_CALL) bad(p, "a call");
    node->b = caller;
    whole_body(p, &caller->body, "endcall");
    return node;
}

static wt__chat_node *with_statement(parser *p)
{
    wt__chat_node *node = new_node(p, WT__N_WITH);
    while (p->now.kind != T_END_BLOCK) {
        wt__chat_node *variable = new_node(p, WT__N_NAME);
        variable->name = want_name(p);
        want_operator(p, "=");
        variable->a = expression(p);
        add_node(p, &node->list, variable);
        if (p->now.kind != T_END_BLOCK) want_operator(p, ",");
    }
    whole_body(p, &node->body, "endwith");
    return node;
}

static wt__chat_node *filter_statement(parser *p)
{
    wt__chat_node *node = new_node(p, WT__N_FILTER_BLOCK);
    node->a = filters(p, filter(p, NULL));
    whole_body(p, &node->body, "endfilter");
    return node;
}

static wt__chat_node *generation_statement(parser *p) // transformers, chat_template_utils.py, AssistantTracker
{
    wt__chat_node *node = new_node(p, WT__N_GENERATION);
    whole_body(p, &node->body, "endgeneration");
    return node;
}

static wt__chat_node *break_statement(parser *p) { return new_node(p, WT__N_BREAK); }
static wt__chat_node *continue_statement(parser *p) { return new_node(p, WT__N_CONTINUE); }

static wt__chat_node *statement(parser *p)
{
    static const struct {
        const char *name;
        wt__chat_node *(*parse)(parser *p);
    } kinds[] = {{"if", if_statement},         {"for", for_statement},
                 {"set", set_statement},       {"macro", macro_statement},
                 {"call", call_statement},     {"with", with_statement},
                 {"filter", filter_statement}, {"generation", generation_statement},
                 {"break", break_statement},   {"continue", continue_statement}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!skip_name(p, kinds[i].name)) continue;
        wt__chat_node *node = kinds[i].parse(p);
        end_block(p);
        return node;
    }
    bad(p, "if, for, set, macro, call, with, filter, generation, break or continue");
}

// --- Data -----------------------------------------------------------------------------------------------------------

// The bytes of data before a tag whose sign is `sign`.
static size_t data_end(const parser *p, size_t begin, size_t end, char sign, bool output)
{
    size_t kept = begin, line = begin; // behind the last character that is no space; the last line's beginning
    bool starts_line = p->line_starts;
    for (size_t at = begin, n; at < end; at += n) {
        uint32_t c;
        n = wt__utf8_next(p->text + at, end - at, &c, NULL);
        if (!space_at(p, at)) kept = at + n;
        if (c == '\n') {
            line = at + 1;
            starts_line = true;
        }
    }
    if (sign == '-') return kept;
    return sign != '+' && !output && starts_line && kept <= line ? line : end;
}

static size_t find(const parser *p, size_t from, const char *s)
{
    const char *at = memmem(p->text + from, p->size - from, s, strlen(s));
    return at ? (size_t)(at - p->text) : p->size;
}

static void add_data(parser *p, wt__chat_nodes *list, size_t begin, size_t end)
{
    if (end <= begin) return;
    wt__chat_node *node = add_node(p, list, new_node(p, WT__N_DATA));
    node->value = (wt__chat_value){WT__STRING, (uint32_t)(end - begin), {.s = p->text + begin}};
}

// Behind "{% raw": data up to the tag that ends it.
static void raw(parser *p, wt__chat_nodes *list)
{
    end_block(p);
    size_t begin = p->at;
    for (size_t at = begin; (at = find(p, at, "{%")) < p->size; at += 2) {
        parser inner = *p;
        char sign = at + 2 < p->size ? p->text[at + 2] : 0;
        bool signed_ = sign == '-' || sign == '+';
        advance(&inner, at + 2 + signed_ - inner.at);
        skip_spaces(&inner);
        if (!starts(&inner, inner.at, "endraw")) continue;
        advance(&inner, 6);
        skip_spaces(&inner);
        if (!end_of_tag(&inner, "%}", true)) continue;
        add_data(p, list, begin, data_end(p, begin, at, sign, false));
        *p = inner;
        return;
    }
    bad(p, "endraw");
}

static void comment(parser *p)
{
    for (advance(p, 2); p->at < p->size; advance(p, 1))
        if (end_of_tag(p, "#}", true)) return;
    wt__chat_heap_fail(p->heap, WT_ERR_FORMAT, "chat template line %d: a comment without its end", p->line);
}

static bool is_end(const parser *p, const char *const *ends)
{
    for (; p->now.kind == T_NAME && *ends; ends++)
        if (!strcmp(p->now.text, *ends)) return true;
    return false;
}

// A tag at p->at, its sign skipped. True: it is one of `ends`, and the token behind its name is the present one.
static bool tag(parser *p, wt__chat_nodes *list, const char *const *ends, const char **end)
{
    next(p);
    if (is_end(p, ends)) {
        *end = p->now.text;
        next(p);
        return true;
    }
    if (skip_name(p, "raw"))
        raw(p, list);
    else
        add_node(p, list, statement(p));
    return false;
}

// Statements up to one of `ends`; its name, or NULL at the end of the text when `ends` is empty.
static const char *body(parser *p, wt__chat_nodes *list, const char *const *ends)
{
    const char *end = NULL;
    deeper(p);
    for (;;) {
        size_t begin = p->at, at = begin;
        while (at < p->size &&
               !(p->text[at] == '{' && at + 1 < p->size && p->text[at + 1] && strchr("{%#", p->text[at + 1])))
            at++;
        char kind = at < p->size ? p->text[at + 1] : 0, sign = at + 2 < p->size ? p->text[at + 2] : 0;
        if (!kind) sign = '+';
        add_data(p, list, begin, data_end(p, begin, at, sign, kind == '{'));
        advance(p, at - begin);
        if (!kind) break;
        if (kind == '#') {
            comment(p);
            continue;
        }
        advance(p, sign == '-' || sign == '+' ? 3 : 2);
        if (kind == '%') {
            if (tag(p, list, ends, &end)) break;
            continue;
        }
        next(p);
        wt__chat_node *node = new_node(p, WT__N_OUTPUT);
        node->a = tuple(p);
        if (p->now.kind != T_END_OUTPUT) bad(p, "}}");
        add_node(p, list, node);
    }
    p->nesting--;
    if (!end && *ends)
        wt__chat_heap_fail(p->heap, WT_ERR_FORMAT, "chat template line %d: the text ends, want %s", p->line, *ends);
    return end;
}

wt__chat_nodes wt__chat_parse(wt__chat_heap *heap, const char *text, size_t size)
{
    char *clean = wt__chat_heap_take(heap, size + 1);
    size_t n = 0;
    for (size_t i = 0; i < size; i++) { // line ends of all kinds are \n; the last one does not count
        if (text[i] == '\r' && text[i + 1] == '\n') continue;
        clean[n++] = text[i] == '\r' ? '\n' : text[i];
    }
    if (n && clean[n - 1] == '\n') clean[--n] = 0;
    if (!wt__utf8_valid(clean, n)) wt__chat_heap_fail(heap, WT_ERR_FORMAT, "chat template: the text is no UTF-8");
    parser p = {.heap = heap, .text = clean, .size = n, .line = 1, .line_starts = true};
    wt__chat_nodes list = {0};
    body(&p, &list, (const char *const[]){NULL});
    return list;
}
