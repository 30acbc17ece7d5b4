// The transform's passes for any processor with 128-bit vectors.
#define LANES 4
#include "fft_passes.h"

const wt__fft_kernels wt__fft_kernels_base = KERNELS;
