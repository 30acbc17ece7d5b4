// The stream of an answer's text: thinking, then the answer up to a stop string.
#include <warptone/generate.h>

#include <stdlib.h>
#include <string.h>

typedef struct characters {
    char *at; ///< ended by a zero
    size_t n, size;
} characters;

typedef enum state { BEFORE, THINKING, ANSWER, STOPPED } state;

struct wt_answer_text {
    wt_answer_text_config config;
    char **stops;
    state state;
    bool trim; ///< newlines after a tag are left out
    characters held, thinking, answer;
};

static const char open_tag[] = "<think>", close_tag[] = "</think>";

static wt_status reserve(characters *c, size_t n)
{
    if (n < c->size) return WT_OK;
    const size_t size = 2 * n + 256;
    char *larger = realloc(c->at, size);
    if (!larger) return wt_fail(WT_ERR_NO_MEMORY, "answer: %zu bytes of text", n);
    c->at = larger;
    c->size = size;
    return WT_OK;
}

/// There is room.
static void append(characters *c, const char *text, size_t n)
{
    memcpy(c->at + c->n, text, n);
    c->n += n;
    c->at[c->n] = 0;
}

static void drop(characters *c, size_t n)
{
    memmove(c->at, c->at + n, c->n - n + 1);
    c->n -= n;
}

void wt_answer_text_begin(wt_answer_text *text, bool starts_thinking)
{
    wt_answer_text *t = text;
    t->held.n = t->thinking.n = t->answer.n = 0;
    t->held.at[0] = t->thinking.at[0] = t->answer.at[0] = 0;
    t->state = !t->config.split_thinking ? ANSWER : starts_thinking ? THINKING : BEFORE;
    t->trim = t->state == THINKING;
}

wt_status wt_answer_text_create(const wt_answer_text_config *config, wt_answer_text **text)
{
    *text = NULL;
    for (int k = 0; k < config->n_stops; k++)
        if (!config->stops[k] || !config->stops[k][0])
            return wt_fail(WT_ERR_BAD_ARG, "answer: stop string %d of %d is empty", k, config->n_stops);
    wt_answer_text *t = calloc(1, sizeof *t);
    if (!t) return wt_fail(WT_ERR_NO_MEMORY, "answer: handle");
    t->config = *config;
    wt_status status = reserve(&t->held, 0);
    if (!status) status = reserve(&t->thinking, 0);
    if (!status) status = reserve(&t->answer, 0);
    t->stops = calloc((size_t)config->n_stops + 1, sizeof *t->stops);
    for (int k = 0; t->stops && k < config->n_stops && !status; k++)
        if (!(t->stops[k] = strdup(config->stops[k]))) status = WT_ERR_NO_MEMORY;
    if (status || !t->stops) {
        wt_answer_text_destroy(t);
        return wt_fail(WT_ERR_NO_MEMORY, "answer: %d stop strings", config->n_stops);
    }
    wt_answer_text_begin(t, config->starts_thinking);
    *text = t;
    return WT_OK;
}

void wt_answer_text_destroy(wt_answer_text *text)
{
    if (!text) return;
    for (int k = 0; text->stops && text->stops[k]; k++) free(text->stops[k]);
    free(text->stops);
    free(text->held.at);
    free(text->thinking.at);
    free(text->answer.at);
    free(text);
}

/// Bytes at the end of `text` that may be the beginning of `word`.
static size_t begun(const characters *text, const char *word)
{
    size_t n = strlen(word) - 1;
    if (n > text->n) n = text->n;
    while (n && memcmp(text->at + text->n - n, word, n)) n--;
    return n;
}

static void move(characters *to, characters *from, size_t n)
{
    append(to, from->at, n);
    drop(from, n);
}

/// The first bytes that are no space may become, are, or are not the tag; true when the state has changed.
static bool look_for_tag(wt_answer_text *t)
{
    const size_t n = strspn(t->held.at, " \t\r\n"), tag = sizeof open_tag - 1;
    const char *at = t->held.at + n;
    if (!strncmp(at, open_tag, tag)) {
        drop(&t->held, n + tag);
        t->state = THINKING;
        t->trim = true;
        return true;
    }
    if (!strncmp(at, open_tag, strlen(at))) return false;
    t->state = ANSWER;
    return true;
}

static bool think(wt_answer_text *t)
{
    const char *end = strstr(t->held.at, close_tag);
    if (!end) {
        move(&t->thinking, &t->held, t->held.n - begun(&t->held, close_tag));
        return false;
    }
    move(&t->thinking, &t->held, (size_t)(end - t->held.at));
    drop(&t->held, sizeof close_tag - 1);
    t->state = ANSWER;
    t->trim = true;
    return true;
}

static bool answer(wt_answer_text *t)
{
    const char *first = NULL;
    size_t hold = 0;
    for (int k = 0; k < t->config.n_stops; k++) {
        const char *at = strstr(t->held.at, t->stops[k]);
        const size_t n = begun(&t->held, t->stops[k]);
        if (at && (!first || at < first)) first = at;
        if (n > hold) hold = n;
    }
    move(&t->answer, &t->held, first ? (size_t)(first - t->held.at) : t->held.n - hold);
    if (first) t->state = STOPPED;
    return false;
}

static void split(wt_answer_text *t)
{
    bool more = true;
    while (more) {
        if (t->trim) {
            drop(&t->held, strspn(t->held.at, "\n"));
            t->trim = !t->held.n;
        }
        more = t->state == BEFORE     ? look_for_tag(t)
               : t->state == THINKING ? think(t)
               : t->state == ANSWER   ? answer(t)
                                      : false;
    }
}

static wt_answer_part part_of(const wt_answer_text *t)
{
    return (wt_answer_part){t->thinking.at, t->answer.at, t->thinking.n, t->answer.n, t->state == STOPPED};
}

wt_status wt_answer_text_push(wt_answer_text *text, const char *piece, size_t length, wt_answer_part *part)
{
    wt_answer_text *t = text;
    t->thinking.n = t->answer.n = 0;
    t->thinking.at[0] = t->answer.at[0] = 0;
    const size_t n = t->held.n + length;
    wt_status status = reserve(&t->held, n);
    if (!status) status = reserve(&t->thinking, n);
    if (!status) status = reserve(&t->answer, n);
    if (!status && t->state != STOPPED) {
        append(&t->held, piece, length);
        split(t);
    }
    *part = part_of(t);
    return status;
}

void wt_answer_text_flush(wt_answer_text *text, wt_answer_part *part)
{
    wt_answer_text *t = text;
    t->thinking.n = t->answer.n = 0;
    t->thinking.at[0] = t->answer.at[0] = 0;
    if (t->state != STOPPED) move(t->state == THINKING ? &t->thinking : &t->answer, &t->held, t->held.n);
    *part = part_of(t);
}
