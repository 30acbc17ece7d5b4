/// Private to dsp/: real transforms of 2 size points for nodes, which share the tables between threads.
#ifndef WT_REAL_CORE_H
#define WT_REAL_CORE_H

#include "fft_internal.h"

typedef struct wt__real_core {
    wt__fft_core *core; ///< complex, `size` points; never written to, so threads may share it
    float *twiddles;    ///< of the real transform of 2 size points
} wt__real_core;

/// Errors: WT_ERR_NO_MEMORY; destroy it in either case.  [worker]
WT_CHECKED wt_status wt__real_core_create(wt__real_core *fft, int size);
void wt__real_core_destroy(wt__real_core *fft);

#endif
