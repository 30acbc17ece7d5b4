/// A sampler's state, as a GPU's kernel takes it over.
#ifndef WT_LLM_SAMPLER_H
#define WT_LLM_SAMPLER_H

#include <warptone/llm.h>

#include "sample_kernel.h"

int wt__sampler_vocab_size(const wt_sampler *sampler);

/// Settings and the number that the next draw takes; `tally` is -1, nothing is told.
const wt_llm_draw *wt__sampler_draw(const wt_sampler *sampler);

/// [vocab_size] what was met, and biases; NULL when neither changes a logit.
const wt_llm_tally *wt__sampler_tallies(const wt_sampler *sampler);

/// Of this state of the tallies: a later state, and any other sampler's, has another.
uint64_t wt__sampler_serial(const wt_sampler *sampler);

/// A token was chosen elsewhere by this state: it is counted, and its number taken.
void wt__sampler_chose(wt_sampler *sampler, int32_t id);

enum { WT__SAMPLER_LOG = 24 };

/// What was chosen since that state of the tallies, to `ids` [WT__SAMPLER_LOG]; how many, -1 when it is not known.
int wt__sampler_since(const wt_sampler *sampler, uint64_t serial, int32_t *ids);

/// What wt_sampler_pick would choose if it had chosen `guesses` [n] before. The sampler stays as it is. Errors: those
/// of wt_sampler_pick; WT_ERR_NO_MEMORY.
WT_CHECKED wt_status wt__sampler_pick_after(wt_sampler *sampler, const float *logits, const int32_t *guesses, int n,
                                            int32_t *id);

#endif
