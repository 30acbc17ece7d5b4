/// SHA-256 (FIPS 180-4), for names and checksums of cached kernels.
#ifndef WT_SHA256_H
#define WT_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct wt__sha256 {
    uint32_t state[8];
    uint64_t n_bytes;
    unsigned char block[64];
} wt__sha256;

void wt__sha256_start(wt__sha256 *hash);
void wt__sha256_add(wt__sha256 *hash, const void *data, size_t size_bytes);
void wt__sha256_end(wt__sha256 *hash, unsigned char digest[32]);

#endif
