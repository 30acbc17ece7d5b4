// Marked strings: what |safe and |escape give. Nothing is escaped by itself, but what is added to a marked string is,
// and the result is marked. What Jinja makes by str() or "".join() is not: ~, the filters join, replace and title.
// Source: markupsafe 3.0, class Markup; jinja2 3.1 with autoescape off, as transformers runs it.
#include "chat_internal.h"

wt__chat_value wt__chat_escape(wt__chat_render *r, wt__chat_value v)
{
    static const char *const pairs[][2] = {
        {"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"'", "&#39;"}, {"\"", "&#34;"}};
    v = wt__chat_to_string(r, v);
    if (v.marked) return v;
    for (size_t i = 0; i < 5; i++)
        v = wt__chat_replace_text(r, v, wt__chat_key(pairs[i][0]), wt__chat_key(pairs[i][1]), -1);
    v.marked = true;
    return v;
}

wt__chat_value wt__chat_mark_like(wt__chat_value v, wt__chat_value like)
{
    if (like.kind != WT__STRING || !like.marked) return v;
    if (v.kind == WT__STRING) v.marked = true;
    for (size_t i = 0; v.kind == WT__LIST && i < v.list->n; i++)
        if (v.list->at[i].kind == WT__STRING) v.list->at[i].marked = true;
    return v;
}
