/// Language models of a known shape whose weights are random.
///
/// All matrices of a model share the same random bytes on the host, bf16 of +-2^-6 .. 2^-5; on a GPU each has its own
/// place.
#ifndef WT_BENCH_RANDOM_LLM_H
#define WT_BENCH_RANDOM_LLM_H

#include "../../models/llm/gpu.h"

/// qwen3-8b, qwen3-0.6b, llama3-8b, mixtral or qwen3-30b-a3b; false for other names. The model is the process's only
/// one and is never given back.
bool random_llm_make(const char *name, wt_llm *model);

/// Let its layers add next to nothing to what a token is, and the head's row t be the embedding of t + 1 (tied: of t):
/// the token after t is t - 1 (t), so a text can be made to repeat itself. Of bf16, before it is copied anywhere.
void random_llm_repeat(wt_llm *model);

/// Give its matrices another type: bf16 (as they are), fp8 (blocks of 128 x 128), int8 (rows), int4 (groups of 128, the
/// head int8), q8_0, q4_0, q4_k (the head q6_k), q6_k. The same bytes are read as that type. False for other names.
bool random_llm_retype(wt_llm *model, const char *type);

#endif
