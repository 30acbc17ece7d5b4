/// An answer as its tokens come: text, ends, what is told.
#ifndef WT_LLM_ANSWER_H
#define WT_LLM_ANSWER_H

#include "llm_internal.h"

#include <warptone/generate.h>

typedef struct wt__answer {
    const wt_llm *llm;
    const wt_tokenizer *tokenizer;
    const wt_llama2c_vocab *vocab;
    int max_tokens;  ///< 0 = as many as there is room for
    int n_positions; ///< room of ids
    bool ignore_eos;
    bool goes_on; ///< when ids are full; else that is its end
    bool (*on_token)(void *user, const wt_generated *token);
    void *user;
    wt_detokenizer *stream;
    wt_answer_text *text;
    int32_t *ids; ///< [n_positions] prompt and answer
    int n_ids;
    wt_generation report;
    bool ended;
} wt__answer;

/// Are the tokenizer's tokens the model's? Added ones may lie beyond the vocabulary: models with more tokens than rows
/// are published, and their texts refused. NULL is allowed. Errors: WT_ERR_BAD_ARG.
WT_CHECKED wt_status wt__answer_fits(const char *who, const wt_llm *llm, const wt_tokenizer *tokenizer);
/// The settings are there; takes the text's state and room for ids.
WT_CHECKED wt_status wt__answer_create(wt__answer *answer, const wt_answer_text_config *text);
void wt__answer_destroy(wt__answer *answer);

/// A new answer to a prompt of `n` tokens.
WT_CHECKED wt_status wt__answer_begin(wt__answer *answer, bool starts_thinking, int n);
void wt__answer_end(wt__answer *answer, wt_finish finish); ///< The first end is the one.
/// A token of the answer is told; the answer may end with it.
WT_CHECKED wt_status wt__answer_take(wt__answer *answer, const wt_llm_pick *pick);
/// What was held back: of a character, a tag or a stop string.
WT_CHECKED wt_status wt__answer_tell_rest(wt__answer *answer);

#endif
