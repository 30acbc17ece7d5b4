// Products of one vector with matrices of 16 bits: llm_stream.cuh.
#include "llm_stream.cuh"

KERNEL(llm_stream_f16, f16, WARPS, PLAIN)
KERNEL(llm_stream_bf16, bf16, WARPS, PLAIN)
KERNEL(llm_stream_short_f16, f16, WT_LLM_STREAM_SHORT, PLAIN)
KERNEL(llm_stream_short_bf16, bf16, WT_LLM_STREAM_SHORT, PLAIN)
KERNEL(llm_stream_awaited_f16, f16, WARPS, AWAITED)
KERNEL(llm_stream_awaited_bf16, bf16, WARPS, AWAITED)
KERNEL(llm_stream_half_f16, f16, WT_LLM_STREAM_HALF, PLAIN)
KERNEL(llm_stream_half_bf16, bf16, WT_LLM_STREAM_HALF, PLAIN)
