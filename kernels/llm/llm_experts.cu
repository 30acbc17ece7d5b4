// Products of one vector with the matrices, of 16 bits, of the experts that are chosen for it: llm_stream.cuh.
#include "llm_stream.cuh"

KERNEL(llm_gates_f16, f16, WARPS, GATES)
KERNEL(llm_gates_bf16, bf16, WARPS, GATES)
KERNEL(llm_downs_f16, f16, WARPS, DOWNS)
KERNEL(llm_downs_bf16, bf16, WARPS, DOWNS)
KERNEL(llm_gates_half_f16, f16, WT_LLM_STREAM_HALF, GATES)
KERNEL(llm_gates_half_bf16, bf16, WT_LLM_STREAM_HALF, GATES)
