// Products of bytes and halves for x86-64-v3: pairs of bytes to 16 bits, pairs of those to 32.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#    pragma GCC target("arch=x86-64-v3")
#    include <immintrin.h>
#    define DOT(sum, w, x) _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1)))
// |w| and x with the sign of w: |w| may be 128, two products fit 16 bits
#    define DOT_SIGNED(sum, w, x) DOT(sum, _mm256_abs_epi8(w), _mm256_sign_epi8(x, w))
#    define SIGNED_ZERO           0
#    define STRIPS                wt__strips_avx2
#    include "matrix_bytes.h"
#else
typedef int wt__matrix_no_avx2; // a translation unit may not be empty
#endif
