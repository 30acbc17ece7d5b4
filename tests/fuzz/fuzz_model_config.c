// Any bytes as config.json, and what follows a zero byte as generation_config.json. Nothing may crash, hang or leak.
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <warptone/model_config.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static wt_model_config config;
    const char *text = (const char *)data, *zero = size ? memchr(data, 0, size) : NULL;
    const size_t n = zero ? (size_t)(zero - text) : size;
    (void)!wt_model_config_parse("config.json", text, n, zero ? zero + 1 : NULL, zero ? size - n - 1 : 0, &config);
    return 0;
}
