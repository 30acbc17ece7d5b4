// The cache of keys and values, compiled for a head's size (D_HEAD), the heads that share one of keys and values
// (GROUP) and the cache's type (KV).
#include "llm_types.cuh"

#ifndef D_HEAD
#    define D_HEAD 128
#    define GROUP  4
#    define KV     WT_LLM_BF16
#endif
#define NOTHING (-3.402823466e38f) // below every score

#if KV == WT_LLM_F32
typedef float kv_type;
#elif KV == WT_LLM_F16
typedef f16 kv_type;
#elif KV == WT_LLM_E4M3
typedef e4m3 kv_type;
#else
typedef bf16 kv_type;
#endif

static __device__ __forceinline__ long long cache_at(const wt_llm_cache &c, int sequence, int position, int kv_head)
{
    const long long page = c.pages[sequence * c.n_pages + position / WT_LLM_PAGE];
    return page * c.page_stride + ((long long)kv_head * WT_LLM_PAGE + position % WT_LLM_PAGE) * D_HEAD;
}
