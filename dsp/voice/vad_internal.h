/// Private to dsp/: what the two forms of voice activity share.
#ifndef WT_VAD_INTERNAL_H
#define WT_VAD_INTERNAL_H

#include "vad_kernel.h"

#include <warptone/vad.h>

typedef struct wt__vad_settings {
    int channels, window;
    double high_pole;
    vad_rules rules;
} wt__vad_settings;

/// Defaults put in. Errors: WT_ERR_BAD_ARG naming the field.
WT_CHECKED wt_status wt__vad_resolve(const wt_vad_config *config, wt__vad_settings *settings);

#endif
