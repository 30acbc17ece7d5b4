// Any bytes as a chat template, rendered where it parses; behind a zero byte, as the messages' JSON. Nothing may crash,
// hang or leak.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/chat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *out = NULL;
    wt_chat_template *chat = NULL;
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    const char *messages = strlen(text) < size
                               ? text + strlen(text) + 1
                               : "[{\"role\":\"user\",\"content\":\"a b\"},{\"role\":\"tool\",\"n\":[1,2.5,null]}]";
    if (!wt_chat_template_create(text, &chat)) {
        (void)!wt_chat_render(chat, &(wt_chat_options){.messages_json = messages, .date = "2026-01-31T12:34:56"}, &out);
        free(out);
    }
    wt_chat_template_destroy(chat);
    free(text);
    return 0;
}
