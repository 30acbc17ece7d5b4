/// The vocabulary file of llama2.c (tokenizer.bin, tok512.bin). Source: github.com/karpathy/llama2.c, run.c,
/// build_tokenizer(), encode(), decode(), safe_printf().
#ifndef WARPTONE_LLAMA2C_H
#define WARPTONE_LLAMA2C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_llama2c_vocab wt_llama2c_vocab;

/// The file does not tell how many tokens it has: `vocab_size` is the model's.
/// Errors: WT_ERR_FILE, WT_ERR_FORMAT naming the token, WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_llama2c_vocab_open(const char *path, int vocab_size, wt_llama2c_vocab **vocab);
void wt_llama2c_vocab_close(wt_llama2c_vocab *vocab); ///< NULL is allowed.  [worker]

/// Text to ids: token 1, a space when there is text, its characters (or bytes), then pairs merged, the best score
/// first. Errors: WT_ERR_FULL (more than max_ids), WT_ERR_NO_MEMORY.  [any]
WT_CHECKED wt_status wt_llama2c_encode(const wt_llama2c_vocab *vocab, const char *text, size_t length, int32_t *ids,
                                       int max_ids, int *n_ids);
/// What `id` adds to the text after `before`: a space at the beginning is left out, and control codes.
/// Borrowed until close; *length gets its bytes.  [any]
const char *wt_llama2c_piece(const wt_llama2c_vocab *vocab, int32_t before, int32_t id, size_t *length);

#ifdef __cplusplus
}
#endif
#endif
