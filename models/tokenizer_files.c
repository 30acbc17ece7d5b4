// Vocabularies that are no tokenizer.json: SentencePiece's tokenizer.model, the ranks of Llama 3's, llama2.c's .bin.
// They have no merges of their own: any two neighbours whose joined text is a token may be joined, best rank first.
#include "json.h"
#include "tokenizer_internal.h"
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What the parts of tokenizer.json would say.
static const char llama3_parts[] = // meta-llama/llama3, tokenizer.py (pat_str)
    "{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"behavior\":\"Isolated\","
    "\"pattern\":{\"Regex\":\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}|"
    " ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"}},"
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]},\"decoder\":{\"type\":\"ByteLevel\"}}";
// google/sentencepiece, normalizer.cc: a space before the text (add_dummy_prefix), spaces as U+2581
#define SPACES_AS_SIGNS "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"}"
#define SIGNS_AS_SPACES "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xe2\x96\x81\"},\"content\":\" \"}"
static const char prefixed_parts[] =
    "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"\xe2\x96\x81\"}"
    "," SPACES_AS_SIGNS "]},\"decoder\":{\"type\":\"Sequence\",\"decoders\":[" SIGNS_AS_SPACES
    ",{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"
    "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]}}";
static const char llama2c_parts[] =
    "{\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\" \"},\"decoder\":{\"type\":\"Sequence\",\"decoders\":["
    "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]}}";
static const char plain_parts[] =
    "{\"normalizer\":" SPACES_AS_SIGNS ",\"decoder\":{\"type\":\"Sequence\",\"decoders\":[" SIGNS_AS_SPACES
    ",{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}]}}";

wt_status wt__tok_set_parts(wt_tokenizer *t, const char *file, const char *parts)
{
    json_t *json = NULL;
    wt_status status = wt__json_load(file, parts, strlen(parts), 0, &json);
    if (!status) status = wt__tok_read_parts(t, file, json);
    json_decref(json);
    return status;
}

wt_status wt__tok_add_control(wt_tokenizer *t, int32_t id, bool special)
{
    char *name = strdup(t->names.at + t->name[id]); // the list of names may move
    if (!name) return wt__tok_no_memory();
    wt_status status =
        wt__tok_add_added_token(t, &(wt__tok_added_token){.content = name, .id = id, .special = special});
    free(name);
    return status;
}

wt_status wt__tok_begin_with(wt_tokenizer *t, int32_t id)
{
    if (!wt__tok_grow((void **)&t->before, &t->before_room, 1, sizeof *t->before)) return wt__tok_no_memory();
    t->before[0] = t->bos = id;
    t->n_before = 1;
    return WT_OK;
}

// --- Scores -> ranks ------------------------------------------------------------------------------------------------

static int by_score(const void *a, const void *b)
{
    const wt__tok_piece *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score) - (x->score > y->score) : (x->id > y->id) - (x->id < y->id);
}

// Equal scores make equal ranks: the leftmost pair goes first.
static wt_status merges_of_scores(wt_tokenizer *t, wt__tok_pieces *list)
{
    uint32_t *rank = malloc(((size_t)t->n_tokens + 1) * sizeof *rank);
    if (!rank) return wt__tok_no_memory();
    qsort(list->at, list->n, sizeof *list->at, by_score);
    for (int32_t id = 0; id < t->n_tokens; id++) rank[id] = UINT32_MAX;
    uint32_t next = 0;
    for (size_t i = 0; i < list->n; i++) {
        const wt__tok_piece *p = &list->at[i];
        if (i && p->score != list->at[i - 1].score) next++;
        if (p->type == WT__TOK_NORMAL || p->type == WT__TOK_USER_DEFINED || p->type == WT__TOK_UNUSED)
            rank[p->id] = next;
    }
    wt_status status = wt__tok_merges_of_ranks(t, rank);
    free(rank);
    return status;
}

wt_status wt__tok_add_piece(wt_tokenizer *t, wt__tok_pieces *list, const char *text, size_t size, float score,
                            uint32_t type)
{
    if (!size || !wt__utf8_valid(text, size) || score != score)
        return wt_fail(WT_ERR_FORMAT, "tokenizer: token %zu is empty, no UTF-8, or without a score", list->n);
    if (!wt__tok_grow((void **)&list->at, &list->room, list->n + 1, sizeof *list->at)) return wt__tok_no_memory();
    list->at[list->n] = (wt__tok_piece){score, (int32_t)list->n, type};
    return wt__tok_add_token(t, (int32_t)list->n++, text, size);
}

// What all kinds with scores do once the pieces are there.
static wt_status finish_pieces(wt_tokenizer *t, const char *file, wt__tok_pieces *list, const char *parts)
{
    if (!list->n) return wt_fail(WT_ERR_FORMAT, "%s: no tokens", file);
    wt_status status = wt__tok_index_tokens(t);
    for (size_t i = 0; i < list->n && !status; i++) {
        const wt__tok_piece *p = &list->at[i];
        if (p->type == WT__TOK_UNKNOWN) t->unknown = p->id;
        if (p->type == WT__TOK_CONTROL) status = wt__tok_add_control(t, p->id, true);
    }
    if (!status) status = merges_of_scores(t, list);
    t->byte_fallback = t->fuse_unknown = true;
    return status ? status : wt__tok_set_parts(t, file, parts);
}

wt_status wt__tok_finish_pieces(wt_tokenizer *t, const char *file, wt__tok_pieces *list, bool prefix)
{
    return finish_pieces(t, file, list, prefix ? prefixed_parts : plain_parts);
}

// --- SentencePiece: a protocol buffer -------------------------------------------------------------------------------

typedef struct buffer {
    const unsigned char *at, *end;
    bool bad;
} buffer;

typedef struct field {
    uint32_t number;
    uint64_t value; // varint, or the bits of 32 or 64
    buffer inside;  // of a length-delimited one
} field;

static uint64_t varint(buffer *b)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && b->at < b->end; shift += 7) {
        value |= (uint64_t)(*b->at & 0x7f) << shift;
        if (!(*b->at++ & 0x80)) return value;
    }
    b->bad = true;
    return 0;
}

static bool next_field(buffer *b, field *f)
{
    if (b->bad || b->at >= b->end) return false;
    uint64_t key = varint(b), size = 0;
    *f = (field){.number = (uint32_t)(key >> 3)};
    switch (key & 7) {
    case 0:
        f->value = varint(b);
        return !b->bad;
    case 1:
        size = 8;
        break;
    case 2:
        size = varint(b);
        break;
    case 5:
        size = 4;
        break;
    default:
        b->bad = true;
    }
    if (b->bad || size > (uint64_t)(b->end - b->at)) {
        b->bad = true;
        return false;
    }
    f->inside = (buffer){b->at, b->at + size, false};
    if ((key & 7) != 2) memcpy(&f->value, b->at, size);
    b->at += size;
    return true;
}

static wt_status read_piece(wt_tokenizer *t, buffer b, wt__tok_pieces *list)
{
    buffer text = {0};
    float score = 0;
    uint32_t type = WT__TOK_NORMAL;
    for (field f; next_field(&b, &f);) {
        if (f.number == 1) text = f.inside;
        if (f.number == 2) memcpy(&score, &f.value, sizeof score);
        if (f.number == 3) type = (uint32_t)f.value;
    }
    return wt__tok_add_piece(t, list, (const char *)text.at, (size_t)(text.end - text.at), score, type);
}

// What changes ids, with sentencepiece_model.proto's defaults.
typedef struct specs {
    uint64_t model_type, prefix, shrink_spaces;
    bool char_map;
} specs;

// trainer_spec (field 2 of the model) and normalizer_spec (3)
static void read_spec(wt_tokenizer *t, field model, specs *s)
{
    for (field f; next_field(&model.inside, &f);) {
        if (model.number == 2 && f.number == 3) s->model_type = f.value;
        if (model.number == 2 && f.number == 41) t->bos = (int32_t)f.value;
        if (model.number == 2 && f.number == 42) t->eos = (int32_t)f.value;
        if (model.number == 3 && f.number == 2) s->char_map = f.inside.end > f.inside.at;
        if (model.number == 3 && f.number == 3) s->prefix = f.value;
        if (model.number == 3 && f.number == 4) s->shrink_spaces = f.value;
    }
}

static wt_status check_specs(const char *file, const specs *s)
{
    if (s->model_type != 2)
        return wt_fail(WT_ERR_UNSUPPORTED, "%s: SentencePiece model type %d is not known, only BPE (2)", file,
                       (int)s->model_type);
    if (s->shrink_spaces) return wt_fail(WT_ERR_UNSUPPORTED, "%s: remove_extra_whitespaces is not known", file);
    if (s->char_map) return wt_fail(WT_ERR_UNSUPPORTED, "%s: a normalizer with a character map is not known", file);
    return WT_OK;
}

static wt_status read_sentencepiece(wt_tokenizer *t, const char *file, const char *bytes, size_t size)
{
    buffer b = {(const unsigned char *)bytes, (const unsigned char *)bytes + size, false};
    wt__tok_pieces list = {0};
    specs spec = {.model_type = 1, .prefix = 1, .shrink_spaces = 1};
    wt_status status = WT_OK;
    t->bos = 1; // the trainer's defaults
    t->eos = 2;
    for (field f; !status && next_field(&b, &f);) {
        if (f.number == 1) status = read_piece(t, f.inside, &list);
        if (f.number == 2 || f.number == 3) read_spec(t, f, &spec);
    }
    if (!status && b.bad) status = wt_fail(WT_ERR_FORMAT, "%s: no SentencePiece model, or one that is cut off", file);
    if (!status) status = check_specs(file, &spec);
    if (!status) status = wt__tok_finish_pieces(t, file, &list, spec.prefix);
    if (!status && t->bos >= 0 && t->bos < t->n_tokens) status = wt__tok_begin_with(t, t->bos);
    free(list.at);
    return status;
}

// --- llama2.c: karpathy/llama2.c, run.c, build_tokenizer() ----------------------------------------------------------

// The control tokens stand with line ends around them.
static wt_status add_llama2c_token(wt_tokenizer *t, wt__tok_pieces *list, const char *text, size_t size, float score)
{
    static const char *const first[] = {"<unk>", "<s>", "</s>"};
    if (list->n < 3)
        return wt__tok_add_piece(t, list, first[list->n], strlen(first[list->n]), score,
                                 list->n ? WT__TOK_CONTROL : WT__TOK_UNKNOWN);
    return wt__tok_add_piece(t, list, text, size, score, list->n < 259 ? WT__TOK_BYTE : WT__TOK_NORMAL);
}

static wt_status read_llama2c(wt_tokenizer *t, const char *file, const char *bytes, size_t size)
{
    wt__tok_pieces list = {0};
    wt_status status = WT_OK;
    for (size_t at = 4; at < size && !status;) {
        float score;
        int32_t length = -1;
        if (size - at >= 8) {
            memcpy(&score, bytes + at, 4);
            memcpy(&length, bytes + at + 4, 4);
        }
        if (length < 0 || (size_t)length > size - at - 8) {
            status = wt_fail(WT_ERR_FORMAT, "%s: token %zu is cut off", file, list.n);
            break;
        }
        status = add_llama2c_token(t, &list, bytes + at + 8, (size_t)length, score);
        at += 8 + (size_t)length;
    }
    if (!status) status = finish_pieces(t, file, &list, llama2c_parts);
    if (!status) status = wt__tok_begin_with(t, 1);
    t->eos = 2;
    free(list.at);
    return status;
}

// --- Llama 3: lines of base64 and rank ------------------------------------------------------------------------------

static int base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

// One line: base64 as the byte-level alphabet into `name`, and the rank; the line's bytes, 0 = it is none.
static size_t read_rank(const char *line, size_t size, wt__tok_bytes *name, long *rank)
{
    uint32_t bits = 0, n_bits = 0;
    size_t i = 0;
    for (; i < size && base64_digit(line[i]) >= 0; i++) {
        bits = bits << 6 | (uint32_t)base64_digit(line[i]);
        n_bits += 6;
        if (n_bits < 8) continue;
        n_bits -= 8;
        char level[4];
        if (!wt__tok_bytes_add(name, level,
                               wt__utf8_put(wt__tok_level_of_byte((unsigned char)(bits >> n_bits)), level)))
            return 0;
    }
    while (i < size && line[i] == '=') i++;
    if (i >= size || line[i++] != ' ') return 0;
    *rank = 0;
    size_t first = i;
    for (; i < size && line[i] >= '0' && line[i] <= '9' && *rank < WT__MAX_TOKENS; i++)
        *rank = *rank * 10 + (line[i] - '0');
    if (i == first || (i < size && line[i] != '\n')) return 0;
    return i < size ? i + 1 : i;
}

// The 256 special tokens behind the ranks (meta-llama/llama3, tokenizer.py).
static wt_status add_llama3_specials(wt_tokenizer *t)
{
    static const char *const named[] = {"<|begin_of_text|>",
                                        "<|end_of_text|>",
                                        "<|reserved_special_token_0|>",
                                        "<|reserved_special_token_1|>",
                                        "<|reserved_special_token_2|>",
                                        "<|reserved_special_token_3|>",
                                        "<|start_header_id|>",
                                        "<|end_header_id|>",
                                        "<|reserved_special_token_4|>",
                                        "<|eot_id|>"};
    int32_t base = t->n_tokens;
    for (int i = 0; i < 256; i++) {
        char name[48];
        snprintf(name, sizeof name, "<|reserved_special_token_%d|>", i - 5);
        wt__tok_added_token token = {.content = i < 10 ? (char *)named[i] : name, .id = base + i, .special = true};
        wt_status status = wt__tok_add_added_token(t, &token);
        if (status) return status;
    }
    t->eos = base + 1;
    t->ignore_merges = true;
    return wt__tok_begin_with(t, base);
}

static wt_status merges_by_id(wt_tokenizer *t)
{
    uint32_t *rank = malloc(((size_t)t->n_tokens + 1) * sizeof *rank);
    if (!rank) return wt__tok_no_memory();
    for (int32_t id = 0; id < t->n_tokens; id++) rank[id] = (uint32_t)id;
    wt_status status = wt__tok_merges_of_ranks(t, rank);
    free(rank);
    return status;
}

static wt_status read_ranks(wt_tokenizer *t, const char *file, const char *bytes, size_t size)
{
    wt__tok_bytes name = {0};
    wt_status status = size ? WT_OK : wt_fail(WT_ERR_FORMAT, "%s: no tokens", file);
    for (size_t at = 0, used; at < size && !status; at += used) {
        long rank = 0;
        name.size = 0;
        used = read_rank(bytes + at, size - at, &name, &rank);
        if (!used || !name.size)
            status = wt_fail(WT_ERR_FORMAT,
                             "%s: byte %zu is no line of base64 and a rank, and nothing else that is known", file, at);
        else
            status = wt__tok_add_token(t, (int32_t)rank, name.at, name.size);
    }
    free(name.at);
    if (!status) status = wt__tok_index_tokens(t);
    if (!status) status = merges_by_id(t);
    if (!status) status = add_llama3_specials(t);
    return status ? status : wt__tok_set_parts(t, file, llama3_parts);
}

wt_status wt__tok_read_vocabulary(wt_tokenizer *t, const char *file, const char *bytes, size_t size)
{
    uint32_t head = UINT32_MAX;
    if (size >= 4) memcpy(&head, bytes, 4);
    if (size && bytes[0] == '\n' && head > 0xffff) return read_sentencepiece(t, file, bytes, size); // field 1: a piece
    if (head <= 0xffff) return read_llama2c(t, file, bytes, size); // length of the longest token
    return read_ranks(t, file, bytes, size);
}
