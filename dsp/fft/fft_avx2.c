// The transform's passes for x86-64-v3.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#    pragma GCC target("arch=x86-64-v3")
#    define LANES 8
#    include "fft_passes.h"

const wt__fft_kernels wt__fft_kernels_avx2 = KERNELS;
#else
typedef int wt__fft_no_avx2; // a translation unit may not be empty
#endif
