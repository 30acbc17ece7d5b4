#include "json_load.h"

#include <stdbool.h>

// jansson 2.14 reports most refusals of memory as wrong text, or without a sentence: text that is right when it is
// read again was not wrong.
static bool right_again(const char *text, size_t size, size_t flags)
{
    json_t *json = json_loadb(text, size, flags, NULL);
    json_decref(json);
    return json != NULL;
}

wt_status wt__json_load(const char *what, const char *text, size_t size, size_t flags, json_t **json)
{
    json_error_t error;
    *json = json_loadb(text, size, flags, &error);
    if (*json) return WT_OK;
    if (!*error.text || json_error_code(&error) == json_error_out_of_memory || right_again(text, size, flags))
        return wt_fail(WT_ERR_NO_MEMORY, "%s: JSON of %zu bytes", what, size);
    return wt_fail(WT_ERR_FORMAT, "%s: JSON line %d column %d: %s", what, error.line, error.column, error.text);
}
