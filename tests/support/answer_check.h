/// Answers of a made-up llama of random weights (support/llm_files.h), whose greedy answer soon repeats itself.
#ifndef WT_ANSWER_CHECK_H
#define WT_ANSWER_CHECK_H

#include <stdatomic.h>
#include <warptone/generate.h>

enum { POSITIONS = 300, ANSWER = 120, N_PROMPT = 24, VOCAB = 128 };

typedef struct answer_fixture {
    wt_device *device;
    wt_llm *llm, *other; ///< the same shapes, other weights
    bool exact_guesses, rough_guesses; ///< of the sessions that start_answer makes
    wt_llm_session *session, *draft;
    wt_sampler *sampler;
    wt_generator *generator;
} answer_fixture;

/// Both models, the first with its weights quantised. Skips without the backend's device.
answer_fixture open_models(void **state, wt_backend backend, wt_llm_quantization kind);
answer_fixture open_bf16_models(void **state); ///< of BF16, on the CPU
void close_models(answer_fixture *f);

/// A generator with sessions of its own; `config` says the rest. `draft`: a model that guesses, NULL = none.
void start_answer(answer_fixture *f, const wt_llm *draft, wt_sampler_config sampling, wt_generator_config config);
void stop_answer(answer_fixture *f);

const int32_t *answer_prompt(void); ///< [N_PROMPT]

/// What was told of an answer.
typedef struct answer_tokens {
    int32_t ids[2 * POSITIONS], seconds[2 * POSITIONS]; ///< seconds: next in probability, where two are told
    double logprobs[2 * POSITIONS], second_logprobs[2 * POSITIONS];
    atomic_int n, pause_at, cancel_at; ///< 0 = never
    wt_generator *generator;
} answer_tokens;

bool collect_token(void *user, const wt_generated *token); ///< on_token; `user` is an answer_tokens

extern const wt_sampler_config answer_samplings[3]; ///< greedy, drawn, drawn with penalties

/// A whole answer from start to stop.
wt_generation answer(answer_fixture *f, const wt_llm *draft, int sampling, wt_generator_config config,
                     answer_tokens *tokens);

#endif
