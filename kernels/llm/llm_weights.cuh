// Quantised weights as tensor cores take them, exactly, for the products of llm_quant.cu: what a lane reads of a row at
// once, in which order the columns of it follow, and pairs of 16-bit floats for those that need them.
// Compiled for one type: WEIGHT.
//
// Before 8.9 the bits of fp8 (e4m3) are put where f16's lie and multiplied by 2^8, the difference of the exponents'
// zeros; subnormal numbers are numbers there. The bits of int8 below the sign are put into those of a float of 128 ..
// 255, and 128, or 256 with the sign, is taken away.
#include "matmul_kernel.h"
#include "mma.cuh"

#define IS_NIBBLES (WEIGHT == WT_MM_U4 || WEIGHT == WT_MM_Q4_K)
#define PER        (WEIGHT == WT_MM_Q4_K ? 8 : IS_NIBBLES ? 2 * LANE : LANE) // columns of a scale in a lane's bytes

// Which of eight neighbouring columns stands at place e of them.
static __device__ __forceinline__ int column_of(int e)
{
    if (WEIGHT == WT_MM_Q4_K || WEIGHT == WT_MM_E4M3 || (WEIGHT == WT_MM_I8 && LANE > 4)) return e;
    return WEIGHT == WT_MM_U4 ? e % 4 * 2 + e / 4 : e / 4 * 4 + e % 4 / 2 + e % 2 * 2;
}

// Bits of a under a mask, those of c elsewhere 0 there: one instruction.
static __device__ __forceinline__ unsigned and_or(unsigned a, unsigned mask, unsigned c) { return (a & mask) | c; }

// Four int8 as (0, 2), (1, 3).
static __device__ __forceinline__ void pairs_of_i8(unsigned w, unsigned *pairs)
{
#pragma unroll
    for (int k = 0; k < 2; k++, w >>= 8)
        pairs[k] = fma_bf16x2(and_or(w, 0x00800080u, 0x43004300u), 0xbf80bf80u, and_or(w, 0x007f007fu, 0x43004300u));
}

// Four e4m3 as f16: (0, 1), (2, 3).
static __device__ __forceinline__ void pairs_of_e4m3(unsigned w, unsigned *pairs)
{
#if __CUDA_ARCH__ >= 890
    asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.rn.f16x2.e4m3x2 %0, low; cvt.rn.f16x2.e4m3x2 %1, high; }"
        : "=r"(pairs[0]), "=r"(pairs[1])
        : "r"(w));
#else
#    pragma unroll
    for (int k = 0; k < 2; k++) {
        const unsigned v = __byte_perm(w, 0, k ? 0x3424 : 0x1404);
        pairs[k] = fma_f16x2(and_or(v >> 1, 0x3f803f80u, v & 0x80008000u), 0x5c005c00u, 0x80008000u);
    }
#endif
}

// The lane's bytes of a row.
static __device__ __forceinline__ void pairs_of(const unsigned *words, unsigned *pairs)
{
#pragma unroll
    for (int k = 0; k < LANE / 4; k++)
        if (WEIGHT == WT_MM_I8)
            pairs_of_i8(words[k], pairs + 2 * k);
        else
            pairs_of_e4m3(words[k], pairs + 2 * k);
}
