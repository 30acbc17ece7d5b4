// The tokenizer inside a GGUF file: tokenizer.ggml.model "llama" is a vocabulary with scores, as SentencePiece has it,
// "gpt2" byte-level pieces with merges, whose way of cutting text into words goes by the name in tokenizer.ggml.pre.
// Source: github.com/ggml-org/ggml, docs/gguf.md; the expressions: ggml-org/llama.cpp, src/llama-vocab.cpp.
#include "tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>
#include <warptone/weights.h>

typedef struct reader {
    wt_tokenizer *t;
    const wt_weights *weights;
    const char *file;
    wt_metadata_array tokens, types, scores; // types and scores: n 0 = there are none
} reader;

// ---- values

static const char *text_of(const reader *r, const char *key) { return wt_weights_metadata(r->weights, key); }

/// A token's id; -1 = there is no such key.
static int32_t id_of(const reader *r, const char *key)
{
    const char *text = text_of(r, key);
    const long id = text ? strtol(text, NULL, 10) : -1;
    return id >= 0 && id < r->t->n_tokens ? (int32_t)id : -1;
}

static bool flag_of(const reader *r, const char *key, bool otherwise)
{
    const char *text = text_of(r, key);
    return text ? !strcmp(text, "true") : otherwise;
}

/// The next string of an array, still in the file.
static const char *next_string(wt_metadata_array *array, size_t *size)
{
    uint64_t n;
    memcpy(&n, array->at, sizeof n);
    const char *text = (const char *)array->at + sizeof n;
    array->at += sizeof n + n;
    *size = (size_t)n;
    return text;
}

static uint32_t type_of(const reader *r, size_t k)
{
    uint32_t type = WT__TOK_NORMAL;
    if (r->types.n) memcpy(&type, r->types.at + k * sizeof type, sizeof type);
    return type;
}

static float score_of(const reader *r, size_t k)
{
    float score = 0;
    if (r->scores.n) memcpy(&score, r->scores.at + k * sizeof score, sizeof score);
    return score;
}

static wt_status read_arrays(reader *r)
{
    r->tokens = wt_weights_metadata_array(r->weights, "tokenizer.ggml.tokens");
    r->types = wt_weights_metadata_array(r->weights, "tokenizer.ggml.token_type");
    r->scores = wt_weights_metadata_array(r->weights, "tokenizer.ggml.scores");
    if (strcmp(r->tokens.type, "string") || !r->tokens.n || r->tokens.n > WT__MAX_TOKENS)
        return wt_fail(WT_ERR_FORMAT, "%s: tokenizer.ggml.tokens is no list of 1..%d texts", r->file, WT__MAX_TOKENS);
    if (r->types.n && (strcmp(r->types.type, "i32") || r->types.n != r->tokens.n))
        return wt_fail(WT_ERR_FORMAT, "%s: tokenizer.ggml.token_type is [%llu] %s, want [%llu] i32", r->file,
                       (unsigned long long)r->types.n, r->types.type, (unsigned long long)r->tokens.n);
    if (r->scores.n && (strcmp(r->scores.type, "f32") || r->scores.n != r->tokens.n))
        return wt_fail(WT_ERR_FORMAT, "%s: tokenizer.ggml.scores is [%llu] %s, want [%llu] f32", r->file,
                       (unsigned long long)r->scores.n, r->scores.type, (unsigned long long)r->tokens.n);
    return WT_OK;
}

/// Tokens that a text may name: control tokens, and what the user has defined.
static wt_status add_named(const reader *r)
{
    wt_status status = WT_OK;
    for (size_t k = 0; k < r->tokens.n && !status; k++) {
        const uint32_t type = type_of(r, k);
        if (type == WT__TOK_CONTROL || type == WT__TOK_USER_DEFINED)
            status = wt__tok_add_control(r->t, (int32_t)k, type == WT__TOK_CONTROL);
    }
    return status;
}

// ---- a vocabulary with scores

static wt_status read_scored(reader *r)
{
    wt__tok_pieces list = {0};
    wt_metadata_array tokens = r->tokens;
    wt_status status = WT_OK;
    if (!r->scores.n || !r->types.n)
        status = wt_fail(WT_ERR_FORMAT, "%s: a vocabulary without tokenizer.ggml.scores or token_type", r->file);
    for (size_t k = 0; k < tokens.n && !status; k++) {
        size_t size;
        const char *text = next_string(&tokens, &size);
        const uint32_t type = type_of(r, k);
        // those that a text may name are added after, and are not to be put together by merges
        const bool named = type == WT__TOK_CONTROL || type == WT__TOK_USER_DEFINED;
        status = wt__tok_add_piece(r->t, &list, text, size, score_of(r, k), named ? WT__TOK_BYTE : type);
    }
    if (!status)
        status = wt__tok_finish_pieces(r->t, r->file, &list, flag_of(r, "tokenizer.ggml.add_space_prefix", true));
    if (!status) status = add_named(r);
    free(list.at);
    return status;
}

// ---- pieces with merges

#define BYTE_LEVEL   "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"
#define SPLIT(regex) "{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":\"" regex "\"}}"
#define PARTS(normalizer, words)                                                                                       \
    "{" normalizer "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[" words "," BYTE_LEVEL "]},"           \
    "\"decoder\":{\"type\":\"ByteLevel\"}}"
#define WORDS_OF(digits)                                                                                               \
    SPLIT("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|" digits                               \
          "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+")
#define GPT2_WORDS                                                                                                     \
    SPLIT("'s|'t|'re|'ve|'m|'ll|'d| ?\\\\p{L}+| ?\\\\p{N}+| ?[^\\\\s\\\\p{L}\\\\p{N}]+|\\\\s+(?!\\\\S)|\\\\s+")

static const struct {
    const char *name;  ///< tokenizer.ggml.pre
    const char *parts; ///< of tokenizer.json
    bool ignore_merges, begins;
} ways[] = {
    {"gpt-2", PARTS("", GPT2_WORDS), false, false},
    {"phi-2", PARTS("", GPT2_WORDS), false, false},
    {"qwen2", PARTS("\"normalizer\":{\"type\":\"NFC\"},", WORDS_OF("\\\\p{N}")), false, false}, // Qwen's own has NFC
    {"llama-bpe", PARTS("", WORDS_OF("\\\\p{N}{1,3}")), true, true},
    {"llama3", PARTS("", WORDS_OF("\\\\p{N}{1,3}")), true, true},
    {"llama-v3", PARTS("", WORDS_OF("\\\\p{N}{1,3}")), true, true},
    {"smollm", PARTS("", "{\"type\":\"Digits\",\"individual_digits\":true}," GPT2_WORDS), false, false},
};
enum { N_WAYS = sizeof ways / sizeof *ways };

static wt_status find_way(const reader *r, int *way)
{
    const char *pre = text_of(r, "tokenizer.ggml.pre");
    for (*way = 0; *way < N_WAYS; ++*way)
        if (pre && !strcmp(pre, ways[*way].name)) return WT_OK;
    return wt_fail(WT_ERR_UNSUPPORTED,
                   "%s: tokenizer.ggml.pre is \"%.40s\", want gpt-2, phi-2, qwen2, llama-bpe or smollm, or a "
                   "tokenizer.json beside it",
                   r->file, pre ? pre : "");
}

static wt_status read_merges(const reader *r)
{
    wt_metadata_array merges = wt_weights_metadata_array(r->weights, "tokenizer.ggml.merges");
    wt__tok_bytes line = {0}, joined = {0};
    bool set = true;
    if (strcmp(merges.type, "string") || merges.n > UINT32_MAX / 2)
        return wt_fail(WT_ERR_FORMAT, "%s: tokenizer.ggml.merges is no list of texts", r->file);
    wt_status status = wt__tok_reserve_merges(r->t, (size_t)merges.n);
    for (uint32_t k = 0; k < merges.n && !status && set; k++) {
        size_t size;
        const char *text = next_string(&merges, &size);
        line.size = 0;
        status = wt__tok_bytes_add(&line, text, size) ? WT_OK : wt__tok_no_memory();
        if (!status) status = wt__tok_read_merge_line(r->t, &joined, line.at, k, &set);
        if (!status && !set)
            status = wt_fail(WT_ERR_FORMAT, "%s: merge %u, \"%.40s\", is not two tokens that make a third", r->file, k,
                             line.at);
    }
    free(line.at);
    free(joined.at);
    return status;
}

static wt_status read_merged(reader *r, bool *begins)
{
    wt_metadata_array tokens = r->tokens;
    int way;
    wt_status status = find_way(r, &way);
    for (size_t k = 0; k < tokens.n && !status; k++) {
        size_t size;
        const char *text = next_string(&tokens, &size);
        status = wt__tok_add_token(r->t, (int32_t)k, text, size);
    }
    if (!status) status = wt__tok_index_tokens(r->t);
    if (!status) status = read_merges(r);
    if (!status) status = add_named(r);
    if (!status) status = wt__tok_set_parts(r->t, r->file, ways[way].parts);
    if (status) return status;
    r->t->ignore_merges = ways[way].ignore_merges;
    *begins = ways[way].begins;
    return WT_OK;
}

// ---- all

/// `begins`: with bos, where the file does not say.
static wt_status read_rest(reader *r, bool begins)
{
    wt_tokenizer *t = r->t;
    const char *chat = text_of(r, "tokenizer.chat_template");
    t->bos = id_of(r, "tokenizer.ggml.bos_token_id");
    t->eos = id_of(r, "tokenizer.ggml.eos_token_id");
    if (t->unknown < 0) t->unknown = id_of(r, "tokenizer.ggml.unknown_token_id");
    if (chat && !(t->chat_template = strdup(chat))) return wt__tok_no_memory();
    return flag_of(r, "tokenizer.ggml.add_bos_token", begins) && t->bos >= 0 ? wt__tok_begin_with(t, t->bos) : WT_OK;
}

static wt_status read_tokens(reader *r)
{
    const char *model = text_of(r, "tokenizer.ggml.model");
    const bool scored = model && !strcmp(model, "llama"), merged = model && !strcmp(model, "gpt2");
    if (!scored && !merged)
        return wt_fail(WT_ERR_UNSUPPORTED, "%s: tokenizer.ggml.model is \"%.40s\", want llama or gpt2", r->file,
                       model ? model : "");
    bool begins = scored;
    wt_status status = read_arrays(r);
    if (!status) status = scored ? read_scored(r) : read_merged(r, &begins);
    return status ? status : read_rest(r, begins);
}

wt_status wt__tok_read_gguf(wt_tokenizer *t, const char *path)
{
    wt_weights *weights;
    wt_status status = wt_weights_open(path, &weights);
    if (status) return status;
    reader r = {.t = t, .weights = weights, .file = path};
    status = read_tokens(&r);
    wt_weights_close(weights);
    return status;
}
