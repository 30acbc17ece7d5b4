/// A model's answer as it comes: tokens and text, thinking apart from the answer, until an end, a stop string or a
/// wish.
///
///     wt_generator_create(&(wt_generator_config){.session = session, .sampler = sampler, .tokenizer = tokenizer,
///                                                .n_positions = 4096, .on_token = show}, &generator);
///     wt_generator_run(generator, prompt, n_prompt, &report);   // show() gets each token and what it adds to the text
#ifndef WARPTONE_GENERATE_H
#define WARPTONE_GENERATE_H

#include <warptone/llama2c.h>
#include <warptone/llm.h>
#include <warptone/tokenizer.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- text

/// Splits a stream of text: what stands between <think> and </think> at its beginning, and what comes after, up to the
/// first of the stop strings. Parts of a tag or stop string are held back until it is clear what they are.
typedef struct wt_answer_text wt_answer_text;

typedef struct wt_answer_text_config {
    const char *const *stops; ///< [n_stops] not empty; copied. They are looked for in the answer, not in the thinking
    int n_stops;
    bool split_thinking;  ///< else tags are text as any other
    bool starts_thinking; ///< the prompt has ended with <think>
} wt_answer_text_config;

/// Errors: WT_ERR_BAD_ARG (an empty stop string), WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_answer_text_create(const wt_answer_text_config *config, wt_answer_text **text);
void wt_answer_text_destroy(wt_answer_text *text); ///< NULL is allowed.  [worker]
/// Forget all, for the next answer.  [worker]
void wt_answer_text_begin(wt_answer_text *text, bool starts_thinking);

typedef struct wt_answer_part {
    const char *thinking, *answer; ///< what is certain now, each ended by a zero; borrowed until the next call
    size_t n_thinking, n_answer;   ///< bytes
    bool stopped;                  ///< a stop string came: it and what follows are left out
} wt_answer_part;

/// Errors: WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_answer_text_push(wt_answer_text *text, const char *piece, size_t length, wt_answer_part *part);
void wt_answer_text_flush(wt_answer_text *text, wt_answer_part *part); ///< What was held back.  [worker]

// ---- tokens

// clang-format off
/// X(code, name): how several tokens may come of one step. All give the tokens that single steps give, also when they
/// are drawn: guesses are verified with the same draws.
#define WT_STRATEGY_LIST(X)                                                                                   \
    X(WT_STRATEGY_SINGLE,    "single")    /* a token a step */                                                 \
    X(WT_STRATEGY_NGRAM,     "ngram")     /* what followed the last tokens before (Saxena, Prompt Lookup, 2023) */ \
    X(WT_STRATEGY_DRAFT,     "draft")     /* a smaller model (Leviathan et al., 2022) */                       \
    X(WT_STRATEGY_EARLY,     "early")     /* the first layers (Zhang et al., Draft & Verify, 2023) */          \
    X(WT_STRATEGY_JACOBI,    "jacobi")    /* the last step's own next tokens (Santilli et al., 2023) */        \
    X(WT_STRATEGY_LOOKAHEAD, "lookahead") /* those, and n-grams seen on their way (Fu et al., 2024) */
// clang-format on

typedef enum wt_strategy {
#define WT_STRATEGY_ENUM(code, name) code,
    WT_STRATEGY_LIST(WT_STRATEGY_ENUM)
#undef WT_STRATEGY_ENUM
        WT_N_STRATEGIES
} wt_strategy;

const char *wt_strategy_name(wt_strategy strategy); ///< "ngram"  [any]
/// Errors: WT_ERR_NOT_FOUND names those there are.  [any]
WT_CHECKED wt_status wt_strategy_find(const char *name, wt_strategy *strategy);

typedef enum wt_finish {
    WT_FINISH_LENGTH,    ///< max_tokens
    WT_FINISH_EOS,       ///< the model's end
    WT_FINISH_STOP,      ///< a stop string
    WT_FINISH_CONTEXT,   ///< n_positions
    WT_FINISH_CANCELLED, ///< by wt_generator_cancel or on_token
} wt_finish;

const char *wt_finish_name(wt_finish finish); ///< "eos"  [any]

/// A token, or at the end what was held back.
typedef struct wt_generated {
    int32_t id;              ///< -1 = no token, the end
    double logprob;          ///< as the model gave it, before penalties and temperature; 0 without `logprobs`
    const wt_llm_pick *pick; ///< with the most probable tokens; borrowed during the call. NULL with id -1
    wt_answer_part text; ///< what it makes certain; both empty while something is held back, and without a tokenizer
} wt_generated;

typedef struct wt_generator wt_generator;

typedef struct wt_generator_config {
    wt_llm_session *session; ///< the generator's alone until destroy; its tokens are taken back at the first prompt
    wt_sampler *sampler;     ///< likewise; what it has seen is the prompt of each answer
    int n_positions;         ///< of the session
    int max_tokens;          ///< of an answer; 0 = as many as there is room for
    int n_keep; ///< when n_positions are full, drop half of the tokens after so many and go on; 0 = the answer ends
    bool ignore_eos;
    bool logprobs;
    int n_top;                         ///< most probable tokens that are told with each, 0 .. WT_LLM_MOST_TOP
    const wt_tokenizer *tokenizer;     ///< borrowed; NULL = no text, or
    const wt_llama2c_vocab *vocab;     ///< borrowed
    const wt_answer_text_config *text; ///< copied; NULL = {0}
    wt_strategy strategy;
    wt_llm_session *draft; ///< of WT_STRATEGY_DRAFT: empty, of a model with the same vocabulary; its alone
    int n_guesses;         ///< tokens guessed a step, 1 .. 16; 0 = 5
    int n_draft_layers;    ///< of WT_STRATEGY_EARLY; 0 = a quarter of the model's
    bool keep_guessing;    ///< also when it does not pay
    float doubt; ///< most probable tokens that lead by less (wt_llm_verify_greedy) are decided by single steps; 0 =
                 ///< those by which verified guesses may differ from them: on the CPU, and with exact_guesses, none
    /// Gets each token, in the thread of run; false ends the answer. NULL = none.
    bool (*on_token)(void *user, const wt_generated *token);
    /// Asked there too, between steps and between batches of the prompt; false ends the answer. NULL = none.
    bool (*may_go_on)(void *user);
    void *user;
} wt_generator_config;

/// How it went. A strategy is switched off when its steps give fewer tokens a second than single ones do, and tried
/// again after a while that doubles each time.
typedef struct wt_generation {
    wt_finish finish;
    int n_prompt, n_reused; ///< tokens; those that the session still held
    int n_tokens;           ///< of the answer
    double prefill_s, decode_s;
    int n_steps;              ///< of the model after the prompt
    int n_guessed, n_correct; ///< tokens
    int n_switched_off;       ///< times
    int n_doubtful;           ///< tokens that single steps decided, though guesses had been verified before them
    int n_repeated;           ///< such steps, of tokens that had been verified already
    int n_differing;          ///< tokens told before that these would not have chosen: none has been met
    int n_dropped;            ///< tokens of prompt and answer, by n_keep
} wt_generation;

/// Errors: WT_ERR_BAD_ARG naming the field, or a token of the tokenizer that the model has not (but for added ones),
/// WT_ERR_NO_MEMORY. With RoPE of kind dynamic every strategy is `single`, as angles depend on the steps there.
/// [worker]
WT_CHECKED wt_status wt_generator_create(const wt_generator_config *config, wt_generator **generator);
void wt_generator_destroy(wt_generator *generator); ///< NULL is allowed.  [worker]

/// Answer `ids` [n], the whole prompt: what the session holds of its beginning is reused, the rest taken back. On an
/// error of a step, report tells how far it came. Errors: those of wt_llm_prefill, wt_llm_verify and wt_sampler_pick;
/// WT_ERR_FULL when the prompt has n_positions tokens or more.  [worker]
WT_CHECKED wt_status wt_generator_run(wt_generator *generator, const int32_t *ids, int n, wt_generation *report);

/// The prompts to come end with <think>, or do not: instead of text.starts_thinking.  [worker]
void wt_generator_start_thinking(wt_generator *generator, bool thinking);

/// The running answer, or the next, ends within a step (a prompt: within a batch of the session).  [any]
void wt_generator_cancel(wt_generator *generator);
/// It waits after the step that is under way, until it is to go on or is cancelled.  [any]
void wt_generator_pause(wt_generator *generator, bool pause);

#ifdef __cplusplus
}
#endif
#endif
