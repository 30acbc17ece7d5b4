// Model files: safetensors, shards, folders, and real ones. GGUF and llama2.c: test_weights_gguf.c.
#include "support/audio_files.h"
#include "support/failing_alloc.h"
#include "support/testing.h"
#include "support/weights_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warptone/weights.h>

// ---- safetensors

static const char three[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                            "\"b\":{\"dtype\":\"I16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
                            "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
                            "\"none\":{\"dtype\":\"U8\",\"shape\":[0,7],\"data_offsets\":[4,4]}}  ";

static void safetensors_open(void **state)
{
    bytes b;
    safetensors_bytes(&b, three, 16);
    const char *path = test_path(state, "three.safetensors");
    test_spill(path, b.at, b.n);
    wt_weights *w = weights_opened(path);
    assert_string_equal(wt_weights_format(w), "safetensors");
    assert_int_equal(wt_weights_count(w), 3);
    assert_string_equal(wt_weights_name(w, 0), "a"); // as they lie in the file
    assert_string_equal(wt_weights_name(w, 1), "none");
    assert_string_equal(wt_weights_name(w, 2), "b");
    assert_string_equal(wt_weights_file(w, 2), "three.safetensors");
    const wt_tensor *t = wt_weights_find(w, "b");
    assert_ptr_equal(t, wt_weights_at(w, 2));
    char text[96];
    assert_string_equal(wt_tensor_describe(t, text), "[2][3] I16");
    float x[6];
    wt_tensor_to_f32(t, 0, 6, x);
    assert_true(x[0] == 4 + 256 * 5 && x[5] == 14 + 256 * 15);
    assert_int_equal(wt_tensor_bytes(wt_weights_find(w, "none")), 0);
    assert_null(wt_weights_find(w, "c"));
    assert_null(wt_weights_find(w, ""));
    assert_int_equal(wt_weights_metadata_count(w), 1);
    assert_string_equal(wt_weights_metadata_key(w, 0), "format");
    assert_string_equal(wt_weights_metadata(w, "format"), "pt");
    assert_null(wt_weights_metadata(w, "a"));
    wt_weights_close(w);
}

static void a_shared_tensor_is_found_by_both_names(void **state)
{
    bytes b;
    safetensors_bytes(&b,
                      "{\"__metadata__\":{\"embed\":\"head\",\"format\":\"pt\",\"x\":\"embed\"},"
                      "\"head\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
                      8);
    const char *path = test_path(state, "shared.safetensors");
    test_spill(path, b.at, b.n);
    wt_weights *w = weights_opened(path);
    wt_tensor t;
    assert_int_equal(wt_weights_count(w), 1);
    assert_ok(wt_weights_get(w, "embed", 1, (const int64_t[]){2}, &t));
    assert_ptr_equal(t.data, wt_weights_find(w, "head")->data);
    assert_null(wt_weights_find(w, "format"));
    assert_null(wt_weights_find(w, "x")); // one step
    wt_weights_close(w);
}

static void get_names_what_it_met_and_wanted(void **state)
{
    bytes b;
    safetensors_bytes(&b, three, 16);
    const char *path = test_path(state, "three.safetensors");
    test_spill(path, b.at, b.n);
    wt_weights *w = weights_opened(path);
    wt_tensor t;
    assert_ok(wt_weights_get(w, "b", 2, (const int64_t[]){2, 3}, &t));
    assert_ptr_equal(t.data, wt_weights_find(w, "b")->data);
    assert_fails(wt_weights_get(w, "b", 2, (const int64_t[]){3, 2}, &t), WT_ERR_FORMAT, "b is [2][3], want [3][2]");
    assert_fails(wt_weights_get(w, "b", 1, (const int64_t[]){6}, &t), WT_ERR_FORMAT, "b is [2][3], want [6]");
    assert_int_equal(wt_weights_get(w, "c", 1, (const int64_t[]){6}, &t), WT_ERR_NOT_FOUND);
    assert_non_null(strstr(wt_last_error(), "three.safetensors: tensor c [6] is missing"));
    wt_weights_close(w);
}

#define TENSOR(name, dtype, shape, offsets)                                                                            \
    "{\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void bad_safetensors_are_refused(void **state)
{
    static const struct {
        const char *header;
        int n_data;
        wt_status status;
        const char *part;
    } cases[] = {
        {TENSOR("a", "F32", "[2]", "[0,8]"), 7, WT_ERR_FORMAT, "tensor a lies at 0 to 8, want it within the 7 bytes"},
        {TENSOR("a", "F32", "[2]", "[0,8]"), 9, WT_ERR_FORMAT, "the last 1 bytes belong to no tensor"},
        {TENSOR("a", "F32", "[2]", "[4,12]"), 12, WT_ERR_FORMAT,
         "bytes 0 to 4 of the data, before tensor a, belong to no tensor"},
        {TENSOR("a", "F32", "[2]", "[0,4]"), 4, WT_ERR_FORMAT, "tensor a has 4 bytes, want 8 for [2] F32"},
        {TENSOR("a", "F32", "[2]", "[8,0]"), 8, WT_ERR_FORMAT, "tensor a lies at 8 to 0, want it within"},
        {TENSOR("a", "F32", "[2]", "[-8,0]"), 8, WT_ERR_FORMAT, "tensor a lies at -8 to 0, want it within"},
        {TENSOR("a", "F32", "[-2]", "[0,8]"), 8, WT_ERR_FORMAT, "tensor a has a dimension of -2, want 0 or more"},
        {TENSOR("a", "F32", "[4294967296,4294967296]", "[0,8]"), 8, WT_ERR_FORMAT,
         "tensor a has more elements than a file can hold: [4294967296][4294967296] F32"},
        {TENSOR("a", "F32", "[0,4294967296,4294967296]", "[0,0]"), 0, WT_ERR_FORMAT, "more elements than a file"},
        {TENSOR("a", "F32", "[9223372036854775807]", "[0,8]"), 8, WT_ERR_FORMAT, "more elements than a file can hold"},
        {TENSOR("a", "F32", "[9223372036854775808]", "[0,8]"), 8, WT_ERR_FORMAT, "too big integer"},
        {TENSOR("a", "F32", "[2.0]", "[0,8]"), 8, WT_ERR_FORMAT,
         "dimension 0 of \"shape\" is a real number, want an integer"},
        {TENSOR("a", "F32", "2", "[0,8]"), 8, WT_ERR_FORMAT, "\"shape\" is an integer, want an array of integers"},
        {TENSOR("a", "F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]"), 8, WT_ERR_FORMAT, "has 9 dimensions, want 8 or less"},
        {TENSOR("a", "F32", "[2]", "[0]"), 8, WT_ERR_FORMAT, "\"data_offsets\" is an array, want an array of two"},
        {TENSOR("a", "F32", "[2]", "[0,8.5]"), 8, WT_ERR_FORMAT, "want an array of two integers"},
        {TENSOR("a", "F32", "[2]", "null"), 8, WT_ERR_FORMAT, "\"data_offsets\" is null, want an array of two"},
        {TENSOR("a", "F33", "[2]", "[0,8]"), 8, WT_ERR_UNSUPPORTED, "tensor a is of type \"F33\", want F64, F32"},
        {TENSOR("a", "Q8_0", "[32]", "[0,34]"), 34, WT_ERR_UNSUPPORTED, "tensor a is of type \"Q8_0\", want F64"},
        {"{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, WT_ERR_FORMAT, "\"dtype\" is nothing, want a string"},
        {"{\"a\":[1,2]}", 8, WT_ERR_FORMAT, "tensor a is an array, want an object"},
        {"{\"__metadata__\":{\"k\":1}}", 0, WT_ERR_FORMAT, "\"__metadata__\": \"k\" is an integer, want a string"},
        {"{\"__metadata__\":[]}", 0, WT_ERR_FORMAT, "\"__metadata__\" is an array, want an object"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[0,5]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
         8, WT_ERR_FORMAT, "tensor b begins at byte 4 of the data, within a, which ends at 5"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
         8, WT_ERR_FORMAT, "duplicate object key"},
        {"{\"a\":", 8, WT_ERR_FORMAT, "JSON line 1 column"},
        {"[]", 0, WT_ERR_FORMAT, "the header does not begin with {"},
        {"", 8, WT_ERR_FORMAT, "the header does not begin with {"},
        {"{\"\\u0000\":1}", 0, WT_ERR_FORMAT, "JSON line 1"},
        {"{\"\xff\":1}", 0, WT_ERR_FORMAT, "JSON line 1"},
    };
    const char *path = test_path(state, "bad.safetensors");
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        bytes b;
        safetensors_bytes(&b, cases[k].header, (size_t)cases[k].n_data);
        test_spill(path, b.at, b.n);
        weights_refused(path, cases[k].status, cases[k].part);
    }
}

static void impossible_headers_are_refused(void **state)
{
    static const uint64_t lengths[] = {9, 1000000, 100000001, 1ull << 32, 1ull << 63, UINT64_MAX, UINT64_MAX - 7};
    const char *path = test_path(state, "bad.safetensors");
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        bytes b = {.n = 0};
        put_u64(&b, lengths[k]);
        put(&b, "{}      ", 8);
        test_spill(path, b.at, b.n);
        weights_refused(path, WT_ERR_FORMAT, "bytes, want 8 or less: not safetensors, or cut off");
    }
    test_spill(path, "", 0);
    weights_refused(path, WT_ERR_FORMAT, "is empty");
    test_spill(path, "GG", 2);
    weights_refused(path, WT_ERR_FORMAT, "has 2 bytes, want the 8 of safetensors' header length");
}

static void deep_nesting_is_refused(void **state)
{
    const uint64_t depth = 1 << 20;
    unsigned char *file = malloc(8 + depth);
    assert_non_null(file);
    memcpy(file, &depth, 8);
    for (int kind = 0; kind < 2; kind++) {
        memset(file + 8, '[', depth);
        memcpy(file + 8, "{\"a\":", 5);
        for (size_t k = 13; kind && k + 5 <= 8 + depth; k += 5) memcpy(file + k, "{\"a\":", 5);
        const char *path = test_path(state, "deep.safetensors");
        test_spill(path, file, 8 + depth);
        weights_refused(path, WT_ERR_FORMAT, "maximum parsing depth reached");
    }
    free(file);
}

static void damaged_safetensors_do_no_harm(void **state)
{
    bytes b;
    safetensors_bytes(&b, three, 16);
    weights_damage(test_path(state, "damaged.safetensors"), &b);
}

// ---- shards

#define INDEX(map) "{\"metadata\":{\"total_size\":12},\"weight_map\":" map "}"

static void spill_shards(void **state, const char *index)
{
    bytes b;
    safetensors_bytes(&b, TENSOR("a", "F32", "[2]", "[0,8]"), 8);
    test_spill(test_path(state, "model-1.safetensors"), b.at, b.n);
    safetensors_bytes(&b, TENSOR("b", "U8", "[4]", "[0,4]"), 4);
    test_spill(test_path(state, "model-2.safetensors"), b.at, b.n);
    test_spill(test_path(state, "model.safetensors.index.json"), index, strlen(index));
}

static void shards_are_one_model(void **state)
{
    spill_shards(state, INDEX("{\"b\":\"model-2.safetensors\",\"a\":\"model-1.safetensors\"}"));
    for (int whole = 0; whole < 2; whole++) {
        wt_weights *w = weights_opened(whole ? *state : test_path(state, "model.safetensors.index.json"));
        assert_int_equal(wt_weights_count(w), 2);
        assert_string_equal(wt_weights_name(w, 0), "a");
        assert_string_equal(wt_weights_file(w, 1), "model-2.safetensors");
        assert_int_equal(((const unsigned char *)wt_weights_find(w, "b")->data)[3], 3);
        wt_weights_close(w);
    }
}

static void bad_indices_are_refused(void **state)
{
    static const struct {
        const char *index;
        wt_status status;
        const char *part;
    } cases[] = {
        {INDEX("{\"a\":\"model-1.safetensors\",\"b\":\"model-3.safetensors\"}"), WT_ERR_NOT_FOUND,
         "model-3.safetensors is missing: the index of shards names it"},
        {INDEX("{\"a\":\"model-1.safetensors\",\"b\":\"model-1.safetensors\"}"), WT_ERR_FORMAT,
         "tensor b is not in model-1.safetensors, as the index says"},
        {INDEX("{\"b\":\"model-1.safetensors\",\"a\":\"model-2.safetensors\"}"), WT_ERR_FORMAT,
         "tensor a lies in model-1.safetensors, the index says model-2.safetensors"},
        {INDEX("{\"a\":\"../model-1.safetensors\"}"), WT_ERR_FORMAT,
         "tensor a lies in ../model-1.safetensors, want the name of a file beside the index"},
        {INDEX("{\"a\":\"\"}"), WT_ERR_FORMAT, "want the name of a file beside the index"},
        {INDEX("{\"a\":1}"), WT_ERR_FORMAT, "tensor a lies in an integer, want the name of a file"},
        {INDEX("{\"a\":\".\"}"), WT_ERR_FILE, "is not a regular file"},
        {INDEX("{}"), WT_ERR_FORMAT, "\"weight_map\" is empty, want an object"},
        {INDEX("[]"), WT_ERR_FORMAT, "\"weight_map\" is an array, want an object"},
        {"{}", WT_ERR_FORMAT, "\"weight_map\" is nothing, want an object"},
        {"[]", WT_ERR_FORMAT, "the JSON is an array, want an object"},
        {"{", WT_ERR_FORMAT, "JSON line 1"},
        {"", WT_ERR_FORMAT, "JSON line 1"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        spill_shards(state, cases[k].index);
        weights_refused(*state, cases[k].status, cases[k].part);
    }
}

static void a_tensor_in_two_shards_is_refused(void **state)
{
    bytes b;
    spill_shards(state, INDEX("{\"a\":\"model-1.safetensors\",\"c\":\"model-2.safetensors\"}"));
    safetensors_bytes(&b,
                      "{\"c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                      "\"d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
                      2);
    test_spill(test_path(state, "model-2.safetensors"), b.at, b.n);
    safetensors_bytes(&b,
                      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                      "\"d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
                      2);
    test_spill(test_path(state, "model-1.safetensors"), b.at, b.n);
    weights_refused(*state, WT_ERR_FORMAT,
                    "tensor d is there twice, in model-1.safetensors and in model-2.safetensors");
}

// ---- files and folders

static void a_folder_says_what_it_lacks(void **state)
{
    bytes b;
    gguf_small(&b, 3);
    weights_refused(*state, WT_ERR_NOT_FOUND,
                    "has no weights, want model.safetensors, model.safetensors.index.json or one");
    test_spill(test_path(state, "one.gguf"), b.at, b.n);
    wt_weights_close(weights_opened(*state));
    test_spill(test_path(state, "two.gguf"), b.at, b.n);
    weights_refused(*state, WT_ERR_NOT_FOUND, "has 2 files *.gguf, want one: name the file");
    weights_refused(test_path(state, "three.gguf"), WT_ERR_FILE, "three.gguf: No such file or directory");
    wt_weights_close(NULL);
}

static void check_notices_changed_files(void **state)
{
    bytes b;
    safetensors_bytes(&b, three, 16);
    const char *path = test_path(state, "model.safetensors"), *other = test_path(state, "other");
    test_spill(path, b.at, b.n);
    test_spill(other, b.at, b.n);
    wt_weights *w = weights_opened(path);
    assert_ok(wt_weights_check(w));
    assert_int_equal(rename(other, path), 0); // the old file stays with those who have it open
    assert_ok(wt_weights_check(w));
    wt_weights_close(w);
    w = weights_opened(path);
    assert_int_equal(truncate(path, 20), 0);
    assert_int_equal(wt_weights_check(w), WT_ERR_FILE);
    assert_non_null(strstr(wt_last_error(), "has 20 bytes, had "));
    wt_weights_close(w);
}

static wt_status open_path(void *user)
{
    void **both = user;
    return wt_weights_open(both[0], (wt_weights **)&both[1]);
}

static void close_path(void *user) { wt_weights_close(((void **)user)[1]); }

static void opening_survives_failing_allocations(void **state)
{
    bytes b;
    void *both[2] = {(void *)test_path(state, "small.gguf"), NULL};
    gguf_small(&b, 3);
    test_spill(both[0], b.at, b.n);
    assert_survives_failing_alloc(open_path, close_path, both);
    spill_shards(state, INDEX("{\"b\":\"model-2.safetensors\",\"a\":\"model-1.safetensors\"}"));
    both[0] = *state;
    assert_survives_failing_alloc(open_path, close_path, both);
}

// ---- files of the formats' own packages (tests/golden/make_weights.py)

static const char *golden_file(const char *name)
{
    static char path[4096];
    const char *folder = getenv("WARPTONE_TEST_GOLDEN");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "tests/golden", name);
    return path;
}

/// Element n is n / 4 - 3, within `bound`.
static void check_ramp(const wt_weights *w, const char *name, const char *described, double bound)
{
    char text[96];
    float x[256];
    const wt_tensor *t = wt_weights_find(w, name);
    assert_non_null(t);
    assert_string_equal(wt_tensor_describe(t, text), described);
    wt_tensor_to_f32(t, 0, wt_tensor_elements(t), x);
    for (int64_t n = 0; n < wt_tensor_elements(t); n++) assert_true(fabs((double)x[n] - ((double)n / 4 - 3)) <= bound);
}

static void files_of_other_writers_open(void **state)
{
    (void)state;
    wt_weights *w = weights_opened(golden_file("weights.gguf"));
    check_ramp(w, "token_embd.weight", "[3][32] F16", 0);
    check_ramp(w, "output_norm.weight", "[32] F32", 0);
    check_ramp(w, "blk.0.attn_q.weight", "[2][32] BF16", 0);
    check_ramp(w, "blk.0.attn_k.weight", "[2][64] Q8_0", 28.75 / 127); // a step of the largest block, scale in f16
    assert_string_equal(wt_weights_metadata(w, "qwen3.attention.layer_norm_rms_epsilon"), "1e-06");
    assert_string_equal(wt_weights_metadata(w, "qwen3.rope.freq_base"), "1000000");
    wt_weights_close(w);
    w = weights_opened(golden_file("weights.safetensors"));
    assert_int_equal(wt_weights_count(w), 5);
    check_ramp(w, "f16", "[3][5] F16", 0);
    check_ramp(w, "f32", "[2][2][2] F32", 0);
    check_ramp(w, "scalar", "[] F32", 0);
    check_ramp(w, "empty", "[0][4] F32", 0);
    check_ramp(w, "i8", "[4] I8", 0.75); // cut to integers
    wt_weights_close(w);
}

// ---- real files

static void real_models_open(void **state)
{
    (void)state;
    static const struct {
        const char *path, *format, *tensor;
        int n;
        int64_t n_elements; // of all tensors
        int64_t shape[2];
    } cases[] = {
        {"llm/TinyStories-656K/models/story",
         "safetensors",
         "model.layers.1.mlp.up_proj.weight",
         20,
         656000,
         {384, 128}},
        {"llm/stories260K/stories260K.bin", "llama2.c", "model.layers.4.mlp.gate_proj.weight", 47, 260032, {172, 64}},
        {"whisper/digits", "safetensors", "model.encoder.layers.0.fc1.weight", 167, 8818560, {512, 128}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const char *path = shared_data(cases[k].path);
        if (!path) {
            print_message("skipped: no shared data\n");
            skip();
        }
        wt_weights *w = weights_opened(path);
        wt_tensor t;
        int64_t n = 0;
        for (int i = 0; i < wt_weights_count(w); i++) n += wt_tensor_elements(wt_weights_at(w, i));
        assert_string_equal(wt_weights_format(w), cases[k].format);
        assert_ok(wt_weights_get(w, cases[k].tensor, 2, cases[k].shape, &t));
        assert_int_equal(wt_weights_count(w), cases[k].n);
        assert_int_equal(n, cases[k].n_elements);
        if (!k)
            assert_ok(wt_weights_get(w, "model.embed_tokens.weight", 2, (const int64_t[]){2048, 128}, &t)); // shared
        wt_weights_close(w);
    }
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, test_folder_create, test_folder_remove)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(safetensors_open),
        IN_FOLDER(a_shared_tensor_is_found_by_both_names),
        IN_FOLDER(get_names_what_it_met_and_wanted),
        IN_FOLDER(bad_safetensors_are_refused),
        IN_FOLDER(impossible_headers_are_refused),
        IN_FOLDER(deep_nesting_is_refused),
        IN_FOLDER(damaged_safetensors_do_no_harm),
        IN_FOLDER(shards_are_one_model),
        IN_FOLDER(bad_indices_are_refused),
        IN_FOLDER(a_tensor_in_two_shards_is_refused),
        IN_FOLDER(a_folder_says_what_it_lacks),
        IN_FOLDER(check_notices_changed_files),
        IN_FOLDER(opening_survives_failing_allocations),
        cmocka_unit_test(files_of_other_writers_open),
        cmocka_unit_test(real_models_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
