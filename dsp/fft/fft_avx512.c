// The transform's passes for x86-64-v4.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#    pragma GCC target("arch=x86-64-v4")
#    define LANES 16
#    include "fft_passes.h"

const wt__fft_kernels wt__fft_kernels_avx512 = KERNELS;
#else
typedef int wt__fft_no_avx512; // a translation unit may not be empty
#endif
