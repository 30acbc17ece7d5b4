/// JSON from memory, with a status that tells wrong text from want of memory.
#ifndef WT_MODELS_JSON_LOAD_H
#define WT_MODELS_JSON_LOAD_H

#include <jansson.h>
#include <warptone/status.h>

/// Parse `size` bytes with jansson's flags; `what` names them in messages. *json: json_decref.
/// Errors: WT_ERR_FORMAT, WT_ERR_NO_MEMORY.
wt_status wt__json_load(const char *what, const char *text, size_t size, size_t flags, json_t **json);

#endif
