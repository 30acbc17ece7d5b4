// Text of each level (simd_levels.inc): sums over bins in eight lanes, n a multiple of eight.
#ifndef WT_LEVEL
#    define WT_LEVEL_TEXT "sums_level.h"
#    include <warptone/simd_levels.inc>
#else

#    define VEC   WT_LEVEL(terms)
#    define BITS  WT_LEVEL(terms_bits)
#    define PARTS (TERM_LANES * 8 / WT_LEVEL_BYTES)

typedef double VEC __attribute__((vector_size(WT_LEVEL_BYTES), aligned(8), may_alias));
typedef uint64_t BITS __attribute__((vector_size(WT_LEVEL_BYTES)));

static void WT_LEVEL(add_terms)(const double *x, int n, double *lanes)
{
    VEC sum[PARTS];
    memcpy(sum, lanes, sizeof sum);
    for (int k = 0; k < n; k += TERM_LANES)
        for (int p = 0; p < PARTS; p++) sum[p] += ((const VEC *)(x + k))[p];
    memcpy(lanes, sum, sizeof sum);
}

// Of normal x > 0 the mantissas' product, from 1 up, and the sum of the exponents. A thousand in a lane do not
// overflow.
static void WT_LEVEL(multiply_terms)(const double *x, int n, double *products, uint64_t *exponents)
{
    VEC product[PARTS];
    BITS exponent[PARTS];
    memcpy(product, products, sizeof product);
    memcpy(exponent, exponents, sizeof exponent);
    for (int k = 0; k < n; k += TERM_LANES)
        for (int p = 0; p < PARTS; p++) {
            const BITS bits = (BITS)((const VEC *)(x + k))[p];
            exponent[p] += bits >> 52;
            product[p] *= (VEC)((bits & 0xfffffffffffff) | 0x3ff0000000000000);
        }
    memcpy(products, product, sizeof product);
    memcpy(exponents, exponent, sizeof exponent);
}

#    undef VEC
#    undef BITS
#    undef PARTS
#endif
