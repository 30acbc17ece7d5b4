/// JSON of model files, with one sentence for every way it can be wrong.
#ifndef WT_MODELS_JSON_H
#define WT_MODELS_JSON_H

#include <jansson.h>
#include <warptone/status.h>

/// Parse `size` bytes with jansson's flags; `what` names them in messages. jansson ends nesting at 2,048 levels and
/// integers at 64 bits. *json: json_decref. Errors: WT_ERR_FORMAT, WT_ERR_NO_MEMORY.
wt_status wt__json_load(const char *what, const char *text, size_t size, size_t flags, json_t **json);

/// The same of one object without a key twice.
wt_status wt__json_parse(const char *file, const char *text, size_t size, json_t **object);

/// And of a whole file, of 256 MiB at most. Errors: also WT_ERR_FILE.
wt_status wt__json_read(const char *path, json_t **object);

/// "a string", "an integer" and so on, for messages; "nothing" for NULL.
const char *wt__json_kind(const json_t *value);

#endif
