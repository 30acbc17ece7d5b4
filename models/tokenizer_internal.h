/// What the files of the tokenizer share. A tokenizer is read-only once opened; each call works in memory of its own.
#ifndef WT_MODELS_TOKENIZER_INTERNAL_H
#define WT_MODELS_TOKENIZER_INTERNAL_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <jansson.h>
#include <pcre2.h>
#include <stdatomic.h>
#include <warptone/tokenizer.h>

enum { WT__MAX_TOKENS = 1 << 22, WT__MAX_STEPS = 64 };

/// Bytes that grow; `at` is NULL or taken with malloc.
typedef struct wt__tok_bytes {
    char *at;
    size_t size, room;
} wt__tok_bytes;

/// Room for `want` elements of `size` bytes in *at; false when memory is out.
bool wt__tok_grow(void **at, size_t *room, size_t want, size_t size);
bool wt__tok_bytes_add(wt__tok_bytes *bytes, const char *add, size_t size);
bool wt__tok_add_lossy(wt__tok_bytes *bytes, const char *add, size_t size); ///< U+FFFD for what is no UTF-8

/// A regular expression, or a literal text (`size` bytes) where `regex` is NULL.
typedef struct wt__tok_pattern {
    pcre2_code *regex;
    char *literal;
    size_t size;
} wt__tok_pattern;

typedef enum wt__tok_step_kind {
    WT__NFC, // normalizers
    WT__NFD,
    WT__NFKC,
    WT__NFKD,
    WT__LOWERCASE,
    WT__STRIP,
    WT__STRIP_ACCENTS,
    WT__PREPEND,
    WT__REPLACE,
    WT__PREFIX_SPACE, // pre-tokenizers
    WT__SPLIT,
    WT__METASPACE,
    WT__TO_BYTE_LEVEL,
    WT__DECODE_REPLACE, // decoders
    WT__DECODE_BYTE_LEVEL,
    WT__DECODE_BYTE_FALLBACK,
    WT__DECODE_FUSE,
    WT__DECODE_STRIP,
    WT__DECODE_METASPACE,
} wt__tok_step_kind;

typedef enum wt__tok_behavior {
    WT__REMOVED,
    WT__ISOLATED,
    WT__CONTIGUOUS,
    WT__WITH_PREVIOUS,
    WT__WITH_NEXT
} wt__tok_behavior;
typedef enum wt__tok_prepend { WT__NEVER, WT__FIRST, WT__ALWAYS } wt__tok_prepend;

/// One step of the normalizer, the pre-tokenizer or the decoder.
typedef struct wt__tok_step {
    wt__tok_step_kind kind;
    wt__tok_pattern pattern; // REPLACE, SPLIT
    char *content;           // PREPEND, REPLACE, METASPACE (the sign of a space), STRIP of decoders (the character)
    wt__tok_behavior behavior;
    wt__tok_prepend prepend;
    bool invert;
    int start, stop; // STRIP: characters of a decoder, flags of a normalizer
} wt__tok_step;

typedef struct wt__tok_steps {
    wt__tok_step *at;
    size_t n, room;
} wt__tok_steps;

typedef struct wt__tok_added_token {
    char *content; // as it is searched for
    int32_t id;
    bool lstrip, rstrip, single_word, normalized, special;
} wt__tok_added_token;

/// A tree of added tokens' bytes: node 0 is the root, children are a list.
typedef struct wt__tok_trie_node {
    unsigned char byte;
    int32_t child, next; // 0 = none
    int32_t token;       // index of the added token that ends here, -1 = none
} wt__tok_trie_node;

typedef struct wt__tok_trie {
    wt__tok_trie_node *nodes;
    size_t n, room;
    bool first[256]; // may a token begin with this byte?
} wt__tok_trie;

typedef struct wt__tok_merge {
    uint64_t pair; // left id << 32 | right id; UINT64_MAX = free
    uint32_t rank;
    int32_t id;
} wt__tok_merge;

struct wt_tokenizer {
    pcre2_general_context *memory; // counts refusals of malloc in `refused`
    bool refused;

    wt__tok_bytes names; // the tokens' texts, each ended by a zero
    int64_t *name;       // [n_tokens] where in names, -1 = no such id
    size_t name_room;
    int32_t n_tokens;
    int32_t *slots; // [n_slots] ids by hash of the text, -1 = free; a power of two
    size_t n_slots;
    wt__tok_merge *merges; // [n_merge_slots] by hash of the pair
    size_t n_merge_slots;
    int32_t low[512];             // ids of the first characters, -1 = none
    int32_t byte_token[256];      // "<0x00>" .. ; -1 = none
    _Atomic unsigned char *whole; // [n_tokens] does the text of a token give that token? 0 not known, 1 yes, 2 no
    int32_t unknown;              // -1 = none
    bool fuse_unknown, byte_fallback, ignore_merges;

    wt__tok_added_token *added;
    size_t n_added, added_room;
    bool *special;                // [n_tokens]
    wt__tok_trie raw, normalized; // searched in the text as it comes, and after the normalizer
    wt__tok_steps normalizer, pre_tokenizer, decoder;
    bool join_with_spaces;   // no decoder: tokens stand apart
    int32_t *before, *after; // [n_before], [n_after] what the post-processor adds
    size_t n_before, n_after, before_room, after_room;
    int32_t bos, eos;
    char *chat_template;
};

/// Memory of one encode or decode.
typedef struct wt__tok_span {
    size_t begin, end;
} wt__tok_span;

typedef struct wt__tok_spans {
    wt__tok_span *at;
    size_t n, room;
} wt__tok_spans;

typedef struct wt__tok_work {
    const wt_tokenizer *t;
    pcre2_match_data *match; // NULL until a regular expression runs
    wt__tok_bytes normal, text[2];
    wt__tok_spans spans[2];
    void *symbols, *heap; // of the merge loop
    size_t symbol_room, heap_room;
    int32_t *ids; // [max_ids] or NULL
    int max_ids;
    int64_t n_ids;
} wt__tok_work;

void wt__tok_work_free(wt__tok_work *work);
wt_status wt__tok_no_memory(void);

wt_status wt__tok_pattern_create(wt_tokenizer *t, const char *regex, const char *literal, wt__tok_pattern *pattern);

/// Append `text` with every match replaced.
wt_status wt__tok_replace(wt__tok_work *work, const wt__tok_step *step, const char *text, size_t size,
                          wt__tok_bytes *out);
/// `text` through the normalizer into `out` (emptied first).
wt_status wt__tok_normalize(wt__tok_work *work, const char *text, size_t size, wt__tok_bytes *out);
/// `text` through the pre-tokenizer; the pieces are *spans of *pieces, borrowed until the next call. `first`: it is
/// where the whole text begins.
wt_status wt__tok_pre_tokenize(wt__tok_work *work, const char *text, size_t size, bool first, const char **pieces,
                               const wt__tok_spans **spans);
/// Ids of one piece.
wt_status wt__tok_bpe(wt__tok_work *work, const char *piece, size_t size);
void wt__tok_put_id(wt__tok_work *work, int32_t id);

wt_status wt__tok_add_token(wt_tokenizer *t, int32_t id, const char *text, size_t size);
/// Once all tokens are there: the table by text.
wt_status wt__tok_index_tokens(wt_tokenizer *t);
int32_t wt__tok_find_token(const wt_tokenizer *t, const char *text, size_t size); // -1 = none
/// Room for `n` merges, then each; a pair that comes twice keeps the later rank.
wt_status wt__tok_reserve_merges(wt_tokenizer *t, size_t n);
void wt__tok_set_merge(wt_tokenizer *t, int32_t left, int32_t right, uint32_t rank, int32_t id);
/// Merges of vocabularies that give none: any two neighbours whose joined text is a token, best `rank[id]` first
/// (UINT32_MAX = never made).
wt_status wt__tok_merges_of_ranks(wt_tokenizer *t, const uint32_t *rank);

wt_status wt__tok_add_added_token(wt_tokenizer *t, const wt__tok_added_token *token);
/// The first id of `n` or above that a token of the vocabulary has, added tokens apart; -1 = none.
int32_t wt__tok_beyond(const wt_tokenizer *t, int32_t n);
/// Once the normalizer is there: the trees that find the added tokens.
wt_status wt__tok_index_added_tokens(wt_tokenizer *t);
/// The next added token at or after `from`; *token NULL = none.
void wt__tok_next_added_token(const wt_tokenizer *t, const wt__tok_trie *trie, const char *text, size_t size,
                              size_t from, size_t taken, const wt__tok_added_token **token, wt__tok_span *match,
                              size_t *resume);

/// The parts of tokenizer.json that are not the vocabulary: normalizer, pre_tokenizer, decoder, post_processor.
wt_status wt__tok_read_parts(wt_tokenizer *t, const char *file, const json_t *json);
wt_status wt__tok_read_tokenizer_json(wt_tokenizer *t, const char *file, const char *text, size_t size);
/// Set the merge of two texts, when they and the joined text are tokens; *set tells.
wt_status wt__tok_try_merge(wt_tokenizer *t, wt__tok_bytes *joined, const char *left, size_t left_size,
                            const char *right, size_t right_size, uint32_t rank, bool *set);
/// "a b", ended by a zero: the first gap counts that leaves tokens on both sides.
wt_status wt__tok_read_merge_line(wt_tokenizer *t, wt__tok_bytes *joined, const char *line, uint32_t rank, bool *set);

/// A vocabulary with scores.
typedef struct wt__tok_piece {
    float score;
    int32_t id;
    uint32_t type;
} wt__tok_piece;
/// Of sentencepiece_model.proto, and of GGUF's tokenizer.ggml.token_type.
enum { WT__TOK_NORMAL = 1, WT__TOK_UNKNOWN, WT__TOK_CONTROL, WT__TOK_USER_DEFINED, WT__TOK_UNUSED, WT__TOK_BYTE };

typedef struct wt__tok_pieces {
    wt__tok_piece *at;
    size_t n, room;
} wt__tok_pieces;

/// The next token.
wt_status wt__tok_add_piece(wt_tokenizer *t, wt__tok_pieces *list, const char *text, size_t size, float score,
                            uint32_t type);
/// Once all are there: control tokens, merges by score, spaces as signs, with a space before the text or not.
wt_status wt__tok_finish_pieces(wt_tokenizer *t, const char *file, wt__tok_pieces *list, bool prefix);
/// A token that is found in the text as it comes.
wt_status wt__tok_add_control(wt_tokenizer *t, int32_t id, bool special);
wt_status wt__tok_begin_with(wt_tokenizer *t, int32_t id); ///< It is bos too.
/// What a tokenizer.json of these parts would say.
wt_status wt__tok_set_parts(wt_tokenizer *t, const char *file, const char *parts);

/// tokenizer.ggml.* of a GGUF file, or of a folder with one.
wt_status wt__tok_read_gguf(wt_tokenizer *t, const char *path);

/// tokenizer.model of SentencePiece or Llama 3, tokenizer.bin of llama2.c.
wt_status wt__tok_read_vocabulary(wt_tokenizer *t, const char *file, const char *bytes, size_t size);

/// The bytes behind a character of the byte-level alphabet, -1 = none; and the character of a byte.
int wt__tok_byte_of_level(uint32_t c);
uint32_t wt__tok_level_of_byte(unsigned char byte);

#endif
