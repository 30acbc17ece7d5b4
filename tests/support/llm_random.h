/// Models of random numbers, of any shape.
#ifndef WT_LLM_RANDOM_H
#define WT_LLM_RANDOM_H

#include "../models/llm/llm_internal.h"

enum { RANDOM_LAYERS = 2, RANDOM_VOCAB = 500, RANDOM_POSITIONS = 320 };

typedef struct random_model {
    wt_llm llm;
    void *memory[256];
    int n;
    uint64_t seed;
} random_model;

/// Qwen3 of RANDOM_LAYERS layers with the shape's heads, d_model, d_ff, qk_norm and sliding window (of layer 1), and
/// matrices of F32, F16 or BF16; F8_E4M3 with a scale for 128 x 128, I8 with one a row, or U8 for nibbles with scales and
/// zeros for groups of 128 columns and a head of I8.
void random_model_make(random_model *model, const wt_model_config *shape, wt_dtype type);
void random_model_free(random_model *model);

#endif
