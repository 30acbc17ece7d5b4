// Expressions of templates, from loose to tight: jinja2 3.1, parser.py.
#include "chat_parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/number.h>

static wt__chat_node *unary(wt__chat_parser *p, bool with_filters);

static wt__chat_node *pair(wt__chat_parser *p, wt__chat_node_kind kind, wt__chat_node *a, wt__chat_node *b)
{
    wt__chat_node *node = wt__chat_new_node(p, kind);
    node->a = a;
    node->b = b;
    return node;
}

static wt__chat_node *binary(wt__chat_parser *p, wt__chat_node *a, const char *op, wt__chat_node *b)
{
    wt__chat_node *node = pair(p, WT__N_BINARY, a, b);
    memcpy(node->op, op, strlen(op));
    return node;
}

// Elements up to `end`, a comma between.
static void elements(wt__chat_parser *p, wt__chat_nodes *list, const char *end)
{
    while (!wt__chat_is_operator(p, end)) {
        wt__chat_add_node(p, list, wt__chat_parse_expression(p));
        if (!wt__chat_is_operator(p, end)) wt__chat_want_operator(p, ",");
    }
    wt__chat_next(p);
}

static void arguments(wt__chat_parser *p, wt__chat_nodes *list)
{
    bool named = false;
    while (!wt__chat_is_operator(p, ")")) {
        wt__chat_parser before = *p;
        const char *name = p->now.kind == WT__TOKEN_NAME ? p->now.text : NULL;
        if (name) wt__chat_next(p);
        if (!name || !wt__chat_skip_operator(p, "=")) {
            *p = before;
            if (named) wt__chat_bad(p, "an argument with a name behind one");
            name = NULL;
        }
        named = named || name;
        wt__chat_node *value = wt__chat_parse_expression(p), *argument = pair(p, WT__N_LITERAL, value, NULL);
        argument->name = name;
        wt__chat_add_node(p, list, argument);
        if (!wt__chat_is_operator(p, ")")) wt__chat_want_operator(p, ",");
    }
    wt__chat_next(p);
}

static wt__chat_node *literal(wt__chat_parser *p, wt__chat_value value)
{
    wt__chat_node *node = wt__chat_new_node(p, WT__N_LITERAL);
    node->value = value;
    wt__chat_next(p);
    return node;
}

static wt__chat_node *string_literal(wt__chat_parser *p)
{
    wt__chat_node *node = wt__chat_new_node(p, WT__N_LITERAL);
    size_t size = p->now.size;
    char *text = (char *)wt__chat_keep(p, p->now.text, size);
    for (wt__chat_next(p); p->now.kind == WT__TOKEN_STRING; wt__chat_next(p)) { // neighbours are one
        char *both = wt__chat_heap_take(p->heap, size + p->now.size + 1);
        memcpy(both, text, size);
        memcpy(both + size, p->now.text, p->now.size);
        size += p->now.size;
        text = both;
    }
    node->value = (wt__chat_value){WT__STRING, (uint32_t)size, {.s = text}};
    return node;
}

static wt__chat_node *name_or_constant(wt__chat_parser *p)
{
    static const struct {
        const char *name;
        wt__chat_value value;
    } constants[] = {{"true", {WT__BOOL, 0, {1}}},  {"True", {WT__BOOL, 0, {1}}}, {"false", {WT__BOOL, 0, {0}}},
                     {"False", {WT__BOOL, 0, {0}}}, {"none", {WT__NONE, 0, {0}}}, {"None", {WT__NONE, 0, {0}}}};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (wt__chat_is_name(p, constants[i].name)) return literal(p, constants[i].value);
    wt__chat_node *node = wt__chat_new_node(p, WT__N_NAME);
    node->name = wt__chat_want_name(p);
    return node;
}

static wt__chat_node *number(wt__chat_parser *p)
{
    errno = 0;
    if (p->now.kind == WT__TOKEN_FLOAT)
        return literal(p, (wt__chat_value){WT__FLOAT, 0, {.f = wt_number_read(p->now.text, NULL)}});
    int64_t i = strtoll(p->now.text, NULL, 10);
    if (errno) wt__chat_bad(p, "an integer of 64 bits");
    return literal(p, (wt__chat_value){WT__INT, 0, {i}});
}

static wt__chat_node *map_literal(wt__chat_parser *p)
{
    wt__chat_node *node = wt__chat_new_node(p, WT__N_MAP);
    while (!wt__chat_is_operator(p, "}")) {
        wt__chat_add_node(p, &node->list, wt__chat_parse_expression(p));
        wt__chat_want_operator(p, ":");
        wt__chat_add_node(p, &node->list, wt__chat_parse_expression(p));
        if (!wt__chat_is_operator(p, "}")) wt__chat_want_operator(p, ",");
    }
    wt__chat_next(p);
    return node;
}

static wt__chat_node *in_parentheses(wt__chat_parser *p)
{
    wt__chat_node *tuple = wt__chat_new_node(p, WT__N_TUPLE);
    if (wt__chat_skip_operator(p, ")")) return tuple;
    wt__chat_node *first = wt__chat_parse_expression(p);
    if (wt__chat_skip_operator(p, ")")) return first;
    wt__chat_want_operator(p, ",");
    wt__chat_add_node(p, &tuple->list, first);
    elements(p, &tuple->list, ")");
    return tuple;
}

wt__chat_node *wt__chat_parse_primary(wt__chat_parser *p)
{
    wt__chat_node *node;
    switch (p->now.kind) {
    case WT__TOKEN_NAME:
        return name_or_constant(p);
    case WT__TOKEN_STRING:
        return string_literal(p);
    case WT__TOKEN_INT:
    case WT__TOKEN_FLOAT:
        return number(p);
    default:
        if (wt__chat_skip_operator(p, "(")) return in_parentheses(p);
        if (wt__chat_skip_operator(p, "{")) return map_literal(p);
        if (!wt__chat_is_operator(p, "[")) wt__chat_bad(p, "an expression");
        wt__chat_next(p);
        node = wt__chat_new_node(p, WT__N_LIST);
        elements(p, &node->list, "]");
        return node;
    }
}

// What stands in brackets: an index, or begin:end:step.
static wt__chat_node *subscript(wt__chat_parser *p, wt__chat_node *of)
{
    wt__chat_node *part[3] = {0};
    int n = 0;
    for (bool more = true; more; n++) {
        if (n == 3) wt__chat_bad(p, "begin:end:step at most");
        if (!wt__chat_is_operator(p, ":") && !wt__chat_is_operator(p, "]")) part[n] = wt__chat_parse_expression(p);
        more = wt__chat_skip_operator(p, ":");
    }
    if (!wt__chat_is_operator(p, "]")) wt__chat_bad(p, "]");
    wt__chat_next(p);
    if (n == 1 && !part[0]) wt__chat_bad(p, "an index");
    wt__chat_node *node = pair(p, n == 1 ? WT__N_ITEM : WT__N_SLICE, of, part[0]);
    node->c = part[1];
    if (n == 3 && part[2]) wt__chat_add_node(p, &node->list, part[2]);
    return node;
}

wt__chat_node *wt__chat_parse_postfix(wt__chat_parser *p, wt__chat_node *node)
{
    for (;;) {
        if (wt__chat_skip_operator(p, ".")) {
            bool index = p->now.kind == WT__TOKEN_INT;
            wt__chat_node *of = node;
            node = pair(p, index ? WT__N_ITEM : WT__N_ATTRIBUTE, of, NULL);
            if (index)
                node->b = number(p);
            else
                node->name = wt__chat_want_name(p);
        } else if (wt__chat_skip_operator(p, "[")) {
            node = subscript(p, node);
        } else if (wt__chat_skip_operator(p, "(")) {
            node = pair(p, WT__N_CALL, node, NULL);
            arguments(p, &node->list);
        } else {
            return node;
        }
    }
}

wt__chat_node *wt__chat_parse_filter(wt__chat_parser *p, wt__chat_node *of)
{
    wt__chat_node *node = pair(p, WT__N_FILTER, of, NULL);
    node->name = wt__chat_want_name(p);
    if (wt__chat_skip_operator(p, "(")) arguments(p, &node->list);
    return node;
}

static wt__chat_node *test(wt__chat_parser *p, wt__chat_node *of)
{
    bool negated = wt__chat_skip_name(p, "not");
    wt__chat_node *node = pair(p, WT__N_TEST, of, NULL);
    node->name = wt__chat_want_name(p);
    bool word = p->now.kind == WT__TOKEN_NAME && !wt__chat_is_name(p, "else") && !wt__chat_is_name(p, "or") &&
                !wt__chat_is_name(p, "and") && !wt__chat_is_name(p, "is") && !wt__chat_is_name(p, "if") &&
                !wt__chat_is_name(p, "in") && !wt__chat_is_name(p, "not");
    if (wt__chat_skip_operator(p, "(")) {
        arguments(p, &node->list);
    } else if (word || p->now.kind == WT__TOKEN_STRING || p->now.kind == WT__TOKEN_INT ||
               p->now.kind == WT__TOKEN_FLOAT || wt__chat_is_operator(p, "[") || wt__chat_is_operator(p, "{")) {
        wt__chat_node *argument = pair(p, WT__N_LITERAL, wt__chat_parse_postfix(p, wt__chat_parse_primary(p)), NULL);
        wt__chat_add_node(p, &node->list, argument);
    }
    return negated ? pair(p, WT__N_NOT, node, NULL) : node;
}

wt__chat_node *wt__chat_parse_filters(wt__chat_parser *p, wt__chat_node *node)
{
    for (;;) {
        if (wt__chat_skip_operator(p, "|"))
            node = wt__chat_parse_filter(p, node);
        else if (wt__chat_skip_name(p, "is"))
            node = test(p, node);
        else if (node->kind == WT__N_FILTER && wt__chat_skip_operator(p, "("))
            wt__chat_bad(p, "no call of a filter's result");
        else
            return node;
    }
}

static wt__chat_node *unary(wt__chat_parser *p, bool with_filters)
{
    wt__chat_node *node;
    wt__chat_deeper(p);
    if (wt__chat_skip_operator(p, "-"))
        node = pair(p, WT__N_NEGATE, unary(p, false), NULL);
    else if (wt__chat_skip_operator(p, "+"))
        node = pair(p, WT__N_PLUS, unary(p, false), NULL);
    else
        node = wt__chat_parse_primary(p);
    node = wt__chat_parse_postfix(p, node);
    p->nesting--;
    return with_filters ? wt__chat_parse_filters(p, node) : node;
}

// Operators of one level, tightest last; the levels of jinja2: + -, ~, * / // %, **.
static wt__chat_node *operators(wt__chat_parser *p, int level)
{
    static const char *const of_level[][5] = {{"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}};
    if (level == 4) return unary(p, true);
    wt__chat_node *node = operators(p, level + 1);
    for (int i = 0; i < 5 && of_level[level][i]; i++) {
        const char *op = of_level[level][i];
        if (!wt__chat_skip_operator(p, op)) continue;
        node = binary(p, node, op, operators(p, level + 1));
        i = -1;
    }
    return node;
}

static bool comparison(wt__chat_parser *p, char op[8])
{
    static const char *const signs[] = {"==", "!=", "<=", ">=", "<", ">"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        if (!wt__chat_skip_operator(p, signs[i])) continue;
        memcpy(op, signs[i], strlen(signs[i]) + 1);
        return true;
    }
    if (wt__chat_skip_name(p, "in")) {
        memcpy(op, "in", 3);
        return true;
    }
    wt__chat_parser before = *p;
    if (wt__chat_skip_name(p, "not") && wt__chat_skip_name(p, "in")) {
        memcpy(op, "not in", 7);
        return true;
    }
    *p = before;
    return false;
}

static wt__chat_node *compare(wt__chat_parser *p)
{
    char op[8];
    wt__chat_node *first = operators(p, 0), *node = NULL;
    while (comparison(p, op)) {
        if (!node) node = pair(p, WT__N_COMPARE, first, NULL);
        wt__chat_node *operand = pair(p, WT__N_LITERAL, operators(p, 0), NULL);
        memcpy(operand->op, op, sizeof op);
        wt__chat_add_node(p, &node->list, operand);
    }
    return node ? node : first;
}

static wt__chat_node *negation(wt__chat_parser *p)
{
    if (!wt__chat_skip_name(p, "not")) return compare(p);
    wt__chat_deeper(p);
    wt__chat_node *node = pair(p, WT__N_NOT, negation(p), NULL);
    p->nesting--;
    return node;
}

static wt__chat_node *conjunction(wt__chat_parser *p)
{
    wt__chat_node *node = negation(p);
    while (wt__chat_skip_name(p, "and")) node = pair(p, WT__N_AND, node, negation(p));
    return node;
}

wt__chat_node *wt__chat_parse_disjunction(wt__chat_parser *p)
{
    wt__chat_node *node = conjunction(p);
    while (wt__chat_skip_name(p, "or")) node = pair(p, WT__N_OR, node, conjunction(p));
    return node;
}

wt__chat_node *wt__chat_parse_expression(wt__chat_parser *p)
{
    wt__chat_deeper(p);
    wt__chat_node *node = wt__chat_parse_disjunction(p);
    while (wt__chat_skip_name(p, "if")) {
        wt__chat_node *condition = pair(p, WT__N_CONDITION, wt__chat_parse_disjunction(p), node);
        if (wt__chat_skip_name(p, "else")) condition->c = wt__chat_parse_expression(p);
        node = condition;
    }
    p->nesting--;
    return node;
}

// An expression, or several with commas: a tuple.
wt__chat_node *wt__chat_parse_tuple(wt__chat_parser *p)
{
    wt__chat_node *first = wt__chat_parse_expression(p), *node = NULL;
    while (wt__chat_skip_operator(p, ",")) {
        if (!node) {
            node = wt__chat_new_node(p, WT__N_TUPLE);
            wt__chat_add_node(p, &node->list, first);
        }
        if (p->now.kind == WT__TOKEN_END_BLOCK || p->now.kind == WT__TOKEN_END_OUTPUT) break;
        wt__chat_add_node(p, &node->list, wt__chat_parse_expression(p));
    }
    return node ? node : first;
}
