// Quantised weights as tensor cores take them, exactly, for the products of llm_quant.cu: what a lane reads of a row at
// once, and in which order the columns of it follow. Compiled for one type: WEIGHT.
//
// Nibbles are whole numbers of 8 bits after a mask and a shift, int8 is as it lies. Fp8 (e4m3) becomes pairs of f16 by a
// conversion; before compute capability 8.9 its bits are put where f16's lie and multiplied by 2^8, the difference of
// the exponents' zeros (subnormal numbers are numbers there). Int8 of small groups becomes f16 by way of 1024 + 128.
#include "matmul_kernel.h"
#include "mma.cuh"

#define IS_NIBBLES (WEIGHT == WT_MM_U4 || WEIGHT == WT_MM_Q4_K)
#define PER        (WEIGHT == WT_MM_Q4_K ? 8 : IS_NIBBLES ? 2 * LANE : LANE) // columns of a scale in a lane's bytes

// Which of eight neighbouring columns stands at place e of them.
static __device__ __forceinline__ int column_of(int e)
{
    if (WEIGHT == WT_MM_U4) return e % 4 * 2 + e / 4;
    return WEIGHT == WT_MM_I8 && LANE == 4 ? e / 4 * 4 + e % 4 / 2 + e % 2 * 2 : e;
}

// Four int8 as (0, 2), (1, 3).
static __device__ __forceinline__ void pairs_of_i8(unsigned w, unsigned *pairs)
{
#pragma unroll
    for (int k = 0; k < 2; k++, w >>= 8)
        pairs[k] = fma_f16x2((w & 0x00ff00ffu) ^ 0x64806480u, 0x3c003c00u, 0xe480e480u);
}

// Four e4m3 as (0, 1), (2, 3).
static __device__ __forceinline__ void pairs_of_e4m3(unsigned w, unsigned *pairs)
{
#if __CUDA_ARCH__ >= 890
    asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.rn.f16x2.e4m3x2 %0, low; cvt.rn.f16x2.e4m3x2 %1, high; }"
        : "=r"(pairs[0]), "=r"(pairs[1])
        : "r"(w));
#else
#    pragma unroll
    for (int k = 0; k < 2; k++) {
        const unsigned p = __byte_perm(w, 0, k ? 0x3424 : 0x1404);
        pairs[k] = fma_f16x2((p & 0x80008000u) | (p >> 1 & 0x3f803f80u), 0x5c005c00u, 0x80008000u);
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
