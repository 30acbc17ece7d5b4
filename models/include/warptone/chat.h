/// Chat templates: the Jinja subset that model hubs' templates are written in, byte for byte.
#ifndef WARPTONE_CHAT_H
#define WARPTONE_CHAT_H

#include <stdbool.h>
#include <stddef.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_chat_template wt_chat_template;

/// Parse a template's text (copied). Errors: WT_ERR_FORMAT with line, met and wanted.  [worker]
WT_CHECKED wt_status wt_chat_template_create(const char *text, wt_chat_template **chat);
void wt_chat_template_destroy(wt_chat_template *chat); ///< NULL is allowed.  [worker]

typedef struct wt_chat_options {
    const char *messages_json;  ///< an array of {"role", "content", ...}
    const char *tools_json;     ///< NULL = none
    const char *variables_json; ///< an object of further variables ("enable_thinking", "date_string"); NULL = none
    const char *bos_token, *eos_token; ///< NULL = ""
    bool no_generation_prompt;
    const char *date; ///< what strftime_now gives, "2026-01-31T12:00:00"; NULL = the clock
} wt_chat_options;

/// Render; caller frees *text with free(). Errors: WT_ERR_FORMAT (JSON), WT_ERR_BAD_ARG with what the template's
/// raise_exception said, WT_ERR_NO_MEMORY (over 64 MB).  [any]
WT_CHECKED wt_status wt_chat_render(const wt_chat_template *chat, const wt_chat_options *options, char **text);

#ifdef __cplusplus
}
#endif
#endif
