// Any bytes as a preset: read, and where they read well, built. Nothing may crash, hang or leak.
#include <stddef.h>
#include <stdint.h>
#include <warptone/preset.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    wt_preset *preset = NULL;
    wt_chain *chain = NULL;
    if (wt_preset_parse("fuzz.yaml", (const char *)data, size, &preset)) return 0;
    if (!wt_preset_build(preset, &(wt_chain_config){.rate_hz = 8000, .channels = 1}, &chain)) {
        float x[64] = {0.5f};
        (void)!wt_chain_process(chain, (const float *const[]){x}, (float *const[]){x}, wt_chain_out_channels(chain) == 1 ? 64 : 0);
    }
    wt_chain_destroy(chain);
    wt_preset_destroy(preset);
    return 0;
}
