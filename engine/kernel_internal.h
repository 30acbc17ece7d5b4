/// A kernel's launch in two steps, for those who keep launches: dispatch and graphs.
#ifndef WT_KERNEL_INTERNAL_H
#define WT_KERNEL_INTERNAL_H

#include "device_cuda.h"

enum { WT_MAX_PARAMS = 64 };

typedef struct wt__kernel_call {
    int grid[3], block[3];
    size_t shared_bytes;
    bool cooperative;
    bool overlap;
    bool apart;
    void *params[WT_MAX_PARAMS]; ///< borrowed from the arguments
} wt__kernel_call;

/// Check a launch on a stream of `device`, make the context current, opt in to shared memory. Errors as
/// wt_kernel_launch.
WT_CHECKED wt_status wt__kernel_prepare(wt_kernel *kernel, const wt_device *device, const wt_launch *launch,
                                        const wt_arg *args, int n_args, wt__kernel_call *call);

const char *wt__kernel_name(const wt_kernel *kernel);

#endif
