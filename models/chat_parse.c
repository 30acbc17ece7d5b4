// Templates to trees: statements and data, Jinja's grammar as jinja2 3.1 has it (lexer.py, parser.py), with trim_blocks
// and lstrip_blocks, which transformers sets. Text between tags is data.
#include "chat_parse.h"
#include "utf8.h"

#include <string.h>

// --- Statements -----------------------------------------------------------------------------------------------------

static const char *body(wt__chat_parser *p, wt__chat_nodes *list, const char *const *ends);

static void end_block(wt__chat_parser *p)
{
    if (p->now.kind != WT__TOKEN_END_BLOCK) wt__chat_bad(p, "%}");
}

// The rest of a tag, the statements behind it, and the tag that ends them.
static void whole_body(wt__chat_parser *p, wt__chat_nodes *list, const char *end)
{
    end_block(p);
    body(p, list, (const char *const[]){end, NULL});
    end_block(p);
}

static wt__chat_node *if_statement(wt__chat_parser *p)
{
    wt__chat_node *node = wt__chat_new_node(p, WT__N_IF);
    node->a = wt__chat_parse_tuple(p);
    end_block(p);
    const char *end = body(p, &node->body, (const char *const[]){"elif", "else", "endif", NULL});
    if (!strcmp(end, "elif")) {
        wt__chat_deeper(p);
        wt__chat_add_node(p, &node->otherwise, if_statement(p));
        p->nesting--;
        return node;
    }
    if (!strcmp(end, "else")) whole_body(p, &node->otherwise, "endif");
    end_block(p);
    return node;
}

static void targets(wt__chat_parser *p, wt__chat_nodes *list)
{
    bool parentheses = wt__chat_skip_operator(p, "(");
    do {
        wt__chat_node *name = wt__chat_new_node(p, WT__N_NAME);
        name->name = wt__chat_want_name(p);
        wt__chat_add_node(p, list, name);
    } while (wt__chat_skip_operator(p, ","));
    if (parentheses) wt__chat_want_operator(p, ")");
}

static wt__chat_node *for_statement(wt__chat_parser *p)
{
    wt__chat_node *node = wt__chat_new_node(p, WT__N_FOR);
    targets(p, &node->list);
    if (!wt__chat_skip_name(p, "in")) wt__chat_bad(p, "in");
    node->a = wt__chat_parse_disjunction(p);
    if (wt__chat_skip_name(p, "if")) node->b = wt__chat_parse_expression(p);
    if (wt__chat_is_name(p, "recursive")) wt__chat_bad(p, "no recursive loop");
    end_block(p);
    const char *end = body(p, &node->body, (const char *const[]){"endfor", "else", NULL});
    if (!strcmp(end, "else")) whole_body(p, &node->otherwise, "endfor");
    end_block(p);
    return node;
}

static wt__chat_node *set_statement(wt__chat_parser *p)
{
    wt__chat_node *node = wt__chat_new_node(p, WT__N_SET);
    targets(p, &node->list);
    if (node->list.n == 1 && wt__chat_skip_operator(p, ".")) node->name = wt__chat_want_name(p); // of a namespace
    if (wt__chat_skip_operator(p, "=")) {
        node->a = wt__chat_parse_tuple(p);
        end_block(p);
        return node;
    }
    node->kind = WT__N_SET_BLOCK;
    if (wt__chat_skip_operator(p, "|")) node->a = wt__chat_parse_filters(p, wt__chat_parse_filter(p, NULL));
    whole_body(p, &node->body, "endset");
    return node;
}

static void parameters(wt__chat_parser *p, wt__chat_nodes *list)
{
    while (!wt__chat_is_operator(p, ")")) {
        wt__chat_node *parameter = wt__chat_new_node(p, WT__N_NAME);
        parameter->name = wt__chat_want_name(p);
        if (wt__chat_skip_operator(p, "=")) parameter->a = wt__chat_parse_expression(p);
        wt__chat_add_node(p, list, parameter);
        if (!wt__chat_is_operator(p, ")")) wt__chat_want_operator(p, ",");
    }
    wt__chat_next(p);
}

static wt__chat_node *macro_statement(wt__chat_parser *p)
{
    wt__chat_node *node = wt__chat_new_node(p, WT__N_MACRO);
    node->name = wt__chat_want_name(p);
    wt__chat_want_operator(p, "(");
    parameters(p, &node->list);
    whole_body(p, &node->body, "endmacro");
    return node;
}

static wt__chat_node *call_statement(wt__chat_parser *p)
{
    wt__chat_node *node = wt__chat_new_node(p, WT__N_CALL_BLOCK), *caller = wt__chat_new_node(p, WT__N_MACRO);
    caller->name = "caller";
    if (wt__chat_skip_operator(p, "(")) parameters(p, &caller->list);
    node->a = wt__chat_parse_postfix(p, wt__chat_parse_primary(p));
    if (node->a->kind != WT__N_CALL) wt__chat_bad(p, "a call");
    node->b = caller;
    whole_body(p, &caller->body, "endcall");
    return node;
}

static wt__chat_node *with_statement(wt__chat_parser *p)
{
    wt__chat_node *node = wt__chat_new_node(p, WT__N_WITH);
    while (p->now.kind != WT__TOKEN_END_BLOCK) {
        wt__chat_node *variable = wt__chat_new_node(p, WT__N_NAME);
        variable->name = wt__chat_want_name(p);
        wt__chat_want_operator(p, "=");
        variable->a = wt__chat_parse_expression(p);
        wt__chat_add_node(p, &node->list, variable);
        if (p->now.kind != WT__TOKEN_END_BLOCK) wt__chat_want_operator(p, ",");
    }
    whole_body(p, &node->body, "endwith");
    return node;
}

static wt__chat_node *filter_statement(wt__chat_parser *p)
{
    wt__chat_node *node = wt__chat_new_node(p, WT__N_FILTER_BLOCK);
    node->a = wt__chat_parse_filters(p, wt__chat_parse_filter(p, NULL));
    whole_body(p, &node->body, "endfilter");
    return node;
}

static wt__chat_node *generation_statement(wt__chat_parser *p) // transformers, chat_template_utils.py, AssistantTracker
{
    wt__chat_node *node = wt__chat_new_node(p, WT__N_GENERATION);
    whole_body(p, &node->body, "endgeneration");
    return node;
}

static wt__chat_node *break_statement(wt__chat_parser *p) { return wt__chat_new_node(p, WT__N_BREAK); }
static wt__chat_node *continue_statement(wt__chat_parser *p) { return wt__chat_new_node(p, WT__N_CONTINUE); }

static wt__chat_node *statement(wt__chat_parser *p)
{
    static const struct {
        const char *name;
        wt__chat_node *(*parse)(wt__chat_parser *p);
    } kinds[] = {{"if", if_statement},         {"for", for_statement},
                 {"set", set_statement},       {"macro", macro_statement},
                 {"call", call_statement},     {"with", with_statement},
                 {"filter", filter_statement}, {"generation", generation_statement},
                 {"break", break_statement},   {"continue", continue_statement}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!wt__chat_skip_name(p, kinds[i].name)) continue;
        wt__chat_node *node = kinds[i].parse(p);
        end_block(p);
        return node;
    }
    wt__chat_bad(p, "if, for, set, macro, call, with, filter, generation, break or continue");
}

// --- Data -----------------------------------------------------------------------------------------------------------

// The bytes of data before a tag whose sign is `sign`.
static size_t data_end(const wt__chat_parser *p, size_t begin, size_t end, char sign, bool output)
{
    size_t kept = begin, line = begin; // behind the last character that is no space; the last line's beginning
    bool starts_line = p->line_starts;
    for (size_t at = begin, n; at < end; at += n) {
        uint32_t c;
        n = wt__utf8_next(p->text + at, end - at, &c, NULL);
        if (!wt__chat_space_at(p, at)) kept = at + n;
        if (c == '\n') {
            line = at + 1;
            starts_line = true;
        }
    }
    if (sign == '-') return kept;
    return sign != '+' && !output && starts_line && kept <= line ? line : end;
}

static size_t find(const wt__chat_parser *p, size_t from, const char *s)
{
    const char *at = memmem(p->text + from, p->size - from, s, strlen(s));
    return at ? (size_t)(at - p->text) : p->size;
}

static void add_data(wt__chat_parser *p, wt__chat_nodes *list, size_t begin, size_t end)
{
    if (end <= begin) return;
    wt__chat_node *node = wt__chat_add_node(p, list, wt__chat_new_node(p, WT__N_DATA));
    node->value = (wt__chat_value){WT__STRING, (uint32_t)(end - begin), {.s = p->text + begin}};
}

// Behind "{% raw": data up to the tag that ends it.
static void raw(wt__chat_parser *p, wt__chat_nodes *list)
{
    end_block(p);
    size_t begin = p->at;
    for (size_t at = begin; (at = find(p, at, "{%")) < p->size; at += 2) {
        wt__chat_parser inner = *p;
        char sign = at + 2 < p->size ? p->text[at + 2] : 0;
        bool signed_ = sign == '-' || sign == '+';
        wt__chat_advance(&inner, at + 2 + signed_ - inner.at);
        wt__chat_skip_spaces(&inner);
        if (!wt__chat_starts(&inner, inner.at, "endraw")) continue;
        wt__chat_advance(&inner, 6);
        wt__chat_skip_spaces(&inner);
        if (!wt__chat_end_of_tag(&inner, "%}", true)) continue;
        add_data(p, list, begin, data_end(p, begin, at, sign, false));
        *p = inner;
        return;
    }
    wt__chat_bad(p, "endraw");
}

static void comment(wt__chat_parser *p)
{
    for (wt__chat_advance(p, 2); p->at < p->size; wt__chat_advance(p, 1))
        if (wt__chat_end_of_tag(p, "#}", true)) return;
    wt__chat_heap_fail(p->heap, WT_ERR_FORMAT, "chat template line %d: a comment without its end", p->line);
}

static bool is_end(const wt__chat_parser *p, const char *const *ends)
{
    for (; p->now.kind == WT__TOKEN_NAME && *ends; ends++)
        if (!strcmp(p->now.text, *ends)) return true;
    return false;
}

// A tag at p->at, its sign skipped. True: it is one of `ends`, and the token behind its name is the present one.
static bool tag(wt__chat_parser *p, wt__chat_nodes *list, const char *const *ends, const char **end)
{
    wt__chat_next(p);
    if (is_end(p, ends)) {
        *end = p->now.text;
        wt__chat_next(p);
        return true;
    }
    if (wt__chat_skip_name(p, "raw"))
        raw(p, list);
    else
        wt__chat_add_node(p, list, statement(p));
    return false;
}

// Statements up to one of `ends`; its name, or NULL at the end of the text when `ends` is empty.
static const char *body(wt__chat_parser *p, wt__chat_nodes *list, const char *const *ends)
{
    const char *end = NULL;
    wt__chat_deeper(p);
    for (;;) {
        size_t begin = p->at, at = begin;
        while (at < p->size &&
               !(p->text[at] == '{' && at + 1 < p->size && p->text[at + 1] && strchr("{%#", p->text[at + 1])))
            at++;
        char kind = at < p->size ? p->text[at + 1] : 0, sign = at + 2 < p->size ? p->text[at + 2] : 0;
        if (!kind) sign = '+';
        add_data(p, list, begin, data_end(p, begin, at, sign, kind == '{'));
        wt__chat_advance(p, at - begin);
        if (!kind) break;
        if (kind == '#') {
            comment(p);
            continue;
        }
        wt__chat_advance(p, sign == '-' || sign == '+' ? 3 : 2);
        if (kind == '%') {
            if (tag(p, list, ends, &end)) break;
            continue;
        }
        wt__chat_next(p);
        wt__chat_node *node = wt__chat_new_node(p, WT__N_OUTPUT);
        node->a = wt__chat_parse_tuple(p);
        if (p->now.kind != WT__TOKEN_END_OUTPUT) wt__chat_bad(p, "}}");
        wt__chat_add_node(p, list, node);
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
    wt__chat_parser p = {.heap = heap, .text = clean, .size = n, .line = 1, .line_starts = true};
    wt__chat_nodes list = {0};
    body(&p, &list, (const char *const[]){NULL});
    return list;
}
