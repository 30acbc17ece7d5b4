/// Which device a command runs on, by the name that people give.
#ifndef WT_BACKEND_NAME_H
#define WT_BACKEND_NAME_H

#include <warptone/device.h>

/// "auto" (also NULL: $WARPTONE_BACKEND, else a usable GPU, else the CPU), "cuda" or "cpu". The CPU is *device NULL:
/// its chains run in the caller's own threads. Errors: WT_ERR_BAD_ARG, those of wt_device_open.  [worker]
WT_CHECKED wt_status backend_open(const char *name, wt_device **device);

#endif
