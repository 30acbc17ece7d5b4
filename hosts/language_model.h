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
#define LANGUAGE_OPTIONS(o)                                                                                              \
    {"model", 'm', WT_OPTION_TEXT, &(o)->model, "PATH", "folder, *.gguf or *.bin", 0, 0},                                \
        {"tokenizer", 0, WT_OPTION_TEXT, &(o)->tokenizer, "PATH", "when it does not lie with the model", 0, 0},          \
        {"max-tokens", 'n', WT_OPTION_INT, &(o)->max_tokens, "N", "of an answer (generate 256, chat what there is room for)", \
         1, 1 << 20},                                                                                                    \
        {"temperature", 't', WT_OPTION_NUMBER, &(o)->temperature, "T",                                                   \
         "0: the most probable token (generate 0, chat the model's)", 0, 1000},                                          \
        {"top-k", 0, WT_OPTION_INT, &(o)->top_k, "K", "of the K most probable; 0: all", 0, 1 << 22},                     \
        {"top-p", 0, WT_OPTION_NUMBER, &(o)->top_p, "P", "of the most probable that sum to P; 1: all", 0, 1},            \
        {"min-p", 0, WT_OPTION_NUMBER, &(o)->min_p, "P", "of those with P of the most probable's share", 0, 1},          \
        {"typical-p", 0, WT_OPTION_NUMBER, &(o)->typical_p, "P", "of the nearest to the mean surprise that sum to P",    \
         0,           1},                                                                                                \
        {"repetition-penalty",                                                                                           \
         0,                                                                                                              \
         WT_OPTION_NUMBER,                                                                                               \
         &(o)->repetition,                                                                                               \
         "X",                                                                                                            \
         "divides logits of what was seen (1)",                                                                          \
         0,                                                                                                              \
         1000},                                                                                                          \
        {"presence-penalty",                                                                                             \
         0,                                                                                                              \
         WT_OPTION_NUMBER,                                                                                               \
         &(o)->presence,                                                                                                 \
         "X",                                                                                                            \
         "off logits of what was generated (0)",                                                                         \
         -1000,                                                                                                          \
         1000},                                                                                                          \
        {"frequency-penalty", 0, WT_OPTION_NUMBER, &(o)->frequency, "X", "the same, each time (0)", -1000, 1000},        \
        {"bias", 0, WT_OPTION_TEXTS, &(o)->biases, "ID=X", "added to a token's logit, -inf: never; up to 16", 0, 0},     \
        {"seed", 's', WT_OPTION_INT, &(o)->seed, "S", "same seed, same answer (0)", 0, INT32_MAX},                       \
        {"stop", 0, WT_OPTION_TEXTS, &(o)->stops, "TEXT", "the answer ends before it; may be given 16 times", 0, 0},     \
        {"strategy", 0, WT_OPTION_TEXT, &(o)->strategy, "NAME", "single, ngram, draft, early, jacobi, lookahead", 0, 0}, \
        {"draft", 0, WT_OPTION_TEXT, &(o)->draft, "PATH", "a smaller model of the same vocabulary; strategy draft",      \
         0,       0},                                                                                                    \
        {"guesses", 0, WT_OPTION_INT, &(o)->n_guesses, "N", "tokens guessed a step (5)", 1, 16},                         \
        {"keep-guessing", 0, WT_OPTION_FLAG, &(o)->keep_guessing, NULL, "also while guesses do not pay", 0, 0},          \
        {"draft-layers", 0, WT_OPTION_INT, &(o)->draft_layers, "N", "of strategy early (a quarter)", 1, 256},            \
        {"quantize", 'q', WT_OPTION_TEXT, &(o)->quantize, "TYPE", "fp8, int8 or int4, at load", 0, 0},                   \
        {"exact", 0, WT_OPTION_FLAG, &(o)->exact, NULL, "quantised weights times floats, not bytes; slower", 0, 0},      \
        {"exact-guesses",                                                                                                \
         0,                                                                                                              \
         WT_OPTION_FLAG,                                                                                                 \
         &(o)->exact_guesses,                                                                                            \
         NULL,                                                                                                           \
         "GPU: single steps by the kernels that verify guesses, bit for bit; slower",                                    \
         0,                                                                                                              \
         0},                                                                                                             \
        {"rough-guesses",                                                                                                \
         0,                                                                                                              \
         WT_OPTION_FLAG,                                                                                                 \
         &(o)->rough_guesses,                                                                                            \
         NULL,                                                                                                           \
         "GPU: guesses verified in 16 bits; faster, near ties may go the other way",                                     \
         0,                                                                                                              \
         0},                                                                                                             \
        {"context", 0, WT_OPTION_INT, &(o)->context, "N", "tokens of prompt and answer (the model's, at most 4096)", 1,  \
         1 << 22},                                                                                                       \
        {"keep",     0,      WT_OPTION_INT,                                                                              \
         &(o)->keep, "N",    "full context: drop half of the tokens after the first N and go on (the answer ends)",      \
         1,          1 << 22},                                                                                           \
        {"cache", 0, WT_OPTION_TEXT, &(o)->cache, "TYPE", "of keys and values: f32, f16, bf16, fp8 (CPU f32, GPU f16)",  \
         0,       0},                                                                                                    \
        {"batch", 0, WT_OPTION_INT, &(o)->batch, "N", "tokens of a prompt at a time (CPU 64, GPU 512)", 1, 4096},        \
        {"backend", 0, WT_OPTION_TEXT, &(o)->backend, "NAME", "auto, cuda or cpu (auto)", 0, 0},                         \
        {"threads", 0, WT_OPTION_INT, &(o)->threads, "N", "of the CPU; 0: one a processor (0)", 0, 4096},                \
    {                                                                                                                    \
        "ignore-eos", 0, WT_OPTION_FLAG, &(o)->ignore_eos, NULL, "go on after the model's end", 0, 0                     \
    }

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
    int n_positions, max_tokens;
    double load_s;
} language_model;

/// What the program adds to the generator; the rest comes from the options. An answer ends when a signal has come
/// (interrupt.h).
typedef struct language_use {
    bool numbers;    ///< no text: tokens in, tokens out
    bool logprobs;   ///< of each token
    int n_top;       ///< most probable tokens told with each
    int n_sequences; ///< of a session without generator; 0 = one, with it
    wt_answer_text_config text;
    bool (*on_token)(void *user, const wt_generated *token);
    wt_partition *partition; ///< of a GPU, which is used then; borrowed until closed. NULL = by --backend
    void (*progress)(const char *what, int done, int of, const char *unit); ///< of loading and quantising; NULL = none
    void *user;
} language_use;

/// Open everything; `text.stops` are taken from the options. Errors: theirs; the model is closed then.
WT_CHECKED wt_status language_model_open(const language_options *options, const language_use *use,
                                         language_model *model);
void language_model_close(language_model *model); ///< A zeroed one is allowed.

/// Errors: also WT_ERR_FULL when there are more than max_ids.
WT_CHECKED wt_status language_model_encode(const language_model *model, const char *text, size_t length, bool special,
                                           int32_t *ids, int max_ids, int *n_ids);

#endif
