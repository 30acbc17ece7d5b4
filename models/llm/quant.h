/// Quantised weights: from the hub's checkpoints, and made of others.
#ifndef WT_LLM_QUANT_H
#define WT_LLM_QUANT_H

#include "matrix.h"

#include <string.h>

/// Is STEM.weight quantised in the checkpoint, or there as STEM.qweight?
bool wt__llm_is_quantised(const wt_llm *llm, const char *stem);
/// Its weights and scales; the bias stays as it is. Errors: WT_ERR_NOT_FOUND, WT_ERR_FORMAT naming the tensor.
WT_CHECKED wt_status wt__llm_bind_quantised(wt_llm *llm, const char *stem, int64_t rows, int64_t columns,
                                            wt__linear *m);

/// Memory that lives as long as the model, zeroed, aligned to 64 bytes; NULL when there is none.
void *wt__llm_take(wt_llm *llm, size_t bytes);

typedef enum wt__narrow_type { WT__HALF, WT__E4M3 } wt__narrow_type;
/// The bits of the nearest number of the type, the even one of two; what is too large becomes the largest.
unsigned wt__narrow(float x, wt__narrow_type type);

#endif
