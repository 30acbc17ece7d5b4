#include "generate_text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warptone/llama2c.h>
#include <warptone/tokenizer.h>

struct generate_text {
    wt_tokenizer *tokenizer; ///< tokenizer.json; or
    wt_detokenizer *stream;
    wt_llama2c_vocab *vocab; ///< llama2.c's; all NULL = numbers
    char number[16];
    char *all;
    size_t n, size;
};

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/// llama2.c's: tok<size>.bin or tokenizer.bin beside the checkpoint.
static wt_status find_vocab(const char *model, int vocab_size, char path[PATH_MAX])
{
    const char *slash = strrchr(model, '/');
    const int folder = slash ? (int)(slash - model) + 1 : 0;
    snprintf(path, PATH_MAX, "%.*stok%d.bin", folder, model, vocab_size);
    if (!access(path, F_OK)) return WT_OK;
    snprintf(path, PATH_MAX, "%.*stokenizer.bin", folder, model);
    if (!access(path, F_OK)) return WT_OK;
    return wt_fail(WT_ERR_NOT_FOUND, "%s: neither tok%d.bin nor tokenizer.bin lies beside, want --tokenizer", model,
                   vocab_size);
}

static wt_status open_tokenizer(const char *path, generate_text *text)
{
    wt_status status = wt_tokenizer_open(path, &text->tokenizer);
    return status ? status : wt_detokenizer_create(text->tokenizer, true, &text->stream);
}

/// A file of the hub lies in the folder that has tokenizer.json.
static wt_status open_beside(const char *model, generate_text *text)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(model, '/');
    const bool file = ends_with(model, ".safetensors") || ends_with(model, ".json") || ends_with(model, ".gguf");
    if (!file) return open_tokenizer(model, text);
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - model) : 1, slash ? model : ".");
    return open_tokenizer(folder, text);
}

static wt_status open_vocab(const char *model, const char *tokenizer, int vocab_size, generate_text *text)
{
    char path[PATH_MAX];
    if (!ends_with(tokenizer ? tokenizer : model, ".bin"))
        return tokenizer ? open_tokenizer(tokenizer, text) : open_beside(model, text);
    wt_status status = tokenizer ? WT_OK : find_vocab(model, vocab_size, path);
    return status ? status : wt_llama2c_vocab_open(tokenizer ? tokenizer : path, vocab_size, &text->vocab);
}

wt_status generate_text_open(const char *model, const char *tokenizer, int vocab_size, bool numbers,
                             generate_text **text)
{
    generate_text *t = *text = calloc(1, sizeof *t);
    if (!t) return wt_fail(WT_ERR_NO_MEMORY, "generate: text");
    return numbers ? WT_OK : open_vocab(model, tokenizer, vocab_size, t);
}

void generate_text_close(generate_text *text)
{
    if (!text) return;
    wt_detokenizer_destroy(text->stream);
    wt_tokenizer_close(text->tokenizer);
    wt_llama2c_vocab_close(text->vocab);
    free(text->all);
    free(text);
}

wt_status generate_text_encode(const generate_text *text, const char *prompt, size_t length, int32_t *ids, int max_ids,
                               int *n_ids)
{
    if (text->vocab) return wt_llama2c_encode(text->vocab, prompt, length, ids, max_ids, n_ids);
    wt_status status = wt_tokenizer_encode(text->tokenizer, prompt, length, true, ids, max_ids, n_ids);
    if (status || *n_ids <= max_ids) return status;
    return wt_fail(WT_ERR_FULL, "generate: the prompt has %d tokens, want %d at most", *n_ids, max_ids);
}

/// Keep what was said; without memory the text stays shorter.
static void keep(generate_text *t, const char *piece, size_t length)
{
    if (t->n + length > t->size) {
        const size_t size = 2 * (t->n + length) + 256;
        char *larger = realloc(t->all, size);
        if (!larger) return;
        t->all = larger;
        t->size = size;
    }
    memcpy(t->all + t->n, piece, length);
    t->n += length;
}

const char *generate_text_push(generate_text *text, int32_t before, int32_t id, size_t *length)
{
    const char *piece = text->number;
    if (text->stream) {
        piece = wt_detokenizer_push(text->stream, id);
        *length = strlen(piece);
    } else if (text->vocab)
        piece = wt_llama2c_piece(text->vocab, before, id, length);
    else
        *length = (size_t)snprintf(text->number, sizeof text->number, text->n ? " %d" : "%d", id);
    keep(text, piece, *length);
    return piece;
}

const char *generate_text_flush(generate_text *text, size_t *length)
{
    const char *piece = text->stream ? wt_detokenizer_flush(text->stream) : "";
    *length = strlen(piece);
    keep(text, piece, *length);
    return piece;
}

const char *generate_text_all(const generate_text *text, size_t *length)
{
    *length = text->n;
    return text->all;
}
