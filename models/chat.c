#include "chat_internal.h"

#include <stdlib.h>
#include <string.h>

struct wt_chat_template {
    wt__chat_heap heap;
    wt__chat_nodes body;
};

wt_status wt_chat_template_create(const char *text, wt_chat_template **chat)
{
    *chat = NULL;
    wt_chat_template *t = calloc(1, sizeof *t);
    if (!t) return wt_fail(WT_ERR_NO_MEMORY, "chat template: handle");
    if (setjmp(t->heap.out)) {
        wt_status status = t->heap.status;
        wt_chat_template_destroy(t);
        return status;
    }
    t->body = wt__chat_parse(&t->heap, text, strlen(text));
    *chat = t;
    return WT_OK;
}

void wt_chat_template_destroy(wt_chat_template *chat)
{
    if (!chat) return;
    wt__chat_heap_free(&chat->heap);
    free(chat);
}

static void set(wt__chat_render *r, const char *name, wt__chat_value v)
{
    wt__chat_heap_grow(&r->heap, (void **)&r->frame->vars, &r->frame->room, r->frame->n, sizeof *r->frame->vars);
    r->frame->vars[r->frame->n].name = name;
    r->frame->vars[r->frame->n++].value = v;
}

// What transformers hands to a template (chat_template_utils.py, render_jinja_template); the caller's variables hide
// the rest.
static void set_variables(wt__chat_render *r, const wt_chat_options *options)
{
    wt__chat_value none = {.kind = WT__NONE};
    if (options->variables_json) {
        wt__chat_value given = wt__chat_from_json(r, "chat: the variables", options->variables_json);
        if (given.kind != WT__MAP)
            wt__chat_heap_fail(&r->heap, WT_ERR_FORMAT, "chat: the variables are %s, want an object",
                               wt__chat_kind_name(given));
        for (size_t i = 0; i < given.map->n; i++) set(r, given.map->at[i].key.s, given.map->at[i].value);
    }
    wt__chat_value messages = wt__chat_from_json(r, "chat: the messages", options->messages_json);
    if (messages.kind != WT__LIST)
        wt__chat_heap_fail(&r->heap, WT_ERR_FORMAT, "chat: the messages are %s, want an array",
                           wt__chat_kind_name(messages));
    set(r, "messages", messages);
    set(r, "tools", options->tools_json ? wt__chat_from_json(r, "chat: the tools", options->tools_json) : none);
    set(r, "documents", none);
    set(r, "add_generation_prompt", wt__chat_bool(!options->no_generation_prompt));
    set(r, "bos_token", wt__chat_key(options->bos_token ? options->bos_token : ""));
    set(r, "eos_token", wt__chat_key(options->eos_token ? options->eos_token : ""));
}

wt_status wt_chat_render(const wt_chat_template *chat, const wt_chat_options *options, char **text)
{
    *text = NULL;
    if (!options->messages_json) return wt_fail(WT_ERR_BAD_ARG, "chat: no messages");
    wt__chat_render *r = calloc(1, sizeof *r);
    if (!r) return wt_fail(WT_ERR_NO_MEMORY, "chat: memory is out");
    wt_status status = WT_OK;
    if (!setjmp(r->heap.out)) {
        r->date = options->date;
        r->out = wt__chat_heap_take(&r->heap, sizeof *r->out);
        r->frame = wt__chat_heap_take(&r->heap, sizeof *r->frame);
        set_variables(r, options);
        wt__chat_exec(r, &chat->body);
        char *copy = malloc(r->out->size + 1);
        if (!copy) wt__chat_heap_fail(&r->heap, WT_ERR_NO_MEMORY, "chat: %zu bytes of text", r->out->size);
        memcpy(copy, r->out->at ? r->out->at : "", r->out->size + 1);
        *text = copy;
    }
    status = r->heap.status;
    wt__chat_heap_free(&r->heap);
    free(r);
    return status;
}
