/// Templates as they are parsed: one token at a time (chat_tokens.c), expressions (chat_expression.c), statements and
/// data (chat_parse.c). Errors leave by the heap's longjmp.
#ifndef WT_MODELS_CHAT_PARSE_H
#define WT_MODELS_CHAT_PARSE_H

#include "chat_internal.h"

typedef enum wt__chat_token_kind {
    WT__TOKEN_NAME,
    WT__TOKEN_INT,
    WT__TOKEN_FLOAT,
    WT__TOKEN_STRING,
    WT__TOKEN_OPERATOR,
    WT__TOKEN_END_BLOCK,
    WT__TOKEN_END_OUTPUT
} wt__chat_token_kind;

typedef struct wt__chat_token {
    wt__chat_token_kind kind;
    const char *text; // ended by a zero, in the heap
    size_t size;
} wt__chat_token;

typedef struct wt__chat_parser {
    wt__chat_heap *heap;
    const char *text;
    size_t size, at;
    int line, balance, nesting; // balance: open brackets, in which no tag ends
    bool line_starts;
    wt__chat_token now;
} wt__chat_parser;

// --- The tree -------------------------------------------------------------------------------------------------------

/// The token that was met, and what was wanted.
_Noreturn void wt__chat_bad(wt__chat_parser *p, const char *wanted);
const char *wt__chat_keep(wt__chat_parser *p, const char *s, size_t n);
/// One nesting more: fails beyond WT__CHAT_MAX_NESTING.
void wt__chat_deeper(wt__chat_parser *p);
wt__chat_node *wt__chat_new_node(wt__chat_parser *p, wt__chat_node_kind kind);
wt__chat_node *wt__chat_add_node(wt__chat_parser *p, wt__chat_nodes *list, wt__chat_node *node);

// --- Tokens ---------------------------------------------------------------------------------------------------------

bool wt__chat_starts(const wt__chat_parser *p, size_t at, const char *s);
void wt__chat_advance(wt__chat_parser *p, size_t n);
size_t wt__chat_space_at(const wt__chat_parser *p, size_t at);
void wt__chat_skip_spaces(wt__chat_parser *p);
/// Does a tag end here? Then behind it, and behind the white space that its sign takes.
bool wt__chat_end_of_tag(wt__chat_parser *p, const char *end, bool trims);
/// To p->now.
void wt__chat_next(wt__chat_parser *p);
bool wt__chat_is_operator(const wt__chat_parser *p, const char *s);
bool wt__chat_is_name(const wt__chat_parser *p, const char *s);
bool wt__chat_skip_operator(wt__chat_parser *p, const char *s);
bool wt__chat_skip_name(wt__chat_parser *p, const char *s);
void wt__chat_want_operator(wt__chat_parser *p, const char *s);
const char *wt__chat_want_name(wt__chat_parser *p);

// --- Expressions ----------------------------------------------------------------------------------------------------

/// With a condition behind it (`a if b else c`), and more and more tightly bound.
wt__chat_node *wt__chat_parse_expression(wt__chat_parser *p);
wt__chat_node *wt__chat_parse_primary(wt__chat_parser *p);
wt__chat_node *wt__chat_parse_postfix(wt__chat_parser *p, wt__chat_node *node);
wt__chat_node *wt__chat_parse_filter(wt__chat_parser *p, wt__chat_node *of);
wt__chat_node *wt__chat_parse_filters(wt__chat_parser *p, wt__chat_node *node);
wt__chat_node *wt__chat_parse_disjunction(wt__chat_parser *p);
/// An expression, or several with commas.
wt__chat_node *wt__chat_parse_tuple(wt__chat_parser *p);

#endif
