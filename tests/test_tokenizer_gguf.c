// Tokenizers inside GGUF files: files that are written here from the real tokenizer.json of ../shared/data give the ids
// that those give, and files that are wrong are named.
#include "support/audio_files.h"
#include "support/testing.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <warptone/tokenizer.h>

enum { U32 = 4, I32 = 5, F32 = 6, BOOL = 7, STRING = 8, ARRAY = 9 }; // of gguf.md
enum { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE };
enum { MAX_TOKENS = 152000, N_STRINGS = 2000, MAX_TEXT = 2048, MAX_IDS = 2 * MAX_TEXT };

// ---- writing

typedef struct gguf {
    FILE *file;
    uint64_t n_keys;
} gguf;

static void put_u32(const gguf *g, uint32_t x) { fwrite(&x, sizeof x, 1, g->file); }

static void put_u64(const gguf *g, uint64_t x) { fwrite(&x, sizeof x, 1, g->file); }

static void put_text(const gguf *g, const char *text)
{
    put_u64(g, strlen(text));
    fwrite(text, 1, strlen(text), g->file);
}

static void put_key(gguf *g, const char *key, uint32_t kind)
{
    put_text(g, key);
    put_u32(g, kind);
    g->n_keys++;
}

static void put_array(gguf *g, const char *key, uint32_t kind, uint64_t n)
{
    put_key(g, key, ARRAY);
    put_u32(g, kind);
    put_u64(g, n);
}

static void text_key(gguf *g, const char *key, const char *text)
{
    put_key(g, key, STRING);
    put_text(g, text);
}

static void id_key(gguf *g, const char *key, int id)
{
    if (id < 0) return;
    put_key(g, key, U32);
    put_u32(g, (uint32_t)id);
}

static gguf begin(const char *path)
{
    gguf g = {.file = fopen(path, "wb")};
    assert_non_null(g.file);
    fwrite("GGUF", 1, 4, g.file);
    put_u32(&g, 3);
    put_u64(&g, 0); // tensors
    put_u64(&g, 0); // keys: `end` knows
    return g;
}

static void end(gguf *g)
{
    fseek(g->file, 16, SEEK_SET);
    put_u64(g, g->n_keys);
    assert_int_equal(fclose(g->file), 0);
}

// ---- from tokenizer.json

static struct vocabulary {
    const char *text[MAX_TOKENS];
    int32_t type[MAX_TOKENS];
    int n;
} vocabulary;

static void set_token(int64_t id, const char *text, int32_t type)
{
    assert_true(id >= 0 && id < MAX_TOKENS);
    vocabulary.text[id] = text;
    vocabulary.type[id] = type;
    if (vocabulary.n <= id) vocabulary.n = (int)id + 1;
}

/// Types as llama.cpp's converter gives them.
static void read_vocabulary(const json_t *json)
{
    const char *text;
    json_t *id;
    memset(&vocabulary, 0, sizeof vocabulary);
    json_object_foreach(json_object_get(json_object_get(json, "model"), "vocab"), text, id)
        set_token(json_integer_value(id), text, strlen(text) == 6 && !strncmp(text, "<0x", 3) ? BYTE : NORMAL);
    const json_t *added = json_object_get(json, "added_tokens");
    for (size_t k = 0; k < json_array_size(added); k++) {
        const json_t *one = json_array_get(added, k);
        text = json_string_value(json_object_get(one, "content"));
        const bool special = json_is_true(json_object_get(one, "special"));
        set_token(json_integer_value(json_object_get(one, "id")), text,
                  !strcmp(text, "<unk>") ? UNKNOWN
                  : special              ? CONTROL
                                         : USER_DEFINED);
    }
    for (int k = 0; k < vocabulary.n; k++)
        if (!vocabulary.text[k]) set_token(k, "[PAD]", UNUSED);
}

static void put_merges(gguf *g, const json_t *merges)
{
    char line[1024];
    put_array(g, "tokenizer.ggml.merges", STRING, json_array_size(merges));
    for (size_t k = 0; k < json_array_size(merges); k++) {
        const json_t *merge = json_array_get(merges, k);
        const char *text = json_string_value(merge);
        if (!text) {
            snprintf(line, sizeof line, "%s %s", json_string_value(json_array_get(merge, 0)),
                     json_string_value(json_array_get(merge, 1)));
            text = line;
        }
        put_text(g, text);
    }
}

/// Llama 2's scores, as its tokenizer.model has them: 0 to the bytes, then 259 - id, and -1e9 of spaces alone.
static void put_scores(gguf *g)
{
    put_array(g, "tokenizer.ggml.scores", F32, (uint64_t)vocabulary.n);
    for (int k = 0; k < vocabulary.n; k++) {
        const char *text = vocabulary.text[k];
        while (!strncmp(text, "\xe2\x96\x81", 3)) text += 3;
        const float score = !*text ? -1e9f : k < 259 ? 0 : (float)(259 - k);
        fwrite(&score, sizeof score, 1, g->file);
    }
}

static void write_gguf(const char *path, const json_t *json, const char *pre, const wt_tokenizer *real)
{
    gguf g = begin(path);
    read_vocabulary(json);
    text_key(&g, "tokenizer.ggml.model", pre ? "gpt2" : "llama");
    if (pre) text_key(&g, "tokenizer.ggml.pre", pre);
    put_array(&g, "tokenizer.ggml.tokens", STRING, (uint64_t)vocabulary.n);
    for (int k = 0; k < vocabulary.n; k++) put_text(&g, vocabulary.text[k]);
    put_array(&g, "tokenizer.ggml.token_type", I32, (uint64_t)vocabulary.n);
    fwrite(vocabulary.type, sizeof *vocabulary.type, (size_t)vocabulary.n, g.file);
    if (pre) put_merges(&g, json_object_get(json_object_get(json, "model"), "merges"));
    if (!pre) put_scores(&g);
    id_key(&g, "tokenizer.ggml.bos_token_id", wt_tokenizer_bos(real));
    id_key(&g, "tokenizer.ggml.eos_token_id", wt_tokenizer_eos(real));
    if (wt_tokenizer_chat_template(real)) text_key(&g, "tokenizer.chat_template", wt_tokenizer_chat_template(real));
    end(&g);
}

// ---- strings

static const char *some(const json_t *list, uint64_t *seed)
{
    const size_t n = json_array_size(list);
    return json_string_value(json_array_get(list, (size_t)((noise(seed) + 1) / 2 * (float)n) % n));
}

/// Words of many scripts, spaces, tokens of the vocabulary by name, and now and then a broken byte.
static void make_string(char *text, const json_t *corpus, uint64_t *seed)
{
    size_t at = 0;
    const int n = 1 + (int)((noise(seed) + 1) * 6);
    for (int k = 0; k < n; k++) {
        const float x = noise(seed);
        const char *part = x < 0.3f    ? some(json_object_get(corpus, "words"), seed)
                           : x < 0.7f  ? some(json_object_get(corpus, "spaces"), seed)
                           : x < 0.8f  ? vocabulary.text[(int)((noise(seed) + 1) / 2 * (float)(vocabulary.n - 1))]
                           : x < 0.97f ? some(json_object_get(corpus, "specials"), seed)
                                       : "\xff";
        if (at + strlen(part) + 1 >= MAX_TEXT) break;
        at += (size_t)snprintf(text + at, MAX_TEXT - at, "%s", part);
    }
}

static int encoded(const wt_tokenizer *t, const char *text, int32_t *ids)
{
    int n;
    assert_ok(wt_tokenizer_encode(t, text, strlen(text), true, ids, MAX_IDS, &n));
    return n;
}

static void compare(const char *name, const wt_tokenizer *got, const wt_tokenizer *want)
{
    static int32_t a[MAX_IDS], b[MAX_IDS];
    static char text[MAX_TEXT], back_a[8 * MAX_TEXT], back_b[8 * MAX_TEXT];
    json_t *corpus = json_load_file("tests/golden/tokenizer_corpus.json", 0, NULL);
    assert_non_null(corpus);
    uint64_t seed = 7;
    int64_t n_ids = 0;
    for (int k = 0; k < N_STRINGS; k++) {
        size_t length_a, length_b;
        make_string(text, corpus, &seed);
        // Llama 2's tokenizer.json finds its control tokens in the normalised text, as "_<s>" alone: GGUF cannot say so
        if (!strcmp(name, "llama2") && (strstr(text, "s>") || strstr(text, "<unk>"))) continue;
        const int n = encoded(got, text, a), m = encoded(want, text, b);
        for (int j = 0; j < n && j < m; j++)
            if (a[j] != b[j]) fail_msg("%s: \"%s\": id %d is %d, want %d", name, text, j, a[j], b[j]);
        assert_int_equal(n, m);
        assert_ok(wt_tokenizer_decode(got, a, n, false, back_a, sizeof back_a, &length_a));
        assert_ok(wt_tokenizer_decode(want, a, n, false, back_b, sizeof back_b, &length_b));
        assert_int_equal(length_a, length_b);
        assert_memory_equal(back_a, back_b, length_a);
        n_ids += n;
    }
    print_message("%-8s %d strings, %lld ids\n", name, N_STRINGS, (long long)n_ids);
    json_decref(corpus);
}

/// Ids, text and template of the file alone are those of the folder it was made from.
static void gives_the_ids_of_the_file_it_was_made_of(void **state)
{
    static const struct {
        const char *name, *pre;
    } cases[] = {{"gpt2", "gpt-2"}, {"phi-2", "phi-2"}, {"qwen3", "qwen2"}, {"llama2", NULL}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char relative[64];
        wt_tokenizer *real, *inside;
        snprintf(relative, sizeof relative, "tokenizers/%s/tokenizer.json", cases[k].name);
        const char *path = shared_data(relative);
        if (!path) {
            print_message("skipped: %s is not there\n", relative);
            skip();
        }
        json_t *json = json_load_file(path, 0, NULL);
        assert_non_null(json);
        char folder[1024];
        snprintf(folder, sizeof folder, "%.*s", (int)(strlen(path) - strlen("/tokenizer.json")), path);
        assert_ok(wt_tokenizer_open(folder, &real));
        write_gguf(test_path(state, "model.gguf"), json, cases[k].pre, real);
        assert_ok(wt_tokenizer_open(test_path(state, "model.gguf"), &inside));
        compare(cases[k].name, inside, real);
        assert_int_equal(wt_tokenizer_bos(inside), wt_tokenizer_bos(real));
        assert_int_equal(wt_tokenizer_eos(inside), wt_tokenizer_eos(real));
        const char *chat = wt_tokenizer_chat_template(real);
        if (chat) assert_string_equal(wt_tokenizer_chat_template(inside), chat);
        wt_tokenizer_close(inside);
        wt_tokenizer_close(real);
        json_decref(json);
    }
}

// ---- what is wrong

typedef struct small {
    const char *model, *pre, *merge;
    uint32_t tokens_kind, n_types;
} small;

/// Three tokens, "a", "b" and "ab".
static void write_small(const char *path, small s)
{
    gguf g = begin(path);
    if (s.model) text_key(&g, "tokenizer.ggml.model", s.model);
    if (s.pre) text_key(&g, "tokenizer.ggml.pre", s.pre);
    put_array(&g, "tokenizer.ggml.tokens", s.tokens_kind, 3);
    for (int k = 0; k < 3; k++)
        if (s.tokens_kind == STRING)
            put_text(&g, (const char *[]){"a", "b", "ab"}[k]);
        else
            put_u32(&g, 0);
    put_array(&g, "tokenizer.ggml.token_type", I32, s.n_types);
    for (uint32_t k = 0; k < s.n_types; k++) put_u32(&g, NORMAL);
    if (s.merge) {
        put_array(&g, "tokenizer.ggml.merges", STRING, 1);
        put_text(&g, s.merge);
    }
    end(&g);
}

static void names_what_is_wrong(void **state)
{
    static const struct {
        small file;
        wt_status status;
        const char *sentence; ///< after the path
    } cases[] = {
        {{NULL, "gpt-2", "a b", STRING, 3}, WT_ERR_UNSUPPORTED, ": tokenizer.ggml.model is \"\", want llama or gpt2"},
        {{"bert", NULL, NULL, STRING, 3}, WT_ERR_UNSUPPORTED, ": tokenizer.ggml.model is \"bert\", want llama or gpt2"},
        {{"gpt2", "tekken", "a b", STRING, 3},
         WT_ERR_UNSUPPORTED,
         ": tokenizer.ggml.pre is \"tekken\", want gpt-2, phi-2, qwen2, llama-bpe or smollm, or a tokenizer.json "
         "beside "
         "it"},
        {{"gpt2", "gpt-2", "a b", U32, 3}, WT_ERR_FORMAT, ": tokenizer.ggml.tokens is no list of 1..4194304 texts"},
        {{"gpt2", "gpt-2", "a b", STRING, 2}, WT_ERR_FORMAT, ": tokenizer.ggml.token_type is [2] i32, want [3] i32"},
        {{"gpt2", "gpt-2", "a c", STRING, 3}, WT_ERR_FORMAT, ": merge 0, \"a c\", is not two tokens that make a third"},
        {{"gpt2", "gpt-2", NULL, STRING, 3}, WT_ERR_FORMAT, ": tokenizer.ggml.merges is no list of texts"},
        {{"llama", NULL, NULL, STRING, 3}, WT_ERR_FORMAT, ": a vocabulary without tokenizer.ggml.scores or token_type"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char want[1200], path[1024];
        wt_tokenizer *t;
        snprintf(path, sizeof path, "%s", test_path(state, "small.gguf"));
        snprintf(want, sizeof want, "%s%s", path, cases[k].sentence);
        write_small(path, cases[k].file);
        assert_fails(wt_tokenizer_open(path, &t), cases[k].status, want);
        assert_null(t);
    }
    wt_tokenizer *t; // and one that is right
    int32_t ids[4];
    write_small(test_path(state, "small.gguf"), (small){"gpt2", "gpt-2", "a b", STRING, 3});
    assert_ok(wt_tokenizer_open(test_path(state, "small.gguf"), &t));
    assert_int_equal(encoded(t, "aba", ids), 2);
    assert_int_equal(ids[0], 2);
    assert_int_equal(ids[1], 0);
    wt_tokenizer_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gives_the_ids_of_the_file_it_was_made_of, test_folder_create,
                                        test_folder_remove),
        cmocka_unit_test_setup_teardown(names_what_is_wrong, test_folder_create, test_folder_remove),
    };
    return cmocka_run_group_tests_name("tokenizers of GGUF", tests, NULL, NULL);
}
