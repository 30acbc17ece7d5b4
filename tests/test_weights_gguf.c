// GGUF files and checkpoints of llama2.c: what opens, what is refused and named, damage.
#include "support/audio_files.h"
#include "support/testing.h"
#include "support/weights_check.h"

#include <stdlib.h>
#include <string.h>
#include <warptone/weights.h>

// ---- GGUF

static void gguf_opens(void **state)
{
    for (uint32_t version = 2; version < 4; version++) {
        bytes b;
        gguf_small(&b, version);
        const char *path = test_path(state, version == 2 ? "small.gguf" : "without-a-name");
        test_spill(path, b.at, b.n);
        wt_weights *w = weights_opened(path);
        assert_string_equal(wt_weights_format(w), "GGUF");
        assert_int_equal(wt_weights_count(w), 2);
        assert_string_equal(wt_weights_name(w, 0), "norm.weight"); // as they lie in the file
        char text[96];
        assert_string_equal(wt_tensor_describe(wt_weights_at(w, 1), text), "[2][32] Q8_0"); // the fastest comes last
        float x[3];
        wt_tensor_to_f32(wt_weights_at(w, 0), 0, 3, x);
        assert_true(x[0] == 1 && x[1] == 2 && x[2] == 3);
        assert_string_equal(wt_weights_metadata(w, "general.architecture"), "llama");
        assert_string_equal(wt_weights_metadata(w, "llama.rope.freq_base"), "10000");
        assert_string_equal(wt_weights_metadata(w, "yes"), "true");
        assert_string_equal(wt_weights_metadata(w, "small"), "-2");
        assert_string_equal(wt_weights_metadata(w, "least"), "-9223372036854775808");
        assert_string_equal(wt_weights_metadata(w, "tokenizer.ggml.tokens"), "[2] string");
        assert_string_equal(wt_weights_metadata(w, "nested"), "[1] array");
        assert_int_equal(wt_weights_metadata_count(w), 8);
        wt_weights_close(w);
    }
}

static void damaged_gguf_does_no_harm(void **state)
{
    bytes b;
    gguf_small(&b, 3);
    weights_damage(test_path(state, "damaged.gguf"), &b);
}

// One tensor "w" of `rank` dimensions, type and offset as given, and 64 bytes of data.
static void one_tensor(bytes *b, uint32_t rank, const uint64_t *dimensions, uint32_t type, uint64_t offset)
{
    gguf_begin(b, 3, 1, 0);
    gguf_tensor(b, "w", rank, dimensions, type, offset);
    put_zeros(b, -b->n & 31);
    put_zeros(b, 64);
}

static void bad_gguf_tensors_are_refused(void **state)
{
    static const struct {
        uint32_t rank;
        uint64_t dimensions[5];
        uint32_t type;
        uint64_t offset;
        wt_status status;
        const char *part;
    } cases[] = {
        {1, {17}, 0, 0, WT_ERR_FORMAT, "tensor w has 68 bytes from byte 0 of the data, which ends at 64"},
        {1, {4}, 0, 1ull << 40, WT_ERR_FORMAT, "from byte 1099511627776 of the data, which ends at 64"},
        {1, {4}, 0, UINT64_MAX - 31, WT_ERR_FORMAT, "which ends at 64"},
        {1, {4}, 0, 16, WT_ERR_FORMAT, "tensor w begins at byte 16 of the data, want a multiple of 32"},
        {1, {1ull << 63}, 0, 0, WT_ERR_FORMAT, "tensor w has a dimension of -9223372036854775808, want 0 or more"},
        {2, {1ull << 32, 1ull << 32}, 0, 0, WT_ERR_FORMAT, "more elements than a file can hold"},
        {1, {16}, 8, 0, WT_ERR_FORMAT, "tensor w is [16] Q8_0, want rows of a multiple of 32"},
        {2, {16, 2}, 8, 0, WT_ERR_FORMAT, "tensor w is [2][16] Q8_0, want rows of a multiple of 32"},
        {0, {0}, 8, 0, WT_ERR_FORMAT, "tensor w is [] Q8_0, want rows of a multiple of 32"},
        {5, {1, 1, 1, 1, 1}, 0, 0, WT_ERR_FORMAT, "tensor w has 5 dimensions, want 4 or less"},
        {1, {256}, 13, 0, WT_ERR_UNSUPPORTED, "tensor w is of type 13, Q5_K, want F32, F16"},
        {1, {4}, 4, 0, WT_ERR_FORMAT, "tensor w is of type 4, want F32, F16"},
        {1, {4}, UINT32_MAX, 0, WT_ERR_FORMAT, "tensor w is of type 4294967295, want F32"},
    };
    const char *path = test_path(state, "bad.gguf");
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        bytes b;
        one_tensor(&b, cases[k].rank, cases[k].dimensions, cases[k].type, cases[k].offset);
        test_spill(path, b.at, b.n);
        weights_refused(path, cases[k].status, cases[k].part);
    }
}

static void bad_gguf_headers_are_refused(void **state)
{
    bytes b;
    const char *path = test_path(state, "bad.gguf");
    static const struct {
        uint32_t version;
        uint64_t n_tensors, n_keys;
        wt_status status;
        const char *part;
    } cases[] = {
        {1, 0, 0, WT_ERR_UNSUPPORTED, "version 1 of GGUF, want version 2 or 3"},
        {0x03000000, 0, 0, WT_ERR_UNSUPPORTED, "big-endian GGUF, want version 2 or 3, little-endian"},
        {4, 0, 0, WT_ERR_FORMAT, "GGUF of version 4, want 2 or 3"},
        {3, UINT64_MAX, 0, WT_ERR_FORMAT, "18446744073709551615 tensors and 0 keys, more than 64 bytes hold"},
        {3, 0, 1ull << 61, WT_ERR_FORMAT, "keys, more than 64 bytes hold"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        gguf_begin(&b, cases[k].version, cases[k].n_tensors, cases[k].n_keys);
        put_zeros(&b, 64);
        test_spill(path, b.at, b.n);
        weights_refused(path, cases[k].status, cases[k].part);
    }
    test_spill(path, "GGML1234567890123456789012345678", 32);
    weights_refused(path, WT_ERR_FORMAT, "does not begin with GGUF");
}

static void bad_gguf_keys_are_refused(void **state)
{
    bytes b;
    const char *path = test_path(state, "bad.gguf");
#define REFUSED(status, part, ...)                                                                                     \
    gguf_begin(&b, 3, 0, 1);                                                                                           \
    __VA_ARGS__;                                                                                                       \
    put_zeros(&b, 16);                                                                                                 \
    test_spill(path, b.at, b.n);                                                                                       \
    weights_refused(path, status, part)
    REFUSED(WT_ERR_FORMAT, "k has values of type 13, want 0..12", put_text(&b, "k"), put_u32(&b, 13));
    REFUSED(WT_ERR_FORMAT, "a key has 18446744073709551615 bytes, 17 are left", put_u64(&b, UINT64_MAX),
            put(&b, "k", 1));
    REFUSED(WT_ERR_FORMAT, "a key is not UTF-8", put_text(&b, "\xc0\x80"), put_u32(&b, 4));
    REFUSED(WT_ERR_FORMAT, "a key is not UTF-8", put_u64(&b, 1), put_zeros(&b, 1));
    REFUSED(WT_ERR_FORMAT, "k is not UTF-8", gguf_text_key(&b, "k", "\xed\xa0\x80"));
    REFUSED(WT_ERR_FORMAT, "k is the bool 2, want 0 or 1", put_text(&b, "k"), put_u32(&b, 7), put(&b, "\2", 1));
    REFUSED(WT_ERR_FORMAT, "k has 1152921504606846976 elements, the file ends before", put_text(&b, "k"),
            put_u32(&b, 9), put_u32(&b, 4), put_u64(&b, 1ull << 60));
    REFUSED(WT_ERR_FORMAT, "general.alignment is 48, want a power of two", gguf_u32_key(&b, "general.alignment", 48));
    REFUSED(WT_ERR_FORMAT, "general.alignment is 0, want a power of two", gguf_u32_key(&b, "general.alignment", 0));
    REFUSED(WT_ERR_FORMAT, "general.alignment is of type string, want u32",
            gguf_text_key(&b, "general.alignment", "8"));
    REFUSED(WT_ERR_UNSUPPORTED, "is one of 3 parts, want one file", gguf_u32_key(&b, "split.count", 3));
    REFUSED(WT_ERR_FORMAT, "deeper than 4", put_text(&b, "k"), put_u32(&b, 9);
            for (int k = 0; k < 8; k++) put_u32(&b, 9), put_u64(&b, 1));
#undef REFUSED
    gguf_begin(&b, 3, 0, 2);
    gguf_u32_key(&b, "k", 1);
    gguf_u32_key(&b, "k", 1);
    test_spill(path, b.at, b.n);
    weights_refused(path, WT_ERR_FORMAT, "the key k is there twice");
    gguf_begin(&b, 3, 2, 0);
    gguf_tensor(&b, "w", 1, (const uint64_t[]){8}, 0, 0);
    gguf_tensor(&b, "w", 1, (const uint64_t[]){8}, 0, 32);
    put_zeros(&b, 128);
    test_spill(path, b.at, b.n);
    weights_refused(path, WT_ERR_FORMAT, "tensor w is there twice");
}

// ---- llama2.c

static void small_llama2c(bytes *b, int32_t vocab_size)
{
    b->n = 0;
    put(b, (const int32_t[]){8, 12, 2, 2, 1, vocab_size, 5}, 28); // heads of 4, one of keys and values
    const int n = 6 * 8 + 2 * (8 + 64 + 32 + 32 + 64 + 8 + 3 * 96) + 8 + 5 * 4 + (vocab_size < 0 ? 6 * 8 : 0);
    assert_true(n * 4 + 28 <= (int)sizeof b->at);
    for (int k = 0; k < n; k++) put(b, &(float){(float)k}, 4);
}

static void llama2c_checkpoints_open(void **state)
{
    const char *path = test_path(state, "small.bin");
    bytes *b = malloc(sizeof *b);
    wt_tensor t;
    small_llama2c(b, 6);
    test_spill(path, b->at, b->n);
    wt_weights *w = weights_opened(path);
    assert_string_equal(wt_weights_format(w), "llama2.c");
    assert_int_equal(wt_weights_count(w), 2 + 2 * 9);
    assert_ok(wt_weights_get(w, "model.embed_tokens.weight", 2, (const int64_t[]){6, 8}, &t));
    assert_ok(wt_weights_get(w, "model.layers.1.input_layernorm.weight", 1, (const int64_t[]){8}, &t));
    assert_true(*(const float *)t.data == 48 + 8);
    assert_ok(wt_weights_get(w, "model.layers.1.self_attn.k_proj.weight", 2, (const int64_t[]){4, 8}, &t));
    assert_true(*(const float *)t.data == 48 + 2 * 8 + 2 * 64 + 32);
    assert_ok(wt_weights_get(w, "model.layers.0.mlp.down_proj.weight", 2, (const int64_t[]){8, 12}, &t));
    assert_true(*(const float *)t.data == 48 + 2 * (8 + 64 + 32 + 32 + 64 + 8) + 2 * 96);
    assert_null(wt_weights_find(w, "lm_head.weight"));
    assert_string_equal(wt_weights_metadata(w, "n_kv_heads"), "1");
    wt_weights_close(w);

    small_llama2c(b, -6); // a head of its own, after the tables of RoPE
    test_spill(path, b->at, b->n);
    w = weights_opened(path);
    assert_ok(wt_weights_get(w, "lm_head.weight", 2, (const int64_t[]){6, 8}, &t));
    assert_ptr_equal((const float *)t.data - 8 - 5 * 4, wt_weights_find(w, "model.norm.weight")->data);
    wt_weights_close(w);
    free(b);
}

static void bad_llama2c_checkpoints_are_refused(void **state)
{
    const char *path = test_path(state, "small.bin");
    bytes *b = malloc(sizeof *b);
    small_llama2c(b, 6);
    for (size_t n = 0; n < b->n; n += n < 32 ? 1 : 97) {
        test_spill(path, b->at, n);
        weights_refused(path, WT_ERR_FORMAT,
                        n ? n < 28 ? "want the 28 of llama2.c's header" : "its header wants" : "is empty");
    }
    static const struct {
        int field;
        int32_t value;
        wt_status status;
        const char *part;
    } cases[] = {{0, 0, WT_ERR_FORMAT, "dim is 0, want 1..131072: not a checkpoint of llama2.c"},
                 {0, 0x616b3432, WT_ERR_UNSUPPORTED, "is of llama2.c's version 12, want 0"},
                 {1, -1, WT_ERR_FORMAT, "hidden_dim is -1, want"},
                 {2, 1 << 30, WT_ERR_FORMAT, "n_layers is 1073741824, want 1..256"},
                 {3, 3, WT_ERR_FORMAT, "dim 8, n_heads 3, n_kv_heads 1: want heads of one even size"},
                 {5, -2147483647 - 1, WT_ERR_FORMAT, "vocab_size is -2147483648, want"},
                 {5, 7, WT_ERR_FORMAT, "bytes, its header wants"},
                 {6, 6, WT_ERR_FORMAT, "bytes, its header wants"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        small_llama2c(b, 6);
        memcpy(b->at + 4 * cases[k].field, &cases[k].value, 4);
        test_spill(path, b->at, b->n);
        weights_refused(path, cases[k].status, cases[k].part);
    }
    test_spill(path, "PK\3\4 a file of PyTorch, a zip of pickles", 40);
    weights_refused(path, WT_ERR_FORMAT, "PyTorch's .bin files are not read");
    free(b);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, test_folder_create, test_folder_remove)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(gguf_opens),
        IN_FOLDER(damaged_gguf_does_no_harm),
        IN_FOLDER(bad_gguf_tensors_are_refused),
        IN_FOLDER(bad_gguf_headers_are_refused),
        IN_FOLDER(bad_gguf_keys_are_refused),
        IN_FOLDER(llama2c_checkpoints_open),
        IN_FOLDER(bad_llama2c_checkpoints_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
