// mono: the mean of all channels, on one channel or on as many as came in.
#ifndef WT_MONO_KERNEL_H
#define WT_MONO_KERNEL_H
#include "chain_kernel.h"

typedef struct mono_plan {
    float weight; // 1 / channels
} mono_plan;
#endif
