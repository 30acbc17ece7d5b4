/// A model of random numbers, of a shape, in a session on the CPU and one on a GPU: logits compared.
#ifndef WT_TEST_LLM_PAIR_H
#define WT_TEST_LLM_PAIR_H

#include "../../models/llm/llm_internal.h"

enum { VOCAB = 500, N_POSITIONS = 320 };

typedef struct llm_model {
    wt_llm llm;
    void *memory[64];
    int n;
    uint64_t seed;
} llm_model;

/// Two layers of a Qwen3 with the shape's sizes, experts where it has some, matrices of that type, N_POSITIONS of
/// max_positions.
void llm_model_make(llm_model *m, const wt_model_config *shape, wt_dtype dtype);
void llm_model_free(llm_model *m);

typedef struct llm_pair {
    wt_device *device[2];
    wt_layout *layout; ///< of the GPU, where the session has not all of it
    wt_llm_session *session[2];
    double bound, worst; ///< of errors, of the largest logit
} llm_pair;              ///< CPU, GPU

/// Logits of one token are within the bound.
void llm_pair_compare(llm_pair *p, const float *got, const float *want, const char *what);
/// With the model.
void llm_pair_close(llm_pair *p, llm_model *m);

void skip_without_gpu(void);

#endif
