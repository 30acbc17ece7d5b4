// Any bytes as a safetensors file: opened, and where it opens, every byte of every tensor read.
#include "support_weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return open_and_read("fuzz.safetensors", data, size); }
