/// Quantised weights: from the hub's checkpoints, and made of others.
#ifndef WT_LLM_QUANT_H
#define WT_LLM_QUANT_H

#include "matrix.h"
#include "weight_kernel.h"

#include <string.h>

/// Is STEM.weight quantised in the checkpoint, or there as STEM.qweight?
bool wt__llm_is_quantised(const wt_llm *llm, const char *stem);
/// Its weights and scales; the bias stays as it is. Errors: WT_ERR_NOT_FOUND, WT_ERR_FORMAT naming the tensor.
WT_CHECKED wt_status wt__llm_bind_quantised(wt_llm *llm, const char *stem, int64_t rows, int64_t columns,
                                            wt__linear *m);

/// Memory that lives as long as the model, zeroed, aligned to 64 bytes; NULL when there is none.
void *wt__llm_take(wt_llm *llm, size_t bytes);

/// How `from` looks when it is quantised: its weight's address is still that of `from`, scales and zeros are not there.
/// False when it stays as it is.
bool wt__quant_plan(const wt__linear *from, wt_llm_quantization kind, wt__linear *plan);
/// Scales of n_rows rows.
int64_t wt__quant_scales(const wt__linear *quantised, int64_t n_rows);
/// Words of a row of them, or of a row of blocks, where boxes read them (llm_quant.cu): whole 16 bytes.
static inline int wt__quant_words(const wt__linear *quantised)
{
    const int columns = (int)quantised->weight.shape[1], of = quantised->scale_columns;
    return ((columns + of - 1) / of + 3) & ~3;
}
static inline wt_llm_quantization wt__quant_of_head(wt_llm_quantization kind)
{
    return kind == WT_LLM_INT4 ? WT_LLM_INT8 : kind;
}
static inline wt_status wt__quant_refuse(wt_llm_quantization kind)
{
    return wt_fail(WT_ERR_BAD_ARG, "llm: quantise to kind %d, want 0..3", (int)kind);
}

/// All processors, for work on weights.
typedef struct wt__crew {
    wt_device *device;
    wt_stream *stream;
} wt__crew;
WT_CHECKED wt_status wt__crew_open(wt__crew *crew);
void wt__crew_close(wt__crew *crew); ///< Also one that did not open.

#endif
