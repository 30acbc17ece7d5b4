/// Loading a model's weights onto a GPU: lists of what lies where (resident.c), and the way there (resident_send.c).
#ifndef WT_LLM_RESIDENT_H
#define WT_LLM_RESIDENT_H

#include "gpu.h"
#include "quant.h"

typedef struct wt__piece {
    const void *from;
    wt_tensor tensor;        ///< to be widened to floats; data NULL = bytes as they are
    const wt__linear *other; ///< the host's matrix that `form` makes bytes of
    wt__llm_form form;
    size_t at, bytes; ///< in its list
    const void **address;
    wt__linear *matrix; ///< of a strip: what is made of it, with addresses of the GPU
    wt_dtype type;      ///< of a strip on its way
    int64_t row, n_rows;
} wt__piece;

typedef struct wt__pieces {
    wt__piece *at; ///< one after the other
    int n, capacity;
    size_t size; ///< of all, each from a multiple of 1024 bytes on
} wt__pieces;

typedef struct wt__loader {
    wt_llm_resident *resident;
    wt_llm_quantization kind;
    wt__pieces plain;  ///< the first part of the arena: copied
    wt__pieces made;   ///< what lies behind: written by the GPU
    wt__pieces strips; ///< rows that it is made of
    bool head_is_embedding;
    wt_status status; ///< the first error; nothing is listed after it
} wt__loader;

/// Take the arena, fill it, and give the pieces their addresses.
WT_CHECKED wt_status wt__loader_send(wt__loader *loader, const wt_llm_resident_config *config);

#endif
