// Any bytes as a preset: read, and where they read well, built and edited. Nothing may crash, hang or leak.
#include "../../hosts/preset_edit.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/preset.h>

static void edit(const wt_preset *preset)
{
    const wt_midi_row rows[] = {{.number = 7, .param = "gain/gain_db", .min = NAN, .max = 3},
                                {.source = WT_MIDI_PROGRAM, .number = 1, .preset = "x", .min = NAN, .max = NAN}};
    char *text = strdup(wt_preset_text(preset));
    const wt_chain_desc *chain = wt_preset_chain(preset);
    for (int n = 0; n < chain->n_nodes && n < 8; n++) {
        const wt_node_type *type = wt_node_type_find(chain->nodes[n].type);
        if (type && type->n_params) (void)!preset_edit_param("fuzz.yaml", &text, n, type->params[0].name, 0.5f);
    }
    (void)!preset_edit_midi("fuzz.yaml", &text, rows, 2);
    (void)!preset_edit_midi("fuzz.yaml", &text, rows, 1);
    (void)!preset_edit_midi("fuzz.yaml", &text, NULL, 0);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    wt_preset *preset = NULL;
    wt_chain *chain = NULL;
    if (wt_preset_parse("fuzz.yaml", (const char *)data, size, &preset)) return 0;
    if (!wt_preset_build(preset, &(wt_chain_config){.rate_hz = 8000, .channels = 1}, &chain)) {
        float x[64] = {0.5f};
        (void)!wt_preset_check_midi(preset, chain);
        (void)!wt_chain_process(chain, (const float *const[]){x}, (float *const[]){x},
                                wt_chain_out_channels(chain) == 1 ? 64 : 0);
    }
    edit(preset);
    wt_chain_destroy(chain);
    wt_preset_destroy(preset);
    return 0;
}
