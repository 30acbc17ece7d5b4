/// Text to tokens and back for `warptone generate`: tokenizer.json, llama2.c's vocabulary, or plain
/// numbers.
#ifndef WT_GENERATE_TEXT_H
#define WT_GENERATE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <warptone/status.h>

typedef struct generate_text generate_text;

/// What lies with the model, or at `tokenizer`; with `numbers` the text is the tokens' numbers.
/// Errors: when there is none, or it cannot be read.
WT_CHECKED wt_status generate_text_open(const char *model, const char *tokenizer, int vocab_size, bool numbers,
                                        generate_text **text);
void generate_text_close(generate_text *text); ///< NULL is allowed.
WT_CHECKED wt_status generate_text_encode(const generate_text *text, const char *prompt, size_t length, int32_t *ids,
                                          int max_ids, int *n_ids);
/// What `id` adds after `before`; borrowed until the next call.
const char *generate_text_push(generate_text *text, int32_t before, int32_t id, size_t *length);
/// What was held back of an unfinished character.
const char *generate_text_flush(generate_text *text, size_t *length);
const char *generate_text_all(const generate_text *text, size_t *length); ///< everything pushed

#endif
