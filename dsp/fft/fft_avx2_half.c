// The transform's passes for x86-64-v3 in vectors of half the width: for single transforms of few points.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#    pragma GCC target("arch=x86-64-v3")
#    define LANES 4
#    include "fft_passes.h"

const wt__fft_kernels wt__fft_kernels_avx2_half = KERNELS;
#else
typedef int wt__fft_no_avx2_half; // a translation unit may not be empty
#endif
