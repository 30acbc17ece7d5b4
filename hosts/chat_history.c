#include "chat_history.h"
#include "atomic_file.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/chat.h>

struct chat_history {
    wt_chat_template *chat;
    char *bos, *eos;
    json_t *messages; ///< [{"role", "content"}]
    int n_left_out;   ///< questions and answers, out of the prompt
};

wt_status chat_history_create(const char *template_text, const char *bos, const char *eos, chat_history **history)
{
    *history = NULL;
    chat_history *h = calloc(1, sizeof *h);
    if (!h) return wt_fail(WT_ERR_NO_MEMORY, "chat: history");
    h->messages = json_array();
    h->bos = strdup(bos ? bos : "");
    h->eos = strdup(eos ? eos : "");
    wt_status status = WT_OK;
    if (!h->messages || !h->bos || !h->eos) status = wt_fail(WT_ERR_NO_MEMORY, "chat: history");
    if (!status) status = wt_chat_template_create(template_text, &h->chat);
    if (status)
        chat_history_destroy(h);
    else
        *history = h;
    return status;
}

void chat_history_destroy(chat_history *history)
{
    if (!history) return;
    wt_chat_template_destroy(history->chat);
    json_decref(history->messages);
    free(history->bos);
    free(history->eos);
    free(history);
}

// ---- messages

static const char *role_of(const chat_history *h, size_t k)
{
    return json_string_value(json_object_get(json_array_get(h->messages, k), "role"));
}

static bool is(const chat_history *h, size_t k, const char *role)
{
    const char *given = role_of(h, k);
    return given && !strcmp(given, role);
}

static json_t *message(const char *role, const char *text, size_t length)
{
    return json_pack("{s:s, s:o}", "role", role, "content", json_stringn(text, length));
}

wt_status chat_history_set_system(chat_history *history, const char *text)
{
    if (is(history, 0, "system")) json_array_remove(history->messages, 0);
    if (!text || !text[0]) return WT_OK;
    if (!json_array_insert_new(history->messages, 0, message("system", text, strlen(text)))) return WT_OK;
    return wt_fail(WT_ERR_FORMAT, "chat: the system's message is no UTF-8");
}

wt_status chat_history_add(chat_history *history, const char *role, const char *text, size_t length)
{
    if (!json_array_append_new(history->messages, message(role, text, length))) return WT_OK;
    return wt_fail(WT_ERR_FORMAT, "chat: the message is no UTF-8");
}

int chat_history_count(const chat_history *history) { return (int)json_array_size(history->messages); }

void chat_history_at(const chat_history *history, int k, const char **role, const char **text)
{
    *role = role_of(history, (size_t)k);
    *text = json_string_value(json_object_get(json_array_get(history->messages, (size_t)k), "content"));
}

static void shorten(chat_history *h, size_t n)
{
    h->n_left_out = 0;
    while (json_array_size(h->messages) > n) json_array_remove(h->messages, json_array_size(h->messages) - 1);
}

bool chat_history_undo(chat_history *history)
{
    for (size_t k = json_array_size(history->messages); k-- > 0;)
        if (is(history, k, "user")) {
            shorten(history, k);
            return true;
        }
    return false;
}

wt_status chat_history_take_answer(chat_history *history, char **answer)
{
    const size_t n = json_array_size(history->messages);
    *answer = NULL;
    if (!n || !is(history, n - 1, "assistant")) return wt_fail(WT_ERR_BAD_ARG, "there is no answer to try again");
    *answer = strdup(json_string_value(json_object_get(json_array_get(history->messages, n - 1), "content")));
    if (!*answer) return wt_fail(WT_ERR_NO_MEMORY, "chat: an answer");
    json_array_remove(history->messages, n - 1);
    return WT_OK;
}

bool chat_history_leave_out(chat_history *history, int n)
{
    const size_t first = is(history, 0, "system");
    if (n && json_array_size(history->messages) < first + 2 * (size_t)n + 1) return false;
    history->n_left_out = n;
    return true;
}

int chat_history_left_out(const chat_history *history) { return history->n_left_out; }

void chat_history_clear(chat_history *history) { shorten(history, is(history, 0, "system")); }

// ---- the prompt

static bool ends_with_think(const char *prompt)
{
    size_t n = strlen(prompt);
    while (n && prompt[n - 1] == '\n') n--;
    return n >= 7 && !strncmp(prompt + n - 7, "<think>", 7);
}

/// The messages that the prompt has, as text; caller frees.
static char *messages_of_prompt(const chat_history *h)
{
    json_t *some = json_copy(h->messages);
    const size_t first = is(h, 0, "system");
    for (int k = 0; some && k < 2 * h->n_left_out; k++) json_array_remove(some, first);
    char *text = some ? json_dumps(some, JSON_COMPACT) : NULL;
    json_decref(some);
    return text;
}

wt_status chat_history_render(const chat_history *history, bool no_thinking, char **prompt, bool *thinks)
{
    char *messages = messages_of_prompt(history);
    if (!messages) return wt_fail(WT_ERR_NO_MEMORY, "chat: prompt");
    const wt_chat_options options = {.messages_json = messages,
                                     .variables_json = no_thinking ? "{\"enable_thinking\": false}" : NULL,
                                     .bos_token = history->bos,
                                     .eos_token = history->eos};
    wt_status status = wt_chat_render(history->chat, &options, prompt);
    free(messages);
    if (!status) *thinks = ends_with_think(*prompt);
    return status;
}

// ---- files

wt_status chat_history_save(const chat_history *history, const char *path)
{
    wt__atomic_file file;
    wt_status status = wt__atomic_file_open(path, &file);
    if (status) return status;
    if (!json_dumpfd(history->messages, file.fd, JSON_INDENT(1))) return wt__atomic_file_commit(&file, false);
    wt__atomic_file_discard(&file);
    return wt_fail(WT_ERR_FILE, "%s: cannot be written", path);
}

static bool is_message(const json_t *m)
{
    return json_is_string(json_object_get(m, "role")) && json_is_string(json_object_get(m, "content"));
}

wt_status chat_history_load(chat_history *history, const char *path)
{
    json_error_t error;
    json_t *messages = json_load_file(path, 0, &error);
    if (!messages) return wt_fail(error.line < 0 ? WT_ERR_FILE : WT_ERR_FORMAT, "%s: %s", path, error.text);
    bool good = json_is_array(messages);
    for (size_t k = 0; good && k < json_array_size(messages); k++) good = is_message(json_array_get(messages, k));
    if (!good) {
        json_decref(messages);
        return wt_fail(WT_ERR_FORMAT, "%s is no array of messages with \"role\" and \"content\"", path);
    }
    json_decref(history->messages);
    history->messages = messages;
    history->n_left_out = 0;
    return WT_OK;
}
