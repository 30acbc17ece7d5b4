// Any bytes as GGUF: opened, and where it opens, every byte of every tensor read, and a model's config looked for.
#include "support_weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return open_and_read("fuzz.gguf", data, size); }
