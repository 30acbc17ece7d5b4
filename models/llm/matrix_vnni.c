// Products of bytes and halves for x86-64-v4 with VNNI: four bytes to 32 bits in one instruction.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#    pragma GCC target("arch=x86-64-v4,avx512vnni")
#    include <immintrin.h>
#    define DOT(sum, w, x) _mm256_dpbusd_epi32(sum, w, x)
// w + 128 is unsigned
#    define DOT_SIGNED(sum, w, x) DOT(sum, _mm256_xor_si256(w, _mm256_set1_epi8(-128)), x)
#    define SIGNED_ZERO           128
#    define STRIPS                wt__strips_vnni
#    include "matrix_bytes.h"
#else
typedef int wt__matrix_no_vnni; // a translation unit may not be empty
#endif
