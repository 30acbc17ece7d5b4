/// Private to echo cancellation: what dsp/voice/echo.c and the echo_cancel node share (kernels/voice/echo_kernel.h).
#ifndef WT_ECHO_RULES_H
#define WT_ECHO_RULES_H

#include "echo_kernel.h"

#include <warptone/echo.h>

typedef struct wt__echo_shape {
    int channels, block, n_parts;
    echo_rules rules;
} wt__echo_shape;

/// Check, and fill in the defaults.
WT_CHECKED wt_status wt__echo_resolve(const wt_echo_config *config, wt__echo_shape *shape);

/// The rules for blocks of that length.  [any]
echo_rules wt__echo_rules(double block_s);

#endif
