// What attention on tensor cores multiplies: the cache's type, or F16 for fp8, whose numbers it has all.
#include "llm_cache.cuh"

#include "mma.cuh"

#define LOG2_E 1.44269504f

#if KV == WT_LLM_E4M3
typedef f16 tile_type; // of the tiles in shared memory, and of queries and shares
#else
typedef kv_type tile_type;
#endif

static __device__ __forceinline__ unsigned pair_of(float low, float high)
{
    unsigned pair;
#if KV != WT_LLM_BF16
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
#else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
#endif
    return pair;
}

static __device__ __forceinline__ void mma(float *d, const unsigned *a, unsigned b0, unsigned b1)
{
#if KV != WT_LLM_BF16
    mma_f16(d, a, b0, b1);
#else
    mma_bf16(d, a, b0, b1);
#endif
}
