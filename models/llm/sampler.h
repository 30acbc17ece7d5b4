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

#endif
