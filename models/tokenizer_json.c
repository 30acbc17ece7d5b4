// tokenizer.json: what is known of it becomes steps and tables, what is not is named.
// Source: the `tokenizers` package, whose serialization the file is; defaults are its own.
#include "json.h"
#include "tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

// openai/gpt-2, encoder.py
static const char gpt2_words[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
static const char space_sign[] = "\xe2\x96\x81"; // U+2581

enum { MAX_DEPTH = 16 };

typedef struct reader {
    wt_tokenizer *t;
    const char *file;
} reader;

static const char *text_of(const json_t *json, const char *key)
{
    return json_string_value(json_object_get(json, key));
}

static bool flag_of(const json_t *json, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(json, key);
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

static wt_status unknown_part(reader r, const char *part, const char *type)
{
    return wt_fail(WT_ERR_UNSUPPORTED, "%s: %s \"%.64s\" is not known", r.file, part, type ? type : "(no type)");
}

static wt_status missing(reader r, const char *part, const char *what)
{
    return wt_fail(WT_ERR_FORMAT, "%s: %s without %s", r.file, part, what);
}

static wt_status add_step(wt__tok_steps *steps, wt__tok_step_kind kind, wt__tok_step **step)
{
    *step = NULL;
    if (steps->n >= WT__MAX_STEPS) return wt_fail(WT_ERR_UNSUPPORTED, "tokenizer: more than %d steps", WT__MAX_STEPS);
    if (!wt__tok_grow((void **)&steps->at, &steps->room, steps->n + 1, sizeof *steps->at)) return wt__tok_no_memory();
    *step = &steps->at[steps->n++];
    **step = (wt__tok_step){.kind = kind};
    return WT_OK;
}

static wt_status set_content(wt__tok_step *step, const char *content)
{
    step->content = strdup(content);
    return step->content ? WT_OK : wt__tok_no_memory();
}

// {"String": "..."} or {"Regex": "..."}
static wt_status read_pattern(reader r, const char *part, const json_t *json, wt__tok_step *step)
{
    const json_t *pattern = json_object_get(json, "pattern");
    const char *literal = text_of(pattern, "String"), *regex = text_of(pattern, "Regex");
    if (!literal && !regex) return missing(r, part, "a pattern");
    return wt__tok_pattern_create(r.t, regex, literal, &step->pattern);
}

static wt_status read_replace(reader r, const char *part, const json_t *json, wt__tok_steps *steps,
                              wt__tok_step_kind kind)
{
    wt__tok_step *step;
    const char *content = text_of(json, "content");
    if (!content) return missing(r, part, "content");
    wt_status status = add_step(steps, kind, &step);
    if (!status) status = read_pattern(r, part, json, step);
    return status ? status : set_content(step, content);
}

typedef wt_status read_part(reader r, const json_t *json, int depth);

static wt_status read_sequence(reader r, const json_t *list, int depth, read_part *read)
{
    wt_status status = WT_OK;
    if (!json_is_array(list)) return missing(r, "a Sequence", "its list");
    if (depth >= MAX_DEPTH) return wt_fail(WT_ERR_FORMAT, "%s: a Sequence more than %d deep", r.file, MAX_DEPTH);
    for (size_t i = 0; i < json_array_size(list) && !status; i++) status = read(r, json_array_get(list, i), depth + 1);
    return status;
}

static wt_status read_normalizer(reader r, const json_t *json, int depth)
{
    static const struct {
        const char *name;
        wt__tok_step_kind kind;
    } plain[] = {{"NFC", WT__NFC},
                 {"NFD", WT__NFD},
                 {"NFKC", WT__NFKC},
                 {"NFKD", WT__NFKD},
                 {"Lowercase", WT__LOWERCASE},
                 {"Strip", WT__STRIP},
                 {"StripAccents", WT__STRIP_ACCENTS}};
    wt__tok_steps *steps = &r.t->normalizer;
    wt__tok_step *step;
    if (!json || json_is_null(json)) return WT_OK;
    const char *type = text_of(json, "type");
    if (!type) return unknown_part(r, "normalizer", type);
    if (!strcmp(type, "Sequence"))
        return read_sequence(r, json_object_get(json, "normalizers"), depth, read_normalizer);
    if (!strcmp(type, "Replace")) return read_replace(r, "normalizer Replace", json, steps, WT__REPLACE);
    if (!strcmp(type, "Prepend")) {
        const char *content = text_of(json, "prepend");
        if (!content) return missing(r, "normalizer Prepend", "prepend");
        wt_status status = add_step(steps, WT__PREPEND, &step);
        return status ? status : set_content(step, content);
    }
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        if (strcmp(type, plain[i].name)) continue;
        wt_status status = add_step(steps, plain[i].kind, &step);
        if (status) return status;
        step->start = flag_of(json, "strip_left", true);
        step->stop = flag_of(json, "strip_right", true);
        return WT_OK;
    }
    return unknown_part(r, "normalizer", type);
}

static wt_status add_split(reader r, const char *regex, const char *literal, wt__tok_behavior behavior, bool invert)
{
    wt__tok_step *step;
    wt_status status = add_step(&r.t->pre_tokenizer, WT__SPLIT, &step);
    if (status) return status;
    step->behavior = behavior;
    step->invert = invert;
    return wt__tok_pattern_create(r.t, regex, literal, &step->pattern);
}

static wt_status read_behavior(reader r, const json_t *json, wt__tok_behavior *behavior)
{
    static const char *const names[] = {"Removed", "Isolated", "Contiguous", "MergedWithPrevious", "MergedWithNext"};
    const char *name = text_of(json, "behavior");
    for (int i = 0; name && i < 5; i++) {
        *behavior = (wt__tok_behavior)i;
        if (!strcmp(name, names[i])) return WT_OK;
    }
    return unknown_part(r, "behavior", name);
}

static wt__tok_prepend prepend_of(const json_t *json)
{
    const char *scheme = text_of(json, "prepend_scheme");
    if (!scheme) return flag_of(json, "add_prefix_space", true) ? WT__ALWAYS : WT__NEVER;
    return !strcmp(scheme, "never") ? WT__NEVER : !strcmp(scheme, "first") ? WT__FIRST : WT__ALWAYS;
}

static wt_status add_metaspace(reader r, const json_t *json, wt__tok_steps *steps, wt__tok_step_kind kind)
{
    wt__tok_step *step;
    const char *sign = text_of(json, "replacement");
    wt_status status = add_step(steps, kind, &step);
    if (status) return status;
    step->prepend = prepend_of(json);
    status = set_content(step, sign && *sign ? sign : space_sign);
    if (status || kind != WT__METASPACE || !flag_of(json, "split", true)) return status;
    return add_split(r, NULL, sign && *sign ? sign : space_sign, WT__WITH_NEXT, false);
}

static wt_status read_byte_level(reader r, const json_t *json)
{
    wt__tok_step *step;
    wt_status status = WT_OK;
    if (flag_of(json, "add_prefix_space", true)) status = add_step(&r.t->pre_tokenizer, WT__PREFIX_SPACE, &step);
    if (!status && flag_of(json, "use_regex", true)) status = add_split(r, gpt2_words, NULL, WT__ISOLATED, false);
    return status ? status : add_step(&r.t->pre_tokenizer, WT__TO_BYTE_LEVEL, &step);
}

static wt_status read_pre_tokenizer(reader r, const json_t *json, int depth)
{
    wt__tok_behavior behavior = WT__ISOLATED;
    if (!json || json_is_null(json)) return WT_OK;
    const char *type = text_of(json, "type");
    if (!type) return unknown_part(r, "pre-tokenizer", type);
    if (!strcmp(type, "Sequence"))
        return read_sequence(r, json_object_get(json, "pretokenizers"), depth, read_pre_tokenizer);
    if (!strcmp(type, "ByteLevel")) return read_byte_level(r, json);
    if (!strcmp(type, "Metaspace")) return add_metaspace(r, json, &r.t->pre_tokenizer, WT__METASPACE);
    if (!strcmp(type, "Digits"))
        return add_split(r, "\\p{N}", NULL, flag_of(json, "individual_digits", false) ? WT__ISOLATED : WT__CONTIGUOUS,
                         false);
    if (!strcmp(type, "Whitespace"))
        return add_split(r, "[\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}]+|[^\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\s]+", NULL,
                         WT__REMOVED, true);
    if (!strcmp(type, "WhitespaceSplit")) return add_split(r, "\\s", NULL, WT__REMOVED, false);
    if (strcmp(type, "Split") && strcmp(type, "Punctuation")) return unknown_part(r, "pre-tokenizer", type);
    bool punctuation = !strcmp(type, "Punctuation");
    wt_status status = punctuation && !text_of(json, "behavior") ? WT_OK : read_behavior(r, json, &behavior);
    if (status) return status;
    if (punctuation) return add_split(r, "[!-/:-@\\[-`{-~\\p{P}]", NULL, behavior, false);
    const json_t *pattern = json_object_get(json, "pattern");
    if (!text_of(pattern, "Regex") && !text_of(pattern, "String"))
        return missing(r, "pre-tokenizer Split", "a pattern");
    return add_split(r, text_of(pattern, "Regex"), text_of(pattern, "String"), behavior,
                     flag_of(json, "invert", false));
}

static wt_status read_decoder(reader r, const json_t *json, int depth)
{
    wt__tok_steps *steps = &r.t->decoder;
    wt__tok_step *step;
    if (!json || json_is_null(json)) return WT_OK;
    const char *type = text_of(json, "type");
    if (!type) return unknown_part(r, "decoder", type);
    if (!strcmp(type, "Sequence")) return read_sequence(r, json_object_get(json, "decoders"), depth, read_decoder);
    if (!strcmp(type, "ByteLevel")) return add_step(steps, WT__DECODE_BYTE_LEVEL, &step);
    if (!strcmp(type, "ByteFallback")) return add_step(steps, WT__DECODE_BYTE_FALLBACK, &step);
    if (!strcmp(type, "Fuse")) return add_step(steps, WT__DECODE_FUSE, &step);
    if (!strcmp(type, "Replace")) return read_replace(r, "decoder Replace", json, steps, WT__DECODE_REPLACE);
    if (!strcmp(type, "Metaspace")) return add_metaspace(r, json, steps, WT__DECODE_METASPACE);
    if (strcmp(type, "Strip")) return unknown_part(r, "decoder", type);
    const char *content = text_of(json, "content");
    if (!content || !*content) return missing(r, "decoder Strip", "content");
    wt_status status = add_step(steps, WT__DECODE_STRIP, &step);
    if (status) return status;
    step->start = (int)json_integer_value(json_object_get(json, "start"));
    step->stop = (int)json_integer_value(json_object_get(json, "stop"));
    return set_content(step, content);
}

static wt_status add_special(reader r, const json_t *id, bool after)
{
    wt_tokenizer *t = r.t;
    int32_t **list = after ? &t->after : &t->before;
    size_t *n = after ? &t->n_after : &t->n_before, *room = after ? &t->after_room : &t->before_room;
    if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= WT__MAX_TOKENS)
        return missing(r, "post-processor", "ids of its special tokens");
    if (!wt__tok_grow((void **)list, room, *n + 1, sizeof **list)) return wt__tok_no_memory();
    (*list)[(*n)++] = (int32_t)json_integer_value(id);
    return WT_OK;
}

static wt_status read_template(reader r, const json_t *json)
{
    const json_t *single = json_object_get(json, "single"), *tokens = json_object_get(json, "special_tokens");
    bool after = false;
    for (size_t i = 0; i < json_array_size(single); i++) {
        const json_t *part = json_array_get(single, i), *special = json_object_get(part, "SpecialToken");
        if (!special) {
            after = true;
            continue;
        }
        const char *name = text_of(special, "id");
        const json_t *ids = name ? json_object_get(json_object_get(tokens, name), "ids") : NULL;
        if (!json_array_size(ids)) return missing(r, "post-processor TemplateProcessing", "ids of its special tokens");
        for (size_t k = 0; k < json_array_size(ids); k++) {
            wt_status status = add_special(r, json_array_get(ids, k), after);
            if (status) return status;
        }
    }
    return WT_OK;
}

static wt_status read_post_processor(reader r, const json_t *json, int depth)
{
    if (!json || json_is_null(json)) return WT_OK;
    const char *type = text_of(json, "type");
    if (!type) return unknown_part(r, "post-processor", type);
    if (!strcmp(type, "Sequence"))
        return read_sequence(r, json_object_get(json, "processors"), depth, read_post_processor);
    if (!strcmp(type, "ByteLevel")) return WT_OK; // it changes offsets only
    if (!strcmp(type, "TemplateProcessing")) return read_template(r, json);
    if (strcmp(type, "RobertaProcessing") && strcmp(type, "BertProcessing"))
        return unknown_part(r, "post-processor", type);
    wt_status status = add_special(r, json_array_get(json_object_get(json, "cls"), 1), false);
    return status ? status : add_special(r, json_array_get(json_object_get(json, "sep"), 1), true);
}

wt_status wt__tok_read_parts(wt_tokenizer *t, const char *file, const json_t *json)
{
    reader r = {t, file};
    wt_status status = read_normalizer(r, json_object_get(json, "normalizer"), 0);
    if (!status) status = read_pre_tokenizer(r, json_object_get(json, "pre_tokenizer"), 0);
    if (!status) status = read_decoder(r, json_object_get(json, "decoder"), 0);
    if (!status) status = read_post_processor(r, json_object_get(json, "post_processor"), 0);
    t->join_with_spaces = !t->decoder.n;
    return status;
}

// --- The model ------------------------------------------------------------------------------------------------------

static wt_status read_vocabulary(reader r, const json_t *vocab)
{
    const char *text;
    json_t *id;
    if (!json_is_object(vocab)) return missing(r, "the model", "a vocab object");
    json_object_foreach((json_t *)vocab, text, id)
    {
        json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;
        if (value < 0 || value >= WT__MAX_TOKENS)
            return wt_fail(WT_ERR_FORMAT, "%s: the id of token \"%.64s\", want 0 .. %d", r.file, text,
                           WT__MAX_TOKENS - 1);
        wt_status status = wt__tok_add_token(r.t, (int32_t)value, text, strlen(text));
        if (status) return status;
    }
    return wt__tok_index_tokens(r.t);
}

// "a b" or ["a", "b"].
static wt_status read_merge(reader r, const json_t *merge, uint32_t rank, wt__tok_bytes *joined)
{
    bool set = false;
    wt_status status = WT_OK;
    const char *line = json_string_value(merge);
    const char *left = json_string_value(json_array_get(merge, 0)),
               *right = json_string_value(json_array_get(merge, 1));
    if (!line && (!left || !right || json_array_size(merge) != 2))
        return wt_fail(WT_ERR_FORMAT, "%s: merge %u is not two texts", r.file, (unsigned)rank);
    if (left && right)
        status = wt__tok_try_merge(r.t, joined, left, strlen(left), right, strlen(right), rank, &set);
    if (line) status = wt__tok_read_merge_line(r.t, joined, line, rank, &set);
    if (status || set) return status;
    return wt_fail(WT_ERR_FORMAT, "%s: merge %u, \"%.40s\", is not two tokens that make a third", r.file,
                   (unsigned)rank, line ? line : left);
}

static wt_status read_merges(reader r, const json_t *merges)
{
    wt__tok_bytes joined = {0};
    size_t n = json_array_size(merges);
    if (!json_is_array(merges)) return missing(r, "the model", "a list of merges");
    wt_status status = wt__tok_reserve_merges(r.t, n);
    for (size_t i = 0; i < n && !status; i++) status = read_merge(r, json_array_get(merges, i), (uint32_t)i, &joined);
    free(joined.at);
    return status;
}

static wt_status read_model(reader r, const json_t *model)
{
    wt_tokenizer *t = r.t;
    const char *type = text_of(model, "type"), *unknown = text_of(model, "unk_token");
    const char *prefix = text_of(model, "continuing_subword_prefix"), *suffix = text_of(model, "end_of_word_suffix");
    if (!json_is_object(model)) return missing(r, "the file", "a model");
    if (type && strcmp(type, "BPE")) return unknown_part(r, "model", type);
    if ((prefix && *prefix) || (suffix && *suffix))
        return unknown_part(r, "subword prefix or suffix", prefix ? prefix : suffix);
    wt_status status = read_vocabulary(r, json_object_get(model, "vocab"));
    if (!status) status = read_merges(r, json_object_get(model, "merges"));
    if (status) return status;
    t->fuse_unknown = flag_of(model, "fuse_unk", false);
    t->byte_fallback = flag_of(model, "byte_fallback", false);
    t->ignore_merges = flag_of(model, "ignore_merges", false);
    if (unknown) t->unknown = wt__tok_find_token(t, unknown, strlen(unknown));
    return WT_OK;
}

static wt_status read_added_tokens(reader r, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *json = json_array_get(list, i), *id = json_object_get(json, "id");
        wt__tok_added_token token = {.content = (char *)text_of(json, "content"), .id = -1};
        if (json_is_integer(id) && json_integer_value(id) < WT__MAX_TOKENS) token.id = (int32_t)json_integer_value(id);
        if (!token.content || token.id < 0) return missing(r, "an added token", "its content and id");
        token.special = flag_of(json, "special", false);
        token.normalized = flag_of(json, "normalized", !token.special);
        token.lstrip = flag_of(json, "lstrip", false);
        token.rstrip = flag_of(json, "rstrip", false);
        token.single_word = flag_of(json, "single_word", false);
        wt_status status = wt__tok_add_added_token(r.t, &token);
        if (status) return status;
    }
    return WT_OK;
}

wt_status wt__tok_read_tokenizer_json(wt_tokenizer *t, const char *file, const char *text, size_t size)
{
    json_t *json = NULL;
    reader r = {t, file};
    wt_status status = wt__json_load(file, text, size, JSON_REJECT_DUPLICATES, &json);
    if (!status) status = read_model(r, json_object_get(json, "model"));
    if (!status) status = read_added_tokens(r, json_object_get(json, "added_tokens"));
    if (!status) status = wt__tok_read_parts(t, file, json);
    json_decref(json);
    return status;
}
