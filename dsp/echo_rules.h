/// Private to echo cancellation: what dsp/echo.c and the echo_cancel node share (kernels/echo_kernel.h).
#ifndef WT_ECHO_RULES_H
#define WT_ECHO_RULES_H

#include "echo_kernel.h"

/// The rules for blocks of that length.  [any]
echo_rules wt__echo_rules(double block_s);

#endif
