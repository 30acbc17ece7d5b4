/// Checkpoints of language models made by tests: tensors in a safetensors file, and the shapes of the golden llama.
#ifndef WT_TEST_LLM_FILES_H
#define WT_TEST_LLM_FILES_H

#include <stddef.h>
#include <stdint.h>

enum { LLM_MAX_TENSORS = 128 };

typedef struct llm_tensor {
    char name[112], shape[32];
    const char *dtype;
    size_t bytes;
    void *data; ///< freed when written
} llm_tensor;

typedef struct llm_file {
    llm_tensor tensors[LLM_MAX_TENSORS];
    int n;
} llm_file;

/// A tensor STEM.PART of zeros, to be filled; columns 0 = a vector of `rows`.
void *llm_file_add(llm_file *file, const char *stem, const char *part, const char *dtype, size_t width, int rows,
                   int columns);
/// Its matrices of F32 become BF16, rounded towards zero.
void llm_file_narrow(llm_file *file);
/// Writes and empties it.
void llm_file_write(llm_file *file, const char *path);

/// The config of the golden llama (2 layers of 64, 4 heads, 128 tokens, 512 positions), with a quantization_config when
/// there is one.
void llm_config_write(const char *path, const char *quantization);

/// Adds a projection to a file and says in `wide` [rows][columns] what its weights are.
typedef void (*llm_fill)(llm_file *file, const char *stem, int rows, int columns, uint64_t *seed, float *wide);

/// The golden llama's tensors as F32, noise from the seed: all to `plain`, and to `other` (NULL = none) too, but for
/// the projections, which `fill` adds.
void llm_llama_add(llm_file *plain, llm_file *other, llm_fill fill, uint64_t seed);

/// The folder of the trained TinyStories model in the shared data to `model`; skips the test where there is none, or no
/// `program`.
void need_story_model(const char *program, char *model, size_t size);

#endif
