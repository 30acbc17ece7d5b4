/// Arguments of reassigned spectrograms whose frames no block's shared memory holds.
#ifndef WT_REASSIGNED_WIDE_KERNEL_H
#define WT_REASSIGNED_WIDE_KERNEL_H
#include "reassigned_kernel.h"
#include "wide_kernel.h"

typedef struct wt_reassigned_wide_args {
    wt_wide_pairs pairs; ///< of one set; three lie behind one another
    wt_reassigned_args reassigned;
} wt_reassigned_wide_args;

#endif
