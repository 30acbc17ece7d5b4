/// Private to dsp/: factorisation on a GPU with more components than a block holds.
#ifndef WT_NMF_WIDE_H
#define WT_NMF_WIDE_H

#include "nmf_kernel.h"
#include "op.h"

typedef struct wt__nmf_wide wt__nmf_wide;

/// For sides of m rows by n and n by m, and k components.
WT_CHECKED wt_status wt__nmf_wide_create(wt_device *device, int m, int n, int k, wt__nmf_wide **wide);
void wt__nmf_wide_destroy(wt__nmf_wide *wide); ///< NULL is allowed
/// One side of one signal. Of the divergence, the sums of b's columns are there.
WT_CHECKED wt_status wt__nmf_wide_update(const wt__nmf_wide *wide, wt_stream *stream, const wt_nmf_side_args *side);

#endif
