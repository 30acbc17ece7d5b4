/// Drawing tokens on a GPU: the kernels of llm_sample.cu and their memory.
#ifndef WT_LLM_GPU_SAMPLE_H
#define WT_LLM_GPU_SAMPLE_H

#include "llm_kernel.h"
#include "sampler.h"

#include <warptone/kernel.h>

typedef struct wt__gpu_drawer {
    wt_module *module;
    wt_kernel *draw[4]; ///< by 1, 2, 4 and 8 blocks a row
    bool has_clusters;
    size_t most_bytes; ///< of a block's tokens in shared memory
} wt__gpu_drawer;

WT_CHECKED wt_status wt__gpu_drawer_create(wt_device *device, wt__gpu_drawer *drawer);
void wt__gpu_drawer_destroy(wt__gpu_drawer *drawer);

/// Place what the kernels need between them for `n_rows` and the tallies of `n_tallies` sequences at `base`, or with 0
/// tell how many bytes it takes, of which the first `n_zeroed` must be 0. `args` gets the addresses.
size_t wt__gpu_draw_layout(int n_rows, int n_tallies, int vocab_size, uintptr_t base, wt_llm_sample_args *args,
                           size_t *n_zeroed);

/// Queue the choice of `n_rows` tokens on `n_sms` processors.
WT_CHECKED wt_status wt__gpu_draw(const wt__gpu_drawer *drawer, wt_stream *stream, const wt_llm_sample_args *args,
                                  int n_rows, int n_sms);

#endif
