/// A language model as `warptone generate` and `warptone chat` open it: weights, tokenizer, device, session, sampler
/// and generator, by options that both have.
#ifndef WT_LANGUAGE_MODEL_H
#define WT_LANGUAGE_MODEL_H

#include "options.h"

#include <warptone/generate.h>

typedef struct language_options {
    const char *model, *tokenizer, *draft, *strategy, *quantize, *backend, *cache;
    int max_tokens, seed, top_k, threads, context, keep, batch, n_guesses, draft_layers;
    double temperature, top_p, min_p, typical_p; ///< below 0 = what the model's generation_config says
    double repetition, presence, frequency;
    bool ignore_eos, exact, exact_guesses, rough_guesses, keep_guessing;
    wt_option_texts stops, biases;
} language_options;

/// The rows of an options table; `o` points to the language_options.
#define LANGUAGE_OPTIONS(o)                                                                                            \
    OPTION_TEXT("model", 'm', &(o)->model, "PATH", "folder, *.gguf or *.bin"),                                         \
        OPTION_TEXT("tokenizer", 0, &(o)->tokenizer, "PATH", "when it does not lie with the model"),                   \
        OPTION_INT("max-tokens", 'n', &(o)->max_tokens, "N", 1, 1 << 20,                                               \
                   "of an answer (the model's; else generate 256, chat what there is room for)"),                      \
        OPTION_NUMBER("temperature", 't', &(o)->temperature, "T", 0, 1000,                                             \
                      "0: the most probable token (generate 0, chat the model's)"),                                    \
        OPTION_INT("top-k", 0, &(o)->top_k, "K", 0, 1 << 22, "of the K most probable; 0: all"),                        \
        OPTION_NUMBER("top-p", 0, &(o)->top_p, "P", 0, 1, "of the most probable that sum to P; 1: all"),               \
        OPTION_NUMBER("min-p", 0, &(o)->min_p, "P", 0, 1, "of those with P of the most probable's share"),             \
        OPTION_NUMBER("typical-p", 0, &(o)->typical_p, "P", 0, 1,                                                      \
                      "of the nearest to the mean surprise that sum to P"),                                            \
        OPTION_NUMBER("repetition-penalty", 0, &(o)->repetition, "X", 0, 1000, "divides logits of what was seen (1)"), \
        OPTION_NUMBER("presence-penalty", 0, &(o)->presence, "X", -1000, 1000,                                         \
                      "off logits of what was generated (0)"),                                                         \
        OPTION_NUMBER("frequency-penalty", 0, &(o)->frequency, "X", -1000, 1000, "the same, each time (0)"),           \
        OPTION_TEXTS("bias", 0, &(o)->biases, "ID=X", "added to a token's logit, -inf: never; up to 16"),              \
        OPTION_INT("seed", 's', &(o)->seed, "S", 0, INT32_MAX, "same seed, same answer (0)"),                          \
        OPTION_TEXTS("stop", 0, &(o)->stops, "TEXT", "the answer ends before it; may be given 16 times"),              \
        OPTION_TEXT("strategy", 0, &(o)->strategy, "NAME", "single, ngram, draft, early, jacobi, lookahead"),          \
        OPTION_TEXT("draft", 0, &(o)->draft, "PATH", "a smaller model of the same vocabulary; strategy draft"),        \
        OPTION_INT("guesses", 0, &(o)->n_guesses, "N", 1, 16, "tokens guessed a step (5)"),                            \
        OPTION_FLAG("keep-guessing", 0, &(o)->keep_guessing, "also while guesses do not pay"),                         \
        OPTION_INT("draft-layers", 0, &(o)->draft_layers, "N", 1, 256, "of strategy early (a quarter)"),               \
        OPTION_TEXT("quantize", 'q', &(o)->quantize, "TYPE", "fp8, int8 or int4, at load"),                            \
        OPTION_FLAG("exact", 0, &(o)->exact, "quantised weights times floats, not bytes; slower"),                     \
        OPTION_FLAG("exact-guesses", 0, &(o)->exact_guesses,                                                           \
                    "GPU: single steps by the kernels that verify guesses, bit for bit; slower"),                      \
        OPTION_FLAG("rough-guesses", 0, &(o)->rough_guesses,                                                           \
                    "GPU: guesses verified in 16 bits; faster, near ties may go the other way"),                       \
        OPTION_INT("context", 0, &(o)->context, "N", 1, 1 << 22,                                                       \
                   "tokens of prompt and answer (the model's, at most 4096)"),                                         \
        OPTION_INT("keep", 0, &(o)->keep, "N", 1, 1 << 22,                                                             \
                   "full context: drop half of the tokens after the first N and go on (the answer ends)"),             \
        OPTION_TEXT("cache", 0, &(o)->cache, "TYPE", "of keys and values: f32, f16, bf16, fp8 (CPU f32, GPU f16)"),    \
        OPTION_INT("batch", 0, &(o)->batch, "N", 1, 4096, "tokens of a prompt at a time (CPU 64, GPU 512)"),           \
        OPTION_TEXT("backend", 0, &(o)->backend, "NAME", "auto, cuda or cpu (auto)"),                                  \
        OPTION_INT("threads", 0, &(o)->threads, "N", 0, 4096, "of the CPU; 0: one a processor (0)"),                   \
        OPTION_FLAG("ignore-eos", 0, &(o)->ignore_eos, "go on after the model's end")

typedef struct language_model {
    wt_device *device;
    bool owns_device;
    wt_llm *llm, *draft_llm;
    wt_llm_resident *resident, *draft_resident; ///< of a GPU
    wt_llm_session *session, *draft;
    wt_sampler_config sampling;
    wt_logit_bias biases[WT_OPTION_MAX_TEXTS]; ///< of `sampling`
    wt_sampler *sampler;
    wt_tokenizer *tokenizer; ///< or
    wt_llama2c_vocab *vocab; ///< both NULL with `numbers`
    wt_generator *generator;
    wt_llm_quantization quantization;
    wt_strategy strategy;
    size_t step_bytes; ///< of weights, wt_llm_step_bytes
    int n_positions, max_tokens; ///< of an answer; 0 = what there is room for
    double load_s;
} language_model;

/// What the program adds to the generator; the rest comes from the options. An answer ends when a signal has come
/// (interrupt.h).
typedef struct language_use {
    bool numbers;    ///< no text: tokens in, tokens out
    bool logprobs;   ///< of each token
    int n_top;       ///< most probable tokens told with each
    int n_sequences; ///< of a session without generator; 0 = one, with it
    int max_tokens;  ///< where neither option nor model say; 0 = what there is room for
    wt_answer_text_config text;
    bool (*on_token)(void *user, const wt_generated *token);
    wt_partition *partition; ///< of a GPU, which is used then; borrowed until closed. NULL = by --backend
    void (*progress)(const char *what, int done, int of, const char *unit); ///< of loading; NULL = none
    void *user;
} language_use;

/// Open everything; `text.stops` are taken from the options. Errors: theirs; the model is closed then.
WT_CHECKED wt_status language_model_open(const language_options *options, const language_use *use,
                                         language_model *model);
void language_model_close(language_model *model); ///< A zeroed one is allowed.

/// Errors: also WT_ERR_LENGTH when there are more than max_ids.
WT_CHECKED wt_status language_model_encode(const language_model *model, const char *text, size_t length, bool special,
                                           int32_t *ids, int max_ids, int *n_ids);

#endif
