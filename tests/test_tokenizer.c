// Tokenizers against the ids of other implementations (golden/make_tokenizers.py), the vectors of ../shared/data, made
// up files with every part, and files that are wrong.
#include <warptone/tokenizer.h>

#include "support/audio_files.h"
#include "support/failing_alloc.h"
#include "support/testing.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 32, N_STRINGS = 10240, MAX_TEXT = 8192 };

// --- The strings of make_tokenizers.py ------------------------------------------------------------------------------

typedef struct draw {
    uint64_t state;
} draw;

static uint64_t next(draw *d, uint64_t n)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (d->state >> 33) % n;
}

typedef struct corpus {
    json_t *json, *words, *specials, *spaces, *ranges;
} corpus;

static corpus open_corpus(void)
{
    corpus c = {.json = json_load_file("tests/golden/tokenizer_corpus.json", 0, NULL)};
    assert_non_null(c.json);
    c.words = json_object_get(c.json, "words");
    c.specials = json_object_get(c.json, "specials");
    c.spaces = json_object_get(c.json, "spaces");
    c.ranges = json_object_get(c.json, "ranges");
    return c;
}

typedef struct text {
    char at[MAX_TEXT];
    size_t size;
} text;

static void add(text *t, const char *s)
{
    size_t n = strlen(s);
    assert_true(t->size + n < MAX_TEXT);
    memcpy(t->at + t->size, s, n + 1);
    t->size += n;
}

static void add_character(text *t, unsigned c)
{
    char s[5] = {(char)c};
    if (c >= 0x10000)
        snprintf(s, sizeof s, "%c%c%c%c", 0xf0 | c >> 18, 0x80 | (c >> 12 & 63), 0x80 | (c >> 6 & 63), 0x80 | (c & 63));
    else if (c >= 0x800)
        snprintf(s, sizeof s, "%c%c%c", 0xe0 | c >> 12, 0x80 | (c >> 6 & 63), 0x80 | (c & 63));
    else if (c >= 0x80)
        snprintf(s, sizeof s, "%c%c", 0xc0 | c >> 6, 0x80 | (c & 63));
    add(t, s);
}

static const char *pick(draw *d, const json_t *list)
{
    return json_string_value(json_array_get(list, next(d, json_array_size(list))));
}

static void add_range(text *t, draw *d, const json_t *ranges)
{
    const json_t *range = json_array_get(ranges, next(d, json_array_size(ranges)));
    unsigned low = (unsigned)json_integer_value(json_array_get(range, 0)),
             high = (unsigned)json_integer_value(json_array_get(range, 1));
    for (uint64_t n = 1 + next(d, 6); n; n--) add_character(t, low + (unsigned)next(d, high - low + 1));
}

static void add_repeated(text *t, const char *s, uint64_t n)
{
    for (; n; n--) add(t, s);
}

static void add_bytes(text *t, draw *d, unsigned low, unsigned count, unsigned most)
{
    for (uint64_t n = 1 + next(d, most); n; n--) add(t, (char[2]){(char)(low + next(d, count))});
}

static void add_part(text *t, draw *d, const corpus *c, bool specials)
{
    uint64_t kind = next(d, 16);
    if (kind < 5)
        add(t, pick(d, c->words));
    else if (kind < 7) {
        add(t, " ");
        add(t, pick(d, c->words));
    } else if (kind < 9)
        add_range(t, d, c->ranges);
    else if (kind < 11) {
        const char *space = pick(d, c->spaces);
        add_repeated(t, space, 1 + next(d, 3));
    } else if (kind == 11)
        add_repeated(t, " ", 1 + next(d, 40));
    else if (kind == 12)
        add_bytes(t, d, '0', 10, 9);
    else if (kind == 13)
        add_bytes(t, d, '!', 94, 8);
    else if (kind == 14)
        add_bytes(t, d, 128, 128, 3);
    else {
        const char *special = pick(d, c->specials);
        if (specials) add(t, special);
    }
}

static void next_string(text *t, draw *d, const corpus *c, bool specials)
{
    t->size = 0;
    t->at[0] = 0;
    for (uint64_t n = 1 + next(d, 12); n; n--) add_part(t, d, c, specials);
}

static uint32_t fnv(uint32_t hash, uint32_t value)
{
    for (int i = 0; i < 4; i++, value >>= 8) hash = (hash ^ (value & 255)) * 0x01000193u;
    return hash;
}

// --- Helpers --------------------------------------------------------------------------------------------------------

static wt_tokenizer *open_shared(const char *relative)
{
    const char *path = shared_data(relative);
    wt_tokenizer *t = NULL;
    if (!path) {
        print_message("skipped: no shared data\n");
        skip();
    }
    assert_ok(wt_tokenizer_open(path, &t));
    return t;
}

// A tokenizer.json of its own: {"model": {"type":"BPE", "vocab":.., "merges":..}, rest}
static wt_status open_text(void **state, const char *json, wt_tokenizer **t)
{
    const char *path = test_path(state, "tokenizer.json");
    test_spill(path, json, strlen(json));
    return wt_tokenizer_open(path, t);
}

static int encode(const wt_tokenizer *t, const char *s, bool special, int32_t ids[MAX_TEXT])
{
    int n = 0;
    assert_ok(wt_tokenizer_encode(t, s, strlen(s), special, ids, MAX_TEXT, &n));
    assert_true(n <= MAX_TEXT);
    return n;
}

static const char *decode(const wt_tokenizer *t, const int32_t *ids, int n)
{
    static char s[8 * MAX_TEXT];
    size_t length;
    assert_ok(wt_tokenizer_decode(t, ids, n, false, s, sizeof s, &length));
    assert_true(length < sizeof s);
    return s;
}

// --- Against other implementations ----------------------------------------------------------------------------------

// Column `column` of tokenizers.tsv: its file in the first line, then one hash a group.
static void check_column(const char *name, bool specials)
{
    size_t size;
    char *table = test_slurp("tests/golden/tokenizers.tsv", &size), *line = NULL, *rest = NULL;
    char path[256] = "";
    int column = 0;
    line = strtok_r(table, "\n", &rest);
    for (char *cell = line; cell; column++) {
        size_t n = strlen(name);
        if (!strncmp(cell, name, n) && cell[n] == '=') {
            snprintf(path, sizeof path, "%.*s", (int)strcspn(cell + n + 1, "\t"), cell + n + 1);
            break;
        }
        cell = strchr(cell, '\t');
        cell = cell ? cell + 1 : NULL;
    }
    if (!shared_data(path)) {
        free(table);
        print_message("skipped: no shared data\n");
        skip();
    }
    wt_tokenizer *t = open_shared(path);
    corpus c = open_corpus();
    draw d = {2026};
    text s;
    static int32_t ids[MAX_TEXT];
    for (int row = 0; row < N_STRINGS / GROUP; row++) {
        uint32_t hash = 0x811c9dc5;
        for (int i = 0; i < GROUP; i++) {
            next_string(&s, &d, &c, specials);
            int n = 0;
            assert_ok(wt_tokenizer_encode(t, s.at, s.size, true, ids, MAX_TEXT, &n));
            hash = fnv(hash, (uint32_t)n);
            for (int k = 0; k < n; k++) hash = fnv(hash, (uint32_t)ids[k]);
        }
        char *cell = strtok_r(NULL, "\n", &rest);
        assert_non_null(cell);
        for (int k = 0; k < column; k++) cell = strchr(cell, '\t') + 1;
        if (hash != strtoul(cell, NULL, 16))
            fail_msg("%s: the ids of row %d differ (make_tokenizers.py ../shared/data --show %s %d)", name, row, name,
                     row);
    }
    wt_tokenizer_close(t);
    json_decref(c.json);
    free(table);
}

#define COLUMN(name, specials)                                                                                         \
    static void ten_thousand_strings_##name(void **state)                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        check_column(#name, specials);                                                                                 \
    }
COLUMN(gpt2, true)
COLUMN(llama2, true)
COLUMN(llama2_spm, false)
COLUMN(llama3, true)
COLUMN(mistral, false)
COLUMN(phi2, true)
COLUMN(qwen3, true)
COLUMN(whisper, true)
COLUMN(whisper_v3, true)
COLUMN(tinystories, true)
COLUMN(stories260k, false)

// The ids of the first strings, and the texts they decode to: whole, and token by token.
static void check_hashes(const char *name, const wt_tokenizer *t, const corpus *c, const json_t *recorded)
{
    enum { N_PARTS = 640 };
    static int32_t ids[MAX_TEXT];
    uint32_t id_hash = 0x811c9dc5, text_hash = 0x811c9dc5;
    draw d = {2026};
    text s;
    for (int i = 0; i < N_PARTS; i++) {
        int n = 0;
        next_string(&s, &d, c, true);
        assert_ok(wt_tokenizer_encode(t, s.at, s.size, true, ids, MAX_TEXT, &n));
        id_hash = fnv(id_hash, (uint32_t)n);
        for (int k = 0; k < n; k++) id_hash = fnv(id_hash, (uint32_t)ids[k]);
        for (const char *p = decode(t, ids, n); *p; p++) text_hash = fnv(text_hash, (unsigned char)*p);
    }
    if (id_hash != strtoul(json_string_value(json_object_get(recorded, "ids")), NULL, 16))
        fail_msg("%s: other ids", name);
    if (text_hash != strtoul(json_string_value(json_object_get(recorded, "text")), NULL, 16))
        fail_msg("%s: other texts", name);
}

// A case's parts around the small model, as tokenizer.json in the test's folder.
static void write_case(void **state, const json_t *all, const json_t *c)
{
    json_t *file = json_deep_copy(json_object_get(c, "parts")), *model = json_deep_copy(json_object_get(all, "model"));
    json_object_update(model, json_object_get(c, "model"));
    json_object_set_new(file, "model", model);
    assert_int_equal(json_dump_file(file, test_path(state, "tokenizer.json"), 0), 0);
    json_decref(file);
}

static void every_part_is_as_recorded(void **state)
{
    json_t *all = json_load_file("tests/golden/tokenizer_parts.json", 0, NULL), *cases = json_object_get(all, "cases");
    corpus c = open_corpus();
    assert_true(json_array_size(cases) > 30);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *one = json_array_get(cases, i);
        const char *file = json_string_value(json_object_get(one, "file")), *path = file ? shared_data(file) : NULL;
        wt_tokenizer *t = NULL;
        if (file && !path) continue; // no shared data
        if (!file) write_case(state, all, one);
        assert_ok(wt_tokenizer_open(file ? path : test_path(state, "tokenizer.json"), &t));
        check_hashes(json_string_value(json_object_get(one, "name")), t, &c, one);
        wt_tokenizer_close(t);
    }
    json_decref(c.json);
    json_decref(all);
}

// --- The vectors of llama.cpp ---------------------------------------------------------------------------------------

static void check_vectors(const char *name, const char *vocabulary)
{
    char relative[128];
    size_t size, out_size;
    snprintf(relative, sizeof relative, "tokenizers/truth/ggml-vocab-%s.gguf.inp", name);
    wt_tokenizer *t = open_shared(vocabulary);
    char *in = test_slurp(shared_data(relative), &size);
    snprintf(relative, sizeof relative, "tokenizers/truth/ggml-vocab-%s.gguf.out", name);
    char *out = test_slurp(shared_data(relative), &out_size), *want = out;
    static const char gap[] = "\n__ggml_vocab_test__\n";
    static int32_t ids[MAX_TEXT];
    int met = 0;
    in[size] = out[out_size] = 0;
    for (char *s = in, *end; s; s = end ? end + sizeof gap - 1 : NULL, met++) {
        int n = 0;
        end = strstr(s, gap);
        if (!end) break;
        assert_ok(wt_tokenizer_encode(t, s, (size_t)(end - s), false, ids, MAX_TEXT, &n));
        for (int i = 0; i < n; i++) {
            long id = strtol(want, &want, 10);
            if (id != ids[i]) fail_msg("%s: text %d, id %d is %d, want %ld", name, met, i, (int)ids[i], id);
        }
        if (want[strspn(want, " ")] != '\n') fail_msg("%s: text %d has %d ids, want more", name, met, n);
        want = strchr(want, '\n') + 1;
    }
    assert_true(met > 40);
    free(in);
    free(out);
    wt_tokenizer_close(t);
}

static void gives_the_vectors_of_llama_cpp(void **state)
{
    (void)state;
    check_vectors("gpt-2", "tokenizers/gpt2");
    check_vectors("llama-spm", "tokenizers/llama2");
    check_vectors("llama-spm", "llm/llama2-tokenizer.model");
    check_vectors("llama-bpe", "tokenizers/llama3");
    check_vectors("qwen2", "tokenizers/qwen3"); // the same vocabulary and merges
}

// --- Streams, folders, questions ------------------------------------------------------------------------------------

static bool whole_characters(const char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        int more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
        if ((c & 0xc0) == 0x80) return false;
        for (; more; more--)
            if (((unsigned char)*++s & 0xc0) != 0x80) return false;
    }
    return true;
}

static void check_stream(const wt_tokenizer *t, const char *s)
{
    static int32_t ids[MAX_TEXT];
    char all[8 * MAX_TEXT] = "", *at = all;
    wt_detokenizer *stream = NULL;
    int n = encode(t, s, false, ids);
    assert_ok(wt_detokenizer_create(t, false, &stream));
    for (int i = 0; i < n; i++) {
        const char *part = wt_detokenizer_push(stream, ids[i]);
        assert_true(whole_characters(part));
        at = stpcpy(at, part);
    }
    stpcpy(at, wt_detokenizer_flush(stream));
    assert_string_equal(all, decode(t, ids, n));
    wt_detokenizer_destroy(stream);
}

static void streams_whole_characters(void **state)
{
    static const char *const files[] = {"tokenizers/gpt2", "tokenizers/llama2/tokenizer.json", "tokenizers/qwen3",
                                        "llm/stories260K/tok512.bin"};
    (void)state;
    corpus c = open_corpus();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        wt_tokenizer *t = open_shared(files[i]);
        draw d = {7};
        text s;
        check_stream(t, " leading \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7 "
                        "\xe4\xbd\xa0\xe5\xa5\xbd\xf0\x9f\x98\x80\xf0\x9f\x98\x80");
        for (int k = 0; k < 200; k++) {
            next_string(&s, &d, &c, true);
            if (!strstr(s.at, "<0x")) check_stream(t, s.at); // a byte token of the text ends its run early
        }
        wt_tokenizer_close(t);
    }
    json_decref(c.json);
}

static void flushes_a_broken_character(void **state)
{
    (void)state;
    wt_tokenizer *t = open_shared("tokenizers/gpt2");
    wt_detokenizer *stream = NULL;
    static int32_t ids[MAX_TEXT];
    assert_true(encode(t, "\xf0\x9f\x98\x80", false, ids) > 1);
    assert_ok(wt_detokenizer_create(t, false, &stream));
    assert_string_equal(wt_detokenizer_push(stream, ids[0]), "");
    assert_string_equal(wt_detokenizer_flush(stream), "\xef\xbf\xbd");
    assert_string_equal(wt_detokenizer_push(stream, ids[0]), "");
    assert_string_equal(wt_detokenizer_push(stream, wt_tokenizer_id(t, "a")), "\xef\xbf\xbd"
                                                                              "a");
    wt_detokenizer_destroy(stream);
    wt_tokenizer_close(t);
}

static void reads_the_files_beside(void **state)
{
    (void)state;
    wt_tokenizer *t = open_shared("tokenizers/qwen3");
    assert_int_equal(wt_tokenizer_size(t), 151669);
    assert_int_equal(wt_tokenizer_eos(t), wt_tokenizer_id(t, "<|im_end|>"));
    assert_int_equal(wt_tokenizer_bos(t), -1);
    assert_true(wt_tokenizer_is_special(t, 151645));
    assert_false(wt_tokenizer_is_special(t, 0));
    assert_non_null(strstr(wt_tokenizer_chat_template(t), "enable_thinking"));
    assert_null(wt_tokenizer_token(t, 151669));
    assert_null(wt_tokenizer_token(t, -1));
    wt_tokenizer_close(t);
    t = open_shared("tokenizers/llama3");
    assert_string_equal(wt_tokenizer_token(t, wt_tokenizer_bos(t)), "<|begin_of_text|>");
    assert_string_equal(wt_tokenizer_token(t, 128009), "<|eot_id|>");
    wt_tokenizer_close(t);
}

static void long_text_costs_little(void **state) // a merge loop of n^2 steps would take minutes
{
    enum { N = 1 << 20 };
    (void)state;
    wt_tokenizer *t = open_shared("tokenizers/llama2");
    char *s = malloc(N);
    int n = 0;
    assert_non_null(s);
    for (int i = 0; i < N; i++) s[i] = "abcdefgh tion the"[i * 7 % 17];
    assert_ok(wt_tokenizer_encode(t, s, N, false, NULL, 0, &n));
    assert_true(n > N / 20 && n < N);
    free(s);
    wt_tokenizer_close(t);
}

// --- Files that are wrong -------------------------------------------------------------------------------------------

#define VOCAB "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2}"

static void names_what_is_wrong(void **state)
{
    static const struct {
        const char *json;
        wt_status status;
        const char *part;
    } wrong[] = {
        {"{\"model\":{\"type\":\"Unigram\"}}", WT_ERR_UNSUPPORTED, "model \"Unigram\" is not known"},
        {"{}", WT_ERR_FORMAT, "the file without a model"},
        {"{\"model\":{}}", WT_ERR_FORMAT, "the model without a vocab object"},
        {"{\"model\":{" VOCAB "}}", WT_ERR_FORMAT, "the model without a list of merges"},
        {"{\"model\":{" VOCAB ",\"merges\":[\"a c\"]}}", WT_ERR_FORMAT, "merge 0, \"a c\", is not two tokens"},
        {"{\"model\":{" VOCAB ",\"merges\":[[\"a\"]]}}", WT_ERR_FORMAT, "merge 0 is not two texts"},
        {"{\"model\":{\"vocab\":{\"a\":99999999},\"merges\":[]}}", WT_ERR_FORMAT, "the id of token \"a\""},
        {"{\"model\":{\"vocab\":{\"a\":-1},\"merges\":[]}}", WT_ERR_FORMAT, "the id of token \"a\""},
        {"{\"normalizer\":{\"type\":\"Nmt\"},\"model\":{" VOCAB ",\"merges\":[]}}", WT_ERR_UNSUPPORTED,
         "normalizer \"Nmt\" is not known"},
        {"{\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":\"(\"}},\"model\":"
         "{" VOCAB ",\"merges\":[]}}",
         WT_ERR_FORMAT, "regular expression"},
        {"{\"decoder\":{\"type\":\"CTC\"},\"model\":{" VOCAB ",\"merges\":[]}}", WT_ERR_UNSUPPORTED,
         "decoder \"CTC\" is not known"},
        {"{\"added_tokens\":[{\"content\":\"x\"}],\"model\":{" VOCAB ",\"merges\":[]}}", WT_ERR_FORMAT,
         "an added token without its content and id"},
        {"{\"model\":", WT_ERR_FORMAT, "JSON line 1"},
        {"AAAA x", WT_ERR_FORMAT, "byte 0 is no line of base64 and a rank"},
        {"", WT_ERR_FORMAT, "no tokens"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        wt_tokenizer *t = NULL;
        wt_status status = open_text(state, wrong[i].json, &t);
        if (status != wrong[i].status || !strstr(wt_last_error(), wrong[i].part))
            fail_msg("%s: status %d, \"%s\", want %d and \"%s\"", wrong[i].json, (int)status, wt_last_error(),
                     (int)wrong[i].status, wrong[i].part);
        assert_null(t);
    }
    wt_tokenizer *t = NULL;
    assert_int_equal(wt_tokenizer_open("/no/such/file", &t), WT_ERR_FILE);
    assert_int_equal(wt_tokenizer_open("tests", &t), WT_ERR_FORMAT); // as a folder without weights
    assert_string_equal(wt_last_error(),
                        "tests holds no tokenizer.json, tokenizer.model, tokenizer.bin or one *.gguf");
}

static void refuses_deep_nesting(void **state)
{
    char json[65536] = "{\"model\":{" VOCAB ",\"merges\":[]},\"normalizer\":";
    wt_tokenizer *t = NULL;
    for (int i = 0; i < 40; i++) strcat(json, "{\"type\":\"Sequence\",\"normalizers\":[");
    strcat(json, "{\"type\":\"NFC\"}");
    for (int i = 0; i < 40; i++) strcat(json, "]}");
    strcat(json, "}");
    assert_int_equal(open_text(state, json, &t), WT_ERR_FORMAT);
    strcpy(json, "{\"model\":");
    memset(json + 9, '[', 60000);
    assert_int_equal(open_text(state, json, &t), WT_ERR_FORMAT);
}

static wt_status open_and_use(void *user)
{
    static const char s[] = "ab abba<s>"; // ASCII: utf8proc_map, for the rest, does without its last realloc
    int32_t ids[32];
    int n = 0;
    char back[64];
    size_t length;
    wt_tokenizer *t = NULL;
    wt_status status = wt_tokenizer_open(user, &t);
    if (!status) status = wt_tokenizer_encode(t, s, sizeof s - 1, true, ids, 32, &n);
    if (!status) status = wt_tokenizer_decode(t, ids, n, false, back, sizeof back, &length);
    wt_tokenizer_close(t);
    return status;
}

static void nothing(void *user) { (void)user; }

static void survives_failing_allocations(void **state)
{
    char path[256];
    static const char small[] = "{\"model\":{\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"<s>\":3},\"merges\":[\"a "
                                "b\"]},\"added_tokens\":[{\"id\":3,\"content\":\"<s>\",\"special\":true}],"
                                "\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":\"ByteLevel\"},"
                                "\"decoder\":{\"type\":\"ByteLevel\"}}";
    snprintf(path, sizeof path, "%s", test_path(state, "tokenizer.json"));
    test_spill(path, small, sizeof small - 1);
    assert_true(assert_survives_failing_alloc(open_and_use, nothing, path) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_thousand_strings_gpt2),
        cmocka_unit_test(ten_thousand_strings_llama2),
        cmocka_unit_test(ten_thousand_strings_llama2_spm),
        cmocka_unit_test(ten_thousand_strings_llama3),
        cmocka_unit_test(ten_thousand_strings_mistral),
        cmocka_unit_test(ten_thousand_strings_phi2),
        cmocka_unit_test(ten_thousand_strings_qwen3),
        cmocka_unit_test(ten_thousand_strings_whisper),
        cmocka_unit_test(ten_thousand_strings_whisper_v3),
        cmocka_unit_test(ten_thousand_strings_tinystories),
        cmocka_unit_test(ten_thousand_strings_stories260k),
        cmocka_unit_test(every_part_is_as_recorded),
        cmocka_unit_test(gives_the_vectors_of_llama_cpp),
        cmocka_unit_test(streams_whole_characters),
        cmocka_unit_test(flushes_a_broken_character),
        cmocka_unit_test(reads_the_files_beside),
        cmocka_unit_test(long_text_costs_little),
        cmocka_unit_test(names_what_is_wrong),
        cmocka_unit_test(refuses_deep_nesting),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, test_folder_create, test_folder_remove);
}
