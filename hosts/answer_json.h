/// An answer of a language model as a JSON object (docs/llm.md): filled token by token.
#ifndef WT_ANSWER_JSON_H
#define WT_ANSWER_JSON_H

#include "kept_text.h"

#include <jansson.h>
#include <warptone/generate.h>

typedef struct answer_json {
    json_t *object;
    json_t *ids, *logprobs, *top; ///< in the object; `top` NULL = not told
    kept_text said, thought;
} answer_json;

/// With the `n_top` most probable tokens of each place. Errors: WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status answer_json_begin(answer_json *answer, int n_top);
/// Without memory the answer stays shorter.  [worker]
void answer_json_add(answer_json *answer, const wt_generated *token);
/// Text, counts and how it ended; `thinking`: as a key of its own.  [worker]
void answer_json_end(answer_json *answer, const wt_generation *report, bool thinking);
/// The object as a line to stdout.  [worker]
void answer_json_print(const answer_json *answer);
void answer_json_free(answer_json *answer); ///< A zeroed one is allowed.

/// "eos"; of a cancelled one "interrupted".  [any]
const char *answer_end_name(const wt_generation *report);

#endif
