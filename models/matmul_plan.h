// How a product is computed on a GPU, told before anything is compiled: matmul_plan.c.
#ifndef WT_MATMUL_PLAN_H
#define WT_MATMUL_PLAN_H

#include "matmul_internal.h"

enum { WT__MM_MAX_OPTIONS = 16, WT__MM_OPTION_BYTES = 24 };

/// Where products are computed.
typedef struct wt__mm_site {
    wt_matmul_config config;
    int n_sms; ///< of the partition
} wt__mm_site;

typedef struct wt__mm_plan {
    const char *file, *function;
    char options[WT__MM_MAX_OPTIONS][WT__MM_OPTION_BYTES]; ///< the rest empty
    wt_launch launch;
    wt__mm_wgmma_shape wgmma; ///< of matmul_wgmma; zeros for another kernel
    int few_warps;            ///< of matmul_few that multiply; 0 for another kernel
    int n_slices;             ///< of matmul_slices, and F32 by matmul_tiles; 0 for another kernel
} wt__mm_plan;

/// What the first kernel that takes it makes of a product; `args` gets the numbers of its tiles.
void wt__mm_choose(const wt__mm_site *site, wt_mm_args *args, wt__mm_plan *plan);
/// By matmul_wgmma, if that takes it.
bool wt__mm_plan_wgmma(const wt__mm_site *site, wt_mm_args *args, wt__mm_plan *plan);
/// How W is made of x's type for the library (kernels/matmul/matmul_widen.cu). No launch: it is of a part.
void wt__mm_plan_widen(const wt_mm_args *args, wt__mm_plan *plan);
/// Squares that are added first by the kernel that takes a product, where it has norms; 0: none takes those.
int wt__mm_squares_of(const wt__mm_site *site, wt_mm_args *args);

#endif
