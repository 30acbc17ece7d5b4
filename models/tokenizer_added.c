// Added tokens: found in the text before all else, the longest at the leftmost place.
// Judge: the `tokenizers` package (tokenizer/added_vocabulary.rs).
#include "tokenizer_internal.h"
#include "utf8.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

wt_status wt__tok_add_added_token(wt_tokenizer *t, const wt__tok_added_token *token)
{
    if (!*token->content) return WT_OK;
    if (!wt__tok_grow((void **)&t->added, &t->added_room, t->n_added + 1, sizeof *t->added)) return wt__tok_no_memory();
    wt__tok_added_token *added = &t->added[t->n_added];
    *added = *token;
    added->content = strdup(token->content);
    if (!added->content) return wt__tok_no_memory();
    t->n_added++;
    if (token->id >= 0 && token->id < t->n_tokens && t->name[token->id] >= 0 &&
        !strcmp(t->names.at + t->name[token->id], token->content))
        return WT_OK;
    return wt__tok_add_token(t, token->id, token->content, strlen(token->content));
}

int32_t wt__tok_beyond(const wt_tokenizer *t, int32_t n)
{
    for (int32_t id = n; id < t->n_tokens; id++) {
        bool added = t->name[id] < 0; // no token at all
        for (size_t i = 0; i < t->n_added && !added; i++) added = t->added[i].id == id;
        if (!added) return id;
    }
    return -1;
}

static wt_status trie_add(wt__tok_trie *trie, const char *text, size_t size, int32_t token)
{
    int32_t node = 0;
    if (!wt__tok_grow((void **)&trie->nodes, &trie->room, trie->n + size + 1, sizeof *trie->nodes))
        return wt__tok_no_memory();
    if (!trie->n) trie->nodes[trie->n++] = (wt__tok_trie_node){.token = -1};
    for (size_t i = 0; i < size; i++) {
        int32_t child = trie->nodes[node].child;
        while (child && trie->nodes[child].byte != (unsigned char)text[i]) child = trie->nodes[child].next;
        if (!child) {
            child = (int32_t)trie->n++;
            trie->nodes[child] = (wt__tok_trie_node){(unsigned char)text[i], 0, trie->nodes[node].child, -1};
            trie->nodes[node].child = child;
        }
        node = child;
    }
    if (size) trie->first[(unsigned char)text[0]] = true;
    if (size && trie->nodes[node].token < 0) trie->nodes[node].token = token;
    return WT_OK;
}

wt_status wt__tok_index_added_tokens(wt_tokenizer *t)
{
    wt__tok_work work = {.t = t};
    wt_status status = WT_OK;
    t->special = calloc((size_t)t->n_tokens + 1, sizeof *t->special);
    if (!t->special) return wt__tok_no_memory();
    for (size_t i = 0; i < t->n_added && !status; i++) {
        const wt__tok_added_token *token = &t->added[i];
        if (token->special) t->special[token->id] = true;
        if (token->normalized) {
            status = wt__tok_normalize(&work, token->content, strlen(token->content), &work.normal);
            if (!status) status = trie_add(&t->normalized, work.normal.at, work.normal.size, (int32_t)i);
        } else {
            status = trie_add(&t->raw, token->content, strlen(token->content), (int32_t)i);
        }
    }
    wt__tok_work_free(&work);
    return status;
}

static size_t before_of(const char *text, size_t at)
{
    do at--;
    while (((unsigned char)text[at] & 0xc0) == 0x80);
    return at;
}

// \w of the regex crate: letters, marks, decimal and letter numbers, connectors, joiners.
static bool is_word(uint32_t c)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) || category == UTF8PROC_CATEGORY_PC ||
           c == 0x200c || c == 0x200d;
}

static uint32_t char_at(const char *text, size_t size, size_t at)
{
    uint32_t c;
    wt__utf8_next(text + at, size - at, &c, NULL);
    return c;
}

static bool within_word(const char *text, size_t size, wt__tok_span match)
{
    return (match.begin > 0 && is_word(char_at(text, size, before_of(text, match.begin)))) ||
           (match.end < size && is_word(char_at(text, size, match.end)));
}

// Take in the spaces beside the token that it swallows, but none before `taken`.
static wt__tok_span with_spaces(const wt__tok_added_token *token, const char *text, size_t size, size_t taken,
                                wt__tok_span match)
{
    while (token->lstrip && match.begin > taken) {
        size_t before = before_of(text, match.begin);
        if (before < taken || !wt__is_space(char_at(text, size, before))) break;
        match.begin = before;
    }
    while (token->rstrip && match.end < size) {
        uint32_t c;
        size_t n = wt__utf8_next(text + match.end, size - match.end, &c, NULL);
        if (!wt__is_space(c)) break;
        match.end += n;
    }
    return match;
}

void wt__tok_next_added_token(const wt_tokenizer *t, const wt__tok_trie *trie, const char *text, size_t size,
                              size_t from, size_t taken, const wt__tok_added_token **token, wt__tok_span *match,
                              size_t *resume)
{
    *token = NULL;
    if (!trie->n) return;
    for (size_t i = from; i < size; i++) {
        if (!trie->first[(unsigned char)text[i]]) continue;
        size_t end = i, longest = 0;
        int32_t found = -1;
        for (int32_t node = trie->nodes[0].child; node && end < size;) {
            if (trie->nodes[node].byte != (unsigned char)text[end]) {
                node = trie->nodes[node].next;
                continue;
            }
            end++;
            if (trie->nodes[node].token >= 0) {
                found = trie->nodes[node].token;
                longest = end;
            }
            node = trie->nodes[node].child;
        }
        if (found < 0) continue;
        *match = (wt__tok_span){i, longest};
        if (t->added[found].single_word && within_word(text, size, *match)) {
            i = longest - 1;
            continue;
        }
        *token = &t->added[found];
        *resume = longest;
        *match = with_spaces(*token, text, size, taken, *match);
        return;
    }
}
