/// The messages of a conversation, and the prompt that a model's template makes of them.
#ifndef WT_CHAT_HISTORY_H
#define WT_CHAT_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <warptone/status.h>

typedef struct chat_history chat_history;

/// `template_text` is Jinja (chat.h); `bos` and `eos` may be NULL. Errors: WT_ERR_FORMAT, WT_ERR_NO_MEMORY.
WT_CHECKED wt_status chat_history_create(const char *template_text, const char *bos, const char *eos,
                                         chat_history **history);
void chat_history_destroy(chat_history *history); ///< NULL is allowed.

/// The first message, of role "system"; NULL or "" takes it away.
WT_CHECKED wt_status chat_history_set_system(chat_history *history, const char *text);
WT_CHECKED wt_status chat_history_add(chat_history *history, const char *role, const char *text, size_t length);

int chat_history_count(const chat_history *history); ///< messages, the system's too
/// Message k, borrowed until a change.
void chat_history_at(const chat_history *history, int k, const char **role, const char **text);

/// Take back from the last message of the user's on; false when there is none.
bool chat_history_undo(chat_history *history);
/// Take back the last message when it is the model's: its text to *answer, which the caller frees with free(). Errors:
/// WT_ERR_BAD_ARG when it is not, WT_ERR_NO_MEMORY.
WT_CHECKED wt_status chat_history_take_answer(chat_history *history, char **answer);
/// Leave the first n questions with their answers out of the prompt: they are still counted and saved. False, and
/// nothing is changed, when only the system's message and the last would not be left.
bool chat_history_leave_out(chat_history *history, int n);
int chat_history_left_out(const chat_history *history); ///< questions; 0 again after one was taken back or loaded
void chat_history_clear(chat_history *history); ///< The system's message stays.

/// The prompt with the beginning of an answer; caller frees with free(). *thinks: it ends with <think>.
WT_CHECKED wt_status chat_history_render(const chat_history *history, bool no_thinking, char **prompt, bool *thinks);

/// As a JSON array of role and content; saved beside and renamed. Errors: WT_ERR_FILE; load: WT_ERR_FORMAT, and the
/// messages stay as they were.
WT_CHECKED wt_status chat_history_save(const chat_history *history, const char *path);
WT_CHECKED wt_status chat_history_load(chat_history *history, const char *path);

#endif
