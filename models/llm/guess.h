/// Guesses of the next tokens, by strategy.
#ifndef WT_LLM_GUESS_H
#define WT_LLM_GUESS_H

#include <warptone/generate.h>

enum { WT__MAX_GUESSES = 16, WT__POOL = 8 };

/// n-grams of three tokens by their first: the last ones that were seen.
typedef struct wt__ngrams {
    int32_t next[WT__POOL][3];
    int n, at;
} wt__ngrams;

typedef struct wt__guesser {
    wt_strategy strategy;
    wt_llm_session *session, *draft;
    int vocab_size, n_layers; ///< of the early exit
    int32_t coming[WT__MAX_GUESSES];
    int n_coming; ///< what the last step told of the tokens after the next: Jacobi
    int32_t input[WT__MAX_GUESSES + 1];
    int n_input, input_at; ///< the last step's tokens, from that position on
    wt__ngrams *pool;      ///< [WT__POOL_KEYS] of lookahead, by the first token; NULL else
} wt__guesser;

enum { WT__POOL_KEYS = 4096 };

/// Up to `most` tokens that may follow ids [n], whose last is not in the session yet. Errors: those of the steps of a
/// draft.
WT_CHECKED wt_status wt__guess(wt__guesser *g, const int32_t *ids, int n, int most, int32_t *guesses, int *n_guesses);

/// What a step gave after `input` [n_input], the first at position `at`, of which the first `n_right` are the answer's:
/// and `next` [n_input] came after them.
void wt__guess_learn(wt__guesser *g, const int32_t *input, int n_input, int at, int n_right, const int32_t *next);

#endif
