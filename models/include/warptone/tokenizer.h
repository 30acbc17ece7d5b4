/// Tokenizers of language models, from tokenizer.json: byte-level BPE (GPT-2, Llama 3, Qwen, Phi) and
/// SentencePiece-style BPE with byte fallback (Llama 2, Mistral, TinyLlama). Ids and text equal the `tokenizers`
/// package's.
#ifndef WARPTONE_TOKENIZER_H
#define WARPTONE_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_tokenizer wt_tokenizer;

/// Open a folder with tokenizer.json (and tokenizer_config.json, when there), or such a file; a vocabulary of
/// SentencePiece, Llama 3 or llama2.c; a *.gguf, or a folder with one, for the tokenizer inside.
/// Errors: WT_ERR_FILE, WT_ERR_FORMAT, WT_ERR_UNSUPPORTED naming the part that is not known.  [worker]
WT_CHECKED wt_status wt_tokenizer_open(const char *path, wt_tokenizer **tokenizer);
void wt_tokenizer_close(wt_tokenizer *tokenizer); ///< NULL is allowed.  [worker]

int wt_tokenizer_size(const wt_tokenizer *tokenizer); ///< ids are below  [any]

/// Text of `length` bytes (any bytes: what is no UTF-8 becomes U+FFFD) to ids, as many as fit `max_ids`; *n_ids gets
/// how many there are. `special` adds what the post-processor adds (a beginning token, say). Errors: WT_ERR_BAD_ARG,
/// WT_ERR_NO_MEMORY.  [any, one thread or many]
WT_CHECKED wt_status wt_tokenizer_encode(const wt_tokenizer *tokenizer, const char *text, size_t length, bool special,
                                         int32_t *ids, int max_ids, int *n_ids);
/// Ids to text, ended by a zero; *length gets its bytes without it, also when `max_bytes` is too small. Special tokens
/// are left out with `skip_special`, ids of no token always. Errors: WT_ERR_BAD_ARG (n_ids), WT_ERR_NO_MEMORY.  [any]
WT_CHECKED wt_status wt_tokenizer_decode(const wt_tokenizer *tokenizer, const int32_t *ids, int n_ids,
                                         bool skip_special, char *text, size_t max_bytes, size_t *length);

int32_t wt_tokenizer_id(const wt_tokenizer *tokenizer, const char *token); ///< of a whole token, -1 = none  [any]
/// The token as it stands in the vocabulary; NULL = no such id.  [any]
const char *wt_tokenizer_token(const wt_tokenizer *tokenizer, int32_t id);
bool wt_tokenizer_is_special(const wt_tokenizer *tokenizer, int32_t id); ///< [any]
int32_t wt_tokenizer_bos(const wt_tokenizer *tokenizer);                 ///< -1 = none  [any]
int32_t wt_tokenizer_eos(const wt_tokenizer *tokenizer);                 ///< -1 = none  [any]
/// The chat template of tokenizer_config.json; NULL = none.  [any]
const char *wt_tokenizer_chat_template(const wt_tokenizer *tokenizer);

/// Text as it comes, token by token, never cut within a character. A zero byte is no text.
typedef struct wt_detokenizer wt_detokenizer;
/// The tokenizer is borrowed until destroy. Errors: WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_detokenizer_create(const wt_tokenizer *tokenizer, bool skip_special, wt_detokenizer **stream);
void wt_detokenizer_destroy(wt_detokenizer *stream); ///< NULL is allowed.  [worker]
/// The text that `id` completes: borrowed until the next push; "" while a character is unfinished.  [worker]
const char *wt_detokenizer_push(wt_detokenizer *stream, int32_t id);
/// What is held back, with U+FFFD for bytes that stayed incomplete.  [worker]
const char *wt_detokenizer_flush(wt_detokenizer *stream);

#ifdef __cplusplus
}
#endif
#endif
