/// Small model files made byte by byte, good and bad.
#ifndef WT_MODEL_FILES_H
#define WT_MODEL_FILES_H

#include <stddef.h>
#include <stdint.h>

typedef struct bytes {
    unsigned char at[8192];
    size_t n;
} bytes;

void put(bytes *b, const void *data, size_t n);
void put_u32(bytes *b, uint32_t x);
void put_u64(bytes *b, uint64_t x);
void put_text(bytes *b, const char *text); ///< GGUF's string: u64 length, bytes
void put_zeros(bytes *b, size_t n);

/// safetensors: the header's length, the header, and `n_data` bytes 0, 1, 2 ...
void safetensors_bytes(bytes *b, const char *header, size_t n_data);

/// GGUF's magic, version and counts.
void gguf_begin(bytes *b, uint32_t version, uint64_t n_tensors, uint64_t n_keys);
void gguf_text_key(bytes *b, const char *key, const char *value);
void gguf_u32_key(bytes *b, const char *key, uint32_t value);
void gguf_f32_key(bytes *b, const char *key, float value);
/// A tensor's name, dimensions (the fastest first), type and offset.
void gguf_tensor(bytes *b, const char *name, uint32_t rank, const uint64_t *dimensions, uint32_t type, uint64_t offset);

/// Two tensors, keys of several types, an alignment of 64; `version` 2 or 3.
void gguf_small(bytes *b, uint32_t version);

#endif
