#include "support/model_files.h"
#include "support/testing.h"

#include <string.h>

void put(bytes *b, const void *data, size_t n)
{
    assert_true(n <= sizeof b->at - b->n);
    memcpy(b->at + b->n, data, n);
    b->n += n;
}

void put_u32(bytes *b, uint32_t x) { put(b, &x, sizeof x); }
void put_u64(bytes *b, uint64_t x) { put(b, &x, sizeof x); }

void put_text(bytes *b, const char *text)
{
    put_u64(b, strlen(text));
    put(b, text, strlen(text));
}

void put_zeros(bytes *b, size_t n)
{
    assert_true(n <= sizeof b->at - b->n);
    memset(b->at + b->n, 0, n);
    b->n += n;
}

void safetensors_bytes(bytes *b, const char *header, size_t n_data)
{
    b->n = 0;
    put_text(b, header);
    for (size_t k = 0; k < n_data; k++) put(b, &(unsigned char){(unsigned char)k}, 1);
}

void gguf_begin(bytes *b, uint32_t version, uint64_t n_tensors, uint64_t n_keys)
{
    b->n = 0;
    put(b, "GGUF", 4);
    put_u32(b, version);
    put_u64(b, n_tensors);
    put_u64(b, n_keys);
}

void gguf_text_key(bytes *b, const char *key, const char *value)
{
    put_text(b, key);
    put_u32(b, 8);
    put_text(b, value);
}

void gguf_u32_key(bytes *b, const char *key, uint32_t value)
{
    put_text(b, key);
    put_u32(b, 4);
    put_u32(b, value);
}

void gguf_f32_key(bytes *b, const char *key, float value)
{
    put_text(b, key);
    put_u32(b, 6);
    put(b, &value, sizeof value);
}

void gguf_tensor(bytes *b, const char *name, uint32_t rank, const uint64_t *dimensions, uint32_t type, uint64_t offset)
{
    put_text(b, name);
    put_u32(b, rank);
    for (uint32_t k = 0; k < rank; k++) put_u64(b, dimensions[k]);
    put_u32(b, type);
    put_u64(b, offset);
}

void gguf_small(bytes *b, uint32_t version)
{
    gguf_begin(b, version, 2, 8);
    gguf_text_key(b, "general.architecture", "llama");
    gguf_u32_key(b, "general.alignment", 64);
    gguf_f32_key(b, "llama.rope.freq_base", 10000);
    put_text(b, "yes");
    put_u32(b, 7);
    put(b, "\1", 1);
    put_text(b, "least");
    put_u32(b, 11);
    put_u64(b, (uint64_t)INT64_MIN);
    put_text(b, "small");
    put_u32(b, 1);
    put(b, "\xfe", 1);
    put_text(b, "tokenizer.ggml.tokens");
    put_u32(b, 9);
    put_u32(b, 8);
    put_u64(b, 2);
    put_text(b, "<s>");
    put_text(b, "\xff"); // elements are not looked at
    put_text(b, "nested");
    put_u32(b, 9);
    put_u32(b, 9);
    put_u64(b, 1);
    put_u32(b, 4);
    put_u64(b, 1);
    put_u32(b, 7);
    gguf_tensor(b, "blk.0.weight", 2, (const uint64_t[]){32, 2}, 8, 64);
    gguf_tensor(b, "norm.weight", 1, (const uint64_t[]){3}, 0, 0);
    put_zeros(b, -b->n & 63);
    put(b, (const float[]){1, 2, 3}, 12);
    put_zeros(b, 52 + 68);
}
